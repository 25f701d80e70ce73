/* TLS 1.3 whose only credential is the job's key.
 *
 * Contract in tls.h. Always: TLS 1.3, one cipher suite (an external key is bound to one hash), (EC)DHE with the key, no
 * certificates, no tickets, no early data; a handshake that ended without the key is refused by both sides, whatever
 * else was agreed on. What ends a stream ends it for good: the same answer comes again. Bytes go through a BIO of our
 * own, because OpenSSL's would raise SIGPIPE when the other process has died.
 * Proved by tests/unit/test_tls.c.
 */
#include "runtime/cluster/tls.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/mem.h"
#include "runtime/cluster/address.h"
#include "runtime/cluster/openssl.h"

#define IDENTITY 16 /* characters: the key's id in hexadecimal */

#define OUR_DATA 0 /* the place for it in an SSL */

/* AES-GCM is safe for about 2^24 full records under one key (RFC 8446, 5.5), which a fast link sends in minutes. */
#define RECORDS_PER_KEY (UINT64_C(1) << 22)

struct rbt_tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    uint64_t records_per_key;
    uint8_t psk[RBT_KEY_SECRET];
    char identity[IDENTITY + 1];
};

struct rbt_tls_stream {
    SSL *ssl;
    const rbt_tls *tls;
    int fd;
    int reason;            /* the last system error on the socket */
    bool eof;              /* the socket has ended */
    bool accepting, ready; /* ready: the handshake is over */
    bool offered;          /* the dialer named a key */
    bool mismatch;         /* which was not ours */
    char theirs[IDENTITY + 1];
    uint64_t records;   /* written under this key */
    rbt_tls_state over; /* END or FAILED for good, else DONE */
    rbt_error why;
};

/* --------------------------------------------------------------------------------------------------- the socket */

static int socket_write(BIO *bio, const char *bytes, int n)
{
    rbt_tls_stream *stream = rbt_ssl.BIO_get_data(bio);

    rbt_ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    ssize_t done = send(stream->fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0) {
        stream->reason = errno;
        if (errno == EAGAIN || errno == EINTR)
            rbt_ssl.BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
    }
    return (int)done;
}

static int socket_read(BIO *bio, char *bytes, int n)
{
    rbt_tls_stream *stream = rbt_ssl.BIO_get_data(bio);

    rbt_ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    ssize_t done = recv(stream->fd, bytes, (size_t)n, MSG_DONTWAIT);
    if (done < 0) {
        stream->reason = errno;
        if (errno == EAGAIN || errno == EINTR)
            rbt_ssl.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    }
    stream->eof = done == 0;
    return (int)done;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    const rbt_tls_stream *stream = rbt_ssl.BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return stream->eof;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* --------------------------------------------------------------------------------------------------- the key */

/* The key as OpenSSL wants it: a session that could have been agreed on before. One per connection: it changes. */
static SSL_SESSION *key_session(SSL *ssl, const rbt_tls *tls)
{
    static const unsigned char suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
    const SSL_CIPHER *cipher = rbt_ssl.SSL_CIPHER_find(ssl, suite);
    SSL_SESSION *session = rbt_ssl.SSL_SESSION_new();

    if (session != NULL && cipher != NULL &&
        rbt_ssl.SSL_SESSION_set1_master_key(session, tls->psk, sizeof tls->psk) == 1 &&
        rbt_ssl.SSL_SESSION_set_cipher(session, cipher) == 1 &&
        rbt_ssl.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    rbt_ssl.SSL_SESSION_free(session);
    return NULL;
}

/* The dialer offers the key; `hash` is what the session must be for, when the acceptor has chosen it already. */
static int offer_key(SSL *ssl, const EVP_MD *hash, const unsigned char **identity, size_t *length,
                     SSL_SESSION **session)
{
    const rbt_tls_stream *stream = rbt_ssl.SSL_get_ex_data(ssl, OUR_DATA);

    *session = NULL;
    if (hash != NULL && !rbt_ssl.EVP_MD_is_a(hash, "SHA256"))
        return 0;
    *session = key_session(ssl, stream->tls);
    *identity = (const unsigned char *)stream->tls->identity;
    *length = IDENTITY;
    return *session != NULL;
}

/* The acceptor looks for the key that was offered. Without a match the handshake ends soon: there is nothing else. */
static int find_key(SSL *ssl, const unsigned char *identity, size_t length, SSL_SESSION **session)
{
    rbt_tls_stream *stream = rbt_ssl.SSL_get_ex_data(ssl, OUR_DATA);

    *session = NULL;
    stream->offered = true;
    if (length == IDENTITY && memcmp(identity, stream->tls->identity, IDENTITY) == 0) {
        *session = key_session(ssl, stream->tls);
        return *session != NULL;
    }
    stream->mismatch = true;
    stream->theirs[0] = '\0';
    if (length == IDENTITY) {
        memcpy(stream->theirs, identity, IDENTITY);
        stream->theirs[IDENTITY] = '\0';
        if (strspn(stream->theirs, "0123456789abcdef") != IDENTITY)
            stream->theirs[0] = '\0';
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------- what all share */

static rbt_err openssl_failed(const char *what, rbt_error *error)
{
    char text[256];
    rbt_ssl.ERR_error_string_n(rbt_ssl.ERR_peek_last_error(), text, sizeof text);
    rbt_ssl.ERR_clear_error();
    return rbt_fail(error, RBT_E_UNSUPPORTED, "%s: %s; is this OpenSSL 3.0 or later, and not restricted by a policy?",
                    what, text);
}

static bool set_up(SSL_CTX *context)
{
    (void)rbt_ssl.SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                                   SSL_OP_NO_RENEGOTIATION);
    (void)rbt_ssl.SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                               SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    (void)rbt_ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    rbt_ssl.SSL_CTX_set_psk_use_session_callback(context, offer_key);
    rbt_ssl.SSL_CTX_set_psk_find_session_callback(context, find_key);
    return rbt_ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) == 1 &&
           rbt_ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, NULL) == 1 &&
           rbt_ssl.SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
           rbt_ssl.SSL_CTX_set_num_tickets(context, 0) == 1;
}

rbt_err rbt_tls_create(const rbt_key *key, rbt_tls **tls, rbt_error *error)
{
    rbt_err err = rbt_library_load(&rbt_ssl_library, error);
    if (err != RBT_OK)
        return err;
    rbt_tls *made = rbt_alloc(1, sizeof *made);
    made->context = rbt_ssl.SSL_CTX_new(rbt_ssl.TLS_method());
    made->method = rbt_ssl.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rubato socket");
    if (made->context == NULL || made->method == NULL || !set_up(made->context) ||
        rbt_ssl.BIO_meth_set_write(made->method, socket_write) != 1 ||
        rbt_ssl.BIO_meth_set_read(made->method, socket_read) != 1 ||
        rbt_ssl.BIO_meth_set_ctrl(made->method, socket_control) != 1) {
        err = openssl_failed("TLS cannot be set up", error);
        rbt_tls_destroy(made);
        return err;
    }
    made->records_per_key = RECORDS_PER_KEY;
    rbt_key_derive(key, "rubato tls 1.3 psk 1", made->psk);
    rbt_key_id_text(key->id, made->identity);
    *tls = made;
    return RBT_OK;
}

void rbt_tls_destroy(rbt_tls *tls)
{
    if (tls == NULL)
        return;
    rbt_ssl.SSL_CTX_free(tls->context);
    rbt_ssl.BIO_meth_free(tls->method);
    explicit_bzero(tls, sizeof *tls);
    rbt_free(tls);
}

void rbt_tls_set_records_per_key(rbt_tls *tls, uint64_t records)
{
    tls->records_per_key = records;
}

/* -------------------------------------------------------------------------------------------- one connection */

rbt_err rbt_tls_open(rbt_tls *tls, int fd, bool accepting, rbt_tls_stream **stream, rbt_error *error)
{
    rbt_tls_stream *made = rbt_alloc(1, sizeof *made);
    BIO *bio = rbt_ssl.BIO_new(tls->method);

    made->ssl = rbt_ssl.SSL_new(tls->context);
    if (bio == NULL || made->ssl == NULL) {
        rbt_err err = openssl_failed("TLS cannot be started", error);
        rbt_ssl.BIO_free(bio);
        rbt_ssl.SSL_free(made->ssl);
        rbt_free(made);
        return err;
    }
    made->tls = tls;
    made->fd = fd;
    made->accepting = accepting;
    rbt_ssl.BIO_set_data(bio, made);
    rbt_ssl.BIO_set_init(bio, 1);
    rbt_ssl.SSL_set_bio(made->ssl, bio, bio);
    rbt_ssl.SSL_set_ex_data(made->ssl, OUR_DATA, made);
    if (accepting) {
        rbt_ssl.SSL_set_accept_state(made->ssl);
    } else {
        rbt_ssl.SSL_set_connect_state(made->ssl);
        /* No authority is known: every certificate is refused. */
        rbt_ssl.SSL_set_verify(made->ssl, SSL_VERIFY_PEER, NULL);
    }
    *stream = made;
    return RBT_OK;
}

void rbt_tls_close(rbt_tls_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->ready && stream->over != RBT_TLS_FAILED) {
        rbt_ssl.ERR_clear_error();
        (void)rbt_ssl.SSL_shutdown(stream->ssl); /* a farewell if there is room for it */
    }
    rbt_ssl.SSL_free(stream->ssl);
    rbt_ssl.ERR_clear_error();
    rbt_free(stream);
}

/* What an end of the handshake means for people who hold the wrong file or dial the wrong port. */
static rbt_err handshake_failed(const rbt_tls_stream *s, int reason, rbt_error *error)
{
    const char *ours = s->tls->identity;

    if (s->mismatch)
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side has another key (%s, ours is %s); give all processes of a job the same file",
                        s->theirs[0] != '\0' ? s->theirs : "of another kind", ours);
    switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_RECORD_TOO_SMALL:
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side does not speak TLS: it is another program, or runs with --insecure; check the "
                        "port, and use --insecure for all processes or for none");
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_DIGEST_CHECK_FAILED:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV13_ALERT_MISSING_EXTENSION:
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side has another key than ours (%s); give all processes of a job the same file",
                        ours);
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side does not speak TLS 1.3: it is another program, or a proxy stands between");
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_SSLV3_ALERT_BAD_RECORD_MAC:
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "bytes were changed on the way during the handshake: something between the hosts interferes");
    default:
        if (s->accepting && !s->offered)
            return rbt_fail(error, RBT_E_PROTOCOL,
                            "the other side offers no key: it is another program, or was started without --key");
        return rbt_fail(error, RBT_E_PROTOCOL, "the TLS handshake failed: %s; check port and key of both sides",
                        reason != 0 ? rbt_ssl.ERR_reason_error_string(rbt_ssl.ERR_peek_error()) : "no reason given");
    }
}

static rbt_err stream_failed(int reason, rbt_error *error)
{
    if (reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC || reason == SSL_R_SSLV3_ALERT_BAD_RECORD_MAC ||
        reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_BAD_RECORD_TYPE ||
        reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_ENCRYPTED_LENGTH_TOO_LONG ||
        reason == SSL_R_TLSV1_ALERT_RECORD_OVERFLOW || reason == SSL_R_RECORD_TOO_SMALL)
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "bytes were changed on the way: something between the hosts interferes, or hardware is broken");
    return rbt_fail(error, RBT_E_PROTOCOL, "the encrypted connection broke: %s",
                    reason != 0 ? rbt_ssl.ERR_reason_error_string(rbt_ssl.ERR_peek_error()) : "no reason given");
}

/* Turns what OpenSSL says about a call that did not succeed into a state. */
static rbt_tls_state judge(rbt_tls_stream *stream, int status)
{
    int kind = rbt_ssl.SSL_get_error(stream->ssl, status);
    int reason = ERR_GET_REASON(rbt_ssl.ERR_peek_error());

    if (kind == SSL_ERROR_WANT_READ)
        return RBT_TLS_WANT_READ;
    if (kind == SSL_ERROR_WANT_WRITE)
        return RBT_TLS_WANT_WRITE;
    stream->over = RBT_TLS_FAILED;
    if (kind == SSL_ERROR_ZERO_RETURN || stream->eof) {
        if (stream->ready)
            stream->over = RBT_TLS_END;
        else
            (void)rbt_fail(&stream->why, RBT_E_IO,
                           "the other side closed the connection during the TLS handshake: see what it says; it may "
                           "have ended, or be another program");
    } else if (kind == SSL_ERROR_SYSCALL) {
        const char *hint = rbt_socket_hint(stream->reason);
        (void)rbt_fail(&stream->why, RBT_E_IO, "the connection broke: %s%s%s", strerror(stream->reason),
                       hint[0] != '\0' ? "; " : "", hint);
    } else if (!stream->ready) {
        (void)handshake_failed(stream, reason, &stream->why);
    } else {
        (void)stream_failed(reason, &stream->why);
    }
    rbt_ssl.ERR_clear_error();
    return stream->over;
}

static rbt_tls_state tell(const rbt_tls_stream *stream, rbt_tls_state state, rbt_error *error)
{
    if (state == RBT_TLS_FAILED && error != NULL)
        *error = stream->why;
    return state;
}

rbt_tls_state rbt_tls_handshake(rbt_tls_stream *stream, rbt_error *error)
{
    if (stream->over != RBT_TLS_DONE || stream->ready)
        return tell(stream, stream->over, error);
    rbt_ssl.ERR_clear_error(); /* another library's left-overs would be taken for ours */
    int status = rbt_ssl.SSL_do_handshake(stream->ssl);
    if (status != 1)
        return tell(stream, judge(stream, status), error);
    if (!rbt_ssl.SSL_session_reused(stream->ssl)) { /* agreed on something else than the key */
        stream->over = RBT_TLS_FAILED;
        (void)rbt_fail(&stream->why, RBT_E_PROTOCOL, "the other side does not use the job's key (%s); it is refused",
                       stream->tls->identity);
        return tell(stream, stream->over, error);
    }
    stream->ready = true;
    return RBT_TLS_DONE;
}

rbt_tls_state rbt_tls_read(rbt_tls_stream *stream, void *bytes, size_t n, size_t *done, rbt_error *error)
{
    size_t got = 0, one = 0;
    rbt_tls_state state = stream->over;

    RBT_ASSERT(stream->ready || state == RBT_TLS_FAILED);
    *done = 0;
    if (state != RBT_TLS_DONE)
        return tell(stream, state, error);
    rbt_ssl.ERR_clear_error();
    while (state == RBT_TLS_DONE && got < n) { /* a call gives one record at most */
        int status = rbt_ssl.SSL_read_ex(stream->ssl, (char *)bytes + got, n - got, &one);
        if (status == 1)
            got += one;
        else
            state = judge(stream, status);
    }
    *done = got;
    return got > 0 ? RBT_TLS_DONE : tell(stream, state, error);
}

bool rbt_tls_pending(const rbt_tls_stream *stream)
{
    return rbt_ssl.SSL_has_pending(stream->ssl) == 1;
}

rbt_tls_state rbt_tls_write(rbt_tls_stream *stream, const void *bytes, size_t n, size_t *done, rbt_error *error)
{
    size_t put = 0, one = 0;
    rbt_tls_state state = stream->over == RBT_TLS_END ? RBT_TLS_DONE : stream->over;

    RBT_ASSERT(stream->ready || state == RBT_TLS_FAILED);
    *done = 0;
    if (state != RBT_TLS_DONE)
        return tell(stream, state, error);
    rbt_ssl.ERR_clear_error();
    while (state == RBT_TLS_DONE && put < n) { /* a call takes one record at most */
        int status = rbt_ssl.SSL_write_ex(stream->ssl, (const char *)bytes + put, n - put, &one);
        if (status != 1) {
            state = judge(stream, status);
            break;
        }
        put += one;
        if (++stream->records >= stream->tls->records_per_key &&
            rbt_ssl.SSL_key_update(stream->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
            stream->records = 0;
    }
    *done = put;
    return put > 0 ? RBT_TLS_DONE : tell(stream, state, error);
}
