/* Which files a path stands for. Contract in paths.h; proved by tests/unit/test_data.c and test_store.c. */
#include "data/paths.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/read.h"

/* glob(3) itself sorts as the locale says; the order of rows must not depend on that. */
static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_like_cache(const char *name)
{
    size_t n = strlen(name), ending = strlen(RBT_CACHE_ENDING);
    return n >= ending && strcmp(name + n - ending, RBT_CACHE_ENDING) == 0;
}

static rbt_err list_matches(const char *pattern, rbt_paths *paths, rbt_error *error)
{
    glob_t matches = {0};
    errno = 0;
    int status = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &matches);
    if (status != 0 && status != GLOB_NOMATCH)
        return rbt_fail(error, status == GLOB_NOSPACE ? RBT_E_MEMORY : RBT_E_IO, "%s: cannot be searched for: %s",
                        pattern, status == GLOB_NOSPACE ? "not enough memory" : strerror(errno));
    paths->at = rbt_alloc(matches.gl_pathc + 1, sizeof *paths->at);
    for (size_t i = 0; i < matches.gl_pathc; i++)
        if (ends_like_cache(pattern) || !ends_like_cache(matches.gl_pathv[i]))
            paths->at[paths->count++] = rbt_strdup(matches.gl_pathv[i]);
    globfree(&matches);
    qsort(paths->at, paths->count, sizeof *paths->at, by_bytes);
    if (paths->count > 0)
        return RBT_OK;
    return rbt_fail(error, RBT_E_IO, "%s: no file matches; check the pattern and the folder", pattern);
}

rbt_err rbt_paths_list(const char *path, rbt_paths *paths, rbt_error *error)
{
    rbt_paths found = {0};
    rbt_err err = RBT_OK;
    if (rbt_data_is_pattern(path)) {
        err = list_matches(path, &found, error);
    } else {
        found.at = rbt_alloc(1, sizeof *found.at);
        found.at[found.count++] = rbt_strdup(path);
    }
    if (err == RBT_OK)
        *paths = found;
    else
        rbt_paths_free(&found);
    return err;
}

void rbt_paths_free(rbt_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        rbt_free(paths->at[i]);
    rbt_free(paths->at);
    *paths = (rbt_paths){0};
}
