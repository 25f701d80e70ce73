/* CSV text from one or several places at once, in parallel. The format is described in docs/formats.md.
 *
 * Called by read.c; the tests choose their own cuts. Always holds: what chunks.h promises, also when a quoted cell has
 * newlines; what a column is (numbers or words) is decided over all rows. Proved by tests/unit/test_csv.c and
 * tests/fuzz/fuzz_csv.c.
 */
#ifndef RBT_DATA_CSV_H
#define RBT_DATA_CSV_H

#include "data/chunks.h"

#define RBT_CSV_LABELS_LIMIT 65536 /* different words as labels; more is the wrong column */

rbt_err rbt_csv_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

#endif
