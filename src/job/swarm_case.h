/* One seed of the swarm: what it draws, and how it is run and checked in the simulator. Called by swarm.c. */
#ifndef RBT_JOB_SWARM_CASE_H
#define RBT_JOB_SWARM_CASE_H

#include "base/rng.h"
#include "runtime/sim.h"

#define EVENTS_MAX 1000000 /* a run takes a few thousand; more is going round in circles */

/* Runs the job the seed stands for: with servers, or without (swarm_hop.h). `summary` receives a line that says what was
 * drawn and how it went. */
rbt_err rbt_swarm_case(uint64_t seed, char *summary, size_t room, rbt_error *error);

/* What every case draws: links, costs and faults; stragglers, or NULL. */
void rbt_swarm_draw_sim(rbt_sim_options *sim, uint64_t seed, rbt_rng *rng);
const char *rbt_swarm_draw_stragglers(rbt_rng *rng);
unsigned rbt_swarm_draw_codec(uint64_t seed); /* comm/squeeze.h */

#endif
