/* Proves src/runtime/cluster/session.h where tests/cluster meets it by chance alone: a process that comes back, and is sent a message
 * that was meant for its former life before it is ready for any, drops it and goes on; in a first life that breaks the protocol; a
 * link that is needed again while it is being parted comes back. Sessions of one process talk to each other as those of several do.
 * Nothing is timed: what comes from one peer comes in order, so a swap behind a message tells that the message has been heard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "runtime/cluster/hub_state.h"
#include "runtime/cluster/session_state.h"

#define SIZE       3u  /* the lead, a server, a worker */
#define PATIENCE_S 60u /* when a test gives up */
#define STALE      41u /* clocks of messages: to the former life, */
#define FRESH      42u /* and to this one */

typedef struct job {
    rbt_session_config config;
    rbt_session *lead;
    rbt_session *of[SIZE]; /* those that joined, by rank */
} job;

/* Hears messages in the hub's thread. */
typedef struct ear {
    pthread_mutex_t lock;
    pthread_cond_t news;
    unsigned heard;
    uint64_t clock; /* of the last one */
} ear;

static void on_message(void *context, uint32_t rank, rbt_message *message)
{
    ear *e = context;

    pthread_mutex_lock(&e->lock);
    e->heard += rank == 1;
    e->clock = message->clock;
    pthread_cond_broadcast(&e->news);
    pthread_mutex_unlock(&e->lock);
    rbt_message_destroy(message);
}

/* ------------------------------------------------------------------------------------------------------ the job */

typedef struct joining {
    job *job;
    uint32_t rank;
    bool to_start; /* not only to its seat */
    rbt_err err;
    rbt_error error;
} joining;

static void *join(void *argument)
{
    joining *j = argument;
    rbt_session **s = &j->job->of[j->rank];
    rbt_bytes description = {0};

    j->err =
        rbt_session_join(&j->job->config, rbt_session_local_address(j->job->lead), j->rank, s, &description, &j->error);
    rbt_free(description.at);
    if (j->err == RBT_OK)
        j->err = rbt_session_meet(*s, &j->error);
    if (j->err == RBT_OK && j->to_start)
        j->err = rbt_session_ready(*s, &j->error);
    return NULL;
}

static void all_is_well(rbt_err err, const rbt_error *error)
{
    if (err != RBT_OK)
        fail_msg("%s", error->text);
}

/* A lead, a server and a worker; `started`, or the worker has its seat and nobody is ready. */
static void begin(job *j, bool started)
{
    const rbt_seat seats[SIZE] = {{0}, {.servers = 1}, {.first_server = 1, .workers = 1}};
    joining joins[SIZE];
    pthread_t threads[SIZE];
    rbt_error error = {RBT_OK, ""};

    *j = (job){.config = {.on_loss = RBT_LOSS_WAIT, .join_timeout_ms = PATIENCE_S * 1000}};
    all_is_well(rbt_session_lead(&j->config, seats, SIZE, &j->lead, &error), &error);
    for (uint32_t r = 1; r < SIZE; r++) {
        joins[r] = (joining){.job = j, .rank = r, .to_start = started};
        assert_int_equal(pthread_create(&threads[r], NULL, join, &joins[r]), 0);
    }
    all_is_well(rbt_session_gather(j->lead, NULL, NULL, &error), &error);
    rbt_session_welcome(j->lead, &(rbt_bytes){(uint8_t *)&(char){'d'}, 1});
    if (started)
        all_is_well(rbt_session_start(j->lead, &error), &error);
    for (uint32_t r = 1; r < SIZE; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
        all_is_well(joins[r].err, &joins[r].error);
    }
}

static void end(job *j)
{
    rbt_session_end(j->lead, &(rbt_error){.code = RBT_OK});
    for (uint32_t r = 1; r < SIZE; r++)
        rbt_session_destroy(j->of[r]);
    rbt_session_destroy(j->lead);
}

/* Waits for something that is under a session's lock. */
#define wait_for(s, condition)                                                                                         \
    do {                                                                                                               \
        uint64_t until = rbt_session_deadline(PATIENCE_S * 1000);                                                      \
        bool is_there;                                                                                                 \
        pthread_mutex_lock(&(s)->lock);                                                                                \
        while (!(is_there = (condition)) && rbt_session_deadline(0) < until)                                           \
            rbt_session_nap(s);                                                                                        \
        pthread_mutex_unlock(&(s)->lock);                                                                              \
        if (!is_there)                                                                                                 \
            fail_msg("waited in vain for " #condition);                                                                \
    } while (0)

/* ------------------------------------------------------------------------------------------------------- the race */

static void send_message(rbt_session *from, uint64_t clock)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 1, 2);

    m->clock = clock;
    (void)rbt_session_send(from, 2, m, 0);
}

/* The server sends the worker a message, which it has heard when this returns. Was the server to be cut off for it? */
static bool is_cut_for(job *j, uint64_t clock, rbt_error *why)
{
    rbt_session *worker = j->of[2];
    rbt_remote *server = rbt_session_hold(worker, 1);

    assert_non_null(server);
    send_message(j->of[1], clock);
    rbt_session_say(j->of[1], 2, RBT_SAY_SWAP, NULL, rbt_alloc(1, 1), 1);
    wait_for(worker, worker->swaps[1] != NULL || worker->seats[1].peer == NULL);
    pthread_mutex_lock(&server->state->lock);
    *why = server->state->cut_why; /* stays when it has been carried out */
    pthread_mutex_unlock(&server->state->lock);
    rbt_session_release(server);
    return why->code != RBT_OK;
}

static void who_is_back_drops_what_was_meant_for_its_former_life_and_goes_on(void **state)
{
    ear e = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    joining again;
    job j;
    rbt_error why;

    (void)state;
    begin(&j, true);
    rbt_session_destroy(j.of[2]);
    wait_for(j.lead, j.lead->seats[2].state == RBT_SEAT_LOST);
    again = (joining){.job = &j, .rank = 2};
    (void)join(&again);
    all_is_well(again.err, &again.error);
    assert_int_equal(rbt_session_seat(j.of[2], 2)->incarnation, 1);
    wait_for(j.of[1], j.of[1]->seats[2].incarnation == 1 && j.of[1]->seats[2].peer != NULL);

    if (is_cut_for(&j, STALE, &why))
        fail_msg("%s", why.text);
    rbt_session_hook(j.of[2], &(rbt_session_hooks){.on_message = on_message, .context = &e});
    send_message(j.of[1], FRESH);
    pthread_mutex_lock(&e.lock);
    while (e.heard == 0) /* ctest ends a test that waits forever */
        pthread_cond_wait(&e.news, &e.lock);
    pthread_mutex_unlock(&e.lock);
    assert_int_equal(e.heard, 1);
    assert_int_equal(e.clock, FRESH);
    all_is_well(rbt_session_ready(j.of[2], &why), &why); /* the lead takes it in, so the job goes on with it */
    assert_int_equal(rbt_session_over(j.lead, NULL), RBT_OK);
    rbt_session_hook(j.of[2], &(rbt_session_hooks){0});
    end(&j);
}

static void in_a_first_life_a_message_before_the_start_is_a_breach(void **state)
{
    job j;
    rbt_error why;

    (void)state;
    begin(&j, false);
    assert_int_equal(rbt_session_seat(j.of[2], 2)->incarnation, 0);
    assert_true(is_cut_for(&j, STALE, &why));
    assert_non_null(strstr(why.text, "it sends messages before the job has begun"));
    end(&j);
}

static bool has_heard(ear *e, uint64_t clock)
{
    bool heard;

    pthread_mutex_lock(&e->lock);
    heard = e->clock == clock;
    pthread_mutex_unlock(&e->lock);
    return heard;
}

static bool has_parted(rbt_remote *peer)
{
    bool parted;

    pthread_mutex_lock(&peer->state->lock);
    parted = peer->state->has_parted;
    pthread_mutex_unlock(&peer->state->lock);
    return parted;
}

/* The worker lets go of the server, and needs it again before the connection is gone: before (`is_late`: after) it has said goodbye. */
static void part_and_need_again(bool is_late)
{
    ear e = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    rbt_remote *server;
    job j;

    begin(&j, true);
    rbt_session_hook(j.of[1], &(rbt_session_hooks){.on_message = on_message, .context = &e});
    server = rbt_session_hold(j.of[2], 1);
    pthread_mutex_lock(&j.of[1]->calling); /* the server's hub stays at the next message, and does not close */
    (void)rbt_session_send(j.of[2], 1, rbt_message_create(RBT_MSG_PUSH, 2, 1), 0);
    rbt_session_keep(j.of[2], (bool[SIZE]){false, false, false});
    wait_for(j.of[2], !is_late || has_parted(server));
    rbt_session_keep(j.of[2], (bool[SIZE]){false, true, false});
    pthread_mutex_unlock(&j.of[1]->calling);
    if (is_late)
        wait_for(j.of[2], j.of[2]->seats[1].peer != NULL && j.of[2]->seats[1].peer != server);
    rbt_session_release(server);
    while (!has_heard(&e, FRESH)) { /* what is said before it is known to be gone is dropped */
        rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 2, 1);

        m->clock = FRESH;
        (void)rbt_session_send(j.of[2], 1, m, 0);
        pthread_mutex_lock(&j.of[2]->lock);
        rbt_session_nap(j.of[2]);
        pthread_mutex_unlock(&j.of[2]->lock);
    }
    assert_int_equal(rbt_session_over(j.lead, NULL), RBT_OK);
    rbt_session_hook(j.of[1], &(rbt_session_hooks){0});
    end(&j);
}

static void a_link_that_is_needed_again_while_it_is_parted_comes_back(void **state)
{
    (void)state;
    part_and_need_again(false);
    part_and_need_again(true);
}

static void more_than_a_swap_takes_is_a_limit_with_a_remedy(void **state)
{
    rbt_session_config config = {.join_timeout_ms = PATIENCE_S * 1000};
    rbt_seat seat = {.workers = 1};
    rbt_bytes out = {.at = (uint8_t *)&(char){'d'}, .n = RBT_SWAP_MOST + 1}, in; /* it is not looked at */
    rbt_error error = {RBT_OK, ""};
    rbt_session *alone;
    rbt_crew crew;

    (void)state;
    all_is_well(rbt_session_lead(&config, &seat, 1, &alone, &error), &error);
    crew = rbt_session_crew(alone);
    assert_int_equal(crew.swap(&crew, &out, &in, &error), RBT_E_LIMIT);
    assert_string_equal(error.text, "1073741825 bytes are to be handed to rank 0 at once, and the limit is 1073741824; "
                                    "start more processes, so that each has a smaller part of the data");
    assert_null(in.at);
    rbt_session_destroy(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_back_drops_what_was_meant_for_its_former_life_and_goes_on),
        cmocka_unit_test(in_a_first_life_a_message_before_the_start_is_a_breach),
        cmocka_unit_test(a_link_that_is_needed_again_while_it_is_parted_comes_back),
        cmocka_unit_test(more_than_a_swap_takes_is_a_limit_with_a_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
