/* Fitted models that are a weight per feature and an intercept: what lasso and l1lr have in common.
 *
 * The array "weights" (f32, 1 x features) and the number "intercept". Proved by tests/unit/test_lasso.c. */
#ifndef RBT_METHOD_WEIGHTS_H
#define RBT_METHOD_WEIGHTS_H

#include "rubato.h"

/* Does the model from a file have them? */
rbt_err rbt_weights_open(const rbt_fitted *fitted, rbt_error *error);

/* As a model: lr, if there is a list of two "labels", else linear. And what that predicts, and all its metrics. */
rbt_err rbt_weights_trained(const rbt_fitted *fitted, rbt_trained *trained, rbt_error *error);
rbt_err rbt_weights_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error);
rbt_err rbt_weights_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                             rbt_error *error);

size_t rbt_weights_nonzeros(const float *w, size_t n);

/* x moved towards 0 by `by`, and not past it. */
double rbt_soft(double x, double by);

/* How many are not zero, and the largest, by the names of a list "vocabulary" if there is one. */
void rbt_weights_describe(const rbt_fitted *fitted, FILE *out);

#endif
