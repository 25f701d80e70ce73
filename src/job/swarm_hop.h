/* A seed of the swarm that stands for a job without servers: a random graph, a variant of Hop, stragglers, faults. Called by
 * swarm_case.c. */
#ifndef RBT_JOB_SWARM_HOP_H
#define RBT_JOB_SWARM_HOP_H

#include "rubato.h"

/* Every second seed does. */
bool rbt_swarm_is_hop(uint64_t seed);

rbt_err rbt_swarm_hop_case(uint64_t seed, char *summary, size_t room, rbt_error *error);

#endif
