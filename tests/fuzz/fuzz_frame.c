/* Feeds arbitrary bytes to the receiving side of a connection: as they are, and as a script of frames whose lengths and
 * checksums are set right so that everything behind them is reached (the body through the ring, squeezed bodies, repeats, words between,
 * damaged heads and bodies). The pieces in which they come are drawn from the bytes, too. Whatever comes, the frames handed
 * out keep their promises, numbers ascend by one, and what is refused is refused with a sentence.
 * Run: fuzz_frame CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/pack.h"
#include "runtime/cluster/frame.h"

#define HEAD_MAX 4096
#define BODY_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_arrival(rbt_arrival *a, uint64_t *last)
{
    const rbt_frame_header *h = &a->header;

    RBT_ASSERT(h->kind > 0 && h->kind < RBT_FRAME_KINDS && h->head <= HEAD_MAX && h->body <= BODY_MAX);
    RBT_ASSERT((h->sequence != 0) == (h->kind <= RBT_FRAME_CONTROL));
    RBT_ASSERT((a->message != NULL) == (h->kind == RBT_FRAME_MESSAGE));
    if (h->sequence != 0)
        RBT_ASSERT(h->sequence == ++*last);
    if (a->message != NULL) {
        rbt_error error;

        RBT_ASSERT(h->flags & RBT_FRAME_SQUEEZED || rbt_wire_size(a->message) == h->head + h->body);
        RBT_ASSERT(rbt_wire_body_size(a->message) <= BODY_MAX);
        RBT_ASSERT(rbt_wire_check_body(a->message, &error) == RBT_OK);
        RBT_ASSERT(a->message->from == h->from && a->message->to == h->to && a->message->view == h->view);
    }
    if (h->kind == RBT_FRAME_CONTROL || h->kind == RBT_FRAME_SESSION)
        RBT_ASSERT(a->head != NULL && a->head[h->head] == 0 && (a->body != NULL) == (h->body > 0));
    rbt_arrival_deinit(a);
}

/* Puts the stream into an intake in pieces of a size that follows from `cut`, and bytes of its own into the ring. */
static void feed(const uint8_t *bytes, size_t n, uint8_t cut)
{
    rbt_intake intake;
    rbt_keys keys = {0};
    size_t at = 0, ring;
    uint64_t last = 0;
    rbt_err err = RBT_OK;
    rbt_error error = {RBT_OK, ""};

    rbt_intake_init(&intake, HEAD_MAX, BODY_MAX);
    intake.keys = &keys;
    while (at < n && err == RBT_OK) {
        rbt_piece room[RBT_INTAKE_PIECES];
        size_t count = rbt_intake_room(&intake, room), most = cut == 0 ? SIZE_MAX : (size_t)cut * cut, put = 0;
        bool got = true;

        for (size_t i = 0; i < count && put < most && at + put < n; i++) {
            size_t part = room[i].n;

            part = part < most - put ? part : most - put;
            part = part < n - at - put ? part : n - at - put;
            memcpy(room[i].at, bytes + at + put, part);
            put += part;
        }
        RBT_ASSERT(put > 0);
        rbt_intake_put(&intake, put);
        at += put;
        while (err == RBT_OK && got) {
            bool had_room = rbt_intake_ring_room(&intake, &ring) != NULL;
            rbt_arrival arrival;

            err = rbt_intake_next(&intake, &arrival, &got, &error);
            if (err == RBT_OK && got)
                check_arrival(&arrival, &last);
            if (err == RBT_OK && rbt_intake_ring_room(&intake, &ring) != NULL && (!had_room || cut % 2 == 0)) {
                size_t part = cut % 3 == 0 || ring == 1 ? ring : ring / 2;

                memset(rbt_intake_ring_room(&intake, &ring), at % 5 == 0 ? 0xff : 0, part);
                rbt_intake_ring_put(&intake, part);
                got = true;
            }
        }
    }
    RBT_ASSERT(err == RBT_OK || (error.text[0] != '\0' && (err == RBT_E_PROTOCOL || err == RBT_E_MEMORY)));
    rbt_intake_deinit(&intake);
    rbt_keys_deinit(&keys);
}

/* A script: per frame a few bytes that say what is put right, then its fields, head and body. */
typedef struct script {
    rbt_unpack in;
    rbt_pack out;
    uint64_t number;
} script;

enum {
    KEEP_SUM = 1 << 0,
    KEEP_NUMBER = 1 << 1,
    KEEP_BODY_SUM = 1 << 2,
    IN_RING = 1 << 3,
    REPEAT = 1 << 4,
    SQUEEZED = 1 << 5
};

static void write_frame(script *s)
{
    uint8_t ask[4], header[RBT_FRAME_HEADER] = {0};
    size_t left, head, body;
    uint64_t sum;
    const uint8_t *bytes;

    rbt_unpack_into(&s->in, ask, sizeof ask);
    left = (size_t)(s->in.end - s->in.at);
    head = ask[2] < left ? ask[2] : left;
    body = (size_t)ask[3] * 4 < left - head ? (size_t)ask[3] * 4 : left - head;
    bytes = rbt_unpack_bytes(&s->in, head + body);
    if (bytes == NULL)
        return;
    memcpy(header, &(uint32_t){RBT_FRAME_MAGIC}, 4);
    header[4] = RBT_FRAME_VERSION;
    header[5] = ask[0] & 0x40 ? ask[1] : (uint8_t)(1 + ask[1] % (RBT_FRAME_KINDS - 1));
    header[6] = (ask[0] & IN_RING ? RBT_FRAME_IN_RING : 0) | (ask[0] & KEEP_BODY_SUM ? RBT_FRAME_SUMMED : 0);
    header[6] |= header[5] == RBT_FRAME_MESSAGE && ask[0] & SQUEEZED ? RBT_FRAME_SQUEEZED : 0;
    if (header[5] == RBT_FRAME_MESSAGE && head >= 16) { /* from, to and view as the message has them */
        memcpy(header + 8, bytes + 12, 4);
        memcpy(header + 12, bytes + 4, 8);
    }
    memcpy(header + 20, &(uint32_t){(uint32_t)head}, 4);
    memcpy(header + 24, &(uint64_t){body}, 8);
    if (header[5] <= RBT_FRAME_CONTROL) {
        s->number += !(ask[0] & REPEAT);
        sum = ask[0] & KEEP_NUMBER ? ask[1] : s->number;
        memcpy(header + 32, &sum, 8);
    }
    sum = rbt_hash(bytes + head, body, 0);
    memcpy(header + 48, &sum, 8);
    sum = rbt_hash(header, 56, rbt_hash(bytes, head, 0)) + (ask[0] & KEEP_SUM && ask[1] % 8 == 7);
    memcpy(header + 56, &sum, 8);
    rbt_pack_bytes(&s->out, header, sizeof header);
    rbt_pack_bytes(&s->out, bytes, head + (ask[0] & IN_RING ? 0 : body));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    script s = {0};

    if (n == 0)
        return 0;
    feed(bytes + 1, n - 1, bytes[0]);
    s.in = rbt_unpack_of(bytes + 1, n - 1);
    while (s.in.at < s.in.end && !s.in.bad && s.out.count < 200000)
        write_frame(&s);
    feed(s.out.at, s.out.count, bytes[0]);
    rbt_array_free(&s.out);
    return 0;
}
