/* Whom a job waits for before it starts. Every process tells the lead once a second that it lives, and which other one it waits
 * for itself; the lead names every 5 s who keeps the job waiting, and gives it up when a process has been silent for the join
 * time-out. Silent is a process of which no byte comes: one that reads data for an hour, or sends much over a slow link, is not.
 * Silence is counted in ticks of the lead, so one that was stopped itself does not take the others for it. Proved by
 * tests/cluster/test_processes_patience.sh. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/cluster/session_state.h"

#define TICKS_PER_S  10 /* of the hub */
#define ALIVE_TICKS  10
#define SILENT_TICKS 30 /* so long it is no wonder that nothing was heard */

void rbt_patience_tick(rbt_session *s)
{
    rbt_pack words = {0};
    bool must_say;

    pthread_mutex_lock(&s->lock);
    must_say = !s->leads && s->size > 0 && !s->started && !s->over && ++s->ticks % ALIVE_TICKS == 0;
    rbt_pack_u32(&words, s->awaits);
    for (uint32_t r = 1; r < s->size && s->has_welcomed && !s->started; r++) {
        rbt_seat *seat = &s->seats[r];

        if (seat->peer == NULL)
            continue;
        seat->silent_ticks = seat->peer->heard == seat->heard ? seat->silent_ticks + 1 : 0;
        seat->heard = seat->peer->heard;
    }
    pthread_mutex_unlock(&s->lock);
    if (must_say)
        rbt_session_say_to(s->lead, RBT_SAY_ALIVE, &words, NULL, 0);
    rbt_array_free(&words);
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
    uint64_t ticks = s->config.join_timeout_ms * TICKS_PER_S / 1000;

    for (uint32_t r = 1; r < s->size; r++)
        if (s->seats[r].silent_ticks >= ticks && ticks > 0)
            return rbt_fail(error, RBT_E_MISSING,
                            "rank %u on host %s (process %u) joined and has said nothing for %llu s; is it stopped, is "
                            "its host overloaded? --join-timeout gives it longer",
                            r, s->seats[r].host, s->seats[r].pid, (unsigned long long)(ticks / TICKS_PER_S));
    return RBT_OK;
}

size_t rbt_patience_name(const rbt_session *s, uint32_t rank, char *text, size_t room)
{
    const rbt_seat *seat = &s->seats[rank];
    int n = snprintf(text, room, " rank %u%s%s", rank, seat->host[0] != '\0' ? " on host " : "", seat->host);

    if (seat->silent_ticks >= SILENT_TICKS)
        n += snprintf(text + n, room - (size_t)n, " (silent for %u s)", seat->silent_ticks / TICKS_PER_S);
    return (size_t)n;
}

/* Does it keep the others waiting? What it hands over is not here, and it waits for nobody itself; or it is silent. */
static bool is_awaited(const rbt_session *s, uint32_t rank, uint32_t first)
{
    const rbt_seat *seat = &s->seats[rank];

    return seat->silent_ticks >= SILENT_TICKS || (rank >= first && s->swaps[rank] == NULL && seat->awaits == 0);
}

void rbt_patience_tell(rbt_session *s, uint32_t first)
{
    char text[RBT_NOTE_ROOM];
    size_t n = (size_t)snprintf(text, sizeof text, "the processes read and share their data; waiting for");
    uint32_t listed = 0, left_out = 0;

    for (uint32_t r = 1; r < s->size; r++) {
        if (!is_awaited(s, r, first))
            continue;
        if (listed == RBT_NAMED_MOST || n > sizeof text - 200) {
            left_out++;
            continue;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", listed++ > 0 ? "," : "");
        n += rbt_patience_name(s, r, text + n, sizeof text - n);
    }
    if (listed == 0) /* all that are missing wait for one another, or have said so a moment ago */
        rbt_patience_name(s, first, text + n, sizeof text - n);
    else if (left_out > 0)
        snprintf(text + n, sizeof text - n, " and %u more", left_out);
    rbt_log_event(&s->config.log, RBT_LOG_INFO, "cluster", "%s", text);
}
