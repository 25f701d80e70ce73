/* The threads of a solver: a fixed number that run one function at a time together; the caller is thread 0.
 *
 * Sums are cut into blocks of rows whose partial sums are added in order, so they do not depend on the number of threads.
 * Called by the solvers of this folder and by src/job. Proved by tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_TEAM_H
#define RBT_SOLVE_TEAM_H

#include "rubato.h"

typedef struct rbt_team rbt_team;
typedef void rbt_team_work(void *context, uint32_t thread);

rbt_err rbt_team_create(uint32_t threads, rbt_team **team, rbt_error *error);
void rbt_team_destroy(rbt_team *team);
uint32_t rbt_team_threads(const rbt_team *team);

/* Are there as many processors as threads, so that none need wait until another one rests? */
bool rbt_team_fits(const rbt_team *team);

/* Runs `work` in every thread and returns when all have ended. */
void rbt_team_run(rbt_team *team, rbt_team_work *work, void *context);

#define RBT_BLOCK_ROWS 1024

/* Adds up `block(context, first, n)` over all rows, in blocks. */
typedef double rbt_block_sum(void *context, size_t first, size_t n);
double rbt_team_sum(rbt_team *team, size_t rows, rbt_block_sum *block, void *context);

#endif
