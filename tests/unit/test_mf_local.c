/* Proves src/method/mf*.c below the command line: a step is one against the gradient, all forms of it agree, threads in one
 * memory reach what one reaches, and what is done with a fitted model is right, also with whom it does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "method/mf.h"
#include "unit/files.h"

#define ITEMS 5

/* A vector of length about 0.6, whatever its rank. */
static void fill(rbt_rng *rng, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * (rbt_rng_f64(rng) - 0.5) / sqrt((double)n));
}

/* Half the squared error and the penalty of one rating. */
static double loss(const rbt_mf_rates *r, float rating, const float *p, double b, const float *q, double c)
{
    double told = b + c, penalty = (double)r->l2_bias * (b * b + c * c);

    for (size_t k = 0; k < r->rank; k++) {
        told += (double)p[k] * (double)q[k];
        penalty += (double)r->l2 * ((double)p[k] * (double)p[k] + (double)q[k] * (double)q[k]);
    }
    double error = ((double)rating - (double)r->mean) / (double)r->scale - told;
    return (error * error + penalty) / 2;
}

static void a_step_goes_against_the_gradient(void **state)
{
    rbt_mf_rates rates = {.rank = 3, .rate = 1e-3f, .l2 = 0.1f, .l2_bias = 0.2f, .biases = true, .mean = 3, .scale = 2};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    float p[3], q[3], old_p[3], old_q[3];
    rbt_mf_side user = {0.3f, 1, 1, 0}, item = {-0.2f, 1, 1, 0};

    (void)state;
    fill(&rng, p, 3);
    fill(&rng, q, 3);
    memcpy(old_p, p, sizeof p);
    memcpy(old_q, q, sizeof q);
    float error = rbt_mf_step(&rates, 4.5f, 1, p, &user, q, &item);
    assert_float_equal(error, rbt_mf_error(&rates, 4.5f, old_p, 0.3f, old_q, -0.2f), 1e-6);
    for (int k = 0; k < 3; k++) {
        float up[3], down[3];
        memcpy(up, old_p, sizeof up);
        memcpy(down, old_p, sizeof down);
        up[k] += 1e-3f;
        down[k] -= 1e-3f;
        double slope = (loss(&rates, 4.5f, up, 0.3, old_q, -0.2) - loss(&rates, 4.5f, down, 0.3, old_q, -0.2)) / 2e-3;
        assert_float_equal((p[k] - old_p[k]) / rates.rate, -slope, 2e-3);
    }
    double slope =
        (loss(&rates, 4.5f, old_p, 0.3, old_q, -0.199) - loss(&rates, 4.5f, old_p, 0.3, old_q, -0.201)) / 2e-3;
    assert_float_equal((item.bias + 0.2f) / rates.rate, -slope, 2e-3);
}

/* The same ratings by steps of the reference, by the portable run and by the best one. */
static void compare_runs(size_t rank, bool adaptive, bool biases)
{
    rbt_mf_rates rates = {.rank = rank,
                          .rate = 0.05f,
                          .l2 = 0.05f,
                          .l2_bias = 0.02f,
                          .adaptive = adaptive,
                          .biases = biases,
                          .mean = 3,
                          .scale = 1.5f};
    size_t stride = (rank + RBT_MF_LANES - 1) / RBT_MF_LANES * RBT_MF_LANES;
    rbt_mf_run *runs[] = {NULL, rbt_mf_run_portable, rbt_mf_run_best()};
    const uint32_t index[] = {0, 1, 3, 4, 0, 3};
    const float value[] = {1, 5, 2.5f, 4, 1.5f, 3};
    float *p[3], *q[3];
    rbt_mf_side user[3], items[3][ITEMS];
    double sum[3] = {0};

    for (int f = 0; f < 3; f++) {
        rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, rank);
        p[f] = rbt_try_alloc(stride, sizeof(float));
        q[f] = rbt_try_alloc(ITEMS, stride * sizeof(float));
        user[f] = RBT_MF_SIDE;
        fill(&rng, p[f], rank);
        for (int i = 0; i < ITEMS; i++) {
            items[f][i] = RBT_MF_SIDE;
            fill(&rng, q[f] + (size_t)i * stride, rank);
        }
        if (runs[f] != NULL)
            sum[f] = runs[f](&rates, index, value, 6, p[f], &user[f], q[f], items[f], stride);
        for (size_t i = 0; runs[f] == NULL && i < 6; i++) {
            float z = rbt_mf_step(&rates, value[i], 1, p[f], &user[f], q[f] + index[i] * stride, &items[f][index[i]]);
            sum[f] += (double)z * (double)z;
        }
    }
    assert_memory_equal(p[0], p[1], stride * sizeof(float));
    assert_memory_equal(q[0], q[1], ITEMS * stride * sizeof(float));
    assert_true(sum[0] == sum[1]);
    assert_true(fabs(sum[0] - sum[2]) < 2e-3 * sum[0]);
    assert_float_equal(user[0].bias, user[2].bias, 2e-4);
    for (size_t k = 0; k < stride; k++)
        assert_float_equal(p[0][k], p[2][k], 2e-4);
    for (size_t k = 0; k < ITEMS * stride; k++)
        assert_float_equal(q[0][k], q[2][k], 2e-4);
    for (int i = 0; i < ITEMS; i++)
        assert_float_equal(items[0][i].squares, items[2][i].squares, 1e-2);
    for (int f = 0; f < 3; f++) {
        rbt_free(p[f]);
        rbt_free(q[f]);
    }
}

static void all_forms_of_the_steps_agree(void **state)
{
    static const size_t ranks[] = {1, 7, 8, 16, 31, 32, 64, 100, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        for (int form = 0; form < 4; form++)
            compare_runs(ranks[i], form % 2 == 0, form / 2 == 0);
}

/* Ratings of 60 users and 40 items that are products of two numbers each. */
static void write_ratings(const char *path)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int u = 0; u < 60; u++)
        for (int i = 0; i < 40; i++)
            if (rbt_rng_below(&rng, 2) == 0)
                fprintf(file, "u%d::i%d::%.3f\n", u, i, 3 + (u % 7 - 3) * (i % 5 - 2) * 0.25 + (u % 3 - 1) * 0.3);
    fclose(file);
}

static double train(const char *path, const char *sync, const char *workers, uint64_t *hash)
{
    rbt_job *job = rbt_job_create("mf");
    rbt_error error;
    double found;

    assert_int_equal(rbt_job_set(job, "data", path, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "sync", sync, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "workers", workers, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "set", "rank=4", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "l2", "0.001", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "epochs", "60", &error), RBT_OK);
    if (rbt_job_run(job, NULL, NULL, &error) != RBT_OK)
        fail_msg("%s", error.text);
    found = rbt_job_result(job)->loss;
    *hash = rbt_job_result(job)->param_hash;
    rbt_job_destroy(job);
    return found;
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"r"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void threads_and_tables_learn_what_is_there(void **state)
{
    uint64_t hash[6];

    (void)state;
    write_ratings("r");
    assert_true(train("r", "sequential", "1", &hash[0]) < 0.01); /* the ratings' variance is about 0.6 */
    assert_true(train("r", "sequential", "1", &hash[1]) < 0.01);
    assert_true(hash[0] == hash[1]);
    assert_true(train("r", "hogwild", "4", &hash[2]) < 0.01);
    assert_true(train("r", "bsp", "1", &hash[3]) < 0.01);
    assert_true(train("r", "bsp", "3", &hash[4]) < 0.02);
    assert_true(train("r", "bsp", "3", &hash[5]) < 0.02);
    assert_true(hash[4] == hash[5]);
    assert_true(train("r", "asp", "3", &hash[5]) < 0.1); /* one may be through before the next begins */
}

static void peers_without_servers_learn_what_is_there(void **state)
{
    uint64_t hash[3];

    (void)state;
    write_ratings("r");
    assert_true(train("r", "allreduce", "3", &hash[0]) < 0.01);
    assert_true(train("r", "hop", "4", &hash[1]) < 0.01);
    assert_true(train("r", "hop", "4", &hash[2]) < 0.01);
    assert_true(hash[1] == hash[2]);
    assert_true(train("r", "adpsgd", "2", &hash[2]) < 0.3); /* nobody is promised to be averaged with */
}

/* One peer that is alone does what servers do for one worker. */
static void an_update_goes_where_the_steps_of_all_would(void **state)
{
    (void)state;
    assert_float_equal(rbt_mf_stretch(0.5, 1), 1, 1e-12);
    assert_float_equal(rbt_mf_stretch(1e-4, 8), 8, 0.01);       /* short clocks: as many times as there are peers */
    assert_float_equal(rbt_mf_stretch(20, 8), 1, 1e-6);         /* long ones: to the optimum, which they have reached */
    assert_true(rbt_mf_stretch(0.5, 8) * (1 - exp(-0.5)) <= 1); /* never past it */
}

/* Users a, b and items x, y, z of rank 1. */
static rbt_fitted small(void)
{
    static const char *const users[] = {"a", "b"}, *const items[] = {"x", "y", "z"};
    rbt_fitted f = {.method = rbt_method_find("mf")};
    float *p = rbt_fitted_add(&f, "users", RBT_F32, 2, 1), *b = rbt_fitted_add(&f, "user_biases", RBT_F32, 1, 2);
    float *q = rbt_fitted_add(&f, "items", RBT_F32, 3, 1), *c = rbt_fitted_add(&f, "item_biases", RBT_F32, 1, 3);

    p[0] = 1;
    p[1] = -1;
    b[1] = 0.5f;
    for (int i = 0; i < 3; i++)
        q[i] = (float)i;
    c[0] = 0.25f;
    rbt_fitted_set(&f, "mean", 3);
    rbt_fitted_add_names(&f, "user_names", 2, users);
    rbt_fitted_add_names(&f, "item_names", 3, items);
    return f;
}

static void read_lines(const char *lines, rbt_data *data)
{
    FILE *file = fopen("r", "w");
    rbt_error error;

    fputs(lines, file);
    fclose(file);
    assert_int_equal(rbt_data_read("r", data, &error), RBT_OK);
}

static void the_best_items_come_first_without_those_known(void **state)
{
    rbt_fitted f = small();
    rbt_data known = {.rows = 0};
    rbt_error error;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    assert_int_equal(rbt_mf_open(&f, &error), RBT_OK);
    assert_int_equal(rbt_mf_recommend(&f, NULL, "a", 2, out, &error), RBT_OK);
    read_lines("c::y::1\na::z::5\na::new::5\n", &known);
    assert_int_equal(rbt_mf_recommend(&f, &known, "a", 9, out, &error), RBT_OK);
    assert_int_equal(rbt_mf_recommend(&f, &known, "c", 9, out, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "no user 'c'"));
    fflush(out);
    assert_string_equal(text, "z\t5\ny\t4\ny\t4\nx\t3.25\n");
    fclose(out);
    free(text);
    rbt_data_deinit(&known);
    rbt_fitted_deinit(&f);
}

static void who_is_not_known_is_foretold_by_the_rest(void **state)
{
    rbt_fitted f = small();
    rbt_figure figures[RBT_FIGURES_MOST];
    rbt_data data = {.rows = 0};
    rbt_error error;
    char *text = NULL;
    size_t n = 0, count;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    read_lines("c::new::3\nc::x::3.25\nb::new::3.5\nb::z::2.5\n", &data); /* the last one is told as 1.5 */
    assert_int_equal(rbt_mf_evaluate(&f, &data, figures, &count, &error), RBT_OK);
    assert_float_equal(figures[0].value, 0.25, 1e-6);
    assert_float_equal(figures[1].value, 0.5, 1e-6);
    assert_float_equal(figures[2].value, 0.25, 1e-6);
    for (size_t r = 0; r < data.rows; r++)
        assert_int_equal(rbt_mf_predict(&f, &data, r, out, &error), RBT_OK);
    assert_int_equal(rbt_mf_predict_one(&f, "b", "z", out, &error), RBT_OK);
    assert_int_equal(rbt_mf_predict_one(&f, "c", "x", out, &error), RBT_OK);
    fflush(out);
    assert_string_equal(text, "c\tnew\t3\nc\tx\t3.25\nb\tnew\t3.5\nb\tz\t1.5\nb\tz\t1.5\nc\tx\t3.25\n");
    fclose(out);
    free(text);
    rbt_data_deinit(&data);
    rbt_fitted_deinit(&f);
}

/* The second of two rows is not the second of the sorted names. */
static void data_without_names_is_refused_by_a_model_with_names(void **state)
{
    rbt_fitted f = small();
    rbt_figure figures[RBT_FIGURES_MOST];
    rbt_data data = {.rows = 0};
    rbt_error error;
    char *text = NULL;
    size_t n = 0, count;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    read_lines("0 1:3 2:4\n0 3:2.5\n", &data);
    assert_int_equal(rbt_mf_evaluate(&f, &data, figures, &count, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "by their names"));
    assert_int_equal(rbt_mf_predict(&f, &data, 0, out, &error), RBT_E_DATA);
    assert_int_equal(rbt_mf_recommend(&f, &data, "a", 3, out, &error), RBT_E_DATA);
    fflush(out);
    assert_string_equal(text, "");
    for (size_t i = 0; i < f.lists; i++) /* without names on both sides numbers are what counts */
        f.list[i].name[0] = '-';
    assert_int_equal(rbt_mf_evaluate(&f, &data, figures, &count, &error), RBT_OK);
    assert_int_equal(rbt_mf_predict(&f, &data, 1, out, &error), RBT_OK);
    fflush(out);
    assert_string_equal(text, "2\t3\t1.5\n");
    fclose(out);
    free(text);
    rbt_data_deinit(&data);
    rbt_fitted_deinit(&f);
}

static void a_model_with_other_arrays_is_refused(void **state)
{
    rbt_fitted f = small();
    rbt_error error;

    (void)state;
    f.array[1].cols = 1;
    assert_int_equal(rbt_mf_open(&f, &error), RBT_E_DATA);
    f.array[1].cols = 2;
    f.array[2].type = RBT_I32;
    assert_int_equal(rbt_mf_open(&f, &error), RBT_E_DATA);
    f.array[2].type = RBT_F32;
    assert_int_equal(rbt_mf_open(&f, &error), RBT_OK);
    rbt_fitted_set(&f, "mean", NAN);
    assert_int_equal(rbt_mf_open(&f, &error), RBT_E_DATA);
    rbt_fitted_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_goes_against_the_gradient),
        cmocka_unit_test(all_forms_of_the_steps_agree),
        cmocka_unit_test(threads_and_tables_learn_what_is_there),
        cmocka_unit_test(peers_without_servers_learn_what_is_there),
        cmocka_unit_test(an_update_goes_where_the_steps_of_all_would),
        cmocka_unit_test(the_best_items_come_first_without_those_known),
        cmocka_unit_test(who_is_not_known_is_foretold_by_the_rest),
        cmocka_unit_test(data_without_names_is_refused_by_a_model_with_names),
        cmocka_unit_test(a_model_with_other_arrays_is_refused),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
