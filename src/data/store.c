/* Where data is, and what is kept of it. Contract in store.h; proved by tests/unit/test_store.c and
 * tests/cli/test_store.sh. */
#include "data/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/cache_build.h"
#include "data/data.h"
#include "data/idx.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/read.h"

#define NAME_ROOM     64
#define LEFT_OUT_MOST UINT32_MAX /* bad rows that a cache remembers; one with more is made again every time */

/* A source, and where its cache is. */
typedef struct place {
    char *path;      /* of the cache; NULL: no folder can be written to */
    uint64_t source; /* what the cache's number is, but for bad rows left out; 0: the source is no plain file */
    uint64_t other;  /* the same for labels taken the other way, as numbers or as classes; 0: rows may be others */
    bool cache;      /* the source is a cache itself */
} place;

/* ---------------------------------------------------------------------------------------------------- the source */

static void add_text(rbt_hasher *h, const char *text)
{
    rbt_hasher_add(h, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 0);
    rbt_hasher_add(h, text != NULL ? "+" : "-", 1);
}

/* One file's path, size and time of change; false when it is no regular file. */
static bool add_file(rbt_hasher *h, const char *path)
{
    struct stat status;
    char *real = strcmp(path, "-") == 0 ? NULL : realpath(path, NULL);
    bool regular = real != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode);
    if (regular) {
        int64_t numbers[] = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
        add_text(h, real);
        rbt_hasher_add(h, numbers, sizeof numbers);
    }
    free(real);
    return regular;
}

/* How it is read. Whether labels are classes changes what is refused, and so, where rows may be left out, the rows. */
static void add_options(rbt_hasher *h, const rbt_reading *reading)
{
    uint64_t numbers[] = {reading->bits,   reading->skip_bad, reading->unlabelled,
                          reading->expect, reading->base,     reading->skip_bad > 0 && reading->classes};
    add_text(h, reading->format);
    add_text(h, reading->label);
    add_text(h, reading->weight);
    add_text(h, reading->origin);
    rbt_hasher_add(h, numbers, sizeof numbers);
}

/* The number of the way it is read, for the cache's name; 0: as usual. */
static uint64_t options_of(const rbt_reading *reading)
{
    const rbt_reading usual = {0};
    rbt_hasher *own = rbt_hasher_create(0), *plain = rbt_hasher_create(0);
    add_options(own, reading);
    add_options(plain, &usual);
    uint64_t value = rbt_hasher_value(own);
    value = value == rbt_hasher_value(plain) ? 0 : value;
    rbt_hasher_destroy(own);
    rbt_hasher_destroy(plain);
    return value;
}

/* The number of the source; never 0 for files. */
static uint64_t source_of(const rbt_paths *paths, const rbt_reading *reading, bool classes)
{
    rbt_hasher *h = rbt_hasher_create(RBT_CACHE_VERSION);
    bool regular = true;
    for (size_t i = 0; regular && i < paths->count; i++) {
        char *labels = rbt_idx_partner(paths->at[i]); /* images have theirs in another file */
        regular = add_file(h, paths->at[i]);
        if (labels != NULL)
            (void)add_file(h, labels);
        rbt_free(labels);
    }
    if (reading->label != NULL)
        (void)add_file(h, reading->label);
    add_options(h, reading);
    rbt_hasher_add(h, classes ? "c" : "n", 1);
    uint64_t value = rbt_hasher_value(h);
    rbt_hasher_destroy(h);
    return !regular ? 0 : value != 0 ? value : 1;
}

/* The number of the source that a cache was made from; 0 when it has none or is no cache. *cache: it is one. */
static uint64_t source_in(const char *path, bool *cache)
{
    unsigned char head[RBT_CACHE_HEADER_BYTES] = {0}, end[RBT_CACHE_ALIGNMENT] = {0};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *cache = false;
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)(sizeof head + sizeof end) &&
        pread(fd, head, sizeof head, 0) == sizeof head &&
        pread(fd, end, sizeof end, status.st_size - (off_t)sizeof end) == sizeof end)
        *cache = rbt_cache_recognise(head, sizeof head);
    (void)close(fd);
    return *cache ? rbt_cache_source(head, end) : 0;
}

/* ----------------------------------------------------------------------------------------------------- the place */

static char *joined(const char *a, const char *b, const char *c)
{
    size_t room = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = rbt_alloc(room, 1);
    (void)snprintf(text, room, "%s%s%s", a, b, c);
    return text;
}

/* $XDG_CACHE_HOME/rubato or ~/.cache/rubato, made if need be; NULL when there is none that can be written to. */
static char *user_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache != NULL && cache[0] == '/';
    if (!has_cache && (home == NULL || home[0] != '/'))
        return NULL;
    char *above = has_cache ? rbt_strdup(cache) : joined(home, "/.cache", ""), *folder = joined(above, "/rubato", "");
    (void)mkdir(above, 0700);
    (void)mkdir(folder, 0700);
    rbt_free(above);
    if (access(folder, W_OK | X_OK) == 0)
        return folder;
    rbt_free(folder);
    return NULL;
}

/* The folder of a path: "" or ending with a slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = rbt_strdup(path);
    folder[slash != NULL ? slash - path + 1 : 0] = '\0';
    return folder;
}

/* Where the cache of these files, read in this way, goes. A temporary one has the process's number in its name. */
static char *path_of(const char *path, const rbt_paths *paths, uint64_t source, uint64_t options, bool keep)
{
    char *folder = folder_of(paths->at[0]), name[NAME_ROOM], ending[NAME_ROOM] = RBT_CACHE_ENDING, *result = NULL;
    bool pattern = rbt_data_is_pattern(path);
    uint64_t given = rbt_hash(path, strlen(path), options);
    if (options != 0)
        (void)snprintf(ending, sizeof ending, "-%016llx%s", (unsigned long long)options, RBT_CACHE_ENDING);
    (void)snprintf(name, sizeof name, "rubato-%016llx%s", (unsigned long long)given, RBT_CACHE_ENDING);
    if (!keep)
        (void)snprintf(name, sizeof name, "rubato-%016llx-%ld%s", (unsigned long long)source, (long)getpid(),
                       RBT_CACHE_ENDING);
    if (source != 0 && access(folder[0] != '\0' ? folder : ".", W_OK | X_OK) == 0) {
        result = keep && !pattern ? joined(path, ending, "") : joined(folder, name, "");
    } else {
        /* Many folders' caches meet here: the name is that of the real first file. */
        char *real = realpath(paths->at[0], NULL), *user = user_folder();
        uint64_t hash = real != NULL ? rbt_hash(real, strlen(real), given) : 0;
        if (keep)
            (void)snprintf(name, sizeof name, "%016llx%s", (unsigned long long)hash, RBT_CACHE_ENDING);
        result = user != NULL ? joined(user, "/", name) : NULL;
        rbt_free(user);
        free(real);
    }
    rbt_free(folder);
    return result;
}

static rbt_err find_place(const char *path, const rbt_storing *storing, place *found, rbt_error *error)
{
    rbt_paths paths;
    rbt_err err = rbt_paths_list(path, &paths, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < paths.count; i++)
        if (strcmp(paths.at[i], "-") != 0 && access(paths.at[i], R_OK) != 0) {
            err = rbt_fail(error, RBT_E_IO, "%s: cannot be opened: %s", paths.at[i], strerror(errno));
            rbt_paths_free(&paths);
            return err;
        }
    const rbt_reading *reading = storing->reading;
    *found = (place){.source = source_of(&paths, reading, reading->classes)};
    if (reading->skip_bad == 0)
        found->other = source_of(&paths, reading, !reading->classes);
    if (found->source != 0 && paths.count == 1)
        (void)source_in(paths.at[0], &found->cache);
    found->path =
        path_of(path, &paths, found->source, options_of(reading), storing->keep || storing->level == RBT_STORE_BOTH);
    rbt_paths_free(&paths);
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------- reading */

static void note(const rbt_storing *storing, const char *what, const char *path, const rbt_error *error)
{
    if (storing->log != NULL)
        rbt_log_event(storing->log, RBT_LOG_INFO, "store", "cache %s: %s%s%s", path, what, error != NULL ? ": " : "",
                      error != NULL ? error->text : "");
}

/* Data that was read as a whole is in memory, unless it may be streamed. */
static rbt_err open_cache(const char *path, rbt_store_level level, rbt_data *data, rbt_error *error)
{
    if (level == RBT_STORE_DISK)
        return rbt_cache_read_streamed(path, data, error);
    rbt_err err = rbt_data_read(path, data, error);
    if (err == RBT_OK && level == RBT_STORE_BOTH) {
        err = rbt_data_own(data, error);
        if (err != RBT_OK)
            rbt_data_deinit(data);
    }
    return err;
}

/* A cache that was given in the place of text. */
static rbt_err open_given(const char *path, const rbt_storing *storing, rbt_data *data, rbt_error *error)
{
    rbt_err err = open_cache(path, storing->level, data, error);
    if (err == RBT_OK && (err = rbt_origin_fits(storing->reading, data, path, error)) != RBT_OK)
        rbt_data_deinit(data);
    return err;
}

/* Why a kept cache is none of this source: it is cut, and what tells its source apart is at its end; or of another one. */
static rbt_err look_at_kept(const char *path, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    err = rbt_cache_is_whole(input.bytes, input.n, path, error);
    rbt_input_close(&input);
    return err;
}

/* May a cache of that number be used? *left_out: the bad rows it lacks. Labels that tell classes apart are fine as numbers, too; of
 * numbers nobody knows. */
static bool number_fits(const place *p, const rbt_reading *reading, uint64_t number, uint64_t *left_out)
{
    bool stricter = number == p->other && !reading->classes;
    *left_out = stricter ? 0 : number - p->source;
    return number != 0 && *left_out <= reading->skip_bad && *left_out <= LEFT_OUT_MOST;
}

/* Data that is read as other data was may be that very data: then the cache that the file has for itself, whose
 * origin is the one that is asked for, holds what would be read. */
static bool use_own(const char *path, const rbt_storing *storing, rbt_data *data)
{
    rbt_reading reading = *storing->reading;
    rbt_storing own = *storing;
    place p = {0};
    bool cache, same = false;
    uint64_t left_out;
    reading.origin = NULL;
    own.reading = &reading;
    if (storing->reading->origin == NULL || find_place(path, &own, &p, NULL) != RBT_OK)
        return false;
    if (p.path != NULL && number_fits(&p, &reading, source_in(p.path, &cache), &left_out) &&
        open_cache(p.path, storing->level, data, NULL) == RBT_OK) {
        same = data->origin != NULL && strcmp(data->origin, storing->reading->origin) == 0;
        if (same)
            *storing->reading->report = (rbt_read_report){.skipped = left_out};
        else
            rbt_data_deinit(data);
    }
    rbt_free(p.path);
    return same;
}

/* The kept cache, if it stands for the source as it is now; false: it has to be made. */
static bool use_kept(const place *p, const rbt_storing *storing, rbt_data *data)
{
    rbt_error error;
    bool cache;
    if (access(p->path, F_OK) != 0)
        return false;
    uint64_t number = source_in(p->path, &cache), left_out;
    if (number_fits(p, storing->reading, number, &left_out)) {
        if (open_cache(p->path, storing->level, data, &error) == RBT_OK) {
            *storing->reading->report = (rbt_read_report){.skipped = left_out};
            return true;
        }
    } else if (look_at_kept(p->path, &error) == RBT_OK) {
        bool options = number != 0 && number == p->other;
        note(storing,
             options ? "was made with other options, it is made again" : "its source has changed, it is made again",
             p->path, NULL);
        return false;
    }
    char *remedy = strstr(error.text, RBT_CACHE_REMEDY);
    if (remedy != NULL) /* nobody has to */
        *remedy = '\0';
    note(storing, "cannot be used, it is made again", p->path, &error);
    return false;
}

static rbt_err read_to_disk(const char *path, const place *p, const rbt_storing *storing, rbt_data *data,
                            rbt_error *error)
{
    if (p->path == NULL)
        return rbt_fail(error, RBT_E_IO,
                        "%s: --store disk needs a folder for its cache, and neither the data's folder nor "
                        "$XDG_CACHE_HOME/rubato nor ~/.cache/rubato can be written to; set XDG_CACHE_HOME",
                        path);
    const rbt_cache_building how = {.reading = storing->reading, .source = p->source};
    rbt_err err = rbt_cache_build(path, &how, p->path, error);
    if (err == RBT_OK && storing->keep)
        note(storing, "made for the next start", p->path, NULL);
    if (err == RBT_OK)
        err = rbt_cache_read_streamed(p->path, data, error);
    if (!storing->keep)
        (void)unlink(p->path); /* the mapping stays */
    return err;
}

static rbt_err read_to_memory(const char *path, const place *p, const rbt_storing *storing, rbt_data *data,
                              rbt_error *error)
{
    rbt_error reason;
    rbt_err err = rbt_data_read_as(path, storing->reading, data, error);
    if (err != RBT_OK)
        return err;
    if (p->path == NULL)
        note(storing, "not kept: no folder can be written to", path, NULL);
    else if (rbt_cache_write_of(data, rbt_cache_number(p->source, storing->reading), p->path, &reason) == RBT_OK)
        note(storing, "made for the next start", p->path, NULL);
    else
        note(storing, "not kept", p->path, &reason);
    return RBT_OK;
}

static rbt_err read_stored(const char *path, const rbt_storing *storing, rbt_data *data, rbt_error *error)
{
    bool keep = storing->keep || storing->level == RBT_STORE_BOTH;
    place p = {0};
    if (storing->level == RBT_STORE_MEMORY && !keep)
        return rbt_data_read_as(path, storing->reading, data, error);
    rbt_err err = find_place(path, storing, &p, error);
    if (err != RBT_OK)
        return err;
    if (p.cache)
        err = rbt_reading_fits(storing->reading, RBT_KIND_CACHE, path, error);
    if (err == RBT_OK && p.cache)
        err = open_given(path, storing, data, error);
    else if (err == RBT_OK && keep && p.source == 0)
        err =
            rbt_fail(error, RBT_E_USAGE,
                     "%s: is no plain file, whose cache could be found again; save it to a file, or leave out --cache "
                     "auto and --store both",
                     path);
    else if (err == RBT_OK && keep && p.path != NULL && (use_own(path, storing, data) || use_kept(&p, storing, data)))
        err = RBT_OK;
    else if (err == RBT_OK)
        err = storing->level == RBT_STORE_DISK ? read_to_disk(path, &p, storing, data, error)
                                               : read_to_memory(path, &p, storing, data, error);
    rbt_free(p.path);
    return err;
}

/* What is kept of ratings has the names in the file, whatever names the caller has. */
rbt_err rbt_store_read(const char *path, const rbt_storing *storing, rbt_data *data, rbt_error *error)
{
    rbt_reading reading = *storing->reading;
    rbt_storing plain = *storing;
    rbt_read_report report = {0};
    rbt_data d = {0};
    reading.rows = reading.cols = NULL;
    reading.report = reading.report != NULL ? reading.report : &report;
    plain.reading = &reading;
    rbt_err err = read_stored(path, &plain, &d, error);
    if (err == RBT_OK && (err = rbt_origin_check(&reading, &d, path, error)) != RBT_OK)
        rbt_data_deinit(&d);
    if (err == RBT_OK)
        err = rbt_data_rename(&d, storing->reading, path, error);
    if (err == RBT_OK)
        *data = d;
    return err;
}
