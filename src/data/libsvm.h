/* LIBSVM text from one or several places at once, in parallel.
 *
 * Called by read.c and, piece by piece, by stream.c; the tests choose their own cuts. Always holds: what chunks.h
 * promises. Proved by tests/unit/test_libsvm.c and test_libsvm_parallel.c.
 */
#ifndef RBT_DATA_LIBSVM_H
#define RBT_DATA_LIBSVM_H

#include "data/chunks.h"

/* The rows of all texts, in order, as one data set: an index 0 in any of them makes all of them count from 0, unless
 * the reading says where they begin. */
rbt_err rbt_libsvm_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* A piece out of the middle of a text (chunks.h). `all` is what the pieces before have shown, nothing at first, and is
 * added to: where counting begins and how many columns there are is decided over all of them. */
rbt_err rbt_libsvm_parse_piece(const rbt_source *source, size_t line, const rbt_reading *reading, rbt_seen *all,
                               rbt_data *data, rbt_error *error);

/* How such text was read (origin.h), in memory of its own. */
char *rbt_libsvm_origin(bool zero_based);

#endif
