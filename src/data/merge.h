/* The features of a row put in order, and what is there twice made one.
 *
 * Called by chunks.c (rows of text) and triples.c. Always holds: indices ascend strictly afterwards; of equal indices the
 * order is that before. Proved by tests/unit/test_vw.c and test_ratings.c.
 */
#ifndef RBT_DATA_MERGE_H
#define RBT_DATA_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rbt_merge {
    RBT_MERGE_SUM,  /* equal indices add up, in their order; what is zero then is dropped */
    RBT_MERGE_LAST, /* the last one counts, be it zero */
} rbt_merge;

#define RBT_MERGE_SCRATCH_BYTES 16 /* for each feature */

/* Do they ascend strictly? */
bool rbt_features_ascend(const uint32_t *index, size_t n);

/* How many are left. A sum may be infinite. */
size_t rbt_features_merge(uint32_t *index, float *value, size_t n, rbt_merge how, void *scratch);

#endif
