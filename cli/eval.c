/* rubato eval: how good a trained model is on data, alone or beside another. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/stream.h"
#include "data/where.h"
#include "job/text.h"
#include "model/classes.h"
#include "model/metrics.h"
#include "model/model.h"
#include "report/text.h"

#define MATRIX_SHOWN 12 /* the confusion matrix of more classes is shown on demand only */

/* What is asked for: bits of metrics, and the confusion matrix. */
typedef struct eval_request {
    const char *model, *baseline, *data, *metric, *json, *plugin_path;
    rbt_trainee plugin;
    rbt_reading reading;
    unsigned want;
    bool confusion;
    size_t features; /* of the model, if it is a trained one */
    size_t cols;     /* of the data */
    rbt_base base;   /* from where on its features were counted */
} eval_request;

/* A model and how it fared. */
typedef struct subject {
    rbt_trained trained;
    rbt_metrics metrics;
} subject;

static rbt_err unknown_metric(const char *name, size_t length, rbt_error *error)
{
    char word[32], list[256] = "";
    size_t n = 0;

    snprintf(word, sizeof word, "%.*s", (int)(length < 30 ? length : 30), name);
    rbt_nearest nearest = {.word = word};
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        rbt_nearest_offer(&nearest, rbt_metric_name((rbt_metric)i));
        n += (size_t)snprintf(list + n, sizeof list - n, "%s, ", rbt_metric_name((rbt_metric)i));
    }
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--metric '%s' is unknown; did you mean '%s'?", word,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE, "--metric '%s' is unknown; there are %sconfusion", word, list);
}

/* "accuracy,auc": which metrics, and is each one for this model? */
static rbt_err parse_metrics(const rbt_trained *trained, eval_request *request, rbt_error *error)
{
    request->want = RBT_METRICS_ALL;
    if (trained->model == &rbt_model_linear) /* nobody has chosen a delta */
        request->want &= ~RBT_METRIC_BIT(RBT_METRIC_HUBER);
    request->confusion = trained->shape.classes > 0 && trained->shape.classes <= MATRIX_SHOWN;
    if (request->metric == NULL)
        return RBT_OK;
    request->want = 0;
    request->confusion = false;
    for (const char *at = request->metric;; at++) {
        size_t length = strcspn(at, ",");
        char name[16] = "";
        rbt_metric metric;
        rbt_err err = RBT_OK;
        if (length < sizeof name)
            memcpy(name, at, length);
        if (strcmp(name, "confusion") == 0) {
            request->confusion = true;
            if (trained->shape.classes == 0 || trained->shape.classes > RBT_CONFUSION_CLASSES_MAX)
                err =
                    rbt_fail(error, RBT_E_USAGE, "--metric confusion is for 2 to %d classes, %s has %zu; leave it out",
                             RBT_CONFUSION_CLASSES_MAX, request->model, trained->shape.classes);
        } else if (rbt_metric_find(name, &metric)) {
            request->want |= RBT_METRIC_BIT(metric);
            err = rbt_metric_fit(metric, trained->model, &trained->shape, error);
        } else {
            err = unknown_metric(at, length, error);
        }
        at += length;
        if (err != RBT_OK || *at == '\0')
            return err;
    }
}

/* ------------------------------------------------------------------------------------------------------- measuring */

static rbt_err measure(subject *s, rbt_data *block, rbt_error *error)
{
    rbt_err err = rbt_shape_apply(&s->trained.shape, true, block, error);

    return err == RBT_OK ? rbt_metrics_add(&s->metrics, &s->trained, block, error) : err;
}

/* Both models on the same rows. Making data fit a model changes it: labels are put back in between, and a model that
 * wants rows of length 1 goes last. */
static rbt_err measure_both(subject *s, rbt_data *block, rbt_error *error)
{
    float *labels = rbt_try_alloc(block->rows, sizeof *labels);
    subject *first = &s[s[0].trained.shape.unit_rows ? 1 : 0], *second = first == s ? &s[1] : &s[0];

    if (labels == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the labels of %zu rows", block->rows);
    memcpy(labels, block->label, block->rows * sizeof *labels);
    rbt_err err = measure(first, block, error);
    memcpy(block->label, labels, block->rows * sizeof *labels);
    if (err == RBT_OK)
        err = measure(second, block, error);
    rbt_free(labels);
    return err;
}

/* A block, of which a copy is made fit. A row in a message is counted from the first of all. */
static rbt_err measure_block(eval_request *request, subject *s, const rbt_data *block, rbt_error *error)
{
    rbt_data copy = {0};
    size_t before = s->metrics.rows; /* one model may have counted the block when the other refuses it */
    rbt_err err = rbt_data_join(block, 1, &copy, error);

    if (err != RBT_OK)
        return err;
    request->cols = block->cols > request->cols ? block->cols : request->cols;
    err = request->baseline == NULL ? measure(s, &copy, error) : measure_both(s, &copy, error);
    if (err == RBT_E_DATA) {
        rbt_where_count_on(before, error);
        rbt_where_rows(request->data, &request->reading, error);
    }
    rbt_data_deinit(&copy);
    return err;
}

/* Rows of a pipe that have been measured were read in another way than the rest. */
static rbt_err refuse_late(const eval_request *request, size_t rows, rbt_error *error)
{
    char title[RBT_PATHS_TITLE_ROOM];

    rbt_paths_title(request->data, title, sizeof title);
    return rbt_fail(error, RBT_E_DATA,
                    "%s: an index 0 after %zu rows without any, which were taken to count from 1, as the model does "
                    "not say; give --base 0",
                    strcmp(request->data, "-") == 0 ? "standard input" : title, rows);
}

/* *late: an index 0 tells only now that all features count from 0, also those that have been measured. */
static rbt_err measure_stream(eval_request *request, subject *s, rbt_rowstream *stream, bool *late, rbt_error *error)
{
    size_t models = request->baseline == NULL ? 1 : 2;
    const rbt_data *block = NULL;
    rbt_err err;

    for (size_t i = 0; i < models; i++)
        rbt_metrics_init(&s[i].metrics, &s[i].trained, request->want);
    do {
        err = rbt_rowstream_next(stream, &block, error);
        if (err == RBT_OK && rbt_rowstream_low(stream) > 0) {
            if (!rbt_rowstream_is_repeatable(stream))
                return refuse_late(request, s->metrics.rows, error);
            *late = true;
            return RBT_OK;
        }
        if (err == RBT_OK && block != NULL)
            err = measure_block(request, s, block, error);
    } while (err == RBT_OK && block != NULL);
    for (size_t i = 0; err == RBT_OK && i < models; i++)
        err = rbt_metrics_finish(&s[i].metrics, error);
    return err;
}

/* Block after block: memory does not grow with the data, but for the decision values that auc needs. */
static rbt_err measure_all(eval_request *request, subject *s, rbt_error *error)
{
    rbt_rowstream *stream = NULL;
    bool late = false;
    rbt_err err = rbt_rowstream_open(request->data, &request->reading, true, RBT_ROWSTREAM_PIECE_BYTES, &stream, error);

    if (err != RBT_OK)
        return err;
    err = measure_stream(request, s, stream, &late, error);
    if (err == RBT_OK && late) {
        rbt_rowstream_close(stream);
        for (size_t i = 0; i < 2; i++)
            rbt_metrics_deinit(&s[i].metrics);
        request->reading.base = RBT_BASE_0;
        return measure_all(request, s, error);
    }
    if (err == RBT_OK) {
        char *origin = rbt_rowstream_origin(stream);

        request->base = rbt_reading_base(&(rbt_reading){.origin = origin});
        rbt_free(origin);
    }
    rbt_rowstream_close(stream);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- printing */

static bool shown(const eval_request *request, const rbt_trained *trained, unsigned metric)
{
    return (request->want & RBT_METRIC_BIT(metric)) != 0 &&
           rbt_metric_fit((rbt_metric)metric, trained->model, &trained->shape, NULL) == RBT_OK;
}

/* Is the metric the same for both models? The losses of two kinds are not, nor are those that begin to be linear elsewhere. */
static bool comparable(const subject *s, unsigned metric)
{
    bool one_kind = s[0].trained.model == s[1].trained.model;
    bool huber = metric == RBT_METRIC_HUBER || (metric == RBT_METRIC_LOSS && s[0].trained.model == &rbt_model_huber);

    return (one_kind || metric != RBT_METRIC_LOSS) && (!huber || s[0].trained.shape.delta == s[1].trained.shape.delta);
}

static double ratio_of(const subject *s, unsigned metric)
{
    return comparable(s, metric) ? s[0].metrics.value[metric] / s[1].metrics.value[metric] : NAN;
}

/* Why there is no ratio. */
static void note_ratios(const eval_request *request, const subject *s)
{
    const rbt_trained *a = &s[0].trained, *b = &s[1].trained;

    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        if (!shown(request, a, i) || !shown(request, b, i) || comparable(s, i))
            continue;
        if (a->model != b->model && i == RBT_METRIC_LOSS)
            fprintf(
                stderr,
                "rubato eval: no ratio of loss: that of %s is another one than that of %s; --metric %s compares them\n",
                a->model->name, b->model->name, a->shape.classes > 0 ? "accuracy" : "rmse");
        else
            fprintf(stderr,
                    "rubato eval: no ratio of %s: its delta is %g for one model and %g for the other; --metric rmse "
                    "compares them\n",
                    rbt_metric_name((rbt_metric)i), a->shape.delta, b->shape.delta);
    }
}

static void cell_of(char cell[RBT_CELL_ROOM], rbt_metric metric, double value)
{
    if (isnan(value))
        snprintf(cell, RBT_CELL_ROOM, "-");
    else if (metric == RBT_METRIC_ACCURACY)
        snprintf(cell, RBT_CELL_ROOM, "%.4f %%", 100 * value);
    else
        (void)rbt_text_from_loss(value, cell);
}

static void print_alone(const eval_request *request, const subject *s)
{
    char cell[RBT_CELL_ROOM];

    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        if (!shown(request, &s->trained, i))
            continue;
        cell_of(cell, (rbt_metric)i, s->metrics.value[i]);
        printf("%-9s %s", rbt_metric_name((rbt_metric)i), cell);
        if (i == RBT_METRIC_HUBER)
            printf(" (delta %g)", rbt_metrics_delta(&s->trained.shape));
        printf("\n");
    }
}

static void print_beside(const eval_request *request, const subject *s)
{
    rbt_grid grid = {.columns = 4, .left = 1};
    char cell[RBT_CELL_ROOM];

    rbt_grid_add(&grid, "");
    rbt_grid_add(&grid, "model");
    rbt_grid_add(&grid, "baseline");
    rbt_grid_add(&grid, "ratio");
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        if (!shown(request, &s[0].trained, i) || !shown(request, &s[1].trained, i))
            continue;
        rbt_grid_add(&grid, rbt_metric_name((rbt_metric)i));
        for (unsigned k = 0; k < 2; k++) {
            cell_of(cell, (rbt_metric)i, s[k].metrics.value[i]);
            rbt_grid_add(&grid, cell);
        }
        snprintf(cell, sizeof cell, "%.4f", ratio_of(s, i));
        rbt_grid_add(&grid, isfinite(ratio_of(s, i)) ? cell : "-");
    }
    rbt_grid_print(&grid, "", stdout);
    rbt_grid_deinit(&grid);
}

static void print_confusion(const subject *s)
{
    size_t n = s->metrics.classes;
    rbt_grid grid = {.columns = n + 1, .left = 1};
    char cell[RBT_CELL_ROOM], label[RBT_LABEL_ROOM];

    rbt_grid_add(&grid, "true \\ predicted");
    for (size_t p = 0; p < n; p++) {
        rbt_shape_label_text(&s->trained.shape, (double)p, label);
        rbt_grid_add(&grid, label);
    }
    for (size_t t = 0; t < n; t++) {
        rbt_shape_label_text(&s->trained.shape, (double)t, label);
        rbt_grid_add(&grid, label);
        for (size_t p = 0; p < n; p++) {
            snprintf(cell, sizeof cell, "%.10g", s->metrics.confusion[t * n + p]);
            rbt_grid_add(&grid, cell);
        }
    }
    printf("\n");
    rbt_grid_print(&grid, "", stdout);
    rbt_grid_deinit(&grid);
}

static void print(const eval_request *request, const subject *s)
{
    printf("rows      %zu\n", s->metrics.rows);
    if (s->metrics.weight != (double)s->metrics.rows)
        printf("weight    %.10g\n", s->metrics.weight);
    if (request->baseline == NULL)
        print_alone(request, s);
    else
        print_beside(request, s);
    if (request->confusion)
        print_confusion(s);
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

static void write_values(rbt_json *json, const eval_request *request, const subject *s)
{
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++)
        if (shown(request, &s->trained, i))
            rbt_json_real(json, rbt_metric_name((rbt_metric)i), s->metrics.value[i]);
}

static void write_confusion(rbt_json *json, const subject *s)
{
    size_t n = s->metrics.classes;
    char label[RBT_LABEL_ROOM];

    rbt_json_array(json, "labels");
    for (size_t k = 0; k < n; k++) {
        const char *text = rbt_shape_label(&s->trained.shape, (double)k, label);
        if (s->trained.shape.names != NULL)
            rbt_json_text(json, NULL, text);
        else
            rbt_json_guess(json, NULL, text);
    }
    rbt_json_end(json);
    rbt_json_array(json, "confusion");
    for (size_t t = 0; t < n; t++) {
        rbt_json_array(json, NULL);
        for (size_t p = 0; p < n; p++)
            rbt_json_real(json, NULL, s->metrics.confusion[t * n + p]);
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static rbt_err write_json(const eval_request *request, const subject *s, rbt_error *error)
{
    rbt_jsonlines lines = {0};
    rbt_json *json = &lines.json;
    rbt_err err = rbt_jsonlines_open(&lines, request->json, error);

    if (err != RBT_OK)
        return err;
    rbt_json_object(json, NULL);
    rbt_json_text(json, "model", s->trained.model->name);
    rbt_json_count(json, "rows", s->metrics.rows);
    rbt_json_real(json, "weight", s->metrics.weight);
    write_values(json, request, s);
    if (request->confusion)
        write_confusion(json, s);
    if (s[1].trained.model != NULL) {
        rbt_json_object(json, "baseline");
        rbt_json_text(json, "model", s[1].trained.model->name);
        write_values(json, request, &s[1]);
        rbt_json_end(json);
        rbt_json_object(json, "ratio");
        for (unsigned i = 0; i < RBT_METRIC_COUNT; i++)
            if (shown(request, &s[0].trained, i) && shown(request, &s[1].trained, i))
                rbt_json_real(json, rbt_metric_name((rbt_metric)i), ratio_of(s, i));
        rbt_json_end(json);
    }
    rbt_json_end(json);
    return rbt_jsonlines_close(&lines, error);
}

/* -------------------------------------------------------------------------------------------------------- the command */

static rbt_err evaluate(eval_request *request, rbt_error *error)
{
    subject s[2];

    memset(s, 0, sizeof s);
    rbt_err err = cli_trained_load(request->model, &request->plugin, &s[0].trained, error);

    request->features = err == RBT_OK ? s[0].trained.shape.cols : 0;
    request->reading.classes = s[0].trained.shape.classes > 0;
    if (err == RBT_OK)
        err = parse_metrics(&s[0].trained, request, error);
    if (err == RBT_OK && request->baseline != NULL)
        err = cli_trained_load(request->baseline, &request->plugin, &s[1].trained, error);
    if (err == RBT_OK &&
        (s[1].trained.model != NULL && (s[0].trained.shape.classes > 0) != (s[1].trained.shape.classes > 0)))
        err = rbt_fail(error, RBT_E_USAGE,
                       "--baseline %s: one model predicts classes, the other numbers; give two of a kind",
                       request->baseline);
    if (err == RBT_OK)
        err = cli_compare_origins(request->model, s[0].trained.origin, request->baseline, s[1].trained.origin, error);
    request->reading.origin = s[0].trained.origin != NULL ? s[0].trained.origin : s[1].trained.origin;
    if (err == RBT_OK)
        err = measure_all(request, s, error);
    if (err == RBT_OK && (request->json == NULL || strcmp(request->json, "-") != 0))
        print(request, s);
    if (err == RBT_OK && request->json != NULL)
        err = write_json(request, s, error);
    if (err == RBT_OK && request->baseline != NULL)
        note_ratios(request, s);
    for (size_t i = 0; i < 2; i++) {
        rbt_metrics_deinit(&s[i].metrics);
        rbt_trained_deinit(&s[i].trained);
    }
    return err;
}

/* A model of a method beside one of gradients, which `gradient` says of the model's file and not the baseline's. */
static rbt_err refuse_mixed(const eval_request *request, bool gradient, rbt_error *error)
{
    rbt_fitted fitted = {0};
    rbt_trained trained = {0};
    rbt_err err =
        rbt_fitted_load_own(gradient ? request->baseline : request->model, request->plugin.method, &fitted, error);

    if (err == RBT_OK)
        err =
            rbt_trained_load_own(gradient ? request->model : request->baseline, request->plugin.model, &trained, error);
    if (err == RBT_OK)
        err =
            rbt_fail(error, RBT_E_USAGE,
                     "--baseline %s is a model of %s, %s one of %s: they have no metric in common; give two of a kind",
                     request->baseline, gradient ? fitted.method->name : trained.model->name, request->model,
                     gradient ? trained.model->name : fitted.method->name);
    rbt_fitted_deinit(&fitted);
    rbt_trained_deinit(&trained);
    return err;
}

/* Models of methods are measured by their method; but a linear one of a method beside one of gradients as that is. */
static rbt_err choose(eval_request *request, rbt_error *error)
{
    const char *model = request->model, *baseline = request->baseline;
    bool is_method = cli_fitted_is(model), mixed = baseline != NULL && cli_fitted_is(baseline) != is_method;

    if (mixed && !cli_fitted_is_trained(is_method ? model : baseline, request->plugin.method))
        return refuse_mixed(request, !is_method, error);
    if (!is_method || mixed)
        return evaluate(request, error);
    return cli_fitted_eval(&(cli_fitted_request){model, baseline, request->data, request->metric, request->json,
                                                 request->plugin.method, &request->reading},
                           error);
}

int cli_eval(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    eval_request request = {0};
    cli_reading given = {0};
    rbt_read_report report = {0};
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &request.model},
        CLI_PLUGIN_OPTION(&request.plugin_path),
        {"data", "PATH...", "Rows with labels: files, patterns, or - = standard input.", &request.data},
        CLI_READING_OPTIONS(&given),
        {"metric", "LIST",
         "Which of loss, logloss, accuracy, auc, f1, precision, recall, confusion, rmse, mae, huber, r2, with commas; "
         "all that fit the model when not given, but huber for linear, whose delta is 1.",
         &request.metric},
        {"baseline", "FILE", "Another model, measured on the same data; shows both and their ratio.",
         &request.baseline},
        {"json", "FILE", "Writes the numbers as one JSON object; - = standard output, without the table.",
         &request.json},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", request.model, "FILE", &error);
    if (err == RBT_OK)
        err = cli_require("data", request.data, "PATH", &error);
    const char *const inputs[] = {request.model, request.baseline, request.plugin_path};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0] && err == RBT_OK; i++)
        err = cli_keep_apart(inputs[i], request.json, &error);
    if (err == RBT_OK)
        err = cli_keep_data_apart(&(cli_data){request.data, given.label, 0}, request.json, &error);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &request.reading, &error);
    if (err == RBT_OK)
        err = cli_plugin_open(request.plugin_path, &request.plugin, &error);
    if (err == RBT_OK)
        err = choose(&request, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    cli_reading_note(command, &report);
    if (request.features > 0)
        cli_columns_note(command, &report, request.cols, request.features, request.base);
    return 0;
}
