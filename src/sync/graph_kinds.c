/* Graphs by name; the contract is in graph.h. All but the clique follow from where a node's neighbours are in relation to
 * it; every one gives all nodes the same number of neighbours, which makes the weights doubly stochastic. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "sync/graph.h"

typedef RBT_ARRAY(rbt_edge) edge_list;

static const char *const kind_names[RBT_GRAPH_KINDS] = {"ring",     "ring-based",  "double-ring",
                                                        "complete", "exponential", "clique"};

const char *rbt_graph_kind_name(rbt_graph_kind kind)
{
    RBT_ASSERT(kind < RBT_GRAPH_KINDS);
    return kind_names[kind];
}

bool rbt_graph_kind_find(const char *name, rbt_graph_kind *kind)
{
    for (unsigned k = 0; k < RBT_GRAPH_KINDS; k++)
        if (strcmp(kind_names[k], name) == 0) {
            *kind = (rbt_graph_kind)k;
            return true;
        }
    return false;
}

static void add(edge_list *edges, uint32_t from, uint32_t to)
{
    rbt_array_push(edges, ((rbt_edge){from, to}));
}

/* ---------------------------------------------------------------------------------------------- by offset */

#define OFFSETS_MOST 32

/* Where neighbours are in relation to a node: each offset once. */
typedef struct offsets {
    uint32_t n;
    uint32_t count;
    uint32_t at[OFFSETS_MOST];
} offsets;

static void offsets_add(offsets *o, uint32_t offset)
{
    offset %= o->n;
    for (uint32_t k = 0; k < o->count; k++)
        if (o->at[k] == offset)
            return;
    o->at[o->count++] = offset;
}

static offsets offsets_ring(uint32_t n, bool distant)
{
    offsets o = {.n = n};

    offsets_add(&o, 0);
    offsets_add(&o, 1);
    offsets_add(&o, n - 1);
    if (distant) {
        offsets_add(&o, n / 2);
        offsets_add(&o, n - n / 2);
    }
    return o;
}

static offsets offsets_exponential(uint32_t n)
{
    offsets o = {.n = n};

    offsets_add(&o, 0);
    for (uint32_t step = 1; step < n; step *= 2)
        offsets_add(&o, step);
    return o;
}

/* The graph of these offsets on the nodes first .. first + n - 1. */
static void add_circle(edge_list *edges, uint32_t first, const offsets *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = 0; k < o->count; k++)
            add(edges, first + i, first + (i + o->at[k]) % o->n);
}

static void add_double_ring(edge_list *edges, uint32_t n)
{
    offsets o = offsets_ring(n / 2, true);

    add_circle(edges, 0, &o);
    add_circle(edges, n / 2, &o);
    for (uint32_t i = 0; i < n / 2; i++) {
        add(edges, i, i + n / 2);
        add(edges, i + n / 2, i);
    }
}

static void add_complete(edge_list *edges, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            add(edges, first + i, first + j);
}

/* ------------------------------------------------------------------------------------------------- cliques */

/* Edges that machine m sends to others when all nodes have `degree` neighbours, themselves included. */
static int64_t need_of(const rbt_machines *machines, uint32_t m, uint32_t degree)
{
    return (int64_t)machines->nodes[m] * ((int64_t)degree - machines->nodes[m]);
}

/* How many edges go from each machine m to the next: links[m - 1] + links[m] = need of m, at least one, and at most as
 * many as there are pairs of nodes. False when there is no such number of edges.
 *
 * links[m] = links[m] below +- links[0]. With an odd number of machines the circle closes for one links[0]; with an even
 * number for none or for all, of which the middle one is taken. Two machines have one pair and not two. */
static bool links_of(const rbt_machines *machines, uint32_t degree, int64_t *links)
{
    uint32_t count = machines->count;
    int64_t first, low = INT64_MIN, high = INT64_MAX, closing;

    links[0] = 0;
    for (uint32_t m = 0; m < count; m++) {
        int64_t pairs = (int64_t)machines->nodes[m] * machines->nodes[(m + 1) % count], least, most;

        if (m > 0)
            links[m] = need_of(machines, m, degree) - links[m - 1];
        least = m % 2 == 0 ? 1 - links[m] : links[m] - pairs;
        most = m % 2 == 0 ? pairs - links[m] : links[m] - 1;
        low = least > low ? least : low;
        high = most < high ? most : high;
    }
    closing = need_of(machines, 0, degree) - links[count - 1];
    if (count == 2) {
        links[0] = links[1];
        return closing == 0 && links[0] >= 1 && links[0] <= (int64_t)machines->nodes[0] * machines->nodes[1];
    }
    first = count % 2 == 0 ? low + (high - low) / 2 : closing / 2;
    if (closing != (count % 2 == 0 ? 0 : 2 * first) || low > high || first < low || first > high)
        return false;
    for (uint32_t m = 0; m < count; m++)
        links[m] += m % 2 == 0 ? first : -first;
    return true;
}

/* The fewest neighbours with which it can be done; 0 when it cannot. */
static uint32_t degree_of(const rbt_machines *machines, uint32_t nodes, int64_t *links)
{
    uint32_t degree = 0;

    for (uint32_t m = 0; m < machines->count; m++)
        if (machines->nodes[m] > degree)
            degree = machines->nodes[m];
    for (degree++; degree <= nodes; degree++)
        if (links_of(machines, degree, links))
            return degree;
    return 0;
}

/* Joins the nodes of one machine to those of the next: node i of the first takes right[i] edges, node j of the second
 * left[j]. Each in turn takes those with the most still to take, which finds a way if there is one. */
static void join(edge_list *edges, uint32_t first, const uint32_t *right, uint32_t n, uint32_t second, uint32_t *left,
                 uint32_t m)
{
    bool *taken = rbt_alloc(m, sizeof *taken);

    for (uint32_t i = 0; i < n; i++) {
        memset(taken, 0, m * sizeof *taken);
        for (uint32_t k = 0; k < right[i]; k++) {
            uint32_t best = m;

            for (uint32_t j = 0; j < m; j++)
                if (!taken[j] && left[j] > 0 && (best == m || left[j] > left[best]))
                    best = j;
            RBT_ASSERT(best < m);
            taken[best] = true;
            left[best]--;
            add(edges, first + i, second + best);
            add(edges, second + best, first + i);
        }
    }
    rbt_free(taken);
}

/* Shares out `links` edges over n nodes as evenly as can be. */
static void share(uint32_t *each, uint32_t n, int64_t links)
{
    for (uint32_t i = 0; i < n; i++)
        each[i] = (uint32_t)(links / n) + (i < (uint32_t)(links % n));
}

static void add_cliques(edge_list *edges, const rbt_machines *machines, uint32_t nodes, uint32_t degree,
                        const int64_t *links)
{
    uint32_t *right = rbt_alloc(nodes, sizeof *right), *left = rbt_alloc(nodes, sizeof *left), first = 0;
    uint32_t count = machines->count, pairs = count == 2 ? 1 : count;

    for (uint32_t m = 0; m < count; m++) {
        add_complete(edges, first, machines->nodes[m]);
        first += machines->nodes[m];
    }
    share(right, machines->nodes[0], links[0]);
    for (uint32_t i = 0; i < machines->nodes[0]; i++)
        left[i] = degree - machines->nodes[0] - right[i];
    first = 0;
    for (uint32_t m = 0; m < pairs; m++) {
        uint32_t n = machines->nodes[m], next = (m + 1) % count, second = next == 0 ? 0 : first + n;

        if (next != 0) {
            share(left + second, machines->nodes[next], links[m]);
            for (uint32_t i = 0; i < machines->nodes[next]; i++)
                right[second + i] = degree - machines->nodes[next] - left[second + i];
        }
        join(edges, first, right + first, n, second, left + second, machines->nodes[next]);
        first += n;
    }
    rbt_free(right);
    rbt_free(left);
}

static rbt_err cliques(edge_list *edges, const rbt_machines *machines, uint32_t nodes, rbt_error *error)
{
    int64_t *links = rbt_alloc(machines->count, sizeof *links);
    uint32_t degree = degree_of(machines, nodes, links);
    rbt_err err = RBT_OK;

    if (degree > 0)
        add_cliques(edges, machines, nodes, degree, links);
    else
        err =
            rbt_fail(error, RBT_E_USAGE,
                     "clique: %u machines with so different numbers of nodes cannot be joined in a ring so that every "
                     "node has the same number of neighbours; take machines of one size, or another order of them",
                     machines->count);
    rbt_free(links);
    return err;
}

/* ---------------------------------------------------------------------------------------------------- all */

/* One-way edges at most, before any are made. */
static size_t edges_expected(rbt_graph_kind kind, uint32_t nodes, const rbt_machines *machines)
{
    size_t most = nodes;

    if (kind == RBT_GRAPH_CLIQUE && machines != NULL) {
        most = 0;
        for (uint32_t m = 0; m < machines->count; m++)
            most = machines->nodes[m] > most ? machines->nodes[m] : most;
    } else if (kind != RBT_GRAPH_COMPLETE && kind != RBT_GRAPH_CLIQUE) {
        most = 1;
    }
    return most * nodes;
}

static rbt_err make(edge_list *edges, rbt_graph_kind kind, uint32_t nodes, const rbt_machines *machines,
                    rbt_error *error)
{
    offsets o;

    switch (kind) {
    case RBT_GRAPH_RING:
    case RBT_GRAPH_RING_BASED:
        o = offsets_ring(nodes, kind == RBT_GRAPH_RING_BASED);
        add_circle(edges, 0, &o);
        return RBT_OK;
    case RBT_GRAPH_EXPONENTIAL:
        o = offsets_exponential(nodes);
        add_circle(edges, 0, &o);
        return RBT_OK;
    case RBT_GRAPH_DOUBLE_RING:
        if (nodes % 2 != 0)
            return rbt_fail(error, RBT_E_USAGE, "double-ring: %u nodes cannot make two rings; take an even number",
                            nodes);
        add_double_ring(edges, nodes);
        return RBT_OK;
    case RBT_GRAPH_CLIQUE:
        if (machines != NULL && machines->count > 1)
            return cliques(edges, machines, nodes, error);
        break; /* one machine is one clique */
    default:
        break;
    }
    add_complete(edges, 0, nodes);
    return RBT_OK;
}

rbt_err rbt_graph_init(rbt_graph *graph, rbt_graph_kind kind, uint32_t nodes, const rbt_machines *machines,
                       rbt_error *error)
{
    edge_list edges = {0};
    rbt_err err;

    if (nodes == 0 || nodes > RBT_GRAPH_NODES_MAX)
        return rbt_fail(error, RBT_E_USAGE, "%s: a graph of %u nodes; 1 to %u are possible", kind_names[kind], nodes,
                        RBT_GRAPH_NODES_MAX);
    if (edges_expected(kind, nodes, machines) > RBT_GRAPH_EDGES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "%s: %u nodes have more than %zu edges; take fewer, or another kind",
                        kind_names[kind], nodes, RBT_GRAPH_EDGES_MAX);
    err = make(&edges, kind, nodes, machines, error);
    if (err == RBT_OK)
        err = rbt_graph_init_edges(graph, nodes, edges.at, edges.count, error);
    rbt_array_free(&edges);
    return err;
}
