/* All connections of a process, served by one thread; the contract is in hub.h. Here are the thread, its listeners and what
 * other threads call; peers.c has the peers. */
#include "runtime/cluster/hub_state.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"

#define STRANGERS_KEPT 64
#define TICK_MS        100

/* ------------------------------------------------------------------------------------------------- listening */

static void on_caller(uv_poll_t *poll, int status, int events)
{
    rbt_listener *l = poll->data;

    (void)status;
    (void)events;
    for (;;) {
        rbt_address from;
        rbt_error error;
        int fd = -1;

        if (rbt_socket_accept(l->fd, &fd, &from, &error) != RBT_OK) {
            if (!l->is_told)
                rbt_log_event(&l->hub->log, RBT_LOG_WARNING, "cluster", "%s", error.text);
            l->is_told = true;
            l->is_paused = true; /* the caller still stands there, and would be announced again and again */
            rbt_uv.uv_poll_stop(&l->poll);
            return;
        }
        if (fd < 0)
            return;
        l->is_told = false;
        rbt_callers_make_room(l->hub);
        rbt_conn_settle(rbt_conn_open(l->hub, fd, &from, true, NULL));
    }
}

/* ---------------------------------------------------------------------------------------------------- the loop */

/* What the loop could not do, as the system says it. */
static rbt_err refused(const char *what, int failed, rbt_error *error)
{
    const char *hint = rbt_socket_hint(-failed);

    return rbt_fail(error, RBT_E_LIMIT, "cannot %s: %s%s%s", what, strerror(-failed), hint[0] != '\0' ? "; " : "",
                    hint);
}

static void begin_listening(rbt_hub *hub, rbt_listener *l)
{
    int failed = rbt_uv.uv_poll_init(&hub->loop, &l->poll, l->fd);
    rbt_error error;

    if (failed != 0) {
        (void)refused("wait for callers", failed, &error);
        rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "%s", error.text);
        close(l->fd);
        rbt_free(l);
        return;
    }
    l->next = hub->listeners;
    hub->listeners = l;
    l->poll.data = l;
    rbt_uv.uv_poll_start(&l->poll, UV_READABLE, on_caller);
}

static void take_new(rbt_hub *hub)
{
    rbt_remote_state *peer;
    rbt_listener *l;

    pthread_mutex_lock(&hub->lock);
    peer = hub->new_peers;
    hub->new_peers = NULL;
    l = hub->new_listeners;
    hub->new_listeners = NULL;
    pthread_mutex_unlock(&hub->lock);
    while (peer != NULL) {
        rbt_remote_state *next = peer->next;

        peer->next = hub->peers;
        hub->peers = peer;
        rbt_remote_dial(hub, peer);
        peer = next;
    }
    while (l != NULL) {
        rbt_listener *next = l->next;

        begin_listening(hub, l);
        l = next;
    }
}

static void on_listener_closed(uv_handle_t *handle)
{
    rbt_listener *l = handle->data;

    close(l->fd);
    rbt_free(l);
}

/* Everything is said: closes what is open. */
static void shut(rbt_hub *hub)
{
    while (hub->listeners != NULL) {
        rbt_listener *l = hub->listeners;

        hub->listeners = l->next;
        rbt_uv.uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    }
    while (hub->conns != NULL) {
        rbt_conn *c = hub->conns;

        if (c->peer != NULL && c->peer->conn == c) {
            rbt_conn_save_unsent(c);
            c->peer->conn = NULL;
        }
        rbt_conn_close(c);
    }
    if (!rbt_uv.uv_is_closing((uv_handle_t *)&hub->wake))
        rbt_uv.uv_close((uv_handle_t *)&hub->wake, NULL);
    if (!rbt_uv.uv_is_closing((uv_handle_t *)&hub->tick))
        rbt_uv.uv_close((uv_handle_t *)&hub->tick, NULL);
}

/* Has a peer still something to be sent, or to acknowledge? */
bool rbt_remote_is_busy(rbt_remote_state *peer)
{
    bool has_posted;

    if (peer->is_lost || !peer->is_open)
        return false;
    pthread_mutex_lock(&peer->lock);
    has_posted = peer->posted != NULL;
    pthread_mutex_unlock(&peer->lock);
    return has_posted || peer->unacked != NULL ||
           (peer->conn != NULL && peer->conn->has_session && rbt_link_is_busy(peer->conn->link));
}

static void part(rbt_hub *hub)
{
    hub->parting = true;
    for (rbt_remote_state *peer = hub->peers; peer != NULL; peer = peer->next)
        if (peer->conn != NULL && peer->conn->has_session) {
            rbt_link_say(peer->conn->link, RBT_FRAME_BYE);
            rbt_remote_flush(peer);
        }
}

/* Who closes with something unread resets the connection, and what it said last may be lost. So goodbye is said when all
 * has arrived, and the other side closes. */
void rbt_hub_stop_when_quiet(rbt_hub *hub)
{
    bool is_late, busy = false;

    if (!atomic_load(&hub->stopping) || rbt_uv.uv_is_closing((uv_handle_t *)&hub->tick))
        return;
    is_late = rbt_now_ns() >= hub->stop_at_ns;
    for (rbt_remote_state *peer = hub->peers; peer != NULL && !hub->parting; peer = peer->next)
        busy = busy || rbt_remote_is_busy(peer);
    if (busy && !is_late)
        return;
    if (!hub->parting)
        part(hub);
    for (rbt_remote_state *peer = hub->peers; peer != NULL && !is_late; peer = peer->next)
        if (peer->conn != NULL && peer->conn->has_session)
            return;
    shut(hub);
}

static void on_wake(uv_async_t *async)
{
    rbt_hub *hub = async->data;

    take_new(hub);
    for (rbt_remote_state *peer = hub->peers, *next; peer != NULL; peer = next) {
        rbt_error why = {RBT_OK, ""};
        bool must_cut;

        next = peer->next;
        pthread_mutex_lock(&peer->lock);
        must_cut = peer->must_cut;
        if (must_cut)
            why = peer->cut_why;
        peer->must_cut = false;
        if (atomic_load(&hub->is_free))
            pthread_cond_broadcast(&peer->room);
        pthread_mutex_unlock(&peer->lock);
        rbt_remote_flush(peer);
        rbt_remote_resume(peer);
        if (must_cut)
            rbt_remote_lose(hub, peer, &why);
        else
            rbt_remote_part(hub, peer);
    }
    rbt_hub_stop_when_quiet(hub);
}

static void check_peer(rbt_hub *hub, rbt_remote_state *peer, uint64_t now)
{
    if (peer->is_lost)
        return;
    rbt_remote_part(hub, peer);
    if (peer->is_lost)
        return;
    if (peer->conn != NULL && peer->conn->has_session && rbt_conn_is_silent(peer->conn, now)) {
        rbt_link_close_broken(peer->conn->link, "waiting for", ETIMEDOUT);
        rbt_conn_broke(peer->conn);
    } else if (peer->conn != NULL && peer->conn->has_session) {
        rbt_conn_acknowledge(peer->conn, true);
        rbt_remote_flush(peer);
    } else if (peer->broken_ns != 0 && now > rbt_remote_patience_end(peer)) {
        rbt_remote_lose(hub, peer, &peer->broken_why);
    } else if (peer->dials && peer->conn == NULL && !hub->parting) {
        rbt_remote_dial(hub, peer);
    }
}

/* Callers that are lost are known to nobody any more, once who heard of it has let go; the last ones stay, lest they come back
 * too late. */
static void forget_strangers(rbt_hub *hub)
{
    size_t kept = 0;

    for (rbt_remote_state **at = &hub->peers; *at != NULL;) {
        rbt_remote_state *peer = *at;

        if (!peer->is_lost || peer->dials || atomic_load(&peer->peer.holders) > 0 || kept++ < STRANGERS_KEPT) {
            at = &peer->next;
        } else {
            *at = peer->next;
            rbt_remote_destroy(peer);
        }
    }
}

static void on_tick(uv_timer_t *timer)
{
    rbt_hub *hub = timer->data;
    uint64_t now = rbt_now_ns();
    uint64_t greeting_ms = hub->config.greeting_ms != 0 ? hub->config.greeting_ms : RBT_GREETING_MS;

    for (rbt_conn *c = hub->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->has_session && now > c->since_ns + greeting_ms * RBT_NS_PER_MS) {
            rbt_link_close(c->link, RBT_E_IO, "%s did not greet within %g s", c->link->name, (double)greeting_ms / 1e3);
            rbt_conn_broke(c);
            next = hub->conns; /* the list has changed; this one is no longer in it */
        }
    }
    for (rbt_listener *l = hub->listeners; l != NULL; l = l->next)
        if (l->is_paused) {
            l->is_paused = false;
            rbt_uv.uv_poll_start(&l->poll, UV_READABLE, on_caller);
        }
    for (rbt_remote_state *peer = hub->peers, *next; peer != NULL; peer = next) {
        next = peer->next;
        check_peer(hub, peer, now);
    }
    rbt_callers_tick(hub, now);
    if (!hub->parting) /* then nobody hears who is lost */
        forget_strangers(hub);
    if (hub->events.on_tick != NULL && !atomic_load(&hub->stopping))
        hub->events.on_tick(hub->events.context);
    rbt_hub_stop_when_quiet(hub);
}

static bool stays_awake(rbt_hub *hub)
{
    uint64_t traffic = atomic_load_explicit(&hub->bytes_in, memory_order_relaxed) +
                       atomic_load_explicit(&hub->bytes_out, memory_order_relaxed);
    bool awake = rbt_vigil_keep(&hub->vigil, traffic, rbt_now_ns());

    if (awake)
        sched_yield(); /* others may want the processor */
    return awake;
}

static void *serve(void *argument)
{
    rbt_hub *hub = argument;

    atomic_store(&hub->self, pthread_self());
    while (rbt_uv.uv_run(&hub->loop, stays_awake(hub) ? UV_RUN_NOWAIT : UV_RUN_ONCE) != 0)
        ;
    return NULL;
}

/* ----------------------------------------------------------------------------------------- for other threads */

/* The loop and what wakes it. */
static rbt_err open_loop(rbt_hub *hub, rbt_error *error)
{
    int failed = rbt_uv.uv_loop_init(&hub->loop);

    if (failed == 0) {
        failed = rbt_uv.uv_async_init(&hub->loop, &hub->wake, on_wake);
        if (failed != 0)
            rbt_uv.uv_loop_close(&hub->loop);
    }
    if (failed != 0)
        return refused("serve the network", failed, error);
    hub->wake.data = hub->tick.data = hub;
    RBT_ASSERT(rbt_uv.uv_timer_init(&hub->loop, &hub->tick) == 0); /* which takes nothing */
    rbt_uv.uv_timer_start(&hub->tick, on_tick, TICK_MS, TICK_MS);
    return RBT_OK;
}

rbt_err rbt_hub_create(const rbt_link_config *config, const rbt_hub_events *events, const rbt_log *log, rbt_hub **out,
                       rbt_error *error)
{
    rbt_hub *hub = rbt_alloc(1, sizeof *hub);
    uint8_t nonce[RBT_KEY_NONCE];
    rbt_err err = rbt_key_nonce(nonce, error);

    if (err == RBT_OK)
        err = rbt_library_load(&rbt_uv_library, error);
    if (err == RBT_OK)
        err = open_loop(hub, error);
    if (err != RBT_OK) {
        rbt_free(hub);
        return err;
    }
    hub->config = *config;
    hub->events = *events;
    hub->log = *log;
    memcpy(&hub->life, nonce, sizeof hub->life);
    hub->life |= 1; /* never 0 */
    atomic_store(&hub->head_max, config->head_max);
    atomic_store(&hub->body_max, config->body_max);
    pthread_mutex_init(&hub->lock, NULL);
    if (pthread_create(&hub->thread, NULL, serve, hub) != 0) {
        shut(hub);
        rbt_uv.uv_run(&hub->loop, UV_RUN_DEFAULT);
        rbt_uv.uv_loop_close(&hub->loop);
        rbt_free(hub);
        return rbt_fail(error, RBT_E_LIMIT, "the system refused a thread for the network");
    }
    *out = hub;
    return RBT_OK;
}

void rbt_hub_destroy(rbt_hub *hub, uint64_t grace_ms)
{
    if (hub == NULL)
        return;
    hub->stop_at_ns = rbt_now_ns() + grace_ms * RBT_NS_PER_MS;
    atomic_store(&hub->stopping, true);
    rbt_uv.uv_async_send(&hub->wake);
    pthread_join(hub->thread, NULL);
    RBT_ASSERT(rbt_uv.uv_loop_close(&hub->loop) == 0);
    while (hub->peers != NULL) {
        rbt_remote_state *peer = hub->peers;

        hub->peers = peer->next;
        rbt_remote_destroy(peer);
    }
    pthread_mutex_destroy(&hub->lock);
    rbt_key_wipe(&hub->config.key);
    rbt_free(hub);
}

uint64_t rbt_hub_life(const rbt_hub *hub)
{
    return hub->life;
}

rbt_err rbt_hub_listen(rbt_hub *hub, const rbt_address *address, rbt_address *bound, rbt_error *error)
{
    rbt_listener *l = rbt_alloc(1, sizeof *l);
    rbt_err err = rbt_socket_listen(address, &l->fd, bound, error);

    if (err != RBT_OK) {
        rbt_free(l);
        return err;
    }
    l->hub = hub;
    pthread_mutex_lock(&hub->lock);
    l->next = hub->new_listeners;
    hub->new_listeners = l;
    pthread_mutex_unlock(&hub->lock);
    rbt_uv.uv_async_send(&hub->wake);
    return RBT_OK;
}

void rbt_hub_advertise(rbt_hub *hub, const rbt_address *address)
{
    pthread_mutex_lock(&hub->lock);
    rbt_address_text(address, hub->advertised);
    pthread_mutex_unlock(&hub->lock);
}

rbt_remote *rbt_hub_dial(rbt_hub *hub, const rbt_address *address, uint32_t rank, uint64_t patience_ms)
{
    rbt_remote_state *peer = rbt_remote_create(hub);

    peer->dials = true;
    peer->address = *address;
    peer->has_address = true;
    peer->peer.rank = rank;
    peer->patience_until_ns = rbt_now_ns() + patience_ms * RBT_NS_PER_MS;
    rbt_address_text(address, peer->peer.name);
    pthread_mutex_lock(&hub->lock);
    peer->next = hub->new_peers;
    hub->new_peers = peer;
    pthread_mutex_unlock(&hub->lock);
    rbt_uv.uv_async_send(&hub->wake);
    return &peer->peer;
}

void rbt_hub_send(rbt_remote *to, rbt_frame *frame)
{
    rbt_remote_state *peer = to->state;
    bool must_wake,
        is_answer = pthread_equal(atomic_load_explicit(&to->hub->self, memory_order_relaxed), pthread_self()) &&
                    to->hub->answering == peer;

    if (atomic_load(&peer->must_sum))
        rbt_frame_sum_body(frame);
    pthread_mutex_lock(&peer->lock);
    if (peer->is_lost) {
        pthread_mutex_unlock(&peer->lock);
        rbt_frame_destroy(frame);
        return;
    }
    must_wake = peer->posted == NULL && !is_answer; /* answers go out while what came is heard, or behind it */
    frame->next = NULL;
    *peer->posted_last = frame;
    peer->posted_last = &frame->next;
    peer->queued += rbt_frame_weight(frame);
    if (is_answer) {
        frame->is_answer = true;
        peer->answers++;
        peer->owed += rbt_frame_weight(frame);
    }
    pthread_mutex_unlock(&peer->lock);
    if (must_wake)
        rbt_uv.uv_async_send(&to->hub->wake);
}

/* Lists of keys are named by what went before: who squeezes must be the next to send. */
size_t rbt_hub_send_message(rbt_remote *to, rbt_message *message, unsigned codec)
{
    rbt_remote_state *peer = to->state;
    rbt_frame *frame;
    size_t bytes;

    if (codec & RBT_CODEC_KEYS)
        pthread_mutex_lock(&peer->squeezing);
    frame = rbt_frame_of_message(message, codec, codec & RBT_CODEC_KEYS ? &peer->keys_sent : NULL);
    bytes = frame->header.head + (size_t)frame->header.body;
    rbt_hub_send(to, frame);
    if (codec & RBT_CODEC_KEYS)
        pthread_mutex_unlock(&peer->squeezing);
    return bytes;
}

void rbt_hub_wait_room(rbt_remote *to)
{
    rbt_remote_state *peer = to->state;

    pthread_mutex_lock(&peer->lock);
    if (peer->queued >= RBT_QUEUE_MOST)
        while (peer->queued >= RBT_QUEUE_LOW && !peer->is_lost && !atomic_load(&to->hub->is_free))
            pthread_cond_wait(&peer->room, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
}

void rbt_hub_free_waiters(rbt_hub *hub)
{
    atomic_store(&hub->is_free, true);
    rbt_uv.uv_async_send(&hub->wake); /* its thread knows all peers */
}

size_t rbt_hub_queued(rbt_remote *to)
{
    rbt_remote_state *peer = to->state;
    size_t queued;

    pthread_mutex_lock(&peer->lock);
    queued = peer->queued;
    pthread_mutex_unlock(&peer->lock);
    return queued;
}

void rbt_hub_cut(rbt_remote *to, const rbt_error *why)
{
    rbt_remote_state *peer = to->state;

    pthread_mutex_lock(&peer->lock);
    peer->must_cut = true;
    peer->cut_why = *why;
    pthread_mutex_unlock(&peer->lock);
    rbt_uv.uv_async_send(&to->hub->wake);
}

void rbt_hub_part(rbt_remote *to)
{
    rbt_remote_state *peer = to->state;

    pthread_mutex_lock(&peer->lock);
    peer->must_part = true;
    pthread_mutex_unlock(&peer->lock);
    rbt_uv.uv_async_send(&to->hub->wake);
}

void rbt_hub_stay(rbt_remote *to)
{
    pthread_mutex_lock(&to->state->lock);
    to->state->must_part = false;
    pthread_mutex_unlock(&to->state->lock);
}

void rbt_hub_hold(rbt_remote *to)
{
    rbt_remote_state *peer = to->state;

    peer->is_held = true;
    peer->may_resume = false;
    if (peer->conn != NULL)
        rbt_link_hold(peer->conn->link);
}

void rbt_hub_resume(rbt_remote *to)
{
    to->state->may_resume = to->state->is_held;
    if (to->state->may_resume)
        rbt_uv.uv_async_send(&to->hub->wake);
}

void rbt_hub_share(rbt_hub *hub, size_t ring_bytes)
{
    hub->config.ring_bytes = ring_bytes != 0 ? ring_bytes : RBT_RING_LEAST;
    if (ring_bytes == 0 && hub->config.rings == RBT_RINGS_AUTO)
        hub->config.rings = RBT_RINGS_OFF;
}

void rbt_hub_expect(rbt_hub *hub, uint64_t head_max, uint64_t body_max)
{
    atomic_store(&hub->head_max, head_max);
    atomic_store(&hub->body_max, body_max);
}

void rbt_hub_traffic(const rbt_hub *hub, uint64_t *out, uint64_t *in)
{
    *out = atomic_load_explicit(&((rbt_hub *)hub)->bytes_out, memory_order_relaxed);
    *in = atomic_load_explicit(&((rbt_hub *)hub)->bytes_in, memory_order_relaxed);
}
