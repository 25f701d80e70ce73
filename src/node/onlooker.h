/* An onlooker: the observer of a job without servers. It asks every peer for its parameters once that has come to an
 * iteration, and has then a picture of all: their mean is what the job has learned so far. Peers that end or are lost
 * leave their last picture. Pure, like all nodes. Proved by tests/unit/test_peer_members.c and tests/sim/test_hop.c. */
#ifndef RBT_NODE_ONLOOKER_H
#define RBT_NODE_ONLOOKER_H

#include "node/topology.h"

typedef struct rbt_pose { /* of one peer */
    rbt_snap *x;          /* NULL: none yet */
    uint64_t iteration;
    uint64_t skipped; /* of these iterations, those it has jumped over */
    bool has_ended;   /* these are its last parameters */
    bool is_lost;
    bool is_asked; /* an answer is under way */
} rbt_pose;

typedef struct rbt_onlooker {
    const rbt_topology *topology;
    rbt_node node;
    uint32_t view;
    uint32_t n; /* parameters */
    uint64_t last_request;
    rbt_pose *poses; /* per worker */
} rbt_onlooker;

void rbt_onlooker_init(rbt_onlooker *onlooker, const rbt_topology *topology, uint32_t n);
void rbt_onlooker_deinit(rbt_onlooker *onlooker);
void rbt_onlooker_handle(rbt_onlooker *onlooker, rbt_message *message);

/* Is every peer at least in that iteration, or at its end? If not, asks those that have not been asked. */
bool rbt_onlooker_look(rbt_onlooker *onlooker, uint64_t iteration, rbt_env *env);

/* Have all ended? */
bool rbt_onlooker_is_over(const rbt_onlooker *onlooker);

/* How many peers have parameters that count: not those that were lost before their end. */
uint32_t rbt_onlooker_peers(const rbt_onlooker *onlooker);

/* The mean of all peers' parameters, and the root mean square of their distances from it; zero if none count. */
void rbt_onlooker_mean(const rbt_onlooker *onlooker, float *mean, double *spread);

#endif
