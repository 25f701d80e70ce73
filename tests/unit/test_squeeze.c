/* Proves src/comm/squeeze.c, src/comm/keys.c and src/base/lz4.c: whatever codecs are chosen, messages come out bit for bit as
 * they went in, and never larger; each codec saves what it is for; golden bytes; lists of keys are sent once and named
 * afterwards, and both ends forget the same; bytes that are cut short, damaged or lie about their lengths are refused,
 * before anything is allocated for them; words of --codec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/squeeze.h"

#include <math.h>
#include <string.h>

#include "base/lz4.h"
#include "base/rng.h"
#include "math/half.h"

#define BODY_MAX ((uint64_t)1 << 30)
#define ALL      31u

/* ------------------------------------------------------------------------------------------------ messages */

enum { ANY, ZERO, SMALL, HALVES, NASTY, TASTES };

static uint64_t random_value(rbt_rng *rng, rbt_type type, uint64_t taste)
{
    static const uint32_t nasty[] = {0x80000000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7f800000,
                                     0xff800000, 1,          0x7fffffff, 0};
    uint64_t bits = rbt_rng_u64(rng);
    float half;

    switch (taste) {
    case ZERO:
        return rbt_rng_below(rng, 10) == 0 ? bits : 0;
    case SMALL: {
        int64_t small = (int64_t)rbt_rng_below(rng, 200) - 100;

        memcpy(&bits, &small, sizeof bits);
        return type == RBT_I64 ? bits : (uint32_t)bits;
    }
    case HALVES:
        half = rbt_half_to((uint16_t)(bits & 0xfbff));
        bits = 0;
        memcpy(&bits, &half, sizeof half);
        return bits;
    case NASTY:
        return rbt_rng_below(rng, 2) == 0 ? nasty[bits % 9] : (uint64_t)nasty[bits % 9] << 32 | nasty[bits / 9 % 9];
    default:
        break;
    }
    return bits;
}

static rbt_snap *random_snap(rbt_rng *rng, uint32_t most)
{
    uint32_t length = (uint32_t)rbt_rng_below(rng, most + 1), count = 0, step = 1 + (uint32_t)rbt_rng_below(rng, 4);
    rbt_type type = (rbt_type)rbt_rng_below(rng, 3);
    bool is_sparse = rbt_rng_below(rng, 2) == 0;
    uint64_t taste = rbt_rng_below(rng, TASTES);
    rbt_snap *snap = is_sparse ? rbt_snap_create_sparse(type, rbt_rng_below(rng, 9) == 0 ? 1u << 31 : length, length)
                               : rbt_snap_create(type, length);

    for (uint64_t at = rbt_rng_below(rng, step); is_sparse && count < length && at < snap->length;
         at += 1 + rbt_rng_below(rng, step) * (snap->length / 2000 + 1))
        snap->index[count++] = (uint32_t)at;
    snap->count = is_sparse ? count : length;
    for (uint32_t i = 0; i < snap->count; i++) {
        uint64_t bits = random_value(rng, type, taste);

        memcpy((char *)snap->value + i * rbt_type_size(type), &bits, rbt_type_size(type));
    }
    return snap;
}

static rbt_message *random_message(rbt_rng *rng, uint32_t most)
{
    rbt_message *m = rbt_message_create(rbt_rng_below(rng, 2) == 0 ? RBT_MSG_BLOCKS : RBT_MSG_PUSH, 3, 1);
    uint64_t parts = rbt_rng_below(rng, 5);

    m->clock = m->type == RBT_MSG_PUSH ? rbt_rng_u64(rng) : 0;
    for (uint64_t i = 0; i < parts; i++)
        rbt_array_push(&m->parts, ((rbt_part){.block = (uint32_t)i,
                                              .snap = rbt_rng_below(rng, 6) == 0 ? NULL : random_snap(rng, most)}));
    return m;
}

/* One sparse block with these keys and one value each. */
static rbt_message *message_of_keys(const uint32_t *list, uint32_t count, uint32_t length)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 3, 1);
    rbt_snap *snap = rbt_snap_create_sparse(RBT_F32, length, count);

    for (uint32_t i = 0; i < count; i++) {
        snap->index[i] = list[i];
        snap->f32[i] = 1 + (float)i;
    }
    rbt_array_push(&m->parts, ((rbt_part){.snap = snap}));
    return m;
}

static rbt_message *message_of_values(rbt_type type, const void *values, uint32_t count)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 3, 1);
    rbt_snap *snap = rbt_snap_create(type, count);

    memcpy(snap->value, values, count * rbt_type_size(type));
    rbt_array_push(&m->parts, ((rbt_part){.snap = snap}));
    return m;
}

static void encode_head(const rbt_message *m, rbt_pack *head)
{
    rbt_array_reserve(head, rbt_wire_head_size(m));
    head->count = rbt_wire_head_size(m);
    rbt_wire_encode_head(m, head->at);
}

static void assert_same(const rbt_message *a, const rbt_message *b)
{
    size_t n = rbt_wire_size(a);
    uint8_t *x = rbt_alloc(n, 1), *y = rbt_alloc(n, 1);

    assert_int_equal(rbt_wire_size(b), n);
    rbt_wire_encode(a, x);
    rbt_wire_encode(b, y);
    assert_memory_equal(x, y, n);
    rbt_free(x);
    rbt_free(y);
}

/* Both ends of a line. */
typedef struct line {
    rbt_keys sent, received;
} line;

/* Over the line and back: the bytes its body took. */
static size_t pass(const rbt_message *m, unsigned codec, line *l)
{
    rbt_pack head = {0}, body = {0};
    rbt_message *again = NULL;
    size_t bytes = rbt_wire_body_size(m);
    rbt_error error;

    encode_head(m, &head);
    if (rbt_squeeze(m, codec, l != NULL ? &l->sent : NULL, &body)) {
        assert_true(body.count < bytes);
        bytes = body.count;
        if (rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, l != NULL ? &l->received : NULL, &again,
                          &error) != RBT_OK)
            fail_msg("%s", error.text);
        assert_same(m, again);
        rbt_message_destroy(again);
    } else {
        assert_int_equal(body.count, 0);
    }
    rbt_array_free(&head);
    rbt_array_free(&body);
    return bytes;
}

static size_t pass_once(rbt_message *m, unsigned codec)
{
    size_t bytes = pass(m, codec, NULL);

    rbt_message_destroy(m);
    return bytes;
}

static void deinit_line(line *l)
{
    rbt_keys_deinit(&l->sent);
    rbt_keys_deinit(&l->received);
}

/* ---------------------------------------------------------------------------------------------------- tests */

static void messages_come_out_as_they_went_in(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (unsigned codec = 0; codec <= ALL; codec++) {
        line l = {0};

        for (int i = 0; i < 150; i++) {
            rbt_message *m = random_message(&rng, i % 3 == 0 ? 10 : i % 3 == 1 ? 300 : 4000);

            (void)pass(m, codec, i % 5 == 0 ? NULL : &l);
            (void)pass(m, codec, &l); /* what was noted is named */
            rbt_message_destroy(m);
        }
        deinit_line(&l);
    }
}

static void what_does_not_shrink_stays_as_it_is(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);
    uint64_t noise[500];
    rbt_pack body = {0};
    rbt_message *m;

    (void)state;
    for (size_t i = 0; i < 500; i++)
        noise[i] = rbt_rng_u64(&rng);
    m = message_of_values(RBT_I64, noise, 500);
    assert_false(rbt_squeeze(m, ALL, NULL, &body));
    assert_int_equal(body.count, 0);
    assert_false(rbt_squeeze(m, 0, NULL, &body));
    rbt_message_destroy(m);
    m = rbt_message_create(RBT_MSG_ACK, 1, 3);
    assert_false(rbt_squeeze(m, ALL, NULL, &body));
    rbt_message_destroy(m);
    rbt_array_free(&body);
}

static void delta_takes_a_byte_for_a_near_key(void **state)
{
    uint32_t near[1000], far[1000];

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        near[i] = 100 * i;
        far[i] = i * 4000000u + (i == 999 ? 0x0fffffffu : 0);
    }
    assert_int_equal(pass_once(message_of_keys(near, 1000, 100000), RBT_CODEC_DELTA), 9 + 1 + 1000 + 1 + 4000);
    assert_int_equal(pass_once(message_of_keys(far, 1000, UINT32_MAX >> 1), RBT_CODEC_ZEROS), 8000);
    far[999] = (uint32_t)INT32_MAX;
    far[0] = 0;
    for (uint32_t i = 1; i < 999; i++)
        far[i] = i;
    (void)pass_once(message_of_keys(far, 1000, 1u << 31), RBT_CODEC_DELTA);
}

static void zeros_are_counted_and_integers_small(void **state)
{
    float sparse[1000] = {0}, none[100] = {0};
    int32_t small[1000];
    int64_t wide[4] = {INT64_MIN, INT64_MAX, -1, 0};

    (void)state;
    sparse[500] = 3;
    assert_int_equal(pass_once(message_of_values(RBT_F32, sparse, 1000), RBT_CODEC_ZEROS), 9 + 1 + 2 + 1 + 4 + 2 + 1);
    assert_int_equal(pass_once(message_of_values(RBT_F32, none, 100), RBT_CODEC_ZEROS), 9 + 1 + 1 + 1);
    for (int i = 0; i < 1000; i++)
        small[i] = i % 2 == 0 ? 1 + i % 60 : -1 - i % 60;
    assert_int_equal(pass_once(message_of_values(RBT_I32, small, 1000), RBT_CODEC_ZEROS), 9 + 1 + 1 + 2 + 1000);
    small[17] = INT32_MIN;
    small[18] = INT32_MAX;
    assert_int_equal(pass_once(message_of_values(RBT_I32, small, 1000), RBT_CODEC_ZEROS), 9 + 1 + 1 + 2 + 998 + 10);
    assert_int_equal(pass_once(message_of_values(RBT_I64, wide, 4), RBT_CODEC_ZEROS), 32);
}

static void halves_take_two_bytes_and_others_four(void **state)
{
    float values[100];

    (void)state;
    for (int i = 0; i < 100; i++)
        values[i] = (float)i / 8;
    assert_int_equal(pass_once(message_of_values(RBT_F32, values, 100), RBT_CODEC_FP16), 9 + 1 + 200);
    values[99] = 0.1f;
    assert_int_equal(pass_once(message_of_values(RBT_F32, values, 100), RBT_CODEC_FP16), 400);
}

static void lz4_packs_what_repeats(void **state)
{
    float values[5000];
    size_t bytes;

    (void)state;
    for (int i = 0; i < 5000; i++)
        values[i] = (float)(i % 7) / 3;
    bytes = pass_once(message_of_values(RBT_F32, values, 5000), RBT_CODEC_LZ4);
    if (rbt_lz4_load(NULL) == RBT_OK)
        assert_in_range(bytes, 20, 500);
    else
        assert_int_equal(bytes, 20000);
}

static void keys_are_sent_once_and_named_afterwards(void **state)
{
    uint32_t list[100], other[100];
    rbt_message *m, *n;
    line l = {0};

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        list[i] = 1000 * i;
        other[i] = 1000 * i + (i == 50);
    }
    m = message_of_keys(list, 100, 100000);
    n = message_of_keys(other, 100, 100000);
    assert_int_equal(pass(m, RBT_CODEC_KEYS | RBT_CODEC_DELTA, &l), 9 + 1 + 199 + 1 + 400);
    assert_int_equal(pass(m, RBT_CODEC_KEYS | RBT_CODEC_DELTA, &l), 9 + 1 + 8 + 1 + 400);
    assert_int_equal(pass(n, RBT_CODEC_KEYS, &l), 9 + 1 + 199 + 1 + 400);
    assert_int_equal(pass(m, RBT_CODEC_KEYS, &l), 9 + 1 + 8 + 1 + 400);
    rbt_keys_deinit(&l.sent); /* another life: both ends begin anew */
    rbt_keys_deinit(&l.received);
    assert_int_equal(pass(m, RBT_CODEC_KEYS | RBT_CODEC_DELTA, &l), 9 + 1 + 199 + 1 + 400);
    rbt_message_destroy(m);
    rbt_message_destroy(n);
    deinit_line(&l);
}

/* A receiver that was never sent the list: the line is of no use. */
static void keys_that_were_never_sent_are_refused(void **state)
{
    uint32_t list[20] = {0};
    rbt_pack head = {0}, body = {0};
    rbt_message *m, *again = NULL;
    line l = {0};
    rbt_keys empty = {0};
    rbt_error error;

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        list[i] = 5 * i;
    m = message_of_keys(list, 20, 1000);
    (void)pass(m, RBT_CODEC_KEYS | RBT_CODEC_DELTA, &l);
    encode_head(m, &head);
    assert_true(rbt_squeeze(m, RBT_CODEC_KEYS | RBT_CODEC_DELTA, &l.sent, &body));
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, &empty, &again, &error),
                     RBT_E_PROTOCOL);
    assert_non_null(strstr(error.text, "never sent"));
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, NULL, &again, &error),
                     RBT_E_PROTOCOL);
    rbt_message_destroy(m);
    rbt_array_free(&head);
    rbt_array_free(&body);
    rbt_keys_deinit(&empty);
    deinit_line(&l);
}

/* More lists than there is room for, of all lengths, over and over: both ends forget alike, and keep to the limit. */
static void both_ends_forget_alike(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    line l = {0};
    size_t known = 0;

    (void)state;
    for (int i = 0; i < 1500; i++) {
        uint64_t which = rbt_rng_below(&rng, 60);
        uint32_t count = which < 40 ? 20000 + 300 * (uint32_t)which : 9 * (uint32_t)which,
                 step = 1 + (uint32_t)which % 3;
        rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 3, 1);

        for (int part = 0; part < 3; part++) {
            rbt_snap *snap = rbt_snap_create_sparse(RBT_I32, 200000, count - (uint32_t)part);

            for (uint32_t k = 0; k < snap->count; k++)
                snap->index[k] = step * k + (uint32_t)part;
            rbt_array_push(&m->parts, ((rbt_part){.block = (uint32_t)part, .snap = snap}));
        }
        known += rbt_keys_find(&l.sent, rbt_keys_hash(m->parts.at[0].snap->index, count), count) != NULL;
        (void)pass(m, RBT_CODEC_KEYS | RBT_CODEC_ZEROS, &l);
        assert_int_equal(l.sent.bytes, l.received.bytes);
        assert_in_range(l.sent.bytes, 0, RBT_KEYS_BYTES);
        rbt_message_destroy(m);
    }
    assert_in_range(known, 100, 1400);
    deinit_line(&l);
}

static void the_bytes_are_the_written_ones(void **state)
{
    static const uint8_t golden[] = {2, 76, 0, 0,    0,    0,    0, 0, 0, /* lists are noted; 76 bytes without it */
                                     1, 3,  0, 0,    0,    0,    0, 0, 0xac,
                                     2,                              /* keys: 3, six times the next, 300 between */
                                     3, 0,  1, 0,    0x3c,           /* halves in runs: no zero, 1; */
                                     5, 2,  0, 0xc0, 0,    0x38,     /* five zeros, -2 and 0.5 */
                                     2, 0,  3, 2,    1,    0x80, 2}; /* integers in runs: no zero, 1, -1 and 128 */
    static const float values[8] = {1, 0, 0, 0, 0, 0, -2, 0.5f};
    rbt_message *m = message_of_keys((uint32_t[]){3, 4, 5, 6, 7, 8, 9, 310}, 8, 1000);
    rbt_message *b = message_of_values(RBT_I32, (int32_t[]){1, -1, 128}, 3);
    rbt_pack body = {0};
    rbt_keys keys = {0};

    (void)state;
    memcpy(m->parts.at[0].snap->f32, values, sizeof values);
    rbt_array_push(&m->parts, ((rbt_part){.block = 1, .snap = rbt_snap_ref(b->parts.at[0].snap)}));
    assert_true(rbt_squeeze(m, ALL & ~(unsigned)RBT_CODEC_LZ4, &keys, &body));
    assert_int_equal(body.count, sizeof golden);
    assert_memory_equal(body.at, golden, sizeof golden);
    rbt_message_destroy(m);
    rbt_message_destroy(b);
    rbt_array_free(&body);
    rbt_keys_deinit(&keys);
}

/* ----------------------------------------------------------------------------------------------------- damage */

static rbt_message *some_message(rbt_rng *rng, unsigned *codec, rbt_pack *head, rbt_pack *body, rbt_keys *sent)
{
    for (;;) {
        rbt_message *m = random_message(rng, 60);

        *codec = 1 + (unsigned)rbt_rng_below(rng, ALL);
        if (rbt_squeeze(m, *codec, sent, body)) {
            encode_head(m, head);
            return m;
        }
        rbt_message_destroy(m);
    }
}

static void what_is_cut_short_or_goes_on_is_refused(void **state)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 60; i++) {
        rbt_pack head = {0}, body = {0};
        unsigned codec;
        rbt_message *m = some_message(&rng, &codec, &head, &body, NULL), *again = NULL;
        rbt_error error;

        for (size_t n = 0; n < body.count; n++)
            assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, n, BODY_MAX, NULL, &again, &error),
                             RBT_E_PROTOCOL);
        rbt_pack_bytes(&body, "", 1);
        assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, NULL, &again, &error),
                         RBT_E_PROTOCOL);
        rbt_message_destroy(m);
        rbt_array_free(&head);
        rbt_array_free(&body);
    }
}

/* Any byte changed: refused, or another message that keeps all promises. */
static void what_is_damaged_is_refused_or_sound(void **state)
{
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 3000; i++) {
        rbt_pack head = {0}, body = {0};
        unsigned codec;
        rbt_keys keys = {0};
        rbt_message *m = some_message(&rng, &codec, &head, &body, NULL), *again = NULL;
        rbt_error error;

        for (uint64_t k = 1 + rbt_rng_below(&rng, 3); k > 0; k--)
            body.at[rbt_rng_below(&rng, body.count)] = (uint8_t)rbt_rng_u64(&rng);
        if (rbt_unsqueeze(head.at, head.count, body.at, body.count, 1 << 20, &keys, &again, &error) == RBT_OK) {
            assert_int_equal(rbt_wire_check_body(again, &error), RBT_OK);
            rbt_message_destroy(again);
        }
        rbt_message_destroy(m);
        rbt_array_free(&head);
        rbt_array_free(&body);
        rbt_keys_deinit(&keys);
    }
}

static void a_lie_about_lengths_allocates_nothing(void **state)
{
    float values[1000] = {0};
    rbt_message *m = message_of_values(RBT_F32, values, 1000), *again = NULL;
    rbt_pack head = {0}, body = {0};
    uint64_t huge = (uint64_t)1 << 62;
    rbt_error error;

    (void)state;
    encode_head(m, &head);
    assert_true(rbt_squeeze(m, RBT_CODEC_ZEROS | RBT_CODEC_LZ4, NULL, &body));
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, 3999, NULL, &again, &error),
                     RBT_E_PROTOCOL); /* above the job's limit */
    memcpy(body.at + 1, &huge, 8);
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, UINT64_MAX, NULL, &again, &error),
                     RBT_E_PROTOCOL); /* another length than the head's blocks have */
    body.count = 0;
    rbt_pack_bytes(&body, "\x01", 1);
    rbt_pack_u64(&body, 4000);
    rbt_pack_u64(&body, huge);
    rbt_pack_bytes(&body, "abc", 3);
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, NULL, &again, &error),
                     RBT_E_PROTOCOL);
    huge = 4002; /* within the limit, and more than three bytes can say */
    memcpy(body.at + 9, &huge, 8);
    assert_int_equal(rbt_unsqueeze(head.at, head.count, body.at, body.count, BODY_MAX, NULL, &again, &error),
                     RBT_E_PROTOCOL);
    rbt_message_destroy(m);
    rbt_array_free(&head);
    rbt_array_free(&body);
}

/* ------------------------------------------------------------------------------------------------------ words */

static void words_name_codecs_and_wrong_ones_are_refused(void **state)
{
    char text[RBT_CODEC_ROOM];
    unsigned codec = 99;
    rbt_error error;

    (void)state;
    assert_int_equal(rbt_codec_parse(NULL, &codec, &error), RBT_OK);
    assert_int_equal(codec, 0);
    assert_int_equal(rbt_codec_parse("none", &codec, &error), RBT_OK);
    assert_int_equal(codec, 0);
    assert_int_equal(rbt_codec_parse("zeros,delta", &codec, &error), RBT_OK);
    assert_int_equal(codec, RBT_CODEC_DELTA | RBT_CODEC_ZEROS);
    rbt_codec_text(ALL, text);
    assert_string_equal(text, "delta,keys,zeros,lz4,fp16");
    rbt_codec_text(0, text);
    assert_string_equal(text, "none");
    static const char *const wrong[] = {"", "zip", "delta,", ",delta", "delta,none", "delta,delta", "del", "fp166"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(rbt_codec_parse(wrong[i], &codec, &error), RBT_E_USAGE);
    if (rbt_lz4_load(NULL) != RBT_OK) {
        assert_int_equal(rbt_codec_parse("lz4", &codec, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, "LZ4"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_as_they_went_in),
        cmocka_unit_test(what_does_not_shrink_stays_as_it_is),
        cmocka_unit_test(delta_takes_a_byte_for_a_near_key),
        cmocka_unit_test(zeros_are_counted_and_integers_small),
        cmocka_unit_test(halves_take_two_bytes_and_others_four),
        cmocka_unit_test(lz4_packs_what_repeats),
        cmocka_unit_test(keys_are_sent_once_and_named_afterwards),
        cmocka_unit_test(keys_that_were_never_sent_are_refused),
        cmocka_unit_test(both_ends_forget_alike),
        cmocka_unit_test(the_bytes_are_the_written_ones),
        cmocka_unit_test(what_is_cut_short_or_goes_on_is_refused),
        cmocka_unit_test(what_is_damaged_is_refused_or_sound),
        cmocka_unit_test(a_lie_about_lengths_allocates_nothing),
        cmocka_unit_test(words_name_codecs_and_wrong_ones_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
