/* Rows turned into columns: for methods that go through data feature by feature.
 *
 * Called by lasso.c and l1lr.c. Rows within a column ascend, and are numbered by their place in the list that was given.
 * Proved by tests/unit/test_lasso.c. */
#ifndef RBT_METHOD_COLUMNS_H
#define RBT_METHOD_COLUMNS_H

#include "rubato.h"

typedef struct rbt_columns {
    size_t rows, cols;
    size_t *start; /* cols + 1 */
    uint32_t *row;
    float *value;
} rbt_columns;

/* Of the n rows listed; NULL: of all n rows. */
rbt_err rbt_columns_create(const rbt_data *data, const uint32_t *rows, size_t n, rbt_columns *columns,
                           rbt_error *error);
void rbt_columns_destroy(rbt_columns *columns);

#endif
