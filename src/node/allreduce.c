/* Sums around a ring; the contract is in allreduce.h. */
#include "node/allreduce.h"

#include <string.h>

#include "base/error.h"
#include "math/kernels.h"

void rbt_allreduce_init(rbt_allreduce *all, const rbt_topology *topology, uint32_t worker)
{
    *all = (rbt_allreduce){.topology = topology, .worker = worker};
}

void rbt_allreduce_deinit(rbt_allreduce *all)
{
    for (size_t i = 0; i < all->came.count; i++)
        rbt_message_destroy(all->came.at[i]);
    rbt_array_free(&all->came);
}

static uint32_t steps(const rbt_allreduce *all)
{
    return 2 * (all->topology->workers - 1);
}

/* Where chunk c begins. */
static size_t start_of(const rbt_allreduce *all, uint32_t chunk)
{
    uint32_t workers = all->topology->workers;
    size_t each = all->n / workers, more = all->n % workers;

    return chunk * each + (chunk < more ? chunk : more);
}

/* The chunk that this worker sends in a step; the one it receives is the one before. */
static uint32_t chunk_of(const rbt_allreduce *all, uint32_t step)
{
    uint32_t workers = all->topology->workers;
    uint32_t back = step < workers - 1 ? step : step - workers; /* the second time round it begins one further */

    return (all->worker + 2 * workers - back) % workers;
}

void rbt_allreduce_begin(rbt_allreduce *all, float *values, size_t n)
{
    RBT_ASSERT(all->sum == NULL);
    all->sum = values;
    all->n = n;
    all->step = 0;
    all->has_sent = false;
}

static void send_chunk(rbt_allreduce *all, uint32_t view, rbt_env *env)
{
    uint32_t workers = all->topology->workers, chunk = chunk_of(all, all->step);
    size_t first = start_of(all, chunk), n = start_of(all, chunk + 1) - first;
    rbt_message *message = rbt_message_create(RBT_MSG_CHUNK, rbt_node_of_worker(all->topology, all->worker),
                                              rbt_node_of_worker(all->topology, (all->worker + 1) % workers));
    rbt_part part = {.snap = rbt_snap_create(RBT_F32, (uint32_t)n)};

    if (n > 0)
        memcpy(part.snap->f32, all->sum + first, n * sizeof(float));
    message->view = view;
    message->worker = all->worker;
    message->clock = all->round;
    message->request = all->step;
    rbt_array_push(&message->parts, part);
    rbt_outbox_put(&env->out, message);
    all->has_sent = true;
}

/* Takes the chunk of this step if it has come. */
static bool take_chunk(rbt_allreduce *all)
{
    uint32_t workers = all->topology->workers;
    uint32_t chunk = (chunk_of(all, all->step) + workers - 1) % workers;
    size_t first = start_of(all, chunk), n = start_of(all, chunk + 1) - first;

    for (size_t i = 0; i < all->came.count; i++) {
        rbt_message *message = all->came.at[i];
        const rbt_snap *snap = message->parts.at[0].snap;

        if (message->clock != all->round || message->request != all->step || snap->length != n)
            continue;
        if (all->step < workers - 1)
            rbt_kernels_best()->add(snap->f32, all->sum + first, n);
        else if (n > 0)
            memcpy(all->sum + first, snap->f32, n * sizeof(float));
        rbt_message_destroy(message);
        all->came.at[i] = all->came.at[--all->came.count];
        return true;
    }
    return false;
}

bool rbt_allreduce_go_on(rbt_allreduce *all, uint32_t view, rbt_env *env)
{
    while (all->step < steps(all)) {
        if (!all->has_sent)
            send_chunk(all, view, env);
        if (!take_chunk(all))
            return false;
        all->step++;
        all->has_sent = false;
    }
    all->sum = NULL;
    all->round++;
    return true;
}

void rbt_allreduce_handle(rbt_allreduce *all, rbt_message *message)
{
    uint32_t workers = all->topology->workers;
    bool is_sound = all->topology->hop->allreduce && message->request < steps(all) &&
                    message->worker == (all->worker + workers - 1) % workers && message->parts.count == 1 &&
                    message->parts.at[0].snap != NULL && message->parts.at[0].snap->type == RBT_F32 &&
                    message->parts.at[0].snap->form == RBT_DENSE && message->clock >= all->round &&
                    message->clock <= all->round + 1;

    for (size_t i = 0; is_sound && i < all->came.count; i++) /* repeated */
        is_sound = all->came.at[i]->clock != message->clock || all->came.at[i]->request != message->request;
    if (is_sound && message->clock == all->round && all->sum != NULL && message->request < all->step)
        is_sound = false;
    if (is_sound)
        rbt_array_push(&all->came, message);
    else
        rbt_message_destroy(message);
}
