/* Frames; the contract is in frame.h. */
#include "runtime/cluster/frame.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define SUM_AT (RBT_FRAME_HEADER - 8) /* the header's last field: the checksum of the rest and the head */

/* -------------------------------------------------------------------------------------------------- header */

static void write_header(const rbt_frame_header *h, const uint8_t *head, uint8_t *bytes)
{
    const uint32_t words[] = {RBT_FRAME_MAGIC, RBT_FRAME_VERSION | (uint32_t)h->kind << 8 | (uint32_t)h->flags << 16,
                              h->view,         h->from,
                              h->to,           h->head};
    const uint64_t longs[] = {h->body, h->sequence, h->acked, h->body_sum};
    uint64_t sum;

    memcpy(bytes, words, sizeof words);
    memcpy(bytes + sizeof words, longs, sizeof longs);
    sum = rbt_hash(bytes, SUM_AT, rbt_hash(head, h->head, 0));
    memcpy(bytes + SUM_AT, &sum, sizeof sum);
}

static rbt_err refuse(rbt_error *error, const char *what)
{
    return rbt_fail(error, RBT_E_PROTOCOL, "%s; the other side is damaged, hostile or speaks another version", what);
}

static rbt_err read_header(const uint8_t *bytes, const rbt_intake *intake, rbt_frame_header *h, rbt_error *error)
{
    uint32_t words[6];
    uint64_t longs[4];

    memcpy(words, bytes, sizeof words);
    memcpy(longs, bytes + sizeof words, sizeof longs);
    if (words[0] != RBT_FRAME_MAGIC)
        return refuse(error, "a frame does not begin as one");
    if ((words[1] & 0xff) != RBT_FRAME_VERSION || words[1] >> 24 != 0)
        return refuse(error, "a frame has an unknown version");
    *h = (rbt_frame_header){.kind = (uint8_t)(words[1] >> 8),
                            .flags = (uint8_t)(words[1] >> 16),
                            .view = words[2],
                            .from = words[3],
                            .to = words[4],
                            .head = words[5],
                            .body = longs[0],
                            .sequence = longs[1],
                            .acked = longs[2],
                            .body_sum = longs[3]};
    if (h->kind == 0 || h->kind >= RBT_FRAME_KINDS || (h->flags & ~RBT_FRAME_FLAGS) != 0)
        return refuse(error, "a frame is of an unknown kind");
    if (h->flags & RBT_FRAME_SQUEEZED && h->kind != RBT_FRAME_MESSAGE)
        return refuse(error, "a frame is squeezed that is no message");
    if ((h->sequence != 0) != (h->kind <= RBT_FRAME_CONTROL))
        return refuse(error, "a frame has a number and should not, or should and does not");
    if (h->head > intake->head_max || h->body > intake->body_max ||
        (h->kind >= RBT_FRAME_ACK && (h->head != 0 || h->body != 0)))
        return refuse(error, "a frame is longer than anything this job has to say");
    if (h->sequence > intake->expected)
        return refuse(error, "a frame is missing");
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------- sending */

rbt_frame *rbt_frame_of_message(rbt_message *message, unsigned codec, rbt_keys *keys)
{
    rbt_frame *frame = rbt_alloc(1, sizeof *frame);
    size_t head = rbt_wire_head_size(message), body = rbt_wire_body_size(message);
    rbt_pack squeezed = {0};
    bool is_squeezed = rbt_squeeze(message, codec, keys, &squeezed), is_small;

    body = is_squeezed ? squeezed.count : body;
    is_small = body <= RBT_FRAME_INLINE;
    frame->header = (rbt_frame_header){.kind = RBT_FRAME_MESSAGE,
                                       .flags = is_squeezed ? RBT_FRAME_SQUEEZED : 0,
                                       .view = message->view,
                                       .from = message->from,
                                       .to = message->to,
                                       .head = (uint32_t)head,
                                       .body = body};
    frame->n = RBT_FRAME_HEADER + head + (is_small ? body : 0);
    frame->bytes = rbt_alloc(frame->n, 1);
    if (is_small && !is_squeezed) {
        rbt_wire_encode(message, frame->bytes + RBT_FRAME_HEADER);
        rbt_message_destroy(message);
        rbt_array_free(&squeezed);
        return frame;
    }
    rbt_wire_encode_head(message, frame->bytes + RBT_FRAME_HEADER);
    if (!is_squeezed) {
        rbt_wire_body(message, &frame->body);
        frame->message = message;
        rbt_array_free(&squeezed);
        return frame;
    }
    rbt_message_destroy(message);
    if (is_small) {
        memcpy(frame->bytes + RBT_FRAME_HEADER + head, squeezed.at, body);
        rbt_array_free(&squeezed);
    } else {
        frame->owned = squeezed.at;
        rbt_array_push(&frame->body, ((rbt_piece){squeezed.at, body}));
    }
    return frame;
}

rbt_frame *rbt_frame_create(rbt_frame_kind kind, const void *head, size_t n, void *body, size_t body_n)
{
    rbt_frame *frame = rbt_alloc(1, sizeof *frame);

    frame->header = (rbt_frame_header){.kind = (uint8_t)kind, .head = (uint32_t)n, .body = body_n};
    frame->n = RBT_FRAME_HEADER + n;
    frame->bytes = rbt_alloc(frame->n, 1);
    if (n > 0)
        memcpy(frame->bytes + RBT_FRAME_HEADER, head, n);
    frame->owned = body;
    if (body_n > 0)
        rbt_array_push(&frame->body, ((rbt_piece){body, body_n}));
    return frame;
}

rbt_frame *rbt_frame_of_blocks(rbt_frame_kind kind, const void *head, size_t n, rbt_message *blocks)
{
    rbt_frame *frame = rbt_frame_create(kind, head, n, NULL, 0);

    for (size_t i = 0; i < blocks->parts.count; i++) {
        const rbt_snap *snap = blocks->parts.at[i].snap;
        size_t bytes = snap->count * rbt_type_size(snap->type);

        RBT_ASSERT(snap->form == RBT_DENSE);
        if (bytes > 0)
            rbt_array_push(&frame->body, ((rbt_piece){snap->value, bytes}));
        frame->header.body += bytes;
    }
    frame->message = blocks;
    return frame;
}

void rbt_frame_destroy(rbt_frame *frame)
{
    if (frame == NULL)
        return;
    rbt_message_destroy(frame->message);
    rbt_array_free(&frame->body);
    rbt_free(frame->owned);
    rbt_free(frame->bytes);
    rbt_free(frame);
}

/* Over the bytes, however they are cut into pieces. */
static uint64_t sum_of(const rbt_pieces *pieces)
{
    rbt_hasher *hasher;
    uint64_t sum;

    if (pieces->count == 1)
        return rbt_hash(pieces->at[0].at, pieces->at[0].n, 0);
    hasher = rbt_hasher_create(0);
    for (size_t i = 0; i < pieces->count; i++)
        rbt_hasher_add(hasher, pieces->at[i].at, pieces->at[i].n);
    sum = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
    return sum;
}

void rbt_frame_sum_body(rbt_frame *frame)
{
    if (frame->header.body == 0 || frame->header.flags & RBT_FRAME_SUMMED)
        return;
    if (frame->body.count > 0)
        frame->header.body_sum = sum_of(&frame->body);
    else /* behind the head */
        frame->header.body_sum =
            rbt_hash(frame->bytes + RBT_FRAME_HEADER + frame->header.head, (size_t)frame->header.body, 0);
    frame->header.flags |= RBT_FRAME_SUMMED;
}

void rbt_frame_seal(rbt_frame *frame)
{
    write_header(&frame->header, frame->bytes + RBT_FRAME_HEADER, frame->bytes);
}

void rbt_frame_word(rbt_frame_kind kind, uint64_t acked, uint8_t bytes[RBT_FRAME_HEADER])
{
    write_header(&(rbt_frame_header){.kind = (uint8_t)kind, .acked = acked}, NULL, bytes);
}

rbt_frame_kind rbt_frame_word_kind(const uint8_t bytes[RBT_FRAME_HEADER])
{
    return (rbt_frame_kind)bytes[5];
}

size_t rbt_frame_size(const rbt_frame *frame)
{
    return RBT_FRAME_HEADER + frame->header.head +
           (frame->header.flags & RBT_FRAME_IN_RING ? 0 : (size_t)frame->header.body);
}

/* ----------------------------------------------------------------------------------------------- receiving */

void rbt_arrival_deinit(rbt_arrival *arrival)
{
    rbt_message_destroy(arrival->message);
    rbt_free(arrival->head);
    rbt_free(arrival->body);
    *arrival = (rbt_arrival){0};
}

void rbt_intake_init(rbt_intake *intake, uint64_t head_max, uint64_t body_max)
{
    *intake = (rbt_intake){.head_max = head_max, .body_max = body_max, .expected = 1};
    intake->staging = rbt_alloc(RBT_INTAKE_STAGING, 1);
}

void rbt_intake_deinit(rbt_intake *intake)
{
    rbt_free(intake->staging);
    rbt_free(intake->head);
    rbt_array_free(&intake->body);
    rbt_arrival_deinit(&intake->under_way);
    *intake = (rbt_intake){0};
}

static bool is_in_ring(const rbt_intake *intake)
{
    return intake->has_head && intake->under_way.header.flags & RBT_FRAME_IN_RING;
}

/* Moves on by n bytes of the body. */
static void body_came(rbt_intake *intake, size_t n)
{
    intake->body_done += n;
    while (n > 0) {
        size_t left = intake->body.at[intake->piece].n - intake->piece_done;

        if (n < left) {
            intake->piece_done += n;
            return;
        }
        n -= left;
        intake->piece++;
        intake->piece_done = 0;
    }
}

/* What is large goes straight to its place, behind it into the staging, which is empty then. */
size_t rbt_intake_room(rbt_intake *intake, rbt_piece room[RBT_INTAKE_PIECES])
{
    size_t count = 0;

    if (intake->at == intake->end)
        intake->at = intake->end = 0;
    if (intake->end == 0 && intake->has_header && !intake->has_head)
        room[count++] =
            (rbt_piece){intake->head + intake->head_done, intake->under_way.header.head - intake->head_done};
    if (intake->end == 0 && intake->has_head && !is_in_ring(intake))
        for (size_t i = intake->piece; i < intake->body.count && count < RBT_INTAKE_PIECES - 1; i++) {
            size_t done = i == intake->piece ? intake->piece_done : 0;

            room[count++] = (rbt_piece){(uint8_t *)intake->body.at[i].at + done, intake->body.at[i].n - done};
        }
    if (intake->end == RBT_INTAKE_STAGING) { /* a part of a header or a head at the end of the staging */
        memmove(intake->staging, intake->staging + intake->at, intake->end - intake->at);
        intake->end -= intake->at;
        intake->at = 0;
    }
    if (intake->piece + count >= intake->body.count || count == 0 || !intake->has_head)
        room[count++] = (rbt_piece){intake->staging + intake->end, RBT_INTAKE_STAGING - intake->end};
    return count;
}

void rbt_intake_put(rbt_intake *intake, size_t n)
{
    if (intake->end == 0 && intake->has_header && !intake->has_head) {
        size_t left = intake->under_way.header.head - intake->head_done, part = n < left ? n : left;

        intake->head_done += part;
        n -= part;
    } else if (intake->end == 0 && intake->has_head && !is_in_ring(intake)) {
        uint64_t left = intake->under_way.header.body - intake->body_done;
        size_t part = n < left ? n : (size_t)left;

        body_came(intake, part);
        n -= part;
    }
    intake->end += n;
}

uint8_t *rbt_intake_ring_room(rbt_intake *intake, size_t *n)
{
    if (!is_in_ring(intake) || intake->piece >= intake->body.count)
        return NULL;
    *n = intake->body.at[intake->piece].n - intake->piece_done;
    return (uint8_t *)intake->body.at[intake->piece].at + intake->piece_done;
}

void rbt_intake_ring_put(rbt_intake *intake, size_t n)
{
    body_came(intake, n);
}

static rbt_err take_header(rbt_intake *intake, bool *got, rbt_error *error)
{
    rbt_frame_header *header = &intake->under_way.header;
    rbt_err err;

    *got = intake->end - intake->at >= RBT_FRAME_HEADER;
    if (!*got)
        return RBT_OK;
    err = read_header(intake->staging + intake->at, intake, header, error);
    if (err != RBT_OK)
        return err;
    /* The header is kept behind the head: one checksum is over both. */
    intake->head = rbt_try_alloc_raw(RBT_FRAME_HEADER + (size_t)header->head + 1, 1);
    if (intake->head == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a frame's head of %u bytes", header->head);
    memcpy(intake->head + header->head + 1, intake->staging + intake->at, RBT_FRAME_HEADER);
    intake->at += RBT_FRAME_HEADER;
    intake->has_header = true;
    intake->head_done = 0;
    return RBT_OK;
}

static rbt_err check_head(const rbt_intake *intake, rbt_error *error)
{
    const uint8_t *header = intake->head + intake->under_way.header.head + 1;
    uint64_t sum;

    memcpy(&sum, header + SUM_AT, sizeof sum);
    if (sum != rbt_hash(header, SUM_AT, rbt_hash(intake->head, intake->under_way.header.head, 0)))
        return refuse(error, "a frame's checksum does not fit");
    return RBT_OK;
}

/* Do the frame and the message in it agree on who speaks? */
static rbt_err check_message(const rbt_arrival *a, rbt_error *error)
{
    if (a->message->from != a->header.from || a->message->to != a->header.to || a->message->view != a->header.view)
        return refuse(error, "a frame and the message in it do not agree on who speaks");
    return RBT_OK;
}

/* The head is there: it makes room for the body. */
static rbt_err open_body(rbt_intake *intake, rbt_error *error)
{
    rbt_arrival *a = &intake->under_way;
    rbt_err err = check_head(intake, error);

    if (err != RBT_OK)
        return err;
    intake->head[a->header.head] = 0;
    if (a->header.kind == RBT_FRAME_MESSAGE && !(a->header.flags & RBT_FRAME_SQUEEZED)) {
        err = rbt_wire_decode_head(intake->head, a->header.head, (size_t)a->header.body, &a->message, error);
        if (err == RBT_OK)
            err = check_message(a, error);
        if (err == RBT_OK)
            rbt_wire_body(a->message, &intake->body);
    } else if (a->header.body > 0) {
        a->body = rbt_try_alloc_raw((size_t)a->header.body, 1);
        if (a->body == NULL)
            return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a frame of %llu bytes",
                            (unsigned long long)a->header.body);
        rbt_array_push(&intake->body, ((rbt_piece){a->body, (size_t)a->header.body}));
    }
    intake->has_head = err == RBT_OK;
    return err;
}

/* A squeezed body has come, and is new: each is looked at once, for it may name what those before it have brought. */
static rbt_err unsqueeze(const rbt_intake *intake, rbt_arrival *a, rbt_error *error)
{
    rbt_err err = rbt_unsqueeze(intake->head, a->header.head, a->body, (size_t)a->header.body, intake->body_max,
                                intake->keys, &a->message, error);

    rbt_free(a->body);
    a->body = NULL;
    return err == RBT_OK ? check_message(a, error) : err;
}

/* Moves what has been staged to where it belongs. */
static void unstage(rbt_intake *intake)
{
    if (intake->has_header && !intake->has_head) {
        size_t left = intake->under_way.header.head - intake->head_done, there = intake->end - intake->at;
        size_t part = there < left ? there : left;

        memcpy(intake->head + intake->head_done, intake->staging + intake->at, part);
        intake->head_done += part;
        intake->at += part;
    }
    while (intake->has_head && !is_in_ring(intake) && intake->piece < intake->body.count && intake->at < intake->end) {
        size_t left = intake->body.at[intake->piece].n - intake->piece_done, there = intake->end - intake->at;
        size_t part = there < left ? there : left;

        memcpy((uint8_t *)intake->body.at[intake->piece].at + intake->piece_done, intake->staging + intake->at, part);
        intake->at += part;
        body_came(intake, part);
    }
}

/* The frame is complete: is it sound, and is it new? */
static rbt_err finish(rbt_intake *intake, rbt_arrival *arrival, bool *got, rbt_error *error)
{
    rbt_arrival *a = &intake->under_way;
    rbt_err err = RBT_OK;

    if (a->header.flags & RBT_FRAME_SUMMED && sum_of(&intake->body) != a->header.body_sum)
        return refuse(error, "the checksum of a frame's body does not fit");
    *got = a->header.sequence == 0 || a->header.sequence == intake->expected;
    if (a->message != NULL)
        err = rbt_wire_check_body(a->message, error);
    else if (a->header.flags & RBT_FRAME_SQUEEZED && *got)
        err = unsqueeze(intake, a, error);
    if (err != RBT_OK)
        return err;
    if (a->header.kind == RBT_FRAME_MESSAGE)
        rbt_free(intake->head);
    else
        a->head = intake->head;
    intake->head = NULL;
    if (a->header.sequence != 0 && *got)
        intake->expected++;
    if (*got)
        *arrival = *a;
    else
        rbt_arrival_deinit(a); /* a repeat */
    *a = (rbt_arrival){0};
    intake->has_header = intake->has_head = false;
    intake->body.count = intake->piece = intake->piece_done = 0;
    intake->body_done = 0;
    return RBT_OK;
}

/* While a body comes through the ring, the connection brings short words between the two sides; a numbered frame has to
 * wait behind the body. */
static rbt_err take_word(rbt_intake *intake, rbt_arrival *arrival, bool *got, rbt_error *error)
{
    const uint8_t *bytes = intake->staging + intake->at;
    rbt_frame_header header = {0};
    uint64_t sum;
    rbt_err err;

    if (intake->end - intake->at < RBT_FRAME_HEADER)
        return RBT_OK;
    err = read_header(bytes, intake, &header, error);
    if (err != RBT_OK)
        return err;
    if (header.kind < RBT_FRAME_ACK)
        return refuse(error, "a frame follows another whose body is not complete");
    memcpy(&sum, bytes + SUM_AT, sizeof sum);
    if (sum != rbt_hash(bytes, SUM_AT, rbt_hash(NULL, 0, 0)))
        return refuse(error, "a frame's checksum does not fit");
    intake->at += RBT_FRAME_HEADER;
    *arrival = (rbt_arrival){.header = header};
    *got = true;
    return RBT_OK;
}

rbt_err rbt_intake_next(rbt_intake *intake, rbt_arrival *arrival, bool *got, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (*got = false; !*got;) {
        if (!intake->has_header) {
            bool more;

            err = take_header(intake, &more, error);
            if (err != RBT_OK || !more)
                return err;
        }
        unstage(intake);
        if (!intake->has_head) {
            if (intake->head_done < intake->under_way.header.head)
                return RBT_OK;
            err = open_body(intake, error);
            if (err != RBT_OK || rbt_intake_ring_room(intake, &(size_t){0}) != NULL)
                return err; /* the ring first: what follows here may be the next frame */
            unstage(intake);
        }
        if (intake->body_done < intake->under_way.header.body)
            return is_in_ring(intake) ? take_word(intake, arrival, got, error) : RBT_OK;
        err = finish(intake, arrival, got, error);
        if (err != RBT_OK)
            return err;
    }
    return RBT_OK;
}
