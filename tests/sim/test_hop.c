/* Proves what training without servers promises (docs/protocols.md, section 6): in standard mode the same bits on both
 * runtimes, however slow, whatever the network does to messages, with tokens or answers or without; in serial order on the
 * complete graph BSP with averages; every variant learns on every graph; nobody waits for ever, also when peers are lost. */
#include "sim/jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/check_hop.h"
#include "runtime/handle.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define JOB        "data=data.svm l2=0.01 lr=1 batch=10 batches-per-clock=1 seed=3 workers=%u clocks=%u "
#define STRAGGLERS "straggler=frac=0.3,slow=5;p=0.2,slow=4;lognormal=0.5 "
#define FAULTS     "faults=drop=0.1,dup=0.2,delay=0.2,partition=3,within=20ms net=bw=100Mbit,lat=50us,jitter=200us "

static const char *const GRAPHS[] = {"ring", "ring-based", "double-ring", "complete", "exponential", "clique"};
static const char *const VARIANTS[] = {
    "order=parallel",
    "order=serial",
    "notify-ack=true",
    "max-gap=3",
    "staleness=3",
    "staleness=3 max-gap=2",
    "max-gap=4 backup=1",
    "max-gap=4 backup=1 order=serial",
    "max-gap=4 backup=1 staleness=2",
    "max-gap=4 backup=1 skip=10",
    "max-gap=5 staleness=3 skip=10 skip-trigger=3",
    "max-gap=5 backup=1 staleness=3 skip=4 order=serial",
};

static void standard_mode_gives_the_same_bits_everywhere(void **state)
{
    static const char *const ways[] = {
        "runtime=local",
        "runtime=local encode=true straggler=worker=0,slow=2",
        "runtime=local max-gap=2",
        "runtime=local notify-ack=true",
        "runtime=sim",
        "runtime=sim encode=true eval-every=0",
        "runtime=sim max-gap=1",
        "runtime=sim notify-ack=true " STRAGGLERS,
        "runtime=sim " FAULTS,
        "runtime=sim max-gap=3 encode=true " STRAGGLERS FAULTS,
    };
    static const char *const orders[] = {"parallel", "serial"};

    (void)state;
    for (size_t g = 0; g < COUNT(GRAPHS); g++)
        for (size_t o = 0; o < COUNT(orders); o++) {
            uint64_t expected = job_hash(JOB "sync=hop graph=%s order=%s runtime=sim", 6u, 8u, GRAPHS[g], orders[o]);

            for (size_t way = 0; way < COUNT(ways); way++)
                if (job_hash(JOB "sync=hop graph=%s order=%s %s", 6u, 8u, GRAPHS[g], orders[o], ways[way]) != expected)
                    fail_msg("%s, %s: '%s' gives other bits", GRAPHS[g], orders[o], ways[way]);
        }
}

static void peers_that_run_dry_leave_the_same_bits_everywhere(void **state)
{
    static const char *const ways[] = {"runtime=local", "runtime=sim", "runtime=sim " STRAGGLERS FAULTS};
    uint64_t expected = 0;

    (void)state;
    data_write("uneven.svm", 245, 57, 6, 4); /* 62 rows and 61: the first has twice as many iterations */
    for (size_t way = 0; way < COUNT(ways); way++) {
        uint64_t hash = job_hash(
            "data=uneven.svm sync=hop graph=ring workers=4 batch=61 batches-per-clock=1 epochs=3 %s", ways[way]);

        expected = way == 0 ? hash : expected;
        assert_int_equal(hash, expected);
    }
}

/* ----------------------------------------------------------------------------------------------- against servers */

static double distance(const job_outcome *a, const job_outcome *b)
{
    double sum = 0;

    assert_int_equal(a->err, RBT_OK);
    assert_int_equal(b->err, RBT_OK);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        sum += ((double)a->w[i] - (double)b->w[i]) * ((double)a->w[i] - (double)b->w[i]);
    return sqrt(sum);
}

/* How far a job without servers is from BSP with averages after so many iterations. */
static double apart(const char *order, uint32_t clocks)
{
    job_outcome bsp = job_run(JOB "sync=bsp rule=con runtime=sim", 4u, clocks);
    job_outcome hop = job_run(JOB "sync=hop graph=complete order=%s runtime=sim", 4u, clocks, order);
    double found = distance(&bsp, &hop);

    outcome_deinit(&bsp);
    outcome_deinit(&hop);
    return found;
}

static void serial_order_on_the_complete_graph_is_bsp_with_averages(void **state)
{
    (void)state;
    assert_true(apart("serial", 1) < 1e-6);
    assert_true(apart("serial", 30) < 1e-5);
}

/* Peers with a parabola each, f(x) = a/2 (x - c)^2, and what they were at after every iteration. */
#define PARABOLAS           4
#define PARABOLA_ITERATIONS 6
#define PARABOLA_RATE       0.25f

typedef struct parabolas {
    float a[PARABOLAS], c[PARABOLAS];
    float x[PARABOLA_ITERATIONS + 1][PARABOLAS];
} parabolas;

static float parabola_step(const parabolas *p, uint32_t m, float x)
{
    return -PARABOLA_RATE * (p->a[m] * (x - p->c[m]));
}

static rbt_err parabola_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    parabolas *p = argument;
    uint32_t me = rbt_worker_id(worker);
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < PARABOLA_ITERATIONS) {
        rbt_snap *mixed = NULL;
        float x, u;

        rbt_hop_read(worker, &x);
        u = parabola_step(p, me, x);
        err = rbt_hop_send(worker, error);
        if (err == RBT_OK)
            rbt_worker_did(worker, 1000 * (me + 1), 0);
        if (err == RBT_OK)
            err = rbt_hop_receive(worker, &u, 1, &mixed, error);
        if (err == RBT_OK)
            p->x[rbt_worker_clock(worker) + 1][me] = mixed->f32[0];
        if (err == RBT_OK)
            err = rbt_hop_next(worker, mixed, error);
    }
    return err;
}

static void run_parabolas(parabolas *p)
{
    rbt_topology topology = {.workers = PARABOLAS};
    rbt_hop hop = {.parameters = 1, .damping = 1};
    rbt_error error = {0};
    job_setup setup;

    assert_int_equal(rbt_graph_init(&hop.graph, RBT_GRAPH_COMPLETE, PARABOLAS, NULL, &error), RBT_OK);
    setup_init(&setup, &topology, &rbt_rule_sum, NULL, 0);
    setup.topology.hop = &hop;
    setup.run.program = (rbt_program){.name = "parabolas", .work = parabola_work, .argument = p};
    assert_int_equal(rbt_sim_run(&setup.run, &setup.sim, &error), RBT_OK);
    setup_deinit(&setup);
    rbt_graph_deinit(&hop.graph);
}

/* x_i+ = mean(x) - eta g_i(x_i), to the last bit: the mean is of what all were at, and each keeps the whole of its own step. */
static void in_parallel_order_every_peer_keeps_its_own_step(void **state)
{
    parabolas p = {.a = {1, 0.5f, 2, 1.25f}, .c = {1, -3, 0.7f, 10}};

    (void)state;
    run_parabolas(&p);
    for (uint32_t k = 0; k < PARABOLA_ITERATIONS; k++)
        for (uint32_t m = 0; m < PARABOLAS; m++) {
            float must = 0;

            for (uint32_t j = 0; j < PARABOLAS; j++)
                must += 0.25f * p.x[k][j];
            must += parabola_step(&p, m, p.x[k][m]);
            assert_memory_equal(&must, &p.x[k + 1][m], sizeof must);
        }
}

/* BSP with averages is X+ = X - eta mean(g_i(X)). From the same start the means agree after one iteration, and peer i is off by its own
 * step less the mean step; after two the means differ by -eta mean(a_i (x_i - X)): by how much each slope is met elsewhere. */
static void parallel_order_departs_from_bsp_by_what_peers_keep_for_themselves(void **state)
{
    parabolas p = {.a = {1, 0.5f, 2, 1.25f}, .c = {1, -3, 0.7f, 10}};
    double bsp = 0, mean[3] = {0}, step[PARABOLAS], mean_step = 0, slope = 0, second = 0;

    (void)state;
    run_parabolas(&p);
    for (uint32_t m = 0; m < PARABOLAS; m++) {
        step[m] = (double)parabola_step(&p, m, 0);
        mean_step += step[m] / PARABOLAS;
        mean[1] += (double)p.x[1][m] / PARABOLAS;
        mean[2] += (double)p.x[2][m] / PARABOLAS;
    }
    bsp += mean_step; /* the first iteration */
    assert_true(fabs(mean[1] - bsp) < 1e-6);
    for (uint32_t m = 0; m < PARABOLAS; m++)
        assert_true(fabs((double)p.x[1][m] - bsp - (step[m] - mean_step)) < 1e-6);
    for (uint32_t m = 0; m < PARABOLAS; m++)
        slope += -(double)PARABOLA_RATE * (double)p.a[m] * (step[m] - mean_step) / PARABOLAS;
    for (uint32_t m = 0; m < PARABOLAS; m++)
        second += -(double)PARABOLA_RATE * (double)p.a[m] * (bsp - (double)p.c[m]) / PARABOLAS;
    bsp += second;
    assert_true(fabs(slope) > 1e-2);
    assert_true(fabs(mean[2] - bsp - slope) < 1e-6);
}

static void on_data_parallel_order_and_bsp_part_in_the_second_iteration(void **state)
{
    (void)state;
    assert_true(apart("parallel", 1) < 1e-6);
    assert_true(apart("parallel", 2) > 1e-3);
}

/* ------------------------------------------------------------------------------------------------------ learning */

static void every_variant_learns_on_every_graph(void **state)
{
    job_outcome bsp = job_run(JOB "sync=bsp rule=con runtime=sim", 8u, 60u);

    (void)state;
    assert_int_equal(bsp.err, RBT_OK);
    assert_true(bsp.result.loss < 0.6);
    for (size_t g = 0; g < COUNT(GRAPHS); g++)
        for (size_t v = 0; v < COUNT(VARIANTS); v++) {
            job_outcome o = job_run(JOB "sync=hop graph=%s %s runtime=sim straggler=p=0.125,slow=6 cost=sample=50us",
                                    8u, 60u, GRAPHS[g], VARIANTS[v]);

            if (o.err != RBT_OK)
                fail_msg("%s, %s: %s", GRAPHS[g], VARIANTS[v], o.error.text);
            if (!(o.result.loss < bsp.result.loss + 0.03))
                fail_msg("%s, %s: loss %g, with servers %g", GRAPHS[g], VARIANTS[v], o.result.loss, bsp.result.loss);
            outcome_deinit(&o);
        }
    outcome_deinit(&bsp);
}

/* The step size is tried without averages; in parallel order it must be shortened, or graphs with negative eigenvalues diverge. */
static void a_step_size_that_was_found_serves_both_orders_on_every_graph(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(GRAPHS); g++) {
        double loss[2];

        for (int serial = 0; serial < 2; serial++) {
            job_outcome o = job_run("data=steep.svm sync=hop graph=%s order=%s workers=8 epochs=20 runtime=sim",
                                    GRAPHS[g], serial ? "serial" : "parallel");

            assert_int_equal(o.err, RBT_OK);
            loss[serial] = o.result.loss;
            outcome_deinit(&o);
        }
        if (!(loss[0] < loss[1] + 0.01))
            fail_msg("%s: loss %g in parallel order, %g in serial order", GRAPHS[g], loss[0], loss[1]);
    }
}

/* The paper's set-up: momentum 0.9 and weight decay, a step size that is given. */
#define PAPER                                                                                                          \
    "data=data.svm l2=0.0001 optimizer=momentum momentum=0.9 lr=0.1 batch=10 batches-per-clock=1 seed=3 workers=%u "   \
    "clocks=%u "

static void momentum_and_weight_decay_give_the_same_bits_everywhere(void **state)
{
    static const char *const syncs[] = {"sync=hop graph=ring-based", "sync=hop graph=complete order=serial",
                                        "sync=allreduce"};
    static const char *const ways[] = {"runtime=local", "runtime=local encode=true", "runtime=sim",
                                       "runtime=sim " STRAGGLERS FAULTS};

    (void)state;
    for (size_t s = 0; s < COUNT(syncs); s++) {
        uint64_t expected = job_hash(PAPER "%s runtime=sim", 6u, 8u, syncs[s]);

        for (size_t way = 0; way < COUNT(ways); way++)
            if (job_hash(PAPER "%s %s", 6u, 8u, syncs[s], ways[way]) != expected)
                fail_msg("%s: '%s' gives other bits", syncs[s], ways[way]);
    }
}

static void momentum_learns_with_every_protocol(void **state)
{
    static const char *const syncs[] = {"sync=hop graph=ring-based",
                                        "sync=hop graph=ring-based max-gap=4 backup=1",
                                        "sync=hop graph=ring-based max-gap=4 staleness=3",
                                        "sync=hop graph=complete order=serial",
                                        "sync=adpsgd graph=ring",
                                        "sync=allreduce"};

    (void)state;
    for (size_t s = 0; s < COUNT(syncs); s++) {
        job_outcome o = job_run(PAPER "%s runtime=sim straggler=p=0.125,slow=6 cost=sample=50us", 8u, 60u, syncs[s]);

        if (o.err != RBT_OK || !(o.result.loss < 0.5))
            fail_msg("%s: loss %g, %s", syncs[s], o.result.loss, o.error.text);
        outcome_deinit(&o);
    }
}

static void adpsgd_learns_on_bipartite_graphs_and_refuses_others(void **state)
{
    static const char *const ways[] = {"runtime=local", "runtime=sim", "runtime=sim encode=true " STRAGGLERS FAULTS,
                                       "runtime=sim faults=crash=3,within=15ms cost=sample=50us"};
    job_outcome o;

    (void)state;
    for (size_t way = 0; way < COUNT(ways); way++) {
        o = job_run(JOB "sync=adpsgd %s", 8u, 60u, ways[way]);
        if (o.err != RBT_OK || !(o.result.loss < 0.65))
            fail_msg("%s: loss %g, %s", ways[way], o.result.loss, o.error.text);
        outcome_deinit(&o);
    }
    o = job_run(JOB "sync=adpsgd graph=complete runtime=sim", 8u, 1u);
    assert_int_equal(o.err, RBT_E_USAGE);
    assert_non_null(strstr(o.error.text, "the edge between 1 and 2 lies within one half"));
    outcome_deinit(&o);
    o = job_run(JOB "sync=hop graph=ring max-gap=5 backup=2 runtime=sim", 8u, 1u);
    assert_int_equal(o.err, RBT_E_USAGE);
    assert_non_null(strstr(o.error.text, "worker 0 has 2 in-neighbours besides itself, and would wait for none"));
    outcome_deinit(&o);
}

static double seconds_of(const char *variant, const char *straggler)
{
    job_outcome o =
        job_run(JOB "sync=hop graph=ring-based %s runtime=sim cost=sample=50us %s", 16u, 100u, variant, straggler);
    double seconds = o.result.seconds;

    if (o.err != RBT_OK)
        fail_msg("%s: %s", variant, o.error.text);
    outcome_deinit(&o);
    return seconds;
}

static void backup_and_staleness_pass_over_random_slowness(void **state)
{
    double standard = seconds_of("order=parallel", "straggler=p=0.0625,slow=6");

    (void)state;
    assert_true(seconds_of("max-gap=5 backup=1", "straggler=p=0.0625,slow=6") < standard / 1.2);
    assert_true(seconds_of("staleness=5", "straggler=p=0.0625,slow=6") < standard / 1.2);
}

static void only_skipping_passes_over_one_that_is_slow_for_good(void **state)
{
    double even = seconds_of("order=parallel", "");

    (void)state;
    assert_true(seconds_of("order=parallel", "straggler=worker=3,slow=4") > 3 * even);
    assert_true(seconds_of("max-gap=5 backup=1", "straggler=worker=3,slow=4") > 3 * even);
    assert_true(seconds_of("max-gap=5 backup=1 skip=10", "straggler=worker=3,slow=4") < 1.5 * even);
}

/* An update is of ten rows. At a target rows and updates are told a moment apart: of a worker one more or less. */
static void iterations_that_are_jumped_over_are_no_updates(void **state)
{
    static const char *const ends[] = {"", "target-loss=0.5"};

    (void)state;
    for (size_t i = 0; i < COUNT(ends); i++) {
        job_outcome o = job_run(JOB "sync=hop graph=ring-based max-gap=5 backup=1 skip=10 runtime=sim cost=sample=50us "
                                    "straggler=worker=3,slow=4 %s",
                                8u, 200u, ends[i]);
        double updates = o.result.samples_per_second * o.result.seconds / 10, most = i == 0 ? 0.01 : 8;

        assert_int_equal(o.err, RBT_OK);
        assert_true(o.result.skipped > 16);
        if (!(fabs(updates - (double)o.result.updates) <= most))
            fail_msg("%g updates have been made, %g are told of", updates, (double)o.result.updates);
        assert_true(o.result.seconds_per_update == o.result.seconds / (double)o.result.updates);
        outcome_deinit(&o);
    }
}

/* -------------------------------------------------------------------------------------------------------- losses */

static void the_others_go_on_when_peers_are_lost(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(GRAPHS); g++)
        for (size_t v = 0; v < COUNT(VARIANTS); v++) {
            uint64_t hash[2];

            for (int again = 0; again < 2; again++) {
                job_outcome o = job_run(JOB "sync=hop graph=%s %s runtime=sim cost=sample=50us "
                                            "faults=crash=3,within=15ms",
                                        8u, 60u, GRAPHS[g], VARIANTS[v]);

                if (o.err != RBT_OK)
                    fail_msg("%s, %s: %s", GRAPHS[g], VARIANTS[v], o.error.text);
                assert_true(o.result.loss < 0.65);
                hash[again] = o.result.param_hash;
                outcome_deinit(&o);
            }
            assert_int_equal(hash[0], hash[1]);
        }
}

/* A peer that is lost in the first milliseconds does not hold the clocks of the others down, of which the result tells at a target. */
static void one_that_is_lost_is_not_the_slowest_for_ever(void **state)
{
    static const char *const syncs[] = {"hop", "adpsgd"};

    (void)state;
    for (size_t s = 0; s < COUNT(syncs); s++) {
        job_outcome o = job_run(JOB "sync=%s graph=ring runtime=sim cost=sample=50us faults=crash=1,within=2ms "
                                    "target-loss=0.5",
                                8u, 1000u, syncs[s]);

        assert_int_equal(o.err, RBT_OK);
        assert_true(o.result.reached);
        assert_true(o.result.clocks > 8);
        outcome_deinit(&o);
    }
}

static void when_no_peer_is_left_the_job_fails(void **state)
{
    static const char *const syncs[] = {"hop", "adpsgd"};

    (void)state;
    for (size_t s = 0; s < COUNT(syncs); s++) {
        job_outcome o = job_run(JOB "sync=%s graph=ring runtime=sim cost=sample=50us faults=crash=100,within=5ms", 4u,
                                60u, syncs[s]);

        assert_int_equal(o.err, RBT_E_LOST);
        assert_non_null(strstr(o.error.text, "no worker is left"));
        outcome_deinit(&o);
    }
}

/* A program without data: iterations with work in between. */
static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const uint64_t *iterations = argument;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < *iterations) {
        rbt_snap *mixed = NULL;

        err = rbt_hop_send(worker, error);
        if (err == RBT_OK)
            rbt_worker_did(worker, 1000, 0);
        if (err == RBT_OK)
            err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
        if (err == RBT_OK)
            err = rbt_hop_next(worker, mixed, error);
    }
    return err;
}

/* Every update that is taken counts once, however many come together. */
static void the_mean_staleness_is_over_the_updates_taken(void **state)
{
    uint64_t iterations = 50, taken = 0, sum = 0, reads = 0, staleness = 0;
    rbt_topology topology = {.workers = 4};
    rbt_hop hop = {.parameters = 2, .staleness = 3};
    rbt_error error = {0};
    job_setup setup;

    (void)state;
    assert_int_equal(rbt_graph_init(&hop.graph, RBT_GRAPH_COMPLETE, 4, NULL, &error), RBT_OK);
    setup_init(&setup, &topology, &rbt_rule_sum, NULL, 0);
    rbt_stragglers_deinit(&setup.stragglers);
    assert_int_equal(rbt_stragglers_init(&setup.stragglers, "worker=0,slow=3", 4, 1, &error), RBT_OK);
    setup.topology.hop = &hop;
    setup.run.program = (rbt_program){.name = "peers", .work = work, .argument = &iterations};
    assert_int_equal(rbt_sim_run(&setup.run, &setup.sim, &error), RBT_OK);
    for (uint64_t i = 0; i < RBT_STALENESS_BINS; i++) {
        taken += setup.run.staleness_histogram[i];
        sum += i * setup.run.staleness_histogram[i];
    }
    for (uint32_t m = 0; m < 4; m++) {
        reads += atomic_load(&setup.run.published[m].reads);
        staleness += atomic_load(&setup.run.published[m].staleness_sum);
    }
    assert_true(taken > 4 * iterations); /* several together */
    assert_true(sum > 0);
    assert_int_equal(reads, taken);
    assert_int_equal(staleness, sum);
    setup_deinit(&setup);
    rbt_graph_deinit(&hop.graph);
}

static void without_leave_to_go_on_the_wait_for_a_lost_peer_is_named(void **state)
{
    static const char *const waits = "waits for worker ";
    uint64_t iterations = 500;
    rbt_topology topology = {.workers = 4};
    rbt_hop hop = {.parameters = 2};
    rbt_error error = {0};
    job_setup setup;

    (void)state;
    assert_int_equal(rbt_graph_init(&hop.graph, RBT_GRAPH_RING, 4, NULL, &error), RBT_OK);
    setup_init(&setup, &topology, &rbt_rule_sum, NULL, 0);
    setup.topology.hop = &hop;
    setup.run.program = (rbt_program){.name = "peers", .work = work, .argument = &iterations};
    setup.sim.faults = (rbt_faults){.crashes = 1, .within_ns = 5000000};
    assert_int_equal(rbt_sim_run(&setup.run, &setup.sim, &error), RBT_E_NO_PROGRESS);
    assert_non_null(strstr(error.text, waits));
    setup_deinit(&setup);
    rbt_graph_deinit(&hop.graph);
}

static rbt_err sum_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const uint64_t *iterations = argument;
    float sum[2] = {1, 1};
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < *iterations) {
        rbt_worker_did(worker, 1000, 0);
        err = rbt_hop_sum(worker, sum, 2, error);
        if (err == RBT_OK)
            err = rbt_hop_next(worker, NULL, error);
    }
    return err;
}

/* With three of four left, the one after the lost one waits for it, and the others in a row behind. */
static void a_sum_that_lacks_one_names_the_one_before_on_the_ring(void **state)
{
    uint64_t iterations = 500;
    uint32_t pairs = 0;
    rbt_topology topology = {.workers = 4};
    rbt_hop hop = {.parameters = 2, .allreduce = true};
    rbt_error error = {0};
    job_setup setup;

    (void)state;
    setup_init(&setup, &topology, &rbt_rule_sum, NULL, 0);
    setup.topology.hop = &hop;
    setup.run.program = (rbt_program){.name = "peers", .work = sum_work, .argument = &iterations};
    setup.sim.faults = (rbt_faults){.crashes = 1, .within_ns = 5000000};
    assert_int_equal(rbt_sim_run(&setup.run, &setup.sim, &error), RBT_E_NO_PROGRESS);
    for (const char *at = error.text; (at = strstr(at, "; worker ")) != NULL; at++) {
        unsigned waits, before;
        unsigned long long clock;

        assert_int_equal(sscanf(at, "; worker %u (clock %llu) waits for worker %u", &waits, &clock, &before), 3);
        assert_int_equal(before, (waits + 3) % 4);
        pairs++;
    }
    assert_int_equal(pairs, 3);
    setup_deinit(&setup);
}

/* Where nobody can come back, the job ends at once, and says what would go on. */
static void a_sum_that_lacks_one_for_good_ends_the_job(void **state)
{
    job_outcome o = job_run(JOB "sync=allreduce runtime=sim cost=sample=50us faults=crash=1,within=5ms", 4u, 60u);

    (void)state;
    assert_int_equal(o.err, RBT_E_LOST);
    assert_non_null(strstr(o.error.text, "all-reduce needs every worker"));
    outcome_deinit(&o);
}

static int write_data(void **state)
{
    (void)state;
    data_write("data.svm", 480, 30, 6, 4);
    data_write("steep.svm", 4000, 30, 6, 4);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_mode_gives_the_same_bits_everywhere),
        cmocka_unit_test(peers_that_run_dry_leave_the_same_bits_everywhere),
        cmocka_unit_test(serial_order_on_the_complete_graph_is_bsp_with_averages),
        cmocka_unit_test(in_parallel_order_every_peer_keeps_its_own_step),
        cmocka_unit_test(parallel_order_departs_from_bsp_by_what_peers_keep_for_themselves),
        cmocka_unit_test(on_data_parallel_order_and_bsp_part_in_the_second_iteration),
        cmocka_unit_test(momentum_and_weight_decay_give_the_same_bits_everywhere),
        cmocka_unit_test(momentum_learns_with_every_protocol),
        cmocka_unit_test(adpsgd_learns_on_bipartite_graphs_and_refuses_others),
        cmocka_unit_test(every_variant_learns_on_every_graph),
        cmocka_unit_test(a_step_size_that_was_found_serves_both_orders_on_every_graph),
        cmocka_unit_test(backup_and_staleness_pass_over_random_slowness),
        cmocka_unit_test(only_skipping_passes_over_one_that_is_slow_for_good),
        cmocka_unit_test(iterations_that_are_jumped_over_are_no_updates),
        cmocka_unit_test(the_mean_staleness_is_over_the_updates_taken),
        cmocka_unit_test(the_others_go_on_when_peers_are_lost),
        cmocka_unit_test(one_that_is_lost_is_not_the_slowest_for_ever),
        cmocka_unit_test(when_no_peer_is_left_the_job_fails),
        cmocka_unit_test(without_leave_to_go_on_the_wait_for_a_lost_peer_is_named),
        cmocka_unit_test(a_sum_that_lacks_one_names_the_one_before_on_the_ring),
        cmocka_unit_test(a_sum_that_lacks_one_for_good_ends_the_job),
    };

    return cmocka_run_group_tests_name("hop", tests, write_data, NULL);
}
