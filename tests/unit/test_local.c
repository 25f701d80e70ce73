/* Proves src/runtime/local.c (and program.c on it), also under ThreadSanitizer: many threads hammer tables of every
 * kind and not one increment is lost or counted twice, reads keep their bounds, a failure or an interruption ends the
 * job and leaves nobody waiting. */
#include "sim/jobs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/handle.h"

#define WORKERS 6
#define CLOCKS  25
#define ROWS    3
#define COLS    50
#define FAR     1000000000ull /* columns of the sparse tables */
#define PLACES  40            /* of them in use */

enum { COUNTERS, GRID, SPARSE, FLOATS, TABLES };

static const rbt_table_spec SPECS[TABLES] = {
    [COUNTERS] = {.name = "counters", .rows = 1, .cols = WORKERS, .type = RBT_I64},
    [GRID] = {.name = "grid", .rows = ROWS, .cols = COLS, .type = RBT_I64},
    [SPARSE] = {.name = "sparse", .rows = 2, .cols = FAR, .type = RBT_I32, .sparse = true},
    [FLOATS] = {.name = "floats", .rows = 1, .cols = 200, .type = RBT_F32},
};

typedef struct hammer {
    job_setup setup;
    uint64_t staleness;
    uint64_t clocks[WORKERS];
    int64_t counters[WORKERS]; /* as the observer finds them in the end */
    int64_t grid[ROWS * COLS];
    int64_t expected[WORKERS]; /* what each worker added to the grid */
    float floats[200];
    bool is_sum; /* the floats add up */
} hammer;

/* Increments of (worker, clock) in every way there is; returns what they add to the grid. */
static rbt_err increment(rbt_worker *worker, rbt_rng *rng, int64_t *added, rbt_error *error)
{
    int64_t row[COLS], few[5];
    int32_t ones[3] = {1, 1, 1};
    uint64_t keys[5], far[3];
    float floats[200];
    rbt_err err;

    for (int i = 0; i < COLS; i++)
        *added += row[i] = (int64_t)rbt_rng_below(rng, 1000) - 300;
    for (int i = 0; i < 5; i++) {
        keys[i] = rbt_rng_below(rng, COLS); /* perhaps the same one twice */
        *added += few[i] = (int64_t)rbt_rng_below(rng, 1ull << 40);
    }
    for (int i = 0; i < 3; i++)
        far[i] = rbt_rng_below(rng, PLACES) * (FAR / PLACES);
    for (int i = 0; i < 200; i++)
        floats[i] = i % 5 == 0 ? 0.25f : 0;
    err = rbt_inc_row(worker, GRID, rbt_rng_below(rng, ROWS), row, error);
    if (err == RBT_OK)
        err = rbt_inc_keys(worker, GRID, rbt_rng_below(rng, ROWS), keys, 5, few, error);
    if (err == RBT_OK)
        err = rbt_inc_range(worker, GRID, 1, 10, 5, few, error);
    for (int i = 0; i < 5; i++)
        *added += few[i];
    if (err == RBT_OK)
        err = rbt_inc_keys(worker, SPARSE, 1, far, 3, ones, error);
    if (err == RBT_OK)
        err = rbt_inc_row(worker, FLOATS, 0, floats, error);
    return err == RBT_OK ? rbt_inc(worker, COUNTERS, 0, rbt_worker_id(worker), 1, error) : err;
}

/* Reads in every way there is and checks what can be known. */
static rbt_err check_reads(rbt_worker *worker, const hammer *h, rbt_error *error)
{
    uint32_t me = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker), places[PLACES], mine = me;
    int64_t counters[WORKERS], own;
    int32_t sparse[PLACES], sum = 0;
    float first, edge[3];
    rbt_err err = rbt_get_row(worker, COUNTERS, 0, h->staleness, counters, error);

    for (uint64_t i = 0; i < PLACES; i++)
        places[i] = i * (FAR / PLACES);
    if (err == RBT_OK)
        err = rbt_get_keys(worker, COUNTERS, 0, &mine, 1, h->staleness, &own, error);
    if (err == RBT_OK)
        err = rbt_get_keys(worker, SPARSE, 1, places, PLACES, h->staleness, sparse, error);
    if (err == RBT_OK)
        err = rbt_get_range(worker, FLOATS, 0, 0, 1, h->staleness, &first, error);
    if (err == RBT_OK)
        err = rbt_get_range(worker, FLOATS, 0, 99, 3, h->staleness, edge, error);
    if (err != RBT_OK)
        return err;
    for (uint32_t m = 0; m < WORKERS; m++) {
        uint64_t must = h->staleness == RBT_UNBOUNDED || clock < h->staleness ? 0 : clock - h->staleness;

        program_check((uint64_t)counters[m] >= (must < h->clocks[m] ? must : h->clocks[m]), error);
        program_check((uint64_t)counters[m] <= h->clocks[m], error);
        program_check(h->staleness != 0 || (uint64_t)counters[m] <= clock, error);
    }
    program_check((uint64_t)counters[me] == clock && (uint64_t)own == clock, error);
    for (int i = 0; i < PLACES; i++)
        sum += sparse[i];
    program_check((uint64_t)sum >= 3 * clock, error);
    program_check(h->staleness != 0 || sum % 3 == 0, error); /* BSP shows whole clocks only */
    program_check(edge[0] == 0 && edge[2] == 0, error);
    program_check(!h->is_sum || (first >= 0.25f * (float)clock && edge[1] >= 0.25f * (float)clock), error);
    return RBT_OK;
}

static rbt_err hammer_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    hammer *h = argument;
    uint32_t me = rbt_worker_id(worker);
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < h->clocks[me]) {
        rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, me * 1000 + rbt_worker_clock(worker));

        err = check_reads(worker, h, error);
        if (err == RBT_OK)
            err = increment(worker, &rng, &h->expected[me], error);
        if (err == RBT_OK && rbt_rng_below(&rng, 2))
            err = rbt_prefetch(worker, FLOATS, 0, 0, 200, h->staleness, error);
        rbt_worker_did(worker, 1, 5);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}

static rbt_err hammer_observe(rbt_worker *observer, void *argument, rbt_error *error)
{
    hammer *h = argument;
    uint64_t slowest = 0;
    rbt_err err = RBT_OK;

    for (uint64_t need = 1; err == RBT_OK && slowest != RBT_UNBOUNDED; need++) { /* while they work */
        err = rbt_observe(observer, COUNTERS, need, h->counters, &slowest, error);
        for (uint32_t m = 0; err == RBT_OK && m < WORKERS; m++) {
            program_check(slowest == RBT_UNBOUNDED ||
                              (uint64_t)h->counters[m] >= (slowest < h->clocks[m] ? slowest : h->clocks[m]),
                          error);
        }
    }
    if (err == RBT_OK)
        err = rbt_observe(observer, GRID, RBT_UNBOUNDED, h->grid, &slowest, error);
    return err == RBT_OK ? rbt_observe(observer, FLOATS, RBT_UNBOUNDED, h->floats, &slowest, error) : err;
}

/* What differs from run to run. */
typedef struct variant {
    const rbt_rule *rule; /* of the floats */
    uint64_t staleness;
    uint32_t servers;
    bool eager;
    bool encode;
    unsigned codec;
    bool partition_sync;
} variant;

static void hammer_init(hammer *h, const variant *way)
{
    rbt_topology topology = {.workers = WORKERS,
                             .servers = way->servers,
                             .observers = 1,
                             .process_workers = way->servers == 2 ? 1 : WORKERS, /* without and with a process cache */
                             .staleness = way->staleness,
                             .eager = way->eager,
                             .partition_sync = way->partition_sync};

    memset(h, 0, sizeof *h);
    setup_init(&h->setup, &topology, way->rule, SPECS, TABLES);
    h->staleness = way->staleness;
    h->is_sum = way->rule == &rbt_rule_sum;
    for (uint32_t m = 0; m < WORKERS; m++)
        h->clocks[m] = m == 2 ? 5 : m == 4 ? 0 : CLOCKS; /* some run dry */
    h->setup.run.program = (rbt_program){.name = "hammer", .work = hammer_work, .argument = h};
    h->setup.run.observe = (rbt_program){.name = "observe", .work = hammer_observe, .argument = h};
    h->setup.run.encode = way->encode;
    h->setup.run.codec = way->codec;
}

static void hammer_run(hammer *h, variant way)
{
    int64_t grid = 0, expected = 0, clocks = 0;
    uint64_t reads = 0;
    rbt_error error = {0};

    hammer_init(h, &way);
    if (rbt_local_run(&h->setup.run, &error) != RBT_OK)
        fail_msg("%s, staleness %d, %u servers: %s", way.rule->name, (int)way.staleness, way.servers, error.text);
    for (uint32_t m = 0; m < WORKERS; m++) {
        assert_int_equal(h->counters[m], h->clocks[m]);
        assert_int_equal(atomic_load(&h->setup.run.published[m].clock), h->clocks[m]);
        expected += h->expected[m];
        clocks += (int64_t)h->clocks[m];
    }
    for (int i = 0; i < ROWS * COLS; i++)
        grid += h->grid[i];
    assert_true(grid == expected); /* conservation */
    for (int i = 0; h->is_sum && i < 200; i++)
        assert_true(h->floats[i] == (i % 5 == 0 ? 0.25f * (float)clocks : 0));
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        reads += h->setup.run.staleness_histogram[i];
    assert_int_equal(reads, 5 * (uint64_t)clocks);
    assert_true(atomic_load(&h->setup.run.bytes) > 0 && h->setup.run.elapsed_ns > 0);
    assert_true(way.staleness == RBT_UNBOUNDED ||
                (h->setup.run.max_gap <= way.staleness && h->setup.run.peak_versions <= way.staleness + 1));
    setup_deinit(&h->setup);
}

static const uint64_t BOUNDS[] = {0, 1, 4, RBT_UNBOUNDED};

static void no_increment_is_lost_or_doubled_and_every_read_keeps_its_bound(void **state)
{
    static hammer h;

    (void)state;
    for (size_t i = 0; i < sizeof BOUNDS / sizeof BOUNDS[0]; i++)
        for (uint32_t servers = 1; servers <= 3; servers++)
            for (int encode = 0; encode < 2; encode++)
                hammer_run(&h, (variant){.rule = &rbt_rule_sum,
                                         .staleness = BOUNDS[i],
                                         .servers = servers,
                                         .eager = (BOUNDS[i] == 1 || BOUNDS[i] == 4) && servers != 2,
                                         .encode = encode,
                                         .codec = servers == 3 ? 31 : 0}); /* all of them; without encode they count */
}

static void tables_of_floats_with_versions_beside_tables_of_counts_disturb_nothing(void **state)
{
    static hammer h;

    (void)state;
    for (size_t i = 0; i < sizeof BOUNDS / sizeof BOUNDS[0]; i++)
        for (uint32_t servers = 1; servers <= 3; servers++)
            for (int sync = 0; sync < 2; sync++)
                hammer_run(&h, (variant){.rule = &rbt_rule_dyn,
                                         .staleness = BOUNDS[i],
                                         .servers = servers,
                                         .eager = !sync && BOUNDS[i] == 4,
                                         .partition_sync = sync});
}

/* ------------------------------------------------------------------------------------------------- endings */

typedef struct ending {
    job_setup setup;
    atomic_bool interrupted;
    uint64_t finished[WORKERS];
    int failing; /* the worker that fails at clock 3, -1: none; -2: the observer */
    bool interrupts;
} ending;

static rbt_err until_told(rbt_worker *worker, void *argument, rbt_error *error)
{
    ending *e = argument;
    uint32_t me = rbt_worker_id(worker);
    int64_t counters[WORKERS];
    rbt_err err = RBT_OK;

    while (err == RBT_OK && !rbt_worker_should_stop(worker)) {
        err = rbt_get_row(worker, 0, 0, RBT_STALENESS_OF_JOB, counters, error);
        if (err == RBT_OK && rbt_worker_clock(worker) == 3 && e->failing == (int)me)
            return rbt_fail(error, RBT_E_DATA, "worker %u could not go on", me);
        if (err == RBT_OK)
            err = rbt_inc(worker, 0, 0, me, 1, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
        if (e->interrupts && me == 1 && rbt_worker_clock(worker) == 5)
            atomic_store(&e->interrupted, true);
    }
    e->finished[me] = rbt_worker_clock(worker);
    return err;
}

static rbt_err observe_ending(rbt_worker *observer, void *argument, rbt_error *error)
{
    ending *e = argument;
    int64_t counters[WORKERS];
    uint64_t slowest;
    rbt_err err;

    if (e->failing == -2)
        return rbt_fail(error, RBT_E_DIVERGED, "the observer has seen enough");
    err = rbt_observe(observer, 0, RBT_UNBOUNDED, counters, &slowest, error);
    for (uint32_t m = 0; err == RBT_OK && m < WORKERS; m++)
        program_check((uint64_t)counters[m] == e->finished[m] || e->failing == (int)m, error);
    return err;
}

static rbt_err run_ending(ending *e, int failing, bool interrupts, uint64_t staleness, rbt_error *error)
{
    rbt_topology topology = {.workers = WORKERS, .servers = 2, .observers = 1, .staleness = staleness};
    rbt_err err;

    memset(e, 0, sizeof *e);
    e->failing = failing;
    e->interrupts = interrupts;
    setup_init(&e->setup, &topology, &rbt_rule_sum, SPECS, 1);
    e->setup.run.program = (rbt_program){.name = "until told", .work = until_told, .argument = e};
    e->setup.run.observe = (rbt_program){.name = "observe", .work = observe_ending, .argument = e};
    e->setup.run.interrupted = &e->interrupted;
    err = rbt_local_run(&e->setup.run, error);
    setup_deinit(&e->setup);
    return err;
}

static void a_program_that_fails_ends_the_job_with_its_error_and_nobody_hangs(void **state)
{
    static const uint64_t bounds[] = {0, 2, RBT_UNBOUNDED};
    rbt_error error = {0};
    ending e;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int failing = 0; failing < WORKERS; failing += 2) {
            char expected[64];

            snprintf(expected, sizeof expected, "worker %d could not go on", failing);
            assert_int_equal(run_ending(&e, failing, false, bounds[i], &error), RBT_E_DATA);
            assert_string_equal(error.text, expected);
        }
}

static void an_observer_that_fails_ends_the_job_too(void **state)
{
    rbt_error error = {0};
    ending e;

    (void)state;
    assert_int_equal(run_ending(&e, -2, false, 0, &error), RBT_E_DIVERGED);
    assert_string_equal(error.text, "the observer has seen enough");
}

static void the_interrupt_flag_ends_the_job_after_a_clock(void **state)
{
    rbt_error error = {0};
    ending e;

    (void)state;
    for (uint64_t staleness = 0; staleness < 3; staleness++) {
        if (run_ending(&e, -1, true, staleness, &error) != RBT_OK)
            fail_msg("%s", error.text);
        assert_true(e.finished[1] >= 5);
    }
}

/* Peers: sums around a ring, or averages, until one of them fails. */
static rbt_err peer_until_failure(rbt_worker *worker, void *argument, rbt_error *error)
{
    const int *failing = argument;
    bool allreduce = worker->run->topology->hop->allreduce; /* whose workers stop together, or not at all */
    float sum[2] = {1, 2};
    rbt_err err = RBT_OK;

    while (err == RBT_OK && (allreduce || !rbt_worker_should_stop(worker))) {
        rbt_snap *mixed = NULL;

        if (rbt_worker_clock(worker) == 3 && *failing == (int)rbt_worker_id(worker))
            return rbt_fail(error, RBT_E_DATA, "worker %d could not go on", *failing);
        if (allreduce) {
            err = rbt_hop_sum(worker, sum, 2, error);
        } else {
            err = rbt_hop_send(worker, error);
            if (err == RBT_OK)
                err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
        }
        if (err == RBT_OK)
            err = rbt_hop_next(worker, mixed, error);
    }
    return err;
}

static rbt_err observe_peers(rbt_worker *observer, void *argument, rbt_error *error)
{
    float mean[2];
    uint64_t slowest;

    (void)argument;
    return rbt_observe(observer, 0, RBT_UNBOUNDED, mean, &slowest, error);
}

static rbt_err run_peers(bool allreduce, int failing, rbt_error *error)
{
    rbt_topology topology = {.workers = WORKERS, .observers = 1, .lost_is_gone = true};
    rbt_hop hop = {.parameters = 2, .damping = 1, .allreduce = allreduce};
    job_setup setup;
    rbt_err err;

    if (!allreduce)
        assert_int_equal(rbt_graph_init(&hop.graph, RBT_GRAPH_RING, WORKERS, NULL, error), RBT_OK);
    setup_init(&setup, &topology, &rbt_rule_sum, NULL, 0);
    setup.topology.hop = &hop;
    setup.run.program = (rbt_program){.name = "peers", .work = peer_until_failure, .argument = &failing};
    setup.run.observe = (rbt_program){.name = "observe", .work = observe_peers};
    err = rbt_local_run(&setup.run, error);
    setup_deinit(&setup);
    rbt_graph_deinit(&hop.graph);
    return err;
}

static void a_peer_that_fails_ends_the_job_with_its_error_and_nobody_hangs(void **state)
{
    rbt_error error = {0};

    (void)state;
    for (int allreduce = 0; allreduce < 2; allreduce++)
        for (int failing = 0; failing < WORKERS; failing += 5) {
            char expected[64];

            snprintf(expected, sizeof expected, "worker %d could not go on", failing);
            assert_int_equal(run_peers(allreduce, failing, &error), RBT_E_DATA);
            assert_string_equal(error.text, expected);
        }
}

/* No system has room for stacks of this size. */
static void nobody_waits_for_peers_whose_threads_are_refused(void **state)
{
    pthread_attr_t usual, vast;

    (void)state;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&vast), 0);
    assert_int_equal(pthread_attr_setstacksize(&vast, (size_t)1 << 60), 0);
    for (int allreduce = 0; allreduce < 2; allreduce++) {
        rbt_error error = {0};

        assert_int_equal(pthread_setattr_default_np(&vast), 0);
        assert_int_equal(run_peers(allreduce, -1, &error), RBT_E_LIMIT);
        assert_int_equal(pthread_setattr_default_np(&usual), 0);
        assert_string_equal(error.text, "the system refused thread 1 of 6; use fewer --workers");
    }
    pthread_attr_destroy(&vast);
    pthread_attr_destroy(&usual);
}

/* ---------------------------------------------------------------------------------------- single increments */

static rbt_err increment_singly(rbt_worker *worker, void *argument, rbt_error *error)
{
    int64_t counters[WORKERS];
    int32_t small;
    float real;
    rbt_err err = RBT_OK;

    (void)argument;
    program_check(rbt_inc(worker, COUNTERS, 0, 1, 0.5, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, COUNTERS, 0, 1, 0x1p63, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, COUNTERS, 0, 1, 0.0 / 0.0, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, SPARSE, 0, 7, 0x1p31, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, COUNTERS, 0, WORKERS, 1, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, COUNTERS, 0, 1, -0x1p63, error) == RBT_OK, error);
    program_check(rbt_inc(worker, COUNTERS, 0, 2, 0x1p62, error) == RBT_OK, error);
    program_check(rbt_inc(worker, SPARSE, 0, 7, -0x1p31, error) == RBT_OK, error);
    program_check(rbt_inc(worker, FLOATS, 0, 3, 1e20, error) == RBT_OK, error);
    err = rbt_get_row(worker, COUNTERS, 0, 0, counters, error);
    if (err == RBT_OK)
        err = rbt_get_range(worker, SPARSE, 0, 7, 1, 0, &small, error);
    if (err == RBT_OK)
        err = rbt_get_range(worker, FLOATS, 0, 3, 1, 0, &real, error);
    if (err != RBT_OK)
        return err;
    program_check(counters[1] == INT64_MIN && counters[2] == 1ll << 62 && small == INT32_MIN && real == 1e20f, error);
    return rbt_clock(worker, error);
}

static void single_increments_fit_the_table_or_are_refused(void **state)
{
    rbt_topology topology = {.workers = 1, .servers = 1};
    rbt_error error = {0};
    job_setup setup;

    (void)state;
    setup_init(&setup, &topology, &rbt_rule_sum, SPECS, TABLES);
    setup.run.program = (rbt_program){.name = "singly", .work = increment_singly};
    if (rbt_local_run(&setup.run, &error) != RBT_OK)
        fail_msg("%s", error.text);
    setup_deinit(&setup);
}

/* --------------------------------------------------------------------------------------------- stragglers */

static rbt_err idle(rbt_worker *worker, void *argument, rbt_error *error)
{
    float value;
    rbt_err err = RBT_OK;

    (void)argument;
    while (err == RBT_OK && rbt_worker_clock(worker) < 20) {
        err = rbt_get_range(worker, 0, 0, 0, 1, RBT_STALENESS_OF_JOB, &value, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}

static void a_straggler_sleeps_in_proportion_to_what_its_clocks_took(void **state)
{
    rbt_topology topology = {.workers = 2, .servers = 1};
    rbt_error error = {0};
    rbt_published *p;
    job_setup setup;

    (void)state;
    setup_init(&setup, &topology, &rbt_rule_con, &SPECS[FLOATS], 1);
    rbt_stragglers_deinit(&setup.stragglers);
    assert_int_equal(rbt_stragglers_init(&setup.stragglers, "worker=1,slow=3", 2, 1, &error), RBT_OK);
    setup.run.program = (rbt_program){.name = "idle", .work = idle};
    assert_int_equal(rbt_local_run(&setup.run, &error), RBT_OK);
    p = setup.run.published;
    assert_int_equal(atomic_load(&p[0].slowed_ns), 0);
    assert_true(atomic_load(&p[1].slowed_ns) > 0);
    assert_true(atomic_load(&p[1].compute_ns) >= atomic_load(&p[1].slowed_ns));
    setup_deinit(&setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_increment_is_lost_or_doubled_and_every_read_keeps_its_bound),
        cmocka_unit_test(tables_of_floats_with_versions_beside_tables_of_counts_disturb_nothing),
        cmocka_unit_test(a_program_that_fails_ends_the_job_with_its_error_and_nobody_hangs),
        cmocka_unit_test(an_observer_that_fails_ends_the_job_too),
        cmocka_unit_test(a_peer_that_fails_ends_the_job_with_its_error_and_nobody_hangs),
        cmocka_unit_test(nobody_waits_for_peers_whose_threads_are_refused),
        cmocka_unit_test(the_interrupt_flag_ends_the_job_after_a_clock),
        cmocka_unit_test(single_increments_fit_the_table_or_are_refused),
        cmocka_unit_test(a_straggler_sleeps_in_proportion_to_what_its_clocks_took),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
