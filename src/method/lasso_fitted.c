/* What lasso has learned, in use: the path of solutions; the rest is that of a linear model (weights.h). Called by `rubato info`
 * through the method (lasso.c). Always: a file whose parts do not fit together is refused when it is opened, and not
 * looked at again. Proved by tests/cli/test_lasso.sh and tests/unit/test_fitted.c.
 */
#include "base/error.h"
#include "method/lasso.h"
#include "method/weights.h"

rbt_err rbt_lasso_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *l1 = rbt_fitted_values(fitted, "path_l1"), *loss = rbt_fitted_values(fitted, "path_loss"),
                     *n = rbt_fitted_values(fitted, "path_nonzeros");

    if (l1 != NULL &&
        (loss == NULL || n == NULL || l1->type != RBT_F32 || loss->type != RBT_F32 || n->type != RBT_I64 ||
         l1->rows != 1 || loss->rows != 1 || n->rows != 1 || loss->cols != l1->cols || n->cols != l1->cols))
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold a path of solutions; train it again");
    return rbt_weights_open(fitted, error);
}

void rbt_lasso_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *l1 = rbt_fitted_values(fitted, "path_l1"), *loss = rbt_fitted_values(fitted, "path_loss"),
                     *n = rbt_fitted_values(fitted, "path_nonzeros");

    rbt_weights_describe(fitted, out);
    for (size_t k = 0; l1 != NULL && k < l1->cols; k++)
        fprintf(out, "%-11s l1 %.6g: loss %.6g, %lld not zero\n", k == 0 ? "path" : "",
                (double)((const float *)l1->at)[k], (double)((const float *)loss->at)[k],
                (long long)((const int64_t *)n->at)[k]);
}
