/* What a data set is like: lengths of rows, values, weights, and how much its rows get in each other's way.
 *
 * Called by the command info. Delta is the largest share of the rows that any one feature occurs in, rho the largest
 * share of the rows that have a feature in common with any one row: the numbers on which the convergence of steps
 * without locks depends (docs/protocols.md). Rho is exact when that is little work, else the largest over
 * RBT_STATS_SAMPLE rows, the longest among them, and so a lower bound; the choice is always the same. Uses all cores.
 * Proved by tests/unit/test_stats_parallel.c against plain loops.
 */
#ifndef RBT_DATA_STATS_H
#define RBT_DATA_STATS_H

#include "rubato.h"

#define RBT_STATS_SAMPLE     256
#define RBT_STATS_RHO_BUDGET UINT64_C(300000000) /* steps that exact rho may take */

typedef struct rbt_stats {
    size_t shortest, longest; /* features of a row */
    float least, most;        /* values that are not zero */
    double weight;            /* of all rows together */
    double weight_least, weight_most;
    size_t used; /* features that occur */
    double delta;
    size_t delta_feature; /* which feature has it, from 0 */
    double rho;
    size_t rho_rows; /* how many rows were asked; all of them: rho is exact */
} rbt_stats;

rbt_err rbt_stats_compute(const rbt_data *data, uint64_t rho_budget, rbt_stats *stats, rbt_error *error);

#endif
