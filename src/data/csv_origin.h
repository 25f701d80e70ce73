/* The columns of CSV text by those of other CSV text, which a model was trained with: the same features, or a refusal.
 *
 * Called by csv_layout.c and csv.c when a reading has an origin with columns. Columns are found by their names where both texts have
 * a header, in whatever order, else by their places; label and weight, unless the reading names them, likewise. Always
 * holds: a feature has the index it had there, and is of numbers or of words as it was there, whatever the rows here show.
 * Proved by tests/unit/test_origin.c and tests/cli/test_origin.sh.
 */
#ifndef RBT_DATA_CSV_ORIGIN_H
#define RBT_DATA_CSV_ORIGIN_H

#include "data/csv_layout.h"

/* Text that `rubato convert` wrote has a column for each feature, f1, f2, ..., whatever text the data came from: it is read for itself,
 * unless the origin is such text, too. */
void rbt_csv_origin_forget(rbt_csv_layout *layout);

/* The columns of label and weight that the reading leaves open. */
rbt_err rbt_csv_origin_roles(rbt_csv_layout *layout, const rbt_reading *reading, const char *name, rbt_error *error);

/* What each other column is. */
rbt_err rbt_csv_origin_columns(rbt_csv_layout *layout, const char *name, rbt_error *error);

/* How the columns were read, in memory of its own. */
char *rbt_csv_origin_text(const rbt_csv_layout *layout, const rbt_reading *reading);

#endif
