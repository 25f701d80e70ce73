/* The losses; the contract is in link.h. */
#include "model/link.h"

#include <math.h>

#include "math/functions.h"
#include "math/kernels.h"

#define NEWTON_STEPS 60 /* enough for halving alone; two or three are usual */
#define NEWTON_CLOSE 1e-7

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* ---------------------------------------------------------------------------------------------------- logistic */

static double logistic_loss(double z, double y, double delta)
{
    (void)delta;
    return rbt_softplus(-y * z);
}

static double logistic_slope(double z, double y, double delta)
{
    (void)delta;
    return -y * rbt_sigmoid(-y * z);
}

/* Of one exponential, where the three would take one each; loss and slope have the same bits as above. */
static double logistic_derive(double z, double y, double delta, double *slope, double *bend)
{
    double x = -y * z, e = rbt_exp(x < 0 ? x : -x), near = 1 / (1 + e), far = e / (1 + e);
    (void)delta;
    *slope = -y * (x < 0 ? far : near);
    *bend = near * far;
    return x > 0 ? x + rbt_log1p(e) : rbt_log1p(e);
}

/* With m = y z and t = y a the wanted t' in (0, 1) has t' = sigmoid(-(m + q (t' - t))). Newton on the difference, which
 * grows in t' by at least 1; a step that leaves the bracket, or that is not half the one before (Newton may go to and
 * fro for ever), is replaced by the bracket's middle. */
static double logistic_dual(double a, double z, double y, double q, double delta)
{
    double m = y * z, t = y * a, low = 0, high = 1, x = t, before = 2;
    (void)delta;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double p = rbt_sigmoid(-(m + q * (x - t))), gap = x - p, step = gap / (1 + q * p * (1 - p)), next = x - step;
        if (fabs(step) <= NEWTON_CLOSE) /* before looking at the bracket: the root itself is an end of it */
            return y * clamp(next, 0, 1);
        if (gap > 0)
            high = x;
        else
            low = x;
        if (!(next > low && next < high) || 2 * fabs(step) > before)
            next = (low + high) / 2;
        before = fabs(next - x);
        x = next;
    }
    return y * x;
}

/* t log t, continued to 0. */
static double entropy(double t)
{
    return t > 0 ? t * rbt_ln(t) : 0;
}

static double logistic_conjugate(double a, double y, double delta)
{
    double t = clamp(y * a, 0, 1);
    (void)delta;
    return entropy(t) + entropy(1 - t);
}

const rbt_link rbt_link_logistic = {.steepest = 0.25,
                                    .loss = logistic_loss,
                                    .slope = logistic_slope,
                                    .derive = logistic_derive,
                                    .dual = logistic_dual,
                                    .conjugate = logistic_conjugate};

/* ------------------------------------------------------------------------------------------------------- hinge */

static double hinge_loss(double z, double y, double delta)
{
    (void)delta;
    return y * z < 1 ? 1 - y * z : 0;
}

static double hinge_slope(double z, double y, double delta)
{
    (void)delta;
    return y * z < 1 ? -y : 0;
}

static double hinge_derive(double z, double y, double delta, double *slope, double *bend)
{
    *slope = hinge_slope(z, y, delta);
    *bend = 0;
    return hinge_loss(z, y, delta);
}

static double hinge_dual(double a, double z, double y, double q, double delta)
{
    (void)delta;
    if (q <= 0) /* an empty row: z stays */
        return -hinge_slope(z, y, delta);
    return y * clamp(y * a + (1 - y * z) / q, 0, 1);
}

static double hinge_conjugate(double a, double y, double delta)
{
    (void)delta;
    return -y * a;
}

const rbt_link rbt_link_hinge = {.steepest = INFINITY,
                                 .loss = hinge_loss,
                                 .slope = hinge_slope,
                                 .derive = hinge_derive,
                                 .dual = hinge_dual,
                                 .conjugate = hinge_conjugate};

/* ----------------------------------------------------------------------------------------------- squared hinge */

static double squared_hinge_loss(double z, double y, double delta)
{
    double short_by = 1 - y * z;
    (void)delta;
    return short_by > 0 ? short_by * short_by : 0;
}

static double squared_hinge_slope(double z, double y, double delta)
{
    double short_by = 1 - y * z;
    (void)delta;
    return short_by > 0 ? -2 * y * short_by : 0;
}

static double squared_hinge_derive(double z, double y, double delta, double *slope, double *bend)
{
    *slope = squared_hinge_slope(z, y, delta);
    *bend = y * z < 1 ? 2 : 0;
    return squared_hinge_loss(z, y, delta);
}

static double squared_hinge_dual(double a, double z, double y, double q, double delta)
{
    double t = y * a + (2 * (1 - y * z) - y * a) / (1 + 2 * q);
    (void)delta;
    return t > 0 ? y * t : 0;
}

static double squared_hinge_conjugate(double a, double y, double delta)
{
    (void)delta;
    return -y * a + a * a / 4;
}

const rbt_link rbt_link_squared_hinge = {.steepest = 2,
                                         .loss = squared_hinge_loss,
                                         .slope = squared_hinge_slope,
                                         .derive = squared_hinge_derive,
                                         .dual = squared_hinge_dual,
                                         .conjugate = squared_hinge_conjugate};

/* ----------------------------------------------------------------------------------------------------- squares */

static double squares_loss(double z, double y, double delta)
{
    (void)delta;
    return (z - y) * (z - y) / 2;
}

static double squares_slope(double z, double y, double delta)
{
    (void)delta;
    return z - y;
}

static double squares_derive(double z, double y, double delta, double *slope, double *bend)
{
    *slope = squares_slope(z, y, delta);
    *bend = 1;
    return squares_loss(z, y, delta);
}

static double squares_dual(double a, double z, double y, double q, double delta)
{
    (void)delta;
    return a - (a + z - y) / (1 + q);
}

static double squares_conjugate(double a, double y, double delta)
{
    (void)delta;
    return a * a / 2 - a * y;
}

const rbt_link rbt_link_squares = {.steepest = 1,
                                   .loss = squares_loss,
                                   .slope = squares_slope,
                                   .derive = squares_derive,
                                   .dual = squares_dual,
                                   .conjugate = squares_conjugate};

/* ------------------------------------------------------------------------------------------------------- huber */

static double huber_loss(double z, double y, double delta)
{
    double error = fabs(z - y);
    return error <= delta ? error * error / 2 : delta * (error - delta / 2);
}

static double huber_slope(double z, double y, double delta)
{
    return clamp(z - y, -delta, delta);
}

static double huber_derive(double z, double y, double delta, double *slope, double *bend)
{
    double error = fabs(z - y);
    *slope = huber_slope(z, y, delta);
    *bend = error <= delta ? 1 : delta / error; /* with 0, rows far off would not be felt at all */
    return huber_loss(z, y, delta);
}

static double huber_dual(double a, double z, double y, double q, double delta)
{
    return clamp(squares_dual(a, z, y, q, delta), -delta, delta);
}

const rbt_link rbt_link_huber = {.steepest = 1,
                                 .loss = huber_loss,
                                 .slope = huber_slope,
                                 .derive = huber_derive,
                                 .dual = huber_dual,
                                 .conjugate = squares_conjugate};

/* -------------------------------------------------------------------------------------------------- many at once */

void rbt_link_all(const rbt_link *link, size_t n, const double *z, const double *y, double delta, double *loss,
                  double *slope, double *bend)
{
    if (link == &rbt_link_logistic) {
        rbt_kernels_best()->logistic(z, y, n, loss, slope, bend);
        return;
    }
    for (size_t i = 0; i < n; i++)
        loss[i] = slope != NULL ? link->derive(z[i], y[i], delta, &slope[i], &bend[i]) : link->loss(z[i], y[i], delta);
}
