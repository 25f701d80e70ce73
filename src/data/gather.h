/* Rows that come in pieces, gathered in memory: for what cannot be mapped, compressed files and pipes.
 *
 * Called by read.c. Always holds: the data, or the refusal with its file:line, is that of reading the whole; the text is
 * never in memory as a whole, so that reading takes the memory of the data and a few pieces (stream.h has the exceptions).
 * Proved by tests/unit/test_gather.c and tests/cli/test_stream.sh.
 */
#ifndef RBT_DATA_GATHER_H
#define RBT_DATA_GATHER_H

#include "data/paths.h"

/* Are these files to be gathered? Those that are mapped are faster when they are read at once. */
bool rbt_gather_suits(const rbt_paths *paths, const rbt_reading *reading);

/* `piece_bytes` is RBT_ROWSTREAM_PIECE_BYTES but in tests. */
rbt_err rbt_gather_read(const char *path, const rbt_reading *reading, size_t piece_bytes, rbt_data *data,
                        rbt_error *error);

#endif
