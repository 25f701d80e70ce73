/* What the columns of CSV text are: delimiter, header, label, weight, numbers or words, and the feature each becomes.
 *
 * Called by csv.c and csv_labels.c. Always holds: the layout depends on the rows alone, not on how they are cut and who has which portion of
 * them; rows that csv.c will refuse whatever the columns are have no say in it. Proved by tests/unit/test_csv.c and
 * test_part_parallel.c.
 */
#ifndef RBT_DATA_CSV_LAYOUT_H
#define RBT_DATA_CSV_LAYOUT_H

#include <stdatomic.h>

#include "data/chunks.h"
#include "data/csv_cells.h"
#include "data/origin.h"

#define RBT_CSV_NONE SIZE_MAX

typedef struct rbt_csv_column {
    char *name;                             /* NULL without a header */
    atomic_bool words;                      /* a cell is neither a number nor missing */
    atomic_size_t number_cells, word_cells; /* how many, of what has been looked at */
    char *odd;      /* the first word, with its file:line; NULL: none, or only a portion was looked at */
    bool plain;     /* a feature of numbers */
    uint32_t index; /* its index then */
    uint64_t seed;  /* of the hashes, when they are words */
} rbt_csv_column;

typedef struct rbt_csv_layout {
    char delimiter;
    size_t count;
    rbt_csv_column *column;
    char *header; /* its row without the line end; a row whose cells equal its cells is none. NULL: no header */
    size_t header_bytes;
    char initial;  /* of the first name; 0: whatever a row begins with, it may be the header */
    bool doubtful; /* a name of the header is a cell of its column, too, in the first rows of its text */
    bool again;    /* each is, in one of them, and all cells are words: are these lines rows? */
    size_t label;  /* which column; RBT_CSV_NONE: none */
    size_t weight;
    bool unlabelled;
    bool answers;       /* labels do not matter: the rows get answers (rbt_reading's features) */
    bool classes;       /* labels tell classes apart */
    uint32_t numbers;   /* columns that become one feature each */
    bool words;         /* is there a column of words? They become the features from `numbers` on */
    uint64_t mask;      /* 2^bits - 1 */
    rbt_origin origin;  /* the reading's; with columns: features are those (csv_origin.h) */
    bool mixed;         /* whose numbers then stand in another order */
    bool weighted;      /* the second column holds weights, by a header as `rubato convert` writes it */
    bool converted;     /* columns are features as they are, whatever the origin's text was (csv_origin.h) */
    char **label_names; /* ascending; NULL when the labels are numbers */
    size_t label_count;
} rbt_csv_layout;

/* Delimiter and header, from the first rows; `line` is the number of the source's first line. On failure nothing is left
 * to deinit. Then, when the texts are known to agree, label and weight, as the reading asks for them of what `name`
 * names. */
rbt_err rbt_csv_layout_init(rbt_csv_layout *layout, const rbt_source *source, size_t line, const rbt_reading *reading,
                            rbt_error *error);
rbt_err rbt_csv_layout_assign(rbt_csv_layout *layout, const rbt_reading *reading, const char *name, rbt_error *error);

/* Are there any rows? And do they tell whether the first is a header? It may take the second one. */
bool rbt_csv_layout_has_rows(const rbt_source *source);
bool rbt_csv_layout_is_clear(const rbt_source *source);

/* The texts must have the header of the first, which is named `first` in the refusal, or none. */
rbt_err rbt_csv_layout_compare(const rbt_csv_layout *layout, const rbt_source *source, const char *first,
                               rbt_error *error);

/* Which columns have words, in the rows of these chunks, which are those of the source; in all portions. `line` is the number
 * of the source's first line. */
void rbt_csv_layout_look(rbt_csv_layout *layout, rbt_chunks *chunks, const rbt_source *source, size_t line);
rbt_err rbt_csv_layout_agree(rbt_csv_layout *layout, rbt_crew *crew, const char *name, rbt_error *error);

/* How many features the columns make, as far as they have been looked at. */
size_t rbt_csv_layout_features(const rbt_csv_layout *layout, const rbt_reading *reading);

/* All rows have been looked at: which feature each column is, and how many columns the data has then. */
size_t rbt_csv_layout_cols(const rbt_csv_layout *layout);
rbt_err rbt_csv_layout_settle(rbt_csv_layout *layout, const rbt_reading *reading, const char *name, rbt_error *error);

/* A sentence about a column of words that has more numbers: is that meant, or a slip? "" when there is none. */
#define RBT_CSV_MIXED_ROOM 384
void rbt_csv_layout_mixed(const rbt_csv_layout *layout, char note[RBT_CSV_MIXED_ROOM]);

bool rbt_csv_layout_has_names(const rbt_csv_layout *layout); /* the labels are words */
void rbt_csv_layout_deinit(rbt_csv_layout *layout);

/* Goes to the next row that is neither empty nor the header; false at the end. */
bool rbt_csv_layout_next_row(const rbt_csv_layout *layout, rbt_cells *cells);

/* A row being gone over, from where it begins, before it is known what the columns are. */
typedef struct rbt_csv_row {
    const char *at;
    size_t n; /* cells so far */
    rbt_cell label, weight;
} rbt_csv_row;

/* The row's next cell; false as rbt_cells_next is. */
static inline bool rbt_csv_row_next(const rbt_csv_layout *layout, rbt_cells *cells, rbt_csv_row *row, rbt_cell *cell)
{
    if (!rbt_cells_next(cells, cell))
        return false;
    if (row->n == layout->label)
        row->label = *cell;
    if (row->n == layout->weight)
        row->weight = *cell;
    row->n++;
    return true;
}

/* All its cells have been gone over: does the row count? Not one that is refused whatever the columns are: it is not whole, its
 * label or weight is none, or it has a zero byte. Goes to its end when its quotes are wrong. */
bool rbt_csv_row_counts(const rbt_csv_layout *layout, rbt_cells *cells, const rbt_csv_row *row);

/* Is it a weight: a number above 0? */
bool rbt_csv_cell_is_weight(const rbt_cell *cell, float *weight);

/* A column, for messages: its number and, when it has one, its name. */
#define RBT_CSV_COLUMN_ROOM 96
const char *rbt_csv_layout_shown(const rbt_csv_layout *layout, size_t column, char out[RBT_CSV_COLUMN_ROOM]);

/* Is the row at `at` the header once more (files put one after the other), whatever its quotes and blanks? Then its end, else
 * NULL. */
const char *rbt_csv_layout_header_end(const rbt_csv_layout *layout, const char *at, const char *end);

#endif
