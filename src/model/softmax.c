/* Softmax regression: K classes, p(k | x) proportional to exp(w_k.x + b_k), loss = -log p(label).
 *
 * Parameters: for each feature K weights side by side, then K biases if the shape has them, so that a feature's weights
 * share cache lines. Called through rbt_model. Always holds: features at or beyond shape->cols are ignored, sums run in
 * row order, the same input gives the same bits on every machine. Proved by tests/unit/test_softmax.c.
 */
#include "model/model.h"

#include "base/mem.h"
#include "data/data.h"
#include "math/functions.h"
#include "model/classes.h"

static size_t softmax_outputs(const rbt_shape *shape)
{
    return shape->classes;
}

static size_t softmax_size(const rbt_shape *shape)
{
    return shape->classes * (shape->cols + (shape->bias ? 1 : 0));
}

static rbt_err softmax_prepare(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    return rbt_shape_set_classes(data, 0, shape, error);
}

static void softmax_score(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w, double *score)
{
    size_t classes = shape->classes, first = data->start[row];
    size_t end = first + rbt_data_row_fit(data, row, shape->cols);
    const float *bias = w + shape->cols * classes;
    for (size_t k = 0; k < classes; k++)
        score[k] = shape->bias ? (double)bias[k] : 0;
    for (size_t i = first; i < end; i++) {
        const float *weights = w + (size_t)data->index[i] * classes;
        double x = (double)data->value[i];
        for (size_t k = 0; k < classes; k++)
            score[k] += x * (double)weights[k];
    }
}

double rbt_softmax(double *z, size_t n, size_t label)
{
    double top = z[0], sum = 0, wanted = z[label];
    for (size_t k = 1; k < n; k++)
        top = z[k] > top ? z[k] : top;
    for (size_t k = 0; k < n; k++) {
        z[k] = rbt_exp(z[k] - top);
        sum += z[k];
    }
    for (size_t k = 0; k < n; k++)
        z[k] /= sum;
    return rbt_ln(sum) + top - wanted;
}

static double softmax_gradient(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n,
                               const float *w, float *gradient)
{
    size_t classes = shape->classes;
    double loss = 0, *z = rbt_alloc(classes, sizeof *z);
    for (size_t i = 0; i < n; i++) {
        size_t row = rows[i], first = data->start[row], end = first + rbt_data_row_fit(data, row, shape->cols);
        size_t label = (size_t)data->label[row];
        double weight = rbt_data_weight(data, row);
        softmax_score(shape, data, row, w, z);
        loss += weight * rbt_softmax(z, classes, label);
        z[label] -= 1;
        for (size_t k = 0; k < classes; k++)
            z[k] *= weight;
        for (size_t j = first; j < end; j++) {
            float *g = gradient + (size_t)data->index[j] * classes;
            double x = (double)data->value[j];
            for (size_t k = 0; k < classes; k++)
                g[k] += (float)(x * z[k]);
        }
        for (size_t k = 0; shape->bias && k < classes; k++)
            gradient[shape->cols * classes + k] += (float)z[k];
    }
    rbt_free(z);
    return loss;
}

static double softmax_loss(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w)
{
    double loss = 0, *z = rbt_alloc(shape->classes, sizeof *z);
    for (size_t row = first; row < first + n; row++) {
        softmax_score(shape, data, row, w, z);
        loss += rbt_data_weight(data, row) * rbt_softmax(z, shape->classes, (size_t)data->label[row]);
    }
    rbt_free(z);
    return loss;
}

static double softmax_label(const rbt_shape *shape, const double *score)
{
    size_t best = 0;
    for (size_t k = 1; k < shape->classes; k++)
        best = score[k] > score[best] ? k : best;
    return (double)best;
}

static void softmax_probability(const rbt_shape *shape, const double *score, double *probability)
{
    for (size_t k = 0; k < shape->classes; k++)
        probability[k] = score[k];
    (void)rbt_softmax(probability, shape->classes, 0);
}

const rbt_model rbt_model_softmax = {
    .name = "softmax",
    .about = "softmax regression for any number of classes",
    .size = softmax_size,
    .outputs = softmax_outputs,
    .prepare = softmax_prepare,
    .gradient = softmax_gradient,
    .loss = softmax_loss,
    .score = softmax_score,
    .label = softmax_label,
    .probability = softmax_probability,
};
