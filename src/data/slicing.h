/* Who reads which bytes of which files: the plan that part.c follows.
 *
 * Made by one process and told to the others. The files lie one after the other in one long row of units (bytes, or
 * the rows of caches), which is cut into equal ranges; part.c moves the cuts to the ends of rows. Always holds: every
 * unit is in exactly one slice, the slices of a range are of files that follow each other. Proved by
 * tests/unit/test_part_parallel.c. */
#ifndef RBT_DATA_SLICING_H
#define RBT_DATA_SLICING_H

#include "base/crew.h"

typedef enum rbt_form {
    RBT_FORM_TEXT,  /* may be cut between any two bytes */
    RBT_FORM_WHOLE, /* may not be cut */
    RBT_FORM_CACHE, /* may be cut between any two rows */
} rbt_form;

typedef struct rbt_slicing_file {
    char *path;
    uint64_t bytes;
    uint64_t units; /* bytes; of a cache: rows */
    uint32_t form;
    uint32_t worker; /* with {rank}: whose it is */
} rbt_slicing_file;

typedef struct rbt_slicing {
    rbt_slicing_file *at;
    size_t count;
    size_t room;
} rbt_slicing;

/* Units from .. to - 1 of a file. */
typedef struct rbt_slice {
    size_t file;
    uint64_t from;
    uint64_t to;
} rbt_slice;

/* The files that the path stands for on this host. */
rbt_err rbt_slicing_make(rbt_slicing *plan, const char *path, const rbt_reading *reading, rbt_error *error);

/* The files of some workers: the path with each one's number in place of {rank}. None will be cut. */
rbt_err rbt_slicing_make_ranked(rbt_slicing *plan, const char *path, uint32_t first_worker, uint32_t workers,
                                rbt_error *error);

/* The plan of that rank, told to all; the others' are empty before. */
rbt_err rbt_slicing_share(rbt_slicing *plan, uint32_t planner, rbt_crew *crew, rbt_err err, rbt_error *error);

/* The slices of range k of n, in order, in new memory. */
rbt_slice *rbt_slicing_cut(const rbt_slicing *plan, uint32_t k, uint32_t n, size_t *count);

/* How many of n ranges have units of a file; they follow each other from *first on. */
uint32_t rbt_slicing_sharers(const rbt_slicing *plan, size_t file, uint32_t n, uint32_t *first);
void rbt_slicing_free(rbt_slicing *plan);

#endif
