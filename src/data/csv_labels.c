/* The words that are the labels of CSV text. Contract in csv_labels.h; proved by tests/unit/test_csv.c. */
#include "data/csv_labels.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/csv.h"
#include "data/names.h"

struct rbt_csv_labels {
    const rbt_csv_layout *layout;
    pthread_mutex_t lock;
    rbt_map seen; /* by their hashes */
    RBT_ARRAY(char *) names;
    bool exhausted;
};

rbt_csv_labels *rbt_csv_labels_create(const rbt_csv_layout *layout)
{
    rbt_csv_labels *all = rbt_alloc(1, sizeof *all);
    all->layout = layout;
    (void)pthread_mutex_init(&all->lock, NULL);
    return all;
}

void rbt_csv_labels_destroy(rbt_csv_labels *all)
{
    if (all == NULL)
        return;
    (void)pthread_mutex_destroy(&all->lock);
    rbt_map_deinit(&all->seen);
    rbt_names_free(&(rbt_names){all->names.at, all->names.count});
    rbt_free(all);
}

static void add_label(rbt_csv_labels *all, const rbt_cell *cell, uint64_t hash)
{
    bool is_new = false;
    if (all->names.count > RBT_CSV_LABELS_LIMIT || all->exhausted)
        return;
    (void)rbt_map_put(&all->seen, hash, &is_new);
    if (!is_new)
        return;
    char *text = rbt_cell_text(cell);
    if (text == NULL)
        all->exhausted = true;
    else
        rbt_array_push(&all->names, text);
}

static uint64_t label_hash(const rbt_cell *cell)
{
    return rbt_hash(cell->at, cell->n, 0);
}

bool rbt_csv_label_is_plain(const rbt_cell *cell)
{
    for (size_t i = 0; i < cell->n; i++)
        if (((unsigned char)cell->at[i] < ' ' && cell->at[i] != '\t') || cell->at[i] == '\x7f')
            return false;
    return true;
}

/* Will a cell of the row be refused, which is no number that can be kept where numbers stand? */
static bool has_odd_number(const rbt_csv_layout *l, const char *at, const char *end)
{
    rbt_cells c = {.at = at, .end = end, .delimiter = l->delimiter};
    rbt_cell cell;
    float value;
    for (size_t i = 0; i < l->count && rbt_cells_next(&c, &cell); i++)
        if (l->column[i].plain && !rbt_cell_is_missing(&cell) &&
            (!rbt_cell_is_number(&cell, &value) || !isfinite(value)))
            return true;
    return false;
}

static void look_for_labels(void *context, const char *at, const char *end)
{
    rbt_csv_labels *all = context;
    const rbt_csv_layout *l = all->layout;
    rbt_cells c = {.at = at, .end = end, .delimiter = l->delimiter};
    rbt_map seen = {0};
    rbt_cell cell;
    while (seen.count <= RBT_CSV_LABELS_LIMIT && rbt_csv_layout_next_row(l, &c)) {
        rbt_csv_row row = {.at = c.at};
        bool ignored;
        while (rbt_csv_row_next(l, &c, &row, &cell))
            continue;
        if (!rbt_csv_row_counts(l, &c, &row) || rbt_cell_is_missing(&row.label) || !rbt_csv_label_is_plain(&row.label))
            continue;
        uint64_t hash = label_hash(&row.label);
        if (rbt_map_get(&seen, hash) != NULL || has_odd_number(l, row.at, c.at))
            continue;
        (void)rbt_map_put(&seen, hash, &ignored);
        (void)pthread_mutex_lock(&all->lock);
        add_label(all, &row.label, hash);
        (void)pthread_mutex_unlock(&all->lock);
    }
    rbt_map_deinit(&seen);
}

/* The labels of all portions. */
static rbt_err agree_on_labels(rbt_csv_labels *all, rbt_err err, rbt_crew *crew, const char *name, rbt_error *error)
{
    rbt_names mine = {all->names.at, all->names.count};
    rbt_names sum = {0};
    err = rbt_names_share(&mine, crew, err, name, &sum, error);
    if (err != RBT_OK)
        return err;
    rbt_names_free(&mine);
    all->names.at = sum.at;
    all->names.count = all->names.room = sum.count;
    return RBT_OK;
}

void rbt_csv_labels_look(rbt_csv_labels *all, rbt_chunks *chunks)
{
    rbt_chunks_survey(chunks, look_for_labels, all);
}

rbt_err rbt_csv_labels_settle(rbt_csv_labels *all, const rbt_portion *portion, const char *name, rbt_csv_layout *layout,
                              rbt_error *error)
{
    rbt_err err = RBT_OK;
    if (all->exhausted)
        err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for its labels; use a larger machine", name);
    if (portion != NULL)
        err = agree_on_labels(all, err, portion->crew, name, error);
    if (err == RBT_OK && all->names.count > RBT_CSV_LABELS_LIMIT)
        err =
            rbt_fail(error, RBT_E_LIMIT,
                     "%s: the label's column (%zu) has more than %d different words; is it the right one? Name another "
                     "with --label",
                     name, layout->label + 1, RBT_CSV_LABELS_LIMIT);
    if (err != RBT_OK)
        return err;
    rbt_names names = {all->names.at, all->names.count};
    rbt_names_sort(&names); /* "a""b" and a"b are one */
    layout->label_names = names.at;
    layout->label_count = names.count;
    all->names.at = NULL;
    all->names.count = 0;
    return RBT_OK;
}

size_t rbt_csv_labels_find(const rbt_csv_layout *l, const rbt_cell *cell)
{
    char *own = cell->doubled || memchr(cell->at, 0, cell->n) != NULL ? rbt_cell_text(cell) : NULL;
    const char *text = own != NULL ? own : cell->at;
    size_t n = own != NULL ? strlen(own) : cell->n, low = 0, high = l->label_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(text, l->label_names[middle], n);
        if (order == 0 && l->label_names[middle][n] == '\0') {
            rbt_free(own);
            return middle;
        }
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    rbt_free(own);
    return l->label_count;
}
