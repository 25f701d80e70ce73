/* The minimum of a quadratic function. Contract in quadratic.h; proved by tests/unit/test_quadratic.c. */
#include "solve/quadratic.h"

#include <math.h>
#include <string.h>

#define FLAT   1e-14 /* of a diagonal element: less that is left of it by elimination is rounding */
#define SWEEPS 10000
#define JOINT  8     /* sweeps, after which all parameters that are not 0 are moved together */
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

/* Cholesky's U^T U = H into the upper triangle, all lines above taken away from each; one of zeros stands for a
 * parameter that others make up for: it is not moved. */
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

/* The minimum over the last parameter, which has no penalty, for all values of the others: what is left is theirs. With
 * that as a mean, the others would move in its wake, by and by. */
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

/* The way with a penalty: m parameters at w + d, the slopes of the smooth part there, and H without the bias. */
typedef struct way {
    size_t m;
    const double *rest, *w;
    double l1;
    double *d, *slope;
} way;

static void move(way *y, size_t i, double by)
{
    for (size_t k = 0; k < y->m; k++)
        y->slope[k] += by * y->rest[i * y->m + k];
}

/* Sets one after the other to where it is best; what that brings. */
static double sweep(way *y)
{
    double gain = 0;
    for (size_t i = 0; i < y->m; i++) {
        double bend = y->rest[i * y->m + i], before = y->w[i] + y->d[i];
        double after = best_along(before, y->slope[i], bend, y->l1), by = after - before;
        if (by == 0)
            continue;
        gain -= by * y->slope[i] + bend * by * by / 2 + y->l1 * (fabs(after) - fabs(before));
        y->d[i] = after == 0 && y->l1 > 0 ? -y->w[i] : y->d[i] + by;
        move(y, i, by);
    }
    return gain;
}

/* The parameters that are not 0 as a problem of their own, with their signs as they are; how many there are. */
static size_t narrow(const way *y, double *h, double *slope)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < y->m; i++)
        if (y->w[i] + y->d[i] != 0)
            slope[n++] = y->slope[i] + (y->w[i] + y->d[i] > 0 ? y->l1 : -y->l1);
    for (size_t i = 0; i < y->m; i++)
        for (size_t j = 0; y->w[i] + y->d[i] != 0 && j < y->m; j++)
            if (y->w[j] + y->d[j] != 0)
                h[k++] = y->rest[i * y->m + j];
    return n;
}

/* Those that are not 0 go together to where they would be best if none changed its sign, but only until the first one
 * is 0: true, the others can go on. Adds what that brings. Where parameters nearly make up for each other, one after
 * the other would take for ever. */
static bool move_together(way *y, double *room, double *gain)
{
    size_t m = y->m, first = m;
    double *h = room, *factor = h + m * m, *by = factor + m * m, *slope = by + m, share = 1, along = 0;
    (void)rbt_quadratic_solve(narrow(y, h, slope), h, slope, by, factor);
    for (size_t i = 0, at = 0; i < m; i++) {
        double here = y->w[i] + y->d[i];
        if (here == 0)
            continue;
        along -= by[at] * slope[at];
        if ((here + share * by[at]) * here < 0) {
            share = -here / by[at];
            first = i;
        }
        at++;
    }
    for (size_t i = 0, at = 0; i < m; i++) {
        if (y->w[i] + y->d[i] == 0)
            continue;
        move(y, i, share * by[at]);
        y->d[i] = i == first ? -y->w[i] : y->d[i] + share * by[at];
        at++;
    }
    *gain += along * (share - share * share / 2);
    return first < m;
}

double rbt_quadratic_solve_l1(size_t n, const double *h, const double *g, bool bias, const double *w, double l1,
                              double *d, double *room)
{
    size_t m = bias ? n - 1 : n, sweeps = 0;
    double fall = 0, first = 0, gain = INFINITY;
    way y = {.m = m, .rest = bias ? room : h, .w = w, .l1 = l1, .d = d, .slope = room + n * n};
    memset(d, 0, n * sizeof *d);
    memcpy(y.slope, g, n * sizeof *g);
    if (bias)
        first = eliminate(m, h, g, room, y.slope);
    for (; sweeps < SWEEPS && gain > ENOUGH * (first + fall); sweeps++) {
        gain = sweep(&y);
        for (bool more = sweeps % JOINT == JOINT - 1; more;)
            more = move_together(&y, y.slope + n, &gain);
        fall += gain;
    }
    if (bias) {
        double sum = g[m];
        for (size_t k = 0; k < m; k++)
            sum += h[m * n + k] * d[k];
        d[m] = -sum / h[m * n + m];
    }
    return sweeps < SWEEPS ? first + fall : INFINITY;
}
