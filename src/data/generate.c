/* Synthetic data for logistic regression. Contract in generate.h; proved by tests/unit/test_generate.c.
 *
 * Every row has a random stream of its own, so a row does not depend on how the others were made. Only rbt_rng,
 * src/math/functions.h and IEEE operations (+ - * / sqrt) are used: the bits are the same everywhere.
 */
#include "data/generate.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "math/functions.h"

#define TRUTH_DENSITY 0.25 /* share of the features that matter */
#define TRUTH_SCALE   10.0 /* makes scores of a standard deviation of about 5: labels mostly follow them */

/* Streams of RBT_STREAM_GENERATE. */
enum { STREAM_RANKS, STREAM_TRUTH, STREAM_LENGTHS, STREAM_ROWS };

/* Everything that all rows have in common. */
typedef struct world {
    const rbt_generate_options *options;
    uint32_t *column; /* of a rank */
    float *rarity;    /* of a column: the idf of its features */
    float *truth;     /* of a column */
    uint32_t *taken;  /* of a column: the last row (counted from 1) that has it */
    double span;      /* of the inverted distribution, see draw_rank */
} world;

rbt_generate_options rbt_generate_defaults(void)
{
    return (rbt_generate_options){.rows = 10000, .cols = 1000, .nnz = 20, .skew = 1.1, .noise = 0.05, .seed = 1};
}

static rbt_err check(const rbt_generate_options *o, rbt_error *error)
{
    if (o->rows < 1 || o->rows > UINT32_MAX)
        return rbt_fail(error, RBT_E_USAGE, "rows = %zu: expected 1 to %u", o->rows, UINT32_MAX);
    if (o->cols < 1 || o->cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_USAGE, "cols = %zu: expected 1 to %u", o->cols, RBT_DATA_INDEX_LIMIT - 1);
    if (o->nnz < 1 || o->nnz > o->cols)
        return rbt_fail(error, RBT_E_USAGE, "nnz = %zu: expected 1 to the number of columns, %zu", o->nnz, o->cols);
    if (!(o->skew >= 0 && o->skew <= RBT_GENERATE_SKEW_MOST))
        return rbt_fail(error, RBT_E_USAGE, "skew = %g: expected 0 (all features alike) to %g", o->skew,
                        RBT_GENERATE_SKEW_MOST);
    if (!(o->noise >= 0 && o->noise <= 0.5))
        return rbt_fail(error, RBT_E_USAGE, "noise = %g: expected a probability from 0 to 0.5", o->noise);
    return RBT_OK;
}

static void world_deinit(world *w)
{
    rbt_free(w->column);
    rbt_free(w->rarity);
    rbt_free(w->truth);
    rbt_free(w->taken);
}

static bool even_logarithm(double skew)
{
    return fabs(1 - skew) < 1e-6;
}

static rbt_err world_init(world *w, const rbt_generate_options *o, rbt_error *error)
{
    *w = (world){
        .options = o,
        .column = rbt_try_alloc(o->cols, sizeof *w->column),
        .rarity = rbt_try_alloc(o->cols, sizeof *w->rarity),
        .truth = rbt_try_alloc(o->cols, sizeof *w->truth),
        .taken = rbt_try_alloc(o->cols, sizeof *w->taken),
    };
    if (w->column == NULL || w->rarity == NULL || w->truth == NULL || w->taken == NULL) {
        world_deinit(w);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu columns; use fewer", o->cols);
    }
    for (size_t k = 0; k < o->cols; k++)
        w->column[k] = (uint32_t)k;
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, STREAM_RANKS);
    rbt_rng_shuffle_u32(&rng, w->column, o->cols);

    rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, STREAM_TRUTH);
    for (size_t k = 0; k < o->cols; k++) {
        w->rarity[w->column[k]] = (float)(1 + rbt_ln((double)k + 1));
        if (rbt_rng_f64(&rng) < TRUTH_DENSITY)
            w->truth[w->column[k]] = (float)(TRUTH_SCALE * rbt_rng_normal(&rng));
    }
    double log_end = rbt_ln((double)o->cols + 1);
    w->span = even_logarithm(o->skew) ? log_end : rbt_exp((1 - o->skew) * log_end) - 1;
    return RBT_OK;
}

/* A rank from 0 to cols - 1: the floor of x from the density x^-skew on [1, cols + 1), by inverting its integral. */
static size_t draw_rank(const world *w, rbt_rng *rng)
{
    double skew = w->options->skew, u = rbt_rng_f64(rng), x;
    if (even_logarithm(skew))
        x = rbt_exp(u * w->span);
    else
        x = rbt_exp(rbt_ln(1 + u * w->span) / (1 - skew));
    if (!(x < (double)w->options->cols + 1))
        return w->options->cols - 1;
    return x < 1 ? 0 : (size_t)x - 1;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_ascending(uint32_t *index, size_t n)
{
    if (n > 100) {
        qsort(index, n, sizeof *index, by_number);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        uint32_t moving = index[i];
        size_t j = i;
        for (; j > 0 && index[j - 1] > moving; j--)
            index[j] = index[j - 1];
        index[j] = moving;
    }
}

/* n distinct columns. When the popular ones are used up and chance finds no others soon, the most popular columns that
 * are still missing fill the row: the number of draws is bounded. */
static void draw_columns(world *w, rbt_rng *rng, uint32_t mark, uint32_t *index, size_t n)
{
    size_t have = 0;
    for (size_t tries = 10 * n + 100; have < n && tries > 0; tries--) {
        uint32_t column = w->column[draw_rank(w, rng)];
        if (w->taken[column] == mark)
            continue;
        w->taken[column] = mark;
        index[have++] = column;
    }
    for (size_t k = 0; have < n; k++) {
        uint32_t column = w->column[k];
        if (w->taken[column] == mark)
            continue;
        w->taken[column] = mark;
        index[have++] = column;
    }
    sort_ascending(index, n);
}

static void draw_row(world *w, rbt_data *d, size_t row)
{
    const rbt_generate_options *o = w->options;
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, STREAM_ROWS + (uint64_t)row);
    size_t first = d->start[row], n = d->start[row + 1] - first;
    uint32_t *index = d->index + first;
    float *value = d->value + first;
    draw_columns(w, &rng, (uint32_t)row + 1, index, n);

    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        value[i] = (float)((0.5 + rbt_rng_f64(&rng)) * (double)w->rarity[index[i]]);
        squares += (double)value[i] * (double)value[i];
    }
    double length = sqrt(squares), score = 0;
    for (size_t i = 0; i < n; i++) {
        value[i] = (float)((double)value[i] / length);
        score += (double)value[i] * (double)w->truth[index[i]];
    }
    bool yes = rbt_rng_f64(&rng) < rbt_sigmoid(score);
    bool turned = rbt_rng_f64(&rng) < o->noise;
    d->label[row] = yes != turned ? 1 : -1;
}

/* Row lengths around nnz, as far on both sides as there is room. Returns the sum. */
static size_t draw_lengths(const rbt_generate_options *o, size_t *start)
{
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, STREAM_LENGTHS);
    size_t below = o->nnz - 1, above = o->cols - o->nnz, spread = below < above ? below : above, sum = 0;
    for (size_t row = 0; row < o->rows; row++) {
        size_t n = o->nnz - spread + (size_t)rbt_rng_below(&rng, 2 * (uint64_t)spread + 1);
        if (start != NULL)
            start[row + 1] = sum + n;
        sum += n;
    }
    return sum;
}

/* A model needs both labels to learn anything: a small set where chance gave only one gets the other in its last row.
 */
static void have_both_labels(rbt_data *d)
{
    for (size_t row = 1; row < d->rows; row++)
        if (d->label[row] != d->label[0])
            return;
    if (d->rows > 1)
        d->label[d->rows - 1] = -d->label[0];
}

rbt_err rbt_generate_lr(const rbt_generate_options *options, rbt_data *out, rbt_error *error)
{
    rbt_err err = check(options, error);
    if (err != RBT_OK)
        return err;
    world w;
    err = world_init(&w, options, error);
    if (err != RBT_OK)
        return err;
    rbt_data d;
    err = rbt_data_alloc(options->rows, draw_lengths(options, NULL), &d, error);
    if (err == RBT_OK) {
        d.rows = options->rows;
        d.cols = options->cols;
        d.nnz = draw_lengths(options, d.start);
        for (size_t row = 0; row < d.rows; row++)
            draw_row(&w, &d, row);
        have_both_labels(&d);
        *out = d;
    }
    world_deinit(&w);
    return err;
}
