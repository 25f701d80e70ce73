/* A leaky bucket: bytes sent fill it, it drains at the budget's rate; what can wait is sent only while it has room.
 *
 * Kept by every worker and server of a job with --budget (node/early.c). What holds always: when `n` bytes are sent only
 * after rbt_budget_room said that n fit, all bytes counted in any window of time that ends there are at most
 * rate * window + burst. Bytes that cannot wait are counted too, and may overfill it, like a strip that is larger than the bucket
 * (comm/pick.h): then the others wait longer, so that what is sent over a long time keeps to the rate.
 * docs/protocols.md, section 3.1. Proved by tests/unit/test_budget.c, and in the simulator by runtime/check_budget.c.
 */
#ifndef RBT_COMM_BUDGET_H
#define RBT_COMM_BUDGET_H

#include <stdint.h>

#define RBT_BURST_MIN 4096u /* bytes: or messages would have hardly more than their heads */

typedef struct rbt_budget {
    double bytes_per_ns;
    uint64_t burst_bytes;
    double level; /* bytes in the bucket at at_ns */
    uint64_t at_ns;
    uint64_t next_ns; /* not before may what can wait be sent again */
} rbt_budget;

void rbt_budget_init(rbt_budget *budget, uint64_t bytes_per_second, uint64_t burst_bytes);

/* So many bytes may go out now. */
uint64_t rbt_budget_room(rbt_budget *budget, uint64_t now_ns);

/* So many bytes of what can wait should: none before half of the bucket is free, nor soon after the last that went. Small
 * messages cost more than they bring. Then says that they go. */
uint64_t rbt_budget_offer(rbt_budget *budget, uint64_t now_ns);
void rbt_budget_accept(rbt_budget *budget, uint64_t now_ns);

/* Counts bytes that go out now, whether there was room for them or not. */
void rbt_budget_spend(rbt_budget *budget, uint64_t now_ns, uint64_t bytes);

/* What the bucket holds when nothing else is said: 10 ms of the rate. */
uint64_t rbt_burst_of(uint64_t bytes_per_second);

#endif
