/* Cutting a table into blocks and placing them; the contract is in layout.h. */
#include "table/layout.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Cuts the table into about `blocks` equal rectangles: first into bands of rows, then across. */
static void cut(rbt_layout *layout, uint64_t blocks)
{
    uint64_t bands = blocks < layout->rows ? blocks : layout->rows;
    uint64_t rows = divide_up(layout->rows, bands), across;

    bands = divide_up(layout->rows, rows);
    across = divide_up(blocks, bands);
    if (across > layout->cols)
        across = layout->cols;
    layout->block_rows = rows;
    layout->block_cols = divide_up(layout->cols, across);
    layout->across = divide_up(layout->cols, layout->block_cols);
    layout->blocks = (uint32_t)(bands * layout->across < UINT32_MAX ? bands * layout->across : UINT32_MAX);
}

/* Would a server that has its number of blocks hold more than 1.25 times its share? A table cut both ways has not
 * always a multiple of the number of servers; more and smaller blocks help. */
static bool is_uneven(const rbt_layout *layout, uint64_t total)
{
    double held =
        (double)divide_up(layout->blocks, layout->servers) * (double)(layout->block_rows * layout->block_cols);

    return layout->servers > 1 && held * layout->servers > 1.25 * (double)total;
}

/* The smallest multiple of the number of servers that keeps blocks within their size, after a few for each. */
static void choose_blocks(rbt_layout *layout, uint64_t total)
{
    uint64_t most = layout->sparse ? RBT_BLOCK_ELEMENTS_SPARSE : RBT_BLOCK_ELEMENTS;
    uint64_t each = total / layout->servers / RBT_BLOCK_ELEMENTS_SMALL;

    if (each > RBT_BLOCKS_PER_SERVER)
        each = RBT_BLOCKS_PER_SERVER;
    if (each == 0 || layout->servers == 1)
        each = 1;
    if (total / layout->servers / each > most)
        each = divide_up(total, layout->servers * most);
    cut(layout, each * layout->servers);
    while (layout->block_rows * layout->block_cols > most)
        cut(layout, (each += divide_up(each, 8)) * layout->servers);
    while (is_uneven(layout, total) && total / layout->servers / (each + 1) >= RBT_BLOCK_ELEMENTS_MIN)
        cut(layout, ++each * layout->servers);
}

/* Range-hash with bounded load: every block goes to the server that scores highest for it and is not full yet. */
void rbt_layout_place(rbt_layout *layout, uint32_t servers, uint64_t salt)
{
    uint32_t *load = rbt_alloc(servers, sizeof *load);
    uint32_t share = (uint32_t)divide_up(layout->blocks, servers);

    layout->servers = servers;
    for (uint32_t block = 0; block < layout->blocks; block++) {
        uint64_t key = rbt_hash_mix(salt, block), best_score = 0;
        uint32_t best = UINT32_MAX;

        for (uint32_t server = 0; server < layout->servers; server++) {
            uint64_t score = rbt_hash_mix(key, server);

            if (load[server] < share && (best == UINT32_MAX || score > best_score)) {
                best = server;
                best_score = score;
            }
        }
        layout->server[block] = best;
        load[best]++;
    }
    rbt_free(load);
}

rbt_err rbt_layout_init(rbt_layout *layout, const rbt_table_spec *spec, uint32_t servers, uint64_t salt,
                        rbt_error *error)
{
    uint64_t total;

    RBT_ASSERT(servers > 0);
    if (spec->rows == 0 || spec->cols == 0 || spec->cols > UINT64_MAX / 2 / spec->rows)
        return rbt_fail(error, RBT_E_USAGE,
                        "table '%s' of %llu x %llu elements: both must be at least 1 and the product below 2^63",
                        spec->name, (unsigned long long)spec->rows, (unsigned long long)spec->cols);
    total = spec->rows * spec->cols;
    if (spec->block_rows == 1 && spec->cols > RBT_BLOCK_ELEMENTS)
        return rbt_fail(error, RBT_E_LIMIT,
                        "table '%s' has %llu columns; a row that is a block has at most %u: make rows shorter",
                        spec->name, (unsigned long long)spec->cols, RBT_BLOCK_ELEMENTS);
    *layout = (rbt_layout){.rows = spec->rows,
                           .cols = spec->cols,
                           .type = spec->type,
                           .sparse = spec->sparse,
                           .row_blocks = spec->block_rows == 1,
                           .servers = servers};
    if (layout->row_blocks)
        cut(layout, spec->rows);
    else
        choose_blocks(layout, total);
    if (spec->block_rows > 0 && layout->block_rows > spec->block_rows)
        cut(layout, divide_up(divide_up(layout->rows, spec->block_rows), servers) * servers);
    if (layout->blocks > RBT_BLOCKS_MAX)
        return rbt_fail(error, RBT_E_LIMIT,
                        "table '%s' of %llu x %llu elements needs more than %u blocks; make it sparse", spec->name,
                        (unsigned long long)spec->rows, (unsigned long long)spec->cols, RBT_BLOCKS_MAX);
    layout->server = rbt_alloc(layout->blocks, sizeof *layout->server);
    rbt_layout_place(layout, servers, salt);
    return RBT_OK;
}

rbt_err rbt_layout_split(rbt_layout *layout, const char *name, uint64_t most, uint64_t salt, rbt_error *error)
{
    uint64_t across = divide_up(layout->cols, most);

    if (layout->block_rows == 1 && layout->block_cols <= most)
        return RBT_OK;
    if (across < layout->across)
        across = layout->across;
    if (layout->rows > RBT_BLOCKS_MAX / across)
        return rbt_fail(error, RBT_E_LIMIT,
                        "table '%s' of %llu x %llu elements needs more than %u blocks when every row is one, as with "
                        "--budget and --rule adarev; leave one of them out",
                        name, (unsigned long long)layout->rows, (unsigned long long)layout->cols, RBT_BLOCKS_MAX);
    cut(layout, layout->rows * across);
    rbt_free(layout->server);
    layout->server = rbt_alloc(layout->blocks, sizeof *layout->server);
    rbt_layout_place(layout, layout->servers, salt);
    return RBT_OK;
}

void rbt_layout_deinit(rbt_layout *layout)
{
    rbt_free(layout->server);
    layout->server = NULL;
}

rbt_err rbt_layout_check(const rbt_layout *layout, uint32_t table, uint64_t row, uint64_t col, uint64_t n,
                         rbt_error *error)
{
    if (row < layout->rows && col <= layout->cols && n <= layout->cols - col)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE, "row %llu, columns %llu to %llu lie outside table %u of %llu x %llu",
                    (unsigned long long)row, (unsigned long long)col, (unsigned long long)col + n, table,
                    (unsigned long long)layout->rows, (unsigned long long)layout->cols);
}

uint32_t rbt_layout_block(const rbt_layout *layout, uint64_t row, uint64_t col)
{
    return (uint32_t)(row / layout->block_rows * layout->across + col / layout->block_cols);
}

/* Columns of the blocks in which column `col` lies: fewer at the right edge. */
static uint32_t width_at(const rbt_layout *layout, uint64_t col)
{
    uint64_t first = col - col % layout->block_cols;
    uint64_t left = layout->cols - first;

    return (uint32_t)(left < layout->block_cols ? left : layout->block_cols);
}

uint32_t rbt_layout_offset(const rbt_layout *layout, uint64_t row, uint64_t col)
{
    return (uint32_t)(row % layout->block_rows) * width_at(layout, col) + (uint32_t)(col % layout->block_cols);
}

uint64_t rbt_layout_run(const rbt_layout *layout, uint64_t col)
{
    return width_at(layout, col) - col % layout->block_cols;
}

uint32_t rbt_layout_length(const rbt_layout *layout, uint32_t block)
{
    uint64_t first_row = block / layout->across * layout->block_rows;
    uint64_t left = layout->rows - first_row;
    uint64_t rows = left < layout->block_rows ? left : layout->block_rows;

    return (uint32_t)(rows * width_at(layout, block % layout->across * layout->block_cols));
}
