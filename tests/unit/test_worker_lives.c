/* Proves src/node/worker.c where lives begin and end, in a cluster driven by hand: a worker that comes back after a crash goes on
 * where its servers are and reads each of its increments once, nothing meant for its former life counts; it leaves, and
 * stops. */
#include "unit/world.h"

static void begin(world *w, uint32_t workers, uint32_t servers, uint64_t staleness, const rbt_rule *rule)
{
    world_init(w, (rbt_topology){.workers = workers, .servers = servers, .observers = 1, .staleness = staleness}, rule,
               64);
}

static void acknowledgements_of_a_former_life_count_for_nothing(void **state)
{
    rbt_message *ack;
    world w;

    (void)state;
    begin(&w, 1, 1, 3, &rbt_rule_sum);
    world_clock(&w, 0);
    world_deliver(&w, ANY, 1);
    ack = world_take(&w, 1, ANY, RBT_MSG_ACK);
    ack->incarnation = 1;
    world_handle(&w, ack);
    assert_false(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

/* ------------------------------------------------------------------------------------------- coming back */

static void a_restarted_worker_goes_on_at_the_lowest_clock_its_servers_have(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 2, 5, &rbt_rule_dyn);
    world_work(&w, 0, 5, 1);
    world_work(&w, 0, 5, 1);
    world_deliver(&w, node_of_worker(&w, 0), 1);
    rbt_message_destroy(world_take(&w, node_of_worker(&w, 0), 2, RBT_MSG_PUSH)); /* server 1 misses both */
    world_lose(&w, node_of_worker(&w, 0), 2);
    world_restart(&w, 0);
    assert_false(w.clients[0].ready);
    assert_int_equal(world_count(&w, node_of_worker(&w, 0), RBT_MASTER, RBT_MSG_HELLO), 1);
    world_deliver(&w, node_of_worker(&w, 0), RBT_MASTER);
    world_deliver(&w, RBT_MASTER, ANY);
    assert_int_equal(world_count(&w, node_of_worker(&w, 0), ANY, RBT_MSG_RESUME), 2);
    world_deliver(&w, ANY, 2);
    world_deliver(&w, 2, ANY);
    assert_false(w.clients[0].ready); /* not before all have told */
    world_deliver(&w, ANY, ANY);
    assert_true(w.clients[0].ready);
    assert_int_equal(w.servers[0].clocks.value[0], 2);
    assert_int_equal(w.servers[1].clocks.value[0], 0);
    assert_int_equal(w.clients[0].clock, 0);
    world_work(&w, 0, 5, 1); /* server 0 has these clocks already and drops them */
    world_work(&w, 0, 5, 1);
    world_work(&w, 0, 5, 1);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].stats.repeated, 2);
    assert_int_equal(w.servers[0].clocks.value[0], 3);
    assert_int_equal(w.servers[1].clocks.value[0], 3);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

/* Some servers have the clock that it computes again, others do not: each of its increments is there once, at every stage. */
static void a_clock_that_is_computed_again_is_read_once(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 2, 5, &rbt_rule_sum);
    world_work(&w, 0, 5, 1);
    world_deliver(&w, node_of_worker(&w, 0), node_of_block(&w, 0));
    world_lose(&w, node_of_worker(&w, 0), node_of_block(&w, 1));
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.clients[0].clock, 0);
    assert_false(world_want(&w, 0, 5));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 5));
    assert_true(world_read(&w, 0, 0, 5) == 1 && world_read(&w, 0, 1, 5) == 0);
    world_increment(&w, 0, 1);
    assert_true(world_read(&w, 0, 0, 5) == 1 && world_read(&w, 0, 1, 5) == 1);
    world_clock(&w, 0);
    assert_true(world_read(&w, 0, 0, 5) == 1 && world_read(&w, 0, 1, 5) == 1);
    world_increment(&w, 0, 1); /* the next one is nobody's yet */
    assert_true(world_read(&w, 0, 0, 5) == 2 && world_read(&w, 0, 1, 5) == 2);
    world_deinit(&w);
}

static void an_eager_push_with_fewer_own_clocks_does_not_replace_the_copy(void **state)
{
    rbt_message *late;
    world w;

    (void)state;
    begin(&w, 2, 2, 5, &rbt_rule_sum);
    world_work(&w, 0, 5, 1);
    world_deliver(&w, node_of_worker(&w, 0), node_of_block(&w, 0));
    world_lose(&w, node_of_worker(&w, 0), node_of_block(&w, 1));
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    world_want(&w, 0, 5);
    world_deliver(&w, ANY, ANY);
    late = rbt_message_create(RBT_MSG_BLOCKS, node_of_block(&w, 0), node_of_worker(&w, 0)); /* from before that clock */
    rbt_array_push(&late->parts, ((rbt_part){.snap = rbt_snap_create(RBT_F32, 32)}));
    world_handle(&w, late);
    assert_int_equal(w.clients[0].cache[0].copies[0].included, 1);
    assert_true(world_read(&w, 0, 0, 5) == 1);
    world_deinit(&w);
}

static void answers_meant_for_a_former_life_are_ignored(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 1, 0, &rbt_rule_sum);
    world_want(&w, 0, 0);
    world_deliver(&w, ANY, 1);
    world_restart(&w, 0);
    world_deliver(&w, 1, ANY); /* the answer to its predecessor */
    assert_null(w.clients[0].cache[0].copies[0].base);
    world_deliver(&w, ANY, ANY);
    assert_true(w.clients[0].ready);
    assert_false(world_want(&w, 0, 0));
    world_deinit(&w);
}

/* --------------------------------------------------------------------------------------- stopping, leaving */

static void retiring_tells_the_master_and_every_server(void **state)
{
    rbt_env env = {0};
    rbt_message *message;
    world w;

    (void)state;
    begin(&w, 2, 2, 1, &rbt_rule_sum);
    rbt_client_retire(&w.clients[1], &env);
    while ((message = rbt_outbox_take(&env.out)) != NULL)
        world_put(&w, message);
    assert_int_equal(world_count(&w, node_of_worker(&w, 1), ANY, RBT_MSG_RETIRE), 3);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.master.members[1].state, RBT_MEMBER_RETIRED);
    for (int clock = 0; clock < 10; clock++)
        world_work(&w, 0, 1, 1); /* nobody to wait for */
    world_deinit(&w);
}

static void a_stop_is_heard(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 1, 1, &rbt_rule_sum);
    assert_false(w.clients[0].stopping);
    world_handle(&w, rbt_message_create(RBT_MSG_STOP, RBT_MASTER, node_of_worker(&w, 0)));
    assert_true(w.clients[0].stopping);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledgements_of_a_former_life_count_for_nothing),
        cmocka_unit_test(a_restarted_worker_goes_on_at_the_lowest_clock_its_servers_have),
        cmocka_unit_test(a_clock_that_is_computed_again_is_read_once),
        cmocka_unit_test(an_eager_push_with_fewer_own_clocks_does_not_replace_the_copy),
        cmocka_unit_test(answers_meant_for_a_former_life_are_ignored),
        cmocka_unit_test(retiring_tells_the_master_and_every_server),
        cmocka_unit_test(a_stop_is_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
