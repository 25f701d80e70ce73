/* Text made in pieces by all cores and written in order: how generators and converters write files of any size.
 *
 * Called by write_rows.c and generate*.c. Always holds: the bytes written are those of the pieces one after the other,
 * whatever the number of threads; memory is bounded by RBT_WRITE_PIECES_MOST pieces; the first failure in the order of
 * the pieces is the one reported. Proved by tests/unit/test_write.c.
 */
#ifndef RBT_DATA_WRITE_H
#define RBT_DATA_WRITE_H

#include <stdatomic.h>

#include "data/file.h"

#define RBT_WRITE_PIECES_MOST 512 /* held at once: half of them being made, half being written */

/* Bytes being made: all zero is empty. */
typedef struct rbt_buffer {
    char *at;
    size_t n;
    size_t room;
} rbt_buffer;

/* Makes room for so many more bytes; the caller puts them at at + n and counts them. */
rbt_err rbt_buffer_reserve(rbt_buffer *buffer, size_t more, rbt_error *error);
void rbt_buffer_deinit(rbt_buffer *buffer);

/* Where and how something is written. */
typedef struct rbt_writing {
    const char *path;        /* "-" is the standard output */
    unsigned threads;        /* 0: all cores */
    const atomic_bool *stop; /* ends the writing with RBT_E_INTERRUPTED once it is true; NULL: nobody will */
} rbt_writing;

/* RBT_E_INTERRUPTED when it is time to stop. */
rbt_err rbt_writing_check(const rbt_writing *how, rbt_error *error);
unsigned rbt_writing_threads(const rbt_writing *how);

typedef struct rbt_making {
    size_t count;
    /* Adds the text of a piece to an empty buffer; called by several threads at once. */
    rbt_err (*make)(void *context, size_t piece, rbt_buffer *out, rbt_error *error);
    /* Once all are made: may change the text of the last one. NULL: it is as it should be. */
    rbt_err (*end)(void *context, rbt_buffer *last, rbt_error *error);
    void *context;
} rbt_making;

/* Writes all pieces to an output that the caller opened and finishes. */
rbt_err rbt_making_write(const rbt_making *pieces, const rbt_writing *how, rbt_output *output, rbt_error *error);

/* The same into a file of their own, which begins with the bytes of `head` (NULL: none). A failure leaves no file. */
rbt_err rbt_making_write_file(const rbt_making *pieces, const rbt_writing *how, const rbt_buffer *head,
                              rbt_error *error);

#endif
