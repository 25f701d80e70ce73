/* Proves src/method/lasso.c and l1lr.c, with what they share, through jobs: optima within 0.1 % of those that plain methods find
 * (problems.h), under every protocol; the same bits on local and sim under BSP; a path's solutions; features that are the same
 * many times over; the filter of l1lr saves bytes and changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include "unit/problems.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "method/columns.h"
#include "method/weights.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"rows"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void write_rows(const rbt_data *data)
{
    FILE *file = fopen("rows", "w");

    for (size_t r = 0; r < data->rows; r++) {
        fprintf(file, "%.9g", (double)data->label[r]);
        for (size_t i = data->start[r]; i < data->start[r + 1]; i++)
            fprintf(file, " %u:%.9g", data->index[i] + 1, (double)data->value[i]);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

typedef struct setting {
    const char *option, *value;
} setting;

/* A job on the file "rows": options in pairs, ended by NULL. */
static rbt_job *run(const char *method, const setting *settings)
{
    rbt_job *job = rbt_job_create(method);
    rbt_error error;

    assert_int_equal(rbt_job_set(job, "data", "rows", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "eval-every", "1000", &error), RBT_OK); /* and at the end */
    for (; settings->option != NULL; settings++)
        if (rbt_job_set(job, settings->option, settings->value, &error) != RBT_OK)
            fail_msg("%s", error.text);
    if (rbt_job_run(job, NULL, NULL, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return job;
}

static double optimum(const char *model, double l1, bool no_bias)
{
    test_kind kind = {
        .model = model, .rows = 60, .cols = 150, .density = 0.3, .noise = 1, .l1 = l1, .no_bias = no_bias};
    test_problem p;
    double objective;

    test_problem_init(&p, &kind);
    write_rows(&p.data);
    objective = reference_optimum(&p.problem, NULL);
    test_problem_deinit(&p);
    return objective;
}

static void reaches(const char *method, double least, const setting *settings)
{
    rbt_job *job = run(method, settings);
    double told = rbt_job_result(job)->loss, final = rbt_fitted_number(rbt_job_fitted(job), "loss");
    double loss = isnan(final) ? told : final; /* of what is in the tables; workers tell of what they have seen */

    assert_true(within(loss, least, 0.001));
    rbt_job_destroy(job);
}

static void lasso_reaches_the_optimum_under_every_protocol(void **state)
{
    double least = optimum("linear", 0.05, false);

    (void)state;
    reaches("lasso", least, (setting[]){{"l1", "0.05"}, {"epochs", "100"}, {"workers", "1"}, {"sync", "bsp"}, {0}});
    reaches("lasso", least, (setting[]){{"l1", "0.05"}, {"epochs", "300"}, {"workers", "4"}, {"sync", "bsp"}, {0}});
    reaches("lasso", least,
            (setting[]){{"l1", "0.05"},
                        {"epochs", "500"},
                        {"workers", "4"},
                        {"sync", "ssp"},
                        {"staleness", "2"},
                        {"runtime", "sim"},
                        {0}});
    reaches("lasso", least,
            (setting[]){{"l1", "0.05"}, {"epochs", "500"}, {"workers", "3"}, {"sync", "asp"}, {"runtime", "sim"}, {0}});
    least = optimum("linear", 0.05, true);
    reaches(
        "lasso", least,
        (setting[]){{"l1", "0.05"}, {"epochs", "100"}, {"workers", "2"}, {"sync", "bsp"}, {"no-bias", "true"}, {0}});
}

static void l1lr_reaches_the_optimum_under_bsp_and_ssp(void **state)
{
    double least = optimum("lr", 0.02, false);

    (void)state;
    reaches("l1lr", least, (setting[]){{"l1", "0.02"}, {"epochs", "150"}, {"workers", "1"}, {"sync", "bsp"}, {0}});
    reaches("l1lr", least, (setting[]){{"l1", "0.02"}, {"epochs", "150"}, {"workers", "4"}, {"sync", "bsp"}, {0}});
    reaches("l1lr", least,
            (setting[]){{"l1", "0.02"},
                        {"epochs", "300"},
                        {"workers", "3"},
                        {"sync", "ssp"},
                        {"staleness", "1"},
                        {"ranges", "16"},
                        {"runtime", "sim"},
                        {0}});
    least = optimum("lr", 0.02, true);
    reaches(
        "l1lr", least,
        (setting[]){{"l1", "0.02"}, {"epochs", "150"}, {"workers", "2"}, {"sync", "bsp"}, {"no-bias", "true"}, {0}});
}

/* Also when some are slow all the time, or now and then. */
static void l1lr_reaches_the_optimum_without_a_bound(void **state)
{
    static const char *const slow[] = {"worker=0,slow=2", "p=0.1,slow=6"};
    double least = optimum("lr", 0.02, false);

    (void)state;
    for (size_t k = 0; k < 2; k++)
        reaches("l1lr", least,
                (setting[]){{"l1", "0.02"},
                            {"epochs", "400"},
                            {"workers", "3"},
                            {"sync", "asp"},
                            {"runtime", "sim"},
                            {"straggler", slow[k]},
                            {0}});
}

/* Many workers, correlated features, residuals that are old: it ends at the optimum all the same. */
static void lasso_converges_with_any_number_of_workers_however_stale(void **state)
{
    static const char *const workers[] = {"2", "8", "32"}, *const staleness[] = {"0", "3", "32"};
    double least = optimum("linear", 0.02, false);

    (void)state;
    for (size_t w = 0; w < 3; w++) {
        for (size_t s = 0; s < 3; s++)
            reaches("lasso", least,
                    (setting[]){{"l1", "0.02"},
                                {"epochs", "400"},
                                {"workers", workers[w]},
                                {"sync", "ssp"},
                                {"staleness", staleness[s]},
                                {"straggler", "p=0.06,slow=6"},
                                {"runtime", "sim"},
                                {0}});
        reaches("lasso", least,
                (setting[]){{"l1", "0.02"},
                            {"epochs", "400"},
                            {"workers", workers[w]},
                            {"sync", "asp"},
                            {"straggler", "worker=0,slow=4"},
                            {"runtime", "sim"},
                            {0}});
    }
}

static void runtimes_give_the_same_bits_under_bsp(void **state)
{
    static const char *const methods[] = {"lasso", "l1lr"};

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        uint64_t hash = 0;

        (void)optimum(m == 0 ? "linear" : "lr", 0.05, false);
        for (size_t k = 0; k < 4; k++) {
            rbt_job *job = run(methods[m], (setting[]){{"l1", "0.02"},
                                                       {"epochs", "5"},
                                                       {"workers", "3"},
                                                       {"sync", "bsp"},
                                                       {"runtime", k % 2 == 0 ? "local" : "sim"},
                                                       {"servers", k < 2 ? "1" : "3"},
                                                       {0}});

            hash = k == 0 ? rbt_job_result(job)->param_hash : hash;
            assert_true(rbt_job_result(job)->param_hash == hash);
            rbt_job_destroy(job);
        }
    }
}

static void a_path_has_the_solution_of_each_penalty(void **state)
{
    double least = optimum("linear", 0.05, false);
    rbt_job *job = run(
        "lasso", (setting[]){{"l1", "0.05"}, {"epochs", "400"}, {"path", "5"}, {"workers", "2"}, {"sync", "bsp"}, {0}});
    const rbt_fitted *fitted = rbt_job_fitted(job);
    const float *l1 = rbt_fitted_values(fitted, "path_l1")->at, *loss = rbt_fitted_values(fitted, "path_loss")->at;
    const int64_t *nonzeros = rbt_fitted_values(fitted, "path_nonzeros")->at;

    (void)state;
    assert_true(l1[4] == 0.05f && within((double)loss[4], least, 0.001));
    assert_true(rbt_fitted_number(fitted, "gap") < 0.01 * least);
    for (size_t k = 0; k < 4; k++) {
        assert_true(l1[k] > l1[k + 1] && loss[k] > loss[k + 1] && nonzeros[k] < nonzeros[k + 1]);
        assert_true(within((double)(l1[k] / l1[k + 1]), (double)(l1[0] / l1[1]), 0.001));
        assert_true(within((double)loss[k], optimum("linear", (double)l1[k], false), 0.001));
    }
    assert_memory_equal((const float *)rbt_fitted_values(fitted, "path")->at + (size_t)4 * 150,
                        rbt_fitted_values(fitted, "weights")->at, 150 * sizeof(float));
    rbt_job_destroy(job);
}

/* Eight workers that each own a copy of the same feature would overshoot eightfold. */
static void lasso_bears_features_that_are_the_same(void **state)
{
    FILE *file = fopen("rows", "w");
    rbt_job *job;

    (void)state;
    for (int r = 0; r < 20; r++) {
        fprintf(file, "%d", r % 5 + 1);
        for (int j = 1; j <= 64; j++)
            fprintf(file, " %d:%d", j, r % 5 - 7);
        fputc('\n', file);
    }
    fclose(file);
    job = run("lasso", (setting[]){{"l1", "0.01"}, {"epochs", "300"}, {"workers", "8"}, {"sync", "bsp"}, {0}});
    /* y = x + 8: variance 2, penalty on |w| = 1 - 0.01 / 2 */
    assert_true(within(rbt_job_result(job)->loss, 0.5 * 2 * 0.005 * 0.005 + 0.01 * 0.995, 0.001));
    rbt_job_destroy(job);
}

/* Four ranges of 500 features each, of which few are ever not zero. */
static void filters_save_most_bytes_and_keep_the_optimum(void **state)
{
    static const char *const filters[] = {"kkt=0,significant=0", "kkt=0.7,significant=0", "kkt=0.7,significant=1e-4"};
    test_kind kind = {.model = "lr", .rows = 80, .cols = 2000, .density = 0.1, .noise = 1, .l1 = 0.1};
    test_problem p;
    uint64_t bytes[3];
    double least;

    (void)state;
    test_problem_init(&p, &kind);
    write_rows(&p.data);
    least = reference_optimum(&p.problem, NULL);
    test_problem_deinit(&p);
    for (size_t k = 0; k < 3; k++) {
        rbt_job *job = run("l1lr", (setting[]){{"l1", "0.1"},
                                               {"epochs", "150"},
                                               {"workers", "3"},
                                               {"sync", "bsp"},
                                               {"ranges", "4"},
                                               {"filter", filters[k]},
                                               {"runtime", "sim"},
                                               {0}});

        assert_true(within(rbt_job_result(job)->loss, least, 0.001));
        bytes[k] = rbt_job_result(job)->bytes_sent;
        print_message("%s: %zu bytes\n", filters[k], (size_t)bytes[k]);
        rbt_job_destroy(job);
    }
    assert_true(3 * bytes[1] < bytes[0]);
    assert_true(bytes[2] < bytes[1]);
}

static void columns_are_the_rows_turned(void **state)
{
    size_t start[] = {0, 2, 2, 4};
    uint32_t index[] = {0, 3, 1, 3}, rows[] = {2, 0};
    float value[] = {1, 2, 3, 4};
    rbt_data data = {.rows = 3, .cols = 5, .nnz = 4, .start = start, .index = index, .value = value};
    rbt_columns c;

    (void)state;
    assert_int_equal(rbt_columns_create(&data, NULL, 3, &c, NULL), RBT_OK);
    assert_memory_equal(c.start, ((size_t[]){0, 1, 2, 2, 4, 4}), 6 * sizeof *c.start);
    assert_memory_equal(c.row, ((uint32_t[]){0, 2, 0, 2}), 4 * sizeof *c.row);
    assert_memory_equal(c.value, ((float[]){1, 3, 2, 4}), 4 * sizeof *c.value);
    rbt_columns_destroy(&c);
    assert_int_equal(rbt_columns_create(&data, rows, 2, &c, NULL), RBT_OK);
    assert_memory_equal(c.row, ((uint32_t[]){1, 0, 0, 1}), 4 * sizeof *c.row);
    assert_memory_equal(c.value, ((float[]){1, 3, 4, 2}), 4 * sizeof *c.value);
    rbt_columns_destroy(&c);
    assert_true(rbt_soft(3, 1) == 2 && rbt_soft(-3, 1) == -2 && rbt_soft(0.5, 1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_the_rows_turned),
        cmocka_unit_test(lasso_reaches_the_optimum_under_every_protocol),
        cmocka_unit_test(a_path_has_the_solution_of_each_penalty),
        cmocka_unit_test(lasso_bears_features_that_are_the_same),
        cmocka_unit_test(l1lr_reaches_the_optimum_under_bsp_and_ssp),
        cmocka_unit_test(l1lr_reaches_the_optimum_without_a_bound),
        cmocka_unit_test(lasso_converges_with_any_number_of_workers_however_stale),
        cmocka_unit_test(filters_save_most_bytes_and_keep_the_optimum),
        cmocka_unit_test(runtimes_give_the_same_bits_under_bsp),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
