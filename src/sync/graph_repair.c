/* Taking a node out of a graph; the contract is in graph.h.
 *
 * Every sender of the lost node has lost a receiver, every receiver a sender. Pairing the first with the second by new
 * edges gives everybody as many neighbours as before, so weights that were doubly stochastic stay so. Two that can be
 * paired both ways are, so that a ring stays a ring; the rest is a matching by augmenting paths; what cannot be matched,
 * because those two are neighbours or the same, is led through an edge elsewhere: u to v becomes u to q and p to v.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "sync/graph.h"

#define NOBODY UINT32_MAX

/* A repair under way: edges that come and go, and who of the lost node's senders is paired with which receiver. */
typedef struct repair {
    const rbt_graph *graph;
    uint32_t lost;
    RBT_ARRAY(rbt_edge) added;
    RBT_ARRAY(rbt_edge) removed;
    rbt_neighbours senders;   /* of the lost node; it is one of them */
    rbt_neighbours receivers; /* likewise */
    uint32_t *given;          /* the receiver that each of the senders now sends to, by place in the list */
    uint32_t *taken;          /* the sender of each of the receivers */
    bool *tried;
} repair;

static bool listed(const rbt_edge *edges, size_t n, uint32_t from, uint32_t to)
{
    for (size_t e = 0; e < n; e++)
        if (edges[e].from == from && edges[e].to == to)
            return true;
    return false;
}

/* Is there no edge, and was there none? One that has given way does not come back. */
static bool may_add(const repair *r, uint32_t from, uint32_t to)
{
    return from != to && !rbt_graph_has(r->graph, from, to) && !listed(r->added.at, r->added.count, from, to);
}

static bool may_pair(const repair *r, uint32_t p, uint32_t q)
{
    return p != q && p != r->lost && q != r->lost && !rbt_graph_has(r->graph, p, q);
}

static void pair(repair *r, uint32_t s, uint32_t t)
{
    r->given[s] = t;
    r->taken[t] = s;
}

/* Two that both sent to the lost node and received from it, and were strangers: an edge each way. */
static void pair_both_ways(repair *r)
{
    for (uint32_t s = 0; s < r->senders.count; s++)
        for (uint32_t t = 0; t < r->receivers.count && r->given[s] == NOBODY; t++) {
            uint32_t p = r->senders.at[s], q = r->receivers.at[t], back_s = NOBODY, back_t = NOBODY;

            for (uint32_t k = 0; k < r->senders.count; k++)
                back_s = r->senders.at[k] == q ? k : back_s;
            for (uint32_t k = 0; k < r->receivers.count; k++)
                back_t = r->receivers.at[k] == p ? k : back_t;
            if (back_s == NOBODY || back_t == NOBODY || r->taken[t] != NOBODY || r->given[back_s] != NOBODY ||
                r->taken[back_t] != NOBODY || !may_pair(r, p, q) || !may_pair(r, q, p))
                continue;
            pair(r, s, t);
            pair(r, back_s, back_t);
        }
}

/* Finds a receiver for sender s, asking those who have one to look for another. */
static bool augment(repair *r, uint32_t s)
{
    for (uint32_t t = 0; t < r->receivers.count; t++) {
        if (r->tried[t] || !may_pair(r, r->senders.at[s], r->receivers.at[t]))
            continue;
        r->tried[t] = true;
        if (r->taken[t] == NOBODY || augment(r, r->taken[t])) {
            pair(r, s, t);
            return true;
        }
    }
    return false;
}

static void match(repair *r)
{
    pair_both_ways(r);
    for (uint32_t s = 0; s < r->senders.count; s++) {
        if (r->given[s] != NOBODY || r->senders.at[s] == r->lost)
            continue;
        memset(r->tried, 0, r->receivers.count * sizeof *r->tried);
        (void)augment(r, s);
    }
    for (uint32_t s = 0; s < r->senders.count; s++)
        if (r->given[s] != NOBODY)
            rbt_array_push(&r->added, ((rbt_edge){r->senders.at[s], r->receivers.at[r->given[s]]}));
}

/* p still lacks a receiver and q a sender, and they cannot be paired: an edge from u to v gives way to two. */
static bool lead_through(repair *r, uint32_t p, uint32_t q)
{
    for (uint32_t u = 0; u < r->graph->nodes; u++) {
        rbt_neighbours out = rbt_graph_out(r->graph, u);

        if (u == r->lost || !may_add(r, u, q))
            continue;
        for (uint32_t k = 0; k < out.count; k++) {
            uint32_t v = out.at[k];

            if (v == u || v == r->lost || !may_add(r, p, v) || listed(r->removed.at, r->removed.count, u, v))
                continue;
            rbt_array_push(&r->removed, ((rbt_edge){u, v}));
            rbt_array_push(&r->added, ((rbt_edge){u, q}));
            rbt_array_push(&r->added, ((rbt_edge){p, v}));
            return true;
        }
    }
    return false;
}

static void lead_the_rest(repair *r)
{
    uint32_t t = 0;

    for (uint32_t s = 0; s < r->senders.count; s++) {
        if (r->given[s] != NOBODY || r->senders.at[s] == r->lost)
            continue;
        while (t < r->receivers.count && (r->taken[t] != NOBODY || r->receivers.at[t] == r->lost))
            t++;
        if (t == r->receivers.count)
            return;
        (void)lead_through(r, r->senders.at[s], r->receivers.at[t++]);
    }
}

/* The graph that has come about. */
static rbt_err rebuild(const repair *r, rbt_graph *graph, rbt_error *error)
{
    RBT_ARRAY(rbt_edge) edges = {0};
    rbt_err err;

    for (uint32_t i = 0; i < r->graph->nodes; i++) {
        rbt_neighbours out = rbt_graph_out(r->graph, i);

        for (uint32_t k = 0; k < out.count; k++)
            if (i != r->lost && out.at[k] != r->lost && !listed(r->removed.at, r->removed.count, i, out.at[k]))
                rbt_array_push(&edges, ((rbt_edge){i, out.at[k]}));
    }
    for (size_t e = 0; e < r->added.count; e++)
        rbt_array_push(&edges, r->added.at[e]);
    err = rbt_graph_init_edges(graph, r->graph->nodes, edges.at, edges.count, error);
    rbt_array_free(&edges);
    if (err == RBT_OK) {
        memcpy(graph->gone, r->graph->gone, graph->nodes * sizeof *graph->gone);
        graph->gone[r->lost] = true;
        graph->live = r->graph->live - 1;
    }
    return err;
}

rbt_err rbt_graph_remove(rbt_graph *graph, uint32_t node, rbt_error *error)
{
    repair r = {.graph = graph, .lost = node};
    rbt_graph mended;
    rbt_err err;

    RBT_ASSERT(node < graph->nodes && !graph->gone[node]);
    if (graph->live == 1)
        return rbt_fail(error, RBT_E_DATA, "node %u is the last one of the graph; there is nothing to repair", node);
    r.senders = rbt_graph_in(graph, node);
    r.receivers = rbt_graph_out(graph, node);
    r.given = rbt_alloc(r.senders.count, sizeof *r.given);
    r.taken = rbt_alloc(r.receivers.count, sizeof *r.taken);
    r.tried = rbt_alloc(r.receivers.count, sizeof *r.tried);
    memset(r.given, 0xff, r.senders.count * sizeof *r.given);
    memset(r.taken, 0xff, r.receivers.count * sizeof *r.taken);
    match(&r);
    lead_the_rest(&r);
    err = rebuild(&r, &mended, error);
    if (err == RBT_OK) {
        err = rbt_graph_check(&mended, "the graph without the lost node", error);
        if (err == RBT_OK) {
            rbt_graph swap = *graph;
            *graph = mended;
            mended = swap;
        }
        rbt_graph_deinit(&mended);
    }
    rbt_array_free(&r.added);
    rbt_array_free(&r.removed);
    rbt_free(r.given);
    rbt_free(r.taken);
    rbt_free(r.tried);
    return err;
}
