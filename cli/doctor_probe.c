/* The half of `rubato doctor` that runs on each host, and what both halves do; the contract is in doctor.h. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

/* ---------------------------------------------------------------------------------------------------- both halves */

/* {rank} stands for a number that is not known yet: any will do. */
static void open_rank(const char *path, char pattern[4096])
{
    const char *rank = strstr(path, "{rank}");

    if (rank == NULL)
        snprintf(pattern, 4096, "%s", path);
    else
        snprintf(pattern, 4096, "%.*s*%s", (int)(rank - path), path, rank + strlen("{rank}"));
}

bool doctor_look(const char *path, char text[DOCTOR_TEXT])
{
    char pattern[4096];
    glob_t found = {0};
    unsigned long long bytes = 0;
    bool fine;

    open_rank(path, pattern);
    fine = glob(pattern, 0, NULL, &found) == 0;
    if (!fine)
        snprintf(text, DOCTOR_TEXT, "%.600s: there is no such file", path);
    for (size_t i = 0; fine && i < found.gl_pathc; i++) {
        struct stat status;
        int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        fine = fd >= 0 && fstat(fd, &status) == 0;
        if (fine)
            bytes += (unsigned long long)status.st_size;
        else
            snprintf(text, DOCTOR_TEXT, "%.600s cannot be read: %s", found.gl_pathv[i], strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    if (fine)
        snprintf(text, DOCTOR_TEXT, "%zu file%s, %llu bytes", found.gl_pathc, found.gl_pathc == 1 ? "" : "s", bytes);
    globfree(&found);
    return fine;
}

static bool dial(const char *text, int *fd, rbt_error *why)
{
    rbt_address address;
    struct pollfd ready = {.fd = -1, .events = POLLOUT};
    rbt_err err = rbt_address_parse(text, RBT_PORT, &address, why);

    if (err == RBT_OK)
        err = rbt_socket_dial(&address, &ready.fd, why);
    if (err != RBT_OK)
        return false;
    if (poll(&ready, 1, DOCTOR_DIAL_MS) == 1)
        err = rbt_socket_connected(ready.fd, &address, why);
    else
        err = rbt_fail(why, RBT_E_IO, "%s: %s", text, rbt_socket_hint(ETIMEDOUT));
    if (err == RBT_OK)
        *fd = ready.fd;
    else
        close(ready.fd);
    return err == RBT_OK;
}

bool doctor_dial(const char *address, rbt_error *why)
{
    int fd = -1;

    if (!dial(address, &fd, why))
        return false;
    close(fd);
    return true;
}

double doctor_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool doctor_read_line(int fd, char line[DOCTOR_TEXT], int timeout_ms)
{
    double until = doctor_clock() + timeout_ms / 1000.0;
    size_t n = 0;

    while (n + 1 < DOCTOR_TEXT) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        double left = until - doctor_clock();
        ssize_t got;

        if (left <= 0 || poll(&ready, 1, (int)(left * 1000) + 1) != 1)
            return false;
        got = read(fd, line + n, 1);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got != 1)
            return false;
        if (line[n] == '\n') {
            line[n] = '\0';
            return true;
        }
        n++;
    }
    return false;
}

bool doctor_write_line(int fd, const char *line)
{
    char text[DOCTOR_TEXT + 1];
    int n = snprintf(text, sizeof text, "%s\n", line);

    return n > 0 && (size_t)n < sizeof text && send(fd, text, (size_t)n, MSG_NOSIGNAL) == n; /* a new socket has room */
}

/* ------------------------------------------------------------------------------------------------------ the helper */

static void say(const char *what, const char *text)
{
    fprintf(stderr, DOCTOR_LINE "%s %s\n", what, text);
}

/* Listens where this host faces the one that asks, as a process of a job would. The system takes calls for us. */
static int listen_here(const char *towards)
{
    rbt_address there, mine, bound;
    char text[RBT_ADDRESS_ROOM];
    rbt_error why;
    int fd = -1;

    if (rbt_address_parse(towards, RBT_PORT, &there, &why) != RBT_OK ||
        rbt_address_facing(&there, &mine, &why) != RBT_OK || rbt_socket_listen(&mine, &fd, &bound, &why) != RBT_OK) {
        say("no", why.text);
        return -1;
    }
    rbt_address_text(&bound, text);
    say("listen", text);
    return fd;
}

int doctor_probe(const char *address, const char *number, const char *data)
{
    char line[DOCTOR_TEXT], host[256] = "", word[DOCTOR_TEXT];
    rbt_error why;
    int listener, fd = -1;

    alarm(DOCTOR_LIFE_S);
    if (!doctor_read_line(STDIN_FILENO, word, DOCTOR_LIFE_S * 1000))
        return 1;
    (void)gethostname(host, sizeof host - 1);
    say("version", rbt_version());
    say("host", host);
    if (data != NULL) {
        bool fine = doctor_look(data, line);

        say(fine ? "data" : "nodata", line);
    }
    listener = listen_here(address);
    if (!dial(address, &fd, &why)) {
        say("no", why.text);
        say("end", "");
    } else {
        snprintf(line, sizeof line, "%.*s %.16s %.6f", DOCTOR_WORD, word, number, doctor_clock());
        (void)doctor_write_line(fd, line);
        while (doctor_read_line(fd, line, DOCTOR_LIFE_S * 1000))
            (void)doctor_write_line(fd, doctor_dial(line, &why) ? "ok" : why.text);
        close(fd);
    }
    if (listener >= 0)
        close(listener);
    return 0;
}
