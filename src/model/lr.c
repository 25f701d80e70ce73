/* Binary logistic regression: p(yes | x) = 1 / (1 + exp(-(w.x + b))), loss = -log p(label).
 *
 * Parameters: one weight per feature, then the bias if the shape has one. Labels: the larger of the two values in the
 * data is "yes". Called through rbt_model by workers, jobs and commands, by many threads at once. Always holds:
 * features at or beyond shape->cols are ignored, sums run in row order, and the same input gives the same bits on every
 * machine. Proved by tests/unit/test_lr.c (gradient against finite differences, against a plain loop, and at a known
 * optimum).
 */
#include "model/model.h"

#include "base/error.h"
#include "data/data.h"
#include "math/functions.h"
#include "math/kernels.h"

static size_t lr_size(const rbt_shape *shape)
{
    return shape->cols + (shape->bias ? 1 : 0);
}

/* The label values of the data, ascending, and the row where each was first seen; stops at the third. */
static size_t distinct_labels(const rbt_data *data, double value[3], size_t row[3])
{
    size_t found = 0;
    for (size_t r = 0; r < data->rows && found < 3; r++) {
        double label = (double)data->label[r];
        size_t at = 0;
        while (at < found && value[at] < label)
            at++;
        if (at < found && value[at] == label)
            continue;
        for (size_t i = found; i > at; i--) {
            value[i] = value[i - 1];
            row[i] = row[i - 1];
        }
        value[at] = label;
        row[at] = r + 1;
        found++;
    }
    return found;
}

/* Sets the labels, and the number of features when the caller left it 0. */
static rbt_err lr_prepare(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    double value[3];
    size_t row[3];
    size_t found = distinct_labels(data, value, row);
    if (found == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no rows; logistic regression needs rows of two labels");
    if (found == 1)
        return rbt_fail(error, RBT_E_DATA,
                        "all %zu rows have the label %g; logistic regression needs exactly two different labels, for "
                        "example -1 and 1",
                        data->rows, value[0]);
    if (found == 3)
        return rbt_fail(error, RBT_E_DATA,
                        "the data has more than two labels: %g (row %zu), %g (row %zu) and %g (row %zu); logistic "
                        "regression needs exactly two: merge classes, or leave rows out",
                        value[0], row[0], value[1], row[1], value[2], row[2]);
    if (shape->cols == 0)
        shape->cols = data->cols;
    if (shape->cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%zu features are too many; the limit is %u", shape->cols,
                        RBT_DATA_INDEX_LIMIT - 1);
    shape->labels[0] = value[0];
    shape->labels[1] = value[1];
    return RBT_OK;
}

static double score_row(const rbt_kernels *k, const rbt_shape *shape, const rbt_data *data, size_t row, size_t n,
                        const float *w)
{
    size_t first = data->start[row];
    double z = (double)k->dot_sparse(data->index + first, data->value + first, n, w);
    return shape->bias ? z + (double)w[shape->cols] : z;
}

static bool is_yes(const rbt_shape *shape, const rbt_data *data, size_t row)
{
    return (double)data->label[row] == shape->labels[1];
}

static double lr_gradient(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n, const float *w,
                          float *gradient)
{
    const rbt_kernels *k = rbt_kernels_best();
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        size_t row = rows[i], first = data->start[row], features = rbt_data_row_fit(data, row, shape->cols);
        bool yes = is_yes(shape, data, row);
        double z = score_row(k, shape, data, row, features, w);
        float slope = (float)(rbt_sigmoid(z) - (yes ? 1 : 0));
        loss += rbt_softplus(yes ? -z : z);
        k->axpy_sparse(slope, data->index + first, data->value + first, features, gradient);
        if (shape->bias)
            gradient[shape->cols] += slope;
    }
    return loss;
}

static double lr_score(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w)
{
    return score_row(rbt_kernels_best(), shape, data, row, rbt_data_row_fit(data, row, shape->cols), w);
}

static double lr_loss(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w)
{
    const rbt_kernels *k = rbt_kernels_best();
    double loss = 0;
    for (size_t row = first; row < first + n; row++) {
        double z = score_row(k, shape, data, row, rbt_data_row_fit(data, row, shape->cols), w);
        loss += rbt_softplus(is_yes(shape, data, row) ? -z : z);
    }
    return loss;
}

static double lr_label(const rbt_shape *shape, double score)
{
    return shape->labels[score > 0 ? 1 : 0];
}

static double lr_probability(const rbt_shape *shape, double score)
{
    (void)shape;
    return rbt_sigmoid(score);
}

const rbt_model rbt_model_lr = {
    .name = "lr",
    .about = "binary logistic regression",
    .size = lr_size,
    .prepare = lr_prepare,
    .gradient = lr_gradient,
    .loss = lr_loss,
    .score = lr_score,
    .label = lr_label,
    .probability = lr_probability,
};
