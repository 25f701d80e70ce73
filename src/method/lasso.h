/* The parts of lasso: lasso.c trains, lasso_fitted.c applies what was learned. */
#ifndef RBT_METHOD_LASSO_H
#define RBT_METHOD_LASSO_H

#include "rubato.h"

/* As in rbt_method. A path of solutions, if there is one, has a penalty, a loss and a number of weights for each. */
rbt_err rbt_lasso_open(const rbt_fitted *fitted, rbt_error *error);
void rbt_lasso_describe(const rbt_fitted *fitted, FILE *out);

#endif
