/* Token queues: counters that keep neighbours from getting too far apart (Hop, section 4.2; docs/protocols.md, section 6).
 *
 * TokenQ(j->i) belongs to j and is used by i, one of j's in-neighbours. It starts with max_gap tokens; j puts one in for
 * every iteration it enters, i takes one out for every iteration it enters, so that always
 *
 *     size + tokens under way = iter(j) - iter(i) + max_gap
 *
 * and i, which cannot take what is not there, is never more than max_gap ahead of j. The counter lives with its user. Tokens
 * travel as "I have entered iteration k", so that a message that comes twice puts nothing twice. Called by the peer; the
 * identity is checked after every event of a simulation (runtime/check_hop.c). Proved by tests/unit/test_token_queue.c.
 */
#ifndef RBT_SYNC_TOKEN_QUEUE_H
#define RBT_SYNC_TOKEN_QUEUE_H

#include "base/error.h"

typedef struct rbt_token_queue {
    uint64_t max_gap;
    int64_t size;  /* below 0: a neighbour that a repair has given us is further behind than anybody may fall */
    uint64_t told; /* the iteration that the owner has entered, as the last token tells */
} rbt_token_queue;

/* Of a neighbour in iteration `owner`, for a user in iteration `user`; both are 0 at the start. */
static inline rbt_token_queue rbt_token_queue_of(uint64_t max_gap, uint64_t owner, uint64_t user)
{
    return (rbt_token_queue){max_gap, (int64_t)(owner + max_gap) - (int64_t)user, owner};
}

/* The owner has entered this iteration: as many tokens as iterations since the last time. */
static inline void rbt_token_queue_tell(rbt_token_queue *queue, uint64_t owner)
{
    if (owner <= queue->told)
        return;
    queue->size += (int64_t)(owner - queue->told);
    queue->told = owner;
}

static inline bool rbt_token_queue_may_take(const rbt_token_queue *queue, uint64_t n)
{
    return queue->size >= (int64_t)n;
}

/* The user enters n more iterations. */
static inline void rbt_token_queue_take(rbt_token_queue *queue, uint64_t n)
{
    RBT_ASSERT(rbt_token_queue_may_take(queue, n));
    queue->size -= (int64_t)n;
}

/* How far the owner is ahead of the user, as it has told: iter(j) - iter(i). */
static inline int64_t rbt_token_queue_ahead(const rbt_token_queue *queue)
{
    return queue->size - (int64_t)queue->max_gap;
}

/* The identity. */
static inline bool rbt_token_queue_holds(const rbt_token_queue *queue, uint64_t iter_owner, uint64_t iter_user,
                                         uint64_t under_way)
{
    return queue->size + (int64_t)(under_way + iter_user) == (int64_t)(iter_owner + queue->max_gap);
}

/* The most tokens there can ever be, given the hops from owner to user. */
static inline uint64_t rbt_token_queue_most(uint64_t max_gap, uint32_t hops)
{
    return max_gap * ((uint64_t)hops + 1);
}

/* How many iterations a peer advances at once when the slowest of its out-neighbours is `ahead` of it: up to that one, never
 * past it, at most `limit`, and only when it is at least `trigger` behind; 0: one, as usual. */
static inline uint64_t rbt_jump_length(int64_t ahead, uint64_t limit, uint64_t trigger)
{
    uint64_t length = ahead < 2 || (uint64_t)ahead < trigger ? 0 : (uint64_t)ahead;

    length = length < limit ? length : limit;
    return length < 2 ? 0 : length;
}

#endif
