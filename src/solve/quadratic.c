/* The minimum of a quadratic function. Contract in quadratic.h; proved by tests/unit/test_quadratic.c. */
#include "solve/quadratic.h"

#include <math.h>
#include <string.h>

#define FLAT   1e-14 /* of a diagonal element: less that is left of it by elimination is rounding */
#define SWEEPS 10000
#define ENOUGH 1e-12 /* of the fall so far is what a sweep must bring */

/* to -= by * what, from one to n. */
static void take_away(size_t from, size_t n, double by, const double *restrict what, double *restrict to)
{
    for (size_t k = from; k < n; k++)
        to[k] -= by * what[k];
}

/* The same of four that stand below each other, one after another. */
static void take_away_four(size_t from, size_t n, const double by[4], const double *restrict what, double *restrict to)
{
    const double *restrict second = what + n, *restrict third = second + n, *restrict fourth = third + n;
    for (size_t k = from; k < n; k++)
        to[k] = to[k] - by[0] * what[k] - by[1] * second[k] - by[2] * third[k] - by[3] * fourth[k];
}

/* Cholesky's U^T U = H into the upper triangle, all lines above taken away from each; one of zeros stands for a parameter that
 * others make up for: it is not moved. */
static void factorise(size_t n, const double *h, double *u)
{
    for (size_t i = 0; i < n; i++) {
        double *line = u + i * n;
        size_t j = 0;
        memcpy(line + i, h + i * n + i, (n - i) * sizeof *line);
        for (; j + 4 <= i; j += 4) {
            const double *above = u + j * n;
            take_away_four(i, n, (double[]){above[i], above[n + i], above[2 * n + i], above[3 * n + i]}, above, line);
        }
        for (; j < i; j++)
            take_away(i, n, u[j * n + i], u + j * n, line);
        double root = line[i] > FLAT * h[i * n + i] ? sqrt(line[i]) : 0;
        line[i] = root;
        for (size_t k = i + 1; k < n; k++)
            line[k] = root > 0 ? line[k] / root : 0;
    }
}

double rbt_quadratic_solve(size_t n, const double *h, const double *g, double *d, double *factor)
{
    const double *u = factor;
    double fall = 0;
    factorise(n, h, factor);
    for (size_t i = 0; i < n; i++)
        d[i] = -g[i];
    for (size_t i = 0; i < n; i++) {
        d[i] = u[i * n + i] > 0 ? d[i] / u[i * n + i] : 0;
        take_away(i + 1, n, d[i], u + i * n, d);
        fall += d[i] * d[i] / 2;
    }
    for (size_t i = n; i-- > 0;) {
        double sum = d[i];
        for (size_t k = i + 1; k < n; k++)
            sum -= u[i * n + k] * d[k];
        d[i] = u[i * n + i] > 0 ? sum / u[i * n + i] : 0;
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
