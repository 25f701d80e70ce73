/* Errors: how a function that can fail says so.
 *
 * Every fallible function returns an rbt_err (declared in rubato.h, with its table of codes) and takes an rbt_error as
 * its last argument. The first that detects a failure tells (rbt_fail); the others pass the code on. A message names
 * the thing, the place and the remedy. The library never prints and never exits.
 *
 * RBT_ASSERT guards what only a bug of ours can break; it stays on in release builds. Input from a file, a peer or a
 * user never reaches an assertion. Proved by tests/unit/test_error.c.
 */
#ifndef RBT_BASE_ERROR_H
#define RBT_BASE_ERROR_H

#include "rubato.h"

/* Fills `error` (which may be NULL) with the code and a printf-style message, and returns the code. */
rbt_err rbt_fail(rbt_error *error, rbt_err code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reports a broken promise of ours and ends the process. Never returns. */
_Noreturn void rbt_panic(const char *file, int line, const char *what);

#define RBT_ASSERT(condition) ((condition) ? (void)0 : rbt_panic(__FILE__, __LINE__, #condition))

#endif
