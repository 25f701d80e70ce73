/* The worker's side of a table: cached copies of blocks and the update buffer.
 *
 * Per block: the newest copy that came from its server, this worker's own updates since that copy (so that it always
 * reads its own writes), and the increments of the clock under way. Values read = copy + own updates + increments, each
 * as far as the copy does not have it.
 * The copy stays shared with the server (and with other workers of the process) until own updates are merged into it.
 *
 * In a cache that is_half (--codec fp16) an update is what half precision has of the increments, and the rest is kept and
 * added to the next increment of that element: update + rest = increments + former rest, exactly, so that sums lose nothing
 * (error feedback). The worker reads the rest all the time. Used by node/worker.c, which decides when a copy is fresh enough. Proved by tests/unit/test_cache.c.
 */
#ifndef RBT_TABLE_CACHE_H
#define RBT_TABLE_CACHE_H

#include "base/bits.h"
#include "base/map.h"
#include "base/mem.h"
#include "table/layout.h"
#include "table/snap.h"
#include "table/strips.h"

/* An update of the worker's own that was sent. */
typedef struct rbt_own {
    rbt_snap *update;
    uint64_t early; /* the early send of the clock under way that it went with, from 1; 0: the push of a clock */
    bool merged;    /* it has been added to the copy */
} rbt_own;

#define RBT_VERSION_NONE RBT_UNBOUNDED /* the tag of what was not computed from a copy: there was none */

/* Increments that were computed from an earlier copy. */
typedef struct rbt_part_aside {
    uint64_t version;
    rbt_snap *update;
} rbt_part_aside;

/* A copy that came while the program computes from an earlier one. */
typedef struct rbt_parked {
    rbt_snap *base;
    uint64_t slowest;
    uint64_t included;
    uint64_t version;
} rbt_parked;

/* What is known of one block. */
typedef struct rbt_copy {
    rbt_snap *base;         /* NULL: never read */
    uint64_t slowest;       /* clocks the slowest worker had finished in it */
    uint64_t included;      /* clocks of mine that are in it */
    uint64_t early;         /* early sends of the clock under way that were in it when it came */
    uint64_t version;       /* of dyn: what an update computed from it in clock `included` belongs to; else its own */
    uint64_t next;          /* of dyn: the lowest this worker can name next, as the server works it out */
    uint64_t read_in;       /* one past the clock it was last read in; 0: never */
    RBT_ARRAY(rbt_own) own; /* my updates since, oldest first */
    rbt_snap *buffer;       /* increments of this clock, dense: NULL when untouched */
    rbt_map scattered;      /* the same for blocks of sparse tables: place -> bits of the value */
    rbt_snap *rest;         /* what rounding has left of increments so far, dense; NULL: nothing */
    rbt_map rests;          /* the same for blocks of sparse tables */
    rbt_strips strips;      /* managed communication: where increments have not been sent */
    bool touched;
    bool holds;                      /* the buffer has what was not significant when a clock ended */
    RBT_ARRAY(rbt_part_aside) aside; /* of tables with tags: increments of this clock made before this copy came */
    rbt_parked parked;               /* of tables with tags: the next read takes it; base NULL: none */
    uint64_t request;                /* the pull under way, 0 when none, and what it will satisfy */
    uint64_t request_need;
    uint64_t request_clock;
} rbt_copy;

typedef struct rbt_cache {
    const rbt_layout *layout;
    rbt_copy *copies;  /* one per block */
    bool is_read_only; /* increments are gradients: the reader does not see them */
    bool has_tags;     /* updates name the version they were computed from: those of different ones are kept apart */
    bool is_managed;   /* increments may be sent before the clock ends */
    rbt_bits unsent;   /* managed: at least the blocks with increments that have not been sent */
    bool is_half;      /* f32: updates are rounded to half precision; what that leaves is kept */
    float
        significant; /* f32: increments that change an element by less than this share of its value stay where they are,
                          and add up to those of later clocks; 0: none do */
} rbt_cache;

void rbt_cache_init(rbt_cache *cache, const rbt_layout *layout);
void rbt_cache_deinit(rbt_cache *cache);

/* The version that increments of this block are computed from now. */
static inline uint64_t rbt_copy_tag(const rbt_copy *copy)
{
    return copy->base != NULL ? copy->version : RBT_VERSION_NONE;
}

/* A copy from the server replaces what was there; takes a reference. Own updates are dropped: the caller has seen to it
 * that the copy includes them, except early sends of the clock under way after the first `early` ones, which stay. */
void rbt_cache_adopt(rbt_cache *cache, uint32_t block, rbt_snap *base, uint64_t slowest, uint64_t included,
                     uint64_t early, uint64_t version);

/* Of tables with tags: keeps a newer copy until the program reads the block again, for what it adds meanwhile was computed
 * from the one it has; takes a reference. And the program reads it. */
void rbt_cache_park(rbt_cache *cache, uint32_t block, const rbt_parked *newer);
void rbt_cache_unpark(rbt_cache *cache, uint32_t block);

/* Elements of the copy, which must be there, get new values: those that `values` stores. They include own updates as for
 * rbt_cache_adopt. */
void rbt_cache_patch(rbt_cache *cache, uint32_t block, const rbt_snap *values, uint64_t early);

/* Takes the increments of a strip out of the buffer, without those below `threshold`, which stay: adds their places and
 * values to the arrays, which have room for it; how many. */
uint32_t rbt_cache_take_strip(rbt_cache *cache, uint32_t block, uint32_t strip, float threshold, uint32_t *index,
                              void *values);

/* Keeps an update that was sent early, as one of the worker's own; takes a reference. */
void rbt_cache_keep(rbt_cache *cache, uint32_t block, rbt_snap *update, uint64_t early);

/* Reads n elements of one block; a block that was never read counts as zero. `has_clock`: the copy has this worker's update of the
 * clock under way, which it computes again after a crash: its increments are in there and not added once more. */
void rbt_cache_read(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, bool has_clock, void *out);

/* Adds n deltas (of the table's type) to the update buffer. */
void rbt_cache_increment(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, const void *deltas);

/* Adds n deltas to n elements of one row, by their columns, which the caller has checked; a column may come twice. This is
 * what single increments cost: a few instructions each, as long as they stay in a block. */
void rbt_cache_increment_keys(rbt_cache *cache, uint64_t row, const uint64_t *cols, size_t n, const void *deltas);

/* Ends the clock for one block: the increments as one update, without entries below `threshold`, which are lost, and without
 * those that are not significant, which stay, and are read by the worker as before; NULL when there were
 * none. With `keep` the update is also kept as one of the worker's own. The caller owns the reference returned. */
rbt_snap *rbt_cache_flush(rbt_cache *cache, uint32_t block, float threshold, bool keep);

#endif
