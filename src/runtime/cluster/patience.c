/* Whom a job waits for before it starts. Every process tells the lead once a second that it lives, and which other one it waits
 * for itself; the lead names every 5 s who keeps the job waiting, and gives it up when a process has been silent for the join
 * time-out. The lead tells the others that it lives, too; a lead that falls silent is named by them, and given up. Silent is a
 * process of which no byte comes: one that reads data for an hour, or sends much over a slow link, is not.
 * Silence is counted in ticks of who listens, so one that was stopped itself does not take the others for it. Proved by
 * tests/cluster/test_processes_patience.sh. */
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "runtime/cluster/session_state.h"

#define TICKS_PER_S  10 /* of the hub */
#define ALIVE_TICKS  10
#define TELL_TICKS   (RBT_TELL_MS * TICKS_PER_S / 1000)
#define SILENT_TICKS 30 /* so long it is no wonder that nothing was heard */

static void count_silence(const rbt_remote *peer, rbt_silence *silence)
{
    silence->ticks = peer->heard == silence->heard ? silence->ticks + 1 : 0;
    silence->heard = peer->heard;
}

static uint64_t ticks_to_give_up(const rbt_session *s)
{
    return s->config.join_timeout_ms * TICKS_PER_S / 1000;
}

/* The lead: says that it lives to all who wait for the start, or for a job that they have come back to. */
static void tick_lead(rbt_session *s, bool must_say)
{
    uint32_t size;

    pthread_mutex_lock(&s->lock);
    size = s->size; /* 0 while it is being made */
    pthread_mutex_unlock(&s->lock);
    for (uint32_t r = 1; r < size; r++) {
        rbt_remote *peer = rbt_session_hold(s, r);
        rbt_seat *seat = &s->seats[r];
        bool waits;

        if (peer == NULL)
            continue;
        pthread_mutex_lock(&s->lock);
        waits = !s->started || seat->state == RBT_SEAT_JOINED;
        if (s->has_welcomed && !s->started)
            count_silence(peer, &seat->silence);
        pthread_mutex_unlock(&s->lock);
        if (waits && must_say)
            rbt_session_say_to(peer, RBT_SAY_ALIVE, NULL, NULL, 0);
        rbt_session_release(peer);
    }
}

/* Elsewhere, once the lead has answered: says the same to it, and for whom this process waits; the lead may have fallen silent. */
static void tick_joined(rbt_session *s, rbt_remote *lead, bool must_say)
{
    rbt_silence *silence = &s->lead_silence;
    uint64_t most = ticks_to_give_up(s);
    rbt_pack words = {0};
    bool waits, is_seated;

    pthread_mutex_lock(&s->lock);
    waits = !s->started && !s->over;
    is_seated = s->size > 0;
    rbt_pack_u32(&words, s->awaits);
    pthread_mutex_unlock(&s->lock);
    if (waits && is_seated && must_say)
        rbt_session_say_to(lead, RBT_SAY_ALIVE, &words, NULL, 0);
    rbt_array_free(&words);
    count_silence(lead, silence);
    if (!waits)
        silence->ticks = 0;
    if (silence->ticks >= most && most > 0) {
        rbt_error why;

        rbt_fail(&why, RBT_E_MISSING,
                 "the lead at %s has said nothing for %llu s; is it stopped, is its host overloaded? --join-timeout "
                 "gives it longer",
                 lead->name, (unsigned long long)(most / TICKS_PER_S));
        rbt_lost_unled(s);
        rbt_session_end_here(s, &why);
    } else if (silence->ticks > 0 && silence->ticks % TELL_TICKS == 0) {
        rbt_log_event(&s->config.log, RBT_LOG_INFO, "cluster", "waiting for the lead at %s, silent for %u s",
                      lead->name, silence->ticks / TICKS_PER_S);
    }
}

void rbt_patience_tick(rbt_session *s)
{
    rbt_remote *lead = s->lead;
    bool must_say = ++s->ticks % ALIVE_TICKS == 0;

    if (s->leads)
        tick_lead(s, must_say);
    else if (lead != NULL && lead->heard > 0)
        tick_joined(s, lead, must_say);
}

void rbt_patience_take(rbt_session *s, rbt_remote *peer, rbt_unpack *words)
{
    uint32_t awaits = rbt_unpack_u32(words);

    if (!rbt_unpack_done(words) || awaits >= s->size || peer->rank >= s->size) {
        rbt_session_cut_peer(peer, "it waits for nobody who is there");
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->seats[peer->rank].awaits = awaits;
    pthread_mutex_unlock(&s->lock);
}

rbt_err rbt_patience_check(rbt_session *s, rbt_error *error)
{
    uint64_t ticks = ticks_to_give_up(s);

    for (uint32_t r = 1; r < s->size; r++)
        if (s->seats[r].silence.ticks >= ticks && ticks > 0)
            return rbt_fail(error, RBT_E_MISSING,
                            "rank %u on host %s (process %u) joined and has said nothing for %llu s; is it stopped, is "
                            "its host overloaded? --join-timeout gives it longer",
                            r, s->seats[r].host, s->seats[r].pid, (unsigned long long)(ticks / TICKS_PER_S));
    return RBT_OK;
}

size_t rbt_patience_name(const rbt_session *s, uint32_t rank, char *text, size_t room)
{
    const rbt_seat *seat = &s->seats[rank];
    size_t n = rbt_text_add(text, room, 0, " rank %u%s%s", rank, seat->host[0] != '\0' ? " on host " : "", seat->host);

    if (seat->silence.ticks >= SILENT_TICKS)
        n = rbt_text_add(text, room, n, " (silent for %u s)", seat->silence.ticks / TICKS_PER_S);
    return n;
}

/* Does it keep the others waiting? What it hands over is not here, and it waits for nobody itself; or it is silent. */
static bool is_awaited(const rbt_session *s, uint32_t rank, uint32_t first)
{
    const rbt_seat *seat = &s->seats[rank];

    return seat->silence.ticks >= SILENT_TICKS || (rank >= first && s->swaps[rank] == NULL && seat->awaits == 0);
}

void rbt_patience_tell(rbt_session *s, uint32_t first)
{
    char text[RBT_NOTE_ROOM];
    size_t n = rbt_text_add(text, sizeof text, 0, "the processes read and share their data; waiting for");
    uint32_t listed = 0, left_out = 0;

    for (uint32_t r = 1; r < s->size; r++) {
        if (!is_awaited(s, r, first))
            continue;
        if (listed == RBT_NAMED_MOST || n > sizeof text - 200) {
            left_out++;
            continue;
        }
        n = rbt_text_add(text, sizeof text, n, "%s", listed++ > 0 ? "," : "");
        n += rbt_patience_name(s, r, text + n, sizeof text - n);
    }
    if (listed == 0) /* all that are missing wait for one another, or have said so a moment ago */
        rbt_patience_name(s, first, text + n, sizeof text - n);
    else if (left_out > 0)
        rbt_text_add(text, sizeof text, n, " and %u more", left_out);
    rbt_log_event(&s->config.log, RBT_LOG_INFO, "cluster", "%s", text);
}
