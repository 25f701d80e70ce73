/* Proves src/base/rng.c: streams are functions of their name, fair, and the same on every machine (golden values). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

static void generator_is_xoshiro256starstar(void **state)
{
    (void)state;
    /* The reference implementation's first values from the state 1, 2, 3, 4. */
    rbt_rng rng = {{1, 2, 3, 4}};
    const uint64_t expected[] = {11520u, 0u, 1509978240u, 1215971899390074240u};
    for (size_t i = 0; i < 4; i++)
        assert_true(rbt_rng_u64(&rng) == expected[i]);
}

static void stream_gives_the_stored_values(void **state)
{
    (void)state;
    /* These may never change: runs of earlier versions are replayed by seed. */
    rbt_rng rng = rbt_rng_stream(42, RBT_STREAM_SHUFFLE, 3);
    assert_true(rbt_rng_u64(&rng) == 0x9135392d6af725du);
    assert_true(rbt_rng_f64(&rng) == 0x1.d62fd583e412fp-1);
    assert_true(rbt_rng_below(&rng, 1000) == 818);
    assert_true(rbt_rng_normal(&rng) == -0x1.a00f7d33ac699p-3);
    assert_true(rbt_rng_normal(&rng) == 0x1.5663b24f0b685p-3);
}

static void streams_differ_in_seed_purpose_and_index(void **state)
{
    (void)state;
    rbt_rng all[] = {
        rbt_rng_stream(1, RBT_STREAM_BATCH, 0), rbt_rng_stream(2, RBT_STREAM_BATCH, 0),
        rbt_rng_stream(1, RBT_STREAM_FAULT, 0), rbt_rng_stream(1, RBT_STREAM_BATCH, 1),
        rbt_rng_stream(0, RBT_STREAM_BATCH, 1), rbt_rng_stream(0, RBT_STREAM_BATCH, 0),
    };
    uint64_t first[6];
    for (size_t i = 0; i < 6; i++) {
        first[i] = rbt_rng_u64(&all[i]);
        for (size_t j = 0; j < i; j++)
            assert_true(first[i] != first[j]);
    }
}

static void below_is_fair_and_below(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);
    unsigned count[7] = {0};
    for (int i = 0; i < 70000; i++)
        count[rbt_rng_below(&rng, 7)]++;
    for (size_t k = 0; k < 7; k++)
        assert_in_range(count[k], 9600, 10400); /* more than four standard deviations */
    for (int i = 0; i < 100; i++)
        assert_int_equal(rbt_rng_below(&rng, 1), 0);
    const uint64_t large = (1ull << 63) + 1; /* nearly half of all draws must be drawn again */
    for (int i = 0; i < 1000; i++)
        assert_true(rbt_rng_below(&rng, large) < large);
}

static void f64_is_uniform_in_zero_to_one(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(6, RBT_STREAM_TEST, 0);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double x = rbt_rng_f64(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.004);
}

static void normal_has_the_moments_and_tails_of_the_normal(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);
    enum { N = 400000 };
    double sum = 0, squares = 0, fourth = 0;
    int beyond_1 = 0, beyond_3 = 0;
    for (int i = 0; i < N; i++) {
        double x = rbt_rng_normal(&rng);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        beyond_1 += fabs(x) > 1;
        beyond_3 += fabs(x) > 3;
    }
    assert_true(fabs(sum / N) < 0.008);
    assert_true(fabs(squares / N - 1) < 0.012);
    assert_true(fabs(fourth / N - 3) < 0.08);
    assert_true(fabs((double)beyond_1 / N - 0.317311) < 0.004);
    assert_true(fabs((double)beyond_3 / N - 0.0026998) < 0.0004);
}

static void shuffle_keeps_the_items_and_reaches_every_order(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(8, RBT_STREAM_TEST, 0);
    unsigned count[27] = {0};
    for (int i = 0; i < 60000; i++) {
        uint32_t items[3] = {0, 1, 2};
        rbt_rng_shuffle_u32(&rng, items, 3);
        assert_int_equal(items[0] + items[1] + items[2], 3);
        assert_true(items[0] != items[1] && items[1] != items[2] && items[0] != items[2]);
        count[items[0] * 9 + items[1] * 3 + items[2]]++;
    }
    unsigned orders = 0;
    for (size_t k = 0; k < 27; k++) {
        if (count[k] > 0) {
            orders++;
            assert_in_range(count[k], 9600, 10400);
        }
    }
    assert_int_equal(orders, 6);
    rbt_rng_shuffle_u32(&rng, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator_is_xoshiro256starstar),
        cmocka_unit_test(stream_gives_the_stored_values),
        cmocka_unit_test(streams_differ_in_seed_purpose_and_index),
        cmocka_unit_test(below_is_fair_and_below),
        cmocka_unit_test(f64_is_uniform_in_zero_to_one),
        cmocka_unit_test(normal_has_the_moments_and_tails_of_the_normal),
        cmocka_unit_test(shuffle_keeps_the_items_and_reaches_every_order),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
