/* A picture of a running job: what somebody who watches it is shown.
 *
 * Made by the lead about once a second while somebody watches (watch.h), packed, sent, and unpacked by the watcher. The
 * processes come from the session and are known from the first moment on; the workers come from the runtime once the
 * job runs. Reading trusts nothing: counts are checked against what follows before anything is allocated, workers that
 * a process claims must exist, texts hold printable characters alone. Proved by tests/unit/test_picture.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_PICTURE_H
#define RBT_RUNTIME_CLUSTER_PICTURE_H

#include "base/pack.h"
#include "rubato.h"

#define RBT_PICTURE_TITLE   160
#define RBT_PICTURE_HOST    72
#define RBT_PICTURE_RANKS   65536
#define RBT_PICTURE_WORKERS (1u << 20)

typedef enum rbt_picture_phase {
    RBT_PICTURE_JOINING,   /* not all processes are there */
    RBT_PICTURE_PREPARING, /* they read their data */
    RBT_PICTURE_RUNNING,
    RBT_PICTURE_OVER
} rbt_picture_phase;

typedef enum rbt_picture_state {
    RBT_PICTURE_MISSING, /* a process that has not joined */
    RBT_PICTURE_JOINED,
    RBT_PICTURE_READY,
    RBT_PICTURE_LOST,
    RBT_PICTURE_DONE, /* its workers have ended */
    RBT_PICTURE_AWAY  /* lost, and the job waits for it */
} rbt_picture_state;

typedef struct rbt_picture_process { /* by rank; the lead is 0 */
    rbt_picture_state state;
    uint32_t first_worker, workers;
    uint32_t first_server, servers;
    char host[RBT_PICTURE_HOST]; /* empty: nobody has joined */
} rbt_picture_process;

typedef struct rbt_picture_worker {
    uint64_t clock;
    uint64_t rows; /* all it has gone through so far */
    uint64_t compute_ns, wait_ns, communication_ns;
    uint64_t waiting_ns; /* so long it has waited for messages; 0: it does not, or not for long */
} rbt_picture_worker;

typedef struct rbt_picture {
    rbt_picture_phase phase;
    rbt_error end;       /* OVER: why; RBT_OK: it is done */
    uint64_t elapsed_ns; /* since the start, before: since the lead began to wait */
    uint64_t bytes;      /* sent by all processes, as the job counts them */
    uint64_t messages;
    double loss; /* the last one; NaN: there is none yet */
    char title[RBT_PICTURE_TITLE];
    RBT_ARRAY(rbt_picture_process) processes;
    RBT_ARRAY(rbt_picture_worker) workers; /* none before the job runs */
} rbt_picture;

void rbt_picture_deinit(rbt_picture *picture);

void rbt_picture_pack(const rbt_picture *picture, rbt_pack *pack);

/* False: it is none, and *picture is empty. */
bool rbt_picture_unpack(rbt_unpack *unpack, rbt_picture *picture);

/* The process of a worker; NULL: nobody says that it is his. */
const rbt_picture_process *rbt_picture_home(const rbt_picture *picture, uint32_t worker);

/* Whom does a waiting worker wait for? One that was lost and is to come back, else the one at work that has finished the fewest
 * clocks; UINT32_MAX: for no worker (the answer of a server is on its way). */
uint32_t rbt_picture_awaited(const rbt_picture *picture);

#endif
