/* A set of numbers below its size, walked in order: a bit each, so that a walk costs as much as there is in the set, and little
 * for what is not. Kept by whoever must find the few that have changed among many (table/cache.h, node/early_server.c).
 * Proved by tests/unit/test_bits.c.
 */
#ifndef RBT_BASE_BITS_H
#define RBT_BASE_BITS_H

#include <stdint.h>

#include "base/mem.h"

#define RBT_BITS_END UINT32_MAX

typedef struct rbt_bits {
    uint64_t *word;
    uint32_t size; /* 0: an empty set that nothing can be added to */
} rbt_bits;

static inline void rbt_bits_init(rbt_bits *bits, uint32_t size)
{
    *bits = (rbt_bits){.word = rbt_alloc((size_t)size / 64 + 1, sizeof *bits->word), .size = size};
}

static inline void rbt_bits_deinit(rbt_bits *bits)
{
    rbt_free(bits->word);
    *bits = (rbt_bits){0};
}

static inline void rbt_bits_add(rbt_bits *bits, uint32_t i)
{
    bits->word[i / 64] |= (uint64_t)1 << i % 64;
}

static inline void rbt_bits_remove(rbt_bits *bits, uint32_t i)
{
    bits->word[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* The least that is not below `from`; RBT_BITS_END: none. */
static inline uint32_t rbt_bits_next(const rbt_bits *bits, uint32_t from)
{
    uint64_t word;

    if (from >= bits->size)
        return RBT_BITS_END;
    word = bits->word[from / 64] >> from % 64 << from % 64;
    for (uint32_t w = from / 64;; word = bits->word[w]) {
        if (word != 0)
            return w * 64 + (uint32_t)__builtin_ctzll(word);
        if (++w > (bits->size - 1) / 64)
            return RBT_BITS_END;
    }
}

#endif
