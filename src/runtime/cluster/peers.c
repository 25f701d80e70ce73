/* The peers of a hub: their queues, connections and sessions. How they are lost: broken.c. The contract is in hub.h; all runs on
 * the hub's thread. Proved by tests/unit/test_hub_local.c. */
#include "runtime/cluster/hub_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"

#define ACK_FRAMES   8 /* so many frames, or so many bytes, are acknowledged at once; fewer with the next tick */
#define ACK_BYTES    (256u << 10)
#define ANSWERS_MOST 16 /* that wait for the end of what is being heard: who asked has something to do meanwhile */

/* -------------------------------------------------------------------------------------------------- queues */

static void account(rbt_remote_state *peer, size_t bytes)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->queued >= RBT_QUEUE_LOW && peer->queued - bytes < RBT_QUEUE_LOW) {
        pthread_cond_broadcast(&peer->room);
        peer->has_room = true;
    }
    peer->queued -= bytes;
    pthread_mutex_unlock(&peer->lock);
}

/* What a frame counts for in the queue: small ones take more memory than they have bytes. */
size_t rbt_frame_weight(const rbt_frame *frame)
{
    return sizeof *frame + frame->n + (size_t)frame->header.body;
}

/* All up to this number has arrived. */
static void release(rbt_remote_state *peer, uint64_t acked)
{
    size_t bytes = 0;

    while (peer->unacked != NULL && peer->unacked->header.sequence <= acked) {
        rbt_frame *frame = peer->unacked;

        peer->unacked = frame->next;
        if (peer->unacked == NULL)
            peer->unacked_last = &peer->unacked;
        bytes += rbt_frame_weight(frame);
        peer->owed -= frame->is_answer ? rbt_frame_weight(frame) : 0;
        rbt_frame_destroy(frame);
    }
    if (bytes > 0)
        account(peer, bytes);
}

static void keep_frame(rbt_remote_state *peer, rbt_frame *frame)
{
    frame->next = NULL;
    *peer->unacked_last = frame;
    peer->unacked_last = &frame->next;
}

static rbt_frame *take_posted(rbt_remote_state *peer)
{
    rbt_frame *first;

    pthread_mutex_lock(&peer->lock);
    first = peer->posted;
    peer->posted = NULL;
    peer->posted_last = &peer->posted;
    pthread_mutex_unlock(&peer->lock);
    return first;
}

void rbt_remote_drop_frames(rbt_remote_state *peer)
{
    release(peer, UINT64_MAX);
    for (rbt_frame *frame = take_posted(peer); frame != NULL;) {
        rbt_frame *next = frame->next;

        rbt_frame_destroy(frame);
        frame = next;
    }
}

/* -------------------------------------------------------------------------------------------- connections */

static void destroy_conn(rbt_conn *c)
{
    rbt_link_destroy(c->link);
    rbt_free(c);
}

static void on_conn_closed(uv_handle_t *handle)
{
    destroy_conn(handle->data);
}

void rbt_conn_close(rbt_conn *c)
{
    rbt_hub *hub = c->hub;

    if (c->is_closing)
        return;
    c->is_closing = true;
    for (rbt_conn **at = &hub->conns; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    hub->greeting -= c->link->accepting && !c->has_session;
    if (!c->is_polled) {
        destroy_conn(c);
        return;
    }
    rbt_uv.uv_poll_stop(&c->poll);
    shutdown(c->link->fd, SHUT_RDWR); /* now, not when the loop gets round to it */
    rbt_uv.uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

/* What the link has not sent is kept for the next one. */
void rbt_conn_save_unsent(rbt_conn *c)
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
    rbt_conn *c = link->context;

    if (frame->header.sequence == 0)
        rbt_frame_destroy(frame);
    else if (rbt_address_is_unix(&link->remote)) { /* the system does not lose it while both live */
        account(c->peer, rbt_frame_weight(frame));
        c->peer->owed -= frame->is_answer ? rbt_frame_weight(frame) : 0;
        rbt_frame_destroy(frame);
    } else
        keep_frame(c->peer, frame);
}

static void post_to_link(rbt_remote_state *peer)
{
    rbt_frame *frame;

    if (peer->conn == NULL || !peer->conn->has_session)
        return;
    peer->answers = 0;
    frame = take_posted(peer);
    while (frame != NULL) {
        rbt_frame *next = frame->next;

        frame->header.sequence = ++peer->last_sequence;
        rbt_link_send(peer->conn->link, frame);
        frame = next;
    }
}

static void send_session(rbt_conn *c)
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

static void tell_room(rbt_remote_state *peer)
{
    rbt_hub *hub = peer->peer.hub;

    peer->has_room = false;
    if (hub->events.on_room == NULL || hub->parting)
        return;
    hub->answering = peer;
    hub->events.on_room(hub->events.context, &peer->peer);
    hub->answering = NULL;
    rbt_uv.uv_async_send(&hub->wake); /* for its answers */
}

/* Looks at what became of a link after something was done with it. */
void rbt_conn_settle(rbt_conn *c)
{
    rbt_link *link = c->link;
    unsigned wants = link->wants;

    if (c->is_closing)
        return;
    atomic_fetch_add_explicit(&c->hub->bytes_in, link->bytes_in - c->counted_in, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->hub->bytes_out, link->bytes_out - c->counted_out, memory_order_relaxed);
    if (c->peer != NULL)
        c->peer->peer.heard += link->bytes_in - c->counted_in;
    c->counted_in = link->bytes_in;
    c->counted_out = link->bytes_out;
    if (link->ring_why.code != RBT_OK && c->hub->config.rings == RBT_RINGS_AUTO) {
        c->hub->config.rings = RBT_RINGS_OFF; /* for all connections to come: it is said once */
        rbt_log_event(&c->hub->log, RBT_LOG_WARNING, "cluster", "going on over Unix sockets alone: %s",
                      link->ring_why.text);
    }
    if (c->link->state == RBT_LINK_CLOSED) {
        rbt_conn_broke(c);
        return;
    }
    if (c->peer != NULL && c->peer->has_room)
        tell_room(c->peer);
    if (wants == c->wants) /* asking again costs two calls of the system */
        return;
    c->wants = wants;
    rbt_uv.uv_poll_start(&c->poll,
                         (wants & RBT_LINK_READ ? UV_READABLE : 0) | (wants & RBT_LINK_WRITE ? UV_WRITABLE : 0) |
                             (link->is_held ? UV_DISCONNECT : 0), /* who does not read sees no end either */
                         on_poll);
}

static void take_session(rbt_conn *c, const rbt_arrival *arrival);

/* What a connection may bring at once: little, as long as nobody knows whose it is. */
static void set_limits(rbt_conn *c)
{
    rbt_intake *intake = &c->link->intake;
    uint64_t most = c->hub->config.stranger_max;

    intake->head_max = atomic_load(&c->hub->head_max);
    intake->body_max = atomic_load(&c->hub->body_max);
    if (most == 0 || (c->peer != NULL && c->peer->peer.rank != RBT_RANK_NONE))
        return;
    intake->head_max = most < intake->head_max ? most : intake->head_max;
    intake->body_max = most < intake->body_max ? most : intake->body_max;
}

/* Somebody who reads is never so far behind: pulls are not answered while its queue is full, and all else is small. */
static void check_owed(const rbt_conn *c)
{
    const rbt_hub *hub = c->hub;
    bool is_stranger = hub->config.stranger_max != 0 && c->peer->peer.rank == RBT_RANK_NONE;
    uint64_t most = is_stranger ? RBT_UNREAD_MOST : 2 * RBT_QUEUE_MOST + atomic_load(&((rbt_hub *)hub)->body_max);

    if (c->peer->owed > most)
        rbt_link_close(c->link, RBT_E_PROTOCOL, "%s was cut off: it speaks and does not read the answers",
                       c->peer->peer.name);
}

static void on_link_arrival(rbt_link *link, rbt_arrival *arrival)
{
    rbt_conn *c = link->context;
    rbt_hub *hub = c->hub;
    uint8_t kind = arrival->header.kind;
    bool is_stranger;

    if (kind == RBT_FRAME_SESSION && !c->has_session) {
        take_session(c, arrival);
        set_limits(c);
        rbt_arrival_deinit(arrival);
        return;
    }
    if (!c->has_session || kind == RBT_FRAME_SESSION) {
        rbt_arrival_deinit(arrival);
        rbt_link_close(link, RBT_E_PROTOCOL, "%s was cut off: it did not say who it is", link->name);
        return;
    }
    is_stranger = c->peer->peer.rank == RBT_RANK_NONE;
    if (kind == RBT_FRAME_BYE)
        rbt_link_close(link, RBT_E_IO, "%s said goodbye", link->name);
    c->peer->expected = link->intake.expected;
    release(c->peer, arrival->header.acked < c->peer->last_sequence ? arrival->header.acked : c->peer->last_sequence);
    hub->answering = c->peer;
    if (kind == RBT_FRAME_MESSAGE && hub->events.on_message != NULL) {
        rbt_message *message = arrival->message;

        hub->events.on_message(hub->events.context, &c->peer->peer, message);
    } else if (kind == RBT_FRAME_CONTROL && hub->events.on_control != NULL) {
        hub->events.on_control(hub->events.context, &c->peer->peer, arrival);
    } else {
        rbt_arrival_deinit(arrival);
    }
    hub->answering = NULL;
    if (is_stranger)
        set_limits(c); /* it may have a rank by now */
    check_owed(c);
    if (c->peer->answers >= ANSWERS_MOST && link->state == RBT_LINK_OPEN) {
        post_to_link(c->peer);
        rbt_link_flush(link);
    }
}

rbt_conn *rbt_conn_open(rbt_hub *hub, int fd, const rbt_address *remote, bool accepting, rbt_remote_state *peer)
{
    rbt_conn *c = rbt_alloc(1, sizeof *c);
    int failed = rbt_uv.uv_poll_init(&hub->loop, &c->poll, fd);

    c->hub = hub;
    c->peer = peer;
    c->since_ns = rbt_now_ns();
    c->link = rbt_link_create(&hub->config, fd, remote, accepting);
    c->link->context = c;
    c->link->on_arrival = on_link_arrival;
    c->link->on_sent = on_link_sent;
    set_limits(c);
    c->poll.data = c;
    c->next = hub->conns;
    hub->conns = c;
    hub->greeting += accepting;
    c->is_polled = failed == 0;
    if (!c->is_polled)
        rbt_link_close_broken(c->link, "waiting for", -failed);
    return c;
}

/* ------------------------------------------------------------------------------------------------- sessions */

rbt_remote_state *rbt_remote_create(rbt_hub *hub)
{
    rbt_remote_state *peer = rbt_alloc(1, sizeof *peer);

    peer->peer.hub = hub;
    peer->peer.rank = RBT_RANK_NONE;
    peer->peer.state = peer;
    peer->unacked_last = &peer->unacked;
    peer->posted_last = &peer->posted;
    peer->expected = 1;
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->room, NULL);
    pthread_mutex_init(&peer->squeezing, NULL);
    return peer;
}

void rbt_remote_destroy(rbt_remote_state *peer)
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
    pthread_mutex_destroy(&peer->squeezing);
    rbt_keys_deinit(&peer->keys_sent);
    rbt_keys_deinit(&peer->keys_received);
    rbt_free(peer);
}

static rbt_remote_state *find_life(const rbt_hub *hub, uint64_t life)
{
    for (rbt_remote_state *peer = hub->peers; peer != NULL; peer = peer->next)
        if (peer->peer.life == life && !(peer->is_lost && peer->has_parted)) /* after a goodbye it begins anew */
            return peer;
    return NULL;
}

/* A caller has said who it is: somebody new, or somebody whose connection broke. False: somebody we gave up. */
static bool adopt_caller(rbt_conn *c, uint64_t life)
{
    rbt_hub *hub = c->hub;
    rbt_remote_state *peer = find_life(hub, life);

    if (peer == NULL) {
        peer = rbt_remote_create(hub);
        peer->peer.life = life;
        memcpy(peer->peer.name, c->link->name, sizeof c->link->name);
        peer->next = hub->peers;
        hub->peers = peer;
    } else if (peer->is_lost) {
        rbt_link_close(c->link, RBT_E_PROTOCOL, "%s was cut off: it was given up before and comes too late",
                       c->link->name);
        return false;
    } else if (peer->dials || (peer->conn != NULL && rbt_address_is_unix(&peer->conn->link->remote))) {
        /* whom we dialled does not call, and a Unix socket does not break while both live */
        rbt_link_close(c->link, RBT_E_PROTOCOL, "%s was cut off: it speaks under another one's name", c->link->name);
        return false;
    } else if (peer->conn != NULL) { /* it gave the old one up before we noticed */
        rbt_conn *old = peer->conn;

        rbt_conn_save_unsent(old);
        old->peer = NULL;
        rbt_conn_close(old);
    }
    c->peer = peer;
    peer->conn = c;
    c->link->intake.expected = peer->expected;
    c->link->intake.keys = &peer->keys_received;
    if (peer->is_held)
        rbt_link_hold(c->link);
    return true;
}

/* Both know where the other stands: what did not arrive goes out again, in order. */
static void resume(rbt_conn *c, uint64_t received)
{
    rbt_remote_state *peer = c->peer;
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
    atomic_store(&peer->must_sum, c->link->must_sum);
    if (peer->broken_ns != 0)
        rbt_log_event(&c->hub->log, RBT_LOG_INFO, "cluster", "the connection to %s is back after %llu ms",
                      peer->peer.name, (unsigned long long)((rbt_now_ns() - peer->broken_ns) / RBT_NS_PER_MS));
    peer->broken_ns = 0;
    if (!peer->is_open) {
        peer->is_open = true;
        if (c->hub->events.on_open != NULL)
            c->hub->events.on_open(c->hub->events.context, &peer->peer);
    }
    post_to_link(peer);
}

static void take_session(rbt_conn *c, const rbt_arrival *arrival)
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
        if (!adopt_caller(c, life))
            return;
        send_session(c);
    } else if (c->peer->peer.life == 0) {
        c->peer->peer.life = life;
    } else if (c->peer->peer.life != life) {
        rbt_link_close(c->link, RBT_E_PROTOCOL, "the process at %s is another one now", c->link->name);
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
    c->hub->greeting -= c->link->accepting;
    resume(c, received);
}

/* ------------------------------------------------------------------------------------------------ the traffic */

void rbt_remote_dial(rbt_hub *hub, rbt_remote_state *peer)
{
    rbt_error error;
    int fd;

    if (rbt_socket_dial(&peer->address, &fd, &error) != RBT_OK) {
        if (rbt_now_ns() >= rbt_remote_patience_end(peer))
            rbt_remote_lose(hub, peer, peer->is_open ? &peer->broken_why : &error);
        return;
    }
    peer->conn = rbt_conn_open(hub, fd, &peer->address, false, peer);
    peer->conn->link->intake.expected = peer->expected;
    peer->conn->link->intake.keys = &peer->keys_received;
    rbt_conn_settle(peer->conn);
}

/* Says what has been received, when there is much of it or it has waited. */
void rbt_conn_acknowledge(rbt_conn *c, bool is_tick)
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

void rbt_remote_flush(rbt_remote_state *peer)
{
    rbt_conn *c = peer->conn;

    if (c == NULL || !c->has_session)
        return;
    post_to_link(peer);
    rbt_link_flush(c->link);
    rbt_conn_settle(c);
}

void rbt_remote_resume(rbt_remote_state *peer)
{
    rbt_conn *c = peer->conn;

    if (!peer->may_resume)
        return;
    peer->may_resume = peer->is_held = false;
    if (c == NULL || c->is_closing || !c->link->is_held)
        return;
    set_limits(c);
    rbt_link_resume(c->link);
    on_poll(&c->poll, 0, UV_READABLE);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    rbt_conn *c = poll->data;
    rbt_link *link = c->link;
    unsigned ready = (events & UV_READABLE ? RBT_LINK_READ : 0) | (events & UV_WRITABLE ? RBT_LINK_WRITE : 0);
    bool was_open = link->state == RBT_LINK_OPEN;

    if (c->is_closing)
        return;
    if (status < 0) { /* an error on the socket: reading tells which; the poll has been stopped */
        events |= UV_DISCONNECT;
        c->wants = 0;
    }
    set_limits(c);                /* whoever knows of a new limit may use it */
    if (events & UV_DISCONNECT) { /* what it has said is still there */
        ready |= RBT_LINK_READ;
        rbt_link_resume(link);
    }
    rbt_link_step(link, ready);
    if (!was_open && link->state == RBT_LINK_OPEN) {
        if (c->is_probe) {
            rbt_link_close(link, RBT_E_IO, "it lives");
        } else if (!link->accepting) {
            send_session(c);
        }
        rbt_link_step(link, RBT_LINK_READ);
    }
    if (!c->is_closing) {
        if (c->peer != NULL && c->has_session)
            post_to_link(c->peer);
        rbt_conn_acknowledge(c, false);
        rbt_link_flush(link);
        rbt_conn_settle(c);
    }
    rbt_hub_stop_when_quiet(c->hub);
}
