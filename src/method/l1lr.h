/* The parts of l1lr: l1lr.c trains, l1lr_fitted.c applies what was learned. */
#ifndef RBT_METHOD_L1LR_H
#define RBT_METHOD_L1LR_H

#include "rubato.h"

/* As in rbt_method. A model has the names "labels" of two classes, of which positive scores mean the second. */
rbt_err rbt_l1lr_open(const rbt_fitted *fitted, rbt_error *error);
rbt_err rbt_l1lr_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error);
rbt_err rbt_l1lr_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                          rbt_error *error);

#endif
