/* Pushes and pulls as a parameter server on ZeroMQ makes them, to measure against: the steps of ps-lite, which is not packaged.
 *
 *     ps_yardstick SIZE...          prints for each: SIZE push GB/s, pull GB/s; messages of so many bytes, 8 under way
 *
 * A worker and a server, two processes, TCP over loopback. Each has ZeroMQ's thread, one that receives (the "van's"), one that handles
 * what was received (the "customer's"), and the worker that of the program. A message is several parts: what it is, the key, the
 * values (sent from where they lie), their length. A pull's values are copied to where the program wants them; what a server would do
 * with a push, or to put a pull's values together, is left out, in its favour. Medians of RUNS runs. Called by ps.sh. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define UNDER_WAY    8
#define RUNS         5
#define RUN_BYTES    ((size_t)256 << 20) /* of one run, at most ... */
#define RUN_COUNT    20000               /* ... as this */
#define SOURCE_BYTES ((size_t)64 << 20)  /* values are sent from different places, so rarely from the cache */

typedef struct meta {
    uint32_t is_push;
    uint32_t number;
    uint64_t bytes; /* that a pull asks for */
} meta;

typedef struct message {
    struct message *next;
    meta meta;
    bool has_values;
    zmq_msg_t values;
} message;

static void *in, *out;
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

static message *inbox, **inbox_last = &inbox;
static pthread_mutex_t inbox_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t inbox_filled = PTHREAD_COND_INITIALIZER;

static uint32_t answered;
static pthread_mutex_t answered_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered_more = PTHREAD_COND_INITIALIZER;

static bool is_server;
static char *source, *target;
static size_t source_at;

static void check(bool is_right, const char *what)
{
    if (is_right)
        return;
    (void)fprintf(stderr, "ps_yardstick: %s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static double now_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------------------------------------- the van */

static void keep(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

static void send_part(const void *bytes, size_t n, bool is_last)
{
    zmq_msg_t part;

    check(zmq_msg_init_size(&part, n) == 0, "memory");
    memcpy(zmq_msg_data(&part), bytes, n);
    check(zmq_msg_send(&part, out, is_last ? 0 : ZMQ_SNDMORE) >= 0, "sending");
}

static void *next_values(size_t bytes)
{
    source_at = source_at + bytes > SOURCE_BYTES ? 0 : source_at;
    source_at += bytes;
    return source + source_at - bytes;
}

static void send_message(meta m, bool has_values)
{
    const uint64_t key = 1;
    const uint32_t length = (uint32_t)m.bytes;
    zmq_msg_t values;

    pthread_mutex_lock(&sending);
    send_part(&m, sizeof m, !has_values);
    if (has_values) {
        send_part(&key, sizeof key, false);
        check(zmq_msg_init_data(&values, next_values(m.bytes), m.bytes, keep, NULL) == 0, "memory");
        check(zmq_msg_send(&values, out, ZMQ_SNDMORE) >= 0, "sending");
        send_part(&length, sizeof length, true);
    }
    pthread_mutex_unlock(&sending);
}

/* Receives a part that is not kept; true when another follows. */
static bool skip_part(void *copy, size_t n)
{
    zmq_msg_t part;
    bool more;

    (void)zmq_msg_init(&part);
    check(zmq_msg_recv(&part, in, 0) >= 0, "receiving");
    if (n > 0)
        memcpy(copy, zmq_msg_data(&part), n);
    more = zmq_msg_more(&part) != 0;
    (void)zmq_msg_close(&part);
    return more;
}

static void *receive(void *unused)
{
    (void)unused;
    while (skip_part(NULL, 0)) { /* whose it is: something always follows */
        message *m = calloc(1, sizeof *m);

        check(m != NULL, "memory");
        m->has_values = skip_part(&m->meta, sizeof m->meta);
        if (m->has_values) {
            (void)skip_part(NULL, 0);
            (void)zmq_msg_init(&m->values);
            check(zmq_msg_recv(&m->values, in, 0) >= 0, "receiving");
            (void)skip_part(NULL, 0);
        }
        pthread_mutex_lock(&inbox_lock);
        *inbox_last = m;
        inbox_last = &m->next;
        pthread_mutex_unlock(&inbox_lock);
        pthread_cond_signal(&inbox_filled);
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------------- the customer */

static message *take(void)
{
    message *m;

    pthread_mutex_lock(&inbox_lock);
    while (inbox == NULL)
        pthread_cond_wait(&inbox_filled, &inbox_lock);
    m = inbox;
    inbox = m->next;
    inbox_last = inbox == NULL ? &inbox : inbox_last;
    pthread_mutex_unlock(&inbox_lock);
    return m;
}

static void *handle(void *unused)
{
    (void)unused;
    for (message *m; (m = take()) != NULL;) {
        if (is_server) {
            send_message(m->meta, !m->meta.is_push);
        } else {
            if (m->has_values)
                memcpy(target, zmq_msg_data(&m->values), zmq_msg_size(&m->values));
            pthread_mutex_lock(&answered_lock);
            answered++;
            pthread_mutex_unlock(&answered_lock);
            pthread_cond_signal(&answered_more);
        }
        if (m->has_values)
            (void)zmq_msg_close(&m->values);
        free(m);
    }
    return NULL;
}

/* Binds to a port of this process and tells it; connects to the other's. */
static void start(int pipe_out, int pipe_in, const char *name)
{
    char mine[64] = "", theirs[64] = "";
    size_t room = sizeof mine;
    void *context = zmq_ctx_new();
    pthread_t thread;

    in = zmq_socket(context, ZMQ_ROUTER);
    out = zmq_socket(context, ZMQ_DEALER);
    check(zmq_bind(in, "tcp://127.0.0.1:*") == 0, "listening");
    check(zmq_getsockopt(in, ZMQ_LAST_ENDPOINT, mine, &room) == 0, "listening");
    check(write(pipe_out, mine, sizeof mine) == (ssize_t)sizeof mine &&
              read(pipe_in, theirs, sizeof theirs) == (ssize_t)sizeof theirs,
          "the other process");
    (void)zmq_setsockopt(out, ZMQ_IDENTITY, name, strlen(name));
    check(zmq_connect(out, theirs) == 0, "connecting");
    check(pthread_create(&thread, NULL, receive, NULL) == 0 && pthread_create(&thread, NULL, handle, NULL) == 0,
          "threads");
}

/* ---------------------------------------------------------------------------------------------- the program */

static void wait_until_answered(uint32_t n)
{
    pthread_mutex_lock(&answered_lock);
    while (answered < n)
        pthread_cond_wait(&answered_more, &answered_lock);
    pthread_mutex_unlock(&answered_lock);
}

static double run(bool is_push, size_t bytes)
{
    uint32_t count = RUN_BYTES / bytes < RUN_COUNT ? (uint32_t)(RUN_BYTES / bytes) : RUN_COUNT;
    double started = now_seconds();

    answered = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i >= UNDER_WAY)
            wait_until_answered(i - UNDER_WAY + 1);
        send_message((meta){.is_push = is_push, .number = i, .bytes = bytes}, is_push);
    }
    wait_until_answered(count);
    return (double)count * (double)bytes / (now_seconds() - started) / 1e9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median_of_runs(bool is_push, size_t bytes)
{
    double rate[RUNS];

    (void)run(is_push, bytes); /* warms up */
    for (int i = 0; i < RUNS; i++)
        rate[i] = run(is_push, bytes);
    qsort(rate, RUNS, sizeof *rate, compare);
    return rate[RUNS / 2];
}

int main(int argc, char **argv)
{
    int there[2], back[2];
    pid_t pid;

    source = malloc(SOURCE_BYTES);
    target = malloc(SOURCE_BYTES);
    check(source != NULL && target != NULL && pipe(there) == 0 && pipe(back) == 0, "memory");
    memset(source, 1, SOURCE_BYTES); /* so that all pages are there */
    memset(target, 1, SOURCE_BYTES);
    pid = fork();
    check(pid >= 0, "a second process");
    if (pid == 0) {
        is_server = true;
        start(back[1], there[0], "server");
        for (;;)
            (void)pause();
    }
    start(there[1], back[0], "worker");
    for (int i = 1; i < argc; i++) {
        size_t bytes = (size_t)strtoull(argv[i], NULL, 10);

        if (bytes == 0 || bytes > SOURCE_BYTES) {
            (void)fprintf(stderr, "ps_yardstick: '%s' is no size from 1 to %zu bytes\n", argv[i], SOURCE_BYTES);
            (void)kill(pid, SIGKILL);
            return 2;
        }
        printf("%zu %.3f %.3f\n", bytes, median_of_runs(true, bytes), median_of_runs(false, bytes));
        (void)fflush(stdout);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    _exit(0); /* threads wait in ZeroMQ */
}
