/* What a solver minimises: mean loss + l2/2 |w|^2 + l1 |w|_1 over data, for one model.
 *
 * Called by the solvers of this folder and by src/job. Proved by tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_PROBLEM_H
#define RBT_SOLVE_PROBLEM_H

#include "rubato.h"
#include "solve/team.h"

/* What steps must know of all rows, where only some of them are at hand. */
typedef struct rbt_facts {
    size_t rows;
    double square;    /* the mean square of the values (sgd.h) */
    uint32_t *counts; /* for every feature, in how many rows it occurs; NULL without penalties */
} rbt_facts;

typedef struct rbt_problem {
    const rbt_model *model;
    const rbt_shape *shape;
    const rbt_data *data;   /* fits the shape; weights of rows have the mean 1 */
    const rbt_facts *facts; /* NULL: the data has all rows */
    double l1;
    double l2;
    size_t n;       /* parameters */
    size_t weights; /* of these, the first that are regularised: all but the biases */
    size_t outputs; /* decision values per row */
} rbt_problem;

rbt_problem rbt_problem_of(const rbt_model *model, const rbt_shape *shape, const rbt_data *data, double l1, double l2);

/* Can it be walked row by row (walk.h)? Built-in models can. */
bool rbt_problem_is_walkable(const rbt_problem *problem);

/* --------------------------------------------------------------------------------------------------- objective */

/* l2/2 |w|^2 + l1 |w|_1, the biases not counted. */
double rbt_problem_penalty(const rbt_problem *problem, const float *w);

double rbt_problem_objective(const rbt_problem *problem, const float *w, rbt_team *team);

/* For every feature, in how many rows it occurs. `team` may be NULL. */
rbt_err rbt_problem_count_columns(const rbt_problem *problem, rbt_team *team, uint32_t **counts, rbt_error *error);

#endif
