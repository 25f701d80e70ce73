/* Which columns occur in the rows, and which place each has among them: of millions of hashed columns often few do, and a
 * solver with vectors over all of them would spend its time and memory on zeros.
 *
 * Called by newton.c, and by src/job to see how many parameters there are. Costs 12 bytes per 64 columns. Proved by
 * tests/unit/test_newton.c.
 */
#ifndef RBT_SOLVE_COLUMNS_H
#define RBT_SOLVE_COLUMNS_H

#include "solve/problem.h"

typedef struct rbt_columns {
    uint64_t *seen;   /* a bit per column */
    uint32_t *before; /* per 64 columns: how many of the columns before them occur */
    size_t count;     /* that occur */
} rbt_columns;

/* Looks at the rows until more than `most` columns have occurred. */
rbt_err rbt_columns_init(rbt_columns *columns, const rbt_problem *problem, size_t most, rbt_error *error);
void rbt_columns_deinit(rbt_columns *columns);

static inline bool rbt_columns_occurs(const rbt_columns *columns, uint32_t column)
{
    return (columns->seen[column / 64] >> column % 64 & 1) != 0;
}

/* The place of a column that occurs. */
static inline uint32_t rbt_columns_place(const rbt_columns *columns, uint32_t column)
{
    uint64_t lower = columns->seen[column / 64] & ((UINT64_C(1) << column % 64) - 1);
    return columns->before[column / 64] + (uint32_t)__builtin_popcountll(lower);
}

#endif
