/* How processes become one job; the contract is in session.h. What is said is written and read here, and in the order
 * in which a job goes through it: joining, meeting, swapping, starting, ending. */
#include "runtime/cluster/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/time.h"
#include "runtime/cluster/roster.h"

#define TELL_MS        5000 /* how often whoever waits says for whom */
#define NAP_MS         100
#define DIAL_BACK_MS   2000
#define SMALL_BODY_MAX ((uint64_t)64 << 20) /* before the tables are known */
#define GOODBYE_MS     2000
#define NOTE_ROOM      1024

typedef struct swapped {
    struct swapped *next;
    uint8_t *bytes;
    size_t n;
} swapped;

/* A peer that says it is a certain rank, which the roster does not know yet. */
typedef struct claim {
    rbt_peer *peer;
    uint32_t rank;
} claim;

struct rbt_session {
    rbt_session_config config;
    rbt_hub *hub;
    rbt_tls *tls;
    bool leads;
    uint32_t rank;
    rbt_seat me; /* what is known of this process before it has a seat */
    char local_address[RBT_ADDRESS_ROOM];
    char tcp_address[RBT_ADDRESS_ROOM];
    _Atomic(rbt_peer *) lead; /* not at the lead */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    uint32_t size; /* 0: not known yet */
    rbt_seat *seats;
    RBT_ARRAY(claim) claims;
    rbt_bytes description;
    swapped **swaps; /* per rank, what came and is not taken yet */
    rbt_session_hooks hooks;
    bool started;
    bool over;
    rbt_error end;
};

/* ----------------------------------------------------------------------------------------------------- waiting */

static uint64_t wait_deadline(uint64_t ms)
{
    return rbt_now_ns() + ms * 1000000u;
}

/* Sleeps until something changes, at most a moment. The lock is held. */
static void nap(rbt_session *s)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)NAP_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&s->news, &s->lock, &until);
}

/* Why waiting makes no more sense; RBT_OK: it does. The lock is held. */
static rbt_err check_wait(rbt_session *s, rbt_error *error)
{
    if (s->over) {
        *error = s->end.code != RBT_OK ? s->end : (rbt_error){.code = RBT_E_LOST, .text = "the job is over"};
        return error->code;
    }
    if (s->config.interrupted != NULL && atomic_load(s->config.interrupted))
        return rbt_fail(error, RBT_E_INTERRUPTED, "interrupted before the job began");
    return RBT_OK;
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

static void end_here(rbt_session *s, const rbt_error *why)
{
    rbt_session_hooks hooks;
    bool first;

    pthread_mutex_lock(&s->lock);
    first = !s->over;
    set_over(s, why);
    hooks = s->hooks;
    pthread_mutex_unlock(&s->lock);
    if (first && hooks.on_over != NULL)
        hooks.on_over(hooks.context);
}

/* Is this the one that leads? It is the first that a process dials. */
static bool is_lead(const rbt_session *s, const rbt_peer *peer)
{
    return !s->leads && peer->rank == 0;
}

/* ----------------------------------------------------------------------------------------------------- speaking */

static void say_to(rbt_peer *peer, uint32_t say, const rbt_pack *words, void *body, size_t body_n)
{
    rbt_pack head = {0};

    rbt_pack_u32(&head, say);
    if (words != NULL)
        rbt_pack_bytes(&head, words->at, words->count);
    rbt_hub_send(peer, rbt_frame_create(RBT_FRAME_CONTROL, head.at, head.count, body, body_n));
    rbt_array_free(&head);
}

static void say_error(rbt_peer *peer, uint32_t say, const rbt_error *why)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, (uint32_t)why->code);
    rbt_pack_text(&words, why->code == RBT_OK ? "" : why->text);
    say_to(peer, say, &words, NULL, 0);
    rbt_array_free(&words);
}

static bool read_error(rbt_unpack *words, rbt_error *why)
{
    uint32_t code = rbt_unpack_u32(words);

    *why = (rbt_error){.code = (rbt_err)(code <= RBT_E_LOST ? code : RBT_E_PROTOCOL)};
    rbt_unpack_text(words, why->text, sizeof why->text);
    return rbt_unpack_done(words);
}

static rbt_peer *peer_of(rbt_session *s, uint32_t rank)
{
    rbt_peer *peer;

    pthread_mutex_lock(&s->lock);
    peer = rank < s->size ? s->seats[rank].peer : NULL;
    pthread_mutex_unlock(&s->lock);
    return peer;
}

void rbt_session_say(rbt_session *s, uint32_t rank, uint32_t say, const rbt_pack *words, void *body, size_t body_n)
{
    rbt_peer *peer = peer_of(s, rank);

    if (peer != NULL)
        say_to(peer, say, words, body, body_n);
    else
        rbt_free(body);
}

void rbt_session_send(rbt_session *s, uint32_t rank, rbt_message *message)
{
    rbt_peer *peer = peer_of(s, rank);

    if (peer != NULL)
        rbt_hub_send(peer, rbt_frame_of_message(message));
    else
        rbt_message_destroy(message); /* it is lost: its node's next life will ask */
}

void rbt_session_wait_room(rbt_session *s)
{
    for (uint32_t rank = 0; rank < s->size; rank++) {
        rbt_peer *peer = peer_of(s, rank);

        if (peer != NULL)
            rbt_hub_wait_room(peer);
    }
}

static void cut(rbt_peer *peer, const char *why)
{
    rbt_error error;

    rbt_fail(&error, RBT_E_PROTOCOL, "%s was cut off: %s", peer->name, why);
    rbt_hub_cut(peer, &error);
}

void rbt_session_cut(rbt_session *s, uint32_t rank, const char *why)
{
    rbt_peer *peer = peer_of(s, rank);

    if (peer != NULL)
        cut(peer, why);
}

/* Everything that is logged in a process that joined is told at the lead. */
static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    rbt_session *s = context;

    if (s->leads) {
        rbt_log_event(&s->config.log, level, source, "%s", sentence);
    } else if (s->lead != NULL) {
        rbt_pack words = {0};

        rbt_pack_u32(&words, (uint32_t)level);
        rbt_pack_text(&words, sentence);
        say_to(s->lead, RBT_SAY_NOTE, &words, NULL, 0);
        rbt_array_free(&words);
    }
}

/* ------------------------------------------------------------------------------------------------------ joining */

/* The lead: somebody wants to join. The lock is held; answers with a reason when it cannot. */
static const char *find_seat(rbt_session *s, uint32_t wanted, uint32_t *rank)
{
    if (wanted != RBT_RANK_NONE) {
        if (wanted == 0 || wanted >= s->size)
            return "there is no such rank in this job";
        if (s->seats[wanted].state != RBT_SEAT_EMPTY && s->seats[wanted].state != RBT_SEAT_LOST)
            return "a process with this rank has joined already";
        *rank = wanted;
        return NULL;
    }
    for (uint32_t r = 1; r < s->size; r++)
        if (s->seats[r].state == RBT_SEAT_EMPTY || s->seats[r].state == RBT_SEAT_LOST) {
            *rank = r;
            return NULL;
        }
    return "the job has all processes it needs";
}

/* An address of this machine alone is of no use to others. */
static const char *check_advertised(const rbt_peer *peer, const rbt_seat *seat, const rbt_seat *lead)
{
    rbt_address address;

    (void)peer;
    if (seat->host_id == lead->host_id || seat->tcp[0] == '\0')
        return NULL;
    if (rbt_address_parse(seat->tcp, 0, &address, NULL) != RBT_OK)
        return "the address it advertises is none";
    if (rbt_address_is_loopback(&address) || rbt_address_is_any(&address))
        return "it advertises an address that only its own host can reach; start it with --advertise ADDRESS, one that "
               "the other hosts can dial";
    return NULL;
}

static void send_welcome(rbt_session *s, uint32_t rank)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, rank);
    rbt_roster_pack(&words, s->seats, s->size);
    rbt_pack_bytes(&words, s->description.at, s->description.n);
    say_to(s->seats[rank].peer, RBT_SAY_WELCOME, &words, NULL, 0);
    rbt_array_free(&words);
}

/* A seat that was lost is taken again, by a new life: the others learn of it first. The lock is held. */
static void seat_again(rbt_session *s, uint32_t rank)
{
    rbt_pack words = {0};

    s->seats[rank].incarnation++;
    rbt_roster_pack(&words, s->seats, s->size);
    for (uint32_t r = 1; r < s->size; r++)
        if (r != rank && s->seats[r].peer != NULL)
            say_to(s->seats[r].peer, RBT_SAY_WELCOME, &words, NULL, 0);
    rbt_array_free(&words);
    send_welcome(s, rank);
}

static void take_hello(rbt_session *s, rbt_peer *peer, rbt_unpack *words)
{
    uint32_t wanted = rbt_unpack_u32(words), rank = 0;
    rbt_seat seat = {0};
    const char *sorry;

    rbt_seat_unpack_self(words, &seat);
    if (!rbt_unpack_done(words) || !s->leads || peer->rank != RBT_RANK_NONE) {
        cut(peer, "its request to join makes no sense");
        return;
    }
    pthread_mutex_lock(&s->lock);
    sorry = s->started && !s->config.takes_back ? "the job has started" : find_seat(s, wanted, &rank);
    if (sorry == NULL)
        sorry = check_advertised(peer, &seat, &s->seats[0]);
    if (sorry == NULL) {
        rbt_seat *taken = &s->seats[rank];

        rbt_seat_copy_self(taken, &seat);
        taken->life = peer->life;
        taken->peer = peer;
        peer->rank = rank;
        snprintf(peer->name, sizeof peer->name, "rank %u on host %.64s", rank, seat.host);
        taken->state = RBT_SEAT_JOINED;
        if (s->started)
            seat_again(s, rank);
        pthread_cond_broadcast(&s->news);
    }
    pthread_mutex_unlock(&s->lock);
    if (sorry != NULL) {
        rbt_error why;

        rbt_fail(&why, RBT_E_USAGE, "%s", sorry);
        say_error(peer, RBT_SAY_SORRY, &why);
        rbt_log_event(&s->config.log, RBT_LOG_WARNING, "cluster", "%s on host %s may not join: %s", peer->name, seat.host,
                      sorry);
    }
}

/* Connects claims with seats, as far as the roster knows them by now. The lock is held. */
static void settle_claims(rbt_session *s)
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
        } else {
            s->claims.at[kept++] = c;
        }
    }
    s->claims.count = kept;
    pthread_cond_broadcast(&s->news);
}

static void take_iam(rbt_session *s, rbt_peer *peer, rbt_unpack *words)
{
    claim c = {.peer = peer, .rank = rbt_unpack_u32(words)};

    if (!rbt_unpack_done(words) || c.rank >= RBT_RANKS_LIMIT || peer->rank != RBT_RANK_NONE) {
        cut(peer, "it did not say who it is");
        return;
    }
    pthread_mutex_lock(&s->lock);
    rbt_array_push(&s->claims, c);
    settle_claims(s);
    pthread_mutex_unlock(&s->lock);
}

/* A process that joined: its seat and the others', or (in the middle of the job) a seat that changed. */
static void take_welcome(rbt_session *s, rbt_peer *peer, rbt_unpack *words)
{
    bool is_first = s->size == 0;
    uint32_t rank = is_first ? rbt_unpack_u32(words) : s->rank, size = 0;
    rbt_seat *seats = rbt_roster_unpack(words, &size);

    if (!is_lead(s, peer) || seats == NULL || rank == 0 || rank >= size || (!is_first && size != s->size) ||
        seats[rank].life != rbt_hub_life(s->hub)) {
        rbt_free(seats);
        cut(peer, "its roster makes no sense");
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (is_first) {
        s->rank = rank;
        s->seats = seats;
        s->size = size;
        s->swaps = rbt_alloc(size, sizeof *s->swaps);
        s->seats[0].peer = peer;
        snprintf(peer->name, sizeof peer->name, "the lead on host %.64s", seats[0].host);
        s->description.n = (size_t)(words->end - words->at);
        s->description.at = rbt_alloc(s->description.n, 1);
        if (s->description.n > 0)
            memcpy(s->description.at, words->at, s->description.n);
    } else {
        for (uint32_t r = 1; r < size; r++)
            if (r != s->rank && s->seats[r].life != seats[r].life) {
                rbt_seat_copy_self(&s->seats[r], &seats[r]);
                s->seats[r].life = seats[r].life;
                s->seats[r].incarnation = seats[r].incarnation;
                s->seats[r].peer = NULL;
            }
        rbt_free(seats);
    }
    settle_claims(s);
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------------------------------------------- hearing */

static void take_note(rbt_session *s, const rbt_peer *peer, rbt_unpack *words)
{
    uint32_t level = rbt_unpack_u32(words);
    char sentence[NOTE_ROOM];

    rbt_unpack_text(words, sentence, sizeof sentence);
    if (rbt_unpack_done(words) && s->leads)
        rbt_log_event(&s->config.log, level <= RBT_LOG_WARNING ? (rbt_log_level)level : RBT_LOG_INFO, "cluster",
                      "%s: %s", peer->name, sentence);
}

static void take_swap(rbt_session *s, rbt_peer *peer, rbt_arrival *arrival)
{
    swapped *item = rbt_alloc(1, sizeof *item), **last;

    *item = (swapped){.bytes = arrival->body, .n = (size_t)arrival->header.body};
    arrival->body = NULL;
    pthread_mutex_lock(&s->lock);
    for (last = &s->swaps[peer->rank]; *last != NULL; last = &(*last)->next)
        ;
    *last = item;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

static void set_state(rbt_session *s, uint32_t rank, rbt_seat_state state)
{
    rbt_session_hooks hooks;
    bool back;

    pthread_mutex_lock(&s->lock);
    s->seats[rank].state = state;
    back = s->started && state == RBT_SEAT_READY;
    hooks = s->hooks;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (back) {
        rbt_session_say(s, rank, RBT_SAY_START, NULL, NULL, 0);
        if (hooks.on_back != NULL)
            hooks.on_back(hooks.context, rank);
    }
}

static void take_failure(rbt_session *s, const rbt_peer *peer, rbt_unpack *words, bool is_end)
{
    rbt_error why, told;

    if (!read_error(words, &why))
        return;
    if (is_end) {
        end_here(s, &why);
        return;
    }
    rbt_fail(&told, why.code != RBT_OK ? why.code : RBT_E_PROTOCOL, "%s: %s", peer->name, why.text);
    end_here(s, &told);
}

static void take_start(rbt_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->started = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* What a process says that has a seat. */
static void hear_seated(rbt_session *s, rbt_peer *peer, uint32_t say, rbt_unpack *words, rbt_arrival *arrival)
{
    bool from_lead = is_lead(s, peer);

    switch (say) {
    case RBT_SAY_WELCOME:
        take_welcome(s, peer, words);
        break;
    case RBT_SAY_SORRY:
        if (from_lead) {
            rbt_error why;

            if (read_error(words, &why))
                rbt_fail(&why, RBT_E_USAGE, "the lead at %s does not take this process: %s", peer->name, why.text);
            end_here(s, &why);
        }
        break;
    case RBT_SAY_NOTE:
        take_note(s, peer, words);
        break;
    case RBT_SAY_SWAP:
        take_swap(s, peer, arrival);
        break;
    case RBT_SAY_READY:
        if (s->leads)
            set_state(s, peer->rank, RBT_SEAT_READY);
        break;
    case RBT_SAY_START:
        if (from_lead)
            take_start(s);
        break;
    case RBT_SAY_FAILED:
        if (s->leads)
            take_failure(s, peer, words, false);
        break;
    case RBT_SAY_END:
        if (from_lead)
            take_failure(s, peer, words, true);
        break;
    default:
        cut(peer, "it said something unknown");
        break;
    }
    rbt_arrival_deinit(arrival);
}

static void on_control(void *context, rbt_peer *peer, rbt_arrival *arrival)
{
    rbt_session *s = context;
    rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);
    uint32_t say = rbt_unpack_u32(&words);
    bool is_known = is_lead(s, peer) || peer->rank < s->size;

    if (say >= RBT_SAY_OWN) {
        rbt_session_hooks hooks;

        pthread_mutex_lock(&s->lock);
        hooks = s->hooks;
        pthread_mutex_unlock(&s->lock);
        if (hooks.on_say != NULL && is_known) {
            hooks.on_say(hooks.context, peer->rank, say, arrival);
            return;
        }
        rbt_arrival_deinit(arrival);
    } else if (is_known) {
        hear_seated(s, peer, say, &words, arrival);
    } else {
        if (say == RBT_SAY_HELLO)
            take_hello(s, peer, &words);
        else if (say == RBT_SAY_IAM)
            take_iam(s, peer, &words);
        else
            cut(peer, "it speaks before it has joined");
        rbt_arrival_deinit(arrival);
    }
}

static void on_message(void *context, rbt_peer *peer, rbt_message *message)
{
    rbt_session *s = context;
    rbt_session_hooks hooks;

    pthread_mutex_lock(&s->lock);
    hooks = s->hooks;
    pthread_mutex_unlock(&s->lock);
    if (hooks.on_message == NULL || peer->rank >= s->size) {
        rbt_message_destroy(message);
        cut(peer, "it sends messages before the job has begun");
        return;
    }
    hooks.on_message(hooks.context, peer->rank, message);
}

/* ------------------------------------------------------------------------------------------------------- losing */

static void lead_lost_seat(rbt_session *s, uint32_t rank, const rbt_error *why)
{
    rbt_session_hooks hooks;
    rbt_error told;
    char name[RBT_HOST_ROOM + 32];
    bool started;

    rbt_session_name(s, rank, name, sizeof name);
    pthread_mutex_lock(&s->lock);
    s->seats[rank].state = RBT_SEAT_LOST;
    s->seats[rank].peer = NULL;
    started = s->started;
    hooks = s->hooks;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (started && hooks.on_lost != NULL) {
        hooks.on_lost(hooks.context, rank, why);
        return;
    }
    rbt_fail(&told, RBT_E_LOST, "%s was lost before the job started: %s", name,
             why->code == RBT_OK ? "it left" : why->text);
    end_here(s, &told);
}

static void on_lost(void *context, rbt_peer *peer, const rbt_error *why)
{
    rbt_session *s = context;
    uint32_t rank = peer->rank;

    if (is_lead(s, peer)) {
        rbt_error told = *why;

        if (s->size > 0 || why->code == RBT_OK)
            rbt_fail(&told, RBT_E_LOST, "the job's lead at %s is gone: %s", peer->name,
                     why->code == RBT_OK ? "it ended" : why->text);
        else if (why->code == RBT_E_IO)
            told.code = RBT_E_MISSING;
        end_here(s, &told);
        return;
    }
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->claims.count; i++)
        if (s->claims.at[i].peer == peer)
            s->claims.at[i--] = s->claims.at[--s->claims.count];
    if (rank < s->size && s->seats[rank].peer != peer)
        rank = RBT_RANK_NONE; /* a former life */
    if (!s->leads && rank < s->size)
        s->seats[rank].peer = NULL; /* whether the job goes on without it is the lead's affair */
    pthread_mutex_unlock(&s->lock);
    if (s->leads && rank < s->size)
        lead_lost_seat(s, rank, why);
    else if (s->leads && why->code != RBT_OK && why->code != RBT_E_IO)
        rbt_log_event(&s->config.log, RBT_LOG_WARNING, "cluster", "%s", why->text);
}

static void on_tick(void *context)
{
    rbt_session *s = context;
    rbt_session_hooks hooks;

    pthread_mutex_lock(&s->lock);
    hooks = s->hooks;
    pthread_mutex_unlock(&s->lock);
    if (hooks.on_tick != NULL)
        hooks.on_tick(hooks.context);
}

/* ----------------------------------------------------------------------------------------------------- beginning */

static rbt_err create(const rbt_session_config *config, bool leads, rbt_session **out, rbt_error *error)
{
    rbt_session *s = rbt_alloc(1, sizeof *s);
    rbt_link_config links = {.key = config->key,
                             .job = config->job,
                             .encryption = config->insecure ? RBT_ENCRYPT_OFF : config->encryption,
                             .rings = config->shm,
                             .head_max = RBT_FRAME_HEAD_MAX,
                             .body_max = RBT_SWAP_MOST};
    rbt_hub_events events = {
        .on_control = on_control, .on_message = on_message, .on_lost = on_lost, .on_tick = on_tick, .context = s};
    rbt_log log = {.write = on_log, .context = s, .least = config->log.least};
    pthread_condattr_t monotonic;
    rbt_err err = RBT_OK;

    s->config = *config;
    s->leads = leads;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (config->has_key && !config->insecure)
        err = rbt_tls_create(&config->key, &s->tls, error);
    links.tls = s->tls;
    if (err == RBT_OK)
        err = rbt_hub_create(&links, &events, &log, &s->hub, error);
    rbt_key_wipe(&links.key);
    if (err != RBT_OK) {
        rbt_session_destroy(s);
        return err;
    }
    rbt_seat_of_this(&s->me);
    s->me.life = rbt_hub_life(s->hub);
    *out = s;
    return RBT_OK;
}

static rbt_err listen_local(rbt_session *s, rbt_error *error)
{
    rbt_address address, bound;
    rbt_err err;

    snprintf(s->local_address, sizeof s->local_address, "unix:@rubato-%016llx", (unsigned long long)s->me.life);
    err = rbt_address_parse(s->local_address, 0, &address, error);
    if (err == RBT_OK)
        err = rbt_hub_listen(s->hub, &address, &bound, error);
    if (err == RBT_OK)
        memcpy(s->me.local, s->local_address, sizeof s->me.local);
    return err;
}

/* `facing`: when nothing else is said, other hosts reach us at the address from which we reach them. */
static rbt_err listen_tcp(rbt_session *s, const char *text, const rbt_address *facing, rbt_error *error)
{
    rbt_address address, bound, told;
    rbt_err err = RBT_OK;

    if (text != NULL)
        err = rbt_address_parse(text, s->leads ? RBT_PORT : 0, &address, error);
    else
        err = rbt_address_facing(facing, &address, error);
    if (err == RBT_OK && !rbt_address_is_loopback(&address) && !s->config.has_key && !s->config.insecure)
        err = rbt_fail(error, RBT_E_USAGE,
                       "listening on %s, which other hosts can reach, needs a key: make one with `rubato key new job.key` "
                       "and give --key job.key, or give --insecure on a network that is trusted",
                       text != NULL ? text : "a network address");
    if (err == RBT_OK)
        err = rbt_hub_listen(s->hub, &address, &bound, error);
    if (err != RBT_OK)
        return err;
    told = bound;
    if (s->config.advertise != NULL)
        err = rbt_address_parse(s->config.advertise, rbt_address_port(&bound), &told, error);
    else if (rbt_address_is_any(&bound) && facing != NULL && rbt_address_facing(facing, &told, NULL) == RBT_OK)
        rbt_address_set_port(&told, rbt_address_port(&bound));
    if (err != RBT_OK)
        return err;
    rbt_address_text(&told, s->tcp_address);
    memcpy(s->me.tcp, s->tcp_address, sizeof s->me.tcp);
    rbt_hub_advertise(s->hub, &told);
    return RBT_OK;
}

rbt_err rbt_session_lead(const rbt_session_config *config, const rbt_seat *seats, uint32_t size, rbt_session **session,
                         rbt_error *error)
{
    rbt_session *s;
    rbt_err err = create(config, true, &s, error);

    if (err != RBT_OK)
        return err;
    pthread_mutex_lock(&s->lock); /* nobody can join before there are seats */
    s->seats = rbt_alloc(size, sizeof *s->seats);
    memcpy(s->seats, seats, size * sizeof *seats);
    s->swaps = rbt_alloc(size, sizeof *s->swaps);
    s->size = size;
    err = listen_local(s, error);
    if (err == RBT_OK && config->listen != NULL)
        err = listen_tcp(s, config->listen, NULL, error);
    rbt_seat_copy_self(&s->seats[0], &s->me);
    s->seats[0].life = s->me.life;
    s->seats[0].state = RBT_SEAT_READY;
    pthread_mutex_unlock(&s->lock);
    if (err != RBT_OK)
        rbt_session_destroy(s);
    else
        *session = s;
    return err;
}

const char *rbt_session_local_address(const rbt_session *s)
{
    return s->local_address;
}

const char *rbt_session_tcp_address(const rbt_session *s)
{
    return s->tcp_address;
}

static uint32_t count_missing(const rbt_session *s, rbt_seat_state state)
{
    uint32_t missing = 0;

    for (uint32_t r = 1; r < s->size; r++)
        missing += s->seats[r].state != RBT_SEAT_LOST && s->seats[r].state < state;
    return missing;
}

/* "waiting for ranks 2, 3 (of 4); here: rank 1 on host a" */
static void tell_missing(rbt_session *s, rbt_seat_state state, const char *what)
{
    char text[NOTE_ROOM];
    size_t n = 0;
    uint32_t listed = 0, missing = count_missing(s, state);

    n += (size_t)snprintf(text, sizeof text, "%u of %u processes %s; missing:", s->size - 1 - missing, s->size - 1, what);
    for (uint32_t r = 1; r < s->size && n < sizeof text - 200 && listed < 16; r++)
        if (s->seats[r].state < state && ++listed)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s rank %u%s%s", listed > 1 ? "," : "", r,
                                  s->seats[r].host[0] != '\0' ? " on host " : "", s->seats[r].host);
    if (missing > listed)
        n += (size_t)snprintf(text + n, sizeof text - n, " and %u more", missing - listed);
    listed = 0;
    for (uint32_t r = 1; r < s->size && n < sizeof text - 200 && listed < 16; r++)
        if (s->seats[r].state >= state && ++listed)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s rank %u on host %s (%s)",
                                  listed > 1 ? "," : "; here:", r, s->seats[r].host,
                                  s->seats[r].tcp[0] != '\0' ? s->seats[r].tcp : "this host");
    if (state == RBT_SEAT_JOINED)
        snprintf(text + n, sizeof text - n, "; others join at %s",
                 s->tcp_address[0] != '\0' ? s->tcp_address : s->local_address);
    rbt_log_event(&s->config.log, RBT_LOG_INFO, "cluster", "%s", text);
}

/* Waits until every seat is in that state. */
static rbt_err wait_for_seats(rbt_session *s, rbt_seat_state state, const char *what, uint64_t timeout_ms,
                              rbt_err (*check)(void *, rbt_error *), void *context, rbt_error *error)
{
    uint64_t tell_at = wait_deadline(TELL_MS), give_up_at = wait_deadline(timeout_ms);
    rbt_err err = RBT_OK;

    pthread_mutex_lock(&s->lock);
    while ((err = check_wait(s, error)) == RBT_OK && count_missing(s, state) > 0) {
        nap(s);
        if (check != NULL) {
            pthread_mutex_unlock(&s->lock);
            err = check(context, error);
            pthread_mutex_lock(&s->lock);
            if (err != RBT_OK)
                break;
        }
        if (rbt_now_ns() >= tell_at) {
            tell_missing(s, state, what);
            tell_at = wait_deadline(TELL_MS);
        }
        if (timeout_ms > 0 && rbt_now_ns() >= give_up_at) {
            tell_missing(s, state, what);
            err = rbt_fail(error, RBT_E_MISSING,
                           "%u of %u processes have not joined within %llu s; are they started with this address and "
                           "key, and can their hosts reach %s? --join-timeout gives them longer, `rubato doctor` checks",
                           count_missing(s, state), s->size - 1, (unsigned long long)timeout_ms / 1000,
                           s->tcp_address[0] != '\0' ? s->tcp_address : "this host");
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* Can the others be reached where they say they are? */
static rbt_err dial_back(const rbt_session *s, uint32_t rank, rbt_error *error)
{
    const rbt_seat *seat = &s->seats[rank];
    rbt_address address;
    int fd = -1;
    rbt_err err;
    rbt_error why;

    if (seat->tcp[0] == '\0' || seat->host_id == s->seats[0].host_id)
        return RBT_OK;
    err = rbt_address_parse(seat->tcp, 0, &address, &why);
    if (err == RBT_OK)
        err = rbt_socket_dial(&address, &fd, &why);
    if (err == RBT_OK) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        if (poll(&ready, 1, DIAL_BACK_MS) == 1)
            err = rbt_socket_connected(fd, &address, &why);
        else
            err = rbt_fail(&why, RBT_E_IO, "%s does not answer%s", seat->tcp, rbt_socket_hint(ETIMEDOUT));
        close(fd);
    }
    if (err != RBT_OK)
        return rbt_fail(error, RBT_E_MISSING,
                        "rank %u on host %s joined, but cannot be reached at the address it advertises: %s; start it "
                        "with --advertise ADDRESS or open the port",
                        rank, seat->host, why.text);
    return RBT_OK;
}

rbt_err rbt_session_gather(rbt_session *s, rbt_err (*check)(void *context, rbt_error *error), void *context,
                           rbt_error *error)
{
    rbt_err err = wait_for_seats(s, RBT_SEAT_JOINED, "have joined", s->config.join_timeout_ms, check, context, error);

    for (uint32_t r = 1; err == RBT_OK && r < s->size; r++)
        err = dial_back(s, r, error);
    return err;
}

void rbt_session_welcome(rbt_session *s, const rbt_bytes *description)
{
    pthread_mutex_lock(&s->lock);
    s->description.at = rbt_alloc(description->n, 1);
    s->description.n = description->n;
    if (description->n > 0)
        memcpy(s->description.at, description->at, description->n);
    for (uint32_t r = 1; r < s->size; r++)
        if (s->seats[r].peer != NULL)
            send_welcome(s, r);
    pthread_mutex_unlock(&s->lock);
}

rbt_err rbt_session_join(const rbt_session_config *config, const char *address, uint32_t rank, rbt_session **session,
                         rbt_bytes *description, rbt_error *error)
{
    rbt_session *s;
    rbt_address lead;
    rbt_pack words = {0};
    rbt_err err = rbt_address_parse(address, RBT_PORT, &lead, error);

    if (err == RBT_OK)
        err = create(config, false, &s, error);
    if (err != RBT_OK)
        return err;
    err = listen_local(s, error);
    if (err == RBT_OK && (config->listen != NULL || !rbt_address_is_unix(&lead)))
        err = listen_tcp(s, config->listen, &lead, error);
    if (err == RBT_OK) {
        s->lead = rbt_hub_dial(s->hub, &lead, 0, config->join_timeout_ms);
        rbt_pack_u32(&words, rank);
        rbt_seat_pack_self(&words, &s->me);
        say_to(s->lead, RBT_SAY_HELLO, &words, NULL, 0);
        rbt_array_free(&words);
        pthread_mutex_lock(&s->lock);
        while ((err = check_wait(s, error)) == RBT_OK && s->size == 0)
            nap(s);
        *description = s->description;
        if (err == RBT_OK)
            s->description = (rbt_bytes){0};
        pthread_mutex_unlock(&s->lock);
    }
    if (err != RBT_OK)
        rbt_session_destroy(s);
    else
        *session = s;
    return err;
}

/* ------------------------------------------------------------------------------------------------------- meeting */

/* Dials a seat: on the same host over a Unix socket. */
static rbt_err meet_seat(rbt_session *s, uint32_t rank, rbt_error *error)
{
    rbt_seat *seat = &s->seats[rank];
    bool is_near = seat->host_id == s->me.host_id && seat->local[0] != '\0';
    rbt_address address;
    rbt_pack words = {0};
    rbt_peer *peer;
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
    say_to(peer, RBT_SAY_IAM, &words, NULL, 0);
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
        uint32_t absent = 0;

        err = check_wait(s, error);
        for (uint32_t r = 0; r < s->size; r++)
            absent += r != s->rank && s->seats[r].peer == NULL;
        if (err != RBT_OK || absent == 0 || is_back)
            break;
        nap(s);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ swapping */

static rbt_err take_swapped(rbt_session *s, uint32_t rank, rbt_bytes *in, rbt_error *error)
{
    rbt_err err;
    swapped *item;

    pthread_mutex_lock(&s->lock);
    while ((err = check_wait(s, error)) == RBT_OK && s->swaps[rank] == NULL)
        nap(s);
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

static rbt_err swap(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    rbt_session *s = crew->context;
    rbt_err err = RBT_OK;

    for (uint32_t r = 0; r < s->size; r++)
        in[r] = (rbt_bytes){0};
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t r = (s->rank + i) % s->size; /* not all to the same one first */
        uint8_t *copy = out[r].n > 0 ? rbt_try_alloc_raw(out[r].n, 1) : NULL;

        if (out[r].n > RBT_SWAP_MOST || (out[r].n > 0 && copy == NULL)) {
            rbt_free(copy);
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory to hand %zu bytes to rank %u", out[r].n, r);
            break;
        }
        if (out[r].n > 0)
            memcpy(copy, out[r].at, out[r].n);
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

rbt_crew rbt_session_crew(rbt_session *s)
{
    return (rbt_crew){.rank = s->rank, .size = s->size, .swap = swap, .context = s};
}

/* ----------------------------------------------------------------------------------------------- start and end */

rbt_err rbt_session_start(rbt_session *s, rbt_error *error)
{
    rbt_err err = wait_for_seats(s, RBT_SEAT_READY, "are ready", 0, NULL, NULL, error);

    if (err != RBT_OK)
        return err;
    take_start(s);
    for (uint32_t r = 1; r < s->size; r++)
        rbt_session_say(s, r, RBT_SAY_START, NULL, NULL, 0);
    return RBT_OK;
}

rbt_err rbt_session_ready(rbt_session *s, rbt_error *error)
{
    rbt_err err;

    say_to(s->lead, RBT_SAY_READY, NULL, NULL, 0);
    pthread_mutex_lock(&s->lock);
    while ((err = check_wait(s, error)) == RBT_OK && !s->started)
        nap(s);
    pthread_mutex_unlock(&s->lock);
    return err;
}

void rbt_session_fail(rbt_session *s, const rbt_error *why)
{
    if (s->leads)
        end_here(s, why);
    else
        say_error(s->lead, RBT_SAY_FAILED, why);
}

void rbt_session_end(rbt_session *s, const rbt_error *why)
{
    for (uint32_t r = 1; r < s->size; r++) {
        rbt_peer *peer = peer_of(s, r);

        if (peer != NULL)
            say_error(peer, RBT_SAY_END, why);
    }
    end_here(s, why);
}

void rbt_session_destroy(rbt_session *s)
{
    if (s == NULL)
        return;
    rbt_hub_destroy(s->hub, GOODBYE_MS);
    rbt_tls_destroy(s->tls);
    for (uint32_t r = 0; r < s->size; r++)
        while (s->swaps[r] != NULL) {
            swapped *item = s->swaps[r];

            s->swaps[r] = item->next;
            rbt_free(item->bytes);
            rbt_free(item);
        }
    rbt_free(s->swaps);
    rbt_free(s->seats);
    rbt_array_free(&s->claims);
    rbt_free(s->description.at);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
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
    pthread_mutex_lock(&s->lock);
    s->hooks = *hooks;
    pthread_mutex_unlock(&s->lock);
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

void rbt_session_wait_over(rbt_session *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->over)
        nap(s);
    pthread_mutex_unlock(&s->lock);
}

void rbt_session_name(const rbt_session *s, uint32_t rank, char *name, size_t room)
{
    snprintf(name, room, "rank %u on host %s", rank, s->seats[rank].host);
}
