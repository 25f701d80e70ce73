/* Events: lines of text of which each has a key, one after the other, in bounded memory whatever their number.
 *
 * Called by what counts keys (sketch). A path is what it is for rbt_data_read: a file, a pattern, or "-", plain or
 * compressed. A key is the whole line or one of its columns; its hash is rbt_hash with seed 0 over its bytes. Of a pipe a
 * batch is what is there. Several readers can share the lines: pieces of RBT_EVENTS_PIECE bytes of each text are theirs in turn,
 * and each has the lines that begin in its own. Of plain files it reads nothing else; what is compressed each unpacks.
 *
 * Always holds: memory is RBT_EVENTS_BYTES, and what unpacking takes; keys come in the order of files and lines, whatever the size
 * of the batches; every line is in one part, the same whether the file is compressed or not, and too many bad ones are refused as by
 * who reads all. Proved by tests/unit/test_events.c.
 */
#ifndef RBT_DATA_EVENTS_H
#define RBT_DATA_EVENTS_H

#include "data/feed.h"
#include "rubato.h"

#define RBT_EVENTS_BYTES (size_t)(1024 * 1024) /* a line must be shorter */
#define RBT_EVENTS_PIECE 32768u                /* bytes of a text that one part takes in turn */
#define RBT_EVENTS_REST  (size_t)(2 * 1024) /* bytes behind a piece that are read at once, to find its last line's end */

typedef struct rbt_event_key {
    const char *text; /* n bytes, not ended by a zero; valid until the next batch */
    size_t n;
    uint64_t hash;
} rbt_event_key;

typedef struct rbt_events_options {
    size_t column;     /* from 1; 0: the whole line */
    char separator;    /* of columns; 0: a tab */
    bool empty;        /* an empty line has a key, too, of no bytes; only for whole lines */
    uint64_t skip_bad; /* lines without the column, or with nothing in it, that may be left out */
    uint32_t part;     /* only the lines of this one ... */
    uint32_t parts;    /* ... of so many; 0 and 1: all */
    rbt_feed_stop
        *stop; /* of a pipe nobody writes to: it has ended after the last whole line, when this says so; NULL: never */
    const void *context;
    uint32_t piece; /* bytes that a part takes in turn; 0: RBT_EVENTS_PIECE */
} rbt_events_options;

typedef struct rbt_events rbt_events;

rbt_err rbt_events_open(const char *path, const rbt_events_options *options, rbt_events **out, rbt_error *error);
void rbt_events_close(rbt_events *events); /* NULL is fine */

/* The next keys, `room` (at least 1) of them at most; none: all have been. Empty lines have no key unless asked for. A bad line too many
 * is refused with its file:line, after the keys before it. */
rbt_err rbt_events_next(rbt_events *events, rbt_event_key *keys, size_t room, size_t *count, rbt_error *error);

/* What was left out so far. */
void rbt_events_report(const rbt_events *events, rbt_read_report *report);

/* After the last key: the bytes of all texts, unpacked; before it 0. Parts that see others are parts of something else. */
uint64_t rbt_events_total(const rbt_events *events);

#endif
