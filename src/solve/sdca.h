/* Stochastic dual coordinate ascent: one dual variable per row and decision value, one at a time set to its optimum with
 * the others fixed, while w = sum of dual variables times rows / (l2 * rows) is kept along. Needs l2 above 0 and no step
 * size.
 *
 * With l1 the vector kept is the one before soft-thresholding by l1/l2. The biases, which are not regularised and so
 * have no place in the dual, are set to their optimum after each pass (the hinge's: moved towards it), and passes near the end
 * are made with biases ahead of that. Threads without locks lose additions, and the vector drifts away from what the dual
 * variables say: rbt_sdca_restore puts it together anew. Called by shared.c. Proved by tests/unit/test_sdca.c.
 */
#ifndef RBT_SOLVE_SDCA_H
#define RBT_SOLVE_SDCA_H

#include "solve/walk.h"

#define RBT_SDCA_ROW_BYTES (2 * sizeof(float)) /* kept for each row and class */

/* Where a bias was in a pass and in the one before, the objective's slope along it there (with the best weights for each), and
 * where it is in the next. */
typedef struct rbt_sdca_bias {
    double now, past;
    double slope, past_slope;
    double next;
} rbt_sdca_bias;

typedef struct rbt_sdca {
    const rbt_problem *problem;
    float *dual;           /* rows * outputs */
    float *q;              /* per row |x|^2 / (l2 * rows) */
    float *z;              /* rows * outputs: decision values without biases, of the last pass that looked at them */
    uint64_t settled;      /* hinge: passes so far, ... */
    double bias_step;      /* ... how far the bias moved, ... */
    bool bias_rose;        /* ... and where to */
    bool ahead;            /* other losses: the next pass is made with the biases to which the slopes point, ... */
    double gap;            /* ... after this gap; ... */
    unsigned setback;      /* ... not in so many passes after it was larger the last time, ... */
    unsigned rest;         /* ... of which these are left */
    rbt_sdca_bias *biases; /* other losses: per output */
} rbt_sdca;

rbt_err rbt_sdca_init(rbt_sdca *sdca, const rbt_problem *problem, rbt_team *team, rbt_error *error);
void rbt_sdca_deinit(rbt_sdca *sdca);

/* Makes the walk take these steps. */
void rbt_sdca_attach(rbt_sdca *sdca, rbt_walk *walk);

/* Before a pass: the biases with which it is made. */
void rbt_sdca_begin(rbt_sdca *sdca, float *w);

/* After a pass: sets the biases of `w` (the vector before thresholding) to their optimum, and answers with the objective.
 * `gap` tells how far, with these biases, it can at most be above the optimum: the distance to the dual objective, given
 * that `w` is what the dual variables say (rbt_sdca_restore). */
double rbt_sdca_settle(rbt_sdca *sdca, float *w, rbt_team *team, double *gap);

/* Puts the vector together from the dual variables; the biases stay. */
void rbt_sdca_restore(const rbt_sdca *sdca, float *w, rbt_team *team);

/* The parameters that the vector stands for. */
void rbt_sdca_parameters(const rbt_sdca *sdca, const float *w, float *parameters);

#endif
