/* rubato predict: a trained model applied to data, one line per row in the order of the input. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "data/file.h"

typedef enum answer { ANSWER_LABEL, ANSWER_PROBABILITY, ANSWER_SCORE } answer;

static rbt_err answer_of(const char *text, answer *as, rbt_error *error)
{
    static const char *const NAMES[] = {"label", "probability", "score"};

    *as = ANSWER_LABEL;
    if (text == NULL)
        return RBT_OK;
    for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *as = (answer)i;
            return RBT_OK;
        }
    }
    return rbt_fail(error, RBT_E_USAGE, "--as '%s' is unknown; choose label, probability or score", text);
}

static rbt_err write_rows(const rbt_trained *trained, const rbt_data *data, answer as, rbt_output *output,
                          rbt_error *error)
{
    const rbt_model *model = trained->model;
    char line[64];

    for (size_t row = 0; row < data->rows; row++) {
        double value = model->score(&trained->shape, data, row, trained->w);
        if (as == ANSWER_LABEL)
            value = model->label(&trained->shape, value);
        else if (as == ANSWER_PROBABILITY)
            value = model->probability(&trained->shape, value);
        int length = snprintf(line, sizeof line, "%.9g\n", value);
        rbt_err err = rbt_output_put(output, line, (size_t)length, error);
        if (err != RBT_OK)
            return err;
    }
    return RBT_OK;
}

static rbt_err predict(const char *model, const char *path, const char *out, answer as, rbt_error *error)
{
    rbt_trained trained = {0};
    rbt_data data = {0};
    rbt_output output;
    rbt_err err = rbt_trained_load(model, &trained, error);

    if (err != RBT_OK)
        return err;
    err = rbt_data_read(path, &data, error);
    if (err != RBT_OK)
        goto deinit_trained;
    err = rbt_output_open(out != NULL ? out : "-", &output, error);
    if (err != RBT_OK)
        goto deinit_data;
    err = write_rows(&trained, &data, as, &output, error);
    if (err == RBT_OK)
        err = rbt_output_finish(&output, false, error);
    else
        rbt_output_abandon(&output);
deinit_data:
    rbt_data_deinit(&data);
deinit_trained:
    rbt_trained_deinit(&trained);
    return err;
}

int cli_predict(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *model = NULL, *data = NULL, *out = NULL, *as_text = NULL;
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &model},
        {"data", "PATH", "The rows, LIBSVM text; - = standard input.", &data},
        {"out", "FILE", "Where the answers go; - = standard output. [-]", &out},
        {"as", "label|probability|score", "What is written per row. [label]", &as_text},
    };
    cli_arguments arguments = {own, sizeof own / sizeof own[0], NULL, NULL, 0, 0, false};
    answer as = ANSWER_LABEL;
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", model, "FILE", &error);
    if (err == RBT_OK)
        err = cli_require("data", data, "PATH", &error);
    if (err == RBT_OK)
        err = answer_of(as_text, &as, &error);
    if (err == RBT_OK)
        err = predict(model, data, out, as, &error);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
