/* LIBLINEAR's text models: written for its programs, and read from them.
 *
 * Called by the commands export and import. Always holds: liblinear-predict on a written model and ours on the model it
 * came from give the same labels, and so do a read model and liblinear-predict on the file, rows without any known
 * feature included. What LIBLINEAR cannot express is refused with the remedy; what a file promises is checked before it
 * is used, and refused with its line. docs/formats.md has the mapping of models. Proved by tests/unit/test_liblinear.c,
 * tests/cli/test_export.sh (against liblinear-predict) and tests/fuzz/fuzz_liblinear.c.
 */
#ifndef RBT_MODEL_LIBLINEAR_H
#define RBT_MODEL_LIBLINEAR_H

#include "rubato.h"

rbt_err rbt_liblinear_write(const rbt_trained *trained, const char *path, rbt_error *error);
rbt_err rbt_liblinear_read(const char *path, rbt_trained *trained, rbt_error *error);

/* The reader behind it, for memory. `name` stands before the line number in messages. */
rbt_err rbt_liblinear_parse(const char *text, size_t bytes, const char *name, rbt_trained *trained, rbt_error *error);

#endif
