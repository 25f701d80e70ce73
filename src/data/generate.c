/* Generated rows, in memory and in files. Contract in generate.h; proved by tests/unit/test_generate.c.
 *
 * Rows are made in blocks, each a function of the options and its number alone, by all cores. Row lengths come from one
 * stream over all rows: its state at the start of each block is worked out beforehand, which takes a few nanoseconds a
 * row.
 */
#include "data/generate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/generate_world.h"
#include "data/libsvm.h"
#include "data/parallel.h"

#define BLOCK_FEATURES (size_t)8192
#define BLOCK_CELLS    (size_t)65536 /* of CSV */

rbt_generate_options rbt_generate_defaults(void)
{
    return (rbt_generate_options){.rows = 10000, .cols = 1000, .nnz = 20, .skew = 1.1, .noise = 0.05, .seed = 1};
}

rbt_err rbt_generate_check_count(const char *name, size_t value, size_t most, rbt_error *error)
{
    if (value < 1 || value > most)
        return rbt_fail(error, RBT_E_USAGE, "--%s %zu is out of range; give a number from 1 to %zu", name, value, most);
    return RBT_OK;
}

rbt_err rbt_generate_check_skew(double skew, rbt_error *error)
{
    if (!(skew >= 0 && skew <= RBT_GENERATE_SKEW_MOST))
        return rbt_fail(error, RBT_E_USAGE,
                        "--skew %g is out of range; give a number from 0, where all are alike, to %g", skew,
                        RBT_GENERATE_SKEW_MOST);
    return RBT_OK;
}

rbt_err rbt_generate_check_noise(double noise, double most, rbt_error *error)
{
    if (!(noise >= 0 && noise <= most))
        return rbt_fail(error, RBT_E_USAGE, "--noise %g is out of range; give %s from 0 to %g", noise,
                        most <= 1 ? "a probability" : "a standard deviation", most);
    return RBT_OK;
}

size_t rbt_generate_length(size_t nnz, size_t cols, rbt_rng *rng)
{
    size_t below = nnz - 1, above = cols - nnz, spread = below < above ? below : above;
    return nnz - spread + (size_t)rbt_rng_below(rng, 2 * (uint64_t)spread + 1);
}

static rbt_err check(const rbt_rows_options *options, rbt_error *error)
{
    static const double noise_most[] = {0.5, 1e6, 1, 1};
    const rbt_generate_options *o = &options->common;
    rbt_err err = rbt_generate_check_count("rows", o->rows, UINT32_MAX, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("cols", o->cols, RBT_DATA_INDEX_LIMIT - 1, error);
    if (err != RBT_OK)
        return err;
    if (o->nnz < 1 || o->nnz > o->cols)
        return rbt_fail(error, RBT_E_USAGE,
                        "--nnz %zu is out of range; give a number from 1 to that of the columns, %zu", o->nnz, o->cols);
    err = rbt_generate_check_skew(o->skew, error);
    if (err == RBT_OK)
        err = rbt_generate_check_noise(o->noise, noise_most[options->kind], error);
    if (err != RBT_OK)
        return err;
    if (options->kind == RBT_ROWS_MULTICLASS && (options->classes < 2 || options->classes > RBT_GENERATE_CLASSES_MOST))
        return rbt_fail(error, RBT_E_USAGE, "--classes %zu is out of range; give a number from 2 to %zu",
                        options->classes, RBT_GENERATE_CLASSES_MOST);
    if (options->kind == RBT_ROWS_CLICKS && !(options->rate > 0 && options->rate < 1))
        return rbt_fail(error, RBT_E_USAGE, "--rate %g is out of range; give a probability between 0 and 1",
                        options->rate);
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------ blocks */

typedef struct generator {
    rbt_world world;
    const rbt_rows_options *options;
    const rbt_writing *how;
    rbt_format format;
    size_t block_rows, blocks;
    rbt_rng *lengths; /* the stream of lengths where each block begins */
    size_t *first;    /* the features before each block, then all of them */
    bool turn_last;   /* all rows have one label: the last gets another */
    rbt_data data;    /* when it is made in memory */
    atomic_bool last_column_used;
    atomic_int failed; /* an rbt_err of some block, in memory */
} generator;

static void generator_deinit(generator *g)
{
    rbt_world_deinit(&g->world);
    rbt_free(g->lengths);
    rbt_free(g->first);
}

static size_t row_length(const generator *g, rbt_rng *lengths)
{
    const rbt_generate_options *o = &g->options->common;
    return g->options->kind == RBT_ROWS_CLICKS ? o->nnz : rbt_generate_length(o->nnz, o->cols, lengths);
}

static size_t block_end(const generator *g, size_t block)
{
    size_t rows = g->options->common.rows, first = block * g->block_rows;
    return rows - first < g->block_rows ? rows : first + g->block_rows;
}

static rbt_err plan_blocks(generator *g, rbt_error *error)
{
    rbt_err err = RBT_OK;
    rbt_rng lengths = rbt_rng_stream(g->options->common.seed, RBT_STREAM_GENERATE, RBT_GENERATE_LENGTHS);
    g->first[0] = 0;
    for (size_t b = 0; err == RBT_OK && b < g->blocks; b++) {
        size_t sum = g->first[b];
        g->lengths[b] = lengths;
        for (size_t row = b * g->block_rows; row < block_end(g, b); row++)
            sum += row_length(g, &lengths);
        g->first[b + 1] = sum;
        err = rbt_writing_check(g->how, error);
    }
    return err;
}

/* The rows of a block: their features from start[0] on, their labels, and where each ends. */
static rbt_err make_rows(generator *g, size_t block, size_t *start, rbt_data *to, float *label, rbt_error *error)
{
    rbt_row_room room;
    rbt_err err = rbt_row_room_init(&room, g->options, error);
    if (err != RBT_OK)
        return err;
    rbt_rng lengths = g->lengths[block];
    size_t first = block * g->block_rows, end = block_end(g, block);
    bool used = false;
    for (size_t row = first; row < end; row++, start++) {
        size_t n = row_length(g, &lengths);
        *label++ = rbt_world_row(&g->world, &room, row, n, to->index + *start, to->value + *start);
        start[1] = *start + n;
        used |= to->index[*start + n - 1] == g->options->common.cols - 1;
    }
    if (g->turn_last && end == g->options->common.rows) {
        float only = label[-1];
        label[-1] = g->options->kind == RBT_ROWS_MULTICLASS   ? (only == 1 ? 2 : 1)
                    : g->options->kind == RBT_ROWS_REGRESSION ? only + 1
                                                              : -only;
    }
    if (used)
        atomic_store_explicit(&g->last_column_used, true, memory_order_relaxed);
    rbt_row_room_deinit(&room);
    return RBT_OK;
}

/* A block by itself. */
static rbt_err make_block(generator *g, size_t block, rbt_data *data, rbt_error *error)
{
    size_t rows = block_end(g, block) - block * g->block_rows;
    rbt_data d;
    rbt_err err = rbt_data_alloc(rows, g->first[block + 1] - g->first[block], &d, error);
    if (err != RBT_OK)
        return err;
    err = make_rows(g, block, d.start, &d, d.label, error);
    d.rows = rows;
    d.cols = g->options->common.cols;
    d.nnz = err == RBT_OK ? d.start[rows] : 0;
    if (err == RBT_OK)
        *data = d;
    else
        rbt_data_deinit(&d);
    return err;
}

/* A model needs two labels to learn anything: a small set where chance gave only one gets another in its last row. Most
 * sets show two in their first block. */
static rbt_err look_for_two_labels(generator *g, rbt_error *error)
{
    float only = 0;
    for (size_t b = 0; b < g->blocks; b++) {
        rbt_data d;
        rbt_err err = make_block(g, b, &d, error);
        if (err != RBT_OK)
            return err;
        only = b == 0 ? d.label[0] : only;
        size_t row = 0;
        while (row < d.rows && d.label[row] == only)
            row++;
        bool other = row < d.rows;
        rbt_data_deinit(&d);
        if (other)
            return RBT_OK;
        err = rbt_writing_check(g->how, error);
        if (err != RBT_OK)
            return err;
    }
    g->turn_last = g->options->common.rows > 1;
    return RBT_OK;
}

/* The options have been checked. */
static rbt_err generator_init(generator *g, const rbt_rows_options *options, rbt_format format, const rbt_writing *how,
                              rbt_error *error)
{
    const rbt_generate_options *o = &options->common;
    size_t rows = format == RBT_FORMAT_CSV ? BLOCK_CELLS / (o->cols + 1) + 1 : BLOCK_FEATURES / o->nnz + 1;
    *g = (generator){.options = options, .how = how, .format = format, .block_rows = rows};
    g->blocks = (o->rows + rows - 1) / rows;
    rbt_err err = rbt_world_init(&g->world, options, error);
    if (err != RBT_OK)
        return err;
    g->lengths = rbt_try_alloc_raw(g->blocks, sizeof *g->lengths);
    g->first = rbt_try_alloc_raw(g->blocks + 1, sizeof *g->first);
    if (g->lengths == NULL || g->first == NULL) {
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu rows; use fewer", o->rows);
    } else {
        err = plan_blocks(g, error);
        if (err == RBT_OK)
            err = look_for_two_labels(g, error);
        atomic_store(&g->last_column_used, false);
    }
    if (err != RBT_OK)
        generator_deinit(g);
    return err;
}

/* --------------------------------------------------------------------------------------------------- in memory */

static void fill_block(void *context, size_t block)
{
    generator *g = context;
    rbt_data *d = &g->data;
    if (atomic_load_explicit(&g->failed, memory_order_relaxed) != RBT_OK)
        return;
    size_t row = block * g->block_rows, rows = block_end(g, block) - row;
    /* Where the next block begins is that block's to write: both would write the same. */
    size_t *start = rbt_alloc(rows + 1, sizeof *start);
    start[0] = g->first[block];
    rbt_err err = make_rows(g, block, start, d, d->label + row, NULL);
    if (err == RBT_OK)
        err = rbt_writing_check(g->how, NULL);
    if (err != RBT_OK)
        atomic_store_explicit(&g->failed, (int)err, memory_order_relaxed);
    else
        memcpy(d->start + row, start, rows * sizeof *start);
    rbt_free(start);
}

static rbt_err generate_in_memory(const rbt_rows_options *options, const rbt_writing *how, rbt_data *out,
                                  rbt_error *error)
{
    generator g;
    rbt_err err = check(options, error);
    size_t rows = options->common.rows;
    if (err == RBT_OK)
        err = rbt_draw_check_memory((double)rows * (12 + 8 * (double)options->common.nnz),
                                    "data of that many rows and features", error);
    if (err == RBT_OK)
        err = generator_init(&g, options, RBT_FORMAT_CACHE, how, error);
    if (err != RBT_OK)
        return err;
    size_t nnz = g.first[g.blocks];
    err = rbt_data_alloc(rows, nnz, &g.data, error);
    if (err == RBT_OK) {
        rbt_parallel_for(g.blocks, rbt_writing_threads(how), fill_block, &g);
        g.data.rows = rows;
        g.data.cols = options->common.cols;
        g.data.nnz = g.data.start[rows] = nnz;
        err = (rbt_err)atomic_load(&g.failed);
        if (err == RBT_OK)
            *out = g.data;
        else
            rbt_data_deinit(&g.data);
        if (err == RBT_E_INTERRUPTED)
            (void)rbt_writing_check(how, error);
        else if (err != RBT_OK)
            (void)rbt_fail(error, err, "not enough memory for rows of that many features; use shorter rows");
    }
    generator_deinit(&g);
    return err;
}

rbt_err rbt_generate_rows(const rbt_rows_options *options, unsigned threads, rbt_data *out, rbt_error *error)
{
    return generate_in_memory(options, &(rbt_writing){.path = "memory", .threads = threads}, out, error);
}

rbt_err rbt_generate_lr(const rbt_generate_options *options, rbt_data *out, rbt_error *error)
{
    return rbt_generate_rows(&(rbt_rows_options){.kind = RBT_ROWS_LR, .common = *options}, 0, out, error);
}

/* ---------------------------------------------------------------------------------------------------- in files */

static rbt_err print_block(void *context, size_t block, rbt_buffer *out, rbt_error *error)
{
    generator *g = context;
    rbt_data d;
    rbt_err err = make_block(g, block, &d, error);
    if (err != RBT_OK)
        return err;
    err = rbt_rows_print(g->format, &d, 0, d.rows, out, error);
    rbt_data_deinit(&d);
    return err;
}

static rbt_err end_text(void *context, rbt_buffer *last, rbt_error *error)
{
    generator *g = context;
    if (g->format != RBT_FORMAT_LIBSVM || atomic_load(&g->last_column_used))
        return RBT_OK;
    return rbt_rows_print_width(g->options->common.cols, last, error);
}

static rbt_err write_cache(const rbt_rows_options *options, const rbt_writing *how, rbt_error *error)
{
    rbt_data data;
    rbt_err err = generate_in_memory(options, how, &data, error);
    if (err != RBT_OK)
        return err;
    data.origin = rbt_libsvm_origin(false); /* as if the text had been written and read */
    err = rbt_data_write(&data, RBT_FORMAT_CACHE, how, error);
    rbt_data_deinit(&data);
    return err;
}

rbt_err rbt_generate_write(const rbt_rows_options *options, rbt_format format, const rbt_writing *how, rbt_error *error)
{
    generator g;
    rbt_err err = check(options, error);
    if (err == RBT_OK)
        err = rbt_format_check_cols(format, options->common.cols, how->path, error);
    if (err != RBT_OK || format == RBT_FORMAT_CACHE)
        return err != RBT_OK ? err : write_cache(options, how, error);
    err = generator_init(&g, options, format, how, error);
    if (err != RBT_OK)
        return err;
    rbt_buffer head = {0};
    rbt_making pieces = {.count = g.blocks, .make = print_block, .end = end_text, .context = &g};
    err = rbt_rows_print_head(format, &(rbt_data){.cols = options->common.cols}, &head, error);
    if (err == RBT_OK)
        err = rbt_making_write_file(&pieces, how, &head, error);
    rbt_buffer_deinit(&head);
    generator_deinit(&g);
    return err;
}
