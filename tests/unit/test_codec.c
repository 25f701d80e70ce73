/* Proves src/wire: every type of message survives encoding and decoding with random content; golden bytes; a message
 * cut short anywhere, damaged anywhere or above a limit is an error or another sound message, never a crash; outboxes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "wire/codec.h"

/* Which fields a type carries, stated here once more. */
typedef struct carries {
    bool worker, clock, need, slowest, included, version, request, held, slice, number, parts, members, applied;
} carries;

static const carries carried[RBT_MSG_TYPES] = {
    [RBT_MSG_PUSH] = {.worker = 1, .clock = 1, .slowest = 1, .slice = 1, .parts = 1},
    [RBT_MSG_ACK] = {.worker = 1, .clock = 1},
    [RBT_MSG_PULL] = {.worker = 1, .clock = 1, .need = 1, .version = 1, .request = 1, .parts = 1},
    [RBT_MSG_BLOCKS] = {.worker = 1, .slowest = 1, .included = 1, .request = 1, .held = 1, .parts = 1, .applied = 1},
    [RBT_MSG_RETIRE] = {.worker = 1, .clock = 1},
    [RBT_MSG_HELLO] = {.worker = 1},
    [RBT_MSG_VIEW] = {.members = 1},
    [RBT_MSG_RESUME] = {.worker = 1, .request = 1},
    [RBT_MSG_RESUMED] = {.worker = 1, .clock = 1, .slowest = 1, .version = 1, .request = 1},
    [RBT_MSG_REPORT] = {.slowest = 1, .version = 1},
    [RBT_MSG_ASK] = {.worker = 1, .clock = 1, .need = 1, .request = 1},
    [RBT_MSG_STABLE] = {.worker = 1, .version = 1, .request = 1, .held = 1},
    [RBT_MSG_METRIC] = {.clock = 1, .number = 1},
    [RBT_MSG_STOP] = {.clock = 1},
    [RBT_MSG_LOST] = {.worker = 1},
    [RBT_MSG_UPDATE] = {.worker = 1, .clock = 1, .parts = 1},
    [RBT_MSG_TOKEN] = {.worker = 1, .clock = 1},
    [RBT_MSG_USED] = {.worker = 1, .clock = 1},
    [RBT_MSG_CHUNK] = {.worker = 1, .clock = 1, .request = 1, .parts = 1},
    [RBT_MSG_EARLY] = {.worker = 1, .clock = 1, .slice = 1, .parts = 1},
    [RBT_MSG_GOT] = {.worker = 1, .clock = 1, .slice = 1},
    [RBT_MSG_ROWS] = {.worker = 1, .slowest = 1, .included = 1, .slice = 1, .parts = 1},
};

/* ------------------------------------------------------------------------------------------- random messages */

static rbt_snap *random_snap(rbt_rng *rng)
{
    rbt_type type = (rbt_type)rbt_rng_below(rng, 3);
    uint32_t length = (uint32_t)rbt_rng_below(rng, 40);
    rbt_snap *snap;

    if (rbt_rng_below(rng, 2) == 0) {
        snap = rbt_snap_create(type, length);
    } else {
        uint32_t places[40], count = 0;

        for (uint32_t i = 0; i < length; i++)
            if (rbt_rng_below(rng, 3) == 0)
                places[count++] = i;
        snap = rbt_snap_create_sparse(type, length, count);
        memcpy(snap->index, places, count * sizeof *places);
    }
    for (size_t i = 0; i < snap->count * rbt_type_size(type); i++) /* any bits, NaNs among them */
        ((uint8_t *)snap->value)[i] = (uint8_t)rbt_rng_u64(rng);
    return snap;
}

/* All fields are filled, whether the type carries them or not. */
static rbt_message *random_message(rbt_rng *rng, rbt_message_type type)
{
    rbt_message *m = rbt_message_create(type, (rbt_node)rbt_rng_u64(rng), (rbt_node)rbt_rng_u64(rng));
    uint64_t parts = rbt_rng_below(rng, 6), members = rbt_rng_below(rng, 6);

    m->view = (uint32_t)rbt_rng_u64(rng);
    m->worker = (uint32_t)rbt_rng_u64(rng);
    m->incarnation = (uint32_t)rbt_rng_u64(rng);
    m->clock = rbt_rng_u64(rng);
    m->need = rbt_rng_u64(rng);
    m->slowest = rbt_rng_u64(rng);
    m->included = rbt_rng_u64(rng);
    m->reach = rbt_rng_u64(rng);
    m->early = rbt_rng_u64(rng);
    m->slice = rbt_rng_u64(rng);
    m->more = rbt_rng_below(rng, 2);
    m->version = rbt_rng_u64(rng);
    m->request = rbt_rng_u64(rng);
    m->held_ns = rbt_rng_u64(rng);
    m->number = rbt_rng_normal(rng);
    for (uint64_t i = 0; i < parts; i++) {
        rbt_part part = {(uint32_t)rbt_rng_u64(rng), (uint32_t)rbt_rng_u64(rng), rbt_rng_u64(rng), NULL};

        part.snap = rbt_rng_below(rng, 3) == 0 ? NULL : random_snap(rng);
        rbt_array_push(&m->parts, part);
    }
    for (uint64_t i = 0; i < members; i++) {
        rbt_member member = {(uint32_t)rbt_rng_u64(rng), (uint32_t)rbt_rng_below(rng, 3)};

        rbt_array_push(&m->members, member);
        rbt_array_push(&m->applied, ((rbt_applied){rbt_rng_u64(rng), rbt_rng_u64(rng), rbt_rng_u64(rng), rbt_rng_u64(rng)}));
    }
    return m;
}

static uint8_t *encoded(const rbt_message *m, size_t *n)
{
    uint8_t *bytes;

    *n = rbt_wire_size(m);
    bytes = rbt_alloc(*n, 1);
    rbt_wire_encode(m, bytes);
    return bytes;
}

static void assert_same_snap(const rbt_snap *a, const rbt_snap *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a == NULL)
        return;
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->value, b->value, a->count * rbt_type_size(a->type));
    if (a->index != NULL)
        assert_memory_equal(a->index, b->index, a->count * sizeof *a->index);
}

/* What the type carries is the same, the rest is zero. */
static void assert_same(const rbt_message *a, const rbt_message *b)
{
    const carries *c = &carried[a->type];

    assert_int_equal(a->type, b->type);
    assert_int_equal(a->from, b->from);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->view, b->view);
    assert_int_equal(c->worker ? a->worker : 0, b->worker);
    assert_int_equal(c->worker ? a->incarnation : 0, b->incarnation);
    assert_int_equal(c->clock ? a->clock : 0, b->clock);
    assert_int_equal(c->need ? a->need : 0, b->need);
    assert_int_equal(c->slowest ? a->slowest : 0, b->slowest);
    assert_int_equal(c->included ? a->included : 0, b->included);
    assert_int_equal(c->included ? a->reach : 0, b->reach);
    assert_int_equal(c->included ? a->early : 0, b->early);
    assert_int_equal(c->slice ? a->slice : 0, b->slice);
    assert_int_equal(c->slice ? a->more : 0, b->more);
    assert_int_equal(c->version ? a->version : 0, b->version);
    assert_int_equal(c->request ? a->request : 0, b->request);
    assert_int_equal(c->held ? a->held_ns : 0, b->held_ns);
    assert_true((c->number ? a->number : 0) == b->number);
    assert_int_equal(c->parts ? a->parts.count : 0, b->parts.count);
    for (size_t i = 0; i < b->parts.count; i++) {
        assert_int_equal(a->parts.at[i].table, b->parts.at[i].table);
        assert_int_equal(a->parts.at[i].block, b->parts.at[i].block);
        assert_int_equal(a->parts.at[i].version, b->parts.at[i].version);
        assert_same_snap(a->parts.at[i].snap, b->parts.at[i].snap);
    }
    assert_int_equal(c->members ? a->members.count : 0, b->members.count);
    if (b->members.count > 0)
        assert_memory_equal(a->members.at, b->members.at, b->members.count * sizeof *b->members.at);
    assert_int_equal(c->applied ? a->applied.count : 0, b->applied.count);
    for (size_t i = 0; i < b->applied.count; i++) {
        assert_int_equal(a->applied.at[i].clocks, b->applied.at[i].clocks);
        assert_int_equal(a->applied.at[i].reach, b->applied.at[i].reach);
        assert_int_equal(a->applied.at[i].early, b->applied.at[i].early);
        assert_int_equal(a->applied.at[i].life, b->applied.at[i].life);
    }
}

static void every_type_survives_the_round_trip(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 200; round++)
        for (int type = RBT_MSG_PUSH; type < RBT_MSG_TYPES; type++) {
            rbt_message *m = random_message(&rng, (rbt_message_type)type), *back = NULL;
            rbt_error error = {0};
            size_t n;
            uint8_t *bytes = encoded(m, &n);

            if (rbt_wire_decode(bytes, n, &back, &error) != RBT_OK)
                fail_msg("%s: %s", rbt_message_name((rbt_message_type)type), error.text);
            assert_same(m, back);
            rbt_message_destroy(back);
            rbt_message_destroy(m);
            rbt_free(bytes);
        }
}

/* ---------------------------------------------------------------------------------------------- golden bytes */

/* The example of docs/formats.md. */
static const uint8_t golden[] = {
    1,    5,    0,    0,                                        /* push, version 5 */
    5,    0,    0,    0,    1,    0,    0,    0,    7, 0, 0, 0, /* from 5, to 1, view 7 */
    3,    0,    0,    0,    2,    0,    0,    0,                /* worker 3, incarnation 2 */
    0x2a, 0,    0,    0,    0,    0,    0,    0,                /* clock 42 */
    0x28, 0,    0,    0,    0,    0,    0,    0,                /* slowest 40 */
    6,    0,    0,    0,    0,    0,    0,    0,                /* slice 6, ... */
    1,    0,    0,    0,    0,    0,    0,    0,                /* ... not the last */
    3,    0,    0,    0,                                        /* three parts */
    0,    0,    0,    0,    9,    0,    0,    0,                /* table 0, block 9 */
    0x2b, 0,    0,    0,    0,    0,    0,    0,                /* version 43 */
    0,    0,    0,    0,                                        /* nothing changed */
    0,    0,    0,    0,    0xa,  0,    0,    0,                /* table 0, block 10 */
    0x2b, 0,    0,    0,    0,    0,    0,    0,                /* version 43 */
    2,    0,    0,    0,                                        /* sparse f32 */
    0,    1,    0,    0,    2,    0,    0,    0,                /* 2 of 256 elements */
    1,    0,    0,    0,    0,    0,    0,    0,                /* table 1, block 0 */
    0,    0,    0,    0,    0,    0,    0,    0,                /* version 0 */
    1,    2,    0,    0,                                        /* dense i64 */
    1,    0,    0,    0,    1,    0,    0,    0,                /* 1 of 1 elements; here the body begins */
    3,    0,    0,    0,    0xff, 0,    0,    0,                /* block 10: at 3 and 255 */
    0,    0,    0x80, 0x3f, 0,    0,    0,    0xc0,             /* 1 and -2 */
    0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,             /* -2 */
};

static rbt_message *golden_message(void)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 5, 1);
    rbt_part parts[3] = {{.block = 9, .version = 43}, {.block = 10, .version = 43}, {.table = 1}};

    m->view = 7;
    m->worker = 3;
    m->incarnation = 2;
    m->clock = 42;
    m->slowest = 40;
    m->slice = 6;
    m->more = 1;
    parts[1].snap = rbt_snap_create_sparse(RBT_F32, 256, 2);
    parts[1].snap->index[0] = 3;
    parts[1].snap->index[1] = 255;
    parts[1].snap->f32[0] = 1;
    parts[1].snap->f32[1] = -2;
    parts[2].snap = rbt_snap_create(RBT_I64, 1);
    parts[2].snap->i64[0] = -2;
    for (int i = 0; i < 3; i++)
        rbt_array_push(&m->parts, parts[i]);
    return m;
}

static void a_push_has_the_golden_bytes(void **state)
{
    rbt_message *m = golden_message(), *back = NULL;
    size_t n;
    uint8_t *bytes = encoded(m, &n);

    (void)state;
    assert_int_equal(n, sizeof golden);
    assert_memory_equal(bytes, golden, n);
    assert_int_equal(rbt_wire_decode(golden, sizeof golden, &back, NULL), RBT_OK);
    assert_same(m, back);
    rbt_message_destroy(back);
    rbt_message_destroy(m);
    rbt_free(bytes);
}

/* As a transport does it: the head alone, then the body into the room that decoding has made. */
static void a_head_makes_room_for_its_body(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 500; round++) {
        rbt_message *m = random_message(&rng, (rbt_message_type)(1 + rbt_rng_below(&rng, RBT_MSG_TYPES - 1))), *back;
        size_t head = rbt_wire_head_size(m), body = rbt_wire_body_size(m), n;
        uint8_t *bytes = encoded(m, &n), *at = bytes + head;
        rbt_pieces pieces = {0};
        rbt_error error;

        assert_int_equal(head + body, n);
        assert_int_equal(rbt_wire_decode_head(bytes, head, body + 1, &back, &error), RBT_E_PROTOCOL);
        assert_int_equal(rbt_wire_decode_head(bytes, head - 1, body, &back, &error), RBT_E_PROTOCOL);
        assert_int_equal(rbt_wire_decode_head(bytes, head, body, &back, &error), RBT_OK);
        rbt_wire_body(back, &pieces);
        for (size_t i = 0; i < pieces.count; i++) {
            memcpy(pieces.at[i].at, at, pieces.at[i].n);
            at += pieces.at[i].n;
        }
        assert_ptr_equal(at, bytes + n);
        assert_int_equal(rbt_wire_check_body(back, &error), RBT_OK);
        assert_same(m, back);
        rbt_array_free(&pieces);
        rbt_message_destroy(back);
        rbt_message_destroy(m);
        rbt_free(bytes);
    }
}

/* ---------------------------------------------------------------------------------------------------- damage */

/* Decodes bytes that may be wrong: an error that says where, or a message whose encoding is these very bytes. Memory of
 * exactly this size, so that the sanitizer sees a step too far. Returns whether it was accepted. */
static bool decode_safely(const uint8_t *bytes, size_t n)
{
    uint8_t *exact = rbt_alloc(n, 1), *again;
    rbt_message *m = NULL;
    rbt_error error = {0};
    rbt_err err;
    size_t size;

    if (n > 0)
        memcpy(exact, bytes, n);
    err = rbt_wire_decode(exact, n, &m, &error);
    if (err != RBT_OK) {
        assert_int_equal(err, RBT_E_PROTOCOL);
        assert_int_equal(error.code, err);
        assert_true(strstr(error.text, "at byte") != NULL || strstr(error.text, "do not ascend") != NULL);
        assert_null(m);
    } else {
        again = encoded(m, &size);
        assert_int_equal(size, n);
        assert_memory_equal(again, exact, n);
        rbt_free(again);
        rbt_message_destroy(m);
    }
    rbt_free(exact);
    return err == RBT_OK;
}

static void a_message_cut_short_anywhere_is_refused(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 5; round++)
        for (int type = RBT_MSG_PUSH; type < RBT_MSG_TYPES; type++) {
            rbt_message *m = random_message(&rng, (rbt_message_type)type);
            size_t n;
            uint8_t *bytes = encoded(m, &n);

            for (size_t cut = 0; cut < n; cut++)
                assert_false(decode_safely(bytes, cut));
            rbt_message_destroy(m);
            rbt_free(bytes);
        }
}

static void a_message_with_a_byte_too_many_is_refused(void **state)
{
    uint8_t longer[sizeof golden + 1] = {0};

    (void)state;
    memcpy(longer, golden, sizeof golden);
    assert_true(decode_safely(longer, sizeof golden));
    assert_false(decode_safely(longer, sizeof longer));
}

static void damage_is_an_error_or_another_sound_message(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    size_t refused = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        rbt_message *m = random_message(&rng, (rbt_message_type)(1 + rbt_rng_below(&rng, RBT_MSG_TYPES - 1)));
        size_t n;
        uint8_t *bytes = encoded(m, &n);

        for (uint64_t hits = 1 + rbt_rng_below(&rng, 3); hits > 0; hits--) {
            size_t at = (size_t)rbt_rng_below(&rng, n);

            bytes[at] = (uint8_t)(rbt_rng_below(&rng, 2) == 0 ? (uint8_t)rbt_rng_u64(&rng)
                                                              : (uint8_t)(bytes[at] ^ (1u << rbt_rng_below(&rng, 8))));
        }
        refused += !decode_safely(bytes, n);
        rbt_message_destroy(m);
        rbt_free(bytes);
    }
    assert_true(refused > 2000);
}

static void every_wrong_bit_of_the_golden_message_is_survived(void **state)
{
    uint8_t bytes[sizeof golden];

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof golden; bit++) {
        memcpy(bytes, golden, sizeof golden);
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ (1u << bit % 8));
        decode_safely(bytes, sizeof bytes);
    }
}

/* One byte of the golden message changed, and what the refusal says. */
static void wrong_fields_are_refused_with_the_reason(void **state)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *says;
    } wrong[] = {
        {0, 0, "type is unknown"},
        {0, RBT_MSG_TYPES, "type is unknown"},
        {1, 1, "wire version"},
        {2, 1, "wire version"},
        {48, 2, "neither the last"},
        {55, 1, "neither the last"},
        {56, 4, "unknown form or type"}, /* a fourth part, made of the body */
        {56, 200, "larger than what follows"},
        {56, 2, "goes on after its end"},
        {59, 1, "count is above its limit"},
        {76, 3, "unknown form or type"}, /* the form of block 9 */
        {77, 1, "only named has a type"},
        {97, 3, "unknown form or type"}, /* the type of block 10 */
        {98, 1, "unknown form or type"},
        {104, 200, "larger than what follows"}, /* its count */
        {136, 255, "do not ascend"},            /* its first index, as large as the second */
        {141, 1, "do not ascend"},              /* its second index, 511 of 256 */
        {128, 2, "does not store all"},         /* the length of the dense block */
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t bytes[sizeof golden];
        rbt_message *m = NULL;
        rbt_error error = {0};

        memcpy(bytes, golden, sizeof golden);
        bytes[wrong[i].at] = wrong[i].byte;
        if (rbt_wire_decode(bytes, sizeof bytes, &m, &error) != RBT_E_PROTOCOL)
            fail_msg("byte %zu = %u was accepted", wrong[i].at, wrong[i].byte);
        if (strstr(error.text, wrong[i].says) == NULL)
            fail_msg("byte %zu = %u: %s", wrong[i].at, wrong[i].byte, error.text);
    }
}

/* ---------------------------------------------------------------------------------------------------- limits */

static void put_u32(uint8_t *at, uint32_t x)
{
    memcpy(at, &x, sizeof x);
}

/* A message of this type with a count at `count_at`, followed by zeros. */
static rbt_err decode_counted(uint8_t type, size_t count_at, uint32_t count, size_t each)
{
    size_t n = count_at + 4 + count * each;
    uint8_t *bytes = rbt_alloc(n, 1);
    rbt_message *m = NULL;
    rbt_err err;

    bytes[0] = type;
    bytes[1] = RBT_WIRE_VERSION;
    put_u32(bytes + count_at, count);
    err = rbt_wire_decode(bytes, n, &m, NULL);
    if (err == RBT_OK)
        rbt_message_destroy(m);
    rbt_free(bytes);
    return err;
}

/* A BLOCKS message with one part of this form, length and count. */
static rbt_err decode_block(uint8_t form, uint32_t length, uint32_t count)
{
    size_t n = 72 + 4 + 20 + 8 + (size_t)count * (form == 2 ? 8 : 4) + 4; /* and no applied clocks */
    uint8_t *bytes = rbt_alloc(n, 1);
    rbt_message *m = NULL;
    rbt_err err;

    bytes[0] = RBT_MSG_BLOCKS;
    bytes[1] = RBT_WIRE_VERSION;
    put_u32(bytes + 72, 1);
    bytes[92] = form;
    put_u32(bytes + 96, length);
    put_u32(bytes + 100, count);
    for (uint32_t k = 0; form == 2 && k < count; k++)
        put_u32(bytes + 108 + 4 * (size_t)k, k);
    err = rbt_wire_decode(bytes, n, &m, NULL);
    if (err == RBT_OK)
        rbt_message_destroy(m);
    rbt_free(bytes);
    return err;
}

static void what_is_at_a_limit_passes_and_what_is_above_does_not(void **state)
{
    (void)state;
    assert_int_equal(decode_counted(RBT_MSG_PULL, 56, RBT_WIRE_PARTS_MAX, 20), RBT_OK);
    assert_int_equal(decode_counted(RBT_MSG_PULL, 56, RBT_WIRE_PARTS_MAX + 1, 20), RBT_E_PROTOCOL);
    assert_int_equal(decode_counted(RBT_MSG_VIEW, 16, RBT_WIRE_MEMBERS_MAX, 8), RBT_OK);
    assert_int_equal(decode_counted(RBT_MSG_VIEW, 16, RBT_WIRE_MEMBERS_MAX + 1, 8), RBT_E_PROTOCOL);
    assert_int_equal(decode_block(1, 70000, 70000), RBT_OK); /* a sparse table's block that has become dense */
    assert_int_equal(decode_block(1, 70000, 69999), RBT_E_PROTOCOL);
    assert_int_equal(decode_block(2, RBT_WIRE_LENGTH_MAX, 3), RBT_OK);
    assert_int_equal(decode_block(2, RBT_WIRE_LENGTH_MAX + 1, 3), RBT_E_PROTOCOL);
    assert_int_equal(decode_block(2, 4, 4), RBT_OK);
    assert_int_equal(decode_block(2, 4, 5), RBT_E_PROTOCOL);
}

static void a_member_in_no_known_state_is_refused(void **state)
{
    uint8_t bytes[28] = {RBT_MSG_VIEW, RBT_WIRE_VERSION, [16] = 1, [24] = RBT_MEMBER_RETIRED};

    (void)state;
    assert_true(decode_safely(bytes, sizeof bytes));
    bytes[24] = RBT_MEMBER_RETIRED + 1;
    assert_false(decode_safely(bytes, sizeof bytes));
}

/* ----------------------------------------------------------------------------------- messages and outboxes */

static void a_copy_shares_the_blocks_and_nothing_else(void **state)
{
    rbt_message *m = golden_message(), *copy = rbt_message_copy(m);

    (void)state;
    assert_same(m, copy);
    assert_ptr_equal(m->parts.at[1].snap, copy->parts.at[1].snap);
    assert_ptr_not_equal(m->parts.at, copy->parts.at);
    rbt_message_destroy(m);
    assert_true(copy->parts.at[1].snap->f32[1] == -2);
    rbt_message_destroy(copy);
    rbt_message_destroy(NULL);
}

static void an_outbox_gives_back_in_order_and_can_be_filled_again(void **state)
{
    rbt_outbox outbox = {0};

    (void)state;
    assert_null(rbt_outbox_take(&outbox));
    for (int round = 0; round < 2; round++) {
        for (rbt_node i = 0; i < 3; i++)
            rbt_outbox_put(&outbox, rbt_message_create(RBT_MSG_STOP, i, 0));
        for (rbt_node i = 0; i < 3; i++) {
            rbt_message *m = rbt_outbox_take(&outbox);

            assert_int_equal(m->from, i);
            assert_null(m->next);
            rbt_message_destroy(m);
        }
        assert_null(rbt_outbox_take(&outbox));
    }
}

static void every_type_has_a_name(void **state)
{
    (void)state;
    for (int type = RBT_MSG_PUSH; type < RBT_MSG_TYPES; type++)
        assert_string_not_equal(rbt_message_name((rbt_message_type)type), "unknown");
    assert_string_equal(rbt_message_name(RBT_MSG_TYPES), "unknown");
    assert_string_equal(rbt_message_name((rbt_message_type)0), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_the_round_trip),
        cmocka_unit_test(a_push_has_the_golden_bytes),
        cmocka_unit_test(a_head_makes_room_for_its_body),
        cmocka_unit_test(a_message_cut_short_anywhere_is_refused),
        cmocka_unit_test(a_message_with_a_byte_too_many_is_refused),
        cmocka_unit_test(damage_is_an_error_or_another_sound_message),
        cmocka_unit_test(every_wrong_bit_of_the_golden_message_is_survived),
        cmocka_unit_test(wrong_fields_are_refused_with_the_reason),
        cmocka_unit_test(what_is_at_a_limit_passes_and_what_is_above_does_not),
        cmocka_unit_test(a_member_in_no_known_state_is_refused),
        cmocka_unit_test(a_copy_shares_the_blocks_and_nothing_else),
        cmocka_unit_test(an_outbox_gives_back_in_order_and_can_be_filled_again),
        cmocka_unit_test(every_type_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
