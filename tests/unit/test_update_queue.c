/* Proves src/sync/update_queue: against a plain list under random use, and each refusal. That nothing leaks and nothing is
 * freed twice is for AddressSanitizer to see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "sync/update_queue.h"

static const uint32_t three[] = {2, 5, 9};

static rbt_update_queue make(uint64_t ahead)
{
    rbt_update_queue queue;

    assert_int_equal(rbt_update_queue_init(&queue, three, 3, ahead, NULL), RBT_OK);
    return queue;
}

static rbt_err put(rbt_update_queue *queue, uint64_t iter, uint32_t from, rbt_error *error)
{
    rbt_snap *snap = rbt_snap_create(RBT_F32, 1);
    rbt_err err;

    snap->f32[0] = (float)(iter * 100 + from);
    err = rbt_update_queue_enqueue(queue, snap, iter, from, error);
    if (err != RBT_OK)
        rbt_snap_unref(snap);
    return err;
}

static void is_update(rbt_update *update, uint64_t iter, uint32_t from)
{
    assert_true(update->iter == iter && update->from == from && update->snap->f32[0] == (float)(iter * 100 + from));
    rbt_snap_unref(update->snap);
}

static void updates_come_out_by_iteration_and_sender_whatever_the_order_of_arrival(void **state)
{
    rbt_update_queue queue = make(2);
    rbt_update out[9];

    (void)state;
    assert_int_equal(put(&queue, 1, 9, NULL), RBT_OK);
    assert_int_equal(put(&queue, 0, 9, NULL), RBT_OK);
    assert_int_equal(put(&queue, 1, 2, NULL), RBT_OK);
    assert_int_equal(put(&queue, 2, 9, NULL), RBT_OK);
    assert_int_equal(rbt_update_queue_size(&queue, RBT_ANY_ITER, RBT_ANY_SENDER), 4);
    assert_int_equal(rbt_update_queue_size(&queue, 1, RBT_ANY_SENDER), 2);
    assert_int_equal(rbt_update_queue_size(&queue, RBT_ANY_ITER, 9), 3);
    assert_int_equal(rbt_update_queue_size(&queue, 1, 5), 0);
    assert_int_equal(rbt_update_queue_size(&queue, 4, 9), 0); /* the same place as iteration 1 */
    assert_int_equal(rbt_update_queue_dequeue(&queue, 9, 1, RBT_ANY_SENDER, out), 2);
    is_update(&out[0], 1, 2);
    is_update(&out[1], 1, 9);
    assert_int_equal(rbt_update_queue_dequeue(&queue, 1, RBT_ANY_ITER, 9, out), 1);
    is_update(&out[0], 0, 9);
    assert_int_equal(rbt_update_queue_dequeue(&queue, 9, RBT_ANY_ITER, RBT_ANY_SENDER, out), 1);
    is_update(&out[0], 2, 9);
    assert_int_equal(rbt_update_queue_dequeue(&queue, 9, RBT_ANY_ITER, 7, out), 0);
    rbt_update_queue_deinit(&queue);
}

static void what_breaks_the_protocol_is_refused_and_stays_the_callers(void **state)
{
    rbt_update_queue queue = make(2);
    rbt_error error = {RBT_OK, ""};

    (void)state;
    for (uint64_t iter = 0; iter <= 2; iter++)
        for (int i = 0; i < 3; i++)
            assert_int_equal(put(&queue, iter, three[i], NULL), RBT_OK);
    assert_int_equal(queue.size, 9); /* (1 + ahead) * senders: full */
    assert_int_equal(put(&queue, 3, 2, &error), RBT_E_PROTOCOL);
    assert_non_null(strstr(error.text, "2 sent an update of iteration 3, which is more than 2 ahead"));
    assert_int_equal(put(&queue, 1, 5, &error), RBT_E_PROTOCOL);
    assert_non_null(strstr(error.text, "5 sent its update of iteration 1 twice"));
    assert_int_equal(put(&queue, 0, 3, &error), RBT_E_PROTOCOL);
    assert_non_null(strstr(error.text, "from 3, which is no in-neighbour"));
    rbt_update_queue_advance(&queue, 1, 1);
    assert_int_equal(queue.size, 6);
    assert_int_equal(put(&queue, 3, 2, &error), RBT_OK);
    assert_int_equal(queue.dropped, 3);
    rbt_update_queue_deinit(&queue);
}

static void late_updates_are_dropped_and_remembered(void **state)
{
    rbt_update_queue queue = make(2);

    (void)state;
    rbt_update_queue_advance(&queue, 7, 7);
    assert_int_equal(rbt_update_queue_seen(&queue, 5), 0);
    assert_int_equal(put(&queue, 6, 5, NULL), RBT_OK);
    assert_int_equal(queue.size, 0);
    assert_int_equal(queue.dropped, 1);
    assert_int_equal(rbt_update_queue_seen(&queue, 5), 7);
    assert_int_equal(rbt_update_queue_seen(&queue, 4), 0);
    rbt_update_queue_deinit(&queue);
}

static void of_stale_updates_the_newest_of_a_sender_counts(void **state)
{
    rbt_update_queue queue = make(2);
    rbt_update out;

    (void)state;
    rbt_update_queue_advance(&queue, 7, 4); /* staleness 3 */
    assert_int_equal(put(&queue, 5, 2, NULL), RBT_OK);
    assert_int_equal(put(&queue, 6, 2, NULL), RBT_OK);
    assert_int_equal(put(&queue, 8, 2, NULL), RBT_OK); /* takes the place of 5 */
    assert_int_equal(put(&queue, 3, 9, NULL), RBT_OK); /* too old */
    assert_int_equal(put(&queue, 5, 2, NULL), RBT_OK); /* again, and 8 has its place */
    assert_int_equal(queue.size, 2);
    assert_true(rbt_update_queue_newest(&queue, 2, &out));
    is_update(&out, 8, 2);
    assert_false(rbt_update_queue_newest(&queue, 2, &out));
    assert_false(rbt_update_queue_newest(&queue, 9, &out));
    assert_false(rbt_update_queue_newest(&queue, 3, &out));
    assert_int_equal(queue.size, 0);
    rbt_update_queue_deinit(&queue);
}

static void a_queue_of_other_neighbours_keeps_what_is_from_those_who_stay(void **state)
{
    const uint32_t now[] = {1, 5, 9, 12};
    rbt_update_queue queue = make(1);
    rbt_update out[4];

    (void)state;
    assert_int_equal(put(&queue, 0, 2, NULL), RBT_OK);
    assert_int_equal(put(&queue, 1, 5, NULL), RBT_OK);
    assert_int_equal(put(&queue, 0, 9, NULL), RBT_OK);
    assert_int_equal(rbt_update_queue_rewire(&queue, now, 4, NULL), RBT_OK);
    assert_int_equal(queue.size, 2);
    assert_int_equal(queue.dropped, 1);
    assert_int_equal(rbt_update_queue_seen(&queue, 5), 2);
    assert_int_equal(put(&queue, 0, 12, NULL), RBT_OK);
    assert_int_equal(put(&queue, 0, 2, NULL), RBT_E_PROTOCOL);
    assert_int_equal(rbt_update_queue_dequeue(&queue, 4, RBT_ANY_ITER, RBT_ANY_SENDER, out), 3);
    is_update(&out[0], 0, 9);
    is_update(&out[1], 0, 12);
    is_update(&out[2], 1, 5);
    rbt_update_queue_deinit(&queue);
}

static void a_queue_too_large_is_refused(void **state)
{
    rbt_update_queue queue;
    rbt_error error = {RBT_OK, ""};

    (void)state;
    assert_int_equal(rbt_update_queue_init(&queue, three, 3, RBT_UNBOUNDED, &error), RBT_E_LIMIT);
    assert_int_equal(rbt_update_queue_init(&queue, three, 3, RBT_UPDATE_QUEUE_MAX / 3, &error), RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "--max-gap"));
}

/* Standard use: a plain list [iteration][sender] of what is there. */
static void random_use_agrees_with_a_plain_list(void **state)
{
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 100; round++) {
        uint64_t ahead = rbt_rng_below(&rng, 6), now = 0;
        rbt_update_queue queue = make(ahead);
        bool there[2000][3] = {{false}};

        for (int step = 0; step < 300; step++) {
            uint64_t iter = now + rbt_rng_below(&rng, ahead + 3);
            uint32_t s = (uint32_t)rbt_rng_below(&rng, 3), expected = 0;
            rbt_update out[3];

            iter = iter > 0 ? iter - 1 : 0; /* sometimes late, sometimes too far ahead */
            rbt_err err = put(&queue, iter, three[s], NULL);
            assert_int_equal(err, iter > now + ahead || (iter >= now && there[iter][s]) ? RBT_E_PROTOCOL : RBT_OK);
            there[iter][s] = there[iter][s] || (err == RBT_OK && iter >= now);
            for (uint32_t k = 0; k < 3; k++)
                expected += there[now][k];
            assert_int_equal(rbt_update_queue_size(&queue, now, RBT_ANY_SENDER), expected);
            assert_true(queue.size <= (1 + ahead) * 3 && queue.peak <= (1 + ahead) * 3);
            if (rbt_rng_below(&rng, 4) != 0)
                continue;
            assert_int_equal(rbt_update_queue_dequeue(&queue, 3, now, RBT_ANY_SENDER, out), expected);
            for (uint32_t k = 0, at = 0; k < 3; k++)
                if (there[now][k])
                    is_update(&out[at++], now, three[k]);
            now += 1 + rbt_rng_below(&rng, 2);
            rbt_update_queue_advance(&queue, now, now);
        }
        rbt_update_queue_deinit(&queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_come_out_by_iteration_and_sender_whatever_the_order_of_arrival),
        cmocka_unit_test(what_breaks_the_protocol_is_refused_and_stays_the_callers),
        cmocka_unit_test(late_updates_are_dropped_and_remembered),
        cmocka_unit_test(of_stale_updates_the_newest_of_a_sender_counts),
        cmocka_unit_test(a_queue_of_other_neighbours_keeps_what_is_from_those_who_stay),
        cmocka_unit_test(a_queue_too_large_is_refused),
        cmocka_unit_test(random_use_agrees_with_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
