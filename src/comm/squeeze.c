/* Squeezing and unsqueezing bodies; the contract is in squeeze.h.
 *
 * Layout: a byte of what was done (LZ4, KEYS), u64 bytes of the real body; with LZ4 u64 bytes of the sections, and what
 * follows is packed. The sections are, part after part as in the body, the keys (sparse) and the values, each a byte that
 * says how and then the rest. Numbers of varying length have seven bits to a byte, the lowest first. */
#include "comm/squeeze.h"

#include "base/error.h"
#include "base/lz4.h"
#include "math/half.h"

enum { DONE_LZ4 = 1, DONE_KEYS = 2 };
enum { KEYS_PLAIN, KEYS_DELTA, KEYS_KNOWN };
enum { VALUES_HALF = 1, VALUES_ZEROS = 2 }; /* or both, or neither */

#define HEAD_BYTES   9
#define SIZE_BYTES   8
#define VARINT_BYTES 10 /* at most */
#define RUN_LEAST    3u /* zeros: fewer are not worth two counts */

/* ---------------------------------------------------------------------------------------------------- words */

static const struct word {
    const char *name;
    unsigned codec;
} words[] = {{"delta", RBT_CODEC_DELTA},
             {"keys", RBT_CODEC_KEYS},
             {"zeros", RBT_CODEC_ZEROS},
             {"lz4", RBT_CODEC_LZ4},
             {"fp16", RBT_CODEC_FP16}};

#define WORDS (sizeof words / sizeof words[0])

static unsigned codec_of(const char *name, size_t n)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strlen(words[i].name) == n && strncmp(words[i].name, name, n) == 0)
            return words[i].codec;
    return 0;
}

rbt_err rbt_codec_parse(const char *text, unsigned *codec, rbt_error *error)
{
    unsigned found = 0;

    if (text == NULL || strcmp(text, "none") == 0 || strcmp(text, "auto") == 0) {
        *codec = 0;
        return RBT_OK;
    }
    for (const char *at = text, *end; at != NULL; at = end != NULL ? end + 1 : NULL) {
        unsigned one;

        end = strchr(at, ',');
        one = codec_of(at, end != NULL ? (size_t)(end - at) : strlen(at));
        if (one == 0)
            return rbt_fail(error, RBT_E_USAGE,
                            "--codec '%s' is unknown; give none, or some of delta, keys, zeros, lz4 and fp16, like "
                            "delta,zeros,lz4",
                            text);
        if (found & one)
            return rbt_fail(error, RBT_E_USAGE, "--codec '%s' names a codec twice; name it once", text);
        found |= one;
    }
    rbt_error absent;
    if (found & RBT_CODEC_LZ4 && rbt_lz4_load(&absent) != RBT_OK)
        return rbt_fail(error, RBT_E_USAGE, "--codec lz4: %s, or leave it out", absent.text);
    *codec = found;
    return RBT_OK;
}

void rbt_codec_text(unsigned codec, char text[RBT_CODEC_ROOM])
{
    size_t n = 0;

    for (size_t i = 0; i < WORDS; i++)
        if (codec & words[i].codec) {
            if (n > 0)
                text[n++] = ',';
            memcpy(text + n, words[i].name, strlen(words[i].name));
            n += strlen(words[i].name);
        }
    if (n == 0) {
        memcpy(text, "none", 4);
        n = 4;
    }
    text[n] = '\0';
}

/* -------------------------------------------------------------------------------------------------- writing */

static uint8_t *put_varint(uint8_t *at, uint64_t x)
{
    for (; x > 127; x >>= 7)
        *at++ = (uint8_t)(x | 128);
    *at++ = (uint8_t)x;
    return at;
}

/* Room for so many bytes behind what there is. */
static uint8_t *make_room(rbt_pack *out, size_t most)
{
    rbt_array_reserve(out, out->count + most);
    return out->at + out->count;
}

static void put_byte(rbt_pack *out, uint8_t x)
{
    rbt_pack_bytes(out, &x, 1);
}

/* Small integers of either sign to small ones without: 0, -1, 1, -2, ... */
static uint64_t fold(int64_t x)
{
    return (uint64_t)x << 1 ^ (uint64_t)(x >> 63);
}

static int64_t unfold(uint64_t x)
{
    return (int64_t)(x >> 1 ^ -(x & 1));
}

/* Appends the differences, if they are smaller; only the first may be 0, so the others are less one. */
static bool put_delta(const rbt_snap *snap, rbt_pack *out)
{
    uint8_t *start = make_room(out, 1 + snap->count * (size_t)5), *at = start;

    *at++ = KEYS_DELTA;
    at = put_varint(at, snap->index[0]);
    for (uint32_t k = 1; k < snap->count; k++)
        at = put_varint(at, snap->index[k] - snap->index[k - 1] - 1);
    if ((size_t)(at - start) > snap->count * sizeof *snap->index)
        return false;
    out->count += (size_t)(at - start);
    return true;
}

static void put_keys(const rbt_snap *snap, unsigned codec, const rbt_keys *keys, rbt_pack *out)
{
    if (codec & RBT_CODEC_KEYS && keys != NULL && rbt_keys_may(snap->count)) {
        uint64_t hash = rbt_keys_hash(snap->index, snap->count);

        if (rbt_keys_find(keys, hash, snap->count) != NULL) {
            put_byte(out, KEYS_KNOWN);
            rbt_pack_u64(out, hash);
            return;
        }
    }
    if (codec & (RBT_CODEC_DELTA | RBT_CODEC_KEYS) && put_delta(snap, out))
        return;
    put_byte(out, KEYS_PLAIN);
    rbt_pack_bytes(out, snap->index, snap->count * sizeof *snap->index);
}

static bool is_zero(const rbt_snap *snap, uint32_t i)
{
    return snap->type == RBT_I64 ? snap->i64[i] == 0 : snap->i32[i] == 0; /* of f32 the bits: -0 is not */
}

static bool has_halves(const rbt_snap *snap)
{
    for (uint32_t i = 0; i < snap->count; i++)
        if (!rbt_half_has(snap->f32[i]))
            return false;
    return true;
}

static uint8_t *put_halves(uint8_t *at, const float *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, at += 2) {
        uint16_t half = rbt_half_of(values[i]);

        memcpy(at, &half, sizeof half);
    }
    return at;
}

/* Values between runs of zeros. */
static uint8_t *put_literals(uint8_t *at, const rbt_snap *snap, uint32_t first, uint32_t n, bool half)
{
    if (half)
        return put_halves(at, snap->f32 + first, n);
    if (snap->type == RBT_F32) {
        memcpy(at, snap->f32 + first, n * sizeof *snap->f32);
        return at + n * sizeof *snap->f32;
    }
    for (uint32_t i = first; i < first + n; i++)
        at = put_varint(at, fold(snap->type == RBT_I32 ? snap->i32[i] : snap->i64[i]));
    return at;
}

/* The end of the values from `first` on that are not zeros, or too few of them in a row. */
static uint32_t literals_end(const rbt_snap *snap, uint32_t first)
{
    uint32_t zeros = 0;

    for (uint32_t i = first; i < snap->count; i++) {
        zeros = is_zero(snap, i) ? zeros + 1 : 0;
        if (zeros == RUN_LEAST)
            return i + 1 - RUN_LEAST;
    }
    return snap->count - zeros;
}

/* Appends values as runs of zeros and of others, if that is smaller than `plain` bytes. */
static bool put_zeros(const rbt_snap *snap, bool half, size_t plain, rbt_pack *out)
{
    size_t widest = snap->type == RBT_I64 ? VARINT_BYTES : 5;
    uint8_t *start = make_room(out, 1 + 2 * VARINT_BYTES + snap->count * (widest + 2)), *at = start;

    *at++ = (uint8_t)(VALUES_ZEROS | (half ? VALUES_HALF : 0));
    for (uint32_t i = 0; i < snap->count;) {
        uint32_t first = i, end;

        while (i < snap->count && is_zero(snap, i))
            i++;
        end = literals_end(snap, i);
        at = put_varint(at, i - first);
        at = put_varint(at, end - i);
        at = put_literals(at, snap, i, end - i, half);
        i = end;
    }
    if ((size_t)(at - start) > plain)
        return false;
    out->count += (size_t)(at - start);
    return true;
}

static void put_values(const rbt_snap *snap, unsigned codec, rbt_pack *out)
{
    bool half = codec & RBT_CODEC_FP16 && snap->type == RBT_F32 && has_halves(snap);
    size_t plain = snap->count * (half ? sizeof(uint16_t) : rbt_type_size(snap->type));

    if (codec & RBT_CODEC_ZEROS && put_zeros(snap, half, plain, out))
        return;
    put_byte(out, half ? VALUES_HALF : 0);
    if (half) {
        put_halves(make_room(out, plain), snap->f32, snap->count);
        out->count += plain;
    } else {
        rbt_pack_bytes(out, snap->value, plain);
    }
}

static const rbt_snap *snap_of(const rbt_message *message, size_t part)
{
    const rbt_snap *snap = message->parts.at[part].snap;

    return snap != NULL && snap->count > 0 ? snap : NULL;
}

/* Both ends note the lists of a message when all of it has been looked up: in between, the ends agree. A list that is known
 * is noted again, which only matters when another took its place in this very message. */
static bool note_keys(const rbt_message *message, rbt_keys *keys, bool with_lists)
{
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_snap *snap = snap_of(message, i);

        if (snap != NULL && snap->index != NULL && rbt_keys_may(snap->count) &&
            !rbt_keys_note(keys, rbt_keys_hash(snap->index, snap->count), snap->count, with_lists ? snap->index : NULL))
            return false;
    }
    return true;
}

/* Packs what stands behind `start` in `out` through LZ4, if that is smaller. */
static bool pack_sections(rbt_pack *out, size_t start)
{
    uint64_t n = out->count - start;
    uint8_t *packed;
    size_t size;

    if (n <= SIZE_BYTES)
        return false;
    packed = rbt_try_alloc_raw((size_t)n - SIZE_BYTES, 1);
    if (packed == NULL)
        return false;
    size = rbt_lz4_pack(out->at + start, (size_t)n, packed, (size_t)n - SIZE_BYTES);
    if (size > 0) {
        out->count = start;
        rbt_pack_u64(out, n);
        rbt_pack_bytes(out, packed, size);
    }
    rbt_free(packed);
    return size > 0;
}

bool rbt_squeeze(const rbt_message *message, unsigned codec, rbt_keys *keys, rbt_pack *out)
{
    uint64_t plain = rbt_wire_body_size(message);
    size_t start = out->count;
    uint8_t done = codec & RBT_CODEC_KEYS && keys != NULL ? DONE_KEYS : 0;

    if (codec == 0 || plain <= HEAD_BYTES)
        return false;
    put_byte(out, done);
    rbt_pack_u64(out, plain);
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_snap *snap = snap_of(message, i);

        if (snap != NULL && snap->index != NULL)
            put_keys(snap, codec, keys, out);
        if (snap != NULL)
            put_values(snap, codec, out);
    }
    if (codec & RBT_CODEC_LZ4 && pack_sections(out, start + HEAD_BYTES))
        done |= DONE_LZ4;
    if (out->count - start >= plain) {
        out->count = start;
        return false;
    }
    out->at[start] = done;
    if (done & DONE_KEYS)
        (void)note_keys(message, keys, false);
    return true;
}

/* -------------------------------------------------------------------------------------------------- reading */

static rbt_err refuse(rbt_error *error, const char *what)
{
    return rbt_fail(error, RBT_E_PROTOCOL,
                    "a message whose body is squeezed: %s; the peer is damaged or speaks another version", what);
}

/* Sets `bad` when there is none, or it has more than 64 bits. */
static uint64_t get_varint(rbt_unpack *in)
{
    uint64_t x = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t *byte = rbt_unpack_bytes(in, 1);

        if (byte == NULL || (shift == 63 && *byte > 1))
            break;
        x |= (uint64_t)(*byte & 127) << shift;
        if (*byte < 128)
            return x;
    }
    in->bad = true;
    return 0;
}

static void get_delta(rbt_unpack *in, rbt_snap *snap)
{
    uint64_t key = get_varint(in);

    for (uint32_t k = 0;; k++) {
        if (key > UINT32_MAX)
            in->bad = true;
        if (in->bad)
            return;
        snap->index[k] = (uint32_t)key;
        if (k + 1 == snap->count)
            return;
        key = get_varint(in); /* looked at alone first: the sum might wrap */
        key = key > UINT32_MAX ? key : snap->index[k] + key + 1;
    }
}

static rbt_err get_keys(rbt_unpack *in, rbt_snap *snap, const rbt_keys *keys, rbt_error *error)
{
    const uint8_t *how = rbt_unpack_bytes(in, 1);
    const rbt_key_list *known;

    if (how == NULL || *how > KEYS_KNOWN)
        return refuse(error, "its keys come in an unknown way");
    if (*how == KEYS_PLAIN) {
        rbt_unpack_into(in, snap->index, snap->count * sizeof *snap->index);
    } else if (*how == KEYS_DELTA) {
        get_delta(in, snap);
    } else {
        known = keys != NULL ? rbt_keys_find(keys, rbt_unpack_u64(in), snap->count) : NULL;
        if (known == NULL)
            return refuse(error, "it names a list of keys that was never sent");
        memcpy(snap->index, known->keys, snap->count * sizeof *snap->index);
    }
    return in->bad ? refuse(error, "its keys end too early or are none") : RBT_OK;
}

static void get_halves(rbt_unpack *in, float *values, uint32_t n)
{
    const uint8_t *at = rbt_unpack_bytes(in, n * sizeof(uint16_t));

    for (uint32_t i = 0; at != NULL && i < n; i++) {
        uint16_t half;

        memcpy(&half, at + 2 * (size_t)i, sizeof half);
        values[i] = rbt_half_to(half);
    }
}

static void get_literals(rbt_unpack *in, rbt_snap *snap, uint32_t first, uint32_t n, bool half)
{
    if (half) {
        get_halves(in, snap->f32 + first, n);
        return;
    }
    if (snap->type == RBT_F32) {
        rbt_unpack_into(in, snap->f32 + first, n * sizeof *snap->f32);
        return;
    }
    for (uint32_t i = first; i < first + n && !in->bad; i++) {
        int64_t x = unfold(get_varint(in));

        if (snap->type == RBT_I64)
            snap->i64[i] = x;
        else if (x >= INT32_MIN && x <= INT32_MAX)
            snap->i32[i] = (int32_t)x;
        else
            in->bad = true;
    }
}

static void get_zeros(rbt_unpack *in, rbt_snap *snap, bool half)
{
    size_t size = rbt_type_size(snap->type);

    for (uint32_t i = 0; i < snap->count && !in->bad;) {
        uint64_t zeros = get_varint(in), others = get_varint(in);

        if (zeros > snap->count - i || others > snap->count - i - zeros || zeros + others == 0)
            in->bad = true;
        if (in->bad)
            return;
        memset((char *)snap->value + i * size, 0, (size_t)zeros * size);
        i += (uint32_t)zeros;
        get_literals(in, snap, i, (uint32_t)others, half);
        i += (uint32_t)others;
    }
}

static rbt_err get_values(rbt_unpack *in, rbt_snap *snap, rbt_error *error)
{
    const uint8_t *how = rbt_unpack_bytes(in, 1);
    bool half;

    if (how == NULL || *how > (VALUES_ZEROS | VALUES_HALF))
        return refuse(error, "its values come in an unknown way");
    half = *how & VALUES_HALF;
    if (half && snap->type != RBT_F32)
        return refuse(error, "integers come in half precision");
    if (*how & VALUES_ZEROS)
        get_zeros(in, snap, half);
    else if (half)
        get_halves(in, snap->f32, snap->count);
    else
        rbt_unpack_into(in, snap->value, snap->count * rbt_type_size(snap->type));
    return in->bad ? refuse(error, "its values end too early or are too many") : RBT_OK;
}

static rbt_err get_sections(rbt_unpack *in, const rbt_message *message, const rbt_keys *keys, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t i = 0; err == RBT_OK && i < message->parts.count; i++) {
        rbt_snap *snap = message->parts.at[i].snap;

        if (snap_of(message, i) == NULL)
            continue;
        if (snap->index != NULL)
            err = get_keys(in, snap, keys, error);
        if (err == RBT_OK)
            err = get_values(in, snap, error);
    }
    if (err == RBT_OK && !rbt_unpack_done(in))
        err = refuse(error, "it goes on after its end");
    return err;
}

/* Replaces what is left to be read by what comes out of it: `unpacked`, to be freed. Sections are hardly longer than the body. */
static rbt_err unpack_sections(rbt_unpack *in, uint64_t plain, size_t parts, uint8_t **unpacked, rbt_error *error)
{
    uint64_t n = rbt_unpack_u64(in);
    size_t packed = (size_t)(in->end - in->at);

    rbt_error absent;
    if (rbt_lz4_load(&absent) != RBT_OK)
        return rbt_fail(error, RBT_E_PROTOCOL, "a peer sends with --codec lz4: %s, or leave it out", absent.text);
    if (in->bad || n > plain + 2 * (uint64_t)parts || n > RBT_LZ4_INPUT_MOST || n / RBT_LZ4_RATIO_MOST > packed)
        return refuse(error, "what LZ4 has packed is longer than it can be");
    *unpacked = rbt_try_alloc_raw((size_t)n, 1);
    if (*unpacked == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %llu bytes that a peer has packed",
                        (unsigned long long)n);
    if (!rbt_lz4_unpack(in->at, packed, *unpacked, (size_t)n))
        return refuse(error, "LZ4 cannot unpack it");
    *in = rbt_unpack_of(*unpacked, (size_t)n);
    return RBT_OK;
}

rbt_err rbt_unsqueeze(const uint8_t *head, size_t head_n, const uint8_t *body, size_t n, uint64_t body_max,
                      rbt_keys *keys, rbt_message **out, rbt_error *error)
{
    rbt_unpack in = rbt_unpack_of(body, n);
    const uint8_t *done = rbt_unpack_bytes(&in, 1);
    uint64_t plain = rbt_unpack_u64(&in);
    rbt_message *message = NULL;
    uint8_t *unpacked = NULL;
    rbt_err err;

    if (in.bad || done == NULL || *done > (DONE_LZ4 | DONE_KEYS))
        return refuse(error, "it does not begin as one");
    if (plain > body_max)
        return refuse(error, "it is longer than anything this job has to say");
    err = rbt_wire_decode_head(head, head_n, (size_t)plain, &message, error);
    if (err != RBT_OK)
        return err;
    if (*done & DONE_LZ4)
        err = unpack_sections(&in, plain, message->parts.count, &unpacked, error);
    if (err == RBT_OK)
        err = get_sections(&in, message, keys, error);
    if (err == RBT_OK)
        err = rbt_wire_check_body(message, error);
    if (err == RBT_OK && *done & DONE_KEYS && keys != NULL && !note_keys(message, keys, true))
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for a list of keys that a peer sends");
    rbt_free(unpacked);
    if (err == RBT_OK)
        *out = message;
    else
        rbt_message_destroy(message);
    return err;
}
