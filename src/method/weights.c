/* Weights and an intercept. Contract in weights.h. */
#include "method/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/number.h"
#include "data/origin.h"
#include "method/method.h"
#include "model/classes.h"
#include "model/metrics.h"

#define LISTED 20 /* of the largest weights */

rbt_err rbt_weights_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");

    if (w == NULL || w->type != RBT_F32 || w->rows != 1 || isnan(rbt_fitted_number(fitted, "intercept")))
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold weights and an intercept; train it again");
    if (labels != NULL && labels->n != 2)
        return rbt_fail(error, RBT_E_DATA, "the model file has %zu labels in the place of two or none; train it again",
                        labels->n);
    return RBT_OK;
}

/* Both of two labels as numbers, which ascend; false: they are words, as data has them: 0x10 and inf are. */
static bool are_numbers(const rbt_name_list *labels, double values[2])
{
    for (size_t c = 0; c < 2; c++) {
        const char *end = labels->at[c] + strlen(labels->at[c]);
        float value = 0;

        if (rbt_number_parse(labels->at[c], end, &value) != end)
            return false;
        values[c] = (double)value;
    }
    return values[0] < values[1];
}

rbt_err rbt_weights_trained(const rbt_fitted *fitted, rbt_trained *trained, rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");
    float intercept = (float)rbt_fitted_number(fitted, "intercept");
    rbt_trained t = {.model = rbt_model_find(labels != NULL ? "lr" : "linear"),
                     .shape = {.cols = (size_t)w->cols, .bias = intercept != 0, .classes = labels != NULL ? 2 : 0},
                     .n = (size_t)w->cols + (intercept != 0)};

    t.w = rbt_try_alloc(t.n, sizeof *t.w);
    if (t.w == NULL) {
        rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu weights", t.n);
        return RBT_E_MEMORY; /* said so that an analyser sees it, too */
    }
    memcpy(t.w, w->at, (size_t)w->cols * sizeof *t.w);
    if (intercept != 0)
        t.w[w->cols] = intercept;
    if (labels != NULL) {
        double values[2];

        if (are_numbers(labels, values)) {
            t.shape.labels = rbt_alloc(2, sizeof *t.shape.labels);
            memcpy(t.shape.labels, values, sizeof values);
        } else {
            t.shape.names = rbt_alloc(2, sizeof *t.shape.names);
            for (size_t c = 0; c < 2; c++)
                t.shape.names[c] = rbt_strdup(labels->at[c]);
        }
    }
    *trained = t;
    return RBT_OK;
}

rbt_err rbt_weights_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    rbt_trained t;
    char text[RBT_LABEL_ROOM];
    double score;
    rbt_err err = rbt_weights_trained(fitted, &t, error);

    if (err != RBT_OK)
        return err;
    t.model->score(&t.shape, data, row, t.w, &score);
    fprintf(out, "%s\n", rbt_shape_label(&t.shape, t.model->label(&t.shape, &score), text));
    rbt_trained_deinit(&t);
    return RBT_OK;
}

rbt_err rbt_weights_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                             rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    rbt_data fit = *data; /* with labels of its own */
    rbt_metrics metrics = {0};
    rbt_trained t;
    rbt_err err = rbt_weights_trained(fitted, &t, error);

    if (err != RBT_OK)
        return err;
    fit.label = rbt_try_alloc(data->rows, sizeof *fit.label);
    if (fit.label == NULL) {
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the labels of %zu rows", data->rows);
    } else {
        memcpy(fit.label, data->label, data->rows * sizeof *fit.label);
        err = rbt_shape_apply(&t.shape, true, &fit, error);
    }
    if (err == RBT_OK)
        err = rbt_metrics_compute(&t, &fit, RBT_METRICS_ALL, &metrics, error);
    *n = 0;
    for (unsigned m = 0; err == RBT_OK && m < RBT_METRIC_COUNT; m++)
        if (rbt_metric_fit((rbt_metric)m, t.model, &t.shape, NULL) == RBT_OK)
            figures[(*n)++] = (rbt_figure){rbt_metric_name((rbt_metric)m), metrics.value[m]};
    figures[(*n)++] = (rbt_figure){"nonzeros", (double)rbt_weights_nonzeros(w->at, (size_t)w->cols)};
    rbt_metrics_deinit(&metrics);
    rbt_free(fit.label);
    rbt_trained_deinit(&t);
    return err;
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
    const rbt_name_list *names = rbt_fitted_names(fitted, "vocabulary");
    const float *at = w->at;
    size_t cols = (size_t)w->cols, n = 0, count = rbt_weights_nonzeros(at, cols);
    char *text = rbt_fitted_origin(fitted);
    rbt_origin origin = {0};
    weight *list = rbt_try_alloc(count, sizeof *list);

    (void)rbt_origin_parse(text, &origin);
    fprintf(out, "weights     %zu of %zu are not zero\n", count, cols);
    for (size_t j = 0; list != NULL && j < cols; j++)
        if (at[j] != 0)
            list[n++] = (weight){j, at[j]};
    if (list != NULL)
        qsort(list, n, sizeof *list, compare_weights);
    for (size_t i = 0; list != NULL && i < n && i < LISTED; i++) {
        fprintf(out, "%-11s ", i == 0 ? "largest" : "");
        if (names != NULL && list[i].feature < names->n && names->at[list[i].feature][0] != '\0')
            fprintf(out, "%s", names->at[list[i].feature]);
        else
            fprintf(out, "%s %zu", origin.bits > 0 && origin.column.count == 0 ? "hash" : "feature",
                    list[i].feature + rbt_origin_first(&origin)); /* as the data counts them */
        fprintf(out, ": %.6g\n", (double)list[i].value);
    }
    rbt_origin_deinit(&origin);
    rbt_free(text);
    rbt_free(list);
}
