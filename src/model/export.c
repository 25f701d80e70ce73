/* Trained models for others; the contract is in export.h. */
#include "model/export.h"

#include <stdio.h>
#include <string.h>

#include "data/file.h"
#include "data/number.h"
#include "data/origin.h"

#define NPY_ALIGN 64

static rbt_err end(rbt_output *output, rbt_err err, rbt_error *error)
{
    if (err == RBT_OK)
        return rbt_output_finish(output, true, error);
    rbt_output_abandon(output);
    return err;
}

/* Version 1.0 of the format: magic, u16 length of the header, the header as a Python literal, padded with blanks so that
 * the array begins at a multiple of 64. */
static rbt_err put_npy_header(const rbt_values *values, rbt_output *output, rbt_error *error)
{
    static const char *const TYPES[] = {[RBT_F32] = "<f4", [RBT_I32] = "<i4", [RBT_I64] = "<i8"};
    char header[3 * NPY_ALIGN], shape[48];
    if (values->cols == 1)
        snprintf(shape, sizeof shape, "(%llu,)", (unsigned long long)values->rows);
    else
        snprintf(shape, sizeof shape, "(%llu, %llu)", (unsigned long long)values->rows,
                 (unsigned long long)values->cols);
    size_t n =
        10 + (size_t)snprintf(header + 10, sizeof header - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                              TYPES[values->type], shape);
    size_t whole = (n + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(header + n, ' ', whole - n);
    header[whole - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((whole - 10) & 0xff);
    header[9] = (char)((whole - 10) >> 8);
    return rbt_output_put(output, header, whole, error);
}

rbt_err rbt_export_array(const rbt_values *values, const char *path, rbt_error *error)
{
    size_t n = (size_t)(values->rows * values->cols), size = values->type == RBT_I64 ? 8 : 4;
    rbt_output output;
    rbt_err err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = put_npy_header(values, &output, error);
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        uint64_t bits = 0;
        unsigned char bytes[8];
        if (size == 8) {
            bits = ((const uint64_t *)values->at)[i];
        } else {
            uint32_t half;
            memcpy(&half, (const char *)values->at + 4 * i, sizeof half);
            bits = half;
        }
        for (size_t k = 0; k < size; k++)
            bytes[k] = (unsigned char)(bits >> (8 * k));
        err = rbt_output_put(&output, bytes, size, error);
    }
    return end(&output, err, error);
}

rbt_err rbt_export_npy(const rbt_trained *t, const char *path, rbt_error *error)
{
    size_t outputs = t->model->outputs(&t->shape);
    const rbt_values values = {.type = RBT_F32, .rows = t->n / outputs, .cols = outputs, .at = t->w};
    return rbt_export_array(&values, path, error);
}

static rbt_err put_weights(const float *w, size_t n, rbt_output *output, rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (size_t k = 0; err == RBT_OK && k < n; k++) {
        char number[RBT_NUMBER_ROOM];
        number[rbt_number_print(w[k], number)] = '\0';
        err = rbt_output_print(output, error, k + 1 == n ? "\t%s\n" : "\t%s", number);
    }
    return err;
}

static bool any(const float *w, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (w[k] != 0)
            return true;
    return false;
}

rbt_err rbt_export_text(const rbt_trained *t, const rbt_vocab *vocab, const char *path, rbt_error *error)
{
    size_t outputs = t->model->outputs(&t->shape);
    rbt_origin origin = {0};
    rbt_output output;
    rbt_err err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    (void)rbt_origin_parse(t->origin, &origin);
    size_t first = rbt_origin_first(&origin);
    rbt_origin_deinit(&origin);
    if (t->shape.bias) {
        err = rbt_output_put(&output, "bias", 4, error);
        if (err == RBT_OK)
            err = put_weights(t->w + t->shape.cols * outputs, outputs, &output, error);
    }
    for (size_t i = 0; err == RBT_OK && i < t->shape.cols; i++) {
        const char *name = rbt_vocab_name(vocab, i);
        if (!any(t->w + i * outputs, outputs))
            continue;
        err = name != NULL ? rbt_output_put(&output, name, strlen(name), error)
                           : rbt_output_print(&output, error, "%zu", i + first);
        if (err == RBT_OK)
            err = put_weights(t->w + i * outputs, outputs, &output, error);
    }
    return end(&output, err, error);
}
