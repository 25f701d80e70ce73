/* Proves src/node/early.c and early_server.c in a cluster driven by hand: early sends are seen before the clock ends, count once whatever
 * is repeated, are taken back when their worker dies, leave a reader's own updates visible, and wait for the budget and for
 * acknowledgements. Under adarev each names the version that the program read. */
#include "unit/world.h"

#include <math.h>

#include "node/early.h"

#define MANAGED(workers_)                                                                                              \
    ((rbt_topology){.workers = (workers_),                                                                             \
                    .servers = 1,                                                                                      \
                    .observers = 1,                                                                                    \
                    .staleness = 2,                                                                                    \
                    .budget_bytes = 1000000,                                                                           \
                    .burst_bytes = RBT_BURST_MIN,                                                                      \
                    .priority = RBT_PRIORITY_MAGNITUDE})

static void send_early(world *w, uint32_t worker)
{
    rbt_env env = {.now_ns = w->now_ns};
    rbt_message *message;

    rbt_client_send_early(&w->clients[worker], &env);
    while ((message = rbt_outbox_take(&env.out)) != NULL)
        world_put(w, message);
}

/* Two workers that have read the table; a second later. */
static void begin(world *w)
{
    world_init(w, MANAGED(2), &rbt_rule_sum, 64);
    for (uint32_t m = 0; m < 2; m++) {
        assert_false(world_want(w, m, 2));
        world_deliver(w, ANY, ANY);
        assert_true(world_want(w, m, 2));
    }
    w->now_ns += 1000000000;
}

static float stored(const world *w)
{
    return w->servers[0].cells.at[0].cell.value->f32[0];
}

static void updates_are_seen_by_others_before_the_clock_ends(void **state)
{
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_EARLY), 1);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 5);
    assert_true(world_read(&w, 1, 0, 2) == 5); /* told by the server, without asking */
    assert_true(world_read(&w, 0, 0, 2) == 5); /* and once only by whoever did it */
    world_increment(&w, 0, 2);
    assert_true(world_read(&w, 0, 0, 2) == 7);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 7);
    assert_int_equal(w.servers[0].ahead[0].count, 0);
    world_deinit(&w);
}

/* Blocks are rows under adarev: a look must not go over those where there is nothing. */
static void what_has_been_sent_is_not_looked_at_again(void **state)
{
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    assert_int_equal(rbt_bits_next(&w.clients[0].cache[0].unsent, 0), 0);
    send_early(&w, 0);
    world_deliver(&w, ANY, ANY);
    w.now_ns += 1000000000;
    send_early(&w, 0);
    assert_int_equal(rbt_bits_next(&w.clients[0].cache[0].unsent, 0), RBT_BITS_END);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(rbt_bits_next(&w.servers[0].untold, 0), RBT_BITS_END);
    world_deinit(&w);
}

static void a_repeated_early_send_counts_once_and_is_acknowledged_again(void **state)
{
    rbt_message *early;
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    early = world_take(&w, ANY, 1, RBT_MSG_EARLY);
    world_handle(&w, rbt_message_copy(early));
    world_handle(&w, rbt_message_copy(early));
    assert_true(stored(&w) == 5);
    assert_int_equal(world_count(&w, 1, node_of_worker(&w, 0), RBT_MSG_GOT), 2);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    world_handle(&w, early); /* after its clock, too */
    assert_true(stored(&w) == 5);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

static void one_that_is_missing_stops_those_after_it(void **state)
{
    rbt_message *first;
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    first = world_take(&w, ANY, 1, RBT_MSG_EARLY);
    w.now_ns += 1000000000;
    world_increment(&w, 0, 1);
    send_early(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 0);
    assert_int_equal(w.servers[0].stats.refused, 1);
    rbt_message_destroy(first);
    world_deinit(&w);
}

static void own_updates_stay_visible_while_they_are_on_their_way(void **state)
{
    rbt_message *early;
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    early = world_take(&w, ANY, 1, RBT_MSG_EARLY);
    assert_true(world_read(&w, 0, 0, 2) == 5);
    world_increment(&w, 1, 10); /* the other's come first, and rows without ours */
    send_early(&w, 1);
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 0, 0, 2) == 15);
    world_handle(&w, early);
    w.now_ns += 1000000000;
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 0, 0, 2) == 15);
    assert_true(stored(&w) == 15);
    world_deinit(&w);
}

static void what_a_worker_sent_before_it_died_is_taken_back(void **state)
{
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 5);
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 0);
    assert_int_equal(w.clients[0].clock, 0);
    w.now_ns += 1000000000;
    world_increment(&w, 0, 3); /* the next life computes the clock again */
    send_early(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 3);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 3);
    world_deinit(&w);
}

static void nothing_goes_out_early_without_room_in_the_budget(void **state)
{
    world w;

    (void)state;
    begin(&w);
    rbt_budget_spend(&w.clients[0].budget, w.now_ns, 2 * RBT_BURST_MIN);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    assert_int_equal(world_count(&w, ANY, ANY, RBT_MSG_EARLY), 0);
    world_clock(&w, 0); /* the clock's push goes all the same */
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PUSH), 1);
    world_deliver(&w, ANY, ANY);
    assert_true(stored(&w) == 5);
    world_deinit(&w);
}

/* Two strips, either twice the bucket and four times for its two readers. */
static void a_strip_that_is_larger_than_the_bucket_goes_alone_and_the_next_waits(void **state)
{
    rbt_message *early;
    world w;

    (void)state;
    world_init(&w, MANAGED(2), &rbt_rule_sum, 2 * RBT_STRIP_ELEMENTS);
    for (uint32_t m = 0; m < 2; m++) {
        assert_false(world_want(&w, m, 2));
        world_deliver(&w, ANY, ANY);
        assert_true(world_want(&w, m, 2));
    }
    w.now_ns += 1000000000;
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    w.now_ns += 4000000; /* a bucket's worth has drained */
    send_early(&w, 0);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_EARLY), 1);
    early = world_take(&w, ANY, 1, RBT_MSG_EARLY);
    assert_int_equal(early->parts.at[0].snap->count, RBT_STRIP_ELEMENTS);
    world_handle(&w, early);
    assert_int_equal(world_count(&w, 1, ANY, RBT_MSG_ROWS), 2);
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 1, 0, 2) == 5);
    w.now_ns += 1000000000; /* over a longer time the rate holds */
    send_early(&w, 0);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_EARLY), 1);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(rbt_bits_next(&w.servers[0].untold, 0), RBT_BITS_END);
    world_deinit(&w);
}

static void too_much_that_is_unacknowledged_holds_early_sends_back(void **state)
{
    size_t sent;
    world w;

    (void)state;
    begin(&w);
    for (int i = 0; i < 100; i++) {
        w.now_ns += 1000000000;
        world_increment(&w, 0, 1);
        send_early(&w, 0);
    }
    sent = world_count(&w, ANY, 1, RBT_MSG_EARLY);
    assert_true(sent > 1 && sent < 100);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.clients[0].early_unacked, 0);
    send_early(&w, 0);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_EARLY), 1);
    world_deinit(&w);
}

static void a_reader_that_has_not_received_its_rows_is_sent_no_more(void **state)
{
    rbt_node reader;
    size_t sent;
    world w;

    (void)state;
    begin(&w);
    reader = node_of_worker(&w, 1);
    for (int i = 0; i < 200; i++) {
        w.now_ns += 1000000000;
        world_increment(&w, 0, 1);
        send_early(&w, 0);
        world_deliver(&w, node_of_worker(&w, 0), 1);
        world_deliver(&w, 1, node_of_worker(&w, 0));
    }
    sent = world_count(&w, 1, reader, RBT_MSG_ROWS);
    assert_true(sent > 1 && sent < 200);
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 1, 0, 2) < 200);
    assert_true(w.servers[0].told[1].got == w.servers[0].told[1].sent);
    w.now_ns += 1000000000;
    world_increment(&w, 0, 1);
    send_early(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 1, 0, 2) == 201);
    world_deinit(&w);
}

static void rows_with_early_sends_of_a_former_life_are_not_taken(void **state)
{
    rbt_message *rows;
    world w;

    (void)state;
    begin(&w);
    world_increment(&w, 0, 5);
    send_early(&w, 0);
    world_deliver(&w, node_of_worker(&w, 0), 1);
    rows = world_take(&w, 1, node_of_worker(&w, 0), RBT_MSG_ROWS);
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_false(world_want(&w, 0, 2));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 2));
    world_increment(&w, 0, 5); /* the same once more, and not sent yet */
    world_handle(&w, rows);
    assert_true(world_read(&w, 0, 0, 2) == 5);
    w.now_ns += 1000000000;
    send_early(&w, 0); /* sent: as many as in the rows of the former life */
    world_deliver(&w, ANY, ANY);
    assert_true(world_read(&w, 0, 0, 2) == 5);
    assert_true(stored(&w) == 5);
    world_deinit(&w);
}

/* It computes a clock again that one server has, and its copy of that block, found in the process, has not. */
static void rows_that_have_other_clocks_of_ours_than_the_copy_are_not_taken(void **state)
{
    rbt_topology like = MANAGED(2);
    rbt_span span = {0};
    rbt_snap *old;
    world w;

    (void)state;
    like.servers = 2;
    world_init(&w, like, &rbt_rule_sum, 64);
    world_want(&w, 1, 2);
    world_work(&w, 0, 2, 5);
    old = rbt_snap_ref(w.clients[0].cache[0].copies[0].base);
    world_deliver(&w, node_of_worker(&w, 0), node_of_block(&w, 0));
    world_lose(&w, node_of_worker(&w, 0), node_of_block(&w, 1));
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.clients[0].clock, 0);
    rbt_client_adopt(&w.clients[0], span, old, 0, (rbt_applied){0}, 0);
    rbt_snap_unref(old);
    w.now_ns += 1000000000;
    world_increment(&w, 1, 2);
    send_early(&w, 1);
    world_deliver(&w, ANY, ANY); /* rows for worker 0: 7, its clock 0 is among them */
    world_increment(&w, 0, 5);
    assert_true(world_read(&w, 0, 0, 2) == 5);
    world_clock(&w, 0);
    assert_true(world_read(&w, 0, 0, 2) == 5);
    world_deliver(&w, ANY, ANY);
    world_increment(&w, 1, 2);
    w.now_ns += 1000000000;
    send_early(&w, 1);
    world_deliver(&w, ANY, ANY); /* now both have the same */
    assert_true(world_read(&w, 0, 0, 2) == 9);
    world_deinit(&w);
}

/* A copy of the process may have them of a clock that this life has yet to come to. */
static void early_sends_of_a_former_life_are_passed_over_in_every_clock(void **state)
{
    const rbt_copy *copy;
    world w;

    (void)state;
    begin(&w);
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    copy = &w.clients[0].cache[0].copies[0];
    assert_int_equal(w.clients[0].clock, 0);
    for (uint64_t clocks = 0; clocks < 3; clocks++) {
        assert_true(rbt_early_lacks(&w.clients[0], copy, (rbt_applied){.clocks = clocks, .early = 1, .life = 0}));
        assert_false(rbt_early_lacks(&w.clients[0], copy, (rbt_applied){.clocks = clocks, .early = 0, .life = 0}));
    }
    assert_false(rbt_early_lacks(&w.clients[0], copy, (rbt_applied){.early = 1, .life = 1}));
    world_deinit(&w);
}

static void a_job_without_a_budget_refuses_early_sends(void **state)
{
    rbt_message *early;
    world w;

    (void)state;
    world_init(&w, (rbt_topology){.workers = 1, .servers = 1, .observers = 1, .staleness = 2}, &rbt_rule_sum, 4);
    early = push_by_hand(&w, 0, 0, 0, 1);
    early->type = RBT_MSG_EARLY;
    world_handle(&w, early);
    assert_true(stored(&w) == 0);
    assert_int_equal(w.servers[0].stats.refused, 1);
    world_deinit(&w);
}

/* ----------------------------------------------------------------------------------------- adaptive revision */

/* Two workers that have read version 0. */
static void begin_adarev(world *w)
{
    world_init(w, MANAGED(2), &rbt_rule_adarev, 64);
    for (uint32_t m = 0; m < 2; m++) {
        assert_false(world_want(w, m, 2));
        world_deliver(w, ANY, ANY);
        assert_true(world_want(w, m, 2));
        assert_true(world_read(w, m, 0, 2) == 0);
    }
    w->now_ns += 1000000000;
}

static void send_and_deliver(world *w, uint32_t worker)
{
    send_early(w, worker);
    world_deliver(w, ANY, ANY);
    w->now_ns += 1000000000;
}

/* The first element after gradients, in the order they come, that have each missed something. */
static double revised(const double *gradient, const double *missed, int n)
{
    double x = 0, z = 0, most = 0;

    for (int i = 0; i < n; i++) {
        double before = 0.25 / (sqrt(most) + 1e-8), after;

        z += gradient[i] * gradient[i] + 2 * gradient[i] * missed[i];
        most = fmax(most, z);
        after = 0.25 / (sqrt(most) + 1e-8);
        x -= after * gradient[i] - (before - after) * missed[i];
    }
    return x;
}

static void a_gradient_names_the_version_that_the_program_read(void **state)
{
    world w;

    (void)state;
    begin_adarev(&w);
    world_increment(&w, 0, 2);
    send_and_deliver(&w, 0);
    world_increment(&w, 1, -1); /* the other has been told of version 1, and computes from version 0 all the same */
    assert_int_equal(w.clients[1].cache[0].copies[0].version, 0);
    send_and_deliver(&w, 1);
    assert_float_equal(stored(&w), revised((double[]){2, -1}, (double[]){0, 2}, 2), 1e-6);
    assert_float_equal(world_read(&w, 1, 0, 2), stored(&w), 0); /* now it reads, and has missed nothing */
    world_increment(&w, 1, 1);
    send_and_deliver(&w, 1);
    assert_float_equal(stored(&w), revised((double[]){2, -1, 1}, (double[]){0, 2, 0}, 3), 1e-6);
    assert_float_equal(w.servers[0].cells.at[0].cell.memory[0], 2, 0);
    world_deinit(&w);
}

/* What was computed from the copy before goes first, with its own version. */
static void gradients_of_several_versions_go_in_their_order(void **state)
{
    rbt_message *early;
    world w;

    (void)state;
    begin_adarev(&w);
    world_increment(&w, 1, 3);
    world_increment(&w, 0, 2);
    send_and_deliver(&w, 0);
    assert_float_equal(world_read(&w, 1, 0, 2), stored(&w), 0);
    world_increment(&w, 1, 1);
    send_early(&w, 1);
    early = world_take(&w, ANY, 1, RBT_MSG_EARLY);
    assert_int_equal(early->parts.count, 2);
    assert_int_equal(early->parts.at[0].version, 0);
    assert_int_equal(early->parts.at[1].version, 1);
    world_handle(&w, early);
    assert_float_equal(stored(&w), revised((double[]){2, 3, 1}, (double[]){0, 2, 3}, 3), 1e-6);
    world_clock(&w, 1); /* nothing is left */
    early = world_take(&w, node_of_worker(&w, 1), 1, RBT_MSG_PUSH);
    assert_int_equal(early->parts.count, 0);
    world_handle(&w, early);
    assert_float_equal(w.servers[0].cells.at[0].cell.memory[0], 6, 0);
    world_deinit(&w);
}

/* z and x are what one push of all of it makes them. */
static void parts_of_a_gradient_come_to_the_same_as_the_whole(void **state)
{
    float whole = 0;

    (void)state;
    for (int parts = 1; parts <= 4; parts *= 2) {
        world w;

        begin_adarev(&w);
        world_increment(&w, 0, 2);
        send_and_deliver(&w, 0);
        for (int i = 0; i < parts; i++) {
            world_increment(&w, 1, 8.0f / (float)parts);
            send_and_deliver(&w, 1);
        }
        world_clock(&w, 1);
        world_deliver(&w, ANY, ANY);
        whole = parts == 1 ? stored(&w) : whole;
        assert_float_equal(stored(&w), whole, 1e-6);
        assert_float_equal(w.servers[0].cells.at[0].cell.memory[64], 4 + 64 + 2 * 8 * 2, 0);
        world_deinit(&w);
    }
}

static void gradients_of_a_worker_that_died_are_taken_back(void **state)
{
    world w;

    (void)state;
    begin_adarev(&w);
    world_increment(&w, 1, 1);
    send_and_deliver(&w, 1);
    world_increment(&w, 0, 2);
    send_and_deliver(&w, 0);
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_float_equal(stored(&w), revised((double[]){1, 2, -2}, (double[]){0, 1, 0}, 3), 1e-6);
    assert_float_equal(w.servers[0].cells.at[0].cell.memory[0], 1, 0);
    world_deinit(&w);
}

/* One reader never names a version, so that all that it was told of are kept. */
static void readers_are_told_while_half_of_the_versions_are_free(void **state)
{
    world w;

    (void)state;
    begin_adarev(&w);
    for (int i = 0; i < 2 * RBT_KEPT_MAX; i++) {
        (void)world_read(&w, 0, 0, 2);
        world_increment(&w, 0, 1);
        send_and_deliver(&w, 0);
    }
    assert_int_equal(w.servers[0].stats.peak_versions, RBT_KEPT_MAX / 2);
    world_increment(&w, 1, 1);
    (void)world_read(&w, 1, 0, 2);
    world_increment(&w, 1, 1);
    send_and_deliver(&w, 1); /* names the newest it was told of */
    assert_true(w.servers[0].cells.at[0].cell.kept.count < 4);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_seen_by_others_before_the_clock_ends),
        cmocka_unit_test(what_has_been_sent_is_not_looked_at_again),
        cmocka_unit_test(a_repeated_early_send_counts_once_and_is_acknowledged_again),
        cmocka_unit_test(one_that_is_missing_stops_those_after_it),
        cmocka_unit_test(own_updates_stay_visible_while_they_are_on_their_way),
        cmocka_unit_test(what_a_worker_sent_before_it_died_is_taken_back),
        cmocka_unit_test(nothing_goes_out_early_without_room_in_the_budget),
        cmocka_unit_test(a_strip_that_is_larger_than_the_bucket_goes_alone_and_the_next_waits),
        cmocka_unit_test(too_much_that_is_unacknowledged_holds_early_sends_back),
        cmocka_unit_test(a_reader_that_has_not_received_its_rows_is_sent_no_more),
        cmocka_unit_test(rows_with_early_sends_of_a_former_life_are_not_taken),
        cmocka_unit_test(rows_that_have_other_clocks_of_ours_than_the_copy_are_not_taken),
        cmocka_unit_test(early_sends_of_a_former_life_are_passed_over_in_every_clock),
        cmocka_unit_test(a_job_without_a_budget_refuses_early_sends),
        cmocka_unit_test(a_gradient_names_the_version_that_the_program_read),
        cmocka_unit_test(gradients_of_several_versions_go_in_their_order),
        cmocka_unit_test(parts_of_a_gradient_come_to_the_same_as_the_whole),
        cmocka_unit_test(gradients_of_a_worker_that_died_are_taken_back),
        cmocka_unit_test(readers_are_told_while_half_of_the_versions_are_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
