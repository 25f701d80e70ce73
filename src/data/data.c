/* Data sets in memory: making, reading and ending them. Contract in data.h; proved by tests/unit/test_libsvm.c. */
#include "data/data.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"

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
    rbt_free(data->start);
    rbt_free(data->index);
    rbt_free(data->value);
    rbt_free(data->label);
    *data = (rbt_data){0};
}

/* The tool that undoes a compression we recognise by its first bytes, or NULL. */
static const char *compressed_by(const rbt_input *input)
{
    if (input->n >= 4 && memcmp(input->bytes, "\x28\xb5\x2f\xfd", 4) == 0)
        return "zstd -d";
    if (input->n >= 2 && memcmp(input->bytes, "\x1f\x8b", 2) == 0)
        return "gunzip";
    return NULL;
}

rbt_err rbt_data_read(const char *path, rbt_data *data, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    const char *tool = compressed_by(&input);
    if (tool != NULL)
        err =
            rbt_fail(error, RBT_E_DATA, "%s: is compressed, and LIBSVM text was expected; decompress it first with %s",
                     input.name, tool);
    else
        err = rbt_data_parse_libsvm(input.bytes, input.n, input.name, data, error);
    rbt_input_close(&input);
    return err;
}
