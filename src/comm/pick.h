/* What goes first when there is room for a part only (Bösen's priorities; docs/protocols.md, section 3).
 *
 * A candidate is a strip of a block (table/strips.h). rbt_pick_score says how much it matters, rbt_pick_sort puts those
 * that matter most first; equal ones keep an order that depends on nothing but the candidates, so that the simulator's
 * runs repeat. Called by node/early.c. Proved by tests/unit/test_budget.c.
 */
#ifndef RBT_COMM_PICK_H
#define RBT_COMM_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* In the order of --priority's words. */
typedef enum rbt_priority {
    RBT_PRIORITY_ROUND_ROBIN, /* what has waited longest */
    RBT_PRIORITY_RANDOM,
    RBT_PRIORITY_MAGNITUDE, /* what has changed most */
    RBT_PRIORITY_RELATIVE,  /* ... in proportion to what it is */
} rbt_priority;

typedef struct rbt_candidate {
    uint32_t table;
    uint32_t block;
    uint32_t strip;
    double score;
} rbt_candidate;

/* How much a strip matters that has waited since `since` (a count that rises), has changed by `change` in all (the sum of
 * magnitudes) and holds `value` (likewise; 0: nothing, or it is not known). */
double rbt_pick_score(rbt_priority priority, uint64_t since, double change, double value, rbt_rng *rng);

void rbt_pick_sort(rbt_candidate *candidates, size_t n);

#endif
