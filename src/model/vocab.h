/* Names of features: a text file with one name per line, the first line for feature 1; or what the training data called them.
 *
 * Called by the commands info and export. What follows a tab on a line is left out. Always holds: a feature without a
 * line, or with an empty one, has no name. Proved by tests/unit/test_export.c.
 */
#ifndef RBT_MODEL_VOCAB_H
#define RBT_MODEL_VOCAB_H

#include "rubato.h"

typedef struct rbt_vocab {
    char *text;
    const char **name;
    size_t count;
} rbt_vocab;

rbt_err rbt_vocab_read(const char *path, rbt_vocab *vocab, rbt_error *error);

/* The names of the columns of numbers in the CSV text that a model was trained with, as its origin (data/origin.h) has them. Other
 * text, and no header, have none: nothing is given. */
void rbt_vocab_of_origin(const char *origin, rbt_vocab *vocab);
void rbt_vocab_deinit(rbt_vocab *vocab);

/* The name of feature i, counted from 0; NULL when it has none. `vocab` may be NULL. */
const char *rbt_vocab_name(const rbt_vocab *vocab, size_t feature);

#endif
