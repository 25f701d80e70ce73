/* How processes get together: joining the lead, getting a seat, meeting the others; the contract is in session.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "runtime/cluster/roster.h"
#include "runtime/cluster/session_state.h"

#define DIAL_BACK_MS 2000
#define LOOK_UP_MS   500 /* between two looks for a name */
#define SORRY_ROOM   96
#define TOLD_ADDRESS 72 /* characters of an address in a list, which hold any of TCP */

/* ------------------------------------------------------------------------------------------------------ joining */

/* Nobody sits there: nobody yet, or nobody any more and the job waits for somebody. */
static bool is_free(const rbt_session *s, uint32_t rank)
{
    return s->seats[rank].state == RBT_SEAT_EMPTY ||
           (s->seats[rank].state == RBT_SEAT_LOST && s->losses.ranks[rank].state == RBT_RANK_AWAY);
}

/* The lead: somebody wants to join. The lock is held; answers with a reason when it cannot, which may stand in `room`. */
static const char *find_seat(rbt_session *s, uint32_t wanted, uint32_t *rank, char room[SORRY_ROOM])
{
    if (wanted != RBT_RANK_NONE) {
        if (wanted == 0 || wanted >= s->size) {
            snprintf(room, SORRY_ROOM, "there is no rank %u to join in this job, only 1 to %u", wanted, s->size - 1);
            return room;
        }
        if (s->seats[wanted].state != RBT_SEAT_EMPTY && s->seats[wanted].state != RBT_SEAT_LOST)
            return "a process with this rank has joined already";
        if (!is_free(s, wanted))
            return "the job has started and does without this rank";
        *rank = wanted;
        return NULL;
    }
    for (uint32_t r = 1; r < s->size; r++)
        if (is_free(s, r)) {
            *rank = r;
            return NULL;
        }
    return "the job has all processes it needs";
}

/* What is told to the others is an address. On another host, none and one of that host alone are of no use. */
static const char *check_advertised(const rbt_seat *seat, const rbt_seat *lead)
{
    rbt_address address;

    if (seat->tcp[0] != '\0' && rbt_address_parse(seat->tcp, 0, &address, NULL) != RBT_OK)
        return "what it advertises is no address; start it with --advertise ADDRESS, one that the other hosts can dial";
    if (seat->host_id == lead->host_id)
        return NULL;
    if (seat->tcp[0] == '\0')
        return "it is on another host and says no address at which the others reach it; start it with --listen ADDRESS";
    if (rbt_address_is_loopback(&address) || rbt_address_is_any(&address))
        return "it advertises an address that only its own host can reach; start it with --advertise ADDRESS, one that "
               "the other hosts can dial";
    return NULL;
}

/* The lead's own address, as a process on another host knows or reaches it. */
static rbt_err address_towards(const rbt_session *s, const rbt_seat *far, rbt_address *mine)
{
    rbt_address there;

    if (s->tcp_address[0] != '\0' && rbt_address_parse(s->tcp_address, 0, mine, NULL) == RBT_OK &&
        !rbt_address_is_any(mine))
        return RBT_OK;
    rbt_err err = rbt_address_parse(far->tcp, 0, &there, NULL);
    return err == RBT_OK ? rbt_address_facing(&there, mine, NULL) : err;
}

/* A process on the lead's host has come over loopback or a Unix socket, and does not know at which address other hosts reach
 * it: the lead's, if it listens there. Without others it does not matter. The lock is held. */
static const char *settle_near(const rbt_session *s, rbt_seat *seat)
{
    rbt_address address, mine;
    uint32_t far = 1;

    while (far < s->size && (s->seats[far].state == RBT_SEAT_EMPTY || s->seats[far].host_id == s->seats[0].host_id))
        far++;
    if (seat->host_id != s->seats[0].host_id || far == s->size)
        return NULL;
    if (seat->tcp[0] == '\0' || rbt_address_parse(seat->tcp, 0, &address, NULL) != RBT_OK ||
        rbt_address_is_loopback(&address))
        return "it is on the lead's host and listens for that host alone, and there are processes on other hosts; "
               "start "
               "it with --advertise ADDRESS, one that they can dial, or --join the lead at such an address";
    if (!rbt_address_is_any(&address))
        return NULL;
    if (address_towards(s, &s->seats[far], &mine) != RBT_OK || rbt_address_is_loopback(&mine))
        return "the address at which other hosts reach it is not known; start it with --advertise ADDRESS";
    rbt_address_set_port(&mine, rbt_address_port(&address));
    rbt_address_text(&mine, seat->tcp);
    return NULL;
}

static void send_welcome(rbt_session *s, uint32_t rank)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, rank);
    rbt_roster_pack(&words, s->seats, s->size);
    rbt_pack_bytes(&words, s->description.at, s->description.n);
    rbt_session_say_to(s->seats[rank].peer, RBT_SAY_WELCOME, &words, NULL, 0);
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
            rbt_session_say_to(s->seats[r].peer, RBT_SAY_WELCOME, &words, NULL, 0);
    rbt_array_free(&words);
    send_welcome(s, rank);
}

void rbt_join_hello(rbt_session *s, rbt_remote *peer, rbt_unpack *words)
{
    uint32_t wanted = rbt_unpack_u32(words), rank = 0;
    rbt_seat seat = {0};
    char room[SORRY_ROOM];
    const char *sorry;

    rbt_seat_unpack_self(words, &seat);
    if (!rbt_unpack_done(words) || !s->leads || peer->rank != RBT_RANK_NONE || rbt_session_asks_again(s, peer)) {
        rbt_session_cut_peer(peer, "its request to join makes no sense");
        return;
    }
    pthread_mutex_lock(&s->lock);
    sorry =
        s->started && s->config.on_loss != RBT_LOSS_WAIT ? "the job has started" : find_seat(s, wanted, &rank, room);
    if (sorry == NULL)
        sorry = check_advertised(&seat, &s->seats[0]);
    if (sorry == NULL)
        sorry = settle_near(s, &seat);
    if (sorry == NULL) {
        rbt_seat *taken = &s->seats[rank];

        rbt_seat_copy_self(taken, &seat);
        taken->life = peer->life;
        taken->peer = peer;
        peer->rank = rank;
        snprintf(peer->name, sizeof peer->name, "rank %u on host %.64s", rank, seat.host);
        taken->state = RBT_SEAT_JOINED;
        if (s->started && rbt_losses_return(&s->losses, rank))
            seat_again(s, rank);
        pthread_cond_broadcast(&s->news);
    }
    pthread_mutex_unlock(&s->lock);
    if (sorry != NULL) {
        rbt_error why;

        rbt_fail(&why, RBT_E_USAGE, "%s", sorry);
        rbt_session_say_error(peer, RBT_SAY_SORRY, &why);
        rbt_callers_tell(s->hub, "%s on host %s may not join: %s", peer->name, seat.host, sorry);
    }
}

/* Processes on this host, with this one. */
static uint32_t count_near(const rbt_session *s)
{
    uint32_t near = 0;

    for (uint32_t r = 0; r < s->size; r++)
        near += s->seats[r].host_id == s->me.host_id;
    return near;
}

/* A process that joined: its seat and the others', or (in the middle of the job) a seat that changed. */
void rbt_join_welcome(rbt_session *s, rbt_remote *peer, rbt_unpack *words)
{
    bool is_first = s->size == 0;
    uint32_t rank = is_first ? rbt_unpack_u32(words) : s->rank, size = 0;
    rbt_seat *seats = rbt_roster_unpack(words, &size);
    rbt_address mine;

    if (!rbt_session_is_lead(s, peer) || seats == NULL || rank == 0 || rank >= size || (!is_first && size != s->size) ||
        seats[rank].life != rbt_hub_life(s->hub)) {
        rbt_free(seats);
        rbt_session_cut_peer(peer, "its roster makes no sense");
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (is_first) {
        s->rank = rank;
        s->seats = seats;
        s->size = size;
        s->swaps = rbt_alloc(size, sizeof *s->swaps);
        s->seats[0].peer = peer;
        if (seats[rank].tcp[0] != '\0' && rbt_address_parse(seats[rank].tcp, 0, &mine, NULL) == RBT_OK)
            rbt_hub_advertise(s->hub, &mine); /* the lead may know it better */
        rbt_hub_share(s->hub, rbt_ring_share(count_near(s)));
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
    rbt_meet_settle(s);
    pthread_mutex_unlock(&s->lock);
    rbt_meet_hear(s);
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
                             .body_max = RBT_SWAP_MOST,
                             .stranger_max = RBT_STRANGER_MOST};
    rbt_hub_events events = {.on_open = rbt_session_on_open,
                             .on_control = rbt_session_on_control,
                             .on_message = rbt_session_on_message,
                             .on_room = rbt_session_on_room,
                             .on_lost = rbt_session_on_lost,
                             .on_tick = rbt_session_on_tick,
                             .context = s};
    rbt_log log = {.write = rbt_session_log, .context = s, .least = config->log.least};
    pthread_condattr_t monotonic;
    pthread_mutexattr_t recursive;
    rbt_err err = RBT_OK;

    s->config = *config;
    s->leads = leads;
    s->opened_ns = rbt_now_ns();
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->calling, &recursive);
    pthread_mutexattr_destroy(&recursive);
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

    if (s->leads && s->config.local != NULL)
        snprintf(s->local_address, sizeof s->local_address, "%s", s->config.local);
    else
        snprintf(s->local_address, sizeof s->local_address, "unix:@rubato-%016llx", (unsigned long long)s->me.life);
    err = rbt_address_parse(s->local_address, 0, &address, error);
    if (err == RBT_OK)
        err = rbt_hub_listen(s->hub, &address, &bound, error);
    if (err == RBT_OK)
        memcpy(s->me.local, s->local_address, sizeof s->me.local);
    return err;
}

/* Where to listen. When nothing is said, other hosts reach us at the address from which we reach them; on the lead's host
 * that may be loopback, and if there are others we listen everywhere. */
static rbt_err where_to_listen(const rbt_session *s, const char *text, const rbt_address *facing, rbt_address *address,
                               rbt_error *error)
{
    bool has_others = s->config.has_others || s->config.advertise != NULL;
    rbt_err err;

    if (text != NULL)
        return rbt_address_parse(text, s->leads ? RBT_PORT : 0, address, error);
    err = rbt_address_facing(facing, address, error);
    return err == RBT_OK && has_others && rbt_address_is_loopback(address) ? rbt_address_parse(":0", 0, address, error)
                                                                           : err;
}

/* A new key is of use to the lead alone: who joins needs the one that the job has. */
static rbt_err refuse_keyless(const rbt_session *s, const char *text, const rbt_address *address, rbt_error *error)
{
    if (!s->leads)
        return rbt_fail(
            error, RBT_E_USAGE,
            "taking part over TCP needs the job's key: give the key file that the lead has with --key FILE or "
            "in RUBATO_KEY_FILE; or --insecure, if the lead was started with it and no key");
    return rbt_fail(error, RBT_E_USAGE,
                    "listening on %s, which %s can reach, needs a key: make one with `rubato key new job.key` "
                    "and give --key job.key, or give --insecure on a network that is trusted",
                    text != NULL ? text : "a network address",
                    rbt_address_is_loopback(address) ? "everybody on this host" : "other hosts");
}

static rbt_err listen_tcp(rbt_session *s, const char *text, const rbt_address *facing, rbt_error *error)
{
    rbt_address address, bound, told, mine;
    rbt_err err = where_to_listen(s, text, facing, &address, error);

    if (err == RBT_OK && !rbt_address_is_unix(&address) && !s->config.has_key && !s->config.insecure)
        err = refuse_keyless(s, text, &address, error);
    if (err == RBT_OK)
        err = rbt_hub_listen(s->hub, &address, &bound, error);
    if (err != RBT_OK)
        return err;
    told = bound;
    if (s->config.advertise != NULL)
        err = rbt_address_parse(s->config.advertise, rbt_address_port(&bound), &told, error);
    else if (rbt_address_is_any(&bound) && facing != NULL && rbt_address_facing(facing, &mine, NULL) == RBT_OK &&
             !rbt_address_is_loopback(&mine)) { /* else the lead knows */
        told = mine;
        rbt_address_set_port(&told, rbt_address_port(&bound));
    }
    if (err != RBT_OK)
        return err;
    rbt_address_text(&told, s->tcp_address);
    memcpy(s->me.tcp, s->tcp_address, sizeof s->me.tcp);
    if (!rbt_address_is_any(&told))
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
    rbt_hub_share(s->hub, rbt_ring_share(size));
    pthread_mutex_lock(&s->lock); /* nobody can join before there are seats */
    s->seats = rbt_alloc(size, sizeof *s->seats);
    memcpy(s->seats, seats, size * sizeof *seats);
    s->swaps = rbt_alloc(size, sizeof *s->swaps);
    s->size = size;
    rbt_losses_init(&s->losses, config->on_loss, size);
    s->losses.needs_all = config->needs_all;
    s->losses.cannot_return = config->cannot_return;
    s->losses.rows_stay = config->rows_stay;
    for (uint32_t r = 0; r < size; r++)
        rbt_losses_seat(&s->losses, r, seats[r].first_worker, seats[r].workers, seats[r].servers);
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

/* Where others join, for people: an address that means every interface is none that they could type. */
static void tell_where(const rbt_session *s, char text[RBT_ADDRESS_ROOM + RBT_HOST_ROOM])
{
    rbt_address address;

    if (s->tcp_address[0] != '\0' && rbt_address_parse(s->tcp_address, 0, &address, NULL) == RBT_OK &&
        rbt_address_is_any(&address))
        snprintf(text, RBT_ADDRESS_ROOM + RBT_HOST_ROOM, "port %u of host %s", rbt_address_port(&address), s->me.host);
    else
        snprintf(text, RBT_ADDRESS_ROOM + RBT_HOST_ROOM, "%s",
                 s->tcp_address[0] != '\0' ? s->tcp_address : s->local_address);
}

/* " rank 2 on host b, rank 3 on host c and 4 more"; how long that is. */
static size_t list_missing(const rbt_session *s, rbt_seat_state state, char *text, size_t room)
{
    uint32_t listed = 0, missing = count_missing(s, state);
    size_t n = 0;

    for (uint32_t r = 1; r < s->size && n + 200 < room && listed < RBT_NAMED_MOST; r++)
        if (s->seats[r].state < state && ++listed) {
            n = rbt_text_add(text, room, n, "%s", listed > 1 ? "," : "");
            n += rbt_patience_name(s, r, text + n, room - n);
        }
    if (missing > listed)
        n = rbt_text_add(text, room, n, " and %u more", missing - listed);
    return n;
}

/* "2 of 3 processes are there; missing: rank 2 on host b; here: rank 1 on host a (10.0.0.1:4711), ...; others join at ..." */
static void tell_missing(rbt_session *s, rbt_seat_state state, const char *what)
{
    char text[RBT_NOTE_ROOM], where[RBT_ADDRESS_ROOM + RBT_HOST_ROOM];
    size_t n;
    uint32_t listed = 0, missing = count_missing(s, state);

    n = rbt_text_add(text, sizeof text, 0, "%u of %u processes %s; missing:", s->size - 1 - missing, s->size - 1, what);
    n += list_missing(s, state, text + n, sizeof text - n);
    for (uint32_t r = 1; r < s->size && n < sizeof text - 200 && listed < RBT_NAMED_MOST; r++)
        if (s->seats[r].state >= state && ++listed)
            n = rbt_text_add(text, sizeof text, n, "%s rank %u on host %s (%.*s)", listed > 1 ? "," : "; here:", r,
                             s->seats[r].host, TOLD_ADDRESS,
                             s->seats[r].tcp[0] != '\0' ? s->seats[r].tcp : "this host");
    tell_where(s, where);
    if (state == RBT_SEAT_JOINED)
        rbt_text_add(text, sizeof text, n, "; others join at %s", where);
    rbt_log_event(&s->config.log, RBT_LOG_INFO, "cluster", "%s", text);
}

/* --insecure says what it gives up, once. */
static void tell_insecure(const rbt_session *s)
{
    char where[RBT_ADDRESS_ROOM + RBT_HOST_ROOM];

    if (!s->config.insecure || s->tcp_address[0] == '\0' || strncmp(s->tcp_address, "unix:", 5) == 0)
        return;
    tell_where(s, where);
    if (s->config.has_key)
        rbt_log_event(
            &s->config.log, RBT_LOG_WARNING, "cluster",
            "--insecure: connections between hosts are not encrypted, and once made not authenticated: whoever is "
            "on the network can read and change what is sent; to join at %s takes the key",
            where);
    else
        rbt_log_event(&s->config.log, RBT_LOG_WARNING, "cluster",
                      "--insecure without a key: connections are neither encrypted nor authenticated, and anybody who "
                      "reaches %s can join; --key FILE says who may",
                      where);
}

/* Who has not joined in time, for the last sentence of the job. */
static rbt_err give_up(const rbt_session *s, rbt_seat_state state, uint64_t timeout_ms, rbt_error *error)
{
    char where[RBT_ADDRESS_ROOM + RBT_HOST_ROOM], who[480];

    tell_where(s, where);
    list_missing(s, state, who, sizeof who);
    return rbt_fail(error, RBT_E_MISSING,
                    "%u of %u processes have not joined within %llu s:%s; are they started with this address and key, "
                    "and can their hosts reach %s? --join-timeout gives them longer, `rubato doctor` checks",
                    count_missing(s, state), s->size - 1, (unsigned long long)timeout_ms / 1000, who, where);
}

/* Waits until every seat is in that state. */
rbt_err rbt_join_wait(rbt_session *s, rbt_seat_state state, const char *what, uint64_t timeout_ms,
                      rbt_err (*check)(void *, rbt_error *), void *context, rbt_error *error)
{
    uint64_t tell_at = rbt_session_deadline(RBT_TELL_MS), give_up_at = rbt_session_deadline(timeout_ms);
    rbt_err err = RBT_OK;

    pthread_mutex_lock(&s->lock);
    while ((err = rbt_session_check(s, error)) == RBT_OK && count_missing(s, state) > 0) {
        rbt_session_nap(s);
        if (check != NULL) {
            pthread_mutex_unlock(&s->lock);
            err = check(context, error);
            pthread_mutex_lock(&s->lock);
            if (err != RBT_OK)
                break;
        }
        if (rbt_now_ns() >= tell_at) {
            tell_missing(s, state, what);
            tell_at = rbt_session_deadline(RBT_TELL_MS);
        }
        if (timeout_ms > 0 && rbt_now_ns() >= give_up_at) {
            tell_missing(s, state, what);
            err = give_up(s, state, timeout_ms, error);
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
            err = rbt_fail(&why, RBT_E_IO, "%s does not answer; %s", seat->tcp, rbt_socket_hint(ETIMEDOUT));
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
    tell_insecure(s);
    rbt_err err = rbt_join_wait(s, RBT_SEAT_JOINED, "have joined", s->config.join_timeout_ms, check, context, error);

    for (uint32_t r = 1; err == RBT_OK && r < s->size; r++) {
        pthread_mutex_lock(&s->lock);
        const char *sorry = settle_near(s, &s->seats[r]); /* again: who joined first knew nothing of the others */
        pthread_mutex_unlock(&s->lock);
        if (sorry != NULL)
            err = rbt_fail(error, RBT_E_MISSING, "rank %u on host %s cannot take part: %s", r, s->seats[r].host, sorry);
        else
            err = dial_back(s, r, error);
    }
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
    s->has_welcomed = true;
    pthread_mutex_unlock(&s->lock);
}

/* The lead's address. Its name may not be known yet: it is looked up until the time is over, as the lead is dialled. */
static rbt_err find_lead(const rbt_session_config *config, const char *address, uint64_t give_up_ns, rbt_address *lead,
                         rbt_error *error)
{
    bool told = false;
    rbt_error why;
    rbt_err err;

    while ((err = rbt_address_parse(address, RBT_PORT, lead, &why)) == RBT_E_IO && rbt_now_ns() < give_up_ns) {
        if (!told)
            rbt_log_event(&config->log, RBT_LOG_INFO, "cluster", "%s; trying again for %llu s", why.text,
                          (unsigned long long)config->join_timeout_ms / 1000);
        told = true;
        poll(NULL, 0, LOOK_UP_MS);
    }
    if (err == RBT_E_IO)
        return rbt_fail(error, RBT_E_MISSING, "the lead at %s has not been found within %llu s: %s", address,
                        (unsigned long long)config->join_timeout_ms / 1000, why.text);
    if (err != RBT_OK)
        *error = why;
    return err;
}

rbt_err rbt_session_join(const rbt_session_config *config, const char *address, uint32_t rank, rbt_session **session,
                         rbt_bytes *description, rbt_error *error)
{
    uint64_t give_up_ns = rbt_session_deadline(config->join_timeout_ms), now_ns;
    rbt_session *s;
    rbt_address lead;
    rbt_pack words = {0};
    rbt_err err = find_lead(config, address, give_up_ns, &lead, error);

    if (err == RBT_OK)
        err = create(config, false, &s, error);
    if (err != RBT_OK)
        return err;
    err = listen_local(s, error);
    if (err == RBT_OK && (config->listen != NULL || !rbt_address_is_unix(&lead)))
        err = listen_tcp(s, config->listen, &lead, error);
    if (err == RBT_OK) {
        now_ns = rbt_now_ns();
        s->lead = rbt_hub_dial(s->hub, &lead, 0, now_ns < give_up_ns ? (give_up_ns - now_ns) / 1000000u : 0);
        rbt_pack_u32(&words, rank);
        rbt_seat_pack_self(&words, &s->me);
        rbt_session_say_to(s->lead, RBT_SAY_HELLO, &words, NULL, 0);
        rbt_array_free(&words);
        pthread_mutex_lock(&s->lock);
        while ((err = rbt_session_check(s, error)) == RBT_OK && s->size == 0)
            rbt_session_nap(s);
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
