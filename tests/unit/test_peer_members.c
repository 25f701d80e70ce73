/* Proves src/node/peer_members.c and onlooker.c: neighbours that leave or are lost, what bridges the gaps, who watches. */
#include "unit/pond.h"

#include "base/error.h"

/* ------------------------------------------------------------------------------------------------------ members */

static void one_that_left_is_not_waited_for_but_what_it_sent_counts(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.max_gap = 1});
    for (uint32_t m = 0; m < 3; m++)
        pond_set(&p, m, (float)m);
    pond_give(&p, 0, update_by_hand(2, 0, 2));
    pond_give(&p, 0, note_by_hand(RBT_MSG_RETIRE, 2, 1));
    assert_false(pond_reduce(&p, 0, NULL));
    pond_give(&p, 0, update_by_hand(1, 0, 1));
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 3, (float[]){0, 1, 2}, (double[]){1, 1, 1});
    pond_enter(&p, 0); /* no token of 2 is needed */
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 1, 1));
    pond_give(&p, 0, update_by_hand(1, 1, 4));
    pond_send(&p, 0);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_UPDATE), 0);
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 2, (float[]){0, 4}, (double[]){1, 1});
    assert_true(rbt_peer_may_enter(&p.peers[0]));
    pond_deinit(&p);
}

static void leaving_tells_neighbours_master_and_observer(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_RING, 5, (rbt_hop){0});
    pond_retire(&p, 0);
    assert_int_equal(pond_count(&p, 0, 1, RBT_MSG_RETIRE), 1);
    assert_int_equal(pond_count(&p, 0, 4, RBT_MSG_RETIRE), 1);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_RETIRE), 0);
    assert_int_equal(pond_count(&p, 0, UINT32_MAX, RBT_MSG_RETIRE), 3);
    assert_int_equal(pond_count(&p, 0, 5, RBT_MSG_BLOCKS), 1);
    pond_deinit(&p);
}

/* Runs all that are there through so many iterations, everything delivered in between. */
static void run(pond *p, uint32_t lost_bits, uint32_t iterations)
{
    for (uint32_t k = 0; k < iterations; k++) {
        for (uint32_t m = 0; m < p->topology.workers; m++)
            if (!(lost_bits >> m & 1))
                pond_send(p, m);
        pond_quiet(p);
        for (uint32_t m = 0; m < p->topology.workers; m++)
            if (!(lost_bits >> m & 1)) {
                assert_true(pond_reduce(p, m, NULL));
                pond_enter(p, m);
            }
        pond_quiet(p);
    }
}

static void lost_neighbours_are_bridged(void **state)
{
    (void)state;
    for (uint64_t max_gap = 0; max_gap < 4; max_gap += 3) {
        pond p;

        /* a ring of 6 loses 2, then 3: 1 and 4 become neighbours */
        pond_init(&p, RBT_GRAPH_RING, 6, (rbt_hop){.max_gap = max_gap});
        run(&p, 0, 2);
        for (uint32_t m = 0; m < 6; m++)
            if (m != 2)
                pond_give(&p, m, view_by_hand(&p, 2, 1u << 2));
        assert_true(pond_neighbour(&p, 1, 3)->is_in && pond_neighbour(&p, 1, 3)->is_out);
        assert_null(pond_neighbour(&p, 0, 3));
        run(&p, 1u << 2, 2);
        for (uint32_t m = 0; m < 6; m++)
            if (m != 2 && m != 3)
                pond_give(&p, m, view_by_hand(&p, 3, 1u << 2 | 1u << 3));
        run(&p, 1u << 2 | 1u << 3, 2);
        pond_send(&p, 4);
        assert_int_equal(pond_count(&p, 4, 1, RBT_MSG_UPDATE), 1);
        pond_quiet(&p);
        assert_int_equal(pond_neighbour(&p, 1, 4)->came.count, 1);
        pond_send(&p, 0);
        pond_quiet(&p);
        assert_true(pond_reduce(&p, 1, NULL));
        assert_int_equal(pond_count(&p, UINT32_MAX, 2, RBT_MSG_UPDATE), 0);
        pond_deinit(&p);
    }
}

/* What a peer's average holds of the others' parameters, when each has a column of its own: not with pond's equal elements, so the
 * weights are read from the mix. */
static void weights_after_a_loss_are_doubly_stochastic(void **state)
{
    static const rbt_graph_kind kinds[] = {RBT_GRAPH_RING, RBT_GRAPH_RING_BASED, RBT_GRAPH_DOUBLE_RING,
                                           RBT_GRAPH_COMPLETE};
    static const uint32_t losses[] = {1u << 2, 1u << 2 | 1u << 3, 1u << 0 | 1u << 4 | 1u << 7};

    (void)state;
    for (size_t g = 0; g < sizeof kinds / sizeof kinds[0]; g++)
        for (size_t l = 0; l < sizeof losses / sizeof losses[0]; l++) {
            double column[8] = {0};
            pond p;

            pond_init(&p, kinds[g], 8, (rbt_hop){0});
            run(&p, 0, 1);
            for (uint32_t m = 0; m < 8; m++)
                if (!(losses[l] >> m & 1))
                    pond_give(&p, m, view_by_hand(&p, 2, losses[l]));
            run(&p, losses[l], 2);
            for (uint32_t m = 0; m < 8; m++)
                if (!(losses[l] >> m & 1))
                    pond_send(&p, m);
            pond_quiet(&p);
            for (uint32_t m = 0; m < 8; m++) {
                rbt_mix mix = {0};
                rbt_env env = {0};
                double row = 0;

                if (losses[l] >> m & 1)
                    continue;
                assert_true(rbt_peer_reduce(&p.peers[m], &mix, &env));
                for (size_t i = 0; i < mix.count; i++)
                    for (uint32_t j = 0; j < 8; j++) /* sent as they are: the snapshot tells whose it is */
                        if (mix.x[i] == p.peers[j].x) {
                            column[j] += (double)mix.weight[i];
                            row += (double)mix.weight[i];
                        }
                assert_true(row > 0.999999 && row < 1.000001);
                rbt_mix_deinit(&mix);
            }
            for (uint32_t j = 0; j < 8; j++)
                if (!(losses[l] >> j & 1) && !(column[j] > 0.999999 && column[j] < 1.000001))
                    fail_msg("graph %zu, loss %x: what worker %u gives sums to %g", g, losses[l], j, column[j]);
            pond_deinit(&p);
        }
}

static void a_new_sender_is_waited_for_from_its_first_update_on(void **state)
{
    static const rbt_edge edges[] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {0, 1}, {1, 2}, {2, 3}, {3, 0}};
    pond p;

    (void)state;
    /* one-way ring 0 -> 1 -> 2 -> 3 -> 0; 1 is lost: 0 sends to 2 */
    pond_init_edges(&p, edges, 8, 4, (rbt_hop){.max_gap = 2});
    pond_give(&p, 2, view_by_hand(&p, 2, 1u << 1));
    pond_give(&p, 2, view_by_hand(&p, 2, 0)); /* repeated, old: nothing new */
    assert_true(pond_neighbour(&p, 2, 0)->is_in);
    assert_true(pond_reduce(&p, 2, NULL)); /* nobody is left to wait for */
    pond_enter(&p, 2);
    assert_int_equal(pond_count(&p, 2, 0, RBT_MSG_TOKEN), 1);
    pond_give(&p, 2, update_by_hand(0, 3, 1)); /* it is ahead */
    assert_true(pond_reduce(&p, 2, NULL));
    pond_give(&p, 2, note_by_hand(RBT_MSG_TOKEN, 3, 3));
    pond_enter(&p, 2);
    pond_enter(&p, 2);
    assert_true(pond_reduce(&p, 2, NULL)); /* 3 is there */
    pond_enter(&p, 2);
    assert_false(pond_reduce(&p, 2, NULL));
    assert_int_equal(rbt_peer_waits_for(&p.peers[2]), 0);
    pond_deinit(&p);
}

static void an_update_may_come_before_the_news_that_makes_a_sender(void **state)
{
    static const rbt_edge edges[] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 2}, {2, 0}};
    pond p;

    (void)state;
    /* 0 -> 1 -> 2 -> 0: 0 is only a receiver of 2 until 1 is lost, and 2 hears of that last */
    pond_init_edges(&p, edges, 6, 3, (rbt_hop){.staleness = 1});
    pond_give(&p, 2, update_by_hand(0, 4, 1));
    assert_int_equal(pond_neighbour(&p, 2, 0)->since, 4);
    pond_give(&p, 2, view_by_hand(&p, 2, 1u << 1));
    assert_int_equal(pond_neighbour(&p, 2, 0)->since, 4);
    assert_true(pond_reduce(&p, 2, NULL));
    pond_deinit(&p);
}

/* A ring of 5 loses 2: 1 and 3 become neighbours. 3 knows first, sends its last update to 1, and leaves, before 1 knows. A repeated
 * update after that does not make 1 wait for another one. */
static void one_may_leave_before_the_news_that_makes_it_a_sender(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_RING, 5, (rbt_hop){.max_gap = 3});
    pond_give(&p, 1, update_by_hand(3, 0, 3));
    pond_give(&p, 1, note_by_hand(RBT_MSG_RETIRE, 3, 1));
    pond_give(&p, 1, view_by_hand(&p, 2, 1u << 2));
    assert_true(pond_neighbour(&p, 1, 3)->gone);
    pond_give(&p, 1, update_by_hand(3, 0, 3));
    for (uint64_t k = 0; k < 5; k++) {
        pond_give(&p, 1, update_by_hand(0, k, 1));
        pond_send(&p, 1);
        assert_true(pond_reduce(&p, 1, NULL));
        pond_give(&p, 1, note_by_hand(RBT_MSG_TOKEN, 0, k + 1));
        pond_enter(&p, 1);
    }
    assert_int_equal(pond_count(&p, 1, 3, RBT_MSG_UPDATE), 0);
    pond_deinit(&p);
}

static void a_new_receiver_is_not_jumped_past_before_it_tells(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_RING, 5, (rbt_hop){.backup = 1, .max_gap = 5, .skip = 9, .skip_trigger = 2});
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 4, 5));
    pond_give(&p, 0, view_by_hand(&p, 2, 1u << 1));
    assert_int_equal(rbt_peer_jump(&p.peers[0]), 0);
    pond_send(&p, 0);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_UPDATE), 0); /* where it stands is not known yet */
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 3));
    assert_int_equal(rbt_peer_jump(&p.peers[0]), 2);
    pond_deinit(&p);
}

/* ---------------------------------------------------------------------------------------------------- observers */

static rbt_message *pull_by_hand(uint64_t need)
{
    rbt_message *pull = rbt_message_create(RBT_MSG_PULL, 4, 0);

    pull->worker = 3;
    pull->need = need;
    return pull;
}

static void an_observer_is_answered_in_the_iteration_it_wants(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){0});
    pond_give(&p, 0, pull_by_hand(2));
    pond_enter(&p, 0);
    assert_int_equal(pond_count(&p, 0, 3, RBT_MSG_BLOCKS), 0);
    pond_enter(&p, 0);
    assert_int_equal(pond_count(&p, 0, 3, RBT_MSG_BLOCKS), 1);
    pond_give(&p, 0, pull_by_hand(1));
    assert_int_equal(pond_count(&p, 0, 3, RBT_MSG_BLOCKS), 2);
    pond_give(&p, 0, pull_by_hand(9)); /* never answered: released with the peer */
    pond_deinit(&p);
}

static rbt_message *blocks_by_hand(uint32_t from, uint64_t iteration, float value, bool last)
{
    rbt_message *message = update_by_hand(from, iteration, value);

    message->type = RBT_MSG_BLOCKS;
    message->included = iteration;
    message->slowest = last ? RBT_UNBOUNDED : iteration;
    message->reach = iteration / 2; /* it has jumped over every second one */
    return message;
}

static size_t asks(rbt_onlooker *onlooker, uint64_t iteration, bool *ready)
{
    rbt_env env = {0};
    rbt_message *message;
    size_t count = 0;

    *ready = rbt_onlooker_look(onlooker, iteration, &env);
    while ((message = rbt_outbox_take(&env.out)) != NULL) {
        assert_int_equal(message->type, RBT_MSG_PULL);
        assert_int_equal(message->need, iteration);
        rbt_message_destroy(message);
        count++;
    }
    return count;
}

static void an_onlooker_asks_once_and_means_all_that_are_left(void **state)
{
    rbt_onlooker onlooker;
    float mean[POND_PARAMETERS];
    double spread;
    bool ready;
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){0});
    rbt_onlooker_init(&onlooker, &p.topology, POND_PARAMETERS);
    rbt_onlooker_mean(&onlooker, mean, &spread);
    assert_true(mean[0] == 0 && spread == 0);
    assert_int_equal(asks(&onlooker, 0, &ready), 3);
    assert_int_equal(asks(&onlooker, 0, &ready), 0);
    assert_false(ready);
    for (uint32_t m = 0; m < 3; m++)
        rbt_onlooker_handle(&onlooker, blocks_by_hand(m, 2, (float)(3 * m), false));
    rbt_onlooker_handle(&onlooker, blocks_by_hand(1, 1, 99, false)); /* repeated, old */
    rbt_onlooker_handle(&onlooker, update_by_hand(1, 7, 99));
    assert_int_equal(asks(&onlooker, 2, &ready), 0);
    assert_true(ready);
    rbt_onlooker_mean(&onlooker, mean, &spread);
    assert_true(mean[0] == 3 && mean[2] == 3);
    assert_true(spread > 4.2426 && spread < 4.2427); /* sqrt((9 + 0 + 9) * 3 / 3) */
    assert_true(onlooker.poses[1].iteration == 2 && onlooker.poses[1].skipped == 1);
    rbt_onlooker_handle(&onlooker, blocks_by_hand(0, 4, 1, true));
    rbt_onlooker_handle(&onlooker, view_by_hand(&p, 2, 1u << 0 | 1u << 2)); /* 0 has ended, 2 is lost */
    assert_false(rbt_onlooker_is_over(&onlooker));
    assert_int_equal(asks(&onlooker, 9, &ready), 1);
    rbt_onlooker_handle(&onlooker, blocks_by_hand(1, 9, 5, true));
    assert_true(rbt_onlooker_is_over(&onlooker));
    rbt_onlooker_mean(&onlooker, mean, &spread);
    assert_true(mean[0] == 3); /* of 1 and 5 */
    rbt_onlooker_deinit(&onlooker);
    pond_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_left_is_not_waited_for_but_what_it_sent_counts),
        cmocka_unit_test(leaving_tells_neighbours_master_and_observer),
        cmocka_unit_test(lost_neighbours_are_bridged),
        cmocka_unit_test(weights_after_a_loss_are_doubly_stochastic),
        cmocka_unit_test(a_new_sender_is_waited_for_from_its_first_update_on),
        cmocka_unit_test(an_update_may_come_before_the_news_that_makes_a_sender),
        cmocka_unit_test(one_may_leave_before_the_news_that_makes_it_a_sender),
        cmocka_unit_test(a_new_receiver_is_not_jumped_past_before_it_tells),
        cmocka_unit_test(an_observer_is_answered_in_the_iteration_it_wants),
        cmocka_unit_test(an_onlooker_asks_once_and_means_all_that_are_left),
    };

    return cmocka_run_group_tests_name("peer_members", tests, NULL, NULL);
}
