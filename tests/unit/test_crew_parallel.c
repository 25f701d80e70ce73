/* Proves src/base/crew.h: what is shared arrives everywhere, and a failure of one is everybody's, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "unit/crew.h"

#define MOST 8

typedef struct outcome {
    rbt_err err;
    rbt_error error;
    uint64_t all[MOST];
    double sums[3];
    bool right;
} outcome;

static outcome outcomes[MOST];
static uint32_t failing; /* this rank fails; MOST: none */

static void share(rbt_crew *crew, void *context)
{
    outcome *o = &outcomes[crew->rank];
    uint64_t mine = 100 + crew->rank;
    rbt_err err = RBT_OK;
    (void)context;
    *o = (outcome){.err = RBT_OK};
    if (crew->rank >= failing)
        err = rbt_fail(&o->error, RBT_E_DATA, "process %u is unwell", crew->rank);
    o->err = rbt_crew_share(crew, err, &mine, sizeof mine, o->all, &o->error);
}

static void everybody_gets_what_each_shares(void **state)
{
    (void)state;
    failing = MOST;
    for (uint32_t size = 1; size <= MOST; size++) {
        run_crew(size, share, NULL);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(outcomes[r].err, RBT_OK);
            for (uint32_t q = 0; q < size; q++)
                assert_int_equal(outcomes[r].all[q], 100 + q);
        }
    }
}

static void the_failure_of_the_lowest_rank_is_everybodys(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= MOST; size++) {
        char words[64];
        failing = size / 2;
        (void)snprintf(words, sizeof words, "process %u is unwell", failing);
        run_crew(size, share, NULL);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(outcomes[r].err, RBT_E_DATA);
            assert_string_equal(outcomes[r].error.text, words);
        }
    }
}

/* Everybody has for everybody else as many bytes as both ranks say. */
static void swap_lengths(rbt_crew *crew, void *context)
{
    outcome *o = &outcomes[crew->rank];
    rbt_bytes out[MOST], in[MOST];
    uint8_t bytes[MOST * MOST];
    (void)context;
    memset(bytes, (int)crew->rank, sizeof bytes);
    for (uint32_t r = 0; r < crew->size; r++)
        out[r] = (rbt_bytes){bytes, (size_t)crew->rank * r};
    *o = (outcome){.right = true};
    o->err = rbt_crew_swap(crew, RBT_OK, out, in, &o->error);
    for (uint32_t r = 0; o->err == RBT_OK && r < crew->size; r++) {
        o->right = o->right && in[r].n == (size_t)crew->rank * r;
        for (size_t i = 0; o->right && i < in[r].n; i++)
            o->right = in[r].at[i] == r;
    }
    if (o->err == RBT_OK)
        rbt_crew_free(crew, in);
}

static void each_gets_what_was_meant_for_it(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= MOST; size++) {
        run_crew(size, swap_lengths, NULL);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(outcomes[r].err, RBT_OK);
            assert_true(outcomes[r].right);
        }
    }
}

static void add(void *context, void *sums)
{
    double *s = sums;
    double rank = *(const uint32_t *)context;
    s[0] += 1;
    s[1] = s[1] * 3 + rank; /* the order shows */
    s[2] += 0.1 * (rank + 1);
}

static void travel(rbt_crew *crew, void *context)
{
    outcome *o = &outcomes[crew->rank];
    rbt_err err = RBT_OK;
    (void)context;
    *o = (outcome){.sums = {7, 7, 7}};
    if (crew->rank == failing)
        err = rbt_fail(&o->error, RBT_E_IO, "lost");
    o->err = rbt_crew_travel(crew, err, add, &crew->rank, o->sums, sizeof o->sums, &o->error);
}

static void sums_travel_in_the_order_of_ranks(void **state)
{
    (void)state;
    failing = MOST;
    for (uint32_t size = 1; size <= MOST; size++) {
        double expected[3] = {0};
        for (uint32_t r = 0; r < size; r++)
            add(&r, expected);
        run_crew(size, travel, NULL);
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(outcomes[r].err, RBT_OK);
            assert_memory_equal(outcomes[r].sums, expected, sizeof expected);
        }
    }
}

static void a_failure_ends_the_travel_everywhere(void **state)
{
    (void)state;
    failing = 2;
    run_crew(4, travel, NULL);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(outcomes[r].err, RBT_E_IO);
        assert_string_equal(outcomes[r].error.text, "lost");
    }
}

static void alone_everything_stays_here(void **state)
{
    rbt_crew crew = rbt_crew_alone();
    rbt_bytes in;
    uint8_t bytes[] = {1, 2, 3};
    (void)state;
    assert_int_equal(rbt_crew_collect(&crew, RBT_OK, (rbt_bytes){bytes, 3}, &in, NULL), RBT_OK);
    assert_int_equal(in.n, 3);
    assert_memory_equal(in.at, bytes, 3);
    rbt_crew_free(&crew, &in);
    assert_int_equal(rbt_crew_agree(&crew, RBT_E_IO, NULL), RBT_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_gets_what_each_shares),
        cmocka_unit_test(the_failure_of_the_lowest_rank_is_everybodys),
        cmocka_unit_test(each_gets_what_was_meant_for_it),
        cmocka_unit_test(sums_travel_in_the_order_of_ranks),
        cmocka_unit_test(a_failure_ends_the_travel_everywhere),
        cmocka_unit_test(alone_everything_stays_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
