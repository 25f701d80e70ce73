/* The losses; the contract is in link.h. */
#include "model/link.h"

#include <math.h>

#include "math/functions.h"

#define NEWTON_STEPS 20
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

static double logistic_bend(double z, double y, double delta)
{
    double p = rbt_sigmoid(z);
    (void)y, (void)delta;
    return p * (1 - p);
}

/* With m = y z and t = y a the wanted t' in (0, 1) has t' = sigmoid(-(m + q (t' - t))). Newton on the difference, which
 * grows in t' by at least 1; a step that leaves the bracket is replaced by its middle. */
static double logistic_dual(double a, double z, double y, double q, double delta)
{
    double m = y * z, t = y * a, low = 0, high = 1, x = t;
    (void)delta;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double p = rbt_sigmoid(-(m + q * (x - t))), gap = x - p, next;
        if (gap > 0)
            high = x;
        else
            low = x;
        next = x - gap / (1 + q * p * (1 - p));
        if (!(next > low && next < high))
            next = (low + high) / 2;
        if (fabs(next - x) <= NEWTON_CLOSE)
            return y * next;
        x = next;
    }
    return y * x;
}

const rbt_link rbt_link_logistic = {
    .steepest = 0.25, .loss = logistic_loss, .slope = logistic_slope, .bend = logistic_bend, .dual = logistic_dual};

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

static double no_bend(double z, double y, double delta)
{
    (void)z, (void)y, (void)delta;
    return 0;
}

static double hinge_dual(double a, double z, double y, double q, double delta)
{
    (void)delta;
    if (q <= 0) /* an empty row: z stays */
        return -hinge_slope(z, y, delta);
    return y * clamp(y * a + (1 - y * z) / q, 0, 1);
}

const rbt_link rbt_link_hinge = {
    .steepest = INFINITY, .loss = hinge_loss, .slope = hinge_slope, .bend = no_bend, .dual = hinge_dual};

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

static double squared_hinge_bend(double z, double y, double delta)
{
    (void)delta;
    return y * z < 1 ? 2 : 0;
}

static double squared_hinge_dual(double a, double z, double y, double q, double delta)
{
    double t = y * a + (2 * (1 - y * z) - y * a) / (1 + 2 * q);
    (void)delta;
    return t > 0 ? y * t : 0;
}

const rbt_link rbt_link_squared_hinge = {.steepest = 2,
                                         .loss = squared_hinge_loss,
                                         .slope = squared_hinge_slope,
                                         .bend = squared_hinge_bend,
                                         .dual = squared_hinge_dual};

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

static double squares_bend(double z, double y, double delta)
{
    (void)z, (void)y, (void)delta;
    return 1;
}

static double squares_dual(double a, double z, double y, double q, double delta)
{
    (void)delta;
    return a - (a + z - y) / (1 + q);
}

const rbt_link rbt_link_squares = {
    .steepest = 1, .loss = squares_loss, .slope = squares_slope, .bend = squares_bend, .dual = squares_dual};

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

static double huber_bend(double z, double y, double delta)
{
    return fabs(z - y) <= delta ? 1 : 0;
}

static double huber_dual(double a, double z, double y, double q, double delta)
{
    return clamp(squares_dual(a, z, y, q, delta), -delta, delta);
}

const rbt_link rbt_link_huber = {
    .steepest = 1, .loss = huber_loss, .slope = huber_slope, .bend = huber_bend, .dual = huber_dual};
