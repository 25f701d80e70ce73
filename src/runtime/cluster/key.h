/* The job's key: what its processes know and nobody else.
 *
 * A key has a public id (to tell keys apart in messages) and a secret, from which the id follows. As text it is a line,
 * "rubato-key-1 ID SECRET" in hexadecimal; a key file has that line and mode 0600, and one that others may read is
 * refused. The secret never leaves the process except into a key file or a child's standard input; it is wiped when it
 * is no longer needed.
 *
 * Called by the hub (through tls.h and proofs), the launchers and `rubato key`. Proved by tests/unit/test_key.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_KEY_H
#define RBT_RUNTIME_CLUSTER_KEY_H

#include "rubato.h"

#define RBT_KEY_ID     8
#define RBT_KEY_SECRET 32
#define RBT_KEY_PROOF  32
#define RBT_KEY_NONCE  32
#define RBT_KEY_ROOM   128 /* characters that hold a key as text, with the end */

typedef struct rbt_key {
    uint8_t id[RBT_KEY_ID];
    uint8_t secret[RBT_KEY_SECRET];
} rbt_key;

rbt_err rbt_key_create(rbt_key *key, rbt_error *error); /* at random */
void rbt_key_wipe(rbt_key *key);

/* Writes a new file, mode 0600; one that is there already is not overwritten. */
rbt_err rbt_key_write(const rbt_key *key, const char *path, rbt_error *error);

/* Reads a key file; "-" is the first line of the standard input. Of the files that others may read only those of root that a
 * group may read are taken, and not by root: secrets as Kubernetes mounts them. */
rbt_err rbt_key_read(const char *path, rbt_key *key, rbt_error *error);

void rbt_key_text(const rbt_key *key, char text[RBT_KEY_ROOM]);
rbt_err rbt_key_parse(const char *text, const char *place, rbt_key *key, rbt_error *error);
void rbt_key_id_text(const uint8_t id[RBT_KEY_ID], char text[2 * RBT_KEY_ID + 1]);

/* Random bytes that nobody can guess. */
rbt_err rbt_key_nonce(uint8_t nonce[RBT_KEY_NONCE], rbt_error *error);

/* Another secret that follows from the key's and, for other labels, is unrelated. */
void rbt_key_derive(const rbt_key *key, const char *label, uint8_t derived[RBT_KEY_SECRET]);

/* Shows knowledge of the key without showing it: HMAC-SHA256 over the role (fewer than 64 characters) and both
 * sides' nonces. */
void rbt_key_prove(const rbt_key *key, const char *role, const uint8_t dialer[RBT_KEY_NONCE],
                   const uint8_t acceptor[RBT_KEY_NONCE], uint8_t proof[RBT_KEY_PROOF]);
bool rbt_key_proof_equals(const uint8_t a[RBT_KEY_PROOF], const uint8_t b[RBT_KEY_PROOF]); /* in constant time */

#endif
