/* The update queue; the contract is in update_queue.h. */
#include "sync/update_queue.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

rbt_err rbt_update_queue_init(rbt_update_queue *queue, const uint32_t *sender, uint32_t senders, uint64_t ahead,
                              rbt_error *error)
{
    rbt_update *at;

    if (senders > 0 && ahead >= RBT_UPDATE_QUEUE_MAX / senders)
        return rbt_fail(error, RBT_E_LIMIT,
                        "updates of %u neighbours that may be %" PRIu64 " iterations ahead are more than %zu; give a "
                        "smaller --max-gap",
                        senders, ahead, RBT_UPDATE_QUEUE_MAX);
    at = rbt_try_alloc((size_t)(ahead + 1) * senders, sizeof *at);
    if (at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a queue of %zu updates; give a smaller --max-gap",
                        (size_t)(ahead + 1) * senders);
    *queue = (rbt_update_queue){.ahead = ahead, .senders = senders, .at = at};
    queue->sender = rbt_alloc(senders, sizeof *queue->sender);
    queue->seen = rbt_alloc(senders, sizeof *queue->seen);
    memcpy(queue->sender, sender, senders * sizeof *sender);
    return RBT_OK;
}

void rbt_update_queue_deinit(rbt_update_queue *queue)
{
    for (size_t i = 0; queue->at != NULL && i < (size_t)(queue->ahead + 1) * queue->senders; i++)
        rbt_snap_unref(queue->at[i].snap);
    rbt_free(queue->at);
    rbt_free(queue->sender);
    rbt_free(queue->seen);
    *queue = (rbt_update_queue){0};
}

/* The sender's place in the list, or their number. */
static uint32_t place_of(const rbt_update_queue *queue, uint32_t from)
{
    uint32_t low = 0, high = queue->senders;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (queue->sender[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < queue->senders && queue->sender[low] == from ? low : queue->senders;
}

static rbt_update *entry(const rbt_update_queue *queue, uint64_t iter, uint32_t place)
{
    return &queue->at[(size_t)(iter % (queue->ahead + 1)) * queue->senders + place];
}

/* Moves the entry out, or drops it. */
static void empty(rbt_update_queue *queue, rbt_update *e, rbt_update *out)
{
    if (out != NULL) {
        *out = *e;
    } else {
        rbt_snap_unref(e->snap);
        queue->dropped++;
    }
    *e = (rbt_update){0};
    queue->size--;
}

rbt_err rbt_update_queue_enqueue(rbt_update_queue *queue, rbt_snap *snap, uint64_t iter, uint32_t from,
                                 rbt_error *error)
{
    uint32_t place = place_of(queue, from);
    rbt_update *e;

    if (place == queue->senders)
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "an update of iteration %" PRIu64 " came from %u, which is no in-neighbour", iter, from);
    if (iter > queue->now && iter - queue->now > queue->ahead)
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "%u sent an update of iteration %" PRIu64 ", which is more than %" PRIu64
                        " ahead of its receiver at %" PRIu64,
                        from, iter, queue->ahead, queue->now);
    e = entry(queue, iter, place);
    if (e->snap != NULL && e->iter == iter)
        return rbt_fail(error, RBT_E_PROTOCOL, "%u sent its update of iteration %" PRIu64 " twice", from, iter);
    if (iter >= queue->seen[place])
        queue->seen[place] = iter + 1;
    if (iter < queue->oldest || (e->snap != NULL && e->iter > iter)) {
        rbt_snap_unref(snap);
        queue->dropped++;
        return RBT_OK;
    }
    if (e->snap != NULL)
        empty(queue, e, NULL);
    *e = (rbt_update){iter, from, snap};
    queue->size++;
    if (queue->size > queue->peak)
        queue->peak = queue->size;
    return RBT_OK;
}

/* The entry that matches and is first, or NULL. */
static rbt_update *first_match(const rbt_update_queue *queue, uint64_t iter, uint32_t from)
{
    rbt_update *first = NULL;
    uint32_t begin = from == RBT_ANY_SENDER ? 0 : place_of(queue, from);
    uint32_t end = from == RBT_ANY_SENDER || begin == queue->senders ? queue->senders : begin + 1;
    uint64_t low = iter == RBT_ANY_ITER ? 0 : iter % (queue->ahead + 1);
    uint64_t high = iter == RBT_ANY_ITER ? queue->ahead : low;

    for (uint64_t slot = low; slot <= high; slot++)
        for (uint32_t place = begin; place < end; place++) {
            rbt_update *e = entry(queue, slot, place);

            if (e->snap != NULL && (iter == RBT_ANY_ITER || e->iter == iter) &&
                (first == NULL || e->iter < first->iter))
                first = e;
        }
    return first;
}

size_t rbt_update_queue_size(const rbt_update_queue *queue, uint64_t iter, uint32_t from)
{
    size_t size = 0;

    if (iter == RBT_ANY_ITER && from == RBT_ANY_SENDER)
        return queue->size;
    for (uint64_t slot = 0; slot <= queue->ahead; slot++)
        for (uint32_t place = 0; place < queue->senders; place++) {
            const rbt_update *e = entry(queue, slot, place);

            size += e->snap != NULL && (iter == RBT_ANY_ITER || e->iter == iter) &&
                    (from == RBT_ANY_SENDER || e->from == from);
        }
    return size;
}

size_t rbt_update_queue_dequeue(rbt_update_queue *queue, size_t most, uint64_t iter, uint32_t from, rbt_update *out)
{
    size_t count = 0;

    while (count < most) {
        rbt_update *e = first_match(queue, iter, from);

        if (e == NULL)
            break;
        empty(queue, e, &out[count++]);
    }
    return count;
}

bool rbt_update_queue_newest(rbt_update_queue *queue, uint32_t from, rbt_update *out)
{
    rbt_update *newest = NULL;
    uint32_t place = place_of(queue, from);

    for (uint64_t slot = 0; slot <= queue->ahead && place < queue->senders; slot++) {
        rbt_update *e = entry(queue, slot, place);

        if (e->snap == NULL)
            continue;
        if (newest != NULL)
            empty(queue, e->iter > newest->iter ? newest : e, NULL);
        newest = newest == NULL || newest->snap == NULL ? e : newest;
    }
    if (newest == NULL)
        return false;
    empty(queue, newest, out);
    return true;
}

uint64_t rbt_update_queue_seen(const rbt_update_queue *queue, uint32_t from)
{
    uint32_t place = place_of(queue, from);

    return place < queue->senders ? queue->seen[place] : 0;
}

void rbt_update_queue_advance(rbt_update_queue *queue, uint64_t now, uint64_t oldest)
{
    RBT_ASSERT(now >= queue->now && oldest >= queue->oldest && oldest <= now);
    queue->now = now;
    queue->oldest = oldest;
    for (size_t i = 0; queue->size > 0 && i < (size_t)(queue->ahead + 1) * queue->senders; i++)
        if (queue->at[i].snap != NULL && queue->at[i].iter < oldest)
            empty(queue, &queue->at[i], NULL);
}

rbt_err rbt_update_queue_rewire(rbt_update_queue *queue, const uint32_t *sender, uint32_t senders, rbt_error *error)
{
    rbt_update_queue wired = {0};
    rbt_err err = rbt_update_queue_init(&wired, sender, senders, queue->ahead, error);

    if (err != RBT_OK)
        return err;
    RBT_ASSERT(wired.at != NULL);
    wired.now = queue->now;
    wired.oldest = queue->oldest;
    for (uint32_t place = 0; place < senders; place++) {
        uint32_t old = place_of(queue, sender[place]);

        if (old == queue->senders)
            continue;
        wired.seen[place] = queue->seen[old];
        for (uint64_t slot = 0; slot <= queue->ahead; slot++) {
            rbt_update *e = entry(queue, slot, old);

            if (e->snap == NULL)
                continue;
            empty(queue, e, entry(&wired, slot, place));
            wired.size++;
        }
    }
    wired.peak = wired.size > queue->peak ? wired.size : queue->peak;
    wired.dropped = queue->dropped + queue->size;
    rbt_update_queue_deinit(queue);
    *queue = wired;
    return RBT_OK;
}
