/* Feeds arbitrary bytes to the reader of IDX images, as images, as labels, and cut in two as both; checks what every
 * rbt_data promises of what it accepts. Run: fuzz_idx CORPUS_FOLDER. */
#include <stdint.h>

#include "data/idx.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_parse(const rbt_input *images, const rbt_input *labels)
{
    rbt_data d;
    rbt_error error = {RBT_OK, ""};
    rbt_err err = rbt_idx_parse(images, labels, &d, &error);
    if (err == RBT_OK) {
        check_data(&d);
        rbt_data_deinit(&d);
    } else {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz", 4) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char some[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4};
    const rbt_input all = {.name = "fuzz", .bytes = (const char *)bytes, .n = n};
    const rbt_input images = {.name = "fuzz", .bytes = some, .n = sizeof some};
    try_parse(&all, NULL);
    try_parse(&images, &all);
    if (n == 0)
        return 0;
    size_t cut = bytes[0] % n;
    const rbt_input first = {.name = "fuzz", .bytes = (const char *)bytes + 1, .n = cut};
    const rbt_input second = {.name = "fuzz", .bytes = (const char *)bytes + 1 + cut, .n = n - 1 - cut};
    try_parse(&first, &second);
    return 0;
}
