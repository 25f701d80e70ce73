/* Priorities; the contract is in pick.h. */
#include "comm/pick.h"

#include <stdlib.h>

#include "base/map.h"

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

static int compare_places(const void *a, const void *b)
{
    const rbt_candidate *x = a, *y = b;

    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->strip < y->strip ? -1 : x->strip > y->strip;
}

/* Does x go before y? */
static bool is_before(const rbt_candidate *x, const rbt_candidate *y)
{
    return x->score != y->score ? x->score > y->score : compare_places(x, y) < 0;
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

/* Moves the best of a heap of n to their end. */
static void take_best(rbt_candidate *heap, size_t n)
{
    rbt_candidate best = heap[0];

    heap[0] = heap[n - 1];
    heap[n - 1] = best;
    sink(heap, n - 1, 0);
}

size_t rbt_pick_best(rbt_candidates *candidates, uint64_t room, uint64_t head)
{
    rbt_candidate *heap = candidates->at;
    size_t left = candidates->count, picked;
    rbt_map named = {0};
    bool is_first = true; /* of those that cost something */

    for (size_t i = left / 2; i-- > 0;)
        sink(heap, left, i);
    for (uint64_t bytes; left > 0; room -= bytes, left--) {
        uint64_t block = (uint64_t)heap[0].table << 32 | heap[0].block;
        bool is_new = rbt_map_get(&named, block) == NULL;

        bytes = (heap[0].bytes + (is_new ? head : 0)) * heap[0].copies;
        if (bytes > room && !is_first)
            break;
        is_first = is_first && bytes == 0;
        bytes = bytes < room ? bytes : room;
        (void)rbt_map_put(&named, block, &is_new);
        take_best(heap, left);
    }
    rbt_map_deinit(&named);
    picked = candidates->count - left;
    if (picked > 1)
        qsort(heap + left, picked, sizeof *heap, compare_places);
    return picked;
}
