/* How far dual coordinate ascent is above the optimum, at most: a proof, also with biases.
 *
 * The biases are not penalised, so dual variables are a lower bound only where they add up to 0 for each of them, and on the
 * way they do not quite. Here they are brought there, and the objective of the parameters is compared with what these
 * say: true whatever the parameters are, drifted or not. Takes a pass. Called by shared.c when the end may be near.
 * Proved by tests/unit/test_sdca.c.
 */
#ifndef RBT_SOLVE_PROOF_H
#define RBT_SOLVE_PROOF_H

#include "solve/sdca.h"

/* The objective, which is that of some parameters, less what no parameters come below; INFINITY without the memory to tell. */
double rbt_sdca_prove(const rbt_sdca *sdca, double objective, rbt_team *team);

#endif
