/* Work on many items by the threads of this machine: the readers' and writers' way to use all cores.
 *
 * Called by chunks.c, idx.c, cache.c, write.c and generate.c, and by src/solve/team.c for its threads. Always holds:
 * every item is worked on exactly once; an item is begun only after all before it were begun; when the call returns
 * nothing runs any more and all that the items wrote can be read. A thread that cannot be had is done without. Where
 * the caller may run is not changed. Proved by tests/unit/test_parallel.c.
 */
#ifndef RBT_DATA_PARALLEL_H
#define RBT_DATA_PARALLEL_H

#include <pthread.h>
#include <stddef.h>

#define RBT_PARALLEL_THREADS_MAX 64

/* How many threads are worth it: the cores this process may use, RBT_PARALLEL_THREADS_MAX at most. */
unsigned rbt_parallel_threads(void);

/* Calls work(context, item) for items 0 .. count - 1 by that many threads, the calling one included. Small numbers of
 * items make fewer threads. */
void rbt_parallel_for(size_t count, unsigned threads, void (*work)(void *context, size_t item), void *context);

/* pthread_create for a thread that is to run beside the caller, at once: the system may put it behind the caller on the
 * same core and see only milliseconds later that another is free. Where it runs after that is the system's business. */
int rbt_parallel_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
