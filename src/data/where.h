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

/* For who looks at rows in blocks, when so many rows came before that of the message: every "row N" is counted on
 * from them. */
void rbt_where_count_on(uint64_t before, rbt_error *error);

#endif
