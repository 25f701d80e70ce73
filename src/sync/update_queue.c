/* The queue of one sender's updates; the contract is in update_queue.h. */
#include "sync/update_queue.h"

#include "base/error.h"
#include "base/mem.h"

#define ROOM_FIRST 4u

void rbt_update_queue_deinit(rbt_update_queue *queue)
{
    for (uint64_t i = 0; i < queue->room; i++)
        rbt_snap_unref(queue->at[i].x);
    rbt_free(queue->at);
    *queue = (rbt_update_queue){0};
}

static rbt_update *place(const rbt_update_queue *queue, uint64_t iteration)
{
    return &queue->at[iteration & (queue->room - 1)];
}

rbt_update *rbt_update_queue_get(const rbt_update_queue *queue, uint64_t iteration)
{
    rbt_update *found = queue->room > 0 ? place(queue, iteration) : NULL;

    return found != NULL && found->x != NULL && found->iteration == iteration ? found : NULL;
}

rbt_update *rbt_update_queue_newest(const rbt_update_queue *queue)
{
    return queue->count > 0 ? place(queue, queue->last) : NULL;
}

/* Room for `span` iterations in a row; what is there finds its new places. */
static bool make_room(rbt_update_queue *queue, uint64_t span)
{
    rbt_update_queue wider = *queue;

    if (span > RBT_UPDATE_QUEUE_MAX)
        return false;
    for (wider.room = queue->room > 0 ? queue->room : ROOM_FIRST; wider.room < span;)
        wider.room *= 2;
    if (wider.room == queue->room)
        return true;
    wider.at = rbt_alloc(wider.room, sizeof *wider.at);
    for (uint64_t i = 0; i < queue->room; i++)
        if (queue->at[i].x != NULL)
            *place(&wider, queue->at[i].iteration) = queue->at[i];
    rbt_free(queue->at);
    *queue = wider;
    return true;
}

bool rbt_update_queue_put(rbt_update_queue *queue, uint64_t iteration, rbt_snap *x)
{
    uint64_t first = queue->count > 0 && queue->first < iteration ? queue->first : iteration;
    uint64_t last = queue->count > 0 && queue->last > iteration ? queue->last : iteration;

    if (rbt_update_queue_get(queue, iteration) != NULL || !make_room(queue, last - first + 1))
        return false;
    *place(queue, iteration) = (rbt_update){.iteration = iteration, .x = rbt_snap_ref(x)};
    queue->first = first;
    queue->last = last;
    queue->count++;
    return true;
}

size_t rbt_update_queue_drop(rbt_update_queue *queue, uint64_t oldest)
{
    size_t unused = 0;

    for (; queue->count > 0 && queue->first < oldest; queue->first++) {
        rbt_update *update = rbt_update_queue_get(queue, queue->first);

        if (update == NULL)
            continue;
        unused += !update->used;
        rbt_snap_unref(update->x);
        update->x = NULL;
        queue->count--;
    }
    return unused;
}
