/* A peer: a worker that trains without servers (Hop; docs/protocols.md, section 6).
 *
 * Every peer has its own copy of the parameters. An iteration sends it to the out-neighbours, computes an update, takes
 * what the in-neighbours sent, averages, and adds the update; in serial order the update is added before sending. One
 * receive and one reduce serve all variants; what differs is which of the updates that have come are taken, when there
 * are enough, and what each weighs:
 *
 *   standard     the update of this iteration from every in-neighbour, all alike
 *   backup       of this iteration, all but `backup` of them, and whatever else of it has come
 *   staleness    from every in-neighbour the newest that is at most s iterations old, the newer the heavier
 *   both         all but `backup` in-neighbours must have such a one
 *
 * Tokens bound how far a peer gets ahead of its out-neighbours: it enters iteration k when each has entered k - max_gap.
 * A peer that sees its out-neighbours far ahead may skip iterations. NOTIFY-ACK sends only when the last one was used.
 * All-reduce and AD-PSGD, the baselines, are in allreduce.h and gossip.h.
 *
 * Like all nodes it is pure: none of the functions waits; the runtime asks again when messages have come. They are handled
 * when they come, also while the worker computes. What holds always is asserted: the update queue's bound, and that nobody
 * takes a token that is not there. The bounds between
 * peers that are not neighbours are checked by the simulator. Proved by tests/unit/test_peer.c, tests/sim/test_hop.c and
 * the swarm.
 */
#ifndef RBT_NODE_PEER_H
#define RBT_NODE_PEER_H

#include "node/allreduce.h"
#include "node/gossip.h"
#include "node/mix.h"
#include "sync/token_queue.h"
#include "sync/update_queue.h"

/* What a peer knows of a neighbour; the peer itself is its own in-neighbour. */
typedef struct rbt_neighbour {
    uint32_t worker;
    bool is_in, is_out;
    bool gone;   /* it has left, or was lost: nobody waits for it */
    bool untold; /* out: a repair has given us to it, and it has not told where it is: its tokens do not bind yet */
    rbt_token_queue tokens; /* out: TokenQ(it -> us) */
    uint64_t used;          /* out, NOTIFY-ACK: how many of our updates it has used */
    uint64_t since;         /* in: it sends from this iteration on; UINT64_MAX: a new neighbour, not heard of yet */
    double weight;          /* in, after a repair: what its update counts */
    rbt_update_queue came;  /* in */
} rbt_neighbour;

#define RBT_PEER_LEFT   UINT64_MAX
#define RBT_PEER_SPARES 2 /* former parameters whose memory is used again */

typedef struct rbt_peer {
    const rbt_topology *topology;
    uint32_t worker;
    rbt_node node;
    uint32_t view;
    bool stopping;      /* the master asked to end */
    bool retired;       /* it has left */
    uint64_t iteration; /* the one it is in */
    rbt_snap *x;        /* the parameters at its beginning (parallel order), or with this iteration's update (serial) */
    bool has_sent;      /* in this iteration */
    bool *is_lost;      /* per worker: it has left the job, as the master tells */
    uint64_t *missed;   /* per worker: came before we knew it as a neighbour, up to this iteration, and was dropped;
                           RBT_PEER_LEFT: it said by then that it leaves */
    bool mended;        /* somebody was lost: averages are weighted so that all peers that are left count alike */
    RBT_ARRAY(rbt_neighbour) neighbours; /* ascending; all in- and out-neighbours, itself among them */
    rbt_snap *spares[RBT_PEER_SPARES];
    uint64_t sent;       /* messages with parameters */
    uint64_t withheld;   /* not sent, because the receiver was past them */
    uint64_t discarded;  /* came too late, or was jumped over: never used */
    uint64_t skipped;    /* iterations */
    uint64_t peak_queue; /* updates that waited at the same time */
    uint64_t staleness_seen[RBT_STALENESS_BINS];
    uint64_t staleness_sum;          /* of all updates taken; the last bin does not tell */
    uint64_t taken;                  /* updates of others that are in averages */
    RBT_ARRAY(rbt_message *) asking; /* pulls of observers that want a later iteration */
    rbt_allreduce ring;              /* all-reduce: no neighbours, this instead */
    rbt_gossip gossip;               /* AD-PSGD: neighbours, but no queues */
} rbt_peer;

/* Parameters are n numbers, zero at first. */
void rbt_peer_init(rbt_peer *peer, const rbt_topology *topology, uint32_t worker, uint32_t n);
void rbt_peer_deinit(rbt_peer *peer);
void rbt_peer_handle(rbt_peer *peer, rbt_message *message, rbt_env *env);

/* May the parameters be sent now (NOTIFY-ACK)? Then sends them to the out-neighbours that are not past this iteration. */
bool rbt_peer_may_send(const rbt_peer *peer);
void rbt_peer_send(rbt_peer *peer, rbt_env *env);

/* Has enough come? Then fills `mix` in: what is to be averaged is held, so that the averaging itself needs the peer no more. */
bool rbt_peer_reduce(rbt_peer *peer, rbt_mix *mix, rbt_env *env);

/* Takes new parameters over (with its reference); the memory of the old ones is used again when nobody else holds them. */
void rbt_peer_take(rbt_peer *peer, rbt_snap *x);

/* Parameters to be filled: memory that was used before, if there is any; NULL: there is none at all. */
rbt_snap *rbt_peer_blank(rbt_peer *peer);

/* Do the tokens let it enter the next iteration? Then enters it. */
bool rbt_peer_may_enter(const rbt_peer *peer);
void rbt_peer_enter(rbt_peer *peer, rbt_env *env);

/* How many iterations it may jump over now, by tokens, limit and trigger; 0: none. To jump: rbt_peer_skip to that iteration's
 * predecessor, reduce, take, and enter. */
uint64_t rbt_peer_jump(const rbt_peer *peer);
void rbt_peer_skip(rbt_peer *peer, uint64_t iterations, rbt_env *env);

/* For whom it waits: the worker whose update, token or chunk is missing; UINT32_MAX: nobody in particular. */
uint32_t rbt_peer_waits_for(const rbt_peer *peer);

/* Leaves: neighbours do not wait for it any more; observers get its last parameters. */
void rbt_peer_retire(rbt_peer *peer, rbt_env *env);

/* AD-PSGD: an update is added to the parameters; rbt_gossip_begin then asks somebody to average. Have all neighbours left? */
void rbt_peer_add(rbt_peer *peer, const float *update, float factor);
bool rbt_peer_is_alone(const rbt_peer *peer);

/* ------------------------------------------------------------------------------ for peer_members.c and gossip.c */

rbt_neighbour *rbt_peer_find(const rbt_peer *peer, uint32_t worker); /* NULL: no neighbour */
rbt_neighbour *rbt_peer_meet(rbt_peer *peer, uint32_t worker);       /* a new one if there is none */

/* The master's news: those that are lost are not waited for, and what they passed on goes directly. */
void rbt_peer_handle_view(rbt_peer *peer, const rbt_message *message);

static inline bool rbt_peer_is_self(const rbt_peer *peer, const rbt_neighbour *n)
{
    return n->worker == peer->worker;
}

#endif
