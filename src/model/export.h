/* Trained models for others: a NumPy array, and lines of text.
 *
 * Called by the command export; LIBLINEAR's format has a file of its own (liblinear.h). Files appear complete or not at
 * all. docs/formats.md describes them. Proved by tests/unit/test_export.c and tests/cli/test_export.sh.
 */
#ifndef RBT_MODEL_EXPORT_H
#define RBT_MODEL_EXPORT_H

#include "model/vocab.h"
#include "rubato.h"

/* The parameters as .npy: f32, (features + bias) or (features + bias, classes). */
rbt_err rbt_export_npy(const rbt_trained *trained, const char *path, rbt_error *error);

/* Any array as .npy, in its type; a single column as one dimension. */
rbt_err rbt_export_array(const rbt_values *values, const char *path, rbt_error *error);

/* "feature weight ..." for each feature that has a weight other than 0, by its name or its number, as the data counts
 * (data/origin.h); the bias first, as "bias". `vocab` may be NULL. */
rbt_err rbt_export_text(const rbt_trained *trained, const rbt_vocab *vocab, const char *path, rbt_error *error);

#endif
