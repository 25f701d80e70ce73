/* The world that generated rows come from. Contract in generate_world.h; proved by tests/unit/test_generate.c.
 *
 * Every row has a random stream of its own, so a row does not depend on how the others were made. Only rbt_rng,
 * src/math/functions.h and IEEE operations (+ - * / sqrt) are used: the bits are the same everywhere.
 */
#include "data/generate_world.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"

#define TRUTH_DENSITY 0.25 /* share of the features that matter */
#define TRUTH_SCALE   10.0 /* makes scores of a standard deviation of about 5: labels mostly follow them */
#define CLICK_SCALE   2.0  /* standard deviation of the clicks' scores */
#define FIELD_RANGE   1000 /* the largest field has about so many times the columns of the smallest */
#define RATE_SAMPLE   4096 /* rows by which the clicks' bias is found */

enum { PURPOSE_CLASSES = 1, PURPOSE_SAMPLE };

size_t rbt_row_most(const rbt_rows_options *options)
{
    const rbt_generate_options *o = &options->common;
    size_t below = o->nnz - 1, above = o->cols - o->nnz, spread = below < above ? below : above;
    return options->kind == RBT_ROWS_CLICKS ? o->nnz : o->nnz + spread;
}

rbt_err rbt_row_room_init(rbt_row_room *room, const rbt_rows_options *options, rbt_error *error)
{
    bool many = options->kind == RBT_ROWS_MULTICLASS;
    *room = (rbt_row_room){.scores = many ? rbt_alloc(options->classes, sizeof *room->scores) : NULL};
    rbt_err err = rbt_draw_init(&room->draw, rbt_row_most(options), error);
    if (err != RBT_OK)
        rbt_row_room_deinit(room);
    return err;
}

void rbt_row_room_deinit(rbt_row_room *room)
{
    rbt_draw_deinit(&room->draw);
    rbt_free(room->scores);
    room->scores = NULL;
}

/* ------------------------------------------------------------------------------------------------------- truth */

void rbt_world_deinit(rbt_world *world)
{
    rbt_free(world->column);
    rbt_free(world->feature);
    rbt_free(world->truths);
    rbt_free(world->field);
    rbt_free(world->popular);
    *world = (rbt_world){0};
}

static void make_features(rbt_world *w, const rbt_generate_options *o)
{
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_RANKS);
    rbt_rng_shuffle_u32(&rng, w->column, o->cols);
    rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_TRUTH);
    for (size_t k = 0; k < o->cols; k++) {
        rbt_feature *f = &w->feature[w->column[k]];
        f->rarity = (float)(1 + rbt_ln((double)k + 1));
        f->truth = 0;
        if (rbt_rng_f64(&rng) < TRUTH_DENSITY)
            f->truth = (float)(TRUTH_SCALE * rbt_rng_normal(&rng));
    }
    rbt_popularity_init(&w->popularity, o->cols, o->skew);
}

static void make_truths(rbt_world *w, const rbt_rows_options *options)
{
    for (size_t c = 0; c < options->common.cols; c++) {
        rbt_rng rng = rbt_rng_stream(options->common.seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_CLASSES, c));
        float *truth = w->truths + c * options->classes;
        for (size_t k = 0; k < options->classes; k++)
            if (rbt_rng_f64(&rng) < TRUTH_DENSITY)
                truth[k] = (float)(TRUTH_SCALE * rbt_rng_normal(&rng));
    }
}

/* Field f has a share of the columns that grows with f, and one at least; its columns are ranked at random. */
static void make_fields(rbt_world *w, const rbt_generate_options *o)
{
    size_t fields = o->nnz;
    double step = rbt_ln(FIELD_RANGE) / (fields > 1 ? (double)fields - 1 : 1), total = 0, sum = 0;
    for (size_t f = 0; f < fields; f++)
        total += rbt_exp(step * (double)f);
    for (size_t f = 0; f < fields; f++) {
        w->field[f] = f + (size_t)((double)(o->cols - fields) * (sum / total));
        sum += rbt_exp(step * (double)f);
    }
    w->field[fields] = o->cols;
    rbt_rng ranks = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_RANKS);
    rbt_rng truth = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_TRUTH);
    for (size_t f = 0; f < fields; f++) {
        size_t first = w->field[f], n = w->field[f + 1] - first;
        rbt_rng_shuffle_u32(&ranks, w->column + first, n);
        rbt_popularity_init(&w->popular[f], n, o->skew);
        for (size_t c = first; c < first + n; c++)
            w->feature[c].truth = (float)(rbt_rng_normal(&truth) * CLICK_SCALE / sqrt((double)fields));
    }
}

/* In three passes, so that the memory has time to answer. */
static double click_features(const rbt_world *w, rbt_rng *rng, uint32_t *index, float *value)
{
    size_t fields = w->options->common.nnz;
    double score = 0;
    for (size_t f = 0; f < fields; f++) {
        index[f] = (uint32_t)(w->field[f] + rbt_popularity_draw(&w->popular[f], rng));
        __builtin_prefetch(&w->column[index[f]]);
    }
    for (size_t f = 0; f < fields; f++) {
        index[f] = w->column[index[f]];
        __builtin_prefetch(&w->feature[index[f]]);
    }
    for (size_t f = 0; f < fields; f++) {
        value[f] = 1;
        score += (double)w->feature[index[f]].truth;
    }
    return score;
}

/* The bias with which a sample of rows has the asked rate: by halving. */
static rbt_err find_bias(rbt_world *w, rbt_error *error)
{
    const rbt_generate_options *o = &w->options->common;
    uint32_t *index = rbt_try_alloc_raw(o->nnz, sizeof *index);
    float *value = rbt_try_alloc_raw(o->nnz, sizeof *value);
    double *score = rbt_alloc(RATE_SAMPLE, sizeof *score), low = -50, high = 50;
    rbt_err err = index != NULL && value != NULL
                      ? RBT_OK
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu fields; use fewer", o->nnz);
    for (size_t i = 0; err == RBT_OK && i < RATE_SAMPLE; i++) {
        rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_SAMPLE, i));
        score[i] = click_features(w, &rng, index, value);
    }
    for (int step = 0; err == RBT_OK && step < 60; step++) {
        double sum = 0;
        w->bias = (low + high) / 2;
        for (size_t i = 0; i < RATE_SAMPLE; i++)
            sum += rbt_sigmoid(score[i] + w->bias);
        *(sum > w->options->rate * RATE_SAMPLE ? &high : &low) = w->bias;
    }
    rbt_free(index);
    rbt_free(value);
    rbt_free(score);
    return err;
}

rbt_err rbt_world_init(rbt_world *world, const rbt_rows_options *options, rbt_error *error)
{
    const rbt_generate_options *o = &options->common;
    bool clicks = options->kind == RBT_ROWS_CLICKS, many = options->kind == RBT_ROWS_MULTICLASS;
    double bytes = (double)o->cols * (12 + (many ? 4 * (double)options->classes : 0)) +
                   (clicks ? (double)o->nnz * (double)sizeof(rbt_popularity) : 0);
    rbt_err err = rbt_draw_check_memory(bytes, "the truth behind that many columns, classes or fields", error);
    if (err != RBT_OK)
        return err;
    rbt_world w = {
        .options = options,
        .column = rbt_try_alloc_raw(o->cols, sizeof *w.column),
        .feature = rbt_try_alloc_raw(o->cols, sizeof *w.feature),
        .truths = many ? rbt_try_alloc(o->cols * options->classes, sizeof *w.truths) : NULL,
        .field = clicks ? rbt_try_alloc_raw(o->nnz + 1, sizeof *w.field) : NULL,
        .popular = clicks ? rbt_try_alloc_raw(o->nnz, sizeof *w.popular) : NULL,
    };
    if (w.column == NULL || w.feature == NULL || (many && w.truths == NULL) ||
        (clicks && (w.field == NULL || w.popular == NULL))) {
        rbt_world_deinit(&w);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu columns; use fewer", o->cols);
    }
    for (size_t k = 0; k < o->cols; k++)
        w.column[k] = (uint32_t)k;
    if (clicks)
        make_fields(&w, o);
    else
        make_features(&w, o);
    if (many)
        make_truths(&w, options);
    err = clicks ? find_bias(&w, error) : RBT_OK;
    if (err == RBT_OK)
        *world = w;
    else
        rbt_world_deinit(&w);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- rows */

/* Kinds that came after lr have values and labels of four decimals, as files from elsewhere have. */
static float four_decimals(double x)
{
    double scaled = fabs(x) * 1e4 + 0.5;
    if (scaled > 0x1p53)
        return (float)x;
    double rounded = (double)(uint64_t)scaled / 1e4;
    return (float)(x < 0 ? -rounded : rounded);
}

static void draw_values(const rbt_world *w, rbt_row_room *room, rbt_rng *rng, size_t n, uint32_t *index, float *value)
{
    rbt_draw_distinct(&room->draw, &w->popularity, w->column, rng, index, n);
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(&w->feature[index[i]]);
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        value[i] = (float)((0.5 + rbt_rng_f64(rng)) * (double)w->feature[index[i]].rarity);
        squares += (double)value[i] * (double)value[i];
    }
    double length = sqrt(squares);
    for (size_t i = 0; i < n; i++)
        value[i] = (float)((double)value[i] / length);
    for (size_t i = 0; w->options->kind != RBT_ROWS_LR && i < n; i++) {
        float rounded = four_decimals((double)value[i]);
        value[i] = rounded > 0 ? rounded : 1e-4F;
    }
}

static double score_of(const rbt_world *w, size_t n, const uint32_t *index, const float *value)
{
    double score = 0;
    for (size_t i = 0; i < n; i++)
        score += (double)value[i] * (double)w->feature[index[i]].truth;
    return score;
}

/* A class from the softmax of its scores: the largest of the scores plus Gumbel noise. */
static size_t draw_class(const rbt_world *w, double *scores, rbt_rng *rng, size_t n, const uint32_t *index,
                         const float *value)
{
    size_t classes = w->options->classes, best = 0;
    double most = 0;
    for (size_t k = 0; k < classes; k++)
        scores[k] = 0;
    for (size_t i = 0; i < n; i++) {
        const float *truth = w->truths + (size_t)index[i] * classes;
        for (size_t k = 0; k < classes; k++)
            scores[k] += (double)value[i] * (double)truth[k];
    }
    for (size_t k = 0; k < classes; k++) {
        double u = rbt_rng_f64(rng) + 0x1p-54; /* above 0 and below 1 */
        double s = scores[k] - rbt_ln(-rbt_ln(u));
        if (k == 0 || s > most) {
            most = s;
            best = k;
        }
    }
    return best;
}

float rbt_world_row(const rbt_world *world, rbt_row_room *room, size_t row, size_t n, uint32_t *index, float *value)
{
    const rbt_generate_options *o = &world->options->common;
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_ROWS + (uint64_t)row);
    if (world->options->kind == RBT_ROWS_CLICKS) {
        double chance = rbt_sigmoid(click_features(world, &rng, index, value) + world->bias);
        bool yes = rbt_rng_f64(&rng) < chance;
        if (rbt_rng_f64(&rng) < o->noise)
            yes = rbt_rng_f64(&rng) < world->options->rate;
        return yes ? 1 : -1;
    }
    draw_values(world, room, &rng, n, index, value);
    if (world->options->kind == RBT_ROWS_MULTICLASS) {
        size_t class = draw_class(world, room->scores, &rng, n, index, value);
        if (rbt_rng_f64(&rng) < o->noise)
            class = (size_t)rbt_rng_below(&rng, world->options->classes);
        return (float)(class + 1);
    }
    double score = score_of(world, n, index, value);
    if (world->options->kind == RBT_ROWS_REGRESSION)
        return four_decimals(score + o->noise * rbt_rng_normal(&rng));
    bool yes = rbt_rng_f64(&rng) < rbt_sigmoid(score);
    bool turned = rbt_rng_f64(&rng) < o->noise;
    return yes != turned ? 1 : -1;
}
