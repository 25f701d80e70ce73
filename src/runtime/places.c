/* The nodes that live in one process; the contract is in places.h. */
#include "runtime/places.h"

#include <errno.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"

#define PATIENCE_S 5          /* a worker that has waited this long says for whom */
#define NAP_NS     100000000u /* a straggler sleeps in pieces of this */

typedef struct worker_thread {
    rbt_places *places;
    pthread_t thread;
    uint32_t id;
    uint64_t staleness_seen[RBT_STALENESS_BINS];
} worker_thread;

/* ---------------------------------------------------------------------------------------------- delivering */

/* Puts a message into its receiver's inbox; a node that was idle goes onto the list of those this thread must run. */
static void post(rbt_places *places, rbt_message *message, rbt_place **to_run)
{
    rbt_place *to = &places->place[message->to];
    size_t bytes;

    if (!to->is_here) {
        places->forward(places->context, message);
        return;
    }
    if (places->place[message->from].is_here) /* else its sender's process has counted it */
        message = rbt_transport_pass(places->run, message, places->forward == NULL, &bytes);
    pthread_mutex_lock(&to->lock);
    rbt_outbox_put(&to->inbox, message);
    if (to->has_thread && !to->is_run) {
        pthread_cond_signal(&to->news);
    } else if (!to->busy) {
        to->busy = true;
        to->next = *to_run;
        *to_run = to;
    }
    pthread_mutex_unlock(&to->lock);
}

static void post_all(rbt_places *places, rbt_outbox *out, rbt_place **to_run)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(out)) != NULL)
        post(places, message, to_run);
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

static void run_node(rbt_places *places, const rbt_place *place, rbt_outbox *inbox, rbt_place **to_run)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(inbox)) != NULL) {
        rbt_env env = {.now_ns = rbt_now_ns(), .log = &places->run->log};

        rbt_nodes_handle(&places->nodes, place->node, message, &env);
        post_all(places, &env.out, to_run);
    }
}

/* What is for a peer that has just left is lost, as it would be later. */
static void run_peer(rbt_places *places, rbt_place *place, rbt_outbox *inbox, rbt_place **to_run)
{
    rbt_message *message;

    pthread_mutex_lock(&place->held);
    while ((message = rbt_outbox_take(inbox)) != NULL) {
        rbt_env env = {.now_ns = rbt_now_ns(), .log = &places->run->log};

        if (place->worker == NULL) {
            rbt_message_destroy(message);
            continue;
        }
        rbt_worker_handle(place->worker, message, &env);
        post_all(places, &env.out, to_run);
    }
    pthread_mutex_unlock(&place->held);
    pthread_mutex_lock(&place->lock);
    place->handled++;
    pthread_cond_signal(&place->news);
    pthread_mutex_unlock(&place->lock);
}

/* Runs all places on the list, and whatever that wakes. */
static void run_all(rbt_places *places, rbt_place *to_run)
{
    while (to_run != NULL) {
        rbt_place *place = to_run, *next = place->next;
        rbt_outbox inbox = take_inbox(place);

        if (inbox.first == NULL) { /* idle: another thread may promise to run it and link it into its own list */
            to_run = next;
            continue;
        }
        if (place->has_thread)
            run_peer(places, place, &inbox, &to_run);
        else
            run_node(places, place, &inbox, &to_run);
    }
}

void rbt_places_deliver(rbt_places *places, rbt_outbox *out)
{
    rbt_place *to_run = NULL;

    post_all(places, out, &to_run);
    run_all(places, to_run);
}

/* ------------------------------------------------------------------------------------------- a worker waits */

static void worker_deliver(rbt_worker *worker, rbt_outbox *out)
{
    rbt_places *places = worker->place;

    rbt_places_deliver(places, out);
    if (places->throttle != NULL)
        places->throttle(places->context);
}

/* ------------------------------------------------------------------------------------------- a worker's peer */

/* From now on whoever posts to it runs it; what has come before is handled here. */
static void attach_peer(rbt_places *places, rbt_worker *worker)
{
    rbt_place *mine = &places->place[worker->client.node];

    if (worker->peer == NULL)
        return;
    pthread_mutex_lock(&mine->held);
    mine->worker = worker;
    pthread_mutex_unlock(&mine->held);
    pthread_mutex_lock(&mine->lock);
    mine->is_run = mine->busy = true;
    mine->next = NULL;
    pthread_mutex_unlock(&mine->lock);
    run_all(places, mine);
}

static void detach_peer(rbt_places *places, rbt_worker *worker)
{
    rbt_place *mine = &places->place[worker->client.node];

    if (worker->peer == NULL)
        return;
    pthread_mutex_lock(&mine->lock);
    mine->is_run = false;
    pthread_mutex_unlock(&mine->lock);
    pthread_mutex_lock(&mine->held);
    mine->worker = NULL;
    pthread_mutex_unlock(&mine->held);
}

static void worker_hold(rbt_worker *worker)
{
    pthread_mutex_lock(&((rbt_places *)worker->place)->place[worker->client.node].held);
}

static void worker_let_go(rbt_worker *worker, rbt_outbox *out)
{
    rbt_places *places = worker->place;
    rbt_place *to_run = NULL;
    bool said = out->first != NULL;

    post_all(places, out, &to_run);
    pthread_mutex_unlock(&places->place[worker->client.node].held);
    run_all(places, to_run);
    if (said && places->throttle != NULL)
        places->throttle(places->context);
}

/* Says for whom a worker has been waiting: the one that has finished the fewest clocks. */
static void tell_patience(const rbt_worker *worker, uint64_t waited_s)
{
    const rbt_run *run = worker->run;
    uint64_t least = RBT_UNBOUNDED;
    uint32_t slowest = 0;

    if (worker->client.is_observer || !((const rbt_places *)worker->place)->knows_all)
        return;
    for (uint32_t m = 0; m < run->topology->workers; m++) {
        uint64_t clock = atomic_load_explicit(&run->published[m].clock, memory_order_relaxed);

        if (clock < least) {
            least = clock;
            slowest = m;
        }
    }
    rbt_log_event(&run->log, RBT_LOG_INFO, ((const rbt_places *)worker->place)->name,
                  "worker %u (clock %llu) has waited %llu s for worker %u (clock %llu)", worker->client.worker,
                  (unsigned long long)worker->client.clock, (unsigned long long)waited_s, slowest,
                  (unsigned long long)least);
}

static void note_waiting(const rbt_worker *worker, uint64_t since_ns)
{
    if (!worker->client.is_observer)
        atomic_store_explicit(&worker->run->published[worker->client.worker].waiting_since_ns, since_ns,
                              memory_order_relaxed);
}

/* Is there something that the worker's thread does not know of? Under the lock. */
static bool has_news(const rbt_place *mine)
{
    return mine->is_run ? mine->handled != mine->seen : mine->inbox.first != NULL;
}

/* Sleeps until a message is there or the job is over. Called and left with the lock held, except while it tells. */
static void wait_for_news(rbt_worker *worker, rbt_place *mine)
{
    const rbt_places *places = worker->place;
    struct timespec until;
    uint64_t waited_s = 0;

    if (has_news(mine))
        return;
    note_waiting(worker, rbt_now_ns());
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    while (!has_news(mine) && !atomic_load(&places->over)) {
        if (pthread_cond_timedwait(&mine->news, &mine->lock, &until) != ETIMEDOUT)
            continue;
        until.tv_sec += PATIENCE_S;
        waited_s += PATIENCE_S;
        pthread_mutex_unlock(&mine->lock);
        tell_patience(worker, waited_s);
        pthread_mutex_lock(&mine->lock);
    }
    note_waiting(worker, 0);
}

void rbt_places_request_stop(rbt_places *places)
{
    rbt_outbox out = {0};

    rbt_outbox_put(&out, rbt_message_create(RBT_MSG_STOP, RBT_MASTER, RBT_MASTER));
    rbt_places_deliver(places, &out);
}

static bool worker_receive(rbt_worker *worker, bool wait)
{
    rbt_places *places = worker->place;
    rbt_place *mine = &places->place[worker->client.node];
    rbt_outbox inbox;
    rbt_message *message;
    rbt_env env = {.log = &worker->run->log, .process = worker->process};

    if (!worker->client.stopping && worker->run->interrupted != NULL && atomic_load(worker->run->interrupted))
        rbt_places_request_stop(places);
    pthread_mutex_lock(&mine->lock);
    if (wait)
        wait_for_news(worker, mine);
    mine->seen = mine->handled;
    inbox = mine->is_run ? (rbt_outbox){0} : mine->inbox; /* else whoever promised to will handle it */
    if (!mine->is_run)
        mine->inbox = (rbt_outbox){0};
    pthread_mutex_unlock(&mine->lock);
    env.now_ns = rbt_now_ns();
    while ((message = rbt_outbox_take(&inbox)) != NULL)
        rbt_worker_handle(worker, message, &env);
    if (env.out.first != NULL)
        worker_deliver(worker, &env.out);
    return !atomic_load(&places->over);
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

        if ((worker->run->interrupted != NULL && atomic_load(worker->run->interrupted)) ||
            atomic_load(&((rbt_places *)worker->place)->over))
            return;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    }
}

static const rbt_worker_ops ops = {.receive = worker_receive,
                                   .deliver = worker_deliver,
                                   .now_ns = worker_now_ns,
                                   .sleep_ns = worker_sleep_ns,
                                   .hold = worker_hold,
                                   .let_go = worker_let_go};

/* ------------------------------------------------------------------------------------------- start to end */

void rbt_places_fail(rbt_places *places, const rbt_error *error)
{
    bool first;

    pthread_mutex_lock(&places->error_lock);
    first = places->err == RBT_OK;
    if (first) {
        places->err = error->code;
        places->error = *error;
    }
    pthread_mutex_unlock(&places->error_lock);
    if (first && places->on_failure != NULL)
        places->on_failure(places->context, error);
    if (places->place[RBT_MASTER].is_here)
        rbt_places_request_stop(places);
    /* Peers wait for each other: a sum without one of them is never whole, one that did not start says nothing to its neighbours.
     * Where there are other processes, the lead ends the job. */
    if (places->run->topology->hop != NULL && places->forward == NULL)
        rbt_places_end(places);
}

void rbt_places_end(rbt_places *places)
{
    atomic_store(&places->over, true);
    for (rbt_node node = 0; node < rbt_topology_nodes(places->run->topology); node++) {
        rbt_place *place = &places->place[node];

        pthread_mutex_lock(&place->lock); /* so that nobody is between looking and sleeping */
        pthread_cond_broadcast(&place->news);
        pthread_mutex_unlock(&place->lock);
    }
}

static void run_worker(rbt_places *places, uint32_t id, const rbt_program *program, uint64_t *staleness_seen)
{
    rbt_error error = {0};
    rbt_worker worker;

    rbt_worker_init(&worker, places->run, id, id < places->run->topology->workers ? places->incarnation : 0, &ops,
                    places);
    if (places->process != NULL && id < places->run->topology->workers)
        worker.process = places->process;
    attach_peer(places, &worker);
    if (rbt_worker_run(&worker, program, &error) != RBT_OK)
        rbt_places_fail(places, &error);
    detach_peer(places, &worker);
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

/* The workers here share a process: the one that the first of them is in. */
static void init_process(rbt_places *places, uint32_t first)
{
    const rbt_topology *topology = places->run->topology;

    places->processes = rbt_processes_create(topology);
    if (places->processes == NULL)
        return;
    places->process = &places->processes[first / topology->process_workers];
    places->process->guard = &places->process_lock;
    places->process->lock = lock_process;
    places->process->unlock = unlock_process;
}

static void *thread_main(void *argument)
{
    worker_thread *thread = argument;

    run_worker(thread->places, thread->id, &thread->places->run->program, thread->staleness_seen);
    atomic_fetch_sub(&thread->places->working, 1);
    return NULL;
}

void rbt_places_init(rbt_places *places, rbt_run *run, const char *name, const bool *here)
{
    uint32_t nodes = rbt_topology_nodes(run->topology);
    pthread_condattr_t monotonic;

    *places = (rbt_places){.run = run,
                           .name = name,
                           .knows_all = true,
                           .error_lock = PTHREAD_MUTEX_INITIALIZER,
                           .process_lock = PTHREAD_MUTEX_INITIALIZER};
    rbt_nodes_init(&places->nodes, run, here);
    rbt_transport_open(run);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    places->place = rbt_alloc(nodes, sizeof *places->place);
    for (rbt_node node = 0; node < nodes; node++) {
        rbt_place *place = &places->place[node];

        pthread_mutex_init(&place->lock, NULL);
        pthread_mutex_init(&place->held, NULL);
        pthread_cond_init(&place->news, &monotonic);
        place->node = node;
        place->has_thread = node > run->topology->servers;
        place->is_here = here == NULL || here[node];
    }
    pthread_condattr_destroy(&monotonic);
}

void rbt_places_deinit(rbt_places *places)
{
    for (rbt_node node = 0; node < rbt_topology_nodes(places->run->topology); node++) {
        rbt_place *place = &places->place[node];
        rbt_message *message;

        while ((message = rbt_outbox_take(&place->inbox)) != NULL)
            rbt_message_destroy(message);
        pthread_cond_destroy(&place->news);
        pthread_mutex_destroy(&place->held);
        pthread_mutex_destroy(&place->lock);
    }
    rbt_free(places->place);
    rbt_nodes_deinit(&places->nodes, places->run);
    rbt_transport_close(places->run);
    pthread_mutex_destroy(&places->process_lock);
    pthread_mutex_destroy(&places->error_lock);
}

/* A worker that could not be started leaves at once, so that nobody waits for it. */
static void leave_unstarted(rbt_places *places, uint32_t id)
{
    rbt_error error;
    rbt_client client;
    rbt_env env = {.log = &places->run->log};

    rbt_fail(&error, RBT_E_LIMIT, "the system refused thread %u of %u; use fewer --workers", id + 1,
             places->run->topology->workers);
    rbt_places_fail(places, &error);
    rbt_client_init(&client, places->run->topology, id, places->incarnation);
    rbt_client_retire(&client, &env);
    rbt_places_deliver(places, &env.out);
    rbt_client_deinit(&client);
    atomic_fetch_sub(&places->working, 1);
}

rbt_err rbt_places_run(rbt_places *places, uint32_t first, uint32_t count, bool observe, rbt_error *error)
{
    rbt_run *run = places->run;
    worker_thread *threads = rbt_alloc(count, sizeof *threads);

    if (count > 0)
        init_process(places, first);
    run->started_ns = rbt_now_ns();
    atomic_store(&places->working, count);
    for (uint32_t i = 0; i < count; i++) {
        threads[i] = (worker_thread){.places = places, .id = first + i};
        if (pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) != 0) {
            threads[i].places = NULL;
            leave_unstarted(places, first + i);
        }
    }
    if (observe)
        run_worker(places, run->topology->workers, &run->observe, NULL); /* on this thread */
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].places != NULL)
            pthread_join(threads[i].thread, NULL);
    run->elapsed_ns = rbt_now_ns() - run->started_ns;
    for (uint32_t i = 0; i < count; i++)
        for (size_t bin = 0; bin < RBT_STALENESS_BINS; bin++)
            run->staleness_histogram[bin] += threads[i].staleness_seen[bin];
    rbt_processes_destroy(places->processes, run->topology);
    places->processes = places->process = NULL;
    rbt_free(threads);
    if (places->err != RBT_OK && error != NULL)
        *error = places->error;
    return places->err;
}
