/* Feeds arbitrary bytes to the readers of bags of words and lda-c, and to what recognises them; checks what every rbt_data
 * promises of what is accepted, that values are counts, and that text cut into chunks gives the same data or the same
 * refusal. The first byte tells which, and how many lines may be bad. Run: fuzz_docs CORPUS_FOLDER. */
#include <stdint.h>

#include "check.h"
#include "data/docs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return 0;
    const rbt_text text = {"fuzz", (const char *)bytes + 1, n - 1, false};
    const rbt_reading reading = {.skip_bad = bytes[0] / 2 % 4};
    rbt_err (*parse)(const rbt_source *, const rbt_reading *, rbt_data *, rbt_error *) =
        bytes[0] % 2 == 0 ? rbt_docword_parse : rbt_ldac_parse;
    rbt_data whole, cut;
    rbt_error error, other;
    (void)rbt_docword_recognise(text.bytes, text.bytes + text.n, bytes[0] / 2 % 2 != 0);
    (void)rbt_ldac_recognise(text.bytes, text.bytes + text.n, (rbt_ldac_proof)(bytes[0] / 2 % 3));
    rbt_err err = parse(&(rbt_source){&text, 1, "fuzz", {(size_t)1 << 20, 1}, NULL}, &reading, &whole, &error);
    rbt_err again = parse(&(rbt_source){&text, 1, "fuzz", {1 + (size_t)bytes[0] / 8, 1}, NULL}, &reading, &cut, &other);
    RBT_ASSERT(err == again);
    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strncmp(error.text, "fuzz:", 5) == 0 && strcmp(error.text, other.text) == 0);
        return 0;
    }
    check_data(&whole);
    check_same(&whole, &cut);
    for (size_t i = 0; i < whole.nnz; i++)
        RBT_ASSERT(whole.value[i] >= 1 && whole.value[i] <= (float)RBT_DOCS_COUNT_MOST &&
                   whole.value[i] == floorf(whole.value[i]));
    rbt_data_deinit(&whole);
    rbt_data_deinit(&cut);
    return 0;
}
