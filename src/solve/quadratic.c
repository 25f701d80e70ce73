/* The minimum of a quadratic function. Contract in quadratic.h; proved by tests/unit/test_quadratic.c. */
#include "solve/quadratic.h"

#include <math.h>
#include <string.h>

#define FLAT   1e-14 /* of a diagonal element: less that is left of it by elimination is rounding */
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

/* The minimum over the last parameter, which has no penalty, for all values of the others: what is left is theirs. With that as a
 * mean, the others would move in its wake, by and by. */
static double eliminate(size_t m, const double *h, const double *g, double *rest, double *slope)
{
    size_t n = m + 1;
    double bend = h[m * n + m];
    for (size_t i = 0; i < m; i++) {
        double share = h[i * n + m] / bend, own = h[i * n + i];
        for (size_t k = 0; k < m; k++)
            rest[i * m + k] = h[i * n + k] - share * h[k * n + m];
        rest[i * m + i] = fmax(rest[i * m + i], FLAT * own);
        slope[i] = g[i] - share * g[m];
    }
    return g[m] * g[m] / (2 * bend);
}

double rbt_quadratic_solve_l1(size_t n, const double *h, const double *g, bool bias, const double *w, double l1,
                              double *d, double *slope, double *room)
{
    size_t m = bias ? n - 1 : n;
    double fall = 0, first = 0, gain = INFINITY;
    memset(d, 0, n * sizeof *d);
    memcpy(slope, g, n * sizeof *slope);
    if (bias)
        first = eliminate(m, h, g, room, slope);
    const double *rest = bias ? room : h;
    for (size_t sweep = 0; sweep < SWEEPS && gain > ENOUGH * (first + fall); sweep++) {
        gain = 0;
        for (size_t i = 0; i < m; i++) {
            double bend = rest[i * m + i], before = w[i] + d[i];
            double after = best_along(before, slope[i], bend, l1), by = after - before;
            if (by == 0)
                continue;
            gain -= by * slope[i] + bend * by * by / 2 + l1 * (fabs(after) - fabs(before));
            d[i] = after == 0 && l1 > 0 ? -w[i] : d[i] + by;
            for (size_t k = 0; k < m; k++)
                slope[k] += by * rest[i * m + k];
        }
        fall += gain;
    }
    if (bias) {
        double sum = g[m];
        for (size_t k = 0; k < m; k++)
            sum += h[m * n + k] * d[k];
        d[m] = -sum / h[m * n + m];
    }
    return first + fall;
}
