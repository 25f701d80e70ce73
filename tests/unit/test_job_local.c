/* Proves src/job/job.c and run.c: a job is run once, and whoever interrupts a job interrupts its folds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "rubato.h"
#include "unit/files.h"

static void set(rbt_job *job, const char *option, const char *value)
{
    rbt_error error;

    if (rbt_job_set(job, option, value, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

/* A method's and a model's; also one that has no result. */
static void a_job_is_run_once(void **state)
{
    static const struct {
        const char *model, *data, *option, *value;
        rbt_err err;
    } cases[] = {{"kmeans", "rows", "set", "clusters=2", RBT_OK},
                 {"kmeans", "nowhere", "set", "clusters=2", RBT_E_IO},
                 {"lr", "rows", "l2", "0.1", RBT_OK}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_job *job = rbt_job_create(cases[i].model);
        rbt_error error;

        set(job, "data", cases[i].data);
        set(job, cases[i].option, cases[i].value);
        set(job, "sync", "bsp");
        set(job, "clocks", "2");
        assert_int_equal(rbt_job_run(job, NULL, NULL, &error), cases[i].err);
        assert_int_equal(rbt_job_run(job, NULL, NULL, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, "a job is run once"));
        rbt_job_destroy(job);
    }
}

/* In shared memory and with servers: however early it comes, a fold that would never end ends after a clock. */
static void an_interruption_before_a_fold_is_an_interruption_of_it(void **state)
{
    static const char *const syncs[] = {"hogwild", "bsp"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        rbt_job *job = rbt_job_create("lr");
        rbt_error error;

        set(job, "data", "rows");
        set(job, "folds", "2");
        set(job, "sync", syncs[i]);
        set(job, "clocks", "1000000000");
        rbt_job_interrupt(job);
        assert_int_equal(rbt_job_run(job, NULL, NULL, &error), RBT_E_INTERRUPTED);
        assert_non_null(strstr(error.text, "in fold 1 of 2"));
        assert_null(rbt_job_result(job));
        rbt_job_destroy(job);
    }
}

static int enter_with_rows(void **state)
{
    int failed = enter_folder(state);

    if (failed == 0)
        put_file("rows", "0 1:1 2:1\n0 1:1.5 2:1\n1 1:9 2:8\n1 1:8 2:9\n");
    return failed;
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"rows"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_run_once),
        cmocka_unit_test(an_interruption_before_a_fold_is_an_interruption_of_it),
    };

    return cmocka_run_group_tests(tests, enter_with_rows, leave_folder);
}
