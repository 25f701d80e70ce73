/* Documents as counts of words: UCI bags of words ("docword") and lda-c. The formats are described in docs/formats.md.
 *
 * Called by read.c; the tests choose their own cuts. Always holds: what chunks.h promises; a row is a document, a column a
 * word, a value a whole number from 1 to RBT_DOCS_COUNT_MOST. With a portion the texts of bags of words must be whole, and
 * all of them one process's. Proved by tests/unit/test_docs.c and tests/fuzz/fuzz_docs.c.
 */
#ifndef RBT_DATA_DOCS_H
#define RBT_DATA_DOCS_H

#include "data/chunks.h"

#define RBT_DOCS_COUNT_MOST  UINT32_C(16777215) /* of a word in a document: sums beyond are seen to be, in f32 */
#define RBT_DOCS_EMPTY_MOST  (size_t)1048576    /* documents without words that are taken for granted ... */
#define RBT_DOCS_EMPTY_RATIO (size_t)64         /* ... and more for each line there is */

rbt_err rbt_docword_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);
rbt_err rbt_ldac_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* Three lines with one whole number each, then one that begins with two and goes on? If documents are expected, it need not: what is wrong
 * with it is said by who reads it. */
bool rbt_docword_recognise(const char *at, const char *end, bool expected);

/* How much it takes to be sure. */
typedef enum rbt_ldac_proof {
    RBT_LDAC_HALF, /* at least half of the lines are right: some lie, which is said by who reads them */
    RBT_LDAC_ALL,
    RBT_LDAC_SURE, /* all, and they are so many and so different that LIBSVM text would hardly have them by chance */
} rbt_ldac_proof;

/* Are the lines that are looked at a whole number each and pairs of whole numbers behind it, of which it is the number? */
bool rbt_ldac_recognise(const char *at, const char *end, rbt_ldac_proof proof);

#endif
