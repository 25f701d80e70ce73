/* Proves src/data/scale.c: features become alike, and what was learned is applied and folded back exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "data/scale.h"

static rbt_data data_of(const char *text)
{
    rbt_data d;
    assert_int_equal(rbt_data_parse_libsvm(text, strlen(text), "mem", &d, NULL), RBT_OK);
    return d;
}

static double cell(const rbt_data *d, size_t row, uint32_t col)
{
    for (size_t i = d->start[row]; i < d->start[row + 1]; i++)
        if (d->index[i] == col)
            return (double)d->value[i];
    return 0;
}

static void mean_and_variance(const rbt_data *d, uint32_t col, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (size_t r = 0; r < d->rows; r++)
        *mean += cell(d, r, col) / (double)d->rows;
    for (size_t r = 0; r < d->rows; r++)
        *variance += (cell(d, r, col) - *mean) * (cell(d, r, col) - *mean) / (double)d->rows;
}

static void dense_features_get_mean_zero_and_variance_one(void **state)
{
    /* sizes from 1e-8 to 1e6, one feature with a zero, one that is negative */
    rbt_data d =
        data_of("1 1:1e6 2:-3 3:1e-8 4:5\n0 1:3e6 2:-7 3:3e-8\n1 1:2e6 2:-5 3:9e-8 4:1\n2 1:4e6 2:-1 3:4e-8 4:2\n");
    rbt_scaling s;
    double mean, variance;
    (void)state;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK);
    assert_non_null(s.mean);
    assert_int_equal(rbt_scaling_apply(&s, &d, NULL), RBT_OK);
    assert_int_equal(d.nnz, 16); /* the zero has moved, too */
    assert_int_equal(d.rows, 4);
    assert_true(d.label[3] == 2 && d.label[1] == 0);
    for (uint32_t j = 0; j < 4; j++) {
        mean_and_variance(&d, j, &mean, &variance);
        assert_true(fabs(mean) < 1e-6);
        assert_true(fabs(variance - 1) < 1e-5);
    }
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
}

static void the_largest_and_the_smallest_values_become_ordinary_ones(void **state)
{
    rbt_data d = data_of("1 1:3e38 2:1e-44\n0 1:-3e38 2:3e-44\n1 1:-3.4e38 2:9e-44\n2 1:1e38 2:4e-44\n");
    rbt_scaling s;
    double mean, variance;
    float w[3] = {1, 1, 0};
    (void)state;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK);
    assert_int_equal(rbt_scaling_apply(&s, &d, NULL), RBT_OK);
    for (size_t i = 0; i < d.nnz; i++)
        assert_true(isfinite(d.value[i]));
    mean_and_variance(&d, 0, &mean, &variance);
    assert_true(fabs(mean) < 1e-6 && fabs(variance - 1) < 1e-5);
    rbt_scaling_fold(&s, 1, w);
    assert_true(isfinite(w[0]) && isfinite(w[1]) && isfinite(w[2]));
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
}

static void sparse_features_are_scaled_and_their_zeros_stay(void **state)
{
    rbt_data d = data_of("1 1:100\n0 2:3\n1 3:1e-3\n0 4:2\n1 1:300\n0 2:1\n1 3:5e-3 4:1\n");
    rbt_scaling s;
    double mean, variance;
    size_t nnz = d.nnz;
    (void)state;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK);
    assert_null(s.mean);
    assert_int_equal(rbt_scaling_apply(&s, &d, NULL), RBT_OK);
    assert_int_equal(d.nnz, nnz);
    for (uint32_t j = 0; j < 4; j++) {
        mean_and_variance(&d, j, &mean, &variance);
        assert_true(fabs(variance - 1) < 1e-5);
    }
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
}

static void a_feature_that_never_changes_is_left_as_it_is(void **state)
{
    rbt_data d = data_of("1 1:3 2:0.1 3:1\n0 1:3 2:0.1 3:2\n1 1:3 2:0.1 3:5\n");
    rbt_scaling s;
    (void)state;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK);
    assert_int_equal(rbt_scaling_apply(&s, &d, NULL), RBT_OK);
    for (size_t r = 0; r < 3; r++)
        assert_true(cell(&d, r, 0) == 3 && cell(&d, r, 1) == (double)0.1F);
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
}

static void other_data_is_scaled_as_what_was_learned_from(void **state)
{
    rbt_data d = data_of("1 1:1 2:4\n0 1:3 2:8\n"), other = data_of("1 1:3\n0 2:4 5:7\n");
    rbt_scaling s;
    (void)state;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK); /* means 2 and 6, deviations 1 and 2 */
    assert_int_equal(rbt_scaling_apply(&s, &other, NULL), RBT_OK);
    assert_true(cell(&other, 0, 0) == 1 && cell(&other, 0, 1) == -3);
    assert_true(cell(&other, 1, 0) == -2 && cell(&other, 1, 1) == -1);
    assert_true(cell(&other, 1, 4) == 7 && cell(&other, 0, 4) == 0); /* never learned */
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
    rbt_data_deinit(&other);
}

static void weights_and_names_of_labels_survive(void **state)
{
    rbt_data d = data_of("0 1:1 2:4\n1 1:3 2:8\n");
    rbt_scaling s;
    (void)state;
    d.weight = rbt_alloc(2, sizeof *d.weight);
    d.weight[0] = 3;
    d.weight[1] = 0.5F;
    d.label_names = rbt_alloc(2, sizeof *d.label_names);
    d.label_names[0] = rbt_strdup("cat");
    d.label_names[1] = rbt_strdup("dog");
    d.label_count = 2;
    assert_int_equal(rbt_scaling_learn(&s, &d, NULL), RBT_OK);
    assert_int_equal(rbt_scaling_apply(&s, &d, NULL), RBT_OK);
    assert_true(d.weight[0] == 3 && d.weight[1] == 0.5F);
    assert_int_equal(d.label_count, 2);
    assert_string_equal(d.label_names[1], "dog");
    rbt_scaling_deinit(&s);
    rbt_data_deinit(&d);
}

/* Scores of folded weights on the file's data are those of the weights on scaled data. */
static void folded_weights_take_data_as_it_is_in_the_file(void **state)
{
    const char *text = "1 1:1000 2:0.5 3:7\n0 1:3000 2:0.25 3:9\n1 1:2500 3:8\n";
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    (void)state;
    for (unsigned moved = 0; moved < 2; moved++) {
        rbt_data raw = data_of(text), scaled = data_of(text);
        rbt_scaling s;
        float w[8], folded[8];
        assert_int_equal(rbt_scaling_learn(&s, &raw, NULL), RBT_OK);
        if (moved == 0) {
            rbt_free(s.mean);
            s.mean = NULL;
        }
        assert_int_equal(rbt_scaling_apply(&s, &scaled, NULL), RBT_OK);
        for (size_t i = 0; i < 8; i++)
            w[i] = (float)rbt_rng_normal(&rng);
        memcpy(folded, w, sizeof w);
        rbt_scaling_fold(&s, 2, folded);
        for (size_t r = 0; r < 3; r++)
            for (size_t k = 0; k < 2; k++) {
                double a = (double)w[6 + k], b = (double)folded[6 + k];
                for (uint32_t j = 0; j < 3; j++) {
                    a += cell(&scaled, r, j) * (double)w[2 * j + k];
                    b += cell(&raw, r, j) * (double)folded[2 * j + k];
                }
                assert_true(fabs(a - b) < 1e-4 * (1 + fabs(a)));
            }
        rbt_scaling_deinit(&s);
        rbt_data_deinit(&raw);
        rbt_data_deinit(&scaled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_features_get_mean_zero_and_variance_one),
        cmocka_unit_test(the_largest_and_the_smallest_values_become_ordinary_ones),
        cmocka_unit_test(sparse_features_are_scaled_and_their_zeros_stay),
        cmocka_unit_test(a_feature_that_never_changes_is_left_as_it_is),
        cmocka_unit_test(other_data_is_scaled_as_what_was_learned_from),
        cmocka_unit_test(weights_and_names_of_labels_survive),
        cmocka_unit_test(folded_weights_take_data_as_it_is_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
