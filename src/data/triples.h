/* Triples (row, column, value) in whatever order, made to rows.
 *
 * Gathered by the chunks of ratings.c and docs.c, each in a list of its own that has all the room it can need. Making rows of
 * them is one counting sort by row, then a sort of each row by column, the rows in parallel. Always holds: the result does
 * not depend on how the triples were divided into lists, nor on the number of threads. Memory: 12 bytes for a triple, and
 * 8 more from the sort on; lists are freed as they have been sorted in. Proved by tests/unit/test_ratings.c and test_docs.c.
 */
#ifndef RBT_DATA_TRIPLES_H
#define RBT_DATA_TRIPLES_H

#include "data/merge.h"
#include "rubato.h"

typedef struct rbt_triple {
    uint32_t row;
    uint32_t col;
    float value;
} rbt_triple;

typedef struct rbt_triples {
    rbt_triple *at;
    size_t count;
    const uint32_t *row_map; /* what the rows and columns in this list stand for; NULL: themselves */
    const uint32_t *col_map;
} rbt_triples;

/* Room for that many; false: no memory. */
bool rbt_triples_init(rbt_triples *triples, size_t room);
void rbt_triples_deinit(rbt_triples *triples);

/* All triples of all lists, which are empty afterwards, as data of that many rows and columns; labels are 0. *repeated: how
 * many were of a row and a column that others are of. `name` is named when there is no memory. */
rbt_err rbt_triples_gather(rbt_triples *const *lists, size_t count, size_t rows, size_t cols, rbt_merge how,
                           unsigned threads, const char *name, rbt_data *data, uint64_t *repeated, rbt_error *error);

/* The ratings of all parts as one; for rbt_data_join. */
rbt_err rbt_ratings_join(const rbt_data *parts, size_t count, rbt_data *data, rbt_error *error);

/* Ratings by other names: row r becomes that of the user who is number r in `rows`, columns likewise; NULL: they stay.
 * Ratings of others are left out and counted. Data without names stays as it is. */
rbt_err rbt_ratings_rename(rbt_data *data, const rbt_ids *rows, const rbt_ids *cols, const char *name,
                           uint64_t *unknown, rbt_error *error);

#endif
