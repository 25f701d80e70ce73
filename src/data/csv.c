/* CSV text: a row per line, its cells between delimiters. Contract in csv.h, format in docs/formats.md.
 *
 * csv_layout.c finds out what the columns are; chunks.c calls parse_row for every row. Never reads past a text; every
 * refusal has file:line, what stands there and what was expected. Proved by tests/unit/test_csv.c and
 * tests/fuzz/fuzz_csv.c.
 */
#include "data/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/csv_labels.h"
#include "data/csv_layout.h"
#include "data/csv_origin.h"

static rbt_err refuse(const rbt_reader *r, size_t column, const rbt_cell *cell, const char *expected)
{
    char shown[RBT_TOKEN_ROOM], which[RBT_CSV_COLUMN_ROOM];
    return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: '%s' in column %s: expected %s", r->name, r->line,
                    rbt_text_shown(cell->at, cell->at + cell->n, shown),
                    rbt_csv_layout_shown(r->context, column, which), expected);
}

static rbt_err parse_label(rbt_reader *r, const rbt_csv_layout *l, const rbt_cell *cell)
{
    float *label = &r->data->label[r->rows];
    if (rbt_cell_is_missing(cell)) {
        r->seen.unlabelled++;
        *label = 0;
        return l->unlabelled ? RBT_OK : refuse(r, l->label, cell, "a label; training needs one in every row");
    }
    if (!rbt_csv_label_is_plain(cell)) {
        *label = 0;
        return l->answers ? RBT_OK
                          : refuse(r, l->label, cell, "a label without line ends and other control characters");
    }
    if (l->label_names != NULL) {
        size_t which = rbt_csv_labels_find(l, cell);
        *label = (float)which;
        return which < l->label_count ? RBT_OK : refuse(r, l->label, cell, "a label");
    }
    if (!rbt_cell_is_number(cell, label) || !isfinite(*label)) {
        *label = 0;
        return l->answers ? RBT_OK : refuse(r, l->label, cell, "a label that a 32-bit float holds");
    }
    if (l->classes)
        return rbt_reader_check_class(r, cell->at, cell->at + cell->n, *label);
    return RBT_OK;
}

/* The feature that a word is: the column's name seeds the hash. */
static rbt_err parse_word(rbt_reader *r, const rbt_csv_layout *l, size_t column, const rbt_cell *cell)
{
    char *own = NULL;
    if (cell->doubled && (own = rbt_cell_text(cell)) == NULL)
        return rbt_fail(r->error, RBT_E_MEMORY, "%s:%zu: not enough memory for a cell of %zu bytes", r->name, r->line,
                        cell->n);
    uint64_t hash = rbt_hash(own != NULL ? own : cell->at, own != NULL ? strlen(own) : cell->n, l->column[column].seed);
    r->data->index[r->nnz] = l->numbers + (uint32_t)(hash & l->mask);
    r->data->value[r->nnz++] = 1;
    rbt_free(own);
    return RBT_OK;
}

/* The feature that a number is; false, and nothing done, when it is too large. */
static inline bool put_number(rbt_reader *r, const rbt_csv_layout *l, size_t column, float value)
{
    if (!isfinite(value))
        return false;
    if (value != 0) {
        r->data->index[r->nnz] = l->column[column].index;
        r->data->value[r->nnz++] = value;
    }
    return true;
}

static rbt_err parse_cell(rbt_reader *r, const rbt_csv_layout *l, size_t column, const rbt_cell *cell)
{
    float value = 0;
    if (column == l->label)
        return parse_label(r, l, cell);
    if (column == l->weight) {
        if (rbt_csv_cell_is_weight(cell, &r->data->weight[r->rows]))
            return RBT_OK;
        return refuse(r, column, cell,
                      rbt_cell_is_number(cell, &value) && value > 0
                          ? "a weight that a 32-bit float holds"
                          : "a weight: a number above 0; leave out rows that do not count");
    }
    if (atomic_load_explicit(&l->column[column].words, memory_order_relaxed))
        return rbt_cell_is_missing(cell) ? RBT_OK : parse_word(r, l, column, cell);
    if (rbt_cell_is_number(cell, &value) && !put_number(r, l, column, value))
        return refuse(r, column, cell, RBT_EXPECTED_FLOAT);
    if (rbt_cell_is_number(cell, &value) || rbt_cell_is_missing(cell))
        return RBT_OK;
    return refuse(r, column, cell, /* the column has no words */
                  l->origin.column.count > 0 && rbt_cell_kind_of(cell) == RBT_CELL_WORD
                      ? "a number, as everywhere in this column of the training data"
                      : "a finite number, as the column has, or nothing where it is missing");
}

/* The words' features stand among the others; behind all numbers is their place. */
static rbt_err finish_row(rbt_reader *r, const rbt_csv_layout *l, size_t first)
{
    rbt_err err = l->words || l->mixed ? rbt_reader_merge(r, first) : RBT_OK;
    if (err != RBT_OK)
        return err;
    if (l->label == RBT_CSV_NONE) {
        r->data->label[r->rows] = 0;
        r->seen.unlabelled++;
    }
    rbt_reader_end_row(r);
    return RBT_OK;
}

static size_t newlines(const char *at, const char *end)
{
    size_t n = 0;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        n++;
        at++;
    }
    return n;
}

static rbt_err refuse_count(const rbt_reader *r, const rbt_csv_layout *l, bool fewer)
{
    return rbt_fail(r->error, RBT_E_DATA,
                    "%s:%zu: the row has %s than %zu cells, which the first row has; check the delimiters and the "
                    "quotes",
                    r->name, r->line, fewer ? "fewer" : "more", l->count);
}

static rbt_err refuse_quotes(const rbt_reader *r, const char *wrong)
{
    return rbt_fail(r->error, RBT_E_DATA,
                    "%s:%zu: %s in the row that begins here; a quote inside of quotes is written twice", r->name,
                    r->line, wrong);
}

/* A cell was refused. In a row whose quotes are wrong, or that has not as many cells as the others, it may stand for another
 * column: that is said first. */
static rbt_err refuse_row(const rbt_reader *r, const rbt_csv_layout *l, rbt_err err)
{
    rbt_cells cells = {.at = r->at, .end = r->end, .delimiter = l->delimiter};
    rbt_cell ignored;
    size_t n = 0;
    while (rbt_cells_next(&cells, &ignored))
        n++;
    if (err == RBT_E_DATA && cells.wrong != NULL)
        return refuse_quotes(r, cells.wrong);
    return err != RBT_E_DATA || n == l->count ? err : refuse_count(r, l, n < l->count);
}

static rbt_err parse_row(rbt_reader *r)
{
    const rbt_csv_layout *l = r->context;
    rbt_cells cells = {.at = r->at, .end = r->end, .delimiter = l->delimiter};
    const char *after = rbt_csv_layout_header_end(l, r->at, r->end);
    if (after != NULL) {
        cells.at = after;
    } else if (!rbt_cells_skip_empty(&cells)) {
        size_t column = 0, first = r->nnz;
        rbt_cell cell;
        rbt_err err = RBT_OK;
        for (; column < l->count && err == RBT_OK; column++) {
            const rbt_cells before = cells;
            float value;
            if (l->column[column].plain && rbt_cells_next_number(&cells, &value) &&
                put_number(r, l, column, value)) /* most cells */
                continue;
            cells = before;
            if (!rbt_cells_next(&cells, &cell))
                break;
            err = parse_cell(r, l, column, &cell);
        }
        if (err != RBT_OK)
            return refuse_row(r, l, err);
        if (cells.wrong != NULL)
            return refuse_quotes(r, cells.wrong);
        if (column < l->count || !cells.last)
            return refuse_count(r, l, column < l->count);
        if (memchr(r->at, '\0', (size_t)(cells.at - r->at)) != NULL)
            return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: the row has a zero byte: this is no text", r->name, r->line);
        err = finish_row(r, l, first);
        if (err != RBT_OK)
            return err;
    }
    r->line += newlines(r->at, cells.at);
    r->at = cells.at;
    return RBT_OK;
}

static const char *row_end(const void *layout, const char *from, const char *least, const char *end)
{
    return rbt_cells_row_end(((const rbt_csv_layout *)layout)->delimiter, from, least, end);
}

/* Quotes or cells that are wrong over several lines may be those of one: then each of the lines is lost. */
static uint64_t lost(const void *layout, const char *at, const char *end)
{
    const rbt_csv_layout *l = layout;
    rbt_cells cells = {.at = at, .end = end, .delimiter = l->delimiter}, line = cells;
    rbt_cell ignored;
    size_t n = 0;
    uint64_t lines = 0;
    while (rbt_cells_next(&cells, &ignored))
        n++;
    if (cells.wrong == NULL && n == l->count)
        return 1;
    while (line.at < end) {
        if (rbt_cells_skip_empty(&line))
            continue;
        const char *newline = memchr(line.at, '\n', (size_t)(end - line.at));
        line.at = newline != NULL ? newline + 1 : end;
        lines++;
    }
    return lines;
}

static rbt_row_format format_of(const rbt_csv_layout *l)
{
    return (rbt_row_format){.row = "label,number,word,...",
                            .separators = {l->delimiter},
                            .one_more = true,
                            .weighted = l->weight != RBT_CSV_NONE,
                            .context = l,
                            .row_end = row_end,
                            .parse = parse_row,
                            .lost = lost};
}

/* ------------------------------------------------------------------------------------------------------ a whole */

static rbt_err find_labels(rbt_csv_layout *l, rbt_chunks *chunks, const rbt_source *source, rbt_error *error)
{
    rbt_csv_labels *labels = rbt_csv_labels_create(l);
    rbt_csv_labels_look(labels, chunks);
    rbt_err err = rbt_csv_labels_settle(labels, source->portion, source->name, l, error);
    rbt_csv_labels_destroy(labels);
    return err;
}

/* What may be a slip. For a model that knows its columns (origin) the header is what it says. */
static void report_on(const rbt_csv_layout *l, rbt_read_report *report)
{
    report->headers = l->doubtful && l->origin.column.count == 0;
    report->again = l->again && report->headers > 0;
    rbt_csv_layout_mixed(l, report->mixed);
}

static rbt_err parse(const rbt_source *source, const rbt_reading *reading, rbt_csv_layout *l, rbt_data *data,
                     rbt_error *error)
{
    const rbt_row_format format = format_of(l);
    rbt_chunks *chunks = rbt_chunks_create(source, &format);
    rbt_err err = RBT_OK;
    rbt_seen seen;
    rbt_csv_layout_look(l, chunks, source, 1);
    if (source->portion != NULL)
        err = rbt_csv_layout_agree(l, source->portion->crew, source->name, error);
    if (err == RBT_OK)
        err = rbt_csv_layout_settle(l, reading, source->name, error);
    if (err == RBT_OK && rbt_csv_layout_has_names(l))
        err = find_labels(l, chunks, source, error);
    if (err == RBT_OK)
        err = rbt_chunks_parse(chunks, reading, data, &seen, error);
    if (err == RBT_OK && reading->report != NULL)
        report_on(l, reading->report);
    rbt_chunks_destroy(chunks);
    return err;
}

rbt_err rbt_csv_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rbt_csv_layout layout;
    rbt_data d = {0};
    rbt_err err = rbt_csv_layout_init(&layout, source, 1, reading, error);
    if (err != RBT_OK)
        return err;
    err = rbt_csv_layout_assign(&layout, reading, source->name, error);
    if (err == RBT_OK)
        err = parse(source, reading, &layout, &d, error);
    if (err == RBT_OK) {
        d.cols = rbt_csv_layout_cols(&layout);
        d.label_names = layout.label_names;
        d.label_count = layout.label_count;
        d.origin = rbt_csv_origin_text(&layout, reading);
        layout.label_names = NULL;
        layout.label_count = 0;
        *data = d;
    }
    rbt_csv_layout_deinit(&layout);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- pieces */

struct rbt_csv_pieces {
    rbt_csv_layout layout;
    rbt_reading reading;
    const char *first; /* the name of the file with the first rows */
    bool settled;
    rbt_csv_labels *labels; /* being gathered; NULL: not yet, or no longer */
};

size_t rbt_csv_rows_end(const rbt_csv_pieces *p, rbt_csv_ends *ends, const char *text, size_t n)
{
    return rbt_csv_ends_find(ends, p != NULL ? p->layout.delimiter : '\0', text, n);
}

bool rbt_csv_has_rows(const rbt_source *piece)
{
    return rbt_csv_layout_has_rows(piece);
}

bool rbt_csv_begins_clearly(const rbt_source *piece)
{
    return rbt_csv_layout_is_clear(piece);
}

rbt_err rbt_csv_pieces_create(const rbt_source *piece, size_t line, const rbt_reading *reading, rbt_csv_pieces **out,
                              rbt_error *error)
{
    rbt_csv_pieces *p = rbt_alloc(1, sizeof *p);
    p->reading = *reading;
    p->first = piece->name;
    rbt_err err = rbt_csv_layout_init(&p->layout, piece, line, reading, error);
    if (err == RBT_OK)
        *out = p;
    else
        rbt_free(p);
    return err;
}

rbt_err rbt_csv_pieces_assign(rbt_csv_pieces *p, const char *name, rbt_error *error)
{
    return rbt_csv_layout_assign(&p->layout, &p->reading, name, error);
}

void rbt_csv_pieces_destroy(rbt_csv_pieces *p)
{
    if (p == NULL)
        return;
    rbt_csv_labels_destroy(p->labels);
    rbt_csv_layout_deinit(&p->layout);
    rbt_free(p);
}

rbt_err rbt_csv_pieces_compare(const rbt_csv_pieces *p, const rbt_source *piece, rbt_error *error)
{
    return rbt_csv_layout_compare(&p->layout, piece, p->first, error);
}

void rbt_csv_pieces_look(rbt_csv_pieces *p, const rbt_source *piece, size_t line)
{
    const rbt_row_format format = format_of(&p->layout);
    rbt_chunks *chunks = rbt_chunks_create(piece, &format);
    if (p->labels != NULL)
        rbt_csv_labels_look(p->labels, chunks);
    else
        rbt_csv_layout_look(&p->layout, chunks, piece, line);
    rbt_chunks_destroy(chunks);
}

bool rbt_csv_pieces_fit(const rbt_csv_pieces *p)
{
    if (p->layout.origin.column.count > 0)
        return p->layout.answers;
    return p->reading.features != 0 && rbt_csv_layout_features(&p->layout, &p->reading) == p->reading.features;
}

rbt_err rbt_csv_pieces_settle(rbt_csv_pieces *p, const char *name, bool *again, rbt_error *error)
{
    rbt_err err = RBT_OK;
    *again = false;
    if (!p->settled)
        err = rbt_csv_layout_settle(&p->layout, &p->reading, name, error);
    if (err == RBT_OK && p->labels != NULL) {
        err = rbt_csv_labels_settle(p->labels, NULL, name, &p->layout, error);
        rbt_csv_labels_destroy(p->labels);
        p->labels = NULL;
    } else if (err == RBT_OK && rbt_csv_layout_has_names(&p->layout) && !p->layout.answers) {
        p->labels = rbt_csv_labels_create(&p->layout);
        *again = true;
    }
    p->settled = err == RBT_OK;
    return err;
}

rbt_err rbt_csv_pieces_parse(const rbt_csv_pieces *p, const rbt_source *piece, size_t line, const rbt_reading *reading,
                             rbt_data *data, rbt_error *error)
{
    const rbt_row_format format = format_of(&p->layout);
    rbt_seen seen;
    rbt_err err = rbt_source_parse_piece(piece, line, &format, reading, data, &seen, error);
    if (err != RBT_OK)
        return err;
    if (reading->report != NULL && reading->features == 0)
        report_on(&p->layout, reading->report);
    data->cols = rbt_csv_layout_cols(&p->layout);
    data->origin = rbt_csv_origin_text(&p->layout, reading);
    data->label_names = p->layout.label_names;
    data->label_count = p->layout.label_count;
    return RBT_OK;
}
