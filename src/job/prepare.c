/* From data as it was read to data that can be trained on. Contract in prepare.h; proved by tests/unit/test_loading.c and
 * test_sharing_parallel.c. The options are settled in settle.c. */
#include "job/prepare.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/where.h"
#include "job/text.h"
#include "model/classes.h"
#include "model/model.h"

#define CLASS_WEIGHT_MOST 1e9
#define LABELS_LISTED     10 /* in a message */

/* A process's rows among all of them. */
typedef struct preparing {
    rbt_loaded *loaded;
    rbt_extent *extent;
    rbt_crew *crew;
} preparing;

/* ----------------------------------------------------------------------------------------------------- classes */

/* A label, and the number of the row where it was first seen. */
typedef struct sighting {
    double label;
    uint64_t row;
} sighting;

typedef struct sightings {
    sighting *at;
    size_t count;
    size_t room;
} sightings;

/* Takes note of a label, unless it is known or there are enough. */
static void see(sightings *seen, rbt_map *known, double label, uint64_t row)
{
    uint64_t key;
    bool is_new = false;
    if (seen->count > RBT_CLASSES_LIMIT)
        return;
    label += 0; /* there is a zero with a sign */
    memcpy(&key, &label, sizeof key);
    (void)rbt_map_put(known, key, &is_new);
    if (is_new)
        rbt_array_push(seen, ((sighting){label, row}));
}

/* The different labels of all rows, in the order in which they are first seen. */
static rbt_err see_labels(const preparing *p, sightings *all, rbt_error *error)
{
    const rbt_data *data = &p->loaded->data;
    rbt_bytes *in = rbt_alloc(p->crew->size, sizeof *in);
    sightings mine = {0};
    rbt_map known = {0};
    uint32_t last = UINT32_MAX, other = UINT32_MAX; /* two, because there are often no more; these are of no number */
    for (size_t r = 0; r < data->rows; r++) {
        uint32_t bits;
        memcpy(&bits, &data->label[r], sizeof bits);
        if ((bits == last) | (bits == other)) /* no branch between them: which it is cannot be foreseen */
            continue;
        see(&mine, &known, (double)data->label[r], p->extent->first + r);
        other = last;
        last = bits;
    }
    rbt_map_deinit(&known);
    rbt_err err =
        rbt_crew_collect(p->crew, RBT_OK, (rbt_bytes){(uint8_t *)mine.at, mine.count * sizeof *mine.at}, in, error);
    known = (rbt_map){0};
    for (uint32_t r = 0; err == RBT_OK && r < p->crew->size; r++) {
        for (size_t i = 0; i + sizeof(sighting) <= in[r].n; i += sizeof(sighting)) {
            sighting s;
            memcpy(&s, in[r].at + i, sizeof s);
            if (s.row < p->extent->rows)
                see(all, &known, s.label, s.row);
        }
    }
    rbt_map_deinit(&known);
    rbt_crew_free(p->crew, in);
    rbt_free(in);
    rbt_array_free(&mine);
    return err;
}

/* Rows that have nothing but the labels that were seen: each once or, when a message is to name the right rows, where
 * it was first seen among as many rows as there are. */
static rbt_err prepare_from(const preparing *p, const sightings *seen, bool all, rbt_error *error)
{
    const rbt_data *data = &p->loaded->data;
    size_t rows = all ? p->extent->rows : seen->count;
    float *label = rbt_try_alloc(rows + 1, sizeof *label);
    rbt_data empty = {.content = data->content,
                      .rows = rows,
                      .cols = data->cols,
                      .start = rbt_try_alloc(rows + 1, sizeof *empty.start),
                      .label = label,
                      .label_names = data->label_names,
                      .label_count = data->label_count};
    bool room = label != NULL && empty.start != NULL;
    for (size_t r = 0; room && all && seen->count > 0 && r < rows; r++)
        label[r] = (float)seen->at[0].label;
    for (size_t i = 0; room && i < seen->count; i++)
        label[all ? seen->at[i].row : i] = (float)seen->at[i].label;
    rbt_err err = room ? p->loaded->model->prepare(&empty, &p->loaded->shape, error)
                       : rbt_fail(error, RBT_E_MEMORY, "not enough memory for the labels of %zu rows", rows);
    rbt_free(label);
    rbt_free(empty.start);
    return err;
}

/* Classes and columns, from all rows. */
static rbt_err find_classes(const preparing *p, rbt_error *error)
{
    sightings seen = {0};
    if (p->crew->size == 1)
        return p->loaded->model->prepare(&p->loaded->data, &p->loaded->shape, error);
    rbt_err err = RBT_OK;
    if (rbt_model_is_classifier(p->loaded->model))
        err = see_labels(p, &seen, error);
    else
        rbt_array_push(&seen, ((sighting){0, 0})); /* what the labels are does not matter */
    if (err == RBT_OK) {
        err = prepare_from(p, &seen, false, error);
        if (err != RBT_OK && err != RBT_E_MEMORY)
            err = prepare_from(p, &seen, true, error);
    }
    rbt_array_free(&seen);
    return rbt_crew_agree(p->crew, err, error);
}

/* ------------------------------------------------------------------------------------------- spread of numbers */

#define DELTA_SPREADS 1.345 /* medians of the labels' deviations: an error beyond that is a large one */
#define KEY_BINS      65536

/* Labels, or their deviations from `centre`, as numbers that sort alike; counted by the upper half of these, then by the lower
 * half of those whose upper one is `upper`. */
typedef struct spreading {
    const rbt_data *data;
    float centre;
    bool deviations;
    bool lower;
    uint32_t upper;
} spreading;

static float spread_value(const spreading *s, size_t row)
{
    return s->deviations ? fabsf(s->data->label[row] - s->centre) : s->data->label[row];
}

static void count_keys(void *context, void *sums)
{
    const spreading *s = context;
    uint64_t *count = sums;
    for (size_t r = 0; r < s->data->rows; r++) {
        float value = spread_value(s, r);
        uint32_t key;
        memcpy(&key, &value, sizeof key);
        key = key >> 31 != 0 ? ~key : key | UINT32_C(1) << 31;
        if (!s->lower)
            count[key >> 16]++;
        else if (key >> 16 == s->upper)
            count[key & 0xffff]++;
    }
}

static rbt_err find_median(const preparing *p, spreading *s, float *median, rbt_error *error)
{
    uint64_t *count = rbt_alloc(KEY_BINS, sizeof *count), rank = (p->extent->rows - 1) / 2;
    rbt_err err = RBT_OK;
    for (int half = 0; err == RBT_OK && half < 2; half++) {
        uint32_t bin = 0;
        s->lower = half == 1;
        memset(count, 0, KEY_BINS * sizeof *count);
        err = rbt_crew_travel(p->crew, err, count_keys, s, count, KEY_BINS * sizeof *count, error);
        while (err == RBT_OK && bin < KEY_BINS - 1 && rank >= count[bin])
            rank -= count[bin++];
        s->upper = half == 0 ? bin : s->upper << 16 | bin;
    }
    rbt_free(count);
    uint32_t key = s->upper >> 31 != 0 ? s->upper & ~(UINT32_C(1) << 31) : ~s->upper;
    memcpy(median, &key, sizeof key);
    return err;
}

static void add_deviations(void *context, void *sums)
{
    const spreading *s = context;
    double *sum = sums;
    for (size_t r = 0; r < s->data->rows; r++)
        *sum += (double)spread_value(s, r);
}

/* Huber's delta, when none is given: by how far labels are from their median, which outliers do not move. The mean of that where
 * more than half of the labels are alike. */
static rbt_err find_delta(const preparing *p, double *delta, rbt_error *error)
{
    spreading s = {.data = &p->loaded->data};
    float median = 0;
    double sum = 0;
    rbt_err err = find_median(p, &s, &s.centre, error);
    s.deviations = true;
    if (err == RBT_OK)
        err = find_median(p, &s, &median, error);
    if (err == RBT_OK && median == 0)
        err = rbt_crew_travel(p->crew, err, add_deviations, &s, &sum, sizeof sum, error);
    double spread = median > 0 ? (double)median : sum / (double)p->extent->rows;
    *delta = spread > 0 && isfinite(spread) ? DELTA_SPREADS * spread : RBT_DELTA_DEFAULT;
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

/* Lists the first of the labels there are. */
static rbt_err refuse_label(const rbt_shape *shape, const char *text, rbt_error *error)
{
    char list[512] = "", label[RBT_LABEL_ROOM];
    size_t n = 0;
    for (size_t k = 0; k < shape->classes && k < LABELS_LISTED; k++) {
        rbt_shape_label_text(shape, (double)k, label);
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.40s", k > 0 ? ", " : "", label);
    }
    return rbt_fail(error, RBT_E_USAGE, "--class-weight: the data has no label '%.60s'; it has %s%s", text, list,
                    shape->classes > LABELS_LISTED ? ", ..." : "");
}

/* "LABEL=W,LABEL=W": classes that are not named keep 1. */
static rbt_err parse_class_weights(const char *spec, const rbt_shape *shape, double *weight, rbt_error *error)
{
    char *copy = rbt_strdup(spec), *rest = copy;
    bool *given = rbt_alloc(shape->classes, sizeof *given);
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
            err = refuse_label(shape, part, error);
        else if (err == RBT_OK && !(value > 1 / CLASS_WEIGHT_MOST && value < CLASS_WEIGHT_MOST))
            err = rbt_fail(error, RBT_E_USAGE, "--class-weight %.60s=%g is out of range; give a number from %g to %g",
                           part, value, 1 / CLASS_WEIGHT_MOST, CLASS_WEIGHT_MOST);
        else if (err == RBT_OK && given[class])
            err = rbt_fail(error, RBT_E_USAGE, "--class-weight gives label '%.60s' two weights; give it one", part);
        else if (err == RBT_OK)
            weight[class] = value;
        if (err == RBT_OK)
            given[class] = true;
    }
    rbt_free(given);
    rbt_free(copy);
    return err;
}

static void count_classes(void *context, void *sums)
{
    const rbt_data *data = context;
    double *count = sums;
    for (size_t r = 0; r < data->rows; r++)
        count[(size_t)data->label[r]] += rbt_data_weight(data, r);
}

static rbt_err balance(const preparing *p, double *weight, rbt_error *error)
{
    size_t classes = p->loaded->shape.classes;
    double *count = rbt_alloc(classes, sizeof *count);
    rbt_err err =
        rbt_crew_travel(p->crew, RBT_OK, count_classes, &p->loaded->data, count, classes * sizeof *count, error);
    for (size_t k = 0; err == RBT_OK && k < classes; k++)
        weight[k] = (double)p->extent->rows / ((double)classes * count[k]);
    rbt_free(count);
    return err;
}

static rbt_err weigh_classes(const preparing *p, const char *spec, rbt_error *error)
{
    rbt_data *data = &p->loaded->data;
    size_t classes = p->loaded->shape.classes;
    if (classes == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--class-weight makes no sense for %s, which predicts numbers; leave it out",
                        p->loaded->model->name);
    double *weight = rbt_alloc(classes, sizeof *weight);
    rbt_err err = RBT_OK;
    for (size_t k = 0; k < classes; k++)
        weight[k] = 1;
    if (strcmp(spec, "balanced") == 0)
        err = balance(p, weight, error);
    else
        err = parse_class_weights(spec, &p->loaded->shape, weight, error);
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

static void add_weights(void *context, void *sums)
{
    const rbt_data *data = context;
    double *sum = sums;
    for (size_t r = 0; r < data->rows; r++)
        *sum += (double)data->weight[r];
}

/* Weights get the mean 1, so that mean losses are weighted means and l2 means the same with and without. */
static rbt_err normalise_weights(const preparing *p, rbt_error *error)
{
    rbt_data *data = &p->loaded->data;
    double sum = 0;
    if (data->weight == NULL) /* here, and so everywhere */
        return RBT_OK;
    rbt_err err = rbt_crew_travel(p->crew, RBT_OK, add_weights, data, &sum, sizeof sum, error);
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++)
        data->weight[r] = (float)((double)data->weight[r] * (double)p->extent->rows / sum);
    return err;
}

/* ---------------------------------------------------------------------------------------------------- features */

static void add_features(void *context, void *sums)
{
    rbt_scaling_add(sums, context);
}

static rbt_err learn_scaling(const preparing *p, rbt_error *error)
{
    const rbt_data *data = &p->loaded->data;
    double *sums = rbt_try_alloc(data->cols + 1, 2 * sizeof *sums);
    rbt_err err = sums != NULL
                      ? RBT_OK
                      : rbt_fail(error, RBT_E_MEMORY,
                                 "not enough memory for the means of %zu features; use --normalize unit", data->cols);
    err = rbt_crew_travel(p->crew, err, add_features, &p->loaded->data, sums, 2 * data->cols * sizeof *sums, error);
    if (err == RBT_OK)
        err = rbt_scaling_finish(&p->loaded->scaling, sums, data->cols, p->extent->rows, p->extent->nnz, error);
    rbt_free(sums);
    return err;
}

static rbt_err standardise(const preparing *p, rbt_error *error)
{
    rbt_loaded *loaded = p->loaded;
    rbt_err err = learn_scaling(p, error);
    if (err == RBT_OK && !loaded->shape.bias) { /* nothing could take up the means */
        rbt_free(loaded->scaling.mean);
        loaded->scaling.mean = NULL;
    }
    if (err == RBT_OK)
        err = rbt_scaling_apply(&loaded->scaling, &loaded->data, error);
    if (err == RBT_OK && loaded->has_valid)
        err = rbt_scaling_apply(&loaded->scaling, &loaded->valid, error);
    if (err == RBT_OK && loaded->scaling.mean != NULL) { /* every row has all features now */
        p->extent->nnz = p->extent->rows * loaded->data.cols;
        p->extent->first_nnz = p->extent->first * loaded->data.cols;
    }
    return rbt_crew_agree(p->crew, err, error);
}

/* Says where the rows stand that a message is about; their numbers are those of all the processes' rows together. */
static rbt_err name_rows(const rbt_options *options, const char *path, rbt_err err, rbt_error *error)
{
    rbt_reading reading = rbt_loaded_reading(options, NULL);
    if (err == RBT_E_DATA && error != NULL && path != NULL && !rbt_path_is_ranked(path))
        rbt_where_rows(path, &reading, error);
    return err;
}

/* The validation rows as the model wants them. */
static rbt_err prepare_valid(rbt_loaded *loaded, const rbt_options *options, rbt_error *error)
{
    rbt_error reason = {RBT_OK, ""};
    rbt_err err = rbt_labels_check_content(&loaded->valid, &reason);
    if (err != RBT_OK)
        return rbt_fail(error, err, "--valid %s: %s", options->valid, reason.text);
    return name_rows(options, options->valid, rbt_shape_apply(&loaded->shape, true, &loaded->valid, error), error);
}

rbt_err rbt_prepare_data(rbt_loaded *loaded, const rbt_options *options, rbt_extent *extent, rbt_crew *crew,
                         rbt_error *error)
{
    const preparing p = {.loaded = loaded, .extent = extent, .crew = crew};
    rbt_err err = loaded->shape.cols > 0 ? RBT_OK /* a fold: the classes are those of all rows */
                                         : name_rows(options, options->data, find_classes(&p, error), error);
    if (err != RBT_OK)
        return err;
    loaded->shape.bias = !options->no_bias;
    loaded->shape.delta = isnan(options->delta) ? RBT_DELTA_DEFAULT : options->delta;
    loaded->shape.unit_rows = options->normalize == RBT_NORMALIZE_UNIT;
    err = rbt_shape_apply(&loaded->shape, true, &loaded->data, error);
    if (err == RBT_OK && loaded->has_valid)
        err = prepare_valid(loaded, options, error);
    err = rbt_crew_agree(crew, err, error);
    if (err == RBT_OK && isnan(options->delta) && loaded->model == &rbt_model_huber)
        err = find_delta(&p, &loaded->shape.delta, error);
    if (err == RBT_OK && options->class_weight != NULL)
        err = weigh_classes(&p, options->class_weight, error);
    if (err == RBT_OK && options->normalize == RBT_NORMALIZE_STANDARD)
        err = standardise(&p, error);
    return err == RBT_OK ? normalise_weights(&p, error) : err;
}
