/* Proves src/runtime/cluster/frame.c: frames arrive as they were sent in whatever pieces the connection brings them, also
 * with bodies that come through the ring; repeats are dropped; golden bytes; a frame that is damaged, out of turn or lies
 * about its lengths is refused, and before anything is allocated for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/frame.h"

#include <string.h>

#include "base/hash.h"
#include "base/pack.h"
#include "base/rng.h"

#define HEAD_MAX 100000
#define BODY_MAX 2000000

/* ------------------------------------------------------------------------------------------------- frames */

static rbt_snap *random_snap(rbt_rng *rng, uint32_t most)
{
    uint32_t length = (uint32_t)rbt_rng_below(rng, most + 1), count = 0;
    bool is_sparse = rbt_rng_below(rng, 2) == 0;
    rbt_snap *snap = is_sparse ? rbt_snap_create_sparse(RBT_F32, length, length / 2) : rbt_snap_create(RBT_I64, length);

    for (uint32_t i = 0; is_sparse && count < length / 2; i += 2)
        snap->index[count++] = i;
    for (size_t i = 0; i < snap->count * rbt_type_size(snap->type); i++)
        ((uint8_t *)snap->value)[i] = (uint8_t)rbt_rng_u64(rng);
    return snap;
}

static rbt_message *random_message(rbt_rng *rng, uint32_t most)
{
    rbt_message *m = rbt_message_create(rbt_rng_below(rng, 4) == 0 ? RBT_MSG_ACK : RBT_MSG_PUSH,
                                        (rbt_node)rbt_rng_below(rng, 9), (rbt_node)rbt_rng_below(rng, 9));
    uint64_t parts = rbt_rng_below(rng, 5);

    m->view = (uint32_t)rbt_rng_below(rng, 5);
    m->clock = rbt_rng_u64(rng);
    for (uint64_t i = 0; m->type == RBT_MSG_PUSH && i < parts; i++)
        rbt_array_push(&m->parts, ((rbt_part){.block = (uint32_t)i, .snap = random_snap(rng, most)}));
    return m;
}

static rbt_frame *random_control(rbt_rng *rng, size_t most)
{
    size_t head_n = rbt_rng_below(rng, 300), body_n = rbt_rng_below(rng, 2) == 0 ? 0 : rbt_rng_below(rng, most + 1);
    uint8_t head[300], *body = rbt_alloc(body_n, 1);

    for (size_t i = 0; i < head_n; i++)
        head[i] = (uint8_t)rbt_rng_u64(rng);
    for (size_t i = 0; i < body_n; i++)
        body[i] = (uint8_t)rbt_rng_u64(rng);
    return rbt_frame_create(RBT_FRAME_CONTROL, head, head_n, body, body_n);
}

static void add_body(const rbt_frame *frame, rbt_pack *stream)
{
    for (size_t i = 0; i < frame->body.count; i++)
        rbt_pack_bytes(stream, frame->body.at[i].at, frame->body.at[i].n);
}

/* Appends the frame as a connection would carry it, and destroys it. */
static void send(rbt_frame *frame, uint64_t sequence, rbt_pack *stream)
{
    size_t before = stream->count, size = rbt_frame_size(frame);

    frame->header.sequence = sequence;
    rbt_frame_seal(frame);
    rbt_pack_bytes(stream, frame->bytes, frame->n);
    if (!(frame->header.flags & RBT_FRAME_IN_RING))
        add_body(frame, stream);
    assert_int_equal(stream->count - before, size);
    rbt_frame_destroy(frame);
}

static void say(rbt_frame_kind kind, uint64_t acked, rbt_pack *stream)
{
    uint8_t word[RBT_FRAME_HEADER];

    rbt_frame_word(kind, acked, word);
    rbt_pack_bytes(stream, word, sizeof word);
}

/* ---------------------------------------------------------------------------------------------- receiving */

typedef struct received {
    uint64_t count;   /* numbered frames */
    uint64_t words;   /* the others */
    uint64_t bytes;   /* of heads and bodies of the numbered ones */
    uint64_t content; /* a hash over them */
} received;

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    return rbt_hash(bytes, n, hash);
}

/* The content of an arrival as it would be sent again. */
static void take(rbt_arrival *a, received *r)
{
    if (a->header.sequence == 0) {
        r->words++;
    } else if (a->header.kind == RBT_FRAME_MESSAGE) {
        size_t n = rbt_wire_size(a->message);
        uint8_t *again = rbt_alloc(n, 1);

        assert_true(a->header.flags & RBT_FRAME_SQUEEZED || n == a->header.head + a->header.body);
        rbt_wire_encode(a->message, again);
        r->content = mix(r->content, again, n);
        r->bytes += n;
        rbt_free(again);
    } else {
        r->content = mix(mix(r->content, a->head, a->header.head), a->body, (size_t)a->header.body);
        r->bytes += a->header.head + a->header.body;
        assert_int_equal(a->head[a->header.head], 0);
    }
    r->count += a->header.sequence != 0;
    rbt_arrival_deinit(a);
}

static rbt_err take_all(rbt_intake *intake, received *r, rbt_error *error)
{
    for (;;) {
        rbt_arrival arrival;
        bool got = false, had_room = rbt_intake_ring_room(intake, &(size_t){0}) != NULL;
        rbt_err err = rbt_intake_next(intake, &arrival, &got, error);

        if (err == RBT_OK && !got && !had_room && rbt_intake_ring_room(intake, &(size_t){0}) != NULL)
            continue; /* this test has nothing in the ring yet */
        if (err != RBT_OK || !got)
            return err;
        take(&arrival, r);
    }
}

/* Puts at most n bytes where the intake wants them; returns how many. */
static size_t put_some(rbt_intake *intake, const uint8_t *bytes, size_t n)
{
    rbt_piece room[RBT_INTAKE_PIECES];
    size_t count = rbt_intake_room(intake, room), put = 0;

    assert_true(count >= 1 && count <= RBT_INTAKE_PIECES);
    for (size_t i = 0; i < count && put < n; i++) {
        size_t part = room[i].n < n - put ? room[i].n : n - put;

        assert_true(room[i].n > 0);
        memcpy(room[i].at, bytes + put, part);
        put += part;
    }
    rbt_intake_put(intake, put);
    return put;
}

/* Pieces of `piece` bytes; 0: as much as the intake takes at once. */
static rbt_err feed(rbt_intake *intake, const rbt_pack *stream, size_t piece, received *r, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t at = 0; at < stream->count && err == RBT_OK;) {
        size_t left = stream->count - at;

        at += put_some(intake, stream->at + at, piece > 0 && piece < left ? piece : left);
        err = take_all(intake, r, error);
    }
    return err;
}

static rbt_intake made_intake(uint64_t expected)
{
    rbt_intake intake;

    rbt_intake_init(&intake, HEAD_MAX, BODY_MAX);
    intake.expected = expected;
    return intake;
}

static void assert_refused(const rbt_pack *stream, uint64_t expected, const char *why)
{
    rbt_intake intake = made_intake(expected);
    received r = {0};
    rbt_error error = {RBT_OK, ""};

    assert_int_equal(feed(&intake, stream, 0, &r, &error), RBT_E_PROTOCOL);
    if (strstr(error.text, why) == NULL)
        fail_msg("expected '%s' in: %s", why, error.text);
    assert_int_equal(r.count, 0);
    rbt_intake_deinit(&intake);
}

/* --------------------------------------------------------------------------------------------- round trips */

static void frames_arrive_as_they_were_sent_in_pieces_of_every_size(void **state)
{
    static const size_t pieces[] = {1,   2,   3,    7,    13,   63,    64,    65,    127,
                                    500, 512, 1023, 1025, 4096, 65535, 65536, 70001, 0};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};
    received whole = {0};

    (void)state;
    for (uint64_t i = 1; i <= 60; i++) {
        rbt_frame *frame = rbt_rng_below(&rng, 3) > 0 ? rbt_frame_of_message(random_message(&rng, 300), 0, NULL)
                                                      : random_control(&rng, 20000);

        if (rbt_rng_below(&rng, 2) == 0)
            rbt_frame_sum_body(frame);
        send(frame, i, &stream);
        if (rbt_rng_below(&rng, 3) == 0)
            say(RBT_FRAME_ACK, i, &stream);
    }
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        rbt_intake intake = made_intake(1);
        received r = {0};
        rbt_error error;

        if (feed(&intake, &stream, pieces[p], &r, &error) != RBT_OK)
            fail_msg("%s", error.text);
        assert_int_equal(r.count, 60);
        assert_int_equal(intake.expected, 61);
        assert_int_equal(r.bytes + (r.count + r.words) * RBT_FRAME_HEADER, stream.count);
        if (p == 0)
            whole = r;
        assert_int_equal(r.content, whole.content);
        assert_int_equal(r.words, whole.words);
        rbt_intake_deinit(&intake);
    }
    rbt_array_free(&stream);
}

/* What arrives is what was sent, not only the same each time. */
static void the_content_is_the_senders(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 300; i++) {
        rbt_message *m = random_message(&rng, i % 10 == 0 ? 30000 : 200);
        size_t n = rbt_wire_size(m);
        uint8_t *bytes = rbt_alloc(n, 1);
        rbt_intake intake = made_intake(1);
        rbt_pack stream = {0};
        received r = {0};
        rbt_error error;

        rbt_wire_encode(m, bytes);
        send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
        if (feed(&intake, &stream, 1 + rbt_rng_below(&rng, 5000), &r, &error) != RBT_OK)
            fail_msg("%s", error.text);
        assert_int_equal(r.count, 1);
        assert_int_equal(r.content, mix(0, bytes, n));
        rbt_intake_deinit(&intake);
        rbt_array_free(&stream);
        rbt_free(bytes);
    }
}

static void many_small_frames_share_the_staging(void **state)
{
    rbt_pack stream = {0};
    rbt_intake intake = made_intake(1);
    received r = {0};
    rbt_error error;

    (void)state;
    for (uint32_t i = 1; i <= 5000; i++)
        send(rbt_frame_create(RBT_FRAME_CONTROL, &i, 1 + i % 4, NULL, 0), i, &stream);
    assert_int_equal(feed(&intake, &stream, 0, &r, &error), RBT_OK);
    assert_int_equal(r.count, 5000);
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

static void a_body_larger_than_the_staging_goes_to_its_place(void **state)
{
    size_t n = 10 * RBT_INTAKE_STAGING + 77;
    rbt_pack stream = {0};
    rbt_intake intake = made_intake(1);
    rbt_piece room[RBT_INTAKE_PIECES];
    received r = {0};
    rbt_error error;

    (void)state;
    send(rbt_frame_create(RBT_FRAME_CONTROL, "x", 1, rbt_alloc(n, 1), n), 1, &stream);
    assert_int_equal(put_some(&intake, stream.at, RBT_FRAME_HEADER + 1), RBT_FRAME_HEADER + 1);
    assert_int_equal(take_all(&intake, &r, &error), RBT_OK);
    assert_int_equal(rbt_intake_room(&intake, room), 2);
    assert_int_equal(room[0].n, n);
    assert_ptr_equal(room[0].at, intake.under_way.body);
    assert_int_equal(put_some(&intake, stream.at + RBT_FRAME_HEADER + 1, n), n);
    assert_int_equal(take_all(&intake, &r, &error), RBT_OK);
    assert_int_equal(r.count, 1);
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

static void repeats_are_dropped_and_the_rest_goes_on(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};
    rbt_intake intake = made_intake(4);
    received r = {0};
    rbt_error error;

    (void)state;
    for (uint64_t i = 2; i <= 6; i++) /* 2 and 3 have been received on an earlier connection */
        send(rbt_frame_of_message(random_message(&rng, 1000), 0, NULL), i, &stream);
    assert_int_equal(feed(&intake, &stream, 100, &r, &error), RBT_OK);
    assert_int_equal(r.count, 3);
    assert_int_equal(intake.expected, 7);
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

/* Messages over several connections: each begins with frames that had come before. What those brought is not noted twice, and
 * what only they brought is still known. */
static void squeezed_messages_survive_connections_that_break(void **state)
{
    rbt_rng rng = rbt_rng_stream(13, RBT_STREAM_TEST, 0);
    rbt_pack streams[60] = {{0}};
    rbt_keys sent = {0}, got = {0};
    uint64_t contents[60], next = 0;
    size_t squeezed = 0;

    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        rbt_message *m = random_message(&rng, i % 9 == 0 ? 30000 : 300);
        uint8_t *bytes = rbt_alloc(rbt_wire_size(m), 1);
        rbt_frame *frame;

        rbt_wire_encode(m, bytes);
        contents[i] = mix(0, bytes, rbt_wire_size(m));
        rbt_free(bytes);
        frame = rbt_frame_of_message(m, 15, &sent);
        squeezed += frame->header.flags == RBT_FRAME_SQUEEZED;
        if (i % 2 == 0)
            rbt_frame_sum_body(frame);
        send(frame, i + 1, &streams[i]);
    }
    assert_in_range(squeezed, 20, 60);
    while (next < 60) {
        uint64_t first = next > 5 ? next - rbt_rng_below(&rng, 5) : next, last = next + rbt_rng_below(&rng, 8);
        rbt_intake intake = made_intake(next + 1);
        rbt_error error;

        intake.keys = &got;
        for (uint64_t i = first; i <= last && i < 60; i++) {
            received r = {0};

            if (feed(&intake, &streams[i], rbt_rng_below(&rng, 300), &r, &error) != RBT_OK)
                fail_msg("%s", error.text);
            assert_int_equal(r.count, i >= next);
            assert_true(i < next || r.content == contents[i]);
        }
        next = intake.expected - 1;
        rbt_intake_deinit(&intake);
    }
    for (size_t i = 0; i < 60; i++)
        rbt_array_free(&streams[i]);
    rbt_keys_deinit(&sent);
    rbt_keys_deinit(&got);
}

static void a_squeezed_frame_must_be_a_message_and_keep_to_the_limit(void **state)
{
    rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, "hello", 5, NULL, 0);
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    rbt_pack stream = {0};

    (void)state;
    frame->header.flags = RBT_FRAME_SQUEEZED;
    send(frame, 1, &stream);
    assert_refused(&stream, 1, "no message");
    stream.count = 0;
    rbt_array_push(&m->parts,
                   ((rbt_part){.snap = rbt_snap_create(RBT_F32, BODY_MAX / 4 + 1)})); /* zeros: a few bytes */
    send(rbt_frame_of_message(m, RBT_CODEC_ZEROS, NULL), 1, &stream);
    assert_refused(&stream, 1, "longer than anything");
    rbt_array_free(&stream);
}

static void an_intake_ends_at_any_moment(void **state)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};

    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        send(rbt_frame_of_message(random_message(&rng, 300), 0, NULL), i, &stream);
    for (size_t n = 0; n < stream.count; n += 1 + n / 50) {
        rbt_pack part = {stream.at, n, n};
        rbt_intake intake = made_intake(1);
        received r = {0};
        rbt_error error;

        assert_int_equal(feed(&intake, &part, 0, &r, &error), RBT_OK);
        rbt_intake_deinit(&intake); /* the sanitizer sees leaks */
    }
    rbt_array_free(&stream);
}

/* ------------------------------------------------------------------------------------------------ the ring */

static void bodies_come_through_the_ring_with_words_between(void **state)
{
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);
    rbt_intake intake = made_intake(1);
    received r = {0};
    rbt_error error;
    uint64_t words = 0;

    (void)state;
    for (uint64_t i = 1; i <= 50; i++) {
        rbt_frame *frame = random_control(&rng, 5000);
        rbt_pack stream = {0}, ring = {0};
        size_t at = 0, n;
        uint8_t *to;

        frame->header.flags = RBT_FRAME_IN_RING;
        add_body(frame, &ring);
        send(frame, i, &stream);
        assert_int_equal(feed(&intake, &stream, 1 + rbt_rng_below(&rng, 100), &r, &error), RBT_OK);
        while ((to = rbt_intake_ring_room(&intake, &n)) != NULL) {
            size_t part = 1 + rbt_rng_below(&rng, n);

            assert_int_equal(r.count, i - 1);
            stream.count = 0;
            say(RBT_FRAME_MORE, 0, &stream);
            words++;
            assert_int_equal(feed(&intake, &stream, 1 + rbt_rng_below(&rng, 100), &r, &error), RBT_OK);
            memcpy(to, ring.at + at, part);
            at += part;
            rbt_intake_ring_put(&intake, part);
        }
        assert_int_equal(at, ring.count);
        assert_int_equal(take_all(&intake, &r, &error), RBT_OK);
        assert_int_equal(r.count, i);
        assert_int_equal(r.words, words);
        rbt_array_free(&stream);
        rbt_array_free(&ring);
    }
    rbt_intake_deinit(&intake);
}

static void a_frame_may_not_overtake_a_body_in_the_ring(void **state)
{
    rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, "a", 1, rbt_alloc(10, 1), 10);
    rbt_pack stream = {0};

    (void)state;
    frame->header.flags = RBT_FRAME_IN_RING;
    send(frame, 1, &stream);
    send(rbt_frame_create(RBT_FRAME_CONTROL, "b", 1, NULL, 0), 1, &stream);
    assert_refused(&stream, 1, "not complete");
    rbt_array_free(&stream);
}

static void a_body_in_the_ring_is_asked_for_before_what_follows_is_read(void **state)
{
    rbt_intake intake = made_intake(1);
    rbt_pack stream = {0};
    rbt_arrival arrival;
    rbt_error error;
    bool got = true;
    size_t n = 0;

    (void)state;
    for (uint64_t i = 1; i <= 2; i++) {
        rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, "a", 1, rbt_alloc(10, 1), 10);

        frame->header.flags = RBT_FRAME_IN_RING;
        send(frame, i, &stream);
    }
    assert_int_equal(put_some(&intake, stream.at, stream.count), stream.count); /* both in one piece */
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(rbt_intake_next(&intake, &arrival, &got, &error), RBT_OK);
        assert_false(got);
        assert_non_null(rbt_intake_ring_room(&intake, &n));
        assert_int_equal(n, 10);
        memset(rbt_intake_ring_room(&intake, &n), (int)i, n);
        rbt_intake_ring_put(&intake, n);
        assert_int_equal(rbt_intake_next(&intake, &arrival, &got, &error), RBT_OK);
        assert_true(got);
        assert_int_equal(arrival.header.sequence, i);
        assert_int_equal(arrival.body[9], i);
        rbt_arrival_deinit(&arrival);
    }
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

/* ----------------------------------------------------------------------------------------------- refusals */

/* The example of docs/formats.md. */
static const uint8_t golden[] = {
    0x52, 0x42, 0x54, 0x46,                         /* RBTF */
    3,    2,    2,    0,                            /* version 3, control, the body has a checksum */
    0,    0,    0,    0,                            /* view */
    3,    0,    0,    0,    0,    0,    0,    0,    /* from 3 to 0 */
    5,    0,    0,    0,                            /* 5 bytes of head */
    3,    0,    0,    0,    0,    0,    0,    0,    /* 3 bytes of body */
    7,    0,    0,    0,    0,    0,    0,    0,    /* the seventh frame */
    4,    0,    0,    0,    0,    0,    0,    0,    /* four have been received */
    0x3b, 0x73, 0xae, 0x32, 0x76, 0x9b, 0xce, 0xeb, /* the body's checksum */
    0xec, 0xdc, 0x99, 0x3e, 0x56, 0x6c, 0xa7, 0xb2, /* the checksum of the above and the head */
    'h',  'e',  'l',  'l',  'o',  1,    2,    3,
};

static rbt_frame *golden_frame(void)
{
    uint8_t *body = rbt_alloc(3, 1);
    rbt_frame *frame;

    memcpy(body, "\1\2\3", 3);
    frame = rbt_frame_create(RBT_FRAME_CONTROL, "hello", 5, body, 3);
    frame->header.from = 3;
    frame->header.acked = 4;
    rbt_frame_sum_body(frame);
    return frame;
}

static void golden_bytes(void **state)
{
    rbt_pack stream = {0};

    (void)state;
    send(golden_frame(), 7, &stream);
    assert_int_equal(stream.count, sizeof golden);
    assert_memory_equal(stream.at, golden, sizeof golden);
    rbt_array_free(&stream);
}

static void every_wrong_bit_is_noticed(void **state)
{
    rbt_pack stream = {0};

    (void)state;
    send(golden_frame(), 7, &stream);
    for (size_t bit = 0; bit < 8 * stream.count; bit++) {
        rbt_intake intake = made_intake(7);
        received r = {0};
        rbt_error error = {RBT_OK, ""};
        rbt_err err;

        stream.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        err = feed(&intake, &stream, 0, &r, &error);
        assert_int_equal(r.count, 0);
        /* no error yet: a length is larger, and the rest has not come */
        assert_true(err == RBT_E_PROTOCOL || (err == RBT_OK && bit / 8 >= 20 && bit / 8 < 32));
        assert_true(err == RBT_OK || error.text[0] != '\0');
        stream.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        rbt_intake_deinit(&intake);
    }
    rbt_array_free(&stream);
}

/* A frame whose header is changed, with a checksum that fits. */
static void change(rbt_pack *stream, size_t at, uint64_t value, size_t n)
{
    uint64_t sum;
    uint32_t head;

    memcpy(stream->at + at, &value, n);
    memcpy(&head, stream->at + 20, 4);
    if (head > stream->count - RBT_FRAME_HEADER)
        return;
    sum = rbt_hash(stream->at, RBT_FRAME_HEADER - 8, rbt_hash(stream->at + RBT_FRAME_HEADER, head, 0));
    memcpy(stream->at + RBT_FRAME_HEADER - 8, &sum, sizeof sum);
}

static void what_cannot_be_is_refused_by_its_header(void **state)
{
    static const struct {
        size_t at, n;
        uint64_t value;
        const char *why;
    } cases[] = {
        {0, 4, 0x46544253, "does not begin as one"},
        {4, 1, RBT_FRAME_VERSION + 1, "unknown version"},
        {7, 1, 1, "unknown version"},
        {5, 1, 0, "unknown kind"},
        {5, 1, RBT_FRAME_KINDS, "unknown kind"},
        {6, 1, 8, "unknown kind"},
        {5, 1, RBT_FRAME_SESSION, "has a number and should not"},
        {32, 8, 0, "should and does not"},
        {32, 8, 8, "a frame is missing"},
        {20, 4, HEAD_MAX + 1, "longer than anything"},
        {24, 8, BODY_MAX + 1, "longer than anything"},
        {24, 8, UINT64_MAX, "longer than anything"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_pack stream = {0}, header;
        rbt_intake intake = made_intake(7);

        send(golden_frame(), 7, &stream);
        change(&stream, cases[i].at, cases[i].value, cases[i].n);
        assert_refused(&stream, 7, cases[i].why);
        header = (rbt_pack){stream.at, RBT_FRAME_HEADER, RBT_FRAME_HEADER};
        assert_refused(&header, 7, cases[i].why); /* nothing had to come or be allocated for that */
        rbt_intake_deinit(&intake);
        rbt_array_free(&stream);
    }
}

static void a_short_frame_has_neither_head_nor_body(void **state)
{
    (void)state;
    for (int at = 20; at <= 24; at += 4) {
        rbt_pack stream = {0};

        say(RBT_FRAME_ACK, 9, &stream);
        rbt_pack_bytes(&stream, "xxxxxxxx", 8);
        change(&stream, (size_t)at, 8, 4);
        assert_refused(&stream, 1, "longer than anything");
        rbt_array_free(&stream);
    }
}

static void a_message_must_agree_with_its_frame(void **state)
{
    rbt_rng rng = rbt_rng_stream(6, RBT_STREAM_TEST, 0);

    (void)state;
    for (size_t at = 8; at <= 16; at += 4) { /* view, from, to */
        rbt_pack stream = {0};

        send(rbt_frame_of_message(random_message(&rng, 10), 0, NULL), 1, &stream);
        change(&stream, at, 77, 4);
        assert_refused(&stream, 1, "who speaks");
        rbt_array_free(&stream);
    }
}

static void a_message_must_fill_its_body(void **state)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    rbt_pack stream = {0};

    (void)state;
    rbt_array_push(&m->parts, ((rbt_part){.snap = rbt_snap_create(RBT_F32, 1000)}));
    send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
    change(&stream, 24, 4004, 8);
    assert_refused(&stream, 1, "goes on after its end");
    change(&stream, 24, 3996, 8);
    assert_refused(&stream, 1, "larger than what follows");
    rbt_array_free(&stream);
}

static void a_bodys_checksum_covers_it_however_it_is_cut(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 100; i++) {
        rbt_frame *frame = rbt_frame_of_message(random_message(&rng, i % 2 == 0 ? 20 : 2000), 0, NULL);
        uint64_t body = frame->header.body;
        rbt_pack stream = {0};

        rbt_frame_sum_body(frame);
        send(frame, 1, &stream);
        if (body > 0) {
            stream.at[stream.count - 1 - rbt_rng_below(&rng, body)] ^= 0x10;
            assert_refused(&stream, 1, "checksum of a frame's body");
        }
        rbt_array_free(&stream);
    }
}

static void indices_of_a_sparse_body_are_checked(void **state)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    rbt_snap *snap = rbt_snap_create_sparse(RBT_F32, 10, 2);
    rbt_pack stream = {0};

    (void)state;
    snap->index[0] = 3;
    snap->index[1] = 10;
    snap->f32[0] = snap->f32[1] = 1;
    rbt_array_push(&m->parts, ((rbt_part){.snap = snap}));
    send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
    assert_refused(&stream, 1, "indices");
    rbt_array_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_as_they_were_sent_in_pieces_of_every_size),
        cmocka_unit_test(the_content_is_the_senders),
        cmocka_unit_test(many_small_frames_share_the_staging),
        cmocka_unit_test(a_body_larger_than_the_staging_goes_to_its_place),
        cmocka_unit_test(repeats_are_dropped_and_the_rest_goes_on),
        cmocka_unit_test(squeezed_messages_survive_connections_that_break),
        cmocka_unit_test(a_squeezed_frame_must_be_a_message_and_keep_to_the_limit),
        cmocka_unit_test(an_intake_ends_at_any_moment),
        cmocka_unit_test(bodies_come_through_the_ring_with_words_between),
        cmocka_unit_test(a_frame_may_not_overtake_a_body_in_the_ring),
        cmocka_unit_test(a_body_in_the_ring_is_asked_for_before_what_follows_is_read),
        cmocka_unit_test(golden_bytes),
        cmocka_unit_test(every_wrong_bit_is_noticed),
        cmocka_unit_test(what_cannot_be_is_refused_by_its_header),
        cmocka_unit_test(a_short_frame_has_neither_head_nor_body),
        cmocka_unit_test(a_message_must_agree_with_its_frame),
        cmocka_unit_test(a_message_must_fill_its_body),
        cmocka_unit_test(a_bodys_checksum_covers_it_however_it_is_cut),
        cmocka_unit_test(indices_of_a_sparse_body_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
