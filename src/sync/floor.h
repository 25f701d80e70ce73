/* A vector of counters that only grow, with their minimum and maximum kept: the clocks of the workers, the versions of
 * dyn. A counter can leave (a worker that has run dry, or died); when all have left, the minimum is RBT_UNBOUNDED.
 * Proved by tests/unit/test_sync.c. */
#ifndef RBT_SYNC_FLOOR_H
#define RBT_SYNC_FLOOR_H

#include "rubato.h"

typedef struct rbt_floor {
    uint32_t count;
    uint32_t at_least; /* how many of the live ones stand at `least` */
    uint64_t least;    /* over the live ones */
    uint64_t most;     /* over all, also those that left */
    uint64_t *value;
    bool *gone;
} rbt_floor;

void rbt_floor_init(rbt_floor *floor, uint32_t count);
void rbt_floor_deinit(rbt_floor *floor);
bool rbt_floor_raise(rbt_floor *floor, uint32_t i, uint64_t value); /* true when the minimum rose */
bool rbt_floor_leave(rbt_floor *floor, uint32_t i);                 /* true when the minimum rose */

#endif
