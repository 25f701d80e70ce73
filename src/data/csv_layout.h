/* What the columns of CSV text are: delimiter, header, label, weight, numbers or words, and the feature each becomes.
 *
 * Called by csv.c. Always holds: the layout depends on the rows alone, not on how they are cut and who has which portion of
 * them; rows that are not whole (csv.c will refuse them) have no say in it. Proved by tests/unit/test_csv.c and
 * test_part_parallel.c.
 */
#ifndef RBT_DATA_CSV_LAYOUT_H
#define RBT_DATA_CSV_LAYOUT_H

#include <stdatomic.h>

#include "data/chunks.h"
#include "data/csv_cells.h"

#define RBT_CSV_NONE SIZE_MAX

typedef struct rbt_csv_column {
    char *name;        /* NULL without a header */
    atomic_bool words; /* a cell is neither a number nor missing */
    bool plain;        /* a feature of numbers */
    uint32_t index;    /* its index then */
    uint64_t seed;     /* of the hashes, when they are words */
} rbt_csv_column;

typedef struct rbt_csv_layout {
    char delimiter;
    size_t count;
    rbt_csv_column *column;
    char *header; /* the header's row without its line end; a row that equals it is none. NULL: no header */
    size_t header_bytes;
    size_t label; /* which column; RBT_CSV_NONE: none */
    size_t weight;
    bool unlabelled;
    uint32_t numbers;   /* columns that become one feature each */
    bool words;         /* is there a column of words? They become the features from `numbers` on */
    uint64_t mask;      /* 2^bits - 1 */
    char **label_names; /* ascending; NULL when the labels are numbers */
    size_t label_count;
} rbt_csv_layout;

/* Delimiter, header, label and weight, from the first rows. On failure nothing is left to deinit. */
rbt_err rbt_csv_layout_init(rbt_csv_layout *layout, const rbt_source *source, const rbt_reading *reading,
                            rbt_error *error);

/* The rest, from all rows. */
rbt_err rbt_csv_layout_survey(rbt_csv_layout *layout, rbt_chunks *chunks, const rbt_reading *reading,
                              const rbt_source *source, rbt_error *error);
void rbt_csv_layout_deinit(rbt_csv_layout *layout);

/* Is the row at `at` the header once more (files put one after the other)? Then its end, else NULL. */
const char *rbt_csv_layout_header_end(const rbt_csv_layout *layout, const char *at, const char *end);

/* Which of label_names the cell is; label_count when none. */
size_t rbt_csv_layout_label(const rbt_csv_layout *layout, const rbt_cell *cell);

#endif
