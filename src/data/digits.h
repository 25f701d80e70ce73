/* Digits, up to eight at a time in one word: what the text readers' fastest ways are made of.
 *
 * Called by number.c and libsvm.c. Always holds: the same on every machine, and nothing but digits passes. Proved by
 * tests/unit/test_number.c and, within rows, test_libsvm.c.
 */
#ifndef RBT_DATA_DIGITS_H
#define RBT_DATA_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RBT_DIGITS_BYTES(b) (UINT64_C(0x0101010101010101) * (unsigned char)(b))

/* Eight bytes of text, the first one lowest. */
static inline uint64_t rbt_digits_load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* How many bytes come before the first `wanted`; 8: there is none. */
static inline unsigned rbt_digits_find(uint64_t word, char wanted)
{
    uint64_t x = word ^ RBT_DIGITS_BYTES(wanted);
    uint64_t zero = (x - RBT_DIGITS_BYTES(1)) & ~x & RBT_DIGITS_BYTES(0x80); /* right up to the first */
    return zero != 0 ? (unsigned)__builtin_ctzll(zero) / 8 : 8;
}

/* The number whose digits are the first n bytes, 1 <= n <= 8; false: they are not all digits. */
static inline bool rbt_digits_parse(uint64_t word, unsigned n, uint32_t *number)
{
    uint64_t d = (word ^ RBT_DIGITS_BYTES('0')) << (64 - 8 * n); /* zeros in front */
    if (((d + RBT_DIGITS_BYTES(0x76)) | d) & RBT_DIGITS_BYTES(0x80))
        return false;
    d = (d * 10 + (d >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    d = (d * 100 + (d >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *number = (uint32_t)(d * 10000 + (d >> 32));
    return true;
}

#endif
