/* Proves src/runtime/cluster/frame.c: golden bytes; a frame that is damaged, out of turn or lies about its lengths is refused, and
 * before anything is allocated for it. */
#include "unit/frames.h"

#include <string.h>

#include "base/hash.h"

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
    frames_send(golden_frame(), 7, &stream);
    assert_int_equal(stream.count, sizeof golden);
    assert_memory_equal(stream.at, golden, sizeof golden);
    rbt_array_free(&stream);
}

static void every_wrong_bit_is_noticed(void **state)
{
    rbt_pack stream = {0};

    (void)state;
    frames_send(golden_frame(), 7, &stream);
    for (size_t bit = 0; bit < 8 * stream.count; bit++) {
        rbt_intake intake = frames_intake(7);
        frames_received r = {0};
        rbt_error error = {RBT_OK, ""};
        rbt_err err;

        stream.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        err = frames_feed(&intake, &stream, 0, &r, &error);
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
        {20, 4, FRAMES_HEAD_MAX + 1, "longer than anything"},
        {24, 8, FRAMES_BODY_MAX + 1, "longer than anything"},
        {24, 8, UINT64_MAX, "longer than anything"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_pack stream = {0}, header;
        rbt_intake intake = frames_intake(7);

        frames_send(golden_frame(), 7, &stream);
        change(&stream, cases[i].at, cases[i].value, cases[i].n);
        frames_are_refused(&stream, 7, cases[i].why);
        header = (rbt_pack){stream.at, RBT_FRAME_HEADER, RBT_FRAME_HEADER};
        frames_are_refused(&header, 7, cases[i].why); /* nothing had to come or be allocated for that */
        rbt_intake_deinit(&intake);
        rbt_array_free(&stream);
    }
}

static void a_short_frame_has_neither_head_nor_body(void **state)
{
    (void)state;
    for (int at = 20; at <= 24; at += 4) {
        rbt_pack stream = {0};

        frames_say(RBT_FRAME_ACK, 9, &stream);
        rbt_pack_bytes(&stream, "xxxxxxxx", 8);
        change(&stream, (size_t)at, 8, 4);
        frames_are_refused(&stream, 1, "longer than anything");
        rbt_array_free(&stream);
    }
}

static void a_message_must_agree_with_its_frame(void **state)
{
    rbt_rng rng = rbt_rng_stream(6, RBT_STREAM_TEST, 0);

    (void)state;
    for (size_t at = 8; at <= 16; at += 4) { /* view, from, to */
        rbt_pack stream = {0};

        frames_send(rbt_frame_of_message(frames_message(&rng, 10), 0, NULL), 1, &stream);
        change(&stream, at, 77, 4);
        frames_are_refused(&stream, 1, "who speaks");
        rbt_array_free(&stream);
    }
}

static void a_message_must_fill_its_body(void **state)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    rbt_pack stream = {0};

    (void)state;
    rbt_array_push(&m->parts, ((rbt_part){.snap = rbt_snap_create(RBT_F32, 1000)}));
    frames_send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
    change(&stream, 24, 4004, 8);
    frames_are_refused(&stream, 1, "goes on after its end");
    change(&stream, 24, 3996, 8);
    frames_are_refused(&stream, 1, "larger than what follows");
    rbt_array_free(&stream);
}

static void a_bodys_checksum_covers_it_however_it_is_cut(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)state;
    for (int i = 0; i < 100; i++) {
        rbt_frame *frame = rbt_frame_of_message(frames_message(&rng, i % 2 == 0 ? 20 : 2000), 0, NULL);
        uint64_t body = frame->header.body;
        rbt_pack stream = {0};

        rbt_frame_sum_body(frame);
        frames_send(frame, 1, &stream);
        if (body > 0) {
            stream.at[stream.count - 1 - rbt_rng_below(&rng, body)] ^= 0x10;
            frames_are_refused(&stream, 1, "checksum of a frame's body");
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
    frames_send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
    frames_are_refused(&stream, 1, "indices");
    rbt_array_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
