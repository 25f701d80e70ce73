/* Proves src/sync: the floor against brute force, and the tables of who may read and which version an update has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sync/floor.h"
#include "sync/staleness.h"

static uint64_t least_of(const uint64_t *value, const bool *gone, uint32_t n)
{
    uint64_t least = RBT_UNBOUNDED;

    for (uint32_t i = 0; i < n; i++)
        if (!gone[i] && value[i] < least)
            least = value[i];
    return least;
}

static void floor_equals_brute_force(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 500; round++) {
        uint32_t n = (uint32_t)(1 + rbt_rng_below(&rng, 9));
        uint64_t value[9] = {0}, most = 0;
        bool gone[9] = {false};
        rbt_floor floor;

        rbt_floor_init(&floor, n);
        for (int step = 0; step < 200; step++) {
            uint32_t i = (uint32_t)rbt_rng_below(&rng, n);
            uint64_t before = least_of(value, gone, n);
            bool rose;

            if (rbt_rng_below(&rng, 40) == 0) {
                gone[i] = true;
                rose = rbt_floor_leave(&floor, i);
            } else {
                value[i] += rbt_rng_below(&rng, 3);
                most = value[i] > most ? value[i] : most;
                rose = rbt_floor_raise(&floor, i, value[i]);
            }
            assert_true(floor.least == least_of(value, gone, n));
            assert_true(floor.most == most);
            assert_int_equal(rose, floor.least > before);
        }
        rbt_floor_deinit(&floor);
    }
}

static void floor_of_those_who_all_left_is_unbounded(void **state)
{
    rbt_floor floor;

    (void)state;
    rbt_floor_init(&floor, 2);
    assert_false(rbt_floor_leave(&floor, 0));
    assert_false(rbt_floor_leave(&floor, 0)); /* leaving twice is leaving once */
    assert_true(rbt_floor_raise(&floor, 1, 4));
    assert_true(rbt_floor_leave(&floor, 1));
    assert_true(floor.least == RBT_UNBOUNDED);
    assert_int_equal(floor.most, 4);
    assert_false(rbt_floor_raise(&floor, 1, 5));
    assert_true(floor.least == RBT_UNBOUNDED);
    rbt_floor_deinit(&floor);
    rbt_floor_init(&floor, 0);
    assert_true(floor.least == RBT_UNBOUNDED);
    rbt_floor_deinit(&floor);
}

static void need_is_the_clock_less_the_staleness(void **state)
{
    static const struct {
        uint64_t clock, staleness, need;
    } rows[] = {
        {0, 0, 0},
        {1, 0, 1},
        {7, 0, 7}, /* bsp: everything before this clock */
        {0, 3, 0},
        {3, 3, 0},
        {4, 3, 1},
        {10, 3, 7},
        {10, 10, 0}, /* ssp */
        {11, 10, 1},
        {0, RBT_UNBOUNDED, 0},
        {1u << 30, RBT_UNBOUNDED, 0}, /* asp: nothing, ever */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(rbt_ssp_need(rows[i].clock, rows[i].staleness), rows[i].need);
}

static void reader_waits_for_the_slowest(void **state)
{
    (void)state;
    assert_true(rbt_ssp_may_read(0, 0));
    assert_false(rbt_ssp_may_read(5, 4));
    assert_true(rbt_ssp_may_read(5, 5));
    assert_true(rbt_ssp_may_read(5, RBT_UNBOUNDED)); /* all others have left */
    /* In the words of docs/protocols.md: a worker at clock c may go on iff c <= cmin + s. */
    for (uint64_t clock = 0; clock < 12; clock++)
        for (uint64_t slowest = 0; slowest < 12; slowest++)
            for (uint64_t s = 0; s < 5; s++)
                assert_int_equal(rbt_ssp_may_read(rbt_ssp_need(clock, s), slowest), clock <= slowest + s);
}

static void version_follows_the_copy_within_the_bound(void **state)
{
    static const struct {
        uint64_t base, since, slowest, clock, staleness, version;
    } rows[] = {
        {0, 0, 0, 0, 3, 0},
        {0, 1, 0, 1, 3, 1}, /* its own clocks since the copy count */
        {3, 0, 0, 1, 3, 3}, /* W2's g of the example: the version of the copy, ahead of its clock */
        {3, 1, 0, 2, 3, 3}, /* held down: never more than staleness past the slowest */
        {3, 2, 0, 3, 3, 3},
        {3, 1, 1, 2, 3, 4},              /* until the slowest moves on */
        {0, 0, 0, 5, 2, 5},              /* never behind its own clock */
        {9, 0, 4, 4, 0, 4},              /* bsp: the clock itself */
        {9, 2, 0, 3, RBT_UNBOUNDED, 11}, /* asp: no bound */
        {9, 2, RBT_UNBOUNDED, 3, 4, 11}, /* nobody left to wait for */
        {9, 0, RBT_UNBOUNDED - 1, 3, 4, 9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            rbt_dyn_version(rows[i].base, rows[i].since, rows[i].slowest, rows[i].clock, rows[i].staleness),
            rows[i].version);
}

static void rounds_are_counted_by_updates_or_by_the_slowest(void **state)
{
    static const struct {
        uint64_t updates, slowest, rounds;
        uint32_t workers;
    } cases[] = {
        {0, 0, 0, 4},
        {3, 0, 0, 4},
        {4, 0, 1, 4},
        {11, 1, 2, 4}, /* the slowest lags */
        {12, 3, 3, 4},
        {12, 5, 5, 4},                        /* some have run dry */
        {7, RBT_UNBOUNDED, RBT_UNBOUNDED, 4}, /* all have left */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(rbt_rounds(cases[i].updates, cases[i].workers, cases[i].slowest), cases[i].rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_counted_by_updates_or_by_the_slowest),
        cmocka_unit_test(floor_equals_brute_force),
        cmocka_unit_test(floor_of_those_who_all_left_is_unbounded),
        cmocka_unit_test(need_is_the_clock_less_the_staleness),
        cmocka_unit_test(reader_waits_for_the_slowest),
        cmocka_unit_test(version_follows_the_copy_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
