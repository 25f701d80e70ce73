/* Proves src/runtime/cluster/hub.c, link.c and greeting.c: two hubs exchange frames over every kind of connection, each
 * arrives once and in order, also when the connection is broken again and again; who does not fit is refused with a
 * sentence on both sides; a process that ends is lost, one that says goodbye has gone; a full queue is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/hub.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rng.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FRAMES 4000
#else
#define FRAMES 20000
#endif
#define BODY_MAX   ((uint64_t)64 << 20)
#define DEADLINE_S 30 /* when a test gives up */

/* One process's part, in a hub. */
typedef struct side {
    rbt_hub *hub;
    rbt_tls *tls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rbt_remote *peer; /* the last that was opened */
    int opened;
    int lost;
    rbt_error why;   /* of the last that was lost */
    char log[16384]; /* all that was logged */
    uint64_t next;   /* the number that the next frame must have */
    uint64_t bytes;  /* received */
    bool is_wrong;   /* something came that was not sent so */
    bool hold;       /* the hub's thread stops at the next message */
    uint32_t frames; /* to send */
    uint32_t large;  /* elements of the largest blocks */
    uint64_t seed;
    rbt_remote *to;
} side;

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
static void send_numbered(rbt_remote *to, rbt_rng *rng, uint64_t i, uint32_t large, unsigned codec)
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

static void *send_all(void *argument)
{
    side *s = argument;
    rbt_rng rng = rbt_rng_stream(s->seed, RBT_STREAM_TEST, 0);

    for (uint64_t i = 0; i < s->frames; i++) {
        send_numbered(s->to, &rng, i, s->large, s->seed == 2 ? 31 : 0); /* one side with all codecs */
        rbt_hub_wait_room(s->to);
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- events */

static void count_one(side *s, uint64_t number, uint64_t bytes, bool is_right)
{
    pthread_mutex_lock(&s->lock);
    s->is_wrong = s->is_wrong || number != s->next || !is_right;
    s->next++;
    s->bytes += bytes;
    pthread_cond_broadcast(&s->changed);
    while (s->hold)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void on_open(void *context, rbt_remote *peer)
{
    side *s = context;

    pthread_mutex_lock(&s->lock);
    s->peer = peer;
    s->opened++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_control(void *context, rbt_remote *peer, rbt_arrival *arrival)
{
    uint64_t number = 0;

    (void)peer;
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
    side *s = context;

    (void)peer;
    pthread_mutex_lock(&s->lock);
    s->lost++;
    s->why = *why;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    side *s = context;
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

static rbt_link_config made_config(const rbt_key *key, rbt_encryption encryption, bool rings)
{
    return (rbt_link_config){.key = *key,
                             .job = 5,
                             .encryption = encryption,
                             .rings = rings,
                             .head_max = RBT_FRAME_HEAD_MAX,
                             .body_max = BODY_MAX,
                             .greeting_ms = 300};
}

static void start(side *s, rbt_link_config config)
{
    rbt_hub_events events = {on_open, on_control, on_message, on_lost, NULL, s};
    rbt_log log = {on_log, s, RBT_LOG_DEBUG};
    rbt_error error = {RBT_OK, ""};

    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (config.encryption != RBT_ENCRYPT_OFF)
        assert_int_equal(rbt_tls_create(&config.key, &s->tls, &error), RBT_OK);
    config.tls = s->tls;
    assert_int_equal(rbt_hub_create(&config, &events, &log, &s->hub, &error), RBT_OK);
}

static void stop(side *s, uint64_t grace_ms)
{
    rbt_hub_destroy(s->hub, grace_ms);
    s->hub = NULL;
    rbt_tls_destroy(s->tls);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

static rbt_address parsed(const char *text)
{
    rbt_address address;
    rbt_error error;

    assert_int_equal(rbt_address_parse(text, 0, &address, &error), RBT_OK);
    return address;
}

static rbt_address free_address(bool is_unix)
{
    static int count;
    char text[64] = "127.0.0.1:0";

    if (is_unix)
        (void)snprintf(text, sizeof text, "unix:@rubato-test-%d-%d", (int)getpid(), count++);
    return parsed(text);
}

static rbt_address listening(side *s, bool is_unix)
{
    rbt_address address = free_address(is_unix), bound;
    rbt_error error = {RBT_OK, ""};

    if (rbt_hub_listen(s->hub, &address, &bound, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return bound;
}

/* Waits until a number of the side has got so far. */
#define wait_for(s, condition)                                                                                         \
    do {                                                                                                               \
        struct timespec until;                                                                                         \
        int late = 0;                                                                                                  \
        clock_gettime(CLOCK_REALTIME, &until);                                                                         \
        until.tv_sec += DEADLINE_S;                                                                                    \
        pthread_mutex_lock(&(s)->lock);                                                                                \
        while (!(condition) && late == 0)                                                                              \
            late = pthread_cond_timedwait(&(s)->changed, &(s)->lock, &until);                                          \
        pthread_mutex_unlock(&(s)->lock);                                                                              \
        if (late != 0)                                                                                                 \
            fail_msg("waited in vain for " #condition "; next %llu, lost %d (%s), log: %s",                            \
                     (unsigned long long)(s)->next, (s)->lost, (s)->why.text, (s)->log);                               \
    } while (0)

static void assert_not_lost(side *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->lost > 0)
        fail_msg("%s / %s", s->why.text, s->log);
    pthread_mutex_unlock(&s->lock);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s' in: %s", part, text);
}

/* `a` dials `b`. */
static void join(side *a, side *b, bool is_unix)
{
    rbt_address address = listening(b, is_unix);

    a->to = rbt_hub_dial(a->hub, &address, 1, 10000);
    wait_for(a, a->opened > 0 || a->lost > 0);
    assert_not_lost(a);
    wait_for(b, b->opened > 0);
    b->to = b->peer;
}

static void exchange(side *a, side *b, uint32_t frames, uint32_t large)
{
    pthread_t threads[2];
    side *sides[2] = {a, b};

    for (size_t i = 0; i < 2; i++) {
        sides[i]->frames = frames;
        sides[i]->large = large;
        sides[i]->seed = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, sides[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        wait_for(sides[i], sides[i]->next >= frames || sides[i]->lost > 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_not_lost(sides[i]);
        assert_false(sides[i]->is_wrong);
        assert_int_equal(sides[i]->next, frames);
    }
}

static rbt_key made_key(void)
{
    rbt_key key;
    rbt_error error;

    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    return key;
}

/* --------------------------------------------------------------------------------------- every kind of connection */

static void pass_frames(rbt_encryption encryption, bool is_unix, bool rings)
{
    rbt_key key = made_key();
    side a, b;
    uint64_t out, in;

    start(&a, made_config(&key, encryption, rings));
    start(&b, made_config(&key, encryption, rings));
    join(&a, &b, is_unix);
    exchange(&a, &b, FRAMES, 2000000); /* blocks of up to 8 MB: larger than a ring */
    stop(&a, 5000);
    wait_for(&b, b.lost == 1);
    assert_int_equal(b.why.code, RBT_OK); /* it said goodbye */
    rbt_hub_traffic(b.hub, &out, &in);
    assert_true(in > b.bytes && out > 0);
    stop(&b, 5000);
}

static void frames_pass_a_unix_socket(void **state)
{
    (void)state;
    pass_frames(RBT_ENCRYPT_AUTO, true, false);
}

static void frames_pass_shared_memory(void **state)
{
    (void)state;
    pass_frames(RBT_ENCRYPT_AUTO, true, true);
}

static void frames_pass_tcp(void **state)
{
    (void)state;
    pass_frames(RBT_ENCRYPT_AUTO, false, true);
}

static void frames_pass_tls(void **state)
{
    (void)state;
    pass_frames(RBT_ENCRYPT_ON, false, true);
}

static void rings_are_used_only_when_both_want_them(void **state)
{
    rbt_key key = made_key();

    (void)state;
    for (int i = 0; i < 2; i++) {
        side a, b;

        start(&a, made_config(&key, RBT_ENCRYPT_AUTO, i == 0));
        start(&b, made_config(&key, RBT_ENCRYPT_AUTO, i == 1));
        join(&a, &b, true);
        exchange(&a, &b, 200, 10000);
        stop(&a, 5000);
        stop(&b, 5000);
    }
}

static void a_dialer_waits_until_somebody_listens(void **state)
{
    rbt_key key = made_key();
    side a, b;
    rbt_address address, bound;
    rbt_error error;

    (void)state;
    start(&a, made_config(&key, RBT_ENCRYPT_AUTO, true));
    start(&b, made_config(&key, RBT_ENCRYPT_AUTO, true));
    address = free_address(true);
    a.to = rbt_hub_dial(a.hub, &address, 1, 60000);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
    assert_int_equal(rbt_hub_listen(b.hub, &address, &bound, &error), RBT_OK);
    wait_for(&b, b.next == 1);
    assert_false(b.is_wrong);
    stop(&a, 5000);
    stop(&b, 5000);
}

static void nobody_listens_and_patience_ends(void **state)
{
    rbt_key key = made_key();
    rbt_address address = free_address(true);
    side a;

    (void)state;
    start(&a, made_config(&key, RBT_ENCRYPT_AUTO, true));
    a.to = rbt_hub_dial(a.hub, &address, 1, 1);
    wait_for(&a, a.lost == 1);
    assert_contains(a.why.text, "cannot connect to unix:@rubato-test");
    stop(&a, 0);
}

/* --------------------------------------------------------------------------------------------- broken connections */

/* A go-between that breaks each connection after some bytes. */
typedef struct breaker {
    int listener;
    rbt_address address, target;
    atomic_int breaks; /* so many are left */
    atomic_bool stop;
    pthread_t thread;
} breaker;

static bool pass_on(int from, int to, size_t *budget)
{
    char bytes[4096];
    size_t most = *budget < sizeof bytes ? *budget : sizeof bytes;
    ssize_t n = recv(from, bytes, most, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN;
    for (ssize_t done = 0; done < n;) {
        ssize_t sent = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL); /* waits */

        if (sent < 0)
            return false;
        done += sent;
    }
    *budget -= (size_t)n;
    return n > 0 && *budget > 0;
}

static int plain_socket(const rbt_address *to)
{
    int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&to->sa, to->n), 0);
    return fd;
}

static void pass_until_broken(breaker *b, int in, size_t budget)
{
    int out = plain_socket(&b->target);
    struct linger reset = {1, 0};
    bool goes_on = true;

    while (goes_on && !atomic_load(&b->stop)) {
        struct pollfd both[2] = {{in, POLLIN, 0}, {out, POLLIN, 0}};

        if (poll(both, 2, 20) > 0)
            goes_on = (both[0].revents == 0 || pass_on(in, out, &budget)) &&
                      (both[1].revents == 0 || pass_on(out, in, &budget));
    }
    setsockopt(in, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(out, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(in);
    close(out);
}

static void *break_all(void *argument)
{
    breaker *b = argument;
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);

    while (!atomic_load(&b->stop)) {
        struct pollfd there = {b->listener, POLLIN, 0};
        int fd, left = atomic_load(&b->breaks);
        size_t budget = left == 0                     ? SIZE_MAX
                        : rbt_rng_below(&rng, 8) == 0 ? rbt_rng_below(&rng, 300) + 1 /* in the greeting */
                                                      : rbt_rng_below(&rng, 300000) + 2000;

        if (poll(&there, 1, 20) != 1)
            continue;
        fd = accept(b->listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (left > 0)
            atomic_store(&b->breaks, left - 1);
        pass_until_broken(b, fd, budget);
    }
    return NULL;
}

static void start_breaker(breaker *b, const rbt_address *target, int breaks)
{
    rbt_address any = parsed("127.0.0.1:0");
    rbt_error error;

    *b = (breaker){.target = *target};
    atomic_store(&b->breaks, breaks);
    assert_int_equal(rbt_socket_listen(&any, &b->listener, &b->address, &error), RBT_OK);
    assert_int_equal(pthread_create(&b->thread, NULL, break_all, b), 0);
}

static void stop_breaker(breaker *b)
{
    atomic_store(&b->stop, true);
    assert_int_equal(pthread_join(b->thread, NULL), 0);
    close(b->listener);
}

static void break_again_and_again(rbt_encryption encryption)
{
    rbt_key key = made_key();
    rbt_address address;
    breaker between;
    side a, b;

    start(&a, made_config(&key, encryption, false));
    start(&b, made_config(&key, encryption, false));
    address = listening(&b, false);
    start_breaker(&between, &address, 60);
    a.to = rbt_hub_dial(a.hub, &between.address, 1, 60000);
    wait_for(&b, b.opened == 1);
    b.to = b.peer;
    exchange(&a, &b, FRAMES, 3000);
    assert_int_equal(a.opened, 1);
    assert_int_equal(b.opened, 1);
    assert_contains(a.log, "dialling again");
    assert_contains(b.log, "is back after");
    stop(&a, 5000);
    stop(&b, 5000);
    stop_breaker(&between);
}

static void a_broken_tcp_connection_goes_on_without_loss_or_repeat(void **state)
{
    (void)state;
    break_again_and_again(RBT_ENCRYPT_AUTO);
}

static void a_broken_tls_connection_goes_on_without_loss_or_repeat(void **state)
{
    (void)state;
    break_again_and_again(RBT_ENCRYPT_ON);
}

/* ------------------------------------------------------------------------------------------------------- refusals */

static void refuse_both(rbt_link_config dialer, rbt_link_config acceptor, const char *there, const char *here)
{
    rbt_address address;
    side a, b;

    start(&a, dialer);
    start(&b, acceptor);
    address = listening(&b, false);
    a.to = rbt_hub_dial(a.hub, &address, 1, 60000);
    wait_for(&a, a.lost == 1);
    wait_for(&b, b.log[0] != '\0');
    assert_int_equal(a.why.code, RBT_E_PROTOCOL);
    assert_contains(a.why.text, here);
    assert_contains(a.why.text, "127.0.0.1:");
    assert_contains(b.log, there);
    assert_contains(b.log, "127.0.0.1:");
    assert_int_equal(a.opened + b.opened, 0);
    stop(&a, 0);
    stop(&b, 0);
}

static void a_wrong_key_is_refused_on_both_sides(void **state)
{
    rbt_key one = made_key(), other = made_key();
    rbt_key forged = one; /* knows the id, not the secret */

    (void)state;
    refuse_both(made_config(&one, RBT_ENCRYPT_AUTO, false), made_config(&other, RBT_ENCRYPT_AUTO, false),
                "was refused: its key is", "refused us: its key is");
    refuse_both(made_config(&one, RBT_ENCRYPT_ON, false), made_config(&other, RBT_ENCRYPT_ON, false),
                "was refused: its key is", "refused us: its key is");
    forged.secret[0] ^= 1;
    refuse_both(made_config(&forged, RBT_ENCRYPT_AUTO, false), made_config(&one, RBT_ENCRYPT_AUTO, false),
                "ended the connection when it was to show", "does not know the secret");
}

static void another_job_is_refused_on_both_sides(void **state)
{
    rbt_key key = made_key();
    rbt_link_config a = made_config(&key, RBT_ENCRYPT_AUTO, false), b = a;

    (void)state;
    b.job = 6;
    refuse_both(a, b, "was refused: it belongs to another job", "refused us: it belongs to another job");
}

static void plain_and_encrypted_do_not_mix(void **state)
{
    rbt_key key = made_key();

    (void)state;
    refuse_both(made_config(&key, RBT_ENCRYPT_OFF, false), made_config(&key, RBT_ENCRYPT_ON, false),
                "was refused: it wanted an unencrypted", "refused us: it wanted an unencrypted");
    refuse_both(made_config(&key, RBT_ENCRYPT_ON, false), made_config(&key, RBT_ENCRYPT_OFF, false),
                "was refused: one side wants encryption", "refused us: one side wants encryption");
}

/* The greeting of another version: the first 12 bytes are the same in all. */
static void make_greeting(const rbt_key *key, uint32_t version, uint8_t greeting[RBT_GREETING])
{
    uint64_t job = 5;

    memset(greeting, 0, RBT_GREETING);
    memcpy(greeting, "RUBATO\r\n", 8);
    memcpy(greeting + 8, &version, 4);
    memcpy(greeting + 24, key->id, RBT_KEY_ID);
    memcpy(greeting + 32, &job, 8);
}

static void read_exactly(int fd, uint8_t *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = recv(fd, bytes + done, n - done, 0);

        assert_true(got > 0);
        done += (size_t)got;
    }
}

static void assert_ended(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);

    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
    close(fd);
}

static void another_version_is_refused_on_both_sides(void **state)
{
    rbt_key key = made_key();
    rbt_address address, any = parsed("127.0.0.1:0");
    uint8_t greeting[RBT_GREETING], answer[RBT_GREETING];
    rbt_error error;
    side s;
    int fd, listener;

    (void)state;
    start(&s, made_config(&key, RBT_ENCRYPT_AUTO, false));
    address = listening(&s, false);
    make_greeting(&key, 9, greeting);
    fd = plain_socket(&address);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    read_exactly(fd, answer, sizeof answer);
    assert_int_equal(answer[16], 1); /* says: another version */
    assert_ended(fd);
    wait_for(&s, s.log[0] != '\0');
    assert_contains(s.log, "was refused: it speaks version 9 of the protocol, this process version 3");

    assert_int_equal(rbt_socket_listen(&any, &listener, &address, &error), RBT_OK);
    s.to = rbt_hub_dial(s.hub, &address, 1, 60000);
    assert_int_equal(poll(&(struct pollfd){listener, POLLIN, 0}, 1, DEADLINE_S * 1000), 1);
    fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    read_exactly(fd, answer, sizeof answer);
    greeting[16] = 1;
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    wait_for(&s, s.lost == 1);
    assert_contains(s.why.text, "refused us: it speaks version 9");
    close(fd);
    close(listener);
    stop(&s, 0);
}

static void strangers_are_turned_away(void **state)
{
    static const struct {
        const char *says;
        size_t n;
        const char *log;
    } cases[] = {
        {"GET / HTTP/1.0\r\n\r\n", 18, "does not speak Rubato's protocol"},
        {"\x16\x03\x01", 3, "does not speak Rubato's protocol"},
        {"RUBATO", 6, "did not greet within 0.3 s"},
        {"", 0, "did not greet within 0.3 s"},
    };
    rbt_key key = made_key();
    rbt_address address;
    side s;

    (void)state;
    start(&s, made_config(&key, RBT_ENCRYPT_AUTO, false));
    address = listening(&s, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = plain_socket(&address);

        pthread_mutex_lock(&s.lock);
        s.log[0] = '\0';
        pthread_mutex_unlock(&s.lock);
        assert_int_equal(send(fd, cases[i].says, cases[i].n, 0), cases[i].n);
        assert_ended(fd);
        wait_for(&s, s.log[0] != '\0');
        assert_contains(s.log, cases[i].log);
    }
    assert_int_equal(s.opened, 0);
    stop(&s, 0);
}

/* Greets and proves the key as a dialer does, then says what it likes. */
static int intruder(const rbt_address *address, const rbt_key *key, bool lies)
{
    uint8_t mine[RBT_GREETING], theirs[RBT_GREETING + RBT_KEY_PROOF], proof[RBT_KEY_PROOF];
    int fd = plain_socket(address);

    make_greeting(key, RBT_FRAME_VERSION, mine);
    assert_int_equal(send(fd, mine, sizeof mine, 0), sizeof mine);
    read_exactly(fd, theirs, sizeof theirs);
    rbt_key_prove(key, "acceptor", mine + 40, theirs + 40, proof);
    assert_memory_equal(proof, theirs + RBT_GREETING, sizeof proof);
    rbt_key_prove(key, "dialer", mine + 40, theirs + 40, proof);
    proof[0] ^= lies;
    assert_int_equal(send(fd, proof, sizeof proof, 0), sizeof proof);
    return fd;
}

static void a_false_proof_is_refused(void **state)
{
    rbt_key key = made_key();
    rbt_address address;
    side s;

    (void)state;
    start(&s, made_config(&key, RBT_ENCRYPT_AUTO, false));
    address = listening(&s, false);
    assert_ended(intruder(&address, &key, true));
    wait_for(&s, s.log[0] != '\0');
    assert_contains(s.log, "does not know the secret");
    stop(&s, 0);
}

static void who_breaks_the_protocol_is_cut_off(void **state)
{
    rbt_key key = made_key();
    rbt_address address;
    uint8_t word[RBT_FRAME_HEADER];
    rbt_pack pack = {0};
    rbt_frame *frame;
    side s;
    int fd;

    (void)state;
    start(&s, made_config(&key, RBT_ENCRYPT_AUTO, false));
    address = listening(&s, false);

    fd = intruder(&address, &key, false); /* speaks before it has said who it is */
    rbt_frame_word(RBT_FRAME_ACK, 3, word);
    assert_int_equal(send(fd, word, sizeof word, 0), sizeof word);
    assert_ended(fd);
    wait_for(&s, strstr(s.log, "did not say who it is") != NULL);

    fd = intruder(&address, &key, false); /* says who it is, then rubbish */
    rbt_pack_u64(&pack, 1234);
    rbt_pack_u64(&pack, 0);
    rbt_pack_text(&pack, "");
    frame = rbt_frame_create(RBT_FRAME_SESSION, pack.at, pack.count, NULL, 0);
    rbt_frame_seal(frame);
    assert_int_equal(send(fd, frame->bytes, frame->n, 0), frame->n);
    wait_for(&s, s.opened == 1);
    memset(word, 'x', sizeof word);
    assert_int_equal(send(fd, word, sizeof word, 0), sizeof word);
    wait_for(&s, s.lost == 1);
    assert_int_equal(s.why.code, RBT_E_PROTOCOL);
    assert_contains(s.why.text, "was cut off: a frame does not begin as one");
    close(fd);

    fd = intruder(&address, &key, false); /* comes back under the same name */
    assert_int_equal(send(fd, frame->bytes, frame->n, 0), frame->n);
    assert_ended(fd);
    wait_for(&s, strstr(s.log, "comes too late") != NULL);
    assert_int_equal(s.opened, 1);
    rbt_frame_destroy(frame);
    rbt_array_free(&pack);
    stop(&s, 0);
}

/* -------------------------------------------------------------------------------------------------- ends */

/* A child process that dials, sends a frame, and waits to be killed. */
static pid_t child(const rbt_key *key, int address_pipe[2])
{
    pid_t pid;

    assert_int_equal(pipe(address_pipe), 0);
    pid = fork();
    if (pid == 0) {
        rbt_address address;
        side s;

        if (read(address_pipe[0], &address, sizeof address) != sizeof address)
            _exit(1);
        start(&s, made_config(key, RBT_ENCRYPT_AUTO, true));
        s.to = rbt_hub_dial(s.hub, &address, 1, 10000);
        rbt_hub_send(s.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void a_process_that_is_killed_is_lost(void **state)
{
    rbt_key key = made_key();

    (void)state;
    for (int is_unix = 0; is_unix < 2; is_unix++) {
        int pipe_fds[2];
        pid_t pid = child(&key, pipe_fds);
        rbt_address address;
        side s;

        start(&s, made_config(&key, RBT_ENCRYPT_AUTO, true));
        address = listening(&s, is_unix);
        assert_int_equal(write(pipe_fds[1], &address, sizeof address), sizeof address);
        wait_for(&s, s.next == 1);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        wait_for(&s, s.lost == 1);
        assert_int_equal(s.why.code, RBT_E_IO);
        /* The system resets the connection of a process that dies before it has read everything. */
        if (strstr(s.why.text, "closed the connection") == NULL)
            assert_contains(s.why.text, "reset");
        rbt_hub_send(s.peer, rbt_frame_create(RBT_FRAME_CONTROL, "x", 1, NULL, 0)); /* is dropped */
        rbt_hub_wait_room(s.peer);
        stop(&s, 0);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
    }
}

static void a_peer_that_is_cut_is_lost_on_both_sides(void **state)
{
    rbt_key key = made_key();
    rbt_error why = {RBT_E_PROTOCOL, "it will not do"};
    side a, b;

    (void)state;
    start(&a, made_config(&key, RBT_ENCRYPT_AUTO, true));
    start(&b, made_config(&key, RBT_ENCRYPT_AUTO, true));
    join(&a, &b, false);
    rbt_hub_cut(b.to, &why);
    wait_for(&b, b.lost == 1);
    assert_string_equal(b.why.text, why.text);
    wait_for(&a, a.lost == 1);
    assert_int_equal(a.why.code, RBT_E_IO);
    stop(&a, 1000);
    stop(&b, 1000);
}

static void what_was_sent_before_goodbye_arrives(void **state)
{
    rbt_key key = made_key();

    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* TCP, Unix socket, ring, TLS */
        side a, b;

        start(&a, made_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        start(&b, made_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        join(&a, &b, kind == 1 || kind == 2);
        a.frames = 500;
        a.large = 100000;
        send_all(&a);
        stop(&a, DEADLINE_S * 1000);
        wait_for(&b, b.lost == 1);
        assert_int_equal(b.next, 500);
        assert_false(b.is_wrong);
        assert_int_equal(b.why.code, RBT_OK);
        stop(&b, 0);
    }
}

static void a_hub_ends_with_traffic_under_way(void **state)
{
    rbt_key key = made_key();

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        side a, b;
        pthread_t thread;

        start(&a, made_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        start(&b, made_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        join(&a, &b, kind == 1 || kind == 2);
        a.frames = b.frames = 2000;
        a.large = b.large = 100000;
        assert_int_equal(pthread_create(&thread, NULL, send_all, &a), 0);
        send_all(&b);
        stop(&b, 0); /* in the middle of both streams */
        wait_for(&a, a.lost == 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        stop(&a, 1000);
    }
}

/* ---------------------------------------------------------------------------------------------- back-pressure */

static void a_full_queue_is_waited_for(void **state)
{
    rbt_key key = made_key();

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        size_t frame_n = 1 << 20, most = 2 * RBT_QUEUE_MOST; /* the queue, and what the system holds */
        side a, b;

        start(&a, made_config(&key, RBT_ENCRYPT_AUTO, kind == 2));
        start(&b, made_config(&key, RBT_ENCRYPT_AUTO, kind == 2));
        join(&a, &b, kind > 0);
        pthread_mutex_lock(&b.lock);
        b.hold = true;
        pthread_mutex_unlock(&b.lock);
        for (uint64_t i = 0; i < 200; i++) {
            rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, rbt_alloc(frame_n, 1), frame_n));
            pthread_mutex_lock(&b.lock);
            if ((i + 1) * frame_n >= RBT_QUEUE_MOST) { /* from here on it would wait for ever */
                b.hold = false;
                pthread_cond_broadcast(&b.changed);
            }
            assert_true((i + 1) * frame_n <= b.bytes + most);
            pthread_mutex_unlock(&b.lock);
            rbt_hub_wait_room(a.to);
        }
        wait_for(&b, b.next == 200);
        assert_false(b.is_wrong);
        stop(&a, 5000);
        stop(&b, 0);
    }
}

static void frames_above_the_limit_are_refused_until_it_is_raised(void **state)
{
    rbt_key key = made_key();
    rbt_link_config config = made_config(&key, RBT_ENCRYPT_AUTO, false);
    side a, b;

    (void)state;
    config.body_max = 1000;
    start(&a, config);
    start(&b, config);
    join(&a, &b, true);
    rbt_hub_expect(b.hub, 1000, 5000);
    rbt_hub_send(b.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
    wait_for(&a, a.next == 1);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, rbt_alloc(5000, 1), 5000));
    wait_for(&b, b.next == 1);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){1}, 8, rbt_alloc(5001, 1), 5001));
    wait_for(&b, b.lost == 1);
    assert_contains(b.why.text, "longer than anything this job has to say");
    stop(&a, 1000);
    stop(&b, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_pass_a_unix_socket),
        cmocka_unit_test(frames_pass_shared_memory),
        cmocka_unit_test(frames_pass_tcp),
        cmocka_unit_test(frames_pass_tls),
        cmocka_unit_test(rings_are_used_only_when_both_want_them),
        cmocka_unit_test(a_dialer_waits_until_somebody_listens),
        cmocka_unit_test(nobody_listens_and_patience_ends),
        cmocka_unit_test(a_broken_tcp_connection_goes_on_without_loss_or_repeat),
        cmocka_unit_test(a_broken_tls_connection_goes_on_without_loss_or_repeat),
        cmocka_unit_test(a_wrong_key_is_refused_on_both_sides),
        cmocka_unit_test(another_job_is_refused_on_both_sides),
        cmocka_unit_test(plain_and_encrypted_do_not_mix),
        cmocka_unit_test(another_version_is_refused_on_both_sides),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(a_false_proof_is_refused),
        cmocka_unit_test(who_breaks_the_protocol_is_cut_off),
        cmocka_unit_test(a_process_that_is_killed_is_lost),
        cmocka_unit_test(a_peer_that_is_cut_is_lost_on_both_sides),
        cmocka_unit_test(what_was_sent_before_goodbye_arrives),
        cmocka_unit_test(a_hub_ends_with_traffic_under_way),
        cmocka_unit_test(a_full_queue_is_waited_for),
        cmocka_unit_test(frames_above_the_limit_are_refused_until_it_is_raised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
