/* IDX images. Contract in idx.h, format in docs/formats.md; proved by tests/unit/test_idx.c and tests/fuzz/fuzz_idx.c. */
#include "data/idx.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/parallel.h"

#define TYPE_BYTE      8   /* the third byte of the magic number: unsigned bytes */
#define ROWS_AT_A_TIME 256 /* by one thread */

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool rbt_idx_recognise(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    return n >= 4 && at[0] == 0 && at[1] == 0 && at[2] >= 8 && at[2] <= 14 && at[3] >= 1;
}

/* An IDX file of bytes: `rows` times `cols` of them from `at` on. */
typedef struct array {
    const unsigned char *at;
    size_t rows;
    size_t cols;
} array;

static rbt_err decode(const rbt_input *input, array *out, rbt_error *error)
{
    const unsigned char *at = (const unsigned char *)input->bytes;
    if (!rbt_idx_recognise(at, input->n))
        return rbt_fail(error, RBT_E_DATA, "%s: is no IDX file: it should begin with the bytes 0 0 8 and a number",
                        input->name);
    if (at[2] != TYPE_BYTE)
        return rbt_fail(error, RBT_E_UNSUPPORTED, "%s: has numbers of type 0x%02x; only unsigned bytes (0x08) are read",
                        input->name, at[2]);
    size_t dimensions = at[3], head = 4 + 4 * dimensions, cols = 1;
    if (input->n < head)
        return rbt_fail(error, RBT_E_DATA, "%s: ends within its header; get the file again", input->name);
    size_t rows = get_u32(at + 4), body = input->n - head;
    for (size_t i = 1; i < dimensions; i++)
        if (__builtin_mul_overflow(cols, (size_t)get_u32(at + 4 + 4 * i), &cols))
            cols = SIZE_MAX;
    size_t need;
    if (__builtin_mul_overflow(rows, cols, &need) || need != body)
        return rbt_fail(error, RBT_E_DATA, "%s: promises %zu times %zu bytes and has %zu; get the file again",
                        input->name, rows, cols, body);
    *out = (array){at + head, rows, cols};
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------- filling */

typedef struct filling {
    array images;
    rbt_data *data;
} filling;

static size_t last_row(const array *images, size_t item)
{
    size_t row = item * ROWS_AT_A_TIME;
    return images->rows - row > ROWS_AT_A_TIME ? row + ROWS_AT_A_TIME : images->rows;
}

/* start[row + 1] = how many pixels of the row are not black. */
static void count_rows(void *context, size_t item)
{
    const filling *f = context;
    for (size_t row = item * ROWS_AT_A_TIME; row < last_row(&f->images, item); row++) {
        const unsigned char *pixel = f->images.at + row * f->images.cols;
        size_t n = 0;
        for (size_t i = 0; i < f->images.cols; i++)
            n += pixel[i] != 0;
        f->data->start[row + 1] = n;
    }
}

static void fill_rows(void *context, size_t item)
{
    const filling *f = context;
    rbt_data *d = f->data;
    for (size_t row = item * ROWS_AT_A_TIME; row < last_row(&f->images, item); row++) {
        const unsigned char *pixel = f->images.at + row * f->images.cols;
        size_t to = d->start[row];
        for (size_t i = 0; i < f->images.cols; i++) {
            if (pixel[i] == 0)
                continue;
            d->index[to] = (uint32_t)i;
            d->value[to++] = (float)pixel[i] / 255;
        }
    }
}

static rbt_err fill(const array *images, const array *labels, rbt_data *data, rbt_error *error)
{
    size_t *start = rbt_try_alloc(images->rows + 1, sizeof *start);
    rbt_data d = {.start = start};
    filling f = {.images = *images, .data = &d};
    if (start == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu images", images->rows);
    size_t items = (images->rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME;
    rbt_parallel_for(items, rbt_parallel_threads(), count_rows, &f);
    for (size_t row = 0; row < images->rows; row++)
        start[row + 1] += start[row];
    rbt_err err = rbt_data_alloc(images->rows, start[images->rows], &d, error);
    if (err == RBT_OK) {
        memcpy(d.start, start, (images->rows + 1) * sizeof *start);
        d.rows = images->rows;
        d.cols = images->cols;
        d.nnz = start[images->rows];
        rbt_parallel_for(items, rbt_parallel_threads(), fill_rows, &f);
        for (size_t row = 0; row < d.rows; row++)
            d.label[row] = labels != NULL ? (float)labels->at[row] : 0;
        *data = d;
    }
    rbt_free(start);
    return err;
}

rbt_err rbt_idx_parse(const rbt_input *images, const rbt_input *labels, rbt_data *data, rbt_error *error)
{
    array pixels = {0}, classes = {0};
    rbt_err err = decode(images, &pixels, error);
    if (err == RBT_OK && labels != NULL)
        err = decode(labels, &classes, error);
    if (err != RBT_OK)
        return err;
    if (images->bytes[3] == 1)
        return rbt_fail(error, RBT_E_DATA, "%s: holds labels; give the file of images, and this one with --label",
                        images->name);
    if (labels != NULL && labels->bytes[3] != 1)
        return rbt_fail(error, RBT_E_DATA, "%s: holds no labels but an array of %d dimensions; give another --label",
                        labels->name, labels->bytes[3]);
    if (pixels.rows == 0 || pixels.cols == 0)
        return rbt_fail(error, RBT_E_DATA, "%s: has no rows; expected one image of one pixel or more", images->name);
    if (pixels.cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%s: has %zu pixels per image; there must be fewer than %u", images->name,
                        pixels.cols, RBT_DATA_INDEX_LIMIT);
    if (labels != NULL && classes.rows != pixels.rows)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: has %zu labels for the %zu images of %s; give the files that belong together",
                        labels->name, classes.rows, pixels.rows, images->name);
    return fill(&pixels, labels != NULL ? &classes : NULL, data, error);
}

char *rbt_idx_partner(const char *path)
{
    const char *slash = strrchr(path, '/'), *images = strstr(slash != NULL ? slash : path, "images");
    if (images == NULL)
        return NULL;
    char *partner = rbt_strdup(path); /* both words are as long */
    memcpy(partner + (images - path), "labels", strlen("labels"));
    char *dimensions = strstr(partner + (images - path), "idx");
    if (dimensions != NULL && dimensions[3] >= '1' && dimensions[3] <= '9')
        dimensions[3] = '1';
    return partner;
}
