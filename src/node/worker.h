/* A worker's client: the state machine between a program's reads and increments and the servers.
 *
 * The runtime calls rbt_client_handle for messages and, on behalf of the program, the other functions; none of them
 * waits. rbt_client_want says whether a read may go ahead and otherwise asks for what is missing; the runtime then lets
 * the worker sleep until messages have come and asks again. What holds always:
 *   - a read at clock c uses copies whose slowest clock is at least c - staleness (asserted on every read), and contains
 *     all of the worker's own updates, each once: also those of a clock that it computes again after a crash and that some
 *     servers have;
 *   - a push is kept until its server has acknowledged it, and sent again when the view changes;
 *   - a worker that was restarted goes on at the lowest clock all servers have of it.
 * docs/protocols.md, section 1. Proved by tests/unit/test_worker.c, test_worker_lives.c and by the swarm.
 */
#ifndef RBT_NODE_WORKER_H
#define RBT_NODE_WORKER_H

#include "node/topology.h"
#include "table/cache.h"

/* A pull under way, kept so that it can be sent again. */
typedef struct rbt_request {
    uint64_t id;
    rbt_message *pull;
} rbt_request;

typedef struct rbt_client {
    const rbt_topology *topology;
    rbt_node node;
    uint32_t worker; /* workers 0 .. M - 1; observers follow */
    bool is_observer;
    uint32_t incarnation;
    uint32_t view;
    uint64_t clock;          /* clocks finished */
    bool stopping;           /* the master asked to end after this clock */
    rbt_cache *cache;        /* per table */
    rbt_outbox *unacked;     /* per server: copies of pushes, slice by slice, not acknowledged yet, oldest first */
    uint32_t *unacked_count; /* per server: clocks */
    rbt_budget budget;       /* managed communication (early.h): of what this worker sends */
    rbt_rng early_rng;
    uint64_t *early;        /* per server: early sends of this clock */
    uint64_t early_unacked; /* bytes of early sends not acknowledged */
    uint32_t early_from;    /* the block looked at first for the next */
    uint64_t last_request;
    RBT_ARRAY(rbt_request) requests;
    bool *has_versions;      /* per server: it holds blocks whose rule has versions */
    uint64_t *known;         /* per server: clocks its slowest worker is known to have finished */
    uint64_t *seen;          /* an observer: per server and worker, clocks of the worker in its last answer */
    uint64_t next_version;   /* dyn: the lowest version this worker may name next, as its servers work it out */
    uint64_t stable_request; /* partition sync: the question to the master under way, 0 when answered */
    uint64_t stable_clock;   /* the clock and need it is for; RBT_UNBOUNDED: none yet */
    uint64_t stable_need;
    uint64_t read_version; /* its answer: the version all copies must have, and the clock it was read in */
    uint64_t read_clock;
    uint64_t resume_request; /* restarted: not ready before all servers have told which clocks they have */
    uint32_t resume_missing;
    bool *resume_told; /* per server */
    bool ready;
    uint64_t held_ns; /* longest that an answer since the last rbt_client_want was held back for others */
    uint64_t staleness_seen[RBT_STALENESS_BINS];
    uint64_t staleness_sum; /* of all reads; the last bin does not tell */
} rbt_client;

/* A block that a read or an increment touches. */
typedef struct rbt_span {
    uint32_t table;
    uint32_t block;
} rbt_span;

void rbt_client_init(rbt_client *client, const rbt_topology *topology, uint32_t worker, uint32_t incarnation);
void rbt_client_deinit(rbt_client *client);

/* Starts a worker that was restarted (incarnation > 0): not ready before its clock is known. */
void rbt_client_begin(rbt_client *client, rbt_env *env);

/* Takes a copy over as this worker's own. */
void rbt_client_adopt(rbt_client *client, rbt_span span, rbt_snap *base, uint64_t slowest, rbt_applied included,
                      uint64_t version);

void rbt_client_handle(rbt_client *client, rbt_message *message, rbt_env *env);

/* May the program read these blocks (in clock `clock`) with this staleness? If not, asks for what is missing and is not
 * under way already. An observer names with `need` how many rounds must have passed (rbt_rounds). */
bool rbt_client_want(rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t staleness,
                     rbt_env *env);
bool rbt_client_observe(rbt_client *client, const rbt_span *spans, size_t n, uint64_t need, rbt_env *env);

/* Counts a read of these blocks in the histogram of staleness, and its staleness in the sum. */
void rbt_client_note_read(rbt_client *client, const rbt_span *spans, size_t n);

/* Reads elements of one block after rbt_client_want said yes. */
void rbt_client_read(rbt_client *client, rbt_span span, uint32_t offset, uint32_t n, uint64_t staleness, void *out);

void rbt_client_increment(rbt_client *client, rbt_span span, uint32_t offset, uint32_t n, const void *deltas);
void rbt_client_increment_keys(rbt_client *client, uint32_t table, uint64_t row, const uint64_t *cols, size_t n,
                               const void *deltas);

/* Does the worker not know yet whether this server lets it be in its clock? Then which block to ask for. */
bool rbt_client_must_hear(const rbt_client *client, uint32_t server, rbt_span *span);

/* May the clock end? Not while too much is unacknowledged. Then ends it: the increments go out. */
bool rbt_client_may_clock(const rbt_client *client);
void rbt_client_clock(rbt_client *client, rbt_env *env);

/* Is something held back that was not significant? It goes out with the next clock, if rbt_client_release is called before. */
bool rbt_client_holds(const rbt_client *client);
void rbt_client_release(rbt_client *client);

/* Has everything been acknowledged? Then the worker may leave. */
bool rbt_client_is_flushed(const rbt_client *client);
void rbt_client_retire(rbt_client *client, rbt_env *env);

/* ---- for the parts of the client: worker.c, worker_push.c, early.c */

static inline rbt_copy *rbt_client_copy(const rbt_client *client, rbt_span span)
{
    return &client->cache[span.table].copies[span.block];
}

/* Must blocks of this table be read at the version the master called stable? */
bool rbt_client_is_synchronised(const rbt_client *client, uint32_t table);

/* A message of this worker, at its clock; and all that it says goes out with the second. */
rbt_message *rbt_client_make(const rbt_client *client, rbt_message_type type, rbt_node to);
void rbt_client_send(rbt_client *client, rbt_message *message, rbt_env *env);

void rbt_client_take_ack(rbt_client *client, const rbt_message *ack);

#endif
