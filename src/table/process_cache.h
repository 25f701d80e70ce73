/* The process cache: the newest copy of every block that any worker of a process has seen.
 *
 * A worker whose own copy is too old looks here before it asks the server (SSPTable's second level; the worker's own
 * copies in cache.h are the first). A copy is good for a worker if it meets the staleness bound and contains all of
 * that worker's own updates; for that every copy carries, for each worker of the process, how many of its clocks are in
 * it. Copies are snapshots: sharing one costs a reference. Not locked: whoever shares it between threads locks around
 * the calls (node/topology.h, rbt_process). Proved by tests/unit/test_process_cache.c and by the swarm.
 */
#ifndef RBT_TABLE_PROCESS_CACHE_H
#define RBT_TABLE_PROCESS_CACHE_H

#include "table/layout.h"
#include "table/snap.h"

/* How many of a worker's clocks are in a server's blocks: `clocks` in all of them, and one more in those before
 * `reach`: its push of that clock is still arriving. */
typedef struct rbt_applied {
    uint64_t clocks;
    uint64_t reach; /* a place (rbt_place_of); 0: nothing is arriving */
    uint64_t early; /* ... and in the others so many early sends of that clock */
    uint64_t life;  /* of the life (incarnation) in which it made these; they are taken back when it dies */
} rbt_applied;

/* Where a block stands in the order in which pushes name blocks. */
static inline uint64_t rbt_place_of(uint32_t table, uint32_t block)
{
    return (uint64_t)table << 32 | block;
}

static inline uint64_t rbt_applied_to(rbt_applied applied, uint32_t table, uint32_t block)
{
    return applied.clocks + (rbt_place_of(table, block) < applied.reach);
}

/* The same of one block. */
static inline rbt_applied rbt_applied_of(rbt_applied applied, uint32_t table, uint32_t block)
{
    bool is_ahead = rbt_place_of(table, block) < applied.reach;

    return (rbt_applied){
        .clocks = applied.clocks + is_ahead, .early = is_ahead ? 0 : applied.early, .life = applied.life};
}

typedef struct rbt_shared_copy {
    rbt_snap *base; /* NULL: nobody has read it */
    uint64_t slowest;
    uint64_t version;
    rbt_applied *applied; /* per worker of the process: what of its own is in it */
} rbt_shared_copy;

typedef struct rbt_process_cache {
    uint32_t tables;
    const rbt_layout *layouts;
    uint32_t first_worker; /* the process has workers first .. first + workers - 1 */
    uint32_t workers;
    rbt_shared_copy **copies; /* per table and block */
} rbt_process_cache;

void rbt_process_cache_init(rbt_process_cache *cache, const rbt_layout *layouts, uint32_t tables, uint32_t first_worker,
                            uint32_t workers);
void rbt_process_cache_deinit(rbt_process_cache *cache);

/* A copy that is good for a worker at `clock` which needs `need` of the slowest, or false. `found` gets a reference to
 * base; `applied` is not set. */
bool rbt_process_cache_find(const rbt_process_cache *cache, uint32_t table, uint32_t block, uint32_t worker,
                            uint64_t clock, uint64_t need, rbt_shared_copy *found, rbt_applied *included);

/* A worker has received this copy; it is kept when it is not older than what is there. `applied` has one entry per
 * worker. */
void rbt_process_cache_offer(rbt_process_cache *cache, uint32_t table, uint32_t block, rbt_snap *base, uint64_t slowest,
                             uint64_t version, const rbt_applied *applied);

#endif
