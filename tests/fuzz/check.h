/* What the fuzz targets of the readers share: the promises of an rbt_data (src/data/data.h), and comparing two. */
#ifndef TESTS_FUZZ_CHECK_H
#define TESTS_FUZZ_CHECK_H

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"

static inline void check_data(const rbt_data *d)
{
    RBT_ASSERT(d->rows > 0 && d->start[0] == 0 && d->start[d->rows] == d->nnz && d->cols < RBT_DATA_INDEX_LIMIT);
    for (size_t i = 1; i < d->label_count; i++)
        RBT_ASSERT(strcmp(d->label_names[i - 1], d->label_names[i]) < 0);
    for (size_t r = 0; r < d->rows; r++) {
        RBT_ASSERT(d->start[r] <= d->start[r + 1] && isfinite(d->label[r]));
        RBT_ASSERT(d->weight == NULL || (d->weight[r] > 0 && isfinite(d->weight[r])));
        RBT_ASSERT(d->label_names == NULL || (d->label[r] >= 0 && (size_t)d->label[r] < d->label_count));
        for (size_t i = d->start[r]; i < d->start[r + 1]; i++) {
            RBT_ASSERT(d->index[i] < d->cols && (i == d->start[r] || d->index[i - 1] < d->index[i]));
            RBT_ASSERT(isfinite(d->value[i]) && (d->value[i] != 0 || d->content == RBT_CONTENT_RATINGS));
        }
    }
}

static inline void check_same(const rbt_data *a, const rbt_data *b)
{
    RBT_ASSERT(a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->label_count == b->label_count);
    RBT_ASSERT(memcmp(a->start, b->start, (a->rows + 1) * sizeof *a->start) == 0);
    RBT_ASSERT(memcmp(a->index, b->index, a->nnz * sizeof *a->index) == 0);
    RBT_ASSERT(memcmp(a->value, b->value, a->nnz * sizeof *a->value) == 0);
    RBT_ASSERT(memcmp(a->label, b->label, a->rows * sizeof *a->label) == 0);
    RBT_ASSERT((a->weight == NULL) == (b->weight == NULL));
    RBT_ASSERT(a->weight == NULL || memcmp(a->weight, b->weight, a->rows * sizeof *a->weight) == 0);
    for (size_t i = 0; i < a->label_count; i++)
        RBT_ASSERT(strcmp(a->label_names[i], b->label_names[i]) == 0);
}

#endif
