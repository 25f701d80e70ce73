/* Work on many items by several threads. Contract in parallel.h; proved by tests/unit/test_parallel.c. */
#include "data/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

typedef struct shared {
    atomic_size_t next;
    size_t count;
    void (*work)(void *context, size_t item);
    void *context;
} shared;

unsigned rbt_parallel_threads(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int cores = CPU_COUNT(&set);
    return cores < 1 ? 1 : cores > RBT_PARALLEL_THREADS_MAX ? RBT_PARALLEL_THREADS_MAX : (unsigned)cores;
}

static void *take_items(void *argument)
{
    shared *s = argument;
    for (;;) {
        size_t item = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (item >= s->count)
            return NULL;
        s->work(s->context, item);
    }
}

int rbt_parallel_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    int failed = pthread_create(thread, NULL, run, argument), here = sched_getcpu();
    cpu_set_t all, others;
    if (failed != 0 || here < 0 || sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return failed;
    others = all;
    CPU_CLR((size_t)here, &others);
    (void)pthread_setaffinity_np(*thread, sizeof others, &others);
    (void)pthread_setaffinity_np(*thread, sizeof all, &all);
    return 0;
}

void rbt_parallel_for(size_t count, unsigned threads, void (*work)(void *context, size_t item), void *context)
{
    shared s = {.count = count, .work = work, .context = context};
    pthread_t others[RBT_PARALLEL_THREADS_MAX];
    unsigned started = 0;
    if (threads > RBT_PARALLEL_THREADS_MAX)
        threads = RBT_PARALLEL_THREADS_MAX;

    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < threads && started + 1 < count && rbt_parallel_start(&others[started], take_items, &s) == 0)
        started++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);

    (void)take_items(&s);
    for (unsigned i = 0; i < started; i++)
        (void)pthread_join(others[i], NULL);
}
