/* The master: who is in the job (views), which version is stable (partition-synchronised dyn), when to stop.
 *
 * A pure state machine like the server. Its state is soft: everything in it was told by others and can be told again.
 * It is not on the path of a push or a pull, except that a partition-synchronised pull asks it for the version first.
 * Proved by tests/unit/test_master.c and by the swarm.
 */
#ifndef RBT_NODE_MASTER_H
#define RBT_NODE_MASTER_H

#include "node/topology.h"

typedef struct rbt_master {
    const rbt_topology *topology;
    uint32_t view;
    rbt_member *members; /* per worker */
    bool *left;          /* per worker: a view has told everybody that it left */
    uint64_t *slowest;   /* per server: as reported */
    uint64_t *version;   /* per server: as reported */
    RBT_ARRAY(rbt_message *) asking;
    RBT_ARRAY(uint64_t) asking_since_ns;
    bool stopping;
    bool has_target;
    double target;
    uint64_t reached_clock; /* the clock after which the target was reached; RBT_UNBOUNDED before */
} rbt_master;

void rbt_master_init(rbt_master *master, const rbt_topology *topology);
void rbt_master_deinit(rbt_master *master);
void rbt_master_handle(rbt_master *master, rbt_message *message, rbt_env *env);

#endif
