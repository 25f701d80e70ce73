/* The linear models with one decision value per row, z = w.x + b: logistic regression, the two support vector machines,
 * least squares and Huber regression. They differ in their link (link.h) and in what labels they take.
 *
 * Parameters: one weight per feature, then the bias if the shape has one. Of two classes the one with the larger label
 * is "yes". Called through rbt_model by workers, jobs and commands, by many threads at once. Always holds: features at
 * or beyond shape->cols are ignored, sums run in row order, and the same input gives the same bits on every machine.
 * Proved by tests/unit/test_lr.c (gradient against finite differences, against a plain loop, and at a known optimum) and
 * test_link.c.
 */
#include "model/model.h"

#include "data/data.h"
#include "math/functions.h"
#include "math/kernels.h"
#include "model/classes.h"
#include "model/link.h"

static size_t linear_size(const rbt_shape *shape)
{
    return shape->cols + (shape->bias ? 1 : 0);
}

static size_t one_output(const rbt_shape *shape)
{
    (void)shape;
    return 1;
}

static rbt_err two_classes(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    return rbt_shape_set_classes(data, 2, shape, error);
}

static double score_row(const rbt_kernels *k, const rbt_shape *shape, const rbt_data *data, size_t row, size_t n,
                        const float *w)
{
    size_t first = data->start[row];
    double z = (double)k->dot_sparse(data->index + first, data->value + first, n, w);
    return shape->bias ? z + (double)w[shape->cols] : z;
}

static double sum_gradients(const rbt_link *link, const rbt_shape *shape, const rbt_data *data, const uint32_t *rows,
                            size_t n, const float *w, float *gradient)
{
    const rbt_kernels *k = rbt_kernels_best();
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        size_t row = rows[i], first = data->start[row], features = rbt_data_row_fit(data, row, shape->cols);
        double y = rbt_link_target(shape, data, row), weight = rbt_data_weight(data, row);
        double z = score_row(k, shape, data, row, features, w);
        float slope = (float)(weight * link->slope(z, y, shape->delta));
        loss += weight * link->loss(z, y, shape->delta);
        if (slope == 0)
            continue;
        k->axpy_sparse(slope, data->index + first, data->value + first, features, gradient);
        if (shape->bias)
            gradient[shape->cols] += slope;
    }
    return loss;
}

static double sum_losses(const rbt_link *link, const rbt_shape *shape, const rbt_data *data, size_t first, size_t n,
                         const float *w)
{
    const rbt_kernels *k = rbt_kernels_best();
    double z[RBT_LINK_ROWS], y[RBT_LINK_ROWS], loss[RBT_LINK_ROWS], sum = 0;
    for (size_t end = first + n; first < end; first += n) {
        n = end - first < RBT_LINK_ROWS ? end - first : RBT_LINK_ROWS;
        for (size_t i = 0; i < n; i++) {
            z[i] = score_row(k, shape, data, first + i, rbt_data_row_fit(data, first + i, shape->cols), w);
            y[i] = rbt_link_target(shape, data, first + i);
        }
        rbt_link_all(link, n, z, y, shape->delta, loss, NULL, NULL);
        for (size_t i = 0; i < n; i++)
            sum += rbt_data_weight(data, first + i) * loss[i];
    }
    return sum;
}

static void linear_score(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w, double *score)
{
    *score = score_row(rbt_kernels_best(), shape, data, row, rbt_data_row_fit(data, row, shape->cols), w);
}

static double sign_label(const rbt_shape *shape, const double *score)
{
    (void)shape;
    return *score > 0 ? 1 : 0;
}

static double number_label(const rbt_shape *shape, const double *score)
{
    (void)shape;
    return *score;
}

static void logistic_probability(const rbt_shape *shape, const double *score, double *probability)
{
    (void)shape;
    probability[1] = rbt_sigmoid(*score);
    probability[0] = rbt_sigmoid(-*score);
}

/* A model's functions are those above with its link. */
#define LINEAR_MODEL(id, name_text, about_text, link_of, numbers_of, prepare_of, label_of, probability_of)             \
    static double id##_gradient(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n,          \
                                const float *w, float *gradient)                                                       \
    {                                                                                                                  \
        return sum_gradients(link_of, shape, data, rows, n, w, gradient);                                              \
    }                                                                                                                  \
    static double id##_loss(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w)      \
    {                                                                                                                  \
        return sum_losses(link_of, shape, data, first, n, w);                                                          \
    }                                                                                                                  \
    const rbt_model rbt_model_##id = {.name = (name_text),                                                             \
                                      .about = (about_text),                                                           \
                                      .numbers = (numbers_of),                                                         \
                                      .link = (link_of),                                                               \
                                      .size = linear_size,                                                             \
                                      .outputs = one_output,                                                           \
                                      .prepare = (prepare_of),                                                         \
                                      .gradient = id##_gradient,                                                       \
                                      .loss = id##_loss,                                                               \
                                      .score = linear_score,                                                           \
                                      .label = (label_of),                                                             \
                                      .probability = (probability_of)}

LINEAR_MODEL(lr, "lr", "binary logistic regression", &rbt_link_logistic, false, two_classes, sign_label,
             logistic_probability);
LINEAR_MODEL(svm, "svm", "support vector machine, hinge loss", &rbt_link_hinge, false, two_classes, sign_label, NULL);
LINEAR_MODEL(svm2, "svm2", "support vector machine, squared hinge loss", &rbt_link_squared_hinge, false, two_classes,
             sign_label, NULL);
LINEAR_MODEL(linear, "linear", "least squares regression", &rbt_link_squares, true, rbt_shape_set_numbers, number_label,
             NULL);
LINEAR_MODEL(huber, "huber", "regression with the Huber loss", &rbt_link_huber, true, rbt_shape_set_numbers,
             number_label, NULL);
