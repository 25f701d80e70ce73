/* Vowpal Wabbit text: "[label [importance [base]]] ['tag]|namespace[:weight] feature[:value] ...", one row per line.
 *
 * Contract in vw.h, format in docs/formats.md. chunks.c calls parse_line for every line. Never reads past a text; every
 * refusal has file:line, what stands there and what was expected. Proved by tests/unit/test_vw.c and tests/fuzz/fuzz_vw.c.
 */
#include "data/vw.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/number.h"
#include "data/origin.h"

#define HEAD_WORDS 4 /* label, importance, base, tag */

typedef struct vw_context {
    uint64_t mask;
    bool unlabelled;
    bool classes;
} vw_context;

/* A piece of the text. */
typedef struct word {
    const char *at;
    const char *end;
} word;

/* A line being parsed; `end` is where its text ends, before the newline. */
typedef struct line {
    rbt_reader *r;
    const char *at;
    const char *end;
    uint64_t space;  /* the namespace's hash */
    float scale;     /* the namespace's weight */
    uint64_t number; /* of the next feature without a name */
} line;

/* ------------------------------------------------------------------------------------------------------ hashes */

static inline uint32_t rotate(uint32_t x, int by)
{
    return (x << by) | (x >> (32 - by));
}

static inline uint32_t scramble(uint32_t k)
{
    return rotate(k * 0xcc9e2d51U, 15) * 0x1b873593U;
}

/* MurmurHash3_x86_32 (Austin Appleby, public domain), which defines the columns of Vowpal Wabbit's features. */
static uint32_t murmur(const char *bytes, size_t n, uint32_t seed)
{
    const unsigned char *at = (const unsigned char *)bytes;
    uint32_t h = seed, k = 0;
    for (size_t left = n; left >= 4; left -= 4, at += 4) {
        k = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        h = rotate(h ^ scramble(k), 13) * 5 + 0xe6546b64U;
    }
    k = 0;
    for (size_t i = n % 4; i > 0; i--)
        k = k << 8 | at[i - 1];
    h ^= scramble(k); /* of 0 it is 0 */
    h ^= (uint32_t)n;
    h = (h ^ (h >> 16)) * 0x85ebca6bU;
    h = (h ^ (h >> 13)) * 0xc2b2ae35U;
    return h ^ (h >> 16);
}

uint64_t rbt_vw_hash(const char *name, size_t n, uint64_t seed)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < n && name[i] >= '0' && name[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(name[i] - '0');
    return i == n ? number + seed : murmur(name, n, (uint32_t)seed);
}

/* --------------------------------------------------------------------------------------------------- the parts */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static rbt_err refuse(const line *l, word w, const char *expected)
{
    char shown[RBT_TOKEN_ROOM];
    return rbt_fail(l->r->error, RBT_E_DATA, "%s:%zu: '%s': expected %s", l->r->name, l->r->line,
                    rbt_text_shown(w.at, w.end, shown), expected);
}

/* The number that the word is, and nothing else. */
static bool is_number(word w, float *value)
{
    return rbt_number_parse(w.at, w.end, value) == w.end && w.at < w.end && isfinite(*value);
}

/* The same where a number should stand from `number` to the word's end: there is one, perhaps, but too large. */
static rbt_err refuse_number(const line *l, word w, const char *number, const char *expected)
{
    float value;
    bool large = rbt_number_parse(number, w.end, &value) == w.end && !isfinite(value);
    return refuse(l, w, large ? RBT_EXPECTED_FLOAT : expected);
}

/* The words before the first |, and which of them is the tag: one with a quote before it, or one that touches the |. */
static rbt_err parse_head(line *l, const char *bar)
{
    const vw_context *context = l->r->context;
    word words[HEAD_WORDS];
    size_t n = 0;
    while (true) {
        while (l->at < bar && is_blank(*l->at))
            l->at++;
        if (l->at == bar)
            break;
        word w = {l->at, l->at};
        while (w.end < bar && !is_blank(*w.end))
            w.end++;
        if (n == HEAD_WORDS)
            return refuse(l, w, "at most a label, an importance, a base and a tag before the |");
        words[n++] = w;
        l->at = w.end;
    }
    bool tag = n > 0 && (words[n - 1].end == bar || *words[n - 1].at == '\'');
    n -= tag;
    if (n == HEAD_WORDS)
        return refuse(l, words[n - 1], "a tag: a quote before it, or no blank between it and the |");

    float label = 0, weight = 1, base = 0;
    if (n == 0 && !context->unlabelled)
        return rbt_fail(l->r->error, RBT_E_DATA, "%s:%zu: the row has no label; training needs one%s", l->r->name,
                        l->r->line,
                        tag ? ": a word that touches the | is a tag, put a blank between the label and the |"
                            : ", for example: 1 |words a b:0.5");
    if (n > 0 && !is_number(words[0], &label))
        return refuse_number(l, words[0], words[0].at, "a label: one finite number such as 1, -1 or 3.5");
    if (n > 1 && (!is_number(words[1], &weight) || weight <= 0))
        return refuse_number(l, words[1], words[1].at,
                             "an importance: a number above 0; leave out rows that do not count");
    if (n > 2 && !is_number(words[2], &base))
        return refuse_number(l, words[2], words[2].at, "a base: a finite number");
    if (n > 0 && context->classes) {
        rbt_err err = rbt_reader_check_class(l->r, words[0].at, words[0].end, label);
        if (err != RBT_OK)
            return err;
    }
    l->r->data->label[l->r->rows] = label;
    l->r->data->weight[l->r->rows] = weight;
    l->r->seen.unlabelled += n == 0;
    l->r->seen.weighted |= n > 1;
    return RBT_OK;
}

/* What stands up to the next blank, colon or bar. */
static word take_name(line *l)
{
    word w = {l->at, l->at};
    while (w.end < l->end && !is_blank(*w.end) && *w.end != ':' && *w.end != '|')
        w.end++;
    l->at = w.end;
    return w;
}

/* What stands up to the next blank or bar. */
static word take_value(line *l)
{
    word w = {l->at, l->at};
    while (w.end < l->end && !is_blank(*w.end) && *w.end != '|')
        w.end++;
    l->at = w.end;
    return w;
}

static rbt_err parse_namespace(line *l)
{
    word name = take_name(l);
    l->space = 0;
    l->scale = 1;
    l->number = 0;
    if (name.at < name.end)
        l->space = rbt_vw_hash(name.at, (size_t)(name.end - name.at), 0);
    if (l->at == l->end || *l->at != ':')
        return RBT_OK;
    if (name.at == name.end)
        return refuse(l, take_value(l), "a namespace's name before its weight, or a blank after the |");
    l->at++;
    word weight = take_value(l);
    if (!is_number(weight, &l->scale))
        return refuse_number(l, (word){name.at, weight.end}, weight.at, "a finite number after the namespace's colon");
    return RBT_OK;
}

/* Text that is no number is a value of its own, hashed with the name; it counts 1. These are numbers we do not take. */
static bool is_word(word w)
{
    size_t n = (size_t)(w.end - w.at), sign = n > 0 && (*w.at == '-' || *w.at == '+');
    float ignored;
    return n > 0 && rbt_number_parse(w.at, w.end, &ignored) == NULL &&
           !(n == 3 + sign && (strncasecmp(w.at + sign, "nan", 3) == 0 || strncasecmp(w.at + sign, "inf", 3) == 0)) &&
           !(n == 8 + sign && strncasecmp(w.at + sign, "infinity", 8) == 0);
}

static rbt_err parse_feature(line *l)
{
    const vw_context *context = l->r->context;
    rbt_data *d = l->r->data;
    word name = take_name(l);
    size_t n = (size_t)(name.end - name.at);
    float value = 1;
    uint64_t hash = rbt_vw_hash(name.at, n, l->space);
    bool numeric = true;
    if (l->at < l->end && *l->at == ':') {
        l->at++;
        word w = take_value(l);
        if (!is_number(w, &value)) {
            if (!is_word(w))
                return refuse_number(l, (word){name.at, w.end}, w.at,
                                     "a finite number or a word after the colon, for example a:0.5");
            numeric = false;
            value = 1;
            hash = rbt_vw_hash(w.at, (size_t)(w.end - w.at), hash);
        }
    }
    if (numeric)
        value *= l->scale;
    if (n == 0 && numeric)
        hash = l->space + l->number++;
    if (!isfinite(value))
        return refuse(l, (word){name.at, l->at}, "a value that a 32-bit float holds after the namespace's weight");
    if (value != 0) {
        d->index[l->r->nnz] = (uint32_t)(hash & context->mask);
        d->value[l->r->nnz++] = value;
    }
    return RBT_OK;
}

static rbt_err parse_row(line *l)
{
    size_t first = l->r->nnz;
    const char *bar = memchr(l->at, '|', (size_t)(l->end - l->at));
    if (bar == NULL)
        return refuse(l, (word){l->at, l->end}, "a | before the features, for example: 1 |words a b:0.5");
    if (memchr(l->at, '\0', (size_t)(l->end - l->at)) != NULL)
        return rbt_fail(l->r->error, RBT_E_DATA, "%s:%zu: the row has a zero byte: this is no text", l->r->name,
                        l->r->line);
    rbt_err err = parse_head(l, bar);
    while (err == RBT_OK && l->at < l->end) {
        if (*l->at == '|') {
            l->at++;
            err = parse_namespace(l);
        } else if (is_blank(*l->at)) {
            l->at++;
        } else {
            err = parse_feature(l);
        }
    }
    if (err == RBT_OK)
        err = rbt_reader_merge(l->r, first);
    if (err == RBT_OK)
        rbt_reader_end_row(l->r);
    return err;
}

static rbt_err parse_line(rbt_reader *r)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *end = newline != NULL ? newline : r->end;
    line l = {.r = r, .at = r->at, .end = end};
    if (l.end > l.at && l.end[-1] == '\r')
        l.end--;
    while (l.at < l.end && is_blank(*l.at))
        l.at++;
    if (l.at < l.end) { /* an empty line ends an example of several lines there, and nothing here */
        rbt_err err = parse_row(&l);
        if (err != RBT_OK)
            return err;
    }
    r->at = newline != NULL ? newline + 1 : end;
    r->line += newline != NULL;
    return RBT_OK;
}

/* `first_line` 0: whole texts. */
static rbt_err parse(const rbt_source *source, size_t first_line, const rbt_reading *reading, rbt_data *data,
                     rbt_error *error)
{
    uint32_t bits = rbt_reading_bits(reading);
    const vw_context context = {
        .mask = (UINT64_C(1) << bits) - 1, .unlabelled = reading->unlabelled, .classes = reading->classes};
    const rbt_row_format format = {.row = "label |namespace feature:value feature ...",
                                   .separators = " \t",
                                   .weighted = true,
                                   .context = &context,
                                   .parse = parse_line};
    rbt_data d;
    rbt_seen seen;
    rbt_err err = first_line == 0 ? rbt_source_parse(source, &format, reading, &d, &seen, error)
                                  : rbt_source_parse_piece(source, first_line, &format, reading, &d, &seen, error);
    if (err != RBT_OK)
        return err;
    d.cols = (size_t)1 << bits;
    d.origin = rbt_origin_text(&(rbt_origin){.bits = bits});
    if (!seen.weighted) {
        rbt_free(d.weight);
        d.weight = NULL;
    }
    *data = d;
    return RBT_OK;
}

rbt_err rbt_vw_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    return parse(source, 0, reading, data, error);
}

rbt_err rbt_vw_parse_piece(const rbt_source *source, size_t first_line, const rbt_reading *reading, rbt_data *data,
                           rbt_error *error)
{
    return parse(source, first_line, reading, data, error);
}
