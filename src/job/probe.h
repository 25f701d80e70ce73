/* --verify: a table of integers in which each worker counts its own clocks, so that readers can tell what they have missed.
 *
 * Called once per clock by every worker of a gradient model (gradient.c) or a method (method_job.c), and at the end by the observer. A
 * worker sees all its own clocks, and those of each other one that its bound on staleness asks for; at the end the servers have all
 * clocks that workers finished, and no more. What is not so is RBT_E_BROKEN. Proved by tests/cli/test_smoke.sh, test_methods.sh and
 * test_mutants.sh, with mutants that break each of them. */
#ifndef RBT_JOB_PROBE_H
#define RBT_JOB_PROBE_H

#include "job/options.h"

/* What a worker that ends before its last clock adds to its count: nobody waits for more of it. */
#define RBT_PROBE_LEFT ((int64_t)1 << 40)

/* One worker's. A worker that was lost is not missed any more, but the servers may know that before the one who reads: so on a cluster
 * whoever misses something suspects, and the end tells. */
typedef struct rbt_probe {
    rbt_table table; /* one row of i64, a column per worker */
    int64_t *seen;   /* per worker */
    uint32_t suspect;
    rbt_error suspicion; /* RBT_OK: none */
} rbt_probe;

/* In a clock: checks what it sees of the others, and counts the clock. `clocks` says how many each makes unless it leaves. */
rbt_err rbt_probe_clock(rbt_worker *worker, rbt_probe *probe, const rbt_options *options,
                        uint64_t (*clocks)(const void *context, uint32_t worker), const void *context,
                        rbt_error *error);

/* After the last clock: has the suspect been lost, as it should be heard soon? */
rbt_err rbt_probe_end(rbt_worker *worker, const rbt_probe *probe, rbt_error *error);
void rbt_probe_deinit(rbt_probe *probe);

/* At the very end, by the observer: the counts, which are as many clocks as workers have published; and their sum. */
rbt_err rbt_probe_observe(rbt_worker *observer, rbt_table table, int64_t *probe, rbt_error *error);
rbt_err rbt_probe_compare(const rbt_worker *observer, const int64_t *probe, int64_t *sum, rbt_error *error);

#endif
