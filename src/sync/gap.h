/* How far apart peers can get: distances in a graph, and the bounds on iter(i) - iter(j) of Hop's Table 1 as small pure
 * functions (docs/protocols.md, section 6).
 *
 * Called by the peer (assertions), by the simulator's checker and by `rubato graph`. A path is counted in edges,
 * self-loops do not help. Proved by tests/unit/test_gap.c.
 */
#ifndef RBT_SYNC_GAP_H
#define RBT_SYNC_GAP_H

#include "sync/graph.h"

/* --------------------------------------------------------------------------------------------------- distances */

/* hops[j] = edges on the shortest path from `node` to j, or from j to `node`; RBT_GRAPH_FAR when there is none. */
void rbt_graph_hops_from(const rbt_graph *graph, uint32_t node, uint32_t *hops);
void rbt_graph_hops_to(const rbt_graph *graph, uint32_t node, uint32_t *hops);

/* The longest of all shortest paths. */
uint32_t rbt_graph_diameter(const rbt_graph *graph);

/* All pairs at once, for a checker that asks after every event. */
#define RBT_PATHS_NODES_MAX 2048u

typedef struct rbt_paths {
    uint32_t nodes;
    uint32_t *hops; /* from i to j: hops[i * nodes + j] */
} rbt_paths;

rbt_err rbt_paths_init(rbt_paths *paths, const rbt_graph *graph, rbt_error *error);
void rbt_paths_deinit(rbt_paths *paths);

static inline uint32_t rbt_paths_hops(const rbt_paths *paths, uint32_t from, uint32_t to)
{
    return paths->hops[(size_t)from * paths->nodes + to];
}

/* ------------------------------------------------------------------------------------------------------ bounds */

/* What decides how far peers can get apart. All zero is standard decentralised training. */
typedef struct rbt_gap_setting {
    uint64_t staleness; /* an update that many iterations old will do */
    uint64_t max_gap;   /* tokens at the start; 0: no token queues */
    bool backup;        /* not every in-neighbour is waited for */
    bool notify_ack;    /* iteration k + 1 is sent only after the receiver has used k */
} rbt_gap_setting;

/* The most that iter(i) - iter(j) can be, given the hops from j to i and from i to j; RBT_UNBOUNDED: any number. */
uint64_t rbt_gap_bound(const rbt_gap_setting *setting, uint32_t hops_ji, uint32_t hops_ij);

/* The largest of these bounds in a graph: over whom a node receives from, over whom it sends to, over any other node. */
typedef struct rbt_gap_worst {
    uint64_t over_sender;
    uint64_t over_receiver;
    uint64_t over_any;
} rbt_gap_worst;

void rbt_gap_worst_of(const rbt_graph *graph, const rbt_gap_setting *settings, size_t n, rbt_gap_worst *worst);

#endif
