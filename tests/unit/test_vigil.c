/* Proves src/runtime/cluster/vigil.h: vigils are kept where answers come soon, end, and become rare where none come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/vigil.h"

#define LOOK_NS (RBT_VIGIL_NS / 10)

static void a_hub_that_nobody_speaks_to_sleeps(void **state)
{
    rbt_vigil v = {0};

    (void)state;
    for (uint64_t now = 0; now < 100 * RBT_VIGIL_NS; now += LOOK_NS)
        assert_false(rbt_vigil_keep(&v, 0, now));
}

static void who_is_answered_soon_stays_awake(void **state)
{
    rbt_vigil v = {0};
    uint64_t now = 0;

    (void)state;
    for (uint64_t traffic = 1; traffic < 1000; traffic++)
        for (int look = 0; look < 9; look++, now += LOOK_NS)
            assert_true(rbt_vigil_keep(&v, traffic, now));
}

static void a_vigil_ends(void **state)
{
    rbt_vigil v = {0};

    (void)state;
    assert_true(rbt_vigil_keep(&v, 1, 1));
    assert_true(rbt_vigil_keep(&v, 1, RBT_VIGIL_NS));
    assert_false(rbt_vigil_keep(&v, 1, 1 + RBT_VIGIL_NS));
    assert_false(rbt_vigil_keep(&v, 1, 2 + RBT_VIGIL_NS));
}

/* Messages that come after a vigil's end, and how many of them one is kept for. */
static uint32_t vigils_in_vain(rbt_vigil *v, uint32_t occasions, uint64_t *traffic, uint64_t *now)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < occasions; i++, *now += 2 * (uint64_t)RBT_VIGIL_NS) {
        kept += rbt_vigil_keep(v, ++*traffic, *now);
        assert_false(rbt_vigil_keep(v, *traffic, *now + RBT_VIGIL_NS));
    }
    return kept;
}

static void vigils_in_vain_become_rare(void **state)
{
    rbt_vigil v = {0};
    uint64_t traffic = 0, now = 1;

    (void)state;
    assert_int_equal(vigils_in_vain(&v, 511, &traffic, &now), 9); /* after 0, 1, 3, ..., 255 that were passed over */
    assert_int_equal(vigils_in_vain(&v, 100 * (RBT_VIGIL_PASS + 1), &traffic, &now), 100);
}

static void one_that_was_worth_while_brings_them_back(void **state)
{
    rbt_vigil v = {0};
    uint64_t traffic = 0, now = 1;

    (void)state;
    (void)vigils_in_vain(&v, 5000, &traffic, &now);
    while (!rbt_vigil_keep(&v, ++traffic, now))
        now += RBT_VIGIL_NS;
    assert_true(rbt_vigil_keep(&v, ++traffic, now + 1)); /* an answer came in time */
    assert_false(rbt_vigil_keep(&v, traffic, now + 2 * RBT_VIGIL_NS));
    now += 10 * RBT_VIGIL_NS;
    assert_int_equal(vigils_in_vain(&v, 2, &traffic, &now), 1); /* one is passed over, not 255 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hub_that_nobody_speaks_to_sleeps),
        cmocka_unit_test(who_is_answered_soon_stays_awake),
        cmocka_unit_test(a_vigil_ends),
        cmocka_unit_test(vigils_in_vain_become_rare),
        cmocka_unit_test(one_that_was_worth_while_brings_them_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
