/* The update queue of a peer: parameters that came in, tagged with iteration and sender (Hop, sections 4.1 and 6.1).
 *
 * Rotating queues, one per iteration, index iter mod (ahead + 1), and in each a place for every in-neighbour: so there
 * are never more than (1 + ahead) * |N_in| entries, and no list that grows. `ahead` is how far a sender can be ahead of
 * the receiver: max_gap with token queues, else the bound of sync/gap.h. The peer says where it stands (advance); what
 * is older than it has a use for is dropped then, and when it comes in later. What lies further ahead than `ahead`, and
 * what is sent twice, breaks the protocol: the caller gets an error and keeps the update. With bounded staleness older
 * updates are of use, too, but of each sender only the newest: one that needs the place of an older one of the same sender
 * takes it.
 *
 * Called by the peer. Never waits: who wants to wait asks for the size first. Updates are references to snapshots; on
 * the way in they move to the queue, on the way out to the caller. Proved by tests/unit/test_update_queue.c against a
 * plain list.
 */
#ifndef RBT_SYNC_UPDATE_QUEUE_H
#define RBT_SYNC_UPDATE_QUEUE_H

#include "table/snap.h"

#define RBT_ANY_ITER   UINT64_MAX
#define RBT_ANY_SENDER UINT32_MAX

#define RBT_UPDATE_QUEUE_MAX ((size_t)1 << 24) /* entries */

typedef struct rbt_update {
    uint64_t iter;
    uint32_t from;
    rbt_snap *snap; /* NULL: an empty place */
} rbt_update;

typedef struct rbt_update_queue {
    uint64_t ahead;
    uint64_t now;    /* the receiver's iteration */
    uint64_t oldest; /* older ones are of no use */
    uint32_t senders;
    uint32_t *sender; /* their numbers, ascending */
    uint64_t *seen;   /* per sender: one more than the newest iteration that ever came in; 0: none has */
    rbt_update *at;   /* (ahead + 1) * senders */
    size_t size;
    size_t peak;      /* the largest size so far: at most (1 + ahead) * senders */
    uint64_t dropped; /* stale ones, and those that a newer one took the place of */
} rbt_update_queue;

/* `sender` lists the in-neighbours in ascending order. */
rbt_err rbt_update_queue_init(rbt_update_queue *queue, const uint32_t *sender, uint32_t senders, uint64_t ahead,
                              rbt_error *error);
void rbt_update_queue_deinit(rbt_update_queue *queue);

/* Takes the reference on success, also of an update that is dropped because it came too late. RBT_E_PROTOCOL: from
 * nobody who is an in-neighbour, too far ahead, or a second time while the first is there. */
rbt_err rbt_update_queue_enqueue(rbt_update_queue *queue, rbt_snap *snap, uint64_t iter, uint32_t from,
                                 rbt_error *error);

/* Entries that match the tags; RBT_ANY_ITER and RBT_ANY_SENDER match all. */
size_t rbt_update_queue_size(const rbt_update_queue *queue, uint64_t iter, uint32_t from);

/* Takes out the first `most` entries that match, in order of iteration and then of sender, so that what is reduced does
 * not depend on the order of arrival; returns how many there were. */
size_t rbt_update_queue_dequeue(rbt_update_queue *queue, size_t most, uint64_t iter, uint32_t from, rbt_update *out);

/* Takes out all entries of a sender and gives the newest, for bounded staleness; false when there is none. */
bool rbt_update_queue_newest(rbt_update_queue *queue, uint32_t from, rbt_update *out);

/* One more than the newest iteration that ever came in from this sender; 0: none has. */
uint64_t rbt_update_queue_seen(const rbt_update_queue *queue, uint32_t from);

/* The receiver stands at iteration `now` and has no use for what is older than `oldest` <= now. Neither goes back. */
void rbt_update_queue_advance(rbt_update_queue *queue, uint64_t now, uint64_t oldest);

/* The in-neighbours have changed (a graph was repaired): entries of those who stay stay, the others are dropped. */
rbt_err rbt_update_queue_rewire(rbt_update_queue *queue, const uint32_t *sender, uint32_t senders, rbt_error *error);

#endif
