/* Proves src/node/master.c by hand-made messages: views, the stable version, when to stop. */
#include "unit/world.h"

#include <math.h>

static void begin(world *w, uint32_t workers, uint32_t servers, bool lost_is_gone)
{
    world_init(w,
               (rbt_topology){.workers = workers,
                              .servers = servers,
                              .observers = 1,
                              .staleness = 2,
                              .partition_sync = true,
                              .lost_is_gone = lost_is_gone},
               &rbt_rule_dyn, 64);
}

static rbt_message *from_worker(const world *w, rbt_message_type type, uint32_t worker, uint32_t incarnation)
{
    rbt_message *message = rbt_message_create(type, node_of_worker(w, worker), RBT_MASTER);

    message->worker = worker;
    message->incarnation = incarnation;
    message->view = 1;
    return message;
}

static void ask(world *w, uint32_t worker, uint64_t clock, uint64_t need, uint64_t request)
{
    rbt_message *message = from_worker(w, RBT_MSG_ASK, worker, 0);

    message->clock = clock;
    message->need = need;
    message->request = request;
    world_handle(w, message);
}

static void report(world *w, uint32_t server, uint64_t slowest, uint64_t version)
{
    rbt_message *message = rbt_message_create(RBT_MSG_REPORT, rbt_node_of_server(server), RBT_MASTER);

    message->slowest = slowest;
    message->version = version;
    world_handle(w, message);
}

/* ----------------------------------------------------------------------------------------------- views */

static void a_worker_that_comes_back_makes_a_new_view_for_everybody(void **state)
{
    rbt_message *view;
    world w;

    (void)state;
    begin(&w, 3, 2, false);
    world_handle(&w, from_worker(&w, RBT_MSG_LOST, 1, 0));
    assert_int_equal(w.master.members[1].state, RBT_MEMBER_AWAY);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0); /* the others wait for it */
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 1, 1));
    assert_int_equal(world_count(&w, RBT_MASTER, ANY, RBT_MSG_VIEW), 2 + 3 + 1);
    view = world_take(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_VIEW);
    assert_int_equal(view->view, 2);
    assert_int_equal(view->members.count, 3);
    assert_int_equal(view->members.at[1].incarnation, 1);
    assert_int_equal(view->members.at[1].state, RBT_MEMBER_LIVE);
    rbt_message_destroy(view);
    world_deinit(&w);
}

static void a_repeated_hello_is_answered_but_changes_nothing(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, 2, false);
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 1, 2));
    world_lose(&w, ANY, ANY);
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 1, 2));
    assert_int_equal(w.master.view, 2);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 1);
    assert_int_equal(world_count(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_VIEW), 1);
    world_lose(&w, ANY, ANY);
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 1, 1)); /* of a former life */
    assert_int_equal(w.master.view, 2);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    world_deinit(&w);
}

static void a_worker_lost_for_good_is_retired_in_the_next_view(void **state)
{
    rbt_message *view;
    world w;

    (void)state;
    begin(&w, 2, 1, true);
    world_handle(&w, from_worker(&w, RBT_MSG_LOST, 0, 0));
    view = world_take(&w, RBT_MASTER, 1, RBT_MSG_VIEW);
    assert_non_null(view);
    assert_int_equal(view->members.at[0].state, RBT_MEMBER_RETIRED);
    assert_int_equal(view->members.at[1].state, RBT_MEMBER_LIVE);
    world_handle(&w, view);
    assert_true(w.servers[0].clocks.gone[0]);
    assert_false(w.servers[0].clocks.gone[1]);
    world_lose(&w, ANY, ANY);
    world_handle(&w, from_worker(&w, RBT_MSG_LOST, 0, 0)); /* told twice */
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    world_deinit(&w);
}

static void who_dies_after_leaving_has_left_for_everybody(void **state)
{
    rbt_message *view;
    world w;

    (void)state;
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        begin(&w, 2, 1, is_gone);
        world_handle(&w, from_worker(&w, RBT_MSG_RETIRE, 0, 0)); /* its word to the server was lost with it */
        world_handle(&w, from_worker(&w, RBT_MSG_LOST, 0, 0));
        view = world_take(&w, RBT_MASTER, 1, RBT_MSG_VIEW);
        assert_non_null(view);
        world_handle(&w, view);
        assert_true(w.servers[0].clocks.gone[0]);
        world_lose(&w, ANY, ANY);
        world_handle(&w, from_worker(&w, RBT_MSG_LOST, 0, 0)); /* told twice */
        assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
        world_deinit(&w);
    }
}

static void the_death_of_a_former_life_is_no_news(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 0, 1));
    world_handle(&w, from_worker(&w, RBT_MSG_LOST, 0, 0));
    assert_int_equal(w.master.members[0].state, RBT_MEMBER_LIVE);
    world_deinit(&w);
}

/* -------------------------------------------------------------------------------------- the stable version */

static void the_stable_version_is_the_lowest_of_all_servers(void **state)
{
    rbt_message *stable;
    world w;

    (void)state;
    begin(&w, 2, 3, false);
    report(&w, 0, 1, 5);
    report(&w, 1, 1, 3);
    report(&w, 2, 1, 4);
    ask(&w, 0, 2, 0, 11);
    stable = world_take(&w, RBT_MASTER, node_of_worker(&w, 0), RBT_MSG_STABLE);
    assert_int_equal(stable->version, 3);
    assert_int_equal(stable->request, 11);
    rbt_message_destroy(stable);
    ask(&w, 1, 4, 0, 12); /* its own finished clocks are more */
    stable = world_take(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_STABLE);
    assert_int_equal(stable->version, 4);
    rbt_message_destroy(stable);
    world_deinit(&w);
}

static void a_question_is_held_back_until_every_server_has_what_it_needs(void **state)
{
    rbt_message *stable;
    world w;

    (void)state;
    begin(&w, 2, 2, false);
    ask(&w, 0, 3, 1, 5);
    report(&w, 0, 1, 3);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    w.now_ns += 70;
    report(&w, 1, 1, 4);
    stable = world_take(&w, RBT_MASTER, node_of_worker(&w, 0), RBT_MSG_STABLE);
    assert_non_null(stable);
    assert_int_equal(stable->held_ns, 70);
    assert_int_equal(stable->version, 3);
    rbt_message_destroy(stable);
    assert_int_equal(w.master.asking.count, 0);
    world_deinit(&w);
}

static void of_two_questions_of_a_worker_the_newer_is_kept(void **state)
{
    rbt_message *stable;
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    ask(&w, 0, 3, 1, 5);
    ask(&w, 0, 3, 1, 8);
    ask(&w, 0, 3, 1, 5); /* the first one, repeated on the way */
    assert_int_equal(w.master.asking.count, 1);
    report(&w, 0, 1, 3);
    assert_int_equal(world_count(&w, RBT_MASTER, ANY, RBT_MSG_STABLE), 1);
    stable = world_take(&w, RBT_MASTER, ANY, RBT_MSG_STABLE);
    assert_int_equal(stable->request, 8);
    rbt_message_destroy(stable);
    world_deinit(&w);
}

static void reports_out_of_order_take_nothing_back(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    report(&w, 0, 4, 6);
    report(&w, 0, 2, 3);
    assert_int_equal(w.master.slowest[0], 4);
    assert_int_equal(w.master.version[0], 6);
    world_handle(&w, from_worker(&w, RBT_MSG_REPORT, 0, 0)); /* a worker has nothing to report */
    assert_int_equal(w.master.slowest[0], 4);
    world_deinit(&w);
}

/* -------------------------------------------------------------------------------------------------- stopping */

static void metric(world *w, uint64_t clock, double number)
{
    rbt_message *message = from_worker(w, RBT_MSG_METRIC, 2, 0);

    message->clock = clock;
    message->number = number;
    world_handle(w, message);
}

static void the_job_stops_once_when_the_target_is_reached(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    metric(&w, 1, 0.0);
    assert_false(w.master.stopping); /* there is no target */
    w.master.has_target = true;
    w.master.target = 0.5;
    metric(&w, 2, 0.6);
    metric(&w, 3, NAN);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    metric(&w, 4, 0.5);
    metric(&w, 5, 0.4);
    assert_int_equal(w.master.reached_clock, 4);
    assert_int_equal(world_count(&w, RBT_MASTER, node_of_worker(&w, 0), RBT_MSG_STOP), 1);
    assert_int_equal(world_count(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_STOP), 1);
    world_deinit(&w);
}

static void a_worker_that_comes_back_late_is_told_to_stop(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    world_handle(&w, rbt_message_create(RBT_MSG_STOP, RBT_MASTER, RBT_MASTER));
    assert_int_equal(world_count(&w, RBT_MASTER, ANY, RBT_MSG_STOP), 2);
    world_lose(&w, ANY, ANY);
    world_handle(&w, from_worker(&w, RBT_MSG_HELLO, 0, 1));
    assert_int_equal(world_count(&w, RBT_MASTER, node_of_worker(&w, 0), RBT_MSG_STOP), 1);
    assert_int_equal(world_count(&w, RBT_MASTER, node_of_worker(&w, 1), RBT_MSG_STOP), 0);
    world_deinit(&w);
}

static void messages_of_nobody_are_ignored(void **state)
{
    static const rbt_message_type types[] = {RBT_MSG_HELLO, RBT_MSG_LOST, RBT_MSG_RETIRE, RBT_MSG_PUSH, RBT_MSG_ACK};
    world w;

    (void)state;
    begin(&w, 2, 1, false);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        world_handle(&w, from_worker(&w, types[i], 99, 5));
    assert_int_equal(w.master.view, 1);
    assert_int_equal(world_count(&w, ANY, ANY, 0), 0);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_comes_back_makes_a_new_view_for_everybody),
        cmocka_unit_test(a_repeated_hello_is_answered_but_changes_nothing),
        cmocka_unit_test(a_worker_lost_for_good_is_retired_in_the_next_view),
        cmocka_unit_test(who_dies_after_leaving_has_left_for_everybody),
        cmocka_unit_test(the_death_of_a_former_life_is_no_news),
        cmocka_unit_test(the_stable_version_is_the_lowest_of_all_servers),
        cmocka_unit_test(a_question_is_held_back_until_every_server_has_what_it_needs),
        cmocka_unit_test(of_two_questions_of_a_worker_the_newer_is_kept),
        cmocka_unit_test(reports_out_of_order_take_nothing_back),
        cmocka_unit_test(the_job_stops_once_when_the_target_is_reached),
        cmocka_unit_test(a_worker_that_comes_back_late_is_told_to_stop),
        cmocka_unit_test(messages_of_nobody_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
