/* Whole files in, whole files out. Contract in file.h; proved by tests/unit/test_file.c, test_libsvm.c and test_trained.c. */
#include "data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define CREATED    "cannot be created"
#define READ_BYTES (256 * 1024)
/* What the system keeps of a file that is written in pieces as large and as aligned as huge pages is mapped as such: on Linux
 * 6.18 with ext4, a cache of 28 MB is met in 0.8 instead of 2.8 ms. */
#define BUFFER_BYTES ((size_t)2 * 1024 * 1024)
/* One touched page brings as many neighbours as the system holds together: 2 MiB at most. Released are all of them, else
 * they would pile up (measured on Linux 6.18: 160 of 1000 MB stayed with 64 KiB, 12 with 2 MiB, at the same speed). */
#define RELEASE_BYTES (uintptr_t)(2 * 1024 * 1024)

/* -------------------------------------------------------------------------------------------------------- in */

rbt_err rbt_input_failed(const char *name, int reason, rbt_error *error)
{
    if (reason == EISDIR)
        return rbt_fail(error, RBT_E_IO, "%s: is a folder; give a file, or the files in it, as in '%s/*'", name, name);
    return rbt_fail(error, RBT_E_IO, "%s: cannot be read: %s", name, strerror(reason));
}

/* Reads until the end whatever the descriptor is, doubling the buffer as needed. */
static rbt_err read_whole(int fd, rbt_input *input, rbt_error *error)
{
    size_t room = READ_BYTES, n = 0;
    char *bytes = rbt_try_alloc(room, 1);
    while (bytes != NULL) {
        if (n == room) {
            char *larger = room > SIZE_MAX / 2 ? NULL : rbt_try_alloc(room * 2, 1);
            if (larger == NULL)
                break;
            memcpy(larger, bytes, n);
            rbt_free(bytes);
            bytes = larger;
            room *= 2;
        }
        ssize_t got = read(fd, bytes + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int reason = errno;
            rbt_free(bytes);
            return rbt_input_failed(input->name, reason, error);
        }
        if (got == 0) {
            input->bytes = bytes;
            input->n = n;
            return RBT_OK;
        }
        n += (size_t)got;
    }
    rbt_free(bytes);
    return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory to read it (%.1f MB so far); give a smaller file",
                    input->name, (double)n / 1e6);
}

/* Is there a limit that a mapping of so many bytes does not fit into? Memory of that size would not fit, either. */
static bool is_too_wide(size_t bytes, const rbt_input *input, rbt_error *error)
{
    struct rlimit limit;
    if (errno != ENOMEM || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return false;
    (void)rbt_fail(error, RBT_E_LIMIT,
                   "%s: has %.1f MB, which cannot be mapped within the limit of address space (ulimit -v) of %.1f MB; "
                   "raise that limit: mapped bytes count there, but are in memory only while they are looked at",
                   input->name, (double)bytes / 1e6, (double)limit.rlim_cur / 1e6);
    return true;
}

rbt_err rbt_input_open(const char *path, rbt_input *input, rbt_error *error)
{
    bool standard = strcmp(path, "-") == 0;
    rbt_input in = {.name = standard ? "standard input" : path};
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rbt_fail(error, RBT_E_IO, "%s: cannot be opened: %s", path, strerror(errno));

    /* Files of /proc say that they are empty and are not: only a size above zero is believed. */
    struct stat status;
    bool too_wide = false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && !standard) {
        void *at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            (void)madvise(at, (size_t)status.st_size, MADV_HUGEPAGE); /* and read from disk like that */
            (void)madvise(at, (size_t)status.st_size, MADV_SEQUENTIAL);
            in.bytes = at;
            in.n = (size_t)status.st_size;
            in.mapped = true;
        } else {
            too_wide = is_too_wide((size_t)status.st_size, &in, error);
        }
    }
    rbt_err err = in.mapped ? RBT_OK : too_wide ? RBT_E_LIMIT : read_whole(fd, &in, error);
    if (!standard)
        (void)close(fd);
    if (err == RBT_OK)
        *input = in;
    return err;
}

void rbt_input_close(rbt_input *input)
{
    if (input->mapped)
        (void)munmap((void *)(uintptr_t)input->bytes, input->n);
    else
        rbt_free((void *)(uintptr_t)input->bytes);
    *input = (rbt_input){0};
}

void rbt_mapping_release(const void *mapping, size_t mapping_bytes, const void *at, size_t bytes)
{
    uintptr_t begin = (uintptr_t)mapping, end = begin + mapping_bytes;
    uintptr_t from = (uintptr_t)at / RELEASE_BYTES * RELEASE_BYTES;
    uintptr_t to = ((uintptr_t)at + bytes + RELEASE_BYTES - 1) / RELEASE_BYTES * RELEASE_BYTES;
    from = from < begin ? begin : from;
    to = to > end ? end : to;
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* ------------------------------------------------------------------------------------------------------- out */

/* What may help. Of a file nothing is left behind; what has gone to a pipe or a device has gone. */
static const char *write_remedy(const rbt_output *output, const char *what, int reason)
{
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        return output->path != NULL ? "; make room or choose another place; nothing was left behind"
                                    : "; make room or choose another place";
    return strcmp(what, CREATED) == 0 ? "; choose a place that can be written" : "";
}

static rbt_err write_failed(const rbt_output *output, const char *what, int reason, rbt_error *error)
{
    return rbt_fail(error, reason == EPIPE && !output->ours ? RBT_E_PIPE : RBT_E_IO, "%s: %s: %s%s", output->name, what,
                    strerror(reason), write_remedy(output, what, reason));
}

/* A file without a name in the folder of the path; below 0 where there are none. */
static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? rbt_strdup(".") : rbt_strdup(path);
    if (slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    bool nameable = access("/proc/self/fd", X_OK) == 0; /* how it gets its name in the end */
    int fd = nameable ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;
    rbt_free(folder);
    return fd;
}

/* Gives it the temporary name, in the place of whatever has that. */
static bool give_name(const rbt_output *output)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", output->fd);
    if (linkat(AT_FDCWD, link, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0)
        return true;
    return errno == EEXIST && unlink(output->temporary) == 0 &&
           linkat(AT_FDCWD, link, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0;
}

rbt_err rbt_output_open(const char *path, rbt_output *output, rbt_error *error)
{
    bool standard = strcmp(path, "-") == 0;
    rbt_output out = {.name = standard ? "standard output" : path, .fd = STDOUT_FILENO, .ours = !standard};
    struct stat status;
    bool exists = !standard && stat(path, &status) == 0;

    if (exists && !S_ISREG(status.st_mode)) {
        /* Renaming onto a device would replace the device. */
        out.fd = open(path, O_WRONLY | O_CLOEXEC);
    } else if (!standard) {
        /* Through a link, so that the link stays one and the temporary file is on the target's disk. */
        char *real = exists ? realpath(path, NULL) : NULL;
        out.path = rbt_strdup(real != NULL ? real : path);
        free(real);
        size_t room = strlen(out.path) + 32;
        out.temporary = rbt_alloc(room, 1);
        (void)snprintf(out.temporary, room, "%s.tmp-%ld", out.path, (long)getpid());
        out.fd = open_nameless(out.path);
        out.nameless = out.fd >= 0;
        if (out.fd < 0)
            out.fd = open(out.temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (out.fd >= 0 && exists) /* who may read the old one may read the new one, and nobody else */
            (void)fchmod(out.fd, status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
    }
    if (out.fd < 0) {
        (void)write_failed(&out, CREATED, errno, error);
        rbt_free(out.path);
        rbt_free(out.temporary);
        return RBT_E_IO;
    }
    out.buffer = rbt_alloc(BUFFER_BYTES, 1);
    *output = out;
    return RBT_OK;
}

static rbt_err write_all(rbt_output *output, const unsigned char *bytes, size_t n, rbt_error *error)
{
    while (n > 0) {
        ssize_t put = write(output->fd, bytes, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return write_failed(output, "cannot be written", put < 0 ? errno : EIO, error);
        bytes += put;
        n -= (size_t)put;
    }
    return RBT_OK;
}

static rbt_err flush(rbt_output *output, rbt_error *error)
{
    size_t n = output->used;
    output->used = 0;
    return write_all(output, output->buffer, n, error);
}

rbt_err rbt_output_put(rbt_output *output, const void *bytes, size_t n, rbt_error *error)
{
    const unsigned char *at = bytes;
    rbt_err err = RBT_OK;
    while (err == RBT_OK && n > 0) {
        size_t room = BUFFER_BYTES - output->used, part = n < room ? n : room;
        if (part == BUFFER_BYTES) { /* nothing waits: all that fills buffers goes by itself */
            part = n / BUFFER_BYTES * BUFFER_BYTES;
            err = write_all(output, at, part, error);
        } else {
            memcpy(output->buffer + output->used, at, part);
            output->used += part;
            if (part == room)
                err = flush(output, error);
        }
        at += part;
        n -= part;
    }
    return err;
}

rbt_err rbt_output_flush(rbt_output *output, rbt_error *error)
{
    return flush(output, error);
}

rbt_err rbt_output_patch(rbt_output *output, size_t at, const void *bytes, size_t n, rbt_error *error)
{
    rbt_err err = flush(output, error);
    for (size_t done = 0; err == RBT_OK && done < n;) {
        ssize_t put = pwrite(output->fd, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (put >= 0)
            done += (size_t)put;
        else if (errno != EINTR)
            err = write_failed(output, "cannot be written", errno, error);
    }
    return err;
}

/* Devices and pipes cannot be synchronised and say EINVAL: there is nothing to keep. */
static bool keep_on_disk(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

rbt_err rbt_output_print(rbt_output *output, rbt_error *error, const char *format, ...)
{
    char text[RBT_OUTPUT_PRINT_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    RBT_ASSERT(n >= 0 && n <= RBT_OUTPUT_PRINT_MAX);
    return rbt_output_put(output, text, (size_t)n, error);
}

rbt_err rbt_output_finish(rbt_output *output, bool durable, rbt_error *error)
{
    rbt_err err = flush(output, error);
    if (err == RBT_OK && durable && !keep_on_disk(output->fd))
        err = write_failed(output, "cannot be kept on disk", errno, error);
    if (err == RBT_OK && output->nameless) {
        output->nameless = !give_name(output);
        if (output->nameless)
            err = write_failed(output, "cannot be put in place", errno, error);
    }
    if (output->ours) {
        /* Some file systems report a full disk only here. */
        if (close(output->fd) != 0 && err == RBT_OK && errno != EINTR)
            err = write_failed(output, "cannot be written", errno, error);
        output->ours = false;
    }
    if (err == RBT_OK && output->path != NULL) {
        if (rename(output->temporary, output->path) == 0) {
            rbt_free(output->temporary);
            output->temporary = NULL;
        } else {
            err = write_failed(output, "cannot be put in place", errno, error);
        }
    }
    rbt_output_abandon(output);
    return err;
}

void rbt_output_abandon(rbt_output *output)
{
    if (output->ours)
        (void)close(output->fd);
    if (output->temporary != NULL && !output->nameless)
        (void)unlink(output->temporary);
    rbt_free(output->temporary);
    rbt_free(output->path);
    rbt_free(output->buffer);
    *output = (rbt_output){.fd = -1};
}

rbt_err rbt_output_whole(const char *path, const void *bytes, size_t n, bool durable, rbt_error *error)
{
    rbt_output output;
    rbt_err err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = rbt_output_put(&output, bytes, n, error);
    if (err == RBT_OK)
        return rbt_output_finish(&output, durable, error);
    rbt_output_abandon(&output);
    return err;
}

size_t rbt_mark_bytes(const void *text, size_t n)
{
    static const char MARK[] = "\xef\xbb\xbf";
    return n >= sizeof MARK - 1 && memcmp(text, MARK, sizeof MARK - 1) == 0 ? sizeof MARK - 1 : 0;
}
