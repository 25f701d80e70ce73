/* A step size found by trying: the best of several after one pass over a sample of the rows.
 *
 * Called by src/job when --lr is auto. A function of data and seed alone: every runtime finds the same, also where the
 * rows are at several places, the sample is gathered at one and tried there. Proved by tests/unit/test_solve.c and
 * test_sharing_parallel.c.
 */
#ifndef RBT_SOLVE_RATE_H
#define RBT_SOLVE_RATE_H

#include "solve/sgd.h"

#define RBT_RATE_ADAPTIVE 0.5 /* for rules of servers that adapt their steps themselves */

#define RBT_RATE_SAMPLE 4000 /* rows that are tried, at most */

/* The rows that are tried, of so many: their numbers, in order, into room for RBT_RATE_SAMPLE. Returns how many. */
size_t rbt_rate_sample(size_t rows, uint64_t seed, uint32_t *sample);

/* How far the rows of the data would let a step go: the largest of all rows' numbers counts. */
double rbt_rate_steepness(const rbt_problem *problem);

/* The best rate on these rows; `steepness` is that of all rows. */
rbt_err rbt_rate_try(const rbt_problem *problem, const uint32_t *sample, size_t n, double steepness,
                     rbt_optimizer optimizer, double momentum, double *rate, rbt_error *error);

/* All of it, for data that is here. So many rows are read together before any of them moves the parameters. */
rbt_err rbt_rate_find(const rbt_problem *problem, rbt_optimizer optimizer, double momentum, uint32_t together,
                      uint64_t seed, double *rate, rbt_error *error);

#endif
