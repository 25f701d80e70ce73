/* A crew: the processes of a job, for steps in which all of them take part (sharing data, above all).
 *
 * One operation is enough: every process hands in bytes for every other one and gets what each had for it. All call it
 * the same number of times, in the same order. Collecting is a swap in which only rank 0 is given something, telling
 * everybody one in which only rank 0 gives. On one machine there is a crew of one. A runtime with processes supplies the
 * operation; tests use threads. */
#ifndef RBT_BASE_CREW_H
#define RBT_BASE_CREW_H

#include <stddef.h>

#include "rubato.h"

typedef struct rbt_bytes {
    uint8_t *at;
    size_t n;
} rbt_bytes;

typedef struct rbt_crew {
    uint32_t rank;
    uint32_t size;
    /* out and in have `size` entries. What was handed in stays the caller's; what comes out is new memory, to be freed
     * with rbt_free (entries of n = 0 have none). Fails everywhere when one is lost or has failed. */
    rbt_err (*swap)(struct rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error);
    void *context;
} rbt_crew;

#endif
