/* Where rows of CSV text end. Contract in csv_ends.h; proved by tests/unit/test_csv_ends.c. */
#include "data/csv_ends.h"

#include <string.h>

#include "data/csv_cells.h"
#include "data/file.h"

static const char delimiters[RBT_CSV_DELIMITERS] = {',', ';', '\t'};

bool rbt_csv_guess_on(rbt_csv_guess *g, const char *row, const char *end)
{
    const char *at = row + g->seen;
    for (; at < end && (g->quoted || *at != '\n'); at++) {
        if (*at == '"' && (g->quoted || !g->within))
            g->quoted = !g->quoted; /* a doubled one closes, and opens again at once */
        bool begins = *at == '"' || memchr(delimiters, *at, sizeof delimiters) != NULL || (!g->within && *at == ' ');
        g->within = g->quoted || !begins;
        for (size_t i = 0; !g->quoted && i < RBT_CSV_DELIMITERS; i++)
            g->counts[i] += *at == delimiters[i];
    }
    g->seen = (size_t)(at - row);
    return at < end;
}

char rbt_csv_guess_delimiter(const rbt_csv_guess *g)
{
    size_t best = 0;
    for (size_t i = 1; i < RBT_CSV_DELIMITERS; i++)
        best = g->counts[i] > g->counts[best] ? i : best;
    return delimiters[best];
}

/* Goes behind a byte order mark; false: it cannot be told from what is there. */
static bool skip_mark(rbt_csv_ends *e, const char *text, size_t n)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (!e->begun && n < sizeof mark - 1 && memcmp(text, mark, n) == 0)
        return false;
    e->from += e->begun ? 0 : rbt_mark_bytes(text, n);
    e->begun = true;
    return true;
}

/* Goes to the first row and on in it; false: it has not ended. */
static bool find_delimiter(rbt_csv_ends *e, const char *text, size_t n)
{
    rbt_cells c = {.at = text + e->from, .end = text + n, .delimiter = ','};
    while (c.at < c.end && rbt_cells_skip_empty(&c) && c.at[-1] == '\n')
        e->from = (size_t)(c.at - text);
    if (c.at == c.end || !rbt_csv_guess_on(&e->guess, text + e->from, text + n))
        return false;
    e->delimiter = rbt_csv_guess_delimiter(&e->guess);
    return true;
}

/* The quote that closes what `at` is within, or where to look for it when more has come: whether the last byte closes
 * it the next one tells. *closed: it is there. */
static const char *find_closing(const char *at, const char *end, bool *closed)
{
    for (;;) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        *closed = quote != NULL && quote + 1 < end && quote[1] != '"';
        if (*closed || quote == NULL || quote + 1 == end)
            return quote != NULL ? quote : end;
        at = quote + 2;
    }
}

size_t rbt_csv_ends_find(rbt_csv_ends *e, char delimiter, const char *text, size_t n)
{
    const char *end = text + n;
    if (!skip_mark(e, text, n))
        return 0;
    e->delimiter = delimiter != '\0' ? delimiter : e->delimiter;
    if (e->delimiter == '\0' && !find_delimiter(e, text, n))
        return 0;
    const char *at = text + (e->at > e->from ? e->at : e->from);
    bool stuck = false;
    while (at < end && !stuck) {
        if (e->quoted) {
            bool closed;
            at = find_closing(at, end, &closed);
            stuck = !closed;
            e->quoted = !closed;
            at += closed;
            continue;
        }
        const char *quote = memchr(at, '"', (size_t)(end - at)), *stop = quote != NULL ? quote : end;
        const char *newline = memrchr(at, '\n', (size_t)(stop - at));
        e->last = newline != NULL ? (size_t)(newline - text) + 1 : e->last;
        e->quoted = quote != NULL && rbt_cells_quote_opens(e->delimiter, text + e->from, quote);
        at = quote != NULL ? quote + 1 : end;
    }
    e->at = (size_t)(at - text);
    return e->last;
}

void rbt_csv_ends_drop(rbt_csv_ends *e, size_t bytes)
{
    e->from = e->from > bytes ? e->from - bytes : 0;
    e->at = e->at > bytes ? e->at - bytes : 0;
    e->last = e->last > bytes ? e->last - bytes : 0;
}
