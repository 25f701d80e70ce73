/* From data as it was read to data that can be trained on: labels numbered, rows weighted, features normalised; and what
 * depends on the data is settled in the options (l2, the optimizer, the step size).
 *
 * Called by loading.c, where all rows are here and the crew is alone, and by sharing.c on all processes of a crew, each with a
 * part of the rows. Always holds: shape, weights, values and options come out the same, bit for bit, for every number of
 * processes: sums are taken in the order of rows, from process to process. Proved by tests/unit/test_loading.c and
 * test_sharing_parallel.c. */
#ifndef RBT_JOB_PREPARE_H
#define RBT_JOB_PREPARE_H

#include "base/crew.h"
#include "job/loading.h"

/* Where the rows here lie among all of them. */
typedef struct rbt_extent {
    size_t rows; /* of all processes */
    size_t nnz;
    size_t first; /* before those here */
    size_t first_nnz;
    bool leaves; /* the rows will leave: what steps must know of all of them is kept in loaded->facts */
} rbt_extent;

/* Labels, weights, features. The extent changes with the features. */
rbt_err rbt_prepare_data(rbt_loaded *loaded, const rbt_options *options, rbt_extent *extent, rbt_crew *crew,
                         rbt_error *error);

/* What depends on the data. */
rbt_err rbt_prepare_options(rbt_loaded *loaded, rbt_options *options, const rbt_extent *extent, rbt_crew *crew,
                            rbt_error *error);

#endif
