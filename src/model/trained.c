/* Trained models in files: rbt_trained_save, rbt_trained_load and rbt_trained_deinit of rubato.h.
 *
 * Little-endian, versioned, with an xxHash checksum over everything before it; the format is docs/formats.md. Always
 * holds: a file appears complete or not at all, any damaged byte is detected, and every field is checked before it is
 * used. Proved by tests/unit/test_trained.c (every byte turned over, every truncation, full disk) and
 * tests/fuzz/fuzz_trained.c.
 */
#include "model/trained.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/origin.h"
#include "model/classes.h"
#include "model/model.h"

#define CHUNK_FLOATS   4096
#define FLAG_BIAS      1u
#define FLAG_UNIT_ROWS 2u

/* Not text, and broken by whatever changes line ends or cuts the eighth bit. */
static const unsigned char magic[8] = {0x89, 'R', 'B', 'T', '\r', '\n', 0x1a, '\n'};

/* ------------------------------------------------------------------------------------------------ little-endian */

static void put_u32(unsigned char *at, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(x >> (8 * i));
}

static void put_u64(unsigned char *at, uint64_t x)
{
    put_u32(at, (uint32_t)x);
    put_u32(at + 4, (uint32_t)(x >> 32));
}

static void put_f64(unsigned char *at, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_u64(at, bits);
}

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const unsigned char *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static double get_f64(const unsigned char *at)
{
    uint64_t bits = get_u64(at);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float get_f32(const unsigned char *at)
{
    uint32_t bits = get_u32(at);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ------------------------------------------------------------------------------------------------------- saving */

/* The bytes of the names, each with its end. */
static size_t names_bytes(const rbt_shape *shape)
{
    size_t bytes = 0;
    for (size_t i = 0; shape->names != NULL && i < shape->classes; i++)
        bytes += strlen(shape->names[i]) + 1;
    return bytes;
}

static void encode_header(const rbt_trained *trained, unsigned char header[RBT_TRAINED_HEADER_BYTES])
{
    const rbt_shape *shape = &trained->shape;
    memset(header, 0, RBT_TRAINED_HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    put_u32(header + 8, RBT_TRAINED_VERSION);
    put_u32(header + 12, (shape->bias ? FLAG_BIAS : 0) | (shape->unit_rows ? FLAG_UNIT_ROWS : 0));
    put_u64(header + 16, shape->cols);
    put_u64(header + 24, shape->classes);
    put_u64(header + 32, names_bytes(shape));
    put_u64(header + 40, trained->n);
    memcpy(header + 48, trained->model->name, strlen(trained->model->name));
    put_f64(header + 80, shape->delta);
    put_u64(header + 88, trained->origin != NULL ? strlen(trained->origin) : 0);
}

static rbt_err put_hashed(rbt_output *output, rbt_hasher *hasher, const void *bytes, size_t n, rbt_error *error)
{
    rbt_hasher_add(hasher, bytes, n);
    return rbt_output_put(output, bytes, n, error);
}

/* The classes: labels as f64, or names. */
static rbt_err put_classes(const rbt_shape *shape, rbt_output *output, rbt_hasher *hasher, rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < shape->classes; i++) {
        unsigned char label[8];
        if (shape->names != NULL) {
            err = put_hashed(output, hasher, shape->names[i], strlen(shape->names[i]) + 1, error);
            continue;
        }
        put_f64(label, shape->labels[i]);
        err = put_hashed(output, hasher, label, sizeof label, error);
    }
    return err;
}

static rbt_err put_all(const rbt_trained *trained, rbt_output *output, rbt_hasher *hasher, rbt_error *error)
{
    unsigned char header[RBT_TRAINED_HEADER_BYTES], chunk[CHUNK_FLOATS * 4], sum[RBT_TRAINED_SUM_BYTES];
    encode_header(trained, header);
    rbt_err err = put_hashed(output, hasher, header, sizeof header, error);
    if (err == RBT_OK)
        err = put_classes(&trained->shape, output, hasher, error);
    for (size_t first = 0; err == RBT_OK && first < trained->n; first += CHUNK_FLOATS) {
        size_t n = trained->n - first < CHUNK_FLOATS ? trained->n - first : CHUNK_FLOATS;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &trained->w[first + i], sizeof bits);
            put_u32(chunk + 4 * i, bits);
        }
        err = put_hashed(output, hasher, chunk, 4 * n, error);
    }
    if (err == RBT_OK && trained->origin != NULL)
        err = put_hashed(output, hasher, trained->origin, strlen(trained->origin), error);
    if (err != RBT_OK)
        return err;
    put_u64(sum, rbt_hasher_value(hasher));
    return rbt_output_put(output, sum, sizeof sum, error);
}

rbt_err rbt_trained_save(const rbt_trained *trained, const char *path, rbt_error *error)
{
    if (strlen(trained->model->name) >= RBT_TRAINED_NAME_BYTES)
        return rbt_fail(error, RBT_E_LIMIT, "%s: not written: the model's name '%s' has more than %d characters", path,
                        trained->model->name, RBT_TRAINED_NAME_BYTES - 1);
    if (trained->n != trained->model->size(&trained->shape))
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: %zu parameters were given where the shape needs %zu",
                        path, trained->n, trained->model->size(&trained->shape));
    for (size_t i = 0; i < trained->n; i++)
        if (!isfinite(trained->w[i]))
            return rbt_fail(error, RBT_E_DIVERGED,
                            "%s: not written: parameter %zu of the model is not finite; train with a smaller step size",
                            path, i);
    rbt_output output;
    rbt_err err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    rbt_hasher *hasher = rbt_hasher_create(0);
    err = put_all(trained, &output, hasher, error);
    rbt_hasher_destroy(hasher);
    if (err == RBT_OK)
        return rbt_output_finish(&output, true, error);
    rbt_output_abandon(&output);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ loading */

static size_t header_bytes(const unsigned char *at)
{
    return get_u32(at + 8) == RBT_TRAINED_OLD_VERSION ? RBT_TRAINED_HEADER_BYTES - 8 : RBT_TRAINED_HEADER_BYTES;
}

/* Of what it says about how the data was read. */
static uint64_t origin_bytes(const unsigned char *at)
{
    return get_u32(at + 8) == RBT_TRAINED_OLD_VERSION ? 0 : get_u64(at + 88);
}

/* Is this one of our files, whole and undamaged? */
static rbt_err check_frame(const unsigned char *at, size_t n, const char *name, rbt_error *error)
{
    if (n < sizeof magic || memcmp(at, magic, sizeof magic) != 0)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: is not a Rubato model (its first bytes are others); give a file that "
                        "`rubato train --out` wrote",
                        name);
    size_t least = (n >= 12 ? header_bytes(at) : RBT_TRAINED_HEADER_BYTES) + RBT_TRAINED_SUM_BYTES;
    if (n < least)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: is cut short: %zu bytes, a model has at least %zu; copy or train it again", name, n,
                        least);
    uint32_t version = get_u32(at + 8);
    if (version != RBT_TRAINED_VERSION && version != RBT_TRAINED_OLD_VERSION)
        return rbt_fail(
            error, RBT_E_UNSUPPORTED,
            "%s: has format version %u, this program reads versions %d and %d; use the program that wrote it", name,
            version, RBT_TRAINED_OLD_VERSION, RBT_TRAINED_VERSION);
    uint64_t floats = get_u64(at + 40), have = (n - least) / 4, classes = get_u64(at + 24), names = get_u64(at + 32);
    uint64_t class_bytes = names > 0 ? names : 8 * classes, origin = origin_bytes(at);
    if (classes > RBT_CLASSES_LIMIT || names > n || floats > have || origin > n ||
        n - least != class_bytes + 4 * floats + origin)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: is damaged: it promises %llu classes and %llu parameters, and its %zu bytes do not hold "
                        "just these; copy or train it again",
                        name, (unsigned long long)classes, (unsigned long long)floats, n);
    if (get_u64(at + n - RBT_TRAINED_SUM_BYTES) != rbt_hash(at, n - RBT_TRAINED_SUM_BYTES, 0))
        return rbt_fail(error, RBT_E_DATA, "%s: is damaged: its checksum does not match; copy or train it again", name);
    return RBT_OK;
}

/* The shape and the model's name: what a correct checksum does not vouch for. */
static rbt_err decode_header(const unsigned char *at, const char *name, const rbt_model *own, rbt_trained *trained,
                             rbt_error *error)
{
    const char *model = (const char *)at + 48;
    if (memchr(model, '\0', RBT_TRAINED_NAME_BYTES) == NULL)
        return rbt_fail(error, RBT_E_DATA, "%s: the model's name at byte 48 has no end; train it again", name);
    size_t length = strlen(model);
    for (size_t i = length; i < RBT_TRAINED_NAME_BYTES; i++)
        if (model[i] != '\0')
            return rbt_fail(error, RBT_E_DATA, "%s: byte %zu should be zero; train it again", name, 48 + i);
    const rbt_model *found = own != NULL && strcmp(own->name, model) == 0 ? own : rbt_model_find(model);
    if (found == NULL)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: holds a model of the kind '%s', which this program does not have; give the shared object "
                        "it was trained "
                        "with, --plugin FILE, or use the program that wrote it",
                        name, model);
    uint32_t flags = get_u32(at + 12);
    if ((flags & ~(FLAG_BIAS | FLAG_UNIT_ROWS)) != 0)
        return rbt_fail(error, RBT_E_UNSUPPORTED, "%s: has unknown flags %#x at byte 12; use the program that wrote it",
                        name, flags);
    uint64_t cols = get_u64(at + 16);
    if (cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%s: has %llu features at byte 16, the limit is %u", name,
                        (unsigned long long)cols, RBT_DATA_INDEX_LIMIT - 1);
    rbt_shape shape = {.cols = (size_t)cols,
                       .bias = (flags & FLAG_BIAS) != 0,
                       .unit_rows = (flags & FLAG_UNIT_ROWS) != 0,
                       .delta = get_f64(at + 80),
                       .classes = (size_t)get_u64(at + 24)};
    if (!isfinite(shape.delta) || shape.delta < 0)
        return rbt_fail(error, RBT_E_DATA, "%s: the number at byte 80 should be finite; train it again", name);
    uint64_t floats = get_u64(at + 40);
    if (floats != found->size(&shape))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: has %llu parameters at byte 40 where its shape needs %zu; train it again", name,
                        (unsigned long long)floats, found->size(&shape));
    *trained = (rbt_trained){.model = found, .shape = shape, .n = (size_t)floats};
    return RBT_OK;
}

/* Classes whose labels are words: each with its end, ascending. */
static rbt_err decode_names(const unsigned char *at, size_t bytes, const char *name, rbt_shape *shape, rbt_error *error)
{
    const char *text = (const char *)at, *end = text + bytes;
    shape->names = rbt_alloc(shape->classes, sizeof *shape->names);
    for (size_t i = 0; i < shape->classes; i++) {
        const char *stop = memchr(text, '\0', (size_t)(end - text));
        if (stop == NULL || (i > 0 && strcmp(shape->names[i - 1], text) >= 0))
            return rbt_fail(error, RBT_E_DATA,
                            "%s: the name of class %zu has no end or does not ascend; train it again", name, i);
        shape->names[i] = rbt_strdup(text);
        text = stop + 1;
    }
    return text == end ? RBT_OK : rbt_fail(error, RBT_E_DATA, "%s: has more names than classes; train it again", name);
}

static rbt_err decode_labels(const unsigned char *at, const char *name, rbt_shape *shape, rbt_error *error)
{
    shape->labels = rbt_alloc(shape->classes, sizeof *shape->labels);
    for (size_t i = 0; i < shape->classes; i++) {
        shape->labels[i] = get_f64(at + 8 * i);
        if (!isfinite(shape->labels[i]) || (i > 0 && !(shape->labels[i] > shape->labels[i - 1])))
            return rbt_fail(error, RBT_E_DATA, "%s: the labels should be finite numbers, ascending; train it again",
                            name);
    }
    return RBT_OK;
}

/* Classifiers have two classes or more, the rest none. */
static rbt_err decode_classes(const unsigned char *at, const char *name, rbt_trained *t, size_t *bytes,
                              rbt_error *error)
{
    size_t names = (size_t)get_u64(at + 32);
    RBT_ASSERT(t->model != NULL);
    *bytes = names > 0 ? names : 8 * t->shape.classes;
    if (t->model->size == rbt_model_lr.size && t->shape.classes != (rbt_model_is_classifier(t->model) ? 2 : 0))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: has %zu classes at byte 24, which does not fit its model; train it again", name,
                        t->shape.classes);
    if (t->shape.classes == 0 && rbt_model_is_classifier(t->model))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: has no classes at byte 24, but a model that tells them apart; train it again", name);
    if (t->shape.classes == 0)
        return names == 0 ? RBT_OK : rbt_fail(error, RBT_E_DATA, "%s: has names of no classes; train it again", name);
    if (t->shape.classes == 1)
        return rbt_fail(error, RBT_E_DATA, "%s: has one class only at byte 24; train it again", name);
    at += header_bytes(at);
    return names > 0 ? decode_names(at, names, name, &t->shape, error) : decode_labels(at, name, &t->shape, error);
}

static rbt_err decode_parameters(const unsigned char *at, const char *name, rbt_trained *t, rbt_error *error)
{
    t->w = rbt_try_alloc(t->n, sizeof *t->w);
    if (t->w == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for its %zu parameters; use a larger machine", name,
                        t->n);
    for (size_t i = 0; i < t->n; i++) {
        t->w[i] = get_f32(at + 4 * i);
        if (!isfinite(t->w[i]))
            return rbt_fail(error, RBT_E_DATA, "%s: parameter %zu is not finite; train it again", name, i);
    }
    return RBT_OK;
}

static rbt_err decode_origin(const unsigned char *at, size_t n, const char *name, rbt_trained *t, rbt_error *error)
{
    rbt_origin origin;
    if (n == 0)
        return RBT_OK;
    t->origin = rbt_alloc(n + 1, 1);
    memcpy(t->origin, at, n);
    if (strlen(t->origin) != n || !rbt_origin_parse(t->origin, &origin))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: what it says about how its data was read makes no sense; train it again", name);
    rbt_origin_deinit(&origin);
    return RBT_OK;
}

rbt_err rbt_trained_decode(const void *bytes, size_t n, const char *name, const rbt_model *own, rbt_trained *trained,
                           rbt_error *error)
{
    const unsigned char *at = bytes;
    size_t class_bytes = 0;
    rbt_trained t = {0};
    rbt_err err = check_frame(at, n, name, error);
    if (err == RBT_OK)
        err = decode_header(at, name, own, &t, error);
    if (err == RBT_OK)
        err = decode_classes(at, name, &t, &class_bytes, error);
    if (err == RBT_OK)
        err = decode_parameters(at + header_bytes(at) + class_bytes, name, &t, error);
    if (err == RBT_OK)
        err = decode_origin(at + header_bytes(at) + class_bytes + 4 * t.n, (size_t)origin_bytes(at), name, &t, error);
    if (err == RBT_OK)
        *trained = t;
    else
        rbt_trained_deinit(&t);
    return err;
}

rbt_err rbt_trained_load(const char *path, rbt_trained *trained, rbt_error *error)
{
    return rbt_trained_load_own(path, NULL, trained, error);
}

rbt_err rbt_trained_load_own(const char *path, const rbt_model *own, rbt_trained *trained, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    err = rbt_trained_decode(input.bytes, input.n, input.name, own, trained, error);
    rbt_input_close(&input);
    return err;
}

void rbt_trained_deinit(rbt_trained *trained)
{
    rbt_free(trained->w);
    rbt_free(trained->origin);
    rbt_shape_deinit(&trained->shape);
    *trained = (rbt_trained){0};
}
