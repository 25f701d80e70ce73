/* Data sets in memory: making, reading and ending them. Contract in data.h; proved by tests/unit/test_libsvm.c and
 * test_data.c (several files, compressed files). */
#include "data/data.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/libsvm.h"
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
    rbt_free(data->start);
    rbt_free(data->index);
    rbt_free(data->value);
    rbt_free(data->label);
    *data = (rbt_data){0};
}

/* ----------------------------------------------------------------------------------------------------- reading */

/* The files a path stands for, in the order they are read. */
typedef struct files {
    RBT_ARRAY(rbt_input) inputs;
    glob_t matches; /* whose names the inputs use */
} files;

static void close_files(files *f)
{
    for (size_t i = 0; i < f->inputs.count; i++)
        rbt_input_close(&f->inputs.at[i]);
    rbt_array_free(&f->inputs);
    globfree(&f->matches);
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

/* glob(3) itself sorts as the locale says; the order of rows must not depend on that. */
static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static rbt_err open_matches(files *f, const char *pattern, rbt_error *error)
{
    errno = 0;
    int status = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &f->matches);
    if (status == GLOB_NOMATCH)
        return rbt_fail(error, RBT_E_IO, "%s: no file matches; check the pattern and the folder", pattern);
    if (status != 0)
        return rbt_fail(error, status == GLOB_NOSPACE ? RBT_E_MEMORY : RBT_E_IO, "%s: cannot be searched for: %s",
                        pattern, status == GLOB_NOSPACE ? "not enough memory" : strerror(errno));
    qsort(f->matches.gl_pathv, f->matches.gl_pathc, sizeof *f->matches.gl_pathv, by_bytes);
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < f->matches.gl_pathc; i++)
        err = open_file(f, f->matches.gl_pathv[i], error);
    return err;
}

bool rbt_data_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL && access(path, F_OK) != 0;
}

static rbt_err parse_files(const files *f, const char *name, rbt_data *data, rbt_error *error)
{
    rbt_text *texts = rbt_alloc(f->inputs.count, sizeof *texts);
    for (size_t i = 0; i < f->inputs.count; i++)
        texts[i] = (rbt_text){f->inputs.at[i].name, f->inputs.at[i].bytes, f->inputs.at[i].n};
    rbt_err err = rbt_libsvm_parse(texts, f->inputs.count, name, rbt_libsvm_cut_default(), data, error);
    rbt_free(texts);
    return err;
}

rbt_err rbt_data_take(rbt_input *input, rbt_data *data, rbt_error *error)
{
    files f = {0};
    rbt_array_push(&f.inputs, *input);
    *input = (rbt_input){0};
    rbt_err err = rbt_input_unpack(&f.inputs.at[0], error);
    if (err == RBT_OK)
        err = parse_files(&f, f.inputs.at[0].name, data, error);
    close_files(&f);
    return err;
}

rbt_err rbt_data_read(const char *path, rbt_data *data, rbt_error *error)
{
    files f = {0};
    rbt_err err = rbt_data_is_pattern(path) ? open_matches(&f, path, error) : open_file(&f, path, error);
    if (err == RBT_OK)
        err = parse_files(&f, f.inputs.count == 1 ? f.inputs.at[0].name : path, data, error);
    close_files(&f);
    return err;
}
