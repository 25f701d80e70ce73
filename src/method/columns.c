/* Rows turned into columns. Contract in columns.h. */
#include "method/columns.h"

#include "base/error.h"
#include "base/mem.h"

rbt_err rbt_columns_create(const rbt_data *data, const uint32_t *rows, size_t n, rbt_columns *columns, rbt_error *error)
{
    rbt_columns c = {.rows = n, .cols = data->cols, .start = rbt_try_alloc(data->cols + 2, sizeof *c.start)};
    size_t nnz = 0;

    for (size_t i = 0; i < n; i++) {
        size_t r = rows != NULL ? rows[i] : i;

        nnz += data->start[r + 1] - data->start[r];
        for (size_t k = data->start[r]; c.start != NULL && k < data->start[r + 1]; k++)
            c.start[data->index[k] + 2]++;
    }
    c.row = rbt_try_alloc(nnz + 1, sizeof *c.row);
    c.value = rbt_try_alloc(nnz + 1, sizeof *c.value);
    if (c.start == NULL || c.row == NULL || c.value == NULL) {
        rbt_columns_destroy(&c);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the columns of %zu non-zeros", nnz);
    }
    for (size_t j = 1; j < c.cols; j++) /* start[j + 1]: where the next entry of column j goes */
        c.start[j + 1] += c.start[j];
    for (size_t i = 0; i < n; i++) {
        size_t r = rows != NULL ? rows[i] : i;

        for (size_t k = data->start[r]; k < data->start[r + 1]; k++) {
            size_t at = c.start[data->index[k] + 1]++;

            c.row[at] = (uint32_t)i;
            c.value[at] = data->value[k];
        }
    }
    *columns = c;
    return RBT_OK;
}

void rbt_columns_destroy(rbt_columns *columns)
{
    rbt_free(columns->start);
    rbt_free(columns->row);
    rbt_free(columns->value);
    *columns = (rbt_columns){0};
}
