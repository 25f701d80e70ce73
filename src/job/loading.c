/* From options to data that can be trained on. Contract in loading.h. */
#include "job/loading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/paths.h"
#include "job/trainee.h"
#include "job/prepare.h"
#include "model/classes.h"
#include "model/model.h"

rbt_err rbt_loaded_find_model(rbt_loaded *loaded, const char *name, rbt_error *error)
{
    rbt_trainee kind;
    rbt_err err = rbt_trainee_find(name, &kind, error);
    if (err == RBT_OK && kind.model == NULL)
        err = rbt_fail(error, RBT_E_USAGE, "%s is no model that learns from gradients", name);
    loaded->model = kind.model;
    return err;
}

/* Do labels tell classes apart? */
static bool has_classes(const char *name)
{
    rbt_trainee kind;
    if (rbt_trainee_find(name, &kind, NULL) != RBT_OK)
        return false;
    return kind.method != NULL ? kind.method->has_classes : rbt_model_is_classifier(kind.model);
}

rbt_reading rbt_loaded_reading(const rbt_options *options, rbt_read_report *report)
{
    return (rbt_reading){.format = options->format,
                         .label = options->label,
                         .weight = options->weight,
                         .bits = options->bits,
                         .base = options->base,
                         .classes = has_classes(options->model),
                         .skip_bad = options->skip_bad,
                         .report = report};
}

/* Ratings are what is learned from, as labels of rows are. */
static bool needs_no_labels(rbt_content content)
{
    return content != RBT_CONTENT_ROWS && content != RBT_CONTENT_RATINGS;
}

/* Is it a cache, or several? Those do not mix with other files. */
static bool is_cache(const char *path)
{
    char head[RBT_CACHE_HEADER_BYTES] = {0};
    rbt_paths paths;
    if (strcmp(path, "-") == 0 || rbt_paths_list(path, &paths, NULL) != RBT_OK)
        return false;
    FILE *file = fopen(paths.at[0], "rbe");
    size_t n = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL)
        (void)fclose(file);
    rbt_paths_free(&paths);
    return rbt_cache_recognise(head, n);
}

/* What the options say about text is for the text beside a cache. */
static void spare_cache(const rbt_options *options, const char *path, rbt_reading *reading)
{
    if (options->valid == NULL || is_cache(options->data) == is_cache(options->valid) || !is_cache(path))
        return;
    reading->skip_bad = 0;
    reading->label = reading->weight = NULL;
    reading->bits = 0;
    reading->base = RBT_BASE_AUTO;
}

rbt_err rbt_loaded_read_data(const rbt_options *options, const char *path, rbt_content expect, const char *origin,
                             const rbt_log *log, rbt_data *data, rbt_read_report *report, rbt_error *error)
{
    rbt_reading reading = rbt_loaded_reading(options, report);
    spare_cache(options, path, &reading);
    reading.expect = expect;
    reading.origin = origin;
    reading.unlabelled = needs_no_labels(expect);
    const rbt_storing storing = {
        .level = options->store, .keep = options->cache == RBT_CACHE_AUTO, .reading = &reading, .log = log};
    return rbt_store_read(path, &storing, data, error);
}

rbt_err rbt_loaded_read_part(const rbt_options *options, rbt_content expect, rbt_read_report *report,
                             const rbt_hosting *hosting, rbt_crew *crew, rbt_data_part *part, rbt_error *error)
{
    rbt_reading reading = rbt_loaded_reading(options, report);
    spare_cache(options, options->data, &reading);
    reading.expect = expect;
    reading.unlabelled = needs_no_labels(expect);
    return rbt_data_part_read(part, options->data, &reading, hosting, crew, error);
}

/* With {rank}: the files of all workers, one worker's after the other. */
static rbt_err read_ranked(rbt_loaded *loaded, const rbt_options *options, rbt_error *error)
{
    const rbt_hosting all = {&(uint32_t){0}, &options->workers};
    rbt_crew crew = rbt_crew_alone();
    rbt_data_part part;
    rbt_err err = rbt_loaded_read_part(options, RBT_CONTENT_ROWS, &loaded->report, &all, &crew, &part, error);
    if (err != RBT_OK)
        return err;
    loaded->data = part.data;
    loaded->worker_rows = part.worker_rows;
    part.data = (rbt_data){0};
    part.worker_rows = NULL;
    rbt_data_part_deinit(&part);
    return RBT_OK;
}

rbt_err rbt_loaded_read_valid(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error)
{
    loaded->has_valid = options->valid != NULL;
    return loaded->has_valid ? rbt_loaded_read_data(options, options->valid, RBT_CONTENT_ROWS, loaded->origin, log,
                                                    &loaded->valid, &loaded->valid_report, error)
                             : RBT_OK;
}

rbt_err rbt_loaded_read(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error)
{
    rbt_err err = rbt_loaded_find_model(loaded, options->model, error);
    if (err == RBT_OK && rbt_path_is_ranked(options->data))
        err = read_ranked(loaded, options, error);
    else if (err == RBT_OK)
        err = rbt_loaded_read_data(options, options->data, RBT_CONTENT_ROWS, NULL, log, &loaded->data, &loaded->report,
                                   error);
    loaded->origin = loaded->data.origin; /* moved */
    loaded->data.origin = NULL;
    return err == RBT_OK ? rbt_loaded_read_valid(loaded, options, log, error) : err;
}

/* ------------------------------------------------------------------------------------------------------- ready */

void rbt_loaded_count_labels(rbt_loaded *loaded)
{
    const rbt_shards *shards = &loaded->shards;
    size_t classes = loaded->shape.classes;
    if (classes == 0 || classes > RBT_LABELS_REPORTED)
        return;
    loaded->labels = rbt_alloc(shards->workers, sizeof *loaded->labels);
    for (uint32_t m = 0; m < shards->workers; m++)
        for (size_t i = 0; shards->shard[m].rows != NULL && i < shards->shard[m].n; i++)
            loaded->labels[m].of[(size_t)loaded->data.label[shards->shard[m].rows[i]]]++; /* they have been numbered */
}

/* With {rank}: every worker keeps the rows of its files. */
static rbt_err shard_by_rank(rbt_loaded *loaded, const rbt_options *options, rbt_crew *crew, rbt_error *error)
{
    const rbt_hosting all = {&(uint32_t){0}, &options->workers};
    rbt_data_part part = {.data = loaded->data, .worker_rows = loaded->worker_rows};
    loaded->data = (rbt_data){0};
    rbt_err err = rbt_deal_ranked(&part, &all, options->workers, options->seed, rbt_options_shared(options), crew,
                                  &loaded->data, &loaded->shards, error);
    rbt_data_deinit(&part.data);
    return err;
}

rbt_err rbt_loaded_prepare(rbt_loaded *loaded, rbt_options *options, rbt_error *error)
{
    rbt_crew crew = rbt_crew_alone();
    rbt_extent extent = {.rows = loaded->data.rows, .nnz = loaded->data.nnz};
    rbt_err err = rbt_prepare_data(loaded, options, &extent, &crew, error);
    if (err == RBT_OK)
        err = rbt_prepare_options(loaded, options, &extent, &crew, error);
    if (options->workers_auto && options->workers > loaded->data.rows)
        options->workers = (uint32_t)loaded->data.rows;
    if (err != RBT_OK)
        return err;
    err = loaded->worker_rows != NULL ? shard_by_rank(loaded, options, &crew, error)
          : rbt_options_shared(options)
              ? rbt_shards_deal(&loaded->data, options->workers, options->seed, &loaded->shards, error)
              : rbt_shards_create(&loaded->data, options->workers, options->seed, &loaded->shards, error);
    if (err == RBT_OK)
        rbt_loaded_count_labels(loaded);
    loaded->total_rows = extent.rows;
    return err;
}

/* A row with what it is sorted by. */
typedef struct labelled {
    float label;
    uint32_t place; /* in a random order */
    uint32_t row;
} labelled;

static int by_label(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* The fold of each row, at random, but so that every fold has as many rows of each class as any other, or one more. */
static uint32_t *deal_folds(const rbt_data *data, const uint32_t *order, uint32_t folds, bool classes)
{
    labelled *sorted = rbt_alloc(data->rows, sizeof *sorted);
    uint32_t *fold = rbt_alloc(data->rows, sizeof *fold);
    for (size_t i = 0; i < data->rows; i++)
        sorted[i] = (labelled){classes ? data->label[order[i]] : 0, (uint32_t)i, order[i]};
    if (classes)
        qsort(sorted, data->rows, sizeof *sorted, by_label);
    for (size_t i = 0; i < data->rows; i++)
        fold[sorted[i].row] = (uint32_t)(i % folds);
    rbt_free(sorted);
    return fold;
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
    uint32_t *fold_of = deal_folds(&whole->data, order, options->folds, rbt_model_is_classifier(whole->model));
    for (size_t i = 0; i < rows; i++)
        if (fold_of[order[i]] == fold)
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
    rbt_free(fold_of);
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
    rbt_free(loaded->origin);
    rbt_free(loaded->worker_rows);
    rbt_free(loaded->labels);
    rbt_free(loaded->facts.counts);
    rbt_shape_deinit(&loaded->shape);
}
