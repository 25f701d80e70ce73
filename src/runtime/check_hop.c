/* The checker of peers; the contract is in check_hop.h. */
#include "runtime/check_hop.h"

#include "base/error.h"
#include "sync/gap.h"

/* A peer as it was after the last event. */
typedef struct shadow_peer {
    const rbt_peer *peer; /* NULL: it is no more */
    uint64_t entered;     /* the iteration it has told its neighbours */
    uint64_t stands;      /* the same, but where it jumped from while it waits to renew its parameters */
    uint64_t skipped;
} shadow_peer;

struct rbt_hop_checker {
    const rbt_topology *topology;
    const rbt_hop *hop;
    rbt_checker *report;
    shadow_peer *peers;
    uint64_t *bound;   /* on iter(i) - iter(j): bound[i * workers + j] */
    uint64_t *sent;    /* the last token of j that went onto the wire to i: sent[j * workers + i] */
    uint64_t *arrived; /* the last one that came from it */
    bool moved;        /* since the last judgement somebody entered an iteration */
    bool left;         /* somebody left, or nobody was looked at yet */
    uint64_t gap;
    uint64_t jumps;
};

rbt_hop_checker *rbt_hop_checker_create(const rbt_topology *topology, rbt_checker *report)
{
    rbt_hop_checker *checker = rbt_alloc(1, sizeof *checker);

    *checker = (rbt_hop_checker){.topology = topology, .hop = topology->hop, .report = report, .left = true};
    checker->peers = rbt_alloc(topology->workers, sizeof *checker->peers);
    checker->bound = rbt_alloc((size_t)topology->workers * topology->workers, sizeof *checker->bound);
    checker->sent = rbt_alloc((size_t)topology->workers * topology->workers, sizeof *checker->sent);
    checker->arrived = rbt_alloc((size_t)topology->workers * topology->workers, sizeof *checker->arrived);
    return checker;
}

void rbt_hop_checker_destroy(rbt_hop_checker *checker)
{
    if (checker == NULL)
        return;
    rbt_free(checker->peers);
    rbt_free(checker->bound);
    rbt_free(checker->sent);
    rbt_free(checker->arrived);
    rbt_free(checker);
}

uint64_t rbt_hop_checker_gap(const rbt_hop_checker *checker)
{
    return checker->gap;
}

uint64_t rbt_hop_checker_jumps(const rbt_hop_checker *checker)
{
    return checker->jumps;
}

/* ------------------------------------------------------------------------------------------------------- gaps */

/* Shortest paths over peers that are there (Floyd and Warshall), then Table 1. */
static void set_bounds(rbt_hop_checker *checker)
{
    uint32_t n = checker->topology->workers, *hops = rbt_alloc((size_t)n * n, sizeof *hops);
    bool free_running = checker->hop->side != NULL; /* AD-PSGD keeps nobody back */
    rbt_gap_setting setting = {.staleness = checker->hop->staleness,
                               .max_gap = checker->hop->max_gap,
                               .backup = checker->hop->backup > 0 || free_running,
                               .notify_ack = checker->hop->notify_ack};

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            hops[i * n + j] = i == j                                                             ? 0
                              : checker->peers[i].peer == NULL || checker->peers[j].peer == NULL ? RBT_GRAPH_FAR
                              : rbt_graph_has(&checker->hop->graph, i, j)                        ? 1
                                                                                                 : RBT_GRAPH_FAR;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                if (hops[i * n + k] != RBT_GRAPH_FAR && hops[k * n + j] != RBT_GRAPH_FAR &&
                    hops[i * n + k] + hops[k * n + j] < hops[i * n + j])
                    hops[i * n + j] = hops[i * n + k] + hops[k * n + j];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            checker->bound[i * n + j] = rbt_gap_bound(&setting, hops[j * n + i], hops[i * n + j]);
    rbt_free(hops);
}

static void check_gaps(rbt_hop_checker *checker)
{
    uint32_t n = checker->topology->workers;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const shadow_peer *ahead = &checker->peers[i], *behind = &checker->peers[j];
            uint64_t gap = ahead->stands > behind->entered ? ahead->stands - behind->entered : 0;

            if (ahead->peer == NULL || behind->peer == NULL)
                continue;
            if (gap > checker->gap)
                checker->gap = gap;
            if (gap > checker->bound[i * n + j])
                rbt_checker_report(checker->report,
                                   "worker %u is in iteration %llu and worker %u in %llu: at most %llu apart can be", i,
                                   (unsigned long long)ahead->stands, j, (unsigned long long)behind->entered,
                                   (unsigned long long)checker->bound[i * n + j]);
        }
}

/* ----------------------------------------------------------------------------------------------- one peer's own */

static size_t wire_of(const rbt_hop_checker *checker, uint32_t from, uint32_t to)
{
    return (size_t)from * checker->topology->workers + to;
}

void rbt_hop_checker_sent(rbt_hop_checker *checker, const rbt_message *token)
{
    uint64_t *sent = &checker->sent[wire_of(checker, token->worker, token->to - checker->topology->servers - 1)];

    if (token->clock > *sent)
        *sent = token->clock;
}

void rbt_hop_checker_delivered(rbt_hop_checker *checker, const rbt_message *token)
{
    size_t wire = wire_of(checker, token->worker, token->to - checker->topology->servers - 1);

    if (token->clock > checker->sent[wire])
        rbt_checker_report(checker->report, "a token of worker %u for iteration %llu came that it never put in",
                           token->worker, (unsigned long long)token->clock);
    if (token->clock > checker->arrived[wire])
        checker->arrived[wire] = token->clock;
}

/* The identity, for every edge of the graph between peers that are there. */
static void check_tokens(rbt_hop_checker *checker, const rbt_peer *peer, const rbt_neighbour *n)
{
    const shadow_peer *there = &checker->peers[n->worker];
    size_t wire = wire_of(checker, n->worker, peer->worker);
    uint64_t under_way = checker->sent[wire] - checker->arrived[wire];

    if (checker->hop->max_gap == 0 || !n->is_out || n->gone || there->peer == NULL ||
        !rbt_graph_has(&checker->hop->graph, peer->worker, n->worker))
        return;
    if (!rbt_token_queue_holds(&n->tokens, there->peer->iteration, peer->iteration, under_way))
        rbt_checker_report(
            checker->report,
            "TokenQ(%u->%u) has %lld tokens and %llu are under way, but worker %u is in iteration %llu and worker "
            "%u in %llu (max_gap %llu)",
            n->worker, peer->worker, (long long)n->tokens.size, (unsigned long long)under_way, n->worker,
            (unsigned long long)there->peer->iteration, peer->worker, (unsigned long long)peer->iteration,
            (unsigned long long)checker->hop->max_gap);
}

static void check_queue(rbt_hop_checker *checker, const rbt_peer *peer, const rbt_neighbour *n)
{
    const shadow_peer *there = &checker->peers[n->worker];
    size_t found = 0;

    if (checker->hop->notify_ack && n->came.count > 1 && rbt_graph_has(&checker->hop->graph, n->worker, peer->worker))
        rbt_checker_report(checker->report, "worker %u sent worker %u an update before the last one was used",
                           n->worker, peer->worker);
    for (uint64_t k = 0; k < n->came.room; k++) {
        uint64_t iteration = n->came.at[k].iteration;

        if (n->came.at[k].x == NULL)
            continue;
        found++;
        if (iteration + checker->hop->staleness < peer->iteration)
            rbt_checker_report(checker->report, "worker %u in iteration %llu keeps an update of %llu of worker %u",
                               peer->worker, (unsigned long long)peer->iteration, (unsigned long long)iteration,
                               n->worker);
        if (iteration % n->came.room != k)
            rbt_checker_report(checker->report, "worker %u has an update of worker %u in a wrong place", peer->worker,
                               n->worker);
        if (there->peer != NULL && iteration > there->entered)
            rbt_checker_report(checker->report,
                               "worker %u has an update of iteration %llu of worker %u, which is in %llu", peer->worker,
                               (unsigned long long)iteration, n->worker, (unsigned long long)there->entered);
    }
    if (found != n->came.count)
        rbt_checker_report(checker->report, "worker %u counts %zu updates of worker %u and has %zu", peer->worker,
                           n->came.count, n->worker, found);
}

static void check_peer(rbt_hop_checker *checker, const rbt_peer *peer)
{
    uint64_t waiting = 0, in = 0, most;

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        waiting += n->came.count;
        in += n->is_in;
        if (n->worker == peer->worker)
            continue;
        check_tokens(checker, peer, n);
        check_queue(checker, peer, n);
    }
    most = (1 + checker->hop->max_gap) * in;
    if (checker->hop->max_gap > 0 && waiting > most)
        rbt_checker_report(checker->report, "the queue of worker %u has %llu updates, at most %llu can be there",
                           peer->worker, (unsigned long long)waiting, (unsigned long long)most);
}

/* A jump over iterations of which the last was `to` - 1. */
static void check_jump(rbt_hop_checker *checker, const rbt_peer *peer, uint64_t to)
{
    rbt_neighbours out = rbt_graph_out(&checker->hop->graph, peer->worker);

    checker->jumps++;
    for (uint32_t i = 0; i < out.count; i++) {
        const shadow_peer *there = &checker->peers[out.at[i]];

        if (out.at[i] != peer->worker && there->peer != NULL && to > there->entered)
            rbt_checker_report(checker->report, "worker %u jumps to iteration %llu, past worker %u, which is in %llu",
                               peer->worker, (unsigned long long)to, out.at[i], (unsigned long long)there->entered);
    }
}

/* ----------------------------------------------------------------------------------------------------- an event */

void rbt_hop_checker_see(rbt_hop_checker *checker, uint32_t worker, const rbt_peer *peer)
{
    shadow_peer *shadow = &checker->peers[worker];
    uint64_t jumped, from = shadow->entered;

    checker->left = checker->left || (shadow->peer != peer);
    shadow->peer = peer;
    if (peer == NULL)
        return;
    jumped = peer->skipped - shadow->skipped;
    shadow->skipped = peer->skipped;
    if (peer->iteration == from)
        return;
    checker->moved = true;
    shadow->entered = shadow->stands = peer->iteration;
    if (jumped > 0 && peer->iteration == from + jumped)
        shadow->stands = from; /* it waits for what it renews its parameters with */
    if (jumped > 0)
        check_jump(checker, peer, from + jumped + 1);
}

void rbt_hop_checker_judge(rbt_hop_checker *checker)
{
    if (checker->left)
        set_bounds(checker);
    if (checker->left || checker->moved)
        check_gaps(checker);
    checker->left = checker->moved = false;
    for (uint32_t m = 0; m < checker->topology->workers; m++)
        if (checker->peers[m].peer != NULL)
            check_peer(checker, checker->peers[m].peer);
}
