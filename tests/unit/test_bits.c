/* Proves src/base/bits.h: against a plain table of all numbers, under random additions and removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"

static void an_empty_set_has_nothing(void **state)
{
    rbt_bits bits = {0};

    (void)state;
    assert_int_equal(rbt_bits_next(&bits, 0), RBT_BITS_END);
    rbt_bits_init(&bits, 64);
    assert_int_equal(rbt_bits_next(&bits, 0), RBT_BITS_END);
    assert_int_equal(rbt_bits_next(&bits, 64), RBT_BITS_END);
    rbt_bits_deinit(&bits);
}

static void a_walk_meets_what_is_in_the_set_in_order(void **state)
{
    static const uint32_t sizes[] = {1, 63, 64, 65, 128, 1000};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_COMM, 0);

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        bool is_in[1000] = {false};
        rbt_bits bits;

        rbt_bits_init(&bits, sizes[s]);
        for (uint32_t step = 0; step < 500; step++) {
            uint32_t i = (uint32_t)(rbt_rng_f64(&rng) * sizes[s]), next;

            is_in[i] = rbt_rng_f64(&rng) < 0.3;
            if (is_in[i])
                rbt_bits_add(&bits, i);
            else
                rbt_bits_remove(&bits, i);
            for (next = i; next < sizes[s] && !is_in[next];)
                next++;
            assert_int_equal(rbt_bits_next(&bits, i), next < sizes[s] ? next : RBT_BITS_END);
        }
        rbt_bits_deinit(&bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_set_has_nothing),
        cmocka_unit_test(a_walk_meets_what_is_in_the_set_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
