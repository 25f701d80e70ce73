/* Compressed files: gzip (zlib) and Zstandard (libzstd), recognised by their first bytes, whatever the name says.
 *
 * Called by read.c. Always holds: what comes out is the whole text that went in, or a refusal that names the file:
 * damaged, cut short and followed by something else are told apart. Either library may be absent when Rubato is built;
 * its files are then refused with the package to build with. Proved by tests/unit/test_unpack.c.
 */
#ifndef RBT_DATA_UNPACK_H
#define RBT_DATA_UNPACK_H

#include "data/file.h"

/* Replaces the bytes of a compressed input by what they unpack to, several members or frames in a row included; leaves
 * any other input as it is. On failure the input is as it was. */
rbt_err rbt_input_unpack(rbt_input *input, rbt_error *error);

#endif
