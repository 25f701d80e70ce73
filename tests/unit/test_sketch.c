/* Proves src/method/sketch.c through jobs: counts add up and are the same under every protocol, on every runtime, for any
 * number of workers; estimates keep their bound against exact counts; the most frequent keys are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "method/method.h"

#define EVENTS 30000
#define KEYS   3000
#define WIDTH  512
#define DEPTH  5

static int64_t exact[KEYS];

static int leave_folder(void **state)
{
    static const char *const names[] = {"events", "few"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* Key k about in proportion to 1 / (k + 1), behind a column that is none. */
static int make_events(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    FILE *file;

    if (enter_folder(state) != 0)
        return -1;
    memset(exact, 0, sizeof exact);
    file = fopen("events", "w");
    for (size_t i = 0; i < EVENTS; i++) {
        double u = rbt_rng_f64(&rng);
        size_t key = (size_t)(KEYS * u * u * u * u * u);

        fprintf(
            file, "%zu\tkey %zu%s\n", i, key,
            key == 7
                ? " with a name that is long enough to be cut: "
                  "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                : "");
        exact[key]++;
    }
    return fclose(file);
}

static void set(rbt_job *job, const char *option, const char *value)
{
    rbt_error error;

    if (rbt_job_set(job, option, value, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

static rbt_job *sketch(const char *runtime, const char *sync, const char *workers)
{
    rbt_job *job = rbt_job_create("sketch");
    rbt_error error;

    set(job, "data", "events");
    set(job, "column", "2");
    set(job, "width", "2^9");
    set(job, "depth", "5");
    set(job, "top", "20");
    set(job, "events-per-clock", "3000");
    set(job, "runtime", runtime);
    set(job, "sync", sync);
    set(job, "workers", workers);
    set(job, "servers", "2");
    if (rbt_job_run(job, NULL, NULL, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return job;
}

static int64_t ask(const rbt_fitted *fitted, const char *key)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    int64_t answer;

    assert_int_equal(fitted->method->answer(fitted, key, strlen(key), out, NULL), RBT_OK);
    fclose(out);
    answer = strtoll(text, NULL, 10);
    free(text);
    return answer;
}

static void counts_are_the_same_under_every_protocol(void **state)
{
    static const char *const runtimes[] = {"local", "sim"}, *const syncs[] = {"bsp", "ssp", "asp"},
                             *const workers[] = {"1", "3", "4"};
    int64_t *first = NULL;

    (void)state;
    for (size_t r = 0; r < 2; r++)
        for (size_t y = 0; y < 3; y++)
            for (size_t w = 0; w < 3; w++) {
                rbt_job *job = sketch(runtimes[r], syncs[y], workers[w]);
                const rbt_values *counts = rbt_fitted_values(rbt_job_fitted(job), "counts");

                assert_int_equal(rbt_job_result(job)->table_sum, DEPTH * EVENTS);
                assert_true(counts->rows == DEPTH && counts->cols == WIDTH);
                if (first == NULL) {
                    first = rbt_alloc(DEPTH * WIDTH, sizeof *first);
                    memcpy(first, counts->at, DEPTH * WIDTH * sizeof *first);
                }
                assert_memory_equal(counts->at, first, DEPTH * WIDTH * sizeof *first);
                rbt_job_destroy(job);
            }
    rbt_free(first);
}

static void estimates_keep_their_bound_against_exact_counts(void **state)
{
    rbt_job *job = sketch("sim", "ssp", "3");
    const rbt_fitted *fitted = rbt_job_fitted(job);
    rbt_figure figures[RBT_FIGURES_MOST];
    size_t beyond = 0, n = 0, keys = 0;

    (void)state;
    for (size_t k = 0; k < KEYS; k++) {
        char key[32];
        int64_t estimate;

        snprintf(key, sizeof key, "key %zu", k);
        estimate = k != 7 ? ask(fitted, key) : exact[k];
        assert_true(estimate >= exact[k]);
        beyond += (double)(estimate - exact[k]) > 2.718281828 * EVENTS / WIDTH;
        keys += exact[k] > 0;
    }
    assert_true((double)beyond <= 0.0067 * KEYS); /* e^-5 */
    assert_int_equal(fitted->method->measure(fitted, "events", figures, &n, NULL), RBT_OK);
    assert_string_equal(figures[3].name, "within_bound");
    assert_true(figures[3].value >= 1 - 0.0067 && figures[4].value == (double)keys && figures[5].value == EVENTS);
    rbt_job_destroy(job);
}

static void the_most_frequent_keys_are_listed_first_to_last(void **state)
{
    rbt_job *job = sketch("local", "asp", "4");
    const rbt_fitted *fitted = rbt_job_fitted(job);
    const rbt_name_list *names = rbt_fitted_names(fitted, "heavy_names");
    const rbt_values *heavy = rbt_fitted_values(fitted, "heavy");
    size_t cut = 0;

    (void)state;
    assert_int_equal(names->n, 20);
    for (size_t i = 0; i < 20; i++) {
        size_t k = strtoull(names->at[i] + 4, NULL, 10);
        int64_t estimate = ((const int64_t *)heavy->at)[i];

        assert_true(i > 2 || k == i); /* the first three are far apart */
        assert_true(i == 0 || estimate <= ((const int64_t *)heavy->at)[i - 1]);
        assert_true(estimate >= exact[k] && estimate <= exact[k] + 160);
        cut += strstr(names->at[i], "012...") != NULL || (k == 7 && strstr(names->at[i], "...") != NULL);
    }
    assert_int_equal(cut, 1); /* the long name, which is counted by all of it */
    rbt_job_destroy(job);
}

static void a_line_without_the_column_is_refused_or_left_out(void **state)
{
    rbt_job *job = rbt_job_create("sketch");
    rbt_error error;

    (void)state;
    put_file("few", "a\tx\nb\nc\tx\n");
    set(job, "data", "few");
    set(job, "column", "2");
    assert_int_equal(rbt_job_run(job, NULL, NULL, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "few:2"));
    rbt_job_destroy(job);
    job = rbt_job_create("sketch");
    set(job, "data", "few");
    set(job, "column", "2");
    set(job, "skip-bad", "1");
    assert_int_equal(rbt_job_run(job, NULL, NULL, &error), RBT_OK);
    assert_int_equal(ask(rbt_job_fitted(job), "x"), 2);
    rbt_job_destroy(job);
}

/* Whoever has them. */
static void bad_lines_of_all_workers_are_counted_together(void **state)
{
    static const char *const workers[] = {"1", "2", "5"};
    rbt_error error;

    (void)state;
    put_file("few", "a\tx\nb\nc\tx\nd\tx\ne\nf\tx\ng\tx\nh\ni\tx\n");
    for (size_t w = 0; w < 3; w++)
        for (int allowed = 2; allowed < 4; allowed++) {
            rbt_job *job = rbt_job_create("sketch");

            set(job, "data", "few");
            set(job, "column", "2");
            set(job, "workers", workers[w]);
            set(job, "runtime", "sim");
            set(job, "skip-bad", allowed == 2 ? "2" : "3");
            assert_int_equal(rbt_job_run(job, NULL, NULL, &error), allowed == 2 ? RBT_E_DATA : RBT_OK);
            if (allowed == 3) {
                assert_int_equal(ask(rbt_job_fitted(job), "x"), 6);
                assert_true(rbt_fitted_number(rbt_job_fitted(job), "left_out") == 3);
            }
            rbt_job_destroy(job);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_the_same_under_every_protocol),
        cmocka_unit_test(estimates_keep_their_bound_against_exact_counts),
        cmocka_unit_test(the_most_frequent_keys_are_listed_first_to_last),
        cmocka_unit_test(a_line_without_the_column_is_refused_or_left_out),
        cmocka_unit_test(bad_lines_of_all_workers_are_counted_together),
    };
    return cmocka_run_group_tests(tests, make_events, leave_folder);
}
