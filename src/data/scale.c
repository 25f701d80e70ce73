/* Features made alike. Contract in scale.h; proved by tests/unit/test_scale.c. */
#include "data/scale.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"

static rbt_err no_memory(size_t cols, rbt_error *error)
{
    return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the means of %zu features; use --normalize unit", cols);
}

void rbt_scaling_add(double *sums, const rbt_data *data)
{
    double *squares = sums + data->cols;
    for (size_t i = 0; i < data->nnz; i++) {
        sums[data->index[i]] += (double)data->value[i];
        squares[data->index[i]] += (double)data->value[i] * (double)data->value[i];
    }
}

rbt_err rbt_scaling_finish(rbt_scaling *scaling, const double *sums, size_t cols, size_t rows, size_t nnz,
                           rbt_error *error)
{
    bool dense = (double)nnz >= RBT_SCALE_DENSE * (double)rows * (double)cols;
    *scaling = (rbt_scaling){.cols = cols,
                             .mean = dense ? rbt_try_alloc(cols + 1, sizeof *scaling->mean) : NULL,
                             .scale = rbt_try_alloc(cols + 1, sizeof *scaling->scale)};
    if (scaling->scale == NULL || (dense && scaling->mean == NULL)) {
        rbt_scaling_deinit(scaling);
        return no_memory(cols, error);
    }
    for (size_t j = 0; j < cols; j++) {
        double mean = sums[j] / (double)rows;
        double variance = sums[cols + j] / (double)rows - mean * mean;
        bool varies = variance > 1e-12 * mean * mean; /* more than rounding */
        scaling->scale[j] = varies ? (float)fmin(1 / sqrt(variance), RBT_SCALE_MOST) : 1;
        scaling->faint += varies && 1 / sqrt(variance) > RBT_SCALE_MOST;
        if (dense)
            scaling->mean[j] = varies ? (float)mean : 0;
    }
    return RBT_OK;
}

rbt_err rbt_scaling_learn(rbt_scaling *scaling, const rbt_data *data, rbt_error *error)
{
    double *sums = rbt_try_alloc(data->cols + 1, 2 * sizeof *sums);
    if (sums == NULL)
        return no_memory(data->cols, error);
    rbt_scaling_add(sums, data);
    rbt_err err = rbt_scaling_finish(scaling, sums, data->cols, data->rows, data->nnz, error);
    rbt_free(sums);
    return err;
}

void rbt_scaling_deinit(rbt_scaling *scaling)
{
    rbt_free(scaling->mean);
    rbt_free(scaling->scale);
    *scaling = (rbt_scaling){0};
}

/* Moving features makes zeros non-zeros: every row gets all features. */
static rbt_err fill(const rbt_scaling *scaling, rbt_data *data, rbt_error *error)
{
    size_t cols = scaling->cols > data->cols ? scaling->cols : data->cols;
    rbt_data full = {0};
    rbt_err err;
    if (data->rows > 0 && cols > SIZE_MAX / sizeof(float) / data->rows)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu dense rows; use --normalize unit", data->rows);
    err = rbt_data_alloc(data->rows, data->rows * cols, &full, error);
    if (err != RBT_OK)
        return err;
    RBT_ASSERT(full.index != NULL && full.value != NULL);
    for (size_t r = 0; r < data->rows; r++) {
        float *value = full.value + r * cols;
        uint32_t *index = full.index + r * cols;
        for (size_t j = 0; j < cols; j++) {
            index[j] = (uint32_t)j;
            value[j] = 0;
        }
        for (size_t i = data->start[r]; i < data->start[r + 1]; i++)
            value[data->index[i]] = data->value[i];
        full.start[r + 1] = (r + 1) * cols;
    }
    full.rows = data->rows;
    full.cols = cols;
    full.nnz = data->rows * cols;
    memcpy(full.label, data->label, data->rows * sizeof *full.label);
    full.weight = data->weight;
    full.label_names = data->label_names;
    full.label_count = data->label_count;
    full.content = data->content;
    full.row_names = data->row_names;
    full.col_names = data->col_names;
    data->weight = NULL; /* moved */
    data->row_names = data->col_names = NULL;
    data->label_names = NULL;
    data->label_count = 0;
    rbt_data_deinit(data);
    *data = full;
    return RBT_OK;
}

rbt_err rbt_scaling_apply(const rbt_scaling *scaling, rbt_data *data, rbt_error *error)
{
    rbt_err err = scaling->mean != NULL ? fill(scaling, data, error) : rbt_data_own(data, error);
    for (size_t i = 0; err == RBT_OK && i < data->nnz; i++) {
        size_t j = data->index[i];
        if (j < scaling->cols)
            data->value[i] =
                (float)(((double)data->value[i] - (scaling->mean != NULL ? (double)scaling->mean[j] : 0)) *
                        (double)scaling->scale[j]); /* the largest floats lie further apart than one can tell */
    }
    return err;
}

void rbt_scaling_fold(const rbt_scaling *scaling, size_t outputs, float *w)
{
    float *bias = w + scaling->cols * outputs;
    for (size_t j = 0; j < scaling->cols; j++)
        for (size_t k = 0; k < outputs; k++) {
            w[j * outputs + k] *= scaling->scale[j];
            if (scaling->mean != NULL)
                bias[k] -= scaling->mean[j] * w[j * outputs + k];
        }
}
