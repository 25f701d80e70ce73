/* rubato info: what a file holds, be it a trained model or data. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/read.h"
#include "data/stats.h"
#include "method/method.h"
#include "model/classes.h"
#include "model/trained.h"
#include "model/vocab.h"
#include "report/text.h"

#define WEIGHTS_SHOWN   10 /* of each decision value; of many, fewer */
#define WEIGHTS_OF_MANY 5
#define OUTPUTS_SHOWN   20
#define LABELS_SHOWN    20
#define LABELS_COUNTED  1000 /* more different labels are numbers to predict */
#define FILES_MOST      256  /* more: a pattern */

/* --------------------------------------------------------------------------------------------------- model */

/* The largest weights of decision value k by magnitude, the bias aside. */
static void print_weights(const rbt_trained *t, size_t k, size_t base, size_t most, const rbt_vocab *vocab)
{
    size_t outputs = t->model->outputs(&t->shape), top[WEIGHTS_SHOWN], count = 0;

    for (size_t i = 0; i < t->shape.cols; i++) {
        float size = fabsf(t->w[i * outputs + k]);
        if (size == 0 || (count == most && size <= fabsf(t->w[top[count - 1] * outputs + k])))
            continue;
        size_t at = count < most ? count++ : count - 1;
        for (; at > 0 && size > fabsf(t->w[top[at - 1] * outputs + k]); at--)
            top[at] = top[at - 1];
        top[at] = i;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = rbt_vocab_name(vocab, top[i]);
        printf("  %10zu  % .6g%s%s\n", top[i] + base, (double)t->w[top[i] * outputs + k], name != NULL ? "  " : "",
               name != NULL ? name : "");
    }
}

/* The number of the first feature, and what it means. */
static size_t first_feature(const char *text, const char **meaning)
{
    rbt_origin origin = {0};

    (void)rbt_origin_parse(text, &origin);
    size_t base = rbt_origin_first(&origin);
    *meaning = "features are counted from 1";
    if (origin.base != RBT_BASE_AUTO) {
        *meaning = base == 0 ? "feature as in the file, from 0" : "feature as in the file, from 1";
    } else if (origin.column.count > 0) {
        *meaning = origin.bits > 0 ? "features are columns of numbers, counted from 1, then hashes of words"
                                   : "features are columns, counted from 1, but label and weight";
    } else if (origin.bits > 0) {
        *meaning = "features are hashes, from 0";
    }
    rbt_origin_deinit(&origin);
    return base;
}

static void print_all_weights(const rbt_trained *t, const rbt_vocab *vocab)
{
    size_t outputs = t->model->outputs(&t->shape);
    const char *meaning;
    size_t base = first_feature(t->origin, &meaning);
    char label[RBT_LABEL_ROOM];

    printf("largest weights (%s)\n", meaning);
    if (outputs == 1) {
        print_weights(t, 0, base, WEIGHTS_SHOWN, vocab);
        return;
    }
    for (size_t k = 0; k < outputs && k < OUTPUTS_SHOWN; k++) {
        rbt_shape_label_text(&t->shape, (double)k, label);
        printf(" label %s\n", label);
        print_weights(t, k, base, WEIGHTS_OF_MANY, vocab);
    }
    if (outputs > OUTPUTS_SHOWN)
        printf(" and %zu other labels; rubato export --format text has all\n", outputs - OUTPUTS_SHOWN);
}

static void print_classes(const rbt_shape *shape)
{
    char text[RBT_LABEL_ROOM];

    for (size_t i = 0; i < shape->classes && i < LABELS_SHOWN; i++) {
        rbt_shape_label_text(shape, (double)i, text);
        printf("%s%s", i == 0 ? "labels      " : ", ", text);
    }
    if (shape->classes > LABELS_SHOWN)
        printf(" and %zu more", shape->classes - LABELS_SHOWN);
    printf("%s", shape->classes > 0 ? "\n" : "");
}

/* How the data was read that it was trained with, and is read that it is applied to. */
static void print_origin(const char *text)
{
    rbt_origin origin;

    if (text == NULL || !rbt_origin_parse(text, &origin))
        return;
    printf("data        ");
    if (origin.base != RBT_BASE_AUTO)
        printf("LIBSVM text, features counted from %d", origin.base == RBT_BASE_0 ? 0 : 1);
    if (origin.column.count > 0)
        printf("CSV of %zu columns", origin.column.count);
    for (size_t i = 0; i < origin.column.count; i++)
        if (origin.column.at[i].kind == RBT_COLUMN_LABEL && origin.column.at[i].name != NULL)
            printf(", label %.*s", (int)origin.column.at[i].bytes, origin.column.at[i].name);
        else if (origin.column.at[i].kind == RBT_COLUMN_LABEL)
            printf(", label in column %zu", i + 1);
    if (origin.bits > 0)
        printf("%s, hashed to 2^%u columns", origin.column.count > 0 ? "" : "Vowpal Wabbit text", origin.bits);
    printf("\n");
    rbt_origin_deinit(&origin);
}

static void print_model(const rbt_trained *t, const rbt_vocab *vocab)
{
    size_t outputs = t->model->outputs(&t->shape), nonzero = 0;
    double squares = 0, sum = 0;

    for (size_t i = 0; i < t->n; i++)
        nonzero += t->w[i] != 0;
    for (size_t i = 0; i < t->shape.cols * outputs; i++) {
        squares += (double)t->w[i] * (double)t->w[i];
        sum += fabs((double)t->w[i]);
    }
    printf("kind        trained model\nmodel       %s (%s)\nfeatures    %zu\n", t->model->name, t->model->about,
           t->shape.cols);
    printf("parameters  %zu, of which %zu are not zero\n", t->n, nonzero);
    print_classes(&t->shape);
    print_origin(t->origin);
    if (t->shape.unit_rows)
        printf("rows        are scaled to length 1\n");
    printf("norm        %.6g; sum of magnitudes %.6g (without the bias)\n", sqrt(squares), sum);
    for (size_t k = 0; t->shape.bias && k < outputs && k < OUTPUTS_SHOWN; k++)
        printf("%-11s %.6g\n", k == 0 ? "bias" : "", (double)t->w[t->n - outputs + k]);
    if (nonzero > 0)
        print_all_weights(t, vocab);
}

/* ---------------------------------------------------------------------------------------------------- data */

typedef struct label_count {
    float label;
    size_t rows;
} label_count;

/* Counts the different labels, ascending; false when there are more than LABELS_COUNTED. Rows without one have 0. */
static bool count_labels(const rbt_data *data, label_count *found, size_t *count)
{
    size_t at = 0;

    *count = 0;
    for (size_t r = 0; r < data->rows; r++) {
        float label = data->label[r];
        if (*count > 0 && at < *count && found[at].label == label) {
            found[at].rows++;
            continue;
        }
        size_t low = 0, high = *count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (found[middle].label < label)
                low = middle + 1;
            else
                high = middle;
        }
        at = low;
        if (at == *count || found[at].label != label) {
            if (*count == LABELS_COUNTED)
                return false;
            memmove(found + at + 1, found + at, (*count - at) * sizeof *found);
            found[at] = (label_count){label, 0};
            (*count)++;
        }
        found[at].rows++;
    }
    return true;
}

static const char *label_text(float label, char text[RBT_LABEL_ROOM])
{
    rbt_label_print((double)label, text);
    return text;
}

/* Takes so many rows without a label from those of label 0. */
static void leave_out(label_count *found, size_t *count, uint64_t unlabelled)
{
    for (size_t i = 0; i < *count && unlabelled > 0; i++) {
        if (found[i].label != 0)
            continue;
        found[i].rows -= unlabelled;
        if (found[i].rows == 0)
            memmove(found + i, found + i + 1, (--*count - i) * sizeof *found);
        return;
    }
}

static void print_label_range(const rbt_data *data, uint64_t unlabelled)
{
    float least = INFINITY, most = -INFINITY;
    size_t zeros = 0;
    char first[RBT_LABEL_ROOM], last[RBT_LABEL_ROOM];
    double sum = 0;

    if (data->label_names != NULL) {
        printf("labels      %zu different words\n", data->label_count);
        return;
    }
    for (size_t r = 0; r < data->rows; r++)
        zeros += data->label[r] == 0;
    for (size_t r = 0; r < data->rows; r++) {
        if (data->label[r] == 0 && zeros == unlabelled) /* all of them stand for none */
            continue;
        least = data->label[r] < least ? data->label[r] : least;
        most = data->label[r] > most ? data->label[r] : most;
        sum += (double)data->label[r];
    }
    printf("labels      numbers, %s to %s, %.6g on average\n", label_text(least, first), label_text(most, last),
           sum / (double)(data->rows - unlabelled));
}

/* Are these numbers to predict rather than classes? Many, and not all of them whole. */
static bool are_numbers(const rbt_data *data, const label_count *found, size_t count)
{
    bool whole = data->label_names != NULL || count <= LABELS_SHOWN;

    for (size_t i = 0; i < count && !whole; i++)
        if (found[i].label != floorf(found[i].label))
            return true;
    return false;
}

static void print_labels(const rbt_data *data, uint64_t unlabelled)
{
    label_count *found = rbt_alloc(LABELS_COUNTED, sizeof *found);
    size_t count = 0;
    char text[RBT_LABEL_ROOM];

    bool few = count_labels(data, found, &count);
    if (few)
        leave_out(found, &count, unlabelled);
    if (few && count == 0)
        printf("labels      none\n");
    if (!few || are_numbers(data, found, count)) {
        print_label_range(data, unlabelled);
        count = 0;
    }
    for (size_t i = 0; i < count && i < LABELS_SHOWN; i++) {
        size_t name = (size_t)(found[i].label > 0 ? found[i].label : 0);
        printf("%-11s ", i == 0 ? "labels" : "");
        if (data->label_names != NULL && name < data->label_count)
            printf("%s", data->label_names[name]);
        else
            printf("%s", label_text(found[i].label, text));
        printf(": %zu row%s (%.2f %%)\n", found[i].rows, found[i].rows == 1 ? "" : "s",
               100.0 * (double)found[i].rows / (double)(data->rows - unlabelled));
    }
    if (count > LABELS_SHOWN)
        printf("%-11s and %zu other labels\n", "", count - LABELS_SHOWN);
    rbt_free(found);
}

static double sum_of_values(const rbt_data *data)
{
    double sum = 0;

    for (size_t i = 0; i < data->nnz; i++)
        sum += (double)data->value[i];
    return sum;
}

static void print_ratings(const rbt_data *data, const rbt_stats *s)
{
    double cells = (double)data->rows * (double)data->cols, n = (double)data->nnz;

    printf("kind        ratings\nusers       %zu\nitems       %zu\n", data->rows, data->cols);
    printf("ratings     %zu; %zu to %zu per user, %.4g on average\n", data->nnz, s->shortest, s->longest,
           n / (double)data->rows);
    printf("density     %.4g %%\nvalues      %g to %g, %.6g on average\n", cells > 0 ? 100 * n / cells : 0,
           (double)s->least, (double)s->most, data->nnz > 0 ? sum_of_values(data) / n : 0);
    if (data->nnz > 0 && data->col_names != NULL)
        printf("most rated  item %s, by %.4g %% of the users\n", rbt_ids_name(data->col_names, s->delta_feature),
               100 * s->delta);
}

static void print_docs(const rbt_data *data, const rbt_stats *s)
{
    double tokens = sum_of_values(data);

    printf("kind        documents\ndocuments   %zu\nwords       %zu, of which %zu occur\n", data->rows, data->cols,
           s->used);
    printf("tokens      %.0f; %.4g per document on average\n", tokens, tokens / (double)data->rows);
    printf("pairs       %zu of a document and a word; %zu to %zu different words per document, %.4g on average\n",
           data->nnz, s->shortest, s->longest, (double)data->nnz / (double)data->rows);
    printf("counts      %g to %g\n", (double)s->least, (double)s->most);
    if (data->nnz > 0)
        printf("most used   word %zu, in %.4g %% of the documents\n", s->delta_feature + 1, 100 * s->delta);
}

/* `unlabelled`: so many rows have no label. */
static rbt_err print_data(const char *name, const rbt_data *data, uint64_t unlabelled, rbt_error *error)
{
    double cells = (double)data->rows * (double)data->cols;
    bool rows = data->content == RBT_CONTENT_ROWS;
    const char *meaning;
    rbt_stats s;
    rbt_err err = rbt_stats_compute(data, rows ? RBT_STATS_RHO_BUDGET : 0, &s, error);

    if (err != RBT_OK)
        return err;
    printf("file        %s\n", name);
    if (!rows) {
        (data->content == RBT_CONTENT_RATINGS ? print_ratings : print_docs)(data, &s);
        return RBT_OK;
    }
    printf("kind        data\nrows        %zu\nfeatures    %zu", data->rows, data->cols);
    if (s.used < data->cols)
        printf(", of which %zu occur", s.used);
    printf("\nnon-zeros   %zu; %zu to %zu per row, %.4g on average\n", data->nnz, s.shortest, s.longest,
           data->rows > 0 ? (double)data->nnz / (double)data->rows : 0);
    printf("density     %.4g %%\nvalues      %g to %g\n", cells > 0 ? 100 * (double)data->nnz / cells : 0,
           (double)s.least, (double)s.most);
    if (data->weight != NULL)
        printf("weights     %g to %g, %.10g in all\n", s.weight_least, s.weight_most, s.weight);
    if (data->nnz > 0)
        printf("Delta       %.4g: %.4g %% of the rows have feature %zu, the most frequent\n", s.delta, 100 * s.delta,
               s.delta_feature + first_feature(data->origin, &meaning));
    if (s.rho_rows == data->rows)
        printf("rho         %.4g: no row shares a feature with more than %.4g %% of the rows\n", s.rho, 100 * s.rho);
    else
        printf("rho         at least %.4g: found by looking at %zu rows\n", s.rho, s.rho_rows);
    if (data->rows > 0)
        print_labels(data, unlabelled);
    return RBT_OK;
}

/* A model file begins with a byte that no text begins with. */
static bool is_model(const rbt_input *input)
{
    return input->n >= 4 && memcmp(input->bytes, "\x89RBT", 4) == 0;
}

/* A pattern stands for data; one file may be either. */
static rbt_err tell(const char *path, const rbt_trainee *plugin, const rbt_reading *reading, const rbt_vocab *vocab,
                    bool given_vocab, rbt_error *error)
{
    rbt_input input = {.name = path};
    rbt_trained trained = {0};
    rbt_data data = {0};
    bool pattern = rbt_data_is_pattern(path);
    char title[RBT_PATHS_TITLE_ROOM];
    rbt_err err = pattern ? RBT_OK : rbt_input_open(path, &input, error);

    rbt_paths_title(path, title, sizeof title);
    if (err != RBT_OK)
        return err;
    if (rbt_fitted_begins(input.bytes, input.n)) {
        rbt_input_close(&input);
        return cli_fitted_info(path, plugin->method, vocab, error);
    }
    if (is_model(&input)) {
        err = rbt_trained_decode(input.bytes, input.n, input.name, plugin->model, &trained, error);
        if (err == RBT_OK) {
            rbt_vocab columns = {0};

            if (!given_vocab)
                rbt_vocab_of_origin(trained.origin, &columns);
            printf("file        %s\n", input.name);
            print_model(&trained, given_vocab ? vocab : &columns);
            cli_vocab_note("info", vocab, trained.shape.cols);
            rbt_vocab_deinit(&columns);
        }
        rbt_trained_deinit(&trained);
        rbt_input_close(&input);
        return err;
    }
    if (given_vocab) {
        rbt_input_close(&input);
        return rbt_fail(error, RBT_E_USAGE,
                        "--vocab makes no sense for %s, which is data: it names the features of models; leave it out",
                        path);
    }
    err = pattern ? rbt_data_read_as(path, reading, &data, error) : rbt_data_take(&input, reading, &data, error);
    if (err != RBT_OK)
        cli_memory_hint(error);
    if (err == RBT_OK)
        err = print_data(strcmp(path, "-") == 0 ? "standard input" : title, &data, reading->report->unlabelled, error);
    rbt_data_deinit(&data);
    return err;
}

int cli_info(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *words[FILES_MOST] = {NULL}, *path = NULL, *names = NULL, *plugin_path = NULL;
    char paths[RBT_OPTION_ROOM] = "";
    rbt_trainee plugin = {0};
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading = {0};
    const cli_option own[] = {
        {"vocab", "FILE", "Names of the features, one per line, for a model's weights or topics.", &names},
        CLI_PLUGIN_OPTION(&plugin_path),
        CLI_READING_OPTIONS(&given)};
    cli_arguments arguments = {
        .own = own, .own_count = sizeof own / sizeof own[0], .words = words, .words_room = FILES_MOST};
    rbt_vocab vocab = {0};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    for (size_t i = 0; err == RBT_OK && i < arguments.words_count; i++)
        err = cli_add_path("info", words[i], paths, &error);
    path = arguments.words_count > 0 ? paths : NULL;
    if (err == RBT_OK && path == NULL) {
        error = (rbt_error){RBT_E_USAGE, "which file? give a model file or a data file"};
        err = RBT_E_USAGE;
    }
    if (err == RBT_OK && names != NULL)
        err = rbt_vocab_read(names, &vocab, &error);
    if (err == RBT_OK)
        err = cli_plugin_open(plugin_path, &plugin, &error);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    reading.unlabelled = true;
    if (err == RBT_OK)
        err = tell(path, &plugin, &reading, &vocab, names != NULL, &error);
    rbt_vocab_deinit(&vocab);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    cli_reading_note(command, &report);
    return 0;
}
