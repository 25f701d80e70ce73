/* Where rows of CSV text end, in a text that grows at its end: what has been looked at is not looked at again, however
 * little comes at a time and however long a quoted cell is.
 *
 * Called by stream.c, through csv.c, and, for the delimiter, by csv_layout.c. Proved by tests/unit/test_csv_ends.c,
 * test_stream.c and tests/fuzz/fuzz_csv.c.
 */
#ifndef RBT_DATA_CSV_ENDS_H
#define RBT_DATA_CSV_ENDS_H

#include <stdbool.h>
#include <stddef.h>

#define RBT_CSV_DELIMITERS 3 /* comma, semicolon, tab */

/* A first row whose delimiters are being counted. All zero: nothing of it has been seen. */
typedef struct rbt_csv_guess {
    size_t seen; /* bytes of the row */
    size_t counts[RBT_CSV_DELIMITERS];
    bool quoted;
    bool within; /* a cell has begun with something else than a quote */
} rbt_csv_guess;

/* Goes on with the row that begins there; false: its end has not come. The one of the delimiters that it has most of,
 * outside of quotes, which open where a cell may begin. */
bool rbt_csv_guess_on(rbt_csv_guess *guess, const char *row, const char *end);
char rbt_csv_guess_delimiter(const rbt_csv_guess *guess);

/* What has been seen of a text whose rows begin at its beginning. All zero: nothing, and it is a file's. */
typedef struct rbt_csv_ends {
    char delimiter; /* 0: the first row, which tells it, has not ended */
    rbt_csv_guess guess;
    bool begun;  /* whether there is a byte order mark is known */
    size_t from; /* the first row, behind such a mark and behind empty lines while the delimiter is not known */
    size_t at;   /* where to go on */
    size_t last; /* the end of the last row that has ended, 0: none has */
    bool quoted; /* `at` is within quotes */
} rbt_csv_ends;

/* The end of the last row (behind its newline) that has ended in the text, which is the one of the last call and
 * perhaps more; 0 when none has. `delimiter` is 0 when the first row is to tell it. */
size_t rbt_csv_ends_find(rbt_csv_ends *ends, char delimiter, const char *text, size_t n);

/* Rows up to such an end have been taken out of the text. */
void rbt_csv_ends_drop(rbt_csv_ends *ends, size_t bytes);

#endif
