/* Proves src/job/watch.c: when a training ends by itself, why, and which parameters are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
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
    assert_true(watch.best_score == 0.4 && watch.best_objective == 0.25);
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

static void a_loose_bound_does_not_stop_an_objective_that_hardly_moves(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    rbt_watch_init(&watch, &o, 1);
    for (int i = 0; i < 100; i++)
        assert_false(rbt_watch_look(&watch, 1 - 1e-6 * i, 0.02, NAN, &w));
    rbt_watch_deinit(&watch);
}

static void only_a_bound_is_no_estimate(void **state)
{
    (void)state;
    for (int newton = 0; newton < 2; newton++) {
        rbt_options o = plain();
        rbt_watch watch;
        float w = 0;
        o.tolerance = 1e-2;
        o.optimizer = newton ? RBT_OPTIMIZER_NEWTON : RBT_OPTIMIZER_SDCA;
        rbt_watch_init(&watch, &o, 1);
        assert_true(rbt_watch_look(&watch, 1, 1e-3, NAN, &w));
        assert_int_equal(strstr(watch.why, "estimate") != NULL, newton);
        rbt_watch_deinit(&watch);
    }
}

/* A gap of 1/k falls by 1/k^2: at the hundredth look by a hundredth of what is left. */
static void without_a_bound_small_steps_on_a_long_way_do_not_stop(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    rbt_watch_init(&watch, &o, 1);
    for (int k = 1; k < 90; k++)
        assert_false(rbt_watch_look(&watch, 1 + 1.0 / k, NAN, NAN, &w));
    for (int k = 90; k < 110 && watch.why == NULL; k++)
        (void)rbt_watch_look(&watch, 1 + 1.0 / k, NAN, NAN, &w);
    assert_non_null(strstr(watch.why, "changes by less than --tolerance")); /* of the optimum nothing is known */
    rbt_watch_deinit(&watch);
}

static void without_a_bound_one_small_change_does_not_stop_but_three_do(void **state)
{
    static const double OBJECTIVE[] = {1, 0.999, 0.9, 0.899, 0.8985, 0.8984};
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-2;
    rbt_watch_init(&watch, &o, 1);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(rbt_watch_look(&watch, OBJECTIVE[i], NAN, NAN, &w), i == 5);
    rbt_watch_deinit(&watch);
}

static void an_objective_that_stands_still_stops_and_says_so(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-6;
    rbt_watch_init(&watch, &o, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(rbt_watch_look(&watch, 0.5, INFINITY, NAN, &w), i == 3);
    assert_true(watch.stuck && strstr(watch.why, "does not get better") != NULL);
    rbt_watch_deinit(&watch);
}

/* Whoever is where they wanted to be is not stuck there. */
static void standing_still_at_the_target_is_an_arrival(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-6;
    rbt_watch_init(&watch, &o, 1);
    for (int i = 0; i < 3; i++)
        assert_false(rbt_watch_look(&watch, 0.5, INFINITY, NAN, &w));
    o.has_target = true;
    o.target_loss = 0.5;
    assert_true(rbt_watch_look(&watch, 0.5, INFINITY, NAN, &w));
    assert_true(watch.reached && !watch.stuck);
    rbt_watch_deinit(&watch);
}

/* Its dual variables may go far before the parameters do. */
static void dual_ascent_that_stands_still_is_given_time(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    int looks = 0;
    (void)state;
    o.tolerance = 1e-6;
    o.optimizer = RBT_OPTIMIZER_SDCA;
    rbt_watch_init(&watch, &o, 1);
    while (!rbt_watch_look(&watch, 0.5, looks % 2 == 0 ? 0.4 : 0.3, NAN, &w) && looks < 1000)
        looks++;
    assert_in_range(looks, 100, 999);
    assert_non_null(strstr(watch.why, "does not get better"));
    rbt_watch_deinit(&watch);
}

static void dual_ascent_keeps_the_best_parameters_of_many_since_it_rose(void **state)
{
    static const double OBJECTIVES[] = {3, 2, 9, 4, 2.5, 7};
    (void)state;
    for (int many = 0; many < 2; many++) {
        size_t n = many ? 100000 : 1;
        rbt_options o = plain();
        rbt_watch watch;
        float *w = calloc(n, sizeof *w);
        assert_non_null(w);
        o.optimizer = RBT_OPTIMIZER_SDCA;
        rbt_watch_init(&watch, &o, n);
        for (size_t i = 0; i < 6; i++) {
            w[n - 1] = (float)i;
            assert_false(rbt_watch_look(&watch, OBJECTIVES[i], INFINITY, NAN, w));
            assert_int_equal(watch.best != NULL, !many || i >= 2); /* as long as it falls there is nothing to keep */
        }
        assert_true(watch.best[n - 1] == (many ? 4 : 1) && watch.best_objective == (many ? 2.5 : 2));
        assert_int_equal(watch.worse, many ? 1 : 4);
        rbt_watch_deinit(&watch);
        free(w);
    }
}

static void a_gap_that_still_falls_is_progress(void **state)
{
    rbt_options o = plain();
    rbt_watch watch;
    float w = 0;
    (void)state;
    o.tolerance = 1e-3;
    rbt_watch_init(&watch, &o, 1);
    for (int i = 0; i < 20; i++) /* as with l1, when all parameters are still 0 */
        assert_false(rbt_watch_look(&watch, 0.5, 1e6 / (i + 1), NAN, &w));
    for (int i = 0; i < 2; i++)
        assert_false(rbt_watch_look(&watch, 0.5, 1e6, NAN, &w));
    assert_true(rbt_watch_look(&watch, 0.5, 1e6, NAN, &w));
    rbt_watch_deinit(&watch);
}

static void an_objective_of_0_is_the_end(void **state)
{
    static const double OBJECTIVE[] = {0, 1e-14, 1e-11};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rbt_options o = plain();
        rbt_watch watch;
        float w = 0;
        o.tolerance = 1e-3;
        rbt_watch_init(&watch, &o, 1);
        watch.first = 1;
        assert_int_equal(rbt_watch_look(&watch, OBJECTIVE[i], INFINITY, NAN, &w), i < 2);
        rbt_watch_deinit(&watch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_reason_it_never_stops),
        cmocka_unit_test(a_target_is_reached_at_or_below_it),
        cmocka_unit_test(patience_counts_evaluations_since_the_best_and_keeps_it),
        cmocka_unit_test(a_bound_within_the_tolerance_stops_at_once),
        cmocka_unit_test(a_loose_bound_does_not_stop_an_objective_that_hardly_moves),
        cmocka_unit_test(only_a_bound_is_no_estimate),
        cmocka_unit_test(without_a_bound_small_steps_on_a_long_way_do_not_stop),
        cmocka_unit_test(without_a_bound_one_small_change_does_not_stop_but_three_do),
        cmocka_unit_test(an_objective_that_stands_still_stops_and_says_so),
        cmocka_unit_test(standing_still_at_the_target_is_an_arrival),
        cmocka_unit_test(dual_ascent_that_stands_still_is_given_time),
        cmocka_unit_test(dual_ascent_keeps_the_best_parameters_of_many_since_it_rose),
        cmocka_unit_test(a_gap_that_still_falls_is_progress),
        cmocka_unit_test(an_objective_of_0_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
