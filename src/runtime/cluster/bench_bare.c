/* Bare loops to measure against. Contract in bench_bare.h. */
#include "runtime/cluster/bench_bare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define SMALL       4096 /* messages up to this go several at a time */
#define REQUEST     64   /* bytes */
#define LOOKS       4096 /* at a ring before the processor is given away */
#define PATIENCE_MS 10000

void rbt_bare_init(rbt_bare *bare)
{
    *bare = (rbt_bare){.socket = -1, .buffer = rbt_alloc(RBT_BARE_LARGEST + RBT_BARE_SOURCE_BYTES, 1)};
    memset(bare->buffer, 1, RBT_BARE_LARGEST + RBT_BARE_SOURCE_BYTES); /* so that all pages are there */
}

void rbt_bare_deinit(rbt_bare *bare)
{
    rbt_bare_close(bare);
    rbt_free(bare->buffer);
    bare->buffer = NULL;
}

void rbt_bare_close(rbt_bare *bare)
{
    rbt_tls_close(bare->stream);
    bare->stream = NULL;
    if (bare->socket >= 0)
        (void)close(bare->socket);
    bare->socket = -1;
}

/* Waits for what TLS wants; false when there is nothing to wait for. */
static bool wait_tls(const rbt_bare *bare, rbt_tls_state state)
{
    struct pollfd one = {bare->socket, state == RBT_TLS_WANT_READ ? POLLIN : POLLOUT, 0};

    return (state == RBT_TLS_WANT_READ || state == RBT_TLS_WANT_WRITE) && poll(&one, 1, PATIENCE_MS) == 1;
}

rbt_err rbt_bare_open(rbt_bare *bare, rbt_tls *tls, bool accepting, rbt_error *error)
{
    rbt_tls_state state = RBT_TLS_WANT_WRITE;
    rbt_err err = RBT_OK;

    if (tls == NULL) {
        (void)fcntl(bare->socket, F_SETFL, 0); /* it waits */
        return RBT_OK;
    }
    err = rbt_tls_open(tls, bare->socket, accepting, &bare->stream, error);
    while (err == RBT_OK && state != RBT_TLS_DONE) {
        state = rbt_tls_handshake(bare->stream, error);
        if (state != RBT_TLS_DONE && !wait_tls(bare, state))
            err = rbt_fail(error, RBT_E_IO, "the bare loop's other side cannot be encrypted to; run it again");
    }
    return err;
}

/* ------------------------------------------------------------------------------------------------- moving bytes */

static rbt_err has_ended(rbt_error *error)
{
    return rbt_fail(error, RBT_E_IO, "the bare loop's other side has ended; run it again");
}

/* A ring cannot tell that the other process has ended: its socket can, now and then. */
static rbt_err look_away(const rbt_bare *bare, size_t *looks, rbt_error *error)
{
    char byte;

    if (++*looks % LOOKS != 0)
        return RBT_OK;
    (void)sched_yield();
    return recv(bare->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ? has_ended(error) : RBT_OK;
}

static rbt_err move_through_ring(const rbt_bare *bare, uint8_t *got, const uint8_t *put, size_t n, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t at = 0, looks = 0; at < n && err == RBT_OK;) {
        size_t done = put != NULL ? rbt_ring_put(bare->out, put + at, n - at)
                                  : rbt_ring_get(bare->in, got + at, n - at, n >= RBT_BARE_LARGEST);

        RBT_ASSERT(done != RBT_RING_BROKEN);
        at += done;
        if (done == 0)
            err = look_away(bare, &looks, error);
    }
    return err;
}

static rbt_err write_all(const rbt_bare *bare, const uint8_t *bytes, size_t n, rbt_error *error)
{
    if (bare->out != NULL)
        return move_through_ring(bare, NULL, bytes, n, error);
    for (size_t at = 0; at < n;) {
        size_t done = 0;
        ssize_t put;

        if (bare->stream != NULL) {
            rbt_tls_state state = rbt_tls_write(bare->stream, bytes + at, n - at, &done, error);

            if (state != RBT_TLS_DONE && !wait_tls(bare, state))
                return has_ended(error);
            at += done;
            continue;
        }
        put = send(bare->socket, bytes + at, n - at, MSG_NOSIGNAL);
        if (put < 0)
            return rbt_fail(error, RBT_E_IO, "the bare loop cannot write: %s; run it again", strerror(errno));
        at += (size_t)put;
    }
    return RBT_OK;
}

static rbt_err read_all(rbt_bare *bare, size_t n, rbt_error *error)
{
    if (bare->in != NULL)
        return move_through_ring(bare, bare->buffer, NULL, n, error);
    for (size_t at = 0; at < n;) {
        size_t done = 0;
        ssize_t got;

        if (bare->stream != NULL) {
            rbt_tls_state state = rbt_tls_read(bare->stream, bare->buffer + at, n - at, &done, error);

            if (state != RBT_TLS_DONE && !wait_tls(bare, state))
                return has_ended(error);
            at += done;
            continue;
        }
        got = recv(bare->socket, bare->buffer + at, n - at, 0);
        if (got <= 0)
            return rbt_fail(error, RBT_E_IO, "the bare loop cannot read: %s; run it again",
                            got < 0 ? strerror(errno) : "the other side has ended");
        at += (size_t)got;
    }
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------- loops */

/* As blocks are sent in turn, so are the bytes of the bare loop. */
static const uint8_t *next_source(rbt_bare *bare, size_t bytes)
{
    if (bare->source + bytes > RBT_BARE_SOURCE_BYTES || bare->source + bytes > RBT_BARE_SOURCES * bytes)
        bare->source = 0;
    bare->source += bytes;
    return bare->buffer + RBT_BARE_LARGEST + bare->source - bytes;
}

size_t rbt_bare_batch(uint64_t bytes)
{
    return bytes <= SMALL ? RBT_BARE_BATCH : 1;
}

rbt_err rbt_bare_serve(rbt_bare *bare, const rbt_bare_job *job, rbt_error *error)
{
    size_t batch = rbt_bare_batch(job->bytes);
    rbt_err err = RBT_OK;

    for (uint64_t i = 0; err == RBT_OK && i < job->count; i += batch) {
        err = read_all(bare, job->is_pull ? batch * REQUEST : batch * job->bytes, error);
        if (err == RBT_OK && job->is_pull)
            err = write_all(bare, next_source(bare, batch * job->bytes), batch * job->bytes, error);
    }
    return err == RBT_OK && !job->is_pull ? write_all(bare, bare->buffer, 1, error) : err;
}

rbt_err rbt_bare_run(rbt_bare *bare, const rbt_bare_job *job, rbt_error *error)
{
    size_t batch = rbt_bare_batch(job->bytes);
    rbt_err err = RBT_OK;

    if (!job->is_pull) {
        for (uint64_t i = 0; err == RBT_OK && i < job->count; i += batch)
            err = write_all(bare, next_source(bare, batch * job->bytes), batch * job->bytes, error);
        return err == RBT_OK ? read_all(bare, 1, error) : err;
    }
    for (uint64_t i = 0; err == RBT_OK && i < RBT_BARE_UNDER_WAY && i * batch < job->count; i++)
        err = write_all(bare, bare->buffer, batch * REQUEST, error);
    for (uint64_t i = 0; err == RBT_OK && i < job->count; i += batch) {
        err = read_all(bare, batch * job->bytes, error);
        if (err == RBT_OK && i + RBT_BARE_UNDER_WAY * batch < job->count)
            err = write_all(bare, bare->buffer, batch * REQUEST, error);
    }
    return err;
}

void rbt_bare_memcpy(rbt_bare *bare, const rbt_bare_job *job)
{
    size_t at = 0;

    for (uint64_t i = 0; i < job->count; i++) {
        const uint8_t *from = next_source(bare, job->bytes);

        for (size_t done = 0, part; done < job->bytes; done += part) {
            part = job->bytes - done < RBT_RING_BYTES - at ? job->bytes - done : RBT_RING_BYTES - at;
            memcpy(bare->buffer + at, from + done, part);
            at = (at + part) % RBT_RING_BYTES;
        }
        __asm__ volatile("" : : "r"(bare->buffer) : "memory"); /* it is to be done each time */
    }
}
