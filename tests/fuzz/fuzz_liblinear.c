/* Feeds arbitrary text to the reader of LIBLINEAR models, as it is and behind a right header; checks what a model that
 * was read promises. Run: fuzz_liblinear CORPUS_FOLDER. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "model/liblinear.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_parse(const char *text, size_t n)
{
    rbt_trained t;
    rbt_error error;
    rbt_err err = rbt_liblinear_parse(text, n, "fuzz", &t, &error);
    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0);
        return;
    }
    RBT_ASSERT(t.model != NULL && t.n == t.model->size(&t.shape));
    for (size_t i = 1; i < t.shape.classes; i++)
        RBT_ASSERT(t.shape.labels[i - 1] < t.shape.labels[i]);
    for (size_t i = 0; i < t.n; i++)
        RBT_ASSERT(isfinite(t.w[i]));
    rbt_trained_deinit(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char header[] = "solver_type L2R_LR\nnr_class 3\nlabel 2 1 3\nnr_feature 2\nbias 1\nw\n";
    char *copy = rbt_alloc(n + sizeof header, 1);
    if (n > 0)
        memcpy(copy, bytes, n);
    try_parse(copy, n);
    memcpy(copy, header, sizeof header - 1);
    if (n > 0)
        memcpy(copy + sizeof header - 1, bytes, n);
    try_parse(copy, n + sizeof header - 1);
    rbt_free(copy);
    return 0;
}
