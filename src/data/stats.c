/* What a data set is like; the contract is in stats.h. */
#include "data/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/parallel.h"

#define ROWS_PER_ITEM 8192
#define RENUMBER_FROM 4  /* columns to a non-zero, from which on they are renumbered */
#define PLANES        14 /* bits of a count up to ROWS_PER_ITEM */

/* ------------------------------------------------------------------------------------------ how often features occur */

/* Every part of the rows counts for itself: a feature that occurs everywhere would be fought over. */
typedef struct counting {
    const rbt_data *data;
    size_t parts;
    uint32_t *count; /* cols for each part */
} counting;

static void count_part(void *context, size_t part)
{
    const counting *c = context;
    const rbt_data *d = c->data;
    uint32_t *count = c->count + part * d->cols;
    size_t first = d->start[d->rows * part / c->parts], end = d->start[d->rows * (part + 1) / c->parts];
    for (size_t i = first; i < end; i++)
        count[d->index[i]]++;
}

static rbt_err find_delta(const rbt_data *data, rbt_stats *stats, rbt_error *error)
{
    size_t threads = rbt_parallel_threads(), fit = data->cols > 0 ? data->nnz / data->cols : 0, most = 0;
    counting c = {.data = data,
                  .parts = threads < fit ? threads
                           : fit > 0     ? fit
                                         : 1}; /* no more memory than the data */
    c.count = rbt_try_alloc(c.parts * data->cols, sizeof *c.count);
    if (c.count == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to count %zu features; use a larger machine",
                        data->cols);
    rbt_parallel_for(c.parts, (unsigned)threads, count_part, &c);
    for (size_t j = 0; j < data->cols; j++) {
        size_t count = 0;
        for (size_t part = 0; part < c.parts; part++)
            count += c.count[part * data->cols + j];
        stats->used += count > 0;
        if (count > most) {
            most = count;
            stats->delta_feature = j;
        }
    }
    stats->delta = data->rows > 0 ? (double)most / (double)data->rows : 0;
    rbt_free(c.count);
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------ which rows share features */

/* 64 rows at a time: bit b of a feature says that the b-th of them has it. A row shares a feature with those whose bits
 * its own features have, all or'ed together. How many rows have which bit is counted in planes: bit b of plane i is bit
 * i of the count for b, and adding a mask is adding with carry, 64 counters at once. */
typedef struct sharing {
    const rbt_data *data;
    const uint64_t *mask; /* by feature */
    uint64_t full;        /* the bits in use */
    uint64_t *planes;     /* PLANES + 1 for each item */
} sharing;

static void share_rows(void *context, size_t item)
{
    const sharing *s = context;
    const rbt_data *d = s->data;
    uint64_t *plane = s->planes + item * (PLANES + 1);
    size_t first = item * ROWS_PER_ITEM, end = first + ROWS_PER_ITEM < d->rows ? first + ROWS_PER_ITEM : d->rows;
    for (size_t i = 0; i <= PLANES; i++)
        plane[i] = 0;
    for (size_t row = first; row < end; row++) {
        uint64_t carry = 0;
        for (size_t i = d->start[row]; i < d->start[row + 1] && carry != s->full; i++)
            carry |= s->mask[d->index[i]];
        for (size_t i = 0; carry != 0; i++) {
            uint64_t both = plane[i] & carry;
            plane[i] ^= carry;
            carry = both;
        }
    }
}

/* The largest number of rows that share a feature with one of these (64 at most). */
static size_t most_shared(sharing *s, uint64_t *mask, const size_t *rows, size_t n)
{
    const rbt_data *d = s->data;
    size_t items = (d->rows + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, most = 0;
    s->full = 0;
    for (size_t b = 0; b < n; b++) {
        for (size_t i = d->start[rows[b]]; i < d->start[rows[b] + 1]; i++)
            mask[d->index[i]] |= UINT64_C(1) << b;
        s->full |= UINT64_C(1) << b;
    }
    rbt_parallel_for(items, rbt_parallel_threads(), share_rows, s);
    for (size_t b = 0; b < n; b++) {
        size_t count = 0;
        for (size_t k = 0; k < items * (PLANES + 1); k++)
            count += (s->planes[k] >> b & 1) << k % (PLANES + 1);
        most = count > most ? count : most;
        for (size_t i = d->start[rows[b]]; i < d->start[rows[b] + 1]; i++)
            mask[d->index[i]] = 0;
    }
    return most;
}

/* Which row is asked as the i-th: all in turn; or the longest, then others by chance. */
static size_t nth_row(const rbt_data *data, size_t i, size_t longest, bool all, rbt_rng *rng)
{
    if (all)
        return i;
    return i == 0 ? longest : (size_t)rbt_rng_below(rng, data->rows);
}

static rbt_err find_rho(const rbt_data *data, size_t longest, uint64_t budget, rbt_stats *stats, rbt_error *error)
{
    uint64_t passes = (data->rows + 63) / 64;
    bool all = data->rows <= RBT_STATS_SAMPLE || passes <= budget / (data->nnz + data->rows + 1);
    size_t items = (data->rows + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, most = 0;
    uint64_t *mask = rbt_try_alloc(data->cols, sizeof *mask);
    uint64_t *planes = rbt_try_alloc_raw(items * (PLANES + 1), sizeof *planes);
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_SHUFFLE, 0);
    rbt_err err = RBT_OK;
    sharing s = {.data = data, .mask = mask, .planes = planes};
    stats->rho_rows = all ? data->rows : RBT_STATS_SAMPLE;
    if (mask == NULL || planes == NULL) {
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory to see which rows share features; use a larger machine");
        goto free_all;
    }
    for (size_t first = 0; first < stats->rho_rows && most < data->rows; first += 64) {
        size_t rows[64], n = stats->rho_rows - first < 64 ? stats->rho_rows - first : 64;
        for (size_t b = 0; b < n; b++)
            rows[b] = nth_row(data, first + b, longest, all, &rng);
        size_t shared = most_shared(&s, mask, rows, n);
        most = shared > most ? shared : most;
    }
    if (most == data->rows) /* it cannot be more: exact */
        stats->rho_rows = data->rows;
    stats->rho = data->rows > 0 ? (double)most / (double)data->rows : 0;
free_all:
    rbt_free(mask);
    rbt_free(planes);
    return err;
}

/* ------------------------------------------------------------------------------------------------------------- all */

static size_t look_at_rows(const rbt_data *data, rbt_stats *stats)
{
    size_t longest = 0;
    for (size_t r = 0; r < data->rows; r++) {
        size_t n = data->start[r + 1] - data->start[r];
        double weight = data->weight != NULL ? (double)data->weight[r] : 1;
        stats->shortest = r == 0 || n < stats->shortest ? n : stats->shortest;
        if (n > stats->longest) {
            stats->longest = n;
            longest = r;
        }
        stats->weight += weight;
        stats->weight_least = r == 0 || weight < stats->weight_least ? weight : stats->weight_least;
        stats->weight_most = r == 0 || weight > stats->weight_most ? weight : stats->weight_most;
    }
    for (size_t i = 0; i < data->nnz; i++) {
        stats->least = i == 0 || data->value[i] < stats->least ? data->value[i] : stats->least;
        stats->most = i == 0 || data->value[i] > stats->most ? data->value[i] : stats->most;
    }
    return longest;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static size_t place_of(const uint32_t *sorted, size_t n, uint32_t wanted)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same rows with only as many columns as occur, whose numbers are put into `used`, ascending. */
static rbt_err renumber(const rbt_data *data, rbt_data *view, uint32_t **used, rbt_error *error)
{
    uint32_t *sorted = rbt_try_alloc_raw(data->nnz + 1, sizeof *sorted);
    uint32_t *index = rbt_try_alloc_raw(data->nnz + 1, sizeof *index);
    size_t n = 0;
    *view = *data;
    view->index = index;
    *used = sorted;
    if (sorted == NULL || index == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to count %zu features; use a larger machine",
                        data->cols);
    memcpy(sorted, data->index, data->nnz * sizeof *sorted);
    qsort(sorted, data->nnz, sizeof *sorted, by_number);
    for (size_t i = 0; i < data->nnz; i++)
        if (i == 0 || sorted[i] != sorted[n - 1])
            sorted[n++] = sorted[i];
    for (size_t i = 0; i < data->nnz; i++)
        index[i] = (uint32_t)place_of(sorted, n, data->index[i]);
    view->cols = n;
    return RBT_OK;
}

rbt_err rbt_stats_compute(const rbt_data *data, uint64_t rho_budget, rbt_stats *stats, rbt_error *error)
{
    rbt_stats s = {0};
    size_t longest = look_at_rows(data, &s);
    bool sparse = data->cols / RENUMBER_FROM > data->nnz; /* what is counted by column would take more than the data */
    rbt_data view = *data;
    uint32_t *used = NULL;
    rbt_err err = sparse ? renumber(data, &view, &used, error) : RBT_OK;
    if (err == RBT_OK)
        err = find_delta(&view, &s, error);
    if (err == RBT_OK)
        err = find_rho(&view, longest, rho_budget, &s, error);
    if (err == RBT_OK && sparse && data->nnz > 0)
        s.delta_feature = used[s.delta_feature];
    if (sparse)
        rbt_free(view.index);
    rbt_free(used);
    if (err == RBT_OK)
        *stats = s;
    return err;
}
