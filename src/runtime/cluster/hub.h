/* The hub: all connections of a process, served by one thread of its own.
 *
 * A peer is another process, as long as it lives. Frames sent to a peer arrive once, in order, or the peer is lost: over
 * TCP they are kept until they are acknowledged, and when a connection breaks while both processes live, the one that
 * dialled dials again and both go on behind the last frame received. A peer is lost
 *   - at once, when its process has ended: the system says so on a Unix socket, and by an end of file or, asked again at
 *     its address, by a refusal on TCP;
 *   - within 3 s, when its host is silent (keep-alive, rbt_conn_is_silent) or does not come back;
 *   - when it breaks the protocol, speaks under another life's name, or says goodbye.
 * Sending takes no time; who sends much asks rbt_hub_wait_room, which waits when a peer's queue is full. What is sent during
 * on_control, on_message and on_room to the very peer is an answer; a peer that provokes answers and does not read them is
 * cut off: without a rank at RBT_UNREAD_MOST, else at twice RBT_QUEUE_MOST and the largest body.
 *
 * The events run on the hub's thread, one at a time. Proved by tests/unit/test_hub_local.c and test_hub_refusals_local.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_HUB_H
#define RBT_RUNTIME_CLUSTER_HUB_H

#include <stdatomic.h>

#include "base/log.h"
#include "runtime/cluster/link.h"

#define RBT_RANK_NONE  UINT32_MAX
#define RBT_QUEUE_MOST ((size_t)32 << 20) /* bytes for one peer; a worker that finds more waits ... */
#define RBT_QUEUE_LOW  ((size_t)16 << 20) /* ... until there are fewer than these: not woken for every frame */
#define RBT_UNREAD_MOST                                                                                                \
    ((size_t)64 << 10)      /* bytes of answers to a caller without a rank that it has not read; then it is cut off */
#define RBT_SILENCE_MS 3000 /* a peer that is not heard of so long after its connection broke is lost */

typedef struct rbt_hub rbt_hub;

typedef struct rbt_remote {
    rbt_hub *hub;
    uint32_t rank;  /* set by whoever knows it; RBT_RANK_NONE before */
    uint64_t life;  /* the other process; another one has another */
    uint64_t heard; /* bytes that have come from it; the hub's thread's */
    char name[RBT_ADDRESS_ROOM + 32];
    void *context;
    atomic_uint holders;            /* who uses it on other threads than the hub's: it is not forgotten meanwhile */
    struct rbt_remote_state *state; /* the hub's own */
} rbt_remote;

typedef struct rbt_hub_events {
    void (*on_open)(void *context, rbt_remote *peer); /* the first connection to a peer stands */
    void (*on_control)(void *context, rbt_remote *peer, rbt_arrival *arrival); /* takes it */
    void (*on_message)(void *context, rbt_remote *peer, rbt_message *message); /* takes it */
    void (*on_room)(void *context, rbt_remote *peer); /* its queue has become shorter than RBT_QUEUE_LOW */
    void (*on_lost)(void *context, rbt_remote *peer, const rbt_error *why); /* RBT_OK: it said goodbye */
    void (*on_tick)(void *context);                                         /* ten times a second */
    void *context;
} rbt_hub_events;

/* Begins to serve. The configuration is copied; its body_max may be raised later with rbt_hub_expect. */
rbt_err rbt_hub_create(const rbt_link_config *config, const rbt_hub_events *events, const rbt_log *log, rbt_hub **hub,
                       rbt_error *error);

/* Says goodbye to all peers, lets what was sent go out (as far as they take it within `grace_ms`), and ends the thread. */
void rbt_hub_destroy(rbt_hub *hub, uint64_t grace_ms);

uint64_t rbt_hub_life(const rbt_hub *hub);

/* Listens; may be called for several addresses. `advertised` is what other processes will be told: they ask there whether
 * we live. */
rbt_err rbt_hub_listen(rbt_hub *hub, const rbt_address *address, rbt_address *bound, rbt_error *error);
void rbt_hub_advertise(rbt_hub *hub, const rbt_address *address);

/* Dials. on_open follows, or on_lost; a refusal by the network is tried again for `patience_ms`. */
rbt_remote *rbt_hub_dial(rbt_hub *hub, const rbt_address *address, uint32_t rank, uint64_t patience_ms);

/* Takes the frame. To a peer that is lost it is dropped. */
void rbt_hub_send(rbt_remote *peer, rbt_frame *frame);

/* Takes the message, squeezes it (comm/squeeze.h) and sends it; how many bytes it took, without the frame around it. */
size_t rbt_hub_send_message(rbt_remote *peer, rbt_message *message, unsigned codec);

/* Waits until the peer's queue has room, or it is lost, or nobody is to wait any more. Not on the hub's thread. */
void rbt_hub_wait_room(rbt_remote *peer);

/* Whoever waits for room goes on, and nobody waits from now on: what is sent is of no account any more. */
void rbt_hub_free_waiters(rbt_hub *hub);

/* A sentence for the log about somebody who is not known; of very many only some are said. On the hub's thread. */
void rbt_callers_tell(rbt_hub *hub, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes that wait to be sent to a peer, or for its word that they have come. */
size_t rbt_hub_queued(rbt_remote *peer);

/* Cuts a peer off; on_lost follows with this reason. */
void rbt_hub_cut(rbt_remote *peer, const rbt_error *why);

/* Says goodbye to a peer of which nothing is wanted any more, when all that was sent has arrived; on_lost follows with RBT_OK, there and
 * here. It may be dialled again. Staying takes that back, if it is not too late: then what is sent from now on is dropped, until
 * on_lost. */
void rbt_hub_part(rbt_remote *peer);
void rbt_hub_stay(rbt_remote *peer);

/* Reads nothing more from a peer, or again: what it sends waits on its side, but for what the system takes. Its end is noticed
 * all the same. On the hub's thread. */
void rbt_hub_hold(rbt_remote *peer);
void rbt_hub_resume(rbt_remote *peer);

/* The rings that this process writes to have so many bytes from now on; 0: none, where they are not a must. On the hub's thread, or
 * before anybody calls or is dialled. */
void rbt_hub_share(rbt_hub *hub, size_t ring_bytes);

/* Frames may have heads and bodies of this size from now on, on new connections and old. */
void rbt_hub_expect(rbt_hub *hub, uint64_t head_max, uint64_t body_max);

/* Bytes sent to and received from all peers. */
void rbt_hub_traffic(const rbt_hub *hub, uint64_t *out, uint64_t *in);

#endif
