/* Proves src/runtime/cluster/ring.c: bytes come out as they went in, between threads (which the thread sanitizer
 * watches) and processes; a wish is never lost; a hostile counter or file leads to an answer and not outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"

#define SMALL  ((size_t)256)
#define LARGE  ((size_t)256 << 10) /* so much at once is copied in another way, and in several parts */
#define HEAD   4096
#define STREAM ((size_t)1 << 20) /* bytes passed by the tests with two sides */

static rbt_ring made(size_t bytes)
{
    rbt_error error = {RBT_OK, ""};
    rbt_ring ring = {.fd = -1};
    rbt_err err = rbt_ring_create(bytes, &ring, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(err, RBT_OK);
    return ring;
}

/* The other side, as another process would have it: mapped a second time. */
static rbt_ring opened(const rbt_ring *ring)
{
    rbt_error error = {RBT_OK, ""};
    rbt_ring other = {.fd = -1};
    assert_int_equal(rbt_ring_open(dup(ring->fd), ring->bytes, &other, &error), RBT_OK);
    return other;
}

/* The byte that stands at a place of the stream. */
static uint8_t byte_at(uint64_t place)
{
    return (uint8_t)(place * 0x9E3779B97F4A7C15u >> 56);
}

/* ------------------------------------------------------------------------------------------------ one thread */

static void a_ring_fills_empties_and_wraps(void **state)
{
    (void)state;
    rbt_ring writer = made(SMALL), reader = opened(&writer);
    rbt_rng rng = rbt_rng_stream(1, 1, 1);
    uint64_t put = 0, got = 0;
    uint8_t bytes[2 * SMALL];
    for (int i = 0; i < 20000; i++) {
        size_t n = rbt_rng_below(&rng, sizeof bytes + 1), room = SMALL - (size_t)(put - got);
        assert_int_equal(rbt_ring_free(&writer), room);
        assert_int_equal(rbt_ring_filled(&reader), put - got);
        if (rbt_rng_below(&rng, 2) == 0) {
            for (size_t b = 0; b < n; b++)
                bytes[b] = byte_at(put + b);
            size_t expected = n < room ? n : room;
            assert_int_equal(rbt_ring_put(&writer, bytes, n), expected);
            put += expected;
        } else {
            size_t there = (size_t)(put - got), expected = n < there ? n : there;
            assert_int_equal(rbt_ring_get(&reader, bytes, n, i % 3 == 0), expected);
            for (size_t b = 0; b < expected; b++)
                assert_int_equal(bytes[b], byte_at(got + b));
            got += expected;
        }
    }
    rbt_ring_deinit(&reader);
    rbt_ring_deinit(&writer);
    assert_null(writer.head);
    rbt_ring_deinit(&writer); /* nothing is there any more */
}

/* How bytes are copied goes by how many there are and how source and target lie to each other within their pages. */
static void much_comes_out_as_it_went_in_wherever_it_lies(void **state)
{
    (void)state;
    rbt_ring writer = made(LARGE), reader = opened(&writer);
    rbt_rng rng = rbt_rng_stream(1, 1, 4);
    uint8_t *from = aligned_alloc(4096, 2 * LARGE), *to = aligned_alloc(4096, 2 * LARGE);
    assert_non_null(from);
    assert_non_null(to);
    for (uint64_t at = 0, i = 0; i < 400; i++) {
        size_t n = 1 + rbt_rng_below(&rng, LARGE), ring_at = (size_t)(at % LARGE);
        uint8_t *source = from + rbt_rng_below(&rng, 4096), *target = to + 1;
        target += (ring_at + rbt_rng_below(&rng, 80)) % 4096; /* often a few bytes behind the place in the ring */
        for (size_t b = 0; b < n; b++)
            source[b] = byte_at(at + b);
        target[-1] = target[n] = 99;
        assert_int_equal(rbt_ring_put(&writer, source, n), n);
        assert_int_equal(rbt_ring_get(&reader, target, n, i % 3 == 0), n);
        assert_memory_equal(target, source, n);
        assert_int_equal(target[-1], 99);
        assert_int_equal(target[n], 99);
        at += n;
    }
    free(to);
    free(from);
    rbt_ring_deinit(&reader);
    rbt_ring_deinit(&writer);
}

static void a_wish_is_told_once_and_room_at_the_last_moment_is_seen(void **state)
{
    (void)state;
    rbt_ring writer = made(SMALL), reader = opened(&writer);
    uint8_t bytes[SMALL] = {0};
    assert_false(rbt_ring_wished(&reader));
    assert_int_equal(rbt_ring_put(&writer, bytes, SMALL), SMALL);
    assert_int_equal(rbt_ring_put(&writer, bytes, 1), 0);
    assert_false(rbt_ring_wish(&writer));
    assert_int_equal(rbt_ring_get(&reader, bytes, 1, false), 1);
    assert_true(rbt_ring_wished(&reader));
    assert_false(rbt_ring_wished(&reader));
    assert_true(rbt_ring_wish(&writer)); /* the reader has read in between */
    rbt_ring_deinit(&reader);
    rbt_ring_deinit(&writer);
}

/* --------------------------------------------------------------------------------------------------- two sides */

/* One process waits for room or data only through these. */
typedef struct duo {
    rbt_ring writer, reader;
    sem_t data, room;
    uint8_t put[3 * LARGE], got[3 * LARGE];
} duo;

static void *write_stream(void *context)
{
    duo *d = context;
    rbt_rng rng = rbt_rng_stream(1, 1, 2);
    uint8_t *bytes = d->put;
    for (uint64_t put = 0; put < STREAM;) {
        size_t n = 1 + rbt_rng_below(&rng, 3 * d->writer.bytes), done = 0;
        if (n > STREAM - put)
            n = (size_t)(STREAM - put);
        for (size_t b = 0; b < n; b++)
            bytes[b] = byte_at(put + b);
        while (done < n) {
            size_t one = rbt_ring_put(&d->writer, bytes + done, n - done);
            if (one == RBT_RING_BROKEN)
                return d;
            done += one;
            if (one > 0)
                sem_post(&d->data);
            else if (!rbt_ring_wish(&d->writer))
                sem_wait(&d->room); /* for ever, if a wish were lost: the test's time limit would tell */
        }
        put += n;
    }
    return NULL;
}

static void *read_stream(void *context)
{
    duo *d = context;
    rbt_rng rng = rbt_rng_stream(1, 1, 3);
    uint8_t *bytes = d->got;
    for (uint64_t got = 0; got < STREAM;) {
        size_t wanted = 1 + rbt_rng_below(&rng, 3 * d->reader.bytes);
        size_t n = rbt_ring_get(&d->reader, bytes, wanted, wanted % 3 == 0);
        if (n == RBT_RING_BROKEN)
            return d;
        if (n == 0)
            sem_wait(&d->data);
        for (size_t b = 0; b < n; b++)
            if (bytes[b] != byte_at(got + b))
                return d;
        got += n;
        if (n > 0 && rbt_ring_wished(&d->reader))
            sem_post(&d->room);
    }
    return NULL;
}

/* Both threads use the same mapping, so that the thread sanitizer sees that they meet. */
static void pass_between_threads(size_t ring_bytes)
{
    duo *d = calloc(1, sizeof *d);
    pthread_t writer, reader;
    void *wrong = NULL;
    assert_non_null(d);
    d->reader = d->writer = made(ring_bytes);
    assert_int_equal(sem_init(&d->data, 0, 0), 0);
    assert_int_equal(sem_init(&d->room, 0, 0), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_stream, d), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_stream, d), 0);
    assert_int_equal(pthread_join(writer, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
    sem_destroy(&d->data);
    sem_destroy(&d->room);
    rbt_ring_deinit(&d->writer);
    free(d);
}

static void two_threads_pass_bytes_and_lose_no_wish(void **state)
{
    (void)state;
    pass_between_threads(SMALL);
    pass_between_threads(LARGE);
}

static void pass_between_processes(size_t ring_bytes)
{
    duo *d = mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(d != MAP_FAILED);
    d->writer = made(ring_bytes);
    assert_int_equal(sem_init(&d->data, 1, 0), 0);
    assert_int_equal(sem_init(&d->room, 1, 0), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(write_stream(d) == NULL ? 0 : 1);
    rbt_ring mine = opened(&d->writer);
    d->reader = mine;
    void *wrong = read_stream(d);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_null(wrong);
    rbt_ring_deinit(&mine);
    rbt_ring_deinit(&d->writer);
    assert_int_equal(munmap(d, sizeof *d), 0);
}

static void two_processes_pass_bytes(void **state)
{
    (void)state;
    pass_between_processes(SMALL);
    pass_between_processes(LARGE);
}

/* ---------------------------------------------------------------------------------------------- broken promises */

/* The other side writes what it likes into the whole head: an answer is a possible amount or RBT_RING_BROKEN, nothing
 * outside of the data is touched (the address sanitizer does not see mappings: pages around the ring are guarded). */
static void hostile_counters_lead_to_an_answer_and_not_outside(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(4, 1, 1);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 65536;
    rbt_ring ring = made(n);
    uint8_t *guarded = mmap(NULL, HEAD + n + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(guarded != MAP_FAILED);
    uint8_t *memory = mmap(guarded + page, HEAD + n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ring.fd, 0);
    assert_true(memory != MAP_FAILED);
    rbt_ring side = {.head = (void *)memory, .data = memory + HEAD, .bytes = n, .mine = 0, .fd = -1};
    uint8_t *bytes = calloc(2, n);
    assert_non_null(bytes);
    uint64_t *words = (uint64_t *)(void *)memory;
    for (int i = 0; i < 20000; i++) {
        uint64_t near = side.mine + rbt_rng_below(&rng, 4 * n) - 2 * n;
        uint64_t value = rbt_rng_below(&rng, 4) == 0 ? rbt_rng_u64(&rng) : near;
        for (size_t w = 0; w < HEAD / 8; w += 16) /* wherever the counters are */
            words[w] = value;
        size_t wanted = rbt_rng_below(&rng, 2 * n), most = rbt_rng_below(&rng, 2) == 0
                                                               ? rbt_ring_put(&side, bytes, wanted)
                                                               : rbt_ring_get(&side, bytes, wanted, i % 3 == 0);
        assert_true(most == RBT_RING_BROKEN || (most <= n && most <= wanted));
        size_t a = rbt_ring_free(&side), b = rbt_ring_filled(&side);
        assert_true(a == RBT_RING_BROKEN || a <= n);
        assert_true(b == RBT_RING_BROKEN || b <= n);
        (void)rbt_ring_wish(&side);
        (void)rbt_ring_wished(&side);
    }
    for (size_t w = 0; w < HEAD / 8; w += 16)
        words[w] = side.mine + n + 1;
    assert_int_equal(rbt_ring_filled(&side), RBT_RING_BROKEN);
    assert_int_equal(rbt_ring_free(&side), RBT_RING_BROKEN);
    assert_int_equal(rbt_ring_put(&side, bytes, 1), RBT_RING_BROKEN);
    assert_int_equal(rbt_ring_get(&side, bytes, 1, false), RBT_RING_BROKEN);
    assert_true(rbt_ring_wish(&side)); /* it is not waited for: the next put tells */
    free(bytes);
    assert_int_equal(munmap(guarded, HEAD + n + 2 * page), 0);
    rbt_ring_deinit(&ring);
}

static size_t memory_of(const rbt_ring *ring)
{
    struct stat status;

    assert_int_equal(fstat(ring->fd, &status), 0);
    return (size_t)status.st_blocks * 512;
}

/* What is in use is given before it is used; what is not is not taken. */
static void memory_is_taken_as_it_is_used(void **state)
{
    static uint8_t bytes[RBT_RING_BYTES];
    rbt_ring ring = made(RBT_RING_BYTES), reader = opened(&ring);
    rbt_error error;

    (void)state;
    assert_true(memory_of(&ring) <= 2 * HEAD);
    assert_int_equal(rbt_ring_put(&ring, bytes, 1000), 1000);
    assert_true(memory_of(&ring) <= HEAD + (128u << 10));
    assert_int_equal(rbt_ring_reserve(&ring, 1 << 20, &error), RBT_OK);
    assert_in_range(memory_of(&ring), 1 << 20, HEAD + (2u << 20));
    assert_int_equal(rbt_ring_put(&ring, bytes, sizeof bytes), sizeof bytes - 1000);
    assert_true(memory_of(&ring) >= sizeof bytes);
    assert_int_equal(rbt_ring_get(&reader, bytes, sizeof bytes, false), sizeof bytes);
    assert_int_equal(rbt_ring_put(&ring, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(memory_of(&ring), HEAD + sizeof bytes);
    assert_int_equal(rbt_ring_size_of(ring.fd), sizeof bytes);
    rbt_ring_deinit(&ring);
    rbt_ring_deinit(&reader);
}

static void many_processes_have_small_rings_and_very_many_none(void **state)
{
    (void)state;
    assert_int_equal(rbt_ring_share(2), RBT_RING_BYTES);
    assert_int_equal(rbt_ring_share(11), RBT_RING_BYTES);
    assert_int_equal(rbt_ring_share(32), 512 << 10);
    assert_int_equal(rbt_ring_share(65536), 0);
    for (uint32_t n = 2; n < 2000; n++) {
        size_t bytes = rbt_ring_share(n);

        assert_true(bytes == 0 || (bytes >= RBT_RING_LEAST && (bytes & (bytes - 1)) == 0));
        assert_true((uint64_t)bytes * n * n <= RBT_RINGS_MOST);
    }
}

static int file_of(size_t bytes, unsigned flags, int seals)
{
    int fd = memfd_create("test", flags);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (seals != 0)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static int lowest_free(void)
{
    int fd = dup(STDOUT_FILENO);
    close(fd);
    return fd;
}

static void a_file_that_could_be_cut_or_is_no_memory_is_refused_and_closed(void **state)
{
    (void)state;
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const unsigned sealable = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    rbt_error error;
    rbt_ring ring = {.fd = -1};
    int before = lowest_free();
    int bad[] = {
        file_of(HEAD + SMALL, MFD_CLOEXEC, 0),
        file_of(HEAD + SMALL, sealable, 0),
        file_of(HEAD + SMALL, sealable, F_SEAL_GROW | F_SEAL_SEAL),
        file_of(HEAD + SMALL, sealable, F_SEAL_SHRINK),
        file_of(HEAD + SMALL, sealable, all | F_SEAL_WRITE),
        file_of(HEAD + SMALL - 1, sealable, all),
        file_of(SMALL, sealable, all),
        file_of(HEAD + 2 * SMALL, sealable, all),
        open("/dev/null", O_RDWR | O_CLOEXEC),
        open(".", O_RDONLY | O_CLOEXEC),
        -1,
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error.text[0] = '\0';
        assert_int_equal(rbt_ring_open(bad[i], SMALL, &ring, &error), RBT_E_PROTOCOL);
        assert_non_null(strstr(error.text, "refused"));
        assert_null(ring.head);
    }
    assert_int_equal(lowest_free(), before);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
    (void)state;
    static const size_t bad[] = {
        0, 1, 63, 32, SMALL + 1, 3 * SMALL, (size_t)1 << 31, SIZE_MAX, SIZE_MAX - HEAD + 1, (size_t)1 << 63};
    rbt_error error;
    rbt_ring ring = {.fd = -1};
    rbt_ring good = made(SMALL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(rbt_ring_open(dup(good.fd), bad[i], &ring, &error), RBT_E_PROTOCOL);
    rbt_ring_deinit(&good);
}

static void the_memory_cannot_be_cut_or_grown(void **state)
{
    (void)state;
    rbt_ring ring = made(RBT_RING_BYTES);
    assert_int_equal(ftruncate(ring.fd, 0), -1);
    assert_int_equal(ftruncate(ring.fd, 2 * RBT_RING_BYTES), -1);
    assert_true((fcntl(ring.fd, F_GETFD) & FD_CLOEXEC) != 0);
    rbt_ring_deinit(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_taken_as_it_is_used),
        cmocka_unit_test(many_processes_have_small_rings_and_very_many_none),
        cmocka_unit_test(a_ring_fills_empties_and_wraps),
        cmocka_unit_test(much_comes_out_as_it_went_in_wherever_it_lies),
        cmocka_unit_test(a_wish_is_told_once_and_room_at_the_last_moment_is_seen),
        cmocka_unit_test(two_threads_pass_bytes_and_lose_no_wish),
        cmocka_unit_test(two_processes_pass_bytes),
        cmocka_unit_test(hostile_counters_lead_to_an_answer_and_not_outside),
        cmocka_unit_test(a_file_that_could_be_cut_or_is_no_memory_is_refused_and_closed),
        cmocka_unit_test(a_size_that_cannot_be_is_refused),
        cmocka_unit_test(the_memory_cannot_be_cut_or_grown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
