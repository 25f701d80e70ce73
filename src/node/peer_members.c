/* A peer's neighbours when others are lost: bridges over them, and weights that let all who are left count alike. Part of the peer;
 * the contract is in peer.h. Proved by tests/unit/test_peer_members.c (lost_neighbours_are_bridged, weights_after_a_loss_are_doubly_...) and
 * the swarm.
 *
 * On the graphs that peers start on a plain mean has doubly stochastic weights. With bridges nodes have different numbers of
 * neighbours, and with plain means those with more would count more. So the weights become Metropolis': an edge weighs 1/max(d, d')
 * with the larger number of neighbours (itself included) of its two ends, and a node itself the rest of 1. Where every edge has its
 * opposite these are symmetric, hence doubly stochastic, as soon as all know of the loss; on one-way graphs each peer's weights sum
 * to 1, but what it gives to others need not. Backup workers and staleness have weights of their own that were never doubly
 * stochastic. */
#include "base/error.h"
#include "node/peer.h"
#include "sync/bridge.h"

/* Whom we now send to directly. Where it stands it will tell, if there are tokens. */
static void connect_out(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *to = rbt_peer_meet(peer, worker);

    if (to->is_out)
        return;
    to->is_out = true;
    to->untold = peer->topology->hop->max_gap > 0;
    to->used = UINT64_MAX; /* as if it had used all */
}

/* Who now sends to us directly. From when on is not known: it is waited for from its first update on. */
static void connect_in(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *from = rbt_peer_meet(peer, worker);

    if (from->is_in)
        return;
    from->is_in = true;
    from->since = UINT64_MAX;
}

/* How many neighbours a node has now, itself included: the larger of both directions. `list` has room for all. */
static uint32_t degree(const rbt_peer *peer, uint32_t node, uint32_t *list)
{
    const rbt_graph *graph = &peer->topology->hop->graph;
    uint32_t in = rbt_bridge(graph, peer->is_lost, node, false, list);
    uint32_t out = rbt_bridge(graph, peer->is_lost, node, true, list);

    return 1 + (in > out ? in : out);
}

static void set_weights(rbt_peer *peer, uint32_t *list)
{
    uint32_t mine = degree(peer, peer->worker, list);

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        rbt_neighbour *n = &peer->neighbours.at[i];
        uint32_t other = n->is_in && !n->gone ? degree(peer, n->worker, list) : 0;

        n->weight = other == 0 ? 0 : 1.0 / (other > mine ? other : mine); /* what the lost left behind is left out */
    }
    peer->mended = true;
}

/* What lost peers would have passed on goes directly. */
static void repair(rbt_peer *peer)
{
    const rbt_graph *graph = &peer->topology->hop->graph;
    uint32_t *list = rbt_alloc(graph->nodes, sizeof *list), count;

    count = rbt_bridge(graph, peer->is_lost, peer->worker, true, list);
    for (uint32_t i = 0; i < count; i++)
        connect_out(peer, list[i]);
    count = rbt_bridge(graph, peer->is_lost, peer->worker, false, list);
    for (uint32_t i = 0; i < count; i++)
        connect_in(peer, list[i]);
    set_weights(peer, list);
    rbt_free(list);
}

void rbt_peer_handle_view(rbt_peer *peer, const rbt_message *message)
{
    const rbt_hop *hop = peer->topology->hop;
    bool news = false;

    if (message->view <= peer->view || message->members.count != peer->topology->workers)
        return;
    peer->view = message->view;
    for (uint32_t m = 0; m < peer->topology->workers; m++) {
        rbt_neighbour *n = rbt_peer_find(peer, m);

        if (message->members.at[m].state != RBT_MEMBER_RETIRED || m == peer->worker || peer->is_lost[m])
            continue;
        news = peer->is_lost[m] = true;
        if (n != NULL)
            n->gone = true;
    }
    /* All-reduce has no graph; over a lost peer of a bipartite one there would be edges within a side. */
    if (news && !hop->allreduce && hop->side == NULL)
        repair(peer);
}
