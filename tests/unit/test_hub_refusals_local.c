/* Proves src/runtime/cluster/greeting.c, hub.c and link.c: who does not fit is refused with a sentence on both sides, who
 * breaks the protocol is cut off, strangers are turned away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/hubs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------------- refusals */

static void refuse_both(rbt_link_config dialer, rbt_link_config acceptor, const char *there, const char *here)
{
    rbt_address address;
    hub_side a, b;

    hub_side_start(&a, dialer);
    hub_side_start(&b, acceptor);
    address = hub_side_listen(&b, false);
    a.to = rbt_hub_dial(a.hub, &address, 1, 60000);
    wait_for(&a, a.lost == 1);
    wait_for(&b, b.log[0] != '\0');
    assert_int_equal(a.why.code, RBT_E_PROTOCOL);
    assert_contains(a.why.text, here);
    assert_contains(a.why.text, "127.0.0.1:");
    assert_contains(b.log, there);
    assert_contains(b.log, "127.0.0.1:");
    assert_int_equal(a.opened + b.opened, 0);
    hub_side_stop(&a, 0);
    hub_side_stop(&b, 0);
}

static void a_wrong_key_is_refused_on_both_sides(void **state)
{
    rbt_key one = hub_key(), other = hub_key();
    rbt_key forged = one; /* knows the id, not the secret */

    (void)state;
    refuse_both(hub_config(&one, RBT_ENCRYPT_AUTO, false), hub_config(&other, RBT_ENCRYPT_AUTO, false),
                "was refused: its key is", "refused us: its key is");
    refuse_both(hub_config(&one, RBT_ENCRYPT_ON, false), hub_config(&other, RBT_ENCRYPT_ON, false),
                "was refused: its key is", "refused us: its key is");
    forged.secret[0] ^= 1;
    refuse_both(hub_config(&forged, RBT_ENCRYPT_AUTO, false), hub_config(&one, RBT_ENCRYPT_AUTO, false),
                "ended the connection when it was to show", "does not know the secret");
}

static void another_job_is_refused_on_both_sides(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config a = hub_config(&key, RBT_ENCRYPT_AUTO, false), b = a;

    (void)state;
    b.job = 6;
    refuse_both(a, b, "was refused: it belongs to another job", "refused us: it belongs to another job");
}

static void plain_and_encrypted_do_not_mix(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    refuse_both(hub_config(&key, RBT_ENCRYPT_OFF, false), hub_config(&key, RBT_ENCRYPT_ON, false),
                "was refused: it wanted an unencrypted", "refused us: this process wanted an unencrypted");
    refuse_both(hub_config(&key, RBT_ENCRYPT_ON, false), hub_config(&key, RBT_ENCRYPT_OFF, false),
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
    rbt_key key = hub_key();
    rbt_address address, any = hub_address("127.0.0.1:0");
    uint8_t greeting[RBT_GREETING], answer[RBT_GREETING];
    rbt_error error;
    hub_side s;
    int fd, listener;

    (void)state;
    hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    address = hub_side_listen(&s, false);
    make_greeting(&key, 9, greeting);
    fd = hub_plain_socket(&address);
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
    hub_side_stop(&s, 0);
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
    rbt_key key = hub_key();
    rbt_address address;
    hub_side s;

    (void)state;
    hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    address = hub_side_listen(&s, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = hub_plain_socket(&address);

        pthread_mutex_lock(&s.lock);
        s.log[0] = '\0';
        pthread_mutex_unlock(&s.lock);
        assert_int_equal(send(fd, cases[i].says, cases[i].n, 0), cases[i].n);
        assert_ended(fd);
        wait_for(&s, s.log[0] != '\0');
        assert_contains(s.log, cases[i].log);
    }
    assert_int_equal(s.opened, 0);
    hub_side_stop(&s, 0);
}

/* Greets and proves the key as a dialer does, then says what it likes. */
static int intruder(const rbt_address *address, const rbt_key *key, bool lies)
{
    uint8_t mine[RBT_GREETING], theirs[RBT_GREETING + RBT_KEY_PROOF], proof[RBT_KEY_PROOF];
    int fd = hub_plain_socket(address);

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
    rbt_key key = hub_key();
    rbt_address address;
    hub_side s;

    (void)state;
    hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    address = hub_side_listen(&s, false);
    assert_ended(intruder(&address, &key, true));
    wait_for(&s, s.log[0] != '\0');
    assert_contains(s.log, "does not know the secret");
    hub_side_stop(&s, 0);
}

static void who_breaks_the_protocol_is_cut_off(void **state)
{
    rbt_key key = hub_key();
    rbt_address address;
    uint8_t word[RBT_FRAME_HEADER];
    rbt_pack pack = {0};
    rbt_frame *frame;
    hub_side s;
    int fd;

    (void)state;
    hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    address = hub_side_listen(&s, false);

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
    hub_side_stop(&s, 0);
}

/* A socket that has greeted and said who it is. */
static int introduced(const rbt_address *address, const rbt_key *key, uint64_t life)
{
    int fd = intruder(address, key, false);
    rbt_pack pack = {0};
    rbt_frame *frame;

    rbt_pack_u64(&pack, life);
    rbt_pack_u64(&pack, 0);
    rbt_pack_text(&pack, "");
    frame = rbt_frame_create(RBT_FRAME_SESSION, pack.at, pack.count, NULL, 0);
    rbt_frame_seal(frame);
    assert_int_equal(send(fd, frame->bytes, frame->n, 0), frame->n);
    rbt_frame_destroy(frame);
    rbt_array_free(&pack);
    return fd;
}

/* Speaks until it is cut off; how often? */
static uint64_t speak_on(int fd, uint64_t most)
{
    uint64_t said = 0;
    ssize_t sent = 0;

    for (; sent >= 0 && said < most; said++) {
        rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, &said, sizeof said, NULL, 0);

        frame->header.sequence = said + 1;
        rbt_frame_seal(frame);
        sent = send(fd, frame->bytes, frame->n, MSG_NOSIGNAL);
        rbt_frame_destroy(frame);
    }
    return said;
}

static void who_speaks_and_does_not_read_is_cut_off(void **state)
{
    rbt_key key = hub_key();

    (void)state;
    for (int is_stranger = 0; is_stranger < 2; is_stranger++) {
        rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, false);
        size_t answer = is_stranger ? 1 << 10 : 1 << 20, most;
        rbt_address address;
        hub_side s;
        int fd;

        config.stranger_max = is_stranger ? 4096 : 0;
        config.body_max = 1 << 20;
        hub_side_start(&s, config);
        s.answers = answer;
        address = hub_side_listen(&s, false);
        fd = introduced(&address, &key, 77);
        assert_true(speak_on(fd, 10000000) < 10000000);
        wait_for(&s, s.lost == 1);
        assert_contains(s.why.text, "was cut off: it speaks and does not read the answers");
        most = is_stranger ? RBT_UNREAD_MOST : 2 * RBT_QUEUE_MOST + config.body_max;
        assert_true(s.next * answer <= most + 2 * answer); /* over TCP what was not acknowledged counts */
        close(fd);
        hub_side_stop(&s, 0);
    }
}

static void who_sends_more_than_memory_holds_is_not_accused(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, false);
    rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, &config.job, sizeof config.job, NULL, 0);
    rbt_address address;
    hub_side s;
    int fd;

    (void)state;
    config.body_max = UINT64_MAX;
    hub_side_start(&s, config);
    address = hub_side_listen(&s, false);
    fd = introduced(&address, &key, 77);
    wait_for(&s, s.opened == 1);
    frame->header.sequence = 1;
    frame->header.body = UINT64_MAX - 1; /* of which nothing comes */
    rbt_frame_seal(frame);
    assert_int_equal(send(fd, frame->bytes, frame->n, 0), frame->n);
    wait_for(&s, s.lost == 1);
    assert_int_equal(s.why.code, RBT_E_MEMORY);
    assert_contains(s.why.text, "has no room for it: not enough memory for a frame of");
    rbt_frame_destroy(frame);
    close(fd);
    hub_side_stop(&s, 0);
}

static void words_that_have_not_gone_out_do_not_pile_up(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_OFF, false);
    rbt_address address = hub_free_address(true);
    uint8_t last[RBT_FRAME_HEADER];
    rbt_link *link;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    link = rbt_link_create(&config, fds[0], &address, true);
    for (uint64_t i = 1; i <= 1000; i++) {
        link->intake.expected = i + 1;
        rbt_link_say(link, RBT_FRAME_ROOM);
        rbt_link_say(link, RBT_FRAME_ACK);
    }
    assert_int_equal(link->words.count, 2 * RBT_FRAME_HEADER);
    rbt_frame_word(RBT_FRAME_ACK, 1000, last);
    assert_memory_equal(link->words.at + RBT_FRAME_HEADER, last, sizeof last);
    link->words_sent = RBT_FRAME_HEADER + 1; /* what has begun to go out stays as it is */
    link->intake.expected++;
    rbt_link_say(link, RBT_FRAME_ACK);
    assert_int_equal(link->words.count, 3 * RBT_FRAME_HEADER);
    assert_memory_equal(link->words.at + RBT_FRAME_HEADER, last, sizeof last);
    rbt_link_destroy(link);
    close(fds[1]);
}

static void count_arrival(rbt_link *link, rbt_arrival *arrival)
{
    ++*(int *)link->context;
    rbt_arrival_deinit(arrival);
}

static void forget_sent(rbt_link *link, rbt_frame *frame)
{
    (void)link;
    rbt_frame_destroy(frame);
}

/* Over TLS a connection fails in the same reading that brings what was said last. */
static void what_came_before_a_failure_is_heard(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_ON, false);
    rbt_address address = hub_free_address(false);
    rbt_link *links[2];
    rbt_error error;
    int fds[2], heard[2] = {0, 0};

    (void)state;
    assert_int_equal(rbt_tls_create(&key, &config.tls, &error), RBT_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        links[i] = rbt_link_create(&config, fds[i], &address, i == 1);
        links[i]->on_arrival = count_arrival;
        links[i]->on_sent = forget_sent;
        links[i]->context = &heard[i];
    }
    for (int turn = 0; turn < 20; turn++)
        rbt_link_step(links[turn % 2], RBT_LINK_READ | RBT_LINK_WRITE);
    for (uint64_t i = 1; i <= 3; i++) {
        rbt_frame *frame = rbt_frame_create(RBT_FRAME_CONTROL, &i, sizeof i, NULL, 0);

        frame->header.sequence = i;
        rbt_link_send(links[0], frame);
    }
    rbt_link_flush(links[0]);
    assert_int_equal(write(fds[0], "this is no record of theirs", 27), 27);
    rbt_link_step(links[1], RBT_LINK_READ);
    assert_int_equal(heard[1], 3);
    assert_int_equal(links[1]->state, RBT_LINK_CLOSED);
    assert_contains(links[1]->why.text, "reading from");
    rbt_link_destroy(links[0]);
    rbt_link_destroy(links[1]);
    rbt_tls_destroy(config.tls);
}

/* Callers that do not greet fill all places: one that does gets in, and the log names the others in a few words. */
static void silent_callers_make_room_for_others(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, false);
    int silent[600], fd;
    size_t lines = 0;
    rbt_address address;
    hub_side s;

    (void)state;
    config.greeting_ms = 60000;
    hub_side_start(&s, config);
    address = hub_side_listen(&s, false);
    for (size_t i = 0; i < 600; i++)
        silent[i] = hub_plain_socket(&address);
    fd = introduced(&address, &key, 77);
    wait_for(&s, s.opened == 1);
    assert_ended(silent[0]); /* the oldest */
    wait_for(&s, strstr(s.log, "more callers were turned away") != NULL);
    assert_contains(s.log, "127.0.0.1:");
    assert_contains(s.log, "was turned away: it had not greeted for");
    for (const char *at = s.log; *at != '\0'; at++)
        lines += *at == '\n';
    assert_in_range(lines, 2, 100); /* of more than 340; one lot in 5 s, however long this takes */
    for (size_t i = 1; i < 600; i++)
        close(silent[i]);
    close(fd);
    hub_side_stop(&s, 0);
}

/* Only so many more files may be open in this process, until the limit that was before is set again. */
static struct rlimit allow_files(rlim_t more)
{
    struct rlimit before, limit;
    int next = dup(STDIN_FILENO);

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)next + more;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

static void a_hub_without_files_is_an_error_with_a_remedy(void **state)
{
    rbt_key key = hub_key();
    rbt_link_config config = hub_config(&key, RBT_ENCRYPT_AUTO, false);
    rbt_hub_events events = {0};
    rbt_log log = {0};
    rbt_hub *hub = NULL;
    rbt_error error;

    (void)state;
    for (rlim_t files = 0; files < 2; files++) {
        struct rlimit before = allow_files(files);

        assert_int_equal(rbt_hub_create(&config, &events, &log, &hub, &error), RBT_E_LIMIT);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_contains(error.text, "ulimit -n");
        assert_null(hub);
    }
}

/* Ten times a second somebody who cannot be let in is tried again. */
static void a_call_that_cannot_be_taken_is_told_once(void **state)
{
    rbt_key key = hub_key();
    rbt_address address;
    struct rlimit before;
    const char *first;
    int fd, begun;
    hub_side s;

    (void)state;
    hub_side_start(&s, hub_config(&key, RBT_ENCRYPT_AUTO, false));
    address = hub_side_listen(&s, false);
    before = allow_files(1);
    fd = hub_plain_socket(&address);
    wait_for(&s, strstr(s.log, "ulimit -n") != NULL);
    begun = s.ticks;
    wait_for(&s, s.ticks >= begun + 4);
    pthread_mutex_lock(&s.lock);
    first = strstr(s.log, "ulimit -n");
    assert_null(strstr(first + 1, "ulimit -n"));
    pthread_mutex_unlock(&s.lock);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fd);
    fd = introduced(&address, &key, 77);
    wait_for(&s, s.opened == 1);
    close(fd);
    hub_side_stop(&s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_key_is_refused_on_both_sides),
        cmocka_unit_test(another_job_is_refused_on_both_sides),
        cmocka_unit_test(plain_and_encrypted_do_not_mix),
        cmocka_unit_test(another_version_is_refused_on_both_sides),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(a_false_proof_is_refused),
        cmocka_unit_test(who_breaks_the_protocol_is_cut_off),
        cmocka_unit_test(who_speaks_and_does_not_read_is_cut_off),
        cmocka_unit_test(who_sends_more_than_memory_holds_is_not_accused),
        cmocka_unit_test(words_that_have_not_gone_out_do_not_pile_up),
        cmocka_unit_test(what_came_before_a_failure_is_heard),
        cmocka_unit_test(silent_callers_make_room_for_others),
        cmocka_unit_test(a_hub_without_files_is_an_error_with_a_remedy),
        cmocka_unit_test(a_call_that_cannot_be_taken_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
