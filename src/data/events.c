/* Events. Contract in events.h; proved by tests/unit/test_events.c. */
#include "data/events.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/chunks.h"
#include "data/feed.h"
#include "data/paths.h"

struct rbt_events {
    rbt_events_options options;
    rbt_paths paths;
    size_t next;    /* file to open */
    rbt_feed *feed; /* NULL: none is open */
    char *buffer;   /* RBT_EVENTS_BYTES */
    size_t at, used;
    size_t scanned; /* from `at` on up to here no line ends */
    bool ended;     /* nothing of the file is missing in the buffer */
    size_t line;    /* of what begins at `at` */
    rbt_read_report report;
};

rbt_err rbt_events_open(const char *path, const rbt_events_options *options, rbt_events **out, rbt_error *error)
{
    rbt_events *e = rbt_alloc(1, sizeof *e);
    e->options = *options;
    if (e->options.separator == '\0')
        e->options.separator = '\t';
    e->buffer = rbt_try_alloc_raw(RBT_EVENTS_BYTES, 1);
    rbt_err err = e->buffer != NULL ? rbt_paths_list(path, &e->paths, error)
                                    : rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory to read it", path);
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
    rbt_paths_free(&events->paths);
    rbt_free(events->buffer);
    rbt_free(events);
}

void rbt_events_report(const rbt_events *events, rbt_read_report *report)
{
    *report = events->report;
}

/* --------------------------------------------------------------------------------------------------------- lines */

/* Reads more of the file, or opens the next one; false when there is none. */
static rbt_err fill(rbt_events *e, bool *more, rbt_error *error)
{
    rbt_err err = RBT_OK;
    size_t got = 0;
    *more = true;
    if (e->feed != NULL && e->ended) {
        rbt_feed_close(e->feed);
        e->feed = NULL;
    }
    if (e->feed == NULL) {
        *more = e->next < e->paths.count;
        e->at = e->used = e->scanned = 0;
        e->line = 1;
        e->ended = false;
        return *more ? rbt_feed_open(e->paths.at[e->next++], &e->feed, error) : RBT_OK;
    }
    if (e->at > 0) {
        memmove(e->buffer, e->buffer + e->at, e->used - e->at);
        e->used -= e->at;
        e->scanned -= e->at;
        e->at = 0;
    }
    if (e->used == RBT_EVENTS_BYTES)
        return rbt_fail(error, RBT_E_LIMIT, "%s:%zu: the line has %zu bytes or more, which is the limit",
                        rbt_feed_name(e->feed), e->line, RBT_EVENTS_BYTES);
    err = rbt_feed_read(e->feed, e->buffer + e->used, RBT_EVENTS_BYTES - e->used, &got, error);
    if (err == RBT_OK) {
        e->used += got;
        e->ended = got == 0;
    }
    return err;
}

/* The next line in the buffer, without its end; false: there is no whole one. */
static bool next_line(rbt_events *e, const char **line, const char **end)
{
    const char *from = e->buffer + e->scanned, *stop = e->buffer + e->used;
    const char *newline = from < stop ? memchr(from, '\n', (size_t)(stop - from)) : NULL;
    e->scanned = e->used;
    if (newline == NULL && (!e->ended || e->at == e->used))
        return false;
    *line = e->buffer + e->at;
    *end = newline != NULL ? newline : stop;
    e->at = e->scanned = newline != NULL ? (size_t)(newline - e->buffer) + 1 : e->used;
    if (*end > *line && (*end)[-1] == '\r')
        (*end)--;
    return true;
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
    return key->n > 0;
}

static rbt_err refuse(rbt_events *e, const char *line, const char *end, rbt_error *error)
{
    char shown[RBT_TOKEN_ROOM];
    rbt_error why;
    (void)rbt_fail(&why, RBT_E_DATA, "%s:%zu: '%s': expected a key in column %zu", rbt_feed_name(e->feed), e->line,
                   rbt_text_shown(line, end, shown), e->options.column);
    if (e->report.skipped == 0)
        e->report.first = why;
    if (e->report.skipped == e->options.skip_bad)
        return rbt_fail(error, RBT_E_DATA, "%s", why.text);
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
        if (end > line && !find_key(&e->options, line, end, &keys[*count])) {
            if (*count > 0 && e->report.skipped == e->options.skip_bad) {
                e->at = at; /* it is refused by the next call */
                e->scanned = scanned;
                return RBT_OK;
            }
            err = refuse(e, line, end, error);
            if (err != RBT_OK)
                return err;
        } else if (end > line) {
            ++*count;
        }
        e->line++;
        if (*count == room)
            return RBT_OK;
    }
}
