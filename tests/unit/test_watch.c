/* Proves src/job/watch.c: when a training ends by itself, why, and which parameters are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "job/watch.h"

static rbt_options plain(void)
{
    rbt_options o;
    rbt_options_init(&o);
    o.tolerance = 0;
    return o;
}

static void without_a_reason_it_never_stops(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    assert_false(rbt_watch_may_stop(&o));
    rbt_watch_init(&watch, &o, 1);
    for (int i = 0; i < 100; i++)
        assert_false(rbt_watch_look(&watch, 0.5, 0, 0.5, &w));
    assert_null(watch.why);
    rbt_watch_deinit(&watch);
}

static void a_target_is_reached_at_or_below_it(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.has_target = true;
    o.target_loss = 0.25;
    assert_true(rbt_watch_may_stop(&o));
    rbt_watch_init(&watch, &o, 1);
    assert_false(rbt_watch_look(&watch, 0.2501, NAN, NAN, &w));
    assert_false(watch.reached);
    assert_true(rbt_watch_look(&watch, 0.25, NAN, NAN, &w));
    assert_true(watch.reached);
    assert_string_equal(watch.why, "the target was reached");
    rbt_watch_deinit(&watch);
}

static void patience_counts_evaluations_since_the_best_and_keeps_it(void **state)
{
    static const double VALID[] = {0.9, 0.5, 0.6, 0.4, 0.4, 0.7};
    rbt_options o = plain();
    rbt_watch watch;
    (void)state;
    o.patience = 2;
    assert_true(rbt_watch_may_stop(&o));
    rbt_watch_init(&watch, &o, 2);
    for (size_t i = 0; i < 6; i++) {
        float w[2] = {(float)i, -(float)i};
        assert_int_equal(rbt_watch_look(&watch, 1.0 / (double)(i + 1), NAN, VALID[i], w), i == 5);
    }
    assert_non_null(strstr(watch.why, "validation"));
    assert_true(watch.best[0] == 3 && watch.best[1] == -3); /* as good is not better: the first 0.4 */
    assert_true(watch.best_valid == 0.4 && watch.best_objective == 0.25);
    assert_false(watch.reached);
    rbt_watch_deinit(&watch);
}

static void a_bound_within_the_tolerance_stops_at_once(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    assert_true(rbt_watch_may_stop(&o));
    rbt_watch_init(&watch, &o, 1);
    assert_false(rbt_watch_look(&watch, 2, 0.021, NAN, &w));
    assert_true(rbt_watch_look(&watch, 1.9, 0.018, NAN, &w));
    assert_non_null(strstr(watch.why, "--tolerance"));
    rbt_watch_deinit(&watch);
}

static void a_loose_bound_stops_when_the_objective_stands_still(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    rbt_watch_init(&watch, &o, 1);
    assert_false(rbt_watch_look(&watch, 1, 0.5, NAN, &w));
    assert_false(rbt_watch_look(&watch, 1, 0.5, NAN, &w));     /* still, but it may be far above */
    assert_false(rbt_watch_look(&watch, 0.9, 0.05, NAN, &w));  /* near, but it moves */
    assert_true(rbt_watch_look(&watch, 0.899, 0.05, NAN, &w)); /* both */
    rbt_watch_deinit(&watch);
}

static void without_a_bound_a_small_change_stops_but_never_the_first_look(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    rbt_watch_init(&watch, &o, 1);
    assert_false(rbt_watch_look(&watch, 1, NAN, NAN, &w));
    assert_false(rbt_watch_look(&watch, 0.99, NAN, NAN, &w));
    assert_true(rbt_watch_look(&watch, 0.989, NAN, NAN, &w));
    rbt_watch_deinit(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_reason_it_never_stops),
        cmocka_unit_test(a_target_is_reached_at_or_below_it),
        cmocka_unit_test(patience_counts_evaluations_since_the_best_and_keeps_it),
        cmocka_unit_test(a_bound_within_the_tolerance_stops_at_once),
        cmocka_unit_test(a_loose_bound_stops_when_the_objective_stands_still),
        cmocka_unit_test(without_a_bound_a_small_change_stops_but_never_the_first_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
