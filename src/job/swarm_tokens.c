/* Tokens that the swarm moves about. Contract in swarm_tokens.h. */
#include "job/swarm_tokens.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/rng.h"

#define STREAM_TOKENS 1000000 /* beyond what other draws of a worker's clock use */

void rbt_swarm_tokens_draw(rbt_swarm_tokens *tokens, uint64_t seed, rbt_table table)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SWARM, 2); /* a stream of its own: other draws stay what they were */

    *tokens = (rbt_swarm_tokens){.seed = seed,
                                 .table = table,
                                 .rows = 1 + rbt_rng_below(&rng, 12),
                                 .cols = 1 + rbt_rng_below(&rng, 20),
                                 .each = 1 + (uint32_t)rbt_rng_below(&rng, 40),
                                 .sparse = rbt_rng_below(&rng, 3) == 0};
}

rbt_table_spec rbt_swarm_tokens_spec(const rbt_swarm_tokens *tokens)
{
    return (rbt_table_spec){
        .name = "tokens", .rows = tokens->rows, .cols = tokens->cols, .type = RBT_I32, .sparse = tokens->sparse};
}

/* Adds `by` to the cells where a worker's tokens are after so many clocks, of which there is at least one. */
static void place(const rbt_swarm_tokens *t, uint32_t worker, uint64_t clocks, int32_t by, int32_t *cells)
{
    rbt_rng rng = rbt_rng_stream(t->seed, RBT_STREAM_TEST, STREAM_TOKENS + worker * 1000 + clocks);

    for (uint32_t i = 0; i < t->each; i++)
        cells[rbt_rng_below(&rng, t->rows * t->cols)] += by;
}

rbt_err rbt_swarm_tokens_move(const rbt_swarm_tokens *t, rbt_worker *worker, rbt_error *error)
{
    int32_t *moves = rbt_alloc(t->rows * t->cols, sizeof *moves);
    uint64_t clock = rbt_worker_clock(worker);
    rbt_err err = RBT_OK;

    if (clock > 0)
        place(t, rbt_worker_id(worker), clock, -1, moves);
    place(t, rbt_worker_id(worker), clock + 1, 1, moves);
    for (uint64_t row = 0; err == RBT_OK && row < t->rows; row++)
        err = rbt_inc_row(worker, t->table, row, moves + row * t->cols, error);
    rbt_free(moves);
    return err;
}

rbt_err rbt_swarm_tokens_look(const rbt_swarm_tokens *t, rbt_worker *worker, const uint64_t *clocks, bool exact,
                              rbt_checker *checker, rbt_error *error)
{
    int32_t *cells = rbt_alloc(t->cols, sizeof *cells);
    uint64_t clock = rbt_worker_clock(worker);
    int64_t sum = 0, there = 0;
    rbt_err err = RBT_OK;

    for (uint64_t row = 0; err == RBT_OK && row < t->rows; row++) {
        err = rbt_get_row(worker, t->table, row, RBT_STALENESS_OF_JOB, cells, error);
        for (uint64_t col = 0; err == RBT_OK && col < t->cols; col++) {
            sum += cells[col];
            if (cells[col] < 0)
                rbt_checker_report(checker,
                                   "worker %u at clock %" PRIu64 " sees %d tokens in cell %" PRIu64 ",%" PRIu64,
                                   rbt_worker_id(worker), clock, cells[col], row, col);
        }
    }
    for (uint32_t m = 0; m < rbt_worker_count(worker); m++)
        there += clock > 0 && clocks[m] > 0 ? t->each : 0;
    if (err == RBT_OK && exact && sum != there)
        rbt_checker_report(checker,
                           "worker %u at clock %" PRIu64 " sees %" PRId64 " tokens, there are %" PRId64 " in all",
                           rbt_worker_id(worker), clock, sum, there);
    rbt_free(cells);
    return err;
}

void rbt_swarm_tokens_judge(const rbt_swarm_tokens *t, const int32_t *cells, const uint64_t *clocks, uint32_t workers,
                            rbt_checker *checker)
{
    int32_t *expected = rbt_alloc(t->rows * t->cols, sizeof *expected);

    for (uint32_t m = 0; m < workers; m++)
        if (clocks[m] > 0)
            place(t, m, clocks[m], 1, expected);
    for (uint64_t i = 0; i < t->rows * t->cols; i++)
        if (cells[i] != expected[i])
            rbt_checker_report(checker, "in the end cell %" PRIu64 " of the tokens has %d, must have %d", i, cells[i],
                               expected[i]);
    rbt_free(expected);
}
