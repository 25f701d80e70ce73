/* Proves src/node/peer.c: what is reduced, when, with which weights; tokens, jumps, NOTIFY-ACK, what is withheld and what is
 * discarded. Who leaves or is lost: test_peer_members.c. */
#include "unit/pond.h"

#include "base/error.h"
#include "base/rng.h"

/* ----------------------------------------------------------------------------------------------------- reducing */

static void standard_takes_this_iterations_update_of_every_sender(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 4, (rbt_hop){0});
    pond_set(&p, 1, 0.1f);
    assert_false(pond_reduce(&p, 1, NULL));
    pond_give(&p, 1, update_by_hand(3, 0, 0.7f));
    pond_give(&p, 1, update_by_hand(3, 1, 100));
    pond_give(&p, 1, update_by_hand(0, 0, 0.3f));
    assert_false(pond_reduce(&p, 1, NULL));
    assert_int_equal(rbt_peer_waits_for(&p.peers[1]), 2);
    pond_give(&p, 1, update_by_hand(2, 0, 1.9f));
    assert_true(pond_reduce(&p, 1, &found));
    assert_mean(found, 4, (float[]){0.3f, 0.1f, 1.9f, 0.7f}, (double[]){1, 1, 1, 1});
    pond_enter(&p, 1);
    assert_false(pond_reduce(&p, 1, NULL)); /* 3's is there already, the others' are not */
    pond_deinit(&p);
}

static void the_order_of_arrival_does_not_change_a_bit(void **state)
{
    static const uint32_t orders[][3] = {{0, 2, 3}, {3, 2, 0}, {2, 3, 0}};
    static const float values[] = {1e7f, 0.1f, -1e7f, 0.3f};
    float first = 0;

    (void)state;
    for (size_t o = 0; o < 3; o++) {
        pond p;
        float found = 0;

        pond_init(&p, RBT_GRAPH_COMPLETE, 4, (rbt_hop){0});
        pond_set(&p, 1, values[1]);
        for (size_t i = 0; i < 3; i++)
            pond_give(&p, 1, update_by_hand(orders[o][i], 0, values[orders[o][i]]));
        assert_true(pond_reduce(&p, 1, &found));
        if (o == 0)
            first = found;
        assert_memory_equal(&found, &first, sizeof found);
        pond_deinit(&p);
    }
}

static void backup_waits_for_all_but_some_and_takes_what_else_is_there(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 5, (rbt_hop){.backup = 2, .max_gap = 3});
    pond_set(&p, 0, 1);
    pond_give(&p, 0, update_by_hand(4, 0, 2));
    pond_give(&p, 0, update_by_hand(3, 1, 50)); /* of the next iteration: does not count */
    assert_false(pond_reduce(&p, 0, NULL));
    pond_give(&p, 0, update_by_hand(2, 0, 4));
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 3, (float[]){1, 4, 2}, (double[]){1, 1, 1});
    pond_give(&p, 0, update_by_hand(1, 0, 8)); /* more than need be */
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 4, (float[]){1, 8, 4, 2}, (double[]){1, 1, 1, 1});
    pond_deinit(&p);
}

static void staleness_takes_the_newest_and_weighs_it_by_its_age(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 4, (rbt_hop){.staleness = 2});
    for (uint32_t k = 0; k < 5; k++)
        pond_enter(&p, 1);
    pond_set(&p, 1, 1);
    pond_give(&p, 1, update_by_hand(0, 2, 1000)); /* too old in iteration 5 */
    pond_give(&p, 1, update_by_hand(2, 3, 7));    /* replaced by the next */
    pond_give(&p, 1, update_by_hand(2, 4, 2));
    pond_give(&p, 1, update_by_hand(3, 6, 3)); /* from one that is ahead */
    assert_int_equal(p.peers[1].discarded, 1);
    assert_false(pond_reduce(&p, 1, NULL));
    assert_int_equal(rbt_peer_waits_for(&p.peers[1]), 0);
    pond_give(&p, 1, update_by_hand(0, 3, 5)); /* just young enough */
    assert_true(pond_reduce(&p, 1, &found));
    /* iter(u) - (k - s) + 1 with k = 5, s = 2 */
    assert_mean(found, 4, (float[]){5, 1, 2, 3}, (double[]){1, 3, 2, 4});
    assert_int_equal(p.peers[1].staleness_seen[2], 1);
    assert_int_equal(p.peers[1].staleness_seen[1], 1);
    assert_int_equal(p.peers[1].staleness_seen[0], 1);
    pond_enter(&p, 1); /* 6: what came stays of use, but 0's */
    assert_false(pond_reduce(&p, 1, NULL));
    assert_int_equal(p.peers[1].discarded, 1); /* that was used before it became too old */
    pond_give(&p, 1, update_by_hand(0, 4, 6));
    assert_true(pond_reduce(&p, 1, &found));
    assert_mean(found, 4, (float[]){6, 1, 2, 3}, (double[]){1, 3, 1, 3});
    pond_deinit(&p);
}

static void both_want_all_but_some_to_be_young_enough(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 4, (rbt_hop){.staleness = 1, .backup = 1, .max_gap = 9});
    for (uint32_t k = 0; k < 3; k++)
        pond_enter(&p, 2);
    pond_set(&p, 2, 8);
    pond_give(&p, 2, update_by_hand(0, 1, 99));
    pond_give(&p, 2, update_by_hand(1, 2, 4));
    assert_false(pond_reduce(&p, 2, NULL)); /* 0's is too old */
    pond_give(&p, 2, update_by_hand(3, 3, 2));
    assert_true(pond_reduce(&p, 2, &found));
    assert_mean(found, 3, (float[]){4, 8, 2}, (double[]){1, 2, 2});
    pond_deinit(&p);
}

/* ---------------------------------------------------------------------------------------------------- receiving */

static void repeated_and_late_updates_change_nothing(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){0});
    pond_set(&p, 0, 1);
    pond_give(&p, 0, update_by_hand(1, 1, 30)); /* overtaken */
    pond_give(&p, 0, update_by_hand(1, 0, 3));
    pond_give(&p, 0, update_by_hand(1, 0, 3));
    pond_give(&p, 0, update_by_hand(2, 0, 5));
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 3, (float[]){1, 3, 5}, (double[]){1, 1, 1});
    pond_enter(&p, 0);
    pond_give(&p, 0, update_by_hand(2, 0, 5)); /* repeated, too late */
    assert_int_equal(p.peers[0].discarded, 1);
    assert_int_equal(pond_neighbour(&p, 0, 2)->came.count, 0);
    pond_give(&p, 0, update_by_hand(2, 1, 6));
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 3, (float[]){1, 30, 6}, (double[]){1, 1, 1});
    pond_deinit(&p);
}

static void what_is_no_update_of_a_sender_is_left_out(void **state)
{
    pond p;
    rbt_message *odd;
    rbt_part part;

    (void)state;
    pond_init(&p, RBT_GRAPH_RING, 5, (rbt_hop){0});
    pond_give(&p, 0, update_by_hand(2, 0, 1)); /* not a neighbour */
    pond_give(&p, 0, update_by_hand(0, 0, 1)); /* itself */
    pond_give(&p, 0, update_by_hand(77, 0, 1));
    pond_give(&p, 0, note_by_hand(RBT_MSG_UPDATE, 1, 0)); /* without parameters */
    odd = note_by_hand(RBT_MSG_UPDATE, 1, 0);
    part = (rbt_part){.snap = rbt_snap_create(RBT_F32, POND_PARAMETERS + 1)};
    rbt_array_push(&odd->parts, part);
    pond_give(&p, 0, odd);
    odd = note_by_hand(RBT_MSG_UPDATE, 1, 0);
    part = (rbt_part){.snap = rbt_snap_create(RBT_I64, POND_PARAMETERS)};
    rbt_array_push(&odd->parts, part);
    pond_give(&p, 0, odd);
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 77, 5));
    pond_give(&p, 0, note_by_hand(RBT_MSG_USED, 77, 5));
    pond_give(&p, 0, note_by_hand(RBT_MSG_RETIRE, 77, 5));
    pond_give(&p, 0, note_by_hand(RBT_MSG_ACK, 1, 5));
    assert_int_equal(p.peers[0].peak_queue, 0);
    assert_int_equal(p.peers[0].neighbours.count, 3);
    pond_deinit(&p);
}

static void the_queue_holds_max_gap_more_iterations_of_each_sender(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1, .max_gap = 4});
    for (uint64_t k = 0; k <= 4; k++) {
        pond_give(&p, 0, update_by_hand(1, k, 1));
        pond_give(&p, 0, update_by_hand(2, k, 1));
    }
    assert_int_equal(p.peers[0].peak_queue, 10); /* (1 + 4) * 2, its own parameters do not wait */
    pond_deinit(&p);
}

static void who_sends_further_ahead_than_its_tokens_allow_is_not_heard(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.max_gap = 2});
    for (uint64_t k = 0; k < 100; k++)
        pond_give(&p, 0, update_by_hand(1, 7 * k, 1));
    assert_int_equal(p.peers[0].peak_queue, 3);
    assert_int_equal(p.peers[0].discarded, 97);
    pond_give(&p, 0, update_by_hand(2, 0, 1)); /* another one is */
    assert_true(pond_reduce(&p, 0, NULL));
    pond_deinit(&p);
}

/* ------------------------------------------------------------------------------------------------------ sending */

static void parameters_go_to_all_receivers_but_those_past_them(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 4, (rbt_hop){.backup = 1, .max_gap = 5});
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 1));
    pond_send(&p, 0);
    assert_int_equal(pond_count(&p, 0, 1, RBT_MSG_UPDATE), 1);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_UPDATE), 0);
    assert_int_equal(pond_count(&p, 0, 0, RBT_MSG_UPDATE), 0);
    assert_int_equal(p.peers[0].sent, 2);
    assert_int_equal(p.peers[0].withheld, 1);
    pond_enter(&p, 0);
    pond_send(&p, 0);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_UPDATE), 1);
    pond_deinit(&p);
}

static void with_staleness_a_receiver_must_be_further_past(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.staleness = 2, .max_gap = 5});
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 1, 2));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 3));
    pond_send(&p, 0);
    assert_int_equal(pond_count(&p, 0, 1, RBT_MSG_UPDATE), 1);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_UPDATE), 0);
    pond_deinit(&p);
}

static void notify_ack_sends_when_the_last_was_used_by_all(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.notify_ack = true});
    assert_true(rbt_peer_may_send(&p.peers[0]));
    for (uint32_t m = 0; m < 3; m++)
        pond_send(&p, m);
    while (pond_deliver(&p, 0))
        continue;
    assert_true(pond_reduce(&p, 0, NULL));
    assert_int_equal(pond_count(&p, 0, 1, RBT_MSG_USED), 1);
    assert_int_equal(pond_count(&p, 0, 2, RBT_MSG_USED), 1);
    pond_enter(&p, 0);
    assert_false(rbt_peer_may_send(&p.peers[0]));
    while (pond_deliver(&p, 1))
        continue;
    assert_true(pond_reduce(&p, 1, NULL));
    while (pond_deliver(&p, 0))
        continue;
    assert_false(rbt_peer_may_send(&p.peers[0]));
    assert_int_equal(rbt_peer_waits_for(&p.peers[0]), 2);
    pond_give(&p, 0, note_by_hand(RBT_MSG_USED, 2, 0));
    pond_give(&p, 0, note_by_hand(RBT_MSG_USED, 2, 0));
    assert_true(rbt_peer_may_send(&p.peers[0]));
    pond_deinit(&p);
}

/* ------------------------------------------------------------------------------------------------------- tokens */

/* TokenQ(j->i).size + tokens under way = iter(j) - iter(i) + max_gap, where size is what i may still enter by j's tokens. */
static void assert_identity(const pond *p, uint32_t i, uint32_t j)
{
    const rbt_token_queue *tokens = &pond_neighbour(p, i, j)->tokens;

    assert_true(tokens->size >= 0);
    assert_true(rbt_token_queue_holds(tokens, p->peers[j].iteration, p->peers[i].iteration,
                                      pond_count(p, j, i, RBT_MSG_TOKEN)));
}

static void tokens_bound_the_gap_and_keep_their_identity(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);
    pond p;
    uint64_t blocked = 0;

    (void)state;
    pond_init(&p, RBT_GRAPH_RING_BASED, 6, (rbt_hop){.backup = 9, .max_gap = 2});
    for (uint32_t step = 0; step < 3000; step++) {
        uint32_t m = (uint32_t)rbt_rng_below(&rng, 6);

        if (rbt_rng_below(&rng, 2) == 0)
            pond_deliver(&p, m);
        else if (rbt_peer_may_enter(&p.peers[m]))
            pond_enter(&p, m);
        else
            blocked++;
        for (uint32_t i = 0; i < 6; i++)
            for (size_t k = 0; k < p.peers[i].neighbours.count; k++)
                if (p.peers[i].neighbours.at[k].worker != i)
                    assert_identity(&p, i, p.peers[i].neighbours.at[k].worker);
    }
    assert_true(blocked > 0 && p.peers[0].iteration > 50);
    pond_deinit(&p);
}

static void the_last_token_is_waited_for_by_name(void **state)
{
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 2, .max_gap = 1});
    pond_enter(&p, 0);
    assert_false(rbt_peer_may_enter(&p.peers[0]));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 1, 1));
    assert_false(rbt_peer_may_enter(&p.peers[0]));
    pond_send(&p, 0);
    assert_int_equal(rbt_peer_waits_for(&p.peers[0]), 2);
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 2));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 1)); /* an old one, repeated */
    assert_true(rbt_peer_may_enter(&p.peers[0]));
    assert_int_equal(pond_neighbour(&p, 0, 2)->tokens.told, 2);
    assert_int_equal(rbt_peer_waits_for(&p.peers[0]), UINT32_MAX);
    pond_deinit(&p);
}

/* ------------------------------------------------------------------------------------------------------ jumping */

static uint64_t jump_with(rbt_hop like, uint64_t one, uint64_t other)
{
    uint64_t jump;
    pond p;

    pond_init(&p, RBT_GRAPH_COMPLETE, 3, like);
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 1, one));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, other));
    jump = rbt_peer_jump(&p.peers[0]);
    pond_deinit(&p);
    return jump;
}

static void a_jump_ends_at_the_slowest_receiver(void **state)
{
    rbt_hop hop = {.backup = 1, .max_gap = 9, .skip = 10, .skip_trigger = 2};

    (void)state;
    assert_int_equal(jump_with(hop, 5, 8), 4); /* over 1 .. 4 into 5 */
    assert_int_equal(jump_with(hop, 8, 5), 4);
    assert_int_equal(jump_with(hop, 9, 1), 0);
    assert_int_equal(jump_with(hop, 9, 0), 0);
    assert_int_equal(jump_with(hop, 2, 2), 1);
    hop.skip_trigger = 5;
    assert_int_equal(jump_with(hop, 4, 9), 0);
    assert_int_equal(jump_with(hop, 5, 9), 4);
    hop.skip = 5;
    assert_int_equal(jump_with(hop, 9, 9), 4); /* over 4 into the fifth: advances by 5 */
    hop.skip = 2;
    assert_int_equal(jump_with(hop, 9, 9), 1);
    hop.skip = 1;
    assert_int_equal(jump_with(hop, 9, 9), 0);
    hop.skip = 0;
    assert_int_equal(jump_with(hop, 9, 9), 0);
}

static void a_jump_renews_the_parameters_and_tells_by_tokens(void **state)
{
    pond p;
    float found;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1, .max_gap = 9, .skip = 10, .skip_trigger = 2});
    pond_set(&p, 0, 1);
    for (uint64_t k = 0; k <= 4; k++)
        pond_give(&p, 0, update_by_hand(1, k, (float)k));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 1, 5));
    pond_give(&p, 0, note_by_hand(RBT_MSG_TOKEN, 2, 6));
    pond_skip(&p, 0, 4);
    assert_int_equal(p.peers[0].iteration, 4);
    assert_int_equal(p.peers[0].skipped, 4);
    assert_int_equal(p.peers[0].discarded, 4); /* what was jumped over */
    assert_int_equal(rbt_peer_jump(&p.peers[0]), 0);
    assert_true(pond_reduce(&p, 0, &found));
    assert_mean(found, 2, (float[]){1, 4}, (double[]){1, 1});
    pond_enter(&p, 0);
    assert_int_equal(p.peers[0].iteration, 5);
    assert_false(p.peers[0].has_sent);
    pond_quiet(&p);
    assert_int_equal(pond_neighbour(&p, 1, 0)->tokens.told, 5);
    pond_deinit(&p);
}

/* In parallel order, two peers: the average of iteration k goes where an earlier one was, once nobody holds that any more. */
static void the_memory_of_old_parameters_is_used_again(void **state)
{
    const float *places[10];
    size_t count = 0;
    pond p;

    (void)state;
    pond_init(&p, RBT_GRAPH_COMPLETE, 2, (rbt_hop){0});
    for (uint32_t k = 0; k < 10; k++) {
        pond_send(&p, 0);
        pond_send(&p, 1);
        pond_quiet(&p);
        for (uint32_t m = 0; m < 2; m++) {
            rbt_mix mix = {0};
            rbt_env env = {0};

            assert_true(rbt_peer_reduce(&p.peers[m], &mix, &env));
            rbt_peer_take(&p.peers[m], rbt_mix_average(&mix, NULL, 0));
            rbt_mix_deinit(&mix);
        }
        pond_enter(&p, 0);
        pond_enter(&p, 1);
        places[count] = p.peers[0].x->f32;
        for (size_t i = 0; i <= count; i++)
            if (i == count || places[i] == places[count]) {
                count += i == count;
                break;
            }
    }
    assert_true(count <= 3);
    pond_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_takes_this_iterations_update_of_every_sender),
        cmocka_unit_test(the_order_of_arrival_does_not_change_a_bit),
        cmocka_unit_test(backup_waits_for_all_but_some_and_takes_what_else_is_there),
        cmocka_unit_test(staleness_takes_the_newest_and_weighs_it_by_its_age),
        cmocka_unit_test(both_want_all_but_some_to_be_young_enough),
        cmocka_unit_test(repeated_and_late_updates_change_nothing),
        cmocka_unit_test(what_is_no_update_of_a_sender_is_left_out),
        cmocka_unit_test(the_queue_holds_max_gap_more_iterations_of_each_sender),
        cmocka_unit_test(who_sends_further_ahead_than_its_tokens_allow_is_not_heard),
        cmocka_unit_test(parameters_go_to_all_receivers_but_those_past_them),
        cmocka_unit_test(with_staleness_a_receiver_must_be_further_past),
        cmocka_unit_test(notify_ack_sends_when_the_last_was_used_by_all),
        cmocka_unit_test(tokens_bound_the_gap_and_keep_their_identity),
        cmocka_unit_test(the_last_token_is_waited_for_by_name),
        cmocka_unit_test(a_jump_ends_at_the_slowest_receiver),
        cmocka_unit_test(a_jump_renews_the_parameters_and_tells_by_tokens),
        cmocka_unit_test(the_memory_of_old_parameters_is_used_again),
    };

    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
