/* How a table is cut into blocks and where the blocks live.
 *
 * A block is a rectangle of rows and columns, at most 64 Ki elements: the unit of placement, versioning and sending.
 * The number of blocks is a multiple of the number of servers and blocks are of equal size, so that shares are equal
 * too; where rows and columns do not divide like that, blocks are made smaller until nobody holds more than 1.25 times
 * its share; a table may ask for blocks of fewer rows. Block -> server is range-hash: ranges of the index space (the blocks) are hashed to servers by highest
 * score, and a server that has its share passes the block on to the next best; so another number of servers moves few
 * blocks. A table may ask for a block per row instead. Proved by tests/unit/test_layout.c.
 */
#ifndef RBT_TABLE_LAYOUT_H
#define RBT_TABLE_LAYOUT_H

#include "rubato.h"

#define RBT_BLOCK_ELEMENTS        65536u     /* of a dense table, at the most */
#define RBT_BLOCK_ELEMENTS_SPARSE (1u << 31) /* a sparse block only has to be addressable */
#define RBT_BLOCK_ELEMENTS_SMALL  1024u      /* smaller blocks than this are not worth having more of */
#define RBT_BLOCK_ELEMENTS_MIN    16u        /* nor are smaller ones for the sake of equal shares */
#define RBT_BLOCKS_PER_SERVER     4u         /* where the table is large enough: something to move */
#define RBT_BLOCKS_MAX            (1u << 24) /* blocks of one table */

typedef struct rbt_layout {
    uint64_t rows;
    uint64_t cols;
    rbt_type type;
    bool sparse;
    bool row_blocks;     /* every row is a block; otherwise blocks are chosen */
    uint64_t block_rows; /* rows and columns of a full block */
    uint64_t block_cols;
    uint64_t across; /* blocks side by side in one band of rows */
    uint32_t blocks;
    uint32_t servers;
    uint32_t *server; /* per block: 0 .. servers - 1 */
} rbt_layout;

rbt_err rbt_layout_init(rbt_layout *layout, const rbt_table_spec *spec, uint32_t servers, uint64_t salt,
                        rbt_error *error);
void rbt_layout_deinit(rbt_layout *layout);

/* Cuts it again into blocks that are rows, or pieces of them of at most `most` elements; `name` is the table's. */
rbt_err rbt_layout_split(rbt_layout *layout, const char *name, uint64_t most, uint64_t salt, rbt_error *error);

/* Places the same blocks on another number of servers. */
void rbt_layout_place(rbt_layout *layout, uint32_t servers, uint64_t salt);

/* Does the table (of this number, for the message) have these elements? */
rbt_err rbt_layout_check(const rbt_layout *layout, uint32_t table, uint64_t row, uint64_t col, uint64_t n,
                         rbt_error *error);

/* The block that holds an element, the element's place in it, and how many columns from there on are in the block. */
uint32_t rbt_layout_block(const rbt_layout *layout, uint64_t row, uint64_t col);
uint32_t rbt_layout_offset(const rbt_layout *layout, uint64_t row, uint64_t col);
uint64_t rbt_layout_run(const rbt_layout *layout, uint64_t col);

/* Elements in a block; those at the table's edge are smaller. */
uint32_t rbt_layout_length(const rbt_layout *layout, uint32_t block);

#endif
