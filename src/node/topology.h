/* Who is in the job and what it agreed on: shared, read-only, by all nodes.
 *
 * Nodes are numbered: 0 is the master, 1 .. P the servers, then the workers, then the observers (readers without a
 * clock: the evaluator). */
#ifndef RBT_NODE_TOPOLOGY_H
#define RBT_NODE_TOPOLOGY_H

#include "base/log.h"
#include "comm/budget.h"
#include "comm/pick.h"
#include "rule/rule.h"
#include "sync/graph.h"
#include "table/layout.h"
#include "table/process_cache.h"
#include "wire/message.h"

#define RBT_SLICE_BYTES                                                                                                \
    (128u << 10)           /* a message of a push is closed when it has so many bytes of values: one dense block */
#define RBT_UNACKED_MAX 64 /* clocks a worker may have pushed without an acknowledgement; then it waits */

/* How peers train without servers; see peer.h. */
typedef struct rbt_hop {
    bool allreduce; /* sums around a ring, instead of neighbours in the graph */
    uint8_t *side;  /* AD-PSGD: per worker 0, asks, or 1, answers; NULL: another protocol */
    rbt_graph graph;
    uint64_t seed;         /* AD-PSGD: of whom is drawn */
    uint32_t parameters;   /* how many */
    float damping;         /* parallel order: what is added of an update; 1: all of it */
    bool serial;           /* the update is added before the parameters are sent */
    bool notify_ack;       /* sends only when the last one was used */
    uint64_t max_gap;      /* iterations ahead of an out-neighbour; 0: no tokens */
    uint32_t backup;       /* in-neighbours that need not be waited for */
    uint64_t staleness;    /* iterations that an update may be old; 0: of this iteration only */
    uint64_t skip;         /* iterations that a peer far behind advances at once, at most; below 2: it never jumps */
    uint64_t skip_trigger; /* only when it is so far behind */
} rbt_hop;

typedef struct rbt_topology {
    uint32_t workers;
    uint32_t servers;
    uint32_t observers;
    uint32_t process_workers; /* workers in one process: 0 .. n - 1 in the first, and so on; 0 counts as 1 */
    uint64_t staleness;       /* 0 = BSP, RBT_UNBOUNDED = ASP */
    bool eager;               /* servers push fresh blocks to readers when the slowest clock advances */
    bool partition_sync;      /* dyn: pulls name the master's stable version */
    bool lost_is_gone;        /* a worker that dies does not come back */
    float filter;             /* updates smaller than this are not sent */
    float significant;        /* nor, for a while, those below this share of what they change (rbt_cache) */
    bool half;                /* updates are rounded to half precision, and the rest is kept: see rbt_is_half */
    size_t slice_bytes;       /* pushes are cut into messages of about this; 0: never */
    uint32_t message_blocks;  /* named in one message, at most: what a decoder takes; 0: any number */
    uint64_t budget_bytes; /* a second, for every worker and server: what is sent before a clock ends; 0: nothing is */
    uint64_t burst_bytes;
    rbt_priority priority; /* what of it goes first */
    uint32_t tables;
    rbt_layout *layout;    /* per table */
    rbt_rule_config *rule; /* per table; integer tables always sum */
    rbt_rule *own_rule;    /* per table: of the procedure it brought, if it did */
    const rbt_hop *hop;    /* peers instead of servers; NULL: servers */
} rbt_topology;

/* May parts of a table's updates be sent before the clock ends, and its rows as they change? Only where parts come to the
 * same as the whole: what adds up, and adarev's gradients, each with the version it was computed from (docs/protocols.md,
 * section 3.1). */
static inline bool rbt_is_managed(const rbt_topology *topology, uint32_t table)
{
    const rbt_rule *rule = topology->rule[table].rule;

    return topology->budget_bytes > 0 && (rule == &rbt_rule_sum || rule == &rbt_rule_con || rule == &rbt_rule_adarev);
}

/* Do updates of this table belong to versions that workers share (dyn)? */
static inline bool rbt_has_versions(const rbt_topology *topology, uint32_t table)
{
    return topology->rule[table].rule->versions == RBT_VERSIONS_SHARED;
}

/* Do updates of this table name the version they were computed from? */
static inline bool rbt_has_tags(const rbt_topology *topology, uint32_t table)
{
    return topology->rule[table].rule->versions == RBT_VERSIONS_READ;
}

/* May entries of a table's updates wait for later ones? Only numbers that are added up, or their means. */
static inline bool rbt_may_hold(const rbt_topology *topology, uint32_t table)
{
    return topology->layout[table].type == RBT_F32 && topology->rule[table].rule->procedure == NULL;
}

/* Are updates of this table rounded to half precision? Only where what is left of one may go with the next: not gradients
 * of which a rule makes steps of its own, not what a table's own rule makes of them. */
static inline bool rbt_is_half(const rbt_topology *topology, uint32_t table)
{
    const rbt_rule *rule = topology->rule[table].rule;

    return topology->half && topology->layout[table].type == RBT_F32 &&
           (rule == &rbt_rule_sum || rule == &rbt_rule_con || rule == &rbt_rule_dyn || rule == &rbt_rule_momentum);
}

/* Has a message as many blocks as its decoder takes, so that the next begins another? */
static inline bool rbt_is_full(const rbt_topology *topology, const rbt_message *message)
{
    return topology->message_blocks > 0 && message->parts.count >= topology->message_blocks;
}

#define RBT_MASTER ((rbt_node)0)

static inline rbt_node rbt_node_of_server(uint32_t server)
{
    return 1 + server;
}

static inline rbt_node rbt_node_of_worker(const rbt_topology *topology, uint32_t worker)
{
    return 1 + topology->servers + worker;
}

static inline uint32_t rbt_topology_nodes(const rbt_topology *topology)
{
    return 1 + topology->servers + topology->workers + topology->observers;
}

/* The first worker of a worker's process, and how many it has. */
static inline uint32_t rbt_process_first(const rbt_topology *topology, uint32_t worker)
{
    return topology->process_workers > 1 ? worker - worker % topology->process_workers : worker;
}

static inline uint32_t rbt_process_count(const rbt_topology *topology, uint32_t worker)
{
    uint32_t left = topology->workers - rbt_process_first(topology, worker);
    uint32_t each = topology->process_workers > 1 ? topology->process_workers : 1;

    return left < each ? left : each;
}

/* What the workers of one process share. A runtime with threads supplies the lock; it is held for single calls only. */
typedef struct rbt_process {
    rbt_process_cache cache;
    void (*lock)(struct rbt_process *process); /* NULL: one thread runs them all */
    void (*unlock)(struct rbt_process *process);
    void *guard; /* what they lock */
} rbt_process;

/* What a node is given while it handles one message: the time, a place for what it says, somebody to log to; a worker's
 * client also what its process shares (NULL: nothing). */
typedef struct rbt_env {
    uint64_t now_ns;
    rbt_outbox out;
    const rbt_log *log;
    rbt_process *process;
} rbt_env;

/* Lays out the tables. `rule` is the rule of the f32 tables that bring none, without its per-table fields. */
rbt_err rbt_topology_init(rbt_topology *topology, const rbt_table_spec *specs, uint32_t tables,
                          const rbt_rule_config *rule, rbt_error *error);
void rbt_topology_deinit(rbt_topology *topology);

#endif
