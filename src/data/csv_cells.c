/* The cells of CSV text. Contract in csv_cells.h; proved by tests/unit/test_csv.c and tests/fuzz/fuzz_csv.c. */
#include "data/csv_cells.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/number.h"

static inline bool is_blank(char c, char delimiter)
{
    return c == ' ' || (c == '\t' && delimiter != '\t');
}

/* Behind the quote that ends the quoted text which begins at `at`; NULL when there is none. */
static const char *quoted_end(const char *at, const char *end, bool *doubled)
{
    for (;;) {
        const char *quote = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
        if (quote == NULL || quote + 1 == end || quote[1] != '"')
            return quote != NULL ? quote + 1 : NULL;
        *doubled = true;
        at = quote + 2;
    }
}

/* Steps behind the delimiter or the newline at which a cell has ended. */
static void step(rbt_cells *c, const char *stop)
{
    c->last = stop == c->end || *stop == '\n';
    c->at = stop == c->end ? stop : stop + 1;
}

static bool next_quoted(rbt_cells *c, const char *at, rbt_cell *cell)
{
    *cell = (rbt_cell){.at = at + 1};
    const char *stop = quoted_end(cell->at, c->end, &cell->doubled);
    if (stop == NULL) {
        c->wrong = "a quote that is not closed";
        return false;
    }
    cell->n = (size_t)(stop - 1 - cell->at);
    while (stop < c->end && is_blank(*stop, c->delimiter))
        stop++;
    if (stop < c->end && *stop == '\r' && (stop + 1 == c->end || stop[1] == '\n'))
        stop++;
    if (stop < c->end && *stop != c->delimiter && *stop != '\n') {
        c->wrong = "text after a closing quote";
        return false;
    }
    step(c, stop);
    return true;
}

bool rbt_cells_next(rbt_cells *c, rbt_cell *cell)
{
    if (c->last || c->wrong != NULL)
        return false;
    const char *at = c->at;
    while (at < c->end && is_blank(*at, c->delimiter))
        at++;
    if (at < c->end && *at == '"')
        return next_quoted(c, at, cell);
    const char *stop = at;
    while (stop < c->end && *stop != c->delimiter && *stop != '\n')
        stop++;
    const char *trimmed = stop;
    if (trimmed > at && trimmed[-1] == '\r' && (stop == c->end || *stop == '\n'))
        trimmed--;
    while (trimmed > at && is_blank(trimmed[-1], c->delimiter))
        trimmed--;
    *cell = (rbt_cell){.at = at, .n = (size_t)(trimmed - at)};
    step(c, stop);
    return true;
}

bool rbt_cells_next_number(rbt_cells *c, float *value)
{
    const char *stop = c->last ? NULL : rbt_number_parse(c->at, c->end, value);
    if (stop == NULL || (stop < c->end && *stop != c->delimiter && *stop != '\n'))
        return false;
    step(c, stop);
    return true;
}

bool rbt_cells_quote_opens(char delimiter, const char *from, const char *quote)
{
    while (quote > from && is_blank(quote[-1], delimiter))
        quote--;
    return quote == from || quote[-1] == delimiter || quote[-1] == '\n';
}

const char *rbt_cells_row_end(char delimiter, const char *from, const char *least, const char *end)
{
    const char *at = from, *newline = NULL; /* `at` is outside of quotes; `newline` the first that may end the row */
    for (;;) {
        const char *low = least - 1 > at ? least - 1 : at;
        if (newline == NULL || newline < low)
            newline = low < end ? memchr(low, '\n', (size_t)(end - low)) : NULL;
        const char *stop = newline != NULL ? newline : end;
        const char *quote = at < stop ? memchr(at, '"', (size_t)(stop - at)) : NULL;
        if (quote == NULL)
            return newline != NULL ? newline + 1 : end;
        bool ignored;
        at = rbt_cells_quote_opens(delimiter, from, quote) ? quoted_end(quote + 1, end, &ignored) : quote + 1;
        if (at == NULL)
            return end;
    }
}

/* The place behind the character there, of which a doubled quote is one. */
static inline size_t behind(const rbt_cell *cell, size_t i)
{
    return i + 1 + (cell->doubled && cell->at[i] == '"');
}

bool rbt_cell_is_same(const rbt_cell *a, const rbt_cell *b)
{
    size_t i = 0, j = 0;
    while (i < a->n && j < b->n && a->at[i] == b->at[j]) {
        i = behind(a, i);
        j = behind(b, j);
    }
    return i == a->n && j == b->n;
}

bool rbt_cell_is_missing(const rbt_cell *cell)
{
    static const char *const words[] = {"", "?", "na", "n/a", "nan", "null"};
    if (cell->n > 4)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (cell->n == strlen(words[i]) && strncasecmp(cell->at, words[i], cell->n) == 0)
            return true;
    return false;
}

bool rbt_cell_is_number(const rbt_cell *cell, float *value)
{
    return cell->n > 0 && rbt_number_parse(cell->at, cell->at + cell->n, value) == cell->at + cell->n;
}

static size_t digits(const rbt_cell *cell, size_t *i)
{
    size_t from = *i;
    while (*i < cell->n && (unsigned char)(cell->at[*i] - '0') < 10)
        ++*i;
    return *i - from;
}

/* What rbt_number_parse takes, without working out its value. */
static bool is_written_like_a_number(const rbt_cell *cell)
{
    size_t i = cell->n > 0 && (*cell->at == '-' || *cell->at == '+'), seen = digits(cell, &i);
    if (i < cell->n && cell->at[i] == '.') {
        i++;
        seen += digits(cell, &i);
    }
    if (seen > 0 && i < cell->n && (cell->at[i] == 'e' || cell->at[i] == 'E')) {
        i++;
        i += i < cell->n && (cell->at[i] == '-' || cell->at[i] == '+');
        seen = digits(cell, &i);
    }
    return seen > 0 && i == cell->n;
}

static bool is_infinite(const rbt_cell *cell)
{
    size_t sign = cell->n > 0 && (*cell->at == '-' || *cell->at == '+'), n = cell->n - sign;
    return (n == 3 && strncasecmp(cell->at + sign, "inf", n) == 0) ||
           (n == 8 && strncasecmp(cell->at + sign, "infinity", n) == 0);
}

rbt_cell_kind rbt_cell_kind_of(const rbt_cell *cell)
{
    return is_written_like_a_number(cell) ? RBT_CELL_NUMBER
           : rbt_cell_is_missing(cell)    ? RBT_CELL_MISSING
           : is_infinite(cell)            ? RBT_CELL_INFINITE
                                          : RBT_CELL_WORD;
}

char *rbt_cell_text(const rbt_cell *cell)
{
    char *text = rbt_try_alloc_raw(cell->n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; text != NULL && i < cell->n; i++) {
        text[n++] = cell->at[i];
        i += cell->doubled && cell->at[i] == '"';
    }
    if (text != NULL)
        text[n] = '\0';
    return text;
}

bool rbt_cells_skip_empty(rbt_cells *c)
{
    const char *at = c->at;
    while (at < c->end && is_blank(*at, c->delimiter))
        at++;
    if (at < c->end && *at == '\r' && (at + 1 == c->end || at[1] == '\n'))
        at++;
    if (at < c->end && *at != '\n')
        return false;
    c->at = at < c->end ? at + 1 : at;
    return true;
}
