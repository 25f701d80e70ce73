/* Feeds arbitrary bytes to the reader of ratings; checks what every rbt_data and its names promise of what it accepts, and that
 * text cut into chunks gives the same data or the same refusal. The first byte tells how many lines may be bad. Run:
 * fuzz_ratings CORPUS_FOLDER. */
#include <stdint.h>

#include "check.h"
#include "data/ratings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_names(const rbt_data *d)
{
    RBT_ASSERT(rbt_ids_count(d->row_names) == d->rows && rbt_ids_count(d->col_names) == d->cols);
    for (size_t i = 0; i < d->rows; i++)
        RBT_ASSERT(rbt_ids_name(d->row_names, i)[0] != '\0' &&
                   rbt_ids_find(d->row_names, rbt_ids_name(d->row_names, i)) == i);
    for (size_t i = 0; i < d->cols; i++)
        RBT_ASSERT(rbt_ids_find(d->col_names, rbt_ids_name(d->col_names, i)) == i);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return 0;
    const rbt_text text = {"fuzz", (const char *)bytes + 1, n - 1, false};
    const rbt_reading reading = {.skip_bad = bytes[0] % 4, .unlabelled = bytes[0] % 8 >= 4};
    rbt_data whole, cut;
    rbt_error error, other;
    rbt_err err =
        rbt_ratings_parse(&(rbt_source){&text, 1, "fuzz", {(size_t)1 << 20, 1}, NULL}, &reading, &whole, &error);
    rbt_err again =
        rbt_ratings_parse(&(rbt_source){&text, 1, "fuzz", {1 + (size_t)bytes[0] / 4, 1}, NULL}, &reading, &cut, &other);
    RBT_ASSERT(err == again);
    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0 && strcmp(error.text, other.text) == 0);
        return 0;
    }
    check_data(&whole);
    check_names(&whole);
    check_same(&whole, &cut);
    for (size_t i = 0; i < whole.cols; i++)
        RBT_ASSERT(strcmp(rbt_ids_name(whole.col_names, i), rbt_ids_name(cut.col_names, i)) == 0);
    rbt_data_deinit(&whole);
    rbt_data_deinit(&cut);
    return 0;
}
