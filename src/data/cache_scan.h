/* Going over the arrays of a cache once: the hashes of their blocks, and whether they keep the promises of data.h.
 *
 * Called by cache.c. Always holds: nothing outside the arrays is touched, whatever is in them. Proved by
 * tests/unit/test_datacache.c and tests/fuzz/fuzz_cache.c.
 */
#ifndef RBT_DATA_CACHE_SCAN_H
#define RBT_DATA_CACHE_SCAN_H

#include "data/cache.h"

/* The arrays of a cache, in the order of the file: start, index, value, label, weight, names, source. */
#define RBT_CACHE_SECTIONS 7

typedef struct rbt_cache_section {
    const unsigned char *at;
    size_t bytes;
} rbt_cache_section;

/* Fills what the look found from the blocks and the rows that it says. */
void rbt_cache_scan(const rbt_data *data, const rbt_cache_section sections[RBT_CACHE_SECTIONS], rbt_cache_look *look);

#endif
