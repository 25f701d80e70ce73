/* Random numbers: xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64.
 *
 * Called by whatever draws: generators, shuffles, stragglers, the simulator. Always: a stream is a function of its
 * three numbers and gives the same values on every machine. Proved by tests/unit/test_rng.c.
 */
#include "base/rng.h"

#include "base/error.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

static uint64_t splitmix(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

rbt_rng rbt_rng_stream(uint64_t seed, rbt_stream stream, uint64_t index)
{
    uint64_t state = rbt_hash_mix(rbt_hash_mix(seed, (uint64_t)stream), index);
    rbt_rng rng;
    /* Four successive splitmix values are distinct, so the forbidden all-zero state cannot come up. */
    for (int i = 0; i < 4; i++)
        rng.s[i] = splitmix(&state);
    return rng;
}

uint64_t rbt_rng_u64(rbt_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rbt_rng_below(rbt_rng *rng, uint64_t n)
{
    RBT_ASSERT(n > 0);
    /* 2^64 mod n values at the bottom would make the first residues more frequent: draw again. */
    uint64_t unfair = (0 - n) % n;
    uint64_t x;
    do
        x = rbt_rng_u64(rng);
    while (x < unfair);
    return x % n;
}

double rbt_rng_f64(rbt_rng *rng)
{
    return (double)(rbt_rng_u64(rng) >> 11) * 0x1p-53;
}

/* The natural logarithm of x in (0, 1), good to about 1e-16 relative; the C library's differs between machines in its
 * last bit, and src/math lies above this folder. x = m * 2^e, log m = 2 artanh((m - 1) / (m + 1)) as a series. */
static double log_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double z = (m - 1) / (m + 1); /* at most 0.1716 in size: 12 terms reach 2^-61 */
    double z2 = z * z;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * z2 + 1.0 / k;
    return e * 0.6931471805599453 + 2 * z * sum;
}

double rbt_rng_normal(rbt_rng *rng)
{
    /* Marsaglia's polar method; the second value of the pair is dropped so that a stream stays four words. */
    double x, square;
    do {
        x = 2 * rbt_rng_f64(rng) - 1;
        double y = 2 * rbt_rng_f64(rng) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return x * sqrt(-2 * log_of(square) / square);
}

void rbt_rng_shuffle_u32(rbt_rng *rng, uint32_t *items, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rbt_rng_below(rng, i);
        uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}
