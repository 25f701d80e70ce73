/* Features made alike: variance 1, and mean 0 where that does not fill the data with non-zeros.
 *
 * Called by src/job when --normalize standard is asked for. What was learned from the training data is applied to
 * validation data, and folded into the trained weights, so that the model takes data as it is in the file. Always holds:
 * a feature that never changes is left as it is. Proved by tests/unit/test_scale.c.
 */
#ifndef RBT_DATA_SCALE_H
#define RBT_DATA_SCALE_H

#include "rubato.h"

#define RBT_SCALE_MOST  1e30 /* weights are multiplied by it, and are floats */
#define RBT_SCALE_DENSE 0.5  /* at least this share of the cells is not zero: features get mean 0 too */

typedef struct rbt_scaling {
    size_t cols;
    float *mean;  /* per feature; NULL: not moved, so that zeros stay zeros */
    float *scale; /* per feature: 1 / standard deviation, at most RBT_SCALE_MOST */
    size_t faint; /* so many vary too little for that, and stay small */
} rbt_scaling;

rbt_err rbt_scaling_learn(rbt_scaling *scaling, const rbt_data *data, rbt_error *error);

/* The same of data in parts, which all add to the same sums, in order: two per column, zero at first. */
void rbt_scaling_add(double *sums, const rbt_data *data);
rbt_err rbt_scaling_finish(rbt_scaling *scaling, const double *sums, size_t cols, size_t rows, size_t nnz,
                           rbt_error *error);
void rbt_scaling_deinit(rbt_scaling *scaling);

/* Makes the features alike; those beyond the ones learned stay as they are. */
rbt_err rbt_scaling_apply(const rbt_scaling *scaling, rbt_data *data, rbt_error *error);

/* Turns weights for scaled features into weights for features as in the file: `outputs` of them per feature, the biases
 * (which take up the means) last. Means need biases: without them a scaling that moves is not learned. */
void rbt_scaling_fold(const rbt_scaling *scaling, size_t outputs, float *w);

#endif
