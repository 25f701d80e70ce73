/* A server: holds blocks, applies updates, answers pulls when the staleness bound allows it.
 *
 * A pure state machine: rbt_server_handle takes a message and collects what the server says in return. What holds
 * always:
 *   - an update of (worker, clock) is applied to a block exactly once, in clock order per worker, whatever is repeated;
 *     an update of an earlier incarnation of a worker that has come back is refused;
 *   - a push may come in slices (slices.h): each is applied when it comes, but the clock counts, and is acknowledged,
 *     with the last; an answer says which blocks have what of a push that is still arriving (rbt_applied);
 *   - under BSP (staleness 0) the updates of one clock are held until all are there, then applied in worker order;
 *   - an answer contains every update of every worker from clocks below `need`, and all of the asker's own;
 *   - a message of an older view is refused and answered with the view.
 * docs/protocols.md, sections 1 and 2. Proved by tests/unit/test_server.c and by the swarm.
 */
#ifndef RBT_NODE_SERVER_H
#define RBT_NODE_SERVER_H

#include "base/bits.h"
#include "node/topology.h"
#include "table/strips.h"

#define RBT_HELD_EACH 1024       /* of one worker, beside four for every block */
#define RBT_HELD_MAX  (1u << 20) /* pulls a server holds back at once; a peer that asks for more is refused */

/* A block of this server. Its number among them is its ordinal. */
typedef struct rbt_server_cell {
    uint32_t table;
    uint32_t block;
    rbt_cell cell;
    rbt_strips strips; /* managed communication: what registered readers have not been told */
} rbt_server_cell;

typedef struct rbt_held_pull {
    rbt_message *pull;
    uint64_t since_ns;
} rbt_held_pull;

/* How far the push of a worker's next clock has come; all zero but `incarnation` when nothing has. */
typedef struct rbt_sliced {
    uint32_t incarnation; /* the life it comes from */
    uint64_t slice;       /* the number of the next slice */
    uint32_t seen;        /* blocks below this ordinal have been passed in this life */
    uint32_t taken;       /* ... and in any: they are applied, under BSP held */
    uint32_t named;       /* blocks among those that every push must name */
} rbt_sliced;

/* Early sends of a worker's next clock that have been applied: kept so that they can be taken back, should it die. */
typedef struct rbt_early {
    uint32_t incarnation; /* the life they come from */
    uint64_t count;
    rbt_outbox kept;
} rbt_early;

/* Bytes of ROWS that a reader was sent, and of those how many it has received. */
typedef struct rbt_rows_told {
    uint64_t sent;
    uint64_t got;
} rbt_rows_told;

typedef struct rbt_server_stats {
    uint64_t updates;       /* pushes applied */
    uint64_t repeated;      /* messages of pushes dropped because they had been applied */
    uint64_t refused;       /* messages that broke the protocol or came from the past */
    uint64_t max_gap;       /* largest (clock pushed - slowest clock) */
    uint64_t peak_versions; /* dyn, adarev: most live versions of one block */
    uint64_t version_bytes; /* dyn, adarev: now, and at the worst */
    uint64_t peak_version_bytes;
} rbt_server_stats;

typedef struct rbt_server {
    const rbt_topology *topology;
    rbt_node node;
    uint32_t id;
    uint32_t view;
    RBT_ARRAY(rbt_server_cell) cells; /* ascending by (table, block) */
    uint32_t counted;                 /* how many of them every push must name: nothing counts there, too */
    uint32_t **ordinal;               /* per table and block: its place in `cells`, UINT32_MAX when elsewhere */
    rbt_floor clocks;                 /* per worker: clocks applied */
    uint32_t *incarnation;            /* per worker */
    bool *retiring;                   /* per worker: leaves when its early pushes are applied */
    rbt_sliced *sliced;               /* per worker */
    rbt_outbox *early;                /* BSP, per worker: pushes waiting for the others', and how many are whole */
    uint32_t *early_count;
    rbt_early *ahead;    /* per worker */
    rbt_rows_told *told; /* per worker */
    rbt_budget budget;   /* of what this server sends */
    rbt_rng early_rng;
    uint32_t early_from;           /* the cell looked at first for the next rows */
    rbt_bits untold;               /* over `cells`: at least those that registered readers have not been told of */
    uint64_t **registered;         /* per worker: bit set over `cells` of what it reads */
    RBT_ARRAY(rbt_held_pull) held; /* in order of sliced */
    uint64_t reported_slowest;     /* what the master was told last */
    uint64_t reported_version;
    rbt_server_stats stats;
} rbt_server;

void rbt_server_init(rbt_server *server, const rbt_topology *topology, uint32_t id);
void rbt_server_deinit(rbt_server *server);

/* Handles one message (which it takes) and puts what it has to say into env->out. */
void rbt_server_handle(rbt_server *server, rbt_message *message, rbt_env *env);

/* The ordinal of a block that a peer names; UINT32_MAX when it is not this server's. */
static inline uint32_t rbt_server_ordinal(const rbt_server *server, const rbt_part *part)
{
    if (part->table >= server->topology->tables || part->block >= server->topology->layout[part->table].blocks)
        return UINT32_MAX;
    return server->ordinal[part->table][part->block];
}

/* Counts what has become of a cell's versions, which had so many bytes. */
void rbt_server_count_versions(rbt_server *server, const rbt_server_cell *cell, size_t bytes_before);

/* For whom do readers wait? A live worker that has finished the fewest clocks; UINT32_MAX when nobody is live. */
uint32_t rbt_server_slowest_worker(const rbt_server *server);

#endif
