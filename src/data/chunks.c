/* Texts of rows, parsed in parallel. Contract in chunks.h; proved by tests/unit/test_libsvm_parallel.c and
 * test_reading.c (bad rows left out, memory). */
#include "data/chunks.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/merge.h"
#include "data/number.h"
#include "data/parallel.h"

#define CHUNK_BYTES (size_t)(1024 * 1024) /* large beside what taking a chunk costs, small beside a core's share */
#define DROP_LEAST  (size_t)(64 * 1024)   /* fewer bytes are not worth a system call */
#define KEEP_MOST                                                                                                      \
    (8 * CHUNK_BYTES) /* of text stays in memory until it is parsed: to meet its pages anew takes longer */

/* A chunk: whole rows of one text. */
typedef struct chunk {
    const char *at;
    const char *end;
    const rbt_text *text;
    size_t line;                /* of its first byte, from 1 */
    size_t lines, features;     /* upper bounds of its rows and features */
    size_t first_row, first_at; /* its place in the arrays: rows, features */
    size_t rows, nnz;           /* what it has */
    rbt_seen seen;
    uint64_t bad;
    rbt_err err;
    void *own; /* what the format gathers of it */
} chunk;

struct rbt_chunks {
    RBT_ARRAY(chunk) list;
    rbt_source source;
    rbt_row_format format;
    uint64_t skip_bad;
    bool drops; /* text leaves memory as soon as it has been looked at, and not only when it has been parsed */
    bool piece; /* out of the middle of a text: it may have no rows */
    rbt_data data;
    atomic_size_t refused; /* the first chunk known to be refused; those after it need not be parsed */
    void (*look)(void *context, const char *at, const char *end);
    void *look_context;
};

const char *rbt_text_shown(const char *at, const char *end, char out[RBT_TOKEN_ROOM])
{
    size_t n = 0;
    for (; n < RBT_TOKEN_ROOM - 4 && at < end; at++)
        out[n++] = isprint((unsigned char)*at) ? *at : '?';
    if (at < end) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

/* Gives back the pages that lie wholly within [from, to). */
static void drop_pages(const void *from, const void *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), a = (uintptr_t)from, b = (uintptr_t)to;
    a = (a + page - 1) / page * page;
    b = b / page * page;
    if (b > a && b - a >= DROP_LEAST)
        (void)madvise((void *)a, b - a, MADV_DONTNEED);
}

static void drop_text(const chunk *c)
{
    if (c->text->mapped)
        drop_pages(c->at, c->end);
}

/* ---------------------------------------------------------------------------------------------------- counting */

/* Sixteen bytes at a time, each counting at its own place until that could overflow. */
static size_t count_byte(const char *text, size_t bytes, char wanted)
{
    typedef unsigned char lanes __attribute__((vector_size(16)));
    const lanes pattern = (lanes){0} + (unsigned char)wanted;
    size_t count = 0, i = 0;
    while (bytes - i >= sizeof pattern) {
        lanes seen = {0}, here;
        for (int n = 0; n < UINT8_MAX && bytes - i >= sizeof here; n++, i += sizeof here) {
            memcpy(&here, text + i, sizeof here);
            seen -= (lanes)(here == pattern); /* which is all ones where it is true */
        }
        for (size_t k = 0; k < sizeof seen; k++)
            count += seen[k];
    }
    for (; i < bytes; i++)
        count += text[i] == wanted;
    return count;
}

/* Upper bounds: a line is at most one row, a separator at most one feature. In pieces that stay in the nearest
 * cache. */
static void count_bounds(chunk *c, const rbt_row_format *format)
{
    const size_t piece = 16384;
    for (const char *at = c->at; at < c->end;) {
        size_t n = (size_t)(c->end - at) < piece ? (size_t)(c->end - at) : piece;
        c->lines += count_byte(at, n, '\n');
        c->features += count_byte(at, n, format->separators[0]);
        if (format->separators[1] != '\0')
            c->features += count_byte(at, n, format->separators[1]);
        at += n;
    }
    c->lines += c->at < c->end && c->end[-1] != '\n'; /* the last one need not end */
    c->features += format->one_more ? c->lines : 0;
}

/* ----------------------------------------------------------------------------------------------------- cutting */

static const char *row_end(const rbt_row_format *format, const char *from, const char *least, const char *end)
{
    if (format->row_end != NULL)
        return format->row_end(format->context, from, least, end);
    const char *newline = memchr(least - 1, '\n', (size_t)(end - least) + 1);
    return newline != NULL ? newline + 1 : end;
}

static void cut_text(rbt_chunks *all, const rbt_text *text, size_t first_line, size_t chunk_bytes)
{
    const char *at = text->bytes, *end = text->bytes + text->n;
    at += first_line == 1 ? rbt_mark_bytes(at, text->n) : 0;
    for (size_t line = first_line; at < end; line = 0) {
        const char *stop = (size_t)(end - at) > chunk_bytes ? row_end(&all->format, at, at + chunk_bytes, end) : end;
        chunk c = {.at = at, .end = stop, .text = text, .line = line};
        rbt_array_push(&all->list, c);
        if (all->drops)
            drop_text(&c); /* of which only the end may have been looked at; but systems map much around that */
        at = stop;
    }
}

/* ----------------------------------------------------------------------------------------------------- parsing */

/* A chunk's own memory, empty. */
static bool open_own(chunk *c, const rbt_row_format *format)
{
    if (format->open == NULL)
        return true;
    if (c->own != NULL)
        format->close(c->own);
    c->own = format->open(format->context, c->lines);
    return c->own != NULL;
}

/* The chunk's rows to their place. More than `skip_bad` bad ones end it, with the last one's message. */
static void parse_chunk(chunk *c, rbt_chunks *all, uint64_t skip_bad, rbt_error *error)
{
    const rbt_row_format *format = &all->format;
    rbt_reader r = {.at = c->at,
                    .end = c->end,
                    .name = c->text->name,
                    .text = (size_t)(c->text - all->source.texts),
                    .line = c->line,
                    .context = format->context,
                    .data = &all->data,
                    .rows = c->first_row,
                    .nnz = c->first_at,
                    .error = error};
    c->bad = 0;
    c->err = open_own(c, format) ? RBT_OK : RBT_E_MEMORY;
    r.own = c->own;
    while (c->err == RBT_OK && r.at < r.end) {
        const char *row = r.at;
        size_t line = r.line, rows = r.rows, nnz = r.nnz;
        rbt_seen seen = r.seen;
        c->err = format->parse(&r);
        if (c->err == RBT_OK)
            continue;
        r.at = row_end(format, row, row + 1, r.end);
        c->bad += format->lost != NULL ? format->lost(format->context, row, r.at) : 1;
        if (c->bad > skip_bad || c->err == RBT_E_MEMORY)
            break;
        c->err = RBT_OK;
        r.line = line + count_byte(row, (size_t)(r.at - row), '\n');
        r.rows = rows;
        r.nnz = nnz;
        r.seen = seen;
    }
    rbt_free(r.scratch);
    c->rows = r.rows - c->first_row;
    c->nnz = r.nnz - c->first_at;
    c->seen = r.seen;
}

static void count_item(void *context, size_t item)
{
    rbt_chunks *all = context;
    count_bounds(&all->list.at[item], &all->format);
    if (all->drops)
        drop_text(&all->list.at[item]);
}

static void parse_item(void *context, size_t item)
{
    rbt_chunks *all = context;
    size_t refused = atomic_load_explicit(&all->refused, memory_order_relaxed);
    if (item > refused)
        return;
    parse_chunk(&all->list.at[item], all, all->skip_bad, NULL);
    drop_text(&all->list.at[item]);
    if (all->list.at[item].err != RBT_OK)
        while (item < refused && !atomic_compare_exchange_weak_explicit(&all->refused, &refused, item,
                                                                        memory_order_relaxed, memory_order_relaxed))
            continue;
}

static void look_item(void *context, size_t item)
{
    rbt_chunks *all = context;
    all->look(all->look_context, all->list.at[item].at, all->list.at[item].end);
    if (all->drops)
        drop_text(&all->list.at[item]);
}

/* ------------------------------------------------------------------------------------------------------ placing */

/* Gives every chunk its place by the bounds, and the number of its first line; the sums of the bounds. */
static void place(rbt_chunks *all, size_t *rows, size_t *features)
{
    *rows = *features = 0;
    for (size_t i = 0; i < all->list.count; i++) {
        chunk *c = &all->list.at[i];
        if (c->line == 0) /* not the first of its text, so the one before it ends with a newline */
            c->line = c[-1].line + c[-1].lines;
        c->first_row = *rows;
        c->first_at = *features;
        *rows += c->lines;
        *features += c->features;
    }
}

/* Moves the chunks' rows together where they have less than the bounds said, and gives back what that leaves unused. */
static void close_up(rbt_chunks *all)
{
    rbt_data *d = &all->data;
    for (size_t i = 0; i < all->list.count; i++) {
        const chunk *c = &all->list.at[i];
        size_t row = c->first_row, at = c->first_at;
        if (d->rows != row) {
            memmove(d->label + d->rows, d->label + row, c->rows * sizeof *d->label);
            if (d->weight != NULL)
                memmove(d->weight + d->rows, d->weight + row, c->rows * sizeof *d->weight);
        }
        if (d->nnz != at) {
            memmove(d->index + d->nnz, d->index + at, c->nnz * sizeof *d->index);
            memmove(d->value + d->nnz, d->value + at, c->nnz * sizeof *d->value);
            drop_pages(d->index + (d->nnz + c->nnz > at ? d->nnz + c->nnz : at), d->index + at + c->nnz);
            drop_pages(d->value + (d->nnz + c->nnz > at ? d->nnz + c->nnz : at), d->value + at + c->nnz);
        }
        if (d->rows != row || d->nnz != at)
            for (size_t r = 1; r <= c->rows; r++)
                d->start[d->rows + r] = d->start[row + r] - (at - d->nnz);
        d->rows += c->rows;
        d->nnz += c->nnz;
    }
}

/* ------------------------------------------------------------------------------------------------------ verdict */

/* What rows came to; shared as it is. */
typedef struct verdict {
    uint64_t rows;
    uint64_t skipped;
    uint64_t unlabelled;
    uint64_t largest; /* and so on: as in rbt_seen */
    uint8_t zero_based;
    uint8_t weighted;
    rbt_error first; /* what is wrong with the first bad row */
} verdict;

static void add_verdict(verdict *sum, const verdict *v)
{
    if (sum->skipped == 0)
        sum->first = v->first;
    sum->rows += v->rows;
    sum->skipped += v->skipped;
    sum->unlabelled += v->unlabelled;
    sum->largest = v->largest > sum->largest ? v->largest : sum->largest;
    sum->zero_based |= v->zero_based != 0;
    sum->weighted |= v->weighted != 0;
}

/* How many rows are bad, and the message of the first: its chunk is parsed once more, up to there. */
static rbt_err judge(rbt_chunks *all, verdict *v, rbt_error *error)
{
    chunk *first = NULL;
    const bool told = v->skipped > 0; /* the first is in a piece before */
    for (size_t i = 0; i < all->list.count; i++) {
        chunk *c = &all->list.at[i];
        if (c->err == RBT_E_MEMORY)
            return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for one of its rows; use a larger machine",
                            all->source.name);
        if (c->bad > 0 && first == NULL)
            first = c;
        add_verdict(v, &(verdict){.rows = c->rows,
                                  .skipped = c->bad,
                                  .unlabelled = c->seen.unlabelled,
                                  .largest = c->seen.largest,
                                  .zero_based = c->seen.zero_based,
                                  .weighted = c->seen.weighted});
    }
    if (first == NULL || told)
        return RBT_OK;
    chunk again = *first;
    parse_chunk(&again, all, 0, &v->first);
    if (v->skipped <= all->skip_bad)
        parse_chunk(&again, all, all->skip_bad, NULL); /* the bad row stands where the next good one belongs */
    first->own = again.own;
    if (again.err == RBT_E_MEMORY)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory to read it; use a larger machine",
                        all->source.name);
    return RBT_OK;
}

/* The verdicts of all processes made one. */
static rbt_err combine(rbt_crew *crew, rbt_err err, verdict *v, rbt_error *error)
{
    verdict *all = rbt_alloc(crew->size, sizeof *all), sum = {0};
    err = rbt_crew_share(crew, err, v, sizeof *v, all, error);
    for (uint32_t r = 0; err == RBT_OK && r < crew->size; r++) {
        all[r].first.text[sizeof all[r].first.text - 1] = '\0';
        if (all[r].first.code != RBT_E_LIMIT) /* a row that is bad breaks a limit, or is simply wrong */
            all[r].first.code = all[r].skipped > 0 ? RBT_E_DATA : RBT_OK;
        add_verdict(&sum, &all[r]);
    }
    if (err == RBT_OK)
        *v = sum;
    rbt_free(all);
    return err;
}

/* Are they too many, or is nothing left? */
static rbt_err refuse_bad(const rbt_chunks *all, const verdict *v, rbt_error *error)
{
    const rbt_error *first = &v->first;
    const char *name = all->source.name;
    if (v->skipped > all->skip_bad && all->skip_bad == 0)
        return rbt_fail(error, first->code, "%s", first->text);
    if (v->skipped > all->skip_bad)
        return rbt_fail(error, first->code,
                        "%s. This is the first of more than %llu bad rows; mend them, or allow more with --skip-bad",
                        first->text, (unsigned long long)all->skip_bad);
    if (v->rows == 0 && v->skipped > 0 && !all->piece)
        return rbt_fail(error, RBT_E_DATA, "%s: has no good rows; the first: %s", name, first->text);
    if (v->rows == 0 && !all->piece)
        return rbt_fail(error, RBT_E_DATA, "%s: has no rows; expected one or more lines of the form: %s", name,
                        all->format.row);
    return RBT_OK;
}

/* How many lines a portion has of its first and of its last file: the only ones that others have, too. */
typedef struct line_count {
    uint64_t file[2];
    uint64_t lines[2];
} line_count;

/* The number of the portion's first line is known when those before it have counted theirs. */
static rbt_err number_lines(rbt_chunks *all, const rbt_portion *p, rbt_error *error)
{
    size_t last = all->source.count - 1;
    line_count mine = {.file = {UINT64_MAX, UINT64_MAX}}, *counts = rbt_alloc(p->crew->size, sizeof *counts);
    if (all->source.count > 0) {
        mine.file[0] = p->first;
        mine.file[1] = p->first + last;
    }
    for (size_t i = 0; i < all->list.count; i++) {
        const chunk *c = &all->list.at[i];
        mine.lines[0] += c->text == &all->source.texts[0] ? c->lines : 0;
        mine.lines[1] += c->text == &all->source.texts[last] ? c->lines : 0;
    }
    rbt_err err = rbt_crew_share(p->crew, RBT_OK, &mine, sizeof mine, counts, error);
    if (err == RBT_OK && p->middle && all->list.count > 0) {
        all->list.at[0].line = 1;
        for (uint32_t r = 0; r < p->crew->rank; r++)
            all->list.at[0].line += counts[r].file[0] == p->first   ? counts[r].lines[0]
                                    : counts[r].file[1] == p->first ? counts[r].lines[1]
                                                                    : 0;
    }
    rbt_free(counts);
    return err;
}

static void count_rows(const rbt_chunks *all, size_t *rows)
{
    memset(rows, 0, all->source.count * sizeof *rows);
    for (size_t i = 0; i < all->list.count; i++)
        rows[all->list.at[i].text - all->source.texts] += all->list.at[i].rows;
}

rbt_cut rbt_cut_default(void)
{
    return (rbt_cut){.chunk_bytes = CHUNK_BYTES, .threads = rbt_parallel_threads()};
}

static rbt_chunks *create(const rbt_source *source, const rbt_row_format *format, size_t line)
{
    rbt_chunks *all = rbt_alloc(1, sizeof *all);
    size_t bytes = 0;
    all->source = *source;
    all->format = *format;
    for (size_t i = 0; i < source->count; i++)
        bytes += source->texts[i].n;
    all->drops = bytes > KEEP_MOST;
    for (size_t i = 0; i < source->count; i++)
        cut_text(all, &source->texts[i], i == 0 && source->portion != NULL && source->portion->middle ? SIZE_MAX : line,
                 source->cut.chunk_bytes);
    return all;
}

rbt_chunks *rbt_chunks_create(const rbt_source *source, const rbt_row_format *format)
{
    return create(source, format, 1);
}

void rbt_chunks_destroy(rbt_chunks *all)
{
    rbt_data_deinit(&all->data);
    for (size_t i = 0; i < all->list.count; i++)
        if (all->list.at[i].own != NULL)
            all->format.close(all->list.at[i].own);
    rbt_array_free(&all->list);
    rbt_free(all);
}

size_t rbt_chunks_count(const rbt_chunks *all)
{
    return all->list.count;
}

void *rbt_chunks_own(const rbt_chunks *all, size_t i)
{
    return all->list.at[i].own;
}

void rbt_chunks_survey(rbt_chunks *all, void (*look)(void *context, const char *at, const char *end), void *context)
{
    all->look = look;
    all->look_context = context;
    rbt_parallel_for(all->list.count, all->source.cut.threads, look_item, all);
}

static rbt_err allocate(rbt_chunks *all, size_t rows, size_t features, rbt_error *error)
{
    if (all->format.open != NULL)
        return RBT_OK;
    rbt_err err = rbt_data_alloc(rows, features, &all->data, error);
    if (err != RBT_OK || !all->format.weighted)
        return err;
    all->data.weight = rbt_try_alloc_raw(rows > 0 ? rows : 1, sizeof *all->data.weight);
    if (all->data.weight == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the weights of %zu rows", all->source.name,
                        rows);
    return RBT_OK;
}

rbt_err rbt_chunks_parse(rbt_chunks *all, const rbt_reading *reading, rbt_data *data, rbt_seen *seen, rbt_error *error)
{
    const rbt_portion *portion = all->source.portion;
    const rbt_read_report before = all->piece && reading->report != NULL ? *reading->report : (rbt_read_report){0};
    verdict v = {.skipped = before.skipped, .unlabelled = before.unlabelled, .first = before.first};
    size_t rows, features;
    rbt_err err = RBT_OK;
    all->refused = SIZE_MAX;
    all->skip_bad = reading->skip_bad;
    rbt_parallel_for(all->list.count, all->source.cut.threads, count_item, all);
    if (portion != NULL)
        err = number_lines(all, portion, error);
    if (err != RBT_OK)
        return err;
    place(all, &rows, &features);
    err = allocate(all, rows, features, error);
    if (err == RBT_OK) {
        rbt_parallel_for(all->list.count, all->source.cut.threads, parse_item, all);
        err = judge(all, &v, error);
    }
    if (portion != NULL)
        err = combine(portion->crew, err, &v, error);
    if (err == RBT_OK)
        err = refuse_bad(all, &v, error);
    if (err != RBT_OK)
        return err;
    if (all->format.open == NULL)
        close_up(all);
    if (portion != NULL && portion->rows != NULL)
        count_rows(all, portion->rows);
    *seen = (rbt_seen){
        .largest = v.largest, .zero_based = v.zero_based != 0, .weighted = v.weighted != 0, .unlabelled = v.unlabelled};
    *data = all->data;
    all->data = (rbt_data){0};
    if (reading->report != NULL)
        *reading->report = (rbt_read_report){.skipped = v.skipped, .unlabelled = v.unlabelled, .first = v.first};
    return RBT_OK;
}

rbt_err rbt_source_parse(const rbt_source *source, const rbt_row_format *format, const rbt_reading *reading,
                         rbt_data *data, rbt_seen *seen, rbt_error *error)
{
    rbt_chunks *chunks = rbt_chunks_create(source, format);
    rbt_err err = rbt_chunks_parse(chunks, reading, data, seen, error);
    rbt_chunks_destroy(chunks);
    return err;
}

rbt_err rbt_source_parse_piece(const rbt_source *source, size_t line, const rbt_row_format *format,
                               const rbt_reading *reading, rbt_data *data, rbt_seen *seen, rbt_error *error)
{
    rbt_chunks *chunks = create(source, format, line);
    chunks->piece = true;
    rbt_err err = rbt_chunks_parse(chunks, reading, data, seen, error);
    rbt_chunks_destroy(chunks);
    return err;
}

rbt_err rbt_reader_check_class(const rbt_reader *reader, const char *at, const char *end, float value)
{
    char shown[RBT_TOKEN_ROOM], kept[RBT_NUMBER_ROOM];
    if (rbt_number_is_kept(at, end, value))
        return RBT_OK;
    (void)rbt_number_print(value, kept);
    return rbt_fail(
        reader->error, RBT_E_DATA,
        "%s:%zu: the label '%s' would become %s, for labels are kept as 32-bit floats, and classes could be "
        "mixed up; use smaller numbers, or words as labels (in CSV)",
        reader->name, reader->line, rbt_text_shown(at, end, shown), kept);
}

/* ----------------------------------------------------------------------------------------------------- merging */

rbt_err rbt_reader_merge(rbt_reader *reader, size_t first)
{
    uint32_t *index = reader->data->index + first;
    float *value = reader->data->value + first;
    size_t n = reader->nnz - first;
    if (rbt_features_ascend(index, n))
        return RBT_OK;
    size_t need = RBT_MERGE_SCRATCH_BYTES * n;
    if (need > reader->scratch_bytes) {
        rbt_free(reader->scratch);
        reader->scratch_bytes = need + need / 2;
        reader->scratch = rbt_try_alloc_raw(reader->scratch_bytes, 1);
        if (reader->scratch == NULL) {
            reader->scratch_bytes = 0;
            return rbt_fail(reader->error, RBT_E_MEMORY, "%s:%zu: not enough memory for a row of %zu features",
                            reader->name, reader->line, n);
        }
    }
    n = rbt_features_merge(index, value, n, RBT_MERGE_SUM, reader->scratch);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return rbt_fail(
                reader->error, RBT_E_DATA,
                "%s:%zu: features that share column %u add up to more than a number can hold; scale the values",
                reader->name, reader->line, index[i]);
    reader->nnz = first + n;
    return RBT_OK;
}
