/* Connections that break, and peers that are lost: what is final, what is dialled again, whom to ask whether it lives. The contract is
 * in hub.h; all runs on the hub's thread, called by peers.c and hub.c. Always: a peer is lost once, and nothing of it is kept then.
 * Proved by tests/unit/test_hub_local.c and tests/cluster/test_processes_loss.sh. */
#include "runtime/cluster/hub_state.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"

#define SILENT_MS 2500 /* an acknowledgement of the other host that is so late never comes */

void rbt_remote_lose(rbt_hub *hub, rbt_remote_state *peer, const rbt_error *why)
{
    rbt_conn *c = peer->conn;

    if (peer->is_lost)
        return;
    if (c != NULL) {
        rbt_conn_save_unsent(c);
        c->peer = NULL;
        peer->conn = NULL;
        rbt_conn_close(c);
    }
    for (rbt_conn *other = hub->conns; other != NULL; other = other->next)
        if (other->peer == peer)
            other->peer = NULL;
    pthread_mutex_lock(&peer->lock);
    peer->is_lost = true;
    pthread_cond_broadcast(&peer->room);
    pthread_mutex_unlock(&peer->lock);
    rbt_remote_drop_frames(peer);
    if (hub->events.on_lost != NULL && !hub->parting)
        hub->events.on_lost(hub->events.context, &peer->peer, why);
}

void rbt_remote_part(rbt_hub *hub, rbt_remote_state *peer)
{
    bool is_apart = peer->conn == NULL || !peer->conn->has_session, parts;

    pthread_mutex_lock(&peer->lock);
    parts = peer->must_part;
    pthread_mutex_unlock(&peer->lock);
    if (!parts || peer->has_parted || peer->is_lost || (!is_apart && rbt_remote_is_busy(peer)))
        return;
    pthread_mutex_lock(&peer->lock);
    parts = peer->must_part && (is_apart || peer->posted == NULL); /* what is posted from now on is dropped */
    peer->has_parted = parts;
    pthread_mutex_unlock(&peer->lock);
    if (parts && is_apart) {
        rbt_remote_lose(hub, peer, &(rbt_error){.code = RBT_OK});
    } else if (parts) {
        rbt_link_say(peer->conn->link, RBT_FRAME_BYE);
        rbt_remote_flush(peer); /* the other side closes */
    }
}

/* Asks at its address whether a peer that does not answer lives: a refusal says that it does not. */
static void probe(rbt_hub *hub, rbt_remote_state *peer)
{
    int fd;

    if (!peer->has_address || rbt_socket_dial(&peer->address, &fd, NULL) != RBT_OK)
        return;
    rbt_conn *c = rbt_conn_open(hub, fd, &peer->address, false, peer);

    c->is_probe = true;
    rbt_conn_settle(c);
}

/* Is this what the system said? The text of an error has its words, whichever layer met it. */
static bool says(const rbt_error *why, int system_error)
{
    return strstr(why->text, strerror(system_error)) != NULL;
}

/* There is more for the other process than it takes: has nothing come from its host for long? The host's own keep-alive sends a segment
 * a second, whatever the process does, as long as we read what that has to say. The probes of our system say less: they become rare. */
static bool is_cut_off(rbt_conn *c, const rbt_tcp_state *state, uint64_t now)
{
    if (state->segments_in != c->segments || state->unsent == 0 || c->link->is_held) {
        c->segments = state->segments_in;
        c->segment_ns = now;
    }
    return now > c->segment_ns + (uint64_t)SILENT_MS * RBT_NS_PER_MS;
}

/* Over TCP: does the other host owe us an acknowledgement for long, or is it gone while its process did not read? A process that is stopped
 * has a host that answers. */
bool rbt_conn_is_silent(rbt_conn *c, uint64_t now)
{
    rbt_tcp_state state;

    if (rbt_address_is_unix(&c->link->remote) || !rbt_socket_state(c->link->fd, &state))
        return false;
    return is_cut_off(c, &state, now) || (state.unacked > 0 && state.ack_age_ms > SILENT_MS);
}

static void broke_open(rbt_hub *hub, rbt_conn *c, rbt_remote_state *peer)
{
    rbt_link *link = c->link;
    rbt_error why = link->why;
    bool is_final = link->said_bye || peer->has_parted || link->is_ended || rbt_address_is_unix(&link->remote) ||
                    why.code == RBT_E_PROTOCOL || why.code == RBT_E_MEMORY || hub->parting || says(&why, ETIMEDOUT);

    rbt_conn_save_unsent(c);
    peer->conn = NULL;
    c->peer = NULL;
    rbt_conn_close(c);
    if (link->said_bye) {
        pthread_mutex_lock(&peer->lock);
        peer->has_parted = true;
        pthread_mutex_unlock(&peer->lock);
    }
    if (peer->has_parted)
        why = (rbt_error){.code = RBT_OK};
    if (is_final) {
        rbt_remote_lose(hub, peer, &why);
        return;
    }
    if (peer->broken_ns == 0)
        rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "the connection to %s broke (%s); %s", peer->peer.name,
                      why.text, peer->dials ? "dialling again" : "waiting for it to dial again");
    peer->broken_ns = peer->broken_ns == 0 ? rbt_now_ns() : peer->broken_ns;
    peer->broken_why = why;
    if (peer->dials)
        rbt_remote_dial(hub, peer);
    else
        probe(hub, peer);
}

/* Until when a peer without a connection may get one. */
uint64_t rbt_remote_patience_end(const rbt_remote_state *peer)
{
    return peer->is_open ? peer->broken_ns + (uint64_t)RBT_SILENCE_MS * RBT_NS_PER_MS : peer->patience_until_ns;
}

/* A connection has ended, for whatever reason. */
void rbt_conn_broke(rbt_conn *c)
{
    rbt_hub *hub = c->hub;
    rbt_remote_state *peer = c->peer;
    rbt_error why = c->link->why;

    if (c->is_probe) {
        bool is_dead = peer != NULL && peer->broken_ns != 0 && peer->conn == NULL && says(&why, ECONNREFUSED);

        c->peer = NULL;
        rbt_conn_close(c);
        if (is_dead)
            rbt_remote_lose(hub, peer, &peer->broken_why);
        return;
    }
    if (peer == NULL) {
        bool is_told = c->link->ring_why.code != RBT_OK || (c->link->is_ended && why.code != RBT_E_PROTOCOL);

        if (!is_told) /* callers that only look in are no news */
            rbt_callers_tell(hub, "%s", why.text);
        rbt_conn_close(c);
        return;
    }
    if (c->has_session) {
        broke_open(hub, c, peer);
        return;
    }
    /* it never stood: a first call, or a call back */
    peer->conn = NULL;
    c->peer = NULL;
    rbt_conn_close(c);
    bool refused = peer->is_open && says(&why, ECONNREFUSED);

    if (why.code != RBT_E_IO || rbt_now_ns() >= rbt_remote_patience_end(peer) || refused)
        rbt_remote_lose(hub, peer, peer->is_open && why.code == RBT_E_IO ? &peer->broken_why : &why);
    else
        peer->broken_why = why; /* the tick dials again */
}
