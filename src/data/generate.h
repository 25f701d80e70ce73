/* Synthetic data: what `rubato gen` writes, and what tests and the simulator train on.
 *
 * Called by the commands, the tests, the benchmarks. Always holds: the data is a function of the options (the same
 * bytes on every machine, whatever the number of threads); text is written in bounded memory, whatever its size.
 * Proved by tests/unit/test_generate.c, test_generate_files.c and tests/cli/test_gen.sh.
 *
 * Rows of features (lr, regression, multiclass) resemble text. A feature's popularity falls with its rank k as k^-skew;
 * ranks are spread over the columns by a random permutation. A value is like tf-idf: a random count times a weight that
 * grows with rarity; rows have unit length. The truth is a sparse vector, one per class for multiclass:
 *   lr          labels 1 and -1, drawn from the logistic model, turned over with probability `noise`
 *   regression  the score, with a normal error of standard deviation `noise` (scores have about 5)
 *   multiclass  labels 1 .. classes, drawn from the softmax of the scores, replaced by any with probability `noise`
 * clicks have one active feature of value 1 in each of nnz fields of very different sizes, popular as above within the
 * field, and labels 1 (with the asked rate) and -1, replaced by a draw at that rate with probability `noise`.
 * Indices within a row are distinct and ascending; with two rows or more at least two labels occur.
 */
#ifndef RBT_DATA_GENERATE_H
#define RBT_DATA_GENERATE_H

#include "base/rng.h"
#include "data/write_rows.h"
#include "rubato.h"

typedef struct rbt_generate_options {
    size_t rows;
    size_t cols;
    size_t nnz;   /* per row, on average; a row has between 1 and 2 * nnz - 1 (clicks: nnz exactly) */
    double skew;  /* exponent of the popularity, 0 = all features alike */
    double noise; /* see above */
    uint64_t seed;
} rbt_generate_options;

#define RBT_GENERATE_SKEW_MOST    10.0
#define RBT_GENERATE_CLASSES_MOST (size_t)100000

/* 10,000 rows x 1,000 features x 20 non-zeros, skew 1.1, noise 0.05, seed 1. */
rbt_generate_options rbt_generate_defaults(void);

rbt_err rbt_generate_lr(const rbt_generate_options *options, rbt_data *out, rbt_error *error);

/* ------------------------------------------------------------------------------------------ rows of all kinds */

typedef enum rbt_rows_kind { RBT_ROWS_LR, RBT_ROWS_REGRESSION, RBT_ROWS_MULTICLASS, RBT_ROWS_CLICKS } rbt_rows_kind;

typedef struct rbt_rows_options {
    rbt_rows_kind kind;
    rbt_generate_options common;
    size_t classes; /* multiclass: 2 or more */
    double rate;    /* clicks: how many of the rows are clicks, between 0 and 1 */
} rbt_rows_options;

/* In memory. `threads` 0: all cores. */
rbt_err rbt_generate_rows(const rbt_rows_options *options, unsigned threads, rbt_data *out, rbt_error *error);

/* In a file; text does not need the whole data in memory, a cache does. */
rbt_err rbt_generate_write(const rbt_rows_options *options, rbt_format format, const rbt_writing *how,
                           rbt_error *error);

/* ------------------------------------------------------------------------------------------------ other kinds */

/* Ratings: a user's taste and an item's character are normal vectors of length `rank`; a rating is 3.25 plus their
 * product (standard deviation 1) plus a normal error of deviation `noise`, as the nearest of 0.5, 1, ... 5. Users and
 * items are numbered from 1, users in order, a user's items too; nobody rates an item twice. Times ascend for a user.
 */
typedef struct rbt_ratings_options {
    size_t rows; /* ratings */
    size_t users;
    size_t items;
    size_t rank;
    double skew; /* of the items; the users' is half of it */
    double noise;
    uint64_t seed;
} rbt_ratings_options;

/* As lines user::item::rating::time, or as CSV "user,item,rating" with that header. */
rbt_err rbt_generate_ratings(const rbt_ratings_options *options, bool csv, const rbt_writing *how, rbt_error *error);

/* Documents, like those of a topic model. Each topic ranks the words in an order of its own, with popularity k^-skew; a
 * document has up to five topics with weights from a flat Dirichlet distribution, and is as long as it takes to see its
 * number of distinct words (between 1 and 2 * nnz - 1). With probability `noise` a word is any word. */
typedef struct rbt_docs_options {
    size_t docs;
    size_t words;
    size_t nnz; /* distinct words in a document, on average */
    size_t topics;
    double skew;
    double noise;
    uint64_t seed;
} rbt_docs_options;

/* As UCI bag of words: three lines with the numbers of documents, words and triples, then "doc word count". */
rbt_err rbt_generate_docs(const rbt_docs_options *options, const rbt_writing *how, rbt_error *error);

/* Images of side x side pixels: each class has a prototype of a few soft spots; an image is its class's prototype moved
 * by up to two pixels, plus an error of standard deviation `noise` (1 = from black to white). Labels 0 .. classes - 1. */
typedef struct rbt_images_options {
    size_t images;
    size_t side;
    size_t classes;
    double noise;
    uint64_t seed;
} rbt_images_options;

#define RBT_IMAGES_SIDE_MOST    (size_t)4096
#define RBT_IMAGES_CLASSES_MOST (size_t)256

/* As two IDX files: PATH-images-idx3-ubyte and PATH-labels-idx1-ubyte. */
rbt_err rbt_generate_images(const rbt_images_options *options, const rbt_writing *how, rbt_error *error);

/* --------------------------------------------------------------------------------------------- for all of them */

/* Streams of RBT_STREAM_GENERATE: the index is one of the first three, or RBT_GENERATE_ROWS + row, or an item of another
 * purpose. */
enum { RBT_GENERATE_RANKS, RBT_GENERATE_TRUTH, RBT_GENERATE_LENGTHS, RBT_GENERATE_ROWS };
#define RBT_GENERATE_OTHER(purpose, item) (((uint64_t)(purpose) << 40) + (item))

/* Row lengths around nnz, as far on both sides as there is room: the next one of a stream. */
size_t rbt_generate_length(size_t nnz, size_t cols, rbt_rng *rng);

/* The checks that several kinds share: a refusal names the option. */
rbt_err rbt_generate_check_count(const char *name, size_t value, size_t most, rbt_error *error);
rbt_err rbt_generate_check_skew(double skew, rbt_error *error);
rbt_err rbt_generate_check_noise(double noise, double most, rbt_error *error);

#endif
