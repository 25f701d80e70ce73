/* Helpers of the tests of topic models: documents made to order, and the plain collapsed Gibbs sampler that ours is held
 * against (Griffiths and Steyvers 2004): document after document, every topic's weight for every token, nothing clever. */
#ifndef TESTS_UNIT_PLAIN_LDA_H
#define TESTS_UNIT_PLAIN_LDA_H

#include "base/rng.h"
#include "method/lda_sampler.h"

/* Documents from counts, documents x words. */
rbt_data plain_docs_of(const uint32_t *count, size_t docs, size_t words);

/* Documents of `length` tokens: two topics of `topics` each, a topic being a range of words. */
rbt_data plain_docs_draw(size_t docs, size_t words, size_t topics, size_t length, uint64_t seed);

typedef struct plain {
    size_t k, tokens;
    uint32_t *doc, *word, *topic;
    double *nd, *nw, *n;
} plain;

/* Every token gets a topic at random. */
void plain_init(plain *p, const rbt_data *data, size_t k, rbt_rng *rng);
void plain_deinit(plain *p);

/* Takes a token out of the counts (by = -1), or puts it in (1). */
void plain_change(plain *p, size_t t, double by);

void plain_sweep(plain *p, const rbt_lda_shape *shape, rbt_rng *rng);

/* ln p(words, topics) per token, with the C library's own gamma function. */
double plain_joint(const plain *p, const rbt_lda_shape *shape, const rbt_data *data);

/* What it comes to after so many sweeps from each of `runs` starts: the mean, and the standard deviation of one. */
typedef struct plain_outcome {
    double mean, deviation;
} plain_outcome;

plain_outcome plain_run(const rbt_data *data, const rbt_lda_shape *shape, int sweeps, int runs);

/* Writes documents to a file; and runs a job with options given as "name value name value ...". */
void plain_docs_write(const rbt_data *data, const char *path);
rbt_job *plain_job_run(const char *options);

#endif
