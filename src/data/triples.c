/* Triples made to rows. Contract in triples.h; proved by tests/unit/test_ratings.c and test_docs.c. */
#include "data/triples.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/ids.h"
#include "data/parallel.h"

#define ROWS_AT_A_TIME 256 /* by one thread */

bool rbt_triples_init(rbt_triples *triples, size_t room)
{
    *triples = (rbt_triples){.at = rbt_try_alloc_raw(room > 0 ? room : 1, sizeof *triples->at)};
    return triples->at != NULL;
}

void rbt_triples_deinit(rbt_triples *triples)
{
    rbt_free(triples->at);
    *triples = (rbt_triples){0};
}

static rbt_err refuse_memory(const char *name, size_t count, rbt_error *error)
{
    return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for its %zu triples; use a larger machine", name,
                    count);
}

/* --------------------------------------------------------------------------------------------------- sorting rows */

/* Rows being put in order. Each keeps its place; how many are left of it stands in `left`. */
typedef struct sorting {
    rbt_data *data;
    uint32_t *left; /* of each row; NULL until some row has less than before */
    rbt_merge how;
    atomic_bool failed;
} sorting;

static void sort_rows(void *context, size_t item)
{
    sorting *s = context;
    rbt_data *d = s->data;
    size_t first = item * ROWS_AT_A_TIME, end = d->rows - first > ROWS_AT_A_TIME ? first + ROWS_AT_A_TIME : d->rows;
    size_t most = 0;
    for (size_t row = first; row < end; row++)
        most = d->start[row + 1] - d->start[row] > most ? d->start[row + 1] - d->start[row] : most;
    void *scratch = NULL;
    for (size_t row = first; row < end; row++) {
        size_t from = d->start[row], n = d->start[row + 1] - from;
        if (!rbt_features_ascend(d->index + from, n)) {
            if (scratch == NULL && (scratch = rbt_try_alloc_raw(most, RBT_MERGE_SCRATCH_BYTES)) == NULL) {
                atomic_store_explicit(&s->failed, true, memory_order_relaxed);
                return;
            }
            n = rbt_features_merge(d->index + from, d->value + from, n, s->how, scratch);
        }
        s->left[row] = (uint32_t)n; /* strictly ascending: no more than there are columns */
    }
    rbt_free(scratch);
}

/* Moves the rows together where some have lost features. */
static void close_up(rbt_data *d, const uint32_t *left)
{
    size_t to = 0;
    for (size_t row = 0; row < d->rows; row++) {
        size_t from = d->start[row];
        if (to != from) {
            memmove(d->index + to, d->index + from, left[row] * sizeof *d->index);
            memmove(d->value + to, d->value + from, left[row] * sizeof *d->value);
        }
        d->start[row] = to;
        to += left[row];
    }
    d->start[d->rows] = to;
    d->nnz = to;
}

static rbt_err sort_all(rbt_data *d, rbt_merge how, unsigned threads, const char *name, rbt_error *error)
{
    sorting s = {.data = d, .left = rbt_try_alloc_raw(d->rows + 1, sizeof *s.left), .how = how};
    if (s.left == NULL)
        return refuse_memory(name, d->nnz, error);
    rbt_parallel_for((d->rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME, threads, sort_rows, &s);
    bool failed = atomic_load_explicit(&s.failed, memory_order_relaxed);
    if (!failed)
        close_up(d, s.left);
    rbt_free(s.left);
    return failed ? refuse_memory(name, d->nnz, error) : RBT_OK;
}

/* -------------------------------------------------------------------------------------------------------- gathering */

static inline uint32_t mapped(const uint32_t *map, uint32_t i)
{
    return map != NULL ? map[i] : i;
}

/* The counting sort: start[r + 1] goes from how many row r has, over where it begins, to where it ends. */
static void sort_in(rbt_triples *const *lists, size_t count, rbt_data *d)
{
    memset(d->start, 0, (d->rows + 1) * sizeof *d->start);
    for (size_t l = 0; l < count; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            d->start[mapped(lists[l]->row_map, lists[l]->at[i].row) + 1]++;
    size_t before = 0;
    for (size_t r = 1; r <= d->rows; r++) {
        size_t n = d->start[r];
        d->start[r] = before;
        before += n;
    }
    for (size_t l = 0; l < count; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            const rbt_triple *t = &lists[l]->at[i];
            size_t to = d->start[mapped(lists[l]->row_map, t->row) + 1]++;
            d->index[to] = mapped(lists[l]->col_map, t->col);
            d->value[to] = t->value;
        }
        rbt_triples_deinit(lists[l]);
    }
}

rbt_err rbt_triples_gather(rbt_triples *const *lists, size_t count, size_t rows, size_t cols, rbt_merge how,
                           unsigned threads, const char *name, rbt_data *data, uint64_t *repeated, rbt_error *error)
{
    size_t nnz = 0;
    rbt_data d = {0};
    for (size_t l = 0; l < count; l++)
        nnz += lists[l]->count;
    if (rbt_data_alloc(rows, nnz, &d, NULL) != RBT_OK)
        return refuse_memory(name, nnz, error);
    d.rows = rows;
    d.cols = cols;
    d.nnz = nnz;
    memset(d.label, 0, rows * sizeof *d.label);
    sort_in(lists, count, &d);
    rbt_err err = sort_all(&d, how, threads, name, error);
    if (err != RBT_OK) {
        rbt_data_deinit(&d);
        return err;
    }
    *repeated = nnz - d.nnz;
    *data = d;
    return RBT_OK;
}

/* ---------------------------------------------------------------------------------------------- joining, renaming */

/* Where each of the names stands in the other list, to which they are added if it may change; NULL: no memory. */
static uint32_t *map_of(const rbt_ids *from, const rbt_ids *to, rbt_ids *grows)
{
    size_t n = rbt_ids_count(from);
    uint32_t *map = rbt_try_alloc_raw(n + 1, sizeof *map);
    for (size_t i = 0; map != NULL && i < n; i++) {
        const char *name = rbt_ids_name(from, i);
        map[i] = grows != NULL ? rbt_ids_add(grows, name, strlen(name))
                 : to != NULL  ? rbt_ids_look_up(to, name, strlen(name))
                               : (uint32_t)i;
        if (grows != NULL && map[i] == RBT_IDS_ABSENT) {
            rbt_free(map);
            return NULL;
        }
    }
    return map;
}

/* Adds the ratings that have a place by both maps; there is room. */
static void select_known(const rbt_data *data, const uint32_t *rows, const uint32_t *cols, rbt_triples *known)
{
    for (size_t r = 0; r < data->rows; r++)
        for (size_t i = data->start[r]; i < data->start[r + 1] && rows[r] != RBT_IDS_ABSENT; i++)
            if (cols[data->index[i]] != RBT_IDS_ABSENT)
                known->at[known->count++] = (rbt_triple){rows[r], cols[data->index[i]], data->value[i]};
}

rbt_err rbt_ratings_join(const rbt_data *parts, size_t count, rbt_data *data, rbt_error *error)
{
    rbt_ids *users = rbt_ids_create(), *items = rbt_ids_create();
    rbt_triples all = {0}, *list = &all;
    size_t nnz = 0;
    uint64_t repeated;
    rbt_err err = RBT_OK;
    for (size_t i = 0; i < count; i++) {
        nnz += parts[i].nnz;
        if (parts[i].row_names == NULL || parts[i].col_names == NULL)
            err = rbt_fail(error, RBT_E_DATA, "some files have ratings and some have other data; use files of a kind");
    }
    if (err == RBT_OK && (users == NULL || items == NULL || !rbt_triples_init(&all, nnz)))
        err = refuse_memory("files of ratings", nnz, error);
    for (size_t i = 0; err == RBT_OK && i < count; i++) {
        uint32_t *rows = map_of(parts[i].row_names, NULL, users), *cols = map_of(parts[i].col_names, NULL, items);
        if (rows != NULL && cols != NULL)
            select_known(&parts[i], rows, cols, &all);
        else
            err = refuse_memory("files of ratings", nnz, error);
        rbt_free(rows);
        rbt_free(cols);
    }
    if (err == RBT_OK)
        err = rbt_triples_gather(&list, 1, rbt_ids_count(users), rbt_ids_count(items), RBT_MERGE_LAST,
                                 rbt_parallel_threads(), "files of ratings", data, &repeated, error);
    rbt_triples_deinit(&all);
    if (err == RBT_OK) {
        data->content = RBT_CONTENT_RATINGS;
        data->row_names = users;
        data->col_names = items;
        return RBT_OK;
    }
    rbt_ids_unref(users);
    rbt_ids_unref(items);
    return err;
}

rbt_err rbt_ratings_rename(rbt_data *data, const rbt_ids *rows, const rbt_ids *cols, const char *name,
                           uint64_t *unknown, rbt_error *error)
{
    *unknown = 0;
    if (data->row_names == NULL || data->col_names == NULL || (rows == NULL && cols == NULL))
        return RBT_OK;
    uint32_t *row_map = map_of(data->row_names, rows, NULL), *col_map = map_of(data->col_names, cols, NULL);
    rbt_triples known = {0}, *list = &known;
    rbt_data d = {0};
    uint64_t repeated;
    size_t nnz = data->nnz;
    rbt_err err = RBT_OK;
    rbt_ids *row_names = rbt_ids_ref(rows != NULL ? (rbt_ids *)(uintptr_t)rows : data->row_names);
    rbt_ids *col_names = rbt_ids_ref(cols != NULL ? (rbt_ids *)(uintptr_t)cols : data->col_names);
    if (row_map == NULL || col_map == NULL || !rbt_triples_init(&known, nnz))
        err = refuse_memory(name, nnz, error);
    else
        select_known(data, row_map, col_map, &known);
    if (err == RBT_OK && known.count == 0)
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: none of its %zu ratings is of a user and an item that are known; give ratings by the users "
                       "and of the items that were trained with",
                       name, nnz);
    size_t count = known.count;
    if (err == RBT_OK)
        err = rbt_triples_gather(&list, 1, rbt_ids_count(row_names), rbt_ids_count(col_names), RBT_MERGE_LAST,
                                 rbt_parallel_threads(), name, &d, &repeated, error);
    if (err == RBT_OK) {
        rbt_data_deinit(data);
        *data = d;
        data->content = RBT_CONTENT_RATINGS;
        data->row_names = row_names;
        data->col_names = col_names;
        *unknown = nnz - count;
    } else {
        rbt_ids_unref(row_names);
        rbt_ids_unref(col_names);
    }
    rbt_triples_deinit(&known);
    rbt_free(row_map);
    rbt_free(col_map);
    return err;
}
