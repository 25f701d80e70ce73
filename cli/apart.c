/* No output goes over what is read, nor over another output; the contract stands in cli.h. Proved by tests/cli/test_data.sh. */
#include "cli/cli.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/idx.h"
#include "data/part.h"
#include "data/paths.h"
#include "data/unpack.h"

/* ------------------------------------------------------------------------------------------------------- inputs */

/* Is it a file that is there, and the same as the one to be written? */
static bool is_same_file(const char *in, const char *out)
{
    struct stat a, b;

    return stat(out, &b) == 0 && stat(in, &a) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static rbt_err refuse(const char *out, rbt_error *error)
{
    return rbt_fail(error, RBT_E_USAGE, "%s is read, and would be written over; choose another file for the output",
                    out);
}

rbt_err cli_keep_apart(const char *in, const char *out, rbt_error *error)
{
    rbt_paths paths = {0};
    rbt_error ignored;
    bool same = false;

    if (in == NULL || out == NULL || rbt_paths_list(in, &paths, &ignored) != RBT_OK)
        return RBT_OK;
    for (size_t i = 0; i < paths.count && !same; i++)
        same = is_same_file(paths.at[i], out);
    rbt_paths_free(&paths);
    return same ? refuse(out, error) : RBT_OK;
}

/* May the file hold images, whose labels stand in another one? Of what is compressed only its reader can tell. */
static bool may_hold_images(const char *path)
{
    unsigned char head[RBT_UNPACK_MAGIC_BYTES];
    struct stat status;
    int fd = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd >= 0 ? pread(fd, head, sizeof head, 0) : 0;

    if (fd >= 0)
        (void)close(fd);
    return got > 0 && (rbt_idx_recognise(head, (size_t)got) || rbt_unpack_recognise(head, (size_t)got));
}

/* One file of data, and the labels of its images. */
static rbt_err keep_file(const char *path, const char *label, const char *out, rbt_error *error)
{
    char *partner = label == NULL ? rbt_idx_partner(path) : NULL;
    const char *labels = label != NULL ? label : partner;
    bool same = is_same_file(path, out) || (labels != NULL && is_same_file(labels, out) && may_hold_images(path));

    rbt_free(partner);
    return same ? refuse(out, error) : RBT_OK;
}

/* The path with the worker's number in every place of {rank}; what has no room in an option is cut off. */
static void ranked_path(const char *path, uint32_t worker, char own[RBT_OPTION_ROOM])
{
    size_t n = 0;

    for (const char *at; (at = strstr(path, RBT_PATH_RANK)) != NULL; path = at + strlen(RBT_PATH_RANK))
        if (n < RBT_OPTION_ROOM)
            n += (size_t)snprintf(own + n, RBT_OPTION_ROOM - n, "%.*s%u", (int)(at - path), path, worker);
    if (n < RBT_OPTION_ROOM)
        (void)snprintf(own + n, RBT_OPTION_ROOM - n, "%s", path);
}

rbt_err cli_keep_data_apart(const cli_data *data, const char *out, rbt_error *error)
{
    const bool is_ranked = data->path != NULL && data->workers > 0 && strstr(data->path, RBT_PATH_RANK) != NULL;
    const uint32_t parts = data->path == NULL || out == NULL ? 0 : is_ranked ? data->workers : 1;
    rbt_err err = RBT_OK;

    for (uint32_t m = 0; m < parts && err == RBT_OK; m++) { /* one whose files are missing hides no other */
        char own[RBT_OPTION_ROOM];
        rbt_paths paths = {0};
        rbt_error ignored;

        if (is_ranked)
            ranked_path(data->path, m, own);
        (void)rbt_paths_list(is_ranked ? own : data->path, &paths, &ignored);
        for (size_t i = 0; i < paths.count && err == RBT_OK; i++)
            err = keep_file(paths.at[i], data->label, out, error);
        rbt_paths_free(&paths);
    }
    return err;
}

/* ------------------------------------------------------------------------------------------------------ outputs */

/* The folder that the file is in, or would be; and its name there. */
static bool stat_folder(const char *path, struct stat *folder, const char **name)
{
    const char *slash = strrchr(path, '/');
    char *parent = rbt_strdup(slash == NULL ? "." : path);

    *name = slash == NULL ? path : slash + 1;
    if (slash != NULL)
        parent[slash == path ? 1 : slash - path] = '\0';
    bool found = stat(parent, folder) == 0;
    rbt_free(parent);
    return found;
}

/* Would both be written to one file? What is there already and no file, as /dev/null, takes everything. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat x, y;
    const char *name = NULL, *other = NULL;
    bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;

    if (has_a != has_b || (has_a && !S_ISREG(x.st_mode)))
        return false;
    if (!has_a && (!stat_folder(a, &x, &name) || !stat_folder(b, &y, &other)))
        return false;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino && (has_a || strcmp(name, other) == 0);
}

rbt_err cli_keep_outputs_apart(const cli_output *outputs, size_t n, rbt_error *error)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            const cli_output *a = &outputs[k], *b = &outputs[i];

            if (a->path == NULL || b->path == NULL)
                continue;
            if (strcmp(a->path, "-") == 0 && strcmp(b->path, "-") == 0)
                return rbt_fail(error, RBT_E_USAGE,
                                "--%s and --%s would both be written to the standard output; give one of them a file",
                                a->option, b->option);
            if (strcmp(a->path, "-") != 0 && strcmp(b->path, "-") != 0 && is_one_file(a->path, b->path))
                return rbt_fail(error, RBT_E_USAGE,
                                "--%s and --%s would both be written to %s; give each a file of its own", a->option,
                                b->option, b->path);
        }
    }
    return RBT_OK;
}
