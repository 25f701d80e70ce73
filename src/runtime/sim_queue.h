/* The simulator's events: a heap ordered by virtual time, then by a counter, so that the order never depends on
 * anything but the run itself. Proved by tests/unit/test_sim_queue.c. */
#ifndef RBT_RUNTIME_SIM_QUEUE_H
#define RBT_RUNTIME_SIM_QUEUE_H

#include "base/mem.h"
#include "wire/message.h"

typedef enum rbt_sim_kind {
    RBT_SIM_ARRIVE,  /* a message has reached the receiver's host */
    RBT_SIM_HANDLE,  /* ... and has been read by the receiver */
    RBT_SIM_WAKE,    /* a worker's work is done */
    RBT_SIM_CRASH,   /* a worker dies */
    RBT_SIM_RESTART, /* ... and comes back */
} rbt_sim_kind;

typedef struct rbt_sim_event {
    uint64_t time_ns;
    uint64_t order; /* given by rbt_sim_queue_put */
    rbt_sim_kind kind;
    uint32_t worker;      /* WAKE, CRASH, RESTART */
    uint32_t incarnation; /* of the worker it is meant for; another one never hears of it */
    size_t bytes;         /* ARRIVE */
    rbt_message *message; /* ARRIVE, HANDLE */
} rbt_sim_event;

typedef struct rbt_sim_queue {
    RBT_ARRAY(rbt_sim_event) heap;
    uint64_t count; /* put so far: the tie-break */
} rbt_sim_queue;

void rbt_sim_queue_put(rbt_sim_queue *queue, rbt_sim_event event);
bool rbt_sim_queue_take(rbt_sim_queue *queue, rbt_sim_event *event); /* the earliest; false when empty */
void rbt_sim_queue_deinit(rbt_sim_queue *queue);                     /* destroys the messages in it */

#endif
