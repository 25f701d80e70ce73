/* AD-PSGD (Lian et al., ICML 2018), one of the baselines that Hop is compared with: at the end of an iteration a peer averages
 * with one neighbour, drawn at random, and with nobody else.
 *
 * The graph is bipartite: one side asks, the other answers. Who asks sends its parameters and waits for the answer, so that they
 * do not change meanwhile; who answers averages at once, when the question comes, whatever its worker is doing, and sends the
 * average back: both then have the same snapshot. Nobody who answers ever waits, so there is no circle of waiting. The sum of both
 * is what it was (but for rounding); a question that comes twice is answered once; one to a neighbour that has left is given up.
 *
 * Pure, like all nodes; part of the peer (peer.h), whose parameters it changes. Proved by tests/unit/test_gossip.c and, with
 * faults, by the swarm.
 */
#ifndef RBT_NODE_GOSSIP_H
#define RBT_NODE_GOSSIP_H

#include "base/rng.h"
#include "node/topology.h"

struct rbt_peer;

typedef struct rbt_gossip {
    rbt_rng rng;
    bool asks;          /* its side of the graph */
    uint64_t asked;     /* questions so far */
    uint32_t partner;   /* whose answer is awaited; UINT32_MAX: nobody's */
    uint64_t *answered; /* per worker: its questions that were answered */
    uint64_t averaged;  /* times its parameters were */
} rbt_gossip;

void rbt_gossip_init(rbt_gossip *gossip, const rbt_topology *topology, uint32_t worker);
void rbt_gossip_deinit(rbt_gossip *gossip);

/* The iteration is over: one who asks draws a neighbour that has not left, if there is one, and asks. */
void rbt_gossip_begin(struct rbt_peer *peer, rbt_env *env);

/* Has the answer come, or cannot any more? */
bool rbt_gossip_is_over(struct rbt_peer *peer);

/* A question or an answer. */
void rbt_gossip_handle(struct rbt_peer *peer, const rbt_message *message, rbt_env *env);

#endif
