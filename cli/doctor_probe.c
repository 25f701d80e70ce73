/* The half of `rubato doctor` that runs on each host, and what both halves do; the contract is in doctor.h. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/paths.h"

/* ---------------------------------------------------------------------------------------------------- both halves */

/* {rank} stands for a number that is not known yet: any will do. */
static void open_rank(const char *path, char pattern[4096])
{
    size_t n = 0;

    while (*path != '\0' && n < 4095) {
        bool rank = strncmp(path, "{rank}", strlen("{rank}")) == 0;

        pattern[n++] = rank ? '*' : *path;
        path += rank ? strlen("{rank}") : 1;
    }
    pattern[n] = '\0';
}

/* Is the file there, and can it be read? Adds its size. */
static bool look_at(const char *path, unsigned long long *bytes, char text[DOCTOR_TEXT])
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool fine = fd >= 0 && fstat(fd, &status) == 0;

    if (!fine && errno == ENOENT) {
        snprintf(text, DOCTOR_TEXT, "%.600s: there is no such file", path);
    } else if (!fine) {
        snprintf(text, DOCTOR_TEXT, "%.600s cannot be read: %s", path, strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        fine = false;
        snprintf(text, DOCTOR_TEXT, "%.600s is a folder; name the files in it, as in '%.300s/*'", path, path);
    } else {
        *bytes += (unsigned long long)status.st_size;
    }
    if (fd >= 0)
        close(fd);
    return fine;
}

bool doctor_look(const char *path, char text[DOCTOR_TEXT])
{
    char pattern[4096];
    rbt_paths paths = {0};
    rbt_error why;
    unsigned long long bytes = 0;
    bool fine;

    open_rank(path, pattern);
    fine = rbt_paths_list(pattern, &paths, &why) == RBT_OK;
    if (!fine)
        snprintf(text, DOCTOR_TEXT, "%.900s", why.text);
    for (size_t i = 0; fine && i < paths.count; i++)
        fine = look_at(paths.at[i], &bytes, text);
    if (fine)
        snprintf(text, DOCTOR_TEXT, "%zu file%s, %llu bytes", paths.count, paths.count == 1 ? "" : "s", bytes);
    rbt_paths_free(&paths);
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

/* Calls the doctor, and dials for it whom it names. */
static void answer(const rbt_key *key, const char *address, const char *number)
{
    char line[DOCTOR_TEXT];
    doctor_call call = {.fd = -1};
    rbt_tls *tls = NULL;
    rbt_error why;
    int fd = -1;

    if (rbt_tls_create(key, &tls, &why) != RBT_OK || !dial(address, &fd, &why) ||
        !doctor_call_open(&call, tls, fd, false, &why)) {
        say("no", why.text);
    } else {
        snprintf(line, sizeof line, "%.16s %.6f", number, doctor_clock());
        if (!doctor_call_write(&call, line, DOCTOR_DIAL_MS))
            say("no", "what listens there does not speak as the doctor does; is the port right?");
        while (doctor_call_read(&call, DOCTOR_LIFE_S * 1000))
            if (!doctor_call_write(&call, doctor_dial(call.line, &why) ? "ok" : why.text, DOCTOR_DIAL_MS))
                break;
        doctor_call_close(&call);
    }
    rbt_tls_destroy(tls);
}

int doctor_probe(const char *address, const char *number, const char *data)
{
    char line[DOCTOR_TEXT], host[256] = "";
    rbt_key key;
    rbt_error why;
    int listener;
    rbt_err err;

    alarm(DOCTOR_LIFE_S);
    err = rbt_key_read("-", &key, &why);
    (void)gethostname(host, sizeof host - 1);
    say("version", rbt_version());
    say("host", host);
    if (err != RBT_OK) {
        say("no", why.text);
        return 1;
    }
    if (data != NULL) {
        bool fine = doctor_look(data, line);

        say(fine ? "data" : "nodata", line);
    }
    listener = listen_here(address);
    answer(&key, address, number);
    rbt_key_wipe(&key);
    if (listener >= 0)
        close(listener);
    return 0;
}
