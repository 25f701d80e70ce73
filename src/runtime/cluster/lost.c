/* How a session loses a process, and carries out what losses.h decides: everybody is told of one that is cut off, the runtime
 * hears what became of it, or the job ends. The contract is in session.h. Proved by tests/cluster/test_processes_loss.sh,
 * test_netns_jobs.sh and test_hostile.sh. */
#include <stdio.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/session_state.h"
#include "runtime/cluster/watch.h"

/* ----------------------------------------------------------------------------------------------------- the lead */

/* The others are not to listen to a rank any more, whatever it says; those that have lost it themselves know. */
static void tell_cut(rbt_session *s, uint32_t rank, uint64_t life)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, rank);
    rbt_pack_u64(&words, life);
    for (uint32_t r = 1; r < s->size; r++)
        if (r != rank)
            rbt_session_say(s, r, RBT_SAY_CUT, &words, NULL, 0);
    rbt_array_free(&words);
}

static void lead_lost_seat(rbt_session *s, uint32_t rank, const rbt_error *why)
{
    rbt_error told;
    char name[RBT_HOST_ROOM + 32];
    const char *what = why->code == RBT_OK ? "it left" : why->text, *reason;
    rbt_verdict verdict;
    uint64_t life;
    bool started;

    rbt_session_name(s, rank, name, sizeof name);
    pthread_mutex_lock(&s->lock);
    s->seats[rank].state = RBT_SEAT_LOST;
    s->seats[rank].peer = NULL;
    life = s->seats[rank].life;
    verdict = rbt_losses_lost(&s->losses, rank, &reason);
    started = s->started;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (!started) {
        rbt_fail(&told, RBT_E_LOST, "%s was lost before the job started: %s", name, what);
        rbt_session_end(s, &told);
        return;
    }
    tell_cut(s, rank, life);
    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_lost != NULL)
        s->hooks.on_lost(s->hooks.context, rank, verdict, why);
    pthread_mutex_unlock(&s->calling);
    if (verdict == RBT_VERDICT_END) {
        rbt_fail(&told, RBT_E_LOST, "%s was lost (%s); %s", name, what, reason);
        rbt_session_end(s, &told);
    }
}

/* Cuts a rank off that the job does without from now on; on_lost follows. */
static void cut_rank(rbt_session *s, uint32_t rank, const rbt_error *why)
{
    rbt_remote *peer = rbt_session_hold(s, rank);
    rbt_error told;

    if (peer == NULL)
        return;
    rbt_fail(&told, RBT_E_LOST, "the job goes on without this process: %s", why->text);
    rbt_session_say_error(peer, RBT_SAY_END, &told);
    rbt_hub_cut(peer, why);
    rbt_session_release(peer);
}

void rbt_lost_judge(rbt_session *s)
{
    rbt_complaint complaint;
    rbt_error why;
    bool cut;

    pthread_mutex_lock(&s->lock);
    cut = !s->over && rbt_losses_judge(&s->losses, rbt_now_ns(), &complaint);
    pthread_mutex_unlock(&s->lock);
    if (!cut)
        return;
    rbt_fail(&why, RBT_E_LOST, "rank %u on host %s and it lost each other: %s", complaint.by,
             s->seats[complaint.by].host, complaint.why);
    cut_rank(s, complaint.about, &why);
}

/* The lead hears that one cannot reach another. If that one has died it will learn so itself. */
void rbt_lost_apart(rbt_session *s, const rbt_remote *peer, rbt_unpack *words)
{
    uint32_t rank = rbt_unpack_u32(words);
    uint64_t life = rbt_unpack_u64(words);
    rbt_error why;

    if (!rbt_session_read_error(words, &why) || rank == 0 || rank >= s->size)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->seats[rank].life == life)
        rbt_losses_complain(&s->losses, peer->rank, rank, why.code == RBT_E_PROTOCOL, why.text, rbt_now_ns());
    pthread_mutex_unlock(&s->lock);
    rbt_lost_judge(s);
}

void rbt_session_done(rbt_session *s, uint32_t rank, bool has_told)
{
    pthread_mutex_lock(&s->lock);
    if (has_told)
        rbt_losses_told(&s->losses, rank);
    else
        rbt_losses_done(&s->losses, rank);
    pthread_mutex_unlock(&s->lock);
}

rbt_rank_state rbt_session_state(rbt_session *s, uint32_t rank)
{
    rbt_rank_state state;

    pthread_mutex_lock(&s->lock);
    state = s->losses.ranks[rank].state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

rbt_bequests rbt_session_bequeath(rbt_session *s, uint32_t rank)
{
    rbt_bequests bequests;

    pthread_mutex_lock(&s->lock);
    bequests = rbt_losses_bequeath(&s->losses, rank);
    pthread_mutex_unlock(&s->lock);
    return bequests;
}

/* --------------------------------------------------------------------------------------------------- everybody */

/* The lead says that a rank is not to be listened to any more. */
void rbt_lost_cut(rbt_session *s, rbt_unpack *words)
{
    uint32_t rank = rbt_unpack_u32(words);
    uint64_t life = rbt_unpack_u64(words);
    rbt_remote *peer = NULL;

    if (!rbt_unpack_done(words) || rank == 0 || rank >= s->size || rank == s->rank)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->seats[rank].life == life)
        peer = s->seats[rank].peer;
    pthread_mutex_unlock(&s->lock);
    if (peer != NULL)
        rbt_hub_cut(peer, &(rbt_error){.code = RBT_OK});
}

static void miss(rbt_session *s, uint32_t rank, const rbt_error *why)
{
    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_missed != NULL)
        s->hooks.on_missed(s->hooks.context, rank, why);
    pthread_mutex_unlock(&s->calling);
}

/* The lead is gone: can this process do without? Whoever was lost before, of whom the lead was told in vain perhaps, is missed now;
 * to hear that twice changes nothing. */
static bool go_on_alone(rbt_session *s, rbt_error *why)
{
    bool can;

    pthread_mutex_lock(&s->lock);
    can = s->started && !s->over;
    if (can)
        s->seats[0].peer = NULL;
    pthread_mutex_unlock(&s->lock);
    if (!can)
        return false;
    atomic_store(&s->is_alone, true);
    pthread_mutex_lock(&s->calling);
    can = s->hooks.on_alone != NULL && s->hooks.on_alone(s->hooks.context, why);
    pthread_mutex_unlock(&s->calling);
    for (uint32_t r = 1; can && r < s->size; r++)
        if (s->seats[r].is_missed)
            miss(s, r, &(rbt_error){.code = RBT_E_LOST, .text = "before the lead was"});
    return can;
}

void rbt_lost_unled(rbt_session *s)
{
    if (s->size > 0 && !rbt_session_is_over(s) && s->config.on_unled != NULL)
        s->config.on_unled(s->config.context);
}

static void lost_lead(rbt_session *s, const rbt_remote *peer, const rbt_error *why)
{
    rbt_error told = *why;

    if (s->size > 0 || why->code == RBT_OK)
        rbt_fail(&told, RBT_E_LOST, "%s%s is gone: %s", s->size == 0 ? "the job's lead at " : "", peer->name,
                 why->code == RBT_OK ? "it ended" : why->text);
    else if (why->code == RBT_E_IO)
        told.code = RBT_E_MISSING;
    if (why->code != RBT_OK) /* one that says goodbye has told its end */
        rbt_lost_unled(s);
    if (why->code == RBT_OK || !go_on_alone(s, &told))
        rbt_session_end_here(s, &told);
}

/* Whether the job goes on without a rank is the lead's affair, as long as there is one. */
static void complain(rbt_session *s, uint32_t rank, uint64_t life, const rbt_error *why)
{
    rbt_pack words = {0};

    if (atomic_load(&s->is_alone)) {
        miss(s, rank, why);
        return;
    }
    s->seats[rank].is_missed = true; /* known to the hub's thread alone */
    rbt_pack_u32(&words, rank);
    rbt_pack_u64(&words, life);
    rbt_pack_u32(&words, (uint32_t)why->code);
    rbt_pack_text(&words, why->text);
    rbt_session_say_to(s->lead, RBT_SAY_APART, &words, NULL, 0);
    rbt_array_free(&words);
}

void rbt_session_on_lost(void *context, rbt_remote *peer, const rbt_error *why)
{
    rbt_session *s = context;
    uint32_t rank = peer->rank;
    uint64_t life = 0;
    bool is_idle = false, is_again = false;

    if (rbt_session_is_lead(s, peer)) {
        lost_lead(s, peer, why);
        return;
    }
    rbt_watchers_forget(s, peer);
    rbt_session_forget_stranger(s, peer);
    pthread_mutex_lock(&s->lock);
    rbt_meet_forget(s, peer);
    if (rank < s->size && s->seats[rank].peer != peer)
        rank = RBT_RANK_NONE; /* a former life */
    if (rank < s->size)
        life = s->seats[rank].life; /* one that was never reached has told none itself */
    if (!s->leads && rank < s->size) {
        s->seats[rank].peer = NULL;
        is_idle = s->seats[rank].is_idle;
        is_again = s->seats[rank].is_parting && !is_idle && why->code == RBT_OK && rank < s->rank && !s->over;
        s->seats[rank].is_parting = false;
    }
    pthread_mutex_unlock(&s->lock);
    if (rank >= s->size) {
        if (why->code != RBT_OK && why->code != RBT_E_IO)
            rbt_callers_tell(s->hub, "%s", why->text);
    } else if (s->leads) {
        lead_lost_seat(s, rank, why);
    } else if (is_again) { /* it was not needed, and is now */
        rbt_meet_again(s, rank);
    } else if (why->code == RBT_E_PROTOCOL || (why->code != RBT_OK && !is_idle)) {
        complain(s, rank, life, why);
    }
}
