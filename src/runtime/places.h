/* The nodes that live in one process: their inboxes, who runs them, and the threads of its workers.
 *
 * A message is a pointer put into the receiver's inbox. Servers and the master have no threads: whoever posts to one
 * that is idle runs it until its inbox is empty, on the spot; payloads are snapshots and are not copied. So do the peers of a job
 * without servers, from when their worker begins to when it ends; their worker's thread holds them while it uses them. Any other
 * worker's inbox is emptied by its own thread. A worker's thread sleeps on a condition while it has to wait. A message for a node of another
 * process is handed to `forward`.
 *
 * Order per pair of nodes: a node is run by one thread at a time, and what it says while it handles a message is posted
 * before it handles the next. Posting takes the receiver's lock alone, and a node that runs holds no lock, only the mark `busy`; but
 * a peer that runs, or is held by its worker, has its own `held`, under which it posts. Inside a place's lock nothing else is locked. Called by local.c, which has all nodes here, and by cluster/cluster.c, which has
 * some. Checked by ThreadSanitizer in tests/unit/test_local.c.
 */
#ifndef RBT_RUNTIME_PLACES_H
#define RBT_RUNTIME_PLACES_H

#include <pthread.h>

#include "runtime/handle.h"
#include "runtime/transport.h"

typedef struct rbt_place {
    pthread_mutex_t lock;
    pthread_cond_t news;    /* workers only */
    rbt_outbox inbox;       /* under the lock, like `busy` */
    bool busy;              /* a thread runs this node, or has promised to */
    bool has_thread;        /* a worker's place: its thread empties the inbox, unless it is run */
    bool is_run;            /* a peer's, while its worker is there: whoever posts to it runs it */
    uint64_t handled;       /* times it was run */
    uint64_t seen;          /* of them, those that its worker's thread knows of; that thread's own */
    pthread_mutex_t held;   /* peers: whoever touches them */
    rbt_worker *worker;     /* under `held`: whose peer this is; NULL: it is not there */
    bool is_here;           /* in this process */
    struct rbt_place *next; /* in the list of places one thread has promised to run */
    rbt_node node;
} rbt_place;

typedef struct rbt_places {
    rbt_run *run;
    const char *name; /* of the runtime, for the log */
    rbt_nodes nodes;
    rbt_place *place;       /* per node of the job */
    rbt_process *processes; /* of all processes; NULL: every worker has one to itself */
    rbt_process *process;   /* what the workers here share */
    pthread_mutex_t process_lock;

    /* a runtime with several processes fills these in after rbt_places_init; NULL: all nodes are here */
    void (*forward)(void *context, rbt_message *message); /* takes the message to where its node lives; counts it */
    void (*throttle)(void *context);                      /* a worker has posted: it may have to wait for room */
    void (*on_failure)(void *context, const rbt_error *error); /* a program here has failed */
    void *context;
    bool knows_all;       /* run->published is about every worker: whoever waits can say for whom */
    uint32_t incarnation; /* of the workers here: which life of theirs this is */

    atomic_bool over;    /* set by rbt_places_end */
    atomic_uint working; /* workers here whose programs have not ended */
    pthread_mutex_t error_lock;
    rbt_err err; /* the first failure */
    rbt_error error;
} rbt_places;

/* `here` says which nodes live in this process; NULL: all of them. */
void rbt_places_init(rbt_places *places, rbt_run *run, const char *name, const bool *here);
void rbt_places_deinit(rbt_places *places); /* what the servers counted goes to the run */

/* Delivers messages, and runs whatever that wakes, until nothing is left to do. */
void rbt_places_deliver(rbt_places *places, rbt_outbox *out);

/* Runs the programs of workers first .. first + count - 1 on threads of their own, and the observer's on this one if it is
 * wanted; returns when all have ended. */
rbt_err rbt_places_run(rbt_places *places, uint32_t first, uint32_t count, bool observe, rbt_error *error);

/* Notes a failure (the first one counts) and asks the master to stop. Without servers and other processes it is the end at once. */
void rbt_places_fail(rbt_places *places, const rbt_error *error);

/* The job is over for this process, whatever its programs are doing: the calls in which they wait fail. */
void rbt_places_end(rbt_places *places);

/* Asks the master to stop all workers after the clock they are in. */
void rbt_places_request_stop(rbt_places *places);

#endif
