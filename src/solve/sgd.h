/* Stochastic gradient steps, one row at a time: plain, with momentum, AdaGrad, Adam, averaged.
 *
 * Regularisation is lazy: a row's step also takes the step of the penalties for the features the row has, made larger
 * by rows / rows with that feature, so that over a pass every feature gets its share and a step costs the row's
 * non-zeros only. The penalties' part is solved for (a proximal step), not followed: it is stable for any rate, and l1
 * makes zeros: true ones where it is above what single rows ask for, else nearly (sdca's are all true). A bias is a
 * feature of value 1 in every row: beside features of small values (tf-idf) its steps would drown the rest in noise, so
 * it is learned like a feature whose square is the mean of the squares of the data's values, at most 1. Called by
 * shared.c, rate.c and the workers' inner loop in src/job. Proved by tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_SGD_H
#define RBT_SOLVE_SGD_H

#include "solve/walk.h"

typedef enum rbt_optimizer {
    RBT_OPTIMIZER_AUTO,
    RBT_OPTIMIZER_SGD,
    RBT_OPTIMIZER_MOMENTUM,
    RBT_OPTIMIZER_ADAGRAD,
    RBT_OPTIMIZER_ADAM,
    RBT_OPTIMIZER_ASGD,
    RBT_OPTIMIZER_SDCA,
    RBT_OPTIMIZER_NEWTON,
} rbt_optimizer;

#define RBT_ADAGRAD_FLOOR 1e-8F /* added under the root */
#define RBT_ADAM_FIRST    0.9F
#define RBT_ADAM_SECOND   0.999F
#define RBT_ADAM_FLOOR    1e-8F

typedef struct rbt_sgd {
    const rbt_problem *problem;
    rbt_optimizer optimizer;
    float momentum;
    double rate;    /* of this pass; before the first one none */
    double bias;    /* steps of the biases are smaller by this: as those of a feature of typical size */
    float *share;   /* per feature rows / rows with it; NULL without penalties */
    float *shrink;  /* plain steps with l2: per feature what its weight is multiplied with after a step of this pass */
    float *first;   /* per parameter: velocity, sum of squares, first moment */
    float *second;  /* per parameter: second moment */
    uint64_t *path; /* averaged steps, per parameter: its path over the pass ... */
    size_t apart;   /* ... of which points are at least so many steps apart */
} rbt_sgd;

/* `team` may be NULL. */
rbt_err rbt_sgd_init(rbt_sgd *sgd, const rbt_problem *problem, rbt_optimizer optimizer, double momentum, rbt_team *team,
                     rbt_error *error);
void rbt_sgd_deinit(rbt_sgd *sgd);

/* The mean square of the values that are not zero, from a sample; at most 1. Data in parts: all parts add to the same two
 * sums, in order; `first` is the number of the part's first value among all `nnz` ones. */
typedef struct rbt_squares {
    double sum;
    uint64_t n;
} rbt_squares;
void rbt_squares_add(rbt_squares *squares, const rbt_data *data, size_t first, size_t nnz);
double rbt_squares_mean(const rbt_squares *squares);

/* The mean of the rows' squared lengths, from the same sample. */
double rbt_squares_of_row(const rbt_data *data);

/* Forgets what the optimizer has seen. */
void rbt_sgd_reset(rbt_sgd *sgd);

/* Makes the walk take these steps. */
void rbt_sgd_attach(rbt_sgd *sgd, rbt_walk *walk);

/* Adam: how much of a second moment has been seen after so many steps; the same bits on every machine. */
float rbt_adam_warmth(uint64_t steps);

/* Before a pass: its step size, which its walkers must have too. By one thread while no other walks. */
void rbt_sgd_begin(rbt_sgd *sgd, double rate);

/* Averaged SGD: ends a pass of so many steps. `mean` becomes the mean of the parameters over its steps. */
void rbt_sgd_average(rbt_sgd *sgd, const float *w, uint64_t steps, float *mean);

#endif
