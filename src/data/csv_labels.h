/* The words that are the labels of CSV text: gathered from all rows, in ascending order.
 *
 * Called by csv.c, once it is known that the label's column has words. Proved by tests/unit/test_csv.c.
 */
#ifndef RBT_DATA_CSV_LABELS_H
#define RBT_DATA_CSV_LABELS_H

#include "data/csv_layout.h"

typedef struct rbt_csv_labels rbt_csv_labels;

rbt_csv_labels *rbt_csv_labels_create(const rbt_csv_layout *layout);
void rbt_csv_labels_destroy(rbt_csv_labels *labels);

/* The labels in the rows of these chunks that will not be refused. */
void rbt_csv_labels_look(rbt_csv_labels *labels, rbt_chunks *chunks);

/* All have been looked at, those of other processes (`portion`) too: gives them to the layout. */
rbt_err rbt_csv_labels_settle(rbt_csv_labels *labels, const rbt_portion *portion, const char *name,
                              rbt_csv_layout *layout, rbt_error *error);

/* Has the cell no line ends and other control characters? A label is a line of what is predicted. Tabs will do. */
bool rbt_csv_label_is_plain(const rbt_cell *cell);

/* Which of the layout's label_names the cell is; label_count when none. */
size_t rbt_csv_labels_find(const rbt_csv_layout *layout, const rbt_cell *cell);

#endif
