/* A cache made from blocks of rows, in bounded memory: for data that is larger than memory.
 *
 * Called by store.c and by `rubato convert`. The arrays of a cache stand one behind the other in the file, and how
 * long each becomes is known at the end: so each grows in a file of its own next to the target, which has no name and
 * is gone with the process, and all are copied into the target at the end. Always holds: the bytes are those
 * rbt_cache_write would have written; the file appears complete or not at all. Proved by tests/unit/test_store.c.
 */
#ifndef RBT_DATA_CACHE_BUILD_H
#define RBT_DATA_CACHE_BUILD_H

#include <stdatomic.h>

#include "rubato.h"

/* How the rows of a path become a cache. */
typedef struct rbt_cache_building {
    const rbt_reading *reading;
    uint64_t source; /* the number of the path's source (cache.h), without the rows left out; 0: none */
    bool whole;      /* what has to be read whole is taken, too, be it ratings */
    /* Asked when all has been read, for a word that ends it with RBT_E_INTERRUPTED once it is true: what has no name till
     * then is gone with the process, and may have one from then on. NULL: nobody will. */
    const atomic_bool *(*stop)(void);
} rbt_cache_building;

/* The number of a cache that has been read so: of a source that can be found again. */
static inline uint64_t rbt_cache_number(uint64_t source, const rbt_reading *reading)
{
    return source != 0 ? source + reading->report->skipped : 0;
}

/* The rows of the path, streamed (stream.h), to a cache. RBT_E_UNSUPPORTED: they have to be in memory together to
 * become one; of those some were read, so that they can be read again only from files. */
rbt_err rbt_cache_build(const char *path, const rbt_cache_building *how, const char *to, rbt_error *error);

typedef struct rbt_cache_builder rbt_cache_builder;

rbt_err rbt_cache_builder_create(const char *path, rbt_cache_builder **out, rbt_error *error);
void rbt_cache_builder_destroy(rbt_cache_builder *builder);

rbt_err rbt_cache_builder_add(rbt_cache_builder *builder, const rbt_data *block, rbt_error *error);

/* Puts the cache in place, for a source (cache.h). `origin`: how its data was read (origin.h), or NULL. The indices of the first `low` features are counted up by one. */
rbt_err rbt_cache_builder_finish(rbt_cache_builder *builder, size_t low, const char *origin, uint64_t source,
                                 rbt_error *error);

#endif
