/* Compressed files. Contract in unpack.h; proved by tests/unit/test_unpack.c.
 *
 * The text is unpacked whole: the reader wants to look at it twice (counting, then parsing), and in parallel.
 * RBT_HAVE_ZLIB and RBT_HAVE_ZSTD come from CMakeLists.txt.
 */
#include "data/unpack.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#ifdef RBT_HAVE_ZLIB
#define ZLIB_CONST /* the input is not written to */
#include <zlib.h>
#endif
#ifdef RBT_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/error.h"
#include "base/mem.h"

static bool begins_with(const char *bytes, size_t n, const char *magic, size_t magic_bytes)
{
    return n >= magic_bytes && memcmp(bytes, magic, magic_bytes) == 0;
}

#if !defined RBT_HAVE_ZLIB || !defined RBT_HAVE_ZSTD
static rbt_err absent(const rbt_input *input, const char *feature, const char *package, const char *tool,
                      rbt_error *error)
{
    return rbt_fail(error, RBT_E_UNSUPPORTED,
                    "%s: is compressed with %s, which this build lacks; unpack it with %s, or build Rubato where %s is "
                    "installed",
                    input->name, feature, tool, package);
}
#endif

#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
#define ROOM_LEAST (size_t)(64 * 1024)

/* What has been unpacked so far. */
typedef struct growing {
    char *bytes;
    size_t n, room;
} growing;

/* Makes room for more: the double, or four times the compressed size to begin with. */
static bool make_room(growing *out, const rbt_input *input)
{
    if (out->n < out->room)
        return true;
    size_t room = out->room > 0 ? out->room : input->n < ROOM_LEAST ? ROOM_LEAST / 2 : input->n * 2;
    char *larger = room > SIZE_MAX / 2 ? NULL : rbt_try_alloc_raw(room * 2, 1);
    if (larger == NULL)
        return false;
    if (out->n > 0)
        memcpy(larger, out->bytes, out->n);
    rbt_free(out->bytes);
    out->bytes = larger;
    out->room = room * 2;
    return true;
}

static rbt_err no_room(const rbt_input *input, const growing *out, rbt_error *error)
{
    return rbt_fail(
        error, RBT_E_MEMORY,
        "%s: not enough memory to unpack it (%zu bytes so far); split it into several files, or use a larger "
        "machine",
        input->name, out->n);
}

static rbt_err cut_short(const rbt_input *input, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: the compressed file is cut short at byte %zu; copy it again", input->name,
                    input->n);
}

static rbt_err damaged(const rbt_input *input, size_t at, const char *reason, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: the compressed file is damaged near byte %zu (%s); copy it again",
                    input->name, at, reason);
}
#endif

#ifdef RBT_HAVE_ZLIB
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; gzip's head and tail are wanted */

static size_t at_most_uint(size_t n)
{
    return n < UINT_MAX ? n : UINT_MAX;
}

/* Steps until the end of the last member. */
static rbt_err unpack_members(z_stream *stream, const rbt_input *input, growing *out, rbt_error *error)
{
    size_t done = 0; /* compressed bytes */
    for (;;) {
        if (!make_room(out, input))
            return no_room(input, out, error);
        size_t give = at_most_uint(input->n - done), take = at_most_uint(out->room - out->n);
        stream->next_in = (const Bytef *)(input->bytes + done);
        stream->avail_in = (uInt)give;
        stream->next_out = (Bytef *)(out->bytes + out->n);
        stream->avail_out = (uInt)take;
        int status = inflate(stream, Z_NO_FLUSH);
        done += give - stream->avail_in;
        out->n += take - stream->avail_out;
        if (status == Z_STREAM_END) {
            if (done == input->n)
                return RBT_OK;
            if (!begins_with(input->bytes + done, input->n - done, "\x1f\x8b", 2))
                return damaged(input, done, "something else follows the compressed text", error);
            (void)inflateReset(stream);
        } else if (status == Z_BUF_ERROR || (status == Z_OK && done == input->n && stream->avail_out > 0)) {
            return cut_short(input, error);
        } else if (status == Z_MEM_ERROR) {
            return no_room(input, out, error);
        } else if (status != Z_OK) {
            return damaged(input, done, stream->msg != NULL ? stream->msg : "not gzip", error);
        }
    }
}

static rbt_err unpack_gzip(const rbt_input *input, growing *out, rbt_error *error)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
        return no_room(input, out, error);
    rbt_err err = unpack_members(&stream, input, out, error);
    (void)inflateEnd(&stream);
    return err;
}
#endif

#ifdef RBT_HAVE_ZSTD
static rbt_err unpack_zstd(const rbt_input *input, growing *out, rbt_error *error)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {input->bytes, input->n, 0};
    rbt_err err = stream != NULL ? RBT_OK : no_room(input, out, error);
    size_t left = 1; /* 0: at the end of a frame */
    while (err == RBT_OK && (in.pos < in.size || left != 0)) {
        if (!make_room(out, input)) {
            err = no_room(input, out, error);
            break;
        }
        ZSTD_outBuffer to = {out->bytes, out->room, out->n};
        size_t before = in.pos;
        left = ZSTD_decompressStream(stream, &to, &in);
        bool moved = to.pos > out->n || in.pos > before;
        out->n = to.pos;
        if (ZSTD_isError(left))
            err = damaged(input, in.pos, ZSTD_getErrorName(left), error);
        else if (left != 0 && in.pos == in.size && (!moved || out->n < out->room))
            err = cut_short(input, error);
    }
    (void)ZSTD_freeDStream(stream);
    return err;
}
#endif

rbt_err rbt_input_unpack(rbt_input *input, rbt_error *error)
{
    bool gzip = begins_with(input->bytes, input->n, "\x1f\x8b", 2);
    bool zstd = begins_with(input->bytes, input->n, "\x28\xb5\x2f\xfd", 4);
    if (!gzip && !zstd)
        return RBT_OK;
#ifndef RBT_HAVE_ZLIB
    if (gzip)
        return absent(input, "gzip", "zlib (Debian: zlib1g-dev)", "gunzip", error);
#endif
#ifndef RBT_HAVE_ZSTD
    if (zstd)
        return absent(input, "Zstandard", "libzstd (Debian: libzstd-dev)", "zstd -d", error);
#endif
#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
    growing out = {0};
    rbt_err err = RBT_OK;
#ifdef RBT_HAVE_ZLIB
    if (gzip)
        err = unpack_gzip(input, &out, error);
#endif
#ifdef RBT_HAVE_ZSTD
    if (zstd)
        err = unpack_zstd(input, &out, error);
#endif
    if (err != RBT_OK) {
        rbt_free(out.bytes);
        return err;
    }
    rbt_input unpacked = {.name = input->name, .bytes = out.bytes, .n = out.n};
    rbt_input_close(input);
    *input = unpacked;
#endif
    return RBT_OK;
}
