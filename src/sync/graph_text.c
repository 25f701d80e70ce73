/* Graphs and machines from text; the contract is in graph.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "sync/graph.h"

#define WORD_SHOWN 20 /* characters of what is no number, in a message */

/* A line that is being read. */
typedef struct line {
    const char *at;
    const char *end; /* of the line, without its comment */
    uint32_t number;
} line;

typedef struct found {
    rbt_edge edge;
    uint32_t line;
} found;

typedef RBT_ARRAY(found) found_list;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(line *l)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

/* Up to nine digits with a blank or the end behind them. */
static bool get_number(line *l, uint32_t *value)
{
    const char *at = l->at;

    *value = 0;
    while (at < l->end && *at >= '0' && *at <= '9' && at - l->at < 9)
        *value = *value * 10 + (uint32_t)(*at++ - '0');
    if (at == l->at || (at < l->end && !is_blank(*at)))
        return false;
    l->at = at;
    skip_blanks(l);
    return true;
}

/* How much of the rest of a line is shown in a message. */
static int shown(const line *l)
{
    return (int)(l->end - l->at < WORD_SHOWN ? l->end - l->at : WORD_SHOWN);
}

static rbt_err get_edge(line *l, const char *name, uint32_t nodes, found_list *list, rbt_error *error)
{
    found f = {.line = l->number};
    bool both;

    if (!get_number(l, &f.edge.from))
        return rbt_fail(error, RBT_E_DATA, "%s:%u: '%.*s' is no node; write an edge as '3 5', or '3 - 5' for both ways",
                        name, l->number, shown(l), l->at);
    both = l->end - l->at > 1 && l->at[0] == '-' && is_blank(l->at[1]);
    if (both) {
        l->at++;
        skip_blanks(l);
    }
    if (!get_number(l, &f.edge.to) || l->at < l->end)
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%u: '%.*s' where a node was expected, and the end of the line after it; write an edge as "
                        "'3 5', or '3 - 5' for both ways",
                        name, l->number, shown(l), l->at);
    if (f.edge.from >= nodes || f.edge.to >= nodes)
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%u: node %u is out of range; the nodes are 0 to %u, one for each worker: correct it, or "
                        "give other --workers",
                        name, l->number, f.edge.from >= nodes ? f.edge.from : f.edge.to, nodes - 1);
    rbt_array_push(list, f);
    if (both && f.edge.from != f.edge.to) {
        f.edge = (rbt_edge){f.edge.to, f.edge.from};
        rbt_array_push(list, f);
    }
    if (list->count > RBT_GRAPH_EDGES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "%s:%u: more than %zu edges", name, l->number, RBT_GRAPH_EDGES_MAX);
    return RBT_OK;
}

static rbt_err get_lines(const char *text, size_t n, const char *name, uint32_t nodes, found_list *list,
                         rbt_error *error)
{
    const char *at = text, *end = text + n;
    rbt_err err = RBT_OK;

    for (uint32_t number = 1; at < end && err == RBT_OK; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *hash;
        line l = {at, stop != NULL ? stop : end, number};

        at = stop != NULL ? stop + 1 : end;
        hash = memchr(l.at, '#', (size_t)(l.end - l.at));
        l.end = hash != NULL ? hash : l.end;
        skip_blanks(&l);
        if (l.at < l.end)
            err = get_edge(&l, name, nodes, list, error);
    }
    return err;
}

static int compare_found(const void *a, const void *b)
{
    const found *x = a, *y = b;

    if (x->edge.from != y->edge.from)
        return x->edge.from < y->edge.from ? -1 : 1;
    if (x->edge.to != y->edge.to)
        return x->edge.to < y->edge.to ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Is an edge there twice? Sorts the list. */
static rbt_err check_twice(found_list *list, const char *name, rbt_error *error)
{
    if (list->count > 1)
        qsort(list->at, list->count, sizeof *list->at, compare_found);
    for (size_t e = 1; e < list->count; e++) {
        const found *a = &list->at[e - 1], *b = &list->at[e];

        if (a->edge.from == b->edge.from && a->edge.to == b->edge.to)
            return rbt_fail(error, RBT_E_DATA,
                            "%s:%u: the edge from %u to %u is there already, in line %u; remove one of them", name,
                            b->line, b->edge.from, b->edge.to, a->line);
    }
    return RBT_OK;
}

rbt_err rbt_graph_parse(rbt_graph *graph, const char *name, const char *text, size_t n, uint32_t nodes,
                        rbt_error *error)
{
    found_list list = {0};
    RBT_ARRAY(rbt_edge) edges = {0};
    uint32_t highest = 0;
    rbt_err err = get_lines(text, n, name, nodes > 0 ? nodes : RBT_GRAPH_NODES_MAX, &list, error);

    if (err == RBT_OK && list.count == 0)
        err = rbt_fail(error, RBT_E_DATA, "%s: there is no edge in it; write one per line, such as '3 5'", name);
    if (err == RBT_OK)
        err = check_twice(&list, name, error);
    for (size_t e = 0; e < list.count && err == RBT_OK; e++) {
        const rbt_edge *edge = &list.at[e].edge;

        highest = edge->from > highest ? edge->from : highest;
        highest = edge->to > highest ? edge->to : highest;
        rbt_array_push(&edges, *edge);
    }
    if (err == RBT_OK)
        err = rbt_graph_init_edges(graph, nodes > 0 ? nodes : highest + 1, edges.at, edges.count, error);
    rbt_array_free(&edges);
    rbt_array_free(&list);
    return err;
}

/* ------------------------------------------------------------------------------------------------- machines */

static rbt_err machines_fail(const char *text, rbt_error *error)
{
    return rbt_fail(error, RBT_E_USAGE,
                    "machines = %.60s: expected how many nodes are on each, such as 3,3,2, or a number of machines",
                    text);
}

static rbt_err machines_list(const char *text, uint32_t nodes, rbt_machines *machines, rbt_error *error)
{
    RBT_ARRAY(uint32_t) sizes = {0};
    uint64_t sum = 0;
    rbt_err err = RBT_OK;

    for (const char *at = text; err == RBT_OK;) {
        const char *comma = strchr(at, ',');
        line l = {at, comma != NULL ? comma : at + strlen(at), 0};
        uint32_t size = 0;

        if (!get_number(&l, &size) || l.at < l.end || size == 0 || sizes.count > RBT_GRAPH_NODES_MAX)
            err = machines_fail(text, error);
        rbt_array_push(&sizes, size);
        sum += size;
        if (comma == NULL)
            break;
        at = comma + 1;
    }
    if (err == RBT_OK && sum != nodes)
        err = rbt_fail(error, RBT_E_USAGE, "machines = %.60s: that makes %llu nodes, and the graph has %u", text,
                       (unsigned long long)sum, nodes);
    if (err == RBT_OK)
        *machines = (rbt_machines){(uint32_t)sizes.count, sizes.at};
    else
        rbt_array_free(&sizes);
    return err;
}

rbt_err rbt_machines_parse(const char *text, uint32_t nodes, rbt_machines *machines, rbt_error *error)
{
    line l = {text, text + strlen(text), 0};
    uint32_t count = 0;

    if (strchr(text, ',') != NULL)
        return machines_list(text, nodes, machines, error);
    if (!get_number(&l, &count) || l.at < l.end || count == 0)
        return machines_fail(text, error);
    if (count > nodes)
        return rbt_fail(error, RBT_E_USAGE, "machines = %u: the graph has only %u nodes; take at most as many machines",
                        count, nodes);
    *machines = (rbt_machines){count, rbt_alloc(count, sizeof *machines->nodes)};
    for (uint32_t m = 0; m < count; m++)
        machines->nodes[m] = nodes / count + (m < nodes % count);
    return RBT_OK;
}

void rbt_machines_deinit(rbt_machines *machines)
{
    rbt_free(machines->nodes);
    *machines = (rbt_machines){0, NULL};
}

uint32_t rbt_machines_of(const rbt_machines *machines, uint32_t node)
{
    uint32_t m = 0;

    while (m + 1 < machines->count && node >= machines->nodes[m])
        node -= machines->nodes[m++];
    return m;
}
