/* exp, log, log1p, sigmoid, softplus, log of gamma from additions, multiplications and divisions alone.
 *
 * Called by losses and models. Always: the same bits on every machine with IEEE doubles; NaN in, NaN out; no errno, no
 * exceptions to rely on. Proved by tests/unit/test_functions.c.
 *
 * exp: x = k ln 2 + r with |r| <= ln 2 / 2, then the Taylor series of exp(r) to r^13 (next term: 2^-58), then times
 * 2^k. log: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f), log(1 + f) = 2 artanh(s) = 2s + s
 * R with R = 2/3 s^2 + 2/5 s^4 + ..., written as f - (f^2/2 - s (f^2/2 + R)) so that f enters exactly. ln 2 is split
 * into a head of 32 bits, whose product with k is exact, and a tail.
 */
#include "math/functions.h"

#include <math.h>

#include "math/functions_inline.h"

double rbt_exp(double x)
{
    if (!(x < 709.8)) { /* exp(709.79) is beyond the largest double; NaN comes here too */
        return x != x ? x : (double)INFINITY;
    }
    if (x < -745.2)
        return 0;
    return rbt_exp_between(x);
}

/* Splits a positive normal number into 2^k m, m in [sqrt(1/2), sqrt(2)). */
static double split(double x, int *k)
{
    uint64_t bits = rbt_bits_of(x);
    *k = (int)(bits >> 52) - 1023;
    double m = rbt_of_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    if (m >= 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        ++*k;
    }
    return m;
}

double rbt_ln(double x)
{
    if (!(x > 0))
        return x == 0 ? -(double)INFINITY : (double)NAN;
    if (x > 0x1.fffffffffffffp+1023)
        return x;
    int shift = 0;
    if (x < 0x1p-1022) { /* too small to have its exponent in the bits */
        x *= 0x1p54;
        shift = 54;
    }
    int k;
    double m = split(x, &k);
    return rbt_log_of_parts(m - 1, k - shift, 0);
}

double rbt_log1p(double x)
{
    if (!(x > -1))
        return x == -1 ? -(double)INFINITY : (double)NAN;
    if (x > 0x1.fffffffffffffp+1023)
        return x;
    if (x > -0x1p-54 && x < 0x1p-54)
        return x; /* the rest of the series lies below half a unit; keeps -0.0 */
    if (x > -0.29 && x < 0.41)
        return rbt_log_of_parts(x, 0, 0); /* 1 + x would round */
    double sum = 1 + x;
    /* What the rounding of 1 + x lost, exactly; its share of the logarithm is lost / sum. */
    double lost = x > 1 ? 1 - (sum - x) : x - (sum - 1);
    int k;
    double m = split(sum, &k);
    return rbt_log_of_parts(m - 1, k, lost / sum);
}

double rbt_sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + rbt_exp(-x));
    double e = rbt_exp(x);
    return e / (1 + e);
}

double rbt_softplus(double x)
{
    if (x > 0)
        return x + rbt_log1p(rbt_exp(-x));
    return rbt_log1p(rbt_exp(x));
}

/* Stirling's series, from 10 on (next term: 1e-12 there); below, Gamma(x) = Gamma(x + n) / (x (x + 1) ... (x + n - 1)). */
double rbt_ln_gamma(double x)
{
    const double half_ln_2pi = 0x1.d67f1c864beb5p-1;
    double product = 1;

    if (!(x > 0))
        return x == 0 ? (double)INFINITY : (double)NAN;
    if (x > 0x1.fffffffffffffp+1023)
        return x;
    while (x < 10) {
        product *= x;
        x += 1;
    }
    double r = 1 / x;
    double r2 = r * r;
    double series = r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 * (1.0 / 1680))));
    return ((x - 0.5) * rbt_ln(x) - x) + (half_ln_2pi + series) - (product > 1 || product < 1 ? rbt_ln(product) : 0);
}
