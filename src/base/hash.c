/* Hashes: libxxhash's XXH3 behind our names, and a mixer of two numbers.
 *
 * Called by file formats (checksums), jobs (param_hash), placement and seeds. Always: the same bytes give the same
 * value on every machine. Proved by tests/unit/test_hash.c.
 */
#include "base/hash.h"

#include "base/error.h"
#include "base/mem.h"

#include <xxhash.h>

#if defined __x86_64__ && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h> /* the same functions, made for what the processor has */

__attribute__((target("avx"))) static void clear_wide_registers(void)
{
    __builtin_ia32_vzeroupper();
}

/* They leave the upper halves of wide registers in use, which would slow down all narrow arithmetic after them. */
static void come_back(void)
{
    if (__builtin_cpu_supports("avx"))
        clear_wide_registers();
}
#else
static void come_back(void)
{
}
#endif

struct rbt_hasher {
    XXH3_state_t *state;
};

uint64_t rbt_hash(const void *bytes, size_t n, uint64_t seed)
{
    uint64_t hash = XXH3_64bits_withSeed(bytes, n, seed);
    come_back();
    return hash;
}

rbt_hasher *rbt_hasher_create(uint64_t seed)
{
    rbt_hasher *hasher = rbt_alloc(1, sizeof *hasher);
    hasher->state = XXH3_createState();
    RBT_ASSERT(hasher->state != NULL);
    RBT_ASSERT(XXH3_64bits_reset_withSeed(hasher->state, seed) == XXH_OK);
    return hasher;
}

void rbt_hasher_add(rbt_hasher *hasher, const void *bytes, size_t n)
{
    if (n == 0)
        return; /* bytes may be NULL then, which xxHash counts as an error */
    RBT_ASSERT(XXH3_64bits_update(hasher->state, bytes, n) == XXH_OK);
    come_back();
}

uint64_t rbt_hasher_value(const rbt_hasher *hasher)
{
    return XXH3_64bits_digest(hasher->state);
}

void rbt_hasher_destroy(rbt_hasher *hasher)
{
    if (hasher == NULL)
        return;
    XXH3_freeState(hasher->state);
    rbt_free(hasher);
}

/* splitmix64's finaliser: a bijection in which every input bit reaches every output bit. */
static uint64_t finalise(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t rbt_hash_mix(uint64_t a, uint64_t b)
{
    /* The constant (the golden ratio) moves the fixed point 0 away; the order of a and b matters. */
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    return finalise(finalise(a + golden) + b + golden);
}
