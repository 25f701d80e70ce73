/* What is predicted: the classes of a shape, found in data and applied to data.
 *
 * Called by the models' `prepare`; rbt_shape_apply and rbt_shape_deinit of rubato.h stand here too. Always holds: the
 * classes are in ascending order of their labels, and a label outside them is refused with its row. Proved by
 * tests/unit/test_classes.c.
 */
#ifndef RBT_MODEL_CLASSES_H
#define RBT_MODEL_CLASSES_H

#include "rubato.h"

#define RBT_CLASSES_LIMIT 65536

/* Refuses ratings and documents, which have no labels. rbt_shape_apply does so, too. */
rbt_err rbt_labels_check_content(const rbt_data *data, rbt_error *error);

/* How a class's label is written: its name, however long, or its number as short as reads back the same, in `room`. And so much of
 * it as has room in a table or a message. */
#define RBT_LABEL_ROOM 256
const char *rbt_shape_label(const rbt_shape *shape, double label, char room[RBT_LABEL_ROOM]);
void rbt_shape_label_text(const rbt_shape *shape, double label, char text[RBT_LABEL_ROOM]);

/* A number as a label: whole ones in full, others as short as reads back the same. */
void rbt_label_print(double label, char text[RBT_LABEL_ROOM]);

/* The shape again, with labels and names of its own. */
void rbt_shape_copy(rbt_shape *to, const rbt_shape *from);

#endif
