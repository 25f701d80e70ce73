/* Weights and an intercept. Contract in weights.h. */
#include "method/weights.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

#define LISTED 20 /* of the largest weights */

rbt_err rbt_weights_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");

    if (w == NULL || w->type != RBT_F32 || w->rows != 1 || isnan(rbt_fitted_number(fitted, "intercept")))
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold weights and an intercept; train it again");
    return RBT_OK;
}

double rbt_weights_score(const rbt_fitted *fitted, const rbt_data *data, size_t row)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    double score = rbt_fitted_number(fitted, "intercept");

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        if (data->index[i] < w->cols)
            score += (double)((const float *)w->at)[data->index[i]] * (double)data->value[i];
    return score;
}

size_t rbt_weights_nonzeros(const float *w, size_t n)
{
    size_t count = 0;

    for (size_t j = 0; j < n; j++)
        count += w[j] != 0;
    return count;
}

double rbt_soft(double x, double by)
{
    return x > by ? x - by : x < -by ? x + by : 0;
}

typedef struct weight {
    size_t feature;
    float value;
} weight;

static int compare_weights(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    float p = fabsf(x->value), q = fabsf(y->value);

    return p != q ? (p > q ? -1 : 1) : (x->feature > y->feature) - (x->feature < y->feature);
}

void rbt_weights_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    const float *at = w->at;
    size_t cols = (size_t)w->cols, n = 0, count = rbt_weights_nonzeros(at, cols);
    weight *list = rbt_try_alloc(count, sizeof *list);

    fprintf(out, "weights     %zu of %zu are not zero\n", count, cols);
    for (size_t j = 0; list != NULL && j < cols; j++)
        if (at[j] != 0)
            list[n++] = (weight){j, at[j]};
    if (list != NULL)
        qsort(list, n, sizeof *list, compare_weights);
    for (size_t i = 0; list != NULL && i < n && i < LISTED; i++)
        fprintf(out, "%-11s feature %zu: %.6g\n", i == 0 ? "largest" : "", list[i].feature + 1, (double)list[i].value);
    rbt_free(list);
}
