/* Proves src/solve/quadratic.c: steps end where nothing is left to gain, with a penalty and without, whatever the sizes of the
 * parameters; what the second derivatives do not hold stays where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "solve/quadratic.h"

#define MOST 24

typedef struct quadratic {
    size_t n;
    double h[MOST * MOST], g[MOST], w[MOST], d[MOST], room[RBT_QUADRATIC_ROOM(MOST)];
} quadratic;

/* H = A^T A of `rank` rows, parameters of sizes a factor of `spread` apart, g in what H reaches. */
static quadratic draw(rbt_rng *rng, size_t n, size_t rank, double spread)
{
    quadratic q = {.n = n};
    double a[2 * MOST][MOST], v[MOST];
    for (size_t r = 0; r < rank; r++)
        for (size_t i = 0; i < n; i++)
            a[r][i] = rbt_rng_normal(rng) * pow(spread, (double)i / MOST);
    for (size_t i = 0; i < n; i++) {
        q.w[i] = rbt_rng_normal(rng) / pow(spread, (double)i / MOST);
        v[i] = rbt_rng_normal(rng) / pow(spread, (double)i / MOST);
        for (size_t k = 0; k < n; k++)
            for (size_t r = 0; r < rank; r++)
                q.h[i * n + k] += a[r][i] * a[r][k];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            q.g[i] += q.h[i * n + k] * v[k];
    return q;
}

static double slope_at(const quadratic *q, size_t i)
{
    double slope = q->g[i];
    for (size_t k = 0; k < q->n; k++)
        slope += q->h[i * q->n + k] * q->d[k];
    return slope;
}

static double fall_of(const quadratic *q, size_t penalised, double l1)
{
    double fall = 0;
    for (size_t i = 0; i < q->n; i++) {
        fall -= q->d[i] * (q->g[i] + slope_at(q, i)) / 2;
        fall -= i < penalised ? l1 * (fabs(q->w[i] + q->d[i]) - fabs(q->w[i])) : 0;
    }
    return fall;
}

/* Would moving this parameter alone bring next to nothing, beside how far it fell? */
static bool is_flat(const quadratic *q, size_t i, double slope, double fall)
{
    return slope * slope / (2 * q->h[i * q->n + i]) <= 1e-9 * fall;
}

static void the_step_ends_where_the_slope_is_0(void **state)
{
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);
    (void)state;
    for (size_t n = 1; n <= MOST; n++)
        for (int unlike = 0; unlike < 2; unlike++) {
            quadratic q = draw(&rng, n, 2 * n, unlike ? 1e12 : 1);
            double fall = rbt_quadratic_solve(n, q.h, q.g, q.d, q.room);
            for (size_t i = 0; i < n; i++)
                assert_true(is_flat(&q, i, slope_at(&q, i), fall));
            assert_true(fabs(fall - fall_of(&q, 0, 0)) <= 1e-8 * fall);
        }
}

static void parameters_that_others_make_up_for_do_no_harm(void **state)
{
    rbt_rng rng = rbt_rng_stream(6, RBT_STREAM_TEST, 0);
    (void)state;
    for (size_t n = 2; n <= MOST; n++) {
        quadratic q = draw(&rng, n, n / 2, 1);
        double fall = rbt_quadratic_solve(n, q.h, q.g, q.d, q.room);
        for (size_t i = 0; i < n; i++) {
            assert_true(isfinite(q.d[i]) && is_flat(&q, i, slope_at(&q, i), fall));
            assert_true(fabs(q.d[i]) < 1e4);
        }
    }
}

/* Of a column with a mean of 1e6 and a deviation of 1 its bias leaves 1e-12 of its second derivative: that is not nothing. */
static void large_means_hide_nothing_and_hold_nothing_up(void **state)
{
    (void)state;
    for (int l1 = 0; l1 < 2; l1++) {
        const double mean = l1 ? 1e4 : 1e6, h[] = {mean * mean + 1, mean, mean, 1}, g[] = {-mean - 1, -1}, w[2] = {0};
        double d[2], room[RBT_QUADRATIC_ROOM(2)], fall;
        fall = l1 ? rbt_quadratic_solve_l1(2, h, g, true, w, 0.5, d, room) : rbt_quadratic_solve(2, h, g, d, room);
        assert_true(fabs(d[0] - (l1 ? 0.5 : 1)) <
                    1e-3); /* the minimum is at 1 and 1 - mean, less what the penalty takes */
        assert_true(fabs(fall - (l1 ? 0.625 : 1)) < 1e-3);
    }
}

static void with_a_penalty_nothing_is_left_to_gain_and_zeros_are_exact(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);
    size_t zeros = 0, others = 0;
    (void)state;
    for (size_t n = 2; n <= MOST; n++)
        for (int unlike = 0; unlike < 2; unlike++) {
            quadratic q = draw(&rng, n, 2 * n, unlike ? 1e6 : 1);
            double l1 = (double)n, fall = rbt_quadratic_solve_l1(n, q.h, q.g, true, q.w, l1, q.d, q.room);
            for (size_t i = 0; i < n; i++) {
                double w = q.w[i] + q.d[i], slope = slope_at(&q, i);
                if (i == n - 1) {
                    assert_true(is_flat(&q, i, slope, fall));
                } else if (w == 0) {
                    assert_true(is_flat(&q, i, fmax(fabs(slope) - l1, 0), fall));
                    zeros++;
                } else {
                    assert_true(is_flat(&q, i, slope + (w > 0 ? l1 : -l1), fall));
                    others++;
                }
            }
            assert_true(fabs(fall - fall_of(&q, n - 1, l1)) <= 1e-6 * fall);
        }
    assert_true(zeros > 50 && others > 50);
}

/* Parameters that nearly make up for each other: one after the other would take millions of sweeps, and what these bring in the end
 * says nothing about how far it still is. */
static void parameters_that_are_nearly_alike_are_moved_together(void **state)
{
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);
    const double unlike = 1e-7, l1 = 1e-7;
    (void)state;
    for (size_t n = 3; n <= MOST; n++)
        for (int bias = 0; bias < 2; bias++) {
            quadratic q = draw(&rng, n, 2 * n, 1);
            for (size_t i = 0; i < n; i++) {
                q.g[i] *= unlike;
                for (size_t k = 0; k < n; k++)
                    q.h[i * n + k] = unlike * q.h[i * n + k] + 1;
            }
            double fall = rbt_quadratic_solve_l1(n, q.h, q.g, bias, q.w, l1, q.d, q.room);
            assert_true(isfinite(fall));
            for (size_t i = 0; i < n - (size_t)bias; i++) {
                double w = q.w[i] + q.d[i], slope = slope_at(&q, i);
                double left = w == 0 ? fmax(fabs(slope) - l1, 0) : fabs(slope + (w > 0 ? l1 : -l1));
                assert_true(left < 1e-3 * l1);
            }
        }
}

static void without_a_penalty_both_ways_lead_to_the_same_place(void **state)
{
    rbt_rng rng = rbt_rng_stream(8, RBT_STREAM_TEST, 0);
    (void)state;
    for (size_t n = 1; n <= MOST; n++) {
        quadratic q = draw(&rng, n, 2 * n, 1);
        double d[MOST];
        (void)rbt_quadratic_solve(n, q.h, q.g, q.d, q.room);
        (void)rbt_quadratic_solve_l1(n, q.h, q.g, false, q.w, 0, d, q.room);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs(d[i] - q.d[i]) < 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_ends_where_the_slope_is_0),
        cmocka_unit_test(parameters_that_others_make_up_for_do_no_harm),
        cmocka_unit_test(large_means_hide_nothing_and_hold_nothing_up),
        cmocka_unit_test(with_a_penalty_nothing_is_left_to_gain_and_zeros_are_exact),
        cmocka_unit_test(parameters_that_are_nearly_alike_are_moved_together),
        cmocka_unit_test(without_a_penalty_both_ways_lead_to_the_same_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
