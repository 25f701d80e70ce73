/* Cutting a table into blocks and placing them; the contract is in layout.h. */
#include "table/layout.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* How many elements a block should have. */
static uint64_t block_elements(const rbt_table_spec *spec, uint64_t total, uint32_t servers)
{
    uint64_t most = spec->sparse ? RBT_BLOCK_ELEMENTS_SPARSE : RBT_BLOCK_ELEMENTS;
    uint64_t want = servers == 1 && !spec->sparse ? total : divide_up(total, (uint64_t)servers * RBT_BLOCKS_PER_SERVER);

    want -= want % RBT_BLOCK_ELEMENTS_MIN; /* down: rounding up would leave too few blocks of a small table */
    if (want < RBT_BLOCK_ELEMENTS_MIN)
        want = RBT_BLOCK_ELEMENTS_MIN;
    return want > most ? most : want;
}

/* The length of pieces, none above `most`, in which `n` is cut into as few and as equal ones as possible: blocks of
 * unequal size would be balanced by number only. */
static uint32_t even_cut(uint64_t n, uint64_t most)
{
    return (uint32_t)divide_up(n, divide_up(n, most));
}

/* Range-hash with bounded load: every block goes to the server that scores highest for it and is not full yet. */
static void place(rbt_layout *layout, uint64_t salt)
{
    uint32_t *load = rbt_alloc(layout->servers, sizeof *load);
    uint32_t share = (uint32_t)divide_up(layout->blocks, layout->servers);

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
    uint64_t total, elements, bands;

    RBT_ASSERT(servers > 0);
    if (spec->rows == 0 || spec->cols == 0 || spec->cols > UINT64_MAX / 2 / spec->rows)
        return rbt_fail(error, RBT_E_USAGE, "table '%s' of %llu x %llu elements: both must be at least 1 and the product below 2^63",
                        spec->name, (unsigned long long)spec->rows, (unsigned long long)spec->cols);
    total = spec->rows * spec->cols;
    elements = block_elements(spec, total, servers);
    *layout = (rbt_layout){.rows = spec->rows, .cols = spec->cols, .type = spec->type, .sparse = spec->sparse, .servers = servers};
    layout->block_cols = even_cut(spec->cols, elements);
    layout->block_rows = even_cut(spec->rows, elements / layout->block_cols);
    bands = divide_up(spec->rows, layout->block_rows);
    if (divide_up(spec->cols, layout->block_cols) > RBT_BLOCKS_MAX / bands || bands > RBT_BLOCKS_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "table '%s' of %llu x %llu elements needs more than %u blocks; make it sparse",
                        spec->name, (unsigned long long)spec->rows, (unsigned long long)spec->cols, RBT_BLOCKS_MAX);
    layout->across = (uint32_t)divide_up(spec->cols, layout->block_cols);
    layout->blocks = (uint32_t)bands * layout->across;
    layout->server = rbt_alloc(layout->blocks, sizeof *layout->server);
    place(layout, salt);
    return RBT_OK;
}

void rbt_layout_deinit(rbt_layout *layout)
{
    rbt_free(layout->server);
    layout->server = NULL;
}

uint32_t rbt_layout_block(const rbt_layout *layout, uint64_t row, uint64_t col)
{
    return (uint32_t)(row / layout->block_rows) * layout->across + (uint32_t)(col / layout->block_cols);
}

/* Columns of the blocks in which column `col` lies: fewer at the right edge. */
static uint32_t width_at(const rbt_layout *layout, uint64_t col)
{
    uint64_t first = col - col % layout->block_cols;
    uint64_t left = layout->cols - first;

    return left < layout->block_cols ? (uint32_t)left : layout->block_cols;
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
    uint64_t first_row = (uint64_t)(block / layout->across) * layout->block_rows;
    uint64_t left = layout->rows - first_row;
    uint32_t rows = left < layout->block_rows ? (uint32_t)left : layout->block_rows;

    return rows * width_at(layout, (uint64_t)(block % layout->across) * layout->block_cols);
}
