/* Steps of matrix factorisation: what one rating does to the factors of its user and its item.
 *
 * A rating (minus the mean, in units of the ratings' standard deviation) is foretold by the user's bias + the item's bias +
 * p . q. A step goes against the gradient of half the squared error + l2/2 (|p|^2 + |q|^2) + l2_bias/2 (the biases'
 * squares). Adaptive: the step size of a vector falls with the root of 1 + the sum of its squared gradients (the mean over
 * its coordinates), that of a bias likewise, so that neither --lr nor a decay has to be tuned (a reduced form of AdaGrad,
 * as LIBMF has it).
 *
 * rbt_mf_step is the reference: the same bits on every machine, for workers with tables. rbt_mf_run is for threads in one
 * memory: all ratings of one user in a range of items. Users belong to one thread; items may be changed by several at the
 * same time. The portable form reads and writes them as relaxed atomics. The other one uses vector instructions, for which C
 * has no atomic type: each of their aligned lanes is read and written whole on x86, which is all that Hogwild asks for.
 * Called by mf_work.c and mf_shared.c. Proved by tests/unit/test_mf.c.
 */
#ifndef RBT_METHOD_MF_STEP_H
#define RBT_METHOD_MF_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RBT_MF_RANK_MOST 1000

typedef struct rbt_mf_rates {
    size_t rank;
    float rate;
    float l2, l2_bias;
    bool adaptive;
    bool biases;
    float mean, scale; /* of the ratings: a step is for (rating - mean) / scale */
} rbt_mf_rates;

/* What belongs to a vector of factors. */
typedef struct rbt_mf_side {
    float bias;
    float squares; /* 1 + the sum of squared gradients: of the factors, of the bias */
    float bias_squares;
    float pull; /* how much of its distance from the optimum it has been moved by, added up (rbt_mf_step only) */
} rbt_mf_side;

#define RBT_MF_SIDE ((rbt_mf_side){0, 1, 1, 0})

/* Of 8 floats: the lengths of vectors that rbt_mf_run takes are multiples of it. */
#define RBT_MF_LANES 8u

/* The error of a rating before its step; then the step. An item's squares count `crowd` times, for workers that do not see
 * what the others do. Vectors have `rank` elements. */
float rbt_mf_step(const rbt_mf_rates *rates, float rating, float crowd, float *p, rbt_mf_side *user, float *q,
                  rbt_mf_side *item);

/* The error alone. */
float rbt_mf_error(const rbt_mf_rates *rates, float rating, const float *p, float user_bias, const float *q,
                   float item_bias);

/* Steps for the user's n ratings of the items index[0 .. n - 1]; the sum of the squared errors before each. Items' vectors
 * are `stride` apart, 0 beyond the rank, as is p. */
typedef double rbt_mf_run(const rbt_mf_rates *rates, const uint32_t *index, const float *value, size_t n, float *p,
                          rbt_mf_side *user, float *q, rbt_mf_side *items, size_t stride);

rbt_mf_run rbt_mf_run_portable;

/* The fastest that this processor and build have. */
rbt_mf_run *rbt_mf_run_best(void);

#endif
