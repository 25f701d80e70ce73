/* rubato predict: a trained model applied to data, one line per row in the order of the input. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "model/classes.h"

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

/* What is written for one row: the label; or the probabilities or decision values, several with blanks between. */
static size_t write_row(const rbt_trained *trained, const double *score, answer as, char *line, size_t room)
{
    const rbt_model *model = trained->model;
    const rbt_shape *shape = &trained->shape;
    size_t outputs = model->outputs(shape), n = 0;
    char label[RBT_LABEL_ROOM];

    if (as == ANSWER_LABEL) {
        rbt_shape_label_text(shape, model->label(shape, score), label);
        return (size_t)snprintf(line, room, "%s\n", label);
    }
    for (size_t k = 0; k < outputs && n < room; k++)
        n += (size_t)snprintf(line + n, room - n, "%s%.9g", k > 0 ? " " : "", score[k]);
    line[n++] = '\n';
    return n;
}

static rbt_err write_rows(const rbt_trained *trained, const rbt_data *data, answer as, rbt_output *output,
                          rbt_error *error)
{
    const rbt_model *model = trained->model;
    size_t outputs = model->outputs(&trained->shape), room = RBT_LABEL_ROOM + 32 * outputs;
    double *score = rbt_alloc(outputs + 1, sizeof *score), *probability = rbt_alloc(outputs + 1, sizeof *score);
    char *line = rbt_alloc(room, 1);
    rbt_err err = RBT_OK;

    for (size_t row = 0; err == RBT_OK && row < data->rows; row++) {
        model->score(&trained->shape, data, row, trained->w, score);
        if (as == ANSWER_PROBABILITY) {
            model->probability(&trained->shape, score, probability);
            if (outputs == 1) /* two classes: that of "yes" */
                score[0] = probability[1];
            else
                memcpy(score, probability, outputs * sizeof *score);
        }
        err = rbt_output_put(output, line, write_row(trained, score, as, line, room), error);
    }
    rbt_free(line);
    rbt_free(probability);
    rbt_free(score);
    return err;
}

static rbt_err predict(const char *model, const char *path, const rbt_reading *reading, const char *out, answer as,
                       rbt_error *error)
{
    rbt_trained trained = {0};
    rbt_data data = {0};
    rbt_output output;
    rbt_err err = rbt_trained_load(model, &trained, error);

    if (err != RBT_OK)
        return err;
    if (as == ANSWER_PROBABILITY && trained.model->probability == NULL) {
        err = rbt_fail(error, RBT_E_USAGE, "%s is a model (%s) that knows no probabilities; use --as score", model,
                       trained.model->about);
        goto deinit_trained;
    }
    err = rbt_data_read_as(path, reading, &data, error);
    if (err != RBT_OK)
        goto deinit_trained;
    err = rbt_shape_apply(&trained.shape, false, &data, error);
    if (err != RBT_OK)
        goto deinit_data;
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
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &model},
        {"data", "PATH", "The rows: a file, a quoted pattern, or - = standard input. They need no labels.", &data},
        CLI_READING_OPTIONS(&given),
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
        err = cli_reading_settle(&given, &report, &reading, &error);
    reading.unlabelled = true;
    if (err == RBT_OK)
        err = predict(model, data, &reading, out, as, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    report.unlabelled = 0; /* nothing special here */
    cli_reading_note(command, &report);
    return 0;
}
