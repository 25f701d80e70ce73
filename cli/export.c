/* rubato export and rubato import: trained models for other programs, and from them. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/file.h"
#include "data/number.h"
#include "data/origin.h"
#include "model/classes.h"
#include "model/export.h"
#include "model/liblinear.h"
#include "report/json.h"

/* -------------------------------------------------------------------------------------------------------- JSON */

static void json_float(rbt_json *json, float value)
{
    char text[RBT_NUMBER_ROOM];

    text[rbt_number_print(value, text)] = '\0';
    rbt_json_guess(json, NULL, text);
}

/* The weights of one feature, or the biases: a number, or one per decision value. */
static void json_weights(rbt_json *json, const char *key, const float *w, size_t n)
{
    rbt_json_array(json, key);
    for (size_t k = 0; k < n; k++)
        json_float(json, w[k]);
    rbt_json_end(json);
}

static void print_json(const rbt_trained *t, const rbt_vocab *vocab, rbt_json *json)
{
    const rbt_shape *shape = &t->shape;
    size_t outputs = t->model->outputs(shape);
    char label[RBT_LABEL_ROOM];

    rbt_json_object(json, NULL);
    rbt_json_text(json, "model", t->model->name);
    rbt_json_text(json, "about", t->model->about);
    rbt_json_count(json, "features", shape->cols);
    rbt_json_bool(json, "unit_rows", shape->unit_rows);
    rbt_json_real(json, "delta", shape->delta);
    rbt_json_array(json, "labels");
    for (size_t k = 0; k < shape->classes; k++) {
        rbt_shape_label_text(shape, (double)k, label);
        if (shape->names != NULL)
            rbt_json_text(json, NULL, shape->names[k]);
        else
            rbt_json_guess(json, NULL, label);
    }
    rbt_json_end(json);
    if (shape->bias)
        json_weights(json, "bias", t->w + shape->cols * outputs, outputs);
    else
        rbt_json_null(json, "bias");
    if (vocab != NULL) {
        rbt_json_array(json, "names");
        for (size_t i = 0; i < shape->cols; i++) {
            const char *name = rbt_vocab_name(vocab, i);
            if (name != NULL)
                rbt_json_text(json, NULL, name);
            else
                rbt_json_null(json, NULL);
        }
        rbt_json_end(json);
    }
    rbt_json_array(json, "weights");
    for (size_t i = 0; i < shape->cols; i++) {
        if (outputs == 1)
            json_float(json, t->w[i]);
        else
            json_weights(json, NULL, t->w + i * outputs, outputs);
    }
    rbt_json_end(json);
    rbt_json_end(json);
}

static rbt_err export_json(const rbt_trained *t, const rbt_vocab *vocab, const char *path, rbt_error *error)
{
    char *text = NULL;
    size_t length = 0;
    rbt_json json = {.file = open_memstream(&text, &length)};
    rbt_err err = RBT_OK;

    if (json.file != NULL)
        print_json(t, vocab, &json);
    if (json.file == NULL || fclose(json.file) != 0) {
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu parameters as text; use --format npy", t->n);
        goto free_text;
    }
    err = rbt_output_whole(path, text, length, true, error);
free_text:
    free(text);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ export */

typedef enum export_format { FORMAT_LIBLINEAR, FORMAT_NPY, FORMAT_JSON, FORMAT_TEXT, FORMAT_COUNT } export_format;

static rbt_err format_of(const char *name, export_format *found, rbt_error *error)
{
    static const char *const NAMES[FORMAT_COUNT] = {"liblinear", "npy", "json", "text"};

    for (unsigned i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *found = (export_format)i;
            return RBT_OK;
        }
    }
    return rbt_fail(error, RBT_E_USAGE, "--format '%s' is unknown; choose liblinear, npy, json or text", name);
}

/* Hashes have no names: of those that stand before them there may be. */
rbt_err cli_vocab_check(const char *path, const rbt_vocab *vocab, size_t features, const char *origin, rbt_error *error)
{
    bool hashes = rbt_origin_bits(origin) > 0;

    if (vocab->count == features || (hashes && vocab->count < features))
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA,
                    "%s: has %zu name%s, the model %zu feature%s; give a line to each, an empty one where there is no "
                    "name",
                    path, vocab->count, vocab->count == 1 ? "" : "s", features, features == 1 ? "" : "s");
}

static rbt_err export_model(const char *model, const rbt_trainee *plugin, export_format format, const char *names,
                            const char *out, rbt_error *error)
{
    rbt_trained t = {0};
    rbt_vocab vocab = {0};
    rbt_err err = RBT_OK;

    err = cli_trained_load(model, plugin, &t, error);
    if (err == RBT_OK && names != NULL)
        err = rbt_vocab_read(names, &vocab, error);
    if (err == RBT_OK && names != NULL)
        err = cli_vocab_check(names, &vocab, t.shape.cols, t.origin, error);
    if (err != RBT_OK)
        goto deinit;
    if (names == NULL)
        rbt_vocab_of_origin(t.origin, &vocab);
    const rbt_vocab *named = names != NULL || vocab.count > 0 ? &vocab : NULL;
    switch (format) {
    case FORMAT_LIBLINEAR:
        err = rbt_liblinear_write(&t, out, error);
        break;
    case FORMAT_NPY:
        err = rbt_export_npy(&t, out, error);
        break;
    case FORMAT_JSON:
        err = export_json(&t, named, out, error);
        break;
    case FORMAT_TEXT:
    default:
        err = rbt_export_text(&t, named, out, error);
        break;
    }
deinit:
    rbt_vocab_deinit(&vocab);
    rbt_trained_deinit(&t);
    return err;
}

int cli_export(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *model = NULL, *name = NULL, *out = NULL, *vocab = NULL, *array = NULL, *plugin_path = NULL;
    rbt_trainee plugin = {0};
    export_format format = FORMAT_TEXT;
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &model},
        CLI_PLUGIN_OPTION(&plugin_path),
        {"format", "liblinear|npy|json|text", "LIBLINEAR's text model; a NumPy array; JSON; lines of weights.", &name},
        {"out", "FILE", "Where it goes; - = standard output.", &out},
        {"vocab", "FILE", "Names of the features, one per line, for json and text. [those of CSV columns]", &vocab},
        {"array", "NAME", "Which array of a method's model goes into the npy file; rubato info lists them. [the first]",
         &array},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", model, "FILE", &error);
    if (err == RBT_OK)
        err = cli_require("format", name, "liblinear|npy|json|text", &error);
    if (err == RBT_OK)
        err = cli_require("out", out, "FILE", &error);
    if (err == RBT_OK)
        err = cli_keep_apart(model, out, &error);
    if (err == RBT_OK)
        err = cli_keep_apart(vocab, out, &error);
    if (err == RBT_OK)
        err = cli_keep_apart(plugin_path, out, &error);
    if (err == RBT_OK)
        err = format_of(name, &format, &error);
    if (err == RBT_OK)
        err = cli_plugin_open(plugin_path, &plugin, &error);
    if (err == RBT_OK && array != NULL && (format != FORMAT_NPY || !cli_fitted_is(model)))
        err = rbt_fail(&error, RBT_E_USAGE,
                       "--array chooses what of a method's model goes into a npy file; leave it out");
    if (err == RBT_OK && vocab != NULL && format != FORMAT_JSON && format != FORMAT_TEXT)
        err = rbt_fail(&error, RBT_E_USAGE, "--vocab goes with --format json or text: the others have no names");
    if (err == RBT_OK && cli_fitted_is(model) &&
        (format != FORMAT_LIBLINEAR || !cli_fitted_is_trained(model, plugin.method)))
        err = cli_fitted_export(model, plugin.method, name, array, vocab, out, &error);
    else if (err == RBT_OK)
        err = export_model(model, &plugin, format, vocab, out, &error);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}

/* ------------------------------------------------------------------------------------------------------ import */

int cli_import(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *model = NULL, *name = NULL, *out = NULL;
    const cli_option own[] = {
        {"model", "FILE", "A model that another program has trained; - = standard input.", &model},
        {"format", "liblinear", "What wrote it; LIBLINEAR, also when not given.", &name},
        {"out", "FILE", "Where the model goes; - = standard output.", &out},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_trained trained = {0};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", model, "FILE", &error);
    if (err == RBT_OK)
        err = cli_require("out", out, "FILE", &error);
    if (err == RBT_OK)
        err = cli_keep_apart(model, out, &error);
    if (err == RBT_OK && name != NULL && strcmp(name, "liblinear") != 0)
        err = rbt_fail(&error, RBT_E_USAGE, "--format '%s' cannot be imported; only liblinear can", name);
    if (err == RBT_OK)
        err = rbt_liblinear_read(model, &trained, &error);
    if (err == RBT_OK)
        err = rbt_trained_save(&trained, out, &error);
    rbt_trained_deinit(&trained);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
