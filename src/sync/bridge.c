/* Bridges over lost nodes; the contract is in bridge.h. */
#include "sync/bridge.h"

#include "base/mem.h"

uint32_t rbt_bridge(const rbt_graph *graph, const bool *is_lost, uint32_t node, bool out, uint32_t *list)
{
    bool *seen = rbt_alloc(graph->nodes, sizeof *seen);
    uint32_t *way = rbt_alloc(graph->nodes, sizeof *way), length = 0, count = 0; /* every node is on the way once */

    seen[node] = true;
    way[length++] = node;
    while (length > 0) {
        uint32_t from = way[--length];
        rbt_neighbours next = out ? rbt_graph_out(graph, from) : rbt_graph_in(graph, from);

        for (uint32_t i = 0; i < next.count; i++) {
            uint32_t to = next.at[i];

            if (seen[to])
                continue;
            seen[to] = true;
            if (is_lost[to])
                way[length++] = to;
            else
                list[count++] = to;
        }
    }
    rbt_free(seen);
    rbt_free(way);
    return count;
}
