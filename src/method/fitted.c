/* What a method has learned: building it, finding things in it, files of it (rubato.h, section 6).
 *
 * A file is a list of texts, numbers and arrays, little-endian, with an xxHash checksum over everything before it:
 * docs/formats.md. Always holds: a file appears complete or not at all, any damaged byte is detected, and nothing is
 * allocated before the length and the checksum are right. Proved by tests/unit/test_fitted.c and tests/fuzz/fuzz_fitted.c.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/pack.h"
#include "data/file.h"
#include "method/method.h"

#define TEXT_ROOM 4096
#define SUM_BYTES 8

/* Not text, and broken by whatever changes line ends or cuts the eighth bit. */
static const unsigned char magic[8] = {0x89, 'R', 'B', 'F', '\r', '\n', 0x1a, '\n'};

static size_t size_of(rbt_type type)
{
    return type == RBT_I64 ? 8 : 4;
}

/* ------------------------------------------------------------------------------------------------------ building */

void *rbt_fitted_add(rbt_fitted *fitted, const char *name, rbt_type type, uint64_t rows, uint64_t cols)
{
    rbt_values values = {.type = type, .rows = rows, .cols = cols};

    if (cols > 0 && rows > SIZE_MAX / size_of(type) / cols)
        return NULL;
    values.at = rbt_try_alloc((size_t)(rows * cols), size_of(type));
    if (values.at == NULL)
        return NULL;
    values.name = rbt_strdup(name);
    fitted->array = rbt_realloc(fitted->array, fitted->arrays + 1, sizeof *fitted->array);
    fitted->array[fitted->arrays++] = values;
    return values.at;
}

void rbt_fitted_add_names(rbt_fitted *fitted, const char *name, size_t n, const char *const *names)
{
    rbt_name_list list = {.n = n};

    if (names == NULL)
        return;
    list.name = rbt_strdup(name);
    list.at = rbt_alloc(n, sizeof *list.at);
    for (size_t i = 0; i < n; i++)
        list.at[i] = rbt_strdup(names[i]);
    fitted->list = rbt_realloc(fitted->list, fitted->lists + 1, sizeof *fitted->list);
    fitted->list[fitted->lists++] = list;
}

void rbt_fitted_set(rbt_fitted *fitted, const char *name, double value)
{
    for (size_t i = 0; i < fitted->numbers; i++) {
        if (strcmp(fitted->number[i].name, name) == 0) {
            fitted->number[i].value = value;
            return;
        }
    }
    fitted->number = rbt_realloc(fitted->number, fitted->numbers + 1, sizeof *fitted->number);
    fitted->number[fitted->numbers++] = (rbt_number){rbt_strdup(name), value};
}

const rbt_values *rbt_fitted_values(const rbt_fitted *fitted, const char *name)
{
    for (size_t i = 0; i < fitted->arrays; i++)
        if (strcmp(fitted->array[i].name, name) == 0)
            return &fitted->array[i];
    return NULL;
}

const rbt_name_list *rbt_fitted_names(const rbt_fitted *fitted, const char *name)
{
    for (size_t i = 0; i < fitted->lists; i++)
        if (strcmp(fitted->list[i].name, name) == 0)
            return &fitted->list[i];
    return NULL;
}

char *rbt_fitted_origin(const rbt_fitted *fitted)
{
    const rbt_name_list *lines = rbt_fitted_names(fitted, RBT_FITTED_ORIGIN);
    size_t room = 1, n = 0;

    for (size_t i = 0; lines != NULL && i < lines->n; i++)
        room += strlen(lines->at[i]) + 1;
    char *origin = rbt_alloc(room, 1);
    for (size_t i = 0; lines != NULL && i < lines->n; i++)
        n += (size_t)snprintf(origin + n, room - n, "%s\n", lines->at[i]);
    return origin;
}

double rbt_fitted_number(const rbt_fitted *fitted, const char *name)
{
    for (size_t i = 0; i < fitted->numbers; i++)
        if (strcmp(fitted->number[i].name, name) == 0)
            return fitted->number[i].value;
    return NAN;
}

void rbt_fitted_deinit(rbt_fitted *fitted)
{
    for (size_t i = 0; i < fitted->arrays; i++) {
        rbt_free(fitted->array[i].name);
        rbt_free(fitted->array[i].at);
    }
    for (size_t i = 0; i < fitted->lists; i++) {
        for (size_t k = 0; k < fitted->list[i].n; k++)
            rbt_free(fitted->list[i].at[k]);
        rbt_free(fitted->list[i].name);
        rbt_free(fitted->list[i].at);
    }
    for (size_t i = 0; i < fitted->numbers; i++)
        rbt_free(fitted->number[i].name);
    rbt_free(fitted->array);
    rbt_free(fitted->list);
    rbt_free(fitted->number);
    *fitted = (rbt_fitted){0};
}

/* ------------------------------------------------------------------------------------------------------ distinctness */

static const char *name_at(const rbt_fitted *f, size_t i)
{
    static const char *const TAKEN[] = {"model", "about"}; /* by the JSON that `rubato export` writes */

    if (i < 2)
        return TAKEN[i];
    i -= 2;
    if (i < f->numbers)
        return f->number[i].name;
    i -= f->numbers;
    return i < f->lists ? f->list[i].name : f->array[i - f->lists].name;
}

/* A name that two of the numbers, lists and arrays have; NULL: none. In JSON one of them would be lost. */
static const char *shared_name(const rbt_fitted *f)
{
    size_t n = 2 + f->numbers + f->lists + f->arrays;

    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_at(f, i), name_at(f, k)) == 0)
                return name_at(f, i);
    return NULL;
}

/* -------------------------------------------------------------------------------------------------------- saving */

/* All but the arrays' values, which follow in their order. */
static void encode_head(const rbt_fitted *fitted, rbt_pack *pack)
{
    rbt_pack_bytes(pack, magic, sizeof magic);
    rbt_pack_u32(pack, RBT_FITTED_VERSION);
    rbt_pack_text(pack, fitted->method->name);
    rbt_pack_u32(pack, (uint32_t)fitted->numbers);
    for (size_t i = 0; i < fitted->numbers; i++) {
        rbt_pack_text(pack, fitted->number[i].name);
        rbt_pack_f64(pack, fitted->number[i].value);
    }
    rbt_pack_u32(pack, (uint32_t)fitted->lists);
    for (size_t i = 0; i < fitted->lists; i++) {
        rbt_pack_text(pack, fitted->list[i].name);
        rbt_pack_u64(pack, fitted->list[i].n);
        for (size_t k = 0; k < fitted->list[i].n; k++)
            rbt_pack_text(pack, fitted->list[i].at[k]);
    }
    rbt_pack_u32(pack, (uint32_t)fitted->arrays);
    for (size_t i = 0; i < fitted->arrays; i++) {
        rbt_pack_text(pack, fitted->array[i].name);
        rbt_pack_u32(pack, fitted->array[i].type);
        rbt_pack_u64(pack, fitted->array[i].rows);
        rbt_pack_u64(pack, fitted->array[i].cols);
    }
}

static rbt_err put_hashed(rbt_output *output, rbt_hasher *hasher, const void *bytes, size_t n, rbt_error *error)
{
    rbt_hasher_add(hasher, bytes, n);
    return rbt_output_put(output, bytes, n, error);
}

static rbt_err put_all(const rbt_fitted *fitted, rbt_output *output, rbt_error *error)
{
    rbt_hasher *hasher = rbt_hasher_create(0);
    rbt_pack head = {0};
    uint64_t sum;
    rbt_err err;

    encode_head(fitted, &head);
    err = put_hashed(output, hasher, head.at, head.count, error);
    for (size_t i = 0; err == RBT_OK && i < fitted->arrays; i++) {
        const rbt_values *v = &fitted->array[i];

        err = put_hashed(output, hasher, v->at, (size_t)(v->rows * v->cols) * size_of(v->type), error);
    }
    sum = rbt_hasher_value(hasher);
    if (err == RBT_OK)
        err = rbt_output_put(output, &sum, sizeof sum, error);
    rbt_array_free(&head);
    rbt_hasher_destroy(hasher);
    return err;
}

rbt_err rbt_fitted_save(const rbt_fitted *fitted, const char *path, rbt_error *error)
{
    const char *shared = shared_name(fitted);
    rbt_output output;
    rbt_err err;

    if (shared != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: not written: %s keeps two things named '%.60s'; its `keep` should give each its own name",
                        path, fitted->method->name, shared);
    err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = put_all(fitted, &output, error);
    if (err == RBT_OK)
        return rbt_output_finish(&output, true, error);
    rbt_output_abandon(&output);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- loading */

bool rbt_fitted_begins(const void *bytes, size_t n)
{
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static rbt_err damaged(const char *name, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: is damaged or cut short; copy or train it again", name);
}

static uint32_t unpack_count(rbt_unpack *unpack)
{
    uint32_t n = rbt_unpack_u32(unpack);

    if (n > RBT_FITTED_ITEMS_MOST)
        unpack->bad = true;
    return unpack->bad ? 0 : n;
}

static void decode_numbers(rbt_unpack *unpack, rbt_fitted *fitted)
{
    uint32_t n = unpack_count(unpack);

    for (uint32_t i = 0; i < n && !unpack->bad; i++) {
        char text[TEXT_ROOM];

        rbt_unpack_text(unpack, text, sizeof text);
        rbt_fitted_set(fitted, text, rbt_unpack_f64(unpack));
    }
}

static void decode_list(rbt_unpack *unpack, rbt_fitted *fitted)
{
    char text[TEXT_ROOM];
    uint64_t n;
    rbt_name_list list = {0};

    rbt_unpack_text(unpack, text, sizeof text);
    n = rbt_unpack_u64(unpack);
    if (n > (uint64_t)(unpack->end - unpack->at) / 4) /* each has its length, at least */
        unpack->bad = true;
    if (unpack->bad)
        return;
    list = (rbt_name_list){.name = rbt_strdup(text), .at = rbt_alloc((size_t)n, sizeof *list.at)};
    while (list.n < n && !unpack->bad) {
        rbt_unpack_text(unpack, text, sizeof text);
        list.at[list.n++] = rbt_strdup(text);
    }
    fitted->list = rbt_realloc(fitted->list, fitted->lists + 1, sizeof *fitted->list);
    fitted->list[fitted->lists++] = list;
}

typedef struct array_head {
    char *name;
    rbt_type type;
    uint64_t rows, cols, bytes;
} array_head;

/* What the arrays are; all their bytes must be there before memory is taken for any. */
static array_head *decode_array_heads(rbt_unpack *unpack, uint32_t *n)
{
    uint32_t count = unpack_count(unpack);
    array_head *heads = rbt_alloc(count, sizeof *heads);
    uint64_t total = 0;

    for (*n = 0; *n < count && !unpack->bad; ++*n) {
        array_head *h = &heads[*n];
        char text[TEXT_ROOM];
        uint32_t type;

        rbt_unpack_text(unpack, text, sizeof text);
        h->name = rbt_strdup(text);
        type = rbt_unpack_u32(unpack);
        h->rows = rbt_unpack_u64(unpack);
        h->cols = rbt_unpack_u64(unpack);
        h->type = type <= RBT_I64 ? (rbt_type)type : RBT_F32;
        if (type > RBT_I64 ||
            (h->cols > 0 && h->rows > (uint64_t)(unpack->end - unpack->at) / h->cols / size_of(h->type)))
            unpack->bad = true;
        else
            h->bytes = h->rows * h->cols * size_of(h->type);
        total += h->bytes; /* each is at most what is left, and there are few: no overflow */
    }
    if (total != (uint64_t)(unpack->end - unpack->at))
        unpack->bad = true;
    return heads;
}

static rbt_err decode_arrays(rbt_unpack *unpack, const char *name, rbt_fitted *fitted, rbt_error *error)
{
    uint32_t n;
    array_head *heads = decode_array_heads(unpack, &n);
    rbt_err err = RBT_OK;

    for (uint32_t i = 0; i < n; i++) {
        if (!unpack->bad && err == RBT_OK) {
            void *at = rbt_fitted_add(fitted, heads[i].name, heads[i].type, heads[i].rows, heads[i].cols);

            if (at != NULL)
                rbt_unpack_into(unpack, at, (size_t)heads[i].bytes);
            else
                err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for '%s' (%.0f MB); use a larger machine",
                               name, heads[i].name, (double)heads[i].bytes / 1e6);
        }
        rbt_free(heads[i].name);
    }
    rbt_free(heads);
    return err;
}

static rbt_err decode(rbt_unpack *unpack, const char *name, const rbt_method *own, rbt_fitted *fitted, rbt_error *error)
{
    char method[TEXT_ROOM];
    uint32_t version, lists;
    rbt_err err;

    (void)rbt_unpack_bytes(unpack, sizeof magic);
    version = rbt_unpack_u32(unpack);
    if (version != RBT_FITTED_VERSION)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: has format version %u, this program reads version %u; use the program that wrote it", name,
                        version, RBT_FITTED_VERSION);
    rbt_unpack_text(unpack, method, sizeof method);
    decode_numbers(unpack, fitted);
    lists = unpack_count(unpack);
    for (uint32_t i = 0; i < lists && !unpack->bad; i++)
        decode_list(unpack, fitted);
    err = decode_arrays(unpack, name, fitted, error);
    if (err == RBT_OK && !rbt_unpack_done(unpack))
        err = damaged(name, error);
    if (err == RBT_OK && shared_name(fitted) != NULL)
        err = rbt_fail(error, RBT_E_DATA, "%s: has two things named '%.60s', as older programs wrote; train it again",
                       name, shared_name(fitted));
    if (err != RBT_OK)
        return err;
    fitted->method = own != NULL && strcmp(own->name, method) == 0 ? own : rbt_method_find(method);
    if (fitted->method == NULL)
        err = rbt_fail(
            error, RBT_E_UNSUPPORTED,
            "%s: holds a model of the kind '%.60s', which this program does not have; give the shared object it was "
            "trained with, --plugin FILE, or use the program that wrote it",
            name, method);
    return err;
}

rbt_err rbt_fitted_decode(const void *bytes, size_t n, const char *name, const rbt_method *own, rbt_fitted *fitted,
                          rbt_error *error)
{
    rbt_unpack unpack = rbt_unpack_of(bytes, n >= SUM_BYTES ? n - SUM_BYTES : 0);
    rbt_fitted f = {0};
    uint64_t sum;
    rbt_err err;

    if (!rbt_fitted_begins(bytes, n))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: is not a Rubato model (its first bytes are others); give a file that `rubato train --out` "
                        "wrote",
                        name);
    if (n < sizeof magic + SUM_BYTES)
        return damaged(name, error);
    memcpy(&sum, (const char *)bytes + n - SUM_BYTES, sizeof sum);
    if (sum != rbt_hash(bytes, n - SUM_BYTES, 0))
        return damaged(name, error);
    err = decode(&unpack, name, own, &f, error);
    if (err == RBT_OK)
        *fitted = f;
    else
        rbt_fitted_deinit(&f);
    return err;
}

rbt_err rbt_fitted_load(const char *path, rbt_fitted *fitted, rbt_error *error)
{
    return rbt_fitted_load_own(path, NULL, fitted, error);
}

rbt_err rbt_fitted_load_own(const char *path, const rbt_method *own, rbt_fitted *fitted, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);

    *fitted = (rbt_fitted){0}; /* what was there is not ours to free */
    if (err != RBT_OK)
        return err;
    err = rbt_fitted_decode(input.bytes, input.n, input.name, own, fitted, error);
    rbt_input_close(&input);
    if (err == RBT_OK && fitted->method->open != NULL)
        err = fitted->method->open(fitted, error);
    if (err != RBT_OK)
        rbt_fitted_deinit(fitted);
    return err;
}
