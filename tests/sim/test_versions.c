/* Proves what DynSGD promises of its versions (docs/protocols.md, section 2): at most staleness + 1 of them are alive
 * in real runs, their memory stays within (s + 1) / P of the parameters, and partition-synchronised pulls never mix
 * versions of different servers, which the same test shows to happen as soon as the stable version is ignored. */
#include "sim/jobs.h"
#include "unit/world.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------- in real runs */

#define DYN "data=data.svm sync=ssp rule=dyn clocks=40 batch=10%% lr=0.3 eval-every=0 "

static job_outcome run_dyn(const char *more, uint64_t staleness, uint32_t workers, uint32_t servers)
{
    job_outcome o = job_run(DYN "staleness=%d workers=%u servers=%u %s", (int)staleness, workers, servers, more);

    if (o.err != RBT_OK)
        fail_msg("%s", o.error.text);
    return o;
}

static void live_versions_never_exceed_staleness_plus_one(void **state)
{
    static const char *const ways[] = {
        "runtime=sim straggler=frac=0.25,slow=9", "runtime=sim straggler=p=0.1,slow=20",
        "runtime=sim straggler=lognormal=1 faults=drop=0.05,dup=0.1,delay=0.1,crash=2,within=5ms",
        "runtime=local straggler=worker=0,slow=3"};
    static const uint64_t bounds[] = {0, 1, 3, 10};
    uint64_t most = 0;

    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++)
        for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
            for (uint32_t servers = 1; servers <= 3; servers += 2) {
                job_outcome o = run_dyn(ways[way], bounds[i], 8, servers);

                assert_in_range(o.result.peak_versions, 1, bounds[i] + 1);
                assert_in_range(o.result.max_gap, 0, bounds[i]);
                most = o.result.peak_versions > most ? o.result.peak_versions : most;
                outcome_deinit(&o);
            }
    assert_int_equal(most, 11); /* the bound is reached, so the test is one */
}

static void version_memory_at_s_10_is_within_11_over_p_of_the_parameters_per_server(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= 4; servers++) {
        job_outcome o = run_dyn("runtime=sim straggler=frac=0.25,slow=9 no-bias=true", 10, 8, servers);

        assert_int_equal(o.result.parameter_bytes, 240 * sizeof(float)); /* 240 = any of 1, 2, 3, 4 times something */
        assert_true(o.result.version_bytes > 0);
        assert_true(o.result.version_bytes * servers <= 11 * o.result.parameter_bytes);
        outcome_deinit(&o);
    }
}

static void other_rules_keep_no_versions(void **state)
{
    job_outcome o = job_run("data=data.svm sync=ssp staleness=10 rule=sum clocks=5 workers=4 runtime=sim");

    (void)state;
    assert_int_equal(o.err, RBT_OK);
    assert_int_equal(o.result.peak_versions, 0);
    assert_int_equal(o.result.version_bytes, 0);
    outcome_deinit(&o);
}

/* ---------------------------------------------------------------------------------- pulls that race a push */

enum how { SYNCHRONISED, UNSYNCHRONISED, STABLE_IGNORED };

/* Worker 0 has pushed three clocks; all of them have reached the server of block 0, only the first that of block 1.
 * Then worker 1 reads both. Returns what it got. */
static void race(enum how how, float got[2])
{
    rbt_topology topology = {.workers = 2, .servers = 2, .staleness = 4, .partition_sync = how != UNSYNCHRONISED};
    rbt_node full, lagging;
    rbt_message *message;
    world w;

    world_init(&w, topology, &rbt_rule_dyn, 64);
    full = node_of_block(&w, 0);
    lagging = node_of_block(&w, 1);
    assert_int_not_equal(full, lagging);
    for (uint64_t clock = 0; clock < 3; clock++) {
        world_want(&w, 0, 4);
        world_deliver(&w, node_of_worker(&w, 0), RBT_MASTER);
        world_deliver(&w, RBT_MASTER, ANY);
        world_want(&w, 0, 4);
        while ((message = world_take(&w, node_of_worker(&w, 0), lagging, RBT_MSG_PULL)) !=
               NULL) { /* answered at once */
            message->clock = 0;
            world_handle(&w, message);
        }
        world_deliver(&w, node_of_worker(&w, 0), full);
        world_deliver(&w, ANY, node_of_worker(&w, 0));
        world_increment(&w, 0, 1);
        world_clock(&w, 0);
        world_deliver(&w, node_of_worker(&w, 0), full);
        if (clock == 0)
            world_deliver(&w, node_of_worker(&w, 0), lagging);
    }
    world_deliver(&w, full, ANY); /* acknowledgements and reports */
    world_deliver(&w, lagging, ANY);

    assert_false(world_want(&w, 1, 4));
    if (how != UNSYNCHRONISED) {
        world_deliver(&w, node_of_worker(&w, 1), RBT_MASTER);
        if (how == STABLE_IGNORED) {
            message = world_take(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_STABLE);
            assert_int_equal(message->version, 1);
            message->version = 3; /* "give me all you have" */
            world_put(&w, message);
        }
        world_deliver(&w, RBT_MASTER, node_of_worker(&w, 1));
        assert_false(world_want(&w, 1, 4));
    }
    world_deliver(&w, node_of_worker(&w, 1), ANY);
    world_deliver(&w, ANY, node_of_worker(&w, 1));
    assert_true(world_want(&w, 1, 4));
    for (uint32_t block = 0; block < 2; block++)
        got[block] = world_read(&w, 1, block, 4);
    world_deinit(&w);
}

static void partition_synchronised_pulls_never_mix_versions(void **state)
{
    float got[2];

    (void)state;
    race(SYNCHRONISED, got);
    assert_true(got[0] == 1 && got[1] == 1); /* version 0 on both, although one server has three */
}

static void pulls_mix_versions_when_the_stable_version_is_ignored(void **state)
{
    float got[2];

    (void)state;
    race(UNSYNCHRONISED, got);
    assert_true(got[0] == 3 && got[1] == 1);
    race(STABLE_IGNORED, got);
    assert_true(got[0] == 3 && got[1] == 1);
}

static void a_reader_never_loses_its_own_updates_to_the_stable_version(void **state)
{
    rbt_message *report, *stable;
    world w;

    (void)state;
    world_init(&w, (rbt_topology){.workers = 1, .servers = 2, .staleness = 4, .partition_sync = true}, &rbt_rule_dyn,
               64);
    for (uint64_t clock = 0; clock < 3; clock++)
        world_work(&w, 0, 4, 1);
    world_deliver(&w, node_of_worker(&w, 0), ANY);
    while ((report = world_take(&w, ANY, RBT_MASTER, RBT_MSG_REPORT)) != NULL) {
        report->version = 0; /* as if nobody had pushed anything */
        world_handle(&w, report);
    }
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 0));
    world_deliver(&w, ANY, RBT_MASTER);
    stable = world_take(&w, RBT_MASTER, ANY, RBT_MSG_STABLE);
    assert_int_equal(stable->version, 3); /* the reader's own finished clocks */
    world_put(&w, stable);
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 0));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    assert_true(world_read(&w, 0, 0, 0) == 3 && world_read(&w, 0, 1, 0) == 3);
    world_deinit(&w);
}

static int write_data(void **state)
{
    (void)state;
    data_write("data.svm", 400, 240, 20, 8);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_versions_never_exceed_staleness_plus_one),
        cmocka_unit_test(version_memory_at_s_10_is_within_11_over_p_of_the_parameters_per_server),
        cmocka_unit_test(other_rules_keep_no_versions),
        cmocka_unit_test(partition_synchronised_pulls_never_mix_versions),
        cmocka_unit_test(pulls_mix_versions_when_the_stable_version_is_ignored),
        cmocka_unit_test(a_reader_never_loses_its_own_updates_to_the_stable_version),
    };

    return cmocka_run_group_tests(tests, write_data, NULL);
}
