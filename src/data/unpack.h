/* Compressed files: gzip (zlib) and Zstandard (libzstd), recognised by their first bytes, whatever the name says.
 *
 * Called by read.c (a whole file) and feed.c (piece by piece). Always holds: what comes out is the whole text that
 * went in, or a refusal that names the file: damaged, cut short and followed by something else are told apart. Either
 * library may be absent when Rubato is built, and again when it runs, as it is loaded by the first file that needs it; its
 * files are then refused with the package to build with, or to install.
 * Proved by tests/unit/test_unpack.c and test_stream.c.
 */
#ifndef RBT_DATA_UNPACK_H
#define RBT_DATA_UNPACK_H

#include "data/file.h"

/* Replaces the bytes of a compressed input by what they unpack to, several members or frames in a row included; leaves
 * any other input as it is. On failure the input is as it was. */
rbt_err rbt_input_unpack(rbt_input *input, rbt_error *error);

#define RBT_UNPACK_MAGIC_BYTES 4

/* Do the bytes begin like a compressed file? */
bool rbt_unpack_recognise(const void *bytes, size_t n);

/* Could these first bytes become such a beginning, if more came? Who types a row must not be asked for more. */
bool rbt_unpack_is_undecided(const void *bytes, size_t n);

typedef struct rbt_unpacker rbt_unpacker;

/* For a file that begins with these bytes (which are not taken yet); `name` must outlive it. */
rbt_err rbt_unpacker_create(const char *name, const void *bytes, size_t n, rbt_unpacker **out, rbt_error *error);
void rbt_unpacker_destroy(rbt_unpacker *unpacker);

/* One step: takes some of n compressed bytes, gives some text, perhaps none. When the file has ended, steps without
 * bytes give what is left; then rbt_unpacker_end says whether that was all. */
rbt_err rbt_unpacker_step(rbt_unpacker *unpacker, const char *bytes, size_t n, size_t *taken, char *out, size_t room,
                          size_t *given, rbt_error *error);
rbt_err rbt_unpacker_end(const rbt_unpacker *unpacker, rbt_error *error);

#endif
