/* Rows dealt out to the processes whose workers train on them.
 *
 * Every process has read a part of the data (part.h) and works out for itself which row goes where: the order is that of
 * rbt_shards_create, a function of the number of rows, the workers and the seed. It sends its rows to whom they belong, in
 * rounds, so that the bytes under way stay bounded, and ends with those of its own workers, one worker's after the other,
 * each in the very order of its shard. With {rank} in the path nothing is sent: a worker keeps its files' rows, in a random
 * order by the seed and its number.
 *
 * Called by src/job on all processes of a crew at once. Always holds: worker m's rows are the same, in the same order, for
 * every number of processes; as many rows and non-zeros come out as went in, and the same ones, by a checksum over all
 * rows: otherwise RBT_E_BROKEN. Proved by tests/unit/test_deal_parallel.c. */
#ifndef RBT_DATA_DEAL_H
#define RBT_DATA_DEAL_H

#include "data/part.h"
#include "data/shard.h"

#define RBT_DEAL_PEER_BYTES  (size_t)(16 * 1024 * 1024) /* from one process to another in a round, at most ... */
#define RBT_DEAL_ROUND_BYTES (size_t)(64 * 1024 * 1024) /* ... and to all others; a single row may be longer */

/* The shards of workers elsewhere have their sizes, and no rows. The part's data is used up; `data` is that of the
 * workers here, perhaps without rows. round_bytes is RBT_DEAL_ROUND_BYTES but in tests. */
rbt_err rbt_deal(rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers, uint64_t seed, size_t round_bytes,
                 rbt_crew *crew, rbt_data *data, rbt_shards *shards, rbt_error *error);

/* Copies of some rows for every process, before they are dealt out: `list` has n row numbers, ascending, each once. `data` has them
 * in that order; the part stays as it is. */
rbt_err rbt_deal_copies(const rbt_data_part *part, const uint32_t *list, size_t n, size_t round_bytes, rbt_crew *crew,
                        rbt_data *data, rbt_error *error);

/* The same as rbt_deal for a part that was read with {rank}. `dealt`: the rows of a shard ascend, as after rbt_shards_deal. */
rbt_err rbt_deal_ranked(rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers, uint64_t seed, bool dealt,
                        rbt_crew *crew, rbt_data *data, rbt_shards *shards, rbt_error *error);

#endif
