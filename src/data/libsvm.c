/* LIBSVM text: "label index:value index:value ...", one row per line. The format is described in docs/formats.md.
 *
 * Called through rbt_data_read and rbt_data_write_libsvm (data.h); chunks.c calls parse_line for every line. Never
 * reads past a text, whatever it holds; every refusal has file:line, what stands there and what was expected. Proved by
 * tests/unit/test_libsvm.c, test_libsvm_parallel.c and tests/fuzz/fuzz_libsvm.c.
 */
#include "data/libsvm.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/digits.h"
#include "data/file.h"
#include "data/number.h"
#include "data/origin.h"

#define PLAIN_BYTES 16 /* an index of up to 7 digits, its colon, and a word of the value */

/* ----------------------------------------------------------------------------------------------------- parsing */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* May a label or a feature end here? */
static inline bool ends_token(const rbt_reader *r, const char *at)
{
    return at == r->end || is_blank(*at) || *at == '\n' || *at == '#';
}

static inline void skip_blanks(rbt_reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

/* The text at the reader's place, for a message. */
static const char *shown(const rbt_reader *r, char out[RBT_TOKEN_ROOM])
{
    const char *stop = r->at;
    while (!ends_token(r, stop))
        stop++;
    return rbt_text_shown(r->at, stop, out);
}

static rbt_err refuse_token(const rbt_reader *r, const char *expected)
{
    char token[RBT_TOKEN_ROOM];
    return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: '%s': expected %s", r->name, r->line, shown(r, token), expected);
}

/* What the reading says about the rows. */
typedef struct libsvm_context {
    rbt_base base;
    bool classes;
    bool unlabelled;
} libsvm_context;

static inline const libsvm_context *context_of(const rbt_reader *r)
{
    return r->context;
}

static rbt_err parse_label(rbt_reader *r, float *label)
{
    float value;
    const char *stop = rbt_number_parse(r->at, r->end, &value);
    if (stop == NULL || !ends_token(r, stop))
        return refuse_token(r, "a label at the start of the row: one finite number such as +1, -1 or 3.5");
    if (!isfinite(value))
        return refuse_token(r, RBT_EXPECTED_FLOAT);
    *label = value;
    if (context_of(r)->classes) {
        rbt_err err = rbt_reader_check_class(r, r->at, stop, value);
        if (err != RBT_OK)
            return err;
    }
    r->at = stop;
    return RBT_OK;
}

/* Does the row begin with a feature, or what may stand before features? Then it has no label. */
static bool begins_unlabelled(const rbt_reader *r)
{
    const char *p = r->at;
    if (r->end - p >= 4 && memcmp(p, "qid:", 4) == 0)
        return true;
    while (p < r->end && *p >= '0' && *p <= '9')
        p++;
    return p > r->at && p < r->end && *p == ':';
}

/* The number of the row's query, if it has one: it is of no matter here. */
static rbt_err skip_query(rbt_reader *r)
{
    skip_blanks(r);
    if (r->end - r->at < 4 || memcmp(r->at, "qid:", 4) != 0)
        return RBT_OK;
    const char *p = r->at + 4;
    while (p < r->end && *p >= '0' && *p <= '9')
        p++;
    if (p == r->at + 4 || !ends_token(r, p))
        return refuse_token(r, "digits after qid:, for example qid:7");
    r->at = p;
    return RBT_OK;
}

/* The index of a feature and its colon; on success the reader stands at the value. */
static rbt_err parse_index(rbt_reader *r, uint64_t *index)
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
        char token[RBT_TOKEN_ROOM];
        return rbt_fail(r->error, RBT_E_LIMIT,
                        "%s:%zu: '%s': a feature's index must be below %u; renumber the features", r->name, r->line,
                        shown(r, token), RBT_DATA_INDEX_LIMIT);
    }
    *index = i;
    r->at = p + 1;
    return RBT_OK;
}

/* One feature into the data; `last` is the index before it in this row, -1 at the row's start. */
static rbt_err parse_feature(rbt_reader *r, int64_t *last)
{
    const char *token = r->at;
    uint64_t index = 0;
    float value = 0;
    rbt_err err = parse_index(r, &index);
    if (err != RBT_OK)
        return err;
    const char *stop = rbt_number_parse(r->at, r->end, &value);
    if (stop == NULL || !ends_token(r, stop) || !isfinite(value)) {
        bool large = stop != NULL && ends_token(r, stop);
        r->at = token;
        return refuse_token(r, large ? RBT_EXPECTED_FLOAT : "a finite number after the colon, for example 7:0.25");
    }
    if ((int64_t)index <= *last)
        return rbt_fail(
            r->error, RBT_E_DATA,
            "%s:%zu: index %llu stands after index %lld; the indices of a row must ascend: sort the row, and "
            "merge what is there twice",
            r->name, r->line, (unsigned long long)index, (long long)*last);
    *last = (int64_t)index;
    r->at = stop;
    r->seen.zero_based |= index == 0;
    if (value != 0) {
        r->data->index[r->nnz] = (uint32_t)index - 1; /* 0 turns over, and back when the data counts from 0 */
        r->data->value[r->nnz++] = value;
    }
    return RBT_OK;
}

/* The value that stands at `at` if it is digits, perhaps with a point, and fits into a word with the blank behind it;
 * NULL: it does not. Its digits as a whole number and the power of ten of its decimals are exact floats, so the
 * quotient is the nearest float. Reads 8 bytes. */
static inline const char *plain_value(const char *at, float *value)
{
    static const float power[] = {1, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F};
    uint64_t word = rbt_digits_load(at);
    unsigned blank = rbt_digits_find(word, ' '), newline = rbt_digits_find(word, '\n');
    unsigned n = blank < newline ? blank : newline, point = rbt_digits_find(word, '.');
    const char *stop = at + n;
    unsigned decimals = 0;
    uint32_t digits;
    if (n >= sizeof word)
        return NULL;
    if (point < n) { /* is taken out */
        uint64_t before = (UINT64_C(1) << 8 * point) - 1;
        word = (word & before) | (word >> 8 & ~before);
        decimals = n - point - 1;
        n--;
    }
    if (n == 0 || !rbt_digits_parse(word, n, &digits))
        return NULL;
    *value = (float)digits / power[decimals];
    return stop;
}

/* Is this, behind an index, the rest of a feature that says no more than that it is there, and a blank? */
static inline bool is_mark(uint64_t rest)
{
    return (rest & 0xffffff) == (':' | '1' << 8 | ' ' << 16);
}

/* Features as they nearly always are, one blank apart; the first that is not, for whatever reason, is left to
 * parse_feature. */
static void parse_plain_features(rbt_reader *r, int64_t *last)
{
    const char *at = r->at, *end = r->end;
    uint32_t *indices = r->data->index;
    float *values = r->data->value;
    size_t nnz = r->nnz;
    int64_t before = *last;
    bool zero_based = false;
    while (end - at >= PLAIN_BYTES) {
        uint64_t word = rbt_digits_load(at);
        unsigned digits = rbt_digits_find(word, ':');
        uint32_t index;
        float value;
        if (digits == 0 || digits == 8 || !rbt_digits_parse(word, digits, &index) || index <= before)
            break;
        if (is_mark(word >> 8 * digits)) {
            before = index;
            zero_based |= index == 0;
            indices[nnz] = index - 1; /* 0 turns over, and back when the data counts from 0 */
            values[nnz++] = 1;
            at += digits + 3;
            continue;
        }
        const char *stop = plain_value(at + digits + 1, &value);
        if (stop == NULL) {
            stop = rbt_number_parse(at + digits + 1, end, &value);
            if (stop == NULL || stop == end || (*stop != ' ' && *stop != '\n') || !isfinite(value))
                break;
        }
        before = index;
        zero_based |= index == 0;
        indices[nnz] = index - 1;
        values[nnz] = value;
        nnz += value != 0;
        at = stop;
        if (*stop == '\n')
            break;
        at++;
    }
    r->at = at;
    r->nnz = nnz;
    r->seen.zero_based |= zero_based;
    *last = before;
}

/* Rows before have none, so it is in this one. */
static rbt_err refuse_zero(const rbt_reader *r)
{
    return rbt_fail(r->error, RBT_E_DATA,
                    "%s:%zu: the row has an index 0, and features are counted from 1 here, as --base 1 says or as the "
                    "training data was read; give --base 0 if this data counts from 0, and if the training data does, "
                    "too, train with --base 0",
                    r->name, r->line);
}

/* One line, with or without a row on it, and the newline that ends it. */
static rbt_err parse_line(rbt_reader *r)
{
    skip_blanks(r);
    if (r->at < r->end && *r->at != '\n' && *r->at != '#') {
        bool bare = context_of(r)->unlabelled && begins_unlabelled(r);
        rbt_err err = bare ? RBT_OK : parse_label(r, &r->data->label[r->rows]);
        int64_t last = -1;
        if (bare) {
            r->data->label[r->rows] = 0;
            r->seen.unlabelled++;
        }
        if (err == RBT_OK)
            err = skip_query(r);
        while (err == RBT_OK) {
            skip_blanks(r);
            parse_plain_features(r, &last);
            skip_blanks(r);
            if (ends_token(r, r->at))
                break;
            err = parse_feature(r, &last);
        }
        r->seen.largest = last > (int64_t)r->seen.largest ? (uint64_t)last : r->seen.largest;
        if (err == RBT_OK && r->seen.zero_based && context_of(r)->base == RBT_BASE_1)
            err = refuse_zero(r);
        if (err != RBT_OK)
            return err;
        rbt_reader_end_row(r);
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

/* What is decided over all rows, those of the data and any before: where does counting begin, how many columns. */
static rbt_err finish(rbt_data *d, const rbt_seen *seen, const char *name, rbt_error *error)
{
    if (seen->zero_based && seen->largest + 1 >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT,
                        "%s: counts features from 0 and has index %llu; it must have fewer than %u features", name,
                        (unsigned long long)seen->largest, RBT_DATA_INDEX_LIMIT);
    if (seen->zero_based)
        for (size_t i = 0; i < d->nnz; i++)
            d->index[i]++;
    d->cols = (size_t)(seen->zero_based ? seen->largest + 1 : seen->largest);
    return RBT_OK;
}

char *rbt_libsvm_origin(bool zero_based)
{
    return rbt_origin_text(&(rbt_origin){.base = zero_based ? RBT_BASE_0 : RBT_BASE_1});
}

static const rbt_row_format format = {
    .row = "label index:value index:value ...", .separators = ":", .parse = parse_line};

static libsvm_context context_for(const rbt_reading *reading)
{
    return (libsvm_context){
        .base = rbt_reading_base(reading), .classes = reading->classes, .unlabelled = reading->unlabelled};
}

rbt_err rbt_libsvm_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    const libsvm_context context = context_for(reading);
    rbt_row_format own = format;
    rbt_data d;
    rbt_seen seen;
    own.context = &context;
    rbt_err err = rbt_source_parse(source, &own, reading, &d, &seen, error);
    if (err != RBT_OK)
        return err;
    seen.zero_based |= context.base == RBT_BASE_0;
    err = finish(&d, &seen, source->name, error);
    d.origin = rbt_libsvm_origin(seen.zero_based);
    if (err == RBT_OK)
        *data = d;
    else
        rbt_data_deinit(&d);
    return err;
}

rbt_err rbt_libsvm_parse_piece(const rbt_source *source, size_t line, const rbt_reading *reading, rbt_seen *all,
                               rbt_data *data, rbt_error *error)
{
    const libsvm_context context = context_for(reading);
    rbt_row_format own = format;
    rbt_data d;
    rbt_seen seen;
    own.context = &context;
    rbt_err err = rbt_source_parse_piece(source, line, &own, reading, &d, &seen, error);
    if (err != RBT_OK)
        return err;
    all->zero_based |= seen.zero_based || context.base == RBT_BASE_0;
    all->largest = seen.largest > all->largest ? seen.largest : all->largest;
    err = finish(&d, all, source->name, error);
    if (err == RBT_OK)
        *data = d;
    else
        rbt_data_deinit(&d);
    return err;
}

rbt_err rbt_data_parse_libsvm(const char *text, size_t bytes, const char *name, rbt_data *data, rbt_error *error)
{
    const rbt_text whole = {.name = name, .bytes = text, .n = bytes};
    return rbt_libsvm_parse(&(rbt_source){&whole, 1, name, rbt_cut_default(), NULL}, &(rbt_reading){0}, data, error);
}
