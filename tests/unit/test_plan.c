/* Proves src/job/plan.c and method_job.c: what workers tell is exact, and who looks at it does as much work per clock after many clocks
 * as after few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "job/job_state.h"
#include "job/plan.h"
#include "unit/files.h"

static void what_was_told_is_a_mean(void **state)
{
    const int64_t half = (int64_t)1 << 39; /* fractions are in units of 2^-40 */

    (void)state;
    assert_true(rbt_planned_objective((int64_t[]){3, half, 2}) == 1.75);
    assert_true(rbt_planned_objective((int64_t[]){-4, half, 1}) == -3.5);
    assert_true(isnan(rbt_planned_objective((int64_t[]){3, 0, 0})));
}

typedef struct seen {
    uint64_t clocks;
    double loss;
} seen;

static void on_event(void *context, const rbt_event *event)
{
    seen *s = context;

    if (event->kind != RBT_EVENT_CLOCK)
        return;
    s->clocks++;
    s->loss = event->progress->loss;
}

/* Trains k-means for so many clocks; what its evaluator has looked at. */
static uint64_t observed(const char *sync, const char *clocks, const char *servers, uint64_t rounds)
{
    rbt_job *job = rbt_job_create("kmeans");
    rbt_error error;
    seen s = {0};
    uint64_t found;

    assert_int_equal(rbt_job_set(job, "data", "rows", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "set", "clusters=2", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "runtime", "sim", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "sync", sync, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "workers", "2", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "servers", servers, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "clocks", clocks, &error), RBT_OK);
    if (rbt_job_run(job, on_event, &s, &error) != RBT_OK)
        fail_msg("%s", error.text);
    if (rounds > 0)
        assert_true(s.clocks >= rounds && s.clocks <= rounds + 2);
    assert_true(s.loss == rbt_job_result(job)->loss && isfinite(s.loss));
    found = job->observed;
    rbt_job_destroy(job);
    return found;
}

static void twenty_thousand_clocks_are_ten_times_two_thousand(void **state)
{
    FILE *file = fopen("rows", "w");

    (void)state;
    assert_non_null(file);
    fputs("0 1:1 2:1\n0 1:1.5 2:1\n1 1:9 2:8\n1 1:8 2:9\n", file);
    fclose(file);
    const uint64_t block = RBT_TOLD_BLOCK * RBT_TOLD_COLS;
    uint64_t few = observed("bsp", "2000", "1", 2000), many = observed("bsp", "20000", "1", 20000);
    assert_true(many < 11 * few);
    assert_true(many < 20000 * 2 * block); /* a block or two in each round, whatever was told before */
    assert_true(observed("asp", "20000", "3", 0) < 20000 * 2 * block);
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"rows"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_is_a_mean),
        cmocka_unit_test(twenty_thousand_clocks_are_ten_times_two_thousand),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
