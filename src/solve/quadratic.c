/* The minimum of a quadratic function. Contract in quadratic.h; proved by tests/unit/test_quadratic.c. */
#include "solve/quadratic.h"

#include <math.h>
#include <string.h>

#define FLAT   1e-11 /* of a diagonal element: less that is left of it by elimination is rounding */
#define SWEEPS 10000
#define ENOUGH 1e-12 /* of the fall so far is what a sweep must bring */

/* Cholesky's L L^T = H into the lower triangle, row by row; a row of zeros stands for a parameter that others make up for. */
static void factorise(size_t n, const double *h, double *l)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = h[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            if (j < i)
                l[i * n + j] = l[j * n + j] > 0 ? sum / l[j * n + j] : 0;
            else
                l[i * n + i] = sum > FLAT * h[i * n + i] ? sqrt(sum) : 0;
        }
    for (size_t i = 0; i < n; i++)
        if (l[i * n + i] == 0)
            memset(l + i * n, 0, i * sizeof *l);
}

double rbt_quadratic_solve(size_t n, const double *h, const double *g, double *d, double *factor)
{
    const double *l = factor;
    double fall = 0;
    factorise(n, h, factor);
    for (size_t i = 0; i < n; i++) {
        double sum = -g[i];
        for (size_t k = 0; k < i; k++)
            sum -= l[i * n + k] * d[k];
        d[i] = l[i * n + i] > 0 ? sum / l[i * n + i] : 0;
        fall += d[i] * d[i] / 2;
    }
    for (size_t i = n; i-- > 0;) {
        double sum = d[i];
        for (size_t k = i + 1; k < n; k++)
            sum -= l[k * n + i] * d[k];
        d[i] = l[i * n + i] > 0 ? sum / l[i * n + i] : 0;
    }
    return fall;
}

/* Along one parameter, that is at `w`, with the slope of the smooth part. */
static double best_along(double w, double slope, double bend, double l1)
{
    double free = w - slope / bend, by = l1 / bend;
    return free > by ? free - by : free < -by ? free + by : 0;
}

double rbt_quadratic_solve_l1(size_t n, const double *h, const double *g, size_t penalised, const double *w, double l1,
                              double *d, double *slope)
{
    double fall = 0, gain = INFINITY;
    memset(d, 0, n * sizeof *d);
    memcpy(slope, g, n * sizeof *slope);
    for (size_t sweep = 0; sweep < SWEEPS && gain > ENOUGH * fall; sweep++) {
        gain = 0;
        for (size_t i = 0; i < n; i++) {
            double bend = h[i * n + i], before = w[i] + d[i], penalty = i < penalised ? l1 : 0;
            double after = best_along(before, slope[i], bend, penalty), by = after - before;
            if (by == 0)
                continue;
            gain -= by * slope[i] + bend * by * by / 2 + penalty * (fabs(after) - fabs(before));
            d[i] = after == 0 && penalty > 0 ? -w[i] : d[i] + by;
            for (size_t k = 0; k < n; k++)
                slope[k] += by * h[i * n + k];
        }
        fall += gain;
    }
    return fall;
}
