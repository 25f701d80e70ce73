/* Proves src/math/half.h: all 65,536 numbers of half precision come back; every f32 goes to a nearest one, the even of two;
 * what rounding leaves is exact in f32; what is not a number, or infinite, stays so, and what is finite stays finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math/half.h"

#include <math.h>

#include "base/rng.h"

static void every_half_comes_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float x = rbt_half_to((uint16_t)h);

        if (isnan(x)) {
            assert_true(isnan(rbt_half_to(rbt_half_of(x))));
            continue;
        }
        assert_int_equal(rbt_half_of(x), h);
        assert_true(rbt_half_has(x));
    }
}

static void the_values_are_those_of_the_standard(void **state)
{
    (void)state;
    assert_true(rbt_half_to(0x0000) == 0 && !signbit(rbt_half_to(0x0000)));
    assert_true(rbt_half_to(0x8000) == 0 && signbit(rbt_half_to(0x8000)));
    assert_true(rbt_half_to(0x0001) == 0x1p-24f);
    assert_true(rbt_half_to(0x03ff) == 1023 * 0x1p-24f);
    assert_true(rbt_half_to(0x0400) == 0x1p-14f);
    assert_true(rbt_half_to(0x3555) == 0.333251953125f);
    assert_true(rbt_half_to(0x3c00) == 1);
    assert_true(rbt_half_to(0xc000) == -2);
    assert_true(rbt_half_to(0x7bff) == 65504);
    assert_true(isinf(rbt_half_to(0x7c00)) && rbt_half_to(0xfc00) < 0);
    assert_true(isnan(rbt_half_to(0x7e00)));
}

/* Against the two neighbours: no nearer one, and of two as near the one with an even mantissa. */
static void check_nearest(float x)
{
    uint16_t h = rbt_half_of(x);
    double d = fabs((double)x - rbt_half_to(h));

    assert_int_equal(h >> 15, signbit(x) != 0);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t size = h & 0x7fff, other = (uint16_t)(size + step);
        double e;

        if ((size == 0 && step < 0) || other >= 0x7c00)
            continue;
        e = fabs((double)x - rbt_half_to((uint16_t)((h & 0x8000) | other)));
        assert_true(d < e || (d == e && h % 2 == 0));
    }
}

static float random_float(rbt_rng *rng, int least, int most)
{
    return ldexpf((float)(0.5 + rbt_rng_f64(rng) / 2), least + (int)rbt_rng_below(rng, (uint64_t)(most - least + 1))) *
           (rbt_rng_below(rng, 2) ? 1 : -1);
}

static void every_number_goes_to_a_nearest_half(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 300000; i++)
        check_nearest(random_float(&rng, -30, 15));
    for (uint32_t h = 0; h + 1 < 0x7c00; h++) { /* half way between two */
        double middle = ((double)rbt_half_to((uint16_t)h) + rbt_half_to((uint16_t)(h + 1))) / 2;

        check_nearest((float)middle);
        check_nearest(-nextafterf((float)middle, 0));
        check_nearest(nextafterf((float)middle, INFINITY));
    }
}

static void what_is_left_is_exact(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 300000; i++) {
        float x = random_float(&rng, -140, 15), half = rbt_half_to(rbt_half_of(x)), rest = x - half;

        assert_true((double)half + (double)rest == (double)x);
    }
}

static void what_is_finite_stays_finite_and_nothing_else_does(void **state)
{
    (void)state;
    assert_true(rbt_half_to(rbt_half_of(65519.99f)) == 65504);
    assert_true(rbt_half_to(rbt_half_of(65536.0f)) == 65504);
    assert_true(rbt_half_to(rbt_half_of(-3e38f)) == -65504);
    assert_true(rbt_half_to(rbt_half_of(INFINITY)) == INFINITY);
    assert_true(rbt_half_to(rbt_half_of(-INFINITY)) == -INFINITY);
    assert_true(isnan(rbt_half_to(rbt_half_of(NAN))));
    assert_false(rbt_half_has(1.0f / 3));
    assert_false(rbt_half_has(0x1p-25f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(the_values_are_those_of_the_standard),
        cmocka_unit_test(every_number_goes_to_a_nearest_half),
        cmocka_unit_test(what_is_left_is_exact),
        cmocka_unit_test(what_is_finite_stays_finite_and_nothing_else_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
