/* Stochastic dual coordinate ascent: one dual variable per row and decision value, one at a time set to its optimum with
 * the others fixed, while w = sum of dual variables times rows / (l2 * rows) is kept along. Needs l2 above 0 and no step
 * size.
 *
 * With l1 the vector kept is the one before soft-thresholding by l1/l2. The biases are not regularised, and so have no place in
 * the dual: during a pass they are, and are pulled towards where they were before it; then the pull begins from where they
 * are (the method of multipliers, whose limit is free of the pull). Threads without locks lose additions, and the vector drifts
 * away from what the dual variables say: rbt_sdca_restore puts it together anew. Called by shared.c. Proved by
 * tests/unit/test_sdca.c.
 */
#ifndef RBT_SOLVE_SDCA_H
#define RBT_SOLVE_SDCA_H

#include "solve/walk.h"

#define RBT_SDCA_ROW_BYTES (2 * sizeof(float)) /* kept for each row and class */

/* A bias: where it is by the dual variables, towards where it is pulled, and the mean of these variables, 0 at the optimum. */
typedef struct rbt_sdca_bias {
    double now, center, mean;
} rbt_sdca_bias;

typedef struct rbt_sdca {
    const rbt_problem *problem;
    float *dual;           /* rows * outputs */
    float *q;              /* per row (|x|^2 + pull) / (l2 * rows) */
    float *z;              /* rows * outputs: decision values without biases, of the last pass that looked at them */
    double pull;           /* biases are as the weight of a feature with this square; 0: there are none */
    rbt_sdca_bias *biases; /* per output */
    double from, next;     /* the dual objective of this pass and of the next when they begin, ... */
    bool fell;             /* ... which became smaller: steps were made on parameters that were too old */
} rbt_sdca;

rbt_err rbt_sdca_init(rbt_sdca *sdca, const rbt_problem *problem, rbt_team *team, rbt_error *error);
void rbt_sdca_deinit(rbt_sdca *sdca);

/* Makes the walk take these steps. */
void rbt_sdca_attach(rbt_sdca *sdca, rbt_walk *walk);

/* Before a pass: the biases with which it is made. */
void rbt_sdca_begin(rbt_sdca *sdca, float *w);

/* After a pass: sets the biases of `w` (the vector before thresholding) to what the dual variables say, and answers with the
 * objective. `gap` tells how far it can be above the optimum: at most, where there are no biases and given that `w` is what the
 * dual variables say (rbt_sdca_restore); else about (proof.h has a bound). */
double rbt_sdca_settle(rbt_sdca *sdca, float *w, rbt_team *team, double *gap);

/* Puts the vector together from the dual variables; the biases stay. */
void rbt_sdca_restore(const rbt_sdca *sdca, float *w, rbt_team *team);

/* The parameters that the vector stands for. */
void rbt_sdca_parameters(const rbt_sdca *sdca, const float *w, float *parameters);

#endif
