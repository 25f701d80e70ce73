/* Trained models as bytes: the decoder behind rbt_trained_load, so that tests and the fuzzer can feed it memory.
 *
 * The format is described byte by byte in docs/formats.md. Always holds: whatever the bytes, the answer is a model
 * whose every field is in bounds or an error that says what is wrong; nothing is allocated before the length and the
 * checksum are right. Proved by tests/unit/test_trained.c and tests/fuzz/fuzz_trained.c.
 */
#ifndef RBT_MODEL_TRAINED_H
#define RBT_MODEL_TRAINED_H

#include "rubato.h"

#define RBT_TRAINED_VERSION      3
#define RBT_TRAINED_OLD_VERSION  2  /* which did not say how the data was read, and is still read */
#define RBT_TRAINED_HEADER_BYTES 96 /* of an old one 8 fewer */
#define RBT_TRAINED_SUM_BYTES    8
#define RBT_TRAINED_NAME_BYTES   32

/* `own`: a model that is not built in, for files of its name; or NULL. */
rbt_err rbt_trained_decode(const void *bytes, size_t n, const char *name, const rbt_model *own, rbt_trained *trained,
                           rbt_error *error);

#endif
