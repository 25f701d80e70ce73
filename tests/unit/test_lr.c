/* Proves src/model/linear.c and registry.c: the linear models' losses, gradients, labels and refusals. */
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
#include "data/generate.h"

static rbt_data parsed(const char *text)
{
    rbt_data d;
    rbt_error error;
    if (rbt_data_parse_libsvm(text, strlen(text), "mem", &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return d;
}

static double minus_and_plus[] = {-1, 1};

/* Data with the labels -1 and 1, ready for a model. */
static rbt_data fitted(const char *text)
{
    rbt_data d = parsed(text);
    rbt_shape shape = {.classes = 2, .labels = minus_and_plus};
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    return d;
}

static const rbt_model *lr(void)
{
    const rbt_model *model = rbt_model_find("lr");
    assert_non_null(model);
    return model;
}

static void models_are_found_by_name_and_listed(void **state)
{
    (void)state;
    assert_ptr_equal(rbt_model_at(0), lr());
    assert_null(rbt_model_find("no such model"));
    assert_null(rbt_model_find(""));
    size_t n = 0;
    while (rbt_model_at(n) != NULL)
        n++;
    assert_null(rbt_model_at(n + 1));
    assert_null(rbt_model_at(SIZE_MAX));
}

static void the_larger_label_is_yes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double no, yes;
    } cases[] = {{"1 1:1\n-1 2:1\n1 1:1\n", -1, 1}, {"0 1:1\n1 2:1\n", 0, 1}, {"2.5 1:1\n-7 2:1\n", -7, 2.5}};
    for (size_t i = 0; i < 3; i++) {
        rbt_data d = parsed(cases[i].text);
        rbt_shape shape = {.bias = true};
        assert_int_equal(lr()->prepare(&d, &shape, NULL), RBT_OK);
        assert_true(shape.labels[0] == cases[i].no && shape.labels[1] == cases[i].yes);
        assert_int_equal(shape.cols, 2);
        assert_true(shape.bias);
        assert_int_equal(lr()->size(&shape), 3);
        assert_int_equal(shape.classes, 2);
        assert_int_equal(lr()->outputs(&shape), 1);
        double score = 0.1, p[2];
        assert_true(lr()->label(&shape, &score) == 1);
        lr()->probability(&shape, &score, p);
        assert_true(p[1] > 0.5 && p[0] + p[1] == 1);
        score = -0.1;
        assert_true(lr()->label(&shape, &score) == 0);
        assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
        assert_true(d.label[0] == (i == 1 ? 0 : 1) && d.label[1] == (i == 1 ? 1 : 0));
        rbt_data_deinit(&d);
        rbt_shape_deinit(&shape);
    }
}

static void a_number_of_features_given_beforehand_is_kept(void **state)
{
    (void)state;
    rbt_data d = parsed("1 1:1\n-1 2:1\n");
    rbt_shape shape = {.cols = 9};
    assert_int_equal(lr()->prepare(&d, &shape, NULL), RBT_OK);
    assert_int_equal(lr()->size(&shape), 9);
    shape.cols = UINT32_MAX;
    assert_int_equal(lr()->prepare(&d, &shape, NULL), RBT_E_LIMIT);
    rbt_data_deinit(&d);
    rbt_shape_deinit(&shape);
}

static void one_label_or_three_are_refused_with_the_labels_found(void **state)
{
    (void)state;
    rbt_error error;
    rbt_shape shape = {0};
    rbt_data d = parsed("7 1:1\n7 2:1\n");
    assert_int_equal(lr()->prepare(&d, &shape, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "all 2 rows have the label 7"));
    rbt_data_deinit(&d);
    d = parsed("3 1:1\n1 2:1\n3 1:1\n2 1:1\n");
    assert_int_equal(lr()->prepare(&d, &shape, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "1 (row 2), 2 (row 4) and 3 (row 1)"));
    rbt_data_deinit(&d);
    d = (rbt_data){0};
    assert_int_equal(lr()->prepare(&d, &shape, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "no rows"));
}

/* A generated problem with its shape, random parameters and all row numbers. */
typedef struct problem {
    rbt_data data;
    rbt_shape shape;
    size_t n;
    float *w;
    float *gradient;
    uint32_t *rows;
} problem;

static problem problem_init(bool bias)
{
    rbt_generate_options o = {.rows = 300, .cols = 40, .nnz = 6, .skew = 1.1, .noise = 0.05, .seed = 3};
    problem p = {.shape = {.bias = bias}};
    assert_int_equal(rbt_generate_lr(&o, &p.data, NULL), RBT_OK);
    assert_int_equal(lr()->prepare(&p.data, &p.shape, NULL), RBT_OK);
    assert_int_equal(rbt_shape_apply(&p.shape, true, &p.data, NULL), RBT_OK);
    p.n = lr()->size(&p.shape);
    p.w = calloc(p.n, sizeof *p.w);
    p.gradient = calloc(p.n, sizeof *p.gradient);
    p.rows = calloc(o.rows, sizeof *p.rows);
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    for (size_t i = 0; i < p.n; i++)
        p.w[i] = (float)rbt_rng_normal(&rng);
    for (size_t i = 0; i < o.rows; i++)
        p.rows[i] = (uint32_t)i;
    return p;
}

static void problem_deinit(problem *p)
{
    rbt_data_deinit(&p->data);
    rbt_shape_deinit(&p->shape);
    free(p->w);
    free(p->gradient);
    free(p->rows);
}

/* The definition, in double precision and with the C library. */
static double plain_loss(const problem *p, size_t row, double *slope)
{
    double z = p->shape.bias ? (double)p->w[p->shape.cols] : 0;
    for (size_t i = p->data.start[row]; i < p->data.start[row + 1]; i++)
        z += (double)p->data.value[i] * (double)p->w[p->data.index[i]];
    bool yes = p->data.label[row] > 0;
    *slope = 1 / (1 + exp(-z)) - (yes ? 1 : 0);
    return log1p(exp(yes ? -z : z));
}

static void loss_and_gradient_agree_with_the_definition(void **state)
{
    (void)state;
    for (int bias = 0; bias < 2; bias++) {
        problem p = problem_init(bias);
        double expected[64] = {0}, loss = 0;
        for (size_t r = 0; r < p.data.rows; r++) {
            double slope;
            loss += plain_loss(&p, r, &slope);
            for (size_t i = p.data.start[r]; i < p.data.start[r + 1]; i++)
                expected[p.data.index[i]] += slope * (double)p.data.value[i];
            if (bias)
                expected[p.shape.cols] += slope;
        }
        double ours = lr()->gradient(&p.shape, &p.data, p.rows, p.data.rows, p.w, p.gradient);
        assert_true(fabs(ours - loss) < 1e-5 * loss);
        assert_true(lr()->loss(&p.shape, &p.data, 0, p.data.rows, p.w) == ours); /* the same bits */
        for (size_t i = 0; i < p.n; i++)
            assert_true(fabs((double)p.gradient[i] - expected[i]) < 1e-4);
        problem_deinit(&p);
    }
}

static void gradient_agrees_with_finite_differences(void **state)
{
    (void)state;
    problem p = problem_init(true);
    (void)lr()->gradient(&p.shape, &p.data, p.rows, p.data.rows, p.w, p.gradient);
    for (size_t i = 0; i < p.n; i++) {
        float before = p.w[i], up = before + 0.01F, down = before - 0.01F;
        p.w[i] = up;
        double above = lr()->loss(&p.shape, &p.data, 0, p.data.rows, p.w);
        p.w[i] = down;
        double below = lr()->loss(&p.shape, &p.data, 0, p.data.rows, p.w);
        p.w[i] = before;
        double slope = (above - below) / ((double)up - (double)down);
        assert_true(fabs(slope - (double)p.gradient[i]) < 2e-3 * (1 + fabs(slope)));
    }
    problem_deinit(&p);
}

static void gradient_adds_up_over_batches_bit_for_bit(void **state)
{
    (void)state;
    problem p = problem_init(true);
    float *parts = calloc(p.n, sizeof *parts);
    assert_non_null(parts);
    (void)lr()->gradient(&p.shape, &p.data, p.rows, p.data.rows, p.w, p.gradient);
    for (size_t first = 0; first < p.data.rows; first += 7) {
        size_t n = p.data.rows - first < 7 ? p.data.rows - first : 7;
        (void)lr()->gradient(&p.shape, &p.data, p.rows + first, n, p.w, parts);
    }
    assert_memory_equal(parts, p.gradient, p.n * sizeof *parts);
    free(parts);
    problem_deinit(&p);
}

/* Data to predict on may know more features: they are not looked at, and nothing beyond the parameters is read. */
static void unknown_features_are_ignored(void **state)
{
    (void)state;
    rbt_data wide = fitted("1 1:1 2:2 3:5 900:7\n-1 4:1 4000000000:1\n"), narrow = fitted("1 1:1 2:2\n-1\n");
    for (int bias = 0; bias < 2; bias++) {
        rbt_shape shape = {.cols = 2, .bias = bias, .classes = 2, .labels = minus_and_plus};
        size_t n = lr()->size(&shape);
        float *w = malloc(n * sizeof *w), *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b); /* exactly that large */
        for (size_t i = 0; i < n; i++)
            w[i] = 0.25F * (float)(i + 1);
        uint32_t rows[] = {0, 1};
        double x = lr()->gradient(&shape, &wide, rows, 2, w, a), y = lr()->gradient(&shape, &narrow, rows, 2, w, b);
        assert_true(x == y);
        assert_memory_equal(a, b, n * sizeof *a);
        assert_true(lr()->loss(&shape, &wide, 0, 2, w) == x);
        double score;
        lr()->score(&shape, &wide, 0, w, &score);
        assert_true(score == 1.25 + (bias ? 0.75 : 0));
        lr()->score(&shape, &wide, 1, w, &score);
        assert_true(score == (bias ? 0.75 : 0));
        free(w);
        free(a);
        free(b);
    }
    rbt_data_deinit(&wide);
    rbt_data_deinit(&narrow);
}

static void extreme_scores_give_finite_losses_and_nan_shows(void **state)
{
    (void)state;
    rbt_data d = fitted("1 1:1\n-1 1:1\n");
    rbt_shape shape = {.cols = 1, .classes = 2, .labels = minus_and_plus};
    uint32_t rows[] = {0, 1};
    float w = 1e30F, gradient = 0;
    double loss = lr()->gradient(&shape, &d, rows, 2, &w, &gradient);
    assert_true(fabs(loss / 1e30 - 1) < 1e-6);
    assert_true(gradient == 1.0F); /* the wrong row pulls with all its weight, the right one not at all */
    w = NAN;
    assert_true(isnan(lr()->gradient(&shape, &d, rows, 2, &w, &gradient)));
    assert_true(isnan(lr()->loss(&shape, &d, 0, 2, &w)));
    rbt_data_deinit(&d);
}

/* One feature, value 1, a of n rows yes: the optimum is log(a / (n - a)), its mean loss the entropy. */
static void descent_finds_the_optimum_known_from_theory(void **state)
{
    (void)state;
    rbt_data d = fitted("1 1:1\n1 1:1\n1 1:1\n-1 1:1\n");
    rbt_shape shape = {.cols = 1, .classes = 2, .labels = minus_and_plus};
    uint32_t rows[] = {0, 1, 2, 3};
    float w = 0;
    for (int step = 0; step < 200; step++) {
        float gradient = 0;
        (void)lr()->gradient(&shape, &d, rows, 4, &w, &gradient);
        w -= gradient;
    }
    assert_true(fabs((double)w - log(3)) < 1e-6);
    double entropy = -(0.75 * log(0.75) + 0.25 * log(0.25));
    assert_true(fabs(lr()->loss(&shape, &d, 0, 4, &w) / 4 - entropy) < 1e-9);
    rbt_data_deinit(&d);
}

/* A row of weight 3 counts as the row three times over, in the loss and in the gradient of every linear model. */
static void weights_of_rows_count(void **state)
{
    (void)state;
    static const char *const names[] = {"lr", "svm", "svm2", "linear", "huber"};
    for (size_t m = 0; m < 5; m++) {
        const rbt_model *model = rbt_model_find(names[m]);
        rbt_data once = fitted("1 1:1 2:2\n-1 1:-1\n"), thrice = fitted("1 1:1 2:2\n-1 1:-1\n-1 1:-1\n-1 1:-1\n");
        rbt_shape shape = {.cols = 2, .bias = true, .delta = 1, .classes = m < 3 ? 2 : 0, .labels = minus_and_plus};
        uint32_t rows[] = {0, 1, 2, 3};
        float w[] = {0.5F, -0.25F, 0.125F}, a[3] = {0}, b[3] = {0};
        once.weight = rbt_alloc(2, sizeof *once.weight);
        once.weight[0] = 1;
        once.weight[1] = 3;
        double x = model->gradient(&shape, &once, rows, 2, w, a), y = model->gradient(&shape, &thrice, rows, 4, w, b);
        assert_true(fabs(x - y) < 1e-12 && x > 0);
        assert_true(model->loss(&shape, &once, 0, 2, w) == x);
        for (size_t i = 0; i < 3; i++)
            assert_true(fabsf(a[i] - b[i]) < 1e-6F);
        rbt_data_deinit(&once);
        rbt_data_deinit(&thrice);
    }
}

static void regressions_predict_their_decision_value_and_take_any_number(void **state)
{
    (void)state;
    rbt_data d = parsed("7.5 1:1\n7.5 2:1\n");
    rbt_shape shape = {.bias = true, .delta = 1};
    const rbt_model *linear = rbt_model_find("linear"), *huber = rbt_model_find("huber");
    assert_int_equal(linear->prepare(&d, &shape, NULL), RBT_OK);
    assert_int_equal(shape.classes, 0);
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    assert_true(d.label[0] == 7.5F);
    float w[] = {1, 2, 0.5F};
    double score;
    linear->score(&shape, &d, 0, w, &score);
    assert_true(score == 1.5 && linear->label(&shape, &score) == 1.5);
    assert_null(linear->probability);
    assert_true(linear->loss(&shape, &d, 0, 1, w) == 18); /* 6^2 / 2 */
    assert_true(huber->loss(&shape, &d, 0, 1, w) == 5.5); /* 6 - 1/2 */
    rbt_data_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_found_by_name_and_listed),
        cmocka_unit_test(the_larger_label_is_yes),
        cmocka_unit_test(a_number_of_features_given_beforehand_is_kept),
        cmocka_unit_test(one_label_or_three_are_refused_with_the_labels_found),
        cmocka_unit_test(loss_and_gradient_agree_with_the_definition),
        cmocka_unit_test(gradient_agrees_with_finite_differences),
        cmocka_unit_test(gradient_adds_up_over_batches_bit_for_bit),
        cmocka_unit_test(unknown_features_are_ignored),
        cmocka_unit_test(extreme_scores_give_finite_losses_and_nan_shows),
        cmocka_unit_test(descent_finds_the_optimum_known_from_theory),
        cmocka_unit_test(weights_of_rows_count),
        cmocka_unit_test(regressions_predict_their_decision_value_and_take_any_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
