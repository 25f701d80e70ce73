/* Topics of documents a model has not seen: by iterated expectation, from the words' counts per topic.
 *
 * With the topics' words held fast, the tokens of a document are dealt to topics in parts, in proportion to theta[k] phi[w][k],
 * where theta[k] is alpha plus what topic k got last time, until theta stands still. No chance is involved: the same document
 * gets the same topics. Called by lda.c. Proved by tests/unit/test_lda.c.
 */
#ifndef RBT_METHOD_LDA_APPLY_H
#define RBT_METHOD_LDA_APPLY_H

#include "rubato.h"

/* A model as the file has it, and what is worked out from it. */
typedef struct rbt_lda_model {
    size_t words, topics;
    const int32_t *count; /* words x topics */
    float alpha, beta;
    float *inverse; /* per topic: 1 / (its tokens + beta * words) */
} rbt_lda_model;

/* `fitted` must stay. It has been checked. */
void rbt_lda_model_init(rbt_lda_model *model, const rbt_fitted *fitted);
void rbt_lda_model_deinit(rbt_lda_model *model);

/* The topics' proportions in one row of data (`theta`: one number per topic, sum 1). Words beyond the vocabulary and values
 * that are not positive count nothing. */
rbt_err rbt_lda_proportions(const rbt_lda_model *model, const rbt_data *data, size_t row, float *theta,
                            rbt_error *error);

/* Document completion: every second token of a row tells the topics, by which the others are then predicted. Adds to
 * `ln_sum` the logarithms of their probabilities, and to `tokens` their number. */
rbt_err rbt_lda_complete(const rbt_lda_model *model, const rbt_data *data, size_t row, double *ln_sum, uint64_t *tokens,
                         rbt_error *error);

#endif
