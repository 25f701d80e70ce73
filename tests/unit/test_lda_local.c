/* Proves src/method/lda.c as a job: every token is counted once after every clock, whatever the protocol and whatever a clock is
 * for, also on threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "unit/plain_lda.h"

#define DOCS "lda_local.svm"

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
    plain_docs_write(&data, DOCS);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        for (int clocks = 1; clocks <= 12; clocks++) { /* more than a sweep */
            char options[256];
            rbt_job *job;

            snprintf(options, sizeof options, "data " DOCS " %s workers 3 topics 9 clocks %d", ways[w], clocks);
            job = plain_job_run(options);
            assert_true(rbt_job_result(job)->has_table_sum);
            assert_int_equal(rbt_job_result(job)->table_sum, 30 * 25);
            rbt_job_destroy(job);
        }
    }
    rbt_data_deinit(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_is_counted_once_after_every_clock),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    (void)remove(DOCS);
    return failed;
}
