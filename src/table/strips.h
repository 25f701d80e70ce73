/* Strips: which pieces of a block have changed since they were sent.
 *
 * A strip is `width` elements of a block: of a dense table a row if rows are short, else a piece of one; of a sparse table
 * a single element. Kept by the worker for its update buffer (cache.h) and by servers for what readers have not been told
 * (node/early_server.c), in jobs with --budget only. A server also keeps what a dirty strip was when readers were told last:
 * only what differs from that is worth telling, and by how much it differs says how urgently. What is dirty is in `list`, the
 * oldest first, and costs memory; what is clean does not, but for four bytes a strip of a dense table. Proved by
 * tests/unit/test_budget.c.
 */
#ifndef RBT_TABLE_STRIPS_H
#define RBT_TABLE_STRIPS_H

#include "base/map.h"
#include "base/mem.h"
#include "table/layout.h"
#include "table/snap.h"

#define RBT_STRIP_ELEMENTS 1024u /* at the most */

typedef struct rbt_strip {
    uint32_t strip;   /* its number: elements strip * width, and so on */
    uint64_t since;   /* a count that rises whenever one becomes dirty; 0: it has been cleaned */
    uint32_t changed; /* servers: how many of its elements differ from what readers were told */
    double change;    /* ... and by how much, together; or in proportion */
} rbt_strip;

typedef struct rbt_strips {
    uint32_t width;  /* 0: not kept */
    uint32_t length; /* elements of the block */
    uint64_t count;
    uint32_t *place;   /* per strip of a dense table: one past its place in the list; 0: clean */
    rbt_map scattered; /* the same of a sparse one */
    bool is_sparse;
    RBT_ARRAY(rbt_strip) list; /* dirty ones */
    size_t size;               /* servers: of an element; 0: not known yet */
    RBT_ARRAY(char) told;      /* servers: width elements for each in the list */
} rbt_strips;

/* The width for a table. */
uint32_t rbt_strip_width(const rbt_layout *layout);

void rbt_strips_init(rbt_strips *strips, uint32_t length, const rbt_layout *layout);
void rbt_strips_deinit(rbt_strips *strips);

/* Elements offset .. offset + n - 1 have changed. */
void rbt_strips_touch(rbt_strips *strips, uint32_t offset, uint32_t n);

/* An update is about to change `value` (is_after: has changed it): what it stores is dirty and weighs by how much it differs
 * from what was told, or with `relative` in proportion to that. Always both, one before and one after. */
void rbt_strips_weigh(rbt_strips *strips, const rbt_snap *update, const rbt_snap *value, bool relative, bool is_after);

/* What readers are to be told of a dirty strip: the elements that are not what was told; with `relative` only those that differ by
 * at least the mean of them, each in proportion to what it was: the rest is mostly noise, and can wait. How many that is, at
 * least one if any differs. */
uint32_t rbt_strips_count_news(const rbt_strips *strips, uint32_t strip, const rbt_snap *value, bool relative);

/* Tells it: adds places and values to the arrays; how many. A strip of which nothing is left is clean, and leaves the list with
 * the next sweep. */
uint32_t rbt_strips_tell(rbt_strips *strips, uint32_t strip, const rbt_snap *value, bool relative, uint32_t *index,
                         void *values);

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

/* A strip has been sent: it leaves the list with the next sweep. Or all of them, at once. */
void rbt_strips_clean(rbt_strips *strips, uint32_t strip);
void rbt_strips_sweep(rbt_strips *strips);
void rbt_strips_clean_all(rbt_strips *strips);

/* The sum of |d| over n changes, or in proportion to `values` if there are: of |d / a|, |d| where a is 0 (Bösen's relative
 * magnitude), and of whole numbers, which are counts, of d^2 / (|a| + 1): a count differs by sqrt(a) by chance. `changed`
 * gets how many are not 0. */
double rbt_changes_magnitude(rbt_type type, const void *changes, const void *values, uint32_t n, uint32_t *changed);

#endif
