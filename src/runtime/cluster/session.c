/* A session: what its processes say to each other until the end of the job; the contract is in session.h. How they get together
 * is join.c, how they hand each other data swap.c, how they wait for each other patience.c, how they lose each other lost.c. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/session_state.h"
#include "runtime/cluster/watch.h"

#define NAP_MS         100
#define SMALL_BODY_MAX ((uint64_t)64 << 20) /* before the tables are known */
#define GOODBYE_MS     2000

/* ----------------------------------------------------------------------------------------------------- waiting */

uint64_t rbt_session_deadline(uint64_t ms)
{
    return rbt_now_ns() + ms * 1000000u;
}

void rbt_session_wait_a_moment(pthread_cond_t *news, pthread_mutex_t *lock)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)NAP_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(news, lock, &until);
}

/* Sleeps until something changes, at most a moment. The lock is held. */
void rbt_session_nap(rbt_session *s)
{
    rbt_session_wait_a_moment(&s->news, &s->lock);
}

/* Why waiting makes no more sense; RBT_OK: it does. The lock is held. */
rbt_err rbt_session_check(rbt_session *s, rbt_error *error)
{
    if (s->over) {
        *error = s->end.code != RBT_OK ? s->end : (rbt_error){.code = RBT_E_LOST, .text = "the job is over"};
        return error->code;
    }
    if (s->config.interrupted != NULL && atomic_load(s->config.interrupted))
        return rbt_fail(error, RBT_E_INTERRUPTED, "interrupted before the job began");
    return s->leads ? rbt_patience_check(s, error) : RBT_OK;
}

/* The job has ended here, for this reason. The lock is held; the first reason counts. */
static void set_over(rbt_session *s, const rbt_error *why)
{
    if (s->over)
        return;
    s->over = true;
    s->end = *why;
    pthread_cond_broadcast(&s->news);
}

void rbt_session_end_here(rbt_session *s, const rbt_error *why)
{
    bool first, is_seated;

    pthread_mutex_lock(&s->lock);
    first = !s->over;
    is_seated = !s->leads && s->size > 0;
    set_over(s, why);
    pthread_mutex_unlock(&s->lock);
    rbt_hub_free_waiters(s->hub);
    if (first && is_seated && s->config.on_over != NULL)
        s->config.on_over(s->config.context, why);
    pthread_mutex_lock(&s->calling);
    if (first && s->hooks.on_over != NULL)
        s->hooks.on_over(s->hooks.context);
    pthread_mutex_unlock(&s->calling);
}

/* Is this the one that leads? It is the first that a process dials. */
bool rbt_session_is_lead(const rbt_session *s, const rbt_remote *peer)
{
    return !s->leads && peer->rank == 0;
}

/* ----------------------------------------------------------------------------------------------------- speaking */

static rbt_pack head_of(uint32_t say, const rbt_pack *words)
{
    rbt_pack head = {0};

    rbt_pack_u32(&head, say);
    if (words != NULL)
        rbt_pack_bytes(&head, words->at, words->count);
    return head;
}

void rbt_session_say_to(rbt_remote *peer, uint32_t say, const rbt_pack *words, void *body, size_t body_n)
{
    rbt_pack head = head_of(say, words);

    rbt_hub_send(peer, rbt_frame_create(RBT_FRAME_CONTROL, head.at, head.count, body, body_n));
    rbt_array_free(&head);
}

void rbt_session_say_error(rbt_remote *peer, uint32_t say, const rbt_error *why)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, (uint32_t)why->code);
    rbt_pack_text(&words, why->code == RBT_OK ? "" : why->text);
    rbt_session_say_to(peer, say, &words, NULL, 0);
    rbt_array_free(&words);
}

bool rbt_session_read_error(rbt_unpack *words, rbt_error *why)
{
    uint32_t code = rbt_unpack_u32(words);

    *why = (rbt_error){.code = (rbt_err)(code <= RBT_E_LOST ? code : RBT_E_PROTOCOL)};
    rbt_unpack_printable(words, why->text, sizeof why->text);
    return rbt_unpack_done(words);
}

rbt_remote *rbt_session_hold(rbt_session *s, uint32_t rank)
{
    rbt_remote *peer;

    pthread_mutex_lock(&s->lock);
    peer = rank < s->size ? s->seats[rank].peer : NULL;
    if (peer != NULL)
        atomic_fetch_add(&peer->holders, 1);
    pthread_mutex_unlock(&s->lock);
    return peer;
}

void rbt_session_release(rbt_remote *peer)
{
    if (peer != NULL)
        atomic_fetch_sub(&peer->holders, 1);
}

void rbt_session_say(rbt_session *s, uint32_t rank, uint32_t say, const rbt_pack *words, void *body, size_t body_n)
{
    rbt_remote *peer = rbt_session_hold(s, rank);

    if (peer != NULL)
        rbt_session_say_to(peer, say, words, body, body_n);
    else
        rbt_free(body);
    rbt_session_release(peer);
}

void rbt_session_say_blocks(rbt_session *s, uint32_t rank, uint32_t say, const rbt_pack *words,
                            const rbt_message *blocks)
{
    rbt_remote *peer = rbt_session_hold(s, rank);
    rbt_pack head = head_of(say, words);

    if (peer != NULL)
        rbt_hub_send(peer, rbt_frame_of_blocks(RBT_FRAME_CONTROL, head.at, head.count, rbt_message_copy(blocks)));
    rbt_array_free(&head);
    rbt_session_release(peer);
}

size_t rbt_session_send(rbt_session *s, uint32_t rank, rbt_message *message, unsigned codec)
{
    rbt_remote *peer = rbt_session_hold(s, rank);
    size_t bytes = rbt_wire_size(message);

    if (peer != NULL)
        bytes = rbt_hub_send_message(peer, message, codec);
    else
        rbt_message_destroy(message); /* it is lost: its node's next life will ask */
    rbt_session_release(peer);
    return bytes;
}

void rbt_session_wait_room(rbt_session *s)
{
    for (uint32_t rank = 0; rank < s->size; rank++) {
        rbt_remote *peer = rbt_session_hold(s, rank);

        if (peer != NULL)
            rbt_hub_wait_room(peer);
        rbt_session_release(peer);
    }
}

size_t rbt_session_queued(rbt_session *s, uint32_t rank)
{
    rbt_remote *peer = rbt_session_hold(s, rank);
    size_t queued = peer != NULL ? rbt_hub_queued(peer) : 0;

    rbt_session_release(peer);
    return queued;
}

void rbt_session_cut_peer(rbt_remote *peer, const char *why)
{
    rbt_error error;

    rbt_fail(&error, RBT_E_PROTOCOL, "%s was cut off: %s", peer->name, why);
    rbt_hub_cut(peer, &error);
}

void rbt_session_cut(rbt_session *s, uint32_t rank, const char *why)
{
    rbt_remote *peer = rbt_session_hold(s, rank);

    if (peer != NULL)
        rbt_session_cut_peer(peer, why);
    rbt_session_release(peer);
}

/* Everything that is logged in a process that joined is told at the lead. */
void rbt_session_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    rbt_session *s = context;

    if (s->leads || atomic_load(&s->is_alone)) {
        rbt_log_event(&s->config.log, level, source, "%s", sentence);
    } else if (s->lead != NULL) {
        rbt_pack words = {0};

        rbt_pack_u32(&words, (uint32_t)level);
        rbt_pack_text(&words, sentence);
        rbt_session_say_to(s->lead, RBT_SAY_NOTE, &words, NULL, 0);
        rbt_array_free(&words);
    }
}

/* ------------------------------------------------------------------------------------------------------- hearing */

static void take_note(rbt_session *s, const rbt_remote *peer, rbt_unpack *words)
{
    uint32_t level = rbt_unpack_u32(words);
    char sentence[RBT_NOTE_ROOM];

    rbt_unpack_printable(words, sentence, sizeof sentence);
    if (rbt_unpack_done(words) && s->leads)
        rbt_log_event(&s->config.log, level <= RBT_LOG_WARNING ? (rbt_log_level)level : RBT_LOG_INFO, "cluster",
                      "%s: %s", peer->name, sentence);
}

/* A process is ready: before the start, or in a seat that was lost. */
static void take_ready(rbt_session *s, rbt_remote *peer)
{
    uint32_t rank = peer->rank;
    bool back, is_fine;

    pthread_mutex_lock(&s->lock);
    is_fine = s->seats[rank].state == RBT_SEAT_JOINED && s->seats[rank].peer == peer;
    if (is_fine)
        s->seats[rank].state = RBT_SEAT_READY;
    back = s->started && is_fine;
    if (back)
        rbt_losses_back(&s->losses, rank);
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (!is_fine)
        rbt_session_cut_peer(peer, "it is ready twice");
    if (!back)
        return;
    rbt_session_say(s, rank, RBT_SAY_START, NULL, NULL, 0);
    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_back != NULL)
        s->hooks.on_back(s->hooks.context, rank);
    pthread_mutex_unlock(&s->calling);
}

static void take_failure(rbt_session *s, rbt_unpack *words, bool is_end)
{
    rbt_error why, told;

    if (!rbt_session_read_error(words, &why))
        return;
    if (is_end) {
        rbt_session_end_here(s, &why);
        return;
    }
    rbt_fail(&told, why.code != RBT_OK ? why.code : RBT_E_PROTOCOL, "%s", why.text);
    rbt_session_end(s, &told); /* the others may be reading for long yet, and so may this one */
}

static void take_start(rbt_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->started = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* What a process says that has a seat. */
static void hear_seated(rbt_session *s, rbt_remote *peer, uint32_t say, rbt_unpack *words, rbt_arrival *arrival)
{
    bool from_lead = rbt_session_is_lead(s, peer);

    switch (say) {
    case RBT_SAY_WELCOME:
        rbt_join_welcome(s, peer, words);
        break;
    case RBT_SAY_SORRY:
        if (from_lead) {
            rbt_error why;

            if (rbt_session_read_error(words, &why))
                rbt_fail(&why, RBT_E_USAGE, "the lead at %s does not take this process: %s", peer->name, why.text);
            rbt_session_end_here(s, &why);
        }
        break;
    case RBT_SAY_NOTE:
        take_note(s, peer, words);
        break;
    case RBT_SAY_SWAP:
        rbt_swap_take(s, peer, arrival);
        break;
    case RBT_SAY_READY:
        if (s->leads)
            take_ready(s, peer);
        break;
    case RBT_SAY_START:
        if (from_lead && s->size > 0)
            take_start(s);
        break;
    case RBT_SAY_FAILED:
        if (s->leads)
            take_failure(s, words, false);
        break;
    case RBT_SAY_APART:
        if (s->leads)
            rbt_lost_apart(s, peer, words);
        break;
    case RBT_SAY_CUT:
        if (from_lead)
            rbt_lost_cut(s, words);
        break;
    case RBT_SAY_END:
        if (from_lead)
            take_failure(s, words, true);
        break;
    case RBT_SAY_ALIVE:
        if (s->leads)
            rbt_patience_take(s, peer, words);
        break;
    default:
        rbt_session_cut_peer(peer, "it said something unknown");
        break;
    }
    rbt_arrival_deinit(arrival);
}

void rbt_session_on_control(void *context, rbt_remote *peer, rbt_arrival *arrival)
{
    rbt_session *s = context;
    rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);
    uint32_t say = rbt_unpack_u32(&words);
    bool is_known = rbt_session_is_lead(s, peer) || peer->rank < s->size;

    if (say >= RBT_SAY_OWN && is_known) {
        pthread_mutex_lock(&s->calling);
        if (s->hooks.on_say != NULL)
            s->hooks.on_say(s->hooks.context, peer->rank, say, arrival);
        else
            rbt_arrival_deinit(arrival);
        pthread_mutex_unlock(&s->calling);
    } else if (is_known) {
        hear_seated(s, peer, say, &words, arrival);
    } else {
        if (rbt_watchers_has(s, peer))
            rbt_session_cut_peer(peer, "it watches the job and may not speak");
        else if (say == RBT_SAY_WATCH && s->leads && rbt_unpack_done(&words))
            rbt_watchers_add(s, peer);
        else if (say == RBT_SAY_HELLO)
            rbt_join_hello(s, peer, &words);
        else if (say == RBT_SAY_IAM)
            rbt_meet_iam(s, peer, &words);
        else
            rbt_session_cut_peer(peer, "it speaks before it has joined");
        rbt_arrival_deinit(arrival);
    }
}

void rbt_session_on_message(void *context, rbt_remote *peer, rbt_message *message)
{
    rbt_session *s = context;

    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_message != NULL && peer->rank < s->size) {
        s->hooks.on_message(s->hooks.context, peer->rank, message);
    } else {
        /* In a job that goes on, somebody may not know yet that this rank's former life, which it means, is gone. */
        bool is_back = !s->leads && peer->rank < s->size && s->seats[s->rank].incarnation > 0;

        rbt_message_destroy(message);
        if (!is_back && !rbt_session_is_over(s))
            rbt_session_cut_peer(peer, "it sends messages before the job has begun");
    }
    pthread_mutex_unlock(&s->calling);
}

void rbt_session_on_room(void *context, rbt_remote *peer)
{
    rbt_session *s = context;

    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_room != NULL && peer->rank < s->size)
        s->hooks.on_room(s->hooks.context, peer->rank);
    pthread_mutex_unlock(&s->calling);
}

void rbt_session_on_tick(void *context)
{
    rbt_session *s = context;

    rbt_strangers_check(s);
    rbt_patience_tick(s);
    if (s->leads) {
        rbt_lost_judge(s);
        rbt_watchers_tick(s);
    }
    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_tick != NULL)
        s->hooks.on_tick(s->hooks.context);
    pthread_mutex_unlock(&s->calling);
}

/* ----------------------------------------------------------------------------------------------- start and end */

rbt_err rbt_session_start(rbt_session *s, rbt_error *error)
{
    rbt_err err = rbt_join_wait(s, RBT_SEAT_READY, "are ready", 0, NULL, NULL, error);

    if (err != RBT_OK)
        return err;
    pthread_mutex_lock(&s->lock);
    rbt_losses_start(&s->losses);
    pthread_mutex_unlock(&s->lock);
    take_start(s);
    for (uint32_t r = 1; r < s->size; r++)
        rbt_session_say(s, r, RBT_SAY_START, NULL, NULL, 0);
    return RBT_OK;
}

rbt_err rbt_session_ready(rbt_session *s, rbt_error *error)
{
    rbt_err err;

    rbt_session_say_to(s->lead, RBT_SAY_READY, NULL, NULL, 0);
    pthread_mutex_lock(&s->lock);
    while ((err = rbt_session_check(s, error)) == RBT_OK && !s->started)
        rbt_session_nap(s);
    pthread_mutex_unlock(&s->lock);
    return err;
}

void rbt_session_blame(const rbt_session *s, uint32_t rank, rbt_error *error)
{
    rbt_error why = *error;
    char name[RBT_HOST_ROOM + 32];

    rbt_session_name(s, rank, name, sizeof name);
    rbt_fail(error, why.code, "%s: %.900s", name, why.text);
}

void rbt_session_fail(rbt_session *s, const rbt_error *why)
{
    rbt_error told = *why;

    if (s->leads) {
        rbt_session_end_here(s, why);
        return;
    }
    if (!s->has_failed_together)
        rbt_session_blame(s, s->rank, &told);
    rbt_session_say_error(s->lead, RBT_SAY_FAILED, &told);
}

void rbt_session_set_free(rbt_session *s)
{
    if (s->config.on_free != NULL)
        s->config.on_free(s->config.context);
}

void rbt_session_leave(rbt_session *s, const rbt_error *why)
{
    rbt_session_end_here(s, why);
}

void rbt_session_end(rbt_session *s, const rbt_error *why)
{
    for (uint32_t r = 1; r < s->size; r++) {
        rbt_remote *peer = rbt_session_hold(s, r);

        if (peer != NULL)
            rbt_session_say_error(peer, RBT_SAY_END, why);
        rbt_session_release(peer);
    }
    rbt_session_end_here(s, why);
    rbt_watchers_end(s);
}

void rbt_session_destroy(rbt_session *s)
{
    rbt_error why;
    bool is_interrupted;

    if (s == NULL)
        return;
    is_interrupted = rbt_session_over(s, &why) == RBT_E_INTERRUPTED ||
                     (s->config.interrupted != NULL && atomic_load(s->config.interrupted));
    rbt_hub_destroy(s->hub, is_interrupted ? RBT_LEAVE_MS : GOODBYE_MS);
    rbt_tls_destroy(s->tls);
    rbt_swap_forget(s);
    rbt_losses_deinit(&s->losses);
    rbt_free(s->seats);
    rbt_meet_forget(s, NULL);
    rbt_array_free(&s->claims);
    rbt_array_free(&s->settled);
    rbt_array_free(&s->watchers);
    rbt_array_free(&s->strangers);
    rbt_free(s->description.at);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->calling);
    rbt_key_wipe(&s->config.key);
    rbt_free(s);
}

/* ------------------------------------------------------------------------------------------------------- asking */

uint32_t rbt_session_rank(const rbt_session *s)
{
    return s->rank;
}

uint32_t rbt_session_size(const rbt_session *s)
{
    return s->size;
}

const rbt_seat *rbt_session_seat(const rbt_session *s, uint32_t rank)
{
    return &s->seats[rank];
}

void rbt_session_hook(rbt_session *s, const rbt_session_hooks *hooks)
{
    pthread_mutex_lock(&s->calling);
    s->hooks = *hooks;
    pthread_mutex_unlock(&s->calling);
}

void rbt_session_expect(rbt_session *s, uint64_t body_max)
{
    rbt_hub_expect(s->hub, RBT_FRAME_HEAD_MAX, body_max > SMALL_BODY_MAX ? body_max : SMALL_BODY_MAX);
}

void rbt_session_traffic(const rbt_session *s, uint64_t *out, uint64_t *in)
{
    rbt_hub_traffic(s->hub, out, in);
}

bool rbt_session_is_over(rbt_session *s)
{
    bool over;

    pthread_mutex_lock(&s->lock);
    over = s->over;
    pthread_mutex_unlock(&s->lock);
    return over;
}

rbt_err rbt_session_over(rbt_session *s, rbt_error *why)
{
    rbt_err err;

    pthread_mutex_lock(&s->lock);
    err = s->over ? s->end.code : RBT_OK;
    if (err != RBT_OK && why != NULL)
        *why = s->end;
    pthread_mutex_unlock(&s->lock);
    return err;
}

void rbt_session_name(const rbt_session *s, uint32_t rank, char *name, size_t room)
{
    snprintf(name, room, "rank %u on host %s", rank, s->seats[rank].host);
}
