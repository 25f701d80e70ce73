/* Vowpal Wabbit text from one or several places at once, in parallel. The format is described in docs/formats.md.
 *
 * Called by read.c; the tests choose their own cuts. Always holds: what chunks.h promises; a feature's column is the one
 * that Vowpal Wabbit itself gives it with the same number of bits. Proved by tests/unit/test_vw.c and
 * tests/fuzz/fuzz_vw.c.
 */
#ifndef RBT_DATA_VW_H
#define RBT_DATA_VW_H

#include "data/chunks.h"

/* The rows of all texts, in order, hashed to 2^bits columns (reading->bits). */
rbt_err rbt_vw_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* A piece out of the middle of a text (chunks.h). */
rbt_err rbt_vw_parse_piece(const rbt_source *source, size_t first_line, const rbt_reading *reading, rbt_data *data,
                           rbt_error *error);

/* The hash of a name within a namespace (of a namespace: within 0): digits alone are a number that is added to `seed`,
 * anything else is hashed with MurmurHash3, 32 bits, seeded with it. */
uint64_t rbt_vw_hash(const char *name, size_t n, uint64_t seed);

#endif
