/* Proves src/runtime/cluster/hub.c and link.c: two hubs exchange frames over every kind of connection, each arrives once
 * and in order, also when the connection is broken again and again; a process that ends is lost, one that says goodbye has
 * gone; a full queue is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "unit/hubs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------------- every kind of connection */

static void pass_frames(rbt_encryption encryption, bool is_unix, bool rings)
{
    rbt_key key = hub_key();
    hub_side a, b;
    uint64_t out, in;

    hub_side_start(&a, hub_config(&key, encryption, rings));
    hub_side_start(&b, hub_config(&key, encryption, rings));
    hub_sides_join(&a, &b, is_unix);
    hub_sides_exchange(&a, &b, FRAMES, 2000000); /* blocks of up to 8 MB: larger than a ring */
    hub_side_stop(&a, 5000);
    wait_for(&b, b.lost == 1);
    assert_int_equal(b.why.code, RBT_OK); /* it said goodbye */
    rbt_hub_traffic(b.hub, &out, &in);
    assert_true(in > b.bytes && out > 0);
    hub_side_stop(&b, 5000);
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

/* Rings are wanted, too, but what goes through them would not be encrypted. */
static void frames_pass_tls_on_a_unix_socket(void **state)
{
    (void)state;
    pass_frames(RBT_ENCRYPT_ON, true, true);
}

static void rings_are_used_only_when_both_want_them(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int i = 0; i < 2; i++) {
        hub_side a, b;

        hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, i == 0));
        hub_side_start(&b, hub_config(&key, RBT_ENCRYPT_AUTO, i == 1));
        hub_sides_join(&a, &b, true);
        hub_sides_exchange(&a, &b, 200, 10000);
        hub_side_stop(&a, 5000);
        hub_side_stop(&b, 5000);
    }
}

static void a_dialer_waits_until_somebody_listens(void **state)
{
    rbt_key key = hub_key();
    hub_side a, b;
    rbt_address address, bound;
    rbt_error error;

    (void)state;
    hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, true));
    hub_side_start(&b, hub_config(&key, RBT_ENCRYPT_AUTO, true));
    address = hub_free_address(true);
    a.to = rbt_hub_dial(a.hub, &address, 1, 60000);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
    assert_int_equal(rbt_hub_listen(b.hub, &address, &bound, &error), RBT_OK);
    wait_for(&b, b.next == 1);
    assert_false(b.is_wrong);
    hub_side_stop(&a, 5000);
    hub_side_stop(&b, 5000);
}

static void nobody_listens_and_patience_ends(void **state)
{
    rbt_key key = hub_key();
    rbt_address address = hub_free_address(true);
    hub_side a;

    (void)state;
    hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, true));
    a.to = rbt_hub_dial(a.hub, &address, 1, 1);
    wait_for(&a, a.lost == 1);
    assert_contains(a.why.text, "cannot connect to unix:@rubato-test");
    hub_side_stop(&a, 0);
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

static void pass_until_broken(breaker *b, int in, size_t budget)
{
    int out = hub_plain_socket(&b->target);
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
    rbt_address any = hub_address("127.0.0.1:0");
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
    rbt_key key = hub_key();
    rbt_address address;
    breaker between;
    hub_side a, b;

    hub_side_start(&a, hub_config(&key, encryption, false));
    hub_side_start(&b, hub_config(&key, encryption, false));
    address = hub_side_listen(&b, false);
    start_breaker(&between, &address, 60);
    a.to = rbt_hub_dial(a.hub, &between.address, 1, 60000);
    wait_for(&b, b.opened == 1);
    b.to = b.peer;
    hub_sides_exchange(&a, &b, FRAMES, 3000);
    assert_int_equal(a.opened, 1);
    assert_int_equal(b.opened, 1);
    assert_contains(a.log, "dialling again");
    assert_contains(b.log, "is back after");
    hub_side_stop(&a, 5000);
    hub_side_stop(&b, 5000);
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

/* -------------------------------------------------------------------------------------------------- ends */

/* A child process that dials, sends a frame, and waits to be killed. */
static pid_t child(const rbt_key *key, int address_pipe[2])
{
    pid_t pid;

    assert_int_equal(pipe(address_pipe), 0);
    pid = fork();
    if (pid == 0) {
        rbt_address address;
        hub_side s;

        if (read(address_pipe[0], &address, sizeof address) != sizeof address)
            _exit(1);
        hub_side_start(&s, hub_config(key, RBT_ENCRYPT_AUTO, true));
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
    rbt_key key = hub_key();

    (void)state;
    for (int is_unix = 0; is_unix < 2; is_unix++) {
        int pipe_fds[2];
        pid_t pid = child(&key, pipe_fds);
        rbt_address address;
        hub_side s;

        hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, true));
        address = hub_side_listen(&s, is_unix);
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
        hub_side_stop(&s, 0);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
    }
}

static void a_peer_that_is_cut_is_lost_on_both_sides(void **state)
{
    rbt_key key = hub_key();
    rbt_error why = {RBT_E_PROTOCOL, "it will not do"};
    hub_side a, b;

    (void)state;
    hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, true));
    hub_side_start(&b, hub_config(&key, RBT_ENCRYPT_AUTO, true));
    hub_sides_join(&a, &b, false);
    rbt_hub_cut(b.to, &why);
    wait_for(&b, b.lost == 1);
    assert_string_equal(b.why.text, why.text);
    wait_for(&a, a.lost == 1);
    assert_int_equal(a.why.code, RBT_E_IO);
    hub_side_stop(&a, 1000);
    hub_side_stop(&b, 1000);
}

static void what_was_sent_before_goodbye_arrives(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* TCP, Unix socket, ring, TLS */
        hub_side a, b;

        hub_side_start(&a, hub_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        hub_side_start(&b, hub_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        hub_sides_join(&a, &b, kind == 1 || kind == 2);
        a.frames = 500;
        a.large = 100000;
        hub_send_all(&a);
        hub_side_stop(&a, DEADLINE_S * 1000);
        wait_for(&b, b.lost == 1);
        assert_int_equal(b.next, 500);
        assert_false(b.is_wrong);
        assert_int_equal(b.why.code, RBT_OK);
        hub_side_stop(&b, 0);
    }
}

static void a_hub_ends_with_traffic_under_way(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        hub_side a, b;
        pthread_t thread;

        hub_side_start(&a, hub_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        hub_side_start(&b, hub_config(&key, kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, kind == 2));
        hub_sides_join(&a, &b, kind == 1 || kind == 2);
        a.frames = b.frames = 2000;
        a.large = b.large = 100000;
        assert_int_equal(pthread_create(&thread, NULL, hub_send_all, &a), 0);
        hub_send_all(&b);
        hub_side_stop(&b, 0); /* in the middle of both streams */
        wait_for(&a, a.lost == 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        hub_side_stop(&a, 1000);
    }
}

/* ---------------------------------------------------------------------------------------------- shared memory */

static void rings_of_any_size_carry_everything(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config small = hub_config(&key, RBT_ENCRYPT_AUTO, true), must = small;
    hub_side a, b;

    (void)state;
    small.ring_bytes = RBT_RING_LEAST;
    must.rings = RBT_RINGS_ON;
    hub_side_start(&a, small);
    hub_side_start(&b, must);
    hub_sides_join(&a, &b, true);
    hub_sides_exchange(&a, &b, FRAMES / 4, 2000000);
    hub_side_stop(&a, 5000);
    hub_side_stop(&b, 0);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* The system gives no files of a ring's size: who can do without says so once, who cannot says why. */
static void without_memory_for_rings_the_socket_carries_everything(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, true);
    struct rlimit before, little;
    rbt_address address;
    hub_side a, b;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){.rlim_cur = 100 << 10, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    hub_side_start(&a, config);
    hub_side_start(&b, config);
    hub_sides_join(&a, &b, true);
    hub_sides_exchange(&a, &b, FRAMES / 4, 200000);
    hub_side_stop(&a, 5000);
    hub_side_stop(&b, 0);
    assert_int_equal(count_of(a.log, "going on over Unix sockets alone"), 1);
    assert_int_equal(count_of(b.log, "going on over Unix sockets alone"), 1);
    assert_int_equal(count_of(a.log, "\n") + count_of(b.log, "\n"), 2);

    hub_side_start(&b, config);
    config.rings = RBT_RINGS_ON;
    hub_side_start(&a, config);
    address = hub_side_listen(&b, true);
    a.to = rbt_hub_dial(a.hub, &address, 1, 10000);
    wait_for(&a, a.lost == 1);
    assert_contains(a.why.text, "shared memory cannot be had");
    /* b first: it may still open a file, under the number of one that a's loop would have closed unseen by ThreadSanitizer. */
    hub_side_stop(&b, 0);
    hub_side_stop(&a, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* ---------------------------------------------------------------------------------------------- back-pressure */

static void *wait_for_room(void *argument)
{
    rbt_hub_wait_room(argument);
    return NULL;
}

/* A process that is stopped reads nothing and is not lost. */
static void who_waits_for_room_goes_on_when_all_is_over(void **state)
{
    size_t n = (size_t)1 << 20;
    pthread_t before, after;
    hub_side a, b;
    rbt_key key = hub_key();

    (void)state;
    hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    hub_side_start(&b, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    hub_sides_join(&a, &b, true);
    pthread_mutex_lock(&b.lock);
    b.hold = true;
    pthread_mutex_unlock(&b.lock);
    for (uint64_t i = 0; rbt_hub_queued(a.to) < RBT_QUEUE_MOST; i++)
        rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, rbt_alloc(n, 1), n));
    assert_int_equal(pthread_create(&before, NULL, wait_for_room, a.to), 0);
    rbt_hub_free_waiters(a.hub);
    assert_int_equal(pthread_create(&after, NULL, wait_for_room, a.to), 0);
    pthread_join(before, NULL);
    pthread_join(after, NULL);
    assert_true(rbt_hub_queued(a.to) >= RBT_QUEUE_LOW);
    pthread_mutex_lock(&b.lock);
    b.hold = false;
    pthread_cond_broadcast(&b.changed);
    pthread_mutex_unlock(&b.lock);
    hub_side_stop(&a, 5000);
    hub_side_stop(&b, 0);
}

static void a_full_queue_is_waited_for(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        size_t frame_n = 1 << 20, most = 2 * RBT_QUEUE_MOST; /* the queue, and what the system holds */
        hub_side a, b;

        hub_side_start(&a, hub_config(&key, RBT_ENCRYPT_AUTO, kind == 2));
        hub_side_start(&b, hub_config(&key, RBT_ENCRYPT_AUTO, kind == 2));
        hub_sides_join(&a, &b, kind > 0);
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
        hub_side_stop(&a, 5000);
        hub_side_stop(&b, 0);
    }
}

/* The side that holds finds the other's end, and what was sent before it. */
static void who_is_held_waits_and_is_heard_later(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        size_t frame_n = 1 << 20;
        hub_side a, b;

        hub_side_start(&a, hub_config(&key, kind == 2 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, false));
        hub_side_start(&b, hub_config(&key, kind == 2 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO, false));
        hub_sides_join(&a, &b, kind == 0);
        b.holds_next = true;
        for (uint64_t i = 0; i < 40; i++)
            rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, rbt_alloc(frame_n, 1), frame_n));
        wait_for(&b, b.next == 1);
        assert_true(rbt_hub_queued(a.to) > 20 * frame_n); /* the system takes the rest */
        pthread_mutex_lock(&b.lock);
        b.ticks = 0;
        pthread_mutex_unlock(&b.lock);
        wait_for(&b, b.ticks > 3);
        assert_int_equal(b.next, 1);
        b.resumes_next = true;
        wait_for(&b, b.next == 40);
        assert_false(b.is_wrong);
        b.holds_next = true;
        for (uint64_t i = 40; i < 42; i++)
            rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, NULL, 0));
        wait_for(&b, b.next == 41);
        hub_side_stop(&a, 0); /* does not wait to be heard */
        wait_for(&b, b.lost == 1);
        hub_side_stop(&b, 0);
    }
}

static void hold_at(hub_side *s, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    s->hold_at = number;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Who asked much at once gets answers while the rest is still being heard. */
static void answers_do_not_wait_for_the_last_question(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        rbt_encryption encryption = kind == 2 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO;
        hub_side a, b;

        hub_side_start(&a, hub_config(&key, encryption, false));
        hub_side_start(&b, hub_config(&key, encryption, false));
        hub_sides_join(&a, &b, kind == 0);
        b.answers = 8;
        hold_at(&b, 1);
        for (uint64_t i = 0; i < 200; i++)
            rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, NULL, 0));
        wait_for(&b, b.next == 1);
        wait_for(&a, a.ticks > 1); /* by then the system has all of them */
        hold_at(&b, 101);
        wait_for(&a, a.next >= 80);
        wait_for(&b, b.next == 101);
        hold_at(&b, 0);
        wait_for(&a, a.next == 200);
        assert_false(b.is_wrong);
        hub_side_stop(&a, 5000);
        hub_side_stop(&b, 0);
    }
}

/* Who does not wait for answers has said what it had to say all the same, goodbye included. */
static void all_is_heard_of_one_that_left_before_its_answers(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        rbt_encryption encryption = kind == 3 ? RBT_ENCRYPT_ON : RBT_ENCRYPT_AUTO;
        bool rings = kind == 1, is_unix = kind < 2;
        hub_side a, b, c;

        hub_side_start(&a, hub_config(&key, encryption, rings));
        hub_side_start(&b, hub_config(&key, encryption, rings));
        hub_side_start(&c, hub_config(&key, encryption, rings));
        hub_sides_join(&c, &b, is_unix);
        b.opened = 0;
        hub_sides_join(&a, &b, is_unix);
        b.answers = 8;
        hold_at(&b, 1);
        rbt_hub_send(c.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
        wait_for(&b, b.next == 1);
        for (uint64_t i = 1; i < 200; i++)
            rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, NULL, 0));
        wait_for(&a, a.ticks > 1);
        hub_side_stop(&a, 0);
        hold_at(&b, 0);
        wait_for(&b, b.lost == 1);
        assert_int_equal(b.why.code, RBT_OK);
        assert_int_equal(b.next, 200);
        assert_false(b.is_wrong);
        hub_side_stop(&c, 5000);
        hub_side_stop(&b, 0);
    }
}

static void frames_above_the_limit_are_refused_until_it_is_raised(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, false);
    hub_side a, b;

    (void)state;
    config.body_max = 1000;
    hub_side_start(&a, config);
    hub_side_start(&b, config);
    hub_sides_join(&a, &b, true);
    rbt_hub_expect(b.hub, 1000, 5000);
    rbt_hub_send(b.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, NULL, 0));
    wait_for(&a, a.next == 1);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){0}, 8, rbt_alloc(5000, 1), 5000));
    wait_for(&b, b.next == 1);
    rbt_hub_send(a.to, rbt_frame_create(RBT_FRAME_CONTROL, &(uint64_t){1}, 8, rbt_alloc(5001, 1), 5001));
    wait_for(&b, b.lost == 1);
    assert_contains(b.why.text, "longer than anything this job has to say");
    hub_side_stop(&a, 1000);
    hub_side_stop(&b, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_pass_a_unix_socket),
        cmocka_unit_test(frames_pass_shared_memory),
        cmocka_unit_test(frames_pass_tcp),
        cmocka_unit_test(frames_pass_tls),
        cmocka_unit_test(frames_pass_tls_on_a_unix_socket),
        cmocka_unit_test(rings_are_used_only_when_both_want_them),
        cmocka_unit_test(a_dialer_waits_until_somebody_listens),
        cmocka_unit_test(nobody_listens_and_patience_ends),
        cmocka_unit_test(a_broken_tcp_connection_goes_on_without_loss_or_repeat),
        cmocka_unit_test(a_broken_tls_connection_goes_on_without_loss_or_repeat),
        cmocka_unit_test(a_process_that_is_killed_is_lost),
        cmocka_unit_test(a_peer_that_is_cut_is_lost_on_both_sides),
        cmocka_unit_test(what_was_sent_before_goodbye_arrives),
        cmocka_unit_test(a_hub_ends_with_traffic_under_way),
        cmocka_unit_test(rings_of_any_size_carry_everything),
        cmocka_unit_test(without_memory_for_rings_the_socket_carries_everything),
        cmocka_unit_test(a_full_queue_is_waited_for),
        cmocka_unit_test(who_waits_for_room_goes_on_when_all_is_over),
        cmocka_unit_test(who_is_held_waits_and_is_heard_later),
        cmocka_unit_test(answers_do_not_wait_for_the_last_question),
        cmocka_unit_test(all_is_heard_of_one_that_left_before_its_answers),
        cmocka_unit_test(frames_above_the_limit_are_refused_until_it_is_raised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
