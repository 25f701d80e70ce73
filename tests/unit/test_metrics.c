/* Proves src/model/metrics.c: every metric against its definition, weights of rows, blocks, refusals. */
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
#include "model/metrics.h"

#define ROWS 500

static double numbers[] = {0, 1, 2};
static float weights[] = {2, -1};
static float one = 1;

static rbt_trained trained(void)
{
    return (rbt_trained){
        .model = rbt_model_find("lr"), .shape = {.cols = 2, .classes = 2, .labels = numbers}, .n = 2, .w = weights};
}

/* A model whose decision value is the row's only feature. */
static rbt_trained identity(const char *model, size_t classes, double delta)
{
    return (rbt_trained){
        .model = rbt_model_find(model),
        .shape = {.cols = 1, .classes = classes, .labels = classes > 0 ? numbers : NULL, .delta = delta},
        .n = 1,
        .w = &one};
}

static rbt_data parsed(const char *text)
{
    rbt_data d;
    assert_int_equal(rbt_data_parse_libsvm(text, strlen(text), "mem", &d, NULL), RBT_OK);
    return d;
}

/* Rows with one feature: few different values, so that there are ties; labels below `classes`, or any number. */
static rbt_data random_data(size_t classes, bool weighted)
{
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, classes);
    rbt_data d;
    assert_int_equal(rbt_data_alloc(ROWS, ROWS, &d, NULL), RBT_OK);
    d.rows = d.nnz = ROWS;
    d.cols = 1;
    d.weight = weighted ? rbt_alloc(ROWS, sizeof *d.weight) : NULL;
    for (size_t r = 0; r < ROWS; r++) {
        d.start[r + 1] = r + 1;
        d.index[r] = 0;
        d.label[r] = classes > 0 ? (float)rbt_rng_below(&rng, classes) : (float)rbt_rng_normal(&rng) + 100;
        d.value[r] = (float)((double)rbt_rng_below(&rng, 40) / 4 - 5) + d.label[r];
        if (weighted)
            d.weight[r] = (float)(1 + rbt_rng_below(&rng, 5));
    }
    return d;
}

static double weight_of(const rbt_data *d, size_t row)
{
    return d->weight != NULL ? (double)d->weight[row] : 1;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static void accuracy_and_loss_are_means_over_the_rows(void **state)
{
    (void)state;
    rbt_trained t = trained();
    rbt_data d = parsed("1 1:1\n0 2:1\n1 2:1\n0 9:1\n"); /* scores 2, -1, -1, 0: the third is wrong */
    rbt_metrics m;
    assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, NULL), RBT_OK);
    assert_int_equal(m.rows, 4);
    assert_true(m.weight == 4);
    assert_true(m.value[RBT_METRIC_ACCURACY] == 0.75);
    double loss = log1p(exp(-2)) + log1p(exp(-1)) + log1p(exp(1)) + log(2);
    assert_true(near(m.value[RBT_METRIC_LOSS], loss / 4));
    assert_true(m.value[RBT_METRIC_LOGLOSS] == m.value[RBT_METRIC_LOSS]);
    assert_true(isnan(m.value[RBT_METRIC_RMSE]) && isnan(m.value[RBT_METRIC_R2]));
    assert_true(m.value[RBT_METRIC_PRECISION] == 1 && m.value[RBT_METRIC_RECALL] == 0.5);
    assert_true(near(m.value[RBT_METRIC_F1], 2.0 / 3));
    static const double confusion[] = {2, 0, 1, 1};
    assert_memory_equal(m.confusion, confusion, sizeof confusion);
    rbt_metrics_deinit(&m);
    assert_null(m.confusion);
    rbt_data_deinit(&d);
}

static void auc_is_the_share_of_ordered_pairs_with_ties_half(void **state)
{
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        rbt_data d = random_data(2, weighted);
        rbt_trained t = identity("svm", 2, 0);
        rbt_metrics m;
        double right = 0, pairs = 0;
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < ROWS; j++) {
                if (!(d.label[i] > d.label[j]))
                    continue;
                double pair = weight_of(&d, i) * weight_of(&d, j);
                pairs += pair;
                right += d.value[i] > d.value[j] ? pair : d.value[i] == d.value[j] ? pair / 2 : 0;
            }
        assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, NULL), RBT_OK);
        assert_true(right / pairs > 0.5 && near(m.value[RBT_METRIC_AUC], right / pairs));
        assert_true(isnan(m.value[RBT_METRIC_LOGLOSS])); /* svm has no probabilities */
        rbt_metrics_deinit(&m);
        rbt_data_deinit(&d);
    }
}

static void auc_of_one_class_alone_is_not_a_number(void **state)
{
    (void)state;
    rbt_trained t = trained();
    rbt_data d = parsed("1 1:1\n1 2:1\n");
    rbt_metrics m;
    assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, NULL), RBT_OK);
    assert_true(isnan(m.value[RBT_METRIC_AUC]) && m.value[RBT_METRIC_ACCURACY] == 0.5);
    rbt_metrics_deinit(&m);
    rbt_data_deinit(&d);
}

/* Three classes with decision values 0, x, 2x - 1.5: what is predicted follows from x. */
static void more_classes_have_the_mean_of_each_ones_f1_precision_and_recall(void **state)
{
    (void)state;
    float w[] = {0, 1, 2, 0, 0, -1.5F};
    rbt_trained t = {.model = rbt_model_find("softmax"),
                     .shape = {.cols = 1, .bias = true, .classes = 3, .labels = numbers},
                     .n = 6,
                     .w = w};
    for (int weighted = 0; weighted < 2; weighted++) {
        rbt_data d = random_data(3, weighted);
        double table[3][3] = {{0}}, f1 = 0, precision = 0, recall = 0, right = 0, all = 0;
        for (size_t r = 0; r < ROWS; r++) {
            double x = (double)d.value[r];
            size_t said = x > 1.5 ? 2 : x > 0 ? 1 : 0;
            table[(size_t)d.label[r]][said] += weight_of(&d, r);
        }
        for (size_t k = 0; k < 3; k++) {
            double truly = table[k][0] + table[k][1] + table[k][2], said = table[0][k] + table[1][k] + table[2][k];
            double p = table[k][k] / said, q = table[k][k] / truly;
            precision += p / 3;
            recall += q / 3;
            f1 += 2 * p * q / (p + q) / 3;
            right += table[k][k];
            all += truly;
        }
        rbt_metrics m;
        assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, NULL), RBT_OK);
        assert_memory_equal(m.confusion, table, sizeof table);
        assert_true(near(m.value[RBT_METRIC_F1], f1) && near(m.value[RBT_METRIC_PRECISION], precision));
        assert_true(near(m.value[RBT_METRIC_RECALL], recall) && near(m.value[RBT_METRIC_ACCURACY], right / all));
        assert_true(isnan(m.value[RBT_METRIC_AUC]) && isnan(m.value[RBT_METRIC_MAE]));
        rbt_metrics_deinit(&m);
        rbt_data_deinit(&d);
    }
}

static void regressions_have_rmse_mae_huber_and_r2(void **state)
{
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        rbt_data d = random_data(0, weighted);
        rbt_trained t = identity("huber", 0, 0.5);
        double squares = 0, absolute = 0, huber = 0, mean = 0, scatter = 0, all = 0;
        for (size_t r = 0; r < ROWS; r++) {
            double e = fabs((double)d.value[r] - (double)d.label[r]), w = weight_of(&d, r);
            squares += w * e * e;
            absolute += w * e;
            huber += w * (e <= 0.5 ? e * e / 2 : 0.5 * (e - 0.25));
            mean += w * (double)d.label[r];
            all += w;
        }
        mean /= all;
        for (size_t r = 0; r < ROWS; r++)
            scatter += weight_of(&d, r) * ((double)d.label[r] - mean) * ((double)d.label[r] - mean);
        rbt_metrics m;
        assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, NULL), RBT_OK);
        assert_true(near(m.value[RBT_METRIC_RMSE], sqrt(squares / all)));
        assert_true(near(m.value[RBT_METRIC_MAE], absolute / all));
        assert_true(near(m.value[RBT_METRIC_HUBER], huber / all));
        assert_true(near(m.value[RBT_METRIC_LOSS], huber / all));
        assert_true(near(m.value[RBT_METRIC_R2], 1 - squares / scatter));
        assert_true(isnan(m.value[RBT_METRIC_ACCURACY]) && m.confusion == NULL);
        rbt_metrics_deinit(&m);
        rbt_data_deinit(&d);
    }
    rbt_data same = parsed("3 1:1\n3 1:2\n");
    rbt_trained t = identity("linear", 0, 0);
    rbt_metrics m;
    assert_int_equal(rbt_metrics_compute(&t, &same, RBT_METRICS_ALL, &m, NULL), RBT_OK);
    assert_true(isnan(m.value[RBT_METRIC_R2])); /* labels that do not differ */
    assert_true(m.value[RBT_METRIC_HUBER] == (1.5 + 0.5) / 2);
    rbt_metrics_deinit(&m);
    rbt_data_deinit(&same);
}

static void blocks_give_what_the_whole_gives(void **state)
{
    (void)state;
    rbt_data d = random_data(2, true);
    rbt_trained t = identity("lr", 2, 0);
    rbt_metrics whole, parts;
    assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &whole, NULL), RBT_OK);
    rbt_metrics_init(&parts, &t, RBT_METRICS_ALL);
    for (size_t first = 0; first < ROWS; first += 77) {
        rbt_data block = d;
        block.rows = ROWS - first < 77 ? ROWS - first : 77;
        block.start += first;
        block.label += first;
        block.weight += first;
        assert_int_equal(rbt_metrics_add(&parts, &t, &block, NULL), RBT_OK);
    }
    assert_int_equal(rbt_metrics_finish(&parts, NULL), RBT_OK);
    for (unsigned i = 0; i < RBT_METRIC_RMSE; i++)
        assert_true(near(parts.value[i], whole.value[i]));
    assert_int_equal(parts.rows, ROWS);
    rbt_metrics_deinit(&parts);
    rbt_metrics_deinit(&whole);
    rbt_data_deinit(&d);
}

static void only_what_is_wanted_is_worked_out(void **state)
{
    (void)state;
    rbt_trained t = trained();
    rbt_data d = parsed("1 1:1\n0 2:1\n");
    rbt_metrics m;
    assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRIC_BIT(RBT_METRIC_ACCURACY), &m, NULL), RBT_OK);
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++)
        assert_true(isnan(m.value[i]) == (i != RBT_METRIC_ACCURACY));
    rbt_metrics_deinit(&m);
    rbt_data_deinit(&d);
}

static void data_without_rows_is_refused(void **state)
{
    (void)state;
    rbt_trained t = trained();
    size_t start = 0;
    rbt_data d = {.start = &start};
    rbt_metrics m;
    rbt_error error;
    assert_int_equal(rbt_metrics_compute(&t, &d, RBT_METRICS_ALL, &m, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "no rows"));
}

static void metrics_have_names_and_refuse_models_they_do_not_fit(void **state)
{
    (void)state;
    rbt_metric found;
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        assert_true(rbt_metric_find(rbt_metric_name((rbt_metric)i), &found));
        assert_int_equal(found, i);
    }
    assert_false(rbt_metric_find("nonsense", &found));
    static const struct {
        const char *model;
        size_t classes;
        rbt_metric metric;
        const char *piece;
    } bad[] = {{"lr", 2, RBT_METRIC_RMSE, "use accuracy"},
               {"linear", 0, RBT_METRIC_AUC, "use rmse"},
               {"svm", 2, RBT_METRIC_LOGLOSS, "train lr or softmax"},
               {"softmax", 7, RBT_METRIC_AUC, "the model has 7"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_shape shape = {.classes = bad[i].classes};
        rbt_error error;
        assert_int_equal(rbt_metric_fit(bad[i].metric, rbt_model_find(bad[i].model), &shape, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, bad[i].piece));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy_and_loss_are_means_over_the_rows),
        cmocka_unit_test(auc_is_the_share_of_ordered_pairs_with_ties_half),
        cmocka_unit_test(auc_of_one_class_alone_is_not_a_number),
        cmocka_unit_test(more_classes_have_the_mean_of_each_ones_f1_precision_and_recall),
        cmocka_unit_test(regressions_have_rmse_mae_huber_and_r2),
        cmocka_unit_test(blocks_give_what_the_whole_gives),
        cmocka_unit_test(only_what_is_wanted_is_worked_out),
        cmocka_unit_test(data_without_rows_is_refused),
        cmocka_unit_test(metrics_have_names_and_refuse_models_they_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
