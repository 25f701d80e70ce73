/* Events. Contract in events.h; proved by tests/unit/test_events.c. */
#include "data/events.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/chunks.h"
#include "data/feed.h"
#include "data/file.h"
#include "data/paths.h"
#include "data/slicing.h"

typedef struct source {
    char *path;
    uint64_t turn;  /* whose turn its first piece is */
    uint64_t bytes; /* of a plain file that is shared, of which a part reads its own pieces alone; else UINT64_MAX */
} source;

struct rbt_events {
    rbt_events_options options;
    char *path;
    RBT_ARRAY(source) sources;
    uint64_t total; /* bytes of all texts, of those that are compressed as far as they were unpacked */
    bool is_over;   /* all of them were */
    size_t next;    /* source to open */
    const source *now;
    rbt_feed *feed; /* NULL: none is open */
    char *buffer;   /* RBT_EVENTS_BYTES */
    uint64_t place; /* of its first byte in the text */
    uint64_t from;  /* lines that begin there are wanted; all of it: 0 ... */
    uint64_t to;    /* ... and UINT64_MAX */
    size_t at, used;
    size_t scanned; /* from `at` on up to here no line ends */
    bool ended;     /* nothing of the file is missing in the buffer */
    bool is_rest;   /* what begins at `at` is the end of another part's line */
    size_t line;    /* of what begins at `at`, counted from where the source begins */
    rbt_read_report report;
};

/* --------------------------------------------------------------------------------------------------------- parts */

static rbt_err list_whole(rbt_events *e, const char *path, rbt_error *error)
{
    rbt_paths paths;
    rbt_err err = rbt_paths_list(path, &paths, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < paths.count; i++)
        rbt_array_push(&e->sources, ((source){.path = rbt_strdup(paths.at[i]), .bytes = UINT64_MAX}));
    rbt_paths_free(&paths);
    return RBT_OK;
}

/* All files; of those that are plain only the part's own pieces are read. */
static rbt_err list_shared(rbt_events *e, const char *path, rbt_error *error)
{
    const rbt_reading text = {.format = "libsvm"}; /* no caches */
    rbt_slicing plan = {0};
    rbt_err err = rbt_slicing_make(&plan, path, &text, error);
    for (size_t i = 0; err == RBT_OK && i < plan.count; i++) {
        const rbt_slicing_file *file = &plan.at[i];
        e->total += file->form == RBT_FORM_TEXT ? file->bytes : 0;
        rbt_array_push(&e->sources, ((source){.path = rbt_strdup(file->path),
                                              .turn = i % e->options.parts,
                                              .bytes = file->form == RBT_FORM_TEXT ? file->bytes : UINT64_MAX}));
    }
    rbt_slicing_free(&plan);
    return err;
}

rbt_err rbt_events_open(const char *path, const rbt_events_options *options, rbt_events **out, rbt_error *error)
{
    rbt_events *e = rbt_alloc(1, sizeof *e);
    e->options = *options;
    e->path = rbt_strdup(path);
    if (e->options.separator == '\0')
        e->options.separator = '\t';
    if (e->options.piece == 0)
        e->options.piece = RBT_EVENTS_PIECE;
    e->buffer = rbt_try_alloc_raw(RBT_EVENTS_BYTES, 1);
    rbt_err err = e->buffer == NULL    ? rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory to read it", path)
                  : options->parts > 1 ? list_shared(e, path, error)
                                       : list_whole(e, path, error);
    if (err == RBT_OK)
        *out = e;
    else
        rbt_events_close(e);
    return err;
}

void rbt_events_close(rbt_events *events)
{
    if (events == NULL)
        return;
    rbt_feed_close(events->feed);
    for (size_t i = 0; i < events->sources.count; i++)
        rbt_free(events->sources.at[i].path);
    rbt_array_free(&events->sources);
    rbt_free(events->path);
    rbt_free(events->buffer);
    rbt_free(events);
}

uint64_t rbt_events_total(const rbt_events *events)
{
    return events->is_over ? events->total : 0;
}

void rbt_events_report(const rbt_events *events, rbt_read_report *report)
{
    *report = events->report;
}

/* --------------------------------------------------------------------------------------------------------- lines */

/* Begins with these bytes: at the first of them, or, as a line may begin with that, at the one before. */
static void begin(rbt_events *e, uint64_t from, uint64_t to)
{
    e->from = from;
    e->to = to;
    e->is_rest = from > 0;
    e->place = from > 0 ? from - 1 : 0;
    e->at = e->used = e->scanned = 0;
    e->line = 1;
    e->ended = false;
}

/* Goes to the part's next piece of the plain file, which begins there or behind; false: it has none. */
static rbt_err open_piece(rbt_events *e, uint64_t behind, bool *found, rbt_error *error)
{
    const source *s = e->now;
    uint64_t piece = behind / e->options.piece, parts = e->options.parts;
    RBT_ASSERT(parts > 1); /* else no file is cut */
    piece += (e->options.part + 2 * parts - s->turn - piece % parts) % parts;
    *found = piece < (s->bytes + e->options.piece - 1) / e->options.piece;
    if (!*found)
        return RBT_OK;
    begin(e, piece * e->options.piece, (piece + 1) * e->options.piece);
    return e->feed == NULL ? rbt_feed_open_at(s->path, e->place, &e->feed, error)
                           : rbt_feed_seek(e->feed, e->place, error);
}

/* The next piece of this source, or the first of another; false: there is none. */
static rbt_err open_next(rbt_events *e, bool *found, rbt_error *error)
{
    rbt_err err = RBT_OK;
    *found = false;
    if (e->feed != NULL && e->now->bytes != UINT64_MAX)
        err = open_piece(e, e->to, found, error);
    if (err != RBT_OK || *found)
        return err;
    if (e->feed != NULL && e->now->bytes == UINT64_MAX)
        e->total += e->place + e->used;
    rbt_feed_close(e->feed);
    e->feed = NULL;
    while (err == RBT_OK && !*found && e->next < e->sources.count) {
        e->now = &e->sources.at[e->next++];
        if (e->now->bytes != UINT64_MAX) {
            err = open_piece(e, 0, found, error);
            continue;
        }
        begin(e, 0, UINT64_MAX);
        *found = true;
        err = rbt_feed_open_until(e->now->path, e->options.stop, e->options.context, &e->feed, error);
    }
    e->is_over = err == RBT_OK && !*found;
    return err;
}

/* How much to read: nothing behind the part but the end of its last line. */
static size_t room_of(const rbt_events *e)
{
    uint64_t at = e->place + e->used, left = at < e->to ? e->to - at : RBT_EVENTS_REST;
    size_t room = RBT_EVENTS_BYTES - e->used;
    return left < room ? (size_t)left : room;
}

/* The line's number in the file. A part does not know how many come before it, and goes to look. */
static size_t line_of(const rbt_events *e)
{
    size_t line = e->line, got = 1;
    uint64_t left = e->from > 0 ? e->from - 1 : 0;
    rbt_feed *feed = NULL;
    char *piece = rbt_alloc(RBT_EVENTS_REST, 1);
    if (left > 0 && rbt_feed_open_at(e->now->path, 0, &feed, NULL) == RBT_OK)
        for (; left > 0 && got > 0; left -= got) {
            size_t room = left < RBT_EVENTS_REST ? (size_t)left : RBT_EVENTS_REST;
            if (rbt_feed_read(feed, piece, room, &got, NULL) != RBT_OK)
                got = 0;
            for (size_t i = 0; i < got; i++)
                line += piece[i] == '\n';
        }
    rbt_feed_close(feed);
    rbt_free(piece);
    return line;
}

/* Reads more of the file, or opens the next one; false when there is none. */
static rbt_err fill(rbt_events *e, bool *more, rbt_error *error)
{
    rbt_err err = RBT_OK;
    size_t got = 0;
    *more = true;
    if (e->feed == NULL || e->ended)
        return open_next(e, more, error);
    if (e->at > 0) {
        memmove(e->buffer, e->buffer + e->at, e->used - e->at);
        e->place += e->at;
        e->used -= e->at;
        e->scanned -= e->at;
        e->at = 0;
    }
    if (e->used == RBT_EVENTS_BYTES)
        return rbt_fail(error, RBT_E_LIMIT, "%s:%zu: the line has %zu bytes or more, which is the limit",
                        rbt_feed_name(e->feed), line_of(e), RBT_EVENTS_BYTES);
    err = rbt_feed_read(e->feed, e->buffer + e->used, room_of(e), &got, error);
    if (err == RBT_OK) {
        e->used += got;
        e->ended = got == 0;
        if (rbt_feed_was_stopped(e->feed)) { /* what is there of a line is none */
            e->used = e->scanned = e->at;
            e->next = e->sources.count;
        }
    }
    return err;
}

/* The next line in the buffer, without its end; false: there is no whole one. */
static bool next_line(rbt_events *e, const char **line, const char **end)
{
    if (e->now != NULL && e->place + e->at >= e->to) { /* it begins in another part */
        e->used = e->scanned = e->at;
        e->ended = true;
        return false;
    }
    const char *from = e->buffer + e->scanned, *stop = e->buffer + e->used;
    const char *newline = from < stop ? memchr(from, '\n', (size_t)(stop - from)) : NULL;
    e->scanned = e->used;
    if (newline == NULL && (!e->ended || e->at == e->used))
        return false;
    *line = e->buffer + e->at;
    *end = newline != NULL ? newline : stop;
    if (e->place + e->at == 0)
        *line += rbt_mark_bytes(*line, (size_t)(*end - *line));
    e->at = e->scanned = newline != NULL ? (size_t)(newline - e->buffer) + 1 : e->used;
    if (*end > *line && (*end)[-1] == '\r')
        (*end)--;
    return true;
}

/* Is the line that begins there in the buffer for this part? */
static bool is_mine(const rbt_events *e, size_t at)
{
    if (e->options.parts <= 1 || e->now->bytes != UINT64_MAX) /* all are, or only its own pieces were read */
        return !e->is_rest;
    return ((e->place + at) / e->options.piece + e->now->turn) % e->options.parts == e->options.part;
}

/* The line's key; false: it has none. */
static bool find_key(const rbt_events_options *o, const char *line, const char *end, rbt_event_key *key)
{
    for (size_t column = 1; column < o->column; column++) {
        const char *separator = memchr(line, o->separator, (size_t)(end - line));
        if (separator == NULL)
            return false;
        line = separator + 1;
    }
    const char *stop = o->column > 0 && line < end ? memchr(line, o->separator, (size_t)(end - line)) : NULL;
    key->text = line;
    key->n = (size_t)((stop != NULL ? stop : end) - line);
    key->hash = rbt_hash(key->text, key->n, 0);
    return key->n > 0 || o->empty;
}

/* A part refuses with the words of who reads all: whichever part is first to fail, the same line is named. There are too many bad
 * lines in the part, so there are in the whole, and not later. */
static rbt_err refuse_whole(const rbt_events *e, const rbt_error *why, rbt_error *error)
{
    rbt_events_options options = e->options;
    rbt_events *whole = NULL;
    rbt_event_key key;
    size_t n = 1;
    options.part = options.parts = 0;
    rbt_err err = rbt_events_open(e->path, &options, &whole, error);
    while (err == RBT_OK && n > 0)
        err = rbt_events_next(whole, &key, 1, &n, error);
    rbt_events_close(whole);
    return err == RBT_E_DATA ? err : rbt_fail(error, RBT_E_DATA, "%s", why->text);
}

static rbt_err refuse(rbt_events *e, const char *line, const char *end, rbt_error *error)
{
    char shown[RBT_TOKEN_ROOM];
    rbt_error why = {RBT_OK, ""};
    if (e->report.skipped == 0 || e->report.skipped == e->options.skip_bad)
        (void)rbt_fail(&why, RBT_E_DATA, "%s:%zu: '%s': expected a key in column %zu", rbt_feed_name(e->feed),
                       line_of(e), rbt_text_shown(line, end, shown), e->options.column);
    if (e->report.skipped == 0)
        e->report.first = why;
    if (e->report.skipped == e->options.skip_bad)
        return e->options.parts > 1 ? refuse_whole(e, &why, error) : rbt_fail(error, RBT_E_DATA, "%s", why.text);
    e->report.skipped++;
    return RBT_OK;
}

rbt_err rbt_events_next(rbt_events *events, rbt_event_key *keys, size_t room, size_t *count, rbt_error *error)
{
    rbt_events *e = events;
    const char *line, *end;
    bool more = true;
    rbt_err err = RBT_OK;
    *count = 0;
    for (;;) {
        size_t at = e->at, scanned = e->scanned;
        if (!next_line(e, &line, &end)) {
            if (*count > 0 || !more)
                return RBT_OK;
            err = fill(e, &more, error);
            if (err != RBT_OK)
                return err;
            continue;
        }
        bool mine = (end > line || e->options.empty) && is_mine(e, at);
        if (mine && !find_key(&e->options, line, end, &keys[*count])) {
            if (*count > 0 && e->report.skipped == e->options.skip_bad) {
                e->at = at; /* it is refused by the next call */
                e->scanned = scanned;
                return RBT_OK;
            }
            err = refuse(e, line, end, error);
            if (err != RBT_OK)
                return err;
        } else if (mine) {
            ++*count;
        }
        e->line++;
        e->is_rest = false;
        if (*count == room)
            return RBT_OK;
    }
}
