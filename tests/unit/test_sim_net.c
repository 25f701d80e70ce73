/* Proves src/runtime/sim_net.c: bandwidth and latency add up, links are shared in both directions, messages of one pair
 * stay in order whatever the jitter and the faults, and each fault does what it says. Times are in nanoseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/sim_net.h"

/* 8 Mbit/s: a byte takes a microsecond. */
static rbt_sim_options options_of(uint64_t latency_ns)
{
    return (rbt_sim_options){.seed = 1, .net = {.bits_per_second = 8e6, .latency_ns = latency_ns}};
}

static void a_message_takes_its_bytes_and_the_latency(void **state)
{
    rbt_sim_options options = options_of(500);
    rbt_sim_net net;

    (void)state;
    rbt_sim_net_init(&net, &options, 3);
    assert_int_equal(rbt_sim_net_send(&net, 0, 1, 100, 1000), 1000 + 100000 + 500);
    assert_int_equal(rbt_sim_net_receive(&net, 0, 1, 100, 101500), 101500); /* the bits came in while they were sent */
    rbt_sim_net_deinit(&net);
}

static void a_sender_shares_its_link(void **state)
{
    rbt_sim_options options = options_of(0);
    rbt_sim_net net;

    (void)state;
    rbt_sim_net_init(&net, &options, 3);
    assert_int_equal(rbt_sim_net_send(&net, 0, 1, 100, 0), 100000);
    assert_int_equal(rbt_sim_net_send(&net, 0, 2, 50, 0), 150000); /* to somebody else, behind the first */
    assert_int_equal(rbt_sim_net_send(&net, 1, 2, 50, 0), 50000);  /* somebody else's link is free */
    assert_int_equal(rbt_sim_net_send(&net, 0, 1, 10, 900000), 910000);
    rbt_sim_net_deinit(&net);
}

static void a_receiver_shares_its_link_and_its_attention(void **state)
{
    rbt_sim_options options = options_of(0);
    rbt_sim_net net;

    (void)state;
    options.cost = (rbt_cost){.byte_ns = 2, .message_ns = 300};
    rbt_sim_net_init(&net, &options, 4);
    assert_int_equal(rbt_sim_net_receive(&net, 0, 3, 100, 100000), 100000 + 200 + 300);
    /* another one, from another sender at the same moment: its bits queue up at the receiver */
    assert_int_equal(rbt_sim_net_receive(&net, 0, 3, 100, 100000), 100500 + 100000 + 500);
    assert_int_equal(rbt_sim_net_receive(&net, 0, 2, 100, 100000), 100500); /* elsewhere nothing queues */
    rbt_sim_net_deinit(&net);
}

static void without_a_rate_bytes_take_no_time(void **state)
{
    rbt_sim_options options = {.seed = 1, .net = {.latency_ns = 7}};
    rbt_sim_net net;

    (void)state;
    rbt_sim_net_init(&net, &options, 2);
    assert_int_equal(rbt_sim_net_send(&net, 0, 1, 1000000, 10), 17);
    rbt_sim_net_deinit(&net);
}

/* Sends many messages over one pair; returns how many came later than they would have without `options`' faults. */
static size_t send_many(const rbt_sim_options *options, uint64_t *last)
{
    rbt_sim_net net;
    size_t late = 0;

    *last = 0;
    rbt_sim_net_init(&net, options, 2);
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t arrival = rbt_sim_net_send(&net, 0, 1, 1, i * 1000000);

        assert_true(arrival >= *last); /* in order */
        assert_true(arrival >= i * 1000000 + 1000 + options->net.latency_ns);
        late += arrival > i * 1000000 + 1000 + options->net.latency_ns;
        *last = arrival;
    }
    rbt_sim_net_deinit(&net);
    return late;
}

static void pairs_stay_in_order_under_jitter_drops_and_delays(void **state)
{
    rbt_sim_options jitter = options_of(100), drop = options_of(100), delay = options_of(100000);
    uint64_t last;
    size_t late;

    (void)state;
    jitter.net.jitter_ns = 5000000;
    drop.faults.drop = 0.1;
    delay.faults.delay = 0.1;
    assert_true(send_many(&jitter, &last) > 4900);
    late = send_many(&drop, &last);
    assert_in_range(late, 500, 5000 / 2); /* a loss holds up those behind it */
    late = send_many(&delay, &last);
    assert_in_range(late, 400, 5000 / 2);
}

static void a_lost_message_gets_through_in_the_end(void **state)
{
    rbt_sim_options options = options_of(0);
    uint64_t last;

    (void)state;
    options.faults.drop = 1; /* the worst link there is */
    assert_int_equal(send_many(&options, &last), 5000);
    assert_true(last < 5000 * 1000000ull + 1000000000);
}

static void jitter_stays_within_its_bound_and_depends_on_the_seed(void **state)
{
    rbt_sim_options options = options_of(1000);
    uint64_t sum[2] = {0, 0};

    (void)state;
    options.net.jitter_ns = 300;
    for (int seed = 0; seed < 2; seed++) {
        rbt_sim_net net;

        options.seed = (uint64_t)seed;
        rbt_sim_net_init(&net, &options, 2);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t on_way = rbt_sim_net_send(&net, 0, 1, 0, i * 10000) - i * 10000;

            assert_in_range(on_way, 1000, 1300);
            sum[seed] = sum[seed] * 31 + on_way;
        }
        rbt_sim_net_deinit(&net);
    }
    assert_true(sum[0] != sum[1]);
}

static void duplicates_come_after_the_original(void **state)
{
    rbt_sim_options options = options_of(1000);
    rbt_sim_net net;
    uint64_t again;
    int repeated = 0;

    (void)state;
    rbt_sim_net_init(&net, &options, 2);
    assert_false(rbt_sim_net_repeats(&net, 5, &again));
    options.faults.duplicate = 0.25;
    for (int i = 0; i < 4000; i++)
        if (rbt_sim_net_repeats(&net, 777, &again)) {
            assert_true(again >= 777);
            repeated++;
        }
    assert_in_range(repeated, 800, 1200);
    rbt_sim_net_deinit(&net);
}

static void a_partition_holds_messages_until_it_ends_and_then_lets_all_through(void **state)
{
    rbt_sim_options options = options_of(0);
    const rbt_partition *partition;
    rbt_node inside = 0, outside = 0;
    rbt_sim_net net;

    (void)state;
    options.faults.partitions = 1;
    options.faults.within_ns = 1000000000;
    rbt_sim_net_init(&net, &options, 40);
    partition = &net.partitions.at[0];
    while (!partition->cut_off[inside])
        inside++;
    while (partition->cut_off[outside])
        outside++;
    assert_true(0 < partition->from_ns && partition->from_ns < partition->to_ns);
    assert_int_equal(rbt_sim_net_send(&net, outside, inside, 0, partition->from_ns - 1), partition->from_ns - 1);
    assert_int_equal(rbt_sim_net_send(&net, inside, outside, 0, partition->from_ns), partition->to_ns);
    assert_int_equal(rbt_sim_net_send(&net, outside, inside, 0, partition->to_ns - 1), partition->to_ns);
    assert_int_equal(rbt_sim_net_send(&net, inside, inside, 0, partition->from_ns), partition->from_ns);
    assert_int_equal(rbt_sim_net_send(&net, inside, outside, 0, partition->to_ns + 5), partition->to_ns + 5);
    rbt_sim_net_deinit(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_takes_its_bytes_and_the_latency),
        cmocka_unit_test(a_sender_shares_its_link),
        cmocka_unit_test(a_receiver_shares_its_link_and_its_attention),
        cmocka_unit_test(without_a_rate_bytes_take_no_time),
        cmocka_unit_test(pairs_stay_in_order_under_jitter_drops_and_delays),
        cmocka_unit_test(a_lost_message_gets_through_in_the_end),
        cmocka_unit_test(jitter_stays_within_its_bound_and_depends_on_the_seed),
        cmocka_unit_test(duplicates_come_after_the_original),
        cmocka_unit_test(a_partition_holds_messages_until_it_ends_and_then_lets_all_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
