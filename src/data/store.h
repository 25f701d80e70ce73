/* Where data is while it is trained on, and what is kept of it for the next start: --store and --cache.
 *
 * Called by the job. A kept cache lies next to its source as PATH.rbt-cache (of a pattern: rubato-HASH.rbt-cache in the first
 * file's folder), or, when that folder cannot be written to, in $XDG_CACHE_HOME/rubato or ~/.cache/rubato. Every way to read the
 * source has a cache of its own; those that are not the usual one have a number in their names. It holds a
 * number made of its source: the files' real paths, sizes and times of change (in ns), and how they are read, plus the bad rows
 * that were left out, which the report tells again. When
 * that differs or the cache is damaged, it is made again. Always holds: the data is that of rbt_data_read, row for row;
 * a failure to keep a cache costs a note, never the job; jobs at the same time do not meet half a file.
 * Proved by tests/unit/test_store.c and tests/cli/test_store.sh.
 */
#ifndef RBT_DATA_STORE_H
#define RBT_DATA_STORE_H

#include "base/log.h"
#include "rubato.h"

typedef enum rbt_store_level {
    RBT_STORE_MEMORY, /* in memory; a cache is mapped */
    RBT_STORE_DISK,   /* streamed from a cache, a block of rows at a time, in bounded memory */
    RBT_STORE_BOTH,   /* in memory, copied from the cache that is kept on disk */
} rbt_store_level;

typedef struct rbt_storing {
    rbt_store_level level;
    bool keep;                  /* a cache, for the next start (both: always) */
    const rbt_reading *reading; /* how the source is read; its report is written to when it is, or was */
    const rbt_log *log;         /* what became of the cache */
} rbt_storing;

/* With RBT_STORE_DISK and not `keep` the cache is a file without a name, which is gone with the process. */
rbt_err rbt_store_read(const char *path, const rbt_storing *storing, rbt_data *data, rbt_error *error);

#endif
