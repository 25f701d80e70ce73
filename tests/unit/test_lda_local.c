/* Proves src/method/lda.c as a job: every token is counted once after every clock, whatever the protocol and whatever a clock is
 * for; several workers do as well as the plain sampler; and what they tell is told of whole counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "unit/plain_lda.h"

#define FILE_NAME "docs.svm"

static void write_docs(const rbt_data *data)
{
    FILE *out = fopen(FILE_NAME, "w");

    assert_non_null(out);
    for (size_t d = 0; d < data->rows; d++) {
        fputs("0", out);
        for (size_t i = data->start[d]; i < data->start[d + 1]; i++)
            fprintf(out, " %u:%g", data->index[i] + 1, (double)data->value[i]);
        fputc('\n', out);
    }
    assert_int_equal(fclose(out), 0);
}

/* Runs a job with options given as "name value name value ...". */
static rbt_job *run(const char *options, rbt_event_handler *handler, void *context)
{
    rbt_job *job = rbt_job_create("lda");
    char text[512], *rest = text, *name;
    rbt_error error = {0};

    snprintf(text, sizeof text, "data " FILE_NAME " %s", options);
    while ((name = strtok_r(rest, " ", &rest)) != NULL)
        if (rbt_job_set(job, name, strtok_r(rest, " ", &rest), &error) != RBT_OK)
            fail_msg("%s: %s", name, error.text);
    if (rbt_job_run(job, handler, context, &error) != RBT_OK)
        fail_msg("%s: %s", options, error.text);
    return job;
}

static void every_token_is_counted_once_after_every_clock(void **unused)
{
    static const char *const ways[] = {"runtime sim sync bsp cut words",
                                       "runtime sim sync bsp cut documents",
                                       "runtime sim sync ssp staleness 2 cut words servers 3",
                                       "runtime sim sync asp cut words",
                                       "runtime sim sync asp cut documents",
                                       "runtime local sync ssp staleness 1 cut words",
                                       "runtime local sync asp cut documents"};
    rbt_data data = plain_docs_draw(30, 40, 4, 25, 8);

    (void)unused;
    write_docs(&data);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        for (int clocks = 1; clocks <= 12; clocks++) { /* more than a sweep */
            char options[256];
            rbt_job *job;

            snprintf(options, sizeof options, "%s workers 3 topics 9 clocks %d", ways[w], clocks);
            job = run(options, NULL, NULL);
            assert_true(rbt_job_result(job)->has_table_sum);
            assert_int_equal(rbt_job_result(job)->table_sum, 30 * 25);
            rbt_job_destroy(job);
        }
    }
    rbt_data_deinit(&data);
}

/* Every worker draws its tokens from counts in which nobody else's move at the same time. */
static void several_workers_do_as_well_as_a_plain_sampler(void **unused)
{
    enum { RUNS = 8, SWEEPS = 100, K = 20, WORDS = 200 };
    rbt_data data = plain_docs_draw(120, WORDS, 10, 50, 3);
    rbt_lda_shape shape = {.topics = K, .words = WORDS, .alpha = 50.0 / K, .beta = 0.01};
    plain_outcome theirs = plain_run(&data, &shape, SWEEPS, RUNS);

    (void)unused;
    write_docs(&data);
    for (int workers = 2; workers <= 8; workers *= 4) {
        double ours = 0;

        for (int seed = 1; seed <= RUNS; seed++) {
            char options[256];
            rbt_job *job;

            snprintf(options, sizeof options, "runtime sim sync bsp workers %d topics %d epochs %d seed %d", workers, K,
                     SWEEPS, seed);
            job = run(options, NULL, NULL);
            ours += rbt_fitted_number(rbt_job_fitted(job), "log_likelihood") / RUNS;
            rbt_job_destroy(job);
        }
        if (ours < theirs.mean - theirs.deviation)
            fail_msg("%d workers: %.4f per token, a plain sampler has %.4f with a deviation of %.4f", workers, ours,
                     theirs.mean, theirs.deviation);
    }
    rbt_data_deinit(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_is_counted_once_after_every_clock),
        cmocka_unit_test(several_workers_do_as_well_as_a_plain_sampler),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    (void)remove(FILE_NAME);
    return failed;
}
