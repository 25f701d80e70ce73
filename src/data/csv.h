/* CSV text from one or several places at once, in parallel. The format is described in docs/formats.md.
 *
 * Called by read.c and, piece by piece, by stream.c; the tests choose their own cuts. Always holds: what chunks.h
 * promises, also when a quoted cell has newlines; what a column is (numbers or words) is decided over all rows. Proved
 * by tests/unit/test_csv.c and tests/fuzz/fuzz_csv.c.
 */
#ifndef RBT_DATA_CSV_H
#define RBT_DATA_CSV_H

#include "data/chunks.h"
#include "data/csv_ends.h"

#define RBT_CSV_LABELS_LIMIT 65536 /* different words as labels; more is the wrong column */

rbt_err rbt_csv_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* CSV text that comes in pieces of whole rows. First it is looked at, piece by piece, until it is known what the
 * columns are; then it is parsed, from its beginning on. */
typedef struct rbt_csv_pieces rbt_csv_pieces;

/* How much of a text, which begins with a row and may go on, is whole rows (csv_ends.h). NULL: nothing is known yet. */
size_t rbt_csv_rows_end(const rbt_csv_pieces *pieces, rbt_csv_ends *ends, const char *text, size_t n);

/* Are there any rows? And do they tell whether the first is a header? If not, a longer piece is needed to begin a file
 * with. */
bool rbt_csv_has_rows(const rbt_source *piece);
bool rbt_csv_begins_clearly(const rbt_source *piece);

/* `piece` begins the first file that has rows, with the line of that number; its name must outlive it. */
rbt_err rbt_csv_pieces_create(const rbt_source *piece, size_t line, const rbt_reading *reading, rbt_csv_pieces **out,
                              rbt_error *error);
void rbt_csv_pieces_destroy(rbt_csv_pieces *pieces);

/* A piece that begins another file: its columns must be the same. */
rbt_err rbt_csv_pieces_compare(const rbt_csv_pieces *pieces, const rbt_source *piece, rbt_error *error);

/* Label and weight, before any rows are looked at; `name` stands for all files in refusals, here and below. */
rbt_err rbt_csv_pieces_assign(rbt_csv_pieces *pieces, const char *name, rbt_error *error);

/* `line` is the number of the piece's first line. */
void rbt_csv_pieces_look(rbt_csv_pieces *pieces, const rbt_source *piece, size_t line);

/* Do the columns, as far as they have been looked at, make the features that the reading wants? A word in a column that
 * had none so far is then refused. */
bool rbt_csv_pieces_fit(const rbt_csv_pieces *pieces);

/* Enough has been looked at, unless it must be `again`, for labels that are words. */
rbt_err rbt_csv_pieces_settle(rbt_csv_pieces *pieces, const char *name, bool *again, rbt_error *error);

/* The rows of a piece whose first line has that number (chunks.h). The names of the labels stay the pieces'. */
rbt_err rbt_csv_pieces_parse(const rbt_csv_pieces *pieces, const rbt_source *piece, size_t line,
                             const rbt_reading *reading, rbt_data *data, rbt_error *error);

#endif
