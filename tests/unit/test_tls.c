/* Proves src/runtime/cluster/tls.c: both sides of a socket pair with the same key understand each other byte for byte,
 * through a full socket and over changes of the key; a wrong key, no TLS, other TLS, an early end and changed bytes are
 * each refused with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/mem.h"
#include "base/rng.h"

enum { DIALER, ACCEPTOR };

typedef struct side {
    rbt_tls *tls;
    rbt_tls_stream *stream;
    int fd;
    rbt_tls_state state;
    rbt_error error;
} side;

static void make_key(rbt_key *key)
{
    rbt_error error;
    assert_int_equal(rbt_key_create(key, &error), RBT_OK);
}

static void open_side(side *s, const rbt_key *key, int fd, bool accepting)
{
    *s = (side){.fd = fd, .state = RBT_TLS_WANT_READ};
    assert_int_equal(rbt_tls_create(key, &s->tls, &s->error), RBT_OK);
    assert_int_equal(rbt_tls_open(s->tls, fd, accepting, &s->stream, &s->error), RBT_OK);
}

static void close_side(side *s)
{
    rbt_tls_close(s->stream);
    rbt_tls_destroy(s->tls);
    if (s->fd >= 0)
        close(s->fd);
}

static void make_pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void open_both(side both[2], const rbt_key *dialers, const rbt_key *acceptors)
{
    int fds[2];
    make_pair(fds);
    open_side(&both[DIALER], dialers, fds[0], false);
    open_side(&both[ACCEPTOR], acceptors, fds[1], true);
}

static bool waits(const side *s)
{
    return s->state == RBT_TLS_WANT_READ || s->state == RBT_TLS_WANT_WRITE;
}

/* Lets both go on in turn until neither waits; one that has failed closes its socket, as a link does. */
static void shake_hands(side both[2])
{
    for (int turn = 0; turn < 20 && (waits(&both[0]) || waits(&both[1])); turn++) {
        side *s = &both[turn % 2];
        if (!waits(s))
            continue;
        s->state = rbt_tls_handshake(s->stream, &s->error);
        if (s->state == RBT_TLS_FAILED)
            (void)shutdown(s->fd, SHUT_RDWR);
    }
    assert_false(waits(&both[0]) || waits(&both[1]));
}

static void connect_both(side both[2], uint64_t records_per_key)
{
    rbt_key key;
    int fds[2];
    make_key(&key);
    make_pair(fds);
    for (int i = 0; i < 2; i++) {
        both[i] = (side){.fd = fds[i], .state = RBT_TLS_WANT_READ};
        assert_int_equal(rbt_tls_create(&key, &both[i].tls, &both[i].error), RBT_OK);
        if (records_per_key > 0)
            rbt_tls_set_records_per_key(both[i].tls, records_per_key);
        assert_int_equal(rbt_tls_open(both[i].tls, fds[i], i == ACCEPTOR, &both[i].stream, &both[i].error), RBT_OK);
    }
    shake_hands(both);
    if (both[0].state != RBT_TLS_DONE || both[1].state != RBT_TLS_DONE)
        fail_msg("%s / %s", both[0].error.text, both[1].error.text);
}

/* Writes and reads n bytes from one side to the other in pieces of any size, with a full socket between. */
static void pass(side *from, side *to, size_t n, rbt_rng *rng)
{
    uint8_t *sent = rbt_alloc(n, 1), *received = rbt_alloc(n, 1), *moved = rbt_alloc(n, 1);
    size_t put = 0, got = 0, done = 0;
    for (size_t i = 0; i < n; i++)
        sent[i] = (uint8_t)rbt_rng_u64(rng);
    bool again = false;
    size_t piece = 0;
    while (got < n) {
        if (put < n) {
            if (!again)
                piece = 1 + rbt_rng_u64(rng) % 100000;
            if (piece > n - put)
                piece = n - put;
            memcpy(moved, sent + put, piece); /* the same bytes at another place */
            rbt_tls_state state = rbt_tls_write(from->stream, moved, piece, &done, &from->error);
            assert_true(state == RBT_TLS_DONE || state == RBT_TLS_WANT_WRITE);
            assert_true((state == RBT_TLS_DONE) == (done > 0));
            again = done < piece;
            piece -= done;
            put += done;
        }
        if (again || put == n || rbt_rng_u64(rng) % 2 == 0) {
            size_t room = 1 + rbt_rng_u64(rng) % 200000;
            if (room > n - got)
                room = n - got;
            rbt_tls_state state = rbt_tls_read(to->stream, received + got, room, &done, &to->error);
            assert_true(state == RBT_TLS_DONE || state == RBT_TLS_WANT_READ);
            assert_true((state == RBT_TLS_DONE) == (done > 0));
            got += done;
        }
    }
    assert_memory_equal(sent, received, n);
    rbt_free(sent);
    rbt_free(received);
    rbt_free(moved);
}

static void the_same_key_connects_and_bytes_pass_both_ways(void **state)
{
    (void)state;
    side both[2];
    rbt_rng rng = rbt_rng_stream(1, 1, 1);
    connect_both(both, 0);
    assert_int_equal(rbt_tls_handshake(both[0].stream, &both[0].error), RBT_TLS_DONE); /* it is done */
    pass(&both[0], &both[1], 3000000, &rng);
    pass(&both[1], &both[0], 3000000, &rng);
    pass(&both[0], &both[1], 1, &rng);
    close_side(&both[0]);
    close_side(&both[1]);
}

static void a_key_that_was_used_enough_is_changed_on_the_way(void **state)
{
    (void)state;
    side both[2];
    rbt_rng rng = rbt_rng_stream(2, 1, 1);
    connect_both(both, 3);
    for (int i = 0; i < 10; i++) {
        pass(&both[0], &both[1], 300000, &rng);
        pass(&both[1], &both[0], 300000, &rng);
    }
    close_side(&both[0]);
    close_side(&both[1]);
}

static void a_change_of_the_key_is_one_more_record(void **state)
{
    (void)state;
    side both[2];
    size_t done;
    uint8_t wire[256];
    connect_both(both, 2);
    ssize_t n[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rbt_tls_write(both[0].stream, "x", 1, &done, &both[0].error), RBT_TLS_DONE);
        n[i] = recv(both[1].fd, wire, sizeof wire, 0);
    }
    assert_true(n[0] > 0 && n[1] == n[0] && n[2] > n[0] && n[3] == n[0]);
    close_side(&both[0]);
    close_side(&both[1]);
}

static void nothing_of_the_text_is_on_the_wire(void **state)
{
    (void)state;
    side both[2];
    size_t done;
    static const char text[] = "a word that nobody else may read";
    uint8_t wire[4096];
    connect_both(both, 0);
    assert_int_equal(rbt_tls_write(both[0].stream, text, sizeof text, &done, &both[0].error), RBT_TLS_DONE);
    ssize_t n = recv(both[1].fd, wire, sizeof wire, MSG_PEEK);
    assert_true(n > (ssize_t)sizeof text);
    assert_null(memmem(wire, (size_t)n, "word", 4));
    close_side(&both[0]);
    close_side(&both[1]);
}

static void bytes_that_a_read_had_no_room_for_are_pending(void **state)
{
    (void)state;
    side both[2];
    size_t done;
    char text[10] = "";
    connect_both(both, 0);
    assert_false(rbt_tls_pending(both[1].stream));
    assert_int_equal(rbt_tls_write(both[0].stream, "123456789", 10, &done, &both[0].error), RBT_TLS_DONE);
    assert_int_equal(rbt_tls_read(both[1].stream, text, 4, &done, &both[1].error), RBT_TLS_DONE);
    assert_true(rbt_tls_pending(both[1].stream));
    assert_int_equal(rbt_tls_read(both[1].stream, text + 4, 100, &done, &both[1].error), RBT_TLS_DONE);
    assert_int_equal(done, 6);
    assert_string_equal(text, "123456789");
    assert_false(rbt_tls_pending(both[1].stream));
    close_side(&both[0]);
    close_side(&both[1]);
}

/* Everything sent before a side goes away arrives; then comes the end, again and again. */
static void an_end_is_told_after_the_last_byte(void **state)
{
    (void)state;
    for (int farewell = 0; farewell < 2; farewell++) {
        side both[2];
        size_t done;
        char text[10];
        connect_both(both, 0);
        assert_int_equal(rbt_tls_write(both[0].stream, "last", 5, &done, &both[0].error), RBT_TLS_DONE);
        if (farewell) {
            rbt_tls_close(both[0].stream);
            both[0].stream = NULL;
        }
        close(both[0].fd); /* without a farewell: as when a process is killed */
        both[0].fd = -1;
        assert_int_equal(rbt_tls_read(both[1].stream, text, sizeof text, &done, &both[1].error), RBT_TLS_DONE);
        assert_int_equal(done, 5);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(rbt_tls_read(both[1].stream, text, sizeof text, &done, &both[1].error), RBT_TLS_END);
            assert_int_equal(done, 0);
        }
        close_side(&both[0]);
        close_side(&both[1]);
    }
}

static void writing_to_a_dead_process_is_an_error_and_no_signal(void **state)
{
    (void)state;
    side both[2];
    size_t done;
    connect_both(both, 0);
    close(both[1].fd);
    both[1].fd = -1;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rbt_tls_write(both[0].stream, "x", 1, &done, &both[0].error), RBT_TLS_FAILED);
        assert_non_null(strstr(both[0].error.text, "Broken pipe"));
    }
    close_side(&both[0]);
    close_side(&both[1]);
}

static void another_key_is_refused_with_a_sentence_on_both_sides(void **state)
{
    (void)state;
    rbt_key one, two;
    char id[2 * RBT_KEY_ID + 1];
    side both[2];
    make_key(&one);
    make_key(&two);
    open_both(both, &one, &two);
    shake_hands(both);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(both[i].state, RBT_TLS_FAILED);
        assert_non_null(strstr(both[i].error.text, "the other side has another key"));
    }
    rbt_key_id_text(one.id, id);
    assert_non_null(strstr(both[DIALER].error.text, id));
    assert_non_null(strstr(both[ACCEPTOR].error.text, id)); /* both names of keys stand there */
    rbt_key_id_text(two.id, id);
    assert_non_null(strstr(both[ACCEPTOR].error.text, id));
    assert_int_equal(rbt_tls_handshake(both[0].stream, &both[0].error), RBT_TLS_FAILED); /* for good */
    close_side(&both[0]);
    close_side(&both[1]);
}

static void the_right_id_with_another_secret_is_refused(void **state)
{
    (void)state;
    rbt_key one, two;
    side both[2];
    make_key(&one);
    two = one;
    two.secret[31] ^= 1;
    open_both(both, &one, &two);
    shake_hands(both);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(both[i].state, RBT_TLS_FAILED);
        assert_non_null(strstr(both[i].error.text, "the other side has another key"));
    }
    close_side(&both[0]);
    close_side(&both[1]);
}

/* ------------------------------------------------------------------------------------------------ strangers */

static void what_is_no_tls_is_refused(void **state)
{
    (void)state;
    static const char *const greetings[] = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
                                            "RBT1 a frame of a job that runs without TLS, long enough"};
    for (size_t i = 0; i < 2 * (sizeof greetings / sizeof greetings[0]); i++) {
        bool accepting = i % 2 == 0;
        const char *text = greetings[i / 2];
        rbt_key key;
        side s;
        int fds[2];
        make_key(&key);
        make_pair(fds);
        open_side(&s, &key, fds[0], accepting);
        assert_int_equal(write(fds[1], text, strlen(text)), strlen(text));
        do
            s.state = rbt_tls_handshake(s.stream, &s.error);
        while (s.state == RBT_TLS_WANT_WRITE);
        assert_int_equal(s.state, RBT_TLS_FAILED);
        if (strstr(s.error.text, "does not speak TLS") == NULL)
            fail_msg("%s: %s", text, s.error.text);
        close(fds[1]);
        close_side(&s);
    }
}

static void any_first_bytes_end_in_a_sentence(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(3, 1, 1);
    for (int i = 0; i < 2000; i++) {
        rbt_key key;
        side s;
        int fds[2];
        uint8_t bytes[600];
        make_key(&key);
        make_pair(fds);
        open_side(&s, &key, fds[0], i % 2 == 0);
        for (size_t b = 0; b < sizeof bytes; b++)
            bytes[b] = (uint8_t)rbt_rng_u64(&rng);
        if (i % 4 < 2) { /* looks like a handshake record */
            static const uint8_t head[] = {22, 3, 1, 0, 200};
            memcpy(bytes, head, sizeof head);
            bytes[5] = i % 2 == 0 ? 1 : 2;
        }
        assert_int_equal(write(fds[1], bytes, sizeof bytes), sizeof bytes);
        close(fds[1]);
        for (int turn = 0; turn < 10 && waits(&s); turn++)
            s.state = rbt_tls_handshake(s.stream, &s.error);
        assert_int_equal(s.state, RBT_TLS_FAILED);
        assert_true(strlen(s.error.text) > 20);
        close_side(&s);
    }
}

static void an_end_during_the_handshake_is_told(void **state)
{
    (void)state;
    for (int accepting = 0; accepting < 2; accepting++) {
        rbt_key key;
        side s;
        int fds[2];
        make_key(&key);
        make_pair(fds);
        open_side(&s, &key, fds[0], accepting == 1);
        if (accepting == 0)
            assert_int_equal(rbt_tls_handshake(s.stream, &s.error), RBT_TLS_WANT_READ);
        assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
        assert_int_equal(rbt_tls_handshake(s.stream, &s.error), RBT_TLS_FAILED);
        assert_non_null(strstr(s.error.text, "closed the connection during the TLS handshake"));
        close(fds[1]);
        close_side(&s);
    }
}

/* An ordinary client of TLS, which has no key. */
static void a_client_without_a_key_is_refused(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        rbt_key key;
        side s;
        int fds[2];
        make_key(&key);
        make_pair(fds);
        open_side(&s, &key, fds[0], true);
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        assert_non_null(context);
        assert_int_equal(SSL_CTX_set_max_proto_version(context, versions[i]), 1);
        SSL *ssl = SSL_new(context);
        assert_non_null(ssl);
        assert_int_equal(SSL_set_fd(ssl, fds[1]), 1);
        assert_int_equal(SSL_connect(ssl), -1);
        assert_int_equal(rbt_tls_handshake(s.stream, &s.error), RBT_TLS_FAILED);
        assert_non_null(strstr(s.error.text, i == 0 ? "does not speak TLS 1.3" : "offers no key"));
        SSL_free(ssl);
        SSL_CTX_free(context);
        close(fds[1]);
        close_side(&s);
    }
}

static X509 *sign_oneself(EVP_PKEY *pair)
{
    X509 *certificate = X509_new();
    assert_non_null(certificate);
    assert_int_equal(X509_set_pubkey(certificate, pair), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -1000));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 1000));
    assert_true(X509_sign(certificate, pair, EVP_sha256()) > 0);
    return certificate;
}

/* A server that has a certificate and not the key: what stands between two processes could be one. */
static void a_server_with_a_certificate_instead_of_the_key_is_refused(void **state)
{
    (void)state;
    rbt_key key;
    side s;
    int fds[2];
    make_key(&key);
    make_pair(fds);
    open_side(&s, &key, fds[0], false);
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    assert_non_null(pair);
    X509 *certificate = sign_oneself(pair);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, pair), 1);
    SSL *ssl = SSL_new(context);
    assert_non_null(ssl);
    assert_int_equal(SSL_set_fd(ssl, fds[1]), 1);
    for (int turn = 0; turn < 10 && waits(&s); turn++) {
        s.state = rbt_tls_handshake(s.stream, &s.error);
        (void)SSL_accept(ssl);
    }
    assert_int_equal(s.state, RBT_TLS_FAILED);
    assert_non_null(strstr(s.error.text, "the other side has another key"));
    SSL_free(ssl);
    SSL_CTX_free(context);
    X509_free(certificate);
    EVP_PKEY_free(pair);
    close(fds[1]);
    close_side(&s);
}

/* --------------------------------------------------------------------------------------------- changed bytes */

/* Takes what `from` wrote on the wire, changes one bit of it and gives it to `to`, over a second pair. */
static void bytes_changed_on_the_way_are_noticed(void **state)
{
    (void)state;
    for (size_t at = 0; at < 40; at++) {
        side both[2];
        size_t done;
        uint8_t wire[256], text[64] = "a message whose every bit counts";
        connect_both(both, 0);
        assert_int_equal(rbt_tls_write(both[0].stream, text, 32, &done, &both[0].error), RBT_TLS_DONE);
        ssize_t n = recv(both[1].fd, wire, sizeof wire, 0);
        assert_true(n > 40);
        wire[at] ^= 1;
        assert_int_equal(send(both[0].fd, wire, (size_t)n, 0), n); /* back into the same socket */
        (void)shutdown(both[0].fd, SHUT_WR);
        rbt_tls_state s = rbt_tls_read(both[1].stream, text, sizeof text, &done, &both[1].error);
        assert_int_equal(done, 0);
        if (at == 3 || at == 4) /* the length: more is waited for until the end, or too little is there */
            assert_true(s == RBT_TLS_FAILED || s == RBT_TLS_END);
        else {
            assert_int_equal(s, RBT_TLS_FAILED);
            if (at >= 5)
                assert_non_null(strstr(both[1].error.text, "bytes were changed on the way"));
        }
        close_side(&both[0]);
        close_side(&both[1]);
    }
}

static void a_repeated_or_left_out_record_is_noticed(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 2; repeat++) {
        side both[2];
        size_t done;
        uint8_t wire[256];
        char text[64];
        connect_both(both, 0);
        assert_int_equal(rbt_tls_write(both[0].stream, "one", 3, &done, &both[0].error), RBT_TLS_DONE);
        ssize_t n = recv(both[1].fd, wire, sizeof wire, repeat ? MSG_PEEK : 0);
        assert_true(n > 3);
        if (repeat)
            assert_int_equal(send(both[0].fd, wire, (size_t)n, 0), n);
        else
            assert_int_equal(rbt_tls_write(both[0].stream, "two", 3, &done, &both[0].error), RBT_TLS_DONE);
        rbt_tls_state s = rbt_tls_read(both[1].stream, text, sizeof text, &done, &both[1].error);
        if (repeat) { /* the first one is fine, and arrives */
            assert_int_equal(s, RBT_TLS_DONE);
            assert_int_equal(done, 3);
            s = rbt_tls_read(both[1].stream, text, sizeof text, &done, &both[1].error);
        }
        assert_int_equal(s, RBT_TLS_FAILED);
        assert_non_null(strstr(both[1].error.text, "bytes were changed on the way"));
        close_side(&both[0]);
        close_side(&both[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_key_connects_and_bytes_pass_both_ways),
        cmocka_unit_test(a_key_that_was_used_enough_is_changed_on_the_way),
        cmocka_unit_test(a_change_of_the_key_is_one_more_record),
        cmocka_unit_test(nothing_of_the_text_is_on_the_wire),
        cmocka_unit_test(bytes_that_a_read_had_no_room_for_are_pending),
        cmocka_unit_test(an_end_is_told_after_the_last_byte),
        cmocka_unit_test(writing_to_a_dead_process_is_an_error_and_no_signal),
        cmocka_unit_test(another_key_is_refused_with_a_sentence_on_both_sides),
        cmocka_unit_test(the_right_id_with_another_secret_is_refused),
        cmocka_unit_test(what_is_no_tls_is_refused),
        cmocka_unit_test(any_first_bytes_end_in_a_sentence),
        cmocka_unit_test(an_end_during_the_handshake_is_told),
        cmocka_unit_test(a_client_without_a_key_is_refused),
        cmocka_unit_test(a_server_with_a_certificate_instead_of_the_key_is_refused),
        cmocka_unit_test(bytes_changed_on_the_way_are_noticed),
        cmocka_unit_test(a_repeated_or_left_out_record_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
