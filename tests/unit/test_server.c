/* Proves src/node/server.c by hand-made messages: when pulls are answered and held back, BSP's order, exactly-once,
 * refusal of the past and of what is malformed, eager pushes, workers that leave and come back. */
#include "unit/world.h"

#include <string.h>

#define SSP(workers_, s) ((rbt_topology){.workers = (workers_), .servers = 1, .staleness = (s)})

static void push(world *w, uint32_t worker, uint64_t clock, float value)
{
    world_handle(w, push_by_hand(w, worker, clock, 0, value));
}

static void pull(world *w, uint32_t worker, uint64_t clock, uint64_t need, uint64_t request)
{
    world_handle(w, pull_by_hand(w, worker, clock, need, 0, request));
}

/* The one answer to this worker that lies on the wire, or -1. */
static float answered(world *w, uint32_t worker)
{
    rbt_message *blocks = world_take(w, 1, node_of_worker(w, worker), RBT_MSG_BLOCKS);
    float value = blocks != NULL ? first_value(blocks) : -1;

    rbt_message_destroy(blocks);
    return value;
}

static size_t acks(const world *w, uint32_t worker)
{
    return world_count(w, 1, node_of_worker(w, worker), RBT_MSG_ACK);
}

/* --------------------------------------------------------------------------------------------- reading */

static void ssp_holds_an_answer_back_until_the_slowest_has_finished_what_it_needs(void **state)
{
    rbt_message *blocks;
    world w;

    (void)state;
    world_init(&w, SSP(2, 2), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    push(&w, 0, 1, 1);
    push(&w, 0, 2, 1);
    pull(&w, 0, 3, 1, 77); /* three clocks done, staleness 2: worker 1 must have finished one */
    assert_true(answered(&w, 0) == -1);
    w.now_ns += 500;
    push(&w, 1, 0, 10);
    blocks = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS);
    assert_true(first_value(blocks) == 13);
    assert_int_equal(blocks->request, 77);
    assert_int_equal(blocks->slowest, 1);
    assert_int_equal(blocks->included, 3);
    assert_int_equal(blocks->held_ns, 500);
    rbt_message_destroy(blocks);
    assert_int_equal(w.servers[0].stats.max_gap, 2);
    world_deinit(&w);
}

static void ssp_answers_at_once_within_the_bound(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 2), &rbt_rule_con, 4);
    push(&w, 0, 0, 1);
    push(&w, 0, 1, 1);
    pull(&w, 0, 2, 0, 1);
    assert_true(answered(&w, 0) == 1); /* con: half of each */
    world_deinit(&w);
}

static void a_pull_waits_for_the_askers_own_push(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 5), &rbt_rule_sum, 4);
    pull(&w, 0, 1, 0, 1); /* it says it has finished one clock: that push is still under way */
    assert_true(answered(&w, 0) == -1);
    push(&w, 0, 0, 3);
    assert_true(answered(&w, 0) == 3);
    world_deinit(&w);
}

static void asp_never_holds_anything_back(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(3, RBT_UNBOUNDED), &rbt_rule_sum, 4);
    for (uint64_t clock = 0; clock < 50; clock++) {
        push(&w, 0, clock, 1);
        pull(&w, 0, clock + 1, 0, clock + 1);
        assert_true(answered(&w, 0) == (float)(clock + 1));
    }
    assert_int_equal(w.servers[0].held.count, 0);
    world_deinit(&w);
}

static void an_answer_under_way_does_not_change(void **state)
{
    rbt_message *blocks;
    world w;

    (void)state;
    world_init(&w, SSP(1, 3), &rbt_rule_sum, 4);
    pull(&w, 0, 0, 0, 1);
    push(&w, 0, 0, 5);
    blocks = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS);
    assert_true(first_value(blocks) == 0);
    rbt_message_destroy(blocks);
    world_deinit(&w);
}

static void a_repeated_pull_is_held_once(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    pull(&w, 0, 0, 1, 9);
    pull(&w, 0, 0, 1, 9);
    assert_int_equal(w.servers[0].held.count, 1);
    world_deinit(&w);
}

static void more_held_pulls_than_the_limit_are_refused(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    for (uint64_t i = 0; i < RBT_HELD_MAX; i++)
        rbt_array_push(&w.servers[0].held, ((rbt_held_pull){.pull = pull_by_hand(&w, 1, 0, 1, 0, i + 1)}));
    pull(&w, 0, 0, 1, 1);
    assert_int_equal(w.servers[0].held.count, RBT_HELD_MAX);
    assert_int_equal(w.servers[0].stats.refused, 1);
    world_deinit(&w);
}

static void a_worker_that_asks_without_end_loses_its_oldest_question_and_nobody_elses(void **state)
{
    uint64_t most = 4 + RBT_HELD_EACH; /* one block */
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    pull(&w, 1, 0, 1, 7);
    for (uint64_t i = 0; i < most + 10; i++)
        pull(&w, 0, 0, 1, i + 1);
    assert_int_equal(w.servers[0].held.count, 1 + most);
    assert_int_equal(w.servers[0].stats.refused, 10);
    assert_int_equal(w.servers[0].held.at[0].pull->worker, 1);
    assert_int_equal(w.servers[0].held.at[1].pull->request, 11);
    world_deinit(&w);
}

/* ------------------------------------------------------------------------------------------------- BSP */

static void bsp_applies_a_clock_in_worker_order_once_all_have_pushed_it(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(3, 0), &rbt_rule_sum, 4);
    pull(&w, 2, 0, 1, 1);
    push(&w, 2, 0, -1e8f);
    push(&w, 2, 1, 50); /* of the next clock */
    push(&w, 1, 0, 1);
    assert_true(answered(&w, 2) == -1);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0); /* nobody sees anything of it, not even an acknowledgement */
    push(&w, 0, 0, 1e8f);
    /* ((0 + 1e8) + 1) - 1e8 = 0 in f32; as they came it would have been 1 */
    assert_true(answered(&w, 2) == 0);
    assert_int_equal(acks(&w, 0) + acks(&w, 1) + acks(&w, 2), 3);
    assert_int_equal(w.servers[0].early_count[2], 1);
    world_deinit(&w);
}

static void bsp_goes_on_without_workers_that_ran_dry(void **state)
{
    rbt_message *retire;
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    push(&w, 0, 1, 2);
    push(&w, 1, 0, 4);
    pull(&w, 0, 2, 2, 1);
    assert_true(answered(&w, 0) == -1);
    retire = rbt_message_create(RBT_MSG_RETIRE, node_of_worker(&w, 1), 1);
    retire->worker = 1;
    world_handle(&w, retire);
    assert_true(answered(&w, 0) == 7);
    push(&w, 0, 2, 8);
    pull(&w, 0, 3, 3, 2);
    assert_true(answered(&w, 0) == 15);
    assert_int_equal(rbt_server_slowest_worker(&w.servers[0]), 0);
    world_deinit(&w);
}

static void bsp_applies_the_early_pushes_of_a_worker_that_left(void **state)
{
    rbt_message *retire;
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    push(&w, 1, 0, 4);
    retire = rbt_message_create(RBT_MSG_RETIRE, node_of_worker(&w, 1), 1);
    retire->worker = 1;
    world_handle(&w, retire);
    assert_int_equal(acks(&w, 1), 0);
    push(&w, 0, 0, 1);
    assert_int_equal(acks(&w, 1), 1);
    pull(&w, 0, 1, 1, 1);
    assert_true(answered(&w, 0) == 5);
    world_deinit(&w);
}

/* -------------------------------------------------------------------------------------------- exactly once */

static void a_repeated_push_is_dropped_and_acknowledged_again(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 3), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    push(&w, 0, 0, 1);
    push(&w, 0, 1, 1);
    push(&w, 0, 0, 1);
    assert_int_equal(acks(&w, 0), 4);
    assert_int_equal(w.servers[0].stats.repeated, 2);
    assert_int_equal(w.servers[0].stats.updates, 2);
    pull(&w, 0, 2, 0, 1);
    assert_true(answered(&w, 0) == 2);
    world_deinit(&w);
}

static void a_repeated_push_that_waits_for_its_turn_is_not_acknowledged_before(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    push(&w, 0, 0, 1);
    assert_int_equal(acks(&w, 0), 0);
    assert_int_equal(w.servers[0].early_count[0], 1);
    push(&w, 1, 0, 1);
    assert_int_equal(acks(&w, 0), 1);
    world_deinit(&w);
}

static void a_push_that_skips_a_clock_is_refused(void **state)
{
    world w;

    (void)state;
    world_init(&w, SSP(1, 3), &rbt_rule_sum, 4);
    push(&w, 0, 1, 1);
    assert_int_equal(w.servers[0].stats.refused, 1);
    assert_int_equal(w.servers[0].clocks.value[0], 0);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    world_deinit(&w);
}

static void a_former_life_is_refused(void **state)
{
    rbt_message *resume, *resumed, *late;
    world w;

    (void)state;
    world_init(&w, SSP(2, 3), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    pull(&w, 0, 5, 5, 1); /* held */
    resume = rbt_message_create(RBT_MSG_RESUME, node_of_worker(&w, 0), 1);
    resume->incarnation = 1;
    resume->request = 42;
    world_handle(&w, resume);
    resumed = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_RESUMED);
    assert_non_null(resumed);
    assert_int_equal(resumed->clock, 1);
    assert_int_equal(resumed->request, 42);
    rbt_message_destroy(resumed);
    assert_int_equal(w.servers[0].held.count, 0); /* nobody waits for that answer any more */
    push(&w, 0, 1, 100);                          /* was under way when it died */
    assert_int_equal(w.servers[0].stats.refused, 1);
    late = push_by_hand(&w, 0, 1, 0, 2);
    late->incarnation = 1;
    world_handle(&w, late);
    assert_int_equal(w.servers[0].clocks.value[0], 2);
    pull(&w, 1, 0, 0, 1);
    assert_true(answered(&w, 1) == 3);
    world_deinit(&w);
}

static void resuming_counts_pushes_that_wait_for_their_turn(void **state)
{
    rbt_message *resume, *resumed;
    world w;

    (void)state;
    world_init(&w, SSP(2, 0), &rbt_rule_sum, 4);
    push(&w, 0, 0, 1);
    resume = rbt_message_create(RBT_MSG_RESUME, node_of_worker(&w, 0), 1);
    resume->incarnation = 1;
    world_handle(&w, resume);
    resumed = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_RESUMED);
    assert_int_equal(resumed->clock, 1);
    rbt_message_destroy(resumed);
    world_deinit(&w);
}

static void an_older_view_is_refused_and_told_the_view(void **state)
{
    rbt_message *view = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, 1), *late;
    world w;

    (void)state;
    world_init(&w, SSP(2, 3), &rbt_rule_sum, 4);
    view->view = 7;
    rbt_array_push(&view->members, ((rbt_member){.incarnation = 2}));
    rbt_array_push(&view->members, (rbt_member){0});
    world_handle(&w, view);
    assert_int_equal(w.servers[0].view, 7);
    push(&w, 1, 0, 1);
    pull(&w, 1, 0, 0, 1);
    assert_int_equal(w.servers[0].clocks.value[1], 0);
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 1), RBT_MSG_BLOCKS), 0);
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 1), RBT_MSG_VIEW), 2);
    view = world_take(&w, 1, node_of_worker(&w, 1), RBT_MSG_VIEW);
    assert_int_equal(view->view, 7);
    assert_int_equal(view->members.count, 2);
    assert_int_equal(view->members.at[0].incarnation, 2);
    rbt_message_destroy(view);
    late = push_by_hand(&w, 1, 0, 0, 1);
    late->view = 7;
    world_handle(&w, late);
    assert_int_equal(w.servers[0].clocks.value[1], 1);
    push(&w, 0, 0, 1); /* of the incarnation before the view's: refused without a word */
    assert_int_equal(w.servers[0].clocks.value[0], 0);
    world_deinit(&w);
}

/* ----------------------------------------------------------------------------------------------- malformed */

static void refuses(world *w, rbt_message *message)
{
    uint64_t before = w->servers[0].stats.refused, updates = w->servers[0].stats.updates;

    world_handle(w, message);
    assert_int_equal(w->servers[0].stats.refused, before + 1);
    assert_int_equal(w->servers[0].stats.updates, updates);
    assert_int_equal(world_count(w, ANY, ANY, 0), 0);
}

static void malformed_messages_are_refused(void **state)
{
    rbt_message *bad;
    world w;

    (void)state;
    world_init(&w, (rbt_topology){.workers = 2, .servers = 2, .staleness = 3}, &rbt_rule_dyn, 4096);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    bad->parts.at[0].table = 3;
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    bad->parts.at[0].block = 1000000;
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    bad->parts.at[0].block = 0; /* lives on the other server */
    while (w.topology.layout[0].server[bad->parts.at[0].block] != 1)
        bad->parts.at[0].block++;
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    assert_true(bad->parts.count >= 2);
    bad->parts.at[1].block = bad->parts.at[0].block; /* twice */
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    rbt_snap_unref(bad->parts.at[0].snap);
    bad->parts.at[0].snap = rbt_snap_create(RBT_F32, 1); /* of another length */
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    rbt_snap_unref(bad->parts.at[--bad->parts.count].snap); /* a block with versions is missing */
    refuses(&w, bad);
    bad = push_by_hand(&w, 0, 0, 0, 1);
    bad->parts.at[0].version = 100; /* further ahead than the bound */
    refuses(&w, bad);
    bad = pull_by_hand(&w, 0, 0, 0, 0, 1);
    bad->parts.at[0].block = 1000000;
    refuses(&w, bad);
    bad = pull_by_hand(&w, 0, 0, 0, 0, 1);
    while (bad->parts.count <= w.servers[0].cells.count) /* more blocks than there are */
        rbt_array_push(&bad->parts, bad->parts.at[0]);
    refuses(&w, bad);
    bad = pull_by_hand(&w, 0, 0, 0, 0, 1);
    bad->worker = 99;
    refuses(&w, bad);
    refuses(&w, rbt_message_create(RBT_MSG_STABLE, RBT_MASTER, 1));
    bad = push_by_hand(&w, 0, 0, 0, 1);
    bad->worker = 99;
    world_handle(&w, bad);
    assert_int_equal(w.servers[0].stats.updates, 0);
    world_deinit(&w);
}

/* ------------------------------------------------------------------------------------ eager pushes, leaving */

static void eager_pushes_go_to_registered_readers_when_the_slowest_advances(void **state)
{
    rbt_topology topology = SSP(3, 2);
    rbt_message *blocks;
    world w;

    (void)state;
    topology.eager = true;
    world_init(&w, topology, &rbt_rule_sum, 4);
    pull(&w, 0, 0, 0, 1); /* worker 0 reads here, worker 1 does not, worker 2 waits */
    assert_true(answered(&w, 0) == 0);
    pull(&w, 2, 0, 0, 1);
    assert_true(answered(&w, 2) == 0);
    pull(&w, 2, 0, 1, 2);
    push(&w, 0, 0, 1);
    push(&w, 1, 0, 1);
    assert_int_equal(world_count(&w, 1, ANY, RBT_MSG_BLOCKS), 0); /* the slowest has not moved */
    push(&w, 2, 0, 1);
    blocks = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS);
    assert_true(first_value(blocks) == 3);
    assert_int_equal(blocks->request, 0);
    assert_int_equal(blocks->slowest, 1);
    assert_int_equal(blocks->included, 1);
    rbt_message_destroy(blocks);
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 1), RBT_MSG_BLOCKS), 0);
    blocks = world_take(&w, 1, node_of_worker(&w, 2), RBT_MSG_BLOCKS); /* the answer, and nothing besides */
    assert_int_equal(blocks->request, 2);
    rbt_message_destroy(blocks);
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 2), RBT_MSG_BLOCKS), 0);
    world_deinit(&w);
}

static void nobody_waits_for_a_worker_that_retired(void **state)
{
    rbt_message *retire;
    world w;

    (void)state;
    world_init(&w, SSP(3, 1), &rbt_rule_dyn, 4);
    push(&w, 0, 0, 1);
    push(&w, 1, 0, 1);
    push(&w, 0, 1, 1);
    pull(&w, 0, 2, 1, 1);
    assert_true(answered(&w, 0) == -1);
    assert_int_equal(rbt_server_slowest_worker(&w.servers[0]), 2);
    retire = rbt_message_create(RBT_MSG_RETIRE, node_of_worker(&w, 2), 1);
    retire->worker = 2;
    world_handle(&w, retire);
    assert_true(answered(&w, 0) == 2);
    assert_int_equal(w.servers[0].clocks.least, 1);
    pull(&w, 2, 0, 0, 1); /* repeated on the way: nobody is there to read the answer */
    assert_true(answered(&w, 2) == -1);
    world_deinit(&w);
}

static void versions_are_reported_only_for_partition_sync(void **state)
{
    for (int sync = 0; sync < 2; sync++) {
        rbt_topology topology = SSP(2, 3);
        rbt_message *report;
        world w;

        topology.partition_sync = sync;
        world_init(&w, topology, &rbt_rule_dyn, 4);
        push(&w, 0, 0, 1);
        report = world_take(&w, 1, RBT_MASTER, RBT_MSG_REPORT);
        assert_int_equal(report != NULL, sync);
        if (sync) {
            assert_int_equal(report->version, 1);
            assert_int_equal(report->slowest, 0);
        }
        rbt_message_destroy(report);
        world_deinit(&w);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssp_holds_an_answer_back_until_the_slowest_has_finished_what_it_needs),
        cmocka_unit_test(ssp_answers_at_once_within_the_bound),
        cmocka_unit_test(a_pull_waits_for_the_askers_own_push),
        cmocka_unit_test(asp_never_holds_anything_back),
        cmocka_unit_test(an_answer_under_way_does_not_change),
        cmocka_unit_test(a_repeated_pull_is_held_once),
        cmocka_unit_test(more_held_pulls_than_the_limit_are_refused),
        cmocka_unit_test(a_worker_that_asks_without_end_loses_its_oldest_question_and_nobody_elses),
        cmocka_unit_test(bsp_applies_a_clock_in_worker_order_once_all_have_pushed_it),
        cmocka_unit_test(bsp_goes_on_without_workers_that_ran_dry),
        cmocka_unit_test(bsp_applies_the_early_pushes_of_a_worker_that_left),
        cmocka_unit_test(a_repeated_push_is_dropped_and_acknowledged_again),
        cmocka_unit_test(a_repeated_push_that_waits_for_its_turn_is_not_acknowledged_before),
        cmocka_unit_test(a_push_that_skips_a_clock_is_refused),
        cmocka_unit_test(a_former_life_is_refused),
        cmocka_unit_test(resuming_counts_pushes_that_wait_for_their_turn),
        cmocka_unit_test(an_older_view_is_refused_and_told_the_view),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(eager_pushes_go_to_registered_readers_when_the_slowest_advances),
        cmocka_unit_test(nobody_waits_for_a_worker_that_retired),
        cmocka_unit_test(versions_are_reported_only_for_partition_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
