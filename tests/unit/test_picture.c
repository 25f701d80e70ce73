/* Pictures of a running job: they arrive as they were drawn, and bytes that are none are refused without harm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "runtime/cluster/picture.h"

static rbt_picture sample(void)
{
    rbt_picture picture = {.phase = RBT_PICTURE_RUNNING,
                           .elapsed_ns = 12345678901,
                           .bytes = 77,
                           .messages = 5,
                           .loss = 0.25,
                           .title = "lr on data.svm, ssp with staleness 3, rule dyn"};
    const rbt_picture_process processes[] = {{.state = RBT_PICTURE_READY, .host = "a"},
                                             {.state = RBT_PICTURE_READY, .workers = 2, .host = "b"},
                                             {.state = RBT_PICTURE_LOST, .first_worker = 2, .workers = 1, .host = "c"},
                                             {.state = RBT_PICTURE_MISSING, .servers = 1}};
    const rbt_picture_worker workers[] = {
        {.clock = 9, .rows = 900, .compute_ns = 4, .wait_ns = 3, .communication_ns = 2, .waiting_ns = 1},
        {.clock = 7, .rows = 700},
        {.clock = 2, .rows = 200}};

    for (size_t i = 0; i < 4; i++)
        rbt_array_push(&picture.processes, processes[i]);
    for (size_t i = 0; i < 3; i++)
        rbt_array_push(&picture.workers, workers[i]);
    return picture;
}

static void picture_arrives_as_it_was_drawn(void **state)
{
    rbt_picture drawn = sample(), seen;
    rbt_pack pack = {0}, again = {0};
    rbt_unpack unpack;

    (void)state;
    rbt_picture_pack(&drawn, &pack);
    unpack = rbt_unpack_of(pack.at, pack.count);
    assert_true(rbt_picture_unpack(&unpack, &seen));
    rbt_picture_pack(&seen, &again);
    assert_int_equal(pack.count, again.count);
    assert_memory_equal(pack.at, again.at, pack.count);
    assert_int_equal(seen.workers.at[1].clock, 7);
    assert_string_equal(seen.processes.at[2].host, "c");
    rbt_picture_deinit(&drawn);
    rbt_picture_deinit(&seen);
    rbt_array_free(&pack);
    rbt_array_free(&again);
}

static void end_of_a_job_arrives_with_its_reason(void **state)
{
    rbt_picture drawn = {.phase = RBT_PICTURE_OVER, .loss = NAN}, seen;
    rbt_pack pack = {0};
    rbt_unpack unpack;

    (void)state;
    rbt_fail(&drawn.end, RBT_E_LOST, "rank 2 was lost\033[2J");
    rbt_picture_pack(&drawn, &pack);
    unpack = rbt_unpack_of(pack.at, pack.count);
    assert_true(rbt_picture_unpack(&unpack, &seen));
    assert_int_equal(seen.end.code, RBT_E_LOST);
    assert_string_equal(seen.end.text, "rank 2 was lost?[2J"); /* nothing moves a terminal's cursor */
    assert_true(isnan(seen.loss));
    rbt_picture_deinit(&seen);
    rbt_array_free(&pack);
}

static void truncated_picture_is_none(void **state)
{
    rbt_picture drawn = sample(), seen;
    rbt_pack pack = {0};

    (void)state;
    rbt_picture_pack(&drawn, &pack);
    for (size_t n = 0; n < pack.count; n++) {
        rbt_unpack unpack = rbt_unpack_of(pack.at, n);

        assert_false(rbt_picture_unpack(&unpack, &seen));
        assert_null(seen.workers.at);
    }
    rbt_picture_deinit(&drawn);
    rbt_array_free(&pack);
}

static void damaged_picture_is_refused_or_shown_without_harm(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_picture drawn = sample();
    rbt_pack pack = {0};

    (void)state;
    rbt_picture_pack(&drawn, &pack);
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)rbt_rng_below(&rng, pack.count);
        uint8_t old = pack.at[at];
        rbt_unpack unpack = rbt_unpack_of(pack.at, pack.count);
        rbt_picture seen;

        pack.at[at] = (uint8_t)rbt_rng_below(&rng, 256);
        if (rbt_picture_unpack(&unpack, &seen)) {
            uint32_t awaited = rbt_picture_awaited(&seen);

            assert_true(awaited == UINT32_MAX || awaited < seen.workers.count);
            for (uint32_t m = 0; m < seen.workers.count; m++)
                (void)rbt_picture_home(&seen, m);
            rbt_picture_deinit(&seen);
        }
        pack.at[at] = old;
    }
    rbt_picture_deinit(&drawn);
    rbt_array_free(&pack);
}

static void the_slowest_at_work_is_awaited(void **state)
{
    rbt_picture picture = sample();

    (void)state;
    assert_int_equal(rbt_picture_awaited(&picture), 1); /* 2 is slower and lost, 0 waits itself */
    picture.workers.at[1].waiting_ns = 5;
    assert_int_equal(rbt_picture_awaited(&picture), UINT32_MAX);
    picture.workers.at[1].waiting_ns = 0;
    picture.workers.at[2].clock = 8;
    picture.processes.at[2].state = RBT_PICTURE_AWAY;
    assert_int_equal(rbt_picture_awaited(&picture), 2); /* it is to come back, though 1 is slower */
    picture.processes.at[2].state = RBT_PICTURE_LOST;
    assert_ptr_equal(rbt_picture_home(&picture, 2), &picture.processes.at[2]);
    assert_null(rbt_picture_home(&picture, 3));
    rbt_picture_deinit(&picture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picture_arrives_as_it_was_drawn),
        cmocka_unit_test(end_of_a_job_arrives_with_its_reason),
        cmocka_unit_test(truncated_picture_is_none),
        cmocka_unit_test(damaged_picture_is_refused_or_shown_without_harm),
        cmocka_unit_test(the_slowest_at_work_is_awaited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
