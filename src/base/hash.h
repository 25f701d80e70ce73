/* Checksums and hashes: xxHash (XXH3, 64 bits). Proved by tests/unit/test_hash.c. */
#ifndef RBT_BASE_HASH_H
#define RBT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t rbt_hash(const void *bytes, size_t n, uint64_t seed);

/* For data that comes in pieces: the result equals rbt_hash over their concatenation. */
typedef struct rbt_hasher rbt_hasher;
rbt_hasher *rbt_hasher_create(uint64_t seed);
void rbt_hasher_add(rbt_hasher *hasher, const void *bytes, size_t n);
uint64_t rbt_hasher_value(const rbt_hasher *hasher);
void rbt_hasher_destroy(rbt_hasher *hasher);

/* Mixes two numbers into one hash (for placement and seeds). */
uint64_t rbt_hash_mix(uint64_t a, uint64_t b);

#endif
