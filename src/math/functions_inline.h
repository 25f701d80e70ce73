/* The parts that exp and log are made of, for functions.c and for kernels that take many numbers at a time.
 *
 * Always inline: they become part of loops for wider registers than the rest of the program may use. How they work stands in
 * functions.c. Proved by tests/unit/test_functions.c and test_kernels.c.
 */
#ifndef RBT_MATH_FUNCTIONS_INLINE_H
#define RBT_MATH_FUNCTIONS_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RBT_INLINE static inline __attribute__((always_inline))

static const double RBT_LN2_HEAD = 0x1.62e42feep-1;
static const double RBT_LN2_TAIL = 0x1.a39ef35793c76p-33;

RBT_INLINE uint64_t rbt_bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RBT_INLINE double rbt_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k for k in -1022 .. 1023. */
RBT_INLINE double rbt_power_of_2(int k)
{
    return rbt_of_bits((uint64_t)(k + 1023) << 52);
}

/* exp(r) for |r| <= 0.35, paired up (Estrin) so that the processor can work on several terms at once. */
RBT_INLINE double rbt_exp_small(double r, double correction)
{
    double r2 = r * r;
    double r4 = r2 * r2;
    double low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    double middle = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    double high = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800));
    return 1 + (r + (correction + r2 * (low + r4 * (middle + r4 * high))));
}

/* log(2^k (1 + f)) + correction. */
RBT_INLINE double rbt_log_of_parts(double f, double k, double correction)
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
    return k * RBT_LN2_HEAD - ((half_square - (s * (half_square + series) + (k * RBT_LN2_TAIL + correction))) - f);
}

/* exp(x) for x from -745.2 to 709.8; for others nothing that means anything. Adding and taking away 1.5 * 2^52 rounds to the nearest
 * whole number, which in between stands in the low bits. Near the ends 2^k is no normal double: two steps, of which the last rounds
 * once. */
RBT_INLINE double rbt_exp_between(double x)
{
    double rounded = x * 0x1.71547652b82fep+0 + 0x1.8p52;
    int exponent = (int32_t)(uint32_t)rbt_bits_of(rounded), half = exponent / 2;
    double k = rounded - 0x1.8p52;
    double head = x - k * RBT_LN2_HEAD;
    double tail = k * RBT_LN2_TAIL;
    double r = head - tail;
    return rbt_exp_small(r, (head - r) - tail) * rbt_power_of_2(half) * rbt_power_of_2(exponent - half);
}

/* log1p(x) for 0 <= x <= 1, without branches. */
RBT_INLINE double rbt_log1p_below(double x)
{
    double sum = 1 + x;
    bool small = x < 0.41, halved = sum >= 0x1.6a09e667f3bcdp+0;
    double m = halved ? sum * 0.5 : sum, lost = (x - (sum - 1)) / sum;
    return rbt_log_of_parts(small ? x : m - 1, halved ? 1 : 0, small ? 0 : lost);
}

/* The kernel of that name, compiled by each variant for its registers. */
RBT_INLINE void rbt_logistic(const double *restrict z, const double *restrict y, size_t n, double *restrict loss,
                             double *restrict slope, double *restrict bend)
{
    for (size_t i = 0; i < n; i++) {
        double x = -y[i] * z[i], far = x < 0 ? x : -x, e = far < -745.2 ? 0 : rbt_exp_between(far);
        loss[i] = (x > 0 ? x : 0) + rbt_log1p_below(e);
        if (slope == NULL)
            continue;
        double here = 1 / (1 + e), there = e / (1 + e);
        slope[i] = -y[i] * (x < 0 ? there : here);
        bend[i] = here * there;
    }
}

#endif
