/* Proves src/model/link.c: slopes and bends are the losses' derivatives, the dual step solves its equation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/link.h"

typedef struct case_of {
    const char *name;
    const rbt_link *link;
    bool classes; /* y is -1 or 1 */
} case_of;

static const case_of CASES[] = {
    {"logistic", &rbt_link_logistic, true},
    {"hinge", &rbt_link_hinge, true},
    {"squared hinge", &rbt_link_squared_hinge, true},
    {"squares", &rbt_link_squares, false},
    {"huber", &rbt_link_huber, false},
};
#define CASE_COUNT (sizeof CASES / sizeof CASES[0])
#define DRAWS      20000
#define STEP       1e-6

static double draw_y(const case_of *c, rbt_rng *rng)
{
    if (c->classes)
        return rbt_rng_below(rng, 2) == 0 ? -1 : 1;
    return 5 * rbt_rng_normal(rng);
}

/* Is a corner of the loss or of its slope so near to z that differences straddle it? */
static bool near_corner(double z, double y, double delta)
{
    return fabs(y * z - 1) < 3 * STEP || fabs(fabs(z - y) - delta) < 3 * STEP;
}

static void slope_is_the_derivative_of_loss_and_bend_that_of_slope(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const case_of *c = &CASES[i];
        rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, i);
        for (size_t k = 0; k < DRAWS; k++) {
            double z = 4 * rbt_rng_normal(&rng), y = draw_y(c, &rng), delta = 0.1 + 2 * rbt_rng_f64(&rng);
            if (near_corner(z, y, delta))
                continue;
            double slope = c->link->slope(z, y, delta), same, bend;
            assert_true(c->link->derive(z, y, delta, &same, &bend) == c->link->loss(z, y, delta) && same == slope);
            double up = c->link->loss(z + STEP, y, delta), down = c->link->loss(z - STEP, y, delta);
            if (fabs((up - down) / (2 * STEP) - slope) > 1e-7 * (1 + fabs(slope) + up))
                fail_msg("%s: slope %g at z %g, y %g, delta %g", c->name, slope, z, y, delta);
            up = c->link->slope(z + STEP, y, delta);
            down = c->link->slope(z - STEP, y, delta);
            if (c->link == &rbt_link_huber && fabs(z - y) > delta) { /* there the parabola with the same slope counts */
                assert_true(fabs(bend * (z - y) - slope) < 1e-12 * (1 + fabs(slope)));
                continue;
            }
            if (fabs((up - down) / (2 * STEP) - bend) > 1e-7 * (1 + fabs(slope)))
                fail_msg("%s: bend %g at z %g, y %g, delta %g", c->name, bend, z, y, delta);
            assert_true(bend >= 0 && bend <= c->link->steepest);
            assert_true(c->link->loss(z, y, delta) >= 0);
        }
    }
}

static void losses_have_the_values_of_their_definitions(void **state)
{
    (void)state;
    for (double z = -40; z <= 40; z += 0.37) {
        for (double y = -1; y <= 1; y += 2) {
            double short_by = fmax(0, 1 - y * z);
            assert_true(fabs(rbt_link_logistic.loss(z, y, 0) - log1p(exp(-y * z))) < 1e-12 * (1 + fabs(z)));
            assert_true(rbt_link_hinge.loss(z, y, 0) == short_by);
            assert_true(rbt_link_squared_hinge.loss(z, y, 0) == short_by * short_by);
        }
        double error = fabs(z - 2);
        assert_true(rbt_link_squares.loss(z, 2, 0) == error * error / 2);
        assert_true(fabs(rbt_link_huber.loss(z, 2, 3) - (error <= 3 ? error * error / 2 : 3 * error - 4.5)) < 1e-12);
    }
}

/* Does a' solve a' = -slope(z + q (a' - a)), up to CLOSE? The difference of the two sides only grows with a', however
 * steeply, and jumps where the slope does (hinge): so it must change its sign within CLOSE of a'. */
#define CLOSE 1e-6
static bool solves(const rbt_link *link, double after, double a, double z, double y, double q, double delta)
{
    double far = CLOSE * (1 + fabs(after)), below = after - far, above = after + far;
    return below + link->slope(z + q * (below - a), y, delta) <= 0 &&
           above + link->slope(z + q * (above - a), y, delta) >= 0;
}

/* Any start a that a step may leave behind: within the range of -slope, at its ends, and any q from 0 to huge. */
static void the_dual_step_solves_its_equation(void **state)
{
    (void)state;
    static const double Q[] = {0, 1e-12, 1e-3, 1, 50, 1e4, 1e8, 1e12};
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const case_of *c = &CASES[i];
        rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, i);
        for (size_t k = 0; k < DRAWS; k++) {
            double z = 6 * rbt_rng_normal(&rng), y = draw_y(c, &rng), delta = 0.1 + 2 * rbt_rng_f64(&rng);
            double q = k % 2 == 0 ? Q[rbt_rng_below(&rng, sizeof Q / sizeof Q[0])] : exp(8 * rbt_rng_normal(&rng));
            double share = k % 5 == 0 ? 0 : k % 5 == 1 ? 1 : rbt_rng_f64(&rng);
            double a = c->classes ? y * share : c->link == &rbt_link_huber ? delta * (2 * share - 1) : 10 * share - 5;
            double after = c->link->dual(a, z, y, q, delta);
            if (!isfinite(after) || !solves(c->link, after, a, z, y, q, delta))
                fail_msg("%s: a %.17g z %.17g y %g q %.17g delta %g gives %.17g, slope there %.17g", c->name, a, z, y,
                         q, delta, after, c->link->slope(z + q * (after - a), y, delta));
        }
    }
}

static void extreme_decision_values_stay_finite_and_nan_shows(void **state)
{
    (void)state;
    static const double Z[] = {-1e30, -1e6, -750, 0, 750, 1e6, 1e30};
    for (size_t i = 0; i < CASE_COUNT; i++) {
        for (size_t k = 0; k < sizeof Z / sizeof Z[0]; k++) {
            const rbt_link *link = CASES[i].link;
            double slope, bend;
            assert_true(isfinite(link->loss(Z[k], 1, 1)) && isfinite(link->slope(Z[k], 1, 1)));
            assert_true(isfinite(link->derive(Z[k], 1, 1, &slope, &bend)) && isfinite(slope) && isfinite(bend));
            assert_true(isfinite(link->dual(0.5, Z[k], 1, 2, 1)));
        }
    }
    assert_true(isnan(rbt_link_logistic.loss(NAN, 1, 0)));
    assert_true(isnan(rbt_link_squares.loss(NAN, 1, 0)));
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void many_at_once_are_the_same_bits(void **state)
{
    (void)state;
    enum { MOST = 70 };
    static const double EDGES[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-300, -745.1, 745.3, 37, 1e300};
    double z[MOST], y[MOST], loss[MOST], alone[MOST], slope[MOST], bend[MOST];
    for (size_t c = 0; c < CASE_COUNT; c++) {
        rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, c);
        for (size_t n = 0; n <= MOST; n++) {
            double delta = 0.1 + 2 * rbt_rng_f64(&rng);
            for (size_t i = 0; i < n; i++) {
                z[i] = rbt_rng_below(&rng, 10) == 0 ? EDGES[rbt_rng_below(&rng, 10)]
                                                    : exp(3 * rbt_rng_normal(&rng)) * rbt_rng_normal(&rng);
                y[i] = draw_y(&CASES[c], &rng);
            }
            rbt_link_all(CASES[c].link, n, z, y, delta, loss, slope, bend);
            rbt_link_all(CASES[c].link, n, z, y, delta, alone, NULL, NULL);
            for (size_t i = 0; i < n; i++) {
                double s, b, l = CASES[c].link->derive(z[i], y[i], delta, &s, &b);
                if (!same(loss[i], l) || !same(slope[i], s) || !same(bend[i], b) || !same(alone[i], l))
                    fail_msg("%s: z %a y %a: %a %a %a, alone %a; one at a time %a %a %a", CASES[c].name, z[i], y[i],
                             loss[i], slope[i], bend[i], alone[i], l, s, b);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slope_is_the_derivative_of_loss_and_bend_that_of_slope),
        cmocka_unit_test(losses_have_the_values_of_their_definitions),
        cmocka_unit_test(the_dual_step_solves_its_equation),
        cmocka_unit_test(many_at_once_are_the_same_bits),
        cmocka_unit_test(extreme_decision_values_stay_finite_and_nan_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
