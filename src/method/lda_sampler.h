/* The sampler of topic models: collapsed Gibbs sampling over one worker's documents, without tables.
 *
 * A token is one occurrence of a word in a document, and has a topic. Given all other topics, a token of word w in document d
 * has topic k with weight
 *
 *     (n[d][k] + alpha) * q[k]        q[k] = (n[w][k] + beta) / (n[k] + beta V)
 *
 * Tokens are visited word by word. While a word is at hand, q lies in memory as a plain array with sums over blocks of it, so
 * that a changed count costs a constant time; the weight splits into alpha * sum of q (kept up to date) and the sum of
 * n[d][k] q[k] over the topics that the document has. So a token costs the number of its document's topics, whatever K is; the
 * draw is exact (no Metropolis step), and the order of visits does not change what a Gibbs sampler converges to. This is the
 * word-by-word scheme of F+LDA (Yu et al. 2015) with a flat array of block sums in place of its tree: rebuilding q for
 * a word is one pass over the row that is read from the table anyway. SparseLDA's buckets, document by document, cost the topics of
 * the word as well, which for frequent words are nearly all of them.
 *
 * Called by lda.c. Always holds: the lists of a document add up to its tokens; the same counts and the same random stream give
 * the same topics on every machine. Proved by tests/unit/test_lda.c, against a plain sampler.
 */
#ifndef RBT_METHOD_LDA_SAMPLER_H
#define RBT_METHOD_LDA_SAMPLER_H

#include "base/rng.h"
#include "method/lda_likelihood.h"
#include "rubato.h"

#define RBT_LDA_TOPICS_MOST 100000
#define RBT_LDA_TOKENS_MOST (1u << 24) /* of one document: counts are exact in f32 */

enum { RBT_LDA_LANES = 8 };

/* Eight topics of a document and how often each occurs there: a line of the processor's cache. Unused places have count 0
 * and a topic past the last. */
typedef struct rbt_lda_line {
    float count[RBT_LDA_LANES];
    uint32_t topic[RBT_LDA_LANES];
} rbt_lda_line;

typedef struct rbt_lda_shape {
    uint32_t topics;
    size_t words; /* the vocabulary's size */
    double alpha, beta;
    uint64_t seed;
} rbt_lda_shape;

typedef struct rbt_lda_token {
    uint32_t document; /* which of the worker's */
    uint32_t topic;
} rbt_lda_token;

/* Some of the documents, turned: their tokens by word. */
typedef struct rbt_lda_batch {
    size_t words;   /* that occur */
    uint32_t *word; /* which, ascending */
    size_t *start;  /* words + 1: the tokens of each, by document */
    rbt_lda_token *token;
} rbt_lda_batch;

typedef struct rbt_lda {
    rbt_lda_shape shape;
    const rbt_data *data;
    const uint32_t *rows; /* the documents */
    size_t documents;
    rbt_rng rng;
    rbt_rising alpha, all_alpha;

    size_t *line_start; /* documents + 1: each has room for all topics it can have */
    uint32_t *used;     /* topics it has now */
    rbt_lda_line *line;

    /* of the clock under way */
    int64_t *total; /* n[k] */
    float *inverse; /* 1 / (n[k] + beta V) */

    /* of the word at hand */
    int32_t *count; /* n[w][k] */
    float *q;
    double *block; /* sums over 32 of them each */
    double mass;   /* and over all */
    float *weight; /* room for the weights of a document's topics */
    float *upto;   /* and for the sums of whole lines */
} rbt_lda;

/* How many tokens a row of data stands for; an error, in which it is that number of all, when its values are no counts. */
rbt_err rbt_lda_check_row(const rbt_data *data, size_t row, size_t number, uint64_t *tokens, rbt_error *error);

/* Takes documents that rbt_lda_check_row has passed, and gives their tokens topics at random, by the seed and the row's number
 * alone. `data` and `rows` must stay. */
rbt_err rbt_lda_init(rbt_lda *lda, const rbt_lda_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n,
                     uint64_t stream, rbt_error *error);
void rbt_lda_deinit(rbt_lda *lda);

/* The topics a document's tokens started with, word by word as they lie in the row; `topic` has room for its tokens. */
void rbt_lda_start_topics(const rbt_lda *lda, size_t document, uint32_t *topic);

/* Turns documents first .. first + n - 1, with the topics they started with: before they are first sampled. */
rbt_err rbt_lda_batch_init(rbt_lda_batch *batch, const rbt_lda *lda, size_t first, size_t n, rbt_error *error);
void rbt_lda_batch_deinit(rbt_lda_batch *batch);

/* A clock: begins with the topics' totals (in lda->total), and again whenever these have changed; then every word of the batch, with its counts (in lda->count) as
 * all workers together have them; false when nothing changed. Afterwards lda->count and lda->total are as this worker's
 * changes make them. A count that is below 0 for a moment, because others' changes came in part, counts as 0. */
void rbt_lda_begin(rbt_lda *lda);
bool rbt_lda_sample(rbt_lda *lda, rbt_lda_batch *batch, size_t word);

/* ln p(topics) of documents first .. first + n - 1. */
double rbt_lda_ln_topics(const rbt_lda *lda, size_t first, size_t n);

#endif
