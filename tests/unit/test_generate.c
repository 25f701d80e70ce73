/* Proves src/data/generate.c: valid, reproducible, skewed and learnable data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/draw.h"
#include "data/generate.h"
#include "unit/files.h"

#define GOLDEN UINT64_C(0xc62970aee5313370)

static rbt_data generated(const rbt_generate_options *o)
{
    rbt_data d;
    rbt_error error;
    if (rbt_generate_lr(o, &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return d;
}

static uint64_t hash_of(const rbt_data *d)
{
    uint64_t h = rbt_hash(d->start, (d->rows + 1) * sizeof *d->start, d->cols);
    h = rbt_hash(d->index, d->nnz * sizeof *d->index, h);
    h = rbt_hash(d->value, d->nnz * sizeof *d->value, h);
    return rbt_hash(d->label, d->rows * sizeof *d->label, h);
}

static void check_valid(const rbt_data *d, const rbt_generate_options *o)
{
    assert_int_equal(d->rows, o->rows);
    assert_int_equal(d->cols, o->cols);
    assert_int_equal(d->start[0], 0);
    assert_int_equal(d->start[d->rows], d->nnz);
    size_t yes = 0;
    for (size_t r = 0; r < d->rows; r++) {
        assert_true(d->start[r] < d->start[r + 1]);
        double squares = 0;
        for (size_t i = d->start[r]; i < d->start[r + 1]; i++) {
            assert_true(d->index[i] < d->cols);
            assert_true(i == d->start[r] || d->index[i - 1] < d->index[i]);
            assert_true(d->value[i] > 0);
            squares += (double)d->value[i] * (double)d->value[i];
        }
        assert_true(fabs(squares - 1) < 1e-5);
        assert_true(d->label[r] == 1.0F || d->label[r] == -1.0F);
        yes += d->label[r] > 0;
    }
    if (o->rows > 1)
        assert_in_range(yes, 1, o->rows - 1);
}

static void rows_are_valid_for_all_kinds_of_options(void **state)
{
    (void)state;
    static const rbt_generate_options all[] = {
        {1, 1, 1, 1.1, 0.05, 1},   {2, 1, 1, 1.1, 0, 1},          {50, 10, 10, 1.1, 0.05, 2},
        {50, 10, 9, 10, 0.5, 3},   {200, 1000, 20, 0, 0.05, 4},   {200, 1000, 20, 1, 0.05, 5},
        {200, 1000, 20, 2, 0, 6},  {20, 5000, 400, 1.1, 0.05, 7}, {20, 300, 300, 10, 0.05, 8},
        {2000, 100, 5, 1.1, 0, 9}, {3, 100000, 1, 0.5, 0, 10},    {40, 3, 2, 1.0000001, 0, 11},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rbt_data d = generated(&all[i]);
        check_valid(&d, &all[i]);
        rbt_data_deinit(&d);
    }
}

static void the_average_row_has_the_asked_length(void **state)
{
    (void)state;
    rbt_generate_options o = rbt_generate_defaults();
    rbt_data d = generated(&o);
    check_valid(&d, &o);
    double mean = (double)d.nnz / (double)d.rows;
    assert_true(fabs(mean - (double)o.nnz) < 0.5);
    rbt_data_deinit(&d);
}

/* The bits are part of the promise: experiments name a seed. Change this number only with the generator's version. */
static void the_bytes_follow_from_the_options(void **state)
{
    (void)state;
    rbt_generate_options o = rbt_generate_defaults();
    o.rows = 500;
    rbt_data a = generated(&o), b = generated(&o);
    o.seed = 2;
    rbt_data c = generated(&o);
    assert_true(hash_of(&a) == hash_of(&b));
    assert_true(hash_of(&a) != hash_of(&c));
    if (hash_of(&a) != GOLDEN)
        fail_msg("the generator's bytes changed: 0x%llx", (unsigned long long)hash_of(&a));
    rbt_data_deinit(&a);
    rbt_data_deinit(&b);
    rbt_data_deinit(&c);
}

/* How much of all features falls on the most popular tenth of the columns. */
static double share_of_the_popular(double skew)
{
    rbt_generate_options o = rbt_generate_defaults();
    o.rows = 3000;
    o.nnz = 5;
    o.skew = skew;
    rbt_data d = generated(&o);
    size_t count[1000] = {0}, popular = 0;
    for (size_t i = 0; i < d.nnz; i++)
        count[d.index[i]]++;
    for (int k = 0; k < 100; k++) {
        size_t most = 0;
        for (size_t c = 0; c < 1000; c++)
            most = count[c] > count[most] ? c : most;
        popular += count[most];
        count[most] = 0;
    }
    double share = (double)popular / (double)d.nnz;
    rbt_data_deinit(&d);
    return share;
}

static void skew_makes_some_features_popular(void **state)
{
    (void)state;
    double none = share_of_the_popular(0), some = share_of_the_popular(1.1), strong = share_of_the_popular(2);
    assert_true(none < 0.25); /* a tenth, and what chance adds */
    assert_true(some > 0.5 && some < 0.85);
    assert_true(strong > 0.9);
}

/* Labels without noise follow a linear rule; the perceptron finds most of it. With noise 0.5 there is nothing to find.
 */
static double accuracy_of_a_perceptron(double noise)
{
    rbt_generate_options o = {.rows = 4000, .cols = 200, .nnz = 10, .skew = 1.1, .noise = noise, .seed = 5};
    rbt_data d = generated(&o);
    double w[200] = {0}, sum[200] = {0};
    for (int pass = 0; pass < 5; pass++) {
        for (size_t r = 0; r < d.rows / 2; r++) {
            double z = 0;
            for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
                z += w[d.index[i]] * (double)d.value[i];
            for (size_t i = d.start[r]; z * (double)d.label[r] <= 0 && i < d.start[r + 1]; i++)
                w[d.index[i]] += (double)(d.label[r] * d.value[i]);
            for (size_t c = 0; c < 200; c++)
                sum[c] += w[c];
        }
    }
    size_t right = 0;
    for (size_t r = d.rows / 2; r < d.rows; r++) {
        double z = 0;
        for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
            z += sum[d.index[i]] * (double)d.value[i];
        right += (z > 0) == (d.label[r] > 0);
    }
    double accuracy = (double)right / (double)(d.rows - d.rows / 2);
    rbt_data_deinit(&d);
    return accuracy;
}

static void labels_can_be_learnt_as_far_as_noise_allows(void **state)
{
    (void)state;
    double clean = accuracy_of_a_perceptron(0), noisy = accuracy_of_a_perceptron(0.2);
    assert_true(clean > 0.78);
    assert_true(noisy < clean - 0.05 && noisy > 0.6);
    assert_true(fabs(accuracy_of_a_perceptron(0.5) - 0.5) < 0.06);
}

static void options_without_sense_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        rbt_generate_options o;
        const char *piece;
    } bad[] = {
        {{0, 10, 1, 1, 0, 1}, "--rows 0"},      {{(size_t)1 << 33, 10, 1, 1, 0, 1}, "--rows 8589934592"},
        {{5, 0, 1, 1, 0, 1}, "--cols 0"},       {{5, UINT32_MAX, 1, 1, 0, 1}, "--cols 4294967295"},
        {{5, 10, 0, 1, 0, 1}, "--nnz 0"},       {{5, 10, 11, 1, 0, 1}, "--nnz 11"},
        {{5, 10, 1, -1, 0, 1}, "--skew -1"},    {{5, 10, 1, NAN, 0, 1}, "--skew nan"},
        {{5, 10, 1, 1, 0.6, 1}, "--noise 0.6"}, {{5, 10, 1, 1, -0.1, 1}, "--noise -0.1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_data d;
        rbt_error error;
        assert_int_equal(rbt_generate_lr(&bad[i].o, &d, &error), RBT_E_USAGE);
        if (strstr(error.text, bad[i].piece) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].piece, error.text);
    }
}

/* ------------------------------------------------------------------------------------------------ other kinds */

static rbt_data generated_rows(const rbt_rows_options *o, unsigned threads)
{
    rbt_data d;
    rbt_error error;
    if (rbt_generate_rows(o, threads, &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return d;
}

static void data_and_text_are_the_same_whatever_the_threads(void **state)
{
    (void)state;
    for (rbt_rows_kind kind = RBT_ROWS_LR; kind <= RBT_ROWS_CLICKS; kind++) {
        /* 50000 columns: the last one is not used */
        rbt_rows_options o = {kind, {3000, 50000, 30, 1.1, 0.05, 4}, 3, 0.1};
        rbt_data one = generated_rows(&o, 1), back;
        for (unsigned threads = 2; threads < 6; threads++) {
            rbt_data many = generated_rows(&o, threads);
            same_data(&one, &many);
            rbt_data_deinit(&many);
            rbt_writing how = {.path = "a", .threads = threads};
            assert_int_equal(rbt_generate_write(&o, RBT_FORMAT_LIBSVM, &how, NULL), RBT_OK);
            assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
            same_data(&one, &back);
            rbt_data_deinit(&back);
        }
        assert_int_equal(rbt_generate_write(&o, RBT_FORMAT_CACHE, &(rbt_writing){.path = "a"}, NULL), RBT_OK);
        assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
        same_data(&one, &back);
        rbt_data_deinit(&back);
        rbt_data_deinit(&one);
    }
    assert_int_equal(unlink("a"), 0);
}

#define FEW 12

/* Solves a x = b by elimination (a is symmetric and positive: no pivots are needed); x replaces b. */
static void solve(double a[FEW][FEW], double b[FEW])
{
    for (int k = 0; k < FEW; k++)
        for (int i = 0; i < FEW; i++) {
            double factor = i == k ? 0 : a[i][k] / a[k][k];
            for (int j = 0; j < FEW; j++)
                a[i][j] -= factor * a[k][j];
            b[i] -= factor * b[k];
        }
    for (int k = 0; k < FEW; k++)
        b[k] /= a[k][k];
}

/* What least squares leaves unexplained. */
static double deviation_of_the_rest(double noise)
{
    rbt_rows_options o = {RBT_ROWS_REGRESSION, {4000, FEW, 4, 0.5, noise, 3}, 0, 0};
    rbt_data d = generated_rows(&o, 0);
    double a[FEW][FEW] = {{0}}, w[FEW] = {0}, squares = 0;
    for (size_t r = 0; r < d.rows; r++)
        for (size_t i = d.start[r]; i < d.start[r + 1]; i++) {
            w[d.index[i]] += (double)d.value[i] * (double)d.label[r];
            for (size_t j = d.start[r]; j < d.start[r + 1]; j++)
                a[d.index[i]][d.index[j]] += (double)d.value[i] * (double)d.value[j];
        }
    solve(a, w);
    for (size_t r = 0; r < d.rows; r++) {
        double rest = (double)d.label[r];
        for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
            rest -= w[d.index[i]] * (double)d.value[i];
        squares += rest * rest;
    }
    double deviation = sqrt(squares / (double)d.rows);
    rbt_data_deinit(&d);
    return deviation;
}

static void regression_has_a_linear_truth_and_the_asked_error(void **state)
{
    (void)state;
    assert_true(deviation_of_the_rest(0) < 1e-3); /* labels have four decimals */
    assert_true(fabs(deviation_of_the_rest(0.5) - 0.5) < 0.03);
    assert_true(fabs(deviation_of_the_rest(3) - 3) < 0.2);
}

/* The share of rows that the class with the nearest mean (learnt on the first half) gets right. */
static double accuracy_of_the_means(double noise, size_t *seen)
{
    enum { CLASSES = 4, COLS = 100 };
    rbt_rows_options o = {RBT_ROWS_MULTICLASS, {6000, COLS, 6, 1.1, noise, 8}, CLASSES, 0};
    rbt_data d = generated_rows(&o, 0);
    double mean[CLASSES][COLS] = {{0}}, count[CLASSES] = {0};
    for (size_t r = 0; r < d.rows / 2; r++) {
        assert_true(d.label[r] >= 1 && d.label[r] <= CLASSES && d.label[r] == floorf(d.label[r]));
        size_t k = (size_t)d.label[r] - 1;
        count[k]++;
        for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
            mean[k][d.index[i]] += (double)d.value[i];
    }
    *seen = 0;
    for (size_t k = 0; k < CLASSES; k++)
        *seen += count[k] > 0;
    size_t right = 0;
    for (size_t r = d.rows / 2; r < d.rows; r++) {
        size_t best = 0;
        double most = -1e9;
        for (size_t k = 0; k < CLASSES; k++) {
            double z = 0;
            for (size_t i = d.start[r]; i < d.start[r + 1]; i++)
                z += mean[k][d.index[i]] / count[k] * (double)d.value[i];
            for (size_t c = 0; c < COLS; c++)
                z -= mean[k][c] / count[k] * (mean[k][c] / count[k]) / 2;
            best = z > most ? k : best;
            most = z > most ? z : most;
        }
        right += (size_t)d.label[r] == best + 1;
    }
    double accuracy = (double)right / (double)(d.rows - d.rows / 2);
    rbt_data_deinit(&d);
    return accuracy;
}

static void multiclass_has_all_classes_and_can_be_learnt_as_far_as_noise_allows(void **state)
{
    (void)state;
    size_t seen;
    double clean = accuracy_of_the_means(0, &seen);
    assert_int_equal(seen, 4);
    assert_true(clean > 0.5);
    assert_true(accuracy_of_the_means(0.5, &seen) < clean - 0.1);
    assert_true(fabs(accuracy_of_the_means(1, &seen) - 0.25) < 0.05);
}

static void clicks_have_one_feature_in_each_field_and_the_asked_rate(void **state)
{
    (void)state;
    enum { FIELDS = 8 };
    rbt_rows_options o = {RBT_ROWS_CLICKS, {40000, 5000, FIELDS, 1.1, 0, 2}, 0, 0.03};
    rbt_data d = generated_rows(&o, 0);
    uint32_t low[FIELDS], high[FIELDS] = {0};
    size_t yes = 0, count[5000] = {0}, most = 0;
    for (size_t f = 0; f < FIELDS; f++)
        low[f] = UINT32_MAX;
    for (size_t r = 0; r < d.rows; r++) {
        assert_int_equal(d.start[r + 1] - d.start[r], FIELDS);
        for (size_t f = 0; f < FIELDS; f++) {
            uint32_t c = d.index[d.start[r] + f];
            assert_true(d.value[d.start[r] + f] == 1.0F);
            low[f] = c < low[f] ? c : low[f];
            high[f] = c > high[f] ? c : high[f];
        }
        yes += d.label[r] > 0;
        count[d.index[d.start[r + 1] - 1]]++;
    }
    for (size_t f = 1; f < FIELDS; f++)
        assert_true(high[f - 1] < low[f]);
    for (size_t c = 0; c < 5000; c++)
        most = count[c] > most ? count[c] : most;
    assert_in_range(most, d.rows / 15, d.rows / 5); /* the most popular one of 3000: about 12 % */
    assert_true(high[FIELDS - 1] - low[FIELDS - 1] > 10 * (high[0] - low[0]));
    assert_true(fabs((double)yes / (double)d.rows - 0.03) < 0.006);
    rbt_data_deinit(&d);
    /* half of the labels drawn anew, at the same rate */
    o.common.noise = 0.5;
    d = generated_rows(&o, 0);
    yes = 0;
    for (size_t r = 0; r < d.rows; r++)
        yes += d.label[r] > 0;
    assert_true(fabs((double)yes / (double)d.rows - 0.03) < 0.006);
    rbt_data_deinit(&d);
}

static void sets_of_all_shapes_are_valid_in_every_kind(void **state)
{
    (void)state;
    static const rbt_generate_options all[] = {{1, 1, 1, 1.1, 0.05, 1},    {2, 1, 1, 1.1, 0, 1},
                                               {50, 10, 10, 1.1, 0.05, 2}, {3, 100000, 1, 0.5, 0, 10},
                                               {20, 300, 290, 10, 0.5, 8}, {40, 3, 2, 1, 0, 11}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (rbt_rows_kind kind = RBT_ROWS_LR; kind <= RBT_ROWS_CLICKS; kind++) {
            rbt_rows_options o = {kind, all[i], 3, 0.03};
            rbt_data d = generated_rows(&o, 2);
            bool two = false;
            for (size_t r = 0; r < d.rows; r++) {
                two |= d.label[r] != d.label[0];
                for (size_t k = d.start[r]; k < d.start[r + 1]; k++)
                    assert_true(d.index[k] < d.cols && d.value[k] != 0 && isfinite(d.value[k]) &&
                                (k == d.start[r] || d.index[k - 1] < d.index[k]));
            }
            assert_true(two || d.rows == 1);
            rbt_data_deinit(&d);
        }
}

static void options_of_the_other_kinds_are_checked_too(void **state)
{
    (void)state;
    static const struct {
        rbt_rows_options o;
        const char *piece;
    } bad[] = {
        {{RBT_ROWS_MULTICLASS, {5, 10, 1, 1, 0, 1}, 1, 0}, "--classes 1 is out of range; give a number from 2"},
        {{RBT_ROWS_MULTICLASS, {5, 10, 1, 1, 1.5, 1}, 3, 0}, "--noise 1.5 is out of range; give a probability"},
        {{RBT_ROWS_CLICKS, {5, 10, 1, 1, 0, 1}, 0, 0}, "--rate 0"},
        {{RBT_ROWS_CLICKS, {5, 10, 1, 1, 0, 1}, 0, NAN}, "--rate nan"},
        {{RBT_ROWS_REGRESSION, {5, 10, 1, 1, -1, 1}, 0, 0}, "--noise -1 is out of range; give a standard deviation"},
        {{RBT_ROWS_CLICKS, {5, 10, 11, 1, 0, 1}, 0, 0.1}, "--nnz 11"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_data d;
        rbt_error error;
        assert_int_equal(rbt_generate_rows(&bad[i].o, 0, &d, &error), RBT_E_USAGE);
        if (strstr(error.text, bad[i].piece) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].piece, error.text);
    }
    /* more than any machine has */
    rbt_error error;
    assert_int_equal(rbt_draw_check_memory(1e18, "it", &error), RBT_E_MEMORY);
    assert_non_null(strstr(error.text, "it needs 1000000000.0 GB of memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_valid_for_all_kinds_of_options),
        cmocka_unit_test(the_average_row_has_the_asked_length),
        cmocka_unit_test(the_bytes_follow_from_the_options),
        cmocka_unit_test(skew_makes_some_features_popular),
        cmocka_unit_test(labels_can_be_learnt_as_far_as_noise_allows),
        cmocka_unit_test(options_without_sense_are_refused_by_name),
        cmocka_unit_test(data_and_text_are_the_same_whatever_the_threads),
        cmocka_unit_test(regression_has_a_linear_truth_and_the_asked_error),
        cmocka_unit_test(multiclass_has_all_classes_and_can_be_learnt_as_far_as_noise_allows),
        cmocka_unit_test(clicks_have_one_feature_in_each_field_and_the_asked_rate),
        cmocka_unit_test(sets_of_all_shapes_are_valid_in_every_kind),
        cmocka_unit_test(options_of_the_other_kinds_are_checked_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
