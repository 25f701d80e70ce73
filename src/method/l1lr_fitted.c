/* What a fitted l1lr model does: labels and probabilities of rows, and figures on data. Called through the method in l1lr.c.
 * Proved by tests/unit/test_lasso.c and tests/cli/test_lasso.sh. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "method/l1lr.h"
#include "method/weights.h"

rbt_err rbt_l1lr_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");

    if (labels == NULL || labels->n != 2)
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold two labels; train it again");
    return rbt_weights_open(fitted, error);
}

rbt_err rbt_l1lr_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    double score = rbt_weights_score(fitted, data, row);

    (void)error;
    fprintf(out, "%s\t%.6g\n", rbt_fitted_names(fitted, "labels")->at[score > 0], 1 / (1 + exp(-score)));
    return RBT_OK;
}

/* Which of the two labels a row has. */
static rbt_err class_of(const rbt_fitted *fitted, const rbt_data *data, size_t row, size_t *class, rbt_error *error)
{
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");

    for (*class = 0; *class < 2; ++*class)
        if (data->label_names != NULL ? strcmp(data->label_names[(size_t)data->label[row]], labels->at[*class]) == 0
                                      : (float)strtod(labels->at[*class], NULL) == data->label[row])
            return RBT_OK;
    return rbt_fail(error, RBT_E_DATA, "row %zu has a label other than %s and %s, which the model was trained with",
                    row + 1, labels->at[0], labels->at[1]);
}

rbt_err rbt_l1lr_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                          rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    double loss = 0, right = 0, total = 0;

    for (size_t r = 0; r < data->rows; r++) {
        double score = rbt_weights_score(fitted, data, r), weight = rbt_data_weight(data, r), m;
        size_t class;
        rbt_err err = class_of(fitted, data, r, &class, error);

        if (err != RBT_OK)
            return err;
        m = class == 1 ? score : -score;
        loss += weight * ((m > 0 ? 0 : -m) + log1p(exp(-fabs(m))));
        right += weight * ((score > 0) == (class == 1));
        total += weight;
    }
    figures[0] = (rbt_figure){"logloss", loss / total};
    figures[1] = (rbt_figure){"accuracy", right / total};
    figures[2] = (rbt_figure){"nonzeros", (double)rbt_weights_nonzeros(w->at, (size_t)w->cols)};
    *n = 3;
    return RBT_OK;
}
