/* The ring: a page with the counters, and the bytes behind it.
 *
 * Contract in ring.h. Always: a place in the data is a counter of our own modulo the size, and an amount is at most
 * what is left of the size, so that nothing the other side writes leads outside. Both counters have a cache line of
 * their own (and one between, because processors fetch lines in pairs).
 *
 * No wake-up is lost: the writer sets its wish and then looks at the reader's counter, the reader moves its counter and
 * then looks at the wish. These four are sequentially consistent, so at least one of the two sees what the other did.
 * Proved by tests/unit/test_ring_local.c.
 */
#include "runtime/cluster/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"

#define LINE        128
#define HEAD_BYTES  4096
#define BYTES_LEAST ((size_t)64)
#define BYTES_MOST  ((size_t)1 << 30)
#define WHOLE       ((size_t)64) /* bytes: a line of the cache */
#define PAGE        ((uintptr_t)4096)
#define PART        ((size_t)64 << 10) /* so much is moved before the other side sees it */
#define RESERVED    ((size_t)64 << 10) /* so much memory at once, at least */
#define PUT_PAST    ((size_t)4 << 10)  /* so much at once is written past the cache */
#define AHEAD       ((size_t)512)      /* bytes; so far ahead is asked for what is copied: see copy_lines */
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct rbt_ring_head {
    _Alignas(LINE) _Atomic uint64_t put; /* bytes ever written */
    _Alignas(LINE) _Atomic uint64_t got; /* bytes ever read */
    _Alignas(LINE) _Atomic uint32_t wish;
};

_Static_assert(sizeof(struct rbt_ring_head) <= HEAD_BYTES, "the head has one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "a lock would not be shared");

static bool is_size(size_t bytes)
{
    return bytes >= BYTES_LEAST && bytes <= BYTES_MOST && (bytes & (bytes - 1)) == 0;
}

size_t rbt_ring_share(uint32_t processes)
{
    uint64_t bytes = RBT_RING_BYTES, rings = (uint64_t)processes * processes;

    while (bytes >= RBT_RING_LEAST && bytes * rings > RBT_RINGS_MOST)
        bytes /= 2;
    return bytes >= RBT_RING_LEAST ? (size_t)bytes : 0;
}

/* Maps the file; the ring's other fields are set here, too. */
static rbt_err map(int fd, size_t bytes, rbt_ring *ring, rbt_error *error)
{
    void *memory = mmap(NULL, HEAD_BYTES + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return rbt_fail(error, RBT_E_MEMORY, "%zu bytes of shared memory cannot be mapped: %s; use --shm off", bytes,
                        strerror(errno));
    *ring = (rbt_ring){.head = memory, .data = (uint8_t *)memory + HEAD_BYTES, .bytes = bytes, .mine = 0, .fd = fd};
    return RBT_OK;
}

/* Memory that is not there is an error before it is used; then it would be a signal. Not all systems can give it in advance. */
static bool take_memory(int fd, size_t from, size_t n)
{
    return fallocate(fd, 0, (off_t)from, (off_t)n) == 0 || errno == EOPNOTSUPP || errno == ENOSYS;
}

rbt_err rbt_ring_create(size_t bytes, rbt_ring *ring, rbt_error *error)
{
    RBT_ASSERT(is_size(bytes));
    int fd = memfd_create("rubato-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    rbt_err err = RBT_OK;

    if (fd < 0 || ftruncate(fd, (off_t)(HEAD_BYTES + bytes)) != 0 || !take_memory(fd, 0, HEAD_BYTES) ||
        fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        err = rbt_fail(error, RBT_E_MEMORY, "%zu bytes of shared memory cannot be had: %s; use --shm off", bytes,
                       strerror(errno));
    if (err == RBT_OK)
        err = map(fd, bytes, ring, error);
    if (err != RBT_OK && fd >= 0)
        (void)close(fd);
    return err;
}

rbt_err rbt_ring_reserve(rbt_ring *ring, size_t n, rbt_error *error)
{
    size_t need = ring->bytes, want;

    if (ring->mine < ring->bytes && n < ring->bytes - ring->mine)
        need = (size_t)ring->mine + n;
    if (need <= ring->ready)
        return RBT_OK;
    want = need - ring->ready < RESERVED ? ring->ready + RESERVED : need;
    want = want < ring->bytes ? want : ring->bytes;
    if (!take_memory(ring->fd, HEAD_BYTES + ring->ready, want - ring->ready))
        return rbt_fail(error, RBT_E_MEMORY, "%zu bytes of shared memory cannot be had: %s; use --shm off", ring->bytes,
                        strerror(errno));
    ring->ready = want;
    return RBT_OK;
}

size_t rbt_ring_size_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_size > HEAD_BYTES && is_size((size_t)status.st_size - HEAD_BYTES)
               ? (size_t)status.st_size - HEAD_BYTES
               : 0;
}

/* Seals exist on memory files only; of these, files of huge pages could still fail under us with a signal. */
static rbt_err check_file(int fd, size_t bytes, rbt_error *error)
{
    struct stat status;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);

    if (!is_size(bytes))
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side offers shared memory of %zu bytes; expected a power of two from %zu to %zu",
                        bytes, BYTES_LEAST, BYTES_MOST);
    if (seals < 0 || (seals & SEALS) != SEALS || (seals & ~SEALS) != 0)
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side offers a file that is no shared memory sealed for a ring; it is refused");
    if (fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC ||
        status.st_size != (off_t)(HEAD_BYTES + bytes))
        return rbt_fail(error, RBT_E_PROTOCOL,
                        "the other side offers shared memory of another size or kind than it said (%zu bytes); it is "
                        "refused",
                        bytes);
    return RBT_OK;
}

rbt_err rbt_ring_open(int fd, size_t bytes, rbt_ring *ring, rbt_error *error)
{
    rbt_err err = check_file(fd, bytes, error);

    if (err == RBT_OK)
        err = map(fd, bytes, ring, error);
    if (err == RBT_OK)
        ring->fd = -1; /* the mapping is enough */
    (void)close(fd);
    return err;
}

void rbt_ring_deinit(rbt_ring *ring)
{
    if (ring->head == NULL)
        return;
    (void)munmap(ring->head, HEAD_BYTES + ring->bytes);
    if (ring->fd >= 0)
        (void)close(ring->fd);
    *ring = (rbt_ring){.fd = -1};
}

/* ------------------------------------------------------------------------------------------------- moving bytes */

size_t rbt_ring_free(const rbt_ring *ring)
{
    uint64_t used = ring->mine - atomic_load_explicit(&ring->head->got, memory_order_acquire);
    return used <= ring->bytes ? ring->bytes - (size_t)used : RBT_RING_BROKEN;
}

size_t rbt_ring_filled(const rbt_ring *ring)
{
    uint64_t filled = atomic_load_explicit(&ring->head->put, memory_order_acquire) - ring->mine;
    return filled <= ring->bytes ? (size_t)filled : RBT_RING_BROKEN;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#ifdef __SSE2__
/* Whole lines, each read before it is written; returns how many bytes. Past the cache: `to` begins a line. Asking ahead makes that a
 * tenth faster: the processor does so by itself, but not across pages. */
static size_t copy_lines(uint8_t *to, const uint8_t *from, size_t n, bool past_cache)
{
    size_t done = 0;

    for (; n - done >= WHOLE; done += WHOLE) {
        const __m128i *source = (const void *)(from + done); /* at any address */
        __m128i *target = (void *)(to + done);

        _mm_prefetch((const void *)(from + done + AHEAD), _MM_HINT_T0); /* beyond the end, too: that does nothing */
        __m128i line[4] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1), _mm_loadu_si128(source + 2),
                           _mm_loadu_si128(source + 3)};

        for (int i = 0; i < 4; i++)
            if (past_cache)
                _mm_stream_si128(target + i, line[i]);
            else
                _mm_storeu_si128(target + i, line[i]);
    }
    return done;
}
#endif

/* memcpy, but for where the target lies a few bytes behind the source, as seen within a page: there the processor's
 * string move, which memcpy is made of, is two to seven times slower on AMD's Zen 3 and 4. Where bodies of odd lengths went
 * through the ring before, and the same memory is used again and again, that stays so for message after message. */
static void copy(uint8_t *to, const uint8_t *from, size_t n)
{
    size_t done = 0;

#ifdef __SSE2__
    uintptr_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;

    if (behind > 0 && behind < WHOLE)
        done = copy_lines(to, from, n, false);
#endif
    memcpy(to + done, from + done, n - done);
}

/* Past this processor's cache. */
static void copy_past(uint8_t *to, const uint8_t *from, size_t n)
{
    size_t done = 0;

#ifdef __SSE2__
    done = least(-(uintptr_t)to % WHOLE, n);
    memcpy(to, from, done);
    done += copy_lines(to + done, from + done, n - done, true);
    _mm_sfence(); /* else these stores and the counter's are in no order */
#endif
    copy(to + done, from + done, n - done);
}

/* How much is moved next, of n bytes, and where in the ring: not beyond its end, and little enough for the other side to be at work
 * soon. */
static size_t next_part(const rbt_ring *ring, size_t n, uint8_t **at)
{
    size_t place = (size_t)(ring->mine & (ring->bytes - 1));

    *at = ring->data + place;
    return least(least(n, PART), ring->bytes - place);
}

/* What is much goes past the cache: it is read by another core, which would have to fetch it from here line by line. Between cores
 * that share no cache that is six times slower than from memory; between those that do it is as quick for much, and slower for
 * little. */
size_t rbt_ring_put(rbt_ring *ring, const void *bytes, size_t n)
{
    size_t room = rbt_ring_free(ring);
    const uint8_t *from = bytes;

    if (room == RBT_RING_BROKEN)
        return RBT_RING_BROKEN;
    n = least(n, room);
    if (n == 0 || (ring->ready < ring->bytes && rbt_ring_reserve(ring, n, NULL) != RBT_OK))
        return 0;
    for (size_t left = n; left > 0;) {
        uint8_t *to;
        size_t part = next_part(ring, left, &to);

        (part >= PUT_PAST ? copy_past : copy)(to, from, part);
        from += part;
        left -= part;
        ring->mine += part;
        atomic_store_explicit(&ring->head->put, ring->mine, memory_order_release);
    }
    return n;
}

size_t rbt_ring_get(rbt_ring *ring, void *bytes, size_t n, bool past_cache)
{
    size_t there = rbt_ring_filled(ring);
    uint8_t *to = bytes;

    if (there == RBT_RING_BROKEN)
        return RBT_RING_BROKEN;
    n = least(n, there);
    for (size_t left = n; left > 0;) {
        uint8_t *from;
        size_t part = next_part(ring, left, &from);

        (past_cache ? copy_past : copy)(to, from, part);
        to += part;
        left -= part;
        ring->mine += part;
        atomic_store(&ring->head->got, ring->mine);
    }
    return n;
}

bool rbt_ring_wish(rbt_ring *ring)
{
    atomic_store(&ring->head->wish, 1);
    /* A broken counter counts as room: who puts next finds out. */
    return ring->mine - atomic_load(&ring->head->got) != ring->bytes;
}

bool rbt_ring_wished(rbt_ring *ring)
{
    return atomic_load(&ring->head->wish) != 0 && atomic_exchange(&ring->head->wish, 0) != 0;
}
