/* Proves src/math/functions.c: close to the C library's long double functions on a million points, exact at the edges,
 * and the same bits whatever the compiler and the processor (a stored hash). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "math/functions.h"

#include <float.h>
#include <math.h>

enum { POINTS = 1000000 };

/* How far y is from the true value, in units of the last place a double has there. */
static double distance_ulp(double y, long double truth)
{
    if (isnan(y) || isinf(y))
        return truth >= 0x1.fffffffffffff8p+1023L && y > 0 ? 0 : HUGE_VAL;
    int exponent;
    frexpl(truth, &exponent);
    if (exponent < -1021)
        exponent = -1021;
    return (double)fabsl(ldexpl((long double)y - truth, 53 - exponent));
}

static double uniform(rbt_rng *rng, double low, double high)
{
    return low + (high - low) * rbt_rng_f64(rng);
}

/* A positive double of any size, denormals included. */
static double any_size(rbt_rng *rng)
{
    double mantissa = 1 + rbt_rng_f64(rng);
    return ldexp(mantissa, (int)rbt_rng_below(rng, 2098) - 1074);
}

/* A number whose size is spread over the magnitudes up to about that of top. */
static double any_scale(rbt_rng *rng, double top)
{
    double x = top * rbt_rng_f64(rng);
    x = ldexp(x, -(int)rbt_rng_below(rng, 60));
    return rbt_rng_below(rng, 2) ? x : -x;
}

static long double true_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double true_softplus(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static void exp_is_within_2_ulp(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    double worst = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = i % 2 ? uniform(&rng, -746, 710) : any_scale(&rng, 40);
        worst = fmax(worst, distance_ulp(rbt_exp(x), expl((long double)x)));
    }
    print_message("exp: %.3f ulp\n", worst);
    assert_true(worst < 2);
}

static void log_is_within_2_ulp(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);
    double worst = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = i % 2 ? any_size(&rng) : 1 + any_scale(&rng, 0.99);
        worst = fmax(worst, distance_ulp(rbt_ln(x), logl((long double)x)));
    }
    print_message("log: %.3f ulp\n", worst);
    assert_true(worst < 2);
}

static void log1p_is_within_2_ulp(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    double worst = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = i % 4 == 0   ? any_size(&rng)
                   : i % 4 == 1 ? any_scale(&rng, 0.999999)
                   : i % 4 == 2 ? uniform(&rng, -1, 4)
                                : -1 + any_size(&rng) * 0x1p-1030;
        if (x > -1)
            worst = fmax(worst, distance_ulp(rbt_log1p(x), log1pl((long double)x)));
    }
    print_message("log1p: %.3f ulp\n", worst);
    assert_true(worst < 2);
}

static void sigmoid_and_softplus_are_within_4_ulp(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    double sigmoid = 0, softplus = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = i % 2 ? uniform(&rng, -750, 750) : any_scale(&rng, 40);
        sigmoid = fmax(sigmoid, distance_ulp(rbt_sigmoid(x), true_sigmoid((long double)x)));
        softplus = fmax(softplus, distance_ulp(rbt_softplus(x), true_softplus((long double)x)));
    }
    print_message("sigmoid: %.3f ulp, softplus: %.3f ulp\n", sigmoid, softplus);
    assert_true(sigmoid < 4);
    assert_true(softplus < 4);
}

static void exp_at_the_edges(void **state)
{
    (void)state;
    assert_true(rbt_exp(0.0) == 1 && rbt_exp(-0.0) == 1);
    assert_true(rbt_exp(DBL_TRUE_MIN) == 1 && rbt_exp(-DBL_TRUE_MIN) == 1);
    assert_true(rbt_exp(INFINITY) == (double)INFINITY && rbt_exp(-INFINITY) == 0);
    assert_true(isnan(rbt_exp(NAN)) && isnan(rbt_exp(-NAN)));
    assert_true(rbt_exp(1e300) == (double)INFINITY && rbt_exp(-1e300) == 0);
    assert_true(isfinite(rbt_exp(0x1.62e42fefa39efp+9)));                   /* the largest that does not overflow */
    assert_true(rbt_exp(0x1.62e42fefa39f0p+9) == (double)INFINITY);         /* and the next */
    assert_true(rbt_exp(-745.13) == DBL_TRUE_MIN && rbt_exp(-745.14) == 0); /* the other end */
    assert_true(distance_ulp(rbt_exp(-720.5), expl(-720.5L)) <= 1);         /* among the denormals */
    assert_false(signbit(rbt_exp(-INFINITY)));
}

static void log_at_the_edges(void **state)
{
    (void)state;
    assert_true(rbt_ln(1) == 0 && !signbit(rbt_ln(1)));
    assert_true(rbt_ln(0.0) == -(double)INFINITY && rbt_ln(-0.0) == -(double)INFINITY);
    assert_true(rbt_ln(INFINITY) == (double)INFINITY);
    assert_true(isnan(rbt_ln(-1)) && isnan(rbt_ln(-INFINITY)) && isnan(rbt_ln(NAN)));
    assert_true(isnan(rbt_ln(-DBL_TRUE_MIN)));
    const double points[] = {DBL_TRUE_MIN, DBL_MIN, DBL_MAX, 1 - DBL_EPSILON / 2, 1 + DBL_EPSILON, M_SQRT2, M_SQRT1_2};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        assert_true(distance_ulp(rbt_ln(points[i]), logl((long double)points[i])) < 2);
}

static void log1p_at_the_edges(void **state)
{
    (void)state;
    assert_true(rbt_log1p(0.0) == 0 && !signbit(rbt_log1p(0.0)) && signbit(rbt_log1p(-0.0)));
    assert_true(rbt_log1p(DBL_TRUE_MIN) == DBL_TRUE_MIN && rbt_log1p(-DBL_MIN) == -DBL_MIN);
    assert_true(rbt_log1p(-1) == -(double)INFINITY && rbt_log1p(INFINITY) == (double)INFINITY);
    assert_true(isnan(rbt_log1p(-1.5)) && isnan(rbt_log1p(-INFINITY)) && isnan(rbt_log1p(NAN)));
    const double points[] = {DBL_MAX, -1 + DBL_EPSILON / 2, 0.41, -0.29, 1, 0x1p53, 0x1p-53, -0x1p-53, 0x1p-54};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        assert_true(distance_ulp(rbt_log1p(points[i]), log1pl((long double)points[i])) < 2);
}

static void sigmoid_and_softplus_at_the_edges(void **state)
{
    (void)state;
    assert_true(rbt_sigmoid(0) == 0.5);
    assert_true(rbt_sigmoid(INFINITY) == 1 && rbt_sigmoid(-INFINITY) == 0);
    assert_true(rbt_sigmoid(1e308) == 1 && rbt_sigmoid(-1e308) == 0);
    assert_true(rbt_sigmoid(-745) == DBL_TRUE_MIN);
    assert_true(isnan(rbt_sigmoid(NAN)));
    assert_true(distance_ulp(rbt_softplus(0), logl(2)) < 1);
    assert_true(rbt_softplus(INFINITY) == (double)INFINITY && rbt_softplus(-INFINITY) == 0);
    assert_true(rbt_softplus(1e308) == 1e308 && rbt_softplus(-1e308) == 0);
    assert_true(rbt_softplus(-745) == DBL_TRUE_MIN);
    assert_true(isnan(rbt_softplus(NAN)));
}

static void the_bits_are_the_stored_ones(void **state)
{
    (void)state;
    /* Differs when a compiler fuses or reorders: then machines of one job would disagree. */
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);
    rbt_hasher *hasher = rbt_hasher_create(0);
    for (int i = 0; i < 20000; i++) {
        double x = (rbt_rng_f64(&rng) - 0.5) * 100;
        double y[] = {rbt_exp(x), rbt_ln(x * x), rbt_log1p(x * x), rbt_sigmoid(x), rbt_softplus(x)};
        rbt_hasher_add(hasher, y, sizeof y);
    }
    uint64_t value = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
    assert_true(value == 0x1c3202e8647cbcafu);
}

static void ln_gamma_is_close_to_the_c_librarys(void **unused)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)unused;
    for (size_t i = 0; i < 100000; i++) {
        double x = exp(uniform(&rng, -12, 25)), truth = lgamma(x);

        assert_true(fabs(rbt_ln_gamma(x) - truth) <= 1e-11 * fmax(1, fabs(truth)));
    }
    assert_true(fabs(rbt_ln_gamma(1)) < 1e-11 && fabs(rbt_ln_gamma(2)) < 1e-11);
    assert_true(isinf(rbt_ln_gamma(0)) && isnan(rbt_ln_gamma(-1)) && isnan(rbt_ln_gamma(NAN)));
    assert_true(isinf(rbt_ln_gamma(INFINITY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_2_ulp),
        cmocka_unit_test(log_is_within_2_ulp),
        cmocka_unit_test(log1p_is_within_2_ulp),
        cmocka_unit_test(sigmoid_and_softplus_are_within_4_ulp),
        cmocka_unit_test(exp_at_the_edges),
        cmocka_unit_test(log_at_the_edges),
        cmocka_unit_test(log1p_at_the_edges),
        cmocka_unit_test(sigmoid_and_softplus_at_the_edges),
        cmocka_unit_test(the_bits_are_the_stored_ones),
        cmocka_unit_test(ln_gamma_is_close_to_the_c_librarys),
    };
    return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
