/* Proves src/runtime/check_hop.c: sound peers pass, and every complaint can be provoked by a peer that was doctored. */
#include "unit/pond.h"

#include <string.h>

#include "runtime/check_hop.h"

typedef struct checked {
    pond p;
    rbt_checker *report;
    rbt_hop_checker *checker;
} checked;

static void on_sent(void *context, const rbt_message *message)
{
    if (message->type == RBT_MSG_TOKEN)
        rbt_hop_checker_sent(context, message);
}

static void on_given(void *context, const rbt_message *message)
{
    if (message->type == RBT_MSG_TOKEN)
        rbt_hop_checker_delivered(context, message);
}

static void begin(checked *c, rbt_graph_kind kind, uint32_t workers, rbt_hop like)
{
    pond_init(&c->p, kind, workers, like);
    c->report = rbt_checker_create(&c->p.topology);
    c->checker = rbt_hop_checker_create(&c->p.topology, c->report);
    c->p.context = c->checker;
    c->p.on_sent = on_sent;
    c->p.on_given = on_given;
}

static void end(checked *c)
{
    rbt_hop_checker_destroy(c->checker);
    rbt_checker_destroy(c->report);
    pond_deinit(&c->p);
}

/* After an event; those in `gone_bits` are no more. */
static const char *judge(checked *c, uint32_t gone_bits)
{
    for (uint32_t m = 0; m < c->p.topology.workers; m++)
        rbt_hop_checker_see(c->checker, m, gone_bits >> m & 1 ? NULL : &c->p.peers[m]);
    rbt_hop_checker_judge(c->checker);
    return rbt_checker_broken(c->report);
}

static void assert_complains(checked *c, const char *of)
{
    const char *broken = judge(c, 0);

    assert_non_null(broken);
    if (strstr(broken, of) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", broken, of);
}

static void sound_peers_pass(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_RING, 5, (rbt_hop){.max_gap = 2});
    for (uint32_t k = 0; k < 5; k++)
        for (uint32_t m = 0; m < 5; m++) {
            pond_send(&c.p, m);
            pond_quiet(&c.p);
            assert_null(judge(&c, 0));
            if (m < 4)
                continue;
            for (uint32_t i = 0; i < 5; i++) {
                assert_true(pond_reduce(&c.p, i, NULL));
                pond_enter(&c.p, i);
                assert_null(judge(&c, 0));
            }
            pond_quiet(&c.p);
        }
    assert_int_equal(rbt_hop_checker_gap(c.checker), 1);
    end(&c);
}

/* Of worker 0 against all others in a ring of 5, in the first iteration that breaks Table 1. */
static void assert_gap_ends_at(rbt_hop like, uint64_t iteration)
{
    for (uint64_t k = iteration - 1; k <= iteration; k++) {
        checked c;

        begin(&c, RBT_GRAPH_RING, 5, like);
        assert_null(judge(&c, 0));
        for (uint64_t done = 0; done + 1 < iteration; done++)
            pond_enter(&c.p, 0); /* up to the bound: by tokens alone it may */
        c.p.peers[0].iteration = k;
        if (k < iteration)
            assert_null(judge(&c, 0));
        else
            assert_complains(&c, "worker 0 is in iteration");
        end(&c);
    }
}

static void every_variants_bound_is_known(void **state)
{
    (void)state;
    assert_gap_ends_at((rbt_hop){0}, 2);
    assert_gap_ends_at((rbt_hop){.notify_ack = true}, 2);
    assert_gap_ends_at((rbt_hop){.staleness = 3}, 5);
    assert_gap_ends_at((rbt_hop){.staleness = 3, .max_gap = 2}, 3);
    assert_gap_ends_at((rbt_hop){.backup = 1, .max_gap = 4}, 5);
}

static void a_path_through_one_that_is_gone_does_not_bind(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_RING, 4, (rbt_hop){0});
    assert_null(judge(&c, 0));
    c.p.peers[0].iteration = 3; /* 1 and 3 are gone: 2 is no longer connected */
    assert_null(judge(&c, 1u << 1 | 1u << 3));
    end(&c);
}

static void a_token_that_was_never_given_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_RING, 4, (rbt_hop){.backup = 1, .max_gap = 2});
    pond_give(&c.p, 0, note_by_hand(RBT_MSG_TOKEN, 1, 1));
    assert_complains(&c, "a token of worker 1 for iteration 1 came that it never put in");
    end(&c);
}

static void a_token_that_is_not_there_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_RING, 4, (rbt_hop){.backup = 1, .max_gap = 2});
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t m = 0; m < 4; m++)
            pond_enter(&c.p, m); /* and no token is delivered */
    assert_null(judge(&c, 0));
    c.p.peers[0].neighbours.at[1].tokens.size++;
    assert_complains(&c,
                     "TokenQ(1->0) has 1 tokens and 2 are under way, but worker 1 is in iteration 2 and worker 0 in 2");
    end(&c);
}

static void updates_that_cannot_be_there_are_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1, .max_gap = 2});
    pond_give(&c.p, 0, update_by_hand(1, 1, 0)); /* from the future */
    assert_complains(&c, "has an update of iteration 1 of worker 1, which is in 0");
    end(&c);

    begin(&c, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1});
    pond_give(&c.p, 0, update_by_hand(1, 0, 0));
    c.p.peers[0].iteration = 1; /* without discarding */
    assert_complains(&c, "worker 0 in iteration 1 keeps an update of 0");
    end(&c);

    begin(&c, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1});
    for (uint64_t k = 0; k <= 1; k++)
        pond_give(&c.p, 0, update_by_hand(1, k, 0));
    c.p.peers[1].iteration = 1;
    assert_null(judge(&c, 0));
    c.p.peers[0].neighbours.at[1].came.at[1].iteration = 0;
    assert_complains(&c, "in a wrong place");
    end(&c);

    begin(&c, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.backup = 1});
    pond_give(&c.p, 0, update_by_hand(1, 0, 0));
    c.p.peers[0].neighbours.at[1].came.count = 2;
    assert_complains(&c, "worker 0 counts 2 updates of worker 1 and has 1");
    c.p.peers[0].neighbours.at[1].came.count = 1;
    end(&c);
}

static void an_update_sent_before_the_last_was_used_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, RBT_GRAPH_COMPLETE, 3, (rbt_hop){.notify_ack = true});
    pond_give(&c.p, 0, update_by_hand(1, 0, 0));
    c.p.peers[1].iteration = 1;
    assert_null(judge(&c, 0));
    pond_give(&c.p, 0, update_by_hand(1, 1, 0));
    assert_complains(&c, "worker 1 sent worker 0 an update before the last one was used");
    end(&c);
}

static void a_jump_past_a_receiver_is_noticed(void **state)
{
    static const rbt_hop like = {.backup = 1, .max_gap = 5, .skip = 9, .skip_trigger = 2};

    (void)state;
    for (uint32_t further = 0; further < 2; further++) {
        checked c;

        begin(&c, RBT_GRAPH_COMPLETE, 3, like);
        for (uint32_t k = 0; k < 4; k++) {
            pond_enter(&c.p, 1);
            pond_enter(&c.p, 2);
        }
        pond_quiet(&c.p);
        assert_null(judge(&c, 0));
        pond_skip(&c.p, 0, rbt_peer_jump(&c.p.peers[0]));
        c.p.peers[0].iteration += further;
        c.p.peers[0].skipped += further;
        if (further > 0)
            assert_complains(&c, "worker 0 jumps to iteration 5, past worker 1, which is in 4");
        else
            assert_null(judge(&c, 0));
        assert_int_equal(rbt_hop_checker_jumps(c.checker), 1);
        end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_peers_pass),
        cmocka_unit_test(every_variants_bound_is_known),
        cmocka_unit_test(a_path_through_one_that_is_gone_does_not_bind),
        cmocka_unit_test(a_token_that_was_never_given_is_noticed),
        cmocka_unit_test(a_token_that_is_not_there_is_noticed),
        cmocka_unit_test(updates_that_cannot_be_there_are_noticed),
        cmocka_unit_test(an_update_sent_before_the_last_was_used_is_noticed),
        cmocka_unit_test(a_jump_past_a_receiver_is_noticed),
    };

    return cmocka_run_group_tests_name("check_hop", tests, NULL, NULL);
}
