/* What the columns of CSV text are. Contract in csv_layout.h; proved by tests/unit/test_csv.c. */
#include "data/csv_layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/csv_ends.h"
#include "data/csv_labels.h"
#include "data/csv_origin.h"
#include "data/data.h"
#include "data/file.h"

#define DOUBTED_ROWS 16 /* are looked at for the header's names */

/* ----------------------------------------------------------------------------------------------- the first rows */

/* The i-th text behind a byte order mark, and up to its file's end. */
static rbt_cells cells_of(const rbt_source *source, size_t i, char delimiter)
{
    const rbt_text *text = &source->texts[i];
    rbt_cells c = {.at = text->bytes, .end = text->bytes + text->n, .delimiter = delimiter};
    if (source->portion != NULL && i + 1 == source->count)
        c.end += source->portion->beyond;
    c.at += rbt_mark_bytes(text->bytes, text->n);
    return c;
}

/* Goes to the next row that is not empty; false at the end. */
static bool find_row(rbt_cells *c)
{
    c->last = false;
    c->wrong = NULL;
    while (c->at < c->end && rbt_cells_skip_empty(c))
        continue;
    return c->at < c->end;
}

/* Whose cells are told apart by what the first row, at which it is, has most of. */
static void find_delimiter(rbt_cells *first)
{
    rbt_csv_guess guess = {0};
    (void)rbt_csv_guess_on(&guess, first->at, first->end);
    first->delimiter = rbt_csv_guess_delimiter(&guess);
}

/* How many cells the row has; 0 when its quotes are wrong. Goes to the row's end. */
static size_t count_cells(rbt_cells *c)
{
    size_t n = 0;
    rbt_cell cell;
    while (rbt_cells_next(c, &cell))
        n++;
    return c->wrong == NULL ? n : 0;
}

/* Do two cells of the row say the same? Names of columns do not. *twice: the second of them. */
static bool has_twins(rbt_cells row, rbt_cell *twice)
{
    rbt_map seen = {0};
    bool is_new = true;
    while (is_new && rbt_cells_next(&row, twice))
        if (twice->n > 0)
            (void)rbt_map_put(&seen, rbt_hash(twice->at, twice->n, 0), &is_new);
    rbt_map_deinit(&seen);
    return !is_new;
}

/* Is the first row a header? Not when its cells are all numbers, or two are alike. It is when none is a number. When some
 * are, it is one if a word stands above a number. *twice: a name that two columns have in what can only be a header, words
 * that stand above numbers; NULL: there is none. */
static bool is_header(rbt_cells first, rbt_cell *twice)
{
    rbt_cells a = first, b = first;
    rbt_cell above, below, twin = {0};
    size_t numbers = 0, words = 0, over = 0;
    float ignored;
    (void)count_cells(&b);
    bool second = find_row(&b);
    while (rbt_cells_next(&a, &above)) {
        bool number = rbt_cell_is_number(&above, &ignored), word = !number && !rbt_cell_is_missing(&above);
        numbers += number;
        words += word;
        second = second && rbt_cells_next(&b, &below);
        over += second && word && rbt_cell_is_number(&below, &ignored);
    }
    bool twins = has_twins(first, &twin);
    *twice = twins && numbers == 0 && over > 0 ? twin : (rbt_cell){0};
    return words > 0 && (numbers == 0 || over > 0) && !twins;
}

/* May the first row be no header? Some of its names are numbers, or a word of it is a cell of the same column in one of
 * the rows below it, and not each: that is the header once more, of files put one after the other. *again: there are
 * such rows, and nothing but words in all: it may be no header then, either. */
static bool is_doubtful(rbt_cells first, bool *again)
{
    rbt_cells below = first, names = first;
    rbt_cell name, cell;
    bool some = false, all = false, numbers = false;
    (void)count_cells(&below);
    while (rbt_cells_next(&names, &name))
        some |= rbt_cell_kind_of(&name) == RBT_CELL_NUMBER;
    for (size_t i = 0; i < DOUBTED_ROWS && below.wrong == NULL && find_row(&below); i++) {
        rbt_cells a = first, b = below;
        size_t cells = 0, alike = 0;
        while (rbt_cells_next(&a, &name) && rbt_cells_next(&b, &cell)) {
            cells++;
            alike += name.n > 0 && rbt_cell_is_same(&name, &cell);
            numbers |= rbt_cell_kind_of(&cell) == RBT_CELL_NUMBER;
        }
        some |= alike > 0 && alike < cells;
        all |= alike > 0 && alike == cells;
        (void)count_cells(&below);
    }
    *again = all && !numbers;
    return some || *again;
}

bool rbt_csv_layout_has_rows(const rbt_source *source)
{
    rbt_cells first = cells_of(source, 0, ',');
    return find_row(&first);
}

/* Without a row below it, it is known to be a header (only words, no two alike) or a row (no words); else the one below
 * tells, if only which refusal it is. */
bool rbt_csv_layout_is_clear(const rbt_source *source)
{
    rbt_cells first = cells_of(source, 0, ',');
    size_t numbers = 0, words = 0;
    rbt_cell cell;
    float ignored;
    if (!find_row(&first))
        return false;
    find_delimiter(&first);
    rbt_cells row = first;
    while (rbt_cells_next(&first, &cell)) {
        bool number = rbt_cell_is_number(&cell, &ignored);
        numbers += number;
        words += !number && !rbt_cell_is_missing(&cell);
    }
    return words == 0 || find_row(&first) || (numbers == 0 && !has_twins(row, &cell));
}

/* -------------------------------------------------------------------------------------------- label and weight */

/* The column that the option names: by its name, or by its number from 1. */
static rbt_err find_column(const rbt_csv_layout *l, const char *option, const char *text, const char *name,
                           size_t *column, rbt_error *error)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->column[i].name != NULL && strcmp(l->column[i].name, text) == 0) {
            *column = i;
            return RBT_OK;
        }
    }
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && text[digits] == '\0') {
        unsigned long long number = digits < 19 ? strtoull(text, NULL, 10) : 0;
        if (number >= 1 && number <= l->count) {
            *column = (size_t)number - 1;
            return RBT_OK;
        }
        return rbt_fail(error, RBT_E_USAGE, "--%s %s: %s has columns 1 to %zu", option, text, name, l->count);
    }
    if (l->header == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s %s: %s has no line of names at its beginning; give the column's number, from 1 to %zu",
                        option, text, name, l->count);
    char names[256] = "";
    for (size_t i = 0, n = 0; i < l->count && n < sizeof names - 1; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "", l->column[i].name);
    return rbt_fail(error, RBT_E_USAGE, "--%s %s: %s has no such column; it has: %s", option, text, name, names);
}

static rbt_err find_roles(rbt_csv_layout *l, const rbt_reading *reading, const char *name, rbt_error *error)
{
    rbt_err err = RBT_OK;
    l->label = reading->expect == RBT_CONTENT_POINTS ? RBT_CSV_NONE : 0;
    l->weight = RBT_CSV_NONE;
    if (l->origin.column.count > 0)
        err = rbt_csv_origin_roles(l, reading, name, error);
    if (err != RBT_OK)
        return err;
    if (reading->label != NULL && strcmp(reading->label, "none") == 0) {
        l->label = RBT_CSV_NONE;
        if (!reading->unlabelled)
            return rbt_fail(error, RBT_E_USAGE,
                            "--label none: %s would have no labels, and they are needed; name a column", name);
    } else if (reading->label != NULL) {
        err = find_column(l, "label", reading->label, name, &l->label, error);
    }
    if (l->weighted && l->label != 1)
        l->weight = 1;
    if (err == RBT_OK && reading->weight != NULL)
        err = find_column(l, "weight", reading->weight, name, &l->weight, error);
    if (err == RBT_OK && l->weight == l->label && l->weight != RBT_CSV_NONE)
        err = rbt_fail(error, RBT_E_USAGE,
                       "%s: column %zu cannot be the label and the weight; give another --label or "
                       "--weight",
                       name, l->label + 1);
    return err;
}

/* ---------------------------------------------------------------------------------------------------- the header */

static rbt_err no_memory(const char *name, rbt_error *error)
{
    return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for what its columns are; use a larger machine", name);
}

/* The first row with cells: where it is, and whether it names the columns. */
typedef struct first_row {
    char delimiter;
    bool header;
    bool doubtful;
    bool again;
    uint64_t count;  /* of its cells; 0: there is no such row */
    uint64_t bytes;  /* of the header, without its line end */
    const char *row; /* the header */
    const char *name;
} first_row;

/* That of the i-th text, whose first line has that number. */
static rbt_err find_first(const rbt_source *source, size_t i, size_t line, first_row *first, rbt_error *error)
{
    const char *name = source->texts[i].name;
    rbt_cells row = cells_of(source, i, ',');
    if ((i == 0 && source->portion != NULL && source->portion->middle) || !find_row(&row))
        return RBT_OK;
    find_delimiter(&row);
    for (const char *at = source->texts[i].bytes; at < row.at; at++)
        line += *at == '\n';
    rbt_cells counted = row;
    size_t count = count_cells(&counted);
    if (count == 0)
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: the first row has %s; check the quotes", name, line, counted.wrong);
    rbt_cell twice;
    bool header = is_header(row, &twice);
    if (twice.at != NULL) {
        char shown[RBT_TOKEN_ROOM];
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: two columns are named '%s'; give each a name of its own", name,
                        line, rbt_text_shown(twice.at, twice.at + twice.n, shown));
    }
    const char *end = counted.at;
    if (end > row.at && end[-1] == '\n')
        end--;
    if (end > row.at && end[-1] == '\r')
        end--;
    bool again = false, doubtful = header && is_doubtful(row, &again);
    *first = (first_row){.delimiter = row.delimiter,
                         .header = header,
                         .doubtful = doubtful,
                         .again = again,
                         .count = count,
                         .bytes = (uint64_t)(end - row.at),
                         .row = row.at,
                         .name = name};
    return RBT_OK;
}

/* The columns' names out of the header. */
static rbt_err read_names(rbt_csv_layout *l, const first_row *first, const char *name, rbt_error *error)
{
    rbt_cell cell;
    l->header = rbt_try_alloc_raw(first->bytes + 1, 1);
    if (l->header == NULL)
        return no_memory(name, error);
    memcpy(l->header, first->row, first->bytes);
    l->header_bytes = first->bytes;
    rbt_cells row = {.at = l->header, .end = l->header + first->bytes, .delimiter = l->delimiter};
    for (size_t i = 0; i < l->count && rbt_cells_next(&row, &cell); i++) {
        if (i == 0)
            l->initial = cell.n > 0 && strchr(" \t\",;", *cell.at) == NULL ? *cell.at : '\0';
        l->column[i].name = rbt_cell_text(&cell);
        if (l->column[i].name == NULL)
            return no_memory(name, error);
    }
    return RBT_OK;
}

/* What the processes tell each other of their first rows: this, then the header, then the file's name. */
typedef struct first_told {
    uint64_t count;
    uint64_t bytes;
    uint64_t name_bytes;
    char delimiter;
    uint8_t header;
    uint8_t doubtful;
    uint8_t again;
} first_told;

/* The lowest process that `has` a first row; crew->size: none has. */
static rbt_err find_teller(rbt_crew *crew, bool has, uint32_t *teller, rbt_error *error)
{
    uint8_t mine = has, *all = rbt_alloc(crew->size, sizeof *all);
    rbt_err err = rbt_crew_share(crew, RBT_OK, &mine, sizeof mine, all, error);
    *teller = 0;
    while (err == RBT_OK && *teller < crew->size && all[*teller] == 0)
        ++*teller;
    rbt_free(all);
    return err;
}

static rbt_err tell_first(const first_row *first, rbt_bytes *out, rbt_error *error)
{
    first_told told = {first->count,
                       first->header ? first->bytes : 0,
                       strlen(first->name) + 1,
                       first->delimiter,
                       first->header,
                       first->doubtful,
                       first->again};
    out->n = sizeof told + told.bytes + told.name_bytes;
    out->at = rbt_try_alloc_raw(out->n, 1);
    if (out->at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a row of %zu bytes", out->n);
    memcpy(out->at, &told, sizeof told);
    if (told.bytes > 0)
        memcpy(out->at + sizeof told, first->row, told.bytes);
    memcpy(out->at + sizeof told + told.bytes, first->name, told.name_bytes);
    return RBT_OK;
}

/* False: it is nonsense. */
static bool hear_first(rbt_bytes in, first_row *first)
{
    first_told told = {0};
    if (in.n >= sizeof told)
        memcpy(&told, in.at, sizeof told);
    if (told.count == 0 || told.name_bytes == 0 || told.bytes > in.n || told.name_bytes > in.n ||
        in.n != sizeof told + told.bytes + told.name_bytes || in.at[in.n - 1] != 0)
        return false;
    *first = (first_row){.delimiter = told.delimiter,
                         .header = told.header != 0,
                         .doubtful = told.doubtful != 0,
                         .again = told.again != 0,
                         .count = told.count,
                         .bytes = told.bytes,
                         .row = (const char *)in.at + sizeof told,
                         .name = (const char *)in.at + sizeof told + told.bytes};
    return true;
}

/* Whoever has the first text with rows tells the others; what became of looking for it here (`err`, `why`) counts for
 * that process alone: behind it, a first row is a row like others. *all is to be freed when nothing of `first` is needed
 * any more. */
static rbt_err agree_on_first(rbt_crew *crew, rbt_err err, const rbt_error *why, first_row *first, rbt_bytes *all,
                              rbt_error *error)
{
    rbt_bytes mine = {0};
    uint32_t teller;
    rbt_err shared = find_teller(crew, err != RBT_OK || first->count > 0, &teller, error);
    if (shared != RBT_OK || teller == crew->size)
        return shared;
    if (teller == crew->rank && err != RBT_OK)
        shared = rbt_fail(error, err, "%s", why->text);
    else if (teller == crew->rank && first->count > 0)
        shared = tell_first(first, &mine, error);
    shared = rbt_crew_collect(crew, shared, mine, all, error);
    rbt_free(mine.at);
    if (shared == RBT_OK && !hear_first(all[teller], first)) {
        rbt_crew_free(crew, all);
        return rbt_fail(error, RBT_E_PROTOCOL, "process %u tells nonsense about its first row", teller);
    }
    return shared;
}

rbt_err rbt_csv_layout_compare(const rbt_csv_layout *l, const rbt_source *source, const char *first, rbt_error *error)
{
    for (size_t i = 0; l->header != NULL && i < source->count; i++) {
        rbt_cells row = cells_of(source, i, l->delimiter);
        rbt_cell twice;
        if ((i == 0 && source->portion != NULL && source->portion->middle) || !find_row(&row))
            continue;
        if (rbt_csv_layout_header_end(l, row.at, row.end) == NULL && is_header(row, &twice))
            return count_cells(&row) != l->count
                       ? rbt_fail(error, RBT_E_DATA,
                                  "%s: its first row is none of %zu cells, as that of %s is: other columns, or another "
                                  "format; give files of one kind",
                                  source->texts[i].name, l->count, first)
                       : rbt_fail(
                             error, RBT_E_DATA,
                             "%s: its columns are named otherwise than those of %s; give files with the same columns",
                             source->texts[i].name, first);
    }
    return RBT_OK;
}

/* The columns of the first text that has rows; the others must agree with it. */
static rbt_err read_header(rbt_csv_layout *l, const rbt_source *source, size_t line, rbt_error *error)
{
    rbt_crew *crew = source->portion != NULL ? source->portion->crew : NULL;
    rbt_bytes *told = crew != NULL ? rbt_alloc(crew->size, sizeof *told) : NULL;
    first_row first = {0};
    rbt_error why = {RBT_OK, ""};
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && first.count == 0 && i < source->count; i++)
        err = find_first(source, i, i == 0 ? line : 1, &first, &why);
    if (crew != NULL)
        err = agree_on_first(crew, err, &why, &first, told, error);
    else if (err != RBT_OK)
        err = rbt_fail(error, err, "%s", why.text);
    if (err != RBT_OK)
        goto free_told;
    if (first.count == 0) {
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: has no rows; expected one or more lines of the form: label,number,word,...", source->name);
    } else {
        l->delimiter = first.delimiter;
        l->doubtful = first.doubtful;
        l->again = first.again;
        l->column = rbt_try_alloc(first.count, sizeof *l->column);
        l->count = l->column != NULL ? first.count : 0;
        err = l->column == NULL ? no_memory(first.name, error)
              : first.header    ? read_names(l, &first, first.name, error)
                                : RBT_OK;
    }
    if (err == RBT_OK)
        err = rbt_csv_layout_compare(l, source, first.name, error);
    if (crew != NULL) {
        rbt_crew_free(crew, told);
        err = rbt_crew_agree(crew, err, error);
    }
free_told:
    rbt_free(told);
    return err;
}

/* May the row at `at` be the header, by its first character? Almost none may. */
static inline bool may_be_header(const rbt_csv_layout *l, const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '"'))
        at++;
    return at < end && (l->initial == '\0' || *at == l->initial);
}

const char *rbt_csv_layout_header_end(const rbt_csv_layout *l, const char *at, const char *end)
{
    if (l->header == NULL || !may_be_header(l, at, end))
        return NULL;
    rbt_cells row = {.at = at, .end = end, .delimiter = l->delimiter};
    rbt_cells names = {.at = l->header, .end = l->header + l->header_bytes, .delimiter = l->delimiter};
    rbt_cell name, cell;
    while (rbt_cells_next(&names, &name))
        if (!rbt_cells_next(&row, &cell) || !rbt_cell_is_same(&name, &cell))
            return NULL;
    return row.last ? row.at : NULL;
}

/* ------------------------------------------------------------------------------------------- what the cells are */

bool rbt_csv_layout_next_row(const rbt_csv_layout *l, rbt_cells *c)
{
    const char *after;
    while (find_row(c) && (after = rbt_csv_layout_header_end(l, c->at, c->end)) != NULL)
        c->at = after;
    return c->at < c->end;
}

bool rbt_csv_cell_is_weight(const rbt_cell *cell, float *weight)
{
    return rbt_cell_is_number(cell, weight) && *weight > 0 && isfinite(*weight);
}

bool rbt_csv_row_counts(const rbt_csv_layout *l, rbt_cells *c, const rbt_csv_row *row)
{
    float ignored;
    if (c->wrong != NULL)
        c->at = rbt_cells_row_end(l->delimiter, row->at, row->at + 1, c->end);
    if (c->wrong != NULL || row->n != l->count || memchr(row->at, '\0', (size_t)(c->at - row->at)) != NULL)
        return false;
    if (l->weight != RBT_CSV_NONE && !rbt_csv_cell_is_weight(&row->weight, &ignored))
        return false;
    return l->label == RBT_CSV_NONE ||
           (rbt_cell_is_missing(&row->label) ? l->unlabelled : l->answers || rbt_csv_label_is_plain(&row->label));
}

static void look_for_words(void *context, const char *at, const char *end)
{
    rbt_csv_layout *l = context;
    rbt_cells c = {.at = at, .end = end, .delimiter = l->delimiter};
    uint8_t *row_kinds = rbt_alloc(l->count, 1);
    size_t(*counts)[RBT_CELL_WORD + 1] = rbt_alloc(l->count, sizeof *counts);
    rbt_cell cell;
    while (rbt_csv_layout_next_row(l, &c)) {
        rbt_csv_row row = {.at = c.at};
        while (rbt_csv_row_next(l, &c, &row, &cell))
            if (row.n <= l->count)
                row_kinds[row.n - 1] = (uint8_t)rbt_cell_kind_of(&cell);
        bool counted = rbt_csv_row_counts(l, &c, &row);
        for (size_t i = 0; counted && i < l->count; i++)
            counts[i][row_kinds[i]]++;
    }
    for (size_t i = 0; i < l->count; i++) {
        (void)atomic_fetch_add_explicit(&l->column[i].number_cells, counts[i][RBT_CELL_NUMBER], memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&l->column[i].word_cells, counts[i][RBT_CELL_WORD], memory_order_relaxed);
        if (counts[i][RBT_CELL_WORD] > 0)
            atomic_store_explicit(&l->column[i].words, true, memory_order_relaxed);
    }
    rbt_free(counts);
    rbt_free(row_kinds);
}

/* Is it a column of words that has more numbers? */
static bool is_mixed(rbt_csv_column *c)
{
    size_t words = atomic_load_explicit(&c->word_cells, memory_order_relaxed);
    return words > 0 && words < atomic_load_explicit(&c->number_cells, memory_order_relaxed);
}

/* Is it known to have words, but not yet where the first one is? */
static bool is_sought(rbt_csv_column *c)
{
    return c->odd == NULL && atomic_load_explicit(&c->word_cells, memory_order_relaxed) > 0;
}

static void keep_odd(rbt_csv_column *c, const rbt_cell *cell, const char *name, size_t line)
{
    char shown[RBT_TOKEN_ROOM], where[RBT_CSV_MIXED_ROOM];
    (void)snprintf(where, sizeof where, "%.200s:%zu: '%s'", name, line,
                   rbt_text_shown(cell->at, cell->at + cell->n, shown));
    c->odd = rbt_strdup(where);
}

/* The first words of `sought` columns, in the rows of a text; returns how many columns are left. */
static size_t find_odd(rbt_csv_layout *l, size_t sought, const rbt_source *source, size_t text, size_t line)
{
    rbt_cells c = cells_of(source, text, l->delimiter);
    const char *counted = source->texts[text].bytes;
    while (sought > 0 && rbt_csv_layout_next_row(l, &c)) {
        rbt_csv_row row = {.at = c.at};
        rbt_cells after = c;
        rbt_cell cell;
        while (rbt_csv_row_next(l, &after, &row, &cell))
            continue;
        for (; counted < c.at; counted++)
            line += *counted == '\n';
        bool counts = rbt_csv_row_counts(l, &after, &row);
        for (size_t i = 0; counts && i < l->count && rbt_cells_next(&c, &cell); i++) {
            if (is_sought(&l->column[i]) && rbt_cell_kind_of(&cell) == RBT_CELL_WORD) {
                keep_odd(&l->column[i], &cell, source->texts[text].name, line);
                sought--;
            }
        }
        c = after;
    }
    return sought;
}

void rbt_csv_layout_look(rbt_csv_layout *l, rbt_chunks *chunks, const rbt_source *source, size_t line)
{
    size_t sought = 0;
    rbt_chunks_survey(chunks, look_for_words, l);
    for (size_t i = 0; i < l->count; i++)
        sought += is_sought(&l->column[i]);
    for (size_t t = 0; t < source->count && source->portion == NULL; t++) /* of a portion the lines are not known */
        sought = find_odd(l, sought, source, t, line);
}

void rbt_csv_layout_mixed(const rbt_csv_layout *l, char note[RBT_CSV_MIXED_ROOM])
{
    size_t more = 0, n = 0;
    note[0] = '\0';
    for (size_t i = 0; i < l->count && l->origin.column.count == 0; i++) {
        rbt_csv_column *c = &l->column[i];
        char which[RBT_CSV_COLUMN_ROOM];
        if (c->odd == NULL || !is_mixed(c))
            continue;
        if (n == 0)
            n = (size_t)snprintf(note, RBT_CSV_MIXED_ROOM - 32,
                                 "%s in column %s makes it one of words, each a %s of its own, though %zu of its cells "
                                 "are numbers; mend the cell, or leave it empty",
                                 c->odd, rbt_csv_layout_shown(l, i, which), i == l->label ? "label" : "feature",
                                 atomic_load_explicit(&c->number_cells, memory_order_relaxed));
        else
            more++;
    }
    if (more > 0)
        (void)snprintf(note + strlen(note), 32, " (%zu more column%s alike)", more > 9999 ? 9999 : more,
                       more == 1 ? "" : "s");
}

const char *rbt_csv_layout_shown(const rbt_csv_layout *l, size_t column, char out[RBT_CSV_COLUMN_ROOM])
{
    char name[RBT_TOKEN_ROOM];
    const char *text = l->column[column].name;
    if (text == NULL)
        (void)snprintf(out, RBT_CSV_COLUMN_ROOM, "%zu", column + 1);
    else
        (void)snprintf(out, RBT_CSV_COLUMN_ROOM, "%zu, %s", column + 1,
                       rbt_text_shown(text, text + strlen(text), name));
    return out;
}

/* A column that has words in one portion has words. */
rbt_err rbt_csv_layout_agree(rbt_csv_layout *l, rbt_crew *crew, const char *name, rbt_error *error)
{
    uint8_t *mine = rbt_try_alloc(l->count, 1), *all = rbt_try_alloc(l->count, crew->size);
    bool room = mine != NULL && all != NULL;
    for (size_t i = 0; room && i < l->count; i++)
        mine[i] = atomic_load_explicit(&l->column[i].words, memory_order_relaxed);
    rbt_err err = rbt_crew_share(crew, room ? RBT_OK : no_memory(name, error), mine, l->count, all, error);
    for (size_t i = 0; err == RBT_OK && room && i < l->count * crew->size; i++)
        if (all[i] != 0)
            atomic_store_explicit(&l->column[i % l->count].words, true, memory_order_relaxed);
    rbt_free(mine);
    rbt_free(all);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- features */

size_t rbt_csv_layout_features(const rbt_csv_layout *l, const rbt_reading *reading)
{
    size_t numbers = 0, words = 0;
    for (size_t i = 0; i < l->count; i++) {
        bool is_words = atomic_load_explicit(&l->column[i].words, memory_order_relaxed);
        if (i != l->label && i != l->weight)
            *(is_words ? &words : &numbers) += 1;
    }
    return numbers + (words > 0 ? (size_t)1 << rbt_reading_bits(reading) : 0);
}

size_t rbt_csv_layout_cols(const rbt_csv_layout *l)
{
    return l->numbers + (l->words ? (size_t)l->mask + 1 : 0);
}

rbt_err rbt_csv_layout_settle(rbt_csv_layout *l, const rbt_reading *reading, const char *name, rbt_error *error)
{
    if (l->count >= (UINT32_C(1) << RBT_BITS_LIMIT) - 1)
        return rbt_fail(error, RBT_E_LIMIT, "%s: has %zu columns; there may be fewer than 2^%d", name, l->count,
                        RBT_BITS_LIMIT);
    l->mask = (UINT64_C(1) << rbt_reading_bits(reading)) - 1;
    if (l->origin.column.count > 0)
        return rbt_csv_origin_columns(l, name, error);
    for (size_t i = 0; i < l->count; i++) {
        rbt_csv_column *c = &l->column[i];
        char number[24];
        if (i == l->label || i == l->weight)
            continue;
        if (!atomic_load_explicit(&c->words, memory_order_relaxed)) {
            c->plain = true;
            c->index = l->numbers++;
            continue;
        }
        (void)snprintf(number, sizeof number, "%zu", i + 1);
        const char *seed = c->name != NULL ? c->name : number;
        c->seed = rbt_hash(seed, strlen(seed), 0);
        l->words = true;
    }
    return RBT_OK;
}

rbt_err rbt_csv_layout_init(rbt_csv_layout *layout, const rbt_source *source, size_t line, const rbt_reading *reading,
                            rbt_error *error)
{
    rbt_csv_layout l = {
        .unlabelled = reading->unlabelled, .answers = reading->features != 0, .classes = reading->classes};
    (void)rbt_origin_parse(reading->origin, &l.origin); /* what is none says nothing */
    rbt_err err = read_header(&l, source, line, error);
    if (err == RBT_OK)
        *layout = l;
    else
        rbt_csv_layout_deinit(&l);
    return err;
}

rbt_err rbt_csv_layout_assign(rbt_csv_layout *l, const rbt_reading *reading, const char *name, rbt_error *error)
{
    rbt_err err = RBT_OK;
    rbt_csv_origin_forget(l);
    if (!l->converted)
        err = rbt_origin_kind_fits(reading, RBT_KIND_CSV, name, error);
    return err == RBT_OK ? find_roles(l, reading, name, error) : err;
}

bool rbt_csv_layout_has_names(const rbt_csv_layout *l)
{
    return l->label != RBT_CSV_NONE && atomic_load_explicit(&l->column[l->label].words, memory_order_relaxed);
}

void rbt_csv_layout_deinit(rbt_csv_layout *l)
{
    for (size_t i = 0; i < l->count && l->column != NULL; i++) {
        rbt_free(l->column[i].name);
        rbt_free(l->column[i].odd);
    }
    rbt_free(l->column);
    rbt_free(l->header);
    rbt_origin_deinit(&l->origin);
    for (size_t i = 0; i < l->label_count; i++)
        rbt_free(l->label_names[i]);
    rbt_free(l->label_names);
    *l = (rbt_csv_layout){0};
}
