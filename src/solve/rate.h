/* A step size found by trying: the best of several after one pass over a sample of the rows.
 *
 * Called by src/job when --lr is auto. A function of data and seed alone: every runtime finds the same. Proved by
 * tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_RATE_H
#define RBT_SOLVE_RATE_H

#include "solve/sgd.h"

#define RBT_RATE_ADAPTIVE 0.5 /* for rules of servers that adapt their steps themselves */

rbt_err rbt_rate_find(const rbt_problem *problem, rbt_optimizer optimizer, double momentum, uint64_t seed, double *rate,
                      rbt_error *error);

#endif
