/* A file's text piece by piece. Contract in feed.h; proved by tests/unit/test_stream.c. */
#include "data/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "data/unpack.h"

#define RAW_BYTES  (256 * 1024)
#define WAIT_MS    50            /* of waiting for a pipe until it is asked whether to go on */
#define PIPE_BYTES (1024 * 1024) /* a pipe that holds more is read in larger pieces */

struct rbt_feed {
    const char *name;
    int fd;
    bool ours, regular, ended, stopped;
    rbt_feed_stop *stop; /* NULL: waits as long as it takes */
    const void *context;
    rbt_unpacker *unpacker; /* NULL: plain */
    size_t at, n;           /* what of `raw` is waiting */
    char raw[RAW_BYTES];
};

/* Waits for whoever writes to the pipe; false: it need not wait any longer. */
static bool wait_for(const rbt_feed *s)
{
    struct pollfd one = {.fd = s->fd, .events = POLLIN};
    while (s->stop != NULL && !s->regular && poll(&one, 1, WAIT_MS) <= 0)
        if (s->stop(s->context))
            return false;
    return true;
}

/* Reads once; 0 bytes at the end. */
static rbt_err read_some(rbt_feed *s, char *to, size_t room, size_t *got, rbt_error *error)
{
    s->stopped |= !s->ended && !wait_for(s);
    s->ended |= s->stopped;
    ssize_t n = s->ended ? 0 : read(s->fd, to, room);
    while (n < 0 && errno == EINTR)
        n = read(s->fd, to, room);
    if (n < 0)
        return rbt_input_failed(s->name, errno, error);
    s->ended |= n == 0;
    *got = (size_t)n;
    return RBT_OK;
}

rbt_err rbt_feed_open(const char *path, rbt_feed **out, rbt_error *error)
{
    return rbt_feed_open_until(path, NULL, NULL, out, error);
}

rbt_err rbt_feed_open_until(const char *path, rbt_feed_stop *stop, const void *context, rbt_feed **out,
                            rbt_error *error)
{
    bool standard = strcmp(path, "-") == 0;
    int patient = stop != NULL ? O_NONBLOCK : 0; /* to open a named pipe is to wait for who writes; poll does, too */
    rbt_feed *s = rbt_alloc(1, sizeof *s);
    s->stop = stop;
    s->context = context;
    s->name = standard ? "standard input" : path;
    s->ours = !standard;
    s->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | patient);
    rbt_err err = RBT_OK;
    struct stat status;
    if (s->fd < 0)
        err = rbt_fail(error, RBT_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    s->regular = err == RBT_OK && fstat(s->fd, &status) == 0 && S_ISREG(status.st_mode);
    if (err == RBT_OK && !s->regular)
        (void)fcntl(s->fd, F_SETPIPE_SZ, PIPE_BYTES);
    if (err == RBT_OK && !standard && patient != 0)
        (void)fcntl(s->fd, F_SETFL, O_RDONLY);
    while (err == RBT_OK && !s->ended && rbt_unpack_is_undecided(s->raw, s->n)) {
        size_t got = 0;
        err = read_some(s, s->raw + s->n, RAW_BYTES - s->n, &got, error);
        s->n += got;
    }
    if (err == RBT_OK && rbt_unpack_recognise(s->raw, s->n))
        err = rbt_unpacker_create(s->name, s->raw, s->n, &s->unpacker, error);
    if (err == RBT_OK)
        *out = s;
    else
        rbt_feed_close(s);
    return err;
}

rbt_err rbt_feed_open_at(const char *path, uint64_t at, rbt_feed **out, rbt_error *error)
{
    rbt_feed *s = rbt_alloc(1, sizeof *s);
    s->name = path;
    s->ours = s->regular = true;
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd >= 0 && at <= INT64_MAX && lseek(s->fd, (off_t)at, SEEK_SET) >= 0) {
        *out = s;
        return RBT_OK;
    }
    rbt_err err = rbt_fail(error, RBT_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    rbt_feed_close(s);
    return err;
}

rbt_err rbt_feed_seek(rbt_feed *feed, uint64_t at, rbt_error *error)
{
    feed->ended = false;
    if (at <= INT64_MAX && lseek(feed->fd, (off_t)at, SEEK_SET) >= 0)
        return RBT_OK;
    return rbt_fail(error, RBT_E_IO, "%s: cannot be read from byte %llu on: %s", feed->name, (unsigned long long)at,
                    strerror(errno));
}

void rbt_feed_close(rbt_feed *feed)
{
    if (feed == NULL)
        return;
    if (feed->ours && feed->fd >= 0)
        (void)close(feed->fd);
    rbt_unpacker_destroy(feed->unpacker);
    rbt_free(feed);
}

const char *rbt_feed_name(const rbt_feed *feed)
{
    return feed->name;
}

static rbt_err read_unpacked(rbt_feed *s, char *to, size_t room, size_t *got, rbt_error *error)
{
    for (;;) {
        size_t taken = 0;
        rbt_err err = RBT_OK;
        if (s->at == s->n) {
            s->at = s->n = 0;
            err = read_some(s, s->raw, RAW_BYTES, &s->n, error);
        }
        if (err == RBT_OK)
            err = rbt_unpacker_step(s->unpacker, s->raw + s->at, s->n - s->at, &taken, to, room, got, error);
        s->at += taken;
        if (err != RBT_OK || *got > 0)
            return err;
        if (s->stopped)
            return RBT_OK;
        if (s->ended && s->at == s->n)
            return rbt_unpacker_end(s->unpacker, error);
    }
}

rbt_err rbt_feed_read(rbt_feed *feed, char *to, size_t room, size_t *got, rbt_error *error)
{
    *got = 0;
    if (feed->unpacker != NULL)
        return read_unpacked(feed, to, room, got, error);
    if (feed->at == feed->n)
        return read_some(feed, to, room, got, error);
    *got = feed->n - feed->at < room ? feed->n - feed->at : room;
    memcpy(to, feed->raw + feed->at, *got);
    feed->at += *got;
    return RBT_OK;
}

bool rbt_feed_ready(const rbt_feed *feed)
{
    struct pollfd one = {.fd = feed->fd, .events = POLLIN};
    return feed->regular || feed->ended || feed->at < feed->n || poll(&one, 1, 0) > 0;
}

bool rbt_feed_was_stopped(const rbt_feed *feed)
{
    return feed->stopped;
}

bool rbt_feed_is_file(const rbt_feed *feed)
{
    return feed->regular;
}

bool rbt_feed_is_plain(const rbt_feed *feed)
{
    return feed->unpacker == NULL;
}
