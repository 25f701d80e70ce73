/* The cells of CSV text: where they begin and end, what quotes mean, which are missing.
 *
 * A cell whose first character but blanks is a quote is quoted: it ends with the next quote that is not doubled, and
 * may hold delimiters and newlines. Any other quote is a character like others. Called by csv.c, csv_layout.c and
 * csv_ends.c. Proved by tests/unit/test_csv.c and tests/fuzz/fuzz_csv.c.
 */
#ifndef RBT_DATA_CSV_CELLS_H
#define RBT_DATA_CSV_CELLS_H

#include <stdbool.h>
#include <stddef.h>

/* Without the quotes and without blanks at either end. */
typedef struct rbt_cell {
    const char *at;
    size_t n;
    bool doubled; /* it has doubled quotes, each of which stands for one */
} rbt_cell;

/* A row being taken apart. */
typedef struct rbt_cells {
    const char *at; /* where the next cell begins; behind the newline after the last one */
    const char *end;
    char delimiter;
    bool last;         /* the row has no more cells */
    const char *wrong; /* what is wrong with its quotes, NULL when nothing is */
} rbt_cells;

/* The next cell of the row; false when there is none or when its quotes are wrong. */
bool rbt_cells_next(rbt_cells *cells, rbt_cell *cell);

/* The next cell when it is a number without quotes and blanks around it, at once; false changes nothing. */
bool rbt_cells_next_number(rbt_cells *cells, float *value);

/* Is nothing but blanks left up to the end of the line? It is then stepped over. To be asked at a row's beginning. */
bool rbt_cells_skip_empty(rbt_cells *cells);

/* Where the first row ends (behind its newline) that reaches `least`, for rows that begin at `from`. */
const char *rbt_cells_row_end(char delimiter, const char *from, const char *least, const char *end);

/* Does the quote open a quoted cell, in rows that begin at `from`? It does not stand within one. */
bool rbt_cells_quote_opens(char delimiter, const char *from, const char *quote);

/* Do both say the same, whatever their quotes? */
bool rbt_cell_is_same(const rbt_cell *a, const rbt_cell *b);

/* Empty, NA, N/A, NaN, null or ?, in capitals or not. */
bool rbt_cell_is_missing(const rbt_cell *cell);

/* Is it a decimal number and nothing else? It may be too large for a float (an infinity). */
bool rbt_cell_is_number(const rbt_cell *cell, float *value);

/* What a cell is written like. An infinity is neither a number that can be used nor a word that makes a column one of
 * words. */
typedef enum rbt_cell_kind { RBT_CELL_MISSING, RBT_CELL_NUMBER, RBT_CELL_INFINITE, RBT_CELL_WORD } rbt_cell_kind;
rbt_cell_kind rbt_cell_kind_of(const rbt_cell *cell);

/* The cell's text with doubled quotes made one, in memory of its own, with a zero at its end; NULL: no memory. */
char *rbt_cell_text(const rbt_cell *cell);

#endif
