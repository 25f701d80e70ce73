/* Budgets, checked; the contract is in check_budget.h. */
#include "runtime/check_budget.h"

#include "base/error.h"
#include "node/early.h"

typedef struct sent {
    uint64_t time_ns;
    uint64_t bytes;
} sent;

/* What one node has sent in the last window: from `first` on. */
typedef struct history {
    RBT_ARRAY(sent) list;
    size_t first;
    uint64_t sum;
    uint32_t incarnation; /* a worker that comes back begins with an empty bucket */
    uint64_t *latest;     /* per server: the last early send; one that is not later goes out again, under a new view */
} history;

struct rbt_budget_checker {
    const rbt_topology *topology;
    double most; /* bytes in a window */
    history *nodes;
};

/* The most bytes that a strip may take: of a worker to a server, of a server to all workers. Where updates name versions a worker has
 * a part for each that it has computed from. */
static uint64_t largest_strip(const rbt_topology *topology)
{
    uint64_t largest = 0;

    for (uint32_t t = 0; t < topology->tables; t++) {
        const rbt_layout *layout = &topology->layout[t];
        uint64_t part = RBT_EARLY_PART + rbt_strip_width(layout) * (sizeof(uint32_t) + rbt_type_size(layout->type));
        uint64_t early = RBT_EARLY_MESSAGE + part * (rbt_has_tags(topology, t) ? RBT_KEPT_MAX + 1 : 1);
        uint64_t rows = (RBT_EARLY_MESSAGE + part) * topology->workers;

        if (!rbt_is_managed(topology, t))
            continue;
        largest = early > largest ? early : largest;
        largest = rows > largest ? rows : largest;
    }
    return largest;
}

static double most_of(const rbt_topology *topology)
{
    double burst = (double)topology->burst_bytes, alone = burst / 2 + (double)largest_strip(topology);

    return (double)topology->budget_bytes * RBT_BUDGET_WINDOW_NS / 1e9 + (alone > burst ? alone : burst);
}

rbt_budget_checker *rbt_budget_checker_create(const rbt_topology *topology)
{
    rbt_budget_checker *checker = rbt_alloc(1, sizeof *checker);

    checker->topology = topology;
    checker->most = most_of(topology);
    checker->nodes = rbt_alloc(rbt_topology_nodes(topology), sizeof *checker->nodes);
    for (uint32_t i = 0; i < rbt_topology_nodes(topology); i++)
        checker->nodes[i].latest = rbt_alloc(topology->servers, sizeof *checker->nodes[i].latest);
    return checker;
}

void rbt_budget_checker_destroy(rbt_budget_checker *checker)
{
    for (uint32_t i = 0; checker != NULL && i < rbt_topology_nodes(checker->topology); i++) {
        rbt_array_free(&checker->nodes[i].list);
        rbt_free(checker->nodes[i].latest);
    }
    if (checker != NULL)
        rbt_free(checker->nodes);
    rbt_free(checker);
}

/* Forgets what has left the window. */
static void forget(history *h, uint64_t now_ns)
{
    while (h->first < h->list.count && h->list.at[h->first].time_ns + RBT_BUDGET_WINDOW_NS < now_ns)
        h->sum -= h->list.at[h->first++].bytes;
    if (h->first < 1024 || h->first < h->list.count / 2)
        return;
    for (size_t i = h->first; i < h->list.count; i++)
        h->list.at[i - h->first] = h->list.at[i];
    h->list.count -= h->first;
    h->first = 0;
}

/* Is this a message that could have waited, sent for the first time? */
static bool could_wait(history *h, const rbt_message *message)
{
    uint64_t number = message->clock * RBT_EARLY_MAX + message->slice + 1;

    if (message->type == RBT_MSG_ROWS)
        return true;
    if (message->type != RBT_MSG_EARLY || number <= h->latest[message->to - 1])
        return false;
    h->latest[message->to - 1] = number;
    return true;
}

rbt_err rbt_budget_checker_sent(rbt_budget_checker *checker, const rbt_message *message, size_t bytes, uint64_t now_ns,
                                rbt_error *error)
{
    const rbt_topology *topology = checker->topology;
    history *h = &checker->nodes[message->from];
    sent now = {.time_ns = now_ns, .bytes = bytes};

    if (message->from > topology->servers && message->incarnation > h->incarnation) {
        h->incarnation = message->incarnation;
        h->sum = h->first = h->list.count = 0;
    }
    forget(h, now_ns);
    rbt_array_push(&h->list, now);
    h->sum += bytes;
    if (could_wait(h, message) && (double)h->sum > checker->most + 1)
        return rbt_fail(error, RBT_E_BROKEN, "node %u sends %s ahead of time, and %llu bytes in 100 ms, %.0f may be",
                        message->from, rbt_message_name(message->type), (unsigned long long)h->sum, checker->most);
    return RBT_OK;
}
