/* Graphs of peers: the lists of neighbours, and the checks; the contract is in graph.h. */
#include "sync/graph.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/spectral.h"
#include "sync/gap.h"

#define ROOM_STEPS   65536.0 /* room is rounded to 1/65536: far above rounding, so that it is the same everywhere */
#define WEIGHT_SLACK 1e-9    /* of a sum of weights; rounding stays far below, a missing neighbour far above */

rbt_neighbours rbt_graph_in(const rbt_graph *graph, uint32_t node)
{
    RBT_ASSERT(node < graph->nodes);
    return (rbt_neighbours){graph->in + graph->in_start[node],
                            (uint32_t)(graph->in_start[node + 1] - graph->in_start[node])};
}

rbt_neighbours rbt_graph_out(const rbt_graph *graph, uint32_t node)
{
    RBT_ASSERT(node < graph->nodes);
    return (rbt_neighbours){graph->out + graph->out_start[node],
                            (uint32_t)(graph->out_start[node + 1] - graph->out_start[node])};
}

bool rbt_graph_has(const rbt_graph *graph, uint32_t from, uint32_t to)
{
    rbt_neighbours out = rbt_graph_out(graph, from);
    uint32_t low = 0, high = out.count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (out.at[middle] < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low < out.count && out.at[low] == to;
}

double rbt_graph_weight(const rbt_graph *graph, uint32_t from, uint32_t to)
{
    return rbt_graph_has(graph, from, to) ? 1.0 / rbt_graph_in(graph, to).count : 0;
}

/* --------------------------------------------------------------------------------------------------- making */

static bool allocate(rbt_graph *graph, uint32_t nodes, size_t edges)
{
    *graph = (rbt_graph){.nodes = nodes, .edges = edges};
    graph->in_start = rbt_alloc((size_t)nodes + 1, sizeof *graph->in_start);
    graph->out_start = rbt_alloc((size_t)nodes + 1, sizeof *graph->out_start);
    graph->in = rbt_try_alloc(edges, sizeof *graph->in);
    graph->out = rbt_try_alloc(edges, sizeof *graph->out);
    if (graph->in != NULL && graph->out != NULL)
        return true;
    rbt_graph_deinit(graph);
    return false;
}

/* Three passes and no sorting: edges into the senders' lists as they come, those in order of the receiver into the
 * receivers' lists, and back. What is filled in order of the other end is in order. */
static void fill(rbt_graph *graph, const rbt_edge *edges, size_t n)
{
    size_t *at = rbt_alloc((size_t)graph->nodes + 1, sizeof *at);

    for (size_t e = 0; e < n; e++) {
        graph->in_start[edges[e].to + 1]++;
        graph->out_start[edges[e].from + 1]++;
    }
    for (uint32_t i = 0; i < graph->nodes; i++) {
        graph->in_start[i + 1] += graph->in_start[i];
        graph->out_start[i + 1] += graph->out_start[i];
    }
    memcpy(at, graph->in_start, graph->nodes * sizeof *at);
    for (size_t e = 0; e < n; e++)
        graph->in[at[edges[e].to]++] = edges[e].from;
    memcpy(at, graph->out_start, graph->nodes * sizeof *at);
    for (uint32_t to = 0; to < graph->nodes; to++)
        for (size_t e = graph->in_start[to]; e < graph->in_start[to + 1]; e++)
            graph->out[at[graph->in[e]]++] = to;
    memcpy(at, graph->in_start, graph->nodes * sizeof *at);
    for (uint32_t from = 0; from < graph->nodes; from++)
        for (size_t e = graph->out_start[from]; e < graph->out_start[from + 1]; e++)
            graph->in[at[graph->out[e]]++] = from;
    rbt_free(at);
}

static rbt_err check_once(const rbt_graph *graph, rbt_error *error)
{
    for (uint32_t from = 0; from < graph->nodes; from++)
        for (size_t e = graph->out_start[from] + 1; e < graph->out_start[from + 1]; e++)
            if (graph->out[e] == graph->out[e - 1])
                return rbt_fail(error, RBT_E_DATA, "the edge from %u to %u stands there twice; remove one", from,
                                graph->out[e]);
    return RBT_OK;
}

rbt_err rbt_graph_init_edges(rbt_graph *graph, uint32_t nodes, const rbt_edge *edges, size_t n, rbt_error *error)
{
    if (nodes == 0 || nodes > RBT_GRAPH_NODES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "a graph of %u nodes; 1 to %u are possible", nodes, RBT_GRAPH_NODES_MAX);
    if (n > RBT_GRAPH_EDGES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "a graph of %zu edges; at most %zu are possible, choose one with fewer", n,
                        RBT_GRAPH_EDGES_MAX);
    for (size_t e = 0; e < n; e++)
        if (edges[e].from >= nodes || edges[e].to >= nodes)
            return rbt_fail(error, RBT_E_DATA,
                            "the edge from %u to %u is out of range: the graph has the nodes 0 to %u", edges[e].from,
                            edges[e].to, nodes - 1);
    rbt_graph made;
    if (!allocate(&made, nodes, n))
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a graph of %zu edges; take one with fewer", n);
    fill(&made, edges, n);
    rbt_err err = check_once(&made, error);
    if (err == RBT_OK)
        *graph = made;
    else
        rbt_graph_deinit(&made);
    return err;
}

void rbt_graph_deinit(rbt_graph *graph)
{
    rbt_free(graph->in_start);
    rbt_free(graph->out_start);
    rbt_free(graph->in);
    rbt_free(graph->out);
    *graph = (rbt_graph){0};
}

/* ------------------------------------------------------------------------------------------------- checking */

static rbt_err check_loops(const rbt_graph *graph, const char *name, rbt_error *error)
{
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (graph->in_start[i + 1] == graph->in_start[i] && graph->out_start[i + 1] == graph->out_start[i])
            return rbt_fail(error, RBT_E_DATA,
                            "%s: node %u has no edge; add its edges, or give --workers as many as the graph has nodes",
                            name, i);
        else if (!rbt_graph_has(graph, i, i))
            return rbt_fail(error, RBT_E_DATA,
                            "%s: node %u has no self-loop; a node counts its own parameters, add the edge %u %u", name,
                            i, i, i);
    return RBT_OK;
}

/* Everybody reaches everybody if the first one reaches all and all reach it. */
static rbt_err check_connected(const rbt_graph *graph, const char *name, rbt_error *error)
{
    uint32_t *hops = rbt_alloc(graph->nodes, sizeof *hops);
    const uint32_t first = 0;
    rbt_err err = RBT_OK;

    for (int back = 0; back < 2 && err == RBT_OK; back++) {
        if (back)
            rbt_graph_hops_to(graph, first, hops);
        else
            rbt_graph_hops_from(graph, first, hops);
        for (uint32_t i = 0; i < graph->nodes && err == RBT_OK; i++)
            if (hops[i] == RBT_GRAPH_FAR)
                err = rbt_fail(error, RBT_E_DATA,
                               "%s: there is no path from node %u to node %u; every node must reach every other, add "
                               "an edge",
                               name, back ? i : first, back ? first : i);
    }
    rbt_free(hops);
    return err;
}

/* Columns of W sum to 1 by its definition; rows do when what a node gives to others is 1 in all. */
static rbt_err check_weights(const rbt_graph *graph, const char *name, rbt_error *error)
{
    for (uint32_t i = 0; i < graph->nodes; i++) {
        rbt_neighbours out = rbt_graph_out(graph, i);
        double sum = 0;

        for (uint32_t k = 0; k < out.count; k++)
            sum += 1.0 / rbt_graph_in(graph, out.at[k]).count;
        if (fabs(sum - 1) > WEIGHT_SLACK)
            return rbt_fail(
                error, RBT_E_DATA,
                "%s: the weights are not doubly stochastic: those of what node %u sends sum to %.6g, not to "
                "1, so it would count %s than others; give every node as many senders as receivers, all "
                "the same number",
                name, i, sum, sum > 1 ? "more" : "less");
    }
    return RBT_OK;
}

rbt_err rbt_graph_check(const rbt_graph *graph, const char *name, rbt_error *error)
{
    rbt_err err = check_loops(graph, name, error);

    if (err == RBT_OK)
        err = check_connected(graph, name, error);
    if (err == RBT_OK)
        err = check_weights(graph, name, error);
    return err;
}

bool rbt_graph_is_symmetric(const rbt_graph *graph)
{
    return memcmp(graph->in_start, graph->out_start, ((size_t)graph->nodes + 1) * sizeof *graph->in_start) == 0 &&
           memcmp(graph->in, graph->out, graph->edges * sizeof *graph->in) == 0;
}

/* Gives the neighbours of a node the other side; false when one of them is on this side: that edge. */
static bool colour(const rbt_neighbours *neighbours, uint32_t node, uint8_t *side, uint32_t *queue, uint32_t *end,
                   rbt_edge *within)
{
    for (uint32_t k = 0; k < neighbours->count; k++) {
        uint32_t j = neighbours->at[k];

        if (j == node)
            continue;
        if (side[j] == side[node]) {
            *within = (rbt_edge){node, j};
            return false;
        }
        if (side[j] == 2) {
            side[j] = !side[node];
            queue[(*end)++] = j;
        }
    }
    return true;
}

bool rbt_graph_is_bipartite(const rbt_graph *graph, uint8_t *side, rbt_edge *within)
{
    uint8_t *of = rbt_alloc(graph->nodes, sizeof *of);
    uint32_t *queue = rbt_alloc(graph->nodes, sizeof *queue), begin = 0, end = 0;
    bool bipartite = true;
    rbt_edge edge = {0, 0};

    memset(of, 2, graph->nodes);
    for (uint32_t first = 0; first < graph->nodes && bipartite; first++) {
        if (of[first] != 2)
            continue;
        of[first] = 0;
        for (queue[end++] = first; begin < end && bipartite; begin++) {
            rbt_neighbours in = rbt_graph_in(graph, queue[begin]), out = rbt_graph_out(graph, queue[begin]);

            bipartite =
                colour(&in, queue[begin], of, queue, &end, &edge) && colour(&out, queue[begin], of, queue, &end, &edge);
        }
    }
    if (bipartite && side != NULL)
        memcpy(side, of, graph->nodes);
    if (!bipartite && within != NULL)
        *within = edge;
    rbt_free(of);
    rbt_free(queue);
    return bipartite;
}

/* ---------------------------------------------------------------------------------------------- spectral gap */

bool rbt_graph_is_circulant(const rbt_graph *graph)
{
    rbt_neighbours first = rbt_graph_out(graph, 0);

    for (uint32_t i = 1; i < graph->nodes; i++) {
        if (rbt_graph_out(graph, i).count != first.count)
            return false;
        for (uint32_t k = 0; k < first.count; k++)
            if (!rbt_graph_has(graph, i, (i + first.at[k]) % graph->nodes))
                return false;
    }
    return true;
}

/* W, or NULL when it is too large. */
static double *dense_weights(const rbt_graph *graph, bool *symmetric)
{
    size_t n = graph->nodes;
    double *w;

    *symmetric = rbt_graph_is_symmetric(graph);
    for (uint32_t i = 0; i < graph->nodes; i++) /* with other degrees the weights of an edge and its opposite differ */
        for (uint32_t k = 0; k < rbt_graph_in(graph, i).count && *symmetric; k++)
            *symmetric = rbt_graph_in(graph, rbt_graph_in(graph, i).at[k]).count == rbt_graph_in(graph, i).count;
    if (n > (*symmetric ? RBT_SPECTRAL_SYMMETRIC_MAX : RBT_SPECTRAL_GENERAL_MAX))
        return NULL;
    w = rbt_try_alloc(n * n, sizeof *w);
    if (w == NULL)
        return NULL;
    for (uint32_t j = 0; j < graph->nodes; j++) {
        rbt_neighbours in = rbt_graph_in(graph, j);

        for (uint32_t k = 0; k < in.count; k++)
            w[in.at[k] * n + j] = 1.0 / in.count;
    }
    return w;
}

static rbt_spectrum spectrum_of(const rbt_graph *graph)
{
    bool symmetric;
    rbt_spectrum found;
    double *w;

    if (rbt_graph_is_circulant(graph)) {
        rbt_neighbours out = rbt_graph_out(graph, 0);
        return rbt_spectrum_circulant(graph->nodes, out.at, out.count);
    }
    w = dense_weights(graph, &symmetric);
    if (w == NULL)
        return (rbt_spectrum){NAN, NAN};
    found = symmetric ? rbt_spectrum_symmetric(w, graph->nodes) : rbt_spectrum_general(w, graph->nodes);
    rbt_free(w);
    return found;
}

double rbt_graph_spectral_gap(const rbt_graph *graph)
{
    return spectrum_of(graph).gap;
}

double rbt_graph_step_room(const rbt_graph *graph)
{
    double room = spectrum_of(graph).room;
    uint32_t most = 1;

    for (uint32_t i = 0; i < graph->nodes; i++)
        most = rbt_graph_in(graph, i).count > most ? rbt_graph_in(graph, i).count : most;
    if (!(room > 2.0 / most)) /* also when it is not known: Gershgorin's circles begin at 2 W[i][i] - 1 */
        room = 2.0 / most;
    return (double)(uint64_t)(room * ROOM_STEPS + 0.5) / ROOM_STEPS;
}
