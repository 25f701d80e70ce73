/* The built-in methods (rubato.h, section 6), and the decoder behind rbt_fitted_load, so that tests and the fuzzer can feed
 * it memory.
 *
 * A method sees the public header, data and kernels, and nothing of servers, clocks or runtimes: what it can do, a user's
 * own can do. Proved by tests/unit/test_fitted.c, tests/cli/test_methods.sh and each method's own tests.
 */
#ifndef RBT_METHOD_METHOD_H
#define RBT_METHOD_METHOD_H

#include "rubato.h"

extern const rbt_method rbt_method_kmeans;
extern const rbt_method rbt_method_l1lr;
extern const rbt_method rbt_method_lasso;
extern const rbt_method rbt_method_sketch;
extern const rbt_method rbt_method_lda;
extern const rbt_method rbt_method_mf;

/* The method's option of this name, or NULL. */
const rbt_method_option *rbt_method_option_find(const rbt_method *method, const char *name);

/* Refuses ratings, for a method whose models know columns by their numbers: items are numbered as they first occur, in every file anew. */
rbt_err rbt_method_refuse_ratings(const char *method, const rbt_data *data, rbt_error *error);

/* Whatever the bytes, the answer is a fitted model whose arrays are whole, or an error that says what is wrong. The method is
 * not asked (`open`). `own`: a method that is not built in, for files of its name; or NULL. */
rbt_err rbt_fitted_decode(const void *bytes, size_t n, const char *name, const rbt_method *own, rbt_fitted *fitted,
                          rbt_error *error);

/* Is this the beginning of such a file? */
bool rbt_fitted_begins(const void *bytes, size_t n);

/* How the data was read, as text (data/origin.h) in memory of its own; "" when that is not known. */
char *rbt_fitted_origin(const rbt_fitted *fitted);

#define RBT_FITTED_VERSION    1u
#define RBT_FITTED_ITEMS_MOST 1000u    /* arrays, lists and numbers of a file */
#define RBT_FITTED_ORIGIN     "origin" /* the list of the lines that say how the data was read (data/origin.h) */

#endif
