/* The simulator; the contract is in sim.h. One loop takes the earliest event and lets a node or a worker run on it. */
#include "runtime/sim.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/check.h"
#include "runtime/check_budget.h"
#include "runtime/check_hop.h"
#include "runtime/coroutine.h"
#include "runtime/handle.h"
#include "runtime/sim_net.h"
#include "runtime/sim_queue.h"
#include "runtime/transport.h"

#define RESTART_NS 5000000u /* a crashed worker comes back after this, and up to twice that */

struct rbt_sim;

/* A worker (or the observer): its coroutine and what it is waiting for. */
typedef struct rbt_actor {
    struct rbt_sim *sim;
    rbt_worker worker;
    rbt_coroutine *coroutine;
    rbt_outbox inbox;
    enum { ACTOR_ABSENT, ACTOR_WORKING, ACTOR_WAITING, ACTOR_ENDED } state;
    bool dead; /* crashed: every call it makes fails until its program has ended */
    uint32_t incarnation;
} rbt_actor;

typedef struct rbt_sim {
    rbt_run *run;
    const rbt_sim_options *options;
    rbt_nodes nodes;
    rbt_sim_net net;
    rbt_sim_queue queue;
    uint64_t now_ns;
    rbt_actor *actors; /* workers, then observers */
    uint32_t actor_count;
    rbt_process *processes;      /* NULL when every worker has a process to itself */
    uint32_t active;             /* of them, those whose program has not ended for good */
    rbt_budget_checker *budgets; /* NULL: there is no budget */
    bool stop_requested;
    rbt_err err;
    rbt_error error;
} rbt_sim;

static void fail_sim(rbt_sim *sim, const rbt_error *error)
{
    if (sim->err == RBT_OK) {
        sim->err = error->code;
        sim->error = *error;
    }
}

/* ------------------------------------------------------------------------------------------------ messages */

static void handle(rbt_sim *sim, rbt_message *message);

/* Sends one message on its way; the observer's arrive at once and at no cost. */
static void send_message(rbt_sim *sim, rbt_message *message)
{
    size_t bytes;
    uint64_t arrival, again;
    rbt_sim_event event = {.kind = RBT_SIM_ARRIVE};
    rbt_error error;

    message = rbt_transport_pass(sim->run, message, true, &bytes);
    if (sim->budgets != NULL && rbt_budget_checker_sent(sim->budgets, message, bytes, sim->now_ns, &error) != RBT_OK)
        fail_sim(sim, &error);
    event.message = message;
    event.bytes = bytes;
    if (rbt_is_observed(sim->run, message)) {
        event.kind = RBT_SIM_HANDLE;
        event.time_ns = sim->now_ns;
        rbt_sim_queue_put(&sim->queue, event);
        return;
    }
    if (sim->options->hop_checker != NULL && message->type == RBT_MSG_TOKEN)
        rbt_hop_checker_sent(sim->options->hop_checker, message);
    arrival = rbt_sim_net_send(&sim->net, message->from, message->to, bytes, sim->now_ns);
    if (rbt_sim_net_repeats(&sim->net, arrival, &again)) {
        rbt_sim_event copy = event;

        copy.message = rbt_message_copy(message);
        copy.time_ns = again;
        rbt_sim_queue_put(&sim->queue, copy);
    }
    event.time_ns = arrival;
    rbt_sim_queue_put(&sim->queue, event);
}

static void send_all(rbt_sim *sim, rbt_outbox *out)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(out)) != NULL)
        send_message(sim, message);
}

static rbt_actor *actor_of(rbt_sim *sim, rbt_node node)
{
    return &sim->actors[node - 1 - sim->run->topology->servers];
}

static void resume(rbt_actor *actor)
{
    actor->state = ACTOR_WORKING;
    rbt_coroutine_resume(actor->coroutine);
}

static void note_delivery(const rbt_sim *sim, const rbt_message *message)
{
    if (sim->options->hop_checker != NULL && message->type == RBT_MSG_TOKEN)
        rbt_hop_checker_delivered(sim->options->hop_checker, message);
}

/* The receiver has read the message: the master or a server handles it; a worker that waits wakes up. */
static void handle(rbt_sim *sim, rbt_message *message)
{
    rbt_env env = {.now_ns = sim->now_ns, .log = &sim->run->log};
    rbt_checker *checker = sim->options->checker;
    rbt_node to = message->to;

    if (to > sim->run->topology->servers) {
        rbt_actor *actor = actor_of(sim, to);

        if (actor->dead || actor->state == ACTOR_ABSENT || actor->state == ACTOR_ENDED) {
            rbt_message_destroy(message); /* nobody is there: the connection is broken */
            return;
        }
        if (actor->worker.peer != NULL) { /* a peer handles what comes at once, also while its worker computes */
            note_delivery(sim, message);
            rbt_worker_handle(&actor->worker, message, &env);
            send_all(sim, &env.out);
        } else {
            rbt_outbox_put(&actor->inbox, message);
        }
        if (actor->state == ACTOR_WAITING)
            resume(actor);
        return;
    }
    if (to != RBT_MASTER && checker != NULL)
        rbt_checker_before(checker, &sim->nodes.servers[to - 1], message);
    rbt_nodes_handle(&sim->nodes, to, message, &env);
    if (to != RBT_MASTER && checker != NULL)
        rbt_checker_after(checker, &sim->nodes.servers[to - 1], &env.out);
    send_all(sim, &env.out);
}

/* --------------------------------------------------------------------------------- what a worker's calls do */

static bool actor_receive(rbt_worker *worker, bool wait)
{
    rbt_actor *actor = worker->place;
    rbt_env env = {.log = &worker->run->log, .process = worker->process};
    rbt_message *message;

    if (wait && actor->inbox.first == NULL && !actor->dead) {
        actor->state = ACTOR_WAITING;
        rbt_coroutine_yield(actor->coroutine);
    }
    if (actor->dead)
        return false;
    env.now_ns = actor->sim->now_ns;
    while ((message = rbt_outbox_take(&actor->inbox)) != NULL)
        rbt_worker_handle(worker, message, &env);
    send_all(actor->sim, &env.out);
    return true;
}

static void actor_deliver(rbt_worker *worker, rbt_outbox *out)
{
    rbt_actor *actor = worker->place;
    rbt_message *message;

    if (!actor->dead)
        send_all(actor->sim, out);
    while ((message = rbt_outbox_take(out)) != NULL)
        rbt_message_destroy(message);
}

static uint64_t actor_now_ns(rbt_worker *worker)
{
    return ((rbt_actor *)worker->place)->sim->now_ns;
}

/* Work takes virtual time: the cost model's on a host of this speed, times how slow the worker is in this clock. */
static void actor_work(rbt_worker *worker, uint64_t samples, uint64_t nonzeros)
{
    rbt_actor *actor = worker->place;
    rbt_sim *sim = actor->sim;
    const rbt_cost *cost = &sim->options->cost;
    double factor, ns;

    if (actor->dead || worker->client.is_observer)
        return;
    factor = rbt_stragglers_factor(sim->run->stragglers, worker->client.worker, worker->client.clock);
    ns = (cost->sample_ns * (double)samples + cost->nonzero_ns * (double)nonzeros) /
         rbt_sim_net_speed(&sim->net, rbt_node_of_worker(sim->run->topology, worker->client.worker));
    worker->slowed_ns += (uint64_t)(ns * (factor - 1));
    rbt_sim_queue_put(&sim->queue, (rbt_sim_event){.time_ns = sim->now_ns + (uint64_t)(ns * factor),
                                                   .kind = RBT_SIM_WAKE,
                                                   .worker = worker->client.worker,
                                                   .incarnation = actor->incarnation});
    actor->state = ACTOR_WORKING;
    rbt_coroutine_yield(actor->coroutine);
}

static const rbt_worker_ops sim_ops = {
    .receive = actor_receive, .deliver = actor_deliver, .now_ns = actor_now_ns, .work = actor_work};

/* --------------------------------------------------------------------------------------- a worker's life */

static void actor_main(void *argument)
{
    rbt_actor *actor = argument;
    rbt_sim *sim = actor->sim;
    const rbt_program *program = actor->worker.client.is_observer ? &sim->run->observe : &sim->run->program;
    rbt_error error = {0};

    if (rbt_worker_run(&actor->worker, program, &error) != RBT_OK && !actor->dead) {
        fail_sim(sim, &error);
        sim->stop_requested = true;
    }
    actor->state = ACTOR_ENDED;
    sim->active -= !actor->dead;
}

static void start_actor(rbt_sim *sim, uint32_t i)
{
    rbt_actor *actor = &sim->actors[i];

    rbt_worker_init(&actor->worker, sim->run, i, actor->incarnation, &sim_ops, actor);
    actor->sim = sim;
    if (sim->processes != NULL && i < sim->run->topology->workers)
        actor->worker.process = &sim->processes[i / sim->run->topology->process_workers];
    actor->dead = false;
    actor->coroutine = rbt_coroutine_create(actor_main, actor);
    if (actor->coroutine == NULL) {
        rbt_error error;

        rbt_fail(&error, RBT_E_MEMORY, "no memory for the stack of worker %u of %u", i, sim->run->topology->workers);
        fail_sim(sim, &error);
        rbt_worker_deinit(&actor->worker);
        actor->state = ACTOR_ENDED;
        sim->active--;
        return;
    }
    resume(actor);
}

/* Lets a worker's program run to its end without any effect, so that it frees what it holds. */
static void end_actor(rbt_actor *actor)
{
    rbt_message *message;

    actor->dead = true;
    while (actor->coroutine != NULL && !rbt_coroutine_has_ended(actor->coroutine))
        rbt_coroutine_resume(actor->coroutine);
    while ((message = rbt_outbox_take(&actor->inbox)) != NULL)
        rbt_message_destroy(message);
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        actor->sim->run->staleness_histogram[i] +=
            actor->worker.client.is_observer ? 0 : actor->worker.client.staleness_seen[i];
    rbt_coroutine_destroy(actor->coroutine);
    actor->coroutine = NULL;
    rbt_worker_deinit(&actor->worker);
}

static void tell_master(rbt_sim *sim, rbt_message_type type, uint32_t worker, uint32_t incarnation)
{
    rbt_message *message = rbt_message_create(type, RBT_MASTER, RBT_MASTER);

    message->worker = worker;
    message->incarnation = incarnation;
    handle(sim, message);
}

/* A half of the connections to servers break with the worker: what has not reached its host is lost. */
static void cut_links(rbt_sim *sim, uint32_t worker, uint64_t stream)
{
    rbt_node from = rbt_node_of_worker(sim->run->topology, worker);

    for (size_t i = 0; i < sim->queue.heap.count; i++) {
        rbt_sim_event *event = &sim->queue.heap.at[i];
        rbt_rng rng;

        if (event->kind != RBT_SIM_ARRIVE || event->message == NULL || event->message->from != from ||
            event->message->to == RBT_MASTER || event->message->to > sim->run->topology->servers)
            continue;
        rng = rbt_rng_stream(sim->options->seed, RBT_STREAM_FAULT, stream + ((uint64_t)event->message->to << 40));
        if (rbt_rng_below(&rng, 2) == 0)
            continue;
        rbt_message_destroy(event->message);
        event->message = NULL;
    }
}

/* A sum over all workers never comes without one of them, who is gone for good. */
static void end_allreduce(rbt_sim *sim, uint32_t worker)
{
    rbt_error error;

    rbt_fail(&error, RBT_E_LOST,
             "worker %u was lost at %.6f s; all-reduce needs every worker, so the job ends; --sync hop goes on without "
             "one",
             worker, (double)sim->now_ns / 1e9);
    fail_sim(sim, &error);
}

static void crash(rbt_sim *sim, uint32_t worker)
{
    const rbt_topology *topology = sim->run->topology;
    rbt_actor *actor = &sim->actors[worker];
    uint64_t stream = 1000 + actor->incarnation * 100000ULL + worker;
    rbt_rng rng = rbt_rng_stream(sim->options->seed, RBT_STREAM_FAULT, stream);

    if (actor->state == ACTOR_ENDED || actor->state == ACTOR_ABSENT)
        return;
    if (topology->lost_is_gone && topology->hop != NULL && topology->hop->allreduce) {
        end_allreduce(sim, worker);
        return;
    }
    end_actor(actor);
    cut_links(sim, worker, stream);
    rbt_transport_forget(sim->run, rbt_node_of_worker(topology, worker));
    actor->state = ACTOR_ABSENT;
    tell_master(sim, RBT_MSG_LOST, worker, actor->incarnation);
    /* A peer's parameters died with it: it has nothing to come back to. */
    if (topology->lost_is_gone || topology->hop != NULL) {
        actor->state = ACTOR_ENDED;
        sim->active--;
        atomic_store(&sim->run->published[worker].is_lost, true);
        return;
    }
    actor->incarnation++;
    rbt_sim_queue_put(&sim->queue,
                      (rbt_sim_event){.time_ns = sim->now_ns + RESTART_NS + rbt_rng_below(&rng, RESTART_NS),
                                      .kind = RBT_SIM_RESTART,
                                      .worker = worker});
}

static void plan_crashes(rbt_sim *sim)
{
    rbt_rng rng = rbt_rng_stream(sim->options->seed, RBT_STREAM_FAULT, 2);

    for (uint32_t i = 0; i < sim->options->faults.crashes; i++) {
        rbt_sim_event event = {.kind = RBT_SIM_CRASH};

        event.worker = (uint32_t)rbt_rng_below(&rng, sim->run->topology->workers);
        event.time_ns = rbt_rng_below(&rng, sim->options->faults.within_ns + 1);
        rbt_sim_queue_put(&sim->queue, event);
    }
}

/* --------------------------------------------------------------------------------------------- the loop */

static void take_event(rbt_sim *sim, const rbt_sim_event *event)
{
    rbt_sim_event read = *event;

    sim->now_ns = event->time_ns;
    switch (event->kind) {
    case RBT_SIM_ARRIVE:
        if (event->message == NULL) /* lost */
            break;
        read.kind = RBT_SIM_HANDLE;
        read.time_ns =
            rbt_sim_net_receive(&sim->net, event->message->from, event->message->to, event->bytes, sim->now_ns);
        rbt_sim_queue_put(&sim->queue, read);
        break;
    case RBT_SIM_HANDLE:
        handle(sim, event->message);
        break;
    case RBT_SIM_WAKE:
        if (sim->actors[event->worker].incarnation == event->incarnation &&
            sim->actors[event->worker].state == ACTOR_WORKING)
            resume(&sim->actors[event->worker]);
        break;
    case RBT_SIM_CRASH:
        crash(sim, event->worker);
        break;
    case RBT_SIM_RESTART:
        rbt_transport_forget(sim->run, rbt_node_of_worker(sim->run->topology, event->worker));
        start_actor(sim, event->worker);
        break;
    }
}

/* Whom a worker waits for, and the clock that one is at. */
static uint32_t awaited(const rbt_sim *sim, const rbt_actor *actor, uint64_t *clock)
{
    uint32_t late;

    if (actor->worker.peer == NULL) {
        *clock = sim->nodes.servers[0].clocks.least;
        return rbt_server_slowest_worker(&sim->nodes.servers[0]);
    }
    late = rbt_peer_waits_for(actor->worker.peer);
    *clock = late < sim->run->topology->workers ? atomic_load(&sim->run->published[late].clock) : 0;
    return late;
}

/* Everybody waits and nothing is under way: says who waits for whom. */
static void report_no_progress(rbt_sim *sim)
{
    char text[512] = "";
    size_t used = 0;
    rbt_error error;
    uint32_t waiting = 0;

    for (uint32_t m = 0; m < sim->run->topology->workers; m++) {
        const rbt_actor *actor = &sim->actors[m];
        uint64_t clock;
        uint32_t slowest;

        if (actor->state == ACTOR_ENDED || waiting++ >= 4 || used >= sizeof text)
            continue;
        slowest = awaited(sim, actor, &clock);
        if (slowest < sim->run->topology->workers) /* else it waits for nobody in particular */
            used += (size_t)snprintf(
                text + used, sizeof text - used, "; worker %u (clock %llu) waits for worker %u (clock %llu)", m,
                (unsigned long long)actor->worker.client.clock, slowest, (unsigned long long)clock);
    }
    if (waiting == 0 && sim->err != RBT_OK)
        return;
    rbt_fail(&error, RBT_E_NO_PROGRESS, "no progress at %.6f s, after %llu events: %u workers wait and %s%s",
             (double)sim->now_ns / 1e9, (unsigned long long)sim->run->events, waiting,
             sim->queue.heap.count > 0 ? "go round in circles" : "nothing is under way", text);
    fail_sim(sim, &error);
}

static void check_peers(const rbt_sim *sim)
{
    for (uint32_t m = 0; m < sim->run->topology->workers; m++) {
        const rbt_actor *actor = &sim->actors[m];
        bool is_there = actor->state == ACTOR_WORKING || actor->state == ACTOR_WAITING;

        rbt_hop_checker_see(sim->options->hop_checker, m, is_there ? actor->worker.peer : NULL);
    }
    rbt_hop_checker_judge(sim->options->hop_checker);
}

static void loop(rbt_sim *sim)
{
    rbt_sim_event event;

    while (sim->active > 0 && rbt_sim_queue_take(&sim->queue, &event)) {
        take_event(sim, &event);
        sim->run->events++;
        if (sim->options->hop_checker != NULL)
            check_peers(sim);
        if (sim->options->checker != NULL && rbt_checker_broken(sim->options->checker) != NULL) {
            rbt_error error;

            rbt_fail(&error, RBT_E_BROKEN, "at %.6f s (event %llu): %s", (double)sim->now_ns / 1e9,
                     (unsigned long long)sim->run->events, rbt_checker_broken(sim->options->checker));
            fail_sim(sim, &error);
            return;
        }
        if (sim->options->most_events > 0 && sim->run->events >= sim->options->most_events)
            break;
        if (!sim->nodes.master.stopping &&
            (sim->stop_requested || (sim->run->interrupted != NULL && atomic_load(sim->run->interrupted))))
            tell_master(sim, RBT_MSG_STOP, 0, 0);
    }
    if (sim->active > 0)
        report_no_progress(sim);
}

rbt_err rbt_sim_run(rbt_run *run, const rbt_sim_options *options, rbt_error *error)
{
    rbt_sim sim = {.run = run, .options = options};

    sim.active = sim.actor_count = run->topology->workers + run->topology->observers;
    sim.actors = rbt_alloc(sim.actor_count, sizeof *sim.actors);
    rbt_nodes_init(&sim.nodes, run, NULL);
    rbt_transport_open(run);
    rbt_sim_net_init(&sim.net, options, rbt_topology_nodes(run->topology));
    rbt_sim_net_place(&sim.net, run->topology);
    if (run->topology->budget_bytes > 0)
        sim.budgets = rbt_budget_checker_create(run->topology);
    run->started_ns = 0;
    plan_crashes(&sim);
    sim.processes = rbt_processes_create(run->topology);
    for (uint32_t i = 0; i < sim.actor_count; i++)
        start_actor(&sim, i);
    loop(&sim);
    run->elapsed_ns = sim.now_ns;
    for (uint32_t i = 0; i < sim.actor_count; i++)
        if (sim.actors[i].coroutine != NULL)
            end_actor(&sim.actors[i]);
    rbt_processes_destroy(sim.processes, run->topology);
    rbt_sim_queue_deinit(&sim.queue);
    rbt_sim_net_deinit(&sim.net);
    rbt_budget_checker_destroy(sim.budgets);
    rbt_nodes_deinit(&sim.nodes, run);
    rbt_transport_close(run);
    rbt_free(sim.actors);
    if (sim.err != RBT_OK && error != NULL)
        *error = sim.error;
    return sim.err;
}
