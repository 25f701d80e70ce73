/* Proves SSP, BSP and ASP with whole jobs in the simulator: a table of counters, in which every worker counts its own
 * clocks, shows what each read contains. No read misses an update older than its bound, every worker reads its own
 * writes, clocks being computed differ by at most s, whoever is slow, runs dry or dies; and the cache spares questions.
 */
#include "sim/jobs.h"

#include <stdio.h>
#include <string.h>

#include "runtime/handle.h"

#define WORKERS 6
#define CLOCKS  30

typedef struct counting {
    job_setup setup;
    uint64_t staleness;
    uint64_t clocks[WORKERS];
    int64_t total[WORKERS];   /* as the observer found them in the end */
    bool works_first;         /* computes before it reads, not after */
    uint64_t most_seen_ahead; /* clocks of others beyond what the bound demands: best effort */
} counting;

static rbt_err count_clock(rbt_worker *worker, counting *c, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    int64_t seen[WORKERS];
    rbt_err err;

    if (c->works_first)
        rbt_worker_did(worker, 5000, 0);
    err = rbt_get_row(worker, 0, 0, c->staleness, seen, error);
    if (err != RBT_OK)
        return err;
    for (uint32_t m = 0; m < WORKERS; m++) {
        uint64_t must = c->staleness == RBT_UNBOUNDED || clock < c->staleness ? 0 : clock - c->staleness;
        uint64_t finished = atomic_load(&c->setup.run.published[m].clock);

        if (must > c->clocks[m])
            must = c->clocks[m];
        program_check((uint64_t)seen[m] >= must, error);
        program_check((uint64_t)seen[m] <= c->clocks[m], error);
        if ((uint64_t)seen[m] > must && m != me && (uint64_t)seen[m] - must > c->most_seen_ahead)
            c->most_seen_ahead = (uint64_t)seen[m] - must;
        if (c->staleness != RBT_UNBOUNDED && finished < c->clocks[m] && c->setup.sim.faults.crashes == 0)
            program_check(clock <= finished + c->staleness, error);
    }
    program_check((uint64_t)seen[me] == clock, error); /* its own writes */
    rbt_worker_did(worker, 10, 0);
    err = rbt_inc(worker, 0, 0, me, 1, error);
    if (err == RBT_OK)
        err = rbt_get_row(worker, 0, 0, c->staleness, seen, error);
    program_check(err != RBT_OK || seen[me] == (int64_t)clock + 1, error); /* also those of this clock */
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err count(rbt_worker *worker, void *argument, rbt_error *error)
{
    counting *c = argument;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < c->clocks[rbt_worker_id(worker)])
        err = count_clock(worker, c, error);
    return err;
}

static rbt_err look(rbt_worker *observer, void *argument, rbt_error *error)
{
    counting *c = argument;
    uint64_t slowest;

    return rbt_observe(observer, 0, RBT_UNBOUNDED, c->total, &slowest, error);
}

static void counting_init(counting *c, uint64_t staleness, uint32_t servers, bool eager)
{
    rbt_topology topology = {
        .workers = WORKERS, .servers = servers, .observers = 1, .staleness = staleness, .eager = eager};
    rbt_table_spec spec = {.name = "counters", .rows = 1, .cols = WORKERS, .type = RBT_I64};

    memset(c, 0, sizeof *c);
    setup_init(&c->setup, &topology, &rbt_rule_sum, &spec, 1);
    c->staleness = staleness;
    for (uint32_t m = 0; m < WORKERS; m++)
        c->clocks[m] = CLOCKS;
    c->setup.run.program = (rbt_program){.name = "count", .work = count, .argument = c};
    c->setup.run.observe = (rbt_program){.name = "look", .work = look, .argument = c};
}

/* Runs it; every clock must have been counted exactly once. */
static void counting_run(counting *c, const char *stragglers)
{
    rbt_error error = {0};

    rbt_stragglers_deinit(&c->setup.stragglers);
    assert_int_equal(rbt_stragglers_init(&c->setup.stragglers, stragglers, WORKERS, 3, &error), RBT_OK);
    if (rbt_sim_run(&c->setup.run, &c->setup.sim, &error) != RBT_OK)
        fail_msg("%s", error.text);
    for (uint32_t m = 0; m < WORKERS; m++)
        assert_int_equal(c->total[m], c->clocks[m]);
    assert_true(c->setup.run.events > 0);
}

static void no_read_misses_an_update_older_than_its_bound(void **state)
{
    static const uint64_t bounds[] = {0, 1, 2, 5, 1000, RBT_UNBOUNDED};
    static const char *const slow[] = {NULL, "worker=2,slow=10", "p=0.2,slow=8", "lognormal=1"};

    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        for (size_t k = 0; k < sizeof slow / sizeof slow[0]; k++)
            for (uint32_t servers = 1; servers <= 3; servers++)
                for (int eager = 0; eager < 2; eager++) {
                    counting c;

                    counting_init(&c, bounds[i], servers, eager && bounds[i] > 0);
                    c.setup.topology.process_workers = servers; /* alone, in pairs, in threes */
                    counting_run(&c, slow[k]);
                    assert_true(bounds[i] == RBT_UNBOUNDED || c.setup.run.max_gap <= bounds[i]);
                    if (bounds[i] == 0)
                        assert_int_equal(c.most_seen_ahead, 0); /* BSP shows nothing of the clock under way */
                    setup_deinit(&c.setup);
                }
}

static void workers_that_run_dry_hold_nobody_up(void **state)
{
    (void)state;
    for (uint64_t staleness = 0; staleness < 3; staleness++) {
        counting c;

        counting_init(&c, staleness, 2, staleness > 0);
        c.clocks[0] = 0;
        c.clocks[1] = 1;
        c.clocks[4] = 7;
        counting_run(&c, "worker=4,slow=6");
        setup_deinit(&c.setup);
    }
}

static void every_clock_counts_once_whatever_the_network_does(void **state)
{
    uint64_t repeated = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        counting c;

        counting_init(&c, seed % 4, 1 + (uint32_t)(seed % 3), seed % 4 > 0 && seed % 2);
        c.setup.sim.seed = seed;
        c.setup.run.encode = seed % 2;
        c.setup.sim.net.jitter_ns = 300000;
        c.setup.sim.faults =
            (rbt_faults){.drop = 0.1, .duplicate = 0.3, .delay = 0.2, .partitions = 3, .within_ns = 9000000};
        counting_run(&c, "lognormal=1");
        repeated += c.setup.run.repeated;
        setup_deinit(&c.setup);
    }
    assert_true(repeated > 100); /* the faults did reach the servers */
}

static void every_clock_counts_once_whoever_crashes_and_comes_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        counting c;

        counting_init(&c, seed % 4, 1 + (uint32_t)(seed % 3), false);
        c.setup.sim.seed = seed;
        c.setup.sim.faults = (rbt_faults){.crashes = 6, .within_ns = 12000000, .duplicate = seed % 2 ? 0.1 : 0};
        counting_run(&c, "worker=1,slow=4");
        for (uint32_t m = 0; m < WORKERS; m++) /* what was done before a crash is not forgotten */
            assert_true(c.setup.run.published[m].samples >= CLOCKS * 10);
        setup_deinit(&c.setup);
    }
}

static void the_others_go_on_when_a_worker_is_lost_for_good(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        counting c;
        rbt_error error = {0};
        int64_t short_of = 0;

        counting_init(&c, RBT_UNBOUNDED, 2, false);
        c.setup.topology.lost_is_gone = true;
        c.setup.sim.seed = seed;
        c.setup.sim.faults = (rbt_faults){.crashes = 1, .within_ns = 500000};
        assert_int_equal(rbt_sim_run(&c.setup.run, &c.setup.sim, &error), RBT_OK);
        for (uint32_t m = 0; m < WORKERS; m++)
            short_of += c.total[m] < CLOCKS;
        assert_int_equal(short_of, 1);
        setup_deinit(&c.setup);
    }
}

/* One that has hardly begun, and one that goes far ahead of it: further than the histogram goes. */
static void the_mean_staleness_is_of_what_was_read_however_stale(void **state)
{
    const rbt_published *p;
    counting c;

    (void)state;
    counting_init(&c, RBT_UNBOUNDED, 1, false);
    c.clocks[0] = 400;
    c.clocks[1] = 1;
    counting_run(&c, "worker=1,slow=1000000");
    p = &c.setup.run.published[0];
    assert_int_equal(atomic_load(&p->reads), 2 * 400);
    assert_true(atomic_load(&p->staleness_sum) > 2 * 400 * (RBT_STALENESS_BINS + 100));
    setup_deinit(&c.setup);
}

/* The slowest worker asks only every s clocks, the others seldom when servers push eagerly. */
static void a_larger_bound_means_fewer_questions(void **state)
{
    uint64_t messages[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const uint64_t bounds[] = {0, 3, 10};
        counting c;

        counting_init(&c, bounds[i], 1, false);
        counting_run(&c, NULL);
        messages[i] = atomic_load(&c.setup.run.messages);
        setup_deinit(&c.setup);
    }
    assert_true(messages[0] > messages[1] && messages[1] > messages[2]);
    assert_true(messages[2] >= 2 * WORKERS * CLOCKS); /* pushes and their acknowledgements */
}

static void workers_of_one_process_share_what_one_of_them_has_pulled(void **state)
{
    uint64_t messages[2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        counting c;

        counting_init(&c, 2, 1, false);
        c.setup.topology.process_workers = i == 0 ? 1 : WORKERS;
        c.works_first = true; /* so that its last push is in what the others pull meanwhile */
        counting_run(&c, "lognormal=0.5");
        messages[i] = atomic_load(&c.setup.run.messages);
        setup_deinit(&c.setup);
    }
    assert_true(messages[1] < messages[0]);
}

/* Worker 1 only writes: nothing but the limit on unacknowledged clocks holds it. */
static rbt_err write_only(rbt_worker *worker, void *argument, rbt_error *error)
{
    counting *c = argument;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < 300) {
        uint64_t other = atomic_load(&c->setup.run.published[0].clock);

        program_check(rbt_worker_clock(worker) <= other + RBT_UNACKED_MAX + 1, error);
        rbt_worker_did(worker, rbt_worker_id(worker) == 0 ? 100000 : 1, 0);
        err = rbt_inc(worker, 0, 0, rbt_worker_id(worker), 1, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}

static void a_bsp_worker_that_never_reads_is_held_by_the_limit_on_unacknowledged_clocks(void **state)
{
    counting c;

    (void)state;
    counting_init(&c, 0, 2, false);
    c.setup.run.program.work = write_only;
    for (uint32_t m = 0; m < WORKERS; m++)
        c.clocks[m] = 300;
    counting_run(&c, NULL);
    setup_deinit(&c.setup);
}

static void a_slow_worker_costs_bsp_its_whole_slowness_and_asp_nothing(void **state)
{
    uint64_t took[2], alone = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        counting c;

        counting_init(&c, i == 0 ? 0 : RBT_UNBOUNDED, 1, false);
        c.setup.sim.cost.sample_ns = 1000000; /* computing dominates */
        c.clocks[5] = i == 0 ? CLOCKS : CLOCKS / 4;
        counting_run(&c, "worker=5,slow=4");
        took[i] = c.setup.run.elapsed_ns;
        alone = CLOCKS * 10 * 1000000ull;
        setup_deinit(&c.setup);
    }
    assert_true(took[0] >= 4 * alone && took[0] < 5 * alone);
    assert_true(took[1] >= alone && took[1] < 2 * alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_read_misses_an_update_older_than_its_bound),
        cmocka_unit_test(workers_that_run_dry_hold_nobody_up),
        cmocka_unit_test(every_clock_counts_once_whatever_the_network_does),
        cmocka_unit_test(every_clock_counts_once_whoever_crashes_and_comes_back),
        cmocka_unit_test(the_others_go_on_when_a_worker_is_lost_for_good),
        cmocka_unit_test(the_mean_staleness_is_of_what_was_read_however_stale),
        cmocka_unit_test(a_larger_bound_means_fewer_questions),
        cmocka_unit_test(workers_of_one_process_share_what_one_of_them_has_pulled),
        cmocka_unit_test(a_bsp_worker_that_never_reads_is_held_by_the_limit_on_unacknowledged_clocks),
        cmocka_unit_test(a_slow_worker_costs_bsp_its_whole_slowness_and_asp_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
