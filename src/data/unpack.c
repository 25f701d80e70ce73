/* Compressed files. Contract in unpack.h; proved by tests/unit/test_unpack.c and test_stream.c.
 *
 * rbt_input_unpack unpacks the text whole: the reader wants to look at it twice (counting, then parsing), and in
 * parallel. RBT_HAVE_ZLIB and RBT_HAVE_ZSTD come from CMakeLists.txt: their headers are there. The libraries are loaded by the
 * first file that needs them.
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
#include <zstd_errors.h>
#endif

#include "base/error.h"
#include "base/library.h"
#include "base/mem.h"

#define ROOM_LEAST       (size_t)(64 * 1024)
#define ZSTD_HEAD_MAX    18        /* bytes of a frame that say how long it is, at most */
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; gzip's head and tail are wanted */

#ifdef RBT_HAVE_ZLIB
#define ZLIB_FUNCTIONS(F)                                                                                              \
    F(inflate)                                                                                                         \
    F(inflateEnd)                                                                                                      \
    F(inflateInit2_)                                                                                                   \
    F(inflateReset)                                                                                                    \
    F(zlibVersion)

RBT_LIBRARY_DECLARE(rbt_zlib, ZLIB_FUNCTIONS);
RBT_LIBRARY_DEFINE(rbt_zlib, ZLIB_FUNCTIONS, "libz.so.1", "files packed by gzip need zlib", "zlib1g");
#endif

#ifdef RBT_HAVE_ZSTD
#define ZSTD_FUNCTIONS(F)                                                                                              \
    F(ZSTD_createDStream)                                                                                              \
    F(ZSTD_decompressStream)                                                                                           \
    F(ZSTD_freeDStream)                                                                                                \
    F(ZSTD_getErrorCode)                                                                                               \
    F(ZSTD_getErrorName)                                                                                               \
    F(ZSTD_getFrameContentSize)                                                                                        \
    F(ZSTD_isError)

RBT_LIBRARY_DECLARE(rbt_zstd, ZSTD_FUNCTIONS);
RBT_LIBRARY_DEFINE(rbt_zstd, ZSTD_FUNCTIONS, "libzstd.so.1", "files packed by zstd need libzstd", "libzstd1");
#endif

struct rbt_unpacker {
    const char *name;
    size_t taken; /* compressed bytes so far */
    bool whole;   /* a member or frame has ended, and nothing has been taken since */
#ifdef RBT_HAVE_ZLIB
    z_stream gzip;
#endif
#ifdef RBT_HAVE_ZSTD
    ZSTD_DStream *zstd;             /* NULL: it is gzip */
    char frame_head[ZSTD_HEAD_MAX]; /* what has been taken of the frame that has begun, its first bytes ... */
    size_t frame_head_n;
    unsigned long long frame_given; /* ... and what it has given */
    size_t wanted;                  /* bytes that libzstd asks for next: the rest of a block; 0: a frame begins */
#endif
};

/* What compressed files begin with. */
typedef struct magic {
    unsigned char at[RBT_UNPACK_MAGIC_BYTES];
    size_t n;
    unsigned char mask; /* the bits of the first byte that count */
} magic;

static const magic gzip_member = {{0x1f, 0x8b}, 2, 0xff};
static const magic zstd_frame = {{0x28, 0xb5, 0x2f, 0xfd}, 4, 0xff};
static const magic zstd_skippable = {{0x50, 0x2a, 0x4d, 0x18}, 4, 0xf0}; /* a frame without text: pzstd's first */

/* Are the bytes, as far as there are any, those of the magic? */
static bool agree(const unsigned char *bytes, size_t n, const magic *m)
{
    size_t most = n < m->n ? n : m->n;
    return most == 0 || ((bytes[0] & m->mask) == m->at[0] && memcmp(bytes + 1, m->at + 1, most - 1) == 0);
}

static bool is_gzip(const void *bytes, size_t n)
{
    return n >= gzip_member.n && agree(bytes, n, &gzip_member);
}

static bool is_zstd(const void *bytes, size_t n)
{
    return n >= zstd_frame.n && (agree(bytes, n, &zstd_frame) || agree(bytes, n, &zstd_skippable));
}

bool rbt_unpack_recognise(const void *bytes, size_t n)
{
    return is_gzip(bytes, n) || is_zstd(bytes, n);
}

bool rbt_unpack_is_undecided(const void *bytes, size_t n)
{
    return !rbt_unpack_recognise(bytes, n) && n < RBT_UNPACK_MAGIC_BYTES &&
           (agree(bytes, n, &gzip_member) || agree(bytes, n, &zstd_frame) || agree(bytes, n, &zstd_skippable));
}

#if !defined RBT_HAVE_ZLIB || !defined RBT_HAVE_ZSTD
static rbt_err absent(const char *name, const char *feature, const char *package, const char *tool, rbt_error *error)
{
    return rbt_fail(error, RBT_E_UNSUPPORTED,
                    "%s: is compressed with %s, which this build lacks; unpack it with %s, or build Rubato where %s is "
                    "installed",
                    name, feature, tool, package);
}
#endif

#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
static rbt_err load(rbt_library *library, const char *name, const char *tool, rbt_error *error)
{
    rbt_error why;
    if (rbt_library_load(library, &why) == RBT_OK)
        return RBT_OK;
    return rbt_fail(error, why.code, "%s: %s; or unpack it with %s", name, why.text, tool);
}
#endif

static rbt_err no_room(const char *name, size_t so_far, rbt_error *error)
{
    return rbt_fail(
        error, RBT_E_MEMORY,
        "%s: not enough memory to unpack it (%zu bytes so far); split it into several files, or use a larger "
        "machine",
        name, so_far);
}

/* ------------------------------------------------------------------------------------------------ step by step */

#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
static rbt_err damaged(const rbt_unpacker *u, const char *reason, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: the compressed file is damaged near byte %zu (%s); copy it again", u->name,
                    u->taken, reason);
}
#endif

#ifdef RBT_HAVE_ZLIB
static size_t at_most_uint(size_t n)
{
    return n < UINT_MAX ? n : UINT_MAX;
}

static rbt_err step_gzip(rbt_unpacker *u, const char *bytes, size_t n, size_t *taken, char *out, size_t room,
                         size_t *given, rbt_error *error)
{
    size_t give = at_most_uint(n), take = at_most_uint(room);
    if (u->whole && n > 0) {
        if (bytes[0] != '\x1f')
            return damaged(u, "something else follows the compressed text", error);
        (void)rbt_zlib.inflateReset(&u->gzip);
        u->whole = false;
    }
    if (u->whole)
        return RBT_OK;
    u->gzip.next_in = (const Bytef *)bytes;
    u->gzip.avail_in = (uInt)give;
    u->gzip.next_out = (Bytef *)out;
    u->gzip.avail_out = (uInt)take;
    int status = rbt_zlib.inflate(&u->gzip, Z_NO_FLUSH);
    *taken = give - u->gzip.avail_in;
    *given = take - u->gzip.avail_out;
    u->taken += *taken;
    u->whole = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR)
        return no_room(u->name, u->taken, error);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) /* the last: nothing could be done */
        return damaged(u, u->gzip.msg != NULL ? u->gzip.msg : "not gzip", error);
    return RBT_OK;
}
#endif

#ifdef RBT_HAVE_ZSTD
static rbt_err failed_zstd(const rbt_unpacker *u, size_t status, rbt_error *error)
{
    if (rbt_zstd.ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge)
        return rbt_fail(
            error, RBT_E_LIMIT,
            "%s: was packed by zstd with a window larger than 128 MiB; unpack it with zstd -d --long=31, or "
            "pack it without --long",
            u->name);
    return damaged(u, rbt_zstd.ZSTD_getErrorName(status), error);
}

/* Unpacked in pieces, a frame that has less text than it says is no error to libzstd (1.5.4); to us it is. A step that
 * fails does not tell what it has taken: it is given a block at a time, so that the place of the damage is known. */
static rbt_err step_zstd(rbt_unpacker *u, const char *bytes, size_t n, size_t *taken, char *out, size_t room,
                         size_t *given, rbt_error *error)
{
    size_t most = u->wanted > 0 ? u->wanted : ZSTD_HEAD_MAX;
    ZSTD_inBuffer in = {bytes, n < most ? n : most, 0};
    ZSTD_outBuffer to = {out, room, 0};
    if (u->whole && n == 0)
        return RBT_OK;
    if (u->whole)
        u->frame_head_n = u->frame_given = 0;
    size_t left = rbt_zstd.ZSTD_decompressStream(u->zstd, &to, &in);
    size_t head = ZSTD_HEAD_MAX - u->frame_head_n < in.pos ? ZSTD_HEAD_MAX - u->frame_head_n : in.pos;
    *taken = in.pos;
    *given = to.pos;
    memcpy(u->frame_head + u->frame_head_n, bytes, head);
    u->frame_head_n += head;
    u->taken += in.pos;
    u->frame_given += to.pos;
    u->whole = left == 0;
    u->wanted = left;
    if (rbt_zstd.ZSTD_isError(left))
        return failed_zstd(u, left, error);
    unsigned long long told = u->whole ? rbt_zstd.ZSTD_getFrameContentSize(u->frame_head, u->frame_head_n) : 0;
    if (u->whole && told < ZSTD_CONTENTSIZE_ERROR && u->frame_given != told) /* else it does not tell */
        return damaged(u, "a frame has less text than it says", error);
    return RBT_OK;
}
#endif

#ifdef RBT_HAVE_ZLIB
/* Memory is one thing that may be wanting; the library that was found may be another one, too. */
static rbt_err begin_gzip(rbt_unpacker *u, rbt_error *error)
{
    rbt_err err = load(&rbt_zlib_library, u->name, "gunzip", error);
    if (err != RBT_OK)
        return err;
    int status = rbt_zlib.inflateInit2_(&u->gzip, GZIP_WINDOW_BITS, ZLIB_VERSION, sizeof u->gzip);
    if (status == Z_OK)
        return RBT_OK;
    if (status == Z_MEM_ERROR)
        return no_room(u->name, 0, error);
    return rbt_fail(error, RBT_E_UNSUPPORTED,
                    "%s: zlib here is version %s, which does not begin to unpack for a program built with version %s "
                    "(%s); install the version that comes with Debian 12, or a later one (zlib1g); or unpack it with "
                    "gunzip",
                    u->name, rbt_zlib.zlibVersion(), ZLIB_VERSION,
                    status == Z_VERSION_ERROR  ? "its interface is another one"
                    : status == Z_STREAM_ERROR ? "it calls what it is asked for invalid"
                                               : "it does not say why");
}
#else
static rbt_err begin_gzip(rbt_unpacker *u, rbt_error *error)
{
    return absent(u->name, "gzip", "zlib (Debian: zlib1g-dev)", "gunzip", error);
}
#endif

#ifdef RBT_HAVE_ZSTD
static rbt_err begin_zstd(rbt_unpacker *u, rbt_error *error)
{
    rbt_err err = load(&rbt_zstd_library, u->name, "zstd -d", error);
    if (err == RBT_OK && (u->zstd = rbt_zstd.ZSTD_createDStream()) == NULL)
        err = no_room(u->name, 0, error);
    return err;
}
#else
static rbt_err begin_zstd(rbt_unpacker *u, rbt_error *error)
{
    return absent(u->name, "Zstandard", "libzstd (Debian: libzstd-dev)", "zstd -d", error);
}
#endif

rbt_err rbt_unpacker_create(const char *name, const void *bytes, size_t n, rbt_unpacker **out, rbt_error *error)
{
    rbt_unpacker *u = rbt_alloc(1, sizeof *u);
    u->name = name;
    rbt_err err = is_zstd(bytes, n) ? begin_zstd(u, error) : begin_gzip(u, error);
    if (err == RBT_OK)
        *out = u;
    else
        rbt_free(u);
    return err;
}

void rbt_unpacker_destroy(rbt_unpacker *unpacker)
{
    if (unpacker == NULL)
        return;
#ifdef RBT_HAVE_ZSTD
    if (unpacker->zstd != NULL)
        (void)rbt_zstd.ZSTD_freeDStream(unpacker->zstd);
#endif
#ifdef RBT_HAVE_ZLIB
    if (unpacker->gzip.state != NULL)
        (void)rbt_zlib.inflateEnd(&unpacker->gzip);
#endif
    rbt_free(unpacker);
}

rbt_err rbt_unpacker_step(rbt_unpacker *unpacker, const char *bytes, size_t n, size_t *taken, char *out, size_t room,
                          size_t *given, rbt_error *error)
{
    *taken = *given = 0;
#ifdef RBT_HAVE_ZSTD
    if (unpacker->zstd != NULL)
        return step_zstd(unpacker, bytes, n, taken, out, room, given, error);
#endif
#ifdef RBT_HAVE_ZLIB
    return step_gzip(unpacker, bytes, n, taken, out, room, given, error);
#else
    (void)bytes, (void)n, (void)out, (void)room;
    return rbt_fail(error, RBT_E_UNSUPPORTED, "%s: is compressed with something this build lacks", unpacker->name);
#endif
}

rbt_err rbt_unpacker_end(const rbt_unpacker *unpacker, rbt_error *error)
{
    if (unpacker->whole)
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA, "%s: the compressed file is cut short at byte %zu; copy it again",
                    unpacker->name, unpacker->taken);
}

/* ----------------------------------------------------------------------------------------------------- a whole */

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

static rbt_err unpack_whole(rbt_unpacker *u, const rbt_input *input, growing *out, rbt_error *error)
{
    size_t done = 0, taken = 0, given = 1;
    while (done < input->n || given > 0) {
        if (!make_room(out, input))
            return no_room(input->name, out->n, error);
        rbt_err err = rbt_unpacker_step(u, input->bytes + done, input->n - done, &taken, out->bytes + out->n,
                                        out->room - out->n, &given, error);
        if (err != RBT_OK)
            return err;
        done += taken;
        out->n += given;
    }
    return rbt_unpacker_end(u, error);
}

rbt_err rbt_input_unpack(rbt_input *input, rbt_error *error)
{
    rbt_unpacker *u = NULL;
    growing out = {0};
    if (!rbt_unpack_recognise(input->bytes, input->n))
        return RBT_OK;
    rbt_err err = rbt_unpacker_create(input->name, input->bytes, input->n, &u, error);
    if (err != RBT_OK)
        return err;
    err = unpack_whole(u, input, &out, error);
    rbt_unpacker_destroy(u);
    if (err != RBT_OK) {
        rbt_free(out.bytes);
        return err;
    }
    rbt_input unpacked = {.name = input->name, .bytes = out.bytes, .n = out.n};
    rbt_input_close(input);
    *input = unpacked;
    return RBT_OK;
}
