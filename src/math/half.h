/* Half precision (IEEE 754 binary16) as 16 bits: 11 bits of mantissa, 2^-24 to 65504. In integers, so that every machine gives
 * the same bits.
 *
 * rbt_half_of rounds to the nearest (ties to even); what is finite stays finite: larger numbers become 65504. rbt_half_to is
 * exact. For every finite x with |x| <= 65504, x - rbt_half_to(rbt_half_of(x)) is exact in f32, too: nothing is lost when the
 * rest is kept (table/cache.h). Proved by tests/unit/test_half.c. */
#ifndef RBT_MATH_HALF_H
#define RBT_MATH_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t rbt_half_of(float x)
{
    uint32_t bits, sign, size;
    float small;

    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    size = bits & 0x7fffffff;
    if (size > 0x7f800000) /* NaN */
        return (uint16_t)(sign | 0x7e00);
    if (size == 0x7f800000)
        return (uint16_t)(sign | 0x7c00);
    if (size >= 0x477fe000) /* 65504 and above */
        return (uint16_t)(sign | 0x7bff);
    if (size < 0x38800000) { /* below 2^-14: multiples of 2^-24, which is what 1/2 + x has, too */
        memcpy(&small, &size, sizeof small);
        small += 0.5f;
        memcpy(&size, &small, sizeof size);
        return (uint16_t)(sign | (size - 0x3f000000));
    }
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (size - 0x38000000) >> 13);
}

static inline float rbt_half_to(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff, bits;
    float x;

    if (exponent == 0) {
        x = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &x, sizeof bits);
    } else {
        bits = (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13;
    }
    bits |= sign;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Is it one that half precision has, bit for bit? */
static inline bool rbt_half_has(float x)
{
    float same = rbt_half_to(rbt_half_of(x));
    uint32_t bits, same_bits;

    memcpy(&bits, &x, sizeof bits);
    memcpy(&same_bits, &same, sizeof same_bits);
    return bits == same_bits;
}

#endif
