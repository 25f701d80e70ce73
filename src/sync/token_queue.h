/* Token queues: counters that keep neighbours from getting too far apart (Hop, section 4.2; docs/protocols.md, section 6).
 *
 * TokenQ(j->i) belongs to j and is used by i, one of j's in-neighbours. It starts with max_gap tokens; j puts one in for
 * every iteration it enters, i takes one out for every iteration it enters, so that always
 *
 *     size = iter(j) - iter(i) + max_gap
 *
 * and i, which cannot take what is not there, is never more than max_gap ahead of j. Called by the peer; the identity is
 * asserted after every event. Proved by tests/unit/test_token_queue.c.
 */
#ifndef RBT_SYNC_TOKEN_QUEUE_H
#define RBT_SYNC_TOKEN_QUEUE_H

#include "base/error.h"

typedef struct rbt_token_queue {
    uint64_t max_gap;
    uint64_t size;
} rbt_token_queue;

static inline rbt_token_queue rbt_token_queue_of(uint64_t max_gap)
{
    RBT_ASSERT(max_gap > 0);
    return (rbt_token_queue){max_gap, max_gap};
}

/* The owner has entered n more iterations. */
static inline void rbt_token_queue_put(rbt_token_queue *queue, uint64_t n)
{
    RBT_ASSERT(n < RBT_UNBOUNDED - queue->size);
    queue->size += n;
}

/* The user wants to enter n more iterations: false, and nothing is taken, when there are not enough. */
static inline bool rbt_token_queue_take(rbt_token_queue *queue, uint64_t n)
{
    if (queue->size < n)
        return false;
    queue->size -= n;
    return true;
}

/* The identity. `under_way`: tokens put that have not arrived, where the counter lives with the user. */
static inline bool rbt_token_queue_holds(const rbt_token_queue *queue, uint64_t iter_owner, uint64_t iter_user,
                                         uint64_t under_way)
{
    return queue->size + under_way + iter_user == iter_owner + queue->max_gap;
}

/* The most tokens there can ever be, given the hops from owner to user. */
static inline uint64_t rbt_token_queue_most(uint64_t max_gap, uint32_t hops)
{
    return max_gap * ((uint64_t)hops + 1);
}

/* How many iterations may a peer skip at once, given the queues of all its out-neighbours but itself (whom it is never
 * behind)? Up to the slowest of them, never past it, at most `limit`, and only when it is more than `trigger` behind; 0: go
 * on as usual. */
uint64_t rbt_token_queue_jump(const rbt_token_queue *queues, size_t n, uint64_t limit, uint64_t trigger);

#endif
