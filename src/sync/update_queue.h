/* The updates of one sender that have come and may still be of use, by iteration (Hop, sections 4.1 and 6.1).
 *
 * A rotating queue: what belongs to iteration k is in place k mod room, so that finding and replacing take one step. Room is
 * made as the sender gets further ahead of the receiver; how far it can is bounded by the protocol (max_gap with tokens,
 * sync/gap.h without), and the peer asserts that bound on all its queues together: at most (1 + max_gap) * |N_in| updates. What
 * comes from further ahead than RBT_UPDATE_QUEUE_MAX iterations can only be nonsense, and is refused.
 *
 * Called by the peer, which has one for every in-neighbour. Never waits. Updates are references to snapshots. Proved by
 * tests/unit/test_update_queue.c against a plain list.
 */
#ifndef RBT_SYNC_UPDATE_QUEUE_H
#define RBT_SYNC_UPDATE_QUEUE_H

#include "table/snap.h"

#define RBT_UPDATE_QUEUE_MAX ((uint64_t)1 << 20) /* iterations between the oldest update and the newest */

typedef struct rbt_update {
    uint64_t iteration;
    bool used;   /* reduced at least once */
    rbt_snap *x; /* NULL: an empty place */
} rbt_update;

typedef struct rbt_update_queue {
    rbt_update *at;
    uint64_t room;  /* a power of two, or 0 */
    uint64_t first; /* all that is there is of iterations first .. last; when nothing is, of no meaning */
    uint64_t last;
    size_t count;
} rbt_update_queue;

void rbt_update_queue_deinit(rbt_update_queue *queue); /* all zero is an empty one */

/* Keeps a reference; false when there is one of that iteration already, or it is too far from the others. */
bool rbt_update_queue_put(rbt_update_queue *queue, uint64_t iteration, rbt_snap *x);

/* That of an iteration, or the newest; NULL when there is none. */
rbt_update *rbt_update_queue_get(const rbt_update_queue *queue, uint64_t iteration);
rbt_update *rbt_update_queue_newest(const rbt_update_queue *queue);

/* Drops what is older than `oldest`; returns how many of those had never been used. */
size_t rbt_update_queue_drop(rbt_update_queue *queue, uint64_t oldest);

#endif
