#include "base/thread.h"

#include <sched.h>

int rbt_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    cpu_set_t all, others;
    int failed = pthread_create(thread, NULL, run, argument), here = sched_getcpu();
    if (failed != 0 || here < 0 || sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return failed;
    others = all;
    CPU_CLR((size_t)here, &others);
    (void)pthread_setaffinity_np(*thread, sizeof others, &others);
    (void)pthread_setaffinity_np(*thread, sizeof all, &all);
    return 0;
}
