/* A ring of shared memory for bulk data between two processes of one host: one writer, one reader.
 *
 * The memory is a sealed memfd, so that neither side can shrink it under the other. Both counters lie in it and only
 * grow; each side believes its own copy of its own counter and checks the other's: a counter that cannot be is a broken
 * promise (RBT_RING_BROKEN), never an access outside. Nobody waits here: who finds no room or no data is told so, and
 * the link says over its socket when there is something to do again. Proved by tests/unit/test_ring_local.c, also under
 * threads.
 */
#ifndef RBT_RUNTIME_CLUSTER_RING_H
#define RBT_RUNTIME_CLUSTER_RING_H

#include <stddef.h>

#include "rubato.h"

#define RBT_RING_BYTES  (4u << 20)            /* what a link uses: stays in a shared cache, and holds several blocks */
#define RBT_RING_LEAST  (64u << 10)           /* less is of no use */
#define RBT_RINGS_MOST  ((uint64_t)512 << 20) /* what all rings of a job's processes on a host may come to */
#define RBT_RING_BROKEN SIZE_MAX

typedef struct rbt_ring {
    struct rbt_ring_head *head; /* the shared memory; NULL: no ring */
    uint8_t *data;
    size_t bytes;  /* of data: a power of two */
    uint64_t mine; /* bytes put, or got, by this side */
    size_t ready;  /* the writer: bytes of data for which there is memory */
    int fd;
} rbt_ring;

/* How large rings may be when so many processes of a host have two with each of the others; 0: too small to be of use. */
size_t rbt_ring_share(uint32_t processes);

/* A new one, to be written to or read from by this process; its fd is for the other. `bytes` is a power of two from 64
 * to 2^30. Memory is taken from the system when bytes first go there. */
rbt_err rbt_ring_create(size_t bytes, rbt_ring *ring, rbt_error *error);

/* The other side's; takes the fd, also when it fails. Its size and seals are checked first. */
rbt_err rbt_ring_open(int fd, size_t bytes, rbt_ring *ring, rbt_error *error);
size_t rbt_ring_size_of(int fd); /* its `bytes`; 0: that is none */

/* Makes sure that there is memory for the next n bytes; who puts without is given it, or told that there is no room. */
rbt_err rbt_ring_reserve(rbt_ring *ring, size_t n, rbt_error *error);
void rbt_ring_deinit(rbt_ring *ring);

/* Copies as much as fits, or as is there, at most n; returns how much, or RBT_RING_BROKEN. What was got is the
 * caller's; it can no longer change. Past the cache: it is part of something that would not stay there anyway. */
size_t rbt_ring_put(rbt_ring *ring, const void *bytes, size_t n);
size_t rbt_ring_get(rbt_ring *ring, void *bytes, size_t n, bool past_cache);

size_t rbt_ring_free(const rbt_ring *ring);   /* for the writer */
size_t rbt_ring_filled(const rbt_ring *ring); /* for the reader */

/* The writer found no room and asks to be told; true when there is room by now after all. The reader, after getting,
 * asks whether the writer wants to be told, which clears the wish. A wish that is no longer needed may be answered
 * nevertheless. */
bool rbt_ring_wish(rbt_ring *ring);
bool rbt_ring_wished(rbt_ring *ring);

#endif
