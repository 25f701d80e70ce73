/* What a file holds. Contract in read.h; proved by tests/unit/test_reading.c. */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "data/cache.h"
#include "data/docs.h"
#include "data/idx.h"
#include "data/number.h"
#include "data/ratings.h"
#include "data/read.h"

#define FIRST_BYTES                                                                                                    \
    16 /* as far as the versions and lengths that stand behind what caches, models and gzip begin with */

const char *rbt_name_packing(const char *name)
{
    static const char *const packed[] = {".gz", ".zst", ".zstd"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        size_t p = strlen(packed[i]);
        if (n > p && strcasecmp(name + n - p, packed[i]) == 0)
            return name + n - p;
    }
    return NULL;
}

rbt_kind rbt_kind_of_name(const char *name)
{
    static const struct {
        const char *suffix;
        rbt_kind kind;
    } known[] = {{".csv", RBT_KIND_CSV},     {".tsv", RBT_KIND_CSV},        {".vw", RBT_KIND_VW},
                 {".svm", RBT_KIND_LIBSVM},  {".libsvm", RBT_KIND_LIBSVM},  {".svmlight", RBT_KIND_LIBSVM},
                 {".cache", RBT_KIND_CACHE}, {".rbt-cache", RBT_KIND_CACHE}};
    const char *packing = rbt_name_packing(name);
    size_t n = packing != NULL ? (size_t)(packing - name) : strlen(name);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t s = strlen(known[i].suffix);
        if (n > s && strncasecmp(name + n - s, known[i].suffix, s) == 0)
            return known[i].kind;
    }
    return RBT_KIND_AUTO;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* Before the first | there is nothing, a number or a quoted tag: not a cell of CSV text. */
static bool looks_like_vw(const char *at, const char *end)
{
    const char *bar = memchr(at, '|', (size_t)(end - at));
    float ignored;
    if (bar == NULL || memchr(at, ',', (size_t)(bar - at)) != NULL || memchr(at, ';', (size_t)(bar - at)) != NULL)
        return false;
    at = skip_blanks(at, bar);
    if (at == bar || *at == '\'')
        return true;
    const char *stop = rbt_number_parse(at, bar, &ignored);
    return stop != NULL && (stop == bar || *stop == ' ' || *stop == '\t');
}

/* Digits, a colon and a number, of which one or several make a row without a label. */
static bool looks_like_features(const char *at, const char *end)
{
    float ignored;
    size_t n = 0;
    for (at = skip_blanks(at, end); at < end && *at != '#'; at = skip_blanks(at, end), n++) {
        const char *colon = at;
        while (colon < end && *colon >= '0' && *colon <= '9')
            colon++;
        if (colon == at || colon == end || *colon != ':')
            return false;
        at = rbt_number_parse(colon + 1, end, &ignored);
        if (at == NULL || (at < end && *at != '#' && skip_blanks(at, end) == at))
            return false;
    }
    return n > 0;
}

/* Several labels, "1,2", and features behind a blank: LIBSVM text that is refused with its line, and no row of CSV. */
static bool looks_like_labels(const char *at, const char *end)
{
    float ignored;
    const char *stop = rbt_number_parse(at, end, &ignored);
    while (stop != NULL && stop < end && *stop == ',')
        stop = rbt_number_parse(stop + 1, end, &ignored);
    return stop != NULL && skip_blanks(stop, end) > stop && looks_like_features(stop, end);
}

/* A number, then nothing, a comment or digits and a colon. */
static bool looks_like_libsvm(const char *at, const char *end)
{
    float ignored;
    const char *stop = rbt_number_parse(skip_blanks(at, end), end, &ignored);
    if (stop == NULL)
        return false;
    if (looks_like_features(at, end) || looks_like_labels(skip_blanks(at, end), end))
        return true;
    at = skip_blanks(stop, end);
    if (at == end || *at == '#' || (end - at > 4 && memcmp(at, "qid:", 4) == 0))
        return true;
    stop = at;
    while (stop < end && *stop >= '0' && *stop <= '9')
        stop++;
    return stop > at && stop < end && *stop == ':';
}

static rbt_kind kind_of_line(const char *at, const char *end)
{
    if (looks_like_libsvm(at, end))
        return RBT_KIND_LIBSVM;
    if (looks_like_vw(at, end))
        return RBT_KIND_VW;
    if (rbt_ratings_recognise(at, end))
        return RBT_KIND_RATINGS;
    for (; at < end; at++)
        if (*at == ',' || *at == ';' || *at == '\t')
            return RBT_KIND_CSV;
    return RBT_KIND_LIBSVM;
}

/* The first line that is neither empty nor a comment, up to *stop; NULL: there is none. */
static const char *first_row(const char *at, const char *end, const char **stop)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        *stop = newline != NULL ? newline : end;
        const char *text = skip_blanks(at, *stop);
        if (text < *stop && *text != '#')
            return at;
        at = newline != NULL ? newline + 1 : end;
    }
    return NULL;
}

static rbt_kind kind_of_text(const char *at, const char *end, rbt_content expect)
{
    if (rbt_docword_recognise(at, end, expect == RBT_CONTENT_DOCS))
        return RBT_KIND_DOCWORD;
    if (rbt_ldac_recognise(at, end, expect == RBT_CONTENT_DOCS ? RBT_LDAC_HALF : RBT_LDAC_SURE))
        return RBT_KIND_LDAC;
    const char *stop, *row = first_row(at, end, &stop);
    return row != NULL ? kind_of_line(row, stop) : RBT_KIND_LIBSVM;
}

bool rbt_kind_has_row(const char *text, size_t n)
{
    const char *stop;
    return first_row(text + rbt_mark_bytes(text, n), text + n, &stop) != NULL;
}

/* Do the first bytes have one that no text has? Further down it is for the readers, who tell its line. UTF-16 is text, of
 * a kind that they refuse. */
static bool begins_unlike_text(const char *at, size_t n)
{
    static const char blanks[] = "\t\n\v\f\r";
    if (n >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0))
        return false;
    for (size_t i = 0; i < n && i < FIRST_BYTES; i++)
        if ((unsigned char)at[i] < ' ' && memchr(blanks, at[i], sizeof blanks - 1) == NULL)
            return true;
    return false;
}

rbt_err rbt_kind_refuse_model(const rbt_input *input, rbt_error *error)
{
    const char *at = input->bytes;
    if (input->n >= 4 && memcmp(at, "\x89RB", 3) == 0 && (at[3] == 'T' || at[3] == 'F'))
        return input->n >= 8 && memcmp(at + 4, "\r\n\x1a\n", 4) == 0
                   ? rbt_fail(error, RBT_E_DATA,
                              "%s: is a model of Rubato, not data; give models with --model (predict, eval), or one "
                              "alone (info)",
                              input->name)
                   : rbt_fail(error, RBT_E_DATA,
                              "%s: begins as a model of Rubato does, but its first 8 bytes are damaged or cut short; "
                              "copy it again (not as text), or train it again",
                              input->name);
    if (rbt_cache_recognise(at, input->n) || rbt_idx_recognise(at, input->n) || !begins_unlike_text(at, input->n))
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA,
                    "%s: is neither text nor a cache, a model or compressed data (its first bytes are those of none); "
                    "copy it again, or make it again",
                    input->name);
}

rbt_kind rbt_kind_of(const rbt_input *input, rbt_content expect)
{
    const char *at = input->bytes, *end = input->bytes + input->n;
    if (rbt_cache_recognise(at, input->n))
        return RBT_KIND_CACHE;
    if (rbt_idx_recognise(at, input->n))
        return RBT_KIND_IDX;
    at += rbt_mark_bytes(at, input->n);
    if (expect == RBT_CONTENT_RATINGS)
        return RBT_KIND_RATINGS;
    rbt_kind kind = rbt_kind_of_name(input->name);
    if (kind == RBT_KIND_AUTO || kind == RBT_KIND_CACHE) /* a cache would begin like one */
        return kind_of_text(at, end, expect);
    return kind == RBT_KIND_LIBSVM && expect == RBT_CONTENT_DOCS && rbt_ldac_recognise(at, end, RBT_LDAC_ALL)
               ? RBT_KIND_LDAC
               : kind;
}
