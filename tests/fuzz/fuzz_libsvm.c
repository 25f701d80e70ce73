/* Feeds arbitrary text to the LIBSVM reader, and checks what every rbt_data promises (src/data/data.h) of what it
 * accepts, and every number against strtof and against printing it. Run: fuzz_libsvm CORPUS_FOLDER. */
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "data/libsvm.h"
#include "data/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_number(float x)
{
    char text[RBT_NUMBER_ROOM];
    float back = 0;
    size_t n = rbt_number_print(x, text);
    RBT_ASSERT(n < RBT_NUMBER_ROOM);
    RBT_ASSERT(rbt_number_parse(text, text + n, &back) == text + n && back == x);
}

static void check_rows(const rbt_data *d)
{
    check_data(d);
    for (size_t r = 0; r < d->rows; r++) {
        check_number(d->label[r]);
        RBT_ASSERT(rbt_data_row_fit(d, r, d->cols) == d->start[r + 1] - d->start[r]);
        RBT_ASSERT(rbt_data_row_fit(d, r, 0) == 0);
    }
    for (size_t i = 0; i < d->nnz; i++)
        check_number(d->value[i]);
}

/* A number by itself, against the C library: whatever we accept, strtof reads alike. */
static void check_against_strtof(const uint8_t *bytes, size_t n)
{
    char text[512];
    if (n >= sizeof text)
        return;
    memcpy(text, bytes, n);
    text[n] = '\0';
    float ours = 0;
    const char *stop = rbt_number_parse(text, text + n, &ours);
    if (stop == NULL)
        return;
    text[stop - text] = '\0'; /* strtof would also take the x of 0x10 */
    float theirs = strtof(text, NULL);
    RBT_ASSERT(memcmp(&ours, &theirs, sizeof ours) == 0);
}

/* Cut into chunks, the text gives the same data or the same refusal. */
static void check_cut(const rbt_text *text, size_t chunk_bytes, rbt_err code, const rbt_data *whole,
                      const rbt_error *refusal)
{
    rbt_data d;
    rbt_error error;
    rbt_err err =
        rbt_libsvm_parse(&(rbt_source){text, 1, text->name, {chunk_bytes, 1}, NULL}, &(rbt_reading){0}, &d, &error);
    RBT_ASSERT(err == code);
    if (err != RBT_OK) {
        RBT_ASSERT(strcmp(error.text, refusal->text) == 0);
        return;
    }
    check_same(&d, whole);
    rbt_data_deinit(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    rbt_data d;
    rbt_error error;
    check_against_strtof(bytes, n);
    rbt_err err = rbt_data_parse_libsvm((const char *)bytes, n, "fuzz", &d, &error);
    check_cut(&(rbt_text){"fuzz", (const char *)bytes, n, false}, 1 + (n > 0 ? bytes[n / 2] % 32 : 0), err, &d, &error);
    if (err == RBT_OK) {
        check_rows(&d);
        rbt_data_deinit(&d);
    } else {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0);
    }
    return 0;
}
