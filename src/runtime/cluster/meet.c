/* How processes that have seats meet: each dials the seats before its own and says its rank; whom the roster does not know yet
 * is not listened to until it does. The contract is in session.h. Proved by tests/cluster. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/cluster/session_state.h"

/* ------------------------------------------------------------------------------------------------------- claims */

/* Connects claims with seats, as far as the roster knows them by now. The lock is held. */
void rbt_meet_settle(rbt_session *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->claims.count; i++) {
        claim c = s->claims.at[i];
        rbt_seat *seat = c.rank < s->size ? &s->seats[c.rank] : NULL;

        if (seat != NULL && seat->life == c.peer->life) {
            seat->peer = c.peer;
            seat->state = seat->state == RBT_SEAT_LOST ? RBT_SEAT_JOINED : seat->state;
            c.peer->rank = c.rank;
            snprintf(c.peer->name, sizeof c.peer->name, "rank %u on host %.64s", c.rank, seat->host);
            rbt_array_push(&s->settled, c);
        } else {
            s->claims.at[kept++] = c;
        }
    }
    s->claims.count = kept;
    pthread_cond_broadcast(&s->news);
}

/* Those whose claims have been settled may speak. Without the lock. */
void rbt_meet_hear(rbt_session *s)
{
    for (size_t i = 0; i < s->settled.count; i++)
        rbt_hub_resume(s->settled.at[i].peer);
    s->settled.count = 0;
}

void rbt_meet_forget(rbt_session *s, const rbt_remote *peer)
{
    for (size_t i = 0; i < s->claims.count; i++)
        if (peer == NULL || s->claims.at[i].peer == peer)
            s->claims.at[i--] = s->claims.at[--s->claims.count];
}

void rbt_meet_iam(rbt_session *s, rbt_remote *peer, rbt_unpack *words)
{
    claim c = {.peer = peer, .rank = rbt_unpack_u32(words)};

    bool is_fine = rbt_unpack_done(words) && c.rank < RBT_RANKS_LIMIT && peer->rank == RBT_RANK_NONE && !s->leads;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->claims.count; i++)
        is_fine = is_fine && s->claims.at[i].peer != peer; /* it says so once */
    if (is_fine) {
        rbt_array_push(&s->claims, c);
        rbt_meet_settle(s);
    }
    pthread_mutex_unlock(&s->lock);
    rbt_meet_hear(s);
    if (!is_fine)
        rbt_session_cut_peer(peer, "it did not say who it is");
    else if (peer->rank == RBT_RANK_NONE)
        rbt_hub_hold(peer);
}

/* ------------------------------------------------------------------------------------------------------- meeting */

/* Dials a seat: on the same host over a Unix socket. */
static rbt_err meet_seat(rbt_session *s, uint32_t rank, rbt_error *error)
{
    rbt_seat *seat = &s->seats[rank];
    bool is_near = seat->host_id == s->me.host_id && seat->local[0] != '\0';
    rbt_address address;
    rbt_pack words = {0};
    rbt_remote *peer;
    rbt_err err;

    if (!is_near && seat->tcp[0] == '\0')
        return rbt_fail(error, RBT_E_IO,
                        "rank %u on host %s does not listen on the network; start it with --listen ADDRESS", rank,
                        seat->host);
    err = rbt_address_parse(is_near ? seat->local : seat->tcp, 0, &address, error);
    if (err != RBT_OK)
        return err;
    peer = rbt_hub_dial(s->hub, &address, rank, s->config.join_timeout_ms);
    rbt_pack_u32(&words, s->rank);
    rbt_session_say_to(peer, RBT_SAY_IAM, &words, NULL, 0);
    rbt_array_free(&words);
    pthread_mutex_lock(&s->lock);
    seat->peer = peer;
    pthread_mutex_unlock(&s->lock);
    return RBT_OK;
}

rbt_err rbt_session_meet(rbt_session *s, rbt_error *error)
{
    bool is_back = !s->leads && s->seats[s->rank].incarnation > 0; /* the others stand already: it dials all of them */
    rbt_err err = RBT_OK;

    for (uint32_t r = 1; err == RBT_OK && r < s->size; r++)
        if (r < s->rank || (is_back && r != s->rank))
            err = meet_seat(s, r, error);
    pthread_mutex_lock(&s->lock);
    while (err == RBT_OK && !s->leads) {
        err = rbt_session_check(s, error);
        s->awaits = 0;
        for (uint32_t r = 1; r < s->size && s->awaits == 0 && !is_back; r++)
            s->awaits = r != s->rank && s->seats[r].peer == NULL ? r : 0;
        if (err != RBT_OK || s->awaits == 0)
            break;
        rbt_session_nap(s);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

void rbt_meet_again(rbt_session *s, uint32_t rank)
{
    rbt_error error;

    if (meet_seat(s, rank, &error) != RBT_OK)
        rbt_session_log(s, RBT_LOG_WARNING, "cluster", error.text);
}

/* A seat's peer, and whether it is needed, change together: either this finds that the peer is gone, or rbt_session_on_lost that it is
 * needed. */
void rbt_session_keep(rbt_session *s, const bool *is_needed)
{
    for (uint32_t r = 1; r < s->size && !s->leads; r++) {
        rbt_seat *seat = &s->seats[r];
        rbt_remote *peer;
        bool was_idle;

        if (r == s->rank)
            continue;
        pthread_mutex_lock(&s->lock);
        was_idle = seat->is_idle;
        seat->is_idle = !is_needed[r];
        peer = seat->peer;
        if (peer != NULL)
            atomic_fetch_add(&peer->holders, 1);
        seat->is_parting = peer != NULL && (seat->is_parting || seat->is_idle);
        pthread_mutex_unlock(&s->lock);
        if (peer != NULL && !is_needed[r])
            rbt_hub_part(peer);
        else if (peer != NULL)
            rbt_hub_stay(peer);
        else if (is_needed[r] && was_idle && r < s->rank)
            rbt_meet_again(s, r);
        rbt_session_release(peer);
    }
}
