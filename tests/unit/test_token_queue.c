/* Proves src/sync/token_queue: taking, telling, and how far a peer may jump. The identity over random graphs is in test_gap.c, and
 * after every event of a simulation in the swarm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/token_queue.h"

static void nobody_takes_what_is_not_there(void **state)
{
    rbt_token_queue queue = rbt_token_queue_of(3, 0, 0);

    (void)state;
    assert_true(rbt_token_queue_holds(&queue, 0, 0, 0));
    rbt_token_queue_take(&queue, 2);
    assert_true(rbt_token_queue_holds(&queue, 0, 2, 0));
    assert_false(rbt_token_queue_may_take(&queue, 2));
    assert_true(rbt_token_queue_may_take(&queue, 1));
    rbt_token_queue_take(&queue, 1);
    assert_false(rbt_token_queue_may_take(&queue, 1));
    assert_true(rbt_token_queue_holds(&queue, 0, 3, 0));
    assert_true(rbt_token_queue_holds(&queue, 2, 3, 2)); /* two are under way */
    rbt_token_queue_tell(&queue, 2);
    assert_true(rbt_token_queue_holds(&queue, 2, 3, 0));
    assert_false(rbt_token_queue_holds(&queue, 3, 3, 0));
    assert_int_equal(rbt_token_queue_ahead(&queue), -1);
}

static void a_token_that_comes_twice_counts_once(void **state)
{
    rbt_token_queue queue = rbt_token_queue_of(1, 0, 0);

    (void)state;
    rbt_token_queue_tell(&queue, 4);
    rbt_token_queue_tell(&queue, 4);
    rbt_token_queue_tell(&queue, 2);
    assert_int_equal(queue.size, 5);
    assert_int_equal(queue.told, 4);
}

static void one_far_behind_binds_from_the_start(void **state)
{
    rbt_token_queue queue = rbt_token_queue_of(2, 1, 7); /* a repair: it is in 1, we are in 7 */

    (void)state;
    assert_int_equal(queue.size, -4);
    assert_false(rbt_token_queue_may_take(&queue, 1));
    rbt_token_queue_tell(&queue, 6);
    assert_true(rbt_token_queue_may_take(&queue, 1));
    assert_true(rbt_token_queue_holds(&queue, 6, 7, 0));
}

static void a_jump_ends_at_the_slowest_receiver(void **state)
{
    (void)state;
    assert_int_equal(rbt_jump_length(4, 10, 2), 4);
    assert_int_equal(rbt_jump_length(4, 3, 2), 3); /* the limit is on how far it advances */
    assert_int_equal(rbt_jump_length(4, 10, 4), 4);
    assert_int_equal(rbt_jump_length(4, 10, 5), 0);
    assert_int_equal(rbt_jump_length(4, 0, 2), 0);
    assert_int_equal(rbt_jump_length(4, 1, 2), 0);
    assert_int_equal(rbt_jump_length(1, 10, 0), 0); /* a step as any other */
    assert_int_equal(rbt_jump_length(-3, 10, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_what_is_not_there),
        cmocka_unit_test(a_token_that_comes_twice_counts_once),
        cmocka_unit_test(one_far_behind_binds_from_the_start),
        cmocka_unit_test(a_jump_ends_at_the_slowest_receiver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
