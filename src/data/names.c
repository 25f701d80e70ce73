/* Lists of names. Contract in names.h; proved by tests/unit/test_part_parallel.c and test_datacache.c. */
#include "data/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void rbt_names_free(rbt_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        rbt_free(names->at[i]);
    rbt_free(names->at);
    *names = (rbt_names){0};
}

void rbt_names_sort(rbt_names *names)
{
    size_t n = 0;
    if (names->count == 0)
        return;
    qsort(names->at, names->count, sizeof *names->at, by_bytes);
    for (size_t i = 0; i < names->count; i++) {
        if (n > 0 && strcmp(names->at[n - 1], names->at[i]) == 0)
            rbt_free(names->at[i]);
        else
            names->at[n++] = names->at[i];
    }
    names->count = n;
}

size_t rbt_names_find(const rbt_names *names, const char *name)
{
    char *const *found = names->count > 0 ? bsearch(&name, names->at, names->count, sizeof *names->at, by_bytes) : NULL;
    return found != NULL ? (size_t)(found - names->at) : names->count;
}

rbt_err rbt_names_write(const rbt_names *names, const char *what, rbt_bytes *out, rbt_error *error)
{
    out->n = 0;
    for (size_t i = 0; i < names->count; i++)
        out->n += strlen(names->at[i]) + 1;
    out->at = rbt_try_alloc_raw(out->n, 1);
    if (out->at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the names of %zu labels", what, names->count);
    char *at = (char *)out->at;
    for (size_t i = 0; i < names->count; i++) {
        size_t n = strlen(names->at[i]) + 1;
        memcpy(at, names->at[i], n);
        at += n;
    }
    return RBT_OK;
}

rbt_names rbt_names_read(const void *bytes, size_t n)
{
    const char *at = bytes, *end = at + n;
    RBT_ARRAY(char *) list = {0};
    for (; at < end; at += strlen(at) + 1)
        rbt_array_push(&list, rbt_strdup(at));
    return (rbt_names){list.at, list.count};
}

rbt_err rbt_names_share(const rbt_names *mine, rbt_crew *crew, rbt_err err, const char *what, rbt_names *all,
                        rbt_error *error)
{
    rbt_bytes out = {0}, *in = rbt_alloc(crew->size, sizeof *in);
    RBT_ARRAY(char *) list = {0};
    if (err == RBT_OK)
        err = rbt_names_write(mine, what, &out, error);
    err = rbt_crew_collect(crew, err, out, in, error);
    rbt_free(out.at);
    for (uint32_t r = 0; err == RBT_OK && r < crew->size; r++) {
        const char *at = (const char *)in[r].at, *end = at + in[r].n;
        if (in[r].n > 0 && end[-1] != '\0')
            err = rbt_fail(error, RBT_E_PROTOCOL, "process %u sent names of labels that do not end", r);
        for (; err == RBT_OK && at < end; at += strlen(at) + 1)
            rbt_array_push(&list, rbt_strdup(at));
    }
    rbt_crew_free(crew, in);
    rbt_free(in);
    rbt_names names = {list.at, list.count};
    rbt_names_sort(&names);
    if (err == RBT_OK)
        *all = names;
    else
        rbt_names_free(&names);
    return err;
}
