/* Proves src/table/layout.c: every element lies in exactly one block at a place of its own, also in tables cut both
 * ways; no server holds more than 1.25 times its share; few blocks move when a server is added; limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "table/layout.h"

#define SERVERS 64

static rbt_layout laid_out(uint64_t rows, uint64_t cols, bool sparse, uint32_t servers, uint64_t salt)
{
    rbt_table_spec spec = {.name = "w", .rows = rows, .cols = cols, .type = RBT_F32, .sparse = sparse};
    rbt_error error = {0};
    rbt_layout layout;

    if (rbt_layout_init(&layout, &spec, servers, salt, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return layout;
}

/* Visits every element of a small table: blocks are filled without gaps or overlaps, runs end where blocks end. */
static void check_every_element(uint64_t rows, uint64_t cols, uint32_t servers)
{
    rbt_layout l = laid_out(rows, cols, false, servers, 1);
    bool **seen = rbt_alloc(l.blocks, sizeof *seen);
    uint64_t total = 0;

    for (uint32_t b = 0; b < l.blocks; b++) {
        assert_in_range(rbt_layout_length(&l, b), 1, RBT_BLOCK_ELEMENTS);
        assert_true(l.server[b] < servers);
        seen[b] = rbt_alloc(rbt_layout_length(&l, b), sizeof **seen);
        total += rbt_layout_length(&l, b);
    }
    assert_int_equal(total, rows * cols); /* with no element twice, every place is taken */
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t col = 0; col < cols; col++) {
            uint32_t block = rbt_layout_block(&l, row, col), offset = rbt_layout_offset(&l, row, col);
            uint64_t run = rbt_layout_run(&l, col);

            assert_true(block < l.blocks && offset < rbt_layout_length(&l, block));
            assert_false(seen[block][offset]);
            seen[block][offset] = true;
            assert_true(run >= 1 && run <= cols - col);
            if (run > 1) { /* the next column follows in memory */
                assert_int_equal(rbt_layout_block(&l, row, col + 1), block);
                assert_int_equal(rbt_layout_offset(&l, row, col + 1), offset + 1);
            } else if (col + 1 < cols) {
                assert_int_not_equal(rbt_layout_block(&l, row, col + 1), block);
            }
        }
    for (uint32_t b = 0; b < l.blocks; b++)
        rbt_free(seen[b]);
    rbt_free(seen);
    rbt_layout_deinit(&l);
}

static void every_element_lies_in_one_block_at_a_place_of_its_own(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    check_every_element(1, 1, 1);
    check_every_element(1, 1, 64);
    check_every_element(1, 100000, 1);
    check_every_element(1, 100000, 7);
    check_every_element(300, 300, 1); /* bands of rows */
    check_every_element(3, 70000, 1); /* cut across */
    check_every_element(17, 97, 12);  /* cut both ways */
    check_every_element(100, 101, 22);
    for (int i = 0; i < 200; i++)
        check_every_element(1 + rbt_rng_below(&rng, 40), 1 + rbt_rng_below(&rng, 200),
                            (uint32_t)(1 + rbt_rng_below(&rng, 20)));
}

static void assert_balanced(uint64_t rows, uint64_t cols, bool sparse, uint32_t servers)
{
    rbt_layout l = laid_out(rows, cols, sparse, servers, rows);
    double share = (double)rows * (double)cols / servers, load[SERVERS] = {0};

    for (uint32_t b = 0; b < l.blocks; b++)
        load[l.server[b]] += rbt_layout_length(&l, b);
    for (uint32_t s = 0; s < servers; s++)
        if (load[s] > 1.25 * share)
            fail_msg("%llu x %llu on %u servers: server %u holds %.3f of its share", (unsigned long long)rows,
                     (unsigned long long)cols, servers, s, load[s] / share);
    rbt_layout_deinit(&l);
}

/* All of these have 80 elements or more for each of 64 servers: five blocks of the smallest size. Vectors, bands of
 * rows, rows longer than a block, primes that no number of servers divides, sparse tables. */
static const struct shape {
    uint64_t rows, cols;
    bool sparse;
} shapes[] = {
    {1, 5120, false},      {1, 5121, false},    {1, 6000, false},    {1, 20480, false},        {1, 47236, false},
    {1, 100000, false},    {1, 1000000, false}, {1, 3231961, false}, {1, 54686452, false},     {1000, 1000, false},
    {640, 640, false},     {10, 10000, false},  {10, 30011, false},  {3, 70000, false},        {7, 65537, false},
    {17, 9973, false},     {100, 101, false},   {5120, 16, false},   {20480, 3, false},        {100000, 40, false},
    {5120, 1, false},      {311, 17, false},    {1009, 1013, false}, {1000000, 1000000, true}, {1, 1u << 30, true},
    {1ull << 40, 7, true},
};

static void no_server_holds_more_than_five_quarters_of_its_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t servers = 1; servers <= SERVERS; servers++)
            assert_balanced(shapes[i].rows, shapes[i].cols, shapes[i].sparse, servers);
}

static void random_shapes_are_balanced_from_128_elements_per_server_on(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 5000; i++) {
        uint64_t rows = 1 + rbt_rng_below(&rng, 1ull << rbt_rng_below(&rng, 14));
        uint64_t cols = 1 + rbt_rng_below(&rng, 1ull << rbt_rng_below(&rng, 14));
        uint32_t servers = (uint32_t)(1 + rbt_rng_below(&rng, SERVERS));

        if (rows * cols / servers >= 128)
            assert_balanced(rows, cols, false, servers);
    }
}

/* A new server must take 1 / servers of the blocks; the bound on everybody's load pushes some more around. Measured: at
 * most 7 % more, 3 % on average; a remainder (block % servers) would move nearly all. */
static void few_blocks_move_when_a_server_is_added(void **state)
{
    rbt_layout l = laid_out(1, 54686452, false, SERVERS, 0);
    uint32_t *before = rbt_alloc(l.blocks, sizeof *before);
    double extra = 0;

    (void)state;
    assert_true(l.blocks >= 12 * SERVERS);
    for (uint32_t servers = 1; servers <= SERVERS; servers++) {
        uint32_t moved = 0;

        rbt_layout_place(&l, servers, 0);
        for (uint32_t b = 0; b < l.blocks; b++) {
            assert_true(l.server[b] < servers);
            moved += l.server[b] != before[b];
            before[b] = l.server[b];
        }
        if (servers == 1)
            continue;
        assert_true(moved <= l.blocks / servers + l.blocks / 8);
        extra += ((double)moved / l.blocks - 1.0 / servers) / (SERVERS - 1);
    }
    assert_true(extra < 0.05);
    rbt_free(before);
    rbt_layout_deinit(&l);
}

static void placement_is_a_function_of_the_salt(void **state)
{
    rbt_layout a = laid_out(1, 1000000, false, 8, 1), b = laid_out(1, 1000000, false, 8, 1),
               c = laid_out(1, 1000000, false, 8, 2);

    (void)state;
    assert_memory_equal(a.server, b.server, a.blocks * sizeof *a.server);
    assert_memory_not_equal(a.server, c.server, a.blocks * sizeof *a.server);
    rbt_layout_deinit(&a);
    rbt_layout_deinit(&b);
    rbt_layout_deinit(&c);
}

static void rows_can_be_blocks(void **state)
{
    rbt_table_spec spec = {.name = "rows", .rows = 37, .cols = 100, .type = RBT_F32, .block_rows = 1};
    rbt_error error = {0};
    rbt_layout l;

    (void)state;
    assert_int_equal(rbt_layout_init(&l, &spec, 3, 1, &error), RBT_OK);
    assert_int_equal(l.blocks, 37);
    for (uint32_t row = 0; row < 37; row++)
        assert_true(rbt_layout_block(&l, row, 0) == row && rbt_layout_block(&l, row, 99) == row &&
                    rbt_layout_offset(&l, row, 99) == 99 && rbt_layout_length(&l, row) == 100);
    rbt_layout_deinit(&l);
    spec.cols = RBT_BLOCK_ELEMENTS + 1;
    assert_int_equal(rbt_layout_init(&l, &spec, 3, 1, &error), RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "table 'rows' has 65537 columns"));
}

/* Rows of a band that is split; long ones in pieces; those that are small enough stay. */
static void a_layout_can_be_split_into_pieces_of_rows(void **state)
{
    static const struct {
        uint64_t rows, cols, most;
        uint32_t blocks, length;
    } cases[] = {{37, 100, 1024, 37, 100}, {5, 3000, 1024, 15, 1000}, {1, 70, 1024, 1, 70}};
    rbt_error error = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_table_spec spec = {.name = "rows", .rows = cases[i].rows, .cols = cases[i].cols, .type = RBT_F32};
        rbt_layout l;

        assert_int_equal(rbt_layout_init(&l, &spec, 1, 1, &error), RBT_OK);
        assert_int_equal(rbt_layout_split(&l, "rows", cases[i].most, 1, &error), RBT_OK);
        assert_int_equal(l.blocks, cases[i].blocks);
        assert_int_equal(l.block_rows, 1);
        for (uint32_t b = 0; b < l.blocks; b++)
            assert_true(rbt_layout_length(&l, b) == cases[i].length && l.server[b] == 0);
        if (i == 0)
            assert_int_equal(rbt_layout_split(&l, "rows", 1, 1, &error), RBT_OK);
        l.rows = (uint64_t)RBT_BLOCKS_MAX + 1;
        l.block_rows = 2;
        assert_int_equal(rbt_layout_split(&l, "rows", 1024, 1, &error), RBT_E_LIMIT);
        assert_non_null(strstr(error.text, "'rows'"));
        rbt_layout_deinit(&l);
    }
}

static void impossible_tables_are_refused_by_name(void **state)
{
    static const struct {
        uint64_t rows, cols;
        rbt_err err;
    } bad[] = {{0, 5, RBT_E_USAGE},
               {5, 0, RBT_E_USAGE},
               {1ull << 40, 1ull << 40, RBT_E_USAGE},
               {UINT64_MAX, 1, RBT_E_USAGE},
               {1ull << 30, 1ull << 20, RBT_E_LIMIT}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_table_spec spec = {.name = "counts", .rows = bad[i].rows, .cols = bad[i].cols, .type = RBT_I32};
        rbt_error error = {0};
        rbt_layout layout;

        assert_int_equal(rbt_layout_init(&layout, &spec, 3, 0, &error), bad[i].err);
        assert_non_null(strstr(error.text, "'counts'"));
    }
}

static void blocks_have_no_more_rows_than_asked_for(void **state)
{
    rbt_error error = {0};

    (void)state;
    for (uint32_t servers = 1; servers < 5; servers++) {
        rbt_table_spec spec = {.name = "w", .rows = 20001, .cols = 3, .type = RBT_I64, .block_rows = 512};
        rbt_layout layout;

        assert_int_equal(rbt_layout_init(&layout, &spec, servers, 1, &error), RBT_OK);
        assert_in_range(layout.block_rows, 256, 512);
        assert_int_equal(rbt_layout_block(&layout, 20000, 2), layout.blocks - 1);
        rbt_layout_deinit(&layout);
        spec.block_rows = 40000; /* more than there are: as if nothing had been asked for */
        assert_int_equal(rbt_layout_init(&layout, &spec, 1, 1, &error), RBT_OK);
        assert_int_equal(layout.blocks, 1);
        rbt_layout_deinit(&layout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_lies_in_one_block_at_a_place_of_its_own),
        cmocka_unit_test(no_server_holds_more_than_five_quarters_of_its_share),
        cmocka_unit_test(random_shapes_are_balanced_from_128_elements_per_server_on),
        cmocka_unit_test(few_blocks_move_when_a_server_is_added),
        cmocka_unit_test(placement_is_a_function_of_the_salt),
        cmocka_unit_test(rows_can_be_blocks),
        cmocka_unit_test(a_layout_can_be_split_into_pieces_of_rows),
        cmocka_unit_test(impossible_tables_are_refused_by_name),
        cmocka_unit_test(blocks_have_no_more_rows_than_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
