/* Proves src/runtime/sim_queue.c: events come out by time, and in the order they were put in when times are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "runtime/sim_queue.h"

static void events_come_by_time_and_ties_in_order_of_putting(void **state)
{
    static const uint64_t times[] = {5, 3, 5, 1, 3, 5, 0, 5};
    static const uint32_t expected[] = {6, 3, 1, 4, 0, 2, 5, 7};
    rbt_sim_queue queue = {0};
    rbt_sim_event event;

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        rbt_sim_queue_put(&queue, (rbt_sim_event){.time_ns = times[i], .kind = RBT_SIM_WAKE, .worker = i});
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(rbt_sim_queue_take(&queue, &event));
        assert_int_equal(event.worker, expected[i]);
    }
    assert_false(rbt_sim_queue_take(&queue, &event));
    rbt_sim_queue_deinit(&queue);
}

static void random_puts_and_takes_stay_in_order(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_sim_queue queue = {0};
    rbt_sim_event event;
    uint64_t now = 0, last_order = 0, put = 0, taken = 0;

    (void)state;
    for (int step = 0; step < 20000; step++) {
        if (rbt_rng_below(&rng, 3) > 0) { /* never into the past */
            rbt_sim_queue_put(&queue, (rbt_sim_event){.time_ns = now + rbt_rng_below(&rng, 20)});
            put++;
        } else if (rbt_sim_queue_take(&queue, &event)) {
            taken++;
            assert_true(event.time_ns > now || (event.time_ns == now && (event.order > last_order || taken == 1)));
            now = event.time_ns;
            last_order = event.order;
        }
    }
    while (rbt_sim_queue_take(&queue, &event)) {
        taken++;
        assert_true(event.time_ns > now || (event.time_ns == now && event.order > last_order));
        now = event.time_ns;
        last_order = event.order;
    }
    assert_int_equal(put, taken);
    rbt_sim_queue_deinit(&queue);
}

static void messages_left_in_the_queue_are_destroyed(void **state)
{
    rbt_sim_queue queue = {0};

    (void)state; /* the leak checker is the judge */
    for (uint64_t i = 0; i < 5; i++)
        rbt_sim_queue_put(&queue, (rbt_sim_event){.time_ns = i, .message = rbt_message_create(RBT_MSG_STOP, 0, 1)});
    rbt_sim_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_and_ties_in_order_of_putting),
        cmocka_unit_test(random_puts_and_takes_stay_in_order),
        cmocka_unit_test(messages_left_in_the_queue_are_destroyed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
