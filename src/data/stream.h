/* Data in blocks of rows, in order, in bounded memory whatever its size.
 *
 * Called by `rubato predict`, `rubato eval`, cache_build.c and gather.c. A path is what it is for rbt_data_read. Text
 * is read, unpacked and parsed piece by piece; of a pipe a piece is what is there, so that somebody who types a row
 * gets an answer. A cache is mapped and cut into blocks. What the columns of CSV are is seen by going over its files
 * first, unless the reading's origin says it, or by the first rows when the reading says how many features they make.
 * Always holds: the blocks' rows are those of rbt_data_read, or the refusal is, with its file:line; memory is a few
 * times RBT_ROWSTREAM_PIECE_BYTES, or the longest line. Exceptions, which are read whole: images, a cache that is
 * compressed or comes through a pipe, and CSV through a pipe that does not make the features that the reading says;
 * such a pipe is refused when it is the first of several paths. What a pipe holds is told by as much of it as of a
 * file, whenever it comes; who answers rows as they come (not `late`) does not wait for more than a row, unless it
 * expects documents. Proved by tests/unit/test_stream.c.
 */
#ifndef RBT_DATA_STREAM_H
#define RBT_DATA_STREAM_H

#include "rubato.h"

#define RBT_ROWSTREAM_PIECE_BYTES (size_t)(4 * 1024 * 1024)

typedef struct rbt_rowstream rbt_rowstream;

/* What text leaves open until an index 0 is seen: do features count from 0 or from 1? With `late` an index 0 may come
 * after rows without one: those blocks were numbered one too low, and rbt_rowstream_low tells how many features that were.
 * Otherwise such an index 0 is refused. The reading's report is written to as the
 * stream goes on. `piece_bytes` is RBT_ROWSTREAM_PIECE_BYTES but in tests. */
rbt_err rbt_rowstream_open(const char *path, const rbt_reading *reading, bool late, size_t piece_bytes,
                           rbt_rowstream **out, rbt_error *error);
void rbt_rowstream_close(rbt_rowstream *stream);

/* The next block: at least one row; NULL past the last. It is the stream's, and valid until the next call. */
rbt_err rbt_rowstream_next(rbt_rowstream *stream, const rbt_data **block, rbt_error *error);

/* What was read whole is all there is, and the block is the first: then it is given away whole, with the names that belong to
 * it, and nothing is left to come. */
bool rbt_rowstream_take(rbt_rowstream *stream, rbt_data *data);

/* Features handed out before the first index 0: they must be counted up by one. 0 when there is none. */
size_t rbt_rowstream_low(const rbt_rowstream *stream);

/* How it was read (origin.h), in memory of its own; known when the last block has come. NULL: it is not. */
char *rbt_rowstream_origin(const rbt_rowstream *stream);

/* Are all of its files such that can be read again? */
bool rbt_rowstream_is_repeatable(const rbt_rowstream *stream);

/* Does it come from a pipe or a terminal, so that somebody may wait for an answer? */
bool rbt_rowstream_is_live(const rbt_rowstream *stream);

#endif
