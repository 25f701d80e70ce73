/* How data is to be read, for the commands that are no jobs; the contract stands in cli.h. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/origin.h"
#include "data/stream.h"
#include "data/read.h"
#include "job/text.h"

rbt_err cli_reading_settle(const cli_reading *given, rbt_read_report *report, rbt_reading *reading, rbt_error *error)
{
    uint64_t bits = 0, skip_bad = 0;
    rbt_base base = RBT_BASE_AUTO;
    rbt_err err = RBT_OK;

    if (given->bits != NULL)
        err = rbt_text_to_count("--bits", given->bits, 1, RBT_BITS_LIMIT, &bits, error);
    if (err == RBT_OK && given->skip_bad != NULL)
        err = rbt_text_to_count("--skip-bad", given->skip_bad, 0, UINT64_MAX, &skip_bad, error);
    if (given->base != NULL && strcmp(given->base, "0") == 0)
        base = RBT_BASE_0;
    else if (given->base != NULL && strcmp(given->base, "1") == 0)
        base = RBT_BASE_1;
    else if (err == RBT_OK && given->base != NULL && strcmp(given->base, "auto") != 0)
        err = rbt_fail(error, RBT_E_USAGE, "--base '%s' is unknown; choose auto, 0 or 1", given->base);
    *reading = (rbt_reading){.format = given->format,
                             .label = given->label,
                             .weight = given->weight,
                             .bits = (uint32_t)bits,
                             .base = base,
                             .skip_bad = skip_bad,
                             .report = report};
    return err;
}

void cli_reading_note(const cli_command *command, const rbt_read_report *report)
{
    char note[RBT_READ_NOTE_ROOM];

    if (rbt_read_note(report, note))
        (void)fprintf(stderr, "rubato %s: %s\n", command->name, note);
}

void cli_columns_note(const cli_command *command, const rbt_read_report *report, size_t cols, size_t features,
                      rbt_base base)
{
    if (report->layout != 0 && report->layout != features)
        (void)fprintf(stderr,
                      "rubato %s: the columns of the data make %llu features, the model was trained with %zu: they may "
                      "stand for others; check --label (none, if there is none) and --bits, and that columns of "
                      "numbers hold no words\n",
                      command->name, (unsigned long long)report->layout, features);
    else if (cols > features)
        (void)fprintf(stderr,
                      "rubato %s: the data has %zu features, the model was trained with %zu and does not look at the "
                      "others; check that they belong together%s%s%s\n",
                      command->name, cols, features,
                      base == RBT_BASE_AUTO ? "" : ", and, of LIBSVM text, that its features count from ",
                      base == RBT_BASE_AUTO ? ""
                      : base == RBT_BASE_0  ? "0"
                                            : "1",
                      base == RBT_BASE_AUTO ? "" : " (--base says otherwise)");
}

rbt_err cli_compare_origins(const char *model, const char *origin, const char *baseline, const char *other,
                            rbt_error *error)
{
    bool known = origin != NULL && origin[0] != '\0' && other != NULL && other[0] != '\0';

    if (!known || strcmp(origin, other) == 0)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--baseline %s: its training data was read in another way than that of %s, so that the same data "
                    "cannot be read for both; evaluate them one by one",
                    baseline, model);
}

rbt_err cli_answer_stream(const char *path, const rbt_reading *reading,
                          rbt_err (*answer)(void *context, const rbt_data *block, rbt_output *output, rbt_error *error),
                          void *context, rbt_output *output, rbt_base *base, rbt_error *error)
{
    const rbt_data *block = NULL;
    rbt_rowstream *stream = NULL;
    rbt_err err = rbt_rowstream_open(path, reading, false, RBT_ROWSTREAM_PIECE_BYTES, &stream, error);

    if (err != RBT_OK)
        return err;
    do {
        err = rbt_rowstream_next(stream, &block, error);
        if (err == RBT_OK && block != NULL)
            err = answer(context, block, output, error);
        if (err == RBT_OK && rbt_rowstream_is_live(stream))
            err = rbt_output_flush(output, error);
    } while (err == RBT_OK && block != NULL);
    if (err == RBT_OK && base != NULL) {
        char *origin = rbt_rowstream_origin(stream);

        *base = rbt_reading_base(&(rbt_reading){.origin = origin});
        rbt_free(origin);
    }
    rbt_rowstream_close(stream);
    return err;
}

void cli_memory_hint(rbt_error *error)
{
    if (error->code == RBT_E_MEMORY && strstr(error->text, "not enough memory for data of") != NULL)
        (void)rbt_text_add(error->text, sizeof error->text, strlen(error->text),
                           ", or make a cache of it first, which takes little memory: rubato convert --out FILE.cache");
}

void cli_bits_note(const cli_command *command, size_t cols)
{
    uint32_t bits = RBT_BITS_DEFAULT;
    if (cols <= (size_t)1 << bits)
        return;
    while (cols > (size_t)1 << bits)
        bits++;
    (void)fprintf(stderr,
                  "rubato %s: %zu columns were written, and Vowpal Wabbit text is read as 2^%d of them unless more are "
                  "asked for; read it with --bits %u\n",
                  command->name, cols, RBT_BITS_DEFAULT, bits);
}
