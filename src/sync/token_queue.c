/* Token queues; the contract is in token_queue.h. */
#include "sync/token_queue.h"

uint64_t rbt_token_queue_jump(const rbt_token_queue *queues, size_t n, uint64_t limit, uint64_t trigger)
{
    uint64_t behind = n > 0 ? RBT_UNBOUNDED : 0;

    for (size_t j = 0; j < n; j++) { /* size - max_gap = iter(j) - iter(i) */
        uint64_t ahead = queues[j].size > queues[j].max_gap ? queues[j].size - queues[j].max_gap : 0;

        behind = ahead < behind ? ahead : behind;
    }
    if (behind <= trigger)
        return 0;
    return behind < limit ? behind : limit;
}
