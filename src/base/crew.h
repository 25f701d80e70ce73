/* A crew: the processes of a job, for steps in which all of them take part (sharing data, above all).
 *
 * One operation is enough: every process hands in bytes for every other one and gets what each had for it. All call it
 * the same number of times, in the same order. Collecting is a swap in which only rank 0 is given something, telling
 * everybody one in which only rank 0 gives. On one machine there is a crew of one. A runtime with processes supplies the
 * operation; tests use threads.
 *
 * The functions below are swaps that carry how things went: who has failed takes part all the same and says so, and then
 * all return the failure of the lowest rank that has one, word for word. So a process never waits for one that has given
 * up, and what is shared is set everywhere or nowhere. Proved by tests/unit/test_crew_parallel.c. */
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
    /* Or NULL: a step has failed, everywhere with these words; `rank` is whose failure it is, `size` when all have the same. */
    void (*failed)(struct rbt_crew *crew, uint32_t rank, rbt_error *error);
    void *context;
} rbt_crew;

/* A crew of one. */
rbt_crew rbt_crew_alone(void);

/* In all of these `err` is how things went here so far; when it is not RBT_OK, `error` has the message. */

/* Has everybody come this far? */
rbt_err rbt_crew_agree(rbt_crew *crew, rbt_err err, rbt_error *error);

/* Everybody's `bytes` bytes of `mine`, in the order of ranks, to `all`. */
rbt_err rbt_crew_share(rbt_crew *crew, rbt_err err, const void *mine, size_t bytes, void *all, rbt_error *error);

/* The same for as many bytes as each likes. `all` has `size` entries; rbt_crew_free frees them, and must be called on
 * success only. */
rbt_err rbt_crew_collect(rbt_crew *crew, rbt_err err, rbt_bytes mine, rbt_bytes *all, rbt_error *error);

/* Other bytes for each: as the operation itself. */
rbt_err rbt_crew_swap(rbt_crew *crew, rbt_err err, const rbt_bytes *out, rbt_bytes *in, rbt_error *error);
void rbt_crew_free(const rbt_crew *crew, rbt_bytes *all);

/* Sums that must be taken in order: `sums`, zero at first, go from rank to rank, each adds to them, and in the end all
 * have what the last one has. */
rbt_err rbt_crew_travel(rbt_crew *crew, rbt_err err, void (*add)(void *context, void *sums), void *context, void *sums,
                        size_t bytes, rbt_error *error);

#endif
