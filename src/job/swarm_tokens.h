/* Tokens: what the swarm moves about in a table of integers, as topic models and clusters do.
 *
 * In its first clock a worker puts its tokens into cells of the table, in every later one it moves them all to others. Where
 * a token is after so many clocks is a function of the seed, so a worker that was restarted knows it, and so does whoever
 * checks: no cell is ever below 0; under BSP all tokens are there at every clock; in the end each is in its cell, once, whatever
 * was lost, repeated or delayed on the way. Called by swarm_case.c. Proved by tests/cli/test_swarm.sh and test_mutants.sh.
 */
#ifndef RBT_JOB_SWARM_TOKENS_H
#define RBT_JOB_SWARM_TOKENS_H

#include "node/topology.h"
#include "runtime/check.h"

typedef struct rbt_swarm_tokens {
    uint64_t seed;
    rbt_table table;
    uint64_t rows, cols;
    uint32_t each; /* tokens of a worker */
    bool sparse;
} rbt_swarm_tokens;

/* What the seed draws. */
void rbt_swarm_tokens_draw(rbt_swarm_tokens *tokens, uint64_t seed, rbt_table table);
rbt_table_spec rbt_swarm_tokens_spec(const rbt_swarm_tokens *tokens);

/* The moves of the worker's clock under way. */
rbt_err rbt_swarm_tokens_move(const rbt_swarm_tokens *tokens, rbt_worker *worker, rbt_error *error);

/* Reads the table and reports what is wrong with it. `clocks`: how many each worker makes in all; `exact`: BSP, and nobody has
 * been restarted. */
rbt_err rbt_swarm_tokens_look(const rbt_swarm_tokens *tokens, rbt_worker *worker, const uint64_t *clocks, bool exact,
                              rbt_checker *checker, rbt_error *error);

/* The same when all have left: `cells` is the whole table, and `clocks` what each has finished. */
void rbt_swarm_tokens_judge(const rbt_swarm_tokens *tokens, const int32_t *cells, const uint64_t *clocks,
                            uint32_t workers, rbt_checker *checker);

#endif
