/* Graphs of peers: who sends its parameters to whom (docs/protocols.md, section 6; Hop, sections 3 and 7).
 *
 * A graph is directed and has a self-loop at every node. An edge from i to j: i sends to j, and j receives from i. The
 * weight of that edge is W[i][j] = 1 / |N_in(j)|: what j reduces is a plain mean. Lists of neighbours contain the node
 * itself and are in ascending order, so that a reduction has one order everywhere.
 *
 * Called by the peer, by the job that makes the graph and by `rubato graph`. Always holds: every edge is between nodes of
 * the graph and stands once in the sender's list and once in the receiver's; both lists ascend. Whether peers can train
 * on it is another question: rbt_graph_check. Making a graph touches no file: the caller has read the text. Proved by
 * tests/unit/test_graph.c, the reader by tests/fuzz/fuzz_graph.c.
 */
#ifndef RBT_SYNC_GRAPH_H
#define RBT_SYNC_GRAPH_H

#include "rubato.h"

#define RBT_GRAPH_NODES_MAX 16384u
#define RBT_GRAPH_EDGES_MAX ((size_t)1 << 24) /* one-way edges: a complete graph of 4096 nodes */
#define RBT_GRAPH_FAR       UINT32_MAX        /* a distance: there is no path */

typedef struct rbt_edge {
    uint32_t from;
    uint32_t to;
} rbt_edge;

typedef struct rbt_graph {
    uint32_t nodes;   /* numbered 0 .. nodes - 1 */
    size_t edges;     /* one-way, self-loops included */
    size_t *in_start; /* nodes + 1: node i's senders are in[in_start[i] .. in_start[i + 1] - 1] */
    size_t *out_start;
    uint32_t *in;
    uint32_t *out;
} rbt_graph;

typedef struct rbt_neighbours {
    const uint32_t *at; /* ascending, the node itself included */
    uint32_t count;
} rbt_neighbours;

/* Whom a node receives from, and whom it sends to. */
rbt_neighbours rbt_graph_in(const rbt_graph *graph, uint32_t node);
rbt_neighbours rbt_graph_out(const rbt_graph *graph, uint32_t node);
bool rbt_graph_has(const rbt_graph *graph, uint32_t from, uint32_t to);

/* W[from][to]. */
double rbt_graph_weight(const rbt_graph *graph, uint32_t from, uint32_t to);

/* --------------------------------------------------------------------------------------------------- making */

typedef enum rbt_graph_kind {
    RBT_GRAPH_RING,        /* i with i + 1 */
    RBT_GRAPH_RING_BASED,  /* and with the most distant node; the two most distant ones of an odd ring */
    RBT_GRAPH_DOUBLE_RING, /* two ring-based graphs, node i of one with node i of the other */
    RBT_GRAPH_COMPLETE,
    RBT_GRAPH_EXPONENTIAL, /* i sends to i + 1, i + 2, i + 4, ...; one-way */
    RBT_GRAPH_CLIQUE,      /* a complete graph on every machine, and a ring between machines */
    RBT_GRAPH_KINDS,
} rbt_graph_kind;

const char *rbt_graph_kind_name(rbt_graph_kind kind);
bool rbt_graph_kind_find(const char *name, rbt_graph_kind *kind);

/* How many nodes are on each machine; they are numbered machine by machine. All zero: no machines are known. */
typedef struct rbt_machines {
    uint32_t count;
    uint32_t *nodes;
} rbt_machines;

/* From "3,3,2", or from a number of machines over which the nodes are spread evenly. */
rbt_err rbt_machines_parse(const char *text, uint32_t nodes, rbt_machines *machines, rbt_error *error);
void rbt_machines_deinit(rbt_machines *machines);
uint32_t rbt_machines_of(const rbt_machines *machines, uint32_t node); /* which machine it is on */

/* A graph of a kind. Every one that is made passes the checks. `machines` matters to cliques alone, and NULL is one
 * machine. For the weights to be doubly stochastic all nodes of a clique graph get the same number of neighbours: there
 * are as few edges between neighbouring machines as make that possible, and sizes that make it impossible are refused. */
rbt_err rbt_graph_init(rbt_graph *graph, rbt_graph_kind kind, uint32_t nodes, const rbt_machines *machines,
                       rbt_error *error);

/* From edges, of which none may stand there twice, between 0 .. nodes - 1. */
rbt_err rbt_graph_init_edges(rbt_graph *graph, uint32_t nodes, const rbt_edge *edges, size_t n, rbt_error *error);

/* From text: a line "3 5" is an edge from 3 to 5, "3 - 5" one each way, "#" begins a comment (docs/formats.md).
 * `nodes` 0: as many as the highest number says. `name` is the file's, for messages. */
rbt_err rbt_graph_parse(rbt_graph *graph, const char *name, const char *text, size_t n, uint32_t nodes,
                        rbt_error *error);

void rbt_graph_deinit(rbt_graph *graph);

/* ------------------------------------------------------------------------------------------------- checking */

/* Can peers train on it? A self-loop at every node, a path from every node to every other, rows and columns of W that
 * sum to 1; else a sentence with the offending nodes. `name` says which graph. */
rbt_err rbt_graph_check(const rbt_graph *graph, const char *name, rbt_error *error);

/* Does every edge have its opposite? */
bool rbt_graph_is_symmetric(const rbt_graph *graph);

/* Does the graph look the same from every node: does i send to i + o for the same o everywhere? */
bool rbt_graph_is_circulant(const rbt_graph *graph);

/* Can the nodes be split in two so that every edge (self-loops aside) goes across? AD-PSGD needs that. `side`, unless
 * NULL, takes 0 or 1 for each node; `within`, unless NULL, an edge that shows that they cannot. */
bool rbt_graph_is_bipartite(const rbt_graph *graph, uint8_t *side, rbt_edge *within);

/* |l1| - |l2| of W: the larger, the faster news spread. A NaN for graphs too large to be worked out (math/spectral.h);
 * for those that look the same from every node there is a closed form, and no limit. */
double rbt_graph_spectral_gap(const rbt_graph *graph);

/* How large a step may be when it is computed before the average that it is added to, x+ = W x - c x: up to this no part of x
 * grows. A step that is sound by itself has c <= 2, so half of this is by what it must be shortened. 1 + the least eigenvalue of W
 * when all are real; never less than twice the weight a node gives itself, and that for graphs too large to be worked out. The
 * same bits on every machine. */
double rbt_graph_step_room(const rbt_graph *graph);

#endif
