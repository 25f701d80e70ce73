/* Which files a path stands for: itself, or all that match a pattern; or several of both, one to a line.
 *
 * Called by data.c, stream.c and store.c. Always holds: the files of a pattern are in the order of their names' bytes, whatever
 * the locale; several paths are in the order in which they were given. A pattern does not find caches that Rubato keeps for itself (store.h), unless it says their ending.
 * Proved by tests/unit/test_data.c and test_store.c.
 */
#ifndef RBT_DATA_PATHS_H
#define RBT_DATA_PATHS_H

#include "rubato.h"

#define RBT_CACHE_ENDING    ".rbt-cache"
#define RBT_PATHS_SEPARATOR '\n' /* between several; the name of a file that is there may have it, too */

typedef struct rbt_paths {
    char **at;
    size_t count; /* at least 1 */
} rbt_paths;

/* "-" stands for itself. A pattern that no file matches is an error. */
rbt_err rbt_paths_list(const char *path, rbt_paths *paths, rbt_error *error);
void rbt_paths_free(rbt_paths *paths);

#define RBT_PATHS_TITLE_ROOM 512

/* For people: the path, or "the first and 3 more". */
void rbt_paths_title(const char *path, char *title, size_t room);

#endif
