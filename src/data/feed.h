/* A file's text from its beginning to its end, piece by piece: plain, gzip or Zstandard, a file or a pipe.
 *
 * Called by stream.c and events.c. Always holds: memory does not grow with the file; what is refused is what unpack.c refuses of the
 * whole file. Proved by tests/unit/test_stream.c.
 */
#ifndef RBT_DATA_FEED_H
#define RBT_DATA_FEED_H

#include "rubato.h"

typedef struct rbt_feed rbt_feed;

/* "-" is the standard input. The path must outlive the feed. */
rbt_err rbt_feed_open(const char *path, rbt_feed **out, rbt_error *error);

/* The same, but whoever waits for a pipe asks every now and then whether to go on waiting: if not, the text ends there.
 * Has it ended so? */
typedef bool rbt_feed_stop(const void *context);
rbt_err rbt_feed_open_until(const char *path, rbt_feed_stop *stop, const void *context, rbt_feed **out,
                            rbt_error *error);
bool rbt_feed_was_stopped(const rbt_feed *feed);
void rbt_feed_close(rbt_feed *feed);

/* A plain file from that byte on: nothing before it is read. */
rbt_err rbt_feed_open_at(const char *path, uint64_t at, rbt_feed **out, rbt_error *error);

/* Goes on from that byte: of a feed that was opened so. */
rbt_err rbt_feed_seek(rbt_feed *feed, uint64_t at, rbt_error *error);

/* For messages: the path, or "standard input". */
const char *rbt_feed_name(const rbt_feed *feed);

/* Some bytes of text, at least one, at most `room`; 0 at the end. Waits for whoever writes to the pipe. */
rbt_err rbt_feed_read(rbt_feed *feed, char *to, size_t room, size_t *got, rbt_error *error);

/* Would a read return without waiting for somebody else? */
bool rbt_feed_ready(const rbt_feed *feed);

/* Is it a file that is there as a whole; is it not compressed? */
bool rbt_feed_is_file(const rbt_feed *feed);
bool rbt_feed_is_plain(const rbt_feed *feed);

#endif
