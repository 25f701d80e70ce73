/* Proves src/runtime/cluster/frame.c: frames arrive as they were sent in whatever pieces the connection brings them, also
 * with bodies that come through the ring; repeats are dropped. What is refused: test_frame_refusals.c. */
#include "unit/frames.h"

#include <string.h>

/* --------------------------------------------------------------------------------------------- round trips */

static void frames_arrive_as_they_were_sent_in_pieces_of_every_size(void **state)
{
    static const size_t pieces[] = {1,   2,   3,    7,    13,   63,    64,    65,    127,
                                    500, 512, 1023, 1025, 4096, 65535, 65536, 70001, 0};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};
    frames_received whole = {0};

    (void)state;
    for (uint64_t i = 1; i <= 60; i++) {
        rbt_frame *frame = rbt_rng_below(&rng, 3) > 0 ? rbt_frame_of_message(frames_message(&rng, 300), 0, NULL)
                                                      : frames_control(&rng, 20000);

        if (rbt_rng_below(&rng, 2) == 0)
            rbt_frame_sum_body(frame);
        frames_send(frame, i, &stream);
        if (rbt_rng_below(&rng, 3) == 0)
            frames_say(RBT_FRAME_ACK, i, &stream);
    }
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        rbt_intake intake = frames_intake(1);
        frames_received r = {0};
        rbt_error error;

        if (frames_feed(&intake, &stream, pieces[p], &r, &error) != RBT_OK)
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
        rbt_message *m = frames_message(&rng, i % 10 == 0 ? 30000 : 200);
        size_t n = rbt_wire_size(m);
        uint8_t *bytes = rbt_alloc(n, 1);
        rbt_intake intake = frames_intake(1);
        rbt_pack stream = {0};
        frames_received r = {0};
        rbt_error error;

        rbt_wire_encode(m, bytes);
        frames_send(rbt_frame_of_message(m, 0, NULL), 1, &stream);
        if (frames_feed(&intake, &stream, 1 + rbt_rng_below(&rng, 5000), &r, &error) != RBT_OK)
            fail_msg("%s", error.text);
        assert_int_equal(r.count, 1);
        assert_int_equal(r.content, frames_mix(0, bytes, n));
        rbt_intake_deinit(&intake);
        rbt_array_free(&stream);
        rbt_free(bytes);
    }
}

static void many_small_frames_share_the_staging(void **state)
{
    rbt_pack stream = {0};
    rbt_intake intake = frames_intake(1);
    frames_received r = {0};
    rbt_error error;

    (void)state;
    for (uint32_t i = 1; i <= 5000; i++)
        frames_send(rbt_frame_create(RBT_FRAME_CONTROL, &i, 1 + i % 4, NULL, 0), i, &stream);
    assert_int_equal(frames_feed(&intake, &stream, 0, &r, &error), RBT_OK);
    assert_int_equal(r.count, 5000);
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

static void a_body_larger_than_the_staging_goes_to_its_place(void **state)
{
    size_t n = 10 * RBT_INTAKE_STAGING + 77;
    rbt_pack stream = {0};
    rbt_intake intake = frames_intake(1);
    rbt_piece room[RBT_INTAKE_PIECES];
    frames_received r = {0};
    rbt_error error;

    (void)state;
    frames_send(rbt_frame_create(RBT_FRAME_CONTROL, "x", 1, rbt_alloc(n, 1), n), 1, &stream);
    assert_int_equal(frames_put(&intake, stream.at, RBT_FRAME_HEADER + 1), RBT_FRAME_HEADER + 1);
    assert_int_equal(frames_take(&intake, &r, &error), RBT_OK);
    assert_int_equal(rbt_intake_room(&intake, room), 2);
    assert_int_equal(room[0].n, n);
    assert_ptr_equal(room[0].at, intake.under_way.body);
    assert_int_equal(frames_put(&intake, stream.at + RBT_FRAME_HEADER + 1, n), n);
    assert_int_equal(frames_take(&intake, &r, &error), RBT_OK);
    assert_int_equal(r.count, 1);
    rbt_intake_deinit(&intake);
    rbt_array_free(&stream);
}

static void repeats_are_dropped_and_the_rest_goes_on(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};
    rbt_intake intake = frames_intake(4);
    frames_received r = {0};
    rbt_error error;

    (void)state;
    for (uint64_t i = 2; i <= 6; i++) /* 2 and 3 have been received on an earlier connection */
        frames_send(rbt_frame_of_message(frames_message(&rng, 1000), 0, NULL), i, &stream);
    assert_int_equal(frames_feed(&intake, &stream, 100, &r, &error), RBT_OK);
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
        rbt_message *m = frames_message(&rng, i % 9 == 0 ? 30000 : 300);
        uint8_t *bytes = rbt_alloc(rbt_wire_size(m), 1);
        rbt_frame *frame;

        rbt_wire_encode(m, bytes);
        contents[i] = frames_mix(0, bytes, rbt_wire_size(m));
        rbt_free(bytes);
        frame = rbt_frame_of_message(m, 15, &sent);
        squeezed += frame->header.flags == RBT_FRAME_SQUEEZED;
        if (i % 2 == 0)
            rbt_frame_sum_body(frame);
        frames_send(frame, i + 1, &streams[i]);
    }
    assert_in_range(squeezed, 20, 60);
    while (next < 60) {
        uint64_t first = next > 5 ? next - rbt_rng_below(&rng, 5) : next, last = next + rbt_rng_below(&rng, 8);
        rbt_intake intake = frames_intake(next + 1);
        rbt_error error;

        intake.keys = &got;
        for (uint64_t i = first; i <= last && i < 60; i++) {
            frames_received r = {0};

            if (frames_feed(&intake, &streams[i], rbt_rng_below(&rng, 300), &r, &error) != RBT_OK)
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

/* The same bytes for several, from blocks that are held once. */
static void frames_of_shared_blocks_carry_their_values(void **state)
{
    rbt_message *blocks = rbt_message_create(RBT_MSG_BLOCKS, 0, 0);
    rbt_pack streams[2] = {{0}};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        rbt_snap *snap = rbt_snap_create(RBT_F32, 100 * i); /* one of them is empty */

        for (uint32_t k = 0; k < snap->length; k++)
            snap->f32[k] = (float)(1000 * i + k);
        rbt_array_push(&blocks->parts, ((rbt_part){.snap = snap}));
    }
    for (size_t i = 0; i < 2; i++) {
        rbt_frame *frame = rbt_frame_of_blocks(RBT_FRAME_CONTROL, "hello", 5, rbt_message_copy(blocks));
        rbt_intake intake = frames_intake(1);
        rbt_arrival a;
        bool got = false;

        assert_ptr_equal(frame->body.at[0].at, blocks->parts.at[1].snap->value);
        frames_send(frame, 1, &streams[i]);
        for (size_t at = 0; at < streams[i].count;)
            at += frames_put(&intake, streams[i].at + at, streams[i].count - at);
        assert_int_equal(rbt_intake_next(&intake, &a, &got, NULL), RBT_OK);
        assert_true(got);
        assert_int_equal(a.header.body, 300 * sizeof(float));
        assert_memory_equal(a.body, blocks->parts.at[1].snap->f32, 100 * sizeof(float));
        assert_memory_equal(a.body + 100 * sizeof(float), blocks->parts.at[2].snap->f32, 200 * sizeof(float));
        rbt_arrival_deinit(&a);
        rbt_intake_deinit(&intake);
        rbt_array_free(&streams[i]);
    }
    rbt_message_destroy(blocks);
}

static void a_squeezed_frame_must_be_a_message_and_keep_to_the_limit(void **state)
{
    rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, "hello", 5, NULL, 0);
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    rbt_pack stream = {0};

    (void)state;
    frame->header.flags = RBT_FRAME_SQUEEZED;
    frames_send(frame, 1, &stream);
    frames_are_refused(&stream, 1, "no message");
    stream.count = 0;
    rbt_array_push(&m->parts,
                   ((rbt_part){.snap = rbt_snap_create(RBT_F32, FRAMES_BODY_MAX / 4 + 1)})); /* zeros: a few bytes */
    frames_send(rbt_frame_of_message(m, RBT_CODEC_ZEROS, NULL), 1, &stream);
    frames_are_refused(&stream, 1, "longer than anything");
    rbt_array_free(&stream);
}

static void an_intake_ends_at_any_moment(void **state)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    rbt_pack stream = {0};

    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        frames_send(rbt_frame_of_message(frames_message(&rng, 300), 0, NULL), i, &stream);
    for (size_t n = 0; n < stream.count; n += 1 + n / 50) {
        rbt_pack part = {stream.at, n, n};
        rbt_intake intake = frames_intake(1);
        frames_received r = {0};
        rbt_error error;

        assert_int_equal(frames_feed(&intake, &part, 0, &r, &error), RBT_OK);
        rbt_intake_deinit(&intake); /* the sanitizer sees leaks */
    }
    rbt_array_free(&stream);
}

/* ------------------------------------------------------------------------------------------------ the ring */

static void bodies_come_through_the_ring_with_words_between(void **state)
{
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);
    rbt_intake intake = frames_intake(1);
    frames_received r = {0};
    rbt_error error;
    uint64_t words = 0;

    (void)state;
    for (uint64_t i = 1; i <= 50; i++) {
        rbt_frame *frame = frames_control(&rng, 5000);
        rbt_pack stream = {0}, ring = {0};
        size_t at = 0, n;
        uint8_t *to;

        frame->header.flags = RBT_FRAME_IN_RING;
        frames_add_body(frame, &ring);
        frames_send(frame, i, &stream);
        assert_int_equal(frames_feed(&intake, &stream, 1 + rbt_rng_below(&rng, 100), &r, &error), RBT_OK);
        while ((to = rbt_intake_ring_room(&intake, &n)) != NULL) {
            size_t part = 1 + rbt_rng_below(&rng, n);

            assert_int_equal(r.count, i - 1);
            stream.count = 0;
            frames_say(RBT_FRAME_MORE, 0, &stream);
            words++;
            assert_int_equal(frames_feed(&intake, &stream, 1 + rbt_rng_below(&rng, 100), &r, &error), RBT_OK);
            memcpy(to, ring.at + at, part);
            at += part;
            rbt_intake_ring_put(&intake, part);
        }
        assert_int_equal(at, ring.count);
        assert_int_equal(frames_take(&intake, &r, &error), RBT_OK);
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
    frames_send(frame, 1, &stream);
    frames_send(rbt_frame_create(RBT_FRAME_CONTROL, "b", 1, NULL, 0), 1, &stream);
    frames_are_refused(&stream, 1, "not complete");
    rbt_array_free(&stream);
}

static void a_body_in_the_ring_is_asked_for_before_what_follows_is_read(void **state)
{
    rbt_intake intake = frames_intake(1);
    rbt_pack stream = {0};
    rbt_arrival arrival;
    rbt_error error;
    bool got = true;
    size_t n = 0;

    (void)state;
    for (uint64_t i = 1; i <= 2; i++) {
        rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, "a", 1, rbt_alloc(10, 1), 10);

        frame->header.flags = RBT_FRAME_IN_RING;
        frames_send(frame, i, &stream);
    }
    assert_int_equal(frames_put(&intake, stream.at, stream.count), stream.count); /* both in one piece */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_as_they_were_sent_in_pieces_of_every_size),
        cmocka_unit_test(the_content_is_the_senders),
        cmocka_unit_test(many_small_frames_share_the_staging),
        cmocka_unit_test(a_body_larger_than_the_staging_goes_to_its_place),
        cmocka_unit_test(repeats_are_dropped_and_the_rest_goes_on),
        cmocka_unit_test(squeezed_messages_survive_connections_that_break),
        cmocka_unit_test(frames_of_shared_blocks_carry_their_values),
        cmocka_unit_test(a_squeezed_frame_must_be_a_message_and_keep_to_the_limit),
        cmocka_unit_test(an_intake_ends_at_any_moment),
        cmocka_unit_test(bodies_come_through_the_ring_with_words_between),
        cmocka_unit_test(a_frame_may_not_overtake_a_body_in_the_ring),
        cmocka_unit_test(a_body_in_the_ring_is_asked_for_before_what_follows_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
