/* The clock on the wall, for those who may look at it: the runtimes, the solvers in shared memory, the jobs. Nodes, rules
 * and tables may not (tests/law/purity.sh); to them time is an argument. */
#ifndef RBT_BASE_TIME_H
#define RBT_BASE_TIME_H

#include <stdint.h>
#include <time.h>

/* Since some moment in the past; never goes back. */
static inline uint64_t rbt_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline double rbt_now_seconds(void)
{
    return (double)rbt_now_ns() / 1e9;
}

#endif
