/* The local runtime: workers are threads of this process, everything else runs on their time.
 *
 * A message is a pointer put into the receiver's inbox. Servers and the master have no threads: whoever posts to one
 * that is idle runs it until its inbox is empty, on the spot; payloads are snapshots and are not copied. A worker's own
 * inbox is emptied by its own thread, which sleeps on a condition while it has to wait.
 *
 * Order per pair of nodes: a node is run by one thread at a time, and what it says while it handles a message is posted
 * before it handles the next. No two locks are ever held: posting takes the receiver's lock alone, and a node that runs
 * holds no lock, only the mark `busy`. Checked by ThreadSanitizer in tests/unit/test_local.c.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/handle.h"
#include "runtime/transport.h"

#define PATIENCE_S 5          /* a worker that has waited this long says for whom */
#define NAP_NS     100000000u /* a straggler sleeps in pieces of this */

typedef struct rbt_place {
    pthread_mutex_t lock;
    pthread_cond_t news;    /* workers only */
    rbt_outbox inbox;       /* under the lock, like `busy` */
    bool busy;              /* a thread runs this node, or has promised to */
    bool has_thread;        /* a worker's place: its thread empties the inbox */
    struct rbt_place *next; /* in the list of places one thread has promised to run */
    rbt_node node;
} rbt_place;

typedef struct rbt_local {
    rbt_run *run;
    rbt_process *process; /* all workers are threads of one, and share its cache; NULL with one worker */
    pthread_mutex_t process_lock;
    rbt_nodes nodes;
    rbt_place *places; /* per node */
    pthread_mutex_t error_lock;
    rbt_err err; /* the first failure of a program */
    rbt_error error;
} rbt_local;

typedef struct worker_thread {
    rbt_local *local;
    pthread_t thread;
    uint32_t id;
    uint64_t staleness_seen[RBT_STALENESS_BINS];
} worker_thread;

/* ---------------------------------------------------------------------------------------------- delivering */

/* Puts a message into its receiver's inbox; a node that was idle goes onto the list of those this thread must run. */
static void post(rbt_local *local, rbt_message *message, rbt_place **to_run)
{
    rbt_place *to = &local->places[message->to];
    size_t bytes;

    message = rbt_transport_pass(local->run, message, &bytes);
    pthread_mutex_lock(&to->lock);
    rbt_outbox_put(&to->inbox, message);
    if (to->has_thread) {
        pthread_cond_signal(&to->news);
    } else if (!to->busy) {
        to->busy = true;
        to->next = *to_run;
        *to_run = to;
    }
    pthread_mutex_unlock(&to->lock);
}

static void post_all(rbt_local *local, rbt_outbox *out, rbt_place **to_run)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(out)) != NULL)
        post(local, message, to_run);
}

/* Takes all that is in the inbox; marks the node idle when that is nothing. */
static rbt_outbox take_inbox(rbt_place *place)
{
    rbt_outbox taken;

    pthread_mutex_lock(&place->lock);
    taken = place->inbox;
    place->inbox = (rbt_outbox){0};
    if (taken.first == NULL)
        place->busy = false;
    pthread_mutex_unlock(&place->lock);
    return taken;
}

/* Delivers what a node said, and runs whatever that wakes, until nothing is left to do. */
static void deliver(rbt_local *local, rbt_outbox *out)
{
    rbt_place *to_run = NULL;

    post_all(local, out, &to_run);
    while (to_run != NULL) {
        rbt_place *place = to_run, *next = place->next;
        rbt_outbox inbox = take_inbox(place);
        rbt_message *message;

        if (inbox.first == NULL) { /* idle: another thread may promise to run it and link it into its own list */
            to_run = next;
            continue;
        }
        while ((message = rbt_outbox_take(&inbox)) != NULL) {
            rbt_env env = {.now_ns = rbt_now_ns(), .log = &local->run->log};

            rbt_nodes_handle(&local->nodes, place->node, message, &env);
            post_all(local, &env.out, &to_run);
        }
    }
}

/* ------------------------------------------------------------------------------------------- a worker waits */

static void worker_deliver(rbt_worker *worker, rbt_outbox *out)
{
    deliver(worker->place, out);
}

/* Says for whom a worker has been waiting: the one that has finished the fewest clocks. */
static void tell_patience(const rbt_worker *worker, uint64_t waited_s)
{
    const rbt_run *run = worker->run;
    uint64_t least = RBT_UNBOUNDED;
    uint32_t slowest = 0;

    if (worker->client.is_observer)
        return;
    for (uint32_t m = 0; m < run->topology->workers; m++) {
        uint64_t clock = atomic_load_explicit(&run->published[m].clock, memory_order_relaxed);

        if (clock < least) {
            least = clock;
            slowest = m;
        }
    }
    rbt_log_event(&run->log, RBT_LOG_INFO, "local",
                  "worker %u (clock %llu) has waited %llu s for worker %u (clock %llu)", worker->client.worker,
                  (unsigned long long)worker->client.clock, (unsigned long long)waited_s, slowest,
                  (unsigned long long)least);
}

/* Sleeps until a message is there. Called and left with the lock held, except while it tells. */
static void wait_for_news(rbt_worker *worker, rbt_place *mine)
{
    struct timespec until;
    uint64_t waited_s = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    while (mine->inbox.first == NULL) {
        if (pthread_cond_timedwait(&mine->news, &mine->lock, &until) != ETIMEDOUT)
            continue;
        until.tv_sec += PATIENCE_S;
        waited_s += PATIENCE_S;
        pthread_mutex_unlock(&mine->lock);
        tell_patience(worker, waited_s);
        pthread_mutex_lock(&mine->lock);
    }
}

/* Asks the master to stop; told once by whoever notices. */
static void request_stop(rbt_local *local)
{
    rbt_outbox out = {0};

    rbt_outbox_put(&out, rbt_message_create(RBT_MSG_STOP, RBT_MASTER, RBT_MASTER));
    deliver(local, &out);
}

static bool worker_receive(rbt_worker *worker, bool wait)
{
    rbt_local *local = worker->place;
    rbt_place *mine = &local->places[worker->client.node];
    rbt_outbox inbox;
    rbt_message *message;
    rbt_env env = {.log = &worker->run->log, .process = worker->process};

    if (!worker->client.stopping && worker->run->interrupted != NULL && atomic_load(worker->run->interrupted))
        request_stop(local);
    pthread_mutex_lock(&mine->lock);
    if (wait)
        wait_for_news(worker, mine);
    inbox = mine->inbox;
    mine->inbox = (rbt_outbox){0};
    pthread_mutex_unlock(&mine->lock);
    env.now_ns = rbt_now_ns();
    while ((message = rbt_outbox_take(&inbox)) != NULL)
        rbt_client_handle(&worker->client, message, &env);
    if (env.out.first != NULL)
        deliver(local, &env.out);
    return true;
}

static uint64_t worker_now_ns(rbt_worker *worker)
{
    (void)worker;
    return rbt_now_ns();
}

static void worker_sleep_ns(rbt_worker *worker, uint64_t ns)
{
    uint64_t until = rbt_now_ns() + ns;

    /* In pieces, so that a job that was interrupted does not have to wait for its slowest straggler's sleep. */
    for (uint64_t now = rbt_now_ns(); now < until; now = rbt_now_ns()) {
        uint64_t piece = until - now < NAP_NS ? until - now : NAP_NS;
        struct timespec t = {.tv_sec = (time_t)(piece / 1000000000u), .tv_nsec = (long)(piece % 1000000000u)};

        if (worker->run->interrupted != NULL && atomic_load(worker->run->interrupted))
            return;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    }
}

static const rbt_worker_ops local_ops = {
    .receive = worker_receive, .deliver = worker_deliver, .now_ns = worker_now_ns, .sleep_ns = worker_sleep_ns};

/* ------------------------------------------------------------------------------------------- start to end */

static void fail_job(rbt_local *local, const rbt_error *error)
{
    pthread_mutex_lock(&local->error_lock);
    if (local->err == RBT_OK) {
        local->err = error->code;
        local->error = *error;
    }
    pthread_mutex_unlock(&local->error_lock);
    request_stop(local);
}

static void run_worker(rbt_local *local, uint32_t id, const rbt_program *program, uint64_t *staleness_seen)
{
    rbt_error error = {0};
    rbt_worker worker;

    rbt_worker_init(&worker, local->run, id, 0, &local_ops, local);
    if (local->process != NULL && id < local->run->topology->workers)
        worker.process = local->process;
    if (rbt_worker_run(&worker, program, &error) != RBT_OK)
        fail_job(local, &error);
    for (size_t i = 0; staleness_seen != NULL && i < RBT_STALENESS_BINS; i++)
        staleness_seen[i] = worker.client.staleness_seen[i];
    rbt_worker_deinit(&worker);
}

static void lock_process(rbt_process *process)
{
    pthread_mutex_lock(process->guard);
}

static void unlock_process(rbt_process *process)
{
    pthread_mutex_unlock(process->guard);
}

static void init_process(rbt_local *local)
{
    local->process = rbt_processes_create(local->run->topology);
    if (local->process == NULL)
        return;
    RBT_ASSERT(local->run->topology->process_workers >= local->run->topology->workers);
    local->process->guard = &local->process_lock;
    local->process->lock = lock_process;
    local->process->unlock = unlock_process;
}

static void *thread_main(void *argument)
{
    worker_thread *thread = argument;

    run_worker(thread->local, thread->id, &thread->local->run->program, thread->staleness_seen);
    return NULL;
}

static void init_places(rbt_local *local)
{
    uint32_t nodes = rbt_topology_nodes(local->run->topology);
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    local->places = rbt_alloc(nodes, sizeof *local->places);
    for (rbt_node node = 0; node < nodes; node++) {
        rbt_place *place = &local->places[node];

        pthread_mutex_init(&place->lock, NULL);
        pthread_cond_init(&place->news, &monotonic);
        place->node = node;
        place->has_thread = node > local->run->topology->servers;
    }
    pthread_condattr_destroy(&monotonic);
}

static void deinit_places(rbt_local *local)
{
    for (rbt_node node = 0; node < rbt_topology_nodes(local->run->topology); node++) {
        rbt_place *place = &local->places[node];
        rbt_message *message;

        while ((message = rbt_outbox_take(&place->inbox)) != NULL)
            rbt_message_destroy(message);
        pthread_cond_destroy(&place->news);
        pthread_mutex_destroy(&place->lock);
    }
    rbt_free(local->places);
}

/* A worker that could not be started leaves at once, so that nobody waits for it. */
static void leave_unstarted(rbt_local *local, uint32_t id)
{
    rbt_error error;
    rbt_client client;
    rbt_env env = {.log = &local->run->log};

    rbt_fail(&error, RBT_E_LIMIT, "the system refused thread %u of %u; use fewer --workers", id + 1,
             local->run->topology->workers);
    fail_job(local, &error);
    rbt_client_init(&client, local->run->topology, id, 0);
    rbt_client_retire(&client, &env);
    deliver(local, &env.out);
    rbt_client_deinit(&client);
}

rbt_err rbt_local_run(rbt_run *run, rbt_error *error)
{
    rbt_local local = {.run = run, .error_lock = PTHREAD_MUTEX_INITIALIZER, .process_lock = PTHREAD_MUTEX_INITIALIZER};
    uint32_t workers = run->topology->workers;
    worker_thread *threads = rbt_alloc(workers, sizeof *threads);

    rbt_nodes_init(&local.nodes, run);
    init_places(&local);
    init_process(&local);
    run->started_ns = rbt_now_ns();
    for (uint32_t m = 0; m < workers; m++) {
        threads[m].local = &local;
        threads[m].id = m;
        if (pthread_create(&threads[m].thread, NULL, thread_main, &threads[m]) != 0) {
            threads[m].local = NULL;
            leave_unstarted(&local, m);
        }
    }
    if (run->topology->observers > 0)
        run_worker(&local, workers, &run->observe, NULL); /* on this thread */
    for (uint32_t m = 0; m < workers; m++)
        if (threads[m].local != NULL)
            pthread_join(threads[m].thread, NULL);
    run->elapsed_ns = rbt_now_ns() - run->started_ns;
    for (uint32_t m = 0; m < workers; m++)
        for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
            run->staleness_histogram[i] += threads[m].staleness_seen[i];
    rbt_processes_destroy(local.process, run->topology);
    pthread_mutex_destroy(&local.process_lock);
    deinit_places(&local);
    rbt_nodes_deinit(&local.nodes, run);
    rbt_free(threads);
    if (local.err != RBT_OK && error != NULL)
        *error = local.error;
    return local.err;
}
