/* rubato predict: a trained model applied to data, one line per row in the order of the input. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/number.h"
#include "data/parallel.h"
#include "data/stream.h"
#include "model/classes.h"

#define CHUNK_ROWS (size_t)1024 /* answered by one thread at a time */

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
static size_t write_row(const rbt_trained *trained, const double *score, answer as, char *line)
{
    const rbt_shape *shape = &trained->shape;
    size_t outputs = trained->model->outputs(shape), n = 0;

    if (as == ANSWER_LABEL) {
        char room[RBT_LABEL_ROOM];
        const char *label = rbt_shape_label(shape, trained->model->label(shape, score), room);
        n = strlen(label) + 1;
        memcpy(line, label, n);
    }
    for (size_t k = 0; as != ANSWER_LABEL && k < outputs; k++) {
        n += rbt_number_print_rounded(score[k], line + n);
        line[n++] = ' ';
    }
    line[n - 1] = '\n';
    return n;
}

/* The answers for a block of rows: made by all cores, each for some of the rows, and put out in order. */
typedef struct answering {
    const rbt_trained *trained;
    const rbt_data *data;
    answer as;
    size_t room; /* for one line */
    char *text;  /* each row's line at row * room, so to speak: a chunk's lines stand one after the other */
    size_t *length;
} answering;

static void answer_chunk(void *context, size_t chunk)
{
    answering *a = context;
    const rbt_model *model = a->trained->model;
    const rbt_shape *shape = &a->trained->shape;
    size_t outputs = model->outputs(shape), first = chunk * CHUNK_ROWS, left = a->data->rows - first, n = 0;
    double *score = rbt_alloc(outputs + 1, sizeof *score), *probability = rbt_alloc(outputs + 1, sizeof *score);
    char *line = a->text + first * a->room;

    for (size_t row = first; row < first + (left < CHUNK_ROWS ? left : CHUNK_ROWS); row++) {
        model->score(shape, a->data, row, a->trained->w, score);
        if (a->as == ANSWER_PROBABILITY) {
            model->probability(shape, score, probability);
            if (outputs == 1) /* two classes: that of "yes" */
                score[0] = probability[1];
            else
                memcpy(score, probability, outputs * sizeof *score);
        }
        n += write_row(a->trained, score, a->as, line + n);
    }
    a->length[chunk] = n;
    rbt_free(probability);
    rbt_free(score);
}

/* Room for the longest label and the end of its line. */
static size_t label_room(const rbt_shape *shape)
{
    size_t room = RBT_NUMBER_ROOM;

    for (size_t i = 0; shape->names != NULL && i < shape->classes; i++)
        room = strlen(shape->names[i]) + 1 > room ? strlen(shape->names[i]) + 1 : room;
    return room;
}

static rbt_err write_rows(const rbt_trained *trained, const rbt_data *data, answer as, rbt_output *output,
                          rbt_error *error)
{
    size_t chunks = (data->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    answering a = {.trained = trained, .data = data, .as = as};
    rbt_err err = RBT_OK;

    a.room =
        as != ANSWER_LABEL ? RBT_NUMBER_ROOM * trained->model->outputs(&trained->shape) : label_room(&trained->shape);
    a.text = rbt_try_alloc_raw(data->rows, a.room);
    a.length = rbt_alloc(chunks, sizeof *a.length);
    if (a.text == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu answers at a time", data->rows);
    if (err == RBT_OK)
        rbt_parallel_for(chunks, rbt_parallel_threads(), answer_chunk, &a);
    for (size_t c = 0; err == RBT_OK && c < chunks; c++)
        err = rbt_output_put(output, a.text + c * CHUNK_ROWS * a.room, a.length[c], error);
    rbt_free(a.length);
    rbt_free(a.text);
    return err;
}

/* What cli_columns_note is told. */
typedef struct compared {
    size_t features, cols; /* of the model, if it is a trained one; of the data */
    rbt_base base;         /* from where on the data's features were counted */
} compared;

/* What is asked of which model. */
typedef struct asked {
    const rbt_trained *trained;
    answer as;
    size_t cols; /* of the data so far */
} asked;

/* A block with what the model wants done to its rows. */
static rbt_err answer_block(void *context, const rbt_data *block, rbt_output *output, rbt_error *error)
{
    asked *q = context;
    const rbt_trained *trained = q->trained;
    answer as = q->as;
    rbt_data copy = {0};
    rbt_err err = rbt_labels_check_content(block, error);

    if (err != RBT_OK)
        return err;
    q->cols = block->cols > q->cols ? block->cols : q->cols;
    if (!trained->shape.unit_rows)
        return write_rows(trained, block, as, output, error);
    err = rbt_data_join(block, 1, &copy, error);
    if (err == RBT_OK)
        err = rbt_shape_apply(&trained->shape, false, &copy, error);
    if (err == RBT_OK)
        err = write_rows(trained, &copy, as, output, error);
    rbt_data_deinit(&copy);
    return err;
}

static rbt_err predict(const char *model, const rbt_trainee *plugin, const char *path, const rbt_reading *reading,
                       const char *out, answer as, compared *columns, rbt_error *error)
{
    rbt_trained trained = {0};
    rbt_output output;
    rbt_err err = cli_trained_load(model, plugin, &trained, error);

    if (err != RBT_OK)
        return err;
    columns->features = trained.shape.cols;
    rbt_reading like = *reading;
    like.origin = trained.origin;
    like.features = trained.shape.cols;
    if (as == ANSWER_PROBABILITY && trained.model->probability == NULL)
        err = rbt_fail(error, RBT_E_USAGE, "%s is a model (%s) that knows no probabilities; use --as score", model,
                       trained.model->about);
    if (err == RBT_OK)
        err = rbt_output_open(out != NULL ? out : "-", &output, error);
    if (err != RBT_OK)
        goto deinit_trained;
    asked question = {.trained = &trained, .as = as};
    err = cli_answer_stream(path, &like, answer_block, &question, &output, &columns->base, error);
    columns->cols = question.cols;
    if (err == RBT_OK)
        err = rbt_output_finish(&output, false, error);
    else
        rbt_output_abandon(&output);
deinit_trained:
    rbt_trained_deinit(&trained);
    return err;
}

int cli_predict(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *model = NULL, *data = NULL, *out = NULL, *as_text = NULL, *plugin_path = NULL;
    const char *user = NULL, *top = NULL;
    rbt_trainee plugin = {0};
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &model},
        CLI_PLUGIN_OPTION(&plugin_path),
        {"data", "PATH...", "The rows: files, patterns, or - = standard input. They need no labels.", &data},
        CLI_READING_OPTIONS(&given),
        {"out", "FILE", "Where the answers go; - = standard output. [-]", &out},
        {"as", "label|probability|score",
         "What is written per row: the label; the probability of the larger label; the decision value. Of softmax the "
         "last two are one for each class, in the order of the labels, with blanks between. [label]",
         &as_text},
        {"user", "NAME", "mf: the best items for this user, without those in --data, if given.", &user},
        {"top", "N", "mf, with --user: how many. [10]", &top},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    answer as = ANSWER_LABEL;
    compared columns = {0};
    bool fitted; /* of a method, and no trained one in other clothes */
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", model, "FILE", &error);
    if (err == RBT_OK && user == NULL)
        err = cli_require("data", data, "PATH", &error);
    if (err == RBT_OK)
        err = cli_keep_data_apart(&(cli_data){data, given.label, 0}, out, &error);
    if (err == RBT_OK)
        err = cli_keep_apart(model, out, &error);
    if (err == RBT_OK)
        err = cli_keep_apart(plugin_path, out, &error);
    if (err == RBT_OK)
        err = answer_of(as_text, &as, &error);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    reading.unlabelled = true;
    if (err == RBT_OK)
        err = cli_plugin_open(plugin_path, &plugin, &error);
    fitted = err == RBT_OK && cli_fitted_is(model) && !cli_fitted_is_trained(model, plugin.method);
    if (err == RBT_OK && as_text != NULL && fitted)
        err = rbt_fail(
            &error, RBT_E_USAGE,
            "--as makes no sense for %s, whose method has one kind of answer (docs/methods.md); leave it out", model);
    if (err == RBT_OK && (user != NULL || top != NULL))
        err = cli_fitted_recommend(model, plugin.method, data, &reading, user, top, out, &error);
    else if (err == RBT_OK)
        err = fitted ? cli_fitted_predict(model, plugin.method, data, &reading, out, &error)
                     : predict(model, &plugin, data, &reading, out, as, &columns, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    if (columns.features > 0)
        cli_columns_note(command, &report, columns.cols, columns.features, columns.base);
    report.unlabelled = 0; /* nothing special here */
    cli_reading_note(command, &report);
    return 0;
}
