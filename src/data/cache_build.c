/* A cache made from blocks of rows. Contract in cache_build.h; proved by tests/unit/test_store.c. */
#include "data/cache_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/stream.h"
#include "data/write.h"

#define CREATED "cannot be created"

enum { START, INDEX, VALUE, LABEL, WEIGHT, NAMES, SOURCE, ARRAYS };

struct rbt_cache_builder {
    const char *path;
    int fd[ARRAYS];
    size_t bytes[ARRAYS];
    rbt_data sizes; /* rows, columns, features and names of labels so far; no arrays */
    bool weighted;
    size_t *start;        /* of the block being added */
    float *ones;          /* weights of a block that has none */
    size_t room;          /* rows in both */
    unsigned char *block; /* of an array, on its way to the target */
    const atomic_bool *stop;
};

static rbt_err failed(const rbt_cache_builder *b, const char *what, rbt_error *error)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return rbt_fail(error, RBT_E_IO, "%s: %s: %s%s", b->path, what, strerror(errno),
                    full ? "; it needs room for the data twice while it is made: make room; nothing was left behind"
                    : strcmp(what, CREATED) == 0 ? "; choose a place that can be written"
                                                 : "");
}

/* A file without a name, next to the target. */
static int open_nameless(const char *path)
{
    size_t room = strlen(path) + 16;
    char *name = rbt_alloc(room, 1);
    (void)snprintf(name, room, "%s.part-XXXXXX", path);
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    rbt_free(name);
    return fd;
}

static rbt_err append(rbt_cache_builder *b, int array, const void *bytes, size_t n, rbt_error *error)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = write(b->fd[array], (const char *)bytes + done, n - done);
        if (put >= 0)
            done += (size_t)put;
        else if (errno != EINTR)
            return failed(b, "cannot be written", error);
    }
    b->bytes[array] += n;
    return RBT_OK;
}

rbt_err rbt_cache_builder_create(const char *path, rbt_cache_builder **out, rbt_error *error)
{
    rbt_cache_builder *b = rbt_alloc(1, sizeof *b);
    rbt_err err = RBT_OK;
    b->path = path;
    b->block = rbt_alloc(RBT_CACHE_BLOCK_BYTES, 1);
    for (int i = 0; i < ARRAYS; i++)
        b->fd[i] = -1;
    for (int i = 0; err == RBT_OK && i < ARRAYS; i++) {
        b->fd[i] = open_nameless(path);
        if (b->fd[i] < 0)
            err = failed(b, CREATED, error);
    }
    if (err == RBT_OK)
        err = append(b, START, &(uint64_t){0}, sizeof(uint64_t), error);
    if (err == RBT_OK)
        *out = b;
    else
        rbt_cache_builder_destroy(b);
    return err;
}

void rbt_cache_builder_destroy(rbt_cache_builder *builder)
{
    for (int i = 0; i < ARRAYS; i++)
        if (builder->fd[i] >= 0)
            (void)close(builder->fd[i]);
    rbt_free(builder->start);
    rbt_free(builder->ones);
    rbt_free(builder->block);
    rbt_free(builder);
}

static rbt_err read_block(rbt_cache_builder *b, int array, size_t at, size_t n, rbt_error *error)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(b->fd[array], b->block + done, n - done, (off_t)(at + done));
        if (got > 0)
            done += (size_t)got;
        else if (got == 0)
            return rbt_fail(
                error, RBT_E_IO,
                "%s: its parts, which have no names while it is made, end too soon: something has cut them; "
                "make it again",
                b->path);
        else if (errno != EINTR)
            return failed(b, "its parts cannot be read back", error);
    }
    return RBT_OK;
}

static rbt_err make_room(rbt_cache_builder *b, size_t rows, rbt_error *error)
{
    if (rows <= b->room)
        return RBT_OK;
    rbt_free(b->start);
    rbt_free(b->ones);
    b->start = rbt_try_alloc_raw(rows, sizeof *b->start);
    b->ones = rbt_try_alloc_raw(rows, sizeof *b->ones);
    b->room = b->start != NULL && b->ones != NULL ? rows : 0;
    for (size_t i = 0; i < b->room; i++)
        b->ones[i] = 1;
    return b->room > 0 ? RBT_OK
                       : rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for a block of %zu rows", b->path, rows);
}

/* *same: there they are. */
static rbt_err compare_bytes(rbt_cache_builder *b, int array, size_t at, const char *bytes, size_t n, bool *same,
                             rbt_error *error)
{
    bool s = at + n <= b->bytes[array];
    for (size_t done = 0, piece; s && done < n; done += piece) {
        piece = n - done < RBT_CACHE_BLOCK_BYTES ? n - done : RBT_CACHE_BLOCK_BYTES;
        rbt_err err = read_block(b, array, at + done, piece, error);
        if (err != RBT_OK)
            return err;
        s = memcmp(b->block, bytes + done, piece) == 0;
    }
    *same = s;
    return RBT_OK;
}

/* The first block brings the names of the labels, if they are words; the others must have the same. */
static rbt_err check_names(rbt_cache_builder *b, const rbt_data *block, rbt_error *error)
{
    bool first = b->sizes.rows == 0, same = first || block->label_count == b->sizes.label_count;
    rbt_err err = RBT_OK;
    size_t at = 0;
    for (size_t i = 0; err == RBT_OK && same && i < block->label_count; i++) {
        size_t n = strlen(block->label_names[i]) + 1;
        if (first)
            err = append(b, NAMES, block->label_names[i], n, error);
        else
            err = compare_bytes(b, NAMES, at, block->label_names[i], n, &same, error);
        at += n;
    }
    b->sizes.label_count = first ? block->label_count : b->sizes.label_count;
    if (err == RBT_OK && !same)
        err = rbt_fail(error, RBT_E_UNSUPPORTED,
                       "%s: its files have different words as labels, which cannot be told apart before all have been "
                       "read; use --store memory",
                       b->path);
    return err;
}

rbt_err rbt_cache_builder_add(rbt_cache_builder *builder, const rbt_data *block, rbt_error *error)
{
    rbt_cache_builder *b = builder;
    rbt_err err = make_room(b, block->rows, error);
    if (block->content == RBT_CONTENT_RATINGS)
        err = rbt_fail(error, RBT_E_UNSUPPORTED,
                       "%s: ratings are not made a cache block by block, as --store disk demands; use --store memory, "
                       "or make a cache of them with rubato convert",
                       b->path);
    if (b->sizes.rows == 0)
        b->sizes.content = block->content;
    else if (b->sizes.content != block->content)
        b->sizes.content = RBT_CONTENT_ROWS;
    if (err == RBT_OK)
        err = check_names(b, block, error);
    for (size_t r = 0; err == RBT_OK && r < block->rows; r++)
        b->start[r] = b->sizes.nnz + block->start[r + 1];
    if (err == RBT_OK)
        err = append(b, START, b->start, block->rows * sizeof *b->start, error);
    if (err == RBT_OK)
        err = append(b, INDEX, block->index, block->nnz * sizeof *block->index, error);
    if (err == RBT_OK)
        err = append(b, VALUE, block->value, block->nnz * sizeof *block->value, error);
    if (err == RBT_OK)
        err = append(b, LABEL, block->label, block->rows * sizeof *block->label, error);
    if (err == RBT_OK) /* a later block may have weights */
        err = append(b, WEIGHT, block->weight != NULL ? block->weight : b->ones, block->rows * sizeof *b->ones, error);
    b->weighted |= block->weight != NULL;
    b->sizes.rows += block->rows;
    b->sizes.nnz += block->nnz;
    b->sizes.cols = block->cols > b->sizes.cols ? block->cols : b->sizes.cols;
    return err;
}

/* One array to the target, block by block; the hash of each is added to the list. */
static rbt_err put_array(rbt_cache_builder *b, int array, size_t low, uint64_t **hash, rbt_output *output,
                         rbt_error *error)
{
    static const unsigned char zeros[RBT_CACHE_ALIGNMENT];
    size_t bytes = b->bytes[array];
    rbt_err err = RBT_OK;
    for (size_t at = 0; err == RBT_OK && at < bytes; at += RBT_CACHE_BLOCK_BYTES) {
        size_t n = bytes - at < RBT_CACHE_BLOCK_BYTES ? bytes - at : RBT_CACHE_BLOCK_BYTES;
        err = rbt_writing_check(&(rbt_writing){.path = b->path, .stop = b->stop}, error);
        if (err == RBT_OK)
            err = read_block(b, array, at, n, error);
        uint32_t *index = (uint32_t *)(void *)b->block;
        for (size_t i = 0; array == INDEX && i < n / sizeof *index && at / sizeof *index + i < low; i++)
            index[i]++;
        *(*hash)++ = rbt_hash(b->block, n, 0);
        if (err == RBT_OK)
            err = rbt_output_put(output, b->block, n, error);
    }
    size_t over = bytes % RBT_CACHE_ALIGNMENT;
    if (err == RBT_OK && over > 0)
        err = rbt_output_put(output, zeros, RBT_CACHE_ALIGNMENT - over, error);
    return err;
}

rbt_err rbt_cache_builder_finish(rbt_cache_builder *builder, size_t low, const char *origin, uint64_t source,
                                 rbt_error *error)
{
    rbt_cache_builder *b = builder;
    unsigned char header[RBT_CACHE_HEADER_BYTES];
    rbt_output output;
    size_t blocks = 0;
    b->sizes.weight = b->weighted ? b->ones : NULL; /* only whether there are any matters */
    b->bytes[WEIGHT] = b->weighted ? b->bytes[WEIGHT] : 0;
    b->sizes.origin = (char *)(uintptr_t)origin; /* likewise */
    rbt_err err = origin != NULL ? append(b, NAMES, origin, strlen(origin) + 1, error) : RBT_OK;
    if (err == RBT_OK)
        err = rbt_cache_header(&b->sizes, b->bytes[NAMES], source, b->path, header, error);
    if (err == RBT_OK && source != 0)
        err = append(b, SOURCE, &source, sizeof source, error);
    for (int i = 0; i < ARRAYS; i++)
        blocks += (b->bytes[i] + RBT_CACHE_BLOCK_BYTES - 1) / RBT_CACHE_BLOCK_BYTES;
    if (err == RBT_OK)
        err = rbt_output_open(b->path, &output, error);
    if (err != RBT_OK)
        return err;
    uint64_t *hashes = rbt_alloc(blocks, sizeof *hashes), *next = hashes;
    err = rbt_output_put(&output, header, sizeof header, error);
    for (int i = 0; err == RBT_OK && i < ARRAYS; i++)
        err = put_array(b, i, low, &next, &output, error);
    if (err == RBT_OK) {
        rbt_cache_seal(header, rbt_cache_checksum_of(header, hashes, blocks));
        err = rbt_output_patch(&output, 0, header, sizeof header, error);
    }
    rbt_free(hashes);
    if (err == RBT_OK)
        return rbt_output_finish(&output, source == 0, error); /* as rbt_cache_write_of */
    rbt_output_abandon(&output);
    return err;
}

/* Adds the block and all that follow. */
static rbt_err add_blocks(rbt_cache_builder *b, rbt_rowstream *stream, const rbt_data *block, rbt_error *error)
{
    rbt_err err = RBT_OK;
    while (err == RBT_OK && block != NULL) {
        err = rbt_cache_builder_add(b, block, error);
        if (err == RBT_OK)
            err = rbt_rowstream_next(stream, &block, error);
    }
    return err;
}

rbt_err rbt_cache_build(const char *path, const rbt_cache_building *how, const char *to, rbt_error *error)
{
    rbt_cache_builder *builder = NULL;
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    rbt_data data = {0};
    uint64_t number;
    rbt_err err = rbt_rowstream_open(path, how->reading, true, RBT_ROWSTREAM_PIECE_BYTES, &stream, error);
    if (err != RBT_OK)
        return err;
    err = rbt_rowstream_next(stream, &block, error);
    if (err != RBT_OK)
        goto close_stream;
    if (how->whole && rbt_rowstream_take(stream, &data)) {
        number = rbt_cache_number(how->source, how->reading);
        err = rbt_cache_write_of(&data, number, to, error);
        rbt_data_deinit(&data);
        goto close_stream;
    }
    err = rbt_cache_builder_create(to, &builder, error);
    if (err != RBT_OK)
        goto close_stream;
    err = add_blocks(builder, stream, block, error);
    if (err == RBT_OK) {
        char *origin = rbt_rowstream_origin(stream);
        builder->stop = how->stop != NULL ? how->stop() : NULL;
        number = rbt_cache_number(how->source, how->reading); /* all rows that are left out are known now */
        err = rbt_cache_builder_finish(builder, rbt_rowstream_low(stream), origin, number, error);
        rbt_free(origin);
    }
    rbt_cache_builder_destroy(builder);
close_stream:
    rbt_rowstream_close(stream);
    return err;
}
