/* Feeds arbitrary bytes to the model decoder, as they are and with the frame (magic, version, numbers of classes and
 * parameters, checksum) set right, so that the fields behind the checksum are reached; checks what a loaded model promises.
 * Run: fuzz_trained CORPUS_FOLDER. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/trained.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_decode(const uint8_t *bytes, size_t n)
{
    rbt_trained t;
    rbt_error error;
    rbt_err err = rbt_trained_decode(bytes, n, "fuzz", NULL, &t, &error);
    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0);
        return;
    }
    RBT_ASSERT(t.model != NULL && t.n == t.model->size(&t.shape));
    for (size_t i = 1; i < t.shape.classes; i++)
        RBT_ASSERT(t.shape.names != NULL ? strcmp(t.shape.names[i - 1], t.shape.names[i]) < 0
                                         : t.shape.labels[i - 1] < t.shape.labels[i]);
    RBT_ASSERT(t.shape.classes == 0 || t.shape.classes >= 2);
    RBT_ASSERT(t.model->outputs(&t.shape) > 0);
    for (size_t i = 0; i < t.n; i++)
        RBT_ASSERT(isfinite(t.w[i]));
    rbt_trained_deinit(&t);
}

static void put_u64(uint8_t *at, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(x >> (8 * i));
}

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x |= (uint64_t)at[i] << (8 * i);
    return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const uint8_t frame[12] = {0x89, 'R', 'B', 'T', '\r', '\n', 0x1a, '\n', RBT_TRAINED_VERSION};
    size_t least = RBT_TRAINED_HEADER_BYTES + RBT_TRAINED_SUM_BYTES;
    try_decode(bytes, n);
    if (n < least)
        return 0;
    uint64_t classes = get_u64(bytes + 24) % 8, names = get_u64(bytes + 32) % 64;
    uint64_t origin = get_u64(bytes + 88) % 64, class_bytes = (names > 0 ? names : 8 * classes) + origin;
    if (n < least + class_bytes)
        return 0;
    n -= (n - least - class_bytes) % 4;
    uint8_t *copy = rbt_alloc(n, 1);
    memcpy(copy, bytes, n);
    memcpy(copy, frame, sizeof frame);
    put_u64(copy + 24, classes);
    put_u64(copy + 32, names);
    put_u64(copy + 40, (n - least - class_bytes) / 4);
    put_u64(copy + 88, origin);
    put_u64(copy + n - 8, rbt_hash(copy, n - 8, 0));
    try_decode(copy, n);
    rbt_free(copy);
    return 0;
}
