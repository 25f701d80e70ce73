/* Sums around a ring: every worker hands in a vector and all end with the sum, bit by bit the same.
 *
 * The vector is cut into as many chunks as there are workers. For n - 1 steps each worker passes a chunk on to the next
 * one, which adds its own part; then for n - 1 steps the finished chunks go round. A worker sends and receives 2 (n - 1)/n
 * of the vector, whatever n. Everybody waits for everybody, and a worker that is lost stops all: the baseline that Hop is
 * compared with. Pure, like all nodes; used by peer.c. Proved by tests/unit/test_allreduce.c. */
#ifndef RBT_NODE_ALLREDUCE_H
#define RBT_NODE_ALLREDUCE_H

#include "node/topology.h"

typedef struct rbt_allreduce {
    const rbt_topology *topology;
    uint32_t worker;
    float *sum; /* the caller's vector, while one is under way */
    size_t n;
    uint64_t round;
    uint32_t step;                 /* of 2 (workers - 1) */
    bool has_sent;                 /* this step's chunk */
    RBT_ARRAY(rbt_message *) came; /* chunks that have come and are not taken yet: of this step or later ones */
} rbt_allreduce;

void rbt_allreduce_init(rbt_allreduce *all, const rbt_topology *topology, uint32_t worker);
void rbt_allreduce_deinit(rbt_allreduce *all);

/* Hands in a vector of the same length at every worker; it becomes the sum. */
void rbt_allreduce_begin(rbt_allreduce *all, float *values, size_t n);

/* Goes as far as what has come allows; true when the sum is there. */
bool rbt_allreduce_go_on(rbt_allreduce *all, uint32_t view, rbt_env *env);

void rbt_allreduce_handle(rbt_allreduce *all, rbt_message *message); /* takes it */

#endif
