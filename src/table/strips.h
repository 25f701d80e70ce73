/* Strips: which pieces of a block have changed since they were sent.
 *
 * A strip is `width` elements of a dense block: a row of the table if rows are short, else a piece of one. Kept by the
 * worker for its update buffer (cache.h) and by servers for what readers have not been told (node/early.c), in jobs with
 * --budget only. A strip is in `list` exactly if it is dirty (since > 0). Proved by tests/unit/test_budget.c.
 */
#ifndef RBT_TABLE_STRIPS_H
#define RBT_TABLE_STRIPS_H

#include "base/mem.h"
#include "table/layout.h"
#include "table/snap.h"

#define RBT_STRIP_ELEMENTS 1024u /* at the most */

typedef struct rbt_strips {
    uint32_t width;           /* 0: not kept */
    uint32_t length;          /* elements of the block */
    uint64_t count;           /* times that a strip became dirty */
    uint64_t *since;          /* per strip: `count` at that time; 0: it is clean */
    double *change;           /* per strip: the sum of the magnitudes of its changes, as far as they were told */
    RBT_ARRAY(uint32_t) list; /* dirty ones */
} rbt_strips;

/* The width for a table; 0 for a sparse one, whose blocks have no strips. */
uint32_t rbt_strip_width(const rbt_layout *layout);

void rbt_strips_init(rbt_strips *strips, uint32_t length, uint32_t width);
void rbt_strips_deinit(rbt_strips *strips);

/* Elements offset .. offset + n - 1 have changed, or those that an update stores, by its values. */
void rbt_strips_touch(rbt_strips *strips, uint32_t offset, uint32_t n);
void rbt_strips_add(rbt_strips *strips, const rbt_snap *update);

/* Elements of a strip: the first, and how many. */
static inline uint32_t rbt_strip_first(const rbt_strips *strips, uint32_t strip)
{
    return strip * strips->width;
}

static inline uint32_t rbt_strip_length(const rbt_strips *strips, uint32_t strip)
{
    uint32_t left = strips->length - strip * strips->width;

    return left < strips->width ? left : strips->width;
}

/* Strips have been sent: those marked with `since` 0 by the caller leave the list; or all. */
void rbt_strips_clean(rbt_strips *strips, uint32_t strip);
void rbt_strips_sweep(rbt_strips *strips);
void rbt_strips_clean_all(rbt_strips *strips);

/* The sum of the magnitudes of n values. */
double rbt_values_magnitude(rbt_type type, const void *values, uint32_t n);

#endif
