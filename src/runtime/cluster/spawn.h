/* Child processes of a launcher: started, watched, ended; none is left behind.
 *
 * Each child is the head of a process group of its own. Its standard input is a pipe whose first line we write (the job's
 * key, which so appears in no file and no list of processes) and whose end tells it that we are gone, also on another
 * host, where ssh passes it on. Its standard error comes back line by line; its standard output is ours. The system kills
 * it when we die, however that happens; that goes by thread, so the thread that starts children must live as long as
 * they may. When a child has ended, what is left of its group is killed before its number can
 * belong to somebody else.
 *
 * Nothing waits unless asked to: rbt_spawn_fd becomes readable when there is something for rbt_spawn_turn to do, which
 * calls the handlers. No signal handler, no SIGCHLD. All calls from one thread.
 *
 * Called by the launcher. Proved by tests/unit/test_spawn.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_SPAWN_H
#define RBT_RUNTIME_CLUSTER_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "rubato.h"

#define RBT_SPAWN_LINE_MAX 2000 /* bytes; a longer line comes in pieces */
#define RBT_SPAWN_SELF     4096

typedef struct rbt_child_spec {
    const char *name;         /* for sentences: "worker process 3" */
    const char *host;         /* NULL: this host; else `words` start something there */
    const char *const *words; /* what to execute, up to NULL; looked for in PATH */
    const char *first_line;   /* of its standard input, without the newline; NULL: none */
    const char *last_line;    /* it is told so when it is to end (not when we are gone); NULL: nothing */
} rbt_child_spec;

typedef struct rbt_child_end {
    int code;           /* exit code; 128 + signal when killed by one */
    bool killed;        /* by a signal */
    char sentence[720]; /* "worker process 3 (pid 1234) on this host was killed by signal 9 (Killed)" */
} rbt_child_end;

/* `child` is its number: 0, 1, ... in the order of starting. Lines have no newline. */
typedef struct rbt_spawn_handler {
    void (*line)(void *context, size_t child, const char *line);
    void (*ended)(void *context, size_t child, const rbt_child_end *end);
    void *context;
} rbt_spawn_handler;

typedef struct rbt_spawn rbt_spawn;

/* The path of this program. */
rbt_err rbt_spawn_self(char path[RBT_SPAWN_SELF], rbt_error *error);

rbt_err rbt_spawn_create(const rbt_spawn_handler *handler, rbt_spawn **spawn, rbt_error *error);

/* Kills what still runs, without telling the handlers. NULL is fine. */
void rbt_spawn_destroy(rbt_spawn *spawn);

/* Starts a child. A command that is not there, or may not be executed, is an error here. */
rbt_err rbt_spawn_start(rbt_spawn *spawn, const rbt_child_spec *spec, rbt_error *error);

size_t rbt_spawn_running(const rbt_spawn *spawn);
pid_t rbt_spawn_pid(const rbt_spawn *spawn, size_t number); /* -1 when it has ended */

/* To be watched by poll, epoll or libuv. */
int rbt_spawn_fd(const rbt_spawn *spawn);

/* Waits up to timeout_ms (0: not at all, -1: as long as it takes) for something to happen, and handles what has. */
void rbt_spawn_turn(rbt_spawn *spawn, int timeout_ms);

/* Sends a signal to every group. */
void rbt_spawn_signal(rbt_spawn *spawn, int signal);

/* Ends all: last lines are written, which have half the grace to arrive (ssh passes them on), standard inputs closed; SIGTERM, and,
 * for those still there after the grace, SIGKILL; returns when all have ended, with the handlers called. */
void rbt_spawn_end(rbt_spawn *spawn, uint32_t grace_ms);

#endif
