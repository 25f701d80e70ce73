/* How two processes get to know each other on a new connection; the contract is in greeting.h, the bytes in
 * docs/formats.md. Everything is read in exactly the size it has, so that nothing of what follows is taken away from TLS
 * or from the passing of files. */
#include "runtime/cluster/greeting.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define MAGIC "RUBATO\r\n"

enum { USES_TLS = 1, USES_RINGS = 2 };

enum phase { CONNECTING, GREETING, PROOF, HANDSHAKE, RINGS };

/* What the acceptor may have against a dialler; part of the format. */
enum refusal { WELCOME, OTHER_VERSION, OTHER_KEY, OTHER_JOB, MUST_ENCRYPT, CANNOT_ENCRYPT, REFUSALS };

typedef struct greeting {
    uint32_t version;
    uint32_t flags;
    uint32_t refusal;
    uint32_t spare;
    uint8_t key[RBT_KEY_ID];
    uint64_t job;
    uint8_t nonce[RBT_KEY_NONCE];
} greeting;

_Static_assert(sizeof(greeting) + 8 == RBT_GREETING, "the greeting is copied as it lies in memory");

static bool may_be_plain(const rbt_link *link)
{
    return link->config->encryption == RBT_ENCRYPT_OFF ||
           (link->config->encryption == RBT_ENCRYPT_AUTO && rbt_address_is_loopback(&link->remote));
}

static void write_greeting(rbt_link *link, enum refusal refusal)
{
    greeting mine = {.version = RBT_FRAME_VERSION, .refusal = refusal, .job = link->config->job};

    mine.flags = (link->uses_tls ? USES_TLS : 0) | (link->uses_rings ? USES_RINGS : 0);
    memcpy(mine.key, link->config->key.id, sizeof mine.key);
    memcpy(mine.nonce, link->nonce, sizeof mine.nonce);
    memcpy(link->reply, MAGIC, 8);
    memcpy(link->reply + 8, &mine, sizeof mine);
    link->reply_n = RBT_GREETING;
    link->reply_done = 0;
}

void rbt_greeting_begin(rbt_link *link)
{
    rbt_error error;

    link->phase = link->accepting ? GREETING : CONNECTING;
    link->wants = link->accepting ? RBT_LINK_READ : RBT_LINK_WRITE;
    link->greeting_need = RBT_GREETING;
    if (rbt_key_nonce(link->nonce, &error) != RBT_OK)
        rbt_link_close(link, error.code, "%s", error.text);
    if (link->accepting)
        return;
    link->uses_tls = !may_be_plain(link);
    link->uses_rings = link->config->rings != RBT_RINGS_OFF && rbt_address_is_unix(&link->remote);
    if (link->uses_tls && link->config->tls == NULL)
        rbt_link_close(link, RBT_E_USAGE,
                       "the connection to %s must be encrypted, and there is no key; give --key FILE", link->name);
    write_greeting(link, WELCOME);
}

/* ------------------------------------------------------------------------------------------------ exact bytes */

/* Writes the reply; true when all of it is out. */
static bool flush_reply(rbt_link *link)
{
    while (link->reply_done < link->reply_n) {
        ssize_t n = send(link->fd, link->reply + link->reply_done, link->reply_n - link->reply_done, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            link->wants = RBT_LINK_WRITE;
            return false;
        }
        if (n < 0) {
            rbt_link_close_broken(link, "greeting", errno);
            return false;
        }
        link->reply_done += (size_t)n;
    }
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Reads what is expected; true when all of it is there. Who does not begin as we do is not waited for. */
static bool fill_greeting(rbt_link *link)
{
    while (link->greeting_done < link->greeting_need) {
        ssize_t n = recv(link->fd, link->greeting + link->greeting_done, link->greeting_need - link->greeting_done, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            link->wants = RBT_LINK_READ;
            return false;
        }
        if (n <= 0) {
            link->is_ended = n == 0;
            if (n < 0)
                rbt_link_close_broken(link, "greeting", errno);
            else if (link->phase == GREETING)
                rbt_link_close(link, RBT_E_IO, "%s ended the connection before a greeting", link->name);
            else
                rbt_link_close(link, link->accepting ? RBT_E_PROTOCOL : RBT_E_IO,
                               "%s ended the connection when it was to show that both have the same key; are the key "
                               "files the same?",
                               link->name);
            return false;
        }
        link->greeting_done += (size_t)n;
        if (link->phase == GREETING && memcmp(link->greeting, MAGIC, least(link->greeting_done, 8)) != 0) {
            rbt_link_close(link, RBT_E_PROTOCOL, "%s does not speak Rubato's protocol; is the port right?", link->name);
            return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------------------------------------- refusing */

/* A key's id; without a key it is all zeros. */
static void name_key(const uint8_t id[RBT_KEY_ID], char text[2 * RBT_KEY_ID + 1])
{
    static const uint8_t NONE[RBT_KEY_ID];

    if (memcmp(id, NONE, sizeof NONE) == 0)
        memcpy(text, "none", sizeof "none");
    else
        rbt_key_id_text(id, text);
}

/* Closes with a sentence about why the two do not fit; `by_them` when the other side said so. */
static void close_refused(rbt_link *link, enum refusal refusal, const greeting *theirs, bool by_them)
{
    char id[2 * RBT_KEY_ID + 1], mine[2 * RBT_KEY_ID + 1];
    const char *who = by_them ? "refused us" : "was refused";

    name_key(theirs->key, id);
    name_key(link->config->key.id, mine);
    switch (refusal) {
    case OTHER_VERSION:
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s %s: it speaks version %u of the protocol, this process version %u; run the same version of "
                       "rubato everywhere",
                       link->name, who, theirs->version, RBT_FRAME_VERSION);
        break;
    case OTHER_KEY:
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s %s: its key is %s, this process has %s; give all processes the same key file with --key",
                       link->name, who, id, mine);
        break;
    case OTHER_JOB:
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s %s: it belongs to another job that uses the same key; is the port right?", link->name, who);
        break;
    case MUST_ENCRYPT:
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s %s: %s wanted an unencrypted connection between hosts; give --insecure on both sides if the "
                       "network is trusted, or on none",
                       link->name, who, by_them ? "this process" : "it");
        break;
    default:
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s %s: one side wants encryption and the other has none (--insecure); give it on both sides or "
                       "on none",
                       link->name, who);
        break;
    }
}

/* The acceptor judges. */
static enum refusal judge(const rbt_link *link, const greeting *theirs)
{
    if (theirs->version != RBT_FRAME_VERSION)
        return OTHER_VERSION;
    if (memcmp(theirs->key, link->config->key.id, sizeof theirs->key) != 0)
        return OTHER_KEY;
    if (theirs->job != 0 && link->config->job != 0 && theirs->job != link->config->job)
        return OTHER_JOB;
    if (!(theirs->flags & USES_TLS) && !may_be_plain(link))
        return MUST_ENCRYPT;
    if (theirs->flags & USES_TLS && (link->config->tls == NULL || link->config->encryption == RBT_ENCRYPT_OFF))
        return CANNOT_ENCRYPT;
    return WELCOME;
}

/* ----------------------------------------------------------------------------------------------------- phases */

static void open_link(rbt_link *link)
{
    rbt_socket_await(link->fd, &link->remote);
    link->state = RBT_LINK_OPEN;
    link->must_sum = link->tls == NULL && !rbt_address_is_loopback(&link->remote);
    link->wants = RBT_LINK_READ;
}

/* Without a key the proof proves nothing. Then whoever has the same user as we may take part: the system tells. */
static void check_user(rbt_link *link)
{
    static const uint8_t none[RBT_KEY_ID];
    uint32_t uid = 0;

    if (memcmp(link->config->key.id, none, sizeof none) != 0 || !rbt_address_is_unix(&link->remote) ||
        rbt_socket_is_ours(link->fd, &uid))
        return;
    rbt_link_close(
        link, RBT_E_PROTOCOL,
        "%s was refused: it belongs to user %u, and a job without a key takes processes of its own user (%u) "
        "alone; give all of them the same --key FILE",
        link->name, uid, (unsigned)geteuid());
}

static void begin_proof(rbt_link *link)
{
    check_user(link); /* both sides do, so both can say why */
    link->phase = PROOF;
    link->greeting_done = 0;
    link->greeting_need = RBT_KEY_PROOF;
}

static void begin_handshake(rbt_link *link)
{
    rbt_error error;

    link->phase = HANDSHAKE;
    link->uses_rings = false; /* what is to be encrypted does not go through shared memory */
    if (rbt_tls_open(link->config->tls, link->fd, link->accepting, &link->tls, &error) != RBT_OK)
        rbt_link_close(link, error.code, "%s: %s", link->name, error.text);
}

static void greeted_by_dialer(rbt_link *link, const greeting *theirs)
{
    enum refusal refusal = judge(link, theirs);

    link->uses_tls = theirs->flags & USES_TLS;
    link->uses_rings =
        theirs->flags & USES_RINGS && link->config->rings != RBT_RINGS_OFF && rbt_address_is_unix(&link->remote);
    write_greeting(link, refusal);
    if (refusal == WELCOME && !link->uses_tls) {
        rbt_key_prove(&link->config->key, "acceptor", link->their_nonce, link->nonce, link->reply + link->reply_n);
        link->reply_n += RBT_KEY_PROOF;
    }
    if (!flush_reply(link) || refusal != WELCOME) {
        close_refused(link, refusal, theirs, false); /* a new socket has room for so little: it is out or broken */
        return;
    }
    if (link->uses_tls)
        begin_handshake(link);
    else
        begin_proof(link);
}

static void greeted_by_acceptor(rbt_link *link, const greeting *theirs)
{
    if (theirs->refusal != WELCOME || theirs->version != RBT_FRAME_VERSION) {
        close_refused(link, theirs->version != RBT_FRAME_VERSION ? OTHER_VERSION : (enum refusal)theirs->refusal,
                      theirs, true);
        return;
    }
    link->uses_rings = link->uses_rings && theirs->flags & USES_RINGS;
    if (link->uses_tls)
        begin_handshake(link);
    else
        begin_proof(link);
}

static void take_greeting(rbt_link *link)
{
    greeting theirs;

    memcpy(&theirs, link->greeting + 8, sizeof theirs);
    memcpy(link->their_nonce, theirs.nonce, sizeof theirs.nonce);
    if (link->accepting)
        greeted_by_dialer(link, &theirs);
    else
        greeted_by_acceptor(link, &theirs);
}

/* A ring cannot be had on this side. Who can do without (auto) closes, too, and who dialled calls again: then without. */
static void close_ringless(rbt_link *link, const rbt_error *error)
{
    bool must = link->config->rings == RBT_RINGS_ON;

    if (!must)
        link->ring_why = *error;
    rbt_link_close(link, must ? error->code : RBT_E_IO, "%s: %s", link->name, error->text);
}

static void begin_rings(rbt_link *link)
{
    size_t bytes = link->config->ring_bytes != 0 ? link->config->ring_bytes : RBT_RING_BYTES;
    rbt_error error;

    if (!link->uses_rings) {
        open_link(link);
        return;
    }
    link->phase = RINGS;
    if (rbt_ring_create(bytes, &link->out_ring, &error) != RBT_OK ||
        (link->config->rings == RBT_RINGS_ON && rbt_ring_reserve(&link->out_ring, bytes, &error) != RBT_OK) ||
        rbt_socket_send_file(link->fd, link->out_ring.fd, &error) != RBT_OK)
        close_ringless(link, &error);
}

static void take_proof(rbt_link *link)
{
    const uint8_t *dialer = link->accepting ? link->their_nonce : link->nonce;
    const uint8_t *acceptor = link->accepting ? link->nonce : link->their_nonce;
    uint8_t right[RBT_KEY_PROOF];

    rbt_key_prove(&link->config->key, link->accepting ? "dialer" : "acceptor", dialer, acceptor, right);
    if (!rbt_key_proof_equals(right, link->greeting)) {
        rbt_link_close(link, RBT_E_PROTOCOL,
                       "%s was refused: it does not know the secret of the key; give all processes the same key file",
                       link->name);
        return;
    }
    if (!link->accepting) {
        rbt_key_prove(&link->config->key, "dialer", dialer, acceptor, link->reply);
        link->reply_n = RBT_KEY_PROOF;
        link->reply_done = 0;
        if (!flush_reply(link)) {
            rbt_link_close(link, RBT_E_IO, "%s does not take our greeting", link->name);
            return;
        }
    }
    begin_rings(link);
}

static void take_ring(rbt_link *link)
{
    rbt_error error;
    size_t bytes;
    int fd = -1;

    if (rbt_socket_receive_file(link->fd, &fd, &error) != RBT_OK) {
        if (error.code == RBT_E_LIMIT) {
            close_ringless(link, &error);
            return;
        }
        link->is_ended = error.code == RBT_E_IO; /* it could not have one, and says so itself */
        rbt_link_close(link, error.code, "%s: %s", link->name, error.text);
        return;
    }
    link->wants = RBT_LINK_READ;
    if (fd < 0)
        return;
    bytes = rbt_ring_size_of(fd);
    bytes = bytes >= RBT_RING_LEAST && bytes <= RBT_RING_BYTES ? bytes : RBT_RING_BYTES;
    if (rbt_ring_open(fd, bytes, &link->in_ring, &error) != RBT_OK) {
        if (error.code == RBT_E_MEMORY) {
            close_ringless(link, &error);
            return;
        }
        rbt_link_close(link, RBT_E_PROTOCOL, "%s was cut off: %s", link->name, error.text);
        return;
    }
    open_link(link);
}

static void shake_hands(rbt_link *link)
{
    rbt_error error;
    rbt_tls_state state = rbt_tls_handshake(link->tls, &error);

    link->wants = state == RBT_TLS_WANT_WRITE ? RBT_LINK_WRITE : RBT_LINK_READ;
    if (state == RBT_TLS_DONE)
        open_link(link);
    else if (state == RBT_TLS_END)
        rbt_link_close(link, RBT_E_IO, "%s ended the connection while it was being encrypted; are the keys the same?",
                       link->name);
    else if (state == RBT_TLS_FAILED)
        rbt_link_close(link, error.code, "%s%s: %s", link->name, error.code == RBT_E_IO ? "" : " was refused",
                       error.text);
}

void rbt_greeting_step(rbt_link *link)
{
    rbt_error error;

    if (link->phase == CONNECTING) {
        if (rbt_socket_connected(link->fd, &link->remote, &error) != RBT_OK) {
            rbt_link_close(link, error.code, "%s", error.text);
            return;
        }
        link->phase = GREETING;
    }
    if (!flush_reply(link))
        return;
    if (link->phase == GREETING && link->state == RBT_LINK_GREETING && fill_greeting(link))
        take_greeting(link);
    if (link->phase == PROOF && link->state == RBT_LINK_GREETING && fill_greeting(link))
        take_proof(link);
    if (link->phase == HANDSHAKE && link->state == RBT_LINK_GREETING)
        shake_hands(link);
    if (link->phase == RINGS && link->state == RBT_LINK_GREETING)
        take_ring(link);
}
