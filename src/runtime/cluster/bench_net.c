/* What the cluster's transport costs; the contract is in bench_net.h.
 *
 * The other process is a child. It listens twice, for its hub and for the bare loop, and follows the commands that come
 * over a pair of sockets. */
#include "runtime/cluster/bench_net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/bench_bare.h"
#include "runtime/cluster/hub.h"

#define ROUNDS      9                   /* either side is caught by a slow spell of the machine now and then */
#define RUN_BYTES   ((size_t)128 << 20) /* of one run, at most */
#define RUN_COUNT   40000               /* messages of one run, at most */
#define PATIENCE_MS 10000

typedef enum kind { UNIX, RING, TCP, TLS, KINDS } kind;

static const char *const kind_names[KINDS] = {"unix", "ring", "tcp", "tls"};

enum { OPEN, BARE, CLOSE };

/* What is timed in turn. */
typedef enum side { HUBS, LOOP, MEMCPY, SIDES } side;

typedef struct command {
    uint32_t what;
    uint32_t kind;
    rbt_bare_job job;
    char address[2][RBT_ADDRESS_ROOM]; /* OPEN: where to listen; the answer says where it does */
} command;

/* One process's part. */
typedef struct end {
    rbt_key key;
    rbt_tls *tls;
    rbt_hub *hub;
    int control;
    rbt_bare bare;
    rbt_ring *rings;              /* for it: to the child, and from it */
    RBT_ARRAY(rbt_snap *) blocks; /* of the size and form that was asked for last; sent in turn */
    size_t block_bytes, block_next;
    bool block_sparse;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    rbt_remote *peer;
    uint64_t to_ask, to_come; /* pulls */
    uint64_t ask_bytes;       /* of each */
    bool ask_sparse;
    bool is_done;
    rbt_error why; /* lost */
} end;

/* -------------------------------------------------------------------------------------------------- messages */

static rbt_snap *made_block(size_t bytes, bool is_sparse)
{
    uint32_t n = (uint32_t)(bytes / (is_sparse ? 8 : 4));
    rbt_snap *snap = is_sparse ? rbt_snap_create_sparse(RBT_F32, 4 * n, n) : rbt_snap_create(RBT_F32, n);

    for (uint32_t i = 0; i < n; i++) {
        snap->f32[i] = (float)i;
        if (is_sparse)
            snap->index[i] = 4 * i;
    }
    return snap;
}

/* The next block to send. */
static rbt_snap *next_block(end *e, size_t bytes, bool is_sparse)
{
    if (e->block_bytes != bytes || e->block_sparse != is_sparse) {
        for (size_t i = 0; i < e->blocks.count; i++)
            rbt_snap_unref(e->blocks.at[i]);
        e->blocks.count = 0;
        for (size_t i = 0; bytes > 0 && i < RBT_BARE_SOURCES && i < RBT_BARE_SOURCE_BYTES / bytes; i++)
            rbt_array_push(&e->blocks, made_block(bytes, is_sparse));
        e->block_bytes = bytes;
        e->block_sparse = is_sparse;
    }
    return e->blocks.count > 0 ? e->blocks.at[e->block_next++ % e->blocks.count] : NULL;
}

static rbt_frame *made_message(rbt_message_type type, rbt_snap *block, uint64_t clock, uint64_t need, uint64_t version)
{
    rbt_message *m = rbt_message_create(type, 1, 2);

    m->clock = clock;
    m->need = need;
    m->version = version;
    if (block != NULL)
        rbt_array_push(&m->parts, ((rbt_part){.snap = rbt_snap_ref(block)}));
    return rbt_frame_of_message(m, 0, NULL);
}

/* The child: counts pushes (the last one asks for an answer), answers pulls. The parent: is told, asks on. */
static void on_message(void *context, rbt_remote *peer, rbt_message *m)
{
    end *e = context;
    bool is_done = false;

    if (m->type == RBT_MSG_PUSH && m->clock == 1)
        rbt_hub_send(peer, made_message(RBT_MSG_ACK, NULL, 0, 0, 0));
    if (m->type == RBT_MSG_PULL)
        rbt_hub_send(peer, made_message(RBT_MSG_BLOCKS, next_block(e, m->need, m->version != 0), 0, 0, 0));
    if (m->type == RBT_MSG_BLOCKS) {
        if (e->to_ask > 0) {
            e->to_ask--;
            rbt_hub_send(peer, made_message(RBT_MSG_PULL, NULL, 0, e->ask_bytes, e->ask_sparse));
        }
        is_done = --e->to_come == 0;
    }
    if (is_done || m->type == RBT_MSG_ACK) {
        pthread_mutex_lock(&e->lock);
        e->is_done = true;
        pthread_cond_signal(&e->changed);
        pthread_mutex_unlock(&e->lock);
    }
    rbt_message_destroy(m);
}

static void on_open(void *context, rbt_remote *peer)
{
    end *e = context;

    pthread_mutex_lock(&e->lock);
    e->peer = peer;
    e->is_done = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static void on_lost(void *context, rbt_remote *peer, const rbt_error *why)
{
    end *e = context;

    (void)peer;
    pthread_mutex_lock(&e->lock);
    e->why = *why;
    e->is_done = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static rbt_err wait_done(end *e, rbt_error *error)
{
    pthread_mutex_lock(&e->lock);
    while (!e->is_done)
        pthread_cond_wait(&e->changed, &e->lock);
    e->is_done = false;
    pthread_mutex_unlock(&e->lock);
    if (e->why.code != RBT_OK)
        *error = e->why;
    return e->why.code;
}

/* ------------------------------------------------------------------------------------------------- through hubs */

static rbt_err run_push(end *e, const rbt_bare_job *job, bool is_sparse, rbt_error *error)
{
    for (uint64_t i = 1; i <= job->count; i++) {
        rbt_snap *block = next_block(e, job->bytes, is_sparse);

        rbt_hub_send(e->peer, made_message(RBT_MSG_PUSH, block, i == job->count, 0, 0));
        rbt_hub_wait_room(e->peer);
    }
    return wait_done(e, error);
}

static rbt_err run_pull(end *e, const rbt_bare_job *job, bool is_sparse, rbt_error *error)
{
    uint64_t window = RBT_BARE_UNDER_WAY * rbt_bare_batch(job->bytes);

    window = window < job->count ? window : job->count;
    e->ask_bytes = job->bytes;
    e->ask_sparse = is_sparse;
    e->to_come = job->count;
    e->to_ask = job->count - window;
    for (uint64_t i = 0; i < window; i++)
        rbt_hub_send(e->peer, made_message(RBT_MSG_PULL, NULL, 0, job->bytes, is_sparse));
    return wait_done(e, error);
}

/* ---------------------------------------------------------------------------------------------------- both ends */

static rbt_err end_init(end *e, const rbt_key *key, int control, rbt_ring *rings, rbt_error *error)
{
    *e = (end){.key = *key, .control = control, .rings = rings};
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    rbt_bare_init(&e->bare);
    return rbt_tls_create(key, &e->tls, error);
}

static rbt_err start_hub(end *e, kind k, rbt_error *error)
{
    rbt_link_config config = {.key = e->key,
                              .tls = e->tls,
                              .encryption = k == TLS ? RBT_ENCRYPT_ON : RBT_ENCRYPT_OFF,
                              .rings = k == RING ? RBT_RINGS_ON : RBT_RINGS_OFF,
                              .head_max = RBT_FRAME_HEAD_MAX,
                              .body_max = RBT_BARE_UNDER_WAY * RBT_BARE_LARGEST};
    rbt_hub_events events = {.on_open = on_open, .on_message = on_message, .on_lost = on_lost, .context = e};

    e->peer = NULL;
    e->is_done = false;
    e->why = (rbt_error){RBT_OK, ""};
    return rbt_hub_create(&config, &events, &(rbt_log){0}, &e->hub, error);
}

/* Its socket is connected. The ring's bare loop needs it, too, to notice the other one's end. */
static rbt_err start_bare(end *e, kind k, bool is_child, rbt_error *error)
{
    e->bare.out = k == RING ? &e->rings[is_child] : NULL;
    e->bare.in = k == RING ? &e->rings[!is_child] : NULL;
    return rbt_bare_open(&e->bare, k == TLS ? e->tls : NULL, is_child, error);
}

static void close_both(end *e)
{
    rbt_hub_destroy(e->hub, 1000);
    e->hub = NULL;
    rbt_bare_close(&e->bare);
}

static void end_deinit(end *e)
{
    close_both(e);
    (void)next_block(e, 0, false);
    rbt_array_free(&e->blocks);
    rbt_bare_deinit(&e->bare);
    rbt_tls_destroy(e->tls);
    rbt_key_wipe(&e->key);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
}

/* The child: listens for both, says where, takes the bare call. */
static rbt_err open_child(end *e, command *c, rbt_error *error)
{
    rbt_address address, bound, from;
    int listener = -1;
    rbt_err err = start_hub(e, c->kind, error);

    if (err == RBT_OK)
        err = rbt_address_parse(c->address[0], 0, &address, error);
    if (err == RBT_OK)
        err = rbt_hub_listen(e->hub, &address, &bound, error);
    if (err == RBT_OK) {
        rbt_address_text(&bound, c->address[0]);
        err = rbt_address_parse(c->address[1], 0, &address, error);
    }
    if (err == RBT_OK)
        err = rbt_socket_listen(&address, &listener, &bound, error);
    if (err != RBT_OK)
        return err;
    rbt_address_text(&bound, c->address[1]);
    (void)send(e->control, c, sizeof *c, MSG_NOSIGNAL);
    (void)poll(&(struct pollfd){listener, POLLIN, 0}, 1, PATIENCE_MS);
    err = rbt_socket_accept(listener, &e->bare.socket, &from, error);
    (void)close(listener);
    return err == RBT_OK ? start_bare(e, c->kind, true, error) : err;
}

static rbt_err open_parent(end *e, kind k, const char *host, rbt_error *error)
{
    command c = {.what = OPEN, .kind = k};
    rbt_address address;
    rbt_err err = start_hub(e, k, error);

    for (int i = 0; i < 2; i++)
        (void)(k < TCP ? snprintf(c.address[i], sizeof c.address[i], "unix:@rubato-bench-%d-%d-%d", (int)getpid(), k, i)
                       : snprintf(c.address[i], sizeof c.address[i], "%s:0", host));
    if (err == RBT_OK && (send(e->control, &c, sizeof c, MSG_NOSIGNAL) != sizeof c ||
                          recv(e->control, &c, sizeof c, MSG_WAITALL) != sizeof c))
        err = rbt_fail(error, RBT_E_IO, "the other process of the measurement has ended; it said why");
    if (err == RBT_OK)
        err = rbt_address_parse(c.address[1], 0, &address, error);
    if (err == RBT_OK)
        err = rbt_socket_dial(&address, &e->bare.socket, error);
    if (err == RBT_OK) {
        (void)poll(&(struct pollfd){e->bare.socket, POLLOUT, 0}, 1, PATIENCE_MS);
        err = rbt_socket_connected(e->bare.socket, &address, error);
    }
    if (err == RBT_OK)
        err = start_bare(e, k, false, error);
    if (err == RBT_OK)
        err = rbt_address_parse(c.address[0], 0, &address, error);
    if (err != RBT_OK)
        return err;
    (void)rbt_hub_dial(e->hub, &address, 1, PATIENCE_MS);
    return wait_done(e, error);
}

/* The child's life. It says what went wrong on the standard error: nobody else would. */
static int serve(const rbt_key *key, int control, rbt_ring *rings, const char *netns)
{
    rbt_error error = {RBT_OK, ""};
    command c;
    end e;
    int ns = netns != NULL ? open(netns, O_RDONLY | O_CLOEXEC) : -1;
    rbt_err err = end_init(&e, key, control, rings, &error);

    if (netns != NULL && (ns < 0 || setns(ns, CLONE_NEWNET) != 0))
        err = rbt_fail(&error, RBT_E_IO, "cannot enter the network namespace %s: %s; it takes root", netns,
                       strerror(errno));
    while (err == RBT_OK && recv(control, &c, sizeof c, MSG_WAITALL) == sizeof c) {
        if (c.what == OPEN)
            err = open_child(&e, &c, &error);
        else if (c.what == CLOSE)
            close_both(&e);
        else
            err = rbt_bare_serve(&e.bare, &c.job, &error);
    }
    if (err != RBT_OK)
        (void)fprintf(stderr, "rubato bench: the other process: %s\n", error.text);
    end_deinit(&e);
    return err == RBT_OK ? 0 : 1;
}

/* ---------------------------------------------------------------------------------------------------- the table */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare_doubles);
    return x[n / 2];
}

static rbt_err time_one(end *e, side which, const command *c, bool is_sparse, double *seconds, rbt_error *error)
{
    const rbt_bare_job *job = &c->job;
    double started = rbt_now_seconds();
    rbt_err err = RBT_OK;

    if (which == MEMCPY)
        rbt_bare_memcpy(&e->bare, job);
    else if (which == HUBS)
        err = job->is_pull ? run_pull(e, job, is_sparse, error) : run_push(e, job, is_sparse, error);
    else if (send(e->control, c, sizeof *c, MSG_NOSIGNAL) != sizeof *c)
        err = rbt_fail(error, RBT_E_IO, "the other process of the measurement has ended; run it again");
    else
        err = rbt_bare_run(&e->bare, job, error);
    *seconds = rbt_now_seconds() - started;
    return err;
}

/* One cell: rounds of all sides, interleaved, after one that warms up. */
static rbt_err time_cell(end *e, kind k, bool is_pull, size_t bytes, bool is_sparse, char *out, size_t room,
                         rbt_error *error)
{
    command c = {.what = BARE, .kind = k, .job = {.is_pull = is_pull, .bytes = bytes}};
    double ours[ROUNDS], ratios[SIDES][ROUNDS], seconds[SIDES];
    size_t sides = k == RING ? SIDES : MEMCPY;

    c.job.count = RUN_BYTES / bytes < RUN_COUNT ? RUN_BYTES / bytes : RUN_COUNT;
    c.job.count = (c.job.count + RBT_BARE_BATCH - 1) / RBT_BARE_BATCH * RBT_BARE_BATCH;
    for (size_t round = 0; round <= ROUNDS; round++) {
        for (size_t i = 0; i < sides; i++) {
            side which = (side)((i + round) % sides);
            rbt_err err = time_one(e, which, &c, is_sparse, &seconds[which], error);

            if (err != RBT_OK)
                return err;
        }
        for (size_t i = LOOP; round > 0 && i < sides; i++)
            ratios[i][round - 1] = seconds[i] / seconds[HUBS];
        if (round > 0)
            ours[round - 1] = seconds[HUBS];
    }
    double each = median(ours, ROUNDS) / (double)c.job.count, ratio = median(ratios[LOOP], ROUNDS);
    int n = snprintf(out, room, "%9.0f/s %6.2f GB/s %5.2fx (%.2f-%.2f)", 1 / each, (double)bytes / each / 1e9, ratio,
                     ratios[LOOP][0], ratios[LOOP][ROUNDS - 1]);
    if (k == RING && n > 0 && (size_t)n < room)
        (void)snprintf(out + n, room - (size_t)n, " memcpy %.2fx", median(ratios[MEMCPY], ROUNDS));
    return RBT_OK;
}

static rbt_err measure(end *e, kind k, void (*write)(void *context, const char *line), void *context, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (int is_sparse = 0; is_sparse < 2; is_sparse++)
        for (size_t bytes = 256; bytes <= RBT_BARE_LARGEST && err == RBT_OK; bytes *= 16) {
            char cells[2][80], line[240], size[32];

            for (uint32_t i = 0; i < 2 && err == RBT_OK; i++)
                err = time_cell(e, k, i == 1, bytes, is_sparse, cells[i], sizeof cells[i], error);
            if (err != RBT_OK)
                break;
            (void)(bytes < 1024      ? snprintf(size, sizeof size, "%zu B", bytes)
                   : bytes < 1 << 20 ? snprintf(size, sizeof size, "%zu KiB", bytes >> 10)
                                     : snprintf(size, sizeof size, "%zu MiB", bytes >> 20));
            (void)snprintf(line, sizeof line, "%-5s %-7s %7s | %s | %s", kind_names[k], is_sparse ? "sparse" : "dense",
                           size, cells[0], cells[1]);
            write(context, line);
        }
    return err;
}

static rbt_err measure_kinds(end *e, const rbt_bench_net_options *o, void (*write)(void *context, const char *line),
                             void *context, rbt_error *error)
{
    rbt_err err = RBT_OK;
    bool any = false;

    write(context, "two processes; push and pull: messages per second, GB/s, and as a multiple of a bare loop over the "
                   "same kind of socket");
    write(context, "or ring (and, for the ring, of memcpy into as much memory), median of 9 and range; the bare loop "
                   "moves small messages 16 at a time");
    for (kind k = 0; k < KINDS && err == RBT_OK; k++) {
        if ((o->only != NULL && strcmp(o->only, kind_names[k]) != 0) || (o->netns != NULL && k < TCP))
            continue;
        any = true;
        err = open_parent(e, k, o->address != NULL ? o->address : "127.0.0.1", error);
        if (err == RBT_OK)
            err = measure(e, k, write, context, error);
        (void)send(e->control, &(command){.what = CLOSE}, sizeof(command), MSG_NOSIGNAL);
        close_both(e);
    }
    if (err == RBT_OK && !any)
        err = rbt_fail(error, RBT_E_USAGE,
                       "there is no connection to measure; there are unix, ring, tcp, tls, and between "
                       "network namespaces only the last two");
    return err;
}

rbt_err rbt_bench_net(const rbt_bench_net_options *options, void (*write)(void *context, const char *line),
                      void *context, rbt_error *error)
{
    int fds[2];
    pid_t pid;
    rbt_key key;
    rbt_ring rings[2] = {{.fd = -1}, {.fd = -1}};
    end e;
    rbt_err err = rbt_key_create(&key, error);

    for (int i = 0; i < 2 && err == RBT_OK; i++)
        err = rbt_ring_create(RBT_RING_BYTES, &rings[i], error);
    if (err != RBT_OK)
        return err;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0 || (pid = fork()) < 0)
        return rbt_fail(error, RBT_E_LIMIT, "the system refused a second process: %s", strerror(errno));
    if (pid == 0) {
        (void)close(fds[0]);
        _exit(serve(&key, fds[1], rings, options->netns));
    }
    (void)close(fds[1]);
    err = end_init(&e, &key, fds[0], rings, error);
    if (err == RBT_OK)
        err = measure_kinds(&e, options, write, context, error);
    (void)close(fds[0]);
    end_deinit(&e);
    for (int i = 0; i < 2; i++)
        rbt_ring_deinit(&rings[i]);
    (void)waitpid(pid, NULL, 0);
    return err;
}
