/* Columns that occur. Contract in columns.h; proved by tests/unit/test_newton.c. */
#include "solve/columns.h"

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"

rbt_err rbt_columns_init(rbt_columns *columns, const rbt_problem *problem, size_t most, rbt_error *error)
{
    const rbt_data *data = problem->data;
    size_t cols = problem->shape->cols, words = cols / 64 + 1;
    *columns = (rbt_columns){.seen = rbt_try_alloc(words, sizeof *columns->seen),
                             .before = rbt_try_alloc(words, sizeof *columns->before)};
    if (columns->seen == NULL || columns->before == NULL) {
        rbt_columns_deinit(columns);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to see which of %zu features occur", cols);
    }
    for (size_t row = 0; row < data->rows && columns->count <= most; row++) {
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
            uint32_t j = data->index[i];
            if (j < cols && !rbt_columns_occurs(columns, j)) {
                columns->seen[j / 64] |= UINT64_C(1) << j % 64;
                columns->count++;
            }
        }
        rbt_data_release_passed(data, row, 1);
    }
    for (size_t i = 1; i < words; i++)
        columns->before[i] = columns->before[i - 1] + (uint32_t)__builtin_popcountll(columns->seen[i - 1]);
    return RBT_OK;
}

void rbt_columns_deinit(rbt_columns *columns)
{
    rbt_free(columns->seen);
    rbt_free(columns->before);
    *columns = (rbt_columns){0};
}
