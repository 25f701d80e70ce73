/* Proves src/job/loading.c: weights of classes, what depends on the data, folds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "data/generate.h"
#include "job/loading.h"

static rbt_data data_of(const char *text)
{
    rbt_data d;
    assert_int_equal(rbt_data_parse_libsvm(text, strlen(text), "mem", &d, NULL), RBT_OK);
    return d;
}

/* As after reading, with the given pairs of options, ended by NULL. */
static void start(rbt_loaded *loaded, rbt_options *o, const char *model, rbt_data data, const char *const *pairs)
{
    rbt_error error = {RBT_OK, ""};
    rbt_options_init(o);
    assert_int_equal(rbt_options_set(o, "model", model, &error), RBT_OK);
    for (; pairs != NULL && pairs[0] != NULL; pairs += 2)
        if (rbt_options_set(o, pairs[0], pairs[1], &error) != RBT_OK)
            fail_msg("%s", error.text);
    if (rbt_options_check(o, &error) != RBT_OK)
        fail_msg("%s", error.text);
    *loaded = (rbt_loaded){.model = rbt_model_find(model), .data = data};
}

static void end(rbt_loaded *loaded, rbt_options *o)
{
    rbt_loaded_deinit(loaded);
    rbt_options_deinit(o);
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void refuses(const char *model, const char *text, const char *const *pairs, const char *part)
{
    rbt_loaded loaded;
    rbt_options o;
    rbt_error error = {RBT_OK, ""};
    start(&loaded, &o, model, data_of(text), pairs);
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, &error), RBT_E_USAGE);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' does not contain '%s'", error.text, part);
    end(&loaded, &o);
}

static const char FOUR[] = "3 1:1\n3 1:2\n-1 1:1\n3 1:4\n";

static void balanced_classes_weigh_the_same_and_the_mean_weight_is_one(void **state)
{
    rbt_loaded loaded;
    rbt_options o;
    (void)state;
    start(&loaded, &o, "lr", data_of(FOUR), PAIRS("class-weight", "balanced", "workers", "1"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_true(fabsf(loaded.data.weight[2] - 2) < 1e-6F);
    assert_true(fabsf(loaded.data.weight[0] - 2.0F / 3) < 1e-6F);
    end(&loaded, &o);
}

static void weights_by_label_multiply_those_of_rows(void **state)
{
    rbt_loaded loaded;
    rbt_options o;
    rbt_data d = data_of(FOUR);
    (void)state;
    d.weight = rbt_alloc(4, sizeof *d.weight);
    for (size_t r = 0; r < 4; r++)
        d.weight[r] = (float)(r + 1);
    start(&loaded, &o, "lr", d, PAIRS("class-weight", "-1=4.0,3=0.5", "workers", "1"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    /* 0.5, 1, 12, 2 with the sum 15.5, scaled to 4 */
    assert_true(fabsf(loaded.data.weight[2] - 12 * 4 / 15.5F) < 1e-5F);
    assert_true(fabsf(loaded.data.weight[0] - 0.5F * 4 / 15.5F) < 1e-5F);
    end(&loaded, &o);
}

static void labels_may_be_written_in_any_way_that_is_the_same_number(void **state)
{
    rbt_loaded loaded;
    rbt_options o;
    (void)state;
    start(&loaded, &o, "lr", data_of(FOUR), PAIRS("class-weight", "3.00=3", "workers", "1"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_true(fabsf(loaded.data.weight[0] / loaded.data.weight[2] - 3) < 1e-5F);
    end(&loaded, &o);
}

static void labels_may_be_words(void **state)
{
    rbt_loaded loaded;
    rbt_options o;
    rbt_data d = data_of("0 1:1\n1 1:2\n1 1:1\n");
    (void)state;
    d.label_names = rbt_alloc(2, sizeof *d.label_names);
    d.label_names[0] = rbt_strdup("cat");
    d.label_names[1] = rbt_strdup("a=dog");
    d.label_count = 2;
    start(&loaded, &o, "lr", d, PAIRS("class-weight", "a=dog=5", "workers", "1"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_true(fabsf(loaded.data.weight[1] / loaded.data.weight[0] - 5) < 1e-5F);
    end(&loaded, &o);
}

static void class_weights_without_sense_are_refused(void **state)
{
    (void)state;
    refuses("lr", FOUR, PAIRS("class-weight", "7=2"), "the data has no label '7'");
    refuses("lr", FOUR, PAIRS("class-weight", "3"), "is not of the form LABEL=W");
    refuses("lr", FOUR, PAIRS("class-weight", "3=0"), "out of range");
    refuses("lr", FOUR, PAIRS("class-weight", "3=-1"), "out of range");
    refuses("lr", FOUR, PAIRS("class-weight", "3=two"), "--class-weight");
    refuses("lr", FOUR, PAIRS("class-weight", "3=2,"), "is not of the form LABEL=W");
    refuses("linear", FOUR, PAIRS("class-weight", "balanced"), "predicts numbers");
}

static void l2_is_one_by_rows_unless_given(void **state)
{
    rbt_loaded loaded;
    rbt_options o;
    (void)state;
    start(&loaded, &o, "lr", data_of(FOUR), PAIRS("workers", "1"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_true(o.l2 == 0.25);
    end(&loaded, &o);
    start(&loaded, &o, "lr", data_of(FOUR), PAIRS("workers", "1", "l2", "0.5"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_true(o.l2 == 0.5);
    end(&loaded, &o);
}

static void delta_follows_the_spread_of_the_labels_unless_given(void **state)
{
    static const struct {
        const char *model, *text, *given;
        double delta;
    } CASES[] = {
        {"huber", "-1 1:1\n2 1:1\n4 1:2\n7 1:3\n1e9 1:1\n", "auto", 1.345 * 3}, /* from 4: 5, 2, 0, 3 and far off */
        {"huber", "-1e3 1:1\n2e3 1:1\n4e3 1:2\n7e3 1:3\n1e12 1:1\n", "auto", 1345 * 3},
        {"huber", "-7 1:1\n-4 1:1\n-4 1:2\n-4 1:3\n", "auto", 1.345 * 0.75}, /* mostly alike */
        {"huber", "3 1:1\n3 1:2\n", "auto", 1},
        {"huber", "1 1:1\n9 1:2\n", "2.5", 2.5},
        {"linear", "1 1:1\n9 1:2\n", "auto", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        rbt_loaded loaded;
        rbt_options o;
        start(&loaded, &o, CASES[i].model, data_of(CASES[i].text), PAIRS("workers", "1", "delta", CASES[i].given));
        assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
        assert_true(fabs(loaded.shape.delta - CASES[i].delta) < 1e-6 * CASES[i].delta);
        if (strcmp(CASES[i].model, "huber") == 0)
            assert_true(o.delta == loaded.shape.delta);
        end(&loaded, &o);
    }
}

static rbt_optimizer chosen_for(const char *model, size_t rows, size_t cols, const char *const *pairs)
{
    rbt_generate_options g = rbt_generate_defaults();
    rbt_loaded loaded;
    rbt_options o;
    rbt_data d;
    g.rows = rows;
    g.cols = cols;
    g.nnz = 5;
    g.skew = 0;
    assert_int_equal(rbt_generate_lr(&g, &d, NULL), RBT_OK);
    start(&loaded, &o, model, d, pairs);
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_int_equal(o.lr > 0, o.optimizer < RBT_OPTIMIZER_SDCA); /* a rate was found where one is needed */
    rbt_optimizer optimizer = o.optimizer;
    end(&loaded, &o);
    return optimizer;
}

static rbt_optimizer chosen(const char *model, size_t cols, const char *const *pairs)
{
    return chosen_for(model, 50, cols, pairs);
}

static void the_optimizer_fits_the_data(void **state)
{
    (void)state;
    assert_int_equal(chosen_for("lr", 1000, 5000, NULL), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("lr", 50, 5000, NULL), RBT_OPTIMIZER_NEWTON); /* most features do not occur */
    assert_int_equal(chosen("lr", 100, NULL), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen("svm", 100, NULL), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen("svm", 100, PAIRS("l1", "0.01", "l2", "0")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen("svm", 100, PAIRS("epochs", "4")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen("svm", 100, PAIRS("epochs", "3")), RBT_OPTIMIZER_ASGD);
    assert_int_equal(chosen_for("svm", 1000, 300, NULL), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen("lr", 100, PAIRS("l1", "0.01")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen("lr", 100, PAIRS("l1", "0.01", "l2", "1e-8")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen_for("lr", 20, 5000, PAIRS("l1", "0.01")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen_for("lr", 1000, 300, PAIRS("l1", "0.01")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("l1", "0.01", "l2", "0.01")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("lr", 1000, 300, PAIRS("l1", "0.01", "l2", "1e-8")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen_for("lr", 1000, 5000, PAIRS("l1", "0.01", "l2", "1e-8")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen_for("svm", 1000, 5000, PAIRS("l2", "1e-8")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("l2", "1e-8")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen("lr", 100, PAIRS("l2", "0")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("l2", "0")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen_for("lr", 1000, 5000, PAIRS("l2", "0")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen("lr", 100, PAIRS("epochs", "1")), RBT_OPTIMIZER_NEWTON);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("epochs", "10")), RBT_OPTIMIZER_ASGD);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("clocks", "10")), RBT_OPTIMIZER_ASGD);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("epochs", "10", "tolerance", "0.01")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("epochs", "10", "l1", "0.01")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("svm", 1000, 300, PAIRS("epochs", "11")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen_for("svm", 1000, 5000, PAIRS("epochs", "1")), RBT_OPTIMIZER_SDCA);
    assert_int_equal(chosen("lr", 100, PAIRS("lr", "0.1")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen("lr", 100, PAIRS("sync", "psgd")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen("lr", 100, PAIRS("sync", "ssp", "workers", "2")), RBT_OPTIMIZER_SGD);
    assert_int_equal(chosen("lr", 100, PAIRS("optimizer", "adam")), RBT_OPTIMIZER_ADAM);
}

static void steps_shrink_unless_the_optimizer_sees_to_that(void **state)
{
    static const struct {
        const char *optimizer;
        bool shrinks;
    } CASES[] = {{"sgd", true}, {"momentum", true}, {"adam", true}, {"adagrad", false}, {"asgd", false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        rbt_loaded loaded;
        rbt_options o;
        start(&loaded, &o, "lr", data_of(FOUR), PAIRS("optimizer", CASES[i].optimizer));
        assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
        assert_int_equal(o.decay, CASES[i].shrinks ? RBT_DECAY_SQRT : RBT_DECAY_NONE);
        end(&loaded, &o);
    }
}

static void newton_on_a_loss_with_corners_is_for_few_parameters(void **state)
{
    char text[8000] = "-1";
    size_t n = 2;
    rbt_loaded loaded;
    rbt_options o;
    (void)state;
    start(&loaded, &o, "svm", data_of(FOUR), PAIRS("optimizer", "auto"));
    assert_int_equal(rbt_loaded_prepare(&loaded, &o, NULL), RBT_OK);
    assert_int_equal(o.optimizer, RBT_OPTIMIZER_NEWTON);
    end(&loaded, &o);
    for (int i = 1; i < 500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %d:1", i);
    snprintf(text + n, sizeof text - n, "\n1 1:1\n");
    refuses("svm", text, PAIRS("optimizer", "newton"), "is not smooth");
}

/* Row r has the one feature r. */
static void folds_partition_the_rows_and_repeat(void **state)
{
    char text[600] = "", line[32];
    rbt_loaded whole, fold;
    rbt_options o;
    int out_of[23] = {0};
    (void)state;
    for (int r = 0; r < 23; r++) {
        snprintf(line, sizeof line, "%d %d:1\n", r % 2, r + 1);
        strcat(text, line);
    }
    start(&whole, &o, "lr", data_of(text), PAIRS("folds", "5", "seed", "3"));
    for (uint32_t k = 0; k < 5; k++) {
        int seen[23] = {0};
        rbt_loaded again = {0};
        fold = (rbt_loaded){0};
        assert_int_equal(rbt_loaded_fold(&fold, &whole, &o, k, NULL), RBT_OK);
        assert_int_equal(rbt_loaded_fold(&again, &whole, &o, k, NULL), RBT_OK);
        assert_true(fold.has_valid);
        assert_int_equal(fold.data.rows + fold.valid.rows, 23);
        assert_true(fold.valid.rows == 4 || fold.valid.rows == 5);
        assert_memory_equal(fold.data.index, again.data.index, fold.data.rows * sizeof(uint32_t));
        for (size_t i = 0; i < fold.data.rows; i++)
            seen[fold.data.index[i]]++;
        for (size_t i = 0; i < fold.valid.rows; i++) {
            assert_true(fold.valid.label[i] == (float)(fold.valid.index[i] % 2));
            seen[fold.valid.index[i]]++;
            out_of[fold.valid.index[i]]++;
        }
        for (size_t r = 0; r < 23; r++)
            assert_int_equal(seen[r], 1);
        rbt_loaded_deinit(&fold);
        rbt_loaded_deinit(&again);
    }
    for (size_t r = 0; r < 23; r++)
        assert_int_equal(out_of[r], 1);
    end(&whole, &o);
}

static void a_rare_class_is_spread_over_the_folds(void **state)
{
    char text[1200] = "", line[32];
    rbt_loaded whole, fold;
    rbt_options o;
    (void)state;
    for (int r = 0; r < 60; r++) {
        snprintf(line, sizeof line, "%d %d:1\n", r < 5, r + 1);
        strcat(text, line);
    }
    for (int seed = 1; seed < 20; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        start(&whole, &o, "lr", data_of(text), PAIRS("folds", "5", "seed", number));
        for (uint32_t k = 0; k < 5; k++) {
            size_t rare = 0;
            fold = (rbt_loaded){0};
            assert_int_equal(rbt_loaded_fold(&fold, &whole, &o, k, NULL), RBT_OK);
            for (size_t i = 0; i < fold.valid.rows; i++)
                rare += fold.valid.label[i] > 0;
            assert_int_equal(fold.valid.rows, 12);
            assert_int_equal(rare, 1);
            rbt_loaded_deinit(&fold);
        }
        end(&whole, &o);
    }
}

static void more_folds_than_rows_are_refused(void **state)
{
    rbt_loaded whole, fold = {0};
    rbt_options o;
    rbt_error error;
    (void)state;
    start(&whole, &o, "lr", data_of(FOUR), PAIRS("folds", "5"));
    assert_int_equal(rbt_loaded_fold(&fold, &whole, &o, 0, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "only 4 rows"));
    rbt_loaded_deinit(&fold);
    end(&whole, &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_classes_weigh_the_same_and_the_mean_weight_is_one),
        cmocka_unit_test(weights_by_label_multiply_those_of_rows),
        cmocka_unit_test(labels_may_be_written_in_any_way_that_is_the_same_number),
        cmocka_unit_test(labels_may_be_words),
        cmocka_unit_test(class_weights_without_sense_are_refused),
        cmocka_unit_test(l2_is_one_by_rows_unless_given),
        cmocka_unit_test(delta_follows_the_spread_of_the_labels_unless_given),
        cmocka_unit_test(the_optimizer_fits_the_data),
        cmocka_unit_test(steps_shrink_unless_the_optimizer_sees_to_that),
        cmocka_unit_test(newton_on_a_loss_with_corners_is_for_few_parameters),
        cmocka_unit_test(folds_partition_the_rows_and_repeat),
        cmocka_unit_test(a_rare_class_is_spread_over_the_folds),
        cmocka_unit_test(more_folds_than_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
