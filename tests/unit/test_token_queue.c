/* Proves src/sync/token_queue: taking, putting, and how far a peer may jump. The identity over random graphs is in
 * test_gap.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/token_queue.h"

static void nobody_takes_what_is_not_there(void **state)
{
    rbt_token_queue queue = rbt_token_queue_of(3);

    (void)state;
    assert_true(rbt_token_queue_holds(&queue, 0, 0, 0));
    assert_true(rbt_token_queue_take(&queue, 2));
    assert_true(rbt_token_queue_holds(&queue, 0, 2, 0));
    assert_false(rbt_token_queue_take(&queue, 2));
    assert_int_equal(queue.size, 1);
    assert_true(rbt_token_queue_take(&queue, 1));
    assert_false(rbt_token_queue_take(&queue, 1));
    assert_true(rbt_token_queue_holds(&queue, 0, 3, 0));
    assert_true(rbt_token_queue_holds(&queue, 2, 3, 2)); /* two are under way */
    rbt_token_queue_put(&queue, 2);
    assert_true(rbt_token_queue_holds(&queue, 2, 3, 0));
    assert_false(rbt_token_queue_holds(&queue, 3, 3, 0));
}

static void a_jump_ends_at_the_slowest_receiver(void **state)
{
    /* three receivers that are 6, 4 and 9 iterations ahead */
    rbt_token_queue queues[] = {{5, 11}, {5, 9}, {5, 14}};

    (void)state;
    assert_int_equal(rbt_token_queue_jump(queues, 3, 10, 0), 4);
    assert_int_equal(rbt_token_queue_jump(queues, 3, 2, 0), 2);
    assert_int_equal(rbt_token_queue_jump(queues, 3, 10, 3), 4);
    assert_int_equal(rbt_token_queue_jump(queues, 3, 10, 4), 0); /* must be more than the trigger behind */
    assert_int_equal(rbt_token_queue_jump(queues, 3, 0, 0), 0);
    assert_int_equal(rbt_token_queue_jump(queues, 0, 10, 0), 0);
    queues[1].size = 3; /* behind: nothing to catch up with */
    assert_int_equal(rbt_token_queue_jump(queues, 3, 10, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_what_is_not_there),
        cmocka_unit_test(a_jump_ends_at_the_slowest_receiver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
