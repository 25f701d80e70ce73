/* Data read by many processes. Contract in part.h; proved by tests/unit/test_part_parallel.c. */
#include "data/part.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/cache_part.h"
#include "data/data.h"
#include "data/ids.h"
#include "data/names.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/slicing.h"
#include "data/read.h"
#include "data/unpack.h"

/* One file, or a slice of it, that is read here. */
typedef struct piece {
    rbt_slice slice; /* of text and caches: in the end what is read, cut between rows */
    rbt_input input; /* the whole file, mapped */
} piece;

typedef RBT_ARRAY(rbt_origin_of) origin_list;

/* A part being read. */
typedef struct reader {
    const char *path;
    char title[RBT_PATHS_TITLE_ROOM]; /* of the path */
    const rbt_reading *reading;
    rbt_crew *crew;
    rbt_slicing plan;
    uint32_t readers; /* processes that read, and which of them this one is */
    uint32_t number;
    bool reads; /* this one does */
    RBT_ARRAY(piece) pieces;
    size_t *rows; /* of each piece, when they were read */
} reader;

void rbt_data_part_deinit(rbt_data_part *part)
{
    rbt_data_deinit(&part->data);
    rbt_ids_unref(part->users);
    rbt_free(part->rows_of);
    rbt_free(part->nnz_of);
    rbt_free(part->worker_rows);
    *part = (rbt_data_part){0};
}

/* All that the path stands for, in messages that are about no single file: as who reads the whole names it. */
static const char *name_of_all(const reader *r)
{
    const char *name = r->plan.count == 1 && !rbt_path_is_ranked(r->path) ? r->plan.at[0].path : r->title;
    return strcmp(name, "-") == 0 ? "standard input" : name;
}

/* ------------------------------------------------------------------------------------------------------- opening */

/* Behind the first newline from `at` - 1 on. */
static uint64_t next_row(const rbt_input *input, uint64_t at)
{
    if (at == 0 || at >= input->n)
        return at == 0 ? 0 : input->n;
    const char *newline = memchr(input->bytes + at - 1, '\n', input->n - at + 1);
    return newline != NULL ? (uint64_t)(newline - input->bytes) + 1 : input->n;
}

static rbt_err open_piece(reader *r, rbt_slice slice, rbt_error *error)
{
    const rbt_slicing_file *file = &r->plan.at[slice.file];
    piece p = {.slice = slice};
    rbt_err err = rbt_input_open(file->path, &p.input, error);
    if (err != RBT_OK)
        return err;
    if (file->bytes > 0 && p.input.n != file->bytes) {
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: has %zu bytes here and %llu for another process of this job; give all hosts the same file",
                       file->path, p.input.n, (unsigned long long)file->bytes);
    } else if (file->form == RBT_FORM_WHOLE) {
        err = rbt_input_unpack(&p.input, error);
        p.slice.to = p.input.n;
    } else if (file->form == RBT_FORM_TEXT) {
        p.slice.from = next_row(&p.input, slice.from);
        p.slice.to = next_row(&p.input, slice.to);
    }
    if (err == RBT_OK && (p.slice.from < p.slice.to || slice.from == slice.to || file->form == RBT_FORM_WHOLE))
        rbt_array_push(&r->pieces, p);
    else
        rbt_input_close(&p.input); /* no row begins in it */
    return err;
}

/* Which files there are, and which of them are read here. */
static rbt_err open_pieces(reader *r, const rbt_hosting *hosting, rbt_error *error)
{
    rbt_crew *crew = r->crew;
    uint32_t planner = 0;
    bool mine = false, ranked = rbt_path_is_ranked(r->path);
    for (uint32_t q = 0; q < crew->size; q++) {
        bool reads = strcmp(r->path, "-") == 0 ? q == 0 : hosting->workers_of[q] > 0;
        planner = reads && r->readers == 0 ? q : planner;
        r->readers += reads;
        r->number += reads && q < crew->rank;
        mine |= reads && q == crew->rank;
    }
    rbt_err err = RBT_OK;
    r->reads = mine;
    if (ranked)
        err = rbt_slicing_make_ranked(&r->plan, r->path, hosting->first_worker[crew->rank],
                                      hosting->workers_of[crew->rank], error);
    else if (crew->rank == planner)
        err = rbt_slicing_make(&r->plan, r->path, r->reading, error);
    if (!ranked)
        err = rbt_slicing_share(&r->plan, planner, crew, err, error);
    size_t count = 0;
    rbt_slice *slices = NULL;
    if (err == RBT_OK && (mine || ranked))
        slices = rbt_slicing_cut(&r->plan, ranked ? 0 : r->number, ranked ? 1 : r->readers, &count);
    for (size_t i = 0; err == RBT_OK && i < count; i++)
        err = open_piece(r, slices[i], error);
    rbt_free(slices);
    return err;
}

/* --------------------------------------------------------------------------------------------------------- kinds */

/* What a process sees in the files that begin in its part. */
typedef struct vote {
    uint64_t caches;
    uint64_t others;
    uint32_t weight; /* 0: none begins here; 1: only empty ones; 2: one that is not */
    uint32_t kind;   /* by the first */
} vote;

static vote vote_on_kind(const reader *r)
{
    vote v = {0};
    for (size_t i = 0; i < r->pieces.count; i++) {
        const piece *p = &r->pieces.at[i];
        bool cache = rbt_cache_recognise(p->input.bytes, p->input.n);
        uint32_t weight = p->input.n > 0 ? 2 : 1;
        v.caches += cache;
        v.others += !cache;
        if (p->slice.from > 0 || weight <= v.weight)
            continue;
        v.weight = weight;
        v.kind = rbt_kind_of(&p->input, r->reading->expect);
    }
    return v;
}

/* Those that begin in a process's part. */
static rbt_err refuse_models(const reader *r, rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < r->pieces.count; i++)
        if (r->pieces.at[i].slice.from == 0)
            err = rbt_kind_refuse_model(&r->pieces.at[i].input, error);
    return err;
}

/* What the files hold: what the first that is not empty does. All caches or none. */
static rbt_err agree_on_kind(const reader *r, rbt_err err, rbt_kind *kind, rbt_error *error)
{
    vote mine = err == RBT_OK ? vote_on_kind(r) : (vote){0};
    vote *all = rbt_alloc(r->crew->size, sizeof *all), sum = {0};
    if (err == RBT_OK)
        err = rbt_reading_kind(r->reading, kind, error);
    err = rbt_crew_share(r->crew, err, &mine, sizeof mine, all, error);
    for (uint32_t q = 0; err == RBT_OK && q < r->crew->size; q++) {
        sum.caches += all[q].caches;
        sum.others += all[q].others;
        if (all[q].weight > sum.weight && all[q].kind <= RBT_KIND_CACHE) {
            sum.weight = all[q].weight;
            sum.kind = all[q].kind;
        }
    }
    rbt_free(all);
    if (err != RBT_OK || *kind != RBT_KIND_AUTO)
        return err;
    err = rbt_crew_agree(r->crew, refuse_models(r, error), error);
    if (err == RBT_OK && sum.caches > 0 && sum.others > 0) {
        char title[RBT_PATHS_TITLE_ROOM];
        rbt_paths_title(r->path, title, sizeof title);
        return rbt_fail(error, RBT_E_DATA,
                        "%s: some of the files are caches, and some are none; give caches alone, or none of them",
                        title);
    }
    *kind = sum.weight > 0 ? (rbt_kind)sum.kind : RBT_KIND_LIBSVM;
    return err;
}

/* --------------------------------------------------------------------------------------------------------- texts */

static bool is_cut(const reader *r, const piece *p)
{
    return r->plan.at[p->slice.file].form == RBT_FORM_TEXT && (p->slice.from > 0 || p->slice.to < p->input.n);
}

/* Files that a process found quotes in, of those that it has only slices of: its first and its last, at most. */
typedef struct quoted {
    uint64_t file[2];
} quoted;

/* In CSV text with quotes a newline need not end a row: who has its beginning reads such a file alone. */
static rbt_err undo_cuts(reader *r, rbt_error *error)
{
    quoted mine = {{UINT64_MAX, UINT64_MAX}}, *all = rbt_alloc(r->crew->size, sizeof *all);
    for (size_t i = 0, n = 0; i < r->pieces.count; i++) {
        const piece *p = &r->pieces.at[i];
        size_t bytes = (size_t)(p->slice.to - p->slice.from);
        if (is_cut(r, p) && n < 2 && memchr(p->input.bytes + p->slice.from, '"', bytes) != NULL)
            mine.file[n++] = p->slice.file;
    }
    rbt_err err = rbt_crew_share(r->crew, RBT_OK, &mine, sizeof mine, all, error);
    size_t kept = 0;
    for (size_t i = 0; err == RBT_OK && i < r->pieces.count; i++) {
        piece *p = &r->pieces.at[i];
        bool undo = false;
        for (uint32_t q = 0; is_cut(r, p) && q < r->crew->size; q++)
            undo |= all[q].file[0] == p->slice.file || all[q].file[1] == p->slice.file;
        if (undo && p->slice.from > 0) {
            rbt_input_close(&p->input);
            continue;
        }
        if (undo)
            p->slice.to = p->input.n;
        r->pieces.at[kept++] = *p;
    }
    if (err == RBT_OK)
        r->pieces.count = kept;
    rbt_free(all);
    return err;
}

/* Of texts whose rows stand in many places all are read by the first who reads. */
static rbt_err collect_pieces(reader *r, rbt_error *error)
{
    rbt_err err = RBT_OK;
    if (rbt_path_is_ranked(r->path))
        return rbt_fail(
            error, RBT_E_UNSUPPORTED,
            "%s: ratings and bags of words are put in order over all files, so that no worker has files of its "
            "own; leave out " RBT_PATH_RANK,
            r->path);
    if (r->readers == 1)
        return RBT_OK;
    for (size_t i = 0; i < r->pieces.count; i++)
        rbt_input_close(&r->pieces.at[i].input);
    r->pieces.count = 0;
    for (size_t i = 0; err == RBT_OK && r->reads && r->number == 0 && i < r->plan.count; i++) {
        struct stat status;
        if (stat(r->plan.at[i].path, &status) == 0 && !S_ISREG(status.st_mode))
            err = rbt_fail(error, RBT_E_UNSUPPORTED,
                           "%s: is no plain file, and has to be read again by another process; save it to a file",
                           r->plan.at[i].path);
        else
            err = open_piece(r, (rbt_slice){i, 0, r->plan.at[i].units}, error);
    }
    return err;
}

static rbt_err read_texts(reader *r, rbt_kind kind, rbt_data *data, rbt_error *error)
{
    rbt_err err = kind == RBT_KIND_CSV ? undo_cuts(r, error) : RBT_OK;
    if (rbt_kind_is_scattered(kind))
        err = rbt_crew_agree(r->crew, collect_pieces(r, error), error);
    if (err != RBT_OK)
        return err;
    size_t count = r->pieces.count;
    r->rows = rbt_realloc(r->rows, count + 1, sizeof *r->rows); /* one process may have collected all pieces */
    rbt_text *texts = rbt_alloc(count, sizeof *texts);
    rbt_portion portion = {.crew = r->crew, .rows = r->rows};
    for (size_t i = 0; i < count; i++) {
        const piece *p = &r->pieces.at[i];
        size_t n = (size_t)(p->slice.to - p->slice.from);
        texts[i] = (rbt_text){p->input.name, n > 0 ? p->input.bytes + p->slice.from : "", n, p->input.mapped};
        portion.beyond = p->input.n - (size_t)p->slice.to;
    }
    if (count > 0) {
        portion.first = r->pieces.at[0].slice.file;
        portion.middle = r->pieces.at[0].slice.from > 0;
    }
    const rbt_source source = {texts, count, name_of_all(r), rbt_cut_default(), &portion};
    err = rbt_texts_parse(&source, kind, r->reading, data, error);
    rbt_free(texts);
    return err;
}

/* --------------------------------------------------------------------------------------------- caches and images */

/* Caches that are cut, at most the first and the last of the pieces: read together with those who have the rest. */
static rbt_err read_cut_caches(const reader *r, rbt_err err, rbt_data *parts, rbt_error *error)
{
    rbt_cache_piece cut[2];
    size_t which[2], n = 0;
    rbt_data data[2];
    for (size_t i = 0; i < r->pieces.count && n < 2; i++) {
        const piece *p = &r->pieces.at[i];
        const rbt_slicing_file *file = &r->plan.at[p->slice.file];
        uint32_t first = 0;
        if (file->form != RBT_FORM_CACHE || (p->slice.from == 0 && p->slice.to == file->units))
            continue;
        which[n] = i;
        cut[n] = (rbt_cache_piece){.input = &p->input,
                                   .file = p->slice.file,
                                   .parts = rbt_slicing_sharers(&r->plan, p->slice.file, r->readers, &first),
                                   .first = (size_t)p->slice.from,
                                   .rows = (size_t)(p->slice.to - p->slice.from)};
        cut[n++].part = r->number - first;
    }
    err = rbt_cache_pieces_read(cut, n, r->crew, err, data, error);
    for (size_t i = 0; err == RBT_OK && i < n; i++)
        parts[which[i]] = data[i];
    return err;
}

/* The origins of the caches read here, each behind its file's name, one for those in a row that have the same. */
static rbt_bytes tell_origins(const reader *r, const rbt_data *parts)
{
    rbt_bytes out = {0};
    const char *last = NULL;
    for (size_t i = 0; i < r->pieces.count; i++) {
        const char *name = r->pieces.at[i].input.name, *text = parts[i].origin;
        if (text == NULL || (last != NULL && strcmp(text, last) == 0))
            continue;
        size_t before = strlen(name) + 1, behind = strlen(text) + 1;
        out.at = rbt_realloc(out.at, out.n + before + behind, 1);
        memcpy(out.at + out.n, name, before);
        memcpy(out.at + out.n + before, text, behind);
        out.n += before + behind;
        last = text;
    }
    return out;
}

/* Adds what a process tells; false: it is nonsense. */
static bool hear_origins(rbt_bytes in, origin_list *list)
{
    const char *at = (const char *)in.at, *end = at + in.n;
    while (at < end) {
        const char *text = memchr(at, '\0', (size_t)(end - at));
        const char *next = text != NULL ? memchr(text + 1, '\0', (size_t)(end - text - 1)) : NULL;
        if (next == NULL)
            return false;
        rbt_array_push(list, ((rbt_origin_of){at, text + 1}));
        at = next + 1;
    }
    return true;
}

/* Were all caches read as the reading says, and are their features the same, whoever reads them? */
static rbt_err compare_caches(const reader *r, rbt_err err, const rbt_data *parts, rbt_error *error)
{
    rbt_bytes *all = rbt_alloc(r->crew->size, sizeof *all), mine = {0};
    origin_list list = {0};
    for (size_t i = 0; err == RBT_OK && i < r->pieces.count; i++)
        err = rbt_origin_fits(r->reading, &parts[i], r->pieces.at[i].input.name, error);
    if (err == RBT_OK)
        mine = tell_origins(r, parts);
    err = rbt_crew_collect(r->crew, err, mine, all, error);
    rbt_free(mine.at);
    if (err == RBT_OK) {
        for (uint32_t q = 0; err == RBT_OK && q < r->crew->size; q++)
            if (!hear_origins(all[q], &list))
                err = rbt_fail(error, RBT_E_PROTOCOL, "another process tells nonsense about how caches were read");
        if (err == RBT_OK)
            err = rbt_origins_agree(list.at, list.count, error);
        rbt_crew_free(r->crew, all);
    }
    rbt_array_free(&list);
    rbt_free(all);
    return err;
}

/* The pieces, each read by itself, as one. */
static rbt_err read_each(reader *r, rbt_kind kind, rbt_data *data, rbt_error *error)
{
    size_t n = r->pieces.count;
    rbt_data *parts = rbt_alloc(n + 1, sizeof *parts);
    rbt_reading reading = *r->reading;
    rbt_err err = RBT_OK;
    reading.report = NULL;
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        piece *p = &r->pieces.at[i];
        const rbt_slicing_file *file = &r->plan.at[p->slice.file];
        bool cut = file->form == RBT_FORM_CACHE && (p->slice.from > 0 || p->slice.to < file->units);
        if (kind == RBT_KIND_CACHE && !cut)
            err = rbt_cache_take(&p->input, &parts[i], error);
        else if (kind == RBT_KIND_IDX)
            err = rbt_images_read(&p->input, &reading, &parts[i], error);
    }
    if (kind == RBT_KIND_CACHE)
        err = compare_caches(r, read_cut_caches(r, err, parts, error), parts, error);
    for (size_t i = 0; err == RBT_OK && i < n; i++)
        r->rows[i] = parts[i].rows;
    if (err == RBT_OK && n == 1) {
        *data = parts[0];
        parts[0] = (rbt_data){0};
    } else if (err == RBT_OK) {
        err = n > 0 ? rbt_data_join(parts, n, data, error) : rbt_data_alloc(0, 0, data, error);
    }
    for (size_t i = 0; i < n; i++)
        rbt_data_deinit(&parts[i]);
    rbt_free(parts);
    return err;
}

/* ----------------------------------------------------------------------------------------------- names of ratings */

/* What the rows of the lowest process that has any are; the columns and, of ratings, the items are told to all. */
static rbt_err share_content(const reader *r, rbt_kind kind, rbt_data *d, rbt_error *error)
{
    uint64_t mine[3] = {d->rows > 0, d->content, d->cols}, *all = rbt_alloc(r->crew->size, sizeof mine), which = 0;
    rbt_err err = rbt_crew_share(r->crew, RBT_OK, mine, sizeof mine, all, error);
    while (err == RBT_OK && which + 1 < r->crew->size && all[3 * which] == 0)
        which++;
    uint64_t content = err == RBT_OK ? all[3 * which + 1] : 0, cols = err == RBT_OK ? all[3 * which + 2] : 0;
    for (uint32_t q = 0; err == RBT_OK && content != RBT_CONTENT_RATINGS && q < r->crew->size; q++) {
        cols = all[3 * (size_t)q + 2] > cols ? all[3 * (size_t)q + 2] : cols;
        content = all[3 * (size_t)q] > 0 && all[3 * (size_t)q + 1] != content ? RBT_CONTENT_ROWS : content;
    }
    rbt_free(all);
    if (err != RBT_OK || content > RBT_CONTENT_DOCS)
        return err;
    d->content = (rbt_content)content;
    d->cols = (size_t)cols;
    if (content != RBT_CONTENT_RATINGS)
        return RBT_OK;
    rbt_bytes *names = rbt_alloc(r->crew->size, sizeof *names), own = {0};
    if (r->crew->rank == which && d->col_names != NULL)
        own.at = (uint8_t *)(uintptr_t)rbt_ids_bytes(d->col_names, &own.n);
    err = rbt_crew_collect(r->crew, err, own, names, error);
    if (err == RBT_OK) {
        const char *at = (const char *)names[which].at, *end = at + names[which].n;
        if (d->rows == 0) {
            rbt_ids_unref(d->row_names);
            rbt_ids_unref(d->col_names);
            d->row_names = rbt_ids_create();
            if (rbt_ids_read(at, end, d->cols, &d->col_names) != end || d->row_names == NULL)
                err = rbt_fail(error, RBT_E_PROTOCOL,
                               "the names of %zu items, as another process tells them, are damaged", d->cols);
        } else if (kind == RBT_KIND_CACHE && r->plan.count > 1 && r->crew->size > 1) {
            err = rbt_fail(error, RBT_E_UNSUPPORTED,
                           "%s: several caches of ratings cannot be read by several processes; make one of them "
                           "with rubato convert",
                           r->path);
        }
        rbt_crew_free(r->crew, names);
        err = rbt_crew_agree(r->crew, err, error);
    }
    rbt_free(names);
    return err;
}

/* What a part that was read by itself is like. */
typedef struct likeness {
    uint64_t cols;
    uint8_t weighted;
    uint8_t words;   /* it has rows, and their labels are words */
    uint8_t numbers; /* it has rows, and they are not */
} likeness;

/* Numbers the labels by the names of all parts. */
static rbt_err agree_on_names(const reader *r, rbt_err err, rbt_data *d, rbt_error *error)
{
    const rbt_names mine = {d->label_names, d->label_count};
    rbt_names names = {0};
    err = rbt_names_share(&mine, r->crew, err, name_of_all(r), &names, error);
    if (err != RBT_OK)
        return err;
    for (size_t row = 0; row < d->rows; row++)
        d->label[row] = (float)rbt_names_find(&names, d->label_names[(size_t)d->label[row]]);
    for (size_t i = 0; i < d->label_count; i++)
        rbt_free(d->label_names[i]);
    rbt_free(d->label_names);
    d->label_names = names.at;
    d->label_count = names.count;
    return RBT_OK;
}

/* How all parts with rows were read, as rbt_data_join knows it; who has none hears it. */
static rbt_err share_origin(const reader *r, rbt_data *d, rbt_error *error)
{
    rbt_bytes *all = rbt_alloc(r->crew->size, sizeof *all), mine = {0};
    const rbt_bytes *first = NULL;
    uint8_t none = 0; /* a part of unknown origin */
    bool same = true;
    if (d->rows > 0)
        mine = d->origin != NULL ? (rbt_bytes){(uint8_t *)d->origin, strlen(d->origin) + 1} : (rbt_bytes){&none, 1};
    rbt_err err = rbt_crew_collect(r->crew, RBT_OK, mine, all, error);
    for (uint32_t q = 0; err == RBT_OK && q < r->crew->size; q++) {
        if (all[q].n == 0)
            continue;
        first = first != NULL ? first : &all[q];
        same = same && all[q].n > 1 && all[q].at[all[q].n - 1] == 0 && all[q].n == first->n &&
               memcmp(all[q].at, first->at, first->n) == 0;
    }
    if (err == RBT_OK) {
        rbt_free(d->origin);
        d->origin = first != NULL && same ? rbt_strdup((const char *)first->at) : NULL;
        rbt_crew_free(r->crew, all);
    }
    rbt_free(all);
    return err;
}

/* Makes parts that were read by themselves parts of one data set, as rbt_data_join does. */
static rbt_err unite(const reader *r, rbt_err err, rbt_data *d, rbt_error *error)
{
    bool words = d->rows > 0 && d->label_names != NULL, numbers = d->rows > 0 && d->label_names == NULL;
    likeness mine = {d->cols, d->weight != NULL, words, numbers}, sum = {0};
    likeness *all = rbt_alloc(r->crew->size, sizeof *all);
    err = rbt_crew_share(r->crew, err, &mine, sizeof mine, all, error);
    for (uint32_t q = 0; err == RBT_OK && q < r->crew->size; q++) {
        sum.cols = all[q].cols > sum.cols ? all[q].cols : sum.cols;
        sum.weighted |= all[q].weighted;
        sum.words |= all[q].words;
        sum.numbers |= all[q].numbers;
    }
    rbt_free(all);
    if (err == RBT_OK && sum.words && sum.numbers)
        err = rbt_fail(error, RBT_E_DATA,
                       "some files have words as labels and some have numbers; use files with the same labels");
    if (err != RBT_OK)
        return err;
    d->cols = (size_t)sum.cols;
    if (sum.weighted && d->weight == NULL) {
        d->weight = rbt_try_alloc_raw(d->rows + 1, sizeof *d->weight);
        for (size_t row = 0; d->weight != NULL && row < d->rows; row++)
            d->weight[row] = 1;
        if (d->weight == NULL)
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the weights of %zu rows", d->rows);
    }
    return sum.words ? agree_on_names(r, err, d, error) : rbt_crew_agree(r->crew, err, error);
}

/* ------------------------------------------------------------------------------------------------------- reading */

static rbt_err read_kind(reader *r, rbt_kind kind, rbt_data *data, rbt_error *error)
{
    r->rows = rbt_alloc(r->pieces.count + 1, sizeof *r->rows);
    if (kind != RBT_KIND_IDX && kind != RBT_KIND_CACHE) {
        rbt_err err = read_texts(r, kind, data, error);
        return err == RBT_OK && rbt_kind_is_scattered(kind) ? share_content(r, kind, data, error) : err;
    }
    if (r->reading->report != NULL)
        *r->reading->report = (rbt_read_report){0};
    rbt_err err = rbt_reading_fits(r->reading, kind, name_of_all(r), error);
    if (err != RBT_OK)
        return err;
    err = kind == RBT_KIND_IDX && r->plan.count > 1 && !rbt_path_is_ranked(r->path)
              ? rbt_images_refuse(name_of_all(r), r->plan.count, error)
              : read_each(r, kind, data, error);
    err = unite(r, err, data, error);
    if (err == RBT_OK)
        err = share_origin(r, data, error);
    return err == RBT_OK ? share_content(r, kind, data, error) : err;
}

/* With {rank}: whose rows are how many. */
static rbt_err count_workers(const reader *r, const rbt_hosting *hosting, rbt_data_part *part, rbt_error *error)
{
    uint32_t first = hosting->first_worker[r->crew->rank], workers = hosting->workers_of[r->crew->rank];
    part->worker_rows = rbt_alloc(workers + (size_t)1, sizeof *part->worker_rows);
    for (size_t i = 0; i < r->pieces.count; i++)
        part->worker_rows[r->plan.at[r->pieces.at[i].slice.file].worker - first] += r->rows[i];
    for (uint32_t m = 0; m < workers; m++)
        if (part->worker_rows[m] == 0)
            return rbt_fail(error, RBT_E_DATA,
                            "%s: the files of worker %u have no rows; each worker needs at least one", r->path,
                            first + m);
    return RBT_OK;
}

static rbt_err count_parts(const reader *r, rbt_err err, rbt_data_part *part, rbt_error *error)
{
    rbt_crew *crew = r->crew;
    uint64_t mine[2] = {part->data.rows, part->data.nnz}, *all = rbt_alloc(crew->size, sizeof mine);
    part->rows_of = rbt_alloc(crew->size, sizeof *part->rows_of);
    part->nnz_of = rbt_alloc(crew->size, sizeof *part->nnz_of);
    err = rbt_crew_share(crew, err, mine, sizeof mine, all, error);
    for (uint32_t q = 0; err == RBT_OK && q < crew->size; q++) {
        part->rows_of[q] = (size_t)all[2 * (size_t)q];
        part->nnz_of[q] = (size_t)all[2 * (size_t)q + 1];
        part->first += q < crew->rank ? part->rows_of[q] : 0;
        part->first_nnz += q < crew->rank ? part->nnz_of[q] : 0;
        part->rows += part->rows_of[q];
        part->nnz += part->nnz_of[q];
    }
    rbt_free(all);
    return err;
}

rbt_err rbt_data_part_read(rbt_data_part *part, const char *path, const rbt_reading *reading,
                           const rbt_hosting *hosting, rbt_crew *crew, rbt_error *error)
{
    reader r = {.path = path, .reading = reading, .crew = crew};
    rbt_data_part p = {.first = 0};
    rbt_kind kind = RBT_KIND_AUTO;
    rbt_paths_title(path, r.title, sizeof r.title);
    rbt_err err = agree_on_kind(&r, open_pieces(&r, hosting, error), &kind, error);
    if (err == RBT_OK)
        err = read_kind(&r, kind, &p.data, error);
    if (err == RBT_OK) {
        if (rbt_path_is_ranked(path))
            err = count_workers(&r, hosting, &p, error);
        err = count_parts(&r, err, &p, error);
    }
    for (size_t i = 0; i < r.pieces.count; i++)
        rbt_input_close(&r.pieces.at[i].input);
    rbt_array_free(&r.pieces);
    rbt_free(r.rows);
    rbt_slicing_free(&r.plan);
    if (err == RBT_OK)
        *part = p;
    else
        rbt_data_part_deinit(&p);
    return err;
}
