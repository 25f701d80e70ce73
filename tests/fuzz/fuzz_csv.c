/* Feeds arbitrary text to the CSV reader, under options that its first byte chooses, and checks what every rbt_data promises of
 * what it accepts; that cut into chunks it gives the same data or the same refusal; that the data is read again by what it
 * says of its columns; and that the text's rows end in the same place when it comes piece by piece. Run: fuzz_csv
 * CORPUS_FOLDER. */
#include <stdint.h>

#include "data/csv.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_ends(const rbt_text *text, size_t piece)
{
    rbt_csv_ends at_once = {0}, grown = {0};
    size_t end = rbt_csv_ends_find(&at_once, '\0', text->bytes, text->n), last = 0;
    for (size_t have = 0; have < text->n;) {
        have = text->n - have < piece ? text->n : have + piece;
        last = rbt_csv_ends_find(&grown, '\0', text->bytes, have);
    }
    RBT_ASSERT(last == end && grown.delimiter == at_once.delimiter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return 0;
    const rbt_text text = {.name = "fuzz", .bytes = (const char *)bytes + 1, .n = n - 1};
    rbt_read_report report;
    const rbt_reading reading = {.bits = 1 + bytes[0] % 8,
                                 .skip_bad = bytes[0] / 8 % 4,
                                 .unlabelled = bytes[0] / 32 % 2 != 0,
                                 .label = bytes[0] / 64 % 2 != 0 ? "2" : NULL,
                                 .weight = bytes[0] / 128 != 0 ? "3" : NULL,
                                 .report = &report};
    rbt_data whole, cut;
    rbt_error refusal = {RBT_OK, ""}, error = {RBT_OK, ""};
    rbt_err err = rbt_csv_parse(&(rbt_source){&text, 1, "fuzz", {SIZE_MAX, 1}, NULL}, &reading, &whole, &refusal);
    size_t chunk_bytes = 1 + bytes[n / 2] % 32;
    check_ends(&text, chunk_bytes);
    RBT_ASSERT(rbt_csv_parse(&(rbt_source){&text, 1, "fuzz", {chunk_bytes, 1}, NULL}, &reading, &cut, &error) == err);
    if (err == RBT_OK) {
        check_data(&whole);
        check_same(&whole, &cut);
        rbt_data_deinit(&cut);
        rbt_reading again = reading;
        again.label = again.weight = NULL;
        again.origin = whole.origin;
        RBT_ASSERT(rbt_csv_parse(&(rbt_source){&text, 1, "fuzz", {SIZE_MAX, 1}, NULL}, &again, &cut, &error) == RBT_OK);
        check_same(&whole, &cut);
        rbt_data_deinit(&whole);
        rbt_data_deinit(&cut);
        RBT_ASSERT(report.skipped <= reading.skip_bad);
    } else {
        RBT_ASSERT(refusal.code == err && strstr(refusal.text, "fuzz") != NULL &&
                   strcmp(refusal.text, error.text) == 0);
    }
    return 0;
}
