/* What generators draw: ranks by a power law, and several distinct ones at once.
 *
 * Called by generate*.c. Always holds: the draws are a function of the random stream, the same on every machine (only
 * rbt_rng, src/math/functions.h and IEEE operations are used); the number of draws is bounded. Proved by
 * tests/unit/test_generate.c.
 */
#ifndef RBT_DATA_DRAW_H
#define RBT_DATA_DRAW_H

#include <stdbool.h>

#include "base/rng.h"
#include "rubato.h"

#define RBT_POPULARITY_CELLS 512

/* How popular ranks 0 .. n - 1 are: rank k as (k + 1)^-skew. */
typedef struct rbt_popularity {
    size_t n;
    double skew;
    double span;                              /* of the inverted distribution */
    uint32_t guide[RBT_POPULARITY_CELLS + 1]; /* the rank at the start of each cell of [0, 1] */
} rbt_popularity;

void rbt_popularity_init(rbt_popularity *popularity, size_t n, double skew);
size_t rbt_popularity_draw(const rbt_popularity *popularity, rbt_rng *rng);

/* Memory for drawing distinct items: a set, and room to sort. */
typedef struct rbt_draw {
    size_t most;
    uint32_t *set; /* items + 1, by their hash; 0 = nothing */
    size_t mask;
    uint32_t *bucket, *sorted;
} rbt_draw;

/* For up to `most` items at a time. */
rbt_err rbt_draw_init(rbt_draw *draw, size_t most, rbt_error *error);
void rbt_draw_deinit(rbt_draw *draw);

/* The set by itself: begin with room for n, then add; true when the item is new. Items are below 2^32 - 1. */
void rbt_draw_begin(rbt_draw *draw, size_t n);
bool rbt_draw_add(rbt_draw *draw, uint32_t item);

/* Sorts n items below `limit`; fast when they are spread over the range more or less evenly. */
void rbt_draw_sort(rbt_draw *draw, uint32_t *items, size_t n, size_t limit);

/* n distinct items, ascending: item[rank] for ranks drawn by their popularity (n of them at least). When chance finds no
 * others soon, the most popular ones that are still missing fill up. */
void rbt_draw_distinct(rbt_draw *draw, const rbt_popularity *popularity, const uint32_t *item, rbt_rng *rng,
                       uint32_t *out, size_t n);

/* Is there that much memory in this machine at all? The system may promise more than it has. */
rbt_err rbt_draw_check_memory(double bytes, const char *what, rbt_error *error);

#endif
