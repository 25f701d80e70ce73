/* Frames for the tests of frame.c: made at random, laid out as a connection carries them, and taken in piece by piece. */
#ifndef RBT_TESTS_UNIT_FRAMES_H
#define RBT_TESTS_UNIT_FRAMES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pack.h"
#include "base/rng.h"
#include "runtime/cluster/frame.h"

#define FRAMES_HEAD_MAX 100000
#define FRAMES_BODY_MAX 2000000

/* What has arrived. */
typedef struct frames_received {
    uint64_t count;   /* numbered frames */
    uint64_t words;   /* the others */
    uint64_t bytes;   /* of heads and bodies of the numbered ones */
    uint64_t content; /* a hash over them */
} frames_received;

/* A message with parts of up to `most` elements; a control frame with a body of up to `most` bytes. */
rbt_message *frames_message(rbt_rng *rng, uint32_t most);
rbt_frame *frames_control(rbt_rng *rng, size_t most);

/* Appends the frame as a connection would carry it, and destroys it; its body alone; a frame that is a word. */
void frames_send(rbt_frame *frame, uint64_t sequence, rbt_pack *stream);
void frames_add_body(const rbt_frame *frame, rbt_pack *stream);
void frames_say(rbt_frame_kind kind, uint64_t acked, rbt_pack *stream);

uint64_t frames_mix(uint64_t hash, const void *bytes, size_t n);

/* Puts at most n bytes where the intake wants them, and returns how many; takes one arrival, or all that there are. */
size_t frames_put(rbt_intake *intake, const uint8_t *bytes, size_t n);
void frames_take_one(rbt_arrival *a, frames_received *r);
rbt_err frames_take(rbt_intake *intake, frames_received *r, rbt_error *error);

/* All of a stream in pieces of `piece` bytes; 0: as much as the intake takes at once. */
rbt_err frames_feed(rbt_intake *intake, const rbt_pack *stream, size_t piece, frames_received *r, rbt_error *error);

rbt_intake frames_intake(uint64_t expected);
void frames_are_refused(const rbt_pack *stream, uint64_t expected, const char *why);

#endif
