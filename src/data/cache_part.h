/* Rows of a cache that several processes read together, other rows each.
 *
 * Called by part.c on all processes of a crew at once. Every process touches its share of the file's bytes, twice at most:
 * once for the checksum, whose blocks are divided among them, once for its rows. Always holds: any damaged byte is
 * detected, by whichever process; what is accepted is what rbt_cache_take accepts. Proved by
 * tests/unit/test_part_parallel.c. */
#ifndef RBT_DATA_CACHE_PART_H
#define RBT_DATA_CACHE_PART_H

#include "base/crew.h"
#include "data/file.h"

typedef struct rbt_cache_piece {
    const rbt_input *input;
    size_t file;   /* which one, for all processes the same */
    uint32_t part; /* which of how many that read it */
    uint32_t parts;
    size_t first; /* rows to be read */
    size_t rows;
} rbt_cache_piece;

/* The rows of each piece, copied; a process may have none. What is wrong with a cache is known to those who read it: the
 * caller agrees on it with the others. */
rbt_err rbt_cache_pieces_read(const rbt_cache_piece *pieces, size_t count, rbt_crew *crew, rbt_err err, rbt_data *data,
                              rbt_error *error);

#endif
