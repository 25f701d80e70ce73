/* The process cache; the contract is in process_cache.h. */
#include "table/process_cache.h"

#include "base/error.h"
#include "base/mem.h"

void rbt_process_cache_init(rbt_process_cache *cache, const rbt_layout *layouts, uint32_t tables, uint32_t first_worker,
                            uint32_t workers)
{
    *cache =
        (rbt_process_cache){.tables = tables, .layouts = layouts, .first_worker = first_worker, .workers = workers};
    cache->copies = rbt_alloc(tables, sizeof *cache->copies);
    for (uint32_t t = 0; t < tables; t++)
        cache->copies[t] = rbt_alloc(layouts[t].blocks, sizeof **cache->copies);
}

void rbt_process_cache_deinit(rbt_process_cache *cache)
{
    for (uint32_t t = 0; t < cache->tables; t++) {
        for (uint32_t b = 0; b < cache->layouts[t].blocks; b++) {
            rbt_snap_unref(cache->copies[t][b].base);
            rbt_free(cache->copies[t][b].applied);
        }
        rbt_free(cache->copies[t]);
    }
    rbt_free(cache->copies);
}

bool rbt_process_cache_find(const rbt_process_cache *cache, uint32_t table, uint32_t block, uint32_t worker,
                            uint64_t clock, uint64_t need, rbt_shared_copy *found, uint64_t *included)
{
    const rbt_shared_copy *copy = &cache->copies[table][block];

    RBT_ASSERT(worker - cache->first_worker < cache->workers);
    if (copy->base == NULL || copy->slowest < need || copy->applied[worker - cache->first_worker] < clock)
        return false;
    *found = (rbt_shared_copy){.base = rbt_snap_ref(copy->base), .slowest = copy->slowest, .version = copy->version};
    *included = copy->applied[worker - cache->first_worker];
    return true;
}

void rbt_process_cache_offer(rbt_process_cache *cache, uint32_t table, uint32_t block, rbt_snap *base, uint64_t slowest,
                             uint64_t version, const rbt_applied *applied)
{
    rbt_shared_copy *copy = &cache->copies[table][block];

    if (copy->applied == NULL)
        copy->applied = rbt_alloc(cache->workers, sizeof *copy->applied);
    if (slowest < copy->slowest)
        return;
    for (uint32_t i = 0; i < cache->workers; i++) /* answers of one server can overtake each other on the way to us */
        if (rbt_applied_to(applied[i], table, block) < copy->applied[i])
            return;
    for (uint32_t i = 0; i < cache->workers; i++)
        copy->applied[i] = rbt_applied_to(applied[i], table, block);
    rbt_snap_ref(base);
    rbt_snap_unref(copy->base);
    copy->base = base;
    copy->slowest = slowest;
    copy->version = version;
}
