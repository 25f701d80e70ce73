/* Which files a path stands for: itself, or all that match a pattern.
 *
 * Called by data.c, stream.c and store.c. Always holds: the order is that of the names' bytes, whatever the locale; a
 * pattern does not find caches that Rubato keeps for itself (store.h), unless it says their ending.
 * Proved by tests/unit/test_data.c and test_store.c.
 */
#ifndef RBT_DATA_PATHS_H
#define RBT_DATA_PATHS_H

#include "rubato.h"

#define RBT_CACHE_ENDING ".rbt-cache"

typedef struct rbt_paths {
    char **at;
    size_t count; /* at least 1 */
} rbt_paths;

/* "-" stands for itself. A pattern that no file matches is an error. */
rbt_err rbt_paths_list(const char *path, rbt_paths *paths, rbt_error *error);
void rbt_paths_free(rbt_paths *paths);

#endif
