/* Newton's method, for few parameters: whole passes over the data, in which each thread adds up its rows; no step
 * size, no scaling of features needed.
 *
 * An iteration solves the quadratic model: exactly with few parameters and short rows, or l1, where second derivatives
 * are added up in one pass; else roughly by conjugate gradients (preconditioned by the diagonal), every step of which
 * is a pass. Then it shortens the step until the objective falls, which costs no further pass. From zeros, where rows
 * are many and parameters few, the first one starts from where an iteration or two on some of the rows led, if that is
 * better.
 *
 * A hinge has a corner. It is rounded, first much and then less and less, as far as `close` asks for it
 * (newton_loss.c); its way to the optimum is as short then as that of a smooth loss, where dual steps on few features
 * take hundreds of passes.
 *
 * Called by shared.c. Always holds: the objective never rises, but for a corner, where that of the rounded losses does
 * not. Proved by tests/unit/test_newton.c (known optima, agreement with sdca).
 */
#ifndef RBT_SOLVE_NEWTON_H
#define RBT_SOLVE_NEWTON_H

#include "solve/problem.h"

typedef struct rbt_newton rbt_newton;

#define RBT_NEWTON_ROW_BYTES (3 * sizeof(double)) /* kept for each row and class */
#define RBT_NEWTON_SQUARE                                                                                              \
    256 /* parameters, whose second derivatives have room in a cache: with l1 or a corner, the most */

/* Can it: with l1, or a loss with a corner, are there few parameters? */
bool rbt_newton_fits(const rbt_problem *problem);

/* Has the loss a corner, which it rounds? */
bool rbt_newton_rounds(const rbt_problem *problem);

rbt_err rbt_newton_create(const rbt_problem *problem, rbt_team *team, rbt_newton **newton, rbt_error *error);
void rbt_newton_destroy(rbt_newton *newton);

/* One iteration on `w` (of which it keeps a finer copy, and goes on from that unless `w` was changed), which is left
 * alone (zeros) at columns that do not occur; the objective afterwards, about how far above the optimum it is
 * (infinite: not to be told), and how many rows its passes went through. When the iteration promises less than this
 * share of the objective (`close`), that is made sure of. */
double rbt_newton_iterate(rbt_newton *newton, float *w, double close, double *gap, uint64_t *visits);

#endif
