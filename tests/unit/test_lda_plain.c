/* Proves src/method/lda.c as a job, in the simulator: several workers do as well as the plain sampler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "unit/plain_lda.h"

#define DOCS "lda_plain.svm"

/* Every worker draws its tokens from counts in which nobody else's move at the same time. */
static void several_workers_do_as_well_as_a_plain_sampler(void **unused)
{
    enum { RUNS = 8, SWEEPS = 100, K = 20, WORDS = 200 };
    rbt_data data = plain_docs_draw(120, WORDS, 10, 50, 3);
    rbt_lda_shape shape = {.topics = K, .words = WORDS, .alpha = 50.0 / K, .beta = 0.01};
    plain_outcome theirs = plain_run(&data, &shape, SWEEPS, RUNS);

    (void)unused;
    plain_docs_write(&data, DOCS);
    for (int workers = 2; workers <= 8; workers *= 4) {
        double ours = 0;

        for (int seed = 1; seed <= RUNS; seed++) {
            char options[256];
            rbt_job *job;

            snprintf(options, sizeof options,
                     "data " DOCS " runtime sim sync bsp workers %d topics %d epochs %d seed %d", workers, K, SWEEPS,
                     seed);
            job = plain_job_run(options);
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
        cmocka_unit_test(several_workers_do_as_well_as_a_plain_sampler),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    (void)remove(DOCS);
    return failed;
}
