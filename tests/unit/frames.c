/* Frames made at random, sent and received by hand; see frames.h. */
#include "unit/frames.h"

#include <string.h>

#include "base/hash.h"

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

rbt_message *frames_message(rbt_rng *rng, uint32_t most)
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

rbt_frame *frames_control(rbt_rng *rng, size_t most)
{
    size_t head_n = rbt_rng_below(rng, 300), body_n = rbt_rng_below(rng, 2) == 0 ? 0 : rbt_rng_below(rng, most + 1);
    uint8_t head[300], *body = rbt_alloc(body_n, 1);

    for (size_t i = 0; i < head_n; i++)
        head[i] = (uint8_t)rbt_rng_u64(rng);
    for (size_t i = 0; i < body_n; i++)
        body[i] = (uint8_t)rbt_rng_u64(rng);
    return rbt_frame_create(RBT_FRAME_CONTROL, head, head_n, body, body_n);
}

void frames_add_body(const rbt_frame *frame, rbt_pack *stream)
{
    for (size_t i = 0; i < frame->body.count; i++)
        rbt_pack_bytes(stream, frame->body.at[i].at, frame->body.at[i].n);
}

/* Appends the frame as a connection would carry it, and destroys it. */
void frames_send(rbt_frame *frame, uint64_t sequence, rbt_pack *stream)
{
    size_t before = stream->count, size = rbt_frame_size(frame);

    frame->header.sequence = sequence;
    rbt_frame_seal(frame);
    rbt_pack_bytes(stream, frame->bytes, frame->n);
    if (!(frame->header.flags & RBT_FRAME_IN_RING))
        frames_add_body(frame, stream);
    assert_int_equal(stream->count - before, size);
    rbt_frame_destroy(frame);
}

void frames_say(rbt_frame_kind kind, uint64_t acked, rbt_pack *stream)
{
    uint8_t word[RBT_FRAME_HEADER];

    rbt_frame_word(kind, acked, word);
    rbt_pack_bytes(stream, word, sizeof word);
}

/* ---------------------------------------------------------------------------------------------- receiving */

uint64_t frames_mix(uint64_t hash, const void *bytes, size_t n)
{
    return rbt_hash(bytes, n, hash);
}

/* The content of an arrival as it would be sent again. */
void frames_take_one(rbt_arrival *a, frames_received *r)
{
    if (a->header.sequence == 0) {
        r->words++;
    } else if (a->header.kind == RBT_FRAME_MESSAGE) {
        size_t n = rbt_wire_size(a->message);
        uint8_t *again = rbt_alloc(n, 1);

        assert_true(a->header.flags & RBT_FRAME_SQUEEZED || n == a->header.head + a->header.body);
        rbt_wire_encode(a->message, again);
        r->content = frames_mix(r->content, again, n);
        r->bytes += n;
        rbt_free(again);
    } else {
        r->content = frames_mix(frames_mix(r->content, a->head, a->header.head), a->body, (size_t)a->header.body);
        r->bytes += a->header.head + a->header.body;
        assert_int_equal(a->head[a->header.head], 0);
    }
    r->count += a->header.sequence != 0;
    rbt_arrival_deinit(a);
}

rbt_err frames_take(rbt_intake *intake, frames_received *r, rbt_error *error)
{
    for (;;) {
        rbt_arrival arrival;
        bool got = false, had_room = rbt_intake_ring_room(intake, &(size_t){0}) != NULL;
        rbt_err err = rbt_intake_next(intake, &arrival, &got, error);

        if (err == RBT_OK && !got && !had_room && rbt_intake_ring_room(intake, &(size_t){0}) != NULL)
            continue; /* this test has nothing in the ring yet */
        if (err != RBT_OK || !got)
            return err;
        frames_take_one(&arrival, r);
    }
}

/* Puts at most n bytes where the intake wants them; returns how many. */
size_t frames_put(rbt_intake *intake, const uint8_t *bytes, size_t n)
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
rbt_err frames_feed(rbt_intake *intake, const rbt_pack *stream, size_t piece, frames_received *r, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t at = 0; at < stream->count && err == RBT_OK;) {
        size_t left = stream->count - at;

        at += frames_put(intake, stream->at + at, piece > 0 && piece < left ? piece : left);
        err = frames_take(intake, r, error);
    }
    return err;
}

rbt_intake frames_intake(uint64_t expected)
{
    rbt_intake intake;

    rbt_intake_init(&intake, FRAMES_HEAD_MAX, FRAMES_BODY_MAX);
    intake.expected = expected;
    return intake;
}

void frames_are_refused(const rbt_pack *stream, uint64_t expected, const char *why)
{
    rbt_intake intake = frames_intake(expected);
    frames_received r = {0};
    rbt_error error = {RBT_OK, ""};

    assert_int_equal(frames_feed(&intake, stream, 0, &r, &error), RBT_E_PROTOCOL);
    if (strstr(error.text, why) == NULL)
        fail_msg("expected '%s' in: %s", why, error.text);
    assert_int_equal(r.count, 0);
    rbt_intake_deinit(&intake);
}
