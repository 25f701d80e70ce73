/* Child processes of a launcher: see spawn.h. */
#include "runtime/cluster/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/time.h"

#define EVENTS 64

typedef struct child {
    char *name;
    char *host;
    char *last_line;
    pid_t pid;
    bool running;
    int input;   /* -1: closed */
    int errors;  /* -1: closed */
    int process; /* a pidfd: readable when the child has ended */
    size_t line_bytes;
    char line[RBT_SPAWN_LINE_MAX + 1];
    char last[160]; /* what it said last, for the sentence about its end */
} child;

struct rbt_spawn {
    rbt_spawn_handler handler;
    int epoll;
    size_t running;
    RBT_ARRAY(child *) children;
};

/* What an event belongs to: the child's number, and which of its two files. */
enum { OF_ERRORS = 0, OF_PROCESS = 1 };

rbt_err rbt_spawn_self(char path[RBT_SPAWN_SELF], rbt_error *error)
{
    ssize_t n = readlink("/proc/self/exe", path, RBT_SPAWN_SELF - 1);

    if (n <= 0)
        return rbt_fail(error, RBT_E_IO, "cannot find the path of this program in /proc/self/exe; is /proc mounted?");
    path[n] = '\0';
    return RBT_OK;
}

rbt_err rbt_spawn_create(const rbt_spawn_handler *handler, rbt_spawn **spawn, rbt_error *error)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0)
        return rbt_fail(error, RBT_E_IO, "cannot watch child processes: %s", strerror(errno));
    *spawn = rbt_alloc(1, sizeof **spawn);
    (*spawn)->handler = *handler;
    (*spawn)->epoll = epoll;
    return RBT_OK;
}

static void file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool watch(const rbt_spawn *s, int fd, size_t number, int which)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)number << 1 | (uint64_t)which};

    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ----------------------------------------------------------------------------------------------------- starting */

/* In the child, between fork and exec: only what is safe in a copy of a process with threads. Never returns. */
static void become(const rbt_child_spec *spec, pid_t parent, int input, int errors, int report)
{
    static const int reset[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t none;
    int code;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* ssh too: its end closes the standard input of what it has started */
    if (getppid() != parent)          /* it died before that was set */
        _exit(1);
    for (size_t i = 0; i < sizeof reset / sizeof reset[0]; i++)
        signal(reset[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0)
        execvp(spec->words[0], (char *const *)(uintptr_t)spec->words);
    code = errno;
    (void)!write(report, &code, sizeof code);
    _exit(127);
}

/* Waits for exec: 0, or why it failed. The pipe closes by itself when exec succeeds. */
static int exec_result(int report)
{
    int code = 0;
    ssize_t n;

    do
        n = read(report, &code, sizeof code);
    while (n < 0 && errno == EINTR);
    return n == sizeof code ? code : 0;
}

static rbt_err start_failure(const rbt_child_spec *spec, int code, rbt_error *error)
{
    const char *remedy = "";

    if (code == ENOENT)
        remedy = spec->host ? "; install it, or name another with --rsh" : "; is it installed, and in PATH?";
    else if (code == EMFILE || code == ENFILE)
        remedy = "; each process needs 3 open files: raise the limit (ulimit -n)";
    else if (code == EAGAIN)
        remedy = "; too many processes: raise the limit (ulimit -u)";
    return rbt_fail(error, RBT_E_IO, "cannot start %s: %s: %s%s", spec->name, spec->words[0], strerror(code), remedy);
}

/* The pipes of a child that is being started: [0] is read from, [1] written to. */
typedef struct pipes {
    int input[2];
    int errors[2];
    int report[2];
} pipes;

static void pipes_close(pipes *p)
{
    for (int i = 0; i < 2; i++) {
        file_close(&p->input[i]);
        file_close(&p->errors[i]);
        file_close(&p->report[i]);
    }
}

/* The launcher's descriptors 0 to 2 may be closed; a pipe there would be overwritten by dup2. */
static bool pipe_open(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (ends[i] <= STDERR_FILENO) {
            int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

            if (moved < 0)
                return false;
            close(ends[i]);
            ends[i] = moved;
        }
    return true;
}

static bool line_write(int fd, const char *line)
{
    size_t n = strlen(line);

    /* Far below what a pipe holds, so it does not wait. */
    RBT_ASSERT(n < RBT_SPAWN_LINE_MAX);
    return write(fd, line, n) == (ssize_t)n && write(fd, "\n", 1) == 1;
}

/* Adds the running child. Its pipes' our ends become its own. */
static void child_add(rbt_spawn *s, const rbt_child_spec *spec, pid_t pid, int process, pipes *p)
{
    child *c = rbt_alloc(1, sizeof *c);

    c->name = rbt_strdup(spec->name);
    c->host = spec->host ? rbt_strdup(spec->host) : NULL;
    c->last_line = spec->last_line ? rbt_strdup(spec->last_line) : NULL;
    c->pid = pid;
    c->running = true;
    c->process = process;
    c->input = p->input[1];
    c->errors = p->errors[0];
    p->input[1] = p->errors[0] = -1;
    rbt_array_push(&s->children, c);
    s->running++;
}

rbt_err rbt_spawn_start(rbt_spawn *spawn, const rbt_child_spec *spec, rbt_error *error)
{
    pipes p = {{-1, -1}, {-1, -1}, {-1, -1}};
    pid_t parent = getpid();
    int process = -1;
    int code;
    pid_t pid;

    if (!pipe_open(p.input) || !pipe_open(p.errors) || !pipe_open(p.report))
        goto pipes;
    fcntl(p.errors[0], F_SETFL, O_NONBLOCK);
    pid = fork();
    if (pid < 0)
        goto pipes;
    if (pid == 0)
        become(spec, parent, p.input[0], p.errors[1], p.report[1]);
    setpgid(pid, pid); /* here too, since either may be first; in vain when it has executed already */
    file_close(&p.report[1]);
    code = exec_result(p.report[0]);
    process = code ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (code == 0 && process < 0)
        code = errno;
    if (code || !watch(spawn, p.errors[0], spawn->children.count, OF_ERRORS) ||
        !watch(spawn, process, spawn->children.count, OF_PROCESS)) {
        code = code ? code : errno;
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
        file_close(&process);
        errno = code;
        goto pipes;
    }
    if (spec->first_line)
        (void)line_write(p.input[1], spec->first_line);
    child_add(spawn, spec, pid, process, &p);
    pipes_close(&p);
    return RBT_OK;
pipes:
    code = errno;
    pipes_close(&p);
    return start_failure(spec, code, error);
}

/* ----------------------------------------------------------------------------------------------------- watching */

static void line_hand_over(rbt_spawn *s, size_t number)
{
    child *c = s->children.at[number];
    size_t n = c->line_bytes;

    if (n > 0 && c->line[n - 1] == '\r') /* ssh ends its own words with both */
        n--;
    c->line[n] = 0;
    c->line_bytes = 0;
    if (n > 0)
        snprintf(c->last, sizeof c->last, "%.*s", (int)sizeof c->last - 1, c->line);
    if (s->handler.line)
        s->handler.line(s->handler.context, number, c->line);
}

/* Reads what is there, at most so much that one who never stops talking does not keep us; false at its end. */
static bool errors_read(rbt_spawn *s, size_t number)
{
    child *c = s->children.at[number];
    char bytes[4096];

    for (int times = 0; times < 16; times++) {
        ssize_t n = read(c->errors, bytes, sizeof bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] != '\n')
                c->line[c->line_bytes++] = bytes[i] ? bytes[i] : '?';
            if (bytes[i] == '\n' || c->line_bytes == RBT_SPAWN_LINE_MAX)
                line_hand_over(s, number);
        }
    }
    return true;
}

static void errors_close(rbt_spawn *s, size_t number)
{
    child *c = s->children.at[number];

    if (c->errors < 0)
        return;
    if (c->line_bytes > 0)
        line_hand_over(s, number);
    file_close(&c->errors); /* leaves the epoll by itself: nobody else has this end */
}

/* As a sentence with what it said last, if it failed. */
static void end_describe(const child *c, int status, rbt_child_end *end)
{
    char who[320];
    char what[160];

    if (c->host)
        snprintf(who, sizeof who, "%s on host %s", c->name, c->host);
    else
        snprintf(who, sizeof who, "%s (pid %ld) on this host", c->name, (long)c->pid);
    end->killed = WIFSIGNALED(status);
    end->code = end->killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (end->killed)
        snprintf(what, sizeof what, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (c->host && end->code == 255)
        snprintf(what, sizeof what, "ended with exit code 255, which is ssh's own: the host was not reached");
    else
        snprintf(what, sizeof what, "ended with exit code %d", end->code);
    if (end->code != 0 && c->last[0])
        snprintf(end->sentence, sizeof end->sentence, "%s %s; its last words: \"%s\"", who, what, c->last);
    else
        snprintf(end->sentence, sizeof end->sentence, "%s %s", who, what);
}

/* The child has ended: its group goes with it, while its number is still its own. */
static void child_reap(rbt_spawn *s, size_t number, bool tell)
{
    child *c = s->children.at[number];
    rbt_child_end end;
    int status = 0;

    kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (tell && c->errors >= 0)
        (void)errors_read(s, number);
    if (tell)
        errors_close(s, number);
    file_close(&c->errors);
    file_close(&c->input);
    file_close(&c->process);
    c->running = false;
    s->running--;
    if (!tell)
        return;
    end_describe(c, status, &end);
    if (s->handler.ended)
        s->handler.ended(s->handler.context, number, &end);
}

void rbt_spawn_turn(rbt_spawn *spawn, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(spawn->epoll, events, EVENTS, timeout_ms);

    for (int i = 0; i < n; i++) {
        size_t number = (size_t)(events[i].data.u64 >> 1);
        const child *c = spawn->children.at[number];

        if (!c->running)
            continue; /* has ended earlier in this very turn */
        if ((events[i].data.u64 & 1) == OF_PROCESS)
            child_reap(spawn, number, true);
        else if (c->errors >= 0 && !errors_read(spawn, number))
            errors_close(spawn, number);
    }
}

int rbt_spawn_fd(const rbt_spawn *spawn)
{
    return spawn->epoll;
}

size_t rbt_spawn_running(const rbt_spawn *spawn)
{
    return spawn->running;
}

pid_t rbt_spawn_pid(const rbt_spawn *spawn, size_t number)
{
    RBT_ASSERT(number < spawn->children.count);
    return spawn->children.at[number]->running ? spawn->children.at[number]->pid : -1;
}

/* ------------------------------------------------------------------------------------------------------- ending */

void rbt_spawn_signal(rbt_spawn *spawn, int signal)
{
    for (size_t i = 0; i < spawn->children.count; i++)
        if (spawn->children.at[i]->running)
            kill(-spawn->children.at[i]->pid, signal);
}

static void turn_until(rbt_spawn *spawn, uint64_t end_ns)
{
    uint64_t now_ns;

    while (spawn->running > 0 && (now_ns = rbt_now_ns()) < end_ns)
        rbt_spawn_turn(spawn, (int)((end_ns - now_ns) / 1000000 + 1));
}

void rbt_spawn_end(rbt_spawn *spawn, uint32_t grace_ms)
{
    uint64_t now_ns = rbt_now_ns(), half_ns = (uint64_t)grace_ms * 500000;
    bool has_told = false;

    for (size_t i = 0; i < spawn->children.count; i++) {
        child *c = spawn->children.at[i];

        if (c->running && c->input >= 0 && c->last_line != NULL) /* one that has just died breaks the pipe: no matter */
            has_told = line_write(c->input, c->last_line) || has_told;
        file_close(&c->input);
    }
    if (has_told)
        turn_until(spawn, now_ns + half_ns);
    rbt_spawn_signal(spawn, SIGTERM);
    rbt_spawn_signal(spawn, SIGCONT); /* one that was stopped could not hear it */
    turn_until(spawn, now_ns + 2 * half_ns);
    rbt_spawn_signal(spawn, SIGKILL);
    while (spawn->running > 0)
        rbt_spawn_turn(spawn, -1);
}

void rbt_spawn_destroy(rbt_spawn *spawn)
{
    if (!spawn)
        return;
    rbt_spawn_signal(spawn, SIGKILL);
    for (size_t i = 0; i < spawn->children.count; i++) {
        child *c = spawn->children.at[i];

        if (c->running)
            child_reap(spawn, i, false);
        rbt_free(c->name);
        rbt_free(c->host);
        rbt_free(c->last_line);
        rbt_free(c);
    }
    rbt_array_free(&spawn->children);
    close(spawn->epoll);
    rbt_free(spawn);
}
