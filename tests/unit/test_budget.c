/* Proves src/comm: the bucket keeps what was sent in every window of time within its rate and its burst, whatever is sent when; the
 * priorities put first what they say. And src/table/strips.c, against a plain list of what has changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "comm/budget.h"
#include "comm/pick.h"
#include "table/strips.h"

#define RATE   1000000u /* bytes a second: one in 1000 ns */
#define BURST  5000u
#define EVENTS 3000

typedef struct sent {
    uint64_t at_ns;
    uint64_t bytes;
} sent;

/* Sends at random times what fits, and now and then something that cannot wait. */
static size_t send_at_random(uint64_t seed, bool forced, sent *list, bool *could_wait)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_TEST, 0);
    rbt_budget budget;
    uint64_t now_ns = 0;
    size_t n = 0;

    rbt_budget_init(&budget, RATE, BURST);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t bytes = 1 + rbt_rng_below(&rng, 2 * BURST);

        now_ns += rbt_rng_below(&rng, 4) == 0 ? rbt_rng_below(&rng, 20000000) : rbt_rng_below(&rng, 1000);
        could_wait[n] = !forced || rbt_rng_below(&rng, 8) != 0;
        if (could_wait[n] && bytes > rbt_budget_room(&budget, now_ns))
            continue;
        rbt_budget_spend(&budget, now_ns, bytes);
        list[n++] = (sent){now_ns, bytes};
    }
    return n;
}

/* Of every window that ends with something that could have waited: all that was sent in it is within rate and burst. */
static void check_windows(const sent *list, const bool *could_wait, size_t n)
{
    for (size_t end = 0; end < n; end++) {
        uint64_t sum = 0;

        for (size_t first = end + 1; could_wait[end] && first-- > 0;) {
            double window_ns = (double)(list[end].at_ns - list[first].at_ns);

            sum += list[first].bytes;
            assert_true((double)sum <= RATE * window_ns / 1e9 + BURST + 1);
        }
    }
}

static void no_window_has_more_than_the_rate_and_the_burst(void **state)
{
    static sent list[EVENTS];
    static bool could_wait[EVENTS];

    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        size_t n = send_at_random(seed, seed % 2 == 1, list, could_wait);

        assert_true(n > 100);
        check_windows(list, could_wait, n);
    }
}

static void what_cannot_wait_is_counted_and_makes_the_others_wait(void **state)
{
    rbt_budget budget;

    (void)state;
    rbt_budget_init(&budget, RATE, BURST);
    assert_int_equal(rbt_budget_room(&budget, 0), BURST);
    rbt_budget_spend(&budget, 0, 3 * BURST);
    assert_int_equal(rbt_budget_room(&budget, 0), 0);
    assert_int_equal(rbt_budget_room(&budget, 2 * BURST * 1000), 0);
    assert_int_equal(rbt_budget_room(&budget, 2 * BURST * 1000 + 7000), 7);
    assert_int_equal(rbt_budget_room(&budget, 1), 7); /* time does not go back */
    assert_int_equal(rbt_budget_room(&budget, UINT64_MAX), BURST);
}

/* One byte drains in 1000 ns: half of the bucket is free again after 2500 us, a quarter has drained after 1250 us. */
static void what_can_wait_goes_in_batches(void **state)
{
    rbt_budget budget;

    (void)state;
    rbt_budget_init(&budget, RATE, BURST);
    assert_int_equal(rbt_budget_offer(&budget, 0), BURST);
    rbt_budget_accept(&budget, 0);
    rbt_budget_spend(&budget, 0, 10);
    assert_int_equal(rbt_budget_offer(&budget, BURST * 1000 / 4 - 1), 0); /* there is room, but it is too soon */
    assert_int_equal(rbt_budget_offer(&budget, BURST * 1000 / 4), BURST);
    rbt_budget_accept(&budget, BURST * 1000 / 4);
    rbt_budget_spend(&budget, BURST * 1000 / 4, BURST);
    assert_int_equal(rbt_budget_offer(&budget, BURST * 1000 / 2), 0); /* late enough, but there is little room */
    assert_int_equal(rbt_budget_offer(&budget, BURST * 1000 * 3 / 4), BURST / 2);
}

static void a_burst_is_ten_milliseconds_and_never_too_small_for_a_row(void **state)
{
    (void)state;
    assert_int_equal(rbt_burst_of(25000000), 250000);
    assert_int_equal(rbt_burst_of(1), RBT_BURST_MIN);
}

/* -------------------------------------------------------------------------------------------- priorities */

/* Which of three strips goes first: (waits since, changed by) = (3, 8), (1, 2), (2, 4). */
static uint32_t first_of(rbt_priority priority)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_candidate c[3] = {{.strip = 0, .score = rbt_pick_score(priority, 3, 8, &rng)},
                          {.strip = 1, .score = rbt_pick_score(priority, 1, 2, &rng)},
                          {.strip = 2, .score = rbt_pick_score(priority, 2, 4, &rng)}};
    size_t left = 3;

    rbt_pick_begin(c, 3);
    return rbt_pick_next(c, &left)->strip;
}

static void priorities_put_first_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(first_of(RBT_PRIORITY_ROUND_ROBIN), 1);
    assert_int_equal(first_of(RBT_PRIORITY_MAGNITUDE), 0);
    assert_int_equal(first_of(RBT_PRIORITY_RELATIVE), 0);
}

static void random_order_is_any_order_and_repeats(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0), again = rng;
    uint32_t firsts[3] = {0};

    (void)state;
    for (int i = 0; i < 300; i++) {
        rbt_candidate c[3];
        size_t left = 3;

        for (uint32_t k = 0; k < 3; k++) {
            double score = rbt_pick_score(RBT_PRIORITY_RANDOM, k, k, &rng);

            assert_true(score == rbt_pick_score(RBT_PRIORITY_RANDOM, 0, 0, &again));
            c[k] = (rbt_candidate){.strip = k, .score = score};
        }
        rbt_pick_begin(c, 3);
        firsts[rbt_pick_next(c, &left)->strip]++;
    }
    assert_true(firsts[0] > 50 && firsts[1] > 50 && firsts[2] > 50);
}

/* Few scores, so that many are equal: those go in the order of their places. */
static void all_are_picked_best_first(void **state)
{
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);

    (void)state;
    for (size_t n = 1; n < 40; n++) {
        rbt_candidate c[40], last = {0};
        size_t left = n;

        for (uint32_t k = 0; k < n; k++)
            c[k] = (rbt_candidate){
                .table = k % 2, .block = k % 3, .strip = k, .score = (double)rbt_rng_below(&rng, 4) - 2};
        rbt_pick_begin(c, n);
        for (size_t i = 0; i < n; i++) {
            rbt_candidate next = *rbt_pick_next(c, &left);
            bool equal = next.score == last.score;

            assert_int_equal(left, n - i - 1);
            if (i > 0)
                assert_true(
                    next.score < last.score ||
                    (equal && (next.table > last.table ||
                               (next.table == last.table &&
                                (next.block > last.block || (next.block == last.block && next.strip > last.strip))))));
            last = next;
        }
    }
}

/* ------------------------------------------------------------------------------------------------ strips */

static bool is_dirty(const rbt_strips *strips, uint32_t strip)
{
    for (size_t i = 0; i < strips->list.count; i++)
        if (strips->list.at[i].strip == strip)
            return true;
    return false;
}

/* What a server does with an update. */
static void weigh(rbt_strips *strips, const rbt_snap *update, rbt_snap **value, bool relative)
{
    rbt_strips_weigh(strips, update, *value, relative, false);
    rbt_snap_add(value, update, 1);
    rbt_strips_weigh(strips, update, *value, relative, true);
}

static void strips_that_changed_are_listed_once_until_they_are_cleaned(void **state)
{
    for (int sparse = 0; sparse < 2; sparse++) { /* three strips, the last of two; or an element each */
        rbt_layout layout = {.block_cols = 4, .sparse = sparse == 1};
        rbt_snap *update = rbt_snap_create_sparse(RBT_I32, 10, 3), *value;
        rbt_strips strips;

        rbt_strips_init(&strips, 10, &layout);
        assert_int_equal(strips.width, sparse ? 1 : 4);
        assert_int_equal(rbt_strip_length(&strips, 2), sparse ? 1 : 2);
        rbt_strips_touch(&strips, 3, 2);
        rbt_strips_touch(&strips, 0, 1);
        assert_int_equal(strips.list.count, sparse ? 3 : 2);
        assert_true(strips.list.at[0].since < strips.list.at[1].since);
        memcpy(update->index, (uint32_t[]){1, 8, 9}, 3 * sizeof(uint32_t));
        memcpy(update->i32, (int32_t[]){0, -5, 2}, 3 * sizeof(int32_t));
        rbt_strips_clean(&strips, sparse ? 3 : 0);
        rbt_strips_sweep(&strips);
        assert_int_equal(strips.list.count, sparse ? 2 : 1);
        rbt_strips_touch(&strips, sparse ? 4 : 5, 1); /* it is there already */
        assert_int_equal(strips.list.count, sparse ? 2 : 1);
        rbt_strips_clean_all(&strips);
        value = sparse ? rbt_snap_create_sparse(RBT_I32, 10, 0) : rbt_snap_create(RBT_I32, 10);
        weigh(&strips, update, &value, false);
        assert_int_equal(strips.list.count, sparse ? 2 : 1); /* a change by 0 is none */
        assert_true(is_dirty(&strips, sparse ? 8 : 2));
        assert_true(strips.list.at[0].change == (sparse ? 5 : 7));
        assert_int_equal(strips.list.at[0].changed, sparse ? 1 : 2);
        rbt_strips_clean(&strips, sparse ? 8 : 2);
        rbt_strips_clean(&strips, sparse ? 9 : 2);
        rbt_strips_sweep(&strips);
        assert_int_equal(strips.list.count, 0);
        rbt_snap_unref(update);
        rbt_snap_unref(value);
        rbt_strips_deinit(&strips);
    }
    (void)state;
}

/* |-6 / 3| + |2 / 0 -> 2| + |1 / -4| */
static void changes_are_relative_to_what_each_element_holds(void **state)
{
    const float changes[5] = {-6, 0, 2, 0, 1}, values[5] = {3, 9, 0, 0, -4};
    rbt_layout layout = {.block_cols = 5};
    rbt_snap *update, *dense = rbt_snap_create(RBT_F32, 5), *of;
    rbt_strips strips;
    uint32_t changed;

    (void)state;
    assert_true(rbt_changes_magnitude(RBT_F32, changes, values, 5, &changed) == 4.25);
    assert_int_equal(changed, 3);
    assert_true(rbt_changes_magnitude(RBT_F32, changes, NULL, 5, &changed) == 9);
    update = rbt_snap_pack(RBT_F32, 5, changes, 0);
    of = rbt_snap_create_sparse(RBT_F32, 5, 3);
    memcpy(of->index, (uint32_t[]){0, 1, 4}, 3 * sizeof(uint32_t));
    memcpy(of->f32, (float[]){3, 9, -4}, 3 * sizeof(float));
    memcpy(dense->f32, values, sizeof values);
    for (int sparse = 0; sparse < 2; sparse++) {
        rbt_strips_init(&strips, 5, &layout);
        weigh(&strips, update, sparse ? &of : &dense, true);
        assert_true(strips.list.at[0].change == 4.25);
        weigh(&strips, update, sparse ? &of : &dense, true); /* twice as far from what it was */
        assert_true(strips.list.at[0].change == 8.5);
        rbt_strips_deinit(&strips);
    }
    rbt_snap_unref(update);
    rbt_snap_unref(dense);
    rbt_snap_unref(of);
}

/* |-6| / sqrt(3 + 1) + |2| / sqrt(0 + 1) + |1| / sqrt(8 + 1) */
static void changes_of_counts_are_relative_to_their_noise(void **state)
{
    const int32_t changes[3] = {-6, 2, 1}, values[3] = {3, 0, -8};
    const int64_t wide[3] = {-6, 2, 1}, wide_values[3] = {3, 0, -8};
    uint32_t changed;

    (void)state;
    assert_true(fabs(rbt_changes_magnitude(RBT_I32, changes, values, 3, &changed) - 16.0 / 3) < 1e-12);
    assert_true(fabs(rbt_changes_magnitude(RBT_I64, wide, wide_values, 3, &changed) - 16.0 / 3) < 1e-12);
    assert_true(rbt_changes_magnitude(RBT_I32, changes, NULL, 3, &changed) == 9);
}

/* Rows of two: the first goes up and down again, the second ends with one element changed. */
static void only_what_differs_from_what_was_told_is_news(void **state)
{
    static const int32_t changes[][4] = {{1, 2, 3, 5}, {-1, -2, 0, -5}};
    rbt_layout layout = {.block_cols = 2};
    rbt_snap *value = rbt_snap_create(RBT_I32, 4);
    uint32_t index[4];
    int32_t values[4];
    rbt_strips strips;

    (void)state;
    rbt_strips_init(&strips, 4, &layout);
    for (int i = 0; i < 2; i++) {
        rbt_snap *update = rbt_snap_pack(RBT_I32, 4, changes[i], 0);

        weigh(&strips, update, &value, false);
        rbt_snap_unref(update);
    }
    assert_int_equal(strips.list.count, 2);
    assert_true(strips.list.at[0].change == 0 && strips.list.at[0].changed == 0);
    assert_true(strips.list.at[1].change == 3 && strips.list.at[1].changed == 1);
    assert_int_equal(rbt_strips_news(&strips, 0, value, index, values), 0);
    rbt_strips_clean(&strips, 0);
    rbt_strips_sweep(&strips); /* the other moves up, with what was told */
    assert_int_equal(rbt_strips_news(&strips, 0, value, index, values), 0);
    assert_int_equal(rbt_strips_news(&strips, 1, value, index, values), 1);
    assert_int_equal(index[0], 2);
    assert_int_equal(values[0], 3);
    rbt_strips_deinit(&strips);
    rbt_snap_unref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_window_has_more_than_the_rate_and_the_burst),
        cmocka_unit_test(what_cannot_wait_is_counted_and_makes_the_others_wait),
        cmocka_unit_test(what_can_wait_goes_in_batches),
        cmocka_unit_test(a_burst_is_ten_milliseconds_and_never_too_small_for_a_row),
        cmocka_unit_test(priorities_put_first_what_they_say),
        cmocka_unit_test(random_order_is_any_order_and_repeats),
        cmocka_unit_test(all_are_picked_best_first),
        cmocka_unit_test(strips_that_changed_are_listed_once_until_they_are_cleaned),
        cmocka_unit_test(changes_are_relative_to_what_each_element_holds),
        cmocka_unit_test(changes_of_counts_are_relative_to_their_noise),
        cmocka_unit_test(only_what_differs_from_what_was_told_is_news),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
