/* IDX images: arrays of bytes as the MNIST files have them. The format is described in docs/formats.md.
 *
 * Called by read.c. Always holds: sizes are checked against the file before anything is allocated; what comes out keeps
 * the promises of data.h. Proved by tests/unit/test_idx.c and tests/fuzz/fuzz_idx.c.
 */
#ifndef RBT_DATA_IDX_H
#define RBT_DATA_IDX_H

#include "data/file.h"

/* Do the bytes begin like an IDX file of any kind? */
bool rbt_idx_recognise(const void *bytes, size_t n);

/* The images and their labels as data: a feature per pixel, from 0 to 1. `labels` NULL: all labels are 0. Both are
 * unpacked already. */
rbt_err rbt_idx_parse(const rbt_input *images, const rbt_input *labels, rbt_data *data, rbt_error *error);

/* The path of the labels that belong to images of that name (train-images-idx3-ubyte: train-labels-idx1-ubyte), in memory
 * of its own; NULL when the name does not tell. */
char *rbt_idx_partner(const char *path);

#endif
