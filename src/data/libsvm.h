/* LIBSVM text from one or several places at once, in parallel.
 *
 * Called by data.c; the tests choose their own cuts. Always holds: the result, or the refusal with its file:line, is
 * the same whatever the cut and the number of threads. Proved by tests/unit/test_libsvm_parallel.c.
 */
#ifndef RBT_DATA_LIBSVM_H
#define RBT_DATA_LIBSVM_H

#include "rubato.h"

/* One file's text. A last line that does not end, ends with the text. */
typedef struct rbt_text {
    const char *name; /* stands before the line number in messages */
    const char *bytes;
    size_t n;
} rbt_text;

/* How the work is divided. */
typedef struct rbt_libsvm_cut {
    size_t chunk_bytes; /* at least 1; a chunk ends with the line in which it has become this long */
    unsigned threads;
} rbt_libsvm_cut;

/* What suits this machine. */
rbt_libsvm_cut rbt_libsvm_cut_default(void);

/* The rows of all texts, in order, as one data set: an index 0 in any of them makes all of them count from 0, and a text
 * without rows is refused only when none has any. The first refusal in the order of the texts and lines is the one
 * reported. `name` names the whole in messages that are about no single text. */
rbt_err rbt_libsvm_parse(const rbt_text *texts, size_t count, const char *name, rbt_libsvm_cut cut, rbt_data *data,
                         rbt_error *error);

/* What a data set without rows is refused with. */
rbt_err rbt_libsvm_refuse_empty(const char *name, rbt_error *error);

/* Some lines out of the middle of a text, for stream.c: `line` is the number of the first. There may be no rows among
 * them, and whether features count from 0 is known from the lines before, or seen in these and then told. */
rbt_err rbt_libsvm_parse_piece(const rbt_text *text, size_t line, rbt_libsvm_cut cut, bool *zero_based, rbt_data *data,
                               rbt_error *error);

#endif
