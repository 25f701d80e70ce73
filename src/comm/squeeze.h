/* Codecs: a message's body, its keys and values, in fewer bytes (--codec).
 *
 * A layer between messages (wire/codec.h) and what carries them: the head stays as it is, the body is squeezed and says
 * itself how, so that the receiver needs to know nothing. All of it is exact: what comes out is what went in, bit for bit. (fp16
 * rounds in the worker, where updates are made: table/cache.h; here it only means that values which half precision has
 * take two bytes.) A message goes squeezed only when that is smaller.
 *
 *   delta  ascending keys as differences, in as few bytes as each needs
 *   keys   the same, and a list that went over this line before is named by its hash (comm/keys.h)
 *   zeros  runs of zeros are counted; integers in as few bytes as each needs
 *   lz4    what is left, through LZ4
 *   fp16   values that half precision has, in two bytes
 *
 * Unsqueezing trusts nothing: every length is checked against what is there and against a limit before anything is
 * allocated; a byte left over is an error. Called by runtime/transport.c (local, sim) and runtime/cluster/frame.c. docs/formats.md has it byte
 * by byte. Proved by tests/unit/test_squeeze.c, fuzzed by tests/fuzz/fuzz_squeeze.c.
 */
#ifndef RBT_COMM_SQUEEZE_H
#define RBT_COMM_SQUEEZE_H

#include "base/pack.h"
#include "comm/keys.h"
#include "wire/codec.h"

enum {
    RBT_CODEC_DELTA = 1 << 0,
    RBT_CODEC_KEYS = 1 << 1,
    RBT_CODEC_ZEROS = 1 << 2,
    RBT_CODEC_LZ4 = 1 << 3,
    RBT_CODEC_FP16 = 1 << 4,
};

#define RBT_CODEC_ROOM 32 /* characters that hold any codec as text, with the end */

/* From text like "delta,zeros,lz4"; "none", "auto" and NULL are 0. */
rbt_err rbt_codec_parse(const char *text, unsigned *codec, rbt_error *error);
void rbt_codec_text(unsigned codec, char text[RBT_CODEC_ROOM]);

/* Appends the squeezed body to `out`, and notes in `keys` (the sender's of this line; NULL: none) which lists have been
 * sent: so it must be sent, and in the order of squeezing. False: it would not be smaller, and nothing has been done. */
bool rbt_squeeze(const rbt_message *message, unsigned codec, rbt_keys *keys, rbt_pack *out);

/* The message of this head and squeezed body, checked; its real body has at most body_max bytes. `keys`: the receiver's of this
 * line, or NULL. RBT_E_PROTOCOL with what was wrong, or RBT_E_MEMORY: the line cannot be used any more. */
rbt_err rbt_unsqueeze(const uint8_t *head, size_t head_n, const uint8_t *body, size_t n, uint64_t body_max,
                      rbt_keys *keys, rbt_message **message, rbt_error *error);

#endif
