/* What a connection of the cluster is measured against: two processes that move the same bytes over the same kind of
 * socket, or through the same kind of ring, and do nothing else; and memcpy.
 *
 * Called by bench_net.c. Both processes have an rbt_bare; one runs a job, the other one serves the same job. Tried by
 * tests/cli/test_bench_net.sh.
 */
#ifndef RBT_RUNTIME_CLUSTER_BENCH_BARE_H
#define RBT_RUNTIME_CLUSTER_BENCH_BARE_H

#include "runtime/cluster/ring.h"
#include "runtime/cluster/tls.h"

#define RBT_BARE_LARGEST      ((size_t)16 << 20)
#define RBT_BARE_SOURCES      64                 /* different messages that are sent in turn, ... */
#define RBT_BARE_SOURCE_BYTES ((size_t)64 << 20) /* ... of at most this together: what is sent is rarely in the cache */
#define RBT_BARE_BATCH        16                 /* small messages go so many at a time */
#define RBT_BARE_UNDER_WAY    8 /* requests, or batches of small ones, that are asked ahead on both sides */

typedef struct rbt_bare {
    int socket;             /* one that waits; -1: none */
    rbt_tls_stream *stream; /* NULL: not encrypted */
    rbt_ring *out, *in;     /* used in place of the socket unless they are NULL */
    uint8_t *buffer;        /* LARGEST bytes to receive into, then SOURCE_BYTES to send from */
    size_t source;          /* where the next message lies */
} rbt_bare;

/* So many messages of so many bytes, from who runs to who serves; or, pulled, each on request the other way. */
typedef struct rbt_bare_job {
    bool is_pull;
    uint64_t bytes;
    uint64_t count;
} rbt_bare_job;

/* How many messages of this size go at a time. */
size_t rbt_bare_batch(uint64_t bytes);

void rbt_bare_init(rbt_bare *bare);
void rbt_bare_deinit(rbt_bare *bare);

/* Sends over `socket`, which is connected by now, until it is closed. `tls` may be NULL. */
rbt_err rbt_bare_open(rbt_bare *bare, rbt_tls *tls, bool accepting, rbt_error *error);
void rbt_bare_close(rbt_bare *bare);

rbt_err rbt_bare_run(rbt_bare *bare, const rbt_bare_job *job, rbt_error *error);
rbt_err rbt_bare_serve(rbt_bare *bare, const rbt_bare_job *job, rbt_error *error);

/* The same bytes from where the messages lie into as much memory as a ring has. */
void rbt_bare_memcpy(rbt_bare *bare, const rbt_bare_job *job);

#endif
