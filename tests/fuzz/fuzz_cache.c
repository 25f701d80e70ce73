/* Feeds arbitrary bytes to the decoder of caches, as they are and with magic, version, reserved bytes, padding and checksum
 * set right, so that the arrays behind the checksum are reached; checks what every rbt_data promises (src/data/data.h) of
 * what it accepts. Run: fuzz_cache CORPUS_FOLDER. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_data(const rbt_data *d, rbt_cache_names names)
{
    size_t count = 0;
    for (const char *at = names.at; at < names.at + names.bytes; at += strlen(at) + 1)
        count++;
    bool ratings = d->content == RBT_CONTENT_RATINGS;
    RBT_ASSERT(count == (ratings ? d->rows + d->cols : d->label_count + names.origin));
    count = d->label_count;
    RBT_ASSERT(d->rows > 0 && d->start[0] == 0 && d->start[d->rows] == d->nnz && d->cols < RBT_DATA_INDEX_LIMIT);
    for (size_t r = 0; r < d->rows; r++) {
        RBT_ASSERT(d->start[r] <= d->start[r + 1] && isfinite(d->label[r]));
        RBT_ASSERT(d->weight == NULL || (d->weight[r] > 0 && isfinite(d->weight[r])));
        RBT_ASSERT(count == 0 || (d->label[r] >= 0 && d->label[r] < (float)count));
        for (size_t i = d->start[r]; i < d->start[r + 1]; i++) {
            RBT_ASSERT(d->index[i] < d->cols && (i == d->start[r] || d->index[i - 1] < d->index[i]));
            RBT_ASSERT(isfinite(d->value[i]) && (ratings || d->value[i] != 0));
        }
    }
}

static void try_decode(const uint8_t *bytes, size_t n)
{
    rbt_data d;
    rbt_error error;
    rbt_cache_names names;
    rbt_err err = rbt_cache_decode(bytes, n, "fuzz", &d, &names, &error);
    if (err == RBT_OK) {
        check_data(&d, names);
        if (rbt_cache_names_take(names, "fuzz", &d, &error) == RBT_OK)
            rbt_cache_names_drop(&d);
    } else
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0);
}

static size_t padded(size_t bytes)
{
    return (bytes + RBT_CACHE_ALIGNMENT - 1) / RBT_CACHE_ALIGNMENT * RBT_CACHE_ALIGNMENT;
}

/* A frame around the input: rows and features from its first two bytes, columns from the third, weights and names from the
 * fourth, arrays from the rest. */
static void try_framed(const uint8_t *bytes, size_t n)
{
    size_t rows = 1 + bytes[0] % 16, nnz = bytes[1] % 64, labels = bytes[3] / 2 % 8, names = labels * 3;
    bool weighted = bytes[3] % 2 != 0;
    uint8_t content = bytes[3] / 16 % 4; /* rows, ratings, documents, and what is none */
    bool origin = bytes[3] / 64 % 2 != 0 && content != RBT_CONTENT_RATINGS;
    names += origin ? 8 : 0; /* "base 0" and the like */
    if (content == RBT_CONTENT_RATINGS) {
        labels = 0;
        names = (rows + bytes[2]) * 2;
    }
    size_t sizes[6] = {(rows + 1) * 8, nnz * 4, nnz * 4, rows * 4, weighted ? rows * 4 : 0, names};
    size_t total = RBT_CACHE_HEADER_BYTES;
    for (int i = 0; i < 6; i++)
        total += padded(sizes[i]);
    uint8_t *file = rbt_try_alloc(total, 1);
    RBT_ASSERT(file != NULL);
    memcpy(file, "\x89RBD\r\n\x1a\n\2", 9);
    file[16] = (uint8_t)rows;
    file[24] = bytes[2];
    file[32] = (uint8_t)nnz;
    file[40] = (uint8_t)(weighted | content << 2 | (origin ? 16 : 0));
    file[44] = (uint8_t)labels;
    file[48] = (uint8_t)names;
    file[49] = (uint8_t)(names >> 8);
    uint8_t *at = file + RBT_CACHE_HEADER_BYTES;
    rbt_data view = {.rows = rows, .cols = bytes[2], .nnz = nnz, .content = content};
    void *arrays[6];
    bytes += 4;
    n -= 4;
    for (int i = 0; i < 6; i++) {
        size_t have = n < sizes[i] ? n : sizes[i];
        memcpy(at, bytes, have);
        arrays[i] = at;
        at += padded(sizes[i]);
        bytes += have;
        n -= have;
    }
    view.start = arrays[0];
    view.index = arrays[1];
    view.value = arrays[2];
    view.label = arrays[3];
    view.weight = weighted ? arrays[4] : NULL;
    uint64_t sum = rbt_cache_checksum(file, &view, (rbt_cache_names){arrays[5], names, origin}, NULL);
    memcpy(file + 56, &sum, sizeof sum);
    try_decode(file, total);
    rbt_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = rbt_try_alloc_raw(n, 1); /* aligned, as a mapped file is */
    RBT_ASSERT(copy != NULL);
    if (n > 0)
        memcpy(copy, bytes, n);
    try_decode(copy, n);
    rbt_free(copy);
    if (n >= 4)
        try_framed(bytes, n);
    return 0;
}
