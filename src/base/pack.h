/* Small words in bytes: what processes tell each other besides messages, and what they swap.
 *
 * Writing appends to a growing array. Reading trusts nothing: a reader that has run out, or met something impossible, is
 * `bad` from then on and gives zeros and empty texts; who reads asks once, at the end. Little-endian. Proved by
 * tests/unit/test_pack.c. */
#ifndef RBT_BASE_PACK_H
#define RBT_BASE_PACK_H

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

typedef struct rbt_pack {
    uint8_t *at;
    size_t count;
    size_t room;
} rbt_pack;

static inline void rbt_pack_bytes(rbt_pack *pack, const void *bytes, size_t n)
{
    rbt_array_reserve(pack, pack->count + n);
    if (n > 0)
        memcpy(pack->at + pack->count, bytes, n);
    pack->count += n;
}

static inline void rbt_pack_u32(rbt_pack *pack, uint32_t x)
{
    rbt_pack_bytes(pack, &x, sizeof x);
}

static inline void rbt_pack_u64(rbt_pack *pack, uint64_t x)
{
    rbt_pack_bytes(pack, &x, sizeof x);
}

static inline void rbt_pack_f64(rbt_pack *pack, double x)
{
    rbt_pack_bytes(pack, &x, sizeof x);
}

/* NULL is written as the empty text. */
static inline void rbt_pack_text(rbt_pack *pack, const char *text)
{
    size_t n = text != NULL ? strlen(text) : 0;

    rbt_pack_u32(pack, (uint32_t)n);
    rbt_pack_bytes(pack, text, n);
}

typedef struct rbt_unpack {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} rbt_unpack;

static inline rbt_unpack rbt_unpack_of(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    return (rbt_unpack){.at = at, .end = n > 0 ? at + n : at};
}

/* The next n bytes where they lie, or NULL. */
static inline const uint8_t *rbt_unpack_bytes(rbt_unpack *unpack, size_t n)
{
    const uint8_t *at = unpack->at;

    if (unpack->bad || (size_t)(unpack->end - unpack->at) < n) {
        unpack->bad = true;
        return NULL;
    }
    unpack->at += n;
    return at;
}

static inline void rbt_unpack_into(rbt_unpack *unpack, void *out, size_t n)
{
    const uint8_t *at = rbt_unpack_bytes(unpack, n);

    if (at == NULL)
        memset(out, 0, n);
    else if (n > 0)
        memcpy(out, at, n);
}

static inline uint32_t rbt_unpack_u32(rbt_unpack *unpack)
{
    uint32_t x;

    rbt_unpack_into(unpack, &x, sizeof x);
    return x;
}

static inline uint64_t rbt_unpack_u64(rbt_unpack *unpack)
{
    uint64_t x;

    rbt_unpack_into(unpack, &x, sizeof x);
    return x;
}

static inline double rbt_unpack_f64(rbt_unpack *unpack)
{
    double x;

    rbt_unpack_into(unpack, &x, sizeof x);
    return x;
}

/* A text, which must fit with its end and have no byte 0 in it. */
static inline void rbt_unpack_text(rbt_unpack *unpack, char *out, size_t room)
{
    size_t n = rbt_unpack_u32(unpack);
    const uint8_t *at = n < room ? rbt_unpack_bytes(unpack, n) : NULL;

    if (at == NULL || memchr(at, 0, n) != NULL) {
        unpack->bad = true;
        n = 0;
    } else {
        memcpy(out, at, n);
    }
    out[n] = '\0';
}

/* What others say goes to a terminal, whose cursor it must not move. */
static inline void rbt_make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

/* A text that will be printed. */
static inline void rbt_unpack_printable(rbt_unpack *unpack, char *out, size_t room)
{
    rbt_unpack_text(unpack, out, room);
    rbt_make_printable(out);
}

/* Has everything been read, and nothing amiss? */
static inline bool rbt_unpack_done(const rbt_unpack *unpack)
{
    return !unpack->bad && unpack->at == unpack->end;
}

#endif
