/* How data was read, as text that stays with it: in memory, in caches and in models. Later data is read in the same way.
 *
 * The lines are described in docs/formats.md ("How the data was read"). Called by the readers, by cache_names.c and by model/trained.c;
 * csv_origin.c has what is about columns. Always holds: a text that is kept anywhere is one that rbt_origin_parse takes.
 * Proved by tests/unit/test_origin.c and tests/cli/test_origin.sh.
 */
#ifndef RBT_DATA_ORIGIN_H
#define RBT_DATA_ORIGIN_H

#include "base/mem.h"
#include "data/read.h"
#include "rubato.h"

#define RBT_ORIGIN_NAME_BYTES 1000 /* of a column's name; the rest is left out */

typedef enum rbt_column_kind {
    RBT_COLUMN_LABEL,
    RBT_COLUMN_WEIGHT,
    RBT_COLUMN_NUMBER,
    RBT_COLUMN_WORDS
} rbt_column_kind;

/* A column of CSV text. */
typedef struct rbt_origin_column {
    rbt_column_kind kind;
    const char *name; /* not ended by a zero; NULL: there was no header */
    size_t bytes;
} rbt_origin_column;

typedef struct rbt_origin {
    rbt_base base; /* LIBSVM text */
    uint32_t bits; /* 0: nothing was hashed */
    RBT_ARRAY(rbt_origin_column) column;
} rbt_origin;

/* Takes the text apart; names point into it. NULL is a text without lines. False: it is none. */
bool rbt_origin_parse(const char *text, rbt_origin *origin);
void rbt_origin_deinit(rbt_origin *origin);

/* Has the column this name? Names are kept without line ends, and cut when they are long. */
bool rbt_origin_is_named(const rbt_origin_column *column, const char *name);

/* The text of that, in memory of its own. */
char *rbt_origin_text(const rbt_origin *origin);

/* The number that the first feature has where the data came from: LIBSVM text counts from its base, hashes count from 0; else 1. */
size_t rbt_origin_first(const rbt_origin *origin);

/* How many bits hashes had; 0: there were none. */
uint32_t rbt_origin_bits(const char *text);

/* Refuses text of a kind that numbers its features in another way than the text of the reading's origin did, as far as that is
 * known. LIBSVM text may be any, when the reading says where it begins to count. CSV that `rubato convert` wrote is not to be
 * asked about: its columns are the features of any text. */
rbt_err rbt_origin_kind_fits(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error);

/* Refuses data, of a cache, whose features are not those of the reading's origin, as far as both tell. Where they begin to count the
 * reading may say itself. */
rbt_err rbt_origin_check(const rbt_reading *reading, const rbt_data *data, const char *name, rbt_error *error);

/* Refuses a reading that itself says how data is read which comes from a cache, unless that was read so. */
rbt_err rbt_origin_fits(const rbt_reading *reading, const rbt_data *data, const char *name, rbt_error *error);

/* The origin of one of several caches; NULL: it is not known. */
typedef struct rbt_origin_of {
    const char *name; /* of the file */
    const char *text;
} rbt_origin_of;

/* Refuses caches that are put together where the features of one are not those of the others, as far as they tell. */
rbt_err rbt_origins_agree(const rbt_origin_of *all, size_t count, rbt_error *error);

/* What a reading says by itself or by the origin that it has: where does LIBSVM text begin to count, how many bits do hashes have
 * (18 if nobody says). */
rbt_base rbt_reading_base(const rbt_reading *reading);
uint32_t rbt_reading_bits(const rbt_reading *reading);

#endif
