/* LZ4's block format, if its headers were there when this was built (RBT_HAVE_LZ4 in CMakeLists.txt) and the library is where it
 * runs. What is packed is not trusted when it is unpacked. Called by comm/squeeze.c. Proved by tests/unit/test_squeeze.c. */
#ifndef RBT_BASE_LZ4_H
#define RBT_BASE_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rubato.h"

#define RBT_LZ4_INPUT_MOST ((size_t)1 << 30) /* bytes that are packed at once, and that are unpacked */
#define RBT_LZ4_RATIO_MOST 255u              /* the format cannot say more with a byte */

/* Is there LZ4? If not, why. */
rbt_err rbt_lz4_load(rbt_error *error);

/* Packs n bytes into at most `room`; how many it took, or 0: more than that, or there is no LZ4. */
size_t rbt_lz4_pack(const uint8_t *bytes, size_t n, uint8_t *out, size_t room);

/* Unpacks into exactly `size` bytes; false when that is not what there is, or there is no LZ4. */
bool rbt_lz4_unpack(const uint8_t *bytes, size_t n, uint8_t *out, size_t size);

#endif
