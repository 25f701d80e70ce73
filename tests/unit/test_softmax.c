/* Proves src/model/softmax.c: loss, gradient, labels and probabilities of softmax regression. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "model/model.h"

#define ROWS    60
#define COLS    7
#define CLASSES 4
#define PARAMS  ((COLS + 1) * CLASSES)

static double labels[CLASSES] = {-3, 0, 2, 9};

static const rbt_model *softmax(void)
{
    return rbt_model_find("softmax");
}

static rbt_shape shape_of(bool bias)
{
    return (rbt_shape){.cols = COLS, .bias = bias, .classes = CLASSES, .labels = labels};
}

/* Rows with some of the features each, labels as class numbers, weights if asked for; and parameters. */
static rbt_data random_data(bool weights, float *w)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    rbt_data d;
    assert_int_equal(rbt_data_alloc(ROWS, ROWS * COLS, &d, NULL), RBT_OK);
    d.rows = ROWS;
    d.cols = COLS;
    if (weights)
        d.weight = rbt_alloc(ROWS, sizeof *d.weight);
    for (size_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < COLS; j++) {
            if (rbt_rng_below(&rng, 2) == 0)
                continue;
            d.index[d.nnz] = j;
            d.value[d.nnz++] = (float)rbt_rng_normal(&rng);
        }
        d.start[r + 1] = d.nnz;
        d.label[r] = (float)rbt_rng_below(&rng, CLASSES);
        if (weights)
            d.weight[r] = (float)(0.1 + 3 * rbt_rng_f64(&rng));
    }
    for (size_t i = 0; i < PARAMS; i++)
        w[i] = (float)rbt_rng_normal(&rng);
    return d;
}

static double plain_scores(const rbt_shape *shape, const rbt_data *d, size_t row, const float *w, double *z)
{
    double sum = 0;
    for (size_t k = 0; k < CLASSES; k++) {
        z[k] = shape->bias ? (double)w[COLS * CLASSES + k] : 0;
        for (size_t i = d->start[row]; i < d->start[row + 1]; i++)
            z[k] += (double)d->value[i] * (double)w[d->index[i] * CLASSES + k];
        sum += exp(z[k]);
    }
    return sum;
}

static void loss_and_gradient_agree_with_the_definition(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        rbt_shape shape = shape_of(variant & 1);
        float w[PARAMS], gradient[PARAMS] = {0};
        rbt_data d = random_data(variant & 2, w);
        double expected[PARAMS] = {0}, loss = 0, z[CLASSES];
        uint32_t rows[ROWS];
        for (uint32_t r = 0; r < ROWS; r++) {
            double sum = plain_scores(&shape, &d, r, w, z), weight = d.weight != NULL ? (double)d.weight[r] : 1;
            rows[r] = r;
            loss += weight * (log(sum) - z[(size_t)d.label[r]]);
            for (size_t k = 0; k < CLASSES; k++) {
                double slope = weight * (exp(z[k]) / sum - (k == (size_t)d.label[r] ? 1 : 0));
                for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
                    expected[d.index[i] * CLASSES + k] += slope * (double)d.value[i];
                expected[COLS * CLASSES + k] += shape.bias ? slope : 0;
            }
        }
        double ours = softmax()->gradient(&shape, &d, rows, ROWS, w, gradient);
        assert_true(fabs(ours - loss) < 1e-10 * loss);
        assert_true(softmax()->loss(&shape, &d, 0, ROWS, w) == ours);
        for (size_t i = 0; i < PARAMS; i++)
            assert_true(fabs((double)gradient[i] - expected[i]) < 1e-4);
        rbt_data_deinit(&d);
    }
}

static void gradient_agrees_with_finite_differences(void **state)
{
    (void)state;
    rbt_shape shape = shape_of(true);
    float w[PARAMS], gradient[PARAMS] = {0};
    rbt_data d = random_data(true, w);
    uint32_t rows[ROWS];
    for (uint32_t r = 0; r < ROWS; r++)
        rows[r] = r;
    (void)softmax()->gradient(&shape, &d, rows, ROWS, w, gradient);
    for (size_t i = 0; i < PARAMS; i++) {
        float before = w[i], up = before + 0.001F, down = before - 0.001F;
        w[i] = up;
        double above = softmax()->loss(&shape, &d, 0, ROWS, w);
        w[i] = down;
        double below = softmax()->loss(&shape, &d, 0, ROWS, w);
        w[i] = before;
        double slope = (above - below) / ((double)up - (double)down);
        assert_true(fabs(slope - (double)gradient[i]) < 1e-4 * (1 + fabs(slope)));
    }
    rbt_data_deinit(&d);
}

/* Nothing beyond the parameters is read, which are allocated exactly as large as they have to be. */
static void unknown_features_are_ignored(void **state)
{
    (void)state;
    rbt_data wide, narrow;
    static const char WIDE[] = "1 1:1 2:2 3:5 900:7\n0 4:1 4000000000:1\n", NARROW[] = "1 1:1 2:2\n0\n";
    assert_int_equal(rbt_data_parse_libsvm(WIDE, strlen(WIDE), "mem", &wide, NULL), RBT_OK);
    assert_int_equal(rbt_data_parse_libsvm(NARROW, strlen(NARROW), "mem", &narrow, NULL), RBT_OK);
    for (int bias = 0; bias < 2; bias++) {
        rbt_shape shape = {.cols = 2, .bias = bias, .classes = 2};
        size_t n = softmax()->size(&shape);
        assert_int_equal(n, 4 + 2 * bias);
        float *w = malloc(n * sizeof *w), *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b);
        for (size_t i = 0; i < n; i++)
            w[i] = 0.25F * (float)(i * i + 1);
        uint32_t rows[] = {0, 1};
        double x = softmax()->gradient(&shape, &wide, rows, 2, w, a);
        assert_true(x == softmax()->gradient(&shape, &narrow, rows, 2, w, b));
        assert_memory_equal(a, b, n * sizeof *a);
        assert_true(softmax()->loss(&shape, &wide, 0, 2, w) == x);
        free(w);
        free(a);
        free(b);
    }
    rbt_data_deinit(&wide);
    rbt_data_deinit(&narrow);
}

static void the_label_is_the_largest_value_and_probabilities_add_up(void **state)
{
    (void)state;
    rbt_shape shape = shape_of(true);
    double score[CLASSES] = {1, 3, -2, 2.5}, p[CLASSES], sum = 0;
    assert_int_equal(softmax()->outputs(&shape), CLASSES);
    assert_true(softmax()->label(&shape, score) == 1);
    softmax()->probability(&shape, score, p);
    for (size_t k = 0; k < CLASSES; k++)
        sum += p[k];
    assert_true(fabs(sum - 1) < 1e-15);
    assert_true(fabs(p[1] / p[3] - exp(0.5)) < 1e-12);
    assert_true(score[1] == 3); /* the scores stay */
}

static void extreme_scores_give_finite_losses(void **state)
{
    (void)state;
    double z[] = {1e30, -1e30, 0};
    assert_true(rbt_softmax(z, 3, 0) == 0 && z[0] == 1 && z[1] == 0 && z[2] == 0);
    double far[] = {1e30, -1e30, 0};
    assert_true(rbt_softmax(far, 3, 1) == 2e30);
}

/* With two classes the weights' difference is what lr learns: the same losses. */
static void two_classes_are_logistic_regression(void **state)
{
    (void)state;
    double z[] = {0.25, 1.5};
    assert_true(fabs(rbt_softmax(z, 2, 0) - log1p(exp(1.25))) < 1e-12);
    assert_true(fabs(z[1] - 1 / (1 + exp(-1.25))) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_gradient_agree_with_the_definition),
        cmocka_unit_test(gradient_agrees_with_finite_differences),
        cmocka_unit_test(unknown_features_are_ignored),
        cmocka_unit_test(the_label_is_the_largest_value_and_probabilities_add_up),
        cmocka_unit_test(extreme_scores_give_finite_losses),
        cmocka_unit_test(two_classes_are_logistic_regression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
