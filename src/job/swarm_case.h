/* One seed of the swarm: what it draws, and how it is run and checked in the simulator. Called by swarm.c. */
#ifndef RBT_JOB_SWARM_CASE_H
#define RBT_JOB_SWARM_CASE_H

#include "rubato.h"

/* Runs the job the seed stands for. `summary` receives a line that says what was drawn and how it went. */
rbt_err rbt_swarm_case(uint64_t seed, char *summary, size_t room, rbt_error *error);

#endif
