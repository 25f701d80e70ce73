/* From options to data that can be trained on. Contract in loading.h. */
#include "job/loading.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "job/text.h"
#include "model/classes.h"
#include "model/model.h"
#include "solve/newton.h"
#include "solve/rate.h"

#define FEW_PARAMETERS    2000
#define CLASS_WEIGHT_MOST 1e9

static rbt_err find_model(const char *name, const rbt_model **model, rbt_error *error)
{
    char known[256] = "";
    *model = rbt_model_find(name);
    if (*model != NULL)
        return RBT_OK;
    for (size_t i = 0; rbt_model_at(i) != NULL; i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "", rbt_model_at(i)->name);
    }
    return rbt_fail(error, RBT_E_USAGE, "unknown model '%.60s'; this version has: %s", name, known);
}

/* Reads as the options say. */
static rbt_err read_data(const rbt_options *options, const char *path, const rbt_log *log, rbt_data *data,
                         rbt_read_report *report, rbt_error *error)
{
    const rbt_reading reading = {.format = options->format,
                                 .label = options->label,
                                 .weight = options->weight,
                                 .bits = options->bits,
                                 .skip_bad = options->skip_bad,
                                 .report = report};
    const rbt_storing storing = {
        .level = options->store, .keep = options->cache == RBT_CACHE_AUTO, .reading = &reading, .log = log};
    return rbt_store_read(path, &storing, data, error);
}

rbt_err rbt_loaded_read(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error)
{
    rbt_err err = find_model(options->model, &loaded->model, error);
    if (err == RBT_OK)
        err = read_data(options, options->data, log, &loaded->data, &loaded->report, error);
    loaded->has_valid = options->valid != NULL;
    if (err == RBT_OK && loaded->has_valid)
        err = read_data(options, options->valid, log, &loaded->valid, &loaded->valid_report, error);
    return err;
}

/* ----------------------------------------------------------------------------------------------------- weights */

/* The class that a label as written stands for, or `classes`. */
static size_t class_written(const rbt_shape *shape, const char *text)
{
    for (size_t k = 0; k < shape->classes; k++) {
        char label[RBT_LABEL_ROOM];
        double number;
        rbt_shape_label_text(shape, (double)k, label);
        if (strcmp(label, text) == 0)
            return k;
        if (shape->names == NULL && rbt_text_to_real("", text, &number, NULL) == RBT_OK && number == shape->labels[k])
            return k;
    }
    return shape->classes;
}

/* "LABEL=W,LABEL=W": classes that are not named keep 1. */
static rbt_err parse_class_weights(const char *spec, const rbt_shape *shape, double *weight, rbt_error *error)
{
    char *copy = rbt_strdup(spec), *rest = copy;
    rbt_err err = RBT_OK;
    for (char *part = strsep(&rest, ","); err == RBT_OK && part != NULL; part = strsep(&rest, ",")) {
        char *equals = strrchr(part, '=');
        double value = 0;
        if (equals == NULL) {
            err = rbt_fail(error, RBT_E_USAGE,
                           "--class-weight '%.60s' is not of the form LABEL=W; give balanced or LABEL=W,LABEL=W", part);
            break;
        }
        *equals = '\0';
        size_t class = class_written(shape, part);
        err = rbt_text_to_real("--class-weight", equals + 1, &value, error);
        if (err == RBT_OK && class == shape->classes)
            err = rbt_fail(error, RBT_E_USAGE, "--class-weight: the data has no label '%.60s'", part);
        else if (err == RBT_OK && !(value > 1 / CLASS_WEIGHT_MOST && value < CLASS_WEIGHT_MOST))
            err = rbt_fail(error, RBT_E_USAGE, "--class-weight %.60s=%g is out of range; give a number from %g to %g",
                           part, value, 1 / CLASS_WEIGHT_MOST, CLASS_WEIGHT_MOST);
        else if (err == RBT_OK)
            weight[class] = value;
    }
    rbt_free(copy);
    return err;
}

static void balance(const rbt_data *data, size_t classes, double *weight)
{
    double *count = rbt_alloc(classes, sizeof *count);
    for (size_t r = 0; r < data->rows; r++)
        count[(size_t)data->label[r]] += data->weight != NULL ? (double)data->weight[r] : 1;
    for (size_t k = 0; k < classes; k++)
        weight[k] = (double)data->rows / ((double)classes * count[k]);
    rbt_free(count);
}

static rbt_err weigh_classes(rbt_loaded *loaded, const char *spec, rbt_error *error)
{
    rbt_data *data = &loaded->data;
    size_t classes = loaded->shape.classes;
    if (classes == 0)
        return rbt_fail(error, RBT_E_USAGE, "--class-weight makes no sense for %s, which predicts numbers",
                        loaded->model->name);
    double *weight = rbt_alloc(classes, sizeof *weight);
    rbt_err err = RBT_OK;
    for (size_t k = 0; k < classes; k++)
        weight[k] = 1;
    if (strcmp(spec, "balanced") == 0)
        balance(data, classes, weight);
    else
        err = parse_class_weights(spec, &loaded->shape, weight, error);
    if (err == RBT_OK && data->weight == NULL) {
        data->weight = rbt_alloc(data->rows, sizeof *data->weight);
        for (size_t r = 0; r < data->rows; r++)
            data->weight[r] = 1;
    }
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++)
        data->weight[r] *= (float)weight[(size_t)data->label[r]];
    rbt_free(weight);
    return err;
}

/* Weights get the mean 1, so that mean losses are weighted means and l2 means the same with and without. */
static void normalise_weights(rbt_data *data)
{
    double sum = 0;
    for (size_t r = 0; data->weight != NULL && r < data->rows; r++)
        sum += (double)data->weight[r];
    for (size_t r = 0; data->weight != NULL && r < data->rows; r++)
        data->weight[r] = (float)((double)data->weight[r] * (double)data->rows / sum);
}

/* ------------------------------------------------------------------------------------------------------- ready */

static rbt_err standardise(rbt_loaded *loaded, rbt_error *error)
{
    rbt_err err = rbt_scaling_learn(&loaded->scaling, &loaded->data, error);
    if (err == RBT_OK && !loaded->shape.bias) { /* nothing could take up the means */
        rbt_free(loaded->scaling.mean);
        loaded->scaling.mean = NULL;
    }
    if (err == RBT_OK)
        err = rbt_scaling_apply(&loaded->scaling, &loaded->data, error);
    if (err == RBT_OK && loaded->has_valid)
        err = rbt_scaling_apply(&loaded->scaling, &loaded->valid, error);
    return err;
}

/* Do so few features occur in the data that there are at most FEW_PARAMETERS to learn? Looks only as long as it may. */
static bool has_few_parameters(const rbt_problem *problem)
{
    const rbt_data *data = problem->data;
    size_t limit = FEW_PARAMETERS / problem->outputs, used = 0, bytes = problem->shape->cols / 8 + 1;
    unsigned char *seen = rbt_alloc(bytes, 1);

    for (size_t row = 0; row < data->rows && used <= limit; row++) {
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
            uint32_t j = data->index[i];
            if (j < problem->shape->cols && (seen[j / 8] >> (j % 8) & 1) == 0) {
                seen[j / 8] |= (unsigned char)(1 << (j % 8));
                used++;
            }
        }
        rbt_data_release_passed(data, row, 1);
    }
    rbt_free(seen);
    return used <= limit;
}

/* In shared memory: Newton's method for few parameters, where threads without locks would step on each other's feet and
 * second derivatives are cheap; dual coordinate ascent for many. */
static rbt_err settle_optimizer(const rbt_loaded *loaded, rbt_options *options, rbt_error *error)
{
    rbt_problem problem = rbt_problem_of(loaded->model, &loaded->shape, &loaded->data, options->l1, options->l2);
    bool few = has_few_parameters(&problem);

    if (options->optimizer == RBT_OPTIMIZER_AUTO)
        options->optimizer = few && rbt_newton_fits(&problem) ? RBT_OPTIMIZER_NEWTON : RBT_OPTIMIZER_SDCA;
    if (options->optimizer == RBT_OPTIMIZER_NEWTON && !rbt_newton_fits(&problem))
        return rbt_fail(error, RBT_E_USAGE,
                        "--optimizer newton needs a smooth loss, which that of %s is not; use --optimizer sdca, or "
                        "train svm2",
                        loaded->model->name);
    if (options->workers_auto && few && options->optimizer != RBT_OPTIMIZER_NEWTON)
        options->workers = 1;
    return RBT_OK;
}

/* What depends on the data: l2, the optimizer and the step size. */
static rbt_err settle(rbt_loaded *loaded, rbt_options *options, rbt_error *error)
{
    if (isnan(options->l2)) /* softmax: a penalty on the weights of every class, of which few matter to a row */
        options->l2 = (loaded->model == &rbt_model_softmax ? 0.5 : 1) / (double)loaded->data.rows;
    rbt_err err = rbt_options_shared(options) ? settle_optimizer(loaded, options, error) : RBT_OK;
    if (err != RBT_OK)
        return err;
    if (options->lr > 0 || options->optimizer >= RBT_OPTIMIZER_SDCA)
        return RBT_OK;
    if (options->rule == RBT_RULE_ADAGRAD && !rbt_options_shared(options)) {
        options->lr = RBT_RATE_ADAPTIVE;
        return RBT_OK;
    }
    rbt_problem problem = rbt_problem_of(loaded->model, &loaded->shape, &loaded->data, options->l1, options->l2);
    return rbt_rate_find(&problem, options->optimizer, options->momentum, options->seed, &options->lr, error);
}

rbt_err rbt_loaded_prepare(rbt_loaded *loaded, rbt_options *options, rbt_error *error)
{
    rbt_err err = loaded->shape.cols > 0 ? RBT_OK /* a fold: the classes are those of all rows */
                                         : loaded->model->prepare(&loaded->data, &loaded->shape, error);
    loaded->shape.bias = !options->no_bias;
    loaded->shape.delta = options->delta;
    loaded->shape.unit_rows = options->normalize == RBT_NORMALIZE_UNIT;
    if (err == RBT_OK)
        err = rbt_shape_apply(&loaded->shape, true, &loaded->data, error);
    if (err == RBT_OK && loaded->has_valid)
        err = rbt_shape_apply(&loaded->shape, true, &loaded->valid, error);
    if (err == RBT_OK && options->class_weight != NULL)
        err = weigh_classes(loaded, options->class_weight, error);
    if (err == RBT_OK && options->normalize == RBT_NORMALIZE_STANDARD)
        err = standardise(loaded, error);
    if (err != RBT_OK)
        return err;
    normalise_weights(&loaded->data);
    err = settle(loaded, options, error);
    if (options->workers_auto && options->workers > loaded->data.rows)
        options->workers = (uint32_t)loaded->data.rows;
    if (err != RBT_OK)
        return err;
    return rbt_options_shared(options)
               ? rbt_shards_deal(&loaded->data, options->workers, options->seed, &loaded->shards, error)
               : rbt_shards_create(&loaded->data, options->workers, options->seed, &loaded->shards, error);
}

rbt_err rbt_loaded_fold(rbt_loaded *loaded, const rbt_loaded *whole, const rbt_options *options, uint32_t fold,
                        rbt_error *error)
{
    size_t rows = whole->data.rows, in = 0, out = 0;
    if (rows < options->folds)
        return rbt_fail(error, RBT_E_USAGE, "--folds %u: the data has only %zu rows; use fewer folds", options->folds,
                        rows);
    uint32_t *order = rbt_alloc(rows, sizeof *order), *kept = rbt_alloc(rows, sizeof *kept),
             *left = rbt_alloc(rows, sizeof *left);
    rbt_rng rng = rbt_rng_stream(options->seed, RBT_STREAM_SHUFFLE, UINT64_MAX); /* not that of any shard */
    rbt_err err;
    for (size_t r = 0; r < rows; r++)
        order[r] = (uint32_t)r;
    rbt_rng_shuffle_u32(&rng, order, rows);
    for (size_t i = 0; i < rows; i++)
        if (i % options->folds == fold)
            left[out++] = order[i];
        else
            kept[in++] = order[i];
    loaded->model = whole->model;
    loaded->has_valid = true;
    err = whole->model->prepare(&whole->data, &loaded->shape, error);
    if (err == RBT_OK)
        err = rbt_data_select(&whole->data, kept, in, &loaded->data, error);
    if (err == RBT_OK)
        err = rbt_data_select(&whole->data, left, out, &loaded->valid, error);
    rbt_free(order);
    rbt_free(kept);
    rbt_free(left);
    return err;
}

void rbt_loaded_deinit(rbt_loaded *loaded)
{
    rbt_shards_destroy(&loaded->shards);
    rbt_scaling_deinit(&loaded->scaling);
    rbt_data_deinit(&loaded->data);
    rbt_data_deinit(&loaded->valid);
    rbt_shape_deinit(&loaded->shape);
}
