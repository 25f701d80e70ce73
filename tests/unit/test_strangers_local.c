/* Proves src/runtime/cluster/session.c, join.c, meet.c and hub.c where somebody has the key and no seat: it may say little at a time,
 * is answered a few times, and what it hands over before anybody knows it is not taken in. The strangers are hubs without a session; the
 * sessions have no key, which on a Unix socket lets this user's processes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/hubs.h"

#include <string.h>

#include "base/error.h"
#include "runtime/cluster/roster.h"
#include "runtime/cluster/session_state.h"

#define SIZE       2u  /* seats: the lead's, and one more */
#define PATIENCE_S 60u /* when a test gives up */
#define MUCH       ((size_t)1 << 20)
#define FULL       32 /* times as much: more than the system's buffers hold */

static const rbt_key NO_KEY;

/* A lead that waits for one process; what it says goes to `heard`. */
static rbt_session *lead_start(hub_side *heard)
{
    const rbt_seat seats[SIZE] = {{0}, {.workers = 1}};
    rbt_session_config config = {.join_timeout_ms = PATIENCE_S * 1000, .log = {hub_side_log, heard, RBT_LOG_INFO}};
    rbt_session *lead = NULL;
    rbt_error error = {RBT_OK, ""};

    memset(heard, 0, sizeof *heard);
    pthread_mutex_init(&heard->lock, NULL);
    pthread_cond_init(&heard->changed, NULL);
    if (rbt_session_lead(&config, seats, SIZE, &lead, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return lead;
}

/* Somebody without a seat calls a session at an address. */
static void stranger_start(hub_side *s, const char *address)
{
    rbt_address there = hub_address(address);

    hub_side_start(s, hub_config(&NO_KEY, RBT_ENCRYPT_OFF, false));
    s->to = rbt_hub_dial(s->hub, &there, 0, PATIENCE_S * 1000);
    wait_for(s, s->opened == 1);
}

static void say_much(const hub_side *s, uint32_t word, size_t n)
{
    rbt_pack words = {0};

    rbt_pack_u32(&words, word);
    rbt_hub_send(s->to, rbt_frame_create(RBT_FRAME_CONTROL, words.at, words.count, rbt_alloc(n, 1), n));
    rbt_array_free(&words);
}

static void a_caller_without_a_seat_may_say_little_at_once(void **state)
{
    hub_side heard, caller;
    rbt_session *lead = lead_start(&heard);

    (void)state;
    stranger_start(&caller, rbt_session_local_address(lead));
    say_much(&caller, RBT_SAY_HELLO, RBT_STRANGER_MOST + 1);
    wait_for(&caller, caller.lost == 1);
    hub_side_stop(&caller, 0);
    rbt_session_destroy(lead);
    assert_contains(heard.log, "a frame is longer than anything this job has to say");
}

static void who_was_refused_may_not_ask_again(void **state)
{
    hub_side heard, caller;
    rbt_session *lead = lead_start(&heard);
    rbt_pack words = {0};
    rbt_seat me;

    (void)state;
    stranger_start(&caller, rbt_session_local_address(lead));
    rbt_seat_of_this(&me);
    rbt_pack_u32(&words, 9); /* there is no such rank */
    rbt_seat_pack_self(&words, &me);
    for (int i = 0; i < 2; i++)
        rbt_session_say_to(caller.to, RBT_SAY_HELLO, &words, NULL, 0);
    rbt_array_free(&words);
    wait_for(&caller, caller.lost == 1);
    assert_int_equal(caller.next, 1); /* answers */
    hub_side_stop(&caller, 0);
    rbt_session_destroy(lead);
    assert_contains(heard.log, "may not join: there is no rank 9 to join in this job, only 1 to");
    assert_contains(heard.log, "its request to join makes no sense");
}

/* ------------------------------------------------------------------------------------------------------- claims */

typedef struct joining {
    rbt_session *lead, *joined;
    rbt_err err;
    rbt_error error;
} joining;

static void *join(void *argument)
{
    joining *j = argument;
    rbt_session_config config = {.join_timeout_ms = PATIENCE_S * 1000};
    rbt_bytes description = {0};

    j->err = rbt_session_join(&config, rbt_session_local_address(j->lead), 1, &j->joined, &description, &j->error);
    rbt_free(description.at);
    return NULL;
}

/* It says that it is rank 1 to the true rank 1, which does not know the roster yet, and hands over more than it may ask anybody to
 * keep. */
static void what_a_caller_hands_over_before_it_is_known_is_not_taken_in(void **state)
{
    hub_side heard, caller;
    joining j = {.lead = lead_start(&heard)};
    rbt_pack words = {0};
    pthread_t thread;
    uint64_t in = 0, out = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, join, &j), 0);
    assert_int_equal(rbt_session_gather(j.lead, NULL, NULL, &j.error), RBT_OK);
    stranger_start(&caller, rbt_session_seat(j.lead, 1)->local);
    rbt_pack_u32(&words, 1);
    rbt_session_say_to(caller.to, RBT_SAY_IAM, &words, NULL, 0);
    rbt_array_free(&words);
    for (int i = 0; i < FULL; i++)
        say_much(&caller, RBT_SAY_SWAP, MUCH);
    rbt_session_welcome(j.lead, &(rbt_bytes){0});
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(j.err, RBT_OK);
    rbt_session_traffic(j.joined, &out, &in);
    assert_true(in < MUCH);
    assert_true(rbt_hub_queued(caller.to) >= FULL / 2 * MUCH); /* the rest is on its way, and nobody reads it */
    assert_int_equal(caller.lost, 0);
    rbt_session_destroy(j.joined); /* its end is noticed all the same, on both sides */
    wait_for(&caller, caller.lost == 1);
    hub_side_stop(&caller, 0);
    rbt_session_destroy(j.lead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_without_a_seat_may_say_little_at_once),
        cmocka_unit_test(who_was_refused_may_not_ask_again),
        cmocka_unit_test(what_a_caller_hands_over_before_it_is_known_is_not_taken_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
