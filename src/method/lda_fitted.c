/* Topic models that were trained. Contract in lda_fitted.h. */
#include "method/lda_fitted.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"
#include "method/lda_apply.h"
#include "method/lda_sampler.h"
#include "method/method.h"

#define TOP_WORDS        10
#define DESCRIBED_TOPICS 100

rbt_err rbt_lda_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "word_topic"), *totals = rbt_fitted_values(fitted, "totals");
    bool sound = counts != NULL && totals != NULL && counts->type == RBT_I32 && totals->type == RBT_I64 &&
                 counts->rows > 0 && counts->cols > 0 && totals->rows == 1 && totals->cols == counts->cols &&
                 rbt_fitted_number(fitted, "alpha") > 0 && rbt_fitted_number(fitted, "beta") > 0;

    for (uint64_t i = 0; sound && i < counts->rows * counts->cols; i++)
        sound = ((const int32_t *)counts->at)[i] >= 0;
    for (uint64_t i = 0; sound && i < totals->cols; i++)
        sound = ((const int64_t *)totals->at)[i] >= 0;
    return sound ? RBT_OK
                 : rbt_fail(error, RBT_E_DATA, "the model file does not hold the topics of words; train it again");
}

rbt_err rbt_lda_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    rbt_lda_model model;
    float *theta;
    uint64_t tokens;
    rbt_err err = rbt_method_refuse_ratings("lda", data, error);

    if (err == RBT_OK)
        err = rbt_lda_check_row(data, row, row, &tokens, error);
    if (err != RBT_OK)
        return err;
    rbt_lda_model_init(&model, fitted);
    theta = rbt_alloc(model.topics, sizeof *theta);
    err = rbt_lda_proportions(&model, data, row, theta, error);
    for (size_t k = 0; err == RBT_OK && k < model.topics; k++)
        fprintf(out, "%s%.6g", k > 0 ? " " : "", (double)theta[k]);
    if (err == RBT_OK)
        fputc('\n', out);
    rbt_free(theta);
    rbt_lda_model_deinit(&model);
    return err;
}

rbt_err rbt_lda_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                         rbt_error *error)
{
    rbt_lda_model model;
    double ln_sum = 0, mean;
    uint64_t tokens = 0, length;
    rbt_err err = rbt_method_refuse_ratings("lda", data, error);

    if (err != RBT_OK)
        return err;
    rbt_lda_model_init(&model, fitted);
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++) {
        err = rbt_lda_check_row(data, r, r, &length, error);
        if (err == RBT_OK)
            err = rbt_lda_complete(&model, data, r, &ln_sum, &tokens, error);
    }
    rbt_lda_model_deinit(&model);
    if (err == RBT_OK && tokens == 0)
        err =
            rbt_fail(error, RBT_E_DATA,
                     "no document has two words that the model knows, one to tell its topics and one to predict; give "
                     "documents with the vocabulary of the training");
    if (err != RBT_OK)
        return err;
    mean = ln_sum / (double)tokens;
    figures[0] = (rbt_figure){"loss", -mean};
    figures[1] = (rbt_figure){"log_likelihood", mean};
    figures[2] = (rbt_figure){"perplexity", rbt_exp(-mean)};
    figures[3] = (rbt_figure){"tokens", (double)tokens};
    *n = 4;
    return RBT_OK;
}

typedef struct top_word {
    int32_t count;
    size_t word;
} top_word;

/* The most frequent words of each topic, the first of equals first. */
static top_word *find_top_words(const int32_t *count, size_t words, size_t k)
{
    top_word *top = rbt_alloc(k, TOP_WORDS * sizeof *top);

    for (size_t w = 0; w < words; w++) {
        for (size_t t = 0; t < k; t++) {
            int32_t here = count[w * k + t];
            top_word *list = top + t * TOP_WORDS;
            size_t place = TOP_WORDS;

            while (place > 0 && here > list[place - 1].count)
                place--;
            if (place == TOP_WORDS)
                continue;
            memmove(list + place + 1, list + place, (TOP_WORDS - 1 - place) * sizeof *list);
            list[place] = (top_word){here, w};
        }
    }
    return top;
}

void rbt_lda_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "word_topic"), *totals = rbt_fitted_values(fitted, "totals");
    const rbt_name_list *names = rbt_fitted_names(fitted, "vocabulary");
    size_t k = (size_t)counts->cols;
    double tokens = rbt_fitted_number(fitted, "tokens");
    top_word *top = find_top_words(counts->at, (size_t)counts->rows, k);

    fprintf(out, "topics      %zu, of %" PRIu64 " words\n", k, counts->rows);
    fprintf(out, "tokens      %.0f\n", tokens);
    fprintf(out, "alpha, beta %g, %g\n", rbt_fitted_number(fitted, "alpha"), rbt_fitted_number(fitted, "beta"));
    fprintf(out, "likelihood  %.6g per token (logarithm, of the words and their topics together)\n",
            rbt_fitted_number(fitted, "log_likelihood"));
    for (size_t t = 0; t < k && t < DESCRIBED_TOPICS; t++) {
        fprintf(out, "topic %-5zu %.2f %%:", t, 100 * (double)((const int64_t *)totals->at)[t] / tokens);
        for (size_t i = 0; i < TOP_WORDS && top[t * TOP_WORDS + i].count > 0; i++) {
            size_t word = top[t * TOP_WORDS + i].word;

            if (names != NULL && word < names->n && names->at[word][0] != '\0')
                fprintf(out, " %s", names->at[word]);
            else
                fprintf(out, " %zu", word + 1);
        }
        fputc('\n', out);
    }
    if (k > DESCRIBED_TOPICS)
        fprintf(out, "            and %zu more; `rubato export` has them all\n", k - DESCRIBED_TOPICS);
    rbt_free(top);
}
