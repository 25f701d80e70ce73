/* Proves src/model/lr.c and registry.c: logistic regression's loss, gradient, labels and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        assert_true(lr()->label(&shape, 0.1) == cases[i].yes);
        assert_true(lr()->label(&shape, -0.1) == cases[i].no);
        assert_true(lr()->probability(&shape, 0) == 0.5);
        rbt_data_deinit(&d);
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
    rbt_data wide = parsed("1 1:1 2:2 3:5 900:7\n-1 4:1 4000000000:1\n"), narrow = parsed("1 1:1 2:2\n-1\n");
    for (int bias = 0; bias < 2; bias++) {
        rbt_shape shape = {.cols = 2, .bias = bias, .labels = {-1, 1}};
        size_t n = lr()->size(&shape);
        float *w = malloc(n * sizeof *w), *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b); /* exactly that large */
        for (size_t i = 0; i < n; i++)
            w[i] = 0.25F * (float)(i + 1);
        uint32_t rows[] = {0, 1};
        double x = lr()->gradient(&shape, &wide, rows, 2, w, a), y = lr()->gradient(&shape, &narrow, rows, 2, w, b);
        assert_true(x == y);
        assert_memory_equal(a, b, n * sizeof *a);
        assert_true(lr()->loss(&shape, &wide, 0, 2, w) == x);
        assert_true(lr()->score(&shape, &wide, 0, w) == 1.25 + (bias ? 0.75 : 0));
        assert_true(lr()->score(&shape, &wide, 1, w) == (bias ? 0.75 : 0));
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
    rbt_data d = parsed("1 1:1\n-1 1:1\n");
    rbt_shape shape = {.cols = 1, .labels = {-1, 1}};
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
    rbt_data d = parsed("1 1:1\n1 1:1\n1 1:1\n-1 1:1\n");
    rbt_shape shape = {.cols = 1, .labels = {-1, 1}};
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
