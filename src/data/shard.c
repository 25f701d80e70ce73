/* Shards: which rows belong to which worker. Contract in shard.h; proved by tests/unit/test_shard.c.
 *
 * The rows are shuffled once (Fisher-Yates) and the list is cut: the first rows % workers shards get one row more.
 */
#include "data/shard.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

static rbt_err check(const rbt_data *data, uint32_t workers, rbt_error *error)
{
    if (workers == 0)
        return rbt_fail(error, RBT_E_USAGE, "0 workers cannot share the %zu rows; use at least 1 worker", data->rows);
    if (data->rows > UINT32_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "the data has %zu rows, the limit is %u; split it into several jobs",
                        data->rows, UINT32_MAX);
    if (workers > data->rows)
        return rbt_fail(
            error, RBT_E_USAGE,
            "%u workers cannot share %zu row%s, each needs at least one; use at most %zu worker%s or more data",
            workers, data->rows, data->rows == 1 ? "" : "s", data->rows, data->rows == 1 ? "" : "s");
    return RBT_OK;
}

rbt_err rbt_shards_create(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error)
{
    rbt_err err = check(data, workers, error);
    if (err != RBT_OK)
        return err;
    rbt_shards s = {
        .workers = workers,
        .shard = rbt_try_alloc(workers, sizeof *s.shard),
        .order = rbt_try_alloc(data->rows, sizeof *s.order),
    };
    if (s.shard == NULL || s.order == NULL) {
        rbt_shards_destroy(&s);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to deal %zu rows to %u workers; use fewer rows",
                        data->rows, workers);
    }
    for (size_t i = 0; i < data->rows; i++)
        s.order[i] = (uint32_t)i;
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SHUFFLE, 0);
    rbt_rng_shuffle_u32(&rng, s.order, data->rows);

    uint32_t *next = s.order;
    for (uint32_t w = 0; w < workers; w++) {
        rbt_shard *shard = &s.shard[w];
        shard->rows = next;
        shard->n = data->rows / workers + (w < data->rows % workers);
        for (size_t i = 0; i < shard->n; i++)
            shard->nnz += data->start[shard->rows[i] + (size_t)1] - data->start[shard->rows[i]];
        next += shard->n;
    }
    *out = s;
    return RBT_OK;
}

void rbt_shards_destroy(rbt_shards *shards)
{
    rbt_free(shards->shard);
    rbt_free(shards->order);
    *shards = (rbt_shards){0};
}
