/* TLS 1.3 from the job's key: an external pre-shared key with (EC)DHE, so that both sides are authenticated by it, no
 * certificates are needed, and old recordings stay secret when the key is stolen later.
 *
 * Works on a connected non-blocking socket. Reads and writes go straight to and from the caller's memory. Called by the
 * link. Proved by tests/unit/test_tls.c (both sides, wrong key, bytes changed on the way).
 */
#ifndef RBT_RUNTIME_CLUSTER_TLS_H
#define RBT_RUNTIME_CLUSTER_TLS_H

#include <stddef.h>

#include "runtime/cluster/key.h"

typedef struct rbt_tls rbt_tls;               /* what all connections of a process share */
typedef struct rbt_tls_stream rbt_tls_stream; /* one connection */

rbt_err rbt_tls_create(const rbt_key *key, rbt_tls **tls, rbt_error *error);
void rbt_tls_destroy(rbt_tls *tls); /* NULL is fine; after all its streams */

rbt_err rbt_tls_open(rbt_tls *tls, int fd, bool accepting, rbt_tls_stream **stream, rbt_error *error);
void rbt_tls_close(rbt_tls_stream *stream); /* NULL is fine; the socket stays open */

typedef enum rbt_tls_state {
    RBT_TLS_DONE,       /* as much as was asked, or at least one byte */
    RBT_TLS_WANT_READ,  /* again when the socket can be read */
    RBT_TLS_WANT_WRITE, /* again when it can be written */
    RBT_TLS_END,        /* the other side has closed it */
    RBT_TLS_FAILED      /* `error` says why: wrong key, not TLS at all, bytes changed on the way, the system's words */
} rbt_tls_state;

rbt_tls_state rbt_tls_handshake(rbt_tls_stream *stream, rbt_error *error);

/* Both go on until n or until the socket gives or takes no more. After a write that did not take everything (*done
 * below n, RBT_TLS_WANT_WRITE included) the next must go on with the very bytes that were left, all of them and perhaps more
 * behind: some are encrypted already. They may lie elsewhere. */
rbt_tls_state rbt_tls_read(rbt_tls_stream *stream, void *bytes, size_t n, size_t *done, rbt_error *error);
rbt_tls_state rbt_tls_write(rbt_tls_stream *stream, const void *bytes, size_t n, size_t *done, rbt_error *error);

/* Are there bytes in the stream that the socket does not show any more? So after a read that had too little room. */
bool rbt_tls_pending(const rbt_tls_stream *stream);

/* For tests: after how many records a stream changes its key; what AES-GCM allows otherwise. Before any stream. */
void rbt_tls_set_records_per_key(rbt_tls *tls, uint64_t records);

#endif
