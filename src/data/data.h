/* Data sets in memory: making, joining, writing and looking into an rbt_data (which rubato.h declares).
 *
 * Called by the readers and the generator (making), the commands (writing) and the models (rbt_data_row_fit). Always
 * holds of every rbt_data that this folder makes: start ascends from 0 to nnz, the indices of a row ascend strictly and
 * stay below cols, no value is zero (but a rating may be), values and labels are finite, weights are finite and above 0, label names ascend
 * strictly and a label is the number of one, there is at least one row.
 * Proved by tests/unit/test_libsvm.c and tests/fuzz/fuzz_libsvm.c.
 */
#ifndef RBT_DATA_DATA_H
#define RBT_DATA_DATA_H

#include "rubato.h"

/* Every index, as it is written in a file, and every number of columns is below this: an index and one more (the bias)
 * fit 32 bits. */
#define RBT_DATA_INDEX_LIMIT UINT32_C(4294967295)

/* Streamed data is worked on in blocks of rows of about this size. */
#define RBT_DATA_BLOCK_BYTES (size_t)(2 * 1024 * 1024)

/* Memory for that many rows and features; rows, cols, nnz and start[0] are set to 0 for the caller to fill in, the rest is
 * whatever was there. */
rbt_err rbt_data_alloc(size_t rows, size_t nnz, rbt_data *data, rbt_error *error);

/* The rows of all parts, one part after the other, in memory of their own. Ratings are put together by the names of users
 * and items, in the order in which the parts first have them; a later part's rating of a pair counts. */
rbt_err rbt_data_join(const rbt_data *parts, size_t count, rbt_data *data, rbt_error *error);

/* A copy of the given rows, in that order. */
rbt_err rbt_data_select(const rbt_data *data, const uint32_t *rows, size_t n, rbt_data *out, rbt_error *error);

/* A copy of rows first .. first + n - 1; there may be none. */
rbt_err rbt_data_slice(const rbt_data *data, size_t first, size_t n, rbt_data *out, rbt_error *error);

/* A number that two data sets have in common only if their rows are the same, with labels and weights. */
uint64_t rbt_data_hash(const rbt_data *data);

/* Scales every row to length 1; rows without features stay. Mapped values are copied first. */
rbt_err rbt_data_scale_rows(rbt_data *data, rbt_error *error);

/* Makes the values writable: mapped data is replaced by a copy in memory. */
rbt_err rbt_data_own(rbt_data *data, rbt_error *error);

/* Parses LIBSVM text as docs/formats.md describes it. `name` stands before the line number in messages. */
rbt_err rbt_data_parse_libsvm(const char *text, size_t bytes, const char *name, rbt_data *data, rbt_error *error);

/* Writes LIBSVM text that reads back as the same data. "-" is the standard output. A failure leaves no file. */
rbt_err rbt_data_write_libsvm(const rbt_data *data, const char *path, rbt_error *error);

/* The caller is through with rows first .. first + n - 1 for now. Data that streams from its mapping gives their memory
 * back; they are read again when they are touched again, so that other threads may be at them. Other data stays. */
void rbt_data_release_rows(const rbt_data *data, size_t first, size_t n);

/* The same for who visits all rows from the first to the last, perhaps by several threads, some at a time, and has come
 * through first .. first + n - 1: rows are released when a block of them is complete. */
void rbt_data_release_passed(const rbt_data *data, size_t first, size_t n);

/* The same for some of all values, by their places among them: for who looks at values and not at rows. */
void rbt_data_release_values(const rbt_data *data, size_t first, size_t n);

/* How many rows at a time one works on so that little of a streamed data set is in memory: at least 1. */
size_t rbt_data_block_rows(const rbt_data *data);

/* How much a row counts. */
static inline double rbt_data_weight(const rbt_data *data, size_t row)
{
    return data->weight != NULL ? (double)data->weight[row] : 1;
}

/* How many of a row's features, counted from its first, have an index below `cols`. A model made for `cols` features
 * looks at these only: data it is applied to may know more features than it was trained on. */
static inline size_t rbt_data_row_fit(const rbt_data *data, size_t row, size_t cols)
{
    size_t first = data->start[row], low = first, high = data->start[row + 1];
    if (data->cols <= cols)
        return high - first;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (data->index[middle] < cols)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

#endif
