/* Feeds arbitrary bytes to the decoder of methods' models, as they are and with the frame (magic, version, checksum) set
 * right, so that the fields behind the checksum are reached; then to the methods' own checks and descriptions.
 * Run: fuzz_fitted CORPUS_FOLDER. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "method/method.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_decode(const uint8_t *bytes, size_t n)
{
    rbt_fitted f = {0};
    rbt_error error;
    rbt_err err = rbt_fitted_decode(bytes, n, "fuzz", NULL, &f, &error);

    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0);
        return;
    }
    for (size_t i = 0; i < f.arrays; i++) { /* every value is there to be read */
        uint64_t sum = 0;

        for (size_t k = 0; k < f.array[i].rows * f.array[i].cols * (f.array[i].type == RBT_I64 ? 8 : 4); k++)
            sum += ((const uint8_t *)f.array[i].at)[k];
        RBT_ASSERT(sum < UINT64_MAX);
    }
    if (f.method->open != NULL && f.method->open(&f, &error) == RBT_OK) {
        FILE *out = fopen("/dev/null", "we");

        if (f.method->describe != NULL && out != NULL)
            f.method->describe(&f, out);
        if (out != NULL)
            fclose(out);
    }
    rbt_fitted_deinit(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const uint8_t frame[12] = {0x89, 'R', 'B', 'F', '\r', '\n', 0x1a, '\n', RBT_FITTED_VERSION};
    uint8_t *copy;
    uint64_t sum;

    try_decode(bytes, n);
    if (n < sizeof frame + sizeof sum)
        return 0;
    copy = rbt_alloc(n, 1);
    memcpy(copy, bytes, n);
    memcpy(copy, frame, sizeof frame);
    sum = rbt_hash(copy, n - sizeof sum, 0);
    memcpy(copy + n - sizeof sum, &sum, sizeof sum);
    try_decode(copy, n);
    rbt_free(copy);
    return 0;
}
