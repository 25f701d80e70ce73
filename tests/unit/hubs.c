/* Two hubs for tests. Contract in hubs.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/hubs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rng.h"

/* ---------------------------------------------------------------------------------------------------- frames */

static uint64_t content(const rbt_message *m)
{
    uint64_t hash = m->clock;

    for (size_t i = 0; i < m->parts.count; i++) {
        const rbt_snap *s = m->parts.at[i].snap;

        if (s->index != NULL && s->count > 0)
            hash = rbt_hash(s->index, s->count * sizeof *s->index, hash);
        if (s->count > 0)
            hash = rbt_hash(s->value, s->count * rbt_type_size(s->type), hash + s->count);
    }
    return hash;
}

/* Sends the i-th frame of a stream: a message with its number and a hash of what it carries, or a control frame. */
static void hub_send_numbered(rbt_remote *to, rbt_rng *rng, uint64_t i, uint32_t large, unsigned codec)
{
    rbt_message *m;
    uint64_t parts = rbt_rng_below(rng, 4);

    if (rbt_rng_below(rng, 5) == 0) {
        size_t n = rbt_rng_below(rng, 3) * 1000;

        rbt_hub_send(to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, n > 0 ? rbt_alloc(n, 1) : NULL, n));
        return;
    }
    m = rbt_message_create(RBT_MSG_PUSH, 1, 2);
    m->clock = i;
    for (uint64_t k = 0; k < parts; k++) {
        uint32_t length = (uint32_t)rbt_rng_below(rng, rbt_rng_below(rng, 500) == 0 ? large : 300) + 1;
        rbt_snap *s = k % 2 == 0 ? rbt_snap_create(RBT_F32, length) : rbt_snap_create_sparse(RBT_F32, length, length);
        uint32_t start = (uint32_t)rbt_rng_u64(rng);

        for (uint32_t j = 0; j < length; j++) {
            s->i32[j] = (int32_t)(start + j * 2654435761u);
            if (s->index != NULL)
                s->index[j] = j;
        }
        rbt_array_push(&m->parts, ((rbt_part){.block = (uint32_t)k, .snap = s}));
    }
    m->slowest = content(m);
    (void)rbt_hub_send_message(to, m, codec);
}

void *hub_send_all(void *argument)
{
    hub_side *s = argument;
    rbt_rng rng = rbt_rng_stream(s->seed, RBT_STREAM_TEST, 0);

    for (uint64_t i = 0; i < s->frames; i++) {
        hub_send_numbered(s->to, &rng, i, s->large, s->seed == 2 ? 31 : 0); /* one side with all codecs */
        rbt_hub_wait_room(s->to);
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- events */

static void count_one(hub_side *s, uint64_t number, uint64_t bytes, bool is_right)
{
    pthread_mutex_lock(&s->lock);
    s->is_wrong = s->is_wrong || number != s->next || !is_right;
    s->next++;
    s->bytes += bytes;
    pthread_cond_broadcast(&s->changed);
    while (s->hold || (s->hold_at > 0 && s->next == s->hold_at))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void on_open(void *context, rbt_remote *peer)
{
    hub_side *s = context;

    pthread_mutex_lock(&s->lock);
    s->peer = peer;
    s->opened++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_control(void *context, rbt_remote *peer, rbt_arrival *arrival)
{
    hub_side *s = context;
    uint64_t number = 0;

    if (atomic_exchange(&s->holds_next, false))
        rbt_hub_hold(peer);
    if (s->answers > 0)
        rbt_hub_send(peer, rbt_frame_create(RBT_FRAME_CONTROL, NULL, 0, rbt_alloc(s->answers, 1), s->answers));
    if (arrival->header.head == sizeof number)
        memcpy(&number, arrival->head, sizeof number);
    count_one(context, number, arrival->header.head + arrival->header.body, arrival->header.head == sizeof number);
    rbt_arrival_deinit(arrival);
}

static void on_message(void *context, rbt_remote *peer, rbt_message *message)
{
    (void)peer;
    count_one(context, message->clock, rbt_wire_size(message), message->slowest == content(message));
    rbt_message_destroy(message);
}

static void on_lost(void *context, rbt_remote *peer, const rbt_error *why)
{
    hub_side *s = context;

    (void)peer;
    pthread_mutex_lock(&s->lock);
    s->lost++;
    s->why = *why;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_tick(void *context)
{
    hub_side *s = context;

    pthread_mutex_lock(&s->lock);
    s->ticks++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (atomic_exchange(&s->resumes_next, false))
        rbt_hub_resume(s->peer);
}

void hub_side_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    hub_side *s = context;
    size_t n;

    (void)level;
    (void)source;
    pthread_mutex_lock(&s->lock);
    n = strlen(s->log);
    (void)snprintf(s->log + n, sizeof s->log - n, "%s\n", sentence);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ----------------------------------------------------------------------------------------------------- sides */

rbt_link_config hub_config(const rbt_key *key, rbt_encryption encryption, bool rings)
{
    return (rbt_link_config){.key = *key,
                             .job = 5,
                             .encryption = encryption,
                             .rings = rings ? RBT_RINGS_AUTO : RBT_RINGS_OFF,
                             .head_max = RBT_FRAME_HEAD_MAX,
                             .body_max = BODY_MAX,
                             .greeting_ms = 300};
}

void hub_side_start(hub_side *s, rbt_link_config config)
{
    rbt_hub_events events = {on_open, on_control, on_message, NULL, on_lost, on_tick, s};
    rbt_log log = {hub_side_log, s, RBT_LOG_DEBUG};
    rbt_error error = {RBT_OK, ""};

    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (config.encryption != RBT_ENCRYPT_OFF)
        assert_int_equal(rbt_tls_create(&config.key, &s->tls, &error), RBT_OK);
    config.tls = s->tls;
    assert_int_equal(rbt_hub_create(&config, &events, &log, &s->hub, &error), RBT_OK);
}

void hub_side_stop(hub_side *s, uint64_t grace_ms)
{
    rbt_hub_destroy(s->hub, grace_ms);
    s->hub = NULL;
    rbt_tls_destroy(s->tls);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

rbt_address hub_address(const char *text)
{
    rbt_address address;
    rbt_error error;

    assert_int_equal(rbt_address_parse(text, 0, &address, &error), RBT_OK);
    return address;
}

rbt_address hub_free_address(bool is_unix)
{
    static int count;
    char text[64] = "127.0.0.1:0";

    if (is_unix)
        (void)snprintf(text, sizeof text, "unix:@rubato-test-%d-%d", (int)getpid(), count++);
    return hub_address(text);
}

rbt_address hub_side_listen(hub_side *s, bool is_unix)
{
    rbt_address address = hub_free_address(is_unix), bound;
    rbt_error error = {RBT_OK, ""};

    if (rbt_hub_listen(s->hub, &address, &bound, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return bound;
}

void hub_side_assert_there(hub_side *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->lost > 0)
        fail_msg("%s / %s", s->why.text, s->log);
    pthread_mutex_unlock(&s->lock);
}

void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s' in: %s", part, text);
}

/* `a` dials `b`. */
void hub_sides_join(hub_side *a, hub_side *b, bool is_unix)
{
    rbt_address address = hub_side_listen(b, is_unix);

    a->to = rbt_hub_dial(a->hub, &address, 1, 10000);
    wait_for(a, a->opened > 0 || a->lost > 0);
    hub_side_assert_there(a);
    wait_for(b, b->opened > 0);
    b->to = b->peer;
}

void hub_sides_exchange(hub_side *a, hub_side *b, uint32_t frames, uint32_t large)
{
    pthread_t threads[2];
    hub_side *sides[2] = {a, b};

    for (size_t i = 0; i < 2; i++) {
        sides[i]->frames = frames;
        sides[i]->large = large;
        sides[i]->seed = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, hub_send_all, sides[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        wait_for(sides[i], sides[i]->next >= frames || sides[i]->lost > 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        hub_side_assert_there(sides[i]);
        assert_false(sides[i]->is_wrong);
        assert_int_equal(sides[i]->next, frames);
    }
}

rbt_key hub_key(void)
{
    rbt_key key;
    rbt_error error;

    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    return key;
}

int hub_plain_socket(const rbt_address *to)
{
    int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&to->sa, to->n), 0);
    return fd;
}
