/* Topics of new documents. Contract in lda_apply.h. */
#include "method/lda_apply.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"
#include "math/kernels.h"

#define ROUNDS_MOST 100
#define STANDSTILL  1e-4f /* of the proportions, in all */

void rbt_lda_model_init(rbt_lda_model *model, const rbt_fitted *fitted)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "word_topic"), *totals = rbt_fitted_values(fitted, "totals");
    const int64_t *total = totals->at;

    *model = (rbt_lda_model){.words = (size_t)counts->rows,
                             .topics = (size_t)counts->cols,
                             .count = counts->at,
                             .alpha = (float)rbt_fitted_number(fitted, "alpha"),
                             .beta = (float)rbt_fitted_number(fitted, "beta")};
    model->inverse = rbt_alloc(model->topics, sizeof *model->inverse);
    for (size_t k = 0; k < model->topics; k++)
        model->inverse[k] = 1.0f / ((float)total[k] + model->beta * (float)model->words);
}

void rbt_lda_model_deinit(rbt_lda_model *model)
{
    rbt_free(model->inverse);
}

/* A document's words that the model knows: how often each (or some part of it) occurs, and its probability per topic. */
typedef struct known_words {
    size_t n;
    float *times;
    float *phi; /* n x topics */
} known_words;

static void known_deinit(known_words *known)
{
    rbt_free(known->times);
    rbt_free(known->phi);
}

static rbt_err known_init(known_words *known, const rbt_lda_model *model, const rbt_data *data, size_t row,
                          rbt_error *error)
{
    size_t first = data->start[row], most = data->start[row + 1] - first, k = model->topics;

    *known = (known_words){.times = rbt_try_alloc(most + 1, sizeof(float)),
                           .phi = rbt_try_alloc_raw(most + 1, k * sizeof(float))};
    if (known->times == NULL || known->phi == NULL) {
        known_deinit(known);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu words of document %zu in %zu topics", most,
                        row + 1, k);
    }
    for (size_t i = first; i < first + most; i++) {
        const int32_t *count = model->count + (size_t)data->index[i] * k;
        float *phi = known->phi + known->n * k;

        if (data->index[i] >= model->words || !(data->value[i] > 0) || isinf(data->value[i]))
            continue;
        for (size_t t = 0; t < k; t++)
            phi[t] = ((float)count[t] + model->beta) * model->inverse[t];
        known->times[known->n++] = data->value[i];
    }
    return RBT_OK;
}

static void scale_to_1(float *theta, size_t k)
{
    double sum = 0;

    for (size_t t = 0; t < k; t++)
        sum += (double)theta[t];
    for (size_t t = 0; t < k; t++)
        theta[t] = (float)((double)theta[t] / sum);
}

/* The proportions that the words' `times` stand for. `next` has room for as many. */
static void fold_in(const rbt_lda_model *model, const known_words *known, float *theta, float *next)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    size_t k = model->topics;
    float moved = INFINITY;

    for (size_t t = 0; t < k; t++)
        theta[t] = 1.0f / (float)k;
    for (int round = 0; round < ROUNDS_MOST && moved > STANDSTILL; round++) {
        memset(next, 0, k * sizeof *next);
        for (size_t i = 0; i < known->n; i++) {
            const float *phi = known->phi + i * k;

            if (known->times[i] > 0)
                kernels->axpy(known->times[i] / kernels->dot(phi, theta, k), phi, next, k);
        }
        for (size_t t = 0; t < k; t++)
            next[t] = model->alpha + next[t] * theta[t];
        scale_to_1(next, k);
        moved = 0;
        for (size_t t = 0; t < k; t++) {
            moved += fabsf(next[t] - theta[t]);
            theta[t] = next[t];
        }
    }
}

rbt_err rbt_lda_proportions(const rbt_lda_model *model, const rbt_data *data, size_t row, float *theta,
                            rbt_error *error)
{
    float *next = rbt_alloc(model->topics, sizeof *next);
    known_words known;
    rbt_err err = known_init(&known, model, data, row, error);

    if (err == RBT_OK) {
        fold_in(model, &known, theta, next);
        known_deinit(&known);
    }
    rbt_free(next);
    return err;
}

rbt_err rbt_lda_complete(const rbt_lda_model *model, const rbt_data *data, size_t row, double *ln_sum, uint64_t *tokens,
                         rbt_error *error)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    size_t k = model->topics;
    float *theta = rbt_alloc(k, sizeof *theta), *next = rbt_alloc(k, sizeof *next);
    float *kept = NULL;
    known_words known = {0};
    uint64_t at = 0; /* the tokens lie one after the other: the second, the fourth, ... are kept back */
    rbt_err err = known_init(&known, model, data, row, error);

    if (err != RBT_OK)
        goto free_theta;
    kept = rbt_alloc(known.n, sizeof *kept);
    for (size_t i = 0; i < known.n; i++) {
        uint64_t times = (uint64_t)fminf(known.times[i], 1e9f), even = (times + (at + 1) % 2) / 2;

        known.times[i] = (float)even;
        kept[i] = (float)(times - even);
        at += times;
    }
    fold_in(model, &known, theta, next);
    for (size_t i = 0; i < known.n; i++) {
        if (!(kept[i] > 0))
            continue;
        *ln_sum += (double)kept[i] * rbt_ln((double)kernels->dot(known.phi + i * k, theta, k));
        *tokens += (uint64_t)kept[i];
    }
    rbt_free(kept);
    known_deinit(&known);
free_theta:
    rbt_free(theta);
    rbt_free(next);
    return err;
}
