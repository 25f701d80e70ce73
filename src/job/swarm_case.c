/* One seed of the swarm; see swarm_case.h.
 *
 * The program under test reads and increments a table of f32 under the drawn rule, and one or several of counters in which
 * every worker counts its own clocks. What a reader finds there tells which updates it sees, so the reader's guarantees
 * can be checked without believing anything the nodes say: no update older than the bound is missing, its own are
 * there, under BSP nothing else is, and in the end every clock was counted once. Another table holds tokens that are moved
 * about (swarm_tokens.h): none is lost and none is there twice. Where values add up, they are in the end what the workers
 * added, also what a filter has held back, but for what is still with them under --codec fp16. The servers' guarantees are checked by
 * the simulator's checker after every event. */
#include "job/swarm_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/rng.h"
#include "comm/squeeze.h"
#include "job/swarm_hop.h"
#include "job/swarm_tokens.h"
#include "runtime/check.h"
#include "runtime/handle.h"

enum { VALUES, TOKENS, COUNTERS };

#define CLOCKS_MAX   20
#define WORKERS_MAX  8
#define COUNTERS_MAX 5

/* What a seed draws. */
typedef struct swarm_case {
    uint64_t seed;
    uint32_t cols;     /* of the table of values */
    uint32_t counters; /* tables of counters: several when pushes are cut, so that there is something to cut */
    uint64_t clocks[WORKERS_MAX]; /* uneven: some workers run dry early */
    bool reads_all;               /* or only a random range */
    bool prefetches;
    bool skips_reads; /* now and then: the bound must hold all the same */
    unsigned codec;
    double *given;  /* per value: all that workers have added to it */
    uint64_t *made; /* per worker: clocks that it has counted, in whatever life; the one under way with them */
    rbt_swarm_tokens tokens;
    rbt_topology topology;
    rbt_stragglers stragglers;
    rbt_sim_options sim;
    rbt_checker *checker;
    const rbt_run *run;
    const char *straggler; /* NULL: none */
} swarm_case;

static const uint64_t no_bound = RBT_UNBOUNDED;

/* ------------------------------------------------------------------------------------------- the program */

/* Checks what a reader at `clock`, which has counted `mine` of its own, finds in the counters. */
static void check_counters(const swarm_case *c, uint32_t me, uint64_t clock, uint64_t mine, const int64_t *counters)
{
    uint64_t staleness = c->topology.staleness;

    for (uint32_t m = 0; m < c->topology.workers; m++) {
        uint64_t seen = (uint64_t)counters[m],
                 older = clock > staleness && staleness != no_bound ? clock - staleness : 0;
        uint64_t must = older < c->clocks[m] ? older : c->clocks[m];
        uint64_t most = clock < c->clocks[m] ? clock : c->clocks[m];

        if (seen < must && !c->topology.lost_is_gone)
            rbt_checker_report(c->checker,
                               "worker %u at clock %" PRIu64 " sees %" PRIu64 " clocks of worker %u, must see %" PRIu64,
                               me, clock, seen, m, must);
        if (m == me && (seen < mine || (seen > mine && c->sim.faults.crashes == 0)))
            rbt_checker_report(c->checker,
                               "worker %u at clock %" PRIu64 " sees %" PRIu64 " clocks of its own, not %" PRIu64, me,
                               clock, seen, mine);
        if (seen > c->clocks[m] || (staleness == 0 && seen > most && c->sim.faults.crashes == 0))
            rbt_checker_report(c->checker,
                               "worker %u at clock %" PRIu64 " sees %" PRIu64 " clocks of worker %u, at most %" PRIu64
                               " can be there",
                               me, clock, seen, m, most);
        if (seen > c->made[m])
            rbt_checker_report(c->checker,
                               "worker %u at clock %" PRIu64 " sees %" PRIu64
                               " clocks of worker %u, which has counted %" PRIu64,
                               me, clock, seen, m, c->made[m]);
    }
}

/* Clocks being computed differ by at most the bound: nobody who still works is further behind than that. */
static void check_gap(const swarm_case *c, uint32_t me, uint64_t clock)
{
    for (uint32_t m = 0; m < c->topology.workers; m++) {
        uint64_t finished = atomic_load(&c->run->published[m].clock);

        if (c->topology.staleness != no_bound && finished < c->clocks[m] && finished + c->topology.staleness < clock &&
            !c->topology.lost_is_gone && c->sim.faults.crashes == 0)
            rbt_checker_report(c->checker,
                               "worker %u computes clock %" PRIu64 " while worker %u is at %" PRIu64
                               ", staleness is %" PRIu64,
                               me, clock, m, finished, c->topology.staleness);
    }
}

/* The update of (worker, clock): multiples of 1/64, so that sums are exact in f32; with fp16 finer ones, that it has to round. */
static void make_update(const swarm_case *c, uint32_t worker, uint64_t clock, float *update)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_TEST, worker * 1000 + clock);
    bool sparse = rbt_rng_below(&rng, 2) == 0;

    for (uint32_t i = 0; i < c->cols; i++) {
        float value = (float)((int)rbt_rng_below(&rng, 129) - 64) / 64;

        if (c->topology.half)
            value = (float)((int)rbt_rng_below(&rng, 15001) - 7500) / 8192; /* below 1, with the rest before */
        update[i] = sparse && rbt_rng_below(&rng, 8) != 0 ? 0 : value;
    }
}

/* Reads the tables, or a part, and checks what it finds. */
static rbt_err read_tables(rbt_worker *worker, const swarm_case *c, rbt_rng *rng, uint64_t mine, float *values,
                           int64_t *counters, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    uint64_t first = c->reads_all ? 0 : rbt_rng_below(rng, c->cols);
    uint64_t n = c->reads_all ? c->cols : 1 + rbt_rng_below(rng, c->cols - first);
    rbt_err err = rbt_get_range(worker, VALUES, 0, first, n, RBT_STALENESS_OF_JOB, values, error);

    for (uint32_t t = 0; err == RBT_OK && t < c->counters; t++) {
        err = rbt_get_row(worker, COUNTERS + t, 0, RBT_STALENESS_OF_JOB, counters, error);
        if (err == RBT_OK)
            check_counters(c, me, clock, mine, counters);
    }
    if (err == RBT_OK) {
        check_gap(c, me, clock);
        err = rbt_swarm_tokens_look(&c->tokens, worker, c->clocks,
                                    c->topology.staleness == 0 && c->sim.faults.crashes == 0, c->checker, error);
    }
    return err;
}

static rbt_err work_clock(rbt_worker *worker, const swarm_case *c, float *values, int64_t *counters, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_BATCH, me * 1000 + clock);
    int reads = c->topology.budget_bytes > 0 ? 2 : c->sim.faults.crashes > 0; /* after its increments */
    rbt_err err = RBT_OK;

    if (!c->skips_reads || rbt_rng_below(&rng, 3) == 0)
        err = read_tables(worker, c, &rng, clock, values, counters, error);
    if (err != RBT_OK)
        return err;
    rbt_worker_did(worker, 1 + rbt_rng_below(&rng, 2000), 0);
    make_update(c, me, clock, values);
    if (rbt_rng_below(&rng, 8) != 0) {
        err = rbt_inc_row(worker, VALUES, 0, values, error);
        for (uint32_t i = 0; err == RBT_OK && i < c->cols; i++)
            c->given[i] += values[i];
    }
    if (clock >= c->made[me])
        c->made[me] = clock + 1;
    for (uint32_t t = 0; err == RBT_OK && t < c->counters; t++)
        err = rbt_inc(worker, COUNTERS + t, 0, me, 1, error);
    if (err == RBT_OK)
        err = rbt_swarm_tokens_move(&c->tokens, worker, error);
    for (int i = 0; err == RBT_OK && i < reads; i++) { /* its own updates are there, some of them on their way */
        rbt_worker_did(worker, 1 + rbt_rng_below(&rng, 1000), 0);
        err = read_tables(worker, c, &rng, clock + 1, values, counters, error);
        if (err == RBT_OK && rbt_has_tags(&c->topology, VALUES)) { /* computed from what was just read */
            make_update(c, me, clock + CLOCKS_MAX * (uint64_t)(i + 1), values);
            err = rbt_inc_row(worker, VALUES, 0, values, error);
        }
    }
    if (err == RBT_OK && c->prefetches)
        err = rbt_prefetch(worker, VALUES, 0, 0, c->cols, RBT_STALENESS_OF_JOB, error);
    if (err == RBT_OK)
        err = rbt_clock(worker, error);
    if (err == RBT_OK) {
        check_gap(c, me, clock);
        err = rbt_swarm_tokens_look(&c->tokens, worker, c->clocks,
                                    c->topology.staleness == 0 && c->sim.faults.crashes == 0, c->checker, error);
    }
    return err;
}

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const swarm_case *c = argument;
    float *values = rbt_alloc(c->cols, sizeof *values);
    int64_t *counters = rbt_alloc(c->topology.workers, sizeof *counters);
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < c->clocks[rbt_worker_id(worker)])
        err = work_clock(worker, c, values, counters, error);
    rbt_free(values);
    rbt_free(counters);
    return err;
}

/* Where the tokens are in the end; a worker that is gone for good may have told one server more than another. */
static rbt_err observe_tokens(rbt_worker *observer, const swarm_case *c, rbt_error *error)
{
    int32_t *cells = rbt_alloc(c->tokens.rows * c->tokens.cols, sizeof *cells);
    uint64_t slowest;
    rbt_err err = rbt_observe(observer, TOKENS, RBT_UNBOUNDED, cells, &slowest, error);

    if (err == RBT_OK && !c->topology.lost_is_gone)
        rbt_swarm_tokens_judge(&c->tokens, cells, c->clocks, c->topology.workers, c->checker);
    rbt_free(cells);
    return err;
}

/* What became of the values where they add up and nobody died: all is there. With fp16 every worker has kept the rest of its
 * last update, at most half of the last bit of a number below 1. */
static rbt_err observe_values(rbt_worker *observer, const swarm_case *c, rbt_error *error)
{
    const rbt_rule_config *rule = &c->topology.rule[VALUES];
    float *values = rbt_alloc(c->cols, sizeof *values);
    double factor = rule->rule == &rbt_rule_con ? (double)rule->factor : 1;
    double last = c->topology.significant > 0 ? 0x1p-6 : 0x1p-12; /* or of one below 32, if much was held back */
    double kept = c->topology.half ? last * c->topology.workers : 0;
    uint64_t slowest;
    rbt_err err = rbt_observe(observer, VALUES, RBT_UNBOUNDED, values, &slowest, error);

    for (uint32_t i = 0; err == RBT_OK && i < c->cols; i++)
        if (fabs((double)values[i] - factor * c->given[i]) > factor * kept)
            rbt_checker_report(c->checker, "in the end value %u is %.9g, the workers have added %.9g", i,
                               (double)values[i], factor * c->given[i]);
    rbt_free(values);
    return err;
}

/* When all have left: every clock was counted exactly once. */
static rbt_err observe(rbt_worker *observer, void *argument, rbt_error *error)
{
    const swarm_case *c = argument;
    int64_t *counters = rbt_alloc(c->topology.workers, sizeof *counters);
    uint64_t slowest;
    rbt_err err = RBT_OK;

    for (uint32_t t = 0; err == RBT_OK && t < c->counters; t++) {
        err = rbt_observe(observer, COUNTERS + t, RBT_UNBOUNDED, counters, &slowest, error);
        for (uint32_t m = 0; err == RBT_OK && m < c->topology.workers; m++)
            if ((uint64_t)counters[m] > c->clocks[m] ||
                ((uint64_t)counters[m] != c->clocks[m] && !c->topology.lost_is_gone))
                rbt_checker_report(c->checker, "worker %u finished %" PRIu64 " clocks, the servers counted %" PRId64, m,
                                   c->clocks[m], counters[m]);
    }
    rbt_free(counters);
    if (err == RBT_OK && c->sim.faults.crashes == 0 &&
        (c->topology.rule[VALUES].rule == &rbt_rule_sum || c->topology.rule[VALUES].rule == &rbt_rule_con))
        err = observe_values(observer, c, error);
    return err == RBT_OK ? observe_tokens(observer, c, error) : err;
}

/* ---------------------------------------------------------------------------------------------- drawing */

void rbt_swarm_draw_sim(rbt_sim_options *sim, uint64_t seed, rbt_rng *rng)
{
    rbt_faults *faults = &sim->faults;

    sim->seed = seed;
    sim->most_events = EVENTS_MAX;
    sim->net = (rbt_net){.bits_per_second = rbt_rng_below(rng, 2) ? 1e9 : 2e7,
                         .latency_ns = rbt_rng_below(rng, 300000),
                         .jitter_ns = rbt_rng_below(rng, 2) ? rbt_rng_below(rng, 200000) : 0};
    sim->cost = (rbt_cost){.sample_ns = 1000, .byte_ns = 0.1, .message_ns = 500};
    faults->within_ns = 20000000;
    if (rbt_rng_below(rng, 2))
        faults->drop = 0.05 * rbt_rng_f64(rng);
    if (rbt_rng_below(rng, 2))
        faults->duplicate = 0.2 * rbt_rng_f64(rng);
    if (rbt_rng_below(rng, 2))
        faults->delay = 0.2 * rbt_rng_f64(rng);
    if (rbt_rng_below(rng, 3) == 0)
        faults->partitions = 1 + (uint32_t)rbt_rng_below(rng, 3);
    if (rbt_rng_below(rng, 3) == 0)
        faults->crashes = 1 + (uint32_t)rbt_rng_below(rng, 3);
}

const char *rbt_swarm_draw_stragglers(rbt_rng *rng)
{
    static const char *const specs[] = {"frac=0.3,slow=3", "p=0.1,slow=6", "worker=0,slow=5", "lognormal=0.7"};

    return rbt_rng_below(rng, 4) != 0 ? specs[rbt_rng_below(rng, 4)] : NULL;
}

/* Half of the jobs cut their pushes; from a stream of its own, so that a seed is otherwise what it was before. */
static void draw_slices(swarm_case *c)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 3);

    c->counters = 1;
    if (rbt_rng_below(&rng, 2) == 0)
        return;
    c->topology.slice_bytes = 1 + (size_t)rbt_rng_below(&rng, 100);
    c->counters = 1 + (uint32_t)rbt_rng_below(&rng, COUNTERS_MAX);
}

/* A quarter of the jobs have messages of few blocks; likewise. */
static void draw_message_blocks(swarm_case *c)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 8);

    if (rbt_rng_below(&rng, 4) == 0)
        c->topology.message_blocks = 1 + (uint32_t)rbt_rng_below(&rng, 3);
}

/* Half of the jobs that are not under BSP have a budget; from a stream of its own, likewise. */
static void draw_budget(swarm_case *c)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 4);
    uint64_t rate = (uint64_t)20000 << rbt_rng_below(&rng, 10);

    if (c->topology.staleness == 0 || rbt_rng_below(&rng, 2) == 0)
        return;
    c->topology.budget_bytes = rate;
    c->topology.burst_bytes = rbt_burst_of(rate);
    c->topology.priority = (rbt_priority)rbt_rng_below(&rng, 4);
}

/* Half of the jobs in which nobody is lost hold back what is not significant; likewise. */
static void draw_filter(swarm_case *c)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 7);

    if (c->sim.faults.crashes == 0 && rbt_rng_below(&rng, 2) == 0)
        c->topology.significant = (float)rbt_rng_f64(&rng);
}

/* Half of the jobs squeeze their messages; likewise. Not with LZ4: how small it makes them, and so when they arrive, depends on
 * its version. */
unsigned rbt_swarm_draw_codec(uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SWARM, 5);

    return rbt_rng_below(&rng, 2) == 0 ? 0 : (1 + (unsigned)rbt_rng_below(&rng, 31)) & ~(unsigned)RBT_CODEC_LZ4;
}

/* Most of those whose values add up round them: there it can be seen whether something is lost. */
static void draw_codec(swarm_case *c, const rbt_rule *rule)
{
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 6);

    c->codec = rbt_swarm_draw_codec(c->seed);
    if ((rule == &rbt_rule_sum || rule == &rbt_rule_con) && rbt_rng_below(&rng, 4) != 0)
        c->codec |= RBT_CODEC_FP16;
    c->topology.half = c->codec & RBT_CODEC_FP16;
}

static rbt_err draw(swarm_case *c, rbt_error *error)
{
    static const rbt_rule *const rules[] = {&rbt_rule_sum,     &rbt_rule_con,    &rbt_rule_dyn,    &rbt_rule_dyn,
                                            &rbt_rule_adagrad, &rbt_rule_adarev, &rbt_rule_adarev, &rbt_rule_momentum};
    rbt_rng rng = rbt_rng_stream(c->seed, RBT_STREAM_SWARM, 0);
    rbt_topology *topology = &c->topology;
    rbt_rule_config rule = {.factor = 0.5f, .rate = 0.25f, .momentum = 0.75f};
    rbt_table_spec specs[COUNTERS + COUNTERS_MAX] = {[VALUES] = {.name = "values", .rows = 1, .type = RBT_F32}};
    uint64_t kind = rbt_rng_below(&rng, 6),
             clocks = rbt_rng_below(&rng, 4) == 0 ? 1 + rbt_rng_below(&rng, 3) : CLOCKS_MAX;
    rbt_err err;

    topology->workers = 1 + (uint32_t)rbt_rng_below(&rng, WORKERS_MAX);
    topology->servers = 1 + (uint32_t)rbt_rng_below(&rng, 4);
    topology->observers = 1;
    topology->process_workers = 1 + (uint32_t)rbt_rng_below(&rng, 4);
    topology->staleness = kind == 0 ? 0 : kind == 1 ? RBT_UNBOUNDED : 1 + rbt_rng_below(&rng, 6);
    rule.rule = rules[rbt_rng_below(&rng, sizeof rules / sizeof rules[0])];
    rule.workers = topology->workers;
    rule.staleness = topology->staleness;
    rule.most_kept =
        rule.rule == &rbt_rule_adarev && rbt_rng_below(&rng, 4) == 0 ? 1 + (uint32_t)rbt_rng_below(&rng, 4) : 0;
    rule.partition_sync = rule.rule == &rbt_rule_dyn && rbt_rng_below(&rng, 2);
    topology->partition_sync = rule.partition_sync;
    topology->eager = !rule.partition_sync && kind > 1 && rbt_rng_below(&rng, 2);
    topology->filter = rbt_rng_below(&rng, 2) ? 1e-6f : 0;
    c->cols = 1 + (uint32_t)rbt_rng_below(&rng, 120);
    c->reads_all = rule.partition_sync || rbt_rng_below(&rng, 2);
    c->prefetches = rbt_rng_below(&rng, 3) == 0;
    c->skips_reads = rbt_rng_below(&rng, 4) == 0;
    for (uint32_t m = 0; m < topology->workers; m++)
        c->clocks[m] = rbt_rng_below(&rng, 4) == 0 ? rbt_rng_below(&rng, CLOCKS_MAX) : clocks;
    specs[VALUES].cols = c->cols;
    specs[VALUES].sparse = rule.rule->procedure == NULL && rbt_rng_below(&rng, 4) == 0;
    rbt_swarm_tokens_draw(&c->tokens, c->seed, TOKENS);
    specs[TOKENS] = rbt_swarm_tokens_spec(&c->tokens);
    rbt_swarm_draw_sim(&c->sim, c->seed, &rng);
    topology->lost_is_gone = c->sim.faults.crashes > 0 && rbt_rng_below(&rng, 4) == 0;
    c->straggler = rbt_swarm_draw_stragglers(&rng);
    draw_slices(c);
    draw_message_blocks(c);
    draw_budget(c);
    draw_filter(c);
    draw_codec(c, rule.rule);
    c->given = rbt_alloc(c->cols, sizeof *c->given);
    c->made = rbt_alloc(topology->workers, sizeof *c->made);
    for (uint32_t t = 0; t < c->counters; t++)
        specs[COUNTERS + t] =
            (rbt_table_spec){.name = "counters", .rows = 1, .cols = topology->workers, .type = RBT_I64};
    err = rbt_stragglers_init(&c->stragglers, c->straggler, topology->workers, c->seed, error);
    return err == RBT_OK ? rbt_topology_init(topology, specs, COUNTERS + c->counters, &rule, error) : err;
}

static void summarise(const swarm_case *c, const rbt_run *run, char *summary, size_t room)
{
    const rbt_topology *t = &c->topology;
    char staleness[32] = "inf", codec[RBT_CODEC_ROOM];

    rbt_codec_text(c->codec, codec);
    if (t->staleness != no_bound)
        snprintf(staleness, sizeof staleness, "%" PRIu64, t->staleness);
    snprintf(summary, room,
             "seed %" PRIu64 ": %u workers (%u a process), %u servers, s=%s, %s%s%s%s, %u values%s%s, %u tokens%s, %u "
             "counters in slices of %zu, messages of %u blocks, budget %" PRIu64
             ", codec %s, significant %.2f, straggler %s, drop "
             "%.3f dup %.3f delay %.3f, "
             "%u partitions, %u crashes%s: %" PRIu64 " events, %" PRIu64 " repeated pushes, %.3f s",
             c->seed, t->workers, t->process_workers, t->servers, staleness, t->rule[VALUES].rule->name,
             t->partition_sync ? " synchronised" : "", t->eager ? " eager" : "", c->prefetches ? " prefetch" : "",
             c->cols, c->reads_all ? "" : " in part", c->skips_reads ? " now and then" : "",
             t->workers * c->tokens.each, c->tokens.sparse ? " (sparse)" : "", c->counters, t->slice_bytes,
             t->message_blocks, t->budget_bytes, codec, (double)t->significant,
             c->straggler != NULL ? c->straggler : "none", c->sim.faults.drop, c->sim.faults.duplicate,
             c->sim.faults.delay, c->sim.faults.partitions, c->sim.faults.crashes, t->lost_is_gone ? " for good" : "",
             run->events, run->repeated, (double)run->elapsed_ns / 1e9);
}

rbt_err rbt_swarm_case(uint64_t seed, char *summary, size_t room, rbt_error *error)
{
    swarm_case c = {.seed = seed};
    rbt_run run;
    rbt_err err;

    if (rbt_swarm_is_hop(seed))
        return rbt_swarm_hop_case(seed, summary, room, error);
    err = draw(&c, error);
    if (err != RBT_OK)
        return err;
    rbt_run_init(&run, &c.topology);
    c.run = &run;
    c.sim.checker = c.checker = rbt_checker_create(&c.topology);
    run.program = (rbt_program){.name = "swarm", .work = work, .argument = &c};
    run.observe = (rbt_program){.name = "swarm", .work = observe, .argument = &c};
    run.stragglers = &c.stragglers;
    run.encode = seed % 4 == 0 || c.codec != 0;
    run.codec = c.codec;
    summarise(&c, &run, summary, room); /* should it crash */
    err = rbt_sim_run(&run, &c.sim, error);
    if (err == RBT_OK && rbt_checker_broken(c.checker) != NULL)
        err = rbt_fail(error, RBT_E_BROKEN, "at the end: %s", rbt_checker_broken(c.checker));
    summarise(&c, &run, summary, room);
    rbt_checker_destroy(c.checker);
    rbt_run_deinit(&run);
    rbt_topology_deinit(&c.topology);
    rbt_stragglers_deinit(&c.stragglers);
    rbt_free(c.given);
    rbt_free(c.made);
    return err;
}
