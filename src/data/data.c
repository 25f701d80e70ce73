/* Data sets in memory: making, joining and ending them. Contract in data.h; proved by tests/unit/test_datacache.c and
 * test_reading.c. */
#include "data/data.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/file.h"
#include "data/ids.h"
#include "data/names.h"
#include "data/triples.h"

/* Who visits rows with others may be late, when the processor went to somebody else: what it touches after the
 * others have come through is released once they are so many blocks further. (With one block, a fifth of a cache
 * of 250 MB stayed on two cores that others used, too.) */
#define LATE_BLOCKS 16

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
        (void)rbt_fail(error, RBT_E_MEMORY,
                       "not enough memory for data of %zu rows and %zu non-zeros; use fewer rows or a larger machine",
                       rows, nnz);
        return RBT_E_MEMORY;
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
    rbt_ids_unref(data->row_names);
    rbt_ids_unref(data->col_names);
    rbt_free(data->origin);
    *data = (rbt_data){0};
}

/* ---------------------------------------------------------------------------------------------------- streaming */

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
    block -= block / size < LATE_BLOCKS ? block : LATE_BLOCKS * size;
    rbt_data_release_rows(data, block, end - block);
}

void rbt_data_release_values(const rbt_data *data, size_t first, size_t n)
{
    if (data->streamed)
        rbt_mapping_release(data->mapping, data->mapping_bytes, data->value + first, n * sizeof *data->value);
}

size_t rbt_data_block_rows(const rbt_data *data)
{
    size_t bytes = data->rows * sizeof *data->start + data->nnz * (sizeof *data->index + sizeof *data->value);
    size_t blocks = bytes / RBT_DATA_BLOCK_BYTES + 1, rows = data->rows / blocks;
    return rows > 0 ? rows : 1;
}

/* ------------------------------------------------------------------------------------------------------- labels */

static char **copy_names(char *const *names, size_t count)
{
    char **copy = rbt_alloc(count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = rbt_strdup(names[i]);
    return copy;
}

/* The names of all parts, ascending, each once. */
static rbt_err join_names(const rbt_data *parts, size_t count, rbt_data *d, rbt_error *error)
{
    RBT_ARRAY(char *) all = {0};
    for (size_t i = 0; i < count; i++) {
        if ((parts[i].label_names == NULL) != (parts[0].label_names == NULL)) {
            rbt_names_free(&(rbt_names){all.at, all.count});
            return rbt_fail(error, RBT_E_DATA,
                            "some files have words as labels and some have numbers; use files with the same labels");
        }
        for (size_t k = 0; parts[i].label_names != NULL && k < parts[i].label_count; k++)
            rbt_array_push(&all, rbt_strdup(parts[i].label_names[k]));
    }
    rbt_names names = {all.at, all.count};
    rbt_names_sort(&names);
    d->label_names = names.at;
    d->label_count = names.count;
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------ joining */

/* The labels of the part that comes next, by the names of all. */
static void renumber(rbt_data *d, const rbt_data *part)
{
    const rbt_names names = {d->label_names, d->label_count};
    for (size_t r = 0; r < part->rows; r++)
        d->label[d->rows + r] = (float)rbt_names_find(&names, part->label_names[(size_t)part->label[r]]);
}

/* What all parts are; ratings are not put together with anything else. */
static rbt_err join_content(const rbt_data *parts, size_t count, rbt_data *d, rbt_error *error)
{
    d->content = parts[0].content;
    for (size_t i = 1; i < count; i++) {
        if ((parts[i].content == RBT_CONTENT_RATINGS) != (parts[0].content == RBT_CONTENT_RATINGS))
            return rbt_fail(error, RBT_E_DATA, "some files have ratings and some have other data; use files of a kind");
        if (parts[i].content != d->content)
            d->content = RBT_CONTENT_ROWS;
    }
    if (count == 1) {
        d->row_names = rbt_ids_ref(parts[0].row_names);
        d->col_names = rbt_ids_ref(parts[0].col_names);
    }
    return RBT_OK;
}

/* How all parts were read, if it is known of all and the same. */
static char *common_origin(const rbt_data *parts, size_t count)
{
    bool same = count > 0 && parts[0].origin != NULL;
    for (size_t i = 1; same && i < count; i++)
        same = parts[i].origin != NULL && strcmp(parts[i].origin, parts[0].origin) == 0;
    return same ? rbt_strdup(parts[0].origin) : NULL;
}

rbt_err rbt_data_join(const rbt_data *parts, size_t count, rbt_data *data, rbt_error *error)
{
    size_t rows = 0, nnz = 0;
    bool weighted = false;
    rbt_data d = {0};
    if (count > 1 && parts[0].row_names != NULL)
        return rbt_ratings_join(parts, count, data, error);
    for (size_t i = 0; i < count; i++) {
        rows += parts[i].rows;
        nnz += parts[i].nnz;
        weighted |= parts[i].weight != NULL;
    }
    rbt_err err = rbt_data_alloc(rows, nnz, &d, error);
    if (err == RBT_OK)
        err = join_content(parts, count, &d, error);
    if (err == RBT_OK)
        err = join_names(parts, count, &d, error);
    if (err == RBT_OK && weighted && (d.weight = rbt_try_alloc_raw(rows, sizeof *d.weight)) == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the weights of %zu rows", rows);
    if (err != RBT_OK) {
        rbt_data_deinit(&d);
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        const rbt_data *p = &parts[i];
        for (size_t r = 1; r <= p->rows; r++)
            d.start[d.rows + r] = d.nnz + p->start[r];
        memcpy(d.index + d.nnz, p->index, p->nnz * sizeof *d.index);
        memcpy(d.value + d.nnz, p->value, p->nnz * sizeof *d.value);
        memcpy(d.label + d.rows, p->label, p->rows * sizeof *d.label);
        if (d.label_count > p->label_count)
            renumber(&d, p);
        for (size_t r = 0; d.weight != NULL && r < p->rows; r++)
            d.weight[d.rows + r] = p->weight != NULL ? p->weight[r] : 1;
        d.rows += p->rows;
        d.nnz += p->nnz;
        d.cols = p->cols > d.cols ? p->cols : d.cols;
    }
    d.origin = common_origin(parts, count);
    *data = d;
    return RBT_OK;
}

/* The names of the columns, and of n rows: those listed, or those from `first` on. */
static rbt_err select_names(const rbt_data *data, const uint32_t *rows, size_t first, size_t n, rbt_data *d,
                            rbt_error *error)
{
    d->content = data->content;
    d->origin = data->origin != NULL ? rbt_strdup(data->origin) : NULL;
    d->col_names = rbt_ids_ref(data->col_names);
    if (data->row_names == NULL)
        return RBT_OK;
    uint32_t *list = rows == NULL ? rbt_try_alloc_raw(n + 1, sizeof *list) : NULL;
    for (size_t i = 0; list != NULL && i < n; i++)
        list[i] = (uint32_t)(first + i);
    if (list != NULL || rows != NULL)
        d->row_names = rbt_ids_select(data->row_names, rows != NULL ? rows : list, n);
    rbt_free(list);
    if (d->row_names == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the names of %zu users, each of them once", n);
    return RBT_OK;
}

/* Row i of a selection has been copied: its block leaves memory, unless the next row is in it, too. */
static void release_selected(const rbt_data *data, const uint32_t *rows, size_t n, size_t i)
{
    if (!data->streamed)
        return;
    size_t size = rbt_data_block_rows(data), block = rows[i] / size * size, left = data->rows - block;
    if (i + 1 == n || rows[i + 1] / size != rows[i] / size)
        rbt_data_release_rows(data, block, left < size ? left : size);
}

rbt_err rbt_data_select(const rbt_data *data, const uint32_t *rows, size_t n, rbt_data *out, rbt_error *error)
{
    size_t nnz = 0;
    rbt_data d = {0};
    for (size_t i = 0; i < n; i++) {
        nnz += data->start[rows[i] + 1] - data->start[rows[i]];
        release_selected(data, rows, n, i);
    }
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
        if (d.weight != NULL)
            d.weight[i] = data->weight[rows[i]];
        release_selected(data, rows, n, i);
    }
    d.rows = n;
    d.cols = data->cols;
    if (data->label_names != NULL) {
        d.label_names = copy_names(data->label_names, data->label_count);
        d.label_count = data->label_count;
    }
    err = select_names(data, rows, 0, n, &d, error);
    if (err == RBT_OK)
        *out = d;
    else
        rbt_data_deinit(&d);
    return err;
}

rbt_err rbt_data_slice(const rbt_data *data, size_t first, size_t n, rbt_data *out, rbt_error *error)
{
    size_t from = data->start[first], features = data->start[first + n] - from;
    rbt_data d = {0};
    rbt_err err = rbt_data_alloc(n, features, &d, error);
    if (err == RBT_OK && data->weight != NULL && (d.weight = rbt_try_alloc_raw(n + 1, sizeof *d.weight)) == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the weights of %zu rows", n);
    if (err != RBT_OK) {
        rbt_data_deinit(&d);
        return err;
    }
    for (size_t r = 1; r <= n; r++)
        d.start[r] = data->start[first + r] - from;
    memcpy(d.index, data->index + from, features * sizeof *d.index);
    memcpy(d.value, data->value + from, features * sizeof *d.value);
    memcpy(d.label, data->label + first, n * sizeof *d.label);
    if (d.weight != NULL)
        memcpy(d.weight, data->weight + first, n * sizeof *d.weight);
    d.rows = n;
    d.nnz = features;
    d.cols = data->cols;
    if (data->label_names != NULL) {
        d.label_names = copy_names(data->label_names, data->label_count);
        d.label_count = data->label_count;
    }
    err = select_names(data, NULL, first, n, &d, error);
    if (err == RBT_OK)
        *out = d;
    else
        rbt_data_deinit(&d);
    return err;
}

uint64_t rbt_data_hash(const rbt_data *data)
{
    uint64_t hash = rbt_hash(data->start, (data->rows + 1) * sizeof *data->start, data->cols);
    hash = rbt_hash(data->index, data->nnz * sizeof *data->index, hash);
    hash = rbt_hash(data->value, data->nnz * sizeof *data->value, hash);
    hash = rbt_hash(data->label, data->rows * sizeof *data->label, hash);
    if (data->weight != NULL)
        hash = rbt_hash(data->weight, data->rows * sizeof *data->weight, hash);
    for (size_t i = 0; i < data->label_count; i++)
        hash = rbt_hash(data->label_names[i], strlen(data->label_names[i]), hash);
    return hash;
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
