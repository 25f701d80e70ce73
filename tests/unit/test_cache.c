/* Proves src/table/cache.c: a worker reads its own writes before and after the clock ends; a fresh copy replaces them;
 * a copy shared with the server is never written; sparse tables; the filter of small entries; what rounding to half precision
 * leaves is kept, read, and sent later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "math/half.h"
#include "table/cache.h"

#define N 32

static rbt_layout layout_of(rbt_type type, bool sparse)
{
    rbt_table_spec spec = {.name = "w", .rows = 1, .cols = N, .type = type, .sparse = sparse};
    rbt_layout layout;

    assert_int_equal(rbt_layout_init(&layout, &spec, 1, 0, NULL), RBT_OK);
    return layout;
}

static float read_one(rbt_cache *cache, uint32_t block, uint32_t offset)
{
    float x;

    rbt_cache_read(cache, block, offset, 1, false, &x);
    return x;
}

static void a_block_never_read_is_zero_plus_the_increments(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_cache cache;

    (void)state;
    rbt_cache_init(&cache, &layout);
    assert_true(read_one(&cache, 0, 3) == 0);
    rbt_cache_increment(&cache, 0, 3, 2, (float[]){1.5f, -2});
    rbt_cache_increment(&cache, 0, 3, 1, (float[]){1});
    assert_true(read_one(&cache, 0, 3) == 2.5f && read_one(&cache, 0, 4) == -2 && read_one(&cache, 0, 5) == 0);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void own_writes_are_read_until_a_copy_brings_them(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_snap *first = rbt_snap_create(RBT_F32, N), *second = rbt_snap_create(RBT_F32, N), *update;
    rbt_cache cache;

    (void)state;
    first->f32[0] = 10;
    second->f32[0] = 100; /* whatever the server made of the worker's update: it is in there */
    rbt_cache_init(&cache, &layout);
    rbt_cache_adopt(&cache, 0, first, 1, 2, 0, 3);
    rbt_cache_increment(&cache, 0, 0, 1, (float[]){5});
    assert_true(read_one(&cache, 0, 0) == 15); /* in this clock */
    update = rbt_cache_flush(&cache, 0, 0, true);
    assert_int_equal(update->count, 1);
    assert_true(update->f32[0] == 5);
    assert_true(read_one(&cache, 0, 0) == 15); /* after it */
    assert_true(read_one(&cache, 0, 0) == 15); /* merged once, not twice */
    assert_null(rbt_cache_flush(&cache, 0, 0, true));
    rbt_cache_increment(&cache, 0, 0, 1, (float[]){1});
    assert_true(read_one(&cache, 0, 0) == 16);
    rbt_cache_adopt(&cache, 0, second, 4, 5, 0, 6);
    assert_true(read_one(&cache, 0, 0) == 101); /* own updates dropped, this clock's increments kept */
    assert_int_equal(cache.copies[0].slowest, 4);
    assert_int_equal(cache.copies[0].included, 5);
    assert_int_equal(cache.copies[0].version, 6);
    rbt_snap_unref(update);
    rbt_cache_deinit(&cache);
    assert_true(first->f32[0] == 10 && second->f32[0] == 100);
    rbt_snap_unref(first);
    rbt_snap_unref(second);
    rbt_layout_deinit(&layout);
}

static void adopting_drops_own_updates_that_were_never_read(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_snap *base = rbt_snap_create(RBT_F32, N), *update;
    rbt_cache cache;

    (void)state;
    rbt_cache_init(&cache, &layout);
    rbt_cache_adopt(&cache, 0, base, 0, 0, 0, 0);
    for (int clock = 0; clock < 3; clock++) {
        rbt_cache_increment(&cache, 0, 1, 1, (float[]){1});
        update = rbt_cache_flush(&cache, 0, 0, true);
        rbt_snap_unref(update);
    }
    assert_int_equal(cache.copies[0].own.count, 3);
    rbt_cache_adopt(&cache, 0, base, 3, 3, 0, 0);
    assert_int_equal(cache.copies[0].own.count, 0);
    assert_true(read_one(&cache, 0, 1) == 0);
    rbt_snap_unref(base);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void gradients_are_not_kept_as_own_updates(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_snap *base = rbt_snap_create(RBT_F32, N), *update;
    rbt_cache cache;

    (void)state;
    rbt_cache_init(&cache, &layout);
    rbt_cache_adopt(&cache, 0, base, 0, 0, 0, 0);
    rbt_cache_increment(&cache, 0, 1, 1, (float[]){1});
    update = rbt_cache_flush(&cache, 0, 0, false);
    assert_int_equal(update->count, 1);
    assert_true(read_one(&cache, 0, 1) == 0);
    rbt_snap_unref(update);
    rbt_snap_unref(base);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void a_shared_copy_stays_untouched_and_an_unread_one_is_not_copied(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_snap *shared = rbt_snap_create(RBT_F32, N), *update;
    rbt_cache mine, theirs;

    (void)state;
    rbt_cache_init(&mine, &layout);
    rbt_cache_init(&theirs, &layout);
    rbt_cache_adopt(&mine, 0, shared, 0, 0, 0, 0);
    rbt_cache_adopt(&theirs, 0, shared, 0, 0, 0, 0);
    assert_true(read_one(&mine, 0, 0) == 0);
    assert_ptr_equal(mine.copies[0].base, shared); /* reading alone copies nothing */
    rbt_cache_increment(&mine, 0, 0, 1, (float[]){7});
    assert_true(read_one(&mine, 0, 0) == 7);
    assert_ptr_equal(mine.copies[0].base, shared); /* the increments of this clock lie apart */
    update = rbt_cache_flush(&mine, 0, 0, true);
    assert_true(read_one(&mine, 0, 0) == 7 && read_one(&theirs, 0, 0) == 0 && shared->f32[0] == 0);
    assert_ptr_not_equal(mine.copies[0].base, shared);
    rbt_snap_unref(update);
    rbt_cache_deinit(&mine);
    rbt_cache_deinit(&theirs);
    rbt_snap_unref(shared);
    rbt_layout_deinit(&layout);
}

static void small_entries_are_not_sent_dense_or_sparse(void **state)
{
    const float deltas[N] = {[1] = 1e-7f, [2] = 2, [3] = -1e-7f, [4] = NAN, [5] = 1e-6f};

    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        rbt_layout layout = layout_of(RBT_F32, sparse == 1);
        uint32_t block = rbt_layout_block(&layout, 0, 0), n = rbt_layout_length(&layout, block);
        rbt_snap *update;
        rbt_cache cache;

        assert_true(n >= 6);
        rbt_cache_init(&cache, &layout);
        rbt_cache_increment(&cache, block, 0, n, deltas);
        update = rbt_cache_flush(&cache, block, 1e-6f, false);
        assert_int_equal(update->form, RBT_SPARSE);
        assert_int_equal(update->count, 3);
        assert_int_equal(update->index[0], 2);
        assert_int_equal(update->index[1], 4);
        assert_int_equal(update->index[2], 5);
        assert_true(update->f32[0] == 2 && isnan(update->f32[1]) && update->f32[2] == 1e-6f);
        rbt_snap_unref(update);
        rbt_cache_increment(&cache, block, 0, 1, (float[]){1}); /* what was dropped does not come back */
        update = rbt_cache_flush(&cache, block, 0, false);
        assert_int_equal(update->count, 1);
        rbt_snap_unref(update);
        rbt_cache_deinit(&cache);
        rbt_layout_deinit(&layout);
    }
}

/* What changes an element by less than a share of its value waits, is read by the worker all the while, and goes when it has
 * added up or the share is no more; dense and sparse. */
static void what_is_not_significant_waits_and_is_not_lost(void **state)
{
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        rbt_layout layout = layout_of(RBT_F32, sparse == 1);
        uint32_t block = rbt_layout_block(&layout, 0, 0), n = rbt_layout_length(&layout, block);
        rbt_snap *base = rbt_snap_create(RBT_F32, n), *update;
        rbt_cache cache;

        base->f32[1] = base->f32[2] = base->f32[3] = 10;
        rbt_cache_init(&cache, &layout);
        cache.significant = 0.1f;
        rbt_cache_increment(&cache, block, 1, 1, (float[]){0.5f});
        update = rbt_cache_flush(&cache, block, 0, true); /* nothing is known of the value */
        assert_true(update->count == 1 && !cache.copies[block].holds);
        rbt_snap_unref(update);
        rbt_cache_adopt(&cache, block, base, 1, 1, 0, 1);
        rbt_cache_increment(&cache, block, 0, 4, (float[]){1e-3f, 0.75f, -2, NAN});
        update = rbt_cache_flush(&cache, block, 0, true);
        assert_int_equal(update->count, 3); /* of a zero, more than a tenth, no number */
        assert_true(update->f32[0] == 1e-3f && update->f32[1] == -2 && isnan(update->f32[2]));
        rbt_snap_unref(update);
        assert_true(cache.copies[block].holds && read_one(&cache, block, 1) == 10.75f);
        assert_null(rbt_cache_flush(&cache, block, 0, true)); /* all that is left waits */
        rbt_cache_increment(&cache, block, 1, 1, (float[]){0.5f});
        update = rbt_cache_flush(&cache, block, 0, true);
        assert_true(update->count == 1 && update->index[0] == 1 && update->f32[0] == 1.25f);
        rbt_snap_unref(update);
        assert_true(!cache.copies[block].holds && read_one(&cache, block, 1) == 11.25f);
        rbt_cache_increment(&cache, block, 2, 1, (float[]){0.5f});
        assert_null(rbt_cache_flush(&cache, block, 0, true));
        cache.significant = 0;
        update = rbt_cache_flush(&cache, block, 0, true);
        assert_true(update->count == 1 && update->f32[0] == 0.5f && !cache.copies[block].holds);
        rbt_snap_unref(update);
        assert_null(rbt_cache_flush(&cache, block, 0, true));
        rbt_snap_unref(base);
        rbt_cache_deinit(&cache);
        rbt_layout_deinit(&layout);
    }
}

/* Reads, increments, flushes and fresh copies at random, on a sparse or dense table of integers, against plain arrays:
 * what the server has, and what this worker should see. */
static void play(rbt_type type, bool sparse, uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_TEST, 0);
    rbt_layout layout = layout_of(type, sparse);
    uint32_t n = rbt_layout_length(&layout, 0);
    int64_t server[N] = {0}, mine[N] = {0};
    rbt_snap *value = sparse ? rbt_snap_create_sparse(type, n, 0) : rbt_snap_create(type, n);
    rbt_cache cache;

    rbt_cache_init(&cache, &layout);
    rbt_cache_adopt(&cache, 0, value, 0, 0, 0, 0);
    for (int step = 0; step < 200; step++) {
        uint32_t first = (uint32_t)rbt_rng_below(&rng, n), run = (uint32_t)(1 + rbt_rng_below(&rng, n - first));
        int32_t got32[N], deltas32[N];
        int64_t got[N], deltas[N];
        rbt_snap *update;

        for (uint32_t i = 0; i < run; i++) {
            deltas[i] = (int64_t)rbt_rng_below(&rng, 7) - 3;
            deltas32[i] = (int32_t)deltas[i];
            mine[first + i] += deltas[i];
        }
        rbt_cache_increment(&cache, 0, first, run, type == RBT_I32 ? (void *)deltas32 : (void *)deltas);
        if (rbt_rng_below(&rng, 3) == 0) { /* the clock ends, the server adds, now and then the worker hears of it */
            update = rbt_cache_flush(&cache, 0, 0, true);
            rbt_snap_add(&value, update, 1);
            rbt_snap_unref(update);
            memcpy(server, mine, sizeof server);
            if (rbt_rng_below(&rng, 2) == 0)
                rbt_cache_adopt(&cache, 0, value, 0, 0, 0, 0);
        }
        rbt_cache_read(&cache, 0, first, run, false, type == RBT_I32 ? (void *)got32 : (void *)got);
        for (uint32_t i = 0; i < run; i++)
            assert_true((type == RBT_I32 ? got32[i] : got[i]) == mine[first + i]);
        rbt_snap_read(value, 0, n, type == RBT_I32 ? (void *)got32 : (void *)got);
        for (uint32_t i = 0; i < n; i++) /* the server's values are never written by the cache */
            assert_true((type == RBT_I32 ? got32[i] : got[i]) == server[i]);
    }
    rbt_snap_unref(value);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void random_use_equals_plain_arrays(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        play(RBT_I32, false, seed);
        play(RBT_I32, true, seed);
        play(RBT_I64, false, seed);
        play(RBT_I64, true, seed);
    }
}

/* Increments by keys against single ones, over rows that lie in several blocks. */
static void increment_both_ways(rbt_type type, bool sparse)
{
    enum { ROWS = 3, COLS = 70000, KEYS = 2000 };
    rbt_table_spec spec = {.name = "t", .rows = ROWS, .cols = COLS, .type = type, .sparse = sparse};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, type);
    rbt_layout layout;
    rbt_cache many, single;

    assert_int_equal(rbt_layout_init(&layout, &spec, 2, 0, NULL), RBT_OK);
    rbt_cache_init(&many, &layout);
    rbt_cache_init(&single, &layout);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t cols[KEYS];
        int64_t deltas[KEYS]; /* room for any type */
        size_t size = rbt_type_size(type);

        for (size_t i = 0; i < KEYS; i++) {
            int64_t d64 = (int64_t)rbt_rng_below(&rng, 100) - 50;
            int32_t d32 = (int32_t)d64;
            float real = (float)d64 / 8;

            cols[i] = i % 3 == 0 && i > 0 ? cols[i - 1] : rbt_rng_below(&rng, COLS);
            memcpy((char *)deltas + i * size,
                   type == RBT_F32   ? (void *)&real
                   : type == RBT_I32 ? (void *)&d32
                                     : &d64,
                   size);
        }
        rbt_cache_increment_keys(&many, row, cols, KEYS, deltas);
        for (size_t i = 0; i < KEYS; i++)
            rbt_cache_increment(&single, rbt_layout_block(&layout, row, cols[i]),
                                rbt_layout_offset(&layout, row, cols[i]), 1, (const char *)deltas + i * size);
    }
    for (uint32_t b = 0; b < layout.blocks; b++) {
        uint32_t n = rbt_layout_length(&layout, b);
        char *one = rbt_alloc(n, 8), *other = rbt_alloc(n, 8);

        assert_int_equal(many.copies[b].touched, single.copies[b].touched);
        rbt_cache_read(&many, b, 0, n, false, one);
        rbt_cache_read(&single, b, 0, n, false, other);
        assert_memory_equal(one, other, n * rbt_type_size(type));
        rbt_free(one);
        rbt_free(other);
    }
    rbt_cache_deinit(&many);
    rbt_cache_deinit(&single);
    rbt_layout_deinit(&layout);
}

static void increments_by_keys_equal_single_ones(void **state)
{
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        increment_both_ways(RBT_F32, sparse);
        increment_both_ways(RBT_I32, sparse);
        increment_both_ways(RBT_I64, sparse);
    }
}

/* ------------------------------------------------------------------------------------------- half precision */

/* Increments, and what is sent of them, over many clocks: what was sent and what the worker has kept is all that was added, and
 * the worker reads all of it. The values are multiples of 2^-16, so that sums are exact. */
static void use_half(bool sparse, float threshold)
{
    rbt_layout layout = layout_of(RBT_F32, sparse);
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, sparse);
    double added[N] = {0}, sent[N] = {0};
    rbt_cache cache;
    size_t rounded = 0;

    rbt_cache_init(&cache, &layout);
    cache.is_half = true;
    for (int clock = 0; clock < 200; clock++) {
        rbt_snap *update;

        for (int i = 0; i < 5; i++) {
            float x = (float)((int)rbt_rng_below(&rng, 131073) - 65536) * 0x1p-16f;
            uint32_t at = (uint32_t)rbt_rng_below(&rng, N);

            rbt_cache_increment(&cache, 0, at, 1, &x);
            added[at] += x;
        }
        update = rbt_cache_flush(&cache, 0, threshold, true);
        for (uint32_t k = 0; update != NULL && k < update->count; k++) {
            uint32_t at = update->index != NULL ? update->index[k] : k;
            float x = update->f32[k];

            assert_true(rbt_half_has(x) && (x == 0 || fabsf(x) >= threshold));
            sent[at] += x;
        }
        rbt_snap_unref(update);
        for (uint32_t at = 0; at < N; at++) { /* the first copy has never come: what is read is what was kept */
            assert_true(sent[at] + read_one(&cache, 0, at) == added[at]);
            assert_true(fabs(added[at] - sent[at]) <= (threshold > 0x1p-11f ? threshold : 0x1p-11f));
            rounded += added[at] != sent[at];
        }
    }
    assert_true(rounded > 3000);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void what_half_precision_leaves_is_kept_and_follows(void **state)
{
    (void)state;
    use_half(false, 0);
    use_half(true, 0);
    use_half(false, 0.01f);
    use_half(true, 0.01f);
}

static void half_precision_hides_no_number_that_is_none(void **state)
{
    rbt_layout layout = layout_of(RBT_F32, false);
    rbt_cache cache;
    rbt_snap *update;

    (void)state;
    rbt_cache_init(&cache, &layout);
    cache.is_half = true;
    rbt_cache_increment(&cache, 0, 0, 3, (float[]){NAN, INFINITY, 1e6f});
    update = rbt_cache_flush(&cache, 0, 0, true);
    assert_int_equal(update->count, 3);
    assert_true(isnan(update->f32[0]) && update->f32[1] == INFINITY && update->f32[2] == 65504);
    rbt_snap_unref(update);
    rbt_cache_increment(&cache, 0, 0, 3, (float[]){1, 2, 3});
    update = rbt_cache_flush(&cache, 0, 0, true); /* they are not said again; what was too large goes on */
    assert_int_equal(update->count, 3);
    assert_true(update->f32[0] == 1 && update->f32[1] == 2 && update->f32[2] == 65504);
    rbt_snap_unref(update);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

/* An early send takes what half precision has of a strip; what that leaves goes with the next increment. */
static void send_half_early(bool sparse)
{
    rbt_layout layout = layout_of(RBT_F32, sparse);
    uint32_t index[N];
    float values[N], x = 1.0f + 0x1p-12f + 0x1p-20f, first;
    rbt_cache cache;
    rbt_snap *update;

    rbt_cache_init(&cache, &layout);
    cache.is_half = cache.is_managed = true;
    rbt_cache_increment(&cache, 0, 5, 1, &x);
    assert_int_equal(rbt_cache_take_strip(&cache, 0, cache.copies[0].strips.list.at[0].strip, 0, index, values), 1);
    assert_true(index[0] == 5 && values[0] == 1);
    first = values[0];
    assert_true(first + read_one(&cache, 0, 5) == x);
    rbt_strips_sweep(&cache.copies[0].strips);
    rbt_cache_increment(&cache, 0, 5, 1, (float[]){0x1p-12f});
    update = rbt_cache_flush(&cache, 0, 0, true);
    assert_int_equal(update->count, 1);
    assert_true(first + update->f32[0] + read_one(&cache, 0, 5) == x + 0x1p-12f);
    rbt_snap_unref(update);
    rbt_cache_deinit(&cache);
    rbt_layout_deinit(&layout);
}

static void early_sends_in_half_precision_leave_the_rest(void **state)
{
    (void)state;
    send_half_early(false);
    send_half_early(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_never_read_is_zero_plus_the_increments),
        cmocka_unit_test(own_writes_are_read_until_a_copy_brings_them),
        cmocka_unit_test(adopting_drops_own_updates_that_were_never_read),
        cmocka_unit_test(gradients_are_not_kept_as_own_updates),
        cmocka_unit_test(a_shared_copy_stays_untouched_and_an_unread_one_is_not_copied),
        cmocka_unit_test(small_entries_are_not_sent_dense_or_sparse),
        cmocka_unit_test(what_is_not_significant_waits_and_is_not_lost),
        cmocka_unit_test(random_use_equals_plain_arrays),
        cmocka_unit_test(increments_by_keys_equal_single_ones),
        cmocka_unit_test(what_half_precision_leaves_is_kept_and_follows),
        cmocka_unit_test(half_precision_hides_no_number_that_is_none),
        cmocka_unit_test(early_sends_in_half_precision_leave_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
