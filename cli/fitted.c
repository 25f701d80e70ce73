/* What the commands do with a fitted model of a method, where predict.c, eval.c, info.c and export.c have their own ways for
 * trained models. The contract stands in cli.h. Proved by tests/cli/test_methods.sh. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/events.h"
#include "data/file.h"
#include "data/number.h"
#include "data/ratings.h"
#include "data/read.h"
#include "data/stream.h"
#include "job/text.h"
#include "job/trainee.h"
#include "method/method.h"
#include "model/export.h"
#include "model/trained.h"
#include "model/vocab.h"

#define TOP_DEFAULT 10

bool cli_fitted_is(const char *path)
{
    char first[8];
    FILE *file = fopen(path, "rbe");
    size_t n = file != NULL ? fread(first, 1, sizeof first, file) : 0;

    if (file != NULL)
        fclose(file);
    return rbt_fitted_begins(first, n);
}

bool cli_fitted_is_trained(const char *path, const rbt_method *own)
{
    unsigned char head[16 + RBT_TRAINED_NAME_BYTES + 1] = {0}; /* magic, version, the length of a name, the name */
    FILE *file = cli_fitted_is(path) ? fopen(path, "rbe") : NULL;
    size_t n = file != NULL ? fread(head, 1, sizeof head - 1, file) : 0, length = n > 16 ? head[12] : 0;
    const char *name = (const char *)head + 16;
    const rbt_method *method;

    if (file != NULL)
        fclose(file);
    if (length == 0 || length > RBT_TRAINED_NAME_BYTES)
        return false;
    head[16 + length] = '\0';
    method = own != NULL && strcmp(own->name, name) == 0 ? own : rbt_method_find(name);
    return method != NULL && method->as_trained != NULL;
}

rbt_err cli_trained_load(const char *path, const rbt_trainee *plugin, rbt_trained *trained, rbt_error *error)
{
    rbt_fitted fitted = {0};
    rbt_err err;

    if (!cli_fitted_is(path))
        return rbt_trained_load_own(path, plugin->model, trained, error);
    err = rbt_fitted_load_own(path, plugin->method, &fitted, error);
    if (err == RBT_OK)
        err = fitted.method->as_trained != NULL
                  ? fitted.method->as_trained(&fitted, trained, error)
                  : cli_fitted_lacks(&fitted, path, "do as models of gradients do", error);
    if (err == RBT_OK) {
        rbt_reading unused;
        char *origin = cli_fitted_reading(&fitted, &unused);

        if (origin[0] != '\0')
            trained->origin = origin;
        else
            rbt_free(origin);
    }
    rbt_fitted_deinit(&fitted);
    return err;
}

rbt_err cli_plugin_open(const char *path, rbt_trainee *plugin, rbt_error *error)
{
    rbt_err err = RBT_OK;

    *plugin = (rbt_trainee){0};
    if (path != NULL)
        err = rbt_trainee_find(path, plugin, error);
    if (err == RBT_OK && path != NULL && !plugin->is_plugin)
        err = rbt_fail(error, RBT_E_USAGE, "--plugin %s is no shared object; give a path, as in ./%s.so", path, path);
    return err;
}

rbt_err cli_fitted_lacks(const rbt_fitted *fitted, const char *path, const char *what, rbt_error *error)
{
    return rbt_fail(error, RBT_E_USAGE, "%s is a model of %s (%s), which cannot be used to %s", path,
                    fitted->method->name, fitted->method->about, what);
}

char *cli_fitted_reading(const rbt_fitted *fitted, rbt_reading *reading)
{
    char *origin = rbt_fitted_origin(fitted);

    reading->expect = fitted->method->content;
    reading->unlabelled = true;
    reading->origin = origin;
    return origin;
}

/* ----------------------------------------------------------------------------------------------------------- predict */

/* Answers that are written to `lines` and then put out. */
typedef struct answers {
    char *text;
    size_t length;
    FILE *lines;
} answers;

static rbt_err answers_open(answers *a, rbt_error *error)
{
    *a = (answers){0};
    a->lines = open_memstream(&a->text, &a->length);
    return a->lines != NULL ? RBT_OK : rbt_fail(error, RBT_E_MEMORY, "not enough memory for the answers");
}

/* `n`: how many they are; `err`: whether they could be given. */
static rbt_err answers_put(answers *a, size_t n, rbt_output *output, rbt_err err, rbt_error *error)
{
    if (a->lines != NULL && fclose(a->lines) != 0 && err == RBT_OK)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu answers at a time", n);
    if (err == RBT_OK)
        err = rbt_output_put(output, a->text, a->length, error);
    free(a->text);
    return err;
}

/* The lines of ratings, in their order. */
static rbt_err answer_ratings(const rbt_fitted *fitted, const rbt_rating_list *list, rbt_output *output,
                              rbt_error *error)
{
    answers a;
    rbt_err err = answers_open(&a, error);

    RBT_ASSERT(fitted->method->predict_one != NULL); /* whoever calls has asked */
    for (size_t i = 0; err == RBT_OK && i < list->n; i++)
        err = fitted->method->predict_one(fitted, rbt_ids_name(list->users, list->at[i].row),
                                          rbt_ids_name(list->items, list->at[i].col), a.lines, error);
    return answers_put(&a, list->n, output, err, error);
}

/* The lines of a block of rows. */
static rbt_err answer_rows(void *context, const rbt_data *data, rbt_output *output, rbt_error *error)
{
    const rbt_fitted *fitted = context;
    answers a;
    rbt_err err = answers_open(&a, error);

    RBT_ASSERT(fitted->method->predict != NULL); /* whoever calls has asked */
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++)
        err = fitted->method->predict(fitted, data, r, a.lines, error);
    return answers_put(&a, data->rows, output, err, error);
}

static rbt_err answer_keys(const rbt_fitted *fitted, const rbt_event_key *keys, size_t n, rbt_output *output,
                           rbt_error *error)
{
    answers a;
    rbt_err err = answers_open(&a, error);

    for (size_t i = 0; err == RBT_OK && i < n; i++)
        err = fitted->method->answer(fitted, keys[i].text, keys[i].n, a.lines, error);
    return answers_put(&a, n, output, err, error);
}

/* Of a method that reads files itself: an answer to each line. Who asks line by line, through a pipe, is answered so. */
static rbt_err answer_lines(const rbt_fitted *fitted, const char *path, rbt_output *output, rbt_error *error)
{
    enum { LINES = 1024 };
    rbt_event_key *keys = rbt_alloc(LINES, sizeof *keys);
    rbt_events *events = NULL;
    rbt_err err = rbt_events_open(path, &(rbt_events_options){.column = 0, .empty = true}, &events, error);
    size_t n = err == RBT_OK;

    while (err == RBT_OK && n > 0) {
        err = rbt_events_next(events, keys, LINES, &n, error);
        if (err == RBT_OK)
            err = answer_keys(fitted, keys, n, output, error);
        if (err == RBT_OK && n < LINES)
            err = rbt_output_flush(output, error);
    }
    rbt_events_close(events);
    rbt_free(keys);
    return err;
}

rbt_err cli_fitted_predict(const char *model, const rbt_method *own, const char *path, const rbt_reading *reading,
                           const char *out, rbt_error *error)
{
    rbt_reading as = *reading;
    rbt_fitted fitted = {0};
    rbt_data data = {0};
    rbt_rating_list list = {0};
    rbt_output output;
    char *origin;
    rbt_err err = rbt_fitted_load_own(model, own, &fitted, error);

    if (err != RBT_OK)
        return err;
    origin = cli_fitted_reading(&fitted, &as);
    err = fitted.method->predict != NULL || fitted.method->answer != NULL
              ? rbt_output_open(out != NULL ? out : "-", &output, error)
              : cli_fitted_lacks(&fitted, model, "predict", error);
    if (err != RBT_OK)
        goto deinit;
    if (fitted.method->answer != NULL) {
        err = answer_lines(&fitted, path, &output, error);
    } else if (fitted.method->content == RBT_CONTENT_ROWS || fitted.method->content == RBT_CONTENT_POINTS) {
        err = cli_answer_stream(path, &as, answer_rows, &fitted, &output, NULL, error);
    } else {
        err = rbt_data_read_listed(path, &as, &data, fitted.method->predict_one != NULL ? &list : NULL, error);
        if (err == RBT_OK)
            err = list.n > 0 ? answer_ratings(&fitted, &list, &output, error)
                             : answer_rows(&fitted, &data, &output, error);
    }
    if (err == RBT_OK)
        err = rbt_output_finish(&output, false, error);
    else
        rbt_output_abandon(&output);
deinit:
    rbt_free(origin);
    rbt_rating_list_deinit(&list);
    rbt_data_deinit(&data);
    rbt_fitted_deinit(&fitted);
    return err;
}

/* Writes the answer for one name, which may have to know some data. */
static rbt_err recommend(const rbt_fitted *fitted, const char *path, const rbt_reading *reading, const char *name,
                         size_t n, rbt_output *output, rbt_error *error)
{
    rbt_data known = {0};
    answers a;
    rbt_err err = answers_open(&a, error);

    RBT_ASSERT(fitted->method->recommend != NULL); /* likewise */
    if (err == RBT_OK && path != NULL)
        err = rbt_data_read_as(path, reading, &known, error);
    if (err == RBT_OK)
        err = fitted->method->recommend(fitted, path != NULL ? &known : NULL, name, n, a.lines, error);
    rbt_data_deinit(&known);
    return answers_put(&a, n, output, err, error);
}

/* What is no model of any kind, or a damaged one; but not one that only a plugin knows. */
static rbt_err refuse_damaged(const char *model, rbt_error *error)
{
    rbt_trained trained = {0};
    rbt_err err = rbt_trained_load(model, &trained, error);

    rbt_trained_deinit(&trained);
    return err == RBT_E_UNSUPPORTED ? RBT_OK : err;
}

rbt_err cli_fitted_recommend(const char *model, const rbt_method *own, const char *path, const rbt_reading *reading,
                             const char *user, const char *top, const char *out, rbt_error *error)
{
    rbt_reading as = *reading;
    rbt_fitted fitted = {0};
    rbt_output output;
    uint64_t n = TOP_DEFAULT;
    char *origin;
    rbt_err err = RBT_OK;

    if (user == NULL)
        return rbt_fail(error, RBT_E_USAGE, "--top says how many items for --user; give --user NAME");
    if (!cli_fitted_is(model) && (err = refuse_damaged(model, error)) != RBT_OK)
        return err;
    if (!cli_fitted_is(model))
        return rbt_fail(error, RBT_E_USAGE, "--user makes no sense for %s, which is no model of mf; leave it out",
                        model);
    if (top != NULL)
        err = rbt_text_to_count("--top", top, 1, UINT32_MAX, &n, error);
    if (err == RBT_OK)
        err = rbt_fitted_load_own(model, own, &fitted, error);
    if (err != RBT_OK)
        return err;
    origin = cli_fitted_reading(&fitted, &as);
    err = fitted.method->recommend != NULL ? rbt_output_open(out != NULL ? out : "-", &output, error)
                                           : cli_fitted_lacks(&fitted, model, "recommend anything to a user", error);
    if (err == RBT_OK) {
        err = recommend(&fitted, path, &as, user, (size_t)n, &output, error);
        if (err == RBT_OK)
            err = rbt_output_finish(&output, false, error);
        else
            rbt_output_abandon(&output);
    }
    rbt_free(origin);
    rbt_fitted_deinit(&fitted);
    return err;
}

/* -------------------------------------------------------------------------------------------------------------- info */

/* Names that are given with the command, for a model that has none of its own. */
void cli_vocab_note(const char *command, const rbt_vocab *vocab, size_t features)
{
    if (vocab->text != NULL && features > 0 && vocab->count != features) /* it was given */
        fprintf(stderr, "rubato %s: --vocab has %zu name%s, the model %zu feature%s; are they of the same data?\n",
                command, vocab->count, vocab->count == 1 ? "" : "s", features, features == 1 ? "" : "s");
}

/* How many features a model of a method has names for; 0: not known. */
static size_t features_of(const rbt_fitted *fitted)
{
    const rbt_values *words = rbt_fitted_values(fitted, "word_topic"), *weights = rbt_fitted_values(fitted, "weights"),
                     *means = rbt_fitted_values(fitted, "means");

    return words != NULL     ? (size_t)words->rows
           : weights != NULL ? (size_t)weights->cols
           : means != NULL   ? (size_t)means->cols
                             : 0;
}

static void add_names(const rbt_vocab *vocab, rbt_fitted *fitted)
{
    const char **names;

    if (vocab->count == 0 || rbt_fitted_names(fitted, "vocabulary") != NULL)
        return;
    names = rbt_alloc(vocab->count, sizeof *names);
    for (size_t i = 0; i < vocab->count; i++)
        names[i] = rbt_vocab_name(vocab, i) != NULL ? rbt_vocab_name(vocab, i) : "";
    rbt_fitted_add_names(fitted, "vocabulary", vocab->count, names);
    rbt_free(names);
}

/* The names that the training data had for its features. */
static void name_by_origin(rbt_fitted *fitted)
{
    rbt_vocab columns = {0};
    char *origin = cli_fitted_reading(fitted, &(rbt_reading){0});

    rbt_vocab_of_origin(origin, &columns);
    add_names(&columns, fitted);
    rbt_vocab_deinit(&columns);
    rbt_free(origin);
}

/* Takes the names that are given with a command; `path`: of their file, where each feature has to have a line. `own`: a method
 * that is not built in, which may use them as it likes. */
static rbt_err name_features(const char *path, const rbt_method *own, const rbt_vocab *vocab, rbt_fitted *fitted,
                             rbt_error *error)
{
    if (vocab->text != NULL && own == NULL && features_of(fitted) == 0)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--vocab names features, and a model of %s has none: it knows what its data calls things; leave "
            "--vocab out",
            fitted->method->name);
    rbt_err err = RBT_OK;
    if (path == NULL) {
        cli_vocab_note("info", vocab, features_of(fitted));
    } else if (features_of(fitted) > 0) {
        char *origin = rbt_fitted_origin(fitted);
        err = cli_vocab_check(path, vocab, features_of(fitted), origin, error);
        rbt_free(origin);
    }
    if (err == RBT_OK)
        add_names(vocab, fitted);
    return err;
}

rbt_err cli_fitted_info(const char *path, const rbt_method *own, const rbt_vocab *vocab, rbt_error *error)
{
    static const char *const TYPES[] = {[RBT_F32] = "f32", [RBT_I32] = "i32", [RBT_I64] = "i64"};
    rbt_fitted fitted = {0};
    rbt_err err = rbt_fitted_load_own(path, own, &fitted, error);
    size_t lists = fitted.lists; /* of the file */
    const char *title = "names";

    if (err == RBT_OK)
        err = name_features(NULL, own, vocab, &fitted, error);
    if (err != RBT_OK)
        goto deinit;
    if (vocab->text == NULL)
        name_by_origin(&fitted);
    printf("file        %s\nkind        fitted model\nmodel       %s (%s)\n", path, fitted.method->name,
           fitted.method->about);
    for (size_t i = 0; i < fitted.arrays; i++)
        printf("%-11s %s: %llu x %llu, %s\n", i == 0 ? "arrays" : "", fitted.array[i].name,
               (unsigned long long)fitted.array[i].rows, (unsigned long long)fitted.array[i].cols,
               TYPES[fitted.array[i].type]);
    for (size_t i = 0; i < lists; i++) {
        if (strcmp(fitted.list[i].name, RBT_FITTED_ORIGIN) == 0) /* names nothing that the model has */
            continue;
        printf("%-11s %s: %zu\n", title, fitted.list[i].name, fitted.list[i].n);
        title = "";
    }
    for (size_t i = 0; i < fitted.numbers; i++)
        printf("%-11s %s: %.10g\n", i == 0 ? "numbers" : "", fitted.number[i].name, fitted.number[i].value);
    if (fitted.method->describe != NULL)
        fitted.method->describe(&fitted, stdout);
deinit:
    rbt_fitted_deinit(&fitted);
    return err;
}

/* ------------------------------------------------------------------------------------------------------------ export */

static const char *number_text(const rbt_values *v, size_t i, char text[RBT_NUMBER_ROOM])
{
    if (v->type == RBT_F32)
        text[rbt_number_print(((const float *)v->at)[i], text)] = '\0';
    else
        snprintf(text, RBT_NUMBER_ROOM, "%lld",
                 v->type == RBT_I32 ? (long long)((const int32_t *)v->at)[i] : (long long)((const int64_t *)v->at)[i]);
    return text;
}

static void print_json_array(rbt_json *json, const rbt_values *v)
{
    char text[RBT_NUMBER_ROOM];

    rbt_json_array(json, v->name);
    for (size_t r = 0; r < v->rows; r++) {
        rbt_json_array(json, NULL);
        for (size_t c = 0; c < v->cols; c++)
            rbt_json_guess(json, NULL, number_text(v, r * v->cols + c, text));
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static void print_json(FILE *out, const rbt_fitted *fitted)
{
    rbt_json json = {.file = out};

    rbt_json_object(&json, NULL);
    rbt_json_text(&json, "model", fitted->method->name);
    rbt_json_text(&json, "about", fitted->method->about);
    for (size_t i = 0; i < fitted->numbers; i++)
        rbt_json_real(&json, fitted->number[i].name, fitted->number[i].value);
    for (size_t i = 0; i < fitted->lists; i++) {
        rbt_json_array(&json, fitted->list[i].name);
        for (size_t k = 0; k < fitted->list[i].n; k++)
            rbt_json_text(&json, NULL, fitted->list[i].at[k]);
        rbt_json_end(&json);
    }
    for (size_t i = 0; i < fitted->arrays; i++)
        print_json_array(&json, &fitted->array[i]);
    rbt_json_end(&json);
}

/* Rows of numbers with tabs between; a line "# name rows cols" before each array. */
static void print_text(FILE *out, const rbt_fitted *fitted)
{
    char text[RBT_NUMBER_ROOM];

    for (size_t i = 0; i < fitted->numbers; i++)
        fprintf(out, "# %s\n%.17g\n", fitted->number[i].name, fitted->number[i].value);
    for (size_t i = 0; i < fitted->lists; i++) {
        fprintf(out, "# %s, names, %zu\n", fitted->list[i].name, fitted->list[i].n);
        for (size_t k = 0; k < fitted->list[i].n; k++)
            fprintf(out, "%s\n", fitted->list[i].at[k]);
    }
    for (size_t i = 0; i < fitted->arrays; i++) {
        const rbt_values *v = &fitted->array[i];

        fprintf(out, "# %s %llu %llu\n", v->name, (unsigned long long)v->rows, (unsigned long long)v->cols);
        for (size_t r = 0; r < v->rows; r++) {
            for (size_t c = 0; c < v->cols; c++)
                fprintf(out, "%s%s", c > 0 ? "\t" : "", number_text(v, r * v->cols + c, text));
            fputc('\n', out);
        }
    }
}

static rbt_err export_as_text(const rbt_fitted *fitted, bool json, const char *path, rbt_error *error)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    rbt_err err = RBT_OK;

    if (out != NULL && json)
        print_json(out, fitted);
    else if (out != NULL)
        print_text(out, fitted);
    if (out == NULL || fclose(out) != 0)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the model as text; use --format npy");
    if (err == RBT_OK)
        err = rbt_output_whole(path, text, length, true, error);
    free(text);
    return err;
}

rbt_err cli_fitted_export(const char *model, const rbt_method *own, const char *format, const char *array,
                          const char *vocab, const char *out, rbt_error *error)
{
    rbt_fitted fitted = {0};
    rbt_vocab names = {0};
    rbt_err err = rbt_fitted_load_own(model, own, &fitted, error);

    if (err == RBT_OK && vocab != NULL)
        err = rbt_vocab_read(vocab, &names, error);
    if (err == RBT_OK)
        err = name_features(vocab, own, &names, &fitted, error);
    rbt_vocab_deinit(&names);
    if (err != RBT_OK) {
        rbt_fitted_deinit(&fitted);
        return err;
    }
    if (strcmp(format, "json") == 0 || strcmp(format, "text") == 0) {
        if (vocab == NULL)
            name_by_origin(&fitted);
        err = export_as_text(&fitted, strcmp(format, "json") == 0, out, error);
    } else if (strcmp(format, "npy") == 0) {
        const rbt_values *values = array != NULL ? rbt_fitted_values(&fitted, array) : &fitted.array[0];

        if (fitted.arrays == 0 || values == NULL)
            err = rbt_fail(error, RBT_E_USAGE, "%s has no array '%s'; rubato info lists them", model,
                           array != NULL ? array : "");
        else
            err = rbt_export_array(values, out, error);
    } else {
        err = rbt_fail(error, RBT_E_USAGE, "a model of %s can be written as npy, json or text, not as %s",
                       fitted.method->name, format);
    }
    rbt_fitted_deinit(&fitted);
    return err;
}
