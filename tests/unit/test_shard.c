/* Proves src/data/shard.c: every row to exactly one worker, evenly, at random, by seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/data.h"
#include "data/shard.h"

/* Row r has r % 5 features. */
static rbt_data data_of(size_t rows)
{
    rbt_data d;
    assert_int_equal(rbt_data_alloc(rows, rows * 5, &d, NULL), RBT_OK);
    d.rows = rows;
    d.cols = 5;
    for (size_t r = 0; r < rows; r++) {
        d.start[r + 1] = d.start[r] + r % 5;
        for (size_t i = 0; i < r % 5; i++) {
            d.index[d.start[r] + i] = (uint32_t)i;
            d.value[d.start[r] + i] = 1;
        }
    }
    d.nnz = d.start[rows];
    return d;
}

static void every_row_is_in_one_shard_and_sizes_differ_by_one(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 2, 7, 64, 1000};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rbt_data d = data_of(rows[i]);
        for (uint32_t workers = 1; workers <= rows[i] && workers < 70; workers++) {
            rbt_shards s;
            assert_int_equal(rbt_shards_create(&d, workers, 3, &s, NULL), RBT_OK);
            assert_int_equal(s.workers, workers);
            unsigned char *seen = calloc(rows[i], 1);
            assert_non_null(seen);
            size_t sum = 0, nnz = 0;
            for (uint32_t w = 0; w < workers; w++) {
                assert_in_range(s.shard[w].n, rows[i] / workers, (rows[i] + workers - 1) / workers);
                size_t mine = 0;
                for (size_t k = 0; k < s.shard[w].n; k++) {
                    uint32_t row = s.shard[w].rows[k];
                    assert_true(row < rows[i]);
                    assert_int_equal(seen[row]++, 0);
                    mine += row % 5;
                }
                assert_int_equal(s.shard[w].nnz, mine);
                sum += s.shard[w].n;
                nnz += mine;
            }
            assert_int_equal(sum, rows[i]);
            assert_int_equal(nnz, d.nnz);
            free(seen);
            rbt_shards_destroy(&s);
        }
        rbt_data_deinit(&d);
    }
}

static void the_seed_decides_and_nothing_else(void **state)
{
    (void)state;
    rbt_data d = data_of(500);
    rbt_shards a, b, c;
    assert_int_equal(rbt_shards_create(&d, 4, 1, &a, NULL), RBT_OK);
    assert_int_equal(rbt_shards_create(&d, 4, 1, &b, NULL), RBT_OK);
    assert_int_equal(rbt_shards_create(&d, 4, 2, &c, NULL), RBT_OK);
    assert_memory_equal(a.order, b.order, 500 * sizeof *a.order);
    assert_memory_not_equal(a.order, c.order, 500 * sizeof *a.order);
    rbt_shards_destroy(&a);
    rbt_shards_destroy(&b);
    rbt_shards_destroy(&c);
    rbt_data_deinit(&d);
}

/* A file sorted by label must not give workers of one label each. */
static void neighbouring_rows_are_spread_over_the_workers(void **state)
{
    (void)state;
    rbt_data d = data_of(4000);
    rbt_shards s;
    assert_int_equal(rbt_shards_create(&d, 4, 1, &s, NULL), RBT_OK);
    for (uint32_t w = 0; w < 4; w++) {
        size_t first_half = 0;
        for (size_t k = 0; k < s.shard[w].n; k++)
            first_half += s.shard[w].rows[k] < 2000;
        assert_in_range(first_half, 420, 580); /* 500, five standard deviations */
    }
    rbt_shards_destroy(&s);
    rbt_data_deinit(&d);
}

/* What streams is dealt in blocks of consecutive rows, which come one after the other. */
static void streamed_data_is_dealt_block_after_block(void **state)
{
    (void)state;
    rbt_data d = data_of(5000);
    rbt_shards s, again;
    d.streamed = true;
    d.mapping = d.start; /* nothing is released: the range is empty */
    assert_int_equal(rbt_shards_create(&d, 3, 1, &s, NULL), RBT_OK);
    assert_int_equal(rbt_shards_create(&d, 3, 1, &again, NULL), RBT_OK);
    assert_memory_equal(s.order, again.order, d.rows * sizeof *s.order);
    assert_in_range(s.block_rows, 50, 5000 / 3 / 16);
    unsigned char *seen = calloc(d.rows, 1);
    assert_non_null(seen);
    size_t changes = 0, steps = 0;
    for (size_t i = 0; i < d.rows; i++) {
        assert_int_equal(seen[s.order[i]]++, 0);
        changes += i > 0 && s.order[i] / s.block_rows != s.order[i - 1] / s.block_rows;
        steps += i > 0 && s.order[i] == s.order[i - 1] + 1;
    }
    size_t blocks = (d.rows + s.block_rows - 1) / s.block_rows;
    assert_int_equal(changes, blocks - 1);
    assert_true(steps < d.rows / 10); /* random within a block */
    assert_in_range(s.shard[0].n, 1666, 1667);
    rbt_shards_release(&s, &d, s.order, d.rows, 0, d.rows);
    free(seen);
    rbt_shards_destroy(&s);
    rbt_shards_destroy(&again);
    d.mapping = NULL;
    d.streamed = false;
    rbt_data_deinit(&d);
}

/* Workers that share memory mix the rows of a few such blocks, and of others in the next pass; what is given back is whole blocks. */
static void streamed_rows_meet_those_of_other_blocks_in_each_pass(void **state)
{
    enum { ROWS = 5000, WORKERS = 3, BLOCKS = 200 };
    (void)state;
    rbt_data d = data_of(ROWS);
    rbt_shards s;
    uint32_t *order = calloc(ROWS, sizeof *order);
    unsigned char *seen = calloc(ROWS, 1), met[BLOCKS][BLOCKS] = {{0}};
    size_t pairs[3] = {0};
    assert_true(order != NULL && seen != NULL);
    d.streamed = true;
    d.mapping = d.start; /* nothing is released: the range is empty */
    assert_int_equal(rbt_shards_deal(&d, WORKERS, 1, &s, NULL), RBT_OK);
    assert_in_range(s.span_rows / s.block_rows, 2, 8);
    for (size_t pass = 1; pass < 3; pass++)
        for (uint32_t w = 0; w < WORKERS; w++) {
            rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, pass * WORKERS + w);
            size_t total = s.shard[w].n;
            memcpy(order, s.shard[w].rows, total * sizeof *order);
            rbt_shards_shuffle(&s, w, &rng, order);
            for (size_t at = 0, n; at < total; at += n) {
                n = rbt_shards_together(&s, order, at, total - at);
                assert_in_range(n, 1, s.span_rows);
                for (size_t i = at + 1; i < at + n; i++)
                    met[order[i] / s.block_rows][order[i - 1] / s.block_rows] |= (unsigned char)pass;
                rbt_shards_release(&s, &d, order, total, at, n);
            }
            for (size_t i = 0; i < total; i++)
                assert_int_equal(seen[order[i]]++, pass - 1);
        }
    for (size_t a = 0; a < BLOCKS; a++)
        for (size_t b = 0; b < BLOCKS; b++)
            if (a != b && met[a][b] > 0)
                pairs[met[a][b] - 1]++;
    assert_true(pairs[0] > 50 && pairs[1] > 50);
    assert_true(pairs[2] < pairs[0]); /* other company each time */
    free(order);
    free(seen);
    rbt_shards_destroy(&s);
    d.mapping = NULL;
    d.streamed = false;
    rbt_data_deinit(&d);
}

/* Dealt rows are visited near each other in memory, but never twice in the same order: dual ascent goes slowly along orders that
 * repeat. */
static void neighbours_that_were_dealt_are_visited_in_another_order_each_time(void **state)
{
    enum { ROWS = 20000, FEW = 64 };
    (void)state;
    rbt_data d = data_of(ROWS);
    rbt_shards s;
    size_t *when = calloc(2 * ROWS, sizeof *when), turned = 0;
    uint32_t *order = calloc(ROWS, sizeof *order);
    assert_true(when != NULL && order != NULL);
    assert_int_equal(rbt_shards_deal(&d, 1, 1, &s, NULL), RBT_OK);
    for (size_t time = 0; time < 2; time++) {
        rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, time);
        rbt_shards_shuffle(&s, 0, &rng, order);
        for (size_t i = 0; i < ROWS; i++)
            when[time * ROWS + order[i]] = i + 1;
    }
    for (size_t r = 0; r < ROWS; r++)
        assert_true(when[r] > 0 && when[ROWS + r] > 0); /* all of them, each time */
    for (size_t r = 0; r + FEW <= ROWS; r += FEW)       /* did the first two change places? */
        turned += (when[r] < when[r + 1]) != (when[ROWS + r] < when[ROWS + r + 1]);
    assert_in_range(turned, ROWS / FEW / 4, ROWS / FEW * 3 / 4);
    free(when);
    free(order);
    rbt_shards_destroy(&s);
    rbt_data_deinit(&d);
}

/* Also at the end of a pass, however many rows there are: what was learned last is what is looked at. */
static void no_stretch_of_dealt_rows_is_of_few_places(void **state)
{
    enum { STRETCH = 256, PIECE = 64, LEAST = 64 * PIECE };
    (void)state;
    for (size_t rows = LEAST; rows < 4 * LEAST; rows += 57) {
        rbt_data d = data_of(rows);
        rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, rows);
        rbt_shards s;
        uint32_t *order = calloc(rows, sizeof *order);
        assert_non_null(order);
        assert_int_equal(rbt_shards_deal(&d, 1, 1, &s, NULL), RBT_OK);
        rbt_shards_shuffle(&s, 0, &rng, order);
        for (size_t end = rows; end > STRETCH; end -= STRETCH) {
            unsigned char seen[4 * LEAST / PIECE] = {0};
            size_t places = 0;
            for (size_t i = end - STRETCH; i < end; i++)
                places += seen[order[i] / PIECE]++ == 0;
            assert_in_range(places, 8, STRETCH);
        }
        free(order);
        rbt_shards_destroy(&s);
        rbt_data_deinit(&d);
    }
}

static void more_workers_than_rows_is_refused_with_both_numbers(void **state)
{
    (void)state;
    rbt_data d = data_of(3);
    rbt_shards s;
    rbt_error error;
    assert_int_equal(rbt_shards_create(&d, 8, 1, &s, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "8 workers cannot share 3 rows"));
    assert_non_null(strstr(error.text, "use at most 3 workers"));
    assert_int_equal(rbt_shards_create(&d, 0, 1, &s, &error), RBT_E_USAGE);
    rbt_data_deinit(&d);
}

static void too_many_rows_are_refused(void **state)
{
    (void)state;
    rbt_data d = {.rows = (size_t)UINT32_MAX + 1};
    rbt_shards s;
    rbt_error error;
    assert_int_equal(rbt_shards_create(&d, 1, 1, &s, &error), RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "4294967296 rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_one_shard_and_sizes_differ_by_one),
        cmocka_unit_test(the_seed_decides_and_nothing_else),
        cmocka_unit_test(neighbouring_rows_are_spread_over_the_workers),
        cmocka_unit_test(streamed_data_is_dealt_block_after_block),
        cmocka_unit_test(streamed_rows_meet_those_of_other_blocks_in_each_pass),
        cmocka_unit_test(neighbours_that_were_dealt_are_visited_in_another_order_each_time),
        cmocka_unit_test(no_stretch_of_dealt_rows_is_of_few_places),
        cmocka_unit_test(more_workers_than_rows_is_refused_with_both_numbers),
        cmocka_unit_test(too_many_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
