/* One row against the shared parameters: reading and adding, one element at a time, with relaxed atomics.
 *
 * The parameters may be shared by threads that take no locks (Hogwild): a relaxed load or store of a float is an
 * ordinary instruction, so the same code serves private parameters. Sums run in four lanes whatever the machine, so one
 * thread gives the same bits everywhere. Called by the solvers of this folder alone. Proved by tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_ROWS_H
#define RBT_SOLVE_ROWS_H

#include "data/data.h"

#define RBT_ROW_FETCHED 128 /* features of a row that are asked for: the processor finds the rest by itself */
#define RBT_LINE_FLOATS 16  /* of a cache line */

static inline float rbt_load(const float *at)
{
    float value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

static inline void rbt_store(float *at, float value)
{
    __atomic_store(at, &value, __ATOMIC_RELAXED);
}

/* A row's features, of those the model knows. */
typedef struct rbt_row {
    const uint32_t *index;
    const float *value;
    size_t n;
} rbt_row;

static inline rbt_row rbt_row_of(const rbt_data *data, size_t row, size_t cols)
{
    size_t first = data->start[row];
    return (rbt_row){data->index + first, data->value + first, rbt_data_row_fit(data, row, cols)};
}

/* Rows are visited in random order: asks for a row's memory some steps ahead of its use, and even before that for where
 * it is. */
static inline void rbt_row_prefetch_start(const rbt_data *data, size_t row)
{
    __builtin_prefetch(data->start + row);
    __builtin_prefetch(data->label + row);
}

static inline void rbt_row_prefetch(const rbt_data *data, size_t row)
{
    size_t first = data->start[row], n = data->start[row + 1] - first;
    n = n < RBT_ROW_FETCHED ? n : RBT_ROW_FETCHED;
    for (size_t i = 0; i < n; i += RBT_LINE_FLOATS) {
        __builtin_prefetch(data->index + first + i);
        __builtin_prefetch(data->value + first + i);
    }
}

/* The same for what there are K of per feature, side by side: parameters that are too many for a core's own cache. */
static inline void rbt_row_prefetch_parameters(rbt_row row, const float *w, size_t k)
{
    for (size_t i = 0; i < row.n && i < RBT_ROW_FETCHED; i++)
        for (size_t c = 0; c < k; c += RBT_LINE_FLOATS)
            __builtin_prefetch(w + (size_t)row.index[i] * k + c);
}

static inline float rbt_row_dot(rbt_row row, const float *w)
{
    const uint32_t *index = row.index;
    const float *value = row.value;
    float a = 0, b = 0, c = 0, d = 0; /* element i goes to lane i % 4; an array of lanes would live in memory */
    size_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        a += value[i] * rbt_load(w + index[i]);
        b += value[i + 1] * rbt_load(w + index[i + 1]);
        c += value[i + 2] * rbt_load(w + index[i + 2]);
        d += value[i + 3] * rbt_load(w + index[i + 3]);
    }
    if (i < row.n)
        a += value[i] * rbt_load(w + index[i]);
    if (i + 1 < row.n)
        b += value[i + 1] * rbt_load(w + index[i + 1]);
    if (i + 2 < row.n)
        c += value[i + 2] * rbt_load(w + index[i + 2]);
    return (a + b) + (c + d);
}

/* The same in double; nobody else writes these parameters. */
static inline double rbt_row_dot_double(rbt_row row, const double *w)
{
    const uint32_t *index = row.index;
    const float *value = row.value;
    double a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        a += (double)value[i] * w[index[i]];
        b += (double)value[i + 1] * w[index[i + 1]];
        c += (double)value[i + 2] * w[index[i + 2]];
        d += (double)value[i + 3] * w[index[i + 3]];
    }
    for (; i < row.n; i++)
        a += (double)value[i] * w[index[i]];
    return (a + b) + (c + d);
}

static inline void rbt_row_add(rbt_row row, float scale, float *w)
{
    for (size_t i = 0; i < row.n; i++) {
        float *at = w + row.index[i];
        rbt_store(at, rbt_load(at) + scale * row.value[i]);
    }
}

/* The same for K parameters per feature, side by side. */
static inline void rbt_row_dot_many(rbt_row row, const float *w, size_t k, double *restrict z)
{
    for (size_t i = 0; i < row.n; i++) {
        const float *at = w + (size_t)row.index[i] * k;
        double x = (double)row.value[i];
        for (size_t c = 0; c < k; c++)
            z[c] += x * (double)rbt_load(at + c);
    }
}

static inline void rbt_row_add_many(rbt_row row, const float *scale, size_t k, float *w)
{
    for (size_t i = 0; i < row.n; i++) {
        float *at = w + (size_t)row.index[i] * k, x = row.value[i];
        for (size_t c = 0; c < k; c++)
            rbt_store(at + c, rbt_load(at + c) + scale[c] * x);
    }
}

#endif
