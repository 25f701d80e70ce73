/* rubato gen: synthetic data, written as LIBSVM text. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/generate.h"
#include "job/text.h"

#define ROWS_LIMIT UINT64_C(4000000000)

typedef struct texts {
    const char *out, *rows, *cols, *nnz, *skew, *noise, *seed;
} texts;

static rbt_err count_of(const char *name, const char *text, uint64_t max, size_t *count, rbt_error *error)
{
    uint64_t value = *count;
    rbt_err err = text != NULL ? rbt_text_to_count(name, text, 1, max, &value, error) : RBT_OK;

    if (err == RBT_OK)
        *count = (size_t)value;
    return err;
}

static rbt_err options_of(const texts *t, rbt_generate_options *options, rbt_error *error)
{
    rbt_err err = cli_require("out", t->out, "FILE", error);

    *options = rbt_generate_defaults();
    if (err == RBT_OK)
        err = count_of("--rows", t->rows, ROWS_LIMIT, &options->rows, error);
    if (err == RBT_OK)
        err = count_of("--cols", t->cols, RBT_DATA_INDEX_LIMIT - 1, &options->cols, error);
    if (err == RBT_OK)
        err = count_of("--nnz", t->nnz, RBT_DATA_INDEX_LIMIT - 1, &options->nnz, error);
    if (err == RBT_OK && t->skew != NULL)
        err = rbt_text_to_real("--skew", t->skew, &options->skew, error);
    if (err == RBT_OK && t->noise != NULL)
        err = rbt_text_to_real("--noise", t->noise, &options->noise, error);
    if (err == RBT_OK && t->seed != NULL)
        err = rbt_text_to_count("--seed", t->seed, 0, UINT64_MAX, &options->seed, error);
    return err;
}

int cli_gen(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    texts t = {0};
    const char *kind = NULL;
    const cli_option own[] = {
        {"out", "FILE", "Where the data goes; - = standard output.", &t.out},
        {"rows", "N", "Rows. [10000]", &t.rows},
        {"cols", "N", "Features. [1000]", &t.cols},
        {"nnz", "N", "Features per row that are not zero, on average. [20]", &t.nnz},
        {"skew", "X", "How uneven the features' popularity is; 0 = all alike. [1.1]", &t.skew},
        {"noise", "X", "Probability that a label is turned over. [0.05]", &t.noise},
        {"seed", "N", "Seed; the same options give the same bytes. [1]", &t.seed},
    };
    cli_arguments arguments = {own, sizeof own / sizeof own[0], NULL, &kind, 1, 0, false};
    rbt_generate_options options;
    rbt_data data = {0};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && (kind == NULL || strcmp(kind, "lr") != 0))
        err = rbt_fail(&error, RBT_E_USAGE, "%s%s%s; there is: lr",
                       kind != NULL ? "unknown kind '" : "which kind of data?", kind != NULL ? kind : "",
                       kind != NULL ? "'" : "");
    if (err == RBT_OK)
        err = options_of(&t, &options, &error);
    if (err == RBT_OK)
        err = rbt_generate_write(&(rbt_rows_options){.kind = RBT_ROWS_LR, .common = options}, RBT_FORMAT_LIBSVM, &(rbt_writing){.path = t.out}, &error);
    if (err == RBT_OK)
    rbt_data_deinit(&data);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
