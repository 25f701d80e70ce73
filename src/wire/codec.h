/* The encoded form of a message: what a socket carries (docs/formats.md has it byte by byte).
 *
 * It has two parts: the head, which says all there is to say, and the body, the indices and values of the blocks as
 * they lie in memory. A transport encodes the head alone and sends the body from where it lies; the receiver decodes
 * the head, which makes room for the blocks, and lets the body arrive there.
 *
 * Decoding trusts nothing: every count, length and index is checked against what is there and against a named limit
 * before anything is allocated; a byte left over is an error. Runtimes in encode mode pass every message through both
 * functions. Proved by tests/unit/test_codec.c (round trips, golden bytes, truncation, damage) and fuzzed by
 * tests/fuzz/fuzz_codec.c.
 */
#ifndef RBT_WIRE_CODEC_H
#define RBT_WIRE_CODEC_H

#include "wire/message.h"

#define RBT_WIRE_VERSION     5u
#define RBT_WIRE_PARTS_MAX   (1u << 20) /* blocks in one message */
#define RBT_WIRE_LENGTH_MAX  (1u << 31) /* elements a block may stand for */
#define RBT_WIRE_MEMBERS_MAX 100000u    /* workers in a job */

/* A piece of a message's body; the memory is the message's. */
typedef struct rbt_piece {
    void *at;
    size_t n;
} rbt_piece;

typedef struct rbt_pieces {
    rbt_piece *at;
    size_t count;
    size_t room;
} rbt_pieces;

/* How many bytes the parts take; cheap, nothing is encoded. */
size_t rbt_wire_head_size(const rbt_message *message);
size_t rbt_wire_body_size(const rbt_message *message);

/* Writes exactly rbt_wire_head_size bytes. */
void rbt_wire_encode_head(const rbt_message *message, uint8_t *bytes);

/* Appends the pieces of the body, in order, none of them empty. */
void rbt_wire_body(const rbt_message *message, rbt_pieces *pieces);

/* A new message whose blocks have room for a body of exactly that many bytes, but not yet its content; or RBT_E_PROTOCOL
 * with what was wrong and where, or RBT_E_MEMORY. */
rbt_err rbt_wire_decode_head(const uint8_t *bytes, size_t n, size_t body, rbt_message **message, rbt_error *error);

/* To be asked when the body has arrived: is it sound? */
rbt_err rbt_wire_check_body(const rbt_message *message, rbt_error *error);

/* Head and body in one piece of memory. */
size_t rbt_wire_size(const rbt_message *message);
void rbt_wire_encode(const rbt_message *message, uint8_t *bytes);
rbt_err rbt_wire_decode(const uint8_t *bytes, size_t n, rbt_message **message, rbt_error *error);

#endif
