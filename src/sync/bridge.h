/* Bridges over nodes that are lost: who is next to whom when what they would have passed on goes directly.
 *
 * From a node that sends to a lost one there is now an edge to each that the lost one sent to, also through several lost ones in
 * a row. Both ends of a bridge find the same from the same set of lost nodes, in whatever order they learned of them, and edges
 * between nodes that are there stay. Called by the peer. Proved by tests/unit/test_peer_members.c (lost_neighbours_are_bridged).
 */
#ifndef RBT_SYNC_BRIDGE_H
#define RBT_SYNC_BRIDGE_H

#include "sync/graph.h"

/* Writes the nodes that `node` now sends to (out), or receives from, itself left out, into `list` with room for all nodes;
 * returns how many. */
uint32_t rbt_bridge(const rbt_graph *graph, const bool *is_lost, uint32_t node, bool out, uint32_t *list);

#endif
