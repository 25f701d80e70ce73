/* LIBSVM text: "label index:value index:value ...", one row per line. The format is described in docs/formats.md.
 *
 * Called through rbt_data_read and rbt_data_write_libsvm (data.h). The texts are cut into chunks at line ends. One pass
 * counts each chunk's lines and colons: that bounds the memory, gives each chunk a place of its own in the arrays, and
 * numbers its first line. A second pass parses each chunk to its place; what comments and explicit zeros left empty
 * between the chunks is closed up. Both passes take the chunks in parallel. Never reads past a text, whatever it holds;
 * every refusal has file:line, what stands there and what was expected.
 * Proved by tests/unit/test_libsvm.c, test_libsvm_parallel.c and tests/fuzz/fuzz_libsvm.c.
 */
#include "data/libsvm.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/number.h"
#include "data/parallel.h"

#define TOKEN_ROOM  32                    /* how much of the offending text a message shows */
#define CHUNK_BYTES (size_t)(1024 * 1024) /* large beside what taking a chunk costs, small beside a core's share */

/* A chunk: whole lines of one text. */
typedef struct chunk {
    const char *at;
    const char *end;
    const char *name;
    size_t line;                /* of its first byte, from 1 */
    size_t lines, colons;       /* upper bounds of its rows and features */
    size_t first_row, first_at; /* its place in the arrays: rows, features */
    size_t rows, nnz;           /* what it has */
    uint64_t largest;           /* index as written */
    bool zero_based;            /* an index 0 was seen */
    rbt_err err;
} chunk;

/* Parsing one chunk. */
typedef struct reader {
    const char *at;
    const char *end;
    const char *name;
    size_t line;
    rbt_data *data; /* whose rows and nnz are those of all chunks; not touched while chunks are parsed */
    size_t rows;    /* where the next row and the next feature go */
    size_t nnz;
    uint64_t largest;
    bool zero_based;
    rbt_error *error; /* NULL: only the code is wanted */
} reader;

/* ---------------------------------------------------------------------------------------------------- counting */

/* How many of the word's eight bytes equal the one that `pattern` repeats. */
static inline size_t count_in_word(uint64_t word, uint64_t pattern)
{
    uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t x = word ^ pattern;
    uint64_t equal = ~(((x & low) + low) | x | low); /* the high bit of each byte that is zero in x */
    return (size_t)(((equal >> 7) * UINT64_C(0x0101010101010101)) >> 56);
}

/* Upper bounds: a line is at most one row, a colon at most one feature. */
static void count_bounds(chunk *c)
{
    size_t bytes = (size_t)(c->end - c->at), newline = 0, colon = 0, i = 0;
    const char *text = c->at;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, sizeof word);
        newline += count_in_word(word, '\n' * UINT64_C(0x0101010101010101));
        colon += count_in_word(word, ':' * UINT64_C(0x0101010101010101));
    }
    for (; i < bytes; i++) {
        newline += text[i] == '\n';
        colon += text[i] == ':';
    }
    c->lines = newline + (bytes > 0 && text[bytes - 1] != '\n'); /* the last one need not end */
    c->colons = colon;
}

/* ----------------------------------------------------------------------------------------------------- parsing */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* May a label or a feature end here? */
static inline bool ends_token(const reader *r, const char *at)
{
    return at == r->end || is_blank(*at) || *at == '\n' || *at == '#';
}

static inline void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static inline void skip_token(reader *r)
{
    while (!ends_token(r, r->at))
        r->at++;
}

/* The text at the reader's place, for a message: cut, and free of what a terminal might act upon. */
static const char *shown(const reader *r, char out[TOKEN_ROOM])
{
    size_t n = 0;
    const char *p = r->at;
    for (; n < TOKEN_ROOM - 4 && !ends_token(r, p); p++)
        out[n++] = isprint((unsigned char)*p) ? *p : '?';
    if (!ends_token(r, p)) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

static rbt_err refuse_token(const reader *r, const char *expected)
{
    char token[TOKEN_ROOM];
    return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: '%s': expected %s", r->name, r->line, shown(r, token), expected);
}

static rbt_err parse_label(reader *r, float *label)
{
    float value;
    const char *stop = rbt_number_parse(r->at, r->end, &value);
    if (stop == NULL || !ends_token(r, stop) || !isfinite(value))
        return refuse_token(r, "a label at the start of the row: one finite number such as +1, -1 or 3.5");
    *label = value;
    r->at = stop;
    return RBT_OK;
}

/* The index of a feature and its colon; on success the reader stands at the value. */
static rbt_err parse_index(reader *r, uint64_t *index)
{
    const char *p = r->at;
    uint64_t i = 0;
    bool limit = false;
    for (; p < r->end && *p >= '0' && *p <= '9'; p++) {
        i = i * 10 + (uint64_t)(*p - '0');
        if (i >= RBT_DATA_INDEX_LIMIT) {
            limit = true;
            i = RBT_DATA_INDEX_LIMIT;
        }
    }
    if (p == r->at || p == r->end || *p != ':')
        return refuse_token(r, "a feature as index:value, for example 7:0.25");
    if (limit) {
        char token[TOKEN_ROOM];
        return rbt_fail(r->error, RBT_E_LIMIT,
                        "%s:%zu: '%s': a feature's index must be below %u; renumber the features", r->name, r->line,
                        shown(r, token), RBT_DATA_INDEX_LIMIT);
    }
    *index = i;
    r->at = p + 1;
    return RBT_OK;
}

/* One feature into the data; `last` is the index before it in this row, -1 at the row's start. */
static rbt_err parse_feature(reader *r, int64_t *last)
{
    const char *token = r->at;
    uint64_t index = 0;
    float value = 0;
    rbt_err err = parse_index(r, &index);
    if (err != RBT_OK)
        return err;
    const char *stop = rbt_number_parse(r->at, r->end, &value);
    if (stop == NULL || !ends_token(r, stop) || !isfinite(value)) {
        r->at = token;
        return refuse_token(r, "a finite number after the colon, for example 7:0.25");
    }
    if ((int64_t)index <= *last)
        return rbt_fail(
            r->error, RBT_E_DATA,
            "%s:%zu: index %llu stands after index %lld; the indices of a row must ascend: sort the row, and "
            "merge what is there twice",
            r->name, r->line, (unsigned long long)index, (long long)*last);
    *last = (int64_t)index;
    r->at = stop;
    r->zero_based |= index == 0;
    r->largest = index > r->largest ? index : r->largest;
    if (value != 0) {
        r->data->index[r->nnz] = (uint32_t)index - 1; /* 0 turns over, and back when the data counts from 0 */
        r->data->value[r->nnz++] = value;
    }
    return RBT_OK;
}

/* One line, with or without a row on it, and the newline that ends it. */
static rbt_err parse_line(reader *r)
{
    skip_blanks(r);
    if (r->at < r->end && *r->at != '\n' && *r->at != '#') {
        rbt_err err = parse_label(r, &r->data->label[r->rows]);
        int64_t last = -1;
        for (; err == RBT_OK; err = parse_feature(r, &last)) {
            skip_blanks(r);
            while (last < 0 && r->end - r->at >= 4 && memcmp(r->at, "qid:", 4) == 0) {
                skip_token(r);
                skip_blanks(r);
            }
            if (ends_token(r, r->at))
                break;
        }
        if (err != RBT_OK)
            return err;
        r->rows++;
        r->data->start[r->rows] = r->nnz;
    }
    if (r->at < r->end && *r->at == '#') {
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = newline != NULL ? newline : r->end;
    }
    if (r->at < r->end) {
        r->at++;
        r->line++;
    }
    return RBT_OK;
}

static void parse_chunk(chunk *c, rbt_data *data, rbt_error *error)
{
    reader r = {.at = c->at,
                .end = c->end,
                .name = c->name,
                .line = c->line,
                .data = data,
                .rows = c->first_row,
                .nnz = c->first_at,
                .error = error};
    rbt_err err = RBT_OK;
    while (err == RBT_OK && r.at < r.end)
        err = parse_line(&r);
    c->rows = r.rows - c->first_row;
    c->nnz = r.nnz - c->first_at;
    c->largest = r.largest;
    c->zero_based = r.zero_based;
    c->err = err;
}

/* ------------------------------------------------------------------------------------------------------ chunks */

typedef struct chunks {
    RBT_ARRAY(chunk) list;
    rbt_data data;
    atomic_size_t refused; /* the first chunk known to be refused; those after it need not be parsed */
} chunks;

static void cut_text(chunks *all, const rbt_text *text, size_t first_line, size_t chunk_bytes)
{
    const char *at = text->bytes, *end = text->bytes + text->n;
    if (first_line == 1 && text->n >= 3 &&
        memcmp(at, "\xef\xbb\xbf", 3) == 0) /* some editors begin a file with a byte order mark */
        at += 3;
    for (size_t line = first_line; at < end; line = 0) {
        const char *stop = end;
        if ((size_t)(end - at) > chunk_bytes) {
            const char *newline = memchr(at + chunk_bytes - 1, '\n', (size_t)(end - at) - (chunk_bytes - 1));
            stop = newline != NULL ? newline + 1 : end;
        }
        rbt_array_push(&all->list, ((chunk){.at = at, .end = stop, .name = text->name, .line = line}));
        at = stop;
    }
}

static void count_item(void *context, size_t item)
{
    chunks *all = context;
    count_bounds(&all->list.at[item]);
}

static void parse_item(void *context, size_t item)
{
    chunks *all = context;
    size_t refused = atomic_load_explicit(&all->refused, memory_order_relaxed);
    if (item > refused)
        return;
    parse_chunk(&all->list.at[item], &all->data, NULL);
    if (all->list.at[item].err != RBT_OK)
        while (item < refused && !atomic_compare_exchange_weak_explicit(&all->refused, &refused, item,
                                                                        memory_order_relaxed, memory_order_relaxed))
            continue;
}

/* Gives every chunk its place by the bounds, and the number of its first line; the sums of the bounds. */
static void place(chunks *all, size_t *rows, size_t *features)
{
    *rows = *features = 0;
    for (size_t i = 0; i < all->list.count; i++) {
        chunk *c = &all->list.at[i];
        if (c->line == 0) /* not the first of its text, so the one before it ends with a newline */
            c->line = c[-1].line + c[-1].lines;
        c->first_row = *rows;
        c->first_at = *features;
        *rows += c->lines;
        *features += c->colons;
    }
}

/* Moves the chunks' rows together where they have less than the bounds said. */
static void close_up(chunks *all)
{
    rbt_data *d = &all->data;
    for (size_t i = 0; i < all->list.count; i++) {
        const chunk *c = &all->list.at[i];
        size_t row = c->first_row, at = c->first_at;
        if (d->rows != row)
            memmove(d->label + d->rows, d->label + row, c->rows * sizeof *d->label);
        if (d->nnz != at) {
            memmove(d->index + d->nnz, d->index + at, c->nnz * sizeof *d->index);
            memmove(d->value + d->nnz, d->value + at, c->nnz * sizeof *d->value);
        }
        if (d->rows != row || d->nnz != at)
            for (size_t r = 1; r <= c->rows; r++)
                d->start[d->rows + r] = d->start[row + r] - (at - d->nnz);
        d->rows += c->rows;
        d->nnz += c->nnz;
    }
}

/* What is decided over all chunks: where does counting begin, how many columns. */
static rbt_err finish(chunks *all, const char *name, bool *known, rbt_error *error)
{
    rbt_data *d = &all->data;
    uint64_t largest = 0;
    bool zero_based = *known;
    for (size_t i = 0; i < all->list.count; i++) {
        largest = all->list.at[i].largest > largest ? all->list.at[i].largest : largest;
        zero_based |= all->list.at[i].zero_based;
    }
    if (zero_based && largest + 1 >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT,
                        "%s: counts features from 0 and has index %llu; it must have fewer than %u features", name,
                        (unsigned long long)largest, RBT_DATA_INDEX_LIMIT);
    if (zero_based)
        for (size_t i = 0; i < d->nnz; i++)
            d->index[i]++;
    d->cols = (size_t)(zero_based ? largest + 1 : largest);
    *known = zero_based;
    return RBT_OK;
}

rbt_libsvm_cut rbt_libsvm_cut_default(void)
{
    return (rbt_libsvm_cut){.chunk_bytes = CHUNK_BYTES, .threads = rbt_parallel_threads()};
}

static rbt_err parse(const rbt_text *texts, size_t count, size_t line, const char *name, rbt_libsvm_cut cut,
                     bool *zero_based, rbt_data *data, rbt_error *error)
{
    chunks all = {.refused = SIZE_MAX};
    size_t rows, features;
    for (size_t i = 0; i < count; i++)
        cut_text(&all, &texts[i], line, cut.chunk_bytes);
    rbt_parallel_for(all.list.count, cut.threads, count_item, &all);
    place(&all, &rows, &features);
    rbt_err err = rbt_data_alloc(rows, features, &all.data, error);
    if (err != RBT_OK)
        goto free_list;

    rbt_parallel_for(all.list.count, cut.threads, parse_item, &all);
    size_t refused = atomic_load_explicit(&all.refused, memory_order_relaxed);
    if (refused != SIZE_MAX) {
        parse_chunk(&all.list.at[refused], &all.data, error); /* once more, for the message */
        err = all.list.at[refused].err;
    } else {
        close_up(&all);
        err = finish(&all, name, zero_based, error);
    }
    if (err == RBT_OK)
        *data = all.data;
    else
        rbt_data_deinit(&all.data);
free_list:
    rbt_array_free(&all.list);
    return err;
}

rbt_err rbt_libsvm_refuse_empty(const char *name, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA,
                    "%s: has no rows; expected one or more lines of the form: label index:value index:value ...", name);
}

rbt_err rbt_libsvm_parse(const rbt_text *texts, size_t count, const char *name, rbt_libsvm_cut cut, rbt_data *data,
                         rbt_error *error)
{
    rbt_data parsed;
    bool zero_based = false;
    rbt_err err = parse(texts, count, 1, name, cut, &zero_based, &parsed, error);
    if (err != RBT_OK)
        return err;
    if (parsed.rows == 0) {
        rbt_data_deinit(&parsed);
        return rbt_libsvm_refuse_empty(name, error);
    }
    *data = parsed;
    return RBT_OK;
}

rbt_err rbt_libsvm_parse_piece(const rbt_text *text, size_t line, rbt_libsvm_cut cut, bool *zero_based, rbt_data *data,
                               rbt_error *error)
{
    return parse(text, 1, line, text->name, cut, zero_based, data, error);
}

rbt_err rbt_data_parse_libsvm(const char *text, size_t bytes, const char *name, rbt_data *data, rbt_error *error)
{
    return rbt_libsvm_parse(&(rbt_text){name, text, bytes}, 1, name, rbt_libsvm_cut_default(), data, error);
}
