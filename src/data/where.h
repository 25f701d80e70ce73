/* Where a row stands: its file and line, for messages about rows that were read long ago.
 *
 * Called by src/job and the commands when a row turns out to be of no use after reading (its label is not the model's). Reads
 * the text once more. Proved by tests/unit/test_where.c.
 */
#ifndef RBT_DATA_WHERE_H
#define RBT_DATA_WHERE_H

#include "rubato.h"

/* Every "row N" in the message, N from 1 in the order of reading, becomes "FILE:LINE", with a colon where the message begins
 * with it. It stays what it is when nobody can tell: a cache, the standard input, images, bad rows that may be left out. */
void rbt_where_rows(const char *path, const rbt_reading *reading, rbt_error *error);

#endif
