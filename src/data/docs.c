/* Documents as counts of words. Contract in docs.h, formats in docs/formats.md; proved by tests/unit/test_docs.c and
 * tests/fuzz/fuzz_docs.c. */
#include "data/docs.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/triples.h"

#define HEAD_LINES 3 /* of a bag of words: documents, words, triples */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* A whole number, all of whose digits count up to what 64 bits hold; NULL: there is none. */
static const char *parse_whole(const char *at, const char *end, uint64_t *value)
{
    const char *p = at;
    uint64_t x = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        x = x > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10 : x * 10 + (uint64_t)(*p - '0');
    *value = x;
    return p > at ? p : NULL;
}

/* Numbers and nothing else on a line, blanks between them; how many there are, `most` at most, or SIZE_MAX. */
static size_t parse_numbers(const char *at, const char *end, uint64_t *numbers, size_t most)
{
    size_t n = 0;
    for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
        const char *stop = n < most ? parse_whole(at, end, &numbers[n]) : NULL;
        if (stop == NULL || (stop < end && !is_blank(*stop)))
            return SIZE_MAX;
        n++;
        at = stop;
    }
    return n;
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline != NULL ? newline : end;
}

static rbt_err refuse(const rbt_reader *r, const char *at, const char *stop, const char *expected)
{
    char shown[RBT_TOKEN_ROOM];
    return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: '%s': expected %s", r->name, r->line,
                    rbt_text_shown(at, stop, shown), expected);
}

static rbt_err next_line(rbt_reader *r, const char *stop)
{
    r->line += stop < r->end;
    r->at = stop < r->end ? stop + 1 : r->end;
    return RBT_OK;
}

/* ---------------------------------------------------------------------------------------------------- bags of words */

/* What a text says of itself, and the number of its first document among those of all texts. */
typedef struct head {
    uint64_t number[HEAD_LINES]; /* documents, words, triples */
    size_t first;
} head;

typedef struct bag {
    rbt_triples triples;
    size_t text;
    uint64_t lines; /* taken */
} bag;

static void *open_bag(const void *context, size_t lines)
{
    bag *b = rbt_alloc(1, sizeof *b);
    (void)context;
    if (rbt_triples_init(&b->triples, lines))
        return b;
    rbt_free(b);
    return NULL;
}

static void close_bag(void *own)
{
    bag *b = own;
    rbt_triples_deinit(&b->triples);
    rbt_free(b);
}

static rbt_err parse_triple(rbt_reader *r, const char *stop)
{
    const head *h = (const head *)r->context + r->text;
    bag *b = r->own;
    uint64_t number[3];
    if (parse_numbers(r->at, stop, number, 3) != 3)
        return refuse(r, r->at, stop, "three whole numbers: document, word, count");
    if (number[0] < 1 || number[0] > h->number[0] || number[1] < 1 || number[1] > h->number[1])
        return rbt_fail(r->error, RBT_E_DATA,
                        "%s:%zu: document %llu and word %llu: expected 1 to %llu and 1 to %llu, as the first two lines "
                        "say",
                        r->name, r->line, (unsigned long long)number[0], (unsigned long long)number[1],
                        (unsigned long long)h->number[0], (unsigned long long)h->number[1]);
    if (number[2] > RBT_DOCS_COUNT_MOST)
        return rbt_fail(r->error, RBT_E_LIMIT, "%s:%zu: a word that occurs %llu times in a document; the limit is %u",
                        r->name, r->line, (unsigned long long)number[2], RBT_DOCS_COUNT_MOST);
    b->text = r->text;
    b->lines++;
    r->rows++;
    if (number[2] > 0)
        b->triples.at[b->triples.count++] =
            (rbt_triple){(uint32_t)(h->first + number[0] - 1), (uint32_t)(number[1] - 1), (float)number[2]};
    return RBT_OK;
}

static rbt_err parse_bag_line(rbt_reader *r)
{
    const char *stop = line_end(r->at, r->end);
    rbt_err err = RBT_OK;
    if (r->line > HEAD_LINES && skip_blanks(r->at, stop) < stop)
        err = parse_triple(r, stop);
    return err == RBT_OK ? next_line(r, stop) : err;
}

static const char *skip_mark(const char *at, const char *end)
{
    return at + rbt_mark_bytes(at, (size_t)(end - at));
}

/* The three lines at the top of each text that is not empty. */
static rbt_err parse_heads(const rbt_source *source, head *heads, size_t *docs, size_t *words, rbt_error *error)
{
    uint64_t all = 0, most = 0;
    for (size_t i = 0; i < source->count; i++) {
        const rbt_text *t = &source->texts[i];
        const char *end = t->bytes + t->n, *at = t->n > 0 ? skip_mark(t->bytes, end) : end;
        heads[i].first = (size_t)all;
        for (size_t line = 0; line < HEAD_LINES && t->n > 0; line++) {
            const char *stop = line_end(at, end);
            const rbt_reader where = {.name = t->name, .line = line + 1, .error = error};
            if (parse_numbers(at, stop, &heads[i].number[line], 1) != 1)
                return refuse(&where, at, stop,
                              line == 0   ? "the number of documents"
                              : line == 1 ? "the number of words"
                                          : "the number of lines that follow");
            if (heads[i].number[line] >= RBT_DATA_INDEX_LIMIT && line < 2)
                return rbt_fail(error, RBT_E_LIMIT, "%s:%zu: there must be fewer than %u %s", t->name, line + 1,
                                RBT_DATA_INDEX_LIMIT, line == 0 ? "documents" : "words");
            at = stop < end ? stop + 1 : end;
        }
        all += heads[i].number[0];
        most = heads[i].number[1] > most ? heads[i].number[1] : most;
    }
    *docs = (size_t)all;
    *words = (size_t)most;
    if (all >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%s: there must be fewer than %u documents", source->name,
                        RBT_DATA_INDEX_LIMIT);
    return RBT_OK;
}

/* Has every text as many lines as it says? What was left out cannot be told. Are there not too many empty documents? */
static rbt_err check_lines(const rbt_chunks *chunks, const rbt_source *source, const head *heads, size_t docs,
                           bool skipped, rbt_error *error)
{
    uint64_t *lines = rbt_alloc(source->count + 1, sizeof *lines), all = 0;
    rbt_err err = RBT_OK;
    for (size_t c = 0; c < rbt_chunks_count(chunks); c++) {
        const bag *b = rbt_chunks_own(chunks, c);
        lines[b->text] += b->lines;
        all += b->lines;
    }
    for (size_t i = 0; i < source->count && err == RBT_OK && !skipped; i++)
        if (lines[i] != heads[i].number[2])
            err = rbt_fail(error, RBT_E_DATA,
                           "%s:3: promises %llu lines of document, word and count, and %llu follow; get the file again",
                           source->texts[i].name, (unsigned long long)heads[i].number[2], (unsigned long long)lines[i]);
    if (err == RBT_OK && docs > RBT_DOCS_EMPTY_MOST && (docs - RBT_DOCS_EMPTY_MOST) / RBT_DOCS_EMPTY_RATIO > all)
        err = rbt_fail(error, RBT_E_LIMIT,
                       "%s: promises %zu documents and has only %llu lines: almost all would be empty; mend the first "
                       "line",
                       source->name, docs, (unsigned long long)all);
    rbt_free(lines);
    return err;
}

static rbt_err refuse_sum(const char *name, size_t doc, uint32_t word, rbt_error *error)
{
    return rbt_fail(error, RBT_E_LIMIT, "%s: word %u occurs more than %u times in document %zu, which is the limit",
                    name, word + 1, RBT_DOCS_COUNT_MOST, doc + 1);
}

static rbt_err make_docs(const rbt_chunks *chunks, const rbt_source *source, size_t docs, size_t words, rbt_data *data,
                         rbt_error *error)
{
    size_t count = rbt_chunks_count(chunks);
    rbt_triples **lists = rbt_alloc(count + 1, sizeof *lists);
    uint64_t repeated = 0;
    for (size_t c = 0; c < count; c++)
        lists[c] = &((bag *)rbt_chunks_own(chunks, c))->triples;
    rbt_err err = rbt_triples_gather(lists, count, docs, words, RBT_MERGE_SUM, source->cut.threads, source->name, data,
                                     &repeated, error);
    rbt_free(lists);
    for (size_t r = 0; err == RBT_OK && repeated > 0 && r < data->rows; r++)
        for (size_t i = data->start[r]; i < data->start[r + 1] && err == RBT_OK; i++)
            if (data->value[i] > (float)RBT_DOCS_COUNT_MOST)
                err = refuse_sum(source->name, r, data->index[i], error);
    return err;
}

rbt_err rbt_docword_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    head *heads = rbt_alloc(source->count + 1, sizeof *heads);
    const rbt_row_format format = {.row = "document word count, after three lines with the numbers of documents, words "
                                          "and lines",
                                   .separators = "\n",
                                   .context = heads,
                                   .parse = parse_bag_line,
                                   .open = open_bag,
                                   .close = close_bag};
    rbt_read_report report = {0};
    rbt_reading own = *reading;
    rbt_chunks *chunks = NULL;
    rbt_data d = {0};
    rbt_seen seen;
    size_t docs = 0, words = 0;
    rbt_crew alone = rbt_crew_alone(), *crew = source->portion != NULL ? source->portion->crew : &alone;
    own.report = &report;
    rbt_err err = rbt_crew_agree(crew, parse_heads(source, heads, &docs, &words, error), error);
    if (err != RBT_OK)
        goto free_heads;
    chunks = rbt_chunks_create(source, &format);
    err = rbt_chunks_parse(chunks, &own, &d, &seen, error);
    if (err == RBT_OK) {
        err = check_lines(chunks, source, heads, docs, report.skipped > 0, error);
        if (err == RBT_OK)
            err = make_docs(chunks, source, docs, words, &d, error);
        err = rbt_crew_agree(crew, err, error);
    }
    rbt_chunks_destroy(chunks);
    if (err != RBT_OK) {
        rbt_data_deinit(&d);
        goto free_heads;
    }
    d.content = RBT_CONTENT_DOCS;
    *data = d;
    if (reading->report != NULL)
        *reading->report = report;
free_heads:
    rbt_free(heads);
    return err;
}

/* ----------------------------------------------------------------------------------------------------------- lda-c */

/* word:count; where it ends, or NULL. */
static const char *parse_pair(const char *at, const char *end, uint64_t *word, uint64_t *count)
{
    const char *stop = parse_whole(at, end, word);
    if (stop == NULL || stop == end || *stop != ':')
        return NULL;
    stop = parse_whole(stop + 1, end, count);
    return stop != NULL && (stop == end || is_blank(*stop)) ? stop : NULL;
}

static rbt_err parse_words(rbt_reader *r, const char *at, const char *stop, uint64_t promised)
{
    uint64_t word, count, pairs = 0;
    for (at = skip_blanks(at, stop); at < stop; at = skip_blanks(at, stop), pairs++) {
        const char *after = parse_pair(at, stop, &word, &count);
        if (after == NULL)
            return refuse(r, at, stop, "a word's number and how often it occurs, such as 17:2");
        if (word + 1 >= RBT_DATA_INDEX_LIMIT || count > RBT_DOCS_COUNT_MOST) {
            char shown[RBT_TOKEN_ROOM];
            return rbt_fail(r->error, RBT_E_LIMIT,
                            "%s:%zu: '%s': words are numbered below %u, and occur at most %u times", r->name, r->line,
                            rbt_text_shown(at, after, shown), RBT_DATA_INDEX_LIMIT - 1, RBT_DOCS_COUNT_MOST);
        }
        if (pairs == promised)
            break;
        r->seen.largest = word + 1 > r->seen.largest ? word + 1 : r->seen.largest;
        if (count > 0) {
            r->data->index[r->nnz] = (uint32_t)word;
            r->data->value[r->nnz++] = (float)count;
        }
        at = after;
    }
    if (pairs == promised && at == stop)
        return RBT_OK;
    return rbt_fail(r->error, RBT_E_DATA,
                    "%s:%zu: the line promises %llu words and has %s; mend its first number, or give --format libsvm "
                    "if that is a label",
                    r->name, r->line, (unsigned long long)promised, pairs < promised ? "fewer" : "more");
}

static rbt_err parse_document(rbt_reader *r, const char *at, const char *stop)
{
    uint64_t promised;
    size_t first = r->nnz;
    const char *after = parse_whole(at, stop, &promised);
    if (after == NULL || (after < stop && !is_blank(*after)))
        return refuse(r, at, stop, "the number of words that follow, at the start of the line");
    rbt_err err = parse_words(r, after, stop, promised);
    if (err == RBT_OK)
        err = rbt_reader_merge(r, first);
    for (size_t i = first; err == RBT_OK && i < r->nnz; i++)
        if (r->data->value[i] > (float)RBT_DOCS_COUNT_MOST)
            err = rbt_fail(r->error, RBT_E_LIMIT, "%s:%zu: word %u occurs more than %u times, which is the limit",
                           r->name, r->line, r->data->index[i], RBT_DOCS_COUNT_MOST);
    if (err != RBT_OK)
        return err;
    r->data->label[r->rows] = 0;
    rbt_reader_end_row(r);
    return RBT_OK;
}

static rbt_err parse_ldac_line(rbt_reader *r)
{
    const char *stop = line_end(r->at, r->end), *at = skip_blanks(r->at, stop);
    rbt_err err = at < stop ? parse_document(r, at, stop) : RBT_OK;
    return err == RBT_OK ? next_line(r, stop) : err;
}

rbt_err rbt_ldac_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    static const rbt_row_format format = {
        .row = "N word:count word:count ..., N of them", .separators = ":", .parse = parse_ldac_line};
    rbt_seen seen;
    rbt_err err = rbt_source_parse(source, &format, reading, data, &seen, error);
    if (err != RBT_OK)
        return err;
    data->cols = (size_t)seen.largest;
    data->content = RBT_CONTENT_DOCS;
    return RBT_OK;
}

/* ----------------------------------------------------------------------------------------------------- recognising */

/* Does the line begin with two whole numbers, as that of a triple does, whatever comes then? Or, if such lines are expected, with
 * less, and is no row of LIBSVM text? */
static bool begins_triple(const char *at, const char *stop, bool expected)
{
    uint64_t number;
    const char *line = at;
    for (size_t n = 0; n < 2; n++) {
        at = skip_blanks(at, stop);
        const char *after = parse_whole(at, stop, &number);
        if (after == NULL || (after < stop && !is_blank(*after)))
            return expected && memchr(line, ':', (size_t)(stop - line)) == NULL;
        at = after;
    }
    return expected || skip_blanks(at, stop) < stop;
}

bool rbt_docword_recognise(const char *at, const char *end, bool expected)
{
    uint64_t number;
    for (size_t line = 0; line < HEAD_LINES; line++) {
        const char *stop = line_end(at, end);
        if (parse_numbers(at, stop, &number, 1) != 1)
            return false;
        at = stop < end ? stop + 1 : end;
    }
    return begins_triple(at, line_end(at, end), expected);
}

/* How many pairs of whole numbers a line has behind its first number, and whether that is their number; SIZE_MAX: it is no such
 * line. */
static size_t pairs_of(const char *at, const char *stop, bool *right)
{
    uint64_t promised, word, count;
    size_t pairs = 0;
    at = parse_whole(at, stop, &promised);
    if (at == NULL || (at < stop && !is_blank(*at)))
        return SIZE_MAX;
    for (at = skip_blanks(at, stop); at < stop; at = skip_blanks(at, stop), pairs++) {
        at = parse_pair(at, stop, &word, &count);
        if (at == NULL)
            return SIZE_MAX;
    }
    *right = pairs == promised;
    return pairs;
}

#define LOOK_LINES 100                  /* at most */
#define LOOK_BYTES (ptrdiff_t)(1 << 20) /* a line that goes on beyond is not looked at, unless it is the first */
#define SURE_LINES 3
#define SURE_PAIRS 8 /* that some line has at least; few labels are as large, and that of the pairs besides */

bool rbt_ldac_recognise(const char *at, const char *end, rbt_ldac_proof proof)
{
    const char *begin = at;
    size_t lines = 0, most = 0, wrong = 0;
    while (at < end && lines < LOOK_LINES) {
        const char *stop = line_end(at, end), *text = skip_blanks(at, stop);
        if (lines > 0 && (stop == end || stop - begin > LOOK_BYTES))
            break; /* also of a last line without an end more may come */
        bool right = true;
        size_t pairs = text < stop ? pairs_of(text, stop, &right) : 0;
        if (pairs == SIZE_MAX)
            return false;
        lines += text < stop;
        wrong += !right;
        most = pairs > most ? pairs : most;
        at = stop < end ? stop + 1 : end;
    }
    if (proof == RBT_LDAC_HALF)
        return lines > 0 && most > 0 && 2 * wrong <= lines;
    return wrong == 0 && lines >= (proof == RBT_LDAC_SURE ? SURE_LINES : 1) &&
           most >= (proof == RBT_LDAC_SURE ? SURE_PAIRS : 1);
}
