/* What is done with a topic model that was trained (rbt_method): checked when it is read from a file, applied to documents,
 * evaluated by completing them, described. Called through lda.c's rbt_method_lda. Proved by tests/unit/test_lda.c and
 * tests/cli/test_lda.sh. */
#ifndef RBT_METHOD_LDA_FITTED_H
#define RBT_METHOD_LDA_FITTED_H

#include "rubato.h"

rbt_err rbt_lda_open(const rbt_fitted *fitted, rbt_error *error);
rbt_err rbt_lda_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error);
rbt_err rbt_lda_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                         rbt_error *error);
void rbt_lda_describe(const rbt_fitted *fitted, FILE *out);

#endif
