/* What a runtime runs, and what it reports.
 *
 * A runtime supplies the world to the nodes: it delivers messages in order per pair of nodes, tells the time, lets
 * workers wait. `local` runs workers as threads of this process, `sim` as coroutines in virtual time; the programs, the
 * clients behind them, the servers and the master are the very same.
 *
 * Called by job/job.c. Proved by tests/sim and tests/unit/test_local.c: under BSP both give the same bits.
 */
#ifndef RBT_RUNTIME_RUNTIME_H
#define RBT_RUNTIME_RUNTIME_H

#include <stdatomic.h>

#include "node/master.h"
#include "node/server.h"
#include "node/worker.h"
#include "runtime/straggler.h"

/* What a worker lets others see while it runs; on a cache line of its own. */
typedef struct rbt_published {
    _Alignas(64) _Atomic uint64_t clock;
    _Atomic uint64_t samples;
    _Atomic uint64_t compute_ns;
    _Atomic uint64_t wait_ns;
    _Atomic uint64_t communication_ns;
    _Atomic uint64_t slowed_ns;
    _Atomic uint64_t staleness_sum;
    _Atomic uint64_t reads;
    _Atomic uint64_t waiting_since_ns; /* 0: it does not wait for messages at the moment */
    atomic_bool is_lost;               /* it is gone for good, and nobody waits for it */
} rbt_published;

typedef struct rbt_run {
    /* given */
    const rbt_topology *topology;
    rbt_program program; /* run by every worker */
    rbt_program observe; /* run by the observer, if the topology has one */
    rbt_err (*on_clock)(rbt_worker *worker, void *argument,
                        rbt_error *error); /* called with the program's argument before
                                                                                  each of its clocks ends; or NULL */
    const rbt_stragglers *stragglers;
    bool encode;    /* every message is encoded and decoded on its way */
    unsigned codec; /* messages are squeezed on their way (comm/squeeze.h); 0: they are not */
    bool has_target;
    double target;
    rbt_log log;
    const atomic_bool *interrupted; /* set from outside: end after the current clock */

    /* while it runs */
    rbt_published *published; /* per worker */
    _Atomic uint64_t bytes;   /* sent, as encoded; the observer's do not count */
    _Atomic uint64_t plain;   /* what they would have been without a codec */
    _Atomic uint64_t messages;
    _Atomic double loss; /* the last that the observer reported; NaN: none yet */
    uint64_t started_ns;
    struct rbt_lines *lines; /* transport.h: what the codec remembers; NULL: nothing */

    uint64_t observed;        /* elements of blocks that the observer has looked at, each time it has */
    double spread;            /* without servers: how far the peers are from their mean, as last seen */
    _Atomic uint64_t skipped; /* likewise: iterations jumped over */

    /* afterwards */
    uint64_t elapsed_ns;
    uint64_t events;
    uint64_t max_gap;
    uint64_t peak_versions;
    uint64_t version_bytes; /* on the server that had most */
    uint64_t repeated;
    uint64_t staleness_histogram[RBT_STALENESS_BINS];
} rbt_run;

void rbt_run_init(rbt_run *run, const rbt_topology *topology);
void rbt_run_deinit(rbt_run *run);

/* Takes over what a server has counted. */
void rbt_run_add_server(rbt_run *run, const rbt_server *server);

rbt_err rbt_local_run(rbt_run *run, rbt_error *error);

#endif
