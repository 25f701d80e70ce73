/* What goes first when there is room for a part only (Bösen's priorities; docs/protocols.md, section 3.1).
 *
 * A candidate is a strip of a block (table/strips.h). rbt_pick_score says how much it matters; rbt_pick_best takes those that
 * matter most, one by one while there is room, so that the many that are not sent are not sorted. Equal ones
 * come in an order that depends on nothing but the candidates, so that the simulator's runs repeat. Called by node/early.c
 * and early_server.c. Proved by tests/unit/test_budget.c.
 */
#ifndef RBT_COMM_PICK_H
#define RBT_COMM_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/rng.h"

/* In the order of --priority's words. */
typedef enum rbt_priority {
    RBT_PRIORITY_ROUND_ROBIN, /* what has waited longest */
    RBT_PRIORITY_RANDOM,
    RBT_PRIORITY_MAGNITUDE, /* what has changed most */
    RBT_PRIORITY_RELATIVE,  /* ... in proportion to what it is (rbt_changes_magnitude) */
} rbt_priority;

typedef struct rbt_candidate {
    uint32_t table;
    uint32_t block;
    uint32_t strip;
    uint32_t bytes;  /* what it takes to send it, without what names its block */
    uint32_t copies; /* to how many it goes */
    double score;
} rbt_candidate;

typedef RBT_ARRAY(rbt_candidate) rbt_candidates;

/* How much a strip matters that has waited since `since` (a count that rises) and has changed by `change`, which is the sum
 * of magnitudes, or of relative ones where those are the priority. */
double rbt_pick_score(rbt_priority priority, uint64_t since, double change, rbt_rng *rng);

/* Picks the best, one after the other, while they fit into `room` bytes: each takes its bytes, and the first of a block `head`
 * bytes that name it, as often as it has copies. The first goes in any case: it may be larger than any room there will ever be, and
 * all others wait behind it. They are moved to the end, in the order of their places; how many. */
size_t rbt_pick_best(rbt_candidates *candidates, uint64_t room, uint64_t head);

#endif
