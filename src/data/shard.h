/* Shards: which rows belong to which worker.
 *
 * Called by the job once, before the workers start. Always holds: every row is in exactly one shard, the sizes differ
 * by at most one row, no shard is empty, and the whole is a function of (rows, workers, seed). The order within a shard
 * is random, so a mini-batch is a consecutive piece of it. Proved by tests/unit/test_shard.c.
 */
#ifndef RBT_DATA_SHARD_H
#define RBT_DATA_SHARD_H

#include "rubato.h"

typedef struct rbt_shard {
    uint32_t *rows; /* n row numbers; a piece of the shards' one list */
    size_t n;
    size_t nnz; /* features in these rows */
} rbt_shard;

typedef struct rbt_shards {
    uint32_t workers;
    rbt_shard *shard; /* one per worker */
    uint32_t *order;  /* all rows, shard after shard */
} rbt_shards;

/* Deals the rows out. More workers than rows is RBT_E_USAGE, more than 2^32 - 1 rows is RBT_E_LIMIT. */
rbt_err rbt_shards_create(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error);
void rbt_shards_destroy(rbt_shards *shards);

#endif
