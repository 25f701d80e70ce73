/* Counters with their minimum; the contract is in floor.h. */
#include "sync/floor.h"

#include "base/error.h"
#include "base/mem.h"

void rbt_floor_init(rbt_floor *floor, uint32_t count)
{
    *floor = (rbt_floor){.count = count, .at_least = count, .least = count > 0 ? 0 : RBT_UNBOUNDED};
    floor->value = rbt_alloc(count, sizeof *floor->value);
    floor->gone = rbt_alloc(count, sizeof *floor->gone);
}

void rbt_floor_deinit(rbt_floor *floor)
{
    rbt_free(floor->value);
    rbt_free(floor->gone);
}

/* One of the lowest has moved on; finds the new minimum when it was the last one there. */
static bool leave_least(rbt_floor *floor)
{
    if (--floor->at_least > 0)
        return false;
    floor->least = RBT_UNBOUNDED;
    for (uint32_t i = 0; i < floor->count; i++) {
        if (floor->gone[i] || floor->value[i] > floor->least)
            continue;
        floor->at_least = floor->value[i] == floor->least ? floor->at_least + 1 : 1;
        floor->least = floor->value[i];
    }
    return true;
}

bool rbt_floor_raise(rbt_floor *floor, uint32_t i, uint64_t value)
{
    uint64_t old;

    RBT_ASSERT(i < floor->count);
    old = floor->value[i];
    RBT_ASSERT(value >= old);
    floor->value[i] = value;
    if (value > floor->most)
        floor->most = value;
    return !floor->gone[i] && value > old && old == floor->least && leave_least(floor);
}

bool rbt_floor_leave(rbt_floor *floor, uint32_t i)
{
    RBT_ASSERT(i < floor->count);
    if (floor->gone[i])
        return false;
    floor->gone[i] = true;
    return floor->value[i] == floor->least && leave_least(floor);
}
