/* rubato info: what a file holds, be it a trained model or data. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/read.h"
#include "model/classes.h"
#include "model/trained.h"
#include "report/text.h"

#define WEIGHTS_SHOWN 10
#define LABELS_SHOWN  20

/* --------------------------------------------------------------------------------------------------- model */

/* The largest weights by magnitude, the bias aside. */
static void print_weights(const rbt_trained *t)
{
    size_t features = t->n - (t->shape.bias && t->n > 0 ? 1 : 0), top[WEIGHTS_SHOWN], count = 0;

    for (size_t i = 0; i < features; i++) {
        if (t->w[i] == 0 || (count == WEIGHTS_SHOWN && fabsf(t->w[i]) <= fabsf(t->w[top[count - 1]])))
            continue;
        size_t at = count < WEIGHTS_SHOWN ? count++ : count - 1;
        for (; at > 0 && fabsf(t->w[i]) > fabsf(t->w[top[at - 1]]); at--)
            top[at] = top[at - 1];
        top[at] = i;
    }
    if (count > 0)
        printf("largest weights (feature as in the file, from 1)\n");
    for (size_t k = 0; k < count; k++)
        printf("  %10zu  % .6g\n", top[k] + 1, (double)t->w[top[k]]);
}

static void print_classes(const rbt_shape *shape)
{
    char text[RBT_LABEL_ROOM];

    for (size_t i = 0; i < shape->classes; i++) {
        rbt_shape_label_text(shape, (double)i, text);
        printf("%s%s", i == 0 ? "labels      " : ", ", text);
    }
    printf("%s", shape->classes > 0 ? "\n" : "");
}

static void print_model(const rbt_trained *t)
{
    double norm = 0;
    size_t nonzero = 0;

    for (size_t i = 0; i < t->n; i++) {
        norm += (double)t->w[i] * (double)t->w[i];
        nonzero += t->w[i] != 0;
    }
    printf("kind        trained model\nmodel       %s (%s)\nfeatures    %zu\n", t->model->name, t->model->about,
           t->shape.cols);
    printf("parameters  %zu, of which %zu are not zero\n", t->n, nonzero);
    print_classes(&t->shape);
    printf("norm        %.6g\n", sqrt(norm));
    for (size_t k = 0, outputs = t->model->outputs(&t->shape); t->shape.bias && k < outputs; k++)
        printf("%-11s %.6g\n", k == 0 ? "bias" : "", (double)t->w[t->n - outputs + k]);
    print_weights(t);
}

/* ---------------------------------------------------------------------------------------------------- data */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void print_labels(const rbt_data *data)
{
    float *labels = rbt_alloc(data->rows, sizeof *labels);
    size_t shown = 0, distinct = 0;

    memcpy(labels, data->label, data->rows * sizeof *labels);
    qsort(labels, data->rows, sizeof *labels, ascending);
    for (size_t i = 0, run = 0; i < data->rows; i += run) {
        for (run = 1; i + run < data->rows && labels[i + run] == labels[i];)
            run++;
        distinct++;
        if (shown == LABELS_SHOWN)
            continue;
        shown++;
        printf("%-11s ", shown == 1 ? "labels" : "");
        if (data->label_names != NULL)
            printf("%s", data->label_names[(size_t)labels[i]]);
        else
            printf("%g", (double)labels[i]);
        printf(": %zu rows (%.2f %%)\n", run, 100.0 * (double)run / (double)data->rows);
    }
    if (distinct > shown)
        printf("%-11s and %zu other labels\n", "", distinct - shown);
    rbt_free(labels);
}

static void print_weights_of_rows(const rbt_data *data)
{
    double sum = 0;

    for (size_t r = 0; data->weight != NULL && r < data->rows; r++)
        sum += (double)data->weight[r];
    if (data->weight != NULL)
        printf("weights     %.6g per row on average\n", sum / (double)data->rows);
}

static void print_data(const rbt_data *data)
{
    float least = 0, most = 0;
    size_t longest = 0, shortest = SIZE_MAX;

    for (size_t i = 0; i < data->nnz; i++) {
        least = i == 0 || data->value[i] < least ? data->value[i] : least;
        most = i == 0 || data->value[i] > most ? data->value[i] : most;
    }
    for (size_t r = 0; r < data->rows; r++) {
        size_t n = data->start[r + 1] - data->start[r];
        longest = n > longest ? n : longest;
        shortest = n < shortest ? n : shortest;
    }
    double cells = (double)data->rows * (double)data->cols;
    printf("kind        data\nrows        %zu\nfeatures    %zu\n", data->rows, data->cols);
    printf("non-zeros   %zu; %zu to %zu per row, %.4g on average\n", data->nnz, data->rows > 0 ? shortest : 0, longest,
           data->rows > 0 ? (double)data->nnz / (double)data->rows : 0);
    printf("density     %.4g %%\nvalues      %g to %g\n", cells > 0 ? 100 * (double)data->nnz / cells : 0,
           (double)least, (double)most);
    print_weights_of_rows(data);
    print_labels(data);
}

/* A model file begins with a byte that no text begins with. */
static bool is_model(const rbt_input *input)
{
    return input->n >= 4 && memcmp(input->bytes, "\x89RBT", 4) == 0;
}

/* A pattern stands for data; one file may be either. */
static rbt_err tell(const char *path, const rbt_reading *reading, rbt_error *error)
{
    rbt_input input = {.name = path};
    rbt_trained trained = {0};
    rbt_data data = {0};
    bool pattern = rbt_data_is_pattern(path);
    rbt_err err = pattern ? RBT_OK : rbt_input_open(path, &input, error);

    if (err != RBT_OK)
        return err;
    printf("file        %s\n", input.name);
    if (is_model(&input)) {
        err = rbt_trained_decode(input.bytes, input.n, input.name, &trained, error);
        if (err == RBT_OK)
            print_model(&trained);
        rbt_trained_deinit(&trained);
        rbt_input_close(&input);
        return err;
    }
    err = pattern ? rbt_data_read_as(path, reading, &data, error) : rbt_data_take(&input, reading, &data, error);
    if (err == RBT_OK)
        print_data(&data);
    rbt_data_deinit(&data);
    return err;
}

int cli_info(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *path = NULL;
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {CLI_READING_OPTIONS(&given)};
    cli_arguments arguments = {own, sizeof own / sizeof own[0], NULL, &path, 1, 0, false};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && path == NULL) {
        error = (rbt_error){RBT_E_USAGE, "which file? give a model file or a data file"};
        err = RBT_E_USAGE;
    }
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    reading.unlabelled = true;
    if (err == RBT_OK)
        err = tell(path, &reading, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    cli_reading_note(command, &report);
    return 0;
}
