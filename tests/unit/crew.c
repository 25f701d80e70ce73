/* A crew of threads; see crew.h. */
#include "unit/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct table {
    uint32_t size;
    pthread_barrier_t barrier;
    rbt_bytes *bytes; /* from, to */
    atomic_size_t most;
    void (*work)(rbt_crew *crew, void *context);
    void *context;
} table;

typedef struct member {
    table *table;
    rbt_crew crew;
    pthread_t thread;
} member;

rbt_err crew_swap(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    table *t = crew->context;
    (void)error;
    for (uint32_t to = 0; to < t->size; to++) {
        rbt_bytes *at = &t->bytes[(size_t)crew->rank * t->size + to];
        size_t most = atomic_load(&t->most);
        *at = (rbt_bytes){out[to].n > 0 ? rbt_alloc(out[to].n, 1) : NULL, out[to].n};
        if (out[to].n > 0)
            memcpy(at->at, out[to].at, out[to].n);
        while (out[to].n > most && !atomic_compare_exchange_weak(&t->most, &most, out[to].n))
            continue;
    }
    (void)pthread_barrier_wait(&t->barrier);
    for (uint32_t from = 0; from < t->size; from++)
        in[from] = t->bytes[(size_t)from * t->size + crew->rank];
    (void)pthread_barrier_wait(&t->barrier);
    return RBT_OK;
}

size_t crew_most_bytes(const rbt_crew *crew)
{
    return atomic_load(&((table *)crew->context)->most);
}

static void *run(void *argument)
{
    member *m = argument;
    m->table->work(&m->crew, m->table->context);
    return NULL;
}

void run_crew(uint32_t size, void (*work)(rbt_crew *crew, void *context), void *context)
{
    table t = {.size = size, .work = work, .context = context};
    member *members = rbt_alloc(size, sizeof *members);
    t.bytes = rbt_alloc((size_t)size * size, sizeof *t.bytes);
    RBT_ASSERT(pthread_barrier_init(&t.barrier, NULL, size) == 0);
    for (uint32_t r = 0; r < size; r++) {
        members[r] = (member){.table = &t, .crew = {.rank = r, .size = size, .swap = crew_swap, .context = &t}};
        RBT_ASSERT(pthread_create(&members[r].thread, NULL, run, &members[r]) == 0);
    }
    for (uint32_t r = 0; r < size; r++)
        (void)pthread_join(members[r].thread, NULL);
    (void)pthread_barrier_destroy(&t.barrier);
    rbt_free(t.bytes);
    rbt_free(members);
}
