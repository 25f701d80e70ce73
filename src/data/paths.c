/* Which files a path stands for. Contract in paths.h; proved by tests/unit/test_data.c and test_store.c. */
#include "data/paths.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Adds the files that match. */
static rbt_err add_matches(const char *pattern, rbt_paths *paths, rbt_error *error)
{
    glob_t matches = {0};
    errno = 0;
    int status = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &matches);
    if (status != 0 && status != GLOB_NOMATCH)
        return rbt_fail(error, status == GLOB_NOSPACE ? RBT_E_MEMORY : RBT_E_IO, "%s: cannot be searched for: %s",
                        pattern, status == GLOB_NOSPACE ? "not enough memory" : strerror(errno));
    size_t before = paths->count;
    paths->at = rbt_realloc(paths->at, before + matches.gl_pathc + 1, sizeof *paths->at);
    for (size_t i = 0; i < matches.gl_pathc; i++)
        if (ends_like_cache(pattern) || !ends_like_cache(matches.gl_pathv[i]))
            paths->at[paths->count++] = rbt_strdup(matches.gl_pathv[i]);
    globfree(&matches);
    qsort(paths->at + before, paths->count - before, sizeof *paths->at, by_bytes);
    if (paths->count > before)
        return RBT_OK;
    return rbt_fail(error, RBT_E_IO, "%s: no file matches; check the pattern and the folder", pattern);
}

/* Adds what one path stands for. */
static rbt_err add_path(const char *path, rbt_paths *paths, rbt_error *error)
{
    if (rbt_data_is_pattern(path))
        return add_matches(path, paths, error);
    paths->at = rbt_realloc(paths->at, paths->count + 1, sizeof *paths->at);
    paths->at[paths->count++] = rbt_strdup(path);
    return RBT_OK;
}

rbt_err rbt_paths_list(const char *path, rbt_paths *paths, rbt_error *error)
{
    rbt_paths found = {0};
    rbt_err err = RBT_OK;
    if (strchr(path, RBT_PATHS_SEPARATOR) == NULL || access(path, F_OK) == 0) {
        err = add_path(path, &found, error);
    } else {
        char *list = rbt_strdup(path), *next = list;
        while (err == RBT_OK && next != NULL) {
            char *one = next;
            next = strchr(one, RBT_PATHS_SEPARATOR);
            if (next != NULL)
                *next++ = '\0';
            err = add_path(one, &found, error);
        }
        rbt_free(list);
    }
    size_t standard = 0;
    for (size_t i = 0; i < found.count; i++)
        standard += strcmp(found.at[i], "-") == 0;
    if (err == RBT_OK && standard > 1)
        err = rbt_fail(error, RBT_E_USAGE, "- is given twice, and the standard input can be read once; give it once");
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

void rbt_paths_title(const char *path, char *title, size_t room)
{
    size_t first = strcspn(path, "\n"), more = 0;

    for (const char *at = path + first; *at != '\0'; at++)
        more += *at == RBT_PATHS_SEPARATOR;
    if (more == 0)
        (void)snprintf(title, room, "%s", path);
    else
        (void)snprintf(title, room, "%.*s and %zu more", (int)(first < room ? first : room), path, more);
}
