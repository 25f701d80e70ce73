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
#include <stdint.h>
#include <string.h>

static const double LN2_HEAD = 0x1.62e42feep-1;
static const double LN2_TAIL = 0x1.a39ef35793c76p-33;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k for k in -1022 .. 1023. */
static double power_of_2(int k)
{
    return of_bits((uint64_t)(k + 1023) << 52);
}

/* exp(r) for |r| <= 0.35, paired up (Estrin) so that the processor can work on several terms at once. */
static double exp_small(double r, double correction)
{
    double r2 = r * r;
    double r4 = r2 * r2;
    double low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    double middle = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    double high = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800));
    return 1 + (r + (correction + r2 * (low + r4 * (middle + r4 * high))));
}

double rbt_exp(double x)
{
    if (!(x < 709.8)) { /* exp(709.79) is beyond the largest double; NaN comes here too */
        return x != x ? x : (double)INFINITY;
    }
    if (x < -745.2)
        return 0;
    /* Adding and taking away 1.5 * 2^52 rounds to the nearest whole number. */
    const double round = 0x1.8p52;
    double k = (x * 0x1.71547652b82fep+0 + round) - round;
    double head = x - k * LN2_HEAD;
    double tail = k * LN2_TAIL;
    double r = head - tail;
    double y = exp_small(r, (head - r) - tail);
    /* Near the ends 2^k is no normal double: two steps, of which the last rounds once. */
    int exponent = (int)k;
    int half = exponent / 2;
    return y * power_of_2(half) * power_of_2(exponent - half);
}

/* log(2^k (1 + f)) + correction. */
static double log_of_parts(double f, double k, double correction)
{
    double s = f / (2 + f);
    double z = s * s;
    double z2 = z * z;
    double z4 = z2 * z2;
    double low = (2.0 / 3 + z * (2.0 / 5)) + z2 * (2.0 / 7 + z * (2.0 / 9));
    double middle = (2.0 / 11 + z * (2.0 / 13)) + z2 * (2.0 / 15 + z * (2.0 / 17));
    double high = 2.0 / 19 + z * (2.0 / 21);
    double series = z * (low + z4 * (middle + z4 * high));
    double half_square = 0.5 * f * f;
    return k * LN2_HEAD - ((half_square - (s * (half_square + series) + (k * LN2_TAIL + correction))) - f);
}

/* Splits a positive normal number into 2^k m, m in [sqrt(1/2), sqrt(2)). */
static double split(double x, int *k)
{
    uint64_t bits = bits_of(x);
    *k = (int)(bits >> 52) - 1023;
    double m = of_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
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
    return log_of_parts(m - 1, k - shift, 0);
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
        return log_of_parts(x, 0, 0); /* 1 + x would round */
    double sum = 1 + x;
    /* What the rounding of 1 + x lost, exactly; its share of the logarithm is lost / sum. */
    double lost = x > 1 ? 1 - (sum - x) : x - (sum - 1);
    int k;
    double m = split(sum, &k);
    return log_of_parts(m - 1, k, lost / sum);
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
