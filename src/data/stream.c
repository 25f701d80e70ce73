/* Data in blocks of rows. Contract in stream.h; proved by tests/unit/test_stream.c. */
#include "data/stream.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/csv.h"
#include "data/data.h"
#include "data/libsvm.h"
#include "data/origin.h"
#include "data/parallel.h"
#include "data/paths.h"
#include "data/read.h"
#include "data/vw.h"
#include "data/feed.h"

#define CHUNK_BYTES (size_t)(256 * 1024) /* of a piece, by one thread */

struct rbt_rowstream {
    const char *path;
    char title[RBT_PATHS_TITLE_ROOM]; /* of the path, for messages */
    rbt_paths paths;
    size_t next; /* file to open */
    bool late;
    rbt_reading reading;
    rbt_kind kind; /* RBT_KIND_AUTO: not known yet */
    bool given;    /* it was asked for */
    rbt_read_report report;
    size_t rows, features; /* handed out so far */

    rbt_feed *feed; /* the file being read; NULL: none */
    char *buffer;
    size_t room, used;
    size_t line;   /* of the buffer's first byte */
    bool ended;    /* all of the file is in the buffer */
    bool begun;    /* something of the file has been looked at */
    rbt_seen seen; /* of LIBSVM text: in all pieces so far */
    size_t low;    /* features handed out before an index 0 was seen */

    rbt_csv_pieces *csv; /* of CSV: what the columns are; NULL: nothing is known yet */
    bool settled;        /* that is known, and rows are handed out */
    bool compared;       /* the file's header is that of the first */
    size_t looked;       /* bytes of the buffer that have been looked at */
    size_t looked_lines; /* and how many lines they are */
    rbt_csv_ends ends;   /* of the buffer's rows */

    rbt_data cache;                   /* or what else was read whole */
    size_t cache_row;                 /* next to hand out */
    size_t *start;                    /* of a block of the cache */
    char *origin;                     /* its origin; what is open in blocks of text is told by the stream */
    RBT_ARRAY(rbt_origin_of) origins; /* of caches: in their order, one for those in a row that have the same */

    rbt_data block;
};

/* A block of a cache is a view of it; the names of the labels in CSV are those of all blocks. */
static void forget_block(rbt_rowstream *s)
{
    if (s->csv != NULL) {
        s->block.label_names = NULL;
        s->block.label_count = 0;
    }
    if (s->cache.rows == 0)
        rbt_data_deinit(&s->block);
    s->block = (rbt_data){0};
}

static rbt_err grow(rbt_rowstream *s, const char *what, rbt_error *error)
{
    size_t room = s->room > 0 ? s->room : RBT_ROWSTREAM_PIECE_BYTES / 2;
    char *larger = room > SIZE_MAX / 2 ? NULL : rbt_try_alloc_raw(room * 2, 1);
    if (larger == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s:%zu: not enough memory for %s of more than %zu bytes",
                        rbt_feed_name(s->feed), s->line, what, s->used);
    if (s->used > 0)
        memcpy(larger, s->buffer, s->used);
    rbt_free(s->buffer);
    s->buffer = larger;
    s->room = room * 2;
    return RBT_OK;
}

rbt_err rbt_rowstream_open(const char *path, const rbt_reading *reading, bool late, size_t piece_bytes,
                           rbt_rowstream **out, rbt_error *error)
{
    rbt_rowstream *s = rbt_alloc(1, sizeof *s);
    s->path = path;
    rbt_paths_title(path, s->title, sizeof s->title);
    s->late = late;
    s->reading = *reading;
    s->room = piece_bytes;
    s->buffer = rbt_try_alloc_raw(piece_bytes, 1);
    rbt_err err = rbt_reading_kind(reading, &s->kind, error);
    s->given = s->kind != RBT_KIND_AUTO;
    if (err == RBT_OK && s->buffer == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory to read it", path);
    if (err == RBT_OK)
        err = rbt_paths_list(path, &s->paths, error);
    if (err == RBT_OK)
        *out = s;
    else
        rbt_rowstream_close(s);
    return err;
}

void rbt_rowstream_close(rbt_rowstream *stream)
{
    rbt_feed_close(stream->feed);
    forget_block(stream);
    rbt_csv_pieces_destroy(stream->csv);
    rbt_data_deinit(&stream->cache);
    rbt_paths_free(&stream->paths);
    rbt_free(stream->start);
    rbt_free(stream->origin);
    for (size_t i = 0; i < stream->origins.count; i++)
        rbt_free((void *)(uintptr_t)stream->origins.at[i].text);
    rbt_array_free(&stream->origins);
    rbt_free(stream->buffer);
    rbt_free(stream);
}

size_t rbt_rowstream_low(const rbt_rowstream *stream)
{
    return stream->seen.zero_based ? stream->low : 0;
}

bool rbt_rowstream_take(rbt_rowstream *s, rbt_data *data)
{
    if (s->cache.rows == 0 || s->rows != s->block.rows || s->next < s->paths.count)
        return false;
    forget_block(s);
    *data = s->cache;
    s->cache = (rbt_data){0};
    return true;
}

char *rbt_rowstream_origin(const rbt_rowstream *stream)
{
    if (stream->kind == RBT_KIND_LIBSVM)
        return rbt_libsvm_origin(stream->seen.zero_based);
    if (stream->origins.count > 1) /* as rbt_data_join has it */
        return NULL;
    return stream->origin != NULL ? rbt_strdup(stream->origin) : NULL;
}

bool rbt_rowstream_is_live(const rbt_rowstream *stream)
{
    return stream->feed != NULL && !rbt_feed_is_file(stream->feed);
}

/* ------------------------------------------------------------------------------------------------------ caches */

/* The rest of a cache that cannot be mapped: behind what is in the buffer. */
static rbt_err read_whole(rbt_rowstream *s, rbt_error *error)
{
    size_t got = 1;
    rbt_err err = RBT_OK;
    while (err == RBT_OK && got > 0) {
        if (s->used == s->room)
            err = grow(s, "what has to be read whole,", error);
        if (err == RBT_OK)
            err = rbt_feed_read(s->feed, s->buffer + s->used, s->room - s->used, &got, error);
        s->used += got;
    }
    return err;
}

/* The cache or whole data is there: blocks come from it. */
static rbt_err begin_blocks(rbt_rowstream *s, rbt_err err)
{
    rbt_feed_close(s->feed);
    s->feed = NULL;
    s->used = 0;
    s->cache_row = 0;
    rbt_free(s->start);
    s->start = rbt_alloc(err == RBT_OK ? rbt_data_block_rows(&s->cache) + 1 : 1, sizeof *s->start);
    return err;
}

/* Can what is open be read again from its beginning? */
static bool is_read_again(const rbt_rowstream *s)
{
    return rbt_feed_is_file(s->feed) && strcmp(s->paths.at[s->next - 1], "-") != 0;
}

/* What cannot be taken piece by piece: all that the path stands for, or the rest of a pipe. */
static rbt_err take_whole(rbt_rowstream *s, rbt_error *error)
{
    rbt_err err;
    if (s->kind != RBT_KIND_CACHE && is_read_again(s)) {
        s->next = s->paths.count;
        return begin_blocks(s, rbt_data_read_whole(s->path, &s->reading, &s->cache, error));
    }
    err = read_whole(s, error);
    if (err == RBT_OK) {
        rbt_input input = {.name = rbt_feed_name(s->feed), .bytes = s->buffer, .n = s->used};
        s->buffer = NULL; /* moved */
        s->room = 0;
        err = rbt_data_take(&input, &s->reading, &s->cache, error);
    }
    return begin_blocks(s, err);
}

/* A cache has been opened: was it read as the reading says, and are its features those of the reading's origin, and of the caches
 * before it? */
static rbt_err compare_cache(rbt_rowstream *s, const char *name, rbt_error *error)
{
    const char *text = s->cache.origin, *last = s->origins.count > 0 ? s->origins.at[s->origins.count - 1].text : NULL;
    bool same = text != NULL && last != NULL ? strcmp(text, last) == 0 : text == last;
    if (s->origins.count == 0 || !same)
        rbt_array_push(&s->origins, ((rbt_origin_of){name, text != NULL ? rbt_strdup(text) : NULL}));
    rbt_err err = rbt_origin_fits(&s->reading, &s->cache, name, error);
    if (err == RBT_OK)
        err = rbt_origin_check(&s->reading, &s->cache, name, error);
    return err == RBT_OK ? rbt_origins_agree(s->origins.at, s->origins.count, error) : err;
}

/* The next rows of the open cache as data of their own. */
static const rbt_data *cache_block(rbt_rowstream *s)
{
    const rbt_data *c = &s->cache;
    size_t first = s->cache_row, rows = rbt_data_block_rows(c), left = c->rows - first;
    if (first > 0) {
        size_t before = first < rows ? first : rows;
        rbt_data_release_rows(c, first - before, before);
    }
    if (left == 0)
        return NULL;
    rows = left < rows ? left : rows;
    for (size_t r = 0; r <= rows; r++)
        s->start[r] = c->start[first + r] - c->start[first];
    s->block = (rbt_data){.rows = rows,
                          .cols = c->cols,
                          .nnz = s->start[rows],
                          .start = s->start,
                          .index = c->index + c->start[first],
                          .value = c->value + c->start[first],
                          .label = c->label + first,
                          .weight = c->weight != NULL ? c->weight + first : NULL,
                          .label_names = c->label_names,
                          .label_count = c->label_count,
                          .content = c->content,
                          .origin = c->origin};
    s->cache_row += rows;
    return &s->block;
}

/* -------------------------------------------------------------------------------------------------------- text */

/* Where the last whole line (of CSV: row) in the buffer ends; all of it when the file has ended. `from`: of lines, no
 * other ends before. */
static size_t whole_lines(rbt_rowstream *s, size_t from)
{
    if (s->ended)
        return s->used;
    if (s->kind == RBT_KIND_CSV)
        return rbt_csv_rows_end(s->csv, &s->ends, s->buffer, s->used);
    const char *newline = memrchr(s->buffer + from, '\n', s->used - from);
    return newline == NULL ? 0 : (size_t)(newline - s->buffer) + 1;
}

/* Might what is still to come make something else of the text, of which `lines` bytes are whole lines? A cache's first bytes hold a
 * line end; documents are told by many lines, other text by its first row. Who answers rows as they come takes them for no
 * documents before there are lines enough, unless it expects some. */
static bool is_undecided(const rbt_rowstream *s, size_t lines)
{
    if (s->begun)
        return false;
    if (s->used < RBT_CACHE_HEADER_BYTES && s->buffer[0] == '\x89')
        return true;
    if (s->kind != RBT_KIND_AUTO || s->used == s->room)
        return false;
    return s->late || s->reading.expect == RBT_CONTENT_DOCS || !rbt_kind_has_row(s->buffer, lines);
}

/* Reads until the buffer is full, or holds all that is there for now and that tells what it is; `lines` bytes of it are whole
 * lines. */
static rbt_err fill(rbt_rowstream *s, size_t *lines, rbt_error *error)
{
    *lines = 0;
    while (!s->ended && (*lines == 0 || is_undecided(s, *lines) || (s->used < s->room && rbt_feed_ready(s->feed)))) {
        size_t got = 0, before = s->used;
        rbt_err err = s->used == s->room ? grow(s, "a line", error) : RBT_OK;
        if (err == RBT_OK)
            err = rbt_feed_read(s->feed, s->buffer + s->used, s->room - s->used, &got, error);
        if (err != RBT_OK)
            return err;
        s->used += got;
        s->ended = got == 0;
        size_t end = whole_lines(s, before);
        *lines = end > 0 ? end : *lines;
    }
    if (s->ended)
        *lines = s->used;
    return RBT_OK;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* All that the path stands for, in messages that are about no single file: as who reads the whole names it. */
static const char *name_of_all(const rbt_rowstream *s)
{
    const char *name = s->paths.count == 1 ? s->paths.at[0] : s->title;
    return strcmp(name, "-") == 0 ? "standard input" : name;
}

static rbt_source source_of(const rbt_text *text)
{
    return (rbt_source){text, 1, text->name, {.chunk_bytes = CHUNK_BYTES, .threads = rbt_parallel_threads()}, NULL};
}

/* Parses the first `bytes` of the buffer to the stream's block. */
static rbt_err parse_piece(rbt_rowstream *s, size_t bytes, rbt_error *error)
{
    const rbt_text text = {.name = rbt_feed_name(s->feed), .bytes = s->buffer, .n = bytes};
    rbt_source source = source_of(&text);
    source.name = name_of_all(s);
    rbt_reading reading = s->reading;
    reading.report = &s->report;
    rbt_err err = s->kind == RBT_KIND_VW ? rbt_vw_parse_piece(&source, s->line, &reading, &s->block, error)
                  : s->kind == RBT_KIND_CSV
                      ? rbt_csv_pieces_parse(s->csv, &source, s->line, &reading, &s->block, error)
                      : rbt_libsvm_parse_piece(&source, s->line, &reading, &s->seen, &s->block, error);
    if (err != RBT_OK)
        return err;
    s->report.layout = s->kind == RBT_KIND_CSV || s->kind == RBT_KIND_VW ? s->block.cols : 0;
    if (s->reading.report != NULL)
        *s->reading.report = s->report;
    return RBT_OK;
}

static void take_out(rbt_rowstream *s, size_t bytes)
{
    s->line += count_lines(s->buffer, bytes);
    s->used -= bytes;
    rbt_csv_ends_drop(&s->ends, bytes);
    memmove(s->buffer, s->buffer + bytes, s->used);
}

/* The same, and takes them out. */
static rbt_err parse_lines(rbt_rowstream *s, size_t bytes, rbt_error *error)
{
    bool before = s->seen.zero_based;
    size_t first = s->line;
    rbt_err err = parse_piece(s, bytes, error);
    if (err != RBT_OK)
        return err;
    take_out(s, bytes);
    if (s->seen.zero_based && !before && s->features > 0 && !s->late)
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%zu: an index 0 in this line or one of the next, after %zu rows without any, which were "
                        "taken to count from 1; give --base 0",
                        rbt_feed_name(s->feed), first, s->rows);
    s->low += s->seen.zero_based ? 0 : s->block.nnz;
    return RBT_OK;
}

/* The file has been opened: what is it, and do all files agree? */
static rbt_err look_at_file(rbt_rowstream *s, rbt_error *error)
{
    const char *path = s->paths.at[s->next - 1];
    bool cache = rbt_cache_recognise(s->buffer, s->used);
    rbt_input file = {.name = rbt_feed_name(s->feed), .bytes = s->buffer, .n = s->used};
    rbt_err err = RBT_OK;
    s->begun = true;
    if (s->kind == RBT_KIND_AUTO && s->used > 0)
        s->kind = rbt_kind_of(&file, s->reading.expect);
    if (!s->given && s->used > 0)
        err = rbt_kind_refuse_model(&file, error);
    if (err == RBT_OK)
        err = rbt_reading_fits(&s->reading, s->kind, name_of_all(s), error);
    if (err != RBT_OK || s->used == 0)
        return err;
    if (!s->given && cache != (s->kind == RBT_KIND_CACHE))
        return rbt_fail(error, RBT_E_DATA, "%s: %s is a cache, and %s is none; give caches alone, or none of them",
                        s->title, cache ? path : s->paths.at[0], cache ? s->paths.at[0] : path);
    if (s->kind == RBT_KIND_LIBSVM || s->kind == RBT_KIND_VW || s->kind == RBT_KIND_CSV)
        return RBT_OK;
    bool mapped =
        s->kind == RBT_KIND_CACHE && rbt_feed_is_file(s->feed) && rbt_feed_is_plain(s->feed) && strcmp(path, "-") != 0;
    err = mapped ? begin_blocks(s, rbt_cache_read_streamed(path, &s->cache, error)) : take_whole(s, error);
    return err == RBT_OK && s->kind == RBT_KIND_CACHE ? compare_cache(s, path, error) : err;
}

static rbt_err open_next(rbt_rowstream *s, rbt_error *error)
{
    s->used = s->looked = s->looked_lines = 0;
    s->ends = (rbt_csv_ends){0};
    s->line = 1;
    s->ended = s->begun = s->compared = false;
    return rbt_feed_open(s->paths.at[s->next++], &s->feed, error);
}

static void close_file(rbt_rowstream *s)
{
    rbt_feed_close(s->feed);
    s->feed = NULL;
}

/* --------------------------------------------------------------------------------------------------------- CSV */

/* Can all files be read as often as need be? */
bool rbt_rowstream_is_repeatable(const rbt_rowstream *s)
{
    struct stat status;
    for (size_t i = 0; i < s->paths.count; i++)
        if (strcmp(s->paths.at[i], "-") == 0 || stat(s->paths.at[i], &status) != 0 || !S_ISREG(status.st_mode))
            return false;
    return true;
}

/* The file's first rows, `lines` bytes of them: makes the columns known, or compares them. *more: they do not suffice. */
static rbt_err look_at_header(rbt_rowstream *s, size_t lines, bool *more, rbt_error *error)
{
    const rbt_text text = {.name = rbt_feed_name(s->feed), .bytes = s->buffer, .n = lines};
    const rbt_source source = source_of(&text);
    if (!s->compared && !rbt_csv_has_rows(&source)) { /* empty lines */
        take_out(s, lines);
        *more = true;
        return RBT_OK;
    }
    *more = !s->compared && !s->ended && !rbt_csv_begins_clearly(&source);
    if (s->compared || *more)
        return RBT_OK;
    s->compared = true;
    return s->csv != NULL ? rbt_csv_pieces_compare(s->csv, &source, error)
                          : rbt_csv_pieces_create(&source, s->line, &s->reading, &s->csv, error);
}

/* Rows of the buffer, the first of which is the line of that number. */
static void look_at_rows(rbt_rowstream *s, size_t from, size_t to, size_t line)
{
    const rbt_text text = {.name = rbt_feed_name(s->feed), .bytes = s->buffer + from, .n = to - from};
    const rbt_source source = source_of(&text);
    rbt_csv_pieces_look(s->csv, &source, line);
}

/* The next file; its header alone, or its rows, too. */
static rbt_err survey_file(rbt_rowstream *s, bool header, rbt_error *error)
{
    rbt_err err = open_next(s, error);
    while (err == RBT_OK && (!s->ended || s->used > 0) && !(header && s->compared)) {
        size_t lines = 0;
        bool more = false;
        err = fill(s, &lines, error);
        if (err == RBT_OK)
            err = look_at_header(s, lines, &more, error);
        if (err == RBT_OK && !more && !header) {
            look_at_rows(s, 0, lines, s->line);
            take_out(s, lines);
        }
    }
    close_file(s);
    return err;
}

/* The columns are known: label and weight. Where they cannot be had, files with other columns are refused before that, as
 * by who reads the whole. */
static rbt_err assign_columns(rbt_rowstream *s, rbt_error *error)
{
    rbt_error why = {RBT_OK, ""};
    rbt_err err = rbt_csv_pieces_assign(s->csv, name_of_all(s), &why), other = RBT_OK;
    if (err == RBT_OK || !rbt_rowstream_is_repeatable(s))
        return err == RBT_OK ? RBT_OK : rbt_fail(error, err, "%s", why.text);
    close_file(s);
    while (other == RBT_OK && s->next < s->paths.count)
        other = survey_file(s, true, error);
    return other == RBT_OK ? rbt_fail(error, err, "%s", why.text) : other;
}

/* Goes over all files to see what the columns are, once more for labels that are words, and back to the first. */
static rbt_err survey_files(rbt_rowstream *s, rbt_error *error)
{
    bool again = true;
    rbt_err err = RBT_OK;
    close_file(s);
    while (err == RBT_OK && again) {
        s->next = 0;
        while (err == RBT_OK && s->next < s->paths.count)
            err = survey_file(s, false, error);
        if (err == RBT_OK)
            err = rbt_csv_pieces_settle(s->csv, name_of_all(s), &again, error);
    }
    s->next = 0;
    s->settled = true;
    return err;
}

/* Who answers need not know more than that the columns make the model's features. Others see all files first, or have all of
 * a pipe in memory, if it is the only one. */
static rbt_err find_columns(rbt_rowstream *s, size_t lines, rbt_error *error)
{
    bool again;
    if (s->reading.features == 0 && rbt_rowstream_is_repeatable(s))
        return survey_files(s, error);
    look_at_rows(s, s->looked, lines, s->line + s->looked_lines);
    s->looked_lines += count_lines(s->buffer + s->looked, lines - s->looked);
    s->looked = lines;
    if (rbt_csv_pieces_fit(s->csv)) {
        s->settled = true;
        return rbt_csv_pieces_settle(s->csv, name_of_all(s), &again, error);
    }
    if (rbt_rowstream_is_repeatable(s))
        return survey_files(s, error);
    if (!s->ended && s->paths.count == 1)
        return RBT_OK;
    if (s->paths.count > 1 && !is_read_again(s))
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: can be read only once, and what the columns are is seen by going over all CSV files (%s) "
                        "first; put it into a file, or, for training, use --store memory",
                        rbt_feed_name(s->feed), s->title);
    rbt_csv_pieces_destroy(s->csv);
    s->csv = NULL;
    return take_whole(s, error);
}

/* The rows in the buffer, if it is known what to make of them. */
static rbt_err step_csv(rbt_rowstream *s, size_t lines, rbt_error *error)
{
    bool more = lines == 0, known = s->csv != NULL;
    rbt_err err = more ? RBT_OK : look_at_header(s, lines, &more, error);
    if (err == RBT_OK && !known && s->csv != NULL)
        err = assign_columns(s, error);
    if (err != RBT_OK || more)
        return err;
    if (!s->settled)
        err = find_columns(s, lines, error);
    return err == RBT_OK && s->settled && s->feed != NULL ? parse_lines(s, lines, error) : err;
}

/* Some step forward; *found when there is a block. */
static rbt_err step(rbt_rowstream *s, const rbt_data **found, rbt_error *error)
{
    size_t lines = 0;
    if (s->cache.rows > 0) {
        *found = cache_block(s);
        if (*found == NULL)
            rbt_data_deinit(&s->cache);
        return RBT_OK;
    }
    if (s->feed == NULL)
        return open_next(s, error);
    rbt_err err = fill(s, &lines, error);
    if (err == RBT_OK && !s->begun) {
        err = look_at_file(s, error);
        if (err != RBT_OK || s->feed == NULL)
            return err;
        lines = whole_lines(s, 0);
    }
    if (err == RBT_OK && s->kind == RBT_KIND_CSV)
        err = step_csv(s, lines, error);
    else if (err == RBT_OK && lines > 0)
        err = parse_lines(s, lines, error);
    if (err == RBT_OK && s->block.rows > 0)
        *found = &s->block;
    if (err == RBT_OK && s->feed != NULL && s->ended && s->used == 0 && *found == NULL)
        close_file(s);
    return err;
}

/* As who reads the whole refuses it. */
static rbt_err refuse_empty(const rbt_rowstream *s, rbt_error *error)
{
    rbt_source none = {.name = name_of_all(s), .cut = rbt_cut_default()};
    rbt_data data;
    if (s->report.skipped > 0)
        return rbt_fail(error, RBT_E_DATA, "%s: has no good rows; the first: %s", none.name, s->report.first.text);
    rbt_input last = {.name = s->paths.count > 0 ? s->paths.at[s->paths.count - 1] : none.name, .bytes = ""};
    rbt_kind kind = s->kind == RBT_KIND_AUTO ? rbt_kind_of(&last, s->reading.expect) : s->kind; /* by its name */
    return rbt_texts_parse(&none, kind, &s->reading, &data, error);
}

rbt_err rbt_rowstream_next(rbt_rowstream *stream, const rbt_data **block, rbt_error *error)
{
    const rbt_data *found = NULL;
    while (found == NULL) {
        forget_block(stream);
        bool more = stream->cache.rows > 0 || stream->feed != NULL || stream->next < stream->paths.count;
        if (!more && stream->rows == 0)
            return refuse_empty(stream, error);
        if (!more)
            break;
        rbt_err err = step(stream, &found, error);
        if (err != RBT_OK)
            return err;
    }
    stream->rows += found != NULL ? found->rows : 0;
    stream->features += found != NULL ? found->nnz : 0;
    if (found != NULL && found->origin != NULL && stream->origin == NULL)
        stream->origin = rbt_strdup(found->origin);
    *block = found;
    return RBT_OK;
}
