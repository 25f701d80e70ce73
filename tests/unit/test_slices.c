/* Proves src/node/slices.c, and what server and worker make of it: how a push is cut, that a slice is added when it comes
 * while the clock counts with the last, that answers say what has come, that blocks are taken once whatever is repeated,
 * left out, forged or sent again by another life, and that BSP shows nothing of a push that is not whole. */
#include "unit/world.h"

#include "base/rng.h"
#include "node/slices.h"

#define BLOCKS 4 /* of server 0 */

static void begin_like(world *w, rbt_topology like, const rbt_rule *rule)
{
    like.servers = 2;
    world_init(w, like, rule, 2 * BLOCKS * 1024);
    assert_int_equal(w->servers[0].cells.count, BLOCKS);
}

static void begin(world *w, uint64_t staleness, const rbt_rule *rule)
{
    begin_like(w, (rbt_topology){.workers = 2, .staleness = staleness, .slice_bytes = 1}, rule);
}

/* Blocks first .. end - 1 of server 0. */
static rbt_message *slice_by_hand(const world *w, uint32_t worker, uint64_t clock, uint32_t first, uint32_t end,
                                  float value)
{
    rbt_message *slice = push_by_hand(w, worker, clock, 0, value);
    size_t kept = 0;

    for (uint32_t i = 0; i < BLOCKS; i++)
        if (i >= first && i < end)
            slice->parts.at[kept++] = slice->parts.at[i];
        else
            rbt_snap_unref(slice->parts.at[i].snap);
    slice->parts.count = kept;
    slice->slice = first;
    slice->more = end < BLOCKS;
    return slice;
}

static void push_slice(world *w, uint32_t worker, uint64_t clock, uint32_t block, float value)
{
    world_handle(w, slice_by_hand(w, worker, clock, block, block + 1, value));
}

static float stored(const world *w, uint32_t block)
{
    return w->servers[0].cells.at[block].cell.value->f32[0];
}

static void assert_stored(const world *w, float a, float b, float c, float d)
{
    const float values[BLOCKS] = {a, b, c, d};

    for (uint32_t i = 0; i < BLOCKS; i++)
        if (stored(w, i) != values[i])
            fail_msg("block %u is %g, not %g", i, (double)stored(w, i), (double)values[i]);
}

static size_t acks(const world *w, uint32_t worker)
{
    return world_count(w, 1, node_of_worker(w, worker), RBT_MSG_ACK);
}

/* What the server answers to this worker: for each block how many of its own clocks are in it. */
static void assert_answer_says(world *w, uint32_t worker, uint64_t clock, const uint64_t says[BLOCKS])
{
    rbt_message *blocks;

    world_handle(w, pull_by_hand(w, worker, clock, 0, 0, 100 + clock));
    blocks = world_take(w, 1, node_of_worker(w, worker), RBT_MSG_BLOCKS);
    assert_non_null(blocks);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const rbt_part *part = &blocks->parts.at[i];
        rbt_applied own = {blocks->included, blocks->reach, 0, 0};

        assert_int_equal(rbt_applied_to(own, part->table, part->block), says[i]);
    }
    rbt_message_destroy(blocks);
}

/* ----------------------------------------------------------------------------------------------- cutting */

static void a_push_is_cut_when_a_slice_has_enough(void **state)
{
    static const struct {
        size_t bytes;
        uint64_t slices;
    } cases[] = {{0, 1}, {1, 4}, {4096, 4}, {4097, 2}, {8193, 2}, {12289, 1}, {1u << 30, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 0, last = 0;
        rbt_message *slice;
        world w;

        begin_like(&w, (rbt_topology){.workers = 1, .staleness = 3, .slice_bytes = cases[i].bytes}, &rbt_rule_sum);
        world_increment(&w, 0, 1);
        world_clock(&w, 0);
        assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PUSH), cases[i].slices);
        assert_int_equal(w.clients[0].unacked_count[0], 1);
        while ((slice = world_take(&w, ANY, 1, RBT_MSG_PUSH)) != NULL) {
            assert_int_equal(slice->slice, number++);
            assert_int_equal(slice->more, number < cases[i].slices);
            for (size_t k = 0; k < slice->parts.count; k++) {
                uint64_t place = 1 + rbt_place_of(slice->parts.at[k].table, slice->parts.at[k].block);

                assert_true(place > last);
                last = place;
            }
            world_handle(&w, slice);
        }
        world_deliver(&w, ANY, ANY);
        assert_true(rbt_client_is_flushed(&w.clients[0]));
        assert_null(w.clients[0].unacked[0].first);
        assert_stored(&w, 1, 1, 1, 1);
        world_deinit(&w);
    }
}

static void a_push_of_nothing_is_one_slice(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    world_clock(&w, 0);
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PUSH), 1);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].clocks.value[0], 1);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

static void too_much_is_unacknowledged_by_clocks_not_by_slices(void **state)
{
    world w;

    (void)state;
    begin(&w, RBT_UNBOUNDED, &rbt_rule_sum);
    for (int clock = 0; clock < RBT_UNACKED_MAX; clock++) {
        assert_true(rbt_client_may_clock(&w.clients[0]));
        world_increment(&w, 0, 1);
        world_clock(&w, 0);
    }
    assert_false(rbt_client_may_clock(&w.clients[0]));
    for (int i = 0; i < BLOCKS; i++) /* all of the first clock */
        world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    for (int i = 0; i < BLOCKS; i++)
        world_handle(&w, world_take(&w, ANY, 2, RBT_MSG_PUSH));
    world_deliver(&w, 1, node_of_worker(&w, 0));
    world_deliver(&w, 2, node_of_worker(&w, 0));
    assert_true(rbt_client_may_clock(&w.clients[0]));
    assert_int_equal(w.clients[0].unacked_count[0], RBT_UNACKED_MAX - 1);
    world_deinit(&w);
}

/* Under adarev a block has a part for each version it was computed from. */
static void all_parts_of_a_block_go_into_one_slice(void **state)
{
    rbt_outbox out = {0};
    rbt_message *push, *slice;
    uint64_t slices = 0;
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_adarev);
    push = push_by_hand(&w, 0, 0, 0, 1);
    rbt_array_push(&push->parts, push->parts.at[BLOCKS - 1]); /* the last block twice */
    rbt_snap_ref(push->parts.at[BLOCKS].snap);
    rbt_slices_cut(push, 1, 0, &out);
    while ((slice = rbt_outbox_take(&out)) != NULL) {
        slices++;
        assert_int_equal(slice->parts.count, slice->more ? 1 : 2);
        world_handle(&w, slice);
    }
    assert_int_equal(slices, BLOCKS);
    assert_int_equal(acks(&w, 0), 1);
    world_deinit(&w);
}

/* -------------------------------------------------------------------------------------------- while it arrives */

static void a_slice_is_added_when_it_comes_and_the_clock_counts_with_the_last(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        assert_int_equal(acks(&w, 0), 0);
        assert_int_equal(w.servers[0].clocks.value[0], 0);
        assert_int_equal(w.servers[0].stats.updates, 0);
        push_slice(&w, 0, 0, block, 5);
        assert_true(stored(&w, block) == 5);
    }
    assert_int_equal(acks(&w, 0), 1);
    assert_int_equal(w.servers[0].clocks.value[0], 1);
    assert_int_equal(w.servers[0].stats.updates, 1);
    world_deinit(&w);
}

static void an_answer_says_how_far_a_push_has_come(void **state)
{
    rbt_message *blocks;
    world w;

    (void)state;
    begin_like(&w, (rbt_topology){.workers = 2, .process_workers = 2, .staleness = 3}, &rbt_rule_sum);
    assert_answer_says(&w, 0, 0, (uint64_t[]){0, 0, 0, 0});
    push_slice(&w, 0, 0, 0, 1);
    world_handle(&w, slice_by_hand(&w, 0, 0, 1, 3, 1)); /* two blocks */
    w.servers[0].sliced[0].slice = 3;
    assert_answer_says(&w, 0, 0, (uint64_t[]){1, 1, 1, 0});
    world_handle(&w, pull_by_hand(&w, 1, 0, 0, 0, 7)); /* the other of the process is told the same of it */
    blocks = world_take(&w, 1, node_of_worker(&w, 1), RBT_MSG_BLOCKS);
    assert_int_equal(blocks->applied.count, 2);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const rbt_part *part = &blocks->parts.at[i];

        assert_int_equal(rbt_applied_to(blocks->applied.at[0], part->table, part->block), i < 3);
        assert_int_equal(rbt_applied_to(blocks->applied.at[1], part->table, part->block), 0);
    }
    rbt_message_destroy(blocks);
    push_slice(&w, 0, 0, 3, 1);
    assert_answer_says(&w, 0, 1, (uint64_t[]){1, 1, 1, 1});
    world_deinit(&w);
}

/* An answer of this very moment reaches the worker whose push is arriving: it takes the blocks that have its update, not
 * the others, and counts none of its updates twice. */
static void a_worker_takes_from_an_eager_push_what_has_its_own_update(void **state)
{
    rbt_topology topology = {.workers = 2, .staleness = 1, .eager = true, .slice_bytes = 1};
    world w;

    (void)state;
    begin_like(&w, topology, &rbt_rule_sum);
    world_want(&w, 0, 1);
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 1));
    world_increment(&w, 0, 1);
    world_clock(&w, 0);
    world_deliver(&w, ANY, ANY);
    world_increment(&w, 0, 1);
    world_clock(&w, 0); /* the push of clock 1: two slices of four arrive */
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    for (uint32_t block = 0; block < BLOCKS; block++) /* worker 1 ends clock 0: the slowest rises */
        push_slice(&w, 1, 0, block, 100);
    world_deliver(&w, 1, node_of_worker(&w, 0));
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t number = w.servers[0].cells.at[block].block;

        assert_true(world_read(&w, 0, number, 5) == (block < 2 ? 102 : 2));
    }
    world_deinit(&w);
}

static void an_observer_counts_updates_that_are_whole(void **state)
{
    rbt_message *blocks;
    world w;

    (void)state;
    begin_like(&w, (rbt_topology){.workers = 1, .observers = 1, .staleness = 3}, &rbt_rule_sum);
    push_slice(&w, 0, 0, 0, 1);
    world_handle(&w, pull_by_hand(&w, 1, 0, 0, 0, 1));
    blocks = world_take(&w, 1, node_of_worker(&w, 1), RBT_MSG_BLOCKS);
    assert_int_equal(blocks->included, 0);
    assert_int_equal(blocks->reach, 0);
    rbt_message_destroy(blocks);
    world_handle(&w, pull_by_hand(&w, 1, 0, 1, 0, 2)); /* it waits for a whole one */
    assert_int_equal(w.servers[0].held.count, 1);
    for (uint32_t block = 1; block < BLOCKS; block++)
        push_slice(&w, 0, 0, block, 1);
    blocks = world_take(&w, 1, node_of_worker(&w, 1), RBT_MSG_BLOCKS);
    assert_int_equal(blocks->included, 1);
    rbt_message_destroy(blocks);
    world_deinit(&w);
}

/* ----------------------------------------------------------------------------------------------- exactly once */

static void a_repeated_slice_is_dropped(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    push_slice(&w, 0, 0, 0, 1);
    push_slice(&w, 0, 0, 1, 1);
    push_slice(&w, 0, 0, 0, 1);
    push_slice(&w, 0, 0, 1, 1);
    assert_int_equal(w.servers[0].stats.repeated, 2);
    push_slice(&w, 0, 0, 2, 1);
    push_slice(&w, 0, 0, 3, 1);
    push_slice(&w, 0, 0, 2, 1); /* of a clock that is whole: only the last is acknowledged again */
    assert_int_equal(acks(&w, 0), 1);
    push_slice(&w, 0, 0, 3, 1);
    assert_int_equal(acks(&w, 0), 2);
    assert_stored(&w, 1, 1, 1, 1);
    world_deinit(&w);
}

static void after_a_missing_slice_nothing_more_of_that_clock_is_taken(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    push_slice(&w, 0, 0, 0, 1);
    push_slice(&w, 0, 0, 2, 1);
    push_slice(&w, 0, 0, 3, 1);
    assert_int_equal(w.servers[0].stats.refused, 2);
    assert_int_equal(acks(&w, 0), 0);
    assert_stored(&w, 1, 0, 0, 0);
    for (uint32_t block = 1; block < BLOCKS; block++)
        push_slice(&w, 0, 0, block, 1);
    assert_int_equal(acks(&w, 0), 1);
    assert_stored(&w, 1, 1, 1, 1);
    world_deinit(&w);
}

static void under_a_new_view_all_slices_are_sent_again_and_those_that_came_are_dropped(void **state)
{
    rbt_message *view;
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    world_increment(&w, 0, 1);
    world_clock(&w, 0);
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    for (rbt_node node = 1; node <= 3; node++) {
        view = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, node);
        view->view = 2;
        rbt_array_push(&view->members, (rbt_member){0});
        rbt_array_push(&view->members, (rbt_member){0});
        world_handle(&w, view); /* the servers', then the worker's, which sends again */
    }
    assert_int_equal(world_count(&w, ANY, 1, RBT_MSG_PUSH), 2 + BLOCKS);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.servers[0].stats.repeated, 2);
    assert_stored(&w, 1, 1, 1, 1);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

/* The worker dies in the middle of clock 1, comes back, computes that clock again (something else this time) and pushes
 * it: the blocks its former life had brought keep that update, the others take the new one, and what it reads in
 * between is what the server has. */
static void of_a_worker_that_died_in_the_middle_every_block_counts_once(void **state)
{
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_sum);
    world_work(&w, 0, 3, 1);
    world_deliver(&w, ANY, ANY);
    world_increment(&w, 0, 10);
    world_clock(&w, 0);
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
    world_lose(&w, ANY, ANY);
    assert_stored(&w, 11, 11, 1, 1);
    world_restart(&w, 0);
    world_deliver(&w, ANY, ANY);
    assert_int_equal(w.clients[0].clock, 1);
    assert_false(world_want(&w, 0, 3));
    world_deliver(&w, ANY, ANY);
    assert_true(world_want(&w, 0, 3));
    for (uint32_t block = 0; block < BLOCKS; block++)
        assert_true(world_read(&w, 0, w.servers[0].cells.at[block].block, 3) == (block < 2 ? 11 : 1));
    world_increment(&w, 0, 100);
    world_clock(&w, 0);
    for (uint32_t block = 0; block < BLOCKS; block++) /* its own view of it: nothing twice */
        assert_true(world_read(&w, 0, w.servers[0].cells.at[block].block, 3) == (block < 2 ? 11 : 101));
    world_deliver(&w, ANY, ANY);
    assert_stored(&w, 11, 11, 101, 101);
    assert_int_equal(w.servers[0].clocks.value[0], 2);
    assert_true(rbt_client_is_flushed(&w.clients[0]));
    world_deinit(&w);
}

static void dyn_takes_the_rest_of_a_push_from_another_life(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rbt_topology topology = {.workers = 2, .staleness = 2, .slice_bytes = 1, .partition_sync = sync};
        world w;

        begin_like(&w, topology, &rbt_rule_dyn);
        for (int clock = 0; clock < 6; clock++) {
            world_work(&w, 0, 2, 1);
            world_deliver(&w, ANY, ANY);
            world_work(&w, 1, 2, 1);
            world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
            world_handle(&w, world_take(&w, ANY, 1, RBT_MSG_PUSH));
            world_lose(&w, ANY, ANY);
            world_restart(&w, 1);
            world_deliver(&w, ANY, ANY);
            assert_int_equal(w.clients[1].clock, clock);
            world_work(&w, 1, 2, 1);
            world_deliver(&w, ANY, ANY);
            assert_int_equal(w.servers[0].clocks.value[1], clock + 1);
        }
        assert_int_equal(w.servers[0].stats.refused, 0);
        world_deinit(&w);
    }
}

/* --------------------------------------------------------------------------------------------------- BSP, leaving */

static void retire_by_view(world *w, uint32_t worker)
{
    rbt_message *view = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, 1);

    view->view = 2;
    for (uint32_t m = 0; m < w->topology.workers; m++)
        rbt_array_push(&view->members, ((rbt_member){.state = m == worker ? RBT_MEMBER_RETIRED : RBT_MEMBER_LIVE}));
    world_handle(w, view);
}

static void bsp_shows_nothing_of_a_push_that_is_not_whole(void **state)
{
    world w;

    (void)state;
    begin(&w, 0, &rbt_rule_sum);
    for (uint32_t block = 0; block < BLOCKS; block++)
        push_slice(&w, 1, 0, block, 2);
    push_slice(&w, 0, 0, 0, 1);
    assert_answer_says(&w, 0, 0, (uint64_t[]){0, 0, 0, 0});
    assert_stored(&w, 0, 0, 0, 0);
    for (uint32_t block = 1; block < BLOCKS; block++)
        push_slice(&w, 0, 0, block, 1);
    assert_stored(&w, 3, 3, 3, 3);
    assert_int_equal(acks(&w, 0) + acks(&w, 1), 2);
    assert_int_equal(w.servers[0].early_count[0] + w.servers[0].early_count[1], 0);
    world_deinit(&w);
}

static void bsp_forgets_what_a_lost_worker_had_begun(void **state)
{
    world w;

    (void)state;
    begin(&w, 0, &rbt_rule_sum);
    push_slice(&w, 1, 0, 0, 2);
    push_slice(&w, 1, 0, 1, 2);
    for (uint32_t block = 0; block < BLOCKS; block++)
        push_slice(&w, 0, 0, block, 1);
    assert_stored(&w, 0, 0, 0, 0);
    retire_by_view(&w, 1);
    assert_stored(&w, 1, 1, 1, 1);
    assert_int_equal(acks(&w, 0), 1);
    assert_null(w.servers[0].early[1].first);
    world_deinit(&w);
}

static void ssp_keeps_what_had_come_from_a_lost_worker_and_waits_for_no_more(void **state)
{
    rbt_message *late;
    world w;

    (void)state;
    begin(&w, 1, &rbt_rule_sum);
    push_slice(&w, 1, 0, 0, 2);
    push_slice(&w, 1, 0, 1, 2);
    for (uint64_t clock = 0; clock < 2; clock++)
        for (uint32_t block = 0; block < BLOCKS; block++)
            push_slice(&w, 0, clock, block, 1);
    world_handle(&w, pull_by_hand(&w, 0, 2, 1, 0, 9));
    assert_int_equal(w.servers[0].held.count, 1);
    retire_by_view(&w, 1);
    assert_int_equal(w.servers[0].held.count, 0);
    late = slice_by_hand(&w, 1, 0, 2, 3, 2);
    late->view = 2;
    world_handle(&w, late);
    assert_int_equal(w.servers[0].stats.refused, 1);
    assert_stored(&w, 4, 4, 2, 2);
    world_deinit(&w);
}

/* ---------------------------------------------------------------------------------------------------- forged */

static void refuses(world *w, rbt_message *slice)
{
    uint64_t before = w->servers[0].stats.refused;

    world_handle(w, slice);
    assert_int_equal(w->servers[0].stats.refused, before + 1);
    assert_int_equal(world_count(w, ANY, ANY, 0), 0);
}

static void a_forged_sequence_is_refused_and_changes_nothing(void **state)
{
    rbt_message *bad;
    world w;

    (void)state;
    begin(&w, 3, &rbt_rule_dyn);
    push_slice(&w, 0, 0, 0, 1);
    world_handle(&w, slice_by_hand(&w, 0, 0, 1, 2, 1));
    bad = slice_by_hand(&w, 0, 0, 1, 2, 1); /* a block that has come, as the next slice */
    bad->slice = 2;
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 0, 2, 4, 1); /* blocks out of order */
    bad->more = 1;
    {
        rbt_part first = bad->parts.at[0];

        bad->parts.at[0] = bad->parts.at[1];
        bad->parts.at[1] = first;
    }
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 0, 2, 2, 1); /* nothing, and more to come: without end */
    bad->more = 1;
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 1, 2, 3, 1); /* of another clock in between */
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 0, 2, 3, 1); /* ends before every block with versions was named */
    bad->more = 0;
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 0, 2, 3, 1);
    bad->slice = UINT64_MAX;
    refuses(&w, bad);
    bad = slice_by_hand(&w, 0, 0, 2, 3, 1);
    bad->parts.at[0].version = 100;
    refuses(&w, bad);
    assert_stored(&w, 1, 1, 0, 0);
    push_slice(&w, 0, 0, 2, 1);
    push_slice(&w, 0, 0, 3, 1);
    assert_stored(&w, 1, 1, 1, 1);
    assert_int_equal(acks(&w, 0), 1);
    world_deinit(&w);
}

/* Slices of any number, of any blocks, of any life, of clocks around the right one: after each of them every block has
 * every clock of the worker that is whole exactly once, and of the next one what the server says has come. */
static void whatever_is_sent_a_block_takes_a_clock_once(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (uint64_t staleness = 0; staleness < 2; staleness++) {
        uint32_t life = 0;
        world w;

        begin_like(&w, (rbt_topology){.workers = 1, .staleness = staleness}, &rbt_rule_sum);
        for (int round = 0; round < 6000; round++) {
            const rbt_server *server = &w.servers[0];
            uint64_t clock = server->clocks.value[0] + rbt_rng_below(&rng, 3);
            uint32_t first = (uint32_t)rbt_rng_below(&rng, BLOCKS + 1), end = (uint32_t)rbt_rng_below(&rng, BLOCKS + 1);
            rbt_message *slice = slice_by_hand(&w, 0, clock > 0 ? clock - 1 : 0, first, end, 1);
            rbt_applied applied;

            slice->slice = rbt_rng_below(&rng, 2) ? server->sliced[0].slice : rbt_rng_below(&rng, BLOCKS + 1);
            slice->more = rbt_rng_below(&rng, 4) != 0;
            life += rbt_rng_below(&rng, 50) == 0;
            slice->incarnation = rbt_rng_below(&rng, 20) == 0 ? (uint32_t)rbt_rng_below(&rng, life + 1) : life;
            world_handle(&w, slice);
            world_lose(&w, ANY, ANY);
            applied = rbt_slices_applied(server, 0);
            for (uint32_t i = 0; i < BLOCKS; i++) {
                uint64_t most = rbt_applied_to(applied, 0, server->cells.at[i].block);

                assert_true(stored(&w, i) <= (float)most); /* a slice may leave blocks out */
            }
            assert_true(server->sliced[0].slice <= BLOCKS);
            assert_true(world_count(&w, ANY, ANY, 0) == 0);
        }
        assert_true(w.servers[0].clocks.value[0] > 50);
        world_deinit(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_cut_when_a_slice_has_enough),
        cmocka_unit_test(a_push_of_nothing_is_one_slice),
        cmocka_unit_test(too_much_is_unacknowledged_by_clocks_not_by_slices),
        cmocka_unit_test(all_parts_of_a_block_go_into_one_slice),
        cmocka_unit_test(a_slice_is_added_when_it_comes_and_the_clock_counts_with_the_last),
        cmocka_unit_test(an_answer_says_how_far_a_push_has_come),
        cmocka_unit_test(a_worker_takes_from_an_eager_push_what_has_its_own_update),
        cmocka_unit_test(an_observer_counts_updates_that_are_whole),
        cmocka_unit_test(a_repeated_slice_is_dropped),
        cmocka_unit_test(after_a_missing_slice_nothing_more_of_that_clock_is_taken),
        cmocka_unit_test(under_a_new_view_all_slices_are_sent_again_and_those_that_came_are_dropped),
        cmocka_unit_test(of_a_worker_that_died_in_the_middle_every_block_counts_once),
        cmocka_unit_test(dyn_takes_the_rest_of_a_push_from_another_life),
        cmocka_unit_test(bsp_shows_nothing_of_a_push_that_is_not_whole),
        cmocka_unit_test(bsp_forgets_what_a_lost_worker_had_begun),
        cmocka_unit_test(ssp_keeps_what_had_come_from_a_lost_worker_and_waits_for_no_more),
        cmocka_unit_test(a_forged_sequence_is_refused_and_changes_nothing),
        cmocka_unit_test(whatever_is_sent_a_block_takes_a_clock_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
