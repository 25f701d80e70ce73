/* A seed without servers; see swarm_hop.h.
 *
 * The program under test does not learn: before it sends, a peer writes its signature into its parameters, a 1 in its own
 * column and its iteration in another. The average then tells whose updates are in it, of which iteration and with which
 * weight, so that it can be checked without believing anything the peer says: nothing too old, in standard mode and with
 * backup workers nothing but this iteration's, the weights of docs/protocols.md, section 6, and no more missing than may be.
 * With AD-PSGD peers add to a column of their own, and the sum over all peers must be what was added.
 * Gaps, tokens, queues and jumps are checked by the simulator's checker after every event. In the end everybody has come to
 * his last iteration. */
#include "comm/squeeze.h"
#include "job/swarm_hop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "job/swarm_case.h"
#include "runtime/check_hop.h"
#include "runtime/handle.h"

#define CLOCKS_MAX  30
#define WORKERS_MAX 10
#define EDGES_MAX   (WORKERS_MAX * WORKERS_MAX)
#define TRIES       50 /* to find another permutation; then there are enough edges */
#define TOLERANCE   1e-4

typedef struct hop_case {
    uint64_t seed;
    const char *graph_name;
    uint64_t clocks[WORKERS_MAX]; /* uneven: some end early */
    uint64_t looks;               /* the observer looks when all have come so far */
    rbt_hop hop;
    rbt_topology topology;
    rbt_stragglers stragglers;
    const char *straggler; /* NULL: none */
    rbt_sim_options sim;
    rbt_checker *checker;
} hop_case;

bool rbt_swarm_is_hop(uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SWARM, 1);

    return rbt_rng_below(&rng, 2) == 0;
}

/* ------------------------------------------------------------------------------------------------- the program */

/* Parameters that say: this is worker m's, of that iteration. */
static void sign(const hop_case *c, uint32_t m, uint64_t iteration, float *x)
{
    memset(x, 0, c->hop.parameters * sizeof *x);
    x[m] = 1;
    x[c->topology.workers + m] = (float)(iteration + 1);
}

/* What an average of signatures says of worker m: false when it is not in there. */
static bool decode(const hop_case *c, const float *x, uint32_t m, uint64_t *iteration, double *weight)
{
    *weight = (double)x[m];
    if (x[m] == 0)
        return false;
    *iteration = (uint64_t)llround((double)x[c->topology.workers + m] / *weight) - 1;
    return true;
}

/* The weight that an update has before all are divided by their sum. */
static double raw_weight(const hop_case *c, uint64_t of, uint64_t iteration)
{
    return c->hop.staleness > 0 ? (double)of - ((double)iteration - (double)c->hop.staleness) + 1 : 1;
}

static bool is_right_age(const hop_case *c, uint64_t of, uint64_t iteration)
{
    return c->hop.staleness > 0 ? of + c->hop.staleness >= iteration : of == iteration;
}

/* After a loss in standard mode a peer itself weighs what its neighbours leave of 1; how much that is depends on who has heard. */
static void check_mended(const hop_case *c, uint32_t me, uint64_t iteration, const float *x)
{
    double sum = 0;

    for (uint32_t m = 0; m < c->topology.workers; m++) {
        sum += (double)x[m];
        if (x[m] < 0 || (m != me && (double)x[m] > 0.5 + TOLERANCE))
            rbt_checker_report(c->checker, "worker %u in iteration %" PRIu64 " weighs worker %u with %.6g", me,
                               iteration, m, (double)x[m]);
    }
    if (!(fabs(sum - 1) <= TOLERANCE))
        rbt_checker_report(c->checker, "the weights of worker %u in iteration %" PRIu64 " sum to %.6g, not to 1", me,
                           iteration, sum);
}

static void check_weights(const hop_case *c, uint32_t me, uint64_t iteration, const float *x)
{
    double sum = 0, weight;
    uint64_t of;

    if (c->sim.faults.crashes > 0 && c->hop.staleness == 0 && c->hop.backup == 0) {
        check_mended(c, me, iteration, x);
        return;
    }

    for (uint32_t m = 0; m < c->topology.workers; m++)
        if (decode(c, x, m, &of, &weight))
            sum += raw_weight(c, m == me ? iteration : of, iteration);
    for (uint32_t m = 0; m < c->topology.workers; m++)
        if (decode(c, x, m, &of, &weight)) {
            double must = raw_weight(c, m == me ? iteration : of, iteration) / sum;

            if (!(fabs(weight - must) <= TOLERANCE))
                rbt_checker_report(c->checker,
                                   "worker %u in iteration %" PRIu64 " weighs worker %u with %.6g, must be %.6g", me,
                                   iteration, m, weight, must);
        }
}

/* Is what worker `me` reduced in this iteration what it may and must reduce? */
static void check_average(const hop_case *c, uint32_t me, uint64_t iteration, const float *x)
{
    uint32_t missing = 0;

    for (uint32_t m = 0; m < c->topology.workers; m++) {
        bool is_in = rbt_graph_has(&c->hop.graph, m, me);
        double weight;
        uint64_t of;

        if (!decode(c, x, m, &of, &weight)) {
            missing += m != me && is_in && c->clocks[m] > iteration; /* one that has ended is not waited for */
            if (m == me)
                rbt_checker_report(c->checker, "worker %u leaves its own parameters out in iteration %" PRIu64, me,
                                   iteration);
            continue;
        }
        if (!is_in && c->sim.faults.crashes == 0)
            rbt_checker_report(c->checker, "worker %u takes an update of worker %u, which does not send to it", me, m);
        if (m != me && !is_right_age(c, of, iteration))
            rbt_checker_report(
                c->checker, "worker %u in iteration %" PRIu64 " takes an update of iteration %" PRIu64 " of worker %u",
                me, iteration, of, m);
    }
    if (missing > c->hop.backup && c->sim.faults.crashes == 0)
        rbt_checker_report(c->checker, "worker %u in iteration %" PRIu64 " misses %u updates, may miss %u", me,
                           iteration, missing, c->hop.backup);
    check_weights(c, me, iteration, x);
}

static rbt_err work_iteration(rbt_worker *worker, const hop_case *c, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    uint64_t iteration = rbt_worker_clock(worker);
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_BATCH, me * 1000 + iteration);
    uint64_t samples = 1 + rbt_rng_below(&rng, 2000);
    rbt_snap *mixed = NULL;
    rbt_err err;

    if (c->hop.serial)
        rbt_worker_did(worker, samples, 0);
    rbt_snap_writable(&worker->peer->x);
    sign(c, me, iteration, worker->peer->x->f32);
    err = rbt_hop_send(worker, error);
    if (err == RBT_OK && !c->hop.serial)
        rbt_worker_did(worker, samples, 0);
    if (err == RBT_OK)
        err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
    if (err != RBT_OK)
        return err;
    check_average(c, me, iteration, mixed->f32);
    sign(c, me, iteration, mixed->f32);
    err = rbt_hop_next(worker, mixed, error);
    if (err == RBT_OK && rbt_worker_clock(worker) > iteration + 1) /* jumped: the parameters were renewed */
        check_average(c, me, rbt_worker_clock(worker) - 1, worker->peer->x->f32);
    return err;
}

/* AD-PSGD: a peer adds 1 to its own column in every iteration; averaging moves that between peers and must lose nothing. */
static rbt_err gossip_iteration(rbt_worker *worker, const hop_case *c, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_BATCH, me * 1000 + rbt_worker_clock(worker));
    float update[2 * WORKERS_MAX] = {0};
    rbt_err err;

    rbt_worker_did(worker, 1 + rbt_rng_below(&rng, 2000), 0);
    update[me] = 1;
    rbt_hop_add(worker, update, 1);
    err = rbt_hop_gossip(worker, error);
    return err == RBT_OK ? rbt_hop_next(worker, NULL, error) : err;
}

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const hop_case *c = argument;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < c->clocks[rbt_worker_id(worker)])
        err = c->hop.side != NULL ? gossip_iteration(worker, c, error) : work_iteration(worker, c, error);
    return err == RBT_OK && c->hop.side != NULL ? rbt_hop_linger(worker, error) : err;
}

/* What all peers have in the end is what all have added. */
static void check_sums(const hop_case *c, const rbt_onlooker *onlooker)
{
    for (uint32_t m = 0; m < c->topology.workers; m++) {
        double sum = 0;

        for (uint32_t i = 0; i < c->topology.workers; i++) {
            if (onlooker->poses[i].x == NULL || onlooker->poses[i].is_lost)
                return; /* what it had is lost with it */
            sum += (double)onlooker->poses[i].x->f32[m];
        }
        if (!(fabs(sum - (double)c->clocks[m]) <= TOLERANCE * (1 + (double)c->clocks[m])))
            rbt_checker_report(c->checker,
                               "worker %u has added %" PRIu64 " in all, and all peers together have %.6g of it", m,
                               c->clocks[m], sum);
    }
}

static bool are_all_lost(const rbt_onlooker *onlooker)
{
    bool all = true;

    for (uint32_t m = 0; m < onlooker->topology->workers; m++)
        all = all && onlooker->poses[m].is_lost;
    return all;
}

/* Looks once on the way and once at the end, when everybody has come to his last iteration. If all are lost, it must be told so. */
static rbt_err observe(rbt_worker *observer, void *argument, rbt_error *error)
{
    const hop_case *c = argument;
    float *mean = rbt_alloc(c->hop.parameters, sizeof *mean);
    uint64_t slowest;
    rbt_err err = rbt_observe(observer, 0, c->looks, mean, &slowest, error);

    if (err == RBT_OK && slowest < c->looks)
        rbt_checker_report(c->checker, "the observer waits for iteration %" PRIu64 " and is shown %" PRIu64, c->looks,
                           slowest);
    if (err == RBT_OK)
        err = rbt_observe(observer, 0, RBT_UNBOUNDED, mean, &slowest, error);
    for (uint32_t m = 0; err == RBT_OK && m < c->topology.workers; m++) {
        const rbt_pose *pose = &observer->onlooker->poses[m];

        if (!pose->is_lost && (!pose->has_ended || pose->iteration < c->clocks[m]))
            rbt_checker_report(c->checker, "worker %u ended in iteration %" PRIu64 ", its last one is %" PRIu64, m,
                               pose->iteration, c->clocks[m]);
    }
    if (err == RBT_OK && c->hop.side != NULL)
        check_sums(c, observer->onlooker);
    if (err == RBT_E_LOST && are_all_lost(observer->onlooker))
        err = RBT_OK;
    rbt_free(mean);
    return err;
}

/* ----------------------------------------------------------------------------------------------------- drawing */

/* Adds a permutation that shares no edge with those that are there, nor with the self-loops: everybody gets one more sender and
 * one more receiver. The first is a ring through all, in random order. */
static bool add_permutation(rbt_edge *edges, size_t *count, uint32_t n, bool ring, rbt_rng *rng)
{
    uint32_t order[WORKERS_MAX];
    size_t old = *count;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)rbt_rng_below(rng, i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        rbt_edge edge = ring ? (rbt_edge){order[i], order[(i + 1) % n]} : (rbt_edge){i, order[i]};

        for (size_t e = 0; e < old; e++)
            if (edges[e].from == edge.from && edges[e].to == edge.to) {
                *count = old;
                return false;
            }
        edges[(*count)++] = edge;
    }
    return true;
}

/* A random graph in which all have the same number of neighbours; strongly connected, as it contains a ring through all. */
static rbt_err draw_regular(rbt_graph *graph, uint32_t n, rbt_rng *rng, rbt_error *error)
{
    rbt_edge edges[EDGES_MAX];
    size_t count = 0;
    uint64_t more = rbt_rng_below(rng, 3);

    for (uint32_t i = 0; i < n; i++)
        edges[count++] = (rbt_edge){i, i};
    if (n > 1)
        add_permutation(edges, &count, n, true, rng);
    for (uint64_t tries = 0; more > 0 && tries < TRIES; tries++)
        more -= add_permutation(edges, &count, n, false, rng);
    return rbt_graph_init_edges(graph, n, edges, count, error);
}

static rbt_err draw_graph(hop_case *c, rbt_rng *rng, rbt_error *error)
{
    uint64_t kind = rbt_rng_below(rng, RBT_GRAPH_KINDS + 4);
    uint32_t n = c->topology.workers;
    rbt_machines machines = {0};
    rbt_err err = RBT_OK;

    if (kind == RBT_GRAPH_CLIQUE && n > 3)
        err = rbt_machines_parse("2", n, &machines, NULL);
    c->graph_name = kind < RBT_GRAPH_KINDS ? rbt_graph_kind_name((rbt_graph_kind)kind) : "random";
    if (kind < RBT_GRAPH_KINDS && err == RBT_OK)
        err = rbt_graph_init(&c->hop.graph, (rbt_graph_kind)kind, n, &machines, NULL);
    rbt_machines_deinit(&machines);
    if (kind >= RBT_GRAPH_KINDS || err != RBT_OK) { /* some kinds want an even number of nodes, or more of them */
        c->graph_name = "random";
        err = draw_regular(&c->hop.graph, n, rng, error);
    }
    return err == RBT_OK ? rbt_graph_check(&c->hop.graph, c->graph_name, error) : err;
}

/* AD-PSGD: every second peer asks, a ring or everybody across. */
static rbt_err draw_bipartite(hop_case *c, rbt_rng *rng, rbt_error *error)
{
    rbt_edge edges[EDGES_MAX];
    size_t count = 0;
    uint32_t n = c->topology.workers;
    bool all = rbt_rng_below(rng, 2) == 0;
    rbt_err err;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i == j || (all ? (i + j) % 2 == 1 : (i + 1) % n == j || (j + 1) % n == i))
                edges[count++] = (rbt_edge){i, j};
    c->graph_name = all ? "two-sided" : "ring";
    err = rbt_graph_init_edges(&c->hop.graph, n, edges, count, error);
    c->hop.side = rbt_alloc(n, sizeof *c->hop.side);
    if (err == RBT_OK && !rbt_graph_is_bipartite(&c->hop.graph, c->hop.side, NULL))
        err = rbt_fail(error, RBT_E_BROKEN, "a graph drawn to be bipartite is not");
    return err;
}

/* The fewest in-neighbours that anybody has, itself not counted. */
static uint32_t fewest_senders(const rbt_graph *graph)
{
    uint32_t fewest = UINT32_MAX;

    for (uint32_t i = 0; i < graph->nodes; i++)
        fewest = rbt_graph_in(graph, i).count - 1 < fewest ? rbt_graph_in(graph, i).count - 1 : fewest;
    return fewest;
}

/* A variant that rubato train would take. */
static void draw_variant(hop_case *c, rbt_rng *rng)
{
    rbt_hop *hop = &c->hop;
    uint64_t kind = rbt_rng_below(rng, 8);

    hop->serial = rbt_rng_below(rng, 3) == 0;
    if (kind == 0) {
        hop->notify_ack = true;
        return;
    }
    if (kind > 1 && rbt_rng_below(rng, 2))
        hop->staleness = 1 + rbt_rng_below(rng, 5);
    if (kind > 2 || rbt_rng_below(rng, 2))
        hop->max_gap = 1 + rbt_rng_below(rng, 6);
    if (kind > 3 && hop->max_gap > 0 && (hop->staleness == 0 || rbt_rng_below(rng, 2)))
        hop->backup = 1 + (uint32_t)rbt_rng_below(rng, 2);
    if (hop->backup >= fewest_senders(&hop->graph)) /* somebody must be waited for */
        hop->backup = fewest_senders(&hop->graph) > 1 ? 1 : 0;
    if (kind > 4 && hop->max_gap > 0) {
        hop->skip = 2 + rbt_rng_below(rng, 15);
        hop->skip_trigger = 2 + rbt_rng_below(rng, 3);
    }
}

static rbt_err draw(hop_case *c, rbt_error *error)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 2);
    rbt_topology *topology = &c->topology;
    rbt_rule_config rule = {.rule = &rbt_rule_sum, .workers = 1};
    uint64_t clocks = rbt_rng_below(&rng, 4) == 0 ? 1 + rbt_rng_below(&rng, 3) : CLOCKS_MAX;
    bool uneven = rbt_rng_below(&rng, 4) == 0, in_pairs;
    rbt_rng pairs = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 3);
    rbt_err err;

    topology->workers = 1 + (uint32_t)rbt_rng_below(&rng, WORKERS_MAX);
    in_pairs = rbt_rng_below(&pairs, 6) == 0;
    if (in_pairs)
        topology->workers += topology->workers % 2;
    c->hop.seed = c->seed;
    topology->observers = 1;
    c->hop.parameters = 2 * topology->workers;
    for (uint32_t m = 0; m < topology->workers; m++)
        c->clocks[m] = uneven && rbt_rng_below(&rng, 3) == 0 ? rbt_rng_below(&rng, CLOCKS_MAX) : clocks;
    c->looks = rbt_rng_below(&rng, clocks + 1);
    err = in_pairs ? draw_bipartite(c, &pairs, error) : draw_graph(c, &rng, error);
    if (err == RBT_OK && !in_pairs)
        draw_variant(c, &rng);
    rbt_swarm_draw_sim(&c->sim, c->seed, &rng);
    topology->lost_is_gone = true; /* a peer has nothing to come back to */
    c->straggler = rbt_swarm_draw_stragglers(&rng);
    if (c->hop.skip > 0 && rbt_rng_below(&rng, 2)) /* somebody who is worth jumping */
        c->straggler = "worker=0,slow=8";
    if (err == RBT_OK)
        err = rbt_stragglers_init(&c->stragglers, c->straggler, topology->workers, c->seed, error);
    if (err == RBT_OK)
        err = rbt_topology_init(topology, NULL, 0, &rule, error);
    topology->hop = &c->hop;
    return err;
}

static void summarise(const hop_case *c, const rbt_run *run, const rbt_hop_checker *hop_checker, char *summary,
                      size_t room)
{
    const rbt_hop *hop = &c->hop;
    const rbt_faults *faults = &c->sim.faults;

    snprintf(summary, room,
             "seed %" PRIu64 ": %u peers, %s graph of %zu edges, %s%s, max_gap %" PRIu64 ", backup %u, s=%" PRIu64
             ", skip %" PRIu64 " from %" PRIu64
             ", straggler %s, drop %.3f dup %.3f delay %.3f, %u partitions, %u crashes: %" PRIu64
             " events, gap %" PRIu64 ", %" PRIu64 " jumps, %.3f s",
             c->seed, c->topology.workers, c->graph_name, hop->graph.edges,
             hop->side != NULL ? "AD-PSGD"
             : hop->serial     ? "serial"
                               : "parallel",
             hop->notify_ack ? " notify-ack" : "", hop->max_gap, hop->backup, hop->staleness, hop->skip,
             hop->skip_trigger, c->straggler != NULL ? c->straggler : "none", faults->drop, faults->duplicate,
             faults->delay, faults->partitions, faults->crashes, run->events, rbt_hop_checker_gap(hop_checker),
             rbt_hop_checker_jumps(hop_checker), (double)run->elapsed_ns / 1e9);
}

rbt_err rbt_swarm_hop_case(uint64_t seed, char *summary, size_t room, rbt_error *error)
{
    hop_case c = {.seed = seed};
    rbt_hop_checker *hop_checker;
    rbt_run run;
    rbt_err err = draw(&c, error);

    if (err != RBT_OK)
        goto graph;
    rbt_run_init(&run, &c.topology);
    c.sim.checker = c.checker = rbt_checker_create(&c.topology);
    c.sim.hop_checker = hop_checker = rbt_hop_checker_create(&c.topology, c.checker);
    run.program = (rbt_program){.name = "swarm", .work = work, .argument = &c};
    run.observe = (rbt_program){.name = "swarm", .work = observe, .argument = &c};
    run.stragglers = &c.stragglers;
    run.codec = rbt_swarm_draw_codec(seed) & ~(unsigned)RBT_CODEC_FP16;
    run.encode = seed % 4 == 0 || run.codec != 0;
    summarise(&c, &run, hop_checker, summary, room); /* should it crash */
    err = rbt_sim_run(&run, &c.sim, error);
    if (err == RBT_OK && rbt_checker_broken(c.checker) != NULL)
        err = rbt_fail(error, RBT_E_BROKEN, "at the end: %s", rbt_checker_broken(c.checker));
    summarise(&c, &run, hop_checker, summary, room);
    rbt_hop_checker_destroy(hop_checker);
    rbt_checker_destroy(c.checker);
    rbt_run_deinit(&run);
    rbt_topology_deinit(&c.topology);
    rbt_stragglers_deinit(&c.stragglers);
graph:
    rbt_graph_deinit(&c.hop.graph);
    rbt_free(c.hop.side);
    return err;
}
