/* The minimum of a quadratic function of a few parameters, with an absolute-value penalty or without: of Newton's model
 * of the objective, when its second derivatives are at hand.
 *
 * Called by newton.c. Always holds: the step is finite. Proved by
 * tests/unit/test_quadratic.c.
 */
#ifndef RBT_SOLVE_QUADRATIC_H
#define RBT_SOLVE_QUADRATIC_H

#include <stdbool.h>
#include <stddef.h>

/* g.d + d H d / 2, H being n by n and symmetric, its diagonal above 0: sets the step d, and answers with how far the
 * function falls. `factor` has room for H. */
double rbt_quadratic_solve(size_t n, const double *h, const double *g, double *d, double *factor);

/* The same with l1 |w + d|_1 - l1 |w|_1 added, for all parameters but, with a bias, the last: w + d is 0 exactly where
 * that is best. `room` has room for RBT_QUADRATIC_ROOM(n). Infinite: it fell, but not to the minimum. */
#define RBT_QUADRATIC_ROOM(n) (3 * (n) * ((n) + 1))
double rbt_quadratic_solve_l1(size_t n, const double *h, const double *g, bool bias, const double *w, double l1,
                              double *d, double *room);

#endif
