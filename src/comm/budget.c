/* The leaky bucket; the contract is in budget.h. */
#include "comm/budget.h"

void rbt_budget_init(rbt_budget *budget, uint64_t bytes_per_second, uint64_t burst_bytes)
{
    *budget = (rbt_budget){.bytes_per_ns = (double)bytes_per_second / 1e9, .burst_bytes = burst_bytes};
}

/* Time that goes back (threads read their clocks at different moments) drains nothing. */
static void drain(rbt_budget *budget, uint64_t now_ns)
{
    if (now_ns <= budget->at_ns)
        return;
    budget->level -= budget->bytes_per_ns * (double)(now_ns - budget->at_ns);
#ifdef RBT_MUTANT_BUDGET /* drains when nothing drains: the swarm must notice */
    budget->level = 0;
#endif
    if (budget->level < 0)
        budget->level = 0;
    budget->at_ns = now_ns;
}

uint64_t rbt_budget_room(rbt_budget *budget, uint64_t now_ns)
{
    drain(budget, now_ns);
    return budget->level < (double)budget->burst_bytes ? (uint64_t)((double)budget->burst_bytes - budget->level) : 0;
}

uint64_t rbt_budget_offer(rbt_budget *budget, uint64_t now_ns)
{
    uint64_t room = now_ns >= budget->next_ns ? rbt_budget_room(budget, now_ns) : 0;

    return room >= budget->burst_bytes / 2 ? room : 0;
}

/* A quarter of the burst can have drained until the next. */
void rbt_budget_accept(rbt_budget *budget, uint64_t now_ns)
{
    budget->next_ns = now_ns + (uint64_t)((double)budget->burst_bytes / budget->bytes_per_ns / 4);
}

void rbt_budget_spend(rbt_budget *budget, uint64_t now_ns, uint64_t bytes)
{
    drain(budget, now_ns);
    budget->level += (double)bytes;
}

uint64_t rbt_burst_of(uint64_t bytes_per_second)
{
    uint64_t burst = bytes_per_second / 100;

    return burst > RBT_BURST_MIN ? burst : RBT_BURST_MIN;
}
