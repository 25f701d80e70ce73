/* Shards: which rows belong to which worker. Contract in shard.h; proved by tests/unit/test_shard.c.
 *
 * The rows are shuffled once (Fisher-Yates), or the blocks and then the rows of each, and the list is cut: the first
 * rows % workers shards get one row more. Dealt rows ascend within a shard: their order is made for each pass.
 */
#include "data/shard.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"

#define PIECE_ROWS        64 /* rows that are neighbours in memory and follow each other in a dealt order ... */
#define PIECES_TOGETHER   16 /* ... with a row of each of so many others between */
#define PIECES_LEAST      64 /* fewer than that are simply shuffled: they are near each other anyway */
#define BLOCKS_PER_WORKER 16 /* so that a worker's rows come from many places of a small file, too */
#define BLOCKS_OF_SPAN    4  /* svm on a9a takes 420 passes with 1, 155 with 2, 135 with 4, 136 in memory */

static rbt_err check(size_t rows, uint32_t workers, rbt_error *error)
{
    if (workers == 0)
        return rbt_fail(error, RBT_E_USAGE, "0 workers cannot share the %zu rows; use at least 1 worker", rows);
    if (rows > UINT32_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "the data has %zu rows, the limit is %u; split it into several jobs", rows,
                        UINT32_MAX);
    if (workers > rows)
        return rbt_fail(
            error, RBT_E_USAGE,
            "%u workers cannot share %zu row%s, each needs at least one; use at most %zu worker%s or more data",
            workers, rows, rows == 1 ? "" : "s", rows, rows == 1 ? "" : "s");
    return RBT_OK;
}

static rbt_err no_memory(size_t rows, uint32_t workers, rbt_error *error)
{
    return rbt_fail(error, RBT_E_MEMORY, "not enough memory to deal %zu rows to %u workers; use fewer rows", rows,
                    workers);
}

rbt_err rbt_shards_order(size_t rows, uint32_t workers, uint64_t seed, uint32_t **order, rbt_error *error)
{
    rbt_err err = check(rows, workers, error);
    uint32_t *list = err == RBT_OK ? rbt_try_alloc_raw(rows, sizeof *list) : NULL;
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SHUFFLE, 0);
    if (err != RBT_OK || list == NULL)
        return err != RBT_OK ? err : no_memory(rows, workers, error);
    for (size_t i = 0; i < rows; i++)
        list[i] = (uint32_t)i;
    rbt_rng_shuffle_u32(&rng, list, rows);
    *order = list;
    return RBT_OK;
}

static size_t block_rows_of(const rbt_data *data, uint32_t workers)
{
    size_t rows = rbt_data_block_rows(data), even = data->rows / workers / BLOCKS_PER_WORKER;
    return even == 0 ? 1 : even < rows ? even : rows;
}

/* The blocks in random order, each with its rows in random order. */
static bool order_in_blocks(rbt_shards *s, size_t rows, rbt_rng *rng)
{
    size_t blocks = (rows + s->block_rows - 1) / s->block_rows, next = 0;
    uint32_t *block = rbt_try_alloc(blocks, sizeof *block);
    if (block == NULL)
        return false;
    for (size_t b = 0; b < blocks; b++)
        block[b] = (uint32_t)b;
    rbt_rng_shuffle_u32(rng, block, blocks);
    for (size_t b = 0; b < blocks; b++) {
        size_t first = block[b] * s->block_rows, n = rows - first < s->block_rows ? rows - first : s->block_rows;
        for (size_t i = 0; i < n; i++)
            s->order[next + i] = (uint32_t)(first + i);
        rbt_rng_shuffle_u32(rng, s->order + next, n);
        next += n;
    }
    rbt_free(block);
    return true;
}

rbt_err rbt_shards_create(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error)
{
    rbt_shards s = {.workers = workers};
    rbt_err err = data->streamed ? check(data->rows, workers, error)
                                 : rbt_shards_order(data->rows, workers, seed, &s.order, error);
    if (err != RBT_OK)
        return err;
    s.shard = rbt_try_alloc(workers, sizeof *s.shard);
    if (data->streamed) {
        rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SHUFFLE, 0);
        s.order = rbt_try_alloc(data->rows, sizeof *s.order);
        s.block_rows = block_rows_of(data, workers);
        if (s.order != NULL && !order_in_blocks(&s, data->rows, &rng)) {
            rbt_free(s.order);
            s.order = NULL;
        }
    }
    if (s.shard == NULL || s.order == NULL) {
        rbt_shards_destroy(&s);
        return no_memory(data->rows, workers, error);
    }

    uint32_t *next = s.order;
    for (uint32_t w = 0; w < workers; w++) {
        rbt_shard *shard = &s.shard[w];
        shard->rows = next;
        shard->n = rbt_shards_begin(data->rows, workers, w + 1) - rbt_shards_begin(data->rows, workers, w);
        for (size_t i = 0; i < shard->n; i++) {
            shard->nnz += data->start[shard->rows[i] + (size_t)1] - data->start[shard->rows[i]];
            rbt_shards_release(&s, data, shard->rows, shard->n, i, 1);
        }
        next += shard->n;
    }
    *out = s;
    return RBT_OK;
}

/* Neighbours stay together: two workers that each read every other row would both fetch all of the memory. */
static void take(rbt_shard *shard, const rbt_data *data, size_t first, size_t n)
{
    uint32_t *rows = shard->rows + shard->n;
    for (size_t i = 0; i < n; i++)
        rows[i] = (uint32_t)(first + i);
    shard->n += n;
    shard->nnz += data->start[first + n] - data->start[first];
}

rbt_err rbt_shards_deal(const rbt_data *data, uint32_t workers, uint64_t seed, rbt_shards *out, rbt_error *error)
{
    rbt_err err =
        data->streamed ? rbt_shards_create(data, workers, seed, out, error) : check(data->rows, workers, error);
    if (err == RBT_OK && data->streamed)
        out->span_rows = BLOCKS_OF_SPAN * out->block_rows;
    if (err != RBT_OK || data->streamed)
        return err;
    rbt_shards s = {.workers = workers,
                    .shard = rbt_try_alloc(workers, sizeof *s.shard),
                    .order = rbt_try_alloc_raw(data->rows, sizeof *s.order),
                    .dealt = true};
    uint32_t *hand = rbt_try_alloc(workers, sizeof *hand), *next = s.order;
    size_t piece = data->rows / workers >= PIECES_LEAST * PIECE_ROWS ? PIECE_ROWS : 1;
    if (s.shard == NULL || s.order == NULL || hand == NULL) {
        rbt_shards_destroy(&s);
        rbt_free(hand);
        return no_memory(data->rows, workers, error);
    }
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SHUFFLE, 0);
    for (uint32_t w = 0; w < workers; w++) {
        s.shard[w].rows = next;
        next += data->rows / workers + (w < data->rows % workers);
        hand[w] = w;
    }
    for (size_t row = 0; row < data->rows;) {
        size_t size = data->rows - row < piece * workers ? 1 : piece; /* what is left is dealt row by row */
        size_t n = data->rows - row < workers ? data->rows - row : workers;
        if (n == workers) /* the last, short round goes to the first workers */
            rbt_rng_shuffle_u32(&rng, hand, workers);
        for (size_t i = 0; i < n; i++, row += size)
            take(&s.shard[n == workers ? hand[i] : i], data, row, size);
    }
    rbt_free(hand);
    *out = s;
    return RBT_OK;
}

size_t rbt_shards_together(const rbt_shards *shards, const uint32_t *rows, size_t at, size_t n)
{
    size_t size = shards->block_rows, i = 1;
    if (size == 0 || n == 0)
        return n;
    if (shards->span_rows > 0) {
        size_t left = shards->span_rows - at % shards->span_rows;
        return left < n ? left : n;
    }
    while (i < n && rows[at + i] / size == rows[at] / size)
        i++;
    return i;
}

static void release_block(const rbt_shards *shards, const rbt_data *data, size_t block)
{
    size_t size = shards->block_rows, first = block * size, left = data->rows - first;
    rbt_data_release_rows(data, first, left < size ? left : size);
}

/* Each block once that n rows are of. A span's edges are anywhere, as are the shard's first and last block and the file's last
 * one, which are short: there may be so many more. */
static void release_span(const rbt_shards *shards, const rbt_data *data, const uint32_t *rows, size_t n)
{
    size_t block[BLOCKS_OF_SPAN + 4], count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t of = rows[i] / shards->block_rows, k = 0;
        while (k < count && block[k] != of)
            k++;
        if (k < count)
            continue;
        RBT_ASSERT(count < BLOCKS_OF_SPAN + 4);
        block[count++] = of;
        release_block(shards, data, of);
    }
}

void rbt_shards_release(const rbt_shards *shards, const rbt_data *data, const uint32_t *rows, size_t total,
                        size_t first, size_t n)
{
    size_t size = shards->block_rows, span = shards->span_rows;
    for (size_t i = first; size > 0 && i < first + n; i++) {
        bool last = i + 1 == total;
        if (span > 0 && (last || (i + 1) % span == 0))
            release_span(shards, data, rows + i / span * span, i % span + 1);
        else if (span == 0 && (last || rows[i + 1] / size != rows[i] / size))
            release_block(shards, data, rows[i] / size);
    }
}

/* Pieces of PIECE_ROWS rows in random order; of up to PIECES_TOGETHER of them one row in turn, and a piece's rows in one of
 * PIECE_ROWS orders. No few are left for the end: steps would end near what suits these neighbours. */
static void interleave(const rbt_shard *shard, rbt_rng *rng, uint32_t *order)
{
    size_t pieces = (shard->n + PIECE_ROWS - 1) / PIECE_ROWS;
    size_t groups = (pieces + PIECES_TOGETHER - 1) / PIECES_TOGETHER;
    uint32_t *piece = rbt_alloc(pieces, sizeof *piece);
    for (size_t i = 0; i < pieces; i++)
        piece[i] = (uint32_t)i;
    rbt_rng_shuffle_u32(rng, piece, pieces);
    for (size_t g = 0; g < groups; g++) {
        size_t first = pieces * g / groups, together = pieces * (g + 1) / groups - first;
        size_t turn[PIECES_TOGETHER];
        for (size_t k = 0; k < together; k++)
            turn[k] = (size_t)rbt_rng_below(rng, PIECE_ROWS);
        for (size_t i = 0; i < PIECE_ROWS; i++)
            for (size_t k = 0; k < together; k++) {
                size_t at = (size_t)piece[first + k] * PIECE_ROWS + (i ^ turn[k]);
                if (at < shard->n)
                    *order++ = shard->rows[at];
            }
    }
    rbt_free(piece);
}

/* The blocks of a worker in random order, and their rows in random order within each span. */
static void mix_spans(const rbt_shards *shards, const rbt_shard *shard, rbt_rng *rng, uint32_t *order)
{
    RBT_ARRAY(uint32_t) runs = {0}; /* where each block begins among the worker's rows */
    size_t size = shards->block_rows, span = shards->span_rows, filled = 0;
    RBT_ASSERT(span > 0);
    for (size_t i = 0; i < shard->n; i++)
        if (i == 0 || shard->rows[i] / size != shard->rows[i - 1] / size)
            rbt_array_push(&runs, (uint32_t)i);
    rbt_rng_shuffle_u32(rng, runs.at, runs.count);
    for (size_t k = 0; k < runs.count; k++)
        for (size_t i = runs.at[k]; i < shard->n && shard->rows[i] / size == shard->rows[runs.at[k]] / size; i++)
            order[filled++] = shard->rows[i];
    for (size_t at = 0; at < filled; at += span)
        rbt_rng_shuffle_u32(rng, order + at, filled - at < span ? filled - at : span);
    rbt_array_free(&runs);
}

void rbt_shards_shuffle(const rbt_shards *shards, uint32_t worker, rbt_rng *rng, uint32_t *order)
{
    const rbt_shard *shard = &shards->shard[worker];
    if (shards->dealt && shard->n >= PIECES_LEAST * PIECE_ROWS)
        interleave(shard, rng, order);
    else if (shards->block_rows == 0)
        rbt_rng_shuffle_u32(rng, order, shard->n);
    else
        mix_spans(shards, shard, rng, order);
}

void rbt_shards_destroy(rbt_shards *shards)
{
    rbt_free(shards->shard);
    rbt_free(shards->order);
    *shards = (rbt_shards){0};
}
