/* Rows gathered in memory. Contract in gather.h; proved by tests/unit/test_gather.c. */
#include "data/gather.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/feed.h"
#include "data/read.h"
#include "data/stream.h"
#include "data/unpack.h"

#define PEEK_BYTES (size_t)(64 * 1024)       /* enough to see what a file holds */
#define MOVE_BYTES (size_t)(2 * 1024 * 1024) /* of an array that moves to a larger place, at a time */

/* ------------------------------------------------------------------------------------------------- what it suits */

/* Is it a compressed file? *regular: is it a file at all? */
static bool is_packed(const char *path, bool *regular)
{
    char first[RBT_UNPACK_MAGIC_BYTES];
    struct stat status;
    int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *regular = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t n = *regular ? pread(fd, first, sizeof first, 0) : 0;
    if (fd >= 0)
        (void)close(fd);
    return n > 0 && rbt_unpack_recognise(first, (size_t)n);
}

/* What the first file that is not empty holds; RBT_KIND_AUTO: nobody knows. */
static rbt_kind kind_of(const rbt_paths *paths, rbt_content expect)
{
    rbt_kind kind = RBT_KIND_AUTO;
    char *bytes = rbt_alloc(PEEK_BYTES, 1);
    for (size_t i = 0; i < paths->count && kind == RBT_KIND_AUTO; i++) {
        rbt_feed *feed = NULL;
        size_t got = 0;
        if (rbt_feed_open(paths->at[i], &feed, NULL) != RBT_OK)
            break;
        if (rbt_feed_read(feed, bytes, PEEK_BYTES, &got, NULL) == RBT_OK && got > 0)
            kind = rbt_kind_of(&(rbt_input){.name = paths->at[i], .bytes = bytes, .n = got}, expect);
        rbt_feed_close(feed);
    }
    rbt_free(bytes);
    return kind;
}

bool rbt_gather_suits(const rbt_paths *paths, const rbt_reading *reading)
{
    bool packed = false, regular = true;
    rbt_kind kind;
    for (size_t i = 0; i < paths->count && regular; i++)
        packed |= is_packed(paths->at[i], &regular);
    if (paths->count == 1)
        return packed || (!regular && (strcmp(paths->at[0], "-") == 0 || access(paths->at[0], F_OK) == 0));
    if (!packed || !regular || rbt_reading_kind(reading, &kind, NULL) != RBT_OK)
        return false;
    if (kind == RBT_KIND_AUTO)
        kind = kind_of(paths, reading->expect);
    return kind == RBT_KIND_LIBSVM || kind == RBT_KIND_VW || kind == RBT_KIND_CSV;
}

/* ------------------------------------------------------------------------------------------------------ gathering */

/* What has been gathered, and how much there is room for. */
typedef struct gathered {
    rbt_data data;
    size_t rows, nnz;
} gathered;

/* Moves `used` bytes to a place for `room`, and gives back the old one's pages on the way; NULL: no memory. */
static void *moved(void *old, size_t used, size_t room)
{
    char *from = old, *to = rbt_try_alloc_raw(room, 1);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), given = ((uintptr_t)from + page - 1) / page * page;
    for (size_t at = 0; to != NULL && at < used; at += MOVE_BYTES) {
        size_t n = used - at < MOVE_BYTES ? used - at : MOVE_BYTES;
        memcpy(to + at, from + at, n);
        uintptr_t end = (uintptr_t)(from + at + n) / page * page;
        if (end > given) {
            (void)madvise((void *)given, end - given, MADV_DONTNEED);
            given = end;
        }
    }
    if (to != NULL)
        rbt_free(old);
    return to;
}

/* An array of `used` elements gets room for `room`. */
static bool enlarge(void *array, size_t used, size_t room, size_t size)
{
    void *old, *larger;
    memcpy(&old, array, sizeof old);
    larger = room <= SIZE_MAX / size ? moved(old, used * size, room * size) : NULL;
    if (larger != NULL)
        memcpy(array, &larger, sizeof larger);
    return larger != NULL;
}

static bool make_room(gathered *g, const rbt_data *block)
{
    rbt_data *d = &g->data;
    size_t rows = d->rows + block->rows, nnz = d->nnz + block->nnz;
    bool fits = true;
    if (rows > g->rows) {
        rows += rows / 2;
        fits = enlarge(&d->start, d->rows + 1, rows + 1, sizeof *d->start) &&
               enlarge(&d->label, d->rows, rows, sizeof *d->label) &&
               (d->weight == NULL || enlarge(&d->weight, d->rows, rows, sizeof *d->weight));
        g->rows = fits ? rows : g->rows;
    }
    if (fits && nnz > g->nnz) {
        nnz += nnz / 2;
        fits = enlarge(&d->index, d->nnz, nnz, sizeof *d->index) && enlarge(&d->value, d->nnz, nnz, sizeof *d->value);
        g->nnz = fits ? nnz : g->nnz;
    }
    if (fits && block->weight != NULL && d->weight == NULL) {
        d->weight = rbt_try_alloc_raw(g->rows, sizeof *d->weight);
        fits = d->weight != NULL;
        for (size_t r = 0; fits && r < d->rows; r++)
            d->weight[r] = 1;
    }
    return fits;
}

static rbt_err add(gathered *g, const rbt_data *block, const char *path, rbt_error *error)
{
    rbt_data *d = &g->data;
    if (!make_room(g, block)) {
        char title[RBT_PATHS_TITLE_ROOM];
        rbt_paths_title(path, title, sizeof title);
        return rbt_fail(error, RBT_E_MEMORY,
                        "%s: not enough memory for data of %zu rows and more; use fewer rows or a larger machine",
                        title, d->rows);
    }
    for (size_t r = 1; r <= block->rows; r++)
        d->start[d->rows + r] = d->nnz + block->start[r];
    memcpy(d->index + d->nnz, block->index, block->nnz * sizeof *d->index);
    memcpy(d->value + d->nnz, block->value, block->nnz * sizeof *d->value);
    memcpy(d->label + d->rows, block->label, block->rows * sizeof *d->label);
    for (size_t r = 0; d->weight != NULL && r < block->rows; r++)
        d->weight[d->rows + r] = block->weight != NULL ? block->weight[r] : 1;
    if (d->rows == 0 && block->label_names != NULL) { /* all blocks of CSV have the same */
        d->label_names = rbt_alloc(block->label_count, sizeof *d->label_names);
        d->label_count = block->label_count;
        for (size_t i = 0; i < block->label_count; i++)
            d->label_names[i] = rbt_strdup(block->label_names[i]);
    }
    d->rows += block->rows;
    d->nnz += block->nnz;
    d->cols = block->cols > d->cols ? block->cols : d->cols;
    return RBT_OK;
}

rbt_err rbt_gather_read(const char *path, const rbt_reading *reading, size_t piece_bytes, rbt_data *data,
                        rbt_error *error)
{
    gathered g = {.rows = 0};
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    rbt_err err = rbt_rowstream_open(path, reading, true, piece_bytes, &stream, error);
    if (err != RBT_OK)
        return err;
    err = rbt_rowstream_next(stream, &block, error);
    if (err == RBT_OK && rbt_rowstream_take(stream, data)) {
        rbt_rowstream_close(stream);
        return RBT_OK;
    }
    if (err == RBT_OK)
        err = rbt_data_alloc(g.rows, g.nnz, &g.data, error);
    while (err == RBT_OK && block != NULL) {
        err = add(&g, block, path, error);
        if (err == RBT_OK)
            err = rbt_rowstream_next(stream, &block, error);
    }
    for (size_t i = 0, low = rbt_rowstream_low(stream); err == RBT_OK && i < low; i++)
        g.data.index[i]++;
    if (err == RBT_OK)
        g.data.origin = rbt_rowstream_origin(stream);
    rbt_rowstream_close(stream);
    if (err == RBT_OK)
        *data = g.data;
    else
        rbt_data_deinit(&g.data);
    return err;
}
