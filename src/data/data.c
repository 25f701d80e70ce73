/* Data sets in memory: making, reading and ending them. Contract in data.h; proved by tests/unit/test_libsvm.c and
 * test_data.c (several files, compressed files). */
#include "data/data.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/libsvm.h"
#include "data/paths.h"
#include "data/unpack.h"

rbt_err rbt_data_alloc(size_t rows, size_t nnz, rbt_data *data, rbt_error *error)
{
    /* One element at least, so that no array is NULL. */
    size_t features = nnz > 0 ? nnz : 1;
    rbt_data d = {
        .start = rows < SIZE_MAX ? rbt_try_alloc_raw(rows + 1, sizeof *d.start) : NULL,
        .index = rbt_try_alloc_raw(features, sizeof *d.index),
        .value = rbt_try_alloc_raw(features, sizeof *d.value),
        .label = rbt_try_alloc_raw(rows > 0 ? rows : 1, sizeof *d.label),
    };
    if (d.start == NULL || d.index == NULL || d.value == NULL || d.label == NULL) {
        rbt_data_deinit(&d);
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for data of %zu rows and %zu non-zeros; use fewer rows or a larger machine",
                        rows, nnz);
    }
    d.start[0] = 0;
    *data = d;
    return RBT_OK;
}

void rbt_data_deinit(rbt_data *data)
{
    if (data->mapping != NULL) {
        (void)munmap(data->mapping, data->mapping_bytes);
    } else {
        rbt_free(data->start);
        rbt_free(data->index);
        rbt_free(data->value);
    }
    rbt_free(data->label);
    rbt_free(data->weight);
    for (size_t i = 0; i < data->label_count; i++)
        rbt_free(data->label_names[i]);
    rbt_free(data->label_names);
    *data = (rbt_data){0};
}

void rbt_data_release_rows(const rbt_data *data, size_t first, size_t n)
{
    if (!data->streamed || n == 0)
        return;
    size_t from = data->start[first], features = data->start[first + n] - from;
    rbt_mapping_release(data->mapping, data->mapping_bytes, data->index + from, features * sizeof *data->index);
    rbt_mapping_release(data->mapping, data->mapping_bytes, data->value + from, features * sizeof *data->value);
    rbt_mapping_release(data->mapping, data->mapping_bytes, data->start + first, (n + 1) * sizeof *data->start);
}

void rbt_data_release_passed(const rbt_data *data, size_t first, size_t n)
{
    if (!data->streamed)
        return;
    size_t size = rbt_data_block_rows(data), block = first / size * size, end = first + n;
    if (end / size == first / size && end < data->rows)
        return;
    block -= block > 0 ? size : 0; /* another thread may have been late in the block before */
    rbt_data_release_rows(data, block, end - block);
}

size_t rbt_data_block_rows(const rbt_data *data)
{
    size_t bytes = data->rows * sizeof *data->start + data->nnz * (sizeof *data->index + sizeof *data->value);
    size_t blocks = bytes / RBT_DATA_BLOCK_BYTES + 1, rows = data->rows / blocks;
    return rows > 0 ? rows : 1;
}

rbt_err rbt_data_join(const rbt_data *parts, size_t count, rbt_data *data, rbt_error *error)
{
    size_t rows = 0, nnz = 0;
    bool weighted = false;
    rbt_data d = {0};
    for (size_t i = 0; i < count; i++) {
        rows += parts[i].rows;
        nnz += parts[i].nnz;
        weighted |= parts[i].weight != NULL;
    }
    rbt_err err = rbt_data_alloc(rows, nnz, &d, error);
    if (err != RBT_OK)
        return err;
    if (weighted)
        d.weight = rbt_alloc(rows, sizeof *d.weight);
    for (size_t i = 0; i < count; i++) {
        const rbt_data *p = &parts[i];
        for (size_t r = 1; r <= p->rows; r++)
            d.start[d.rows + r] = d.nnz + p->start[r];
        memcpy(d.index + d.nnz, p->index, p->nnz * sizeof *d.index);
        memcpy(d.value + d.nnz, p->value, p->nnz * sizeof *d.value);
        memcpy(d.label + d.rows, p->label, p->rows * sizeof *d.label);
        for (size_t r = 0; weighted && r < p->rows; r++)
            d.weight[d.rows + r] = p->weight != NULL ? p->weight[r] : 1;
        d.rows += p->rows;
        d.nnz += p->nnz;
        d.cols = p->cols > d.cols ? p->cols : d.cols;
    }
    *data = d;
    return RBT_OK;
}

/* The names of labels, again. */
static void copy_names(const rbt_data *from, rbt_data *to)
{
    if (from->label_names == NULL)
        return;
    to->label_names = rbt_alloc(from->label_count, sizeof *to->label_names);
    to->label_count = from->label_count;
    for (size_t i = 0; i < from->label_count; i++)
        to->label_names[i] = rbt_strdup(from->label_names[i]);
}

rbt_err rbt_data_select(const rbt_data *data, const uint32_t *rows, size_t n, rbt_data *out, rbt_error *error)
{
    size_t nnz = 0;
    rbt_data d = {0};
    for (size_t i = 0; i < n; i++)
        nnz += data->start[rows[i] + 1] - data->start[rows[i]];
    rbt_err err = rbt_data_alloc(n, nnz, &d, error);
    if (err != RBT_OK)
        return err;
    d.weight = data->weight != NULL ? rbt_alloc(n, sizeof *d.weight) : NULL;
    for (size_t i = 0; i < n; i++) {
        size_t first = data->start[rows[i]], features = data->start[rows[i] + 1] - first;
        memcpy(d.index + d.nnz, data->index + first, features * sizeof *d.index);
        memcpy(d.value + d.nnz, data->value + first, features * sizeof *d.value);
        d.nnz += features;
        d.start[i + 1] = d.nnz;
        d.label[i] = data->label[rows[i]];
        rbt_data_release_rows(data, rows[i], 1);
        if (d.weight != NULL)
            d.weight[i] = data->weight[rows[i]];
    }
    d.rows = n;
    d.cols = data->cols;
    copy_names(data, &d);
    *out = d;
    return RBT_OK;
}

rbt_err rbt_data_own(rbt_data *data, rbt_error *error)
{
    rbt_data copy = {0};
    if (data->mapping == NULL)
        return RBT_OK;
    if (data->streamed)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "data that streams from the disk cannot be changed in memory, as --normalize demands; use "
                        "--store memory or both");
    rbt_err err = rbt_data_join(data, 1, &copy, error);
    if (err != RBT_OK)
        return err;
    copy.label_names = data->label_names;
    copy.label_count = data->label_count;
    data->label_names = NULL; /* moved */
    data->label_count = 0;
    rbt_data_deinit(data);
    *data = copy;
    return RBT_OK;
}

rbt_err rbt_data_scale_rows(rbt_data *data, rbt_error *error)
{
    rbt_err err = rbt_data_own(data, error);
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++) {
        double squares = 0;
        for (size_t i = data->start[r]; i < data->start[r + 1]; i++)
            squares += (double)data->value[i] * (double)data->value[i];
        for (size_t i = data->start[r]; i < data->start[r + 1]; i++)
            data->value[i] = (float)((double)data->value[i] / sqrt(squares));
    }
    return err;
}

/* ----------------------------------------------------------------------------------------------------- reading */

/* The files a path stands for, in the order they are read. */
typedef struct files {
    RBT_ARRAY(rbt_input) inputs;
    rbt_paths paths; /* whose names the inputs use */
} files;

static void close_files(files *f)
{
    for (size_t i = 0; i < f->inputs.count; i++)
        rbt_input_close(&f->inputs.at[i]);
    rbt_array_free(&f->inputs);
    rbt_paths_free(&f->paths);
}

static rbt_err open_file(files *f, const char *path, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    rbt_array_push(&f->inputs, input);
    return rbt_input_unpack(&f->inputs.at[f->inputs.count - 1], error);
}

bool rbt_data_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL && access(path, F_OK) != 0;
}

static rbt_err parse_texts(const files *f, const char *name, rbt_data *data, rbt_error *error)
{
    rbt_text *texts = rbt_alloc(f->inputs.count, sizeof *texts);
    for (size_t i = 0; i < f->inputs.count; i++)
        texts[i] = (rbt_text){f->inputs.at[i].name, f->inputs.at[i].bytes, f->inputs.at[i].n};
    rbt_err err = rbt_libsvm_parse(texts, f->inputs.count, name, rbt_libsvm_cut_default(), data, error);
    rbt_free(texts);
    return err;
}

static rbt_err join_caches(const files *f, rbt_data *data, rbt_error *error)
{
    rbt_data *views = rbt_alloc(f->inputs.count, sizeof *views);
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < f->inputs.count; i++)
        err = rbt_cache_decode(f->inputs.at[i].bytes, f->inputs.at[i].n, f->inputs.at[i].name, &views[i], error);
    if (err == RBT_OK)
        err = rbt_data_join(views, f->inputs.count, data, error);
    rbt_free(views);
    return err;
}

/* All text or all caches: whether text counts from 0 is seen in the text alone, a cache cannot tell any more. */
static rbt_err read_files(files *f, const char *name, rbt_data *data, rbt_error *error)
{
    const rbt_input *first = &f->inputs.at[0];
    bool caches = rbt_cache_recognise(first->bytes, first->n);
    for (size_t i = 1; i < f->inputs.count; i++) {
        const rbt_input *other = &f->inputs.at[i];
        if (rbt_cache_recognise(other->bytes, other->n) != caches)
            return rbt_fail(
                error, RBT_E_DATA,
                "%s: matches %s, which is a cache, and %s, which is not; choose a pattern that matches one kind", name,
                caches ? first->name : other->name, caches ? other->name : first->name);
    }
    if (!caches)
        return parse_texts(f, name, data, error);
    return f->inputs.count == 1 ? rbt_cache_take(&f->inputs.at[0], data, error) : join_caches(f, data, error);
}

rbt_err rbt_data_take(rbt_input *input, rbt_data *data, rbt_error *error)
{
    files f = {0};
    rbt_array_push(&f.inputs, *input);
    *input = (rbt_input){0};
    rbt_err err = rbt_input_unpack(&f.inputs.at[0], error);
    if (err == RBT_OK)
        err = read_files(&f, f.inputs.at[0].name, data, error);
    close_files(&f);
    return err;
}

rbt_err rbt_data_read(const char *path, rbt_data *data, rbt_error *error)
{
    files f = {0};
    rbt_err err = rbt_paths_list(path, &f.paths, error);
    for (size_t i = 0; err == RBT_OK && i < f.paths.count; i++)
        err = open_file(&f, f.paths.at[i], error);
    if (err == RBT_OK)
        err = read_files(&f, f.inputs.count == 1 ? f.inputs.at[0].name : path, data, error);
    close_files(&f);
    return err;
}
