/* Keys: made from the system's randomness, kept in files that only their owner can read.
 *
 * Contract in key.h. Always: no message contains a secret or a part of it, not even of a line that is no key; what held
 * one is wiped. The labels keep the uses of a secret apart: nothing learnt from one use helps with another.
 * Proved by tests/unit/test_key.c.
 */
#include "runtime/cluster/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/cluster/openssl.h"

#define MAGIC      "rubato-key-1"
#define FAMILY     "rubato-key-"
#define LABEL_ROOM 64 /* characters of a label or role */

/* ------------------------------------------------------------------------------------------------ mathematics */

static rbt_err fill_random(uint8_t *bytes, size_t n, rbt_error *error)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = getrandom(bytes + done, n - done, 0);
        if (got > 0)
            done += (size_t)got;
        else if (got < 0 && errno != EINTR)
            return rbt_fail(error, RBT_E_IO, "the system gives no random bytes: getrandom: %s; a key needs them",
                            strerror(errno));
    }
    return RBT_OK;
}

/* HMAC-SHA256 with the secret; it fails only when OpenSSL has no memory or no SHA-256. Loaded by whoever made,
 * parsed or greets with a key. */
static void mac(const rbt_key *key, const uint8_t *bytes, size_t n, uint8_t result[RBT_KEY_PROOF])
{
    unsigned length = 0;
    const uint8_t *done = rbt_ssl.HMAC(rbt_ssl.EVP_sha256(), key->secret, RBT_KEY_SECRET, bytes, n, result, &length);
    RBT_ASSERT(done != NULL && length == RBT_KEY_PROOF);
}

void rbt_key_derive(const rbt_key *key, const char *label, uint8_t derived[RBT_KEY_SECRET])
{
    mac(key, (const uint8_t *)label, strlen(label), derived);
}

/* The id follows from the secret, so that a damaged key file is noticed before it looks like a wrong key. */
static void set_id(rbt_key *key)
{
    uint8_t derived[RBT_KEY_SECRET];
    rbt_key_derive(key, "rubato key id 1", derived);
    memcpy(key->id, derived, RBT_KEY_ID);
}

rbt_err rbt_key_create(rbt_key *key, rbt_error *error)
{
    rbt_key made;
    rbt_err err = rbt_library_load(&rbt_ssl_library, error);

    if (err == RBT_OK)
        err = fill_random(made.secret, sizeof made.secret, error);
    if (err == RBT_OK) {
        set_id(&made);
        *key = made;
    }
    rbt_key_wipe(&made);
    return err;
}

void rbt_key_wipe(rbt_key *key)
{
    explicit_bzero(key, sizeof *key);
}

rbt_err rbt_key_nonce(uint8_t nonce[RBT_KEY_NONCE], rbt_error *error)
{
    rbt_err err = rbt_library_load(&rbt_ssl_library, error); /* what is proved with the nonce needs it */

    return err == RBT_OK ? fill_random(nonce, RBT_KEY_NONCE, error) : err;
}

void rbt_key_prove(const rbt_key *key, const char *role, const uint8_t dialer[RBT_KEY_NONCE],
                   const uint8_t acceptor[RBT_KEY_NONCE], uint8_t proof[RBT_KEY_PROOF])
{
    static const char label[] = "rubato proof 1";
    uint8_t bytes[sizeof label + LABEL_ROOM + 2 * RBT_KEY_NONCE], *at = bytes;
    size_t length = strlen(role) + 1; /* with its end: no role is the beginning of another */

    RBT_ASSERT(length <= LABEL_ROOM);
    memcpy(at, label, sizeof label);
    at += sizeof label;
    memcpy(at, role, length);
    at += length;
    memcpy(at, dialer, RBT_KEY_NONCE);
    at += RBT_KEY_NONCE;
    memcpy(at, acceptor, RBT_KEY_NONCE);
    at += RBT_KEY_NONCE;
    mac(key, bytes, (size_t)(at - bytes), proof);
}

bool rbt_key_proof_equals(const uint8_t a[RBT_KEY_PROOF], const uint8_t b[RBT_KEY_PROOF])
{
    return rbt_ssl.CRYPTO_memcmp(a, b, RBT_KEY_PROOF) == 0;
}

/* ----------------------------------------------------------------------------------------------------- as text */

static char *put_hex(char *text, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *text++ = digit[bytes[i] >> 4];
        *text++ = digit[bytes[i] & 15];
    }
    *text = '\0';
    return text;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads 2 n digits; returns what follows them, or NULL. */
static const char *get_hex(const char *text, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++, text += 2) {
        int high = digit_value(text[0]), low = high < 0 ? -1 : digit_value(text[1]);
        if (low < 0)
            return NULL;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text;
}

void rbt_key_id_text(const uint8_t id[RBT_KEY_ID], char text[2 * RBT_KEY_ID + 1])
{
    (void)put_hex(text, id, RBT_KEY_ID);
}

_Static_assert(sizeof MAGIC + 1 + 2 * RBT_KEY_ID + 1 + 2 * RBT_KEY_SECRET + 2 <= RBT_KEY_ROOM, "a line end fits, too");

void rbt_key_text(const rbt_key *key, char text[RBT_KEY_ROOM])
{
    memcpy(text, MAGIC " ", sizeof MAGIC);
    char *at = put_hex(text + sizeof MAGIC, key->id, RBT_KEY_ID);
    *at++ = ' ';
    (void)put_hex(at, key->secret, RBT_KEY_SECRET);
}

rbt_err rbt_key_parse(const char *text, const char *place, rbt_key *key, rbt_error *error)
{
    rbt_key found = {{0}, {0}}, right;
    rbt_err err = rbt_library_load(&rbt_ssl_library, error);

    if (err != RBT_OK)
        return err;
    if (text[strspn(text, " \t\r\n")] == '\0')
        return rbt_fail(error, RBT_E_DATA, "%s: there is no key in it; `rubato key new FILE` makes one", place);
    if (strncmp(text, FAMILY, strlen(FAMILY)) == 0 && strncmp(text, MAGIC " ", sizeof MAGIC) != 0)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: this key is of a kind that this version does not know; make one with this version's "
                        "`rubato key new FILE` and give it to all processes",
                        place);
    if (strncmp(text, MAGIC " ", sizeof MAGIC) != 0)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: this is no key, whose one line begins with " MAGIC "; `rubato key new FILE` makes one",
                        place);
    const char *at = get_hex(text + sizeof MAGIC, found.id, RBT_KEY_ID);
    at = at != NULL && *at == ' ' ? get_hex(at + 1, found.secret, RBT_KEY_SECRET) : NULL;
    right = found;
    if (at != NULL)
        set_id(&right);
    if (at == NULL || at[strspn(at, " \t\r\n")] != '\0' || memcmp(found.id, right.id, RBT_KEY_ID) != 0)
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: the key is damaged or cut short: it needs " MAGIC ", %d and %d hexadecimal digits that "
                       "belong together; copy the file again",
                       place, 2 * RBT_KEY_ID, 2 * RBT_KEY_SECRET);
    else
        *key = found;
    rbt_key_wipe(&found);
    rbt_key_wipe(&right);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- files */

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return true;
}

rbt_err rbt_key_write(const rbt_key *key, const char *path, rbt_error *error)
{
    char text[RBT_KEY_ROOM];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return rbt_fail(error, RBT_E_IO,
                        "%s: is there already, and a key is not overwritten; choose another name or remove it", path);
    if (fd < 0)
        return rbt_fail(error, RBT_E_IO, "%s: cannot be made: %s; choose a folder that is there and can be written to",
                        path, strerror(errno));
    rbt_key_text(key, text);
    memcpy(text + strlen(text), "\n", 2);
    bool done = write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    int reason = errno;
    explicit_bzero(text, sizeof text);
    if (close(fd) != 0 && done) {
        done = false;
        reason = errno;
    }
    if (done)
        return RBT_OK;
    (void)unlink(path);
    return rbt_fail(error, RBT_E_IO, "%s: cannot be written: %s", path, strerror(reason));
}

/* The first line without its end; byte by byte, so that what follows on the standard input stays there. */
static rbt_err read_line(int fd, const char *place, char text[RBT_KEY_ROOM], rbt_error *error)
{
    size_t n = 0;

    while (n < RBT_KEY_ROOM - 1) {
        ssize_t got = read(fd, text + n, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return rbt_fail(error, RBT_E_IO, "%s: cannot be read: %s", place, strerror(errno));
        if (got == 0 || text[n] == '\n')
            break;
        if (text[n] == '\0')
            text[n] = '?'; /* whatever it is, it does not end the line */
        n++;
    }
    text[n] = '\0';
    return RBT_OK;
}

/* Whether nobody but its readers can read a key file. Mounted secrets (Kubernetes with fsGroup) belong to root and can only be
 * read through a group: that is in order for all but root itself. */
static bool is_private(const struct stat *status)
{
    mode_t others = status->st_mode & (S_IRWXG | S_IRWXO);

    return others == 0 || (others == S_IRGRP && status->st_uid == 0 && geteuid() != 0);
}

rbt_err rbt_key_read(const char *path, rbt_key *key, rbt_error *error)
{
    char text[RBT_KEY_ROOM];
    bool input = strcmp(path, "-") == 0;
    const char *place = input ? "standard input" : path;
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    rbt_err err = RBT_OK;

    if (fd < 0)
        return rbt_fail(error, RBT_E_IO, "%s: the key cannot be opened: %s; `rubato key new FILE` makes one", path,
                        strerror(errno));
    if (!input && fstat(fd, &status) != 0)
        err = rbt_fail(error, RBT_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    else if (!input && !S_ISREG(status.st_mode)) /* a pipe nobody writes to would be waited for */
        err = rbt_fail(error, RBT_E_DATA, "%s: is no plain file; a key is read from one, or with - from standard input",
                       path);
    else if (!input && !is_private(&status))
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: others may read or write this key (mode %03o); if nobody has, `chmod 600 %s`, else make a "
                       "new one",
                       path, (unsigned)status.st_mode & 0777U, path);
    if (err == RBT_OK)
        err = read_line(fd, place, text, error);
    if (err == RBT_OK)
        err = rbt_key_parse(text, place, key, error);
    explicit_bzero(text, sizeof text);
    if (!input)
        (void)close(fd);
    return err;
}
