/* Proves src/sync/update_queue: against a plain list under random use, and each refusal. That nothing leaks and nothing is freed
 * twice is for AddressSanitizer to see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "sync/update_queue.h"

static bool put(rbt_update_queue *queue, uint64_t iteration)
{
    rbt_snap *x = rbt_snap_create(RBT_F32, 1);
    bool taken;

    x->f32[0] = (float)iteration;
    taken = rbt_update_queue_put(queue, iteration, x);
    rbt_snap_unref(x);
    return taken;
}

static void updates_are_found_by_iteration_whatever_the_order_of_arrival(void **state)
{
    static const uint64_t order[] = {7, 5, 12, 6, 9};
    rbt_update_queue queue = {0};

    (void)state;
    assert_null(rbt_update_queue_get(&queue, 0));
    assert_null(rbt_update_queue_newest(&queue));
    for (size_t i = 0; i < 5; i++)
        assert_true(put(&queue, order[i]));
    assert_int_equal(queue.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(rbt_update_queue_get(&queue, order[i])->x->f32[0] == (float)order[i]);
    assert_null(rbt_update_queue_get(&queue, 8));
    assert_null(rbt_update_queue_get(&queue, 7 + queue.room)); /* the same place */
    assert_int_equal(rbt_update_queue_newest(&queue)->iteration, 12);
    rbt_update_queue_deinit(&queue);
}

static void what_comes_twice_or_from_nowhere_is_refused(void **state)
{
    rbt_update_queue queue = {0};

    (void)state;
    assert_true(put(&queue, 3));
    assert_false(put(&queue, 3));
    assert_false(put(&queue, 3 + RBT_UPDATE_QUEUE_MAX));
    assert_false(put(&queue, UINT64_MAX));
    assert_int_equal(queue.count, 1);
    assert_true(queue.room < 100);
    rbt_update_queue_deinit(&queue);
}

static void dropping_tells_what_was_never_used(void **state)
{
    rbt_update_queue queue = {0};

    (void)state;
    for (uint64_t k = 0; k < 6; k++)
        assert_true(put(&queue, k));
    rbt_update_queue_get(&queue, 1)->used = true;
    assert_int_equal(rbt_update_queue_drop(&queue, 3), 2);
    assert_int_equal(queue.count, 3);
    assert_int_equal(rbt_update_queue_drop(&queue, 3), 0);
    assert_int_equal(rbt_update_queue_drop(&queue, 1000), 3);
    assert_null(rbt_update_queue_newest(&queue));
    assert_true(put(&queue, 70000)); /* far from where it was, but nothing is there */
    assert_int_equal(rbt_update_queue_newest(&queue)->iteration, 70000);
    rbt_update_queue_deinit(&queue);
}

static void random_use_agrees_with_a_plain_list(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 50; round++) {
        uint64_t ahead = 1 + rbt_rng_below(&rng, 20), now = 0;
        rbt_update_queue queue = {0};
        bool there[4000] = {false};

        for (int step = 0; step < 400; step++) {
            uint64_t k = now + rbt_rng_below(&rng, ahead), newest = 0;
            size_t count = 0;

            assert_int_equal(put(&queue, k), !there[k]);
            there[k] = true;
            if (rbt_rng_below(&rng, 3) == 0) {
                size_t dropped = 0;

                now += 1 + rbt_rng_below(&rng, 4);
                for (uint64_t i = 0; i < now; i++) {
                    dropped += there[i];
                    there[i] = false;
                }
                assert_int_equal(rbt_update_queue_drop(&queue, now), dropped);
            }
            for (uint64_t i = 0; i < 4000; i++) {
                count += there[i];
                newest = there[i] ? i : newest;
            }
            assert_int_equal(queue.count, count);
            if (count > 0)
                assert_int_equal(rbt_update_queue_newest(&queue)->iteration, newest);
            for (uint64_t i = now; i < now + 2 * ahead; i++)
                assert_int_equal(rbt_update_queue_get(&queue, i) != NULL, there[i]);
        }
        rbt_update_queue_deinit(&queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_found_by_iteration_whatever_the_order_of_arrival),
        cmocka_unit_test(what_comes_twice_or_from_nowhere_is_refused),
        cmocka_unit_test(dropping_tells_what_was_never_used),
        cmocka_unit_test(random_use_agrees_with_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
