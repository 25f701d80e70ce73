/* Distances and bounds on the iteration gap; the contract is in gap.h. */
#include "sync/gap.h"

#include "base/error.h"
#include "base/mem.h"

/* --------------------------------------------------------------------------------------------------- distances */

/* Breadth first; ends as soon as everybody has been met, which in dense graphs is after a few nodes. */
static void hops_along(const rbt_graph *graph, rbt_neighbours (*next)(const rbt_graph *, uint32_t), uint32_t node,
                       uint32_t *hops)
{
    uint32_t *queue = rbt_alloc(graph->nodes, sizeof *queue), end = 0;

    for (uint32_t i = 0; i < graph->nodes; i++)
        hops[i] = RBT_GRAPH_FAR;
    hops[node] = 0;
    queue[end++] = node;
    for (uint32_t begin = 0; begin < end && end < graph->nodes; begin++) {
        rbt_neighbours neighbours = next(graph, queue[begin]);

        for (uint32_t k = 0; k < neighbours.count; k++) {
            if (hops[neighbours.at[k]] != RBT_GRAPH_FAR)
                continue;
            hops[neighbours.at[k]] = hops[queue[begin]] + 1;
            queue[end++] = neighbours.at[k];
        }
    }
    rbt_free(queue);
}

void rbt_graph_hops_from(const rbt_graph *graph, uint32_t node, uint32_t *hops)
{
    RBT_ASSERT(node < graph->nodes);
    hops_along(graph, rbt_graph_out, node, hops);
}

void rbt_graph_hops_to(const rbt_graph *graph, uint32_t node, uint32_t *hops)
{
    RBT_ASSERT(node < graph->nodes);
    hops_along(graph, rbt_graph_in, node, hops);
}

/* From how many nodes one has to look to have seen all there is. */
static uint32_t viewpoints(const rbt_graph *graph)
{
    return rbt_graph_is_circulant(graph) ? 1 : graph->nodes;
}

uint32_t rbt_graph_diameter(const rbt_graph *graph)
{
    uint32_t *hops = rbt_alloc(graph->nodes, sizeof *hops), longest = 0, n = viewpoints(graph);

    for (uint32_t i = 0; i < n; i++) {
        rbt_graph_hops_from(graph, i, hops);
        for (uint32_t j = 0; j < graph->nodes; j++)
            if (hops[j] > longest)
                longest = hops[j];
    }
    rbt_free(hops);
    return longest;
}

rbt_err rbt_paths_init(rbt_paths *paths, const rbt_graph *graph, rbt_error *error)
{
    uint32_t *hops;

    if (graph->nodes > RBT_PATHS_NODES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "the paths between all %u nodes of a graph; at most %u nodes are possible",
                        graph->nodes, RBT_PATHS_NODES_MAX);
    hops = rbt_try_alloc((size_t)graph->nodes * graph->nodes, sizeof *hops);
    if (hops == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the paths between %u nodes", graph->nodes);
    for (uint32_t i = 0; i < graph->nodes; i++)
        rbt_graph_hops_from(graph, i, hops + (size_t)i * graph->nodes);
    *paths = (rbt_paths){graph->nodes, hops};
    return RBT_OK;
}

void rbt_paths_deinit(rbt_paths *paths)
{
    rbt_free(paths->hops);
    *paths = (rbt_paths){0, NULL};
}

/* ------------------------------------------------------------------------------------------------------ bounds */

/* step iterations for each hop; what has no end stays without. */
static uint64_t along(uint64_t step, uint32_t hops)
{
    if (hops == 0)
        return 0;
    return hops == RBT_GRAPH_FAR || step > RBT_UNBOUNDED / hops ? RBT_UNBOUNDED : step * hops;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t rbt_gap_bound(const rbt_gap_setting *setting, uint32_t hops_ji, uint32_t hops_ij)
{
    uint64_t bound = RBT_UNBOUNDED;

    if (hops_ji == 0) /* the same node */
        return 0;
    if (!setting->backup && setting->staleness < RBT_UNBOUNDED - 1)
        bound = along(setting->staleness + 1, hops_ji);
    if (setting->notify_ack)
        bound = least(bound, along(2, hops_ij));
    if (setting->max_gap > 0)
        bound = least(bound, along(setting->max_gap, hops_ij));
    return bound;
}

static void raise_to(uint64_t *most, uint64_t bound)
{
    if (bound > *most)
        *most = bound;
}

void rbt_gap_worst_of(const rbt_graph *graph, const rbt_gap_setting *settings, size_t n, rbt_gap_worst *worst)
{
    uint32_t *from_i = rbt_alloc(graph->nodes, sizeof *from_i), *to_i = rbt_alloc(graph->nodes, sizeof *to_i);
    uint32_t nodes = viewpoints(graph);

    for (size_t s = 0; s < n; s++)
        worst[s] = (rbt_gap_worst){0, 0, 0};
    for (uint32_t i = 0; i < nodes; i++) {
        rbt_graph_hops_from(graph, i, from_i);
        rbt_graph_hops_to(graph, i, to_i);
        for (uint32_t j = 0; j < graph->nodes; j++)
            for (size_t s = 0; s < n; s++) {
                uint64_t bound = rbt_gap_bound(&settings[s], to_i[j], from_i[j]);

                raise_to(&worst[s].over_any, bound);
                if (to_i[j] == 1)
                    raise_to(&worst[s].over_sender, bound);
                if (from_i[j] == 1)
                    raise_to(&worst[s].over_receiver, bound);
            }
    }
    rbt_free(from_i);
    rbt_free(to_i);
}
