/* Proves src/node/gossip.c: both sides end with the same average, nothing is lost or counted twice, nobody waits for one who left. */
#include "unit/pond.h"

#include "base/error.h"
#include "base/rng.h"

static uint8_t side[] = {0, 1, 0, 1}; /* a ring of four: 0 and 2 ask, 1 and 3 answer */

static void begin(pond *p)
{
    pond_init(p, RBT_GRAPH_RING, 4, (rbt_hop){.side = side, .seed = 5});
    for (uint32_t m = 0; m < 4; m++)
        pond_set(p, m, (float)(1u << m));
}

static void ask(pond *p, uint32_t m)
{
    rbt_env env = {0};
    rbt_message *message;

    rbt_gossip_begin(&p->peers[m], &env);
    while ((message = rbt_outbox_take(&env.out)) != NULL)
        rbt_outbox_put(&p->wire, message);
}

static float value(const pond *p, uint32_t m)
{
    return p->peers[m].x->f32[0];
}

static void both_end_with_the_same_average(void **state)
{
    uint32_t partner;
    float must;
    pond p;

    (void)state;
    begin(&p);
    ask(&p, 0);
    partner = p.peers[0].gossip.partner;
    assert_true(partner == 1 || partner == 3);
    assert_false(rbt_gossip_is_over(&p.peers[0]));
    assert_int_equal(rbt_peer_waits_for(&p.peers[0]), partner);
    must = (1 + value(&p, partner)) / 2;
    pond_quiet(&p);
    assert_true(rbt_gossip_is_over(&p.peers[0]));
    assert_true(value(&p, 0) == must && value(&p, partner) == must);
    assert_ptr_equal(p.peers[0].x, p.peers[partner].x); /* the very same memory */
    pond_deinit(&p);
}

static void what_answers_does_not_ask(void **state)
{
    pond p;

    (void)state;
    begin(&p);
    ask(&p, 1);
    assert_null(p.wire.first);
    assert_true(rbt_gossip_is_over(&p.peers[1]));
    pond_deinit(&p);
}

static void a_question_or_an_answer_that_comes_twice_counts_once(void **state)
{
    uint32_t partner;
    float after;
    pond p;

    (void)state;
    begin(&p);
    ask(&p, 0);
    partner = p.peers[0].gossip.partner;
    rbt_message *again = rbt_message_copy(p.wire.first), *answer;
    pond_deliver(&p, partner);
    after = value(&p, partner);
    answer = rbt_message_copy(p.wire.first);
    pond_give(&p, partner, again);
    assert_true(value(&p, partner) == after);
    assert_int_equal(pond_count(&p, partner, 0, RBT_MSG_UPDATE), 1);
    pond_quiet(&p);
    pond_set(&p, 0, 100);
    pond_give(&p, 0, answer);
    assert_true(value(&p, 0) == 100);
    pond_deinit(&p);
}

static void nobody_waits_for_one_who_left_and_who_has_left_keeps_what_it_reported(void **state)
{
    uint32_t partner;
    pond p;

    (void)state;
    begin(&p);
    ask(&p, 0);
    partner = p.peers[0].gossip.partner;
    pond_retire(&p, partner);
    float last = value(&p, partner);
    pond_quiet(&p); /* the question comes after it has left */
    assert_true(value(&p, partner) == last);
    assert_true(rbt_gossip_is_over(&p.peers[0]));
    assert_true(value(&p, 0) == 1);
    assert_false(rbt_peer_is_alone(&p.peers[0]));
    ask(&p, 0); /* there is one left to ask */
    assert_int_equal(p.peers[0].gossip.partner, 4 - partner);
    pond_give(&p, 0, view_by_hand(&p, 2, 1u << (4 - partner)));
    assert_true(rbt_gossip_is_over(&p.peers[0]));
    assert_true(rbt_peer_is_alone(&p.peers[0]));
    while (p.wire.first != NULL)
        rbt_message_destroy(rbt_outbox_take(&p.wire));
    ask(&p, 0); /* and now nobody */
    assert_null(p.wire.first);
    assert_true(rbt_gossip_is_over(&p.peers[0]));
    pond_deinit(&p);
}

static void whatever_the_order_the_sum_stays(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    uint64_t met = 0;
    pond p;

    (void)state;
    begin(&p);
    for (uint32_t step = 0; step < 2000; step++) {
        uint32_t m = (uint32_t)rbt_rng_below(&rng, 4);

        if (rbt_rng_below(&rng, 2) == 0)
            pond_deliver(&p, m);
        else if (p.peers[m].gossip.asks && rbt_gossip_is_over(&p.peers[m]))
            ask(&p, m);
    }
    pond_quiet(&p);
    assert_true(value(&p, 0) + value(&p, 1) + value(&p, 2) + value(&p, 3) > 14.999f);
    assert_true(value(&p, 0) + value(&p, 1) + value(&p, 2) + value(&p, 3) < 15.001f);
    for (uint32_t m = 0; m < 4; m++) {
        assert_true(value(&p, m) > 3.7f && value(&p, m) < 3.8f); /* all agree */
        met += p.peers[m].gossip.averaged;
    }
    assert_true(met > 200 && met % 2 == 0);
    pond_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_end_with_the_same_average),
        cmocka_unit_test(what_answers_does_not_ask),
        cmocka_unit_test(a_question_or_an_answer_that_comes_twice_counts_once),
        cmocka_unit_test(nobody_waits_for_one_who_left_and_who_has_left_keeps_what_it_reported),
        cmocka_unit_test(whatever_the_order_the_sum_stays),
    };

    return cmocka_run_group_tests_name("gossip", tests, NULL, NULL);
}
