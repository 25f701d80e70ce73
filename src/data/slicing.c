/* Who reads which bytes of which files. Contract in slicing.h; proved by tests/unit/test_part_parallel.c. */
#include "data/slicing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/idx.h"
#include "data/part.h"
#include "data/paths.h"
#include "data/read.h"
#include "data/unpack.h"

#define PLAN_BYTES_LEAST 33 /* of a file in a shared plan: its numbers, and an end of its path */

void rbt_slicing_free(rbt_slicing *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        rbt_free(plan->at[i].path);
    rbt_array_free(plan);
}

/* ------------------------------------------------------------------------------------------------------- making */

/* What may be done with a file, by its first bytes. What is no regular file cannot be cut: it is read once. */
static rbt_err look_at(rbt_slicing_file *file, bool caches, rbt_error *error)
{
    unsigned char head[RBT_CACHE_HEADER_BYTES];
    struct stat status;
    file->form = RBT_FORM_WHOLE;
    if (strcmp(file->path, "-") == 0)
        return RBT_OK;
    /* A pipe must not be opened before it is read: its writer would meet a reader who goes away. */
    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode))
        return RBT_OK;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int reason = errno;
        if (fd >= 0)
            (void)close(fd);
        return rbt_fail(error, RBT_E_IO, "%s: cannot be opened: %s", file->path, strerror(reason));
    }
    ssize_t got = pread(fd, head, sizeof head, 0);
    size_t n = got > 0 ? (size_t)got : 0;
    (void)close(fd);
    file->bytes = file->units = (uint64_t)status.st_size;
    if (rbt_cache_recognise(head, n)) {
        uint64_t rows = caches ? rbt_cache_rows(head, n) : 0;
        if (rows > 0 && rows < file->bytes) { /* else it is damaged, as whoever reads it will find */
            file->form = RBT_FORM_CACHE;
            file->units = rows;
        }
    } else if (file->bytes > 0 && !rbt_unpack_recognise(head, n) && !rbt_idx_recognise(head, n)) {
        file->form = RBT_FORM_TEXT;
    }
    return RBT_OK;
}

static rbt_err add_files(rbt_slicing *plan, const char *path, uint32_t worker, rbt_error *error)
{
    rbt_paths paths;
    rbt_err err = rbt_paths_list(path, &paths, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < paths.count; i++) {
        rbt_slicing_file file = {.path = rbt_strdup(paths.at[i]), .form = RBT_FORM_WHOLE, .worker = worker};
        rbt_array_push(plan, file);
    }
    rbt_paths_free(&paths);
    return RBT_OK;
}

rbt_err rbt_slicing_make(rbt_slicing *plan, const char *path, const rbt_reading *reading, rbt_error *error)
{
    rbt_kind kind;
    rbt_err err = rbt_reading_kind(reading, &kind, error);
    if (err == RBT_OK)
        err = add_files(plan, path, 0, error);
    for (size_t i = 0; err == RBT_OK && i < plan->count; i++)
        err = look_at(&plan->at[i], kind == RBT_KIND_AUTO || kind == RBT_KIND_CACHE, error);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ {rank} */

bool rbt_path_is_ranked(const char *path)
{
    return strstr(path, RBT_PATH_RANK) != NULL;
}

/* The path with the number in every place of {rank}. */
static char *path_of(const char *path, uint32_t worker)
{
    size_t room = strlen(path) + 1, places = 0, mark = strlen(RBT_PATH_RANK);
    for (const char *at = path; (at = strstr(at, RBT_PATH_RANK)) != NULL; at += mark)
        places++;
    room += places * 10;
    char *text = rbt_alloc(room, 1), *to = text;
    for (const char *at; (at = strstr(path, RBT_PATH_RANK)) != NULL; path = at + mark)
        to += snprintf(to, room - (size_t)(to - text), "%.*s%u", (int)(at - path), path, worker);
    (void)snprintf(to, room - (size_t)(to - text), "%s", path);
    return text;
}

rbt_err rbt_slicing_make_ranked(rbt_slicing *plan, const char *path, uint32_t first_worker, uint32_t workers,
                                rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (uint32_t m = first_worker; err == RBT_OK && m < first_worker + workers; m++) {
        char *own = path_of(path, m);
        err = add_files(plan, own, m, error);
        rbt_free(own);
    }
    return err;
}

/* ------------------------------------------------------------------------------------------------------ sharing */

static rbt_bytes encode(const rbt_slicing *plan)
{
    RBT_ARRAY(uint8_t) out = {0};
    for (size_t i = 0; i < plan->count; i++) {
        const rbt_slicing_file *f = &plan->at[i];
        uint64_t numbers[4] = {f->bytes, f->units, f->form, strlen(f->path) + 1};
        rbt_array_reserve(&out, out.count + sizeof numbers + numbers[3]);
        memcpy(out.at + out.count, numbers, sizeof numbers);
        memcpy(out.at + out.count + sizeof numbers, f->path, numbers[3]);
        out.count += sizeof numbers + numbers[3];
    }
    return (rbt_bytes){out.at, out.count};
}

static rbt_err decode(rbt_bytes in, rbt_slicing *plan, rbt_error *error)
{
    while (in.n > 0) {
        uint64_t numbers[4];
        if (in.n >= PLAN_BYTES_LEAST)
            memcpy(numbers, in.at, sizeof numbers);
        if (in.n < PLAN_BYTES_LEAST || numbers[2] > RBT_FORM_CACHE || numbers[3] == 0 ||
            numbers[3] > in.n - sizeof numbers || in.at[sizeof numbers + numbers[3] - 1] != 0 ||
            numbers[0] > INT64_MAX || numbers[1] > numbers[0])
            return rbt_fail(error, RBT_E_PROTOCOL,
                            "the list of files to read, as another process tells it, is damaged");
        rbt_slicing_file file = {.path = rbt_strdup((const char *)in.at + sizeof numbers),
                                 .bytes = numbers[0],
                                 .units = numbers[1],
                                 .form = (uint32_t)numbers[2]};
        rbt_array_push(plan, file);
        in.at += sizeof numbers + numbers[3];
        in.n -= sizeof numbers + numbers[3];
    }
    return RBT_OK;
}

rbt_err rbt_slicing_share(rbt_slicing *plan, uint32_t planner, rbt_crew *crew, rbt_err err, rbt_error *error)
{
    rbt_bytes mine = crew->rank == planner && err == RBT_OK ? encode(plan) : (rbt_bytes){0};
    rbt_bytes *all = rbt_alloc(crew->size, sizeof *all);
    err = rbt_crew_collect(crew, err, mine, all, error);
    if (err == RBT_OK) {
        if (crew->rank != planner)
            err = decode(all[planner], plan, error);
        rbt_crew_free(crew, all);
    }
    rbt_free(mine.at);
    rbt_free(all);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ cutting */

/* total * k / n without overflow. */
static uint64_t share_of(uint64_t total, uint32_t k, uint32_t n)
{
    return total / n * k + total % n * k / n;
}

rbt_slice *rbt_slicing_cut(const rbt_slicing *plan, uint32_t k, uint32_t n, size_t *count)
{
    RBT_ARRAY(rbt_slice) out = {0};
    uint64_t total = 0, at = 0;
    for (size_t i = 0; i < plan->count; i++)
        total += plan->at[i].units;
    uint64_t low = share_of(total, k, n), high = share_of(total, k + 1, n);
    for (size_t i = 0; i < plan->count; i++) {
        uint64_t units = plan->at[i].units, end = at + units;
        /* Where it begins; what is empty at the very end belongs to the last. */
        bool begins = (at >= low && at < high) || (at == total && k + 1 == n);
        rbt_slice s = {i, 0, units};
        if (plan->at[i].form != RBT_FORM_WHOLE && units > 0) {
            s.from = at < low ? low - at : 0;
            s.to = end > high ? (high > at ? high - at : 0) : units;
            begins = s.from < s.to;
        }
        if (begins)
            rbt_array_push(&out, s);
        at = end;
    }
    *count = out.count;
    return out.at;
}

uint32_t rbt_slicing_sharers(const rbt_slicing *plan, size_t file, uint32_t n, uint32_t *first)
{
    uint64_t total = 0, at = 0;
    uint32_t sharers = 0;
    for (size_t i = 0; i < plan->count; i++) {
        at += i < file ? plan->at[i].units : 0;
        total += plan->at[i].units;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint64_t low = share_of(total, k, n), high = share_of(total, k + 1, n), end = at + plan->at[file].units;
        bool shares = (low > at ? low : at) < (high < end ? high : end);
        *first = shares && sharers == 0 ? k : *first;
        sharers += shares;
    }
    return sharers;
}
