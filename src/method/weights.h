/* Fitted models that are a weight per feature and an intercept: what lasso and l1lr have in common.
 *
 * The array "weights" (f32, 1 x features) and the number "intercept". Proved by tests/unit/test_lasso.c. */
#ifndef RBT_METHOD_WEIGHTS_H
#define RBT_METHOD_WEIGHTS_H

#include "rubato.h"

/* Does the model from a file have them? */
rbt_err rbt_weights_open(const rbt_fitted *fitted, rbt_error *error);

/* The row's decision value; features that the model does not have count nothing. */
double rbt_weights_score(const rbt_fitted *fitted, const rbt_data *data, size_t row);

size_t rbt_weights_nonzeros(const float *w, size_t n);

/* x moved towards 0 by `by`, and not past it. */
double rbt_soft(double x, double by);

/* How many are not zero, the intercept, and the largest. */
void rbt_weights_describe(const rbt_fitted *fitted, FILE *out);

#endif
