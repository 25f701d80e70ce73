/* How the processes of a session hand each other data before the job starts: the crew of session.h. What comes is kept until
 * somebody takes it, a few pieces per rank at most. Proved by tests/cluster and every test of a job of several processes. */
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/session_state.h"

#define SWAPS_MOST 4 /* handed over and not taken yet; who swaps can be one or two ahead */

void rbt_swap_take(rbt_session *s, rbt_remote *peer, rbt_arrival *arrival)
{
    swapped **last;
    size_t waiting = 0;
    bool is_fine;

    pthread_mutex_lock(&s->lock);
    is_fine = peer->rank < s->size && !s->started;
    for (last = is_fine ? &s->swaps[peer->rank] : NULL; is_fine && *last != NULL; last = &(*last)->next)
        waiting++;
    is_fine = is_fine && waiting < SWAPS_MOST;
    if (is_fine) {
        *last = rbt_alloc(1, sizeof **last);
        **last = (swapped){.bytes = arrival->body, .n = (size_t)arrival->header.body};
        arrival->body = NULL;
        pthread_cond_broadcast(&s->news);
    }
    pthread_mutex_unlock(&s->lock);
    if (!is_fine)
        rbt_session_cut_peer(peer, "it hands over what nobody has asked for");
}

static rbt_err take_swapped(rbt_session *s, uint32_t rank, rbt_bytes *in, rbt_error *error)
{
    uint64_t tell_at = rbt_session_deadline(RBT_TELL_MS);
    rbt_err err;
    swapped *item;

    pthread_mutex_lock(&s->lock);
    while ((err = rbt_session_check(s, error)) == RBT_OK && s->swaps[rank] == NULL) {
        s->awaits = rank;
        rbt_session_nap(s);
        if (s->leads && rbt_now_ns() >= tell_at) {
            rbt_patience_tell(s, rank);
            tell_at = rbt_session_deadline(RBT_TELL_MS);
        }
    }
    s->awaits = 0;
    item = err == RBT_OK ? s->swaps[rank] : NULL;
    if (item != NULL)
        s->swaps[rank] = item->next;
    pthread_mutex_unlock(&s->lock);
    if (item != NULL) {
        *in = (rbt_bytes){item->bytes, item->n};
        rbt_free(item);
    }
    return err;
}

/* What a rank is handed is the hub's from then on. */
static rbt_err copy_for(uint32_t rank, const rbt_bytes *bytes, uint8_t **copy, rbt_error *error)
{
    if (bytes->n > RBT_SWAP_MOST)
        return rbt_fail(
            error, RBT_E_LIMIT,
            "%zu bytes are to be handed to rank %u at once, and the limit is %llu; start more processes, so "
            "that each has a smaller part of the data",
            bytes->n, rank, (unsigned long long)RBT_SWAP_MOST);
    *copy = bytes->n > 0 ? rbt_try_alloc_raw(bytes->n, 1) : NULL;
    if (bytes->n > 0 && *copy == NULL)
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory to hand %zu bytes to rank %u; start fewer processes on this host", bytes->n,
                        rank);
    if (bytes->n > 0)
        memcpy(*copy, bytes->at, bytes->n);
    return RBT_OK;
}

static rbt_err swap(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    rbt_session *s = crew->context;
    rbt_err err = RBT_OK;

    for (uint32_t r = 0; r < s->size; r++)
        in[r] = (rbt_bytes){0};
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t r = (s->rank + i) % s->size; /* not all to the same one first */
        uint8_t *copy = NULL;

        err = copy_for(r, &out[r], &copy, error);
        if (err != RBT_OK)
            break;
        if (r == s->rank)
            in[r] = (rbt_bytes){copy, out[r].n};
        else
            rbt_session_say(s, r, RBT_SAY_SWAP, NULL, copy, out[r].n);
    }
    for (uint32_t r = 0; err == RBT_OK && r < s->size; r++)
        if (r != s->rank)
            err = take_swapped(s, r, &in[r], error);
    for (uint32_t r = 0; err != RBT_OK && r < s->size; r++) {
        rbt_free(in[r].at);
        in[r] = (rbt_bytes){0};
    }
    return err;
}

/* All processes know of it, the lead too, and say the same. */
static void failed(rbt_crew *crew, uint32_t rank, rbt_error *error)
{
    rbt_session *s = crew->context;

    s->has_failed_together = true;
    if (rank < s->size)
        rbt_session_blame(s, rank, error);
}

rbt_crew rbt_session_crew(rbt_session *s)
{
    return (rbt_crew){.rank = s->rank, .size = s->size, .swap = swap, .failed = failed, .context = s};
}

void rbt_swap_forget(rbt_session *s)
{
    for (uint32_t r = 0; r < s->size; r++)
        while (s->swaps[r] != NULL) {
            swapped *item = s->swaps[r];

            s->swaps[r] = item->next;
            rbt_free(item->bytes);
            rbt_free(item);
        }
    rbt_free(s->swaps);
}
