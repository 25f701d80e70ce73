/* Events: lines of text of which each has a key, one after the other, in bounded memory whatever their number.
 *
 * Called by what counts keys (sketch). A path is what it is for rbt_data_read: a file, a pattern, or "-", plain or
 * compressed. A key is the whole line or one of its columns; its hash is rbt_hash with seed 0 over its bytes. Of a pipe a
 * batch is what is there. Always holds: memory is RBT_EVENTS_BYTES, and what unpacking takes; keys come in the order of
 * files and lines, whatever the size of the batches. Proved by tests/unit/test_events.c.
 */
#ifndef RBT_DATA_EVENTS_H
#define RBT_DATA_EVENTS_H

#include "rubato.h"

#define RBT_EVENTS_BYTES (size_t)(1024 * 1024) /* a line must be shorter */

typedef struct rbt_event_key {
    const char *text; /* n bytes, not ended by a zero; valid until the next batch */
    size_t n;
    uint64_t hash;
} rbt_event_key;

typedef struct rbt_events_options {
    size_t column;     /* from 1; 0: the whole line */
    char separator;    /* of columns; 0: a tab */
    uint64_t skip_bad; /* lines without the column, or with nothing in it, that may be left out */
} rbt_events_options;

typedef struct rbt_events rbt_events;

rbt_err rbt_events_open(const char *path, const rbt_events_options *options, rbt_events **out, rbt_error *error);
void rbt_events_close(rbt_events *events); /* NULL is fine */

/* The next keys, `room` (at least 1) of them at most; none: all have been. Empty lines have no key. A bad line too many
 * is refused with its file:line, after the keys before it. */
rbt_err rbt_events_next(rbt_events *events, rbt_event_key *keys, size_t room, size_t *count, rbt_error *error);

/* What was left out so far. */
void rbt_events_report(const rbt_events *events, rbt_read_report *report);

#endif
