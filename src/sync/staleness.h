/* Who may go on: the staleness bound of BSP, SSP and ASP as small pure functions (docs/protocols.md, section 1).
 * Clock c = the number of clocks a worker has finished = the number of the clock it computes. Proved by
 * tests/unit/test_sync.c, and by the simulator's checker, which states the bound in its own words. */
#ifndef RBT_SYNC_STALENESS_H
#define RBT_SYNC_STALENESS_H

#include "rubato.h"

/* What the slowest worker must have finished before a worker at `clock` may read with this staleness. */
static inline uint64_t rbt_ssp_need(uint64_t clock, uint64_t staleness)
{
#ifdef RBT_MUTANT_STALENESS /* off by one: the swarm must notice */
    return clock > staleness + 1 && staleness != RBT_UNBOUNDED ? clock - staleness - 1 : 0;
#else
    return clock > staleness ? clock - staleness : 0;
#endif
}

/* May a worker that needs `need` read when the slowest has finished `slowest` clocks? */
static inline bool rbt_ssp_may_read(uint64_t need, uint64_t slowest)
{
    return slowest >= need;
}

/* How far the job is for an observer: in rounds of as many updates as there are workers, or what the slowest has finished
 * where that is more (some have run dry). Under BSP the two are the same; under SSP rounds pass while the slowest works. */
static inline uint64_t rbt_rounds(uint64_t updates, uint32_t workers, uint64_t slowest)
{
    return updates / workers > slowest ? updates / workers : slowest;
}

/* The version of dyn an update belongs to, worked out by the worker that made it (docs/protocols.md, section 2).
 *
 * `base` is the version of the copy it was computed from, `since` the worker's own clocks since that copy, `slowest`
 * what the copy says of the slowest worker. An update never opens a version more than `staleness` past the slowest
 * clock: that keeps the live versions to staleness + 1; and it never falls behind the worker's own clock. */
static inline uint64_t rbt_dyn_version(uint64_t base, uint64_t since, uint64_t slowest, uint64_t clock,
                                       uint64_t staleness)
{
    uint64_t version = base + since;
    uint64_t limit = staleness < RBT_UNBOUNDED - slowest ? slowest + staleness : RBT_UNBOUNDED;

    if (version > limit)
        version = limit;
    return version > clock ? version : clock;
}

/* The lowest version a worker can name after it named `version` in `clock`, knowing `slowest`: one more, unless the
 * bound holds it down; worked out alike by the worker and by its servers. */
static inline uint64_t rbt_dyn_next(uint64_t version, uint64_t slowest, uint64_t clock, uint64_t staleness)
{
    return rbt_dyn_version(version, 1, slowest, clock + 1, staleness);
}

#endif
