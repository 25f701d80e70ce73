/* Proves src/node/worker.c in a cluster driven by hand: when a worker asks, when its cache will do, that it always
 * reads its own writes, that pushes are kept until acknowledged and sent again under a new view, and what bounds it. How it
 * comes back and leaves: test_worker_lives.c. */
#include "unit/world.h"

static void begin(world *w, uint32_t workers, uint32_t servers, uint64_t staleness, const rbt_rule *rule)
{
    world_init(w, (rbt_topology){.workers = workers, .servers = servers, .observers = 1, .staleness = staleness}, rule,
               64);
}

static size_t pulls(const world *w)
{
    return world_count(w, ANY, ANY, RBT_MSG_PULL);
}

/* --------------------------------------------------------------------------------------------- reading */

static void a_first_read_asks_every_server_once(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 3, 2, &rbt_rule_sum);
    assert_false(world_want(&w, 0, 2));
    assert_int_equal(pulls(&w), 3);
    assert_false(world_want(&w, 0, 2)); /* under way */
    assert_int_equal(pulls(&w), 3);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 2));
    assert_true(world_read(&w, 0, 0, 2) == 0);
    world_deinit(&w);
}

/* Pulls, their answers, pushes that name every block, and what servers push of themselves. */
static void what_names_more_blocks_than_a_message_takes_is_several(void **state)
{
    const rbt_topology like = {
        .workers = 1, .servers = 2, .observers = 1, .staleness = 1, .eager = true, .message_blocks = 3};
    rbt_message *message;
    size_t pushed = 0, spread = 0;
    world w;

    (void)state;
    world_init(&w, like, &rbt_rule_dyn, 2 * 4 * 1024);
    assert_int_equal(w.servers[0].cells.count, 4);
    for (uint64_t clock = 0; clock < 2; clock++) {
        if (!world_want(&w, 0, 1))
            assert_int_equal(pulls(&w), 4);
        while ((message = world_take(&w, ANY, ANY, 0)) != NULL) {
            assert_true(message->parts.count <= 3);
            pushed += message->type == RBT_MSG_PUSH;
            spread += message->type == RBT_MSG_BLOCKS && message->request == 0;
            world_handle(&w, message);
        }
        assert_true(world_want(&w, 0, 1));
        world_clock(&w, 0);
    }
    assert_int_equal(pushed, 4);
    assert_int_equal(spread, 4);
    world_deinit(&w);
}

static void a_copy_within_the_bound_is_read_without_asking(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 2, 3, &rbt_rule_sum);
    world_work(&w, 0, 3, 1);
    for (uint64_t clock = 1; clock <= 3; clock++) {
        assert_true(world_want(&w, 0, 3)); /* the copy knows of clock 0: good up to clock 3 */
        assert_true(world_read(&w, 0, 0, 3) == (float)clock);
        world_increment(&w, 0, 1);
        world_clock(&w, 0);
    }
    assert_int_equal(pulls(&w), 0);
    assert_false(world_want(&w, 0, 3));
    assert_int_equal(pulls(&w), 2);
    world_deinit(&w);
}

static void the_ssp_bound_holds_a_fast_worker(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 2, 1, &rbt_rule_sum);
    world_work(&w, 0, 1, 1);
    world_work(&w, 0, 1, 1);
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 1)); /* clock 2 needs clock 0 of everybody */
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 1));
    assert_int_equal(w.servers[0].held.count + w.servers[1].held.count, 2);
    w.now_ns += 40;
    world_work(&w, 1, 1, 10);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1));
    assert_true(world_read(&w, 0, 0, 1) == 12);
    assert_true(world_read(&w, 0, 1, 1) == 12);
    assert_int_equal(w.clients[0].held_ns, 40);
    world_deinit(&w);
}

static void asp_never_waits_for_anybody(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, 2, RBT_UNBOUNDED, &rbt_rule_sum);
    for (int clock = 0; clock < 20; clock++) {
        assert_false(world_want(&w, 0, RBT_UNBOUNDED)); /* asks in every clock, of nobody in particular */
        world_deliver(&w, ANY, ANY);
        assert_true(world_want(&w, 0, RBT_UNBOUNDED));
        assert_true(world_read(&w, 0, 0, RBT_UNBOUNDED) == (float)clock);
        world_increment(&w, 0, 1);
        world_clock(&w, 0);
    }
    assert_int_equal(w.servers[0].held.count + w.servers[1].held.count, 0);
    world_deinit(&w);
}

static void a_worker_reads_its_own_writes_at_every_stage(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, 5, &rbt_rule_sum);
    world_want(&w, 0, 5);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 5));
    world_increment(&w, 0, 1);
    assert_true(world_read(&w, 0, 0, 5) == 1); /* in the buffer */
    world_clock(&w, 0);
    assert_true(world_want(&w, 0, 5));
    assert_true(world_read(&w, 0, 0, 5) == 1); /* under way */
    world_increment(&w, 0, 1);
    assert_true(world_read(&w, 0, 0, 5) == 2);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 0, 0, 5) == 2); /* applied */
    assert_false(world_want(&w, 0, 0));        /* a stricter read must ask */
    world_deinit(&w);
}

static void rules_that_take_gradients_show_own_updates_only_through_the_server(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 1, 3, &rbt_rule_adagrad);
    world_work(&w, 0, 3, 2);
    assert_false(world_want(&w, 0, 3)); /* although the copy is young enough */
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 3));
    assert_true(world_read(&w, 0, 0, 3) == -0.25f * 2 / (2 + 1e-8f));
    world_deinit(&w);
}

/* Reads go on one version per clock, so that what is computed from it can name it. */
static void an_eager_push_does_not_replace_a_copy_that_this_clock_has_read(void **state)
{
    rbt_message *push;
    world w;

    (void)state;
    world_init(&w, (rbt_topology){.workers = 2, .servers = 1, .staleness = 3, .eager = true}, &rbt_rule_adarev, 8);
    world_work(&w, 0, 3, 1);
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 3));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 3)); /* version 1: its own update is in it */
    world_read(&w, 0, 0, 3);
    world_work(&w, 1, 3, 10); /* the slowest advances, and the server pushes version 2 */
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].cells.at[0].cell.updates, 2);
    assert_int_equal(w.clients[0].cache[0].copies[0].version, 1);
    world_increment(&w, 0, 1);
    assert_true(world_read(&w, 0, 0, 3) == w.clients[0].cache[0].copies[0].base->f32[0]); /* the cache is read-only */
    world_clock(&w, 0);
    push = world_take(&w, node_of_worker(&w, 0), 1, RBT_MSG_PUSH);
    assert_int_equal(push->parts.count, 1);
    assert_int_equal(push->parts.at[0].version, 1);
    world_handle(&w, push);
    world_deinit(&w);
}

/* The program reads, computes, and then asks for something fresher within the same clock. */
static void gradients_of_different_versions_are_kept_apart(void **state)
{
    const rbt_part *parts;
    rbt_message *push;
    world w;

    (void)state;
    begin(&w, 2, 1, 1, &rbt_rule_adarev);
    world_increment(&w, 0, 0.5f); /* computed from nothing */
    assert_false(world_want(&w, 0, 1));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1)); /* version 0 */
    world_read(&w, 0, 0, 1);
    world_increment(&w, 0, 1);
    world_clock(&w, 0);
    push = world_take(&w, node_of_worker(&w, 0), 1, RBT_MSG_PUSH);
    parts = push->parts.at;
    assert_int_equal(push->parts.count % 2, 0); /* two for every block */
    assert_true(parts[0].block == parts[1].block && parts[0].version == RBT_VERSION_NONE && parts[1].version == 0);
    assert_true(parts[0].snap->f32[0] == 0.5f && parts[1].snap->f32[0] == 1);
    world_handle(&w, push);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].stats.refused, 0);
    assert_false(world_want(&w, 0, 1));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1)); /* version 2 */
    world_read(&w, 0, 0, 1);
    world_increment(&w, 0, 2);
    world_work(&w, 1, 1, 4);
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 0)); /* stricter: worker 1 must be in it */
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    world_read(&w, 0, 0, 0);
    world_increment(&w, 0, 3);
    world_clock(&w, 0);
    push = world_take(&w, node_of_worker(&w, 0), 1, RBT_MSG_PUSH);
    parts = push->parts.at;
    assert_true(parts[0].block == parts[1].block && parts[0].version == 2 && parts[1].version == 3);
    assert_true(parts[0].snap->f32[0] == 2 && parts[1].snap->f32[0] == 3);
    world_handle(&w, push);
    assert_int_equal(w.servers[0].stats.refused, 0);
    assert_true(w.servers[0].cells.at[0].cell.memory[0] == 0.5f + 1 + 4 + 2 + 3);
    world_deinit(&w);
}

/* A reader that changes nothing still lets the server forget what it no longer has. */
static void a_version_read_is_named_even_if_nothing_changed(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 1, 3, &rbt_rule_adarev);
    for (int clock = 0; clock < 6; clock++) {
        world_work(&w, 0, 3, 1);
        world_deliver(&w, ANY, ANY);
        while (!world_want(&w, 1, 3))
            world_deliver(&w, ANY, ANY);
        world_clock(&w, 1);
        world_deliver(&w, ANY, ANY);
        assert_true(rbt_cell_version_count(&w.servers[0].cells.at[0].cell) <= 2);
    }
    assert_true(w.servers[0].stats.peak_versions <= 3 && w.servers[0].stats.peak_versions > 1);
    assert_true(w.servers[0].stats.peak_version_bytes > 0);
    world_deinit(&w);
}

static void a_prefetch_serves_the_next_clock(void **state)
{
    rbt_env env = {0};
    world w;

    (void)state;
    begin(&w, 1, 1, 0, &rbt_rule_sum);
    world_want(&w, 0, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    assert_false(rbt_client_want(&w.clients[0], w.spans, 1, 1, 0, &env));
    world_put(&w, rbt_outbox_take(&env.out));
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].held.count, 1); /* it waits for our own push */
    world_increment(&w, 0, 4);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    assert_int_equal(pulls(&w), 0);
    assert_true(world_read(&w, 0, 0, 0) == 4);
    world_deinit(&w);
}

static void the_observer_names_what_the_slowest_must_have_finished(void **state)
{
    rbt_env env = {0};
    rbt_message *message;
    world w;

    (void)state;
    begin(&w, 1, 1, 3, &rbt_rule_sum);
    assert_false(rbt_client_observe(&w.clients[1], w.spans, 1, 1, &env));
    while ((message = rbt_outbox_take(&env.out)) != NULL)
        world_put(&w, message);
    world_deliver(&w, ANY, ANY);
    assert_false(rbt_client_observe(&w.clients[1], w.spans, 1, 1, &env));
    world_work(&w, 0, 3, 6);
    world_deliver(&w, ANY, ANY);
    assert_true(rbt_client_observe(&w.clients[1], w.spans, 1, 1, &env));
    assert_true(world_read(&w, 1, 0, RBT_UNBOUNDED) == 6);
    world_deinit(&w);
}

static void the_observer_knows_whose_clocks_it_reads(void **state)
{
    rbt_env env = {0};
    rbt_message *message;
    world w;

    (void)state;
    begin(&w, 2, 1, 3, &rbt_rule_sum);
    for (uint64_t clock = 0; clock < 3; clock++) {
        world_work(&w, 0, 3, 1);
        world_deliver(&w, ANY, ANY);
    }
    world_work(&w, 1, 3, 1);
    world_deliver(&w, ANY, ANY);
    assert_false(rbt_client_observe(&w.clients[2], w.spans, 1, 2, &env));
    while ((message = rbt_outbox_take(&env.out)) != NULL)
        world_put(&w, message);
    world_deliver(&w, ANY, ANY);
    world_work(&w, 0, 3, 1); /* too late for the answer */
    world_deliver(&w, ANY, ANY);
    assert_true(rbt_client_observe(&w.clients[2], w.spans, 1, 2, &env));
    assert_true(world_read(&w, 2, 0, RBT_UNBOUNDED) == 4);
    assert_int_equal(w.clients[2].seen[0], 3);
    assert_int_equal(w.clients[2].seen[1], 1);
    world_deinit(&w);
}

static void reads_are_counted_by_their_staleness(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 1, 3, &rbt_rule_sum);
    for (int clock = 0; clock < 5; clock++) {
        if (!world_want(&w, 0, 3))
            world_deliver(&w, ANY, ANY);
        assert_true(world_want(&w, 0, 3));
        rbt_client_note_read(&w.clients[0], w.spans, 1);
        world_clock(&w, 0);
    }
    for (int gap = 0; gap < 5; gap++)
        assert_int_equal(w.clients[0].staleness_seen[gap], gap == 0 ? 2 : gap < 4 ? 1 : 0);
    assert_int_equal(w.clients[0].staleness_sum, 1 + 2 + 3);
    world_deinit(&w);
}

/* ----------------------------------------------------------------------------------------- eager pushes */

/* Two workers; worker 0 has read at clock 0 and its servers push eagerly. */
static void begin_eager(world *w)
{
    world_init(w, (rbt_topology){.workers = 2, .servers = 1, .staleness = 1, .eager = true}, &rbt_rule_sum, 8);
    world_work(w, 0, 1, 1);
    world_deliver(w, ANY, ANY);
}

static void an_eager_push_spares_the_reader_a_question(void **state)
{
    world w;

    (void)state;
    begin_eager(&w);
    assert_true(world_want(&w, 0, 1));
    world_increment(&w, 0, 1);
    world_clock(&w, 0); /* worker 0 has finished 2 clocks */
    world_deliver(&w, ANY, ANY);
    world_work(&w, 1, 1, 10); /* the slowest has finished 1 */
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1));
    assert_int_equal(pulls(&w), 0);
    assert_true(world_read(&w, 0, 0, 1) == 12);
    world_deinit(&w);
}

static void an_eager_push_that_lacks_an_own_update_is_passed_over(void **state)
{
    world w;

    (void)state;
    begin_eager(&w);
    assert_true(world_want(&w, 0, 1));
    world_increment(&w, 0, 1);
    world_clock(&w, 0); /* this push stays under way ... */
    world_handle(&w, pull_by_hand(&w, 1, 0, 0, 0, 1));
    world_handle(&w, push_by_hand(&w, 1, 0, 0, 10)); /* ... while the slowest advances and the server pushes */
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS), 1);
    world_deliver(&w, 1, node_of_worker(&w, 0));
    assert_int_equal(w.clients[0].cache[0].copies[0].slowest, 0);
    assert_false(world_want(&w, 0, 1));
    assert_int_equal(pulls(&w), 1);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1));
    assert_true(world_read(&w, 0, 0, 1) == 12);
    world_deinit(&w);
}

static void an_older_eager_push_does_not_replace_a_newer_copy(void **state)
{
    rbt_message *late;
    world w;

    (void)state;
    world_init(&w, (rbt_topology){.workers = 2, .servers = 1, .staleness = 3, .eager = true}, &rbt_rule_sum, 8);
    world_work(&w, 0, 3, 1);
    world_work(&w, 0, 3, 1);
    world_deliver(&w, ANY, ANY); /* worker 0 has finished two clocks and stays there */
    world_work(&w, 1, 3, 10);
    world_deliver(&w, node_of_worker(&w, 1), 1);
    late = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS);
    assert_int_equal(late->slowest, 1);
    assert_int_equal(late->included, 2); /* nothing of its own is missing, it is only old */
    world_work(&w, 1, 3, 10);
    world_deliver(&w, ANY, ANY);
    world_handle(&w, late);
    assert_int_equal(w.clients[0].cache[0].copies[0].slowest, 2);
    assert_true(world_read(&w, 0, 0, 3) == 22);
    world_deinit(&w);
}

/* --------------------------------------------------------------------------------------- exactly once, views */

static void a_repeated_answer_is_ignored(void **state)
{
    rbt_message *again;
    world w;

    (void)state;
    begin(&w, 1, 1, 0, &rbt_rule_sum);
    world_want(&w, 0, 0);
    world_deliver(&w, node_of_worker(&w, 0), 1);
    again = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_BLOCKS);
    world_handle(&w, rbt_message_copy(again));
    world_work(&w, 0, 0, 7);
    again->included = 1; /* as good as it can look */
    again->slowest = 9;
    world_handle(&w, again);
    assert_false(world_want(&w, 0, 0));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    assert_true(world_read(&w, 0, 0, 0) == 7);
    world_deinit(&w);
}

static void pushes_and_pulls_are_sent_again_under_a_new_view(void **state)
{
    rbt_message *view = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, 0), *push;
    world w;

    (void)state;
    begin(&w, 1, 2, 0, &rbt_rule_sum);
    world_work(&w, 0, 0, 1);
    assert_false(world_want(&w, 0, 0));
    world_lose(&w, ANY, 1); /* one server gets nothing of it ... */
    world_deliver(&w, ANY, 2);
    world_deliver(&w, 2, ANY);
    view->to = node_of_worker(&w, 0);
    view->view = 4;
    rbt_array_push(&view->members, (rbt_member){0});
    world_handle(&w, view);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PUSH), 1); /* ... and gets it again; the other has acknowledged */
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PULL), 1);
    assert_int_equal(world_count(&w, ANY, 2, 0), 0);
    push = world_take(&w, ANY, 1, RBT_MSG_PUSH);
    assert_int_equal(push->view, 4);
    assert_int_equal(push->clock, 0);
    world_handle(&w, push);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 0));
    assert_true(world_read(&w, 0, 0, 0) == 1 && world_read(&w, 0, 1, 0) == 1);
    world_deinit(&w);
}

static void a_refused_push_finds_its_way_through_the_view_it_is_told(void **state)
{
    world w;

    (void)state;
    begin(&w, 2, 2, 3, &rbt_rule_sum);
    world_work(&w, 1, 3, 1);
    world_restart(&w, 0);
    world_deliver(&w, node_of_worker(&w, 0), RBT_MASTER);
    world_deliver(&w, RBT_MASTER, 1); /* the servers know the new view, worker 1 does not */
    world_deliver(&w, RBT_MASTER, 2);
    world_lose(&w, RBT_MASTER, node_of_worker(&w, 1));
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.clients[1].view, 2);
    assert_true(rbt_client_is_flushed(&w.clients[1]));
    assert_int_equal(w.servers[0].stats.updates, 1);
    assert_int_equal(w.servers[1].stats.updates, 1);
    world_deinit(&w);
}

static void too_many_unacknowledged_clocks_hold_the_worker(void **state)
{
    world w;

    (void)state;
    begin(&w, 1, 2, RBT_UNBOUNDED, &rbt_rule_sum);
    for (int clock = 0; clock < RBT_UNACKED_MAX; clock++)
        world_clock(&w, 0);
    assert_false(rbt_client_may_clock(&w.clients[0]));
    assert_false(rbt_client_is_flushed(&w.clients[0]));
    world_deliver(&w, ANY, 1);
    world_deliver(&w, 1, ANY);
    assert_false(rbt_client_may_clock(&w.clients[0])); /* the other server has acknowledged nothing */
    world_handle(&w, world_take(&w, ANY, 2, RBT_MSG_PUSH));
    world_deliver(&w, 2, ANY);
    assert_true(rbt_client_may_clock(&w.clients[0]));
    world_deliver(&w, ANY, ANY);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

static void blocks_that_cannot_be_are_not_adopted(void **state)
{
    rbt_message *blocks;
    world w;

    (void)state;
    begin(&w, 1, 1, 1, &rbt_rule_sum);
    for (int kind = 0; kind < 5; kind++) {
        blocks = rbt_message_create(RBT_MSG_BLOCKS, kind == 4 ? 9 : 1, node_of_worker(&w, 0));
        rbt_array_push(&blocks->parts, ((rbt_part){.table = kind == 0 ? 8 : 0, .block = kind == 1 ? 8 : 0}));
        if (kind != 2)
            blocks->parts.at[0].snap = rbt_snap_create(kind == 3 ? RBT_I32 : RBT_F32, 64);
        blocks->slowest = 5;
        world_handle(&w, blocks);
        assert_null(w.clients[0].cache[0].copies[0].base);
    }
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_read_asks_every_server_once),
        cmocka_unit_test(what_names_more_blocks_than_a_message_takes_is_several),
        cmocka_unit_test(a_copy_within_the_bound_is_read_without_asking),
        cmocka_unit_test(the_ssp_bound_holds_a_fast_worker),
        cmocka_unit_test(asp_never_waits_for_anybody),
        cmocka_unit_test(a_worker_reads_its_own_writes_at_every_stage),
        cmocka_unit_test(rules_that_take_gradients_show_own_updates_only_through_the_server),
        cmocka_unit_test(an_eager_push_does_not_replace_a_copy_that_this_clock_has_read),
        cmocka_unit_test(gradients_of_different_versions_are_kept_apart),
        cmocka_unit_test(a_version_read_is_named_even_if_nothing_changed),
        cmocka_unit_test(a_prefetch_serves_the_next_clock),
        cmocka_unit_test(the_observer_names_what_the_slowest_must_have_finished),
        cmocka_unit_test(the_observer_knows_whose_clocks_it_reads),
        cmocka_unit_test(reads_are_counted_by_their_staleness),
        cmocka_unit_test(an_eager_push_spares_the_reader_a_question),
        cmocka_unit_test(an_eager_push_that_lacks_an_own_update_is_passed_over),
        cmocka_unit_test(an_older_eager_push_does_not_replace_a_newer_copy),
        cmocka_unit_test(a_repeated_answer_is_ignored),
        cmocka_unit_test(pushes_and_pulls_are_sent_again_under_a_new_view),
        cmocka_unit_test(a_refused_push_finds_its_way_through_the_view_it_is_told),
        cmocka_unit_test(too_many_unacknowledged_clocks_hold_the_worker),
        cmocka_unit_test(blocks_that_cannot_be_are_not_adopted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
