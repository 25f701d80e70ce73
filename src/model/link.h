/* Links: the loss of one row as a function of its decision value z, and what solvers need to know about it.
 *
 * y is what the row asks for: -1 or +1 for two classes, else the number. Called by linear.c and by src/solve. Always
 * holds: slope is the derivative of loss (a subgradient where there is a corner), bend is never above `steepest`, and all
 * give the same bits on every machine. Proved by tests/unit/test_link.c.
 */
#ifndef RBT_MODEL_LINK_H
#define RBT_MODEL_LINK_H

#include "rubato.h"

typedef struct rbt_link {
    double steepest; /* the largest second derivative; infinite when the slope jumps */
    double (*loss)(double z, double y, double delta);
    double (*slope)(double z, double y, double delta);

    /* Loss and slope, and the bend: the second derivative, 0 at corners; huber: that of the parabola above. */
    double (*derive)(double z, double y, double delta, double *slope, double *bend);

    /* The dual coordinate step: the a' with a' = -slope(z + q (a' - a)), for q >= 0. A row's dual variable is minus its
     * slope at the optimum; the step makes it so at once for this row, given that z moves along by q (a' - a). */
    double (*dual)(double a, double z, double y, double q, double delta);

    /* The convex conjugate at -a: the largest of -a z - loss(z) over z. For a as `dual` gives them. */
    double (*conjugate)(double a, double y, double delta);
} rbt_link;

#define RBT_LINK_ROWS 128 /* are enough at once, and have room on the stack */

/* What `loss` gives of n rows at once, or `derive` unless slope is NULL: the same bits, logistic's several times as fast. */
void rbt_link_all(const rbt_link *link, size_t n, const double *z, const double *y, double delta, double *loss,
                  double *slope, double *bend);

extern const rbt_link rbt_link_logistic;
extern const rbt_link rbt_link_hinge;
extern const rbt_link rbt_link_squared_hinge;
extern const rbt_link rbt_link_squares; /* (z - y)^2 / 2 */
extern const rbt_link rbt_link_huber;   /* squares up to an error of delta, then linear */

/* What row r asks for. Labels are class numbers (rbt_shape_apply). */
static inline double rbt_link_target(const rbt_shape *shape, const rbt_data *data, size_t row)
{
    double label = (double)data->label[row];
    return shape->classes == 2 ? (label > 0 ? 1 : -1) : label;
}

#endif
