/* Lists of names: what labels that are words are called.
 *
 * Called by csv_layout.c, data.c, cache.c and part.c. Always holds: a sorted list ascends by bytes and has each name once.
 * Proved by tests/unit/test_part_parallel.c and test_datacache.c. */
#ifndef RBT_DATA_NAMES_H
#define RBT_DATA_NAMES_H

#include "base/crew.h"

typedef struct rbt_names {
    char **at; /* each with memory of its own */
    size_t count;
} rbt_names;

void rbt_names_free(rbt_names *names);

/* Puts them in ascending order, each once. */
void rbt_names_sort(rbt_names *names);

/* Which of sorted names it is; count when none. */
size_t rbt_names_find(const rbt_names *names, const char *name);

/* One after the other, each with its zero, in new memory; and back: the bytes end with a zero, or there are none. `what`
 * is named when there is no memory. */
rbt_err rbt_names_write(const rbt_names *names, const char *what, rbt_bytes *out, rbt_error *error);
rbt_names rbt_names_read(const void *bytes, size_t n);

/* The names of all processes, sorted. */
rbt_err rbt_names_share(const rbt_names *mine, rbt_crew *crew, rbt_err err, const char *what, rbt_names *all,
                        rbt_error *error);

#endif
