/* All connections of a process, served by one thread; the contract is in hub.h.
 *
 * A connection (conn) is a link with a libuv handle; a peer outlives its connections. Only what stands under a lock or
 * is atomic is touched by other threads; all else belongs to the hub's thread. */
#include "runtime/cluster/hub.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/error.h"
#include "base/time.h"

#define TICK_MS          100
#define GREETING_MS      5000 /* a connection that has not greeted by then is closed */
#define GREETING_MOST    256  /* connections that greet at the same time; more are closed at once */
#define ACK_FRAMES       8    /* so many frames, or so many bytes, are acknowledged at once; fewer with the next tick */
#define ACK_BYTES        (256u << 10)
#define MS               1000000u

typedef struct conn {
    struct conn *next;
    rbt_hub *hub;
    rbt_link *link;
    uv_poll_t poll;
    struct rbt_peer_state *peer; /* NULL: a caller that has not said who it is */
    bool is_probe;               /* asks whether the peer's process lives, nothing else */
    bool is_closing;
    bool has_session; /* the other side has said who it is */
    uint64_t since_ns;
    uint64_t acked_bytes;             /* link->bytes_in at the last acknowledgement */
    uint64_t counted_in, counted_out; /* of the link's bytes, in the hub's sums */
} conn;

typedef struct rbt_peer_state {
    rbt_peer peer;
    struct rbt_peer_state *next;
    bool dials;
    bool is_open; /* has been, once */
    bool has_address;
    rbt_address address; /* where we dial, or where it says it listens */
    conn *conn;          /* NULL: none at the moment */
    uint64_t patience_until_ns;
    uint64_t broken_ns; /* when the connection broke; 0: it has not */
    rbt_error broken_why;
    rbt_frame *unacked, **unacked_last; /* gone out, and kept */
    uint64_t last_sequence;
    uint64_t expected; /* of the next frame from it */

    pthread_mutex_t lock;
    rbt_frame *posted, **posted_last; /* under the lock */
    bool is_lost;                     /* under the lock; set by the hub */
    bool must_sum;                    /* under the lock: the connection does not protect what it carries */
    bool must_cut;                    /* under the lock */
    rbt_error cut_why;
    pthread_cond_t room;
    size_t queued; /* bytes, under the lock */
} peer_state;

typedef struct listener {
    struct listener *next;
    rbt_hub *hub;
    int fd;
    uv_poll_t poll;
} listener;

struct rbt_hub {
    rbt_link_config config;
    rbt_hub_events events;
    rbt_log log;
    uint64_t life;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    pthread_t thread;
    atomic_bool stopping;
    uint64_t stop_at_ns;
    atomic_ullong bytes_out, bytes_in;
    _Atomic uint64_t head_max, body_max;

    pthread_mutex_t lock; /* for the lists that other threads add to */
    peer_state *new_peers;
    listener *new_listeners;
    char advertised[RBT_ADDRESS_ROOM];

    peer_state *peers;
    listener *listeners;
    conn *conns;
    size_t greeting;
};

static void dial(rbt_hub *hub, peer_state *peer);
static void lose(rbt_hub *hub, peer_state *peer, const rbt_error *why);

/* -------------------------------------------------------------------------------------------------- queues */

static void account(peer_state *peer, size_t bytes)
{
    pthread_mutex_lock(&peer->lock);
    peer->queued -= bytes;
    if (peer->queued < RBT_QUEUE_MOST)
        pthread_cond_broadcast(&peer->room);
    pthread_mutex_unlock(&peer->lock);
}

static void forget(peer_state *peer, rbt_frame *frame)
{
    if (frame->header.sequence != 0)
        account(peer, frame->n + (size_t)frame->header.body);
    rbt_frame_destroy(frame);
}

/* All up to this number has arrived. */
static void release(peer_state *peer, uint64_t acked)
{
    while (peer->unacked != NULL && peer->unacked->header.sequence <= acked) {
        rbt_frame *frame = peer->unacked;

        peer->unacked = frame->next;
        if (peer->unacked == NULL)
            peer->unacked_last = &peer->unacked;
        forget(peer, frame);
    }
}

static void keep_frame(peer_state *peer, rbt_frame *frame)
{
    frame->next = NULL;
    *peer->unacked_last = frame;
    peer->unacked_last = &frame->next;
}

static rbt_frame *take_posted(peer_state *peer)
{
    rbt_frame *first;

    pthread_mutex_lock(&peer->lock);
    first = peer->posted;
    peer->posted = NULL;
    peer->posted_last = &peer->posted;
    pthread_mutex_unlock(&peer->lock);
    return first;
}

/* -------------------------------------------------------------------------------------------- connections */

static void on_conn_closed(uv_handle_t *handle)
{
    conn *c = handle->data;

    rbt_link_destroy(c->link);
    rbt_free(c);
}

static void close_conn(conn *c)
{
    rbt_hub *hub = c->hub;

    if (c->is_closing)
        return;
    c->is_closing = true;
    for (conn **at = &hub->conns; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    if (!c->has_session)
        hub->greeting--;
    uv_poll_stop(&c->poll);
    shutdown(c->link->fd, SHUT_RDWR); /* now, not when the loop gets round to it */
    uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

/* What the link has not sent is kept for the next one. */
static void save_unsent(conn *c)
{
    while (c->link->unsent != NULL) {
        rbt_frame *frame = c->link->unsent;

        c->link->unsent = frame->next;
        if (frame->header.sequence != 0)
            keep_frame(c->peer, frame);
        else
            rbt_frame_destroy(frame);
    }
    c->link->unsent_last = &c->link->unsent;
    c->link->unpacked = NULL;
}

static void on_link_sent(rbt_link *link, rbt_frame *frame)
{
    conn *c = link->context;

    if (frame->header.sequence == 0)
        rbt_frame_destroy(frame);
    else if (rbt_address_is_unix(&link->remote))
        forget(c->peer, frame); /* the system does not lose it while both live */
    else
        keep_frame(c->peer, frame);
}

static void post_to_link(peer_state *peer)
{
    rbt_frame *frame;

    if (peer->conn == NULL || !peer->conn->has_session)
        return;
    frame = take_posted(peer);
    while (frame != NULL) {
        rbt_frame *next = frame->next;

        frame->header.sequence = ++peer->last_sequence;
        rbt_link_send(peer->conn->link, frame);
        frame = next;
    }
}

static void send_session(conn *c)
{
    rbt_hub *hub = c->hub;
    rbt_pack pack = {0};
    char advertised[RBT_ADDRESS_ROOM];

    pthread_mutex_lock(&hub->lock);
    memcpy(advertised, hub->advertised, sizeof advertised);
    pthread_mutex_unlock(&hub->lock);
    rbt_pack_u64(&pack, hub->life);
    rbt_pack_u64(&pack, c->peer != NULL ? c->peer->expected - 1 : 0);
    rbt_pack_text(&pack, advertised);
    rbt_link_send(c->link, rbt_frame_create(RBT_FRAME_SESSION, pack.at, pack.count, NULL, 0));
    rbt_array_free(&pack);
}

static void on_poll(uv_poll_t *poll, int status, int events);
static void broke(conn *c);

/* Looks at what became of a link after something was done with it. */
static void settle(conn *c)
{
    rbt_link *link = c->link;
    unsigned wants = link->wants;

    if (c->is_closing)
        return;
    atomic_fetch_add_explicit(&c->hub->bytes_in, link->bytes_in - c->counted_in, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->hub->bytes_out, link->bytes_out - c->counted_out, memory_order_relaxed);
    c->counted_in = link->bytes_in;
    c->counted_out = link->bytes_out;
    if (c->link->state == RBT_LINK_CLOSED) {
        broke(c);
        return;
    }
    uv_poll_start(&c->poll, (wants & RBT_LINK_READ ? UV_READABLE : 0) | (wants & RBT_LINK_WRITE ? UV_WRITABLE : 0),
                  on_poll);
}

static void take_session(conn *c, const rbt_arrival *arrival);

static void on_link_arrival(rbt_link *link, rbt_arrival *arrival)
{
    conn *c = link->context;
    rbt_hub *hub = c->hub;
    uint8_t kind = arrival->header.kind;

    if (kind == RBT_FRAME_SESSION && !c->has_session) {
        take_session(c, arrival);
        rbt_arrival_deinit(arrival);
        return;
    }
    if (!c->has_session || kind == RBT_FRAME_SESSION) {
        rbt_arrival_deinit(arrival);
        rbt_link_close(link, RBT_E_PROTOCOL, "%s was cut off: it did not say who it is", link->name);
        return;
    }
    c->peer->expected = link->intake.expected;
    release(c->peer, arrival->header.acked < c->peer->last_sequence ? arrival->header.acked : c->peer->last_sequence);
    if (kind == RBT_FRAME_MESSAGE && hub->events.on_message != NULL) {
        rbt_message *message = arrival->message;

        hub->events.on_message(hub->events.context, &c->peer->peer, message);
    } else if (kind == RBT_FRAME_CONTROL && hub->events.on_control != NULL) {
        hub->events.on_control(hub->events.context, &c->peer->peer, arrival);
    } else {
        rbt_arrival_deinit(arrival);
    }
}

static conn *open_conn(rbt_hub *hub, int fd, const rbt_address *remote, bool accepting, peer_state *peer)
{
    conn *c = rbt_alloc(1, sizeof *c);

    hub->config.head_max = atomic_load(&hub->head_max);
    hub->config.body_max = atomic_load(&hub->body_max);
    c->hub = hub;
    c->peer = peer;
    c->since_ns = rbt_now_ns();
    c->link = rbt_link_create(&hub->config, fd, remote, accepting);
    c->link->context = c;
    c->link->on_arrival = on_link_arrival;
    c->link->on_sent = on_link_sent;
    c->poll.data = c;
    c->next = hub->conns;
    hub->conns = c;
    hub->greeting++;
    RBT_ASSERT(uv_poll_init(&hub->loop, &c->poll, fd) == 0);
    return c;
}

/* ------------------------------------------------------------------------------------------------- sessions */

static peer_state *create_peer(rbt_hub *hub)
{
    peer_state *peer = rbt_alloc(1, sizeof *peer);

    peer->peer = (rbt_peer){.hub = hub, .rank = RBT_RANK_NONE, .state = peer};
    peer->unacked_last = &peer->unacked;
    peer->posted_last = &peer->posted;
    peer->expected = 1;
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->room, NULL);
    return peer;
}

static peer_state *find_life(const rbt_hub *hub, uint64_t life)
{
    for (peer_state *peer = hub->peers; peer != NULL; peer = peer->next)
        if (peer->peer.life == life && !peer->is_lost)
            return peer;
    return NULL;
}

/* A caller has said who it is: somebody new, or somebody whose connection broke. */
static void adopt_caller(conn *c, uint64_t life)
{
    rbt_hub *hub = c->hub;
    peer_state *peer = find_life(hub, life);

    if (peer == NULL) {
        peer = create_peer(hub);
        peer->peer.life = life;
        memcpy(peer->peer.name, c->link->name, sizeof c->link->name);
        peer->next = hub->peers;
        hub->peers = peer;
    } else if (peer->conn != NULL) { /* it gave the old one up before we noticed */
        conn *old = peer->conn;

        save_unsent(old);
        old->peer = NULL;
        close_conn(old);
    }
    c->peer = peer;
    peer->conn = c;
    c->link->intake.expected = peer->expected;
}

/* Both know where the other stands: what did not arrive goes out again, in order. */
static void resume(conn *c, uint64_t received)
{
    peer_state *peer = c->peer;
    rbt_frame *frame;

    release(peer, received);
    frame = peer->unacked;
    peer->unacked = NULL;
    peer->unacked_last = &peer->unacked;
    while (frame != NULL) {
        rbt_frame *next = frame->next;

        rbt_link_send(c->link, frame);
        frame = next;
    }
    pthread_mutex_lock(&peer->lock);
    peer->must_sum = c->link->tls == NULL && !rbt_address_is_loopback(&c->link->remote);
    pthread_mutex_unlock(&peer->lock);
    if (peer->broken_ns != 0)
        rbt_log_event(&c->hub->log, RBT_LOG_INFO, "cluster", "the connection to %s is back after %llu ms",
                      peer->peer.name, (unsigned long long)((rbt_now_ns() - peer->broken_ns) / MS));
    peer->broken_ns = 0;
    if (!peer->is_open) {
        peer->is_open = true;
        if (c->hub->events.on_open != NULL)
            c->hub->events.on_open(c->hub->events.context, &peer->peer);
    }
    post_to_link(peer);
}

static void take_session(conn *c, const rbt_arrival *arrival)
{
    rbt_unpack unpack = rbt_unpack_of(arrival->head, arrival->header.head);
    uint64_t life = rbt_unpack_u64(&unpack), received = rbt_unpack_u64(&unpack);
    char advertised[RBT_ADDRESS_ROOM];
    rbt_address address;

    rbt_unpack_text(&unpack, advertised, sizeof advertised);
    if (!rbt_unpack_done(&unpack) || life == 0 || life == c->hub->life) {
        rbt_link_close(c->link, RBT_E_PROTOCOL, "%s was cut off: it did not say who it is", c->link->name);
        return;
    }
    if (c->peer == NULL) {
        adopt_caller(c, life);
        send_session(c);
    } else if (c->peer->peer.life == 0) {
        c->peer->peer.life = life;
    } else if (c->peer->peer.life != life) {
        rbt_link_close(c->link, RBT_E_IO, "the process at %s is another one now", c->link->name);
        c->peer->peer.life = 0;
        return;
    }
    if (received > c->peer->last_sequence) {
        rbt_link_close(c->link, RBT_E_PROTOCOL, "%s was cut off: it has received what nobody sent", c->link->name);
        return;
    }
    if (!c->peer->dials && advertised[0] != '\0' && rbt_address_parse(advertised, 0, &address, NULL) == RBT_OK) {
        c->peer->address = address;
        c->peer->has_address = true;
    }
    c->has_session = true;
    c->hub->greeting--;
    resume(c, received);
}

/* -------------------------------------------------------------------------------------- what can go wrong */

static void lose(rbt_hub *hub, peer_state *peer, const rbt_error *why)
{
    conn *c = peer->conn;

    if (peer->is_lost)
        return;
    if (c != NULL) {
        save_unsent(c);
        c->peer = NULL;
        peer->conn = NULL;
        close_conn(c);
    }
    for (conn *other = hub->conns; other != NULL; other = other->next)
        if (other->peer == peer)
            other->peer = NULL;
    pthread_mutex_lock(&peer->lock);
    peer->is_lost = true;
    pthread_cond_broadcast(&peer->room);
    pthread_mutex_unlock(&peer->lock);
    release(peer, UINT64_MAX);
    for (rbt_frame *frame = take_posted(peer); frame != NULL;) {
        rbt_frame *next = frame->next;

        rbt_frame_destroy(frame);
        frame = next;
    }
    if (hub->events.on_lost != NULL)
        hub->events.on_lost(hub->events.context, &peer->peer, why);
}

/* Asks at its address whether a peer that does not answer lives: a refusal says that it does not. */
static void probe(rbt_hub *hub, peer_state *peer)
{
    int fd;

    if (!peer->has_address || rbt_socket_dial(&peer->address, &fd, NULL) != RBT_OK)
        return;
    conn *c = open_conn(hub, fd, &peer->address, false, peer);

    c->is_probe = true;
    settle(c);
}

static void broke_open(rbt_hub *hub, conn *c, peer_state *peer)
{
    rbt_link *link = c->link;
    rbt_error why = link->why;
    bool is_final = link->said_bye || link->is_ended || rbt_address_is_unix(&link->remote) ||
                    why.code == RBT_E_PROTOCOL || peer->peer.life == 0;

    save_unsent(c);
    peer->conn = NULL;
    c->peer = NULL;
    close_conn(c);
    if (link->said_bye)
        why = (rbt_error){.code = RBT_OK};
    if (is_final) {
        lose(hub, peer, &why);
        return;
    }
    if (peer->broken_ns == 0)
        rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "the connection to %s broke (%s); %s", peer->peer.name,
                      why.text, peer->dials ? "dialling again" : "waiting for it to dial again");
    peer->broken_ns = peer->broken_ns == 0 ? rbt_now_ns() : peer->broken_ns;
    peer->broken_why = why;
    if (peer->dials)
        dial(hub, peer);
    else
        probe(hub, peer);
}

/* A connection has ended, for whatever reason. */
static void broke(conn *c)
{
    rbt_hub *hub = c->hub;
    peer_state *peer = c->peer;
    rbt_error why = c->link->why;

    if (c->is_probe) {
        bool is_dead = peer != NULL && peer->broken_ns != 0 && peer->conn == NULL &&
                       strstr(why.text, strerror(ECONNREFUSED)) != NULL;

        c->peer = NULL;
        close_conn(c);
        if (is_dead)
            lose(hub, peer, &peer->broken_why);
        return;
    }
    if (peer == NULL) {
        if (!c->link->is_ended || why.code == RBT_E_PROTOCOL) /* callers that only look in are no news */
            rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "%s", why.text);
        close_conn(c);
        return;
    }
    if (c->has_session) {
        broke_open(hub, c, peer);
        return;
    }
    /* it never stood: a first call, or a call back */
    peer->conn = NULL;
    c->peer = NULL;
    close_conn(c);
    uint64_t now = rbt_now_ns();
    uint64_t until = peer->is_open ? peer->broken_ns + (uint64_t)RBT_SILENCE_MS * MS : peer->patience_until_ns;
    bool refused = peer->is_open && strstr(why.text, strerror(ECONNREFUSED)) != NULL;

    if (why.code != RBT_E_IO || now >= until || refused)
        lose(hub, peer, peer->is_open ? &peer->broken_why : &why);
    else
        peer->broken_why = why; /* the tick dials again */
}

/* ---------------------------------------------------------------------------------------- dialling, listening */

static void dial(rbt_hub *hub, peer_state *peer)
{
    rbt_error error;
    int fd;

    if (rbt_socket_dial(&peer->address, &fd, &error) != RBT_OK) {
        if (rbt_now_ns() >= peer->patience_until_ns)
            lose(hub, peer, &error);
        return;
    }
    peer->conn = open_conn(hub, fd, &peer->address, false, peer);
    peer->conn->link->intake.expected = peer->expected;
    settle(peer->conn);
}

static void on_caller(uv_poll_t *poll, int status, int events)
{
    listener *l = poll->data;

    (void)status;
    (void)events;
    for (;;) {
        rbt_address from;
        rbt_error error;
        int fd = -1;

        if (rbt_socket_accept(l->fd, &fd, &from, &error) != RBT_OK || fd < 0)
            return;
        if (l->hub->greeting >= GREETING_MOST) {
            close(fd);
            continue;
        }
        settle(open_conn(l->hub, fd, &from, true, NULL));
    }
}

/* ---------------------------------------------------------------------------------------------------- the loop */

/* Says what has been received, when there is much of it or it has waited. */
static void acknowledge(conn *c, bool is_tick)
{
    rbt_link *link = c->link;
    uint64_t received = link->intake.expected - 1, untold = received - link->acked;

    if (link->state != RBT_LINK_OPEN || untold == 0 || rbt_address_is_unix(&link->remote))
        return;
    if (!is_tick && untold < ACK_FRAMES && link->bytes_in - c->acked_bytes < ACK_BYTES)
        return;
    c->acked_bytes = link->bytes_in;
    rbt_link_say(link, RBT_FRAME_ACK);
}

static void flush_peer(peer_state *peer)
{
    conn *c = peer->conn;

    if (c == NULL || !c->has_session)
        return;
    post_to_link(peer);
    rbt_link_flush(c->link);
    settle(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    conn *c = poll->data;
    rbt_link *link = c->link;
    unsigned ready = (events & UV_READABLE ? RBT_LINK_READ : 0) | (events & UV_WRITABLE ? RBT_LINK_WRITE : 0);
    bool was_open = link->state == RBT_LINK_OPEN;

    if (c->is_closing)
        return;
    if (status < 0) /* an error on the socket: reading tells which */
        ready |= RBT_LINK_READ;
    rbt_link_step(link, ready);
    if (!was_open && link->state == RBT_LINK_OPEN) {
        if (c->is_probe) {
            rbt_link_close(link, RBT_E_IO, "it lives");
        } else if (!link->accepting) {
            send_session(c);
        }
        rbt_link_step(link, RBT_LINK_READ);
    }
    if (c->is_closing)
        return;
    if (c->peer != NULL && c->has_session)
        post_to_link(c->peer);
    acknowledge(c, false);
    rbt_link_flush(link);
    settle(c);
}

static void take_new(rbt_hub *hub)
{
    peer_state *peer;
    listener *l;

    pthread_mutex_lock(&hub->lock);
    peer = hub->new_peers;
    hub->new_peers = NULL;
    l = hub->new_listeners;
    hub->new_listeners = NULL;
    pthread_mutex_unlock(&hub->lock);
    while (peer != NULL) {
        peer_state *next = peer->next;

        peer->next = hub->peers;
        hub->peers = peer;
        dial(hub, peer);
        peer = next;
    }
    while (l != NULL) {
        listener *next = l->next;

        l->next = hub->listeners;
        hub->listeners = l;
        l->poll.data = l;
        RBT_ASSERT(uv_poll_init(&hub->loop, &l->poll, l->fd) == 0);
        uv_poll_start(&l->poll, UV_READABLE, on_caller);
        l = next;
    }
}

static void on_listener_closed(uv_handle_t *handle)
{
    listener *l = handle->data;

    close(l->fd);
    rbt_free(l);
}

/* Everything is said: closes what is open. */
static void shut(rbt_hub *hub)
{
    while (hub->listeners != NULL) {
        listener *l = hub->listeners;

        hub->listeners = l->next;
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    }
    while (hub->conns != NULL) {
        conn *c = hub->conns;

        if (c->peer != NULL && c->peer->conn == c) {
            save_unsent(c);
            c->peer->conn = NULL;
        }
        close_conn(c);
    }
    if (!uv_is_closing((uv_handle_t *)&hub->wake))
        uv_close((uv_handle_t *)&hub->wake, NULL);
    if (!uv_is_closing((uv_handle_t *)&hub->tick))
        uv_close((uv_handle_t *)&hub->tick, NULL);
}

/* Has a peer still something to be sent, or to acknowledge? */
static bool is_busy(peer_state *peer)
{
    bool has_posted;

    pthread_mutex_lock(&peer->lock);
    has_posted = peer->posted != NULL; /* since the peers were last flushed */
    pthread_mutex_unlock(&peer->lock);
    return peer->conn != NULL && peer->conn->has_session &&
           (has_posted || peer->conn->link->unsent != NULL || peer->unacked != NULL ||
            peer->conn->link->words.count > 0);
}

static void stop_when_quiet(rbt_hub *hub)
{
    bool busy = false;

    if (!atomic_load(&hub->stopping))
        return;
    for (peer_state *peer = hub->peers; peer != NULL; peer = peer->next)
        busy = busy || is_busy(peer);
    if (busy && rbt_now_ns() < hub->stop_at_ns)
        return;
    for (peer_state *peer = hub->peers; peer != NULL; peer = peer->next)
        if (peer->conn != NULL && peer->conn->has_session) {
            rbt_link_say(peer->conn->link, RBT_FRAME_BYE);
            rbt_link_flush(peer->conn->link);
        }
    shut(hub);
}

static void on_wake(uv_async_t *async)
{
    rbt_hub *hub = async->data;

    take_new(hub);
    for (conn *c = hub->conns; c != NULL; c = c->next) {
        c->link->intake.head_max = atomic_load(&hub->head_max);
        c->link->intake.body_max = atomic_load(&hub->body_max);
    }
    for (peer_state *peer = hub->peers, *next; peer != NULL; peer = next) {
        bool must_cut;

        next = peer->next;
        pthread_mutex_lock(&peer->lock);
        must_cut = peer->must_cut;
        peer->must_cut = false;
        pthread_mutex_unlock(&peer->lock);
        flush_peer(peer);
        if (must_cut)
            lose(hub, peer, &peer->cut_why);
    }
    stop_when_quiet(hub);
}

static void check_peer(rbt_hub *hub, peer_state *peer, uint64_t now)
{
    if (peer->is_lost)
        return;
    if (peer->conn != NULL) {
        acknowledge(peer->conn, true);
        flush_peer(peer);
        return;
    }
    if (peer->broken_ns != 0 && now > peer->broken_ns + (uint64_t)RBT_SILENCE_MS * MS)
        lose(hub, peer, &peer->broken_why);
    else if (peer->dials)
        dial(hub, peer);
}

static void on_tick(uv_timer_t *timer)
{
    rbt_hub *hub = timer->data;
    uint64_t now = rbt_now_ns();

    for (conn *c = hub->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->has_session && now > c->since_ns + (uint64_t)GREETING_MS * MS) {
            rbt_link_close(c->link, RBT_E_IO, "%s did not greet within %d s", c->link->name, GREETING_MS / 1000);
            broke(c);
            break; /* the list may have changed */
        }
    }
    for (peer_state *peer = hub->peers, *next; peer != NULL; peer = next) {
        next = peer->next;
        check_peer(hub, peer, now);
    }
    if (hub->events.on_tick != NULL && !atomic_load(&hub->stopping))
        hub->events.on_tick(hub->events.context);
    stop_when_quiet(hub);
}

static void *serve(void *argument)
{
    rbt_hub *hub = argument;

    uv_run(&hub->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ----------------------------------------------------------------------------------------- for other threads */

rbt_err rbt_hub_create(const rbt_link_config *config, const rbt_hub_events *events, const rbt_log *log, rbt_hub **out,
                       rbt_error *error)
{
    rbt_hub *hub = rbt_alloc(1, sizeof *hub);
    uint8_t nonce[RBT_KEY_NONCE];
    rbt_err err = rbt_key_nonce(nonce, error);

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
    RBT_ASSERT(uv_loop_init(&hub->loop) == 0);
    hub->wake.data = hub->tick.data = hub;
    RBT_ASSERT(uv_async_init(&hub->loop, &hub->wake, on_wake) == 0);
    RBT_ASSERT(uv_timer_init(&hub->loop, &hub->tick) == 0);
    uv_timer_start(&hub->tick, on_tick, TICK_MS, TICK_MS);
    if (pthread_create(&hub->thread, NULL, serve, hub) != 0) {
        shut(hub);
        uv_run(&hub->loop, UV_RUN_DEFAULT);
        uv_loop_close(&hub->loop);
        rbt_free(hub);
        return rbt_fail(error, RBT_E_LIMIT, "the system refused a thread for the network");
    }
    *out = hub;
    return RBT_OK;
}

static void destroy_peer(peer_state *peer)
{
    rbt_frame *lists[] = {peer->unacked, peer->posted};

    for (size_t i = 0; i < 2; i++)
        while (lists[i] != NULL) {
            rbt_frame *frame = lists[i];

            lists[i] = frame->next;
            rbt_frame_destroy(frame);
        }
    pthread_mutex_destroy(&peer->lock);
    pthread_cond_destroy(&peer->room);
    rbt_free(peer);
}

void rbt_hub_destroy(rbt_hub *hub, uint64_t grace_ms)
{
    if (hub == NULL)
        return;
    hub->stop_at_ns = rbt_now_ns() + grace_ms * MS;
    atomic_store(&hub->stopping, true);
    uv_async_send(&hub->wake);
    pthread_join(hub->thread, NULL);
    RBT_ASSERT(uv_loop_close(&hub->loop) == 0);
    while (hub->peers != NULL) {
        peer_state *peer = hub->peers;

        hub->peers = peer->next;
        destroy_peer(peer);
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
    listener *l = rbt_alloc(1, sizeof *l);
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
    uv_async_send(&hub->wake);
    return RBT_OK;
}

void rbt_hub_advertise(rbt_hub *hub, const rbt_address *address)
{
    pthread_mutex_lock(&hub->lock);
    rbt_address_text(address, hub->advertised);
    pthread_mutex_unlock(&hub->lock);
}

rbt_peer *rbt_hub_dial(rbt_hub *hub, const rbt_address *address, uint32_t rank, uint64_t patience_ms)
{
    peer_state *peer = create_peer(hub);

    peer->dials = true;
    peer->address = *address;
    peer->has_address = true;
    peer->peer.rank = rank;
    peer->patience_until_ns = rbt_now_ns() + patience_ms * MS;
    rbt_address_text(address, peer->peer.name);
    pthread_mutex_lock(&hub->lock);
    peer->next = hub->new_peers;
    hub->new_peers = peer;
    pthread_mutex_unlock(&hub->lock);
    uv_async_send(&hub->wake);
    return &peer->peer;
}

void rbt_hub_send(rbt_peer *to, rbt_frame *frame)
{
    peer_state *peer = to->state;
    bool was_empty, must_sum;

    pthread_mutex_lock(&peer->lock);
    must_sum = peer->must_sum;
    pthread_mutex_unlock(&peer->lock);
    if (must_sum)
        rbt_frame_sum_body(frame);
    pthread_mutex_lock(&peer->lock);
    if (peer->is_lost) {
        pthread_mutex_unlock(&peer->lock);
        rbt_frame_destroy(frame);
        return;
    }
    was_empty = peer->posted == NULL;
    frame->next = NULL;
    *peer->posted_last = frame;
    peer->posted_last = &frame->next;
    peer->queued += frame->n + (size_t)frame->header.body;
    pthread_mutex_unlock(&peer->lock);
    if (was_empty)
        uv_async_send(&to->hub->wake);
}

void rbt_hub_wait_room(rbt_peer *to)
{
    peer_state *peer = to->state;

    pthread_mutex_lock(&peer->lock);
    while (peer->queued >= RBT_QUEUE_MOST && !peer->is_lost)
        pthread_cond_wait(&peer->room, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
}

size_t rbt_hub_queued(rbt_peer *to)
{
    peer_state *peer = to->state;
    size_t queued;

    pthread_mutex_lock(&peer->lock);
    queued = peer->queued;
    pthread_mutex_unlock(&peer->lock);
    return queued;
}

void rbt_hub_cut(rbt_peer *to, const rbt_error *why)
{
    peer_state *peer = to->state;

    pthread_mutex_lock(&peer->lock);
    peer->must_cut = true;
    peer->cut_why = *why;
    pthread_mutex_unlock(&peer->lock);
    uv_async_send(&to->hub->wake);
}

void rbt_hub_expect(rbt_hub *hub, uint64_t head_max, uint64_t body_max)
{
    atomic_store(&hub->head_max, head_max);
    atomic_store(&hub->body_max, body_max);
    uv_async_send(&hub->wake);
}

void rbt_hub_traffic(const rbt_hub *hub, uint64_t *out, uint64_t *in)
{
    *out = atomic_load_explicit(&((rbt_hub *)hub)->bytes_out, memory_order_relaxed);
    *in = atomic_load_explicit(&((rbt_hub *)hub)->bytes_in, memory_order_relaxed);
}
