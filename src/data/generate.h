/* Synthetic data for logistic regression: what `rubato gen lr` writes, and what tests and the simulator train on.
 *
 * Always holds: the data is a function of the options (the same bytes on every machine), indices within a row are
 * distinct and ascending, every row has unit length, and with two rows or more both labels occur.
 * Proved by tests/unit/test_generate.c.
 *
 * The data resembles text. A feature's popularity falls with its rank k as k^-skew; ranks are spread over the columns
 * by a random permutation. A value is like tf-idf: a random count times a weight that grows with rarity. The truth is a
 * sparse vector, and a label is a draw from the logistic model at that truth, turned over with probability `noise`.
 */
#ifndef RBT_DATA_GENERATE_H
#define RBT_DATA_GENERATE_H

#include "rubato.h"

typedef struct rbt_generate_options {
    size_t rows;
    size_t cols;
    size_t nnz;   /* per row, on average; a row has between 1 and 2 * nnz - 1 */
    double skew;  /* exponent of the popularity, 0 = all features alike */
    double noise; /* probability that a label is turned over, 0 to 0.5 */
    uint64_t seed;
} rbt_generate_options;

#define RBT_GENERATE_SKEW_MOST 10.0

/* 10,000 rows x 1,000 features x 20 non-zeros, skew 1.1, noise 0.05, seed 1. */
rbt_generate_options rbt_generate_defaults(void);

rbt_err rbt_generate_lr(const rbt_generate_options *options, rbt_data *out, rbt_error *error);

#endif
