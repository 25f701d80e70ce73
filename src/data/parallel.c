/* Work on many items by several threads. Contract in parallel.h; proved by tests/unit/test_parallel.c. */
#include "data/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"

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

/* A thread that has just begun, on another core than its creator's. */
typedef struct beginning {
    void *(*run)(void *argument);
    void *argument;
    cpu_set_t all; /* where it may run from then on */
} beginning;

static void *begin(void *argument)
{
    const beginning b = *(beginning *)argument;
    rbt_free(argument);
    (void)sched_setaffinity(0, sizeof b.all, &b.all);
    return b.run(b.argument);
}

/* On one of the others; false: the system does not give such a thread. */
static bool start_on(const cpu_set_t *others, pthread_t *thread, const beginning *what)
{
    pthread_attr_t attributes;
    beginning *b = rbt_try_alloc_raw(1, sizeof *b);
    if (b == NULL || pthread_attr_init(&attributes) != 0) {
        rbt_free(b);
        return false;
    }
    *b = *what;
    bool started = pthread_attr_setaffinity_np(&attributes, sizeof *others, others) == 0 &&
                   pthread_create(thread, &attributes, begin, b) == 0;
    (void)pthread_attr_destroy(&attributes);
    if (!started)
        rbt_free(b);
    return started;
}

/* The thread itself goes back to all cores: whoever moved it from outside could meet one that has ended, and glibc then
 * takes the caller for it. */
int rbt_parallel_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    beginning b = {.run = run, .argument = argument};
    int here = sched_getcpu();
    if (here >= 0 && sched_getaffinity(0, sizeof b.all, &b.all) == 0 && CPU_COUNT(&b.all) > 1) {
        cpu_set_t others = b.all;
        CPU_CLR((size_t)here, &others);
        if (start_on(&others, thread, &b))
            return 0;
    }
    return pthread_create(thread, NULL, run, argument);
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
