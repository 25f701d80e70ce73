/* The encoded form of a message: what a socket carries (docs/formats.md has it byte by byte).
 *
 * Decoding trusts nothing: every count, length and index is checked against what is there and against a named limit
 * before anything is allocated; a byte left over is an error. Runtimes in encode mode pass every message through both
 * functions. Proved by tests/unit/test_codec.c (round trips, golden bytes, truncation, damage) and fuzzed by
 * tests/fuzz/fuzz_codec.c.
 */
#ifndef RBT_WIRE_CODEC_H
#define RBT_WIRE_CODEC_H

#include "wire/message.h"

#define RBT_WIRE_VERSION     1u
#define RBT_WIRE_PARTS_MAX   (1u << 20) /* blocks in one message */
#define RBT_WIRE_LENGTH_MAX  (1u << 31) /* elements a block may stand for */
#define RBT_WIRE_MEMBERS_MAX 100000u    /* workers in a job */

/* How many bytes the message takes; cheap, nothing is encoded. */
size_t rbt_wire_size(const rbt_message *message);

/* Writes exactly rbt_wire_size bytes. */
void rbt_wire_encode(const rbt_message *message, uint8_t *bytes);

/* A new message, or RBT_E_PROTOCOL with what was wrong and where. */
rbt_err rbt_wire_decode(const uint8_t *bytes, size_t n, rbt_message **message, rbt_error *error);

#endif
