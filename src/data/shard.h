/* Shards: which rows belong to which worker.
 *
 * Called by the job once, before the workers start. Always holds: every row is in exactly one shard, the sizes differ
 * by at most one row, no shard is empty, and the whole is a function of (rows, workers, seed). The order within a shard
 * is random, so a mini-batch is a consecutive piece of it. Proved by tests/unit/test_shard.c.
 *
 * Streamed data (data.h) is dealt in blocks of consecutive rows instead: the blocks in random order, the rows in random
 * order within their block. A worker then reads the file block after block, and gives each back when it is through.
 * Workers that share memory go through a span of several blocks at a time, others in each pass, and their rows are mixed:
 * rows that always met the same few neighbours would come to terms with the others slowly.
 *
 * Workers that share memory get their rows dealt like cards (rbt_shards_deal), in the order of the file, and visit them in
 * an order that is random for the mathematics and not for the memory: pieces of consecutive rows in random order, several
 * at a time, one row of each in turn.
 */
#ifndef RBT_DATA_SHARD_H
#define RBT_DATA_SHARD_H

#include "base/rng.h"
#include "rubato.h"

typedef struct rbt_shard {
    uint32_t *rows; /* n row numbers; a piece of the shards' one list */
    size_t n;
    size_t nnz; /* features in these rows */
} rbt_shard;

typedef struct rbt_shards {
    uint32_t workers;
    rbt_shard *shard;  /* one per worker */
    uint32_t *order;   /* all rows, shard after shard */
    size_t block_rows; /* rows of a block; 0: not in blocks */
    size_t span_rows;  /* so many rows of several blocks are mixed in a pass; 0: blocks come one after the other */
    bool dealt;        /* a shard's rows ascend */
} rbt_shards;

/* Deals the rows out. More workers than rows is RBT_E_USAGE, more than 2^32 - 1 rows is RBT_E_LIMIT. */
rbt_err rbt_shards_create(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error);

/* The order in which rbt_shards_create puts rows that are not streamed: in new memory. Worker w's are those from
 * rbt_shards_begin(rows, workers, w) on. */
rbt_err rbt_shards_order(size_t rows, uint32_t workers, uint64_t seed, uint32_t **order, rbt_error *error);

static inline size_t rbt_shards_begin(size_t rows, uint32_t workers, uint32_t worker)
{
    return rows / workers * worker + (worker < rows % workers ? worker : rows % workers);
}

/* Deals the rows out one by one: of each `workers` rows every worker gets one, at random; where there are many, the same
 * with pieces of consecutive rows. Streamed data is dealt in blocks as above. */
rbt_err rbt_shards_deal(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error);

/* A new random order of a worker's rows: `order` holds the last one. */
void rbt_shards_shuffle(const rbt_shards *shards, uint32_t worker, rbt_rng *rng, uint32_t *order);

/* How many of the n rows of a list, from rows[at] on, lie in one block, or one span of blocks: all of them when there are no
 * blocks. */
size_t rbt_shards_together(const rbt_shards *shards, const uint32_t *rows, size_t at, size_t n);

/* The rows first .. first + n - 1 of a list in an order of the above have been visited: the blocks that are left are
 * released. `total` is the list's length. */
void rbt_shards_release(const rbt_shards *shards, const rbt_data *data, const uint32_t *rows, size_t total,
                        size_t first, size_t n);
void rbt_shards_destroy(rbt_shards *shards);

#endif
