/* Proves src/node/allreduce.c: everybody ends with the same sum, whatever the order of delivery, of vectors of any length, also shorter
 * than there are workers; what comes twice, too early or from another than the one before is left out. */
#include "unit/pond.h"

#include <string.h>

#include "base/error.h"
#include "base/rng.h"

#define MOST  7
#define LONG  20
#define TURNS 3

typedef struct ring {
    rbt_topology topology;
    rbt_hop hop;
    rbt_allreduce of[MOST];
    rbt_outbox wire;
} ring;

static void ring_init(ring *r, uint32_t workers)
{
    *r = (ring){.hop = {.allreduce = true}};
    r->topology = (rbt_topology){.workers = workers, .hop = &r->hop};
    for (uint32_t m = 0; m < workers; m++)
        rbt_allreduce_init(&r->of[m], &r->topology, m);
}

static void ring_deinit(ring *r)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&r->wire)) != NULL)
        rbt_message_destroy(message);
    for (uint32_t m = 0; m < r->topology.workers; m++)
        rbt_allreduce_deinit(&r->of[m]);
}

/* Lets one go on; what it says goes onto the wire, sometimes twice. */
static bool go_on(ring *r, uint32_t m, rbt_rng *rng)
{
    rbt_env env = {0};
    bool ready = rbt_allreduce_go_on(&r->of[m], 1, &env);
    rbt_message *message;

    while ((message = rbt_outbox_take(&env.out)) != NULL) {
        if (rbt_rng_below(rng, 4) == 0)
            rbt_outbox_put(&r->wire, rbt_message_copy(message));
        rbt_outbox_put(&r->wire, message);
    }
    return ready;
}

/* Delivers one of the messages, any. */
static void deliver(ring *r, rbt_rng *rng)
{
    rbt_outbox rest = {0};
    rbt_message *message, *drawn = NULL;
    size_t count = 0, at;

    for (message = r->wire.first; message != NULL; message = message->next)
        count++;
    if (count == 0)
        return;
    at = (size_t)rbt_rng_below(rng, count);
    while ((message = rbt_outbox_take(&r->wire)) != NULL) {
        if (at-- == 0)
            drawn = message;
        else
            rbt_outbox_put(&rest, message);
    }
    r->wire = rest;
    rbt_allreduce_handle(&r->of[drawn->to - 1], drawn);
}

static void sum_once(ring *r, size_t n, uint64_t turn, rbt_rng *rng)
{
    uint32_t workers = r->topology.workers;
    float values[MOST][LONG] = {{0}}, must[LONG] = {0};
    bool done[MOST] = {false};
    uint32_t left = workers;

    for (uint32_t m = 0; m < workers; m++) {
        for (size_t i = 0; i < n; i++) {
            values[m][i] = (float)(100 * turn + 10 * m + i);
            must[i] += values[m][i];
        }
        rbt_allreduce_begin(&r->of[m], values[m], n);
    }
    for (uint32_t step = 0; left > 0; step++) {
        uint32_t m = (uint32_t)rbt_rng_below(rng, workers);

        assert_true(step < 100000);
        if (rbt_rng_below(rng, 2) == 0)
            deliver(r, rng);
        if (!done[m] && go_on(r, m, rng)) {
            done[m] = true;
            left--;
        }
    }
    for (uint32_t m = 0; m < workers; m++)
        assert_memory_equal(values[m], must, n * sizeof(float)); /* whole numbers: sums are exact */
}

static void everybody_ends_with_the_same_sum(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);

    (void)state;
    for (uint32_t workers = 1; workers <= MOST; workers++)
        for (size_t n = 1; n <= LONG; n += 3) {
            ring r;

            ring_init(&r, workers);
            for (uint64_t turn = 0; turn < TURNS; turn++)
                sum_once(&r, n, turn, &rng);
            ring_deinit(&r);
        }
}

static rbt_message *chunk_by_hand(uint32_t from, uint64_t request)
{
    rbt_message *chunk = rbt_message_create(RBT_MSG_CHUNK, from + 1, from + 2);

    chunk->worker = from;
    chunk->request = request;
    rbt_array_push(&chunk->parts, ((rbt_part){.snap = rbt_snap_create(RBT_F32, 1)}));
    return chunk;
}

static void chunks_of_steps_that_there_are_not_are_left_out(void **state)
{
    ring r;

    (void)state;
    ring_init(&r, 4);
    for (uint64_t step = 0; step < 100; step++)
        rbt_allreduce_handle(&r.of[2], chunk_by_hand(1, step));
    assert_int_equal(r.of[2].came.count, 6); /* 2 (4 - 1) */
    r.hop.allreduce = false;                 /* another protocol's job has none at all */
    rbt_allreduce_handle(&r.of[1], chunk_by_hand(0, 0));
    assert_int_equal(r.of[1].came.count, 0);
    ring_deinit(&r);
}

static void what_is_not_from_the_one_before_is_left_out(void **state)
{
    rbt_message *odd = rbt_message_create(RBT_MSG_CHUNK, 1, 3);
    rbt_part part = {.snap = rbt_snap_create(RBT_F32, 1)};
    ring r;

    (void)state;
    ring_init(&r, 4);
    odd->worker = 0; /* 1 is before 2 */
    rbt_array_push(&odd->parts, part);
    rbt_allreduce_handle(&r.of[2], odd);
    assert_int_equal(r.of[2].came.count, 0);
    odd = rbt_message_create(RBT_MSG_CHUNK, 2, 3); /* without values */
    odd->worker = 1;
    rbt_allreduce_handle(&r.of[2], odd);
    assert_int_equal(r.of[2].came.count, 0);
    ring_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_ends_with_the_same_sum),
        cmocka_unit_test(what_is_not_from_the_one_before_is_left_out),
        cmocka_unit_test(chunks_of_steps_that_there_are_not_are_left_out),
    };

    return cmocka_run_group_tests_name("allreduce", tests, NULL, NULL);
}
