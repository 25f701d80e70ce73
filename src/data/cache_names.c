/* The names in a cache: of labels, of users and items. Contract in cache.h, format in docs/formats.md; proved by
 * tests/unit/test_datacache.c. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/ids.h"
#include "data/names.h"
#include "data/origin.h"

/* Where the origin stands: behind the last zero but one. The end when there is none. */
static const char *origin_of(rbt_cache_names names)
{
    const char *end = names.at + names.bytes, *at = end - 1;
    while (names.origin && at > names.at && at[-1] != '\0')
        at--;
    return names.origin ? at : end;
}

/* Is it one? */
static bool origin_fits(const char *text)
{
    rbt_origin origin;
    bool fits = rbt_origin_parse(text, &origin);
    if (fits)
        rbt_origin_deinit(&origin);
    return fits;
}

bool rbt_cache_names_fit(rbt_cache_names names, const rbt_data *view)
{
    bool ratings = view->content == RBT_CONTENT_RATINGS;
    size_t count = ratings ? view->rows + view->cols : view->label_count;
    const char *at = names.at, *end = names.at + names.bytes, *before = NULL;
    if (names.bytes == 0)
        return count == 0;
    if (end[-1] != '\0' || (names.origin && !origin_fits(origin_of(names))))
        return false;
    end = origin_of(names);
    for (; at < end; at += strlen(at) + 1, count--) {
        if (count == 0 || (!ratings && before != NULL && strcmp(before, at) >= 0))
            return false;
        before = at;
    }
    return count == 0;
}

rbt_err rbt_cache_names_take(rbt_cache_names names, const char *name, rbt_data *view, rbt_error *error)
{
    if (view->content != RBT_CONTENT_RATINGS) {
        const char *origin = origin_of(names);
        view->label_names = rbt_names_read(names.at, (size_t)(origin - names.at)).at;
        view->origin = names.origin ? rbt_strdup(origin) : NULL;
        return RBT_OK;
    }
    rbt_ids *users = NULL, *items = NULL;
    const char *end = names.at + names.bytes, *at = rbt_ids_read(names.at, end, view->rows, &users);
    if (at != NULL)
        at = rbt_ids_read(at, end, view->cols, &items);
    if (at == NULL) {
        rbt_ids_unref(users);
        return rbt_fail(error, RBT_E_DATA,
                        "%s: the cache is damaged: a user or an item is in it twice (or there is no memory for "
                        "them)" RBT_CACHE_REMEDY " with rubato convert",
                        name);
    }
    view->row_names = users;
    view->col_names = items;
    return RBT_OK;
}

void rbt_cache_names_drop(rbt_data *view)
{
    rbt_names labels = {view->label_names, view->label_names != NULL ? view->label_count : 0};
    rbt_names_free(&labels);
    rbt_ids_unref(view->row_names);
    rbt_ids_unref(view->col_names);
    rbt_free(view->origin);
    view->origin = NULL;
    view->label_names = NULL;
    view->row_names = view->col_names = NULL;
}

rbt_err rbt_cache_names_write(const rbt_data *data, const char *path, rbt_bytes *out, rbt_error *error)
{
    if (data->content != RBT_CONTENT_RATINGS) {
        rbt_err err = rbt_names_write(&(rbt_names){data->label_names, data->label_count}, path, out, error);
        if (err == RBT_OK && data->origin != NULL) {
            size_t n = strlen(data->origin) + 1;
            out->at = rbt_realloc(out->at, out->n + n, 1);
            memcpy(out->at + out->n, data->origin, n);
            out->n += n;
        }
        return err;
    }
    if (data->row_names == NULL || data->col_names == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the ratings have no names of users and items", path);
    size_t users, items;
    const char *first = rbt_ids_bytes(data->row_names, &users), *second = rbt_ids_bytes(data->col_names, &items);
    uint8_t *bytes = rbt_try_alloc_raw(users + items + 1, 1);
    if (bytes == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the names of its users and items", path);
    memcpy(bytes, first, users);
    if (items > 0)
        memcpy(bytes + users, second, items);
    *out = (rbt_bytes){bytes, users + items};
    return RBT_OK;
}
