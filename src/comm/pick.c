/* Priorities; the contract is in pick.h. */
#include "comm/pick.h"

#include <stdlib.h>

double rbt_pick_score(rbt_priority priority, uint64_t since, double change, double value, rbt_rng *rng)
{
    switch (priority) {
    case RBT_PRIORITY_ROUND_ROBIN:
        return -(double)since;
    case RBT_PRIORITY_RANDOM:
        return rbt_rng_f64(rng);
    case RBT_PRIORITY_MAGNITUDE:
        return change;
    case RBT_PRIORITY_RELATIVE:
        return value > 0 ? change / value : change;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const rbt_candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->strip < y->strip ? -1 : x->strip > y->strip;
}

void rbt_pick_sort(rbt_candidate *candidates, size_t n)
{
    if (n > 1)
        qsort(candidates, n, sizeof *candidates, compare);
}
