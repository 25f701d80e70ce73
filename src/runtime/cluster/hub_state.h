/* What hub.c, peers.c, broken.c and callers.c share: the hub's own view of itself, its peers and their connections. A connection is a link with a
 * libuv handle; a peer outlives its connections. Only what stands under a lock or is atomic is touched by other threads;
 * all else belongs to the hub's thread. */
#ifndef RBT_RUNTIME_CLUSTER_HUB_STATE_H
#define RBT_RUNTIME_CLUSTER_HUB_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/cluster/hub.h"
#include "runtime/cluster/libuv.h"
#include "runtime/cluster/vigil.h"

#define RBT_NS_PER_MS 1000000u

typedef struct rbt_conn {
    struct rbt_conn *next;
    rbt_hub *hub;
    rbt_link *link;
    uv_poll_t poll;
    struct rbt_remote_state *peer; /* NULL: a caller that has not said who it is */
    bool is_probe;                 /* asks whether the peer's process lives, nothing else */
    bool is_polled;                /* the system took it; who is not is closed at once */
    bool is_closing;
    bool has_session; /* the other side has said who it is */
    unsigned wants;   /* what the poll has been asked for */
    uint64_t since_ns;
    uint64_t acked_bytes;             /* link->bytes_in at the last acknowledgement */
    uint64_t counted_in, counted_out; /* of the link's bytes, in the hub's sums */
    uint32_t segments;                /* of TCP that have come ... */
    uint64_t segment_ns;              /* ... and when the last one was seen */
} rbt_conn;

typedef struct rbt_remote_state {
    rbt_remote peer;
    struct rbt_remote_state *next;
    bool dials;
    bool is_open; /* has been, once */
    bool has_address;
    rbt_address address; /* where we dial, or where it says it listens */
    rbt_conn *conn;      /* NULL: none at the moment */
    uint64_t patience_until_ns;
    uint64_t broken_ns; /* when the connection broke; 0: it has not */
    rbt_error broken_why;
    bool is_held;                       /* nothing is read from it ... */
    bool may_resume;                    /* ... but is with the next wake */
    rbt_frame *unacked, **unacked_last; /* gone out, and kept */
    size_t answers;                     /* posted while it is being heard, and not handed to the link */
    size_t owed;                        /* bytes of answers that it has not read */
    bool has_room;                      /* its queue has become short */
    uint64_t last_sequence;
    uint64_t expected;      /* of the next frame from it */
    rbt_keys keys_received; /* lists of keys that frames up to that one have brought */

    pthread_mutex_t lock;
    rbt_frame *posted, **posted_last; /* under the lock */
    bool is_lost;                     /* under the lock; set by the hub */
    bool must_cut;                    /* under the lock */
    bool must_part;                   /* under the lock: goodbye is to be said when all has arrived ... */
    bool has_parted;      /* ... has been said, by whomever: nobody minds its end, and it may come back; set under it */
    rbt_error cut_why;    /* under the lock */
    atomic_bool must_sum; /* frames have their checksums worked out by who sends them */
    pthread_cond_t room;
    size_t queued; /* bytes, under the lock */

    pthread_mutex_t squeezing; /* held from squeezing with lists of keys to posting; before `lock` */
    rbt_keys keys_sent;        /* under it: lists of keys that posted frames bring */
} rbt_remote_state;

typedef struct rbt_listener {
    struct rbt_listener *next;
    rbt_hub *hub;
    int fd;
    bool is_paused; /* the system refused to take a call; the tick tries again ... */
    bool is_told;   /* ... which is said once, until it has taken one */
    uv_poll_t poll;
} rbt_listener;

struct rbt_hub {
    rbt_link_config config;
    rbt_hub_events events;
    rbt_log log;
    uint64_t life;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    pthread_t thread;
    _Atomic(pthread_t) self;           /* the same, said by itself */
    const rbt_remote_state *answering; /* whose words are being heard; the hub's thread's */
    rbt_vigil vigil;
    atomic_bool stopping;
    atomic_bool is_free; /* nobody waits for room */
    bool parting;        /* goodbye has been said; waits for the others to close */
    uint64_t stop_at_ns;
    atomic_ullong bytes_out, bytes_in;
    _Atomic uint64_t head_max, body_max;

    pthread_mutex_t lock; /* for the lists that other threads add to */
    rbt_remote_state *new_peers;
    rbt_listener *new_listeners;
    char advertised[RBT_ADDRESS_ROOM];

    rbt_remote_state *peers;
    rbt_listener *listeners;
    rbt_conn *conns;
    size_t greeting;   /* callers that do */
    unsigned notes;    /* about callers, since ... */
    uint64_t notes_ns; /* ... then */
};

/* ------------------------------------------------------------------------------------- peers.c, broken.c */

rbt_remote_state *rbt_remote_create(rbt_hub *hub);
void rbt_remote_destroy(rbt_remote_state *peer);
void rbt_remote_dial(rbt_hub *hub, rbt_remote_state *peer);
void rbt_remote_flush(rbt_remote_state *peer);              /* sends what has been posted */
void rbt_remote_resume(rbt_remote_state *peer);             /* reads again, if it may */
void rbt_remote_part(rbt_hub *hub, rbt_remote_state *peer); /* goodbye, when it is not busy */
void rbt_remote_drop_frames(rbt_remote_state *peer);        /* what was posted, and what was not acknowledged */
void rbt_remote_lose(rbt_hub *hub, rbt_remote_state *peer, const rbt_error *why); /* on_lost follows at once */
uint64_t rbt_remote_patience_end(const rbt_remote_state *peer); /* until when one without a connection may get one */
size_t rbt_frame_weight(const rbt_frame *frame);                /* what it counts for in a queue */

/* To be settled next: one that the system does not take is closed then. */
rbt_conn *rbt_conn_open(rbt_hub *hub, int fd, const rbt_address *remote, bool accepting, rbt_remote_state *peer);
void rbt_conn_close(rbt_conn *c);
void rbt_conn_settle(rbt_conn *c); /* looks at what became of a link after something was done with it */
void rbt_conn_broke(rbt_conn *c);  /* it has ended, for whatever reason */
bool rbt_conn_is_silent(rbt_conn *c, uint64_t now); /* asked at every tick: the other host does not answer any more */
void rbt_conn_save_unsent(rbt_conn *c);
void rbt_conn_acknowledge(rbt_conn *c, bool is_tick); /* says what has been received, when there is much or it waited */

/* ---------------------------------------------------------------------------------------------- callers.c */

void rbt_callers_make_room(rbt_hub *hub); /* for one more that greets */
void rbt_callers_tick(rbt_hub *hub, uint64_t now_ns);

/* -------------------------------------------------------------------------------------------------- hub.c */

bool rbt_remote_is_busy(rbt_remote_state *peer); /* has still something to be sent, or to acknowledge */

void rbt_hub_stop_when_quiet(rbt_hub *hub);

#endif
