/* Priorities; the contract is in pick.h. */
#include "comm/pick.h"

#include <stdbool.h>

double rbt_pick_score(rbt_priority priority, uint64_t since, double change, rbt_rng *rng)
{
    switch (priority) {
    case RBT_PRIORITY_ROUND_ROBIN:
        return -(double)since;
    case RBT_PRIORITY_RANDOM:
        return rbt_rng_f64(rng);
    case RBT_PRIORITY_MAGNITUDE:
    case RBT_PRIORITY_RELATIVE:
        return change;
    }
    return 0;
}

/* Does x go before y? */
static bool is_before(const rbt_candidate *x, const rbt_candidate *y)
{
    if (x->score != y->score)
        return x->score > y->score;
    if (x->table != y->table)
        return x->table < y->table;
    if (x->block != y->block)
        return x->block < y->block;
    return x->strip < y->strip;
}

/* Lets a candidate of a heap of n sink to where it belongs. */
static void sink(rbt_candidate *heap, size_t n, size_t i)
{
    rbt_candidate sinking = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &sinking))
            break;
        heap[i] = heap[child];
    }
    heap[i] = sinking;
}

void rbt_pick_begin(rbt_candidate *candidates, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(candidates, n, i);
}

const rbt_candidate *rbt_pick_next(rbt_candidate *candidates, size_t *left)
{
    rbt_candidate best = candidates[0];
    size_t last = --*left;

    candidates[0] = candidates[last];
    candidates[last] = best;
    sink(candidates, last, 0);
    return &candidates[last];
}
