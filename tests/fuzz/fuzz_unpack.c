/* Feeds compressed bytes to what unpacks a whole file and to what unpacks it piece by piece: arbitrary ones, and gzip members and
 * Zstandard frames of arbitrary text, whole, damaged, cut short or followed by something else. Both must give the same text or the same
 * refusal, and what was packed and not damaged must come out. The first byte tells how it is packed, the next two where it is
 * damaged. Run: fuzz_unpack CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/feed.h"
#include "data/unpack.h"
#include "memory_file.h"

#define PACKED_ROOM 8192
#define TEXT_MOST   2048

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

typedef struct packed {
    uint8_t at[PACKED_ROOM];
    size_t n;
} packed;

static void add_gzip(packed *p, const uint8_t *text, size_t n)
{
    z_stream z = {0};

    RBT_ASSERT(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)text;
    z.avail_in = (uInt)n;
    z.next_out = p->at + p->n;
    z.avail_out = (uInt)(PACKED_ROOM - p->n);
    RBT_ASSERT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    p->n = PACKED_ROOM - z.avail_out;
    (void)deflateEnd(&z);
}

static void add_zstd(packed *p, const uint8_t *text, size_t n)
{
    size_t made = ZSTD_compress(p->at + p->n, PACKED_ROOM - p->n, text, n, 1);

    RBT_ASSERT(!ZSTD_isError(made));
    p->n += made;
}

/* What the feed makes of the file; false: it is refused. */
static bool feed_all(const char *path, size_t room, char **text, size_t *n, rbt_error *error)
{
    RBT_ARRAY(char) all = {0};
    rbt_feed *feed = NULL;
    char piece[64];
    size_t got = 1;
    rbt_err err = rbt_feed_open(path, &feed, error);

    while (err == RBT_OK && got > 0) {
        err = rbt_feed_read(feed, piece, room, &got, error);
        for (size_t i = 0; err == RBT_OK && i < got; i++)
            rbt_array_push(&all, piece[i]);
    }
    rbt_feed_close(feed);
    *text = all.at;
    *n = all.count;
    return err == RBT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static packed p;
    rbt_error error, other;
    rbt_input input;
    char path[MEMORY_FILE_ROOM], *text;
    size_t text_n, half;
    bool is_sound;

    if (n < 4 || n > TEXT_MOST)
        return 0;
    half = (n - 3) / 2;
    p.n = 0;
    switch (bytes[0] % 4) {
    case 0:
        memcpy(p.at, bytes + 3, n - 3);
        p.n = n - 3;
        break;
    case 1:
        add_gzip(&p, bytes + 3, n - 3);
        break;
    case 2:
        add_zstd(&p, bytes + 3, n - 3);
        break;
    default: /* two in a row, and sometimes of different kinds */
        add_gzip(&p, bytes + 3, half);
        (bytes[0] & 16 ? add_zstd : add_gzip)(&p, bytes + 3 + half, n - 3 - half);
    }
    is_sound = bytes[0] % 4 != 0 && !(bytes[0] & 12) && !(bytes[0] % 4 == 3 && bytes[0] & 16);
    if (bytes[0] & 4)
        p.at[bytes[1] % p.n] ^= bytes[2];
    if (bytes[0] & 8)
        p.n -= bytes[1] % p.n;
    memory_file(p.at, p.n, path);
    RBT_ASSERT(rbt_input_open(path, &input, &error) == RBT_OK);
    bool whole = rbt_input_unpack(&input, &error) == RBT_OK;
    bool fed = feed_all(path, 1 + bytes[0] / 4u, &text, &text_n, &other);
    RBT_ASSERT(whole == fed && (whole || !is_sound));
    if (whole)
        RBT_ASSERT(input.n == text_n && (text_n == 0 || memcmp(input.bytes, text, text_n) == 0));
    else
        RBT_ASSERT(strncmp(error.text, path, strlen(path)) == 0 && strncmp(other.text, path, strlen(path)) == 0);
    if (is_sound)
        RBT_ASSERT(text_n == n - 3 && memcmp(text, bytes + 3, n - 3) == 0);
    rbt_input_close(&input);
    rbt_free(text);
    return 0;
}
