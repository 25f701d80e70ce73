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

static void a_burst_is_ten_milliseconds_and_never_tiny(void **state)
{
    (void)state;
    assert_int_equal(rbt_burst_of(25000000), 250000);
    assert_int_equal(rbt_burst_of(1), RBT_BURST_MIN);
}

/* -------------------------------------------------------------------------------------------- priorities */

/* Which of three strips goes when there is room for one? */
static uint32_t best_of_three(rbt_candidate *c)
{
    rbt_candidates all = {.at = c, .count = 3};

    for (int k = 0; k < 3; k++) {
        c[k].bytes = 4;
        c[k].copies = 1;
    }
    assert_int_equal(rbt_pick_best(&all, 7, 0), 1);
    return c[2].strip;
}

/* Which of three strips goes first: (waits since, changed by) = (3, 8), (1, 2), (2, 4). */
static uint32_t first_of(rbt_priority priority)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_candidate c[3] = {{.strip = 0, .score = rbt_pick_score(priority, 3, 8, &rng)},
                          {.strip = 1, .score = rbt_pick_score(priority, 1, 2, &rng)},
                          {.strip = 2, .score = rbt_pick_score(priority, 2, 4, &rng)}};

    return best_of_three(c);
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

        for (uint32_t k = 0; k < 3; k++) {
            double score = rbt_pick_score(RBT_PRIORITY_RANDOM, k, k, &rng);

            assert_true(score == rbt_pick_score(RBT_PRIORITY_RANDOM, 0, 0, &again));
            c[k] = (rbt_candidate){.strip = k, .score = score};
        }
        firsts[best_of_three(c)]++;
    }
    assert_true(firsts[0] > 50 && firsts[1] > 50 && firsts[2] > 50);
}

static bool is_place_before(const rbt_candidate *x, const rbt_candidate *y)
{
    if (x->table != y->table || x->block != y->block)
        return x->table < y->table || (x->table == y->table && x->block < y->block);
    return x->strip < y->strip;
}

/* Few scores, so that many are equal: those are picked in the order of their places. */
static void the_best_are_picked_as_far_as_there_is_room(void **state)
{
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);

    (void)state;
    for (size_t n = 0; n < 40; n++) {
        rbt_candidate c[40];
        rbt_candidates all = {.at = c, .count = n};
        size_t most = n > 0 ? 1 + rbt_rng_below(&rng, n) : 0;

        for (uint32_t k = 0; k < n; k++)
            c[k] = (rbt_candidate){.table = k % 2,
                                   .block = k % 3,
                                   .strip = k,
                                   .bytes = 4,
                                   .copies = 2,
                                   .score = (double)rbt_rng_below(&rng, 4) - 2};
        assert_int_equal(rbt_pick_best(&all, 8 * most + 7, 0), most);
        for (size_t i = n - most + 1; i < n; i++)
            assert_true(is_place_before(&c[i - 1], &c[i]));
        for (size_t i = 0; i < n - most; i++)
            for (size_t k = n - most; k < n; k++)
                assert_true(c[k].score > c[i].score || (c[k].score == c[i].score && is_place_before(&c[k], &c[i])));
    }
}

static void what_names_a_block_is_counted_once_for_each_who_is_told(void **state)
{
    rbt_candidate c[4] = {{.block = 3, .strip = 1, .bytes = 4, .copies = 2, .score = 9},
                          {.block = 3, .strip = 0, .bytes = 4, .copies = 2, .score = 8},
                          {.block = 1, .bytes = 4, .copies = 5, .score = 7},
                          {.block = 2, .bytes = 4, .score = 6}}; /* nobody reads it: it costs nothing */
    uint64_t of_block_3 = 2 * (4 + 100) + 2 * 4, of_block_1 = 5 * (4 + 100);

    (void)state;
    for (size_t n = 1; n <= 4; n++) {
        rbt_candidates all = {.at = c, .count = 4};
        uint64_t room[] = {2 * (4 + 100), of_block_3, of_block_3 + of_block_1 - 1, of_block_3 + of_block_1};
        size_t picked[] = {1, 2, 2, 4};

        assert_int_equal(rbt_pick_best(&all, room[n - 1], 100), picked[n - 1]);
    }
}

/* Nobody reads the best of all: that is no reason for the next to wait. */
static void the_best_goes_alone_if_it_does_not_fit(void **state)
{
    rbt_candidate c[4] = {{.block = 0, .bytes = 4, .copies = 1, .score = 1},
                          {.block = 1, .bytes = 4, .copies = 1, .score = 2},
                          {.block = 2, .bytes = 100, .copies = 3, .score = 3},
                          {.block = 3, .bytes = 100, .score = 4}};
    rbt_candidates all = {.at = c, .count = 4};

    (void)state;
    assert_int_equal(rbt_pick_best(&all, 50, 8), 2);
    assert_true(c[2].block == 2 && c[3].block == 3);
    assert_int_equal(rbt_pick_best(&all, 0, 8), 2);
    all.count = 2; /* it has gone */
    assert_int_equal(rbt_pick_best(&all, 50, 8), 2);
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

/* 6^2 / (3 + 1) + 2^2 / (0 + 1) + 1 / (8 + 1) */
static void changes_of_counts_are_relative_to_their_noise(void **state)
{
    const int32_t changes[3] = {-6, 2, 1}, values[3] = {3, 0, -8};
    const int64_t wide[3] = {-6, 2, 1}, wide_values[3] = {3, 0, -8};
    uint32_t changed;

    (void)state;
    assert_true(fabs(rbt_changes_magnitude(RBT_I32, changes, values, 3, &changed) - 118.0 / 9) < 1e-12);
    assert_true(fabs(rbt_changes_magnitude(RBT_I64, wide, wide_values, 3, &changed) - 118.0 / 9) < 1e-12);
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
    assert_int_equal(rbt_strips_count_news(&strips, 0, value, false), 0);
    assert_int_equal(rbt_strips_tell(&strips, 0, value, false, index, values), 0);
    rbt_strips_sweep(&strips); /* the other moves up, with what was told */
    assert_int_equal(strips.list.count, 1);
    assert_int_equal(rbt_strips_tell(&strips, 0, value, false, index, values), 0);
    assert_int_equal(rbt_strips_count_news(&strips, 1, value, false), 1);
    assert_int_equal(rbt_strips_tell(&strips, 1, value, false, index, values), 1);
    assert_int_equal(index[0], 2);
    assert_int_equal(values[0], 3);
    rbt_strips_deinit(&strips);
    rbt_snap_unref(value);
}

/* A row of counts that have changed by 9, 1, 0, 1 and by 1 where 63 were: the first alone is above the mean of their shares. The next
 * time it is the two that were 0; then the last. */
static void relative_news_are_what_differs_most_and_the_rest_waits(void **state)
{
    static const int32_t before[5] = {0, 0, 5, 0, 63}, change[5] = {9, 1, 0, 1, 1};
    static const uint32_t expected[][3] = {{1, 0}, {2, 1, 3}, {1, 4}};
    rbt_layout layout = {.block_cols = 5};
    rbt_snap *value = rbt_snap_create(RBT_I32, 5), *update = rbt_snap_pack(RBT_I32, 5, change, 0);
    uint32_t index[5];
    int32_t values[5];
    rbt_strips strips;

    (void)state;
    for (int i = 0; i < 5; i++)
        value->i32[i] = before[i];
    rbt_strips_init(&strips, 5, &layout);
    weigh(&strips, update, &value, true);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(strips.list.count, 1);
        assert_int_equal(strips.list.at[0].changed, 4 - (round > 0) - 2 * (round > 1));
        assert_int_equal(rbt_strips_count_news(&strips, 0, value, true), expected[round][0]);
        assert_int_equal(rbt_strips_tell(&strips, 0, value, true, index, values), expected[round][0]);
        for (uint32_t i = 0; i < expected[round][0]; i++) {
            assert_int_equal(index[i], expected[round][1 + i]);
            assert_int_equal(values[i], before[index[i]] + change[index[i]]);
        }
        rbt_strips_sweep(&strips);
    }
    assert_int_equal(strips.list.count, 0);
    rbt_strips_deinit(&strips);
    rbt_snap_unref(update);
    rbt_snap_unref(value);
}

/* The mean of equal shares may be larger than they are, by rounding. What changes again before it is told weighs anew. */
static void equal_relative_news_are_told_together(void **state)
{
    static const float before[3] = {10, 10, 10}, change[3] = {1, 1, 1}, again[3] = {0, 3, 0};
    rbt_layout layout = {.block_cols = 3};
    rbt_snap *value = rbt_snap_create(RBT_F32, 3), *update = rbt_snap_pack(RBT_F32, 3, change, 0);
    rbt_snap *more = rbt_snap_pack(RBT_F32, 3, again, 0);
    uint32_t index[3];
    float values[3];
    rbt_strips strips;

    (void)state;
    for (int i = 0; i < 3; i++)
        value->f32[i] = before[i];
    rbt_strips_init(&strips, 3, &layout);
    weigh(&strips, update, &value, true);
    weigh(&strips, more, &value, true);
    assert_int_equal(rbt_strips_tell(&strips, 0, value, true, index, values), 1);
    assert_true(index[0] == 1 && values[0] == 14);
    weigh(&strips, more, &value, true);
    assert_int_equal(strips.list.at[0].changed, 3);
    assert_true(fabs(strips.list.at[0].change - (0.2 + 3.0 / 14)) < 1e-6);
    assert_int_equal(rbt_strips_tell(&strips, 0, value, true, index, values), 1);
    assert_int_equal(rbt_strips_tell(&strips, 0, value, true, index, values), 2);
    rbt_strips_sweep(&strips);
    assert_int_equal(strips.list.count, 0);
    rbt_strips_deinit(&strips);
    rbt_snap_unref(more);
    rbt_snap_unref(update);
    rbt_snap_unref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_window_has_more_than_the_rate_and_the_burst),
        cmocka_unit_test(what_cannot_wait_is_counted_and_makes_the_others_wait),
        cmocka_unit_test(what_can_wait_goes_in_batches),
        cmocka_unit_test(a_burst_is_ten_milliseconds_and_never_tiny),
        cmocka_unit_test(priorities_put_first_what_they_say),
        cmocka_unit_test(random_order_is_any_order_and_repeats),
        cmocka_unit_test(the_best_are_picked_as_far_as_there_is_room),
        cmocka_unit_test(what_names_a_block_is_counted_once_for_each_who_is_told),
        cmocka_unit_test(the_best_goes_alone_if_it_does_not_fit),
        cmocka_unit_test(strips_that_changed_are_listed_once_until_they_are_cleaned),
        cmocka_unit_test(changes_are_relative_to_what_each_element_holds),
        cmocka_unit_test(changes_of_counts_are_relative_to_their_noise),
        cmocka_unit_test(only_what_differs_from_what_was_told_is_news),
        cmocka_unit_test(relative_news_are_what_differs_most_and_the_rest_waits),
        cmocka_unit_test(equal_relative_news_are_told_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
