/* The blocking calls of a program (rubato.h, section 4), written once for all runtimes; see handle.h. */
#include "runtime/handle.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "node/early.h"
#include "runtime/calls.h"

#define relaxed             memory_order_relaxed
#define INCREMENTS_PER_LOOK 64u /* calls between two looks at the budget: reading the clock costs more than they do */

void rbt_worker_init(rbt_worker *worker, rbt_run *run, uint32_t id, uint32_t incarnation, const rbt_worker_ops *ops,
                     void *place)
{
    *worker = (rbt_worker){.run = run, .ops = ops, .place = place};
    rbt_client_init(&worker->client, run->topology, id, incarnation);
    if (incarnation > 0) { /* what a former life has done counts like its clocks; elsewhere the lead knows it */
        const rbt_published *before = &run->published[id];

        worker->samples = atomic_load_explicit(&before->samples, relaxed);
        worker->compute_ns = atomic_load_explicit(&before->compute_ns, relaxed);
        worker->wait_ns = atomic_load_explicit(&before->wait_ns, relaxed);
        worker->communication_ns = atomic_load_explicit(&before->communication_ns, relaxed);
        worker->slowed_ns = atomic_load_explicit(&before->slowed_ns, relaxed);
    }
    if (run->topology->hop != NULL && !worker->client.is_observer) {
        worker->peer = rbt_alloc(1, sizeof *worker->peer);
        rbt_peer_init(worker->peer, run->topology, id, run->topology->hop->parameters);
    } else if (run->topology->hop != NULL) {
        worker->onlooker = rbt_alloc(1, sizeof *worker->onlooker);
        rbt_onlooker_init(worker->onlooker, run->topology, run->topology->hop->parameters);
    }
}

void rbt_worker_deinit(rbt_worker *worker)
{
    rbt_mix_deinit(&worker->mix);
    if (worker->peer != NULL)
        rbt_peer_deinit(worker->peer);
    if (worker->onlooker != NULL)
        rbt_onlooker_deinit(worker->onlooker);
    rbt_free(worker->peer);
    rbt_free(worker->onlooker);
    rbt_client_deinit(&worker->client);
    rbt_array_free(&worker->spans);
}

uint32_t rbt_worker_id(const rbt_worker *worker)
{
    return worker->client.worker;
}

uint32_t rbt_worker_count(const rbt_worker *worker)
{
    return worker->run->topology->workers;
}

uint64_t rbt_worker_clock(const rbt_worker *worker)
{
    return worker->client.clock;
}

bool rbt_worker_should_stop(const rbt_worker *worker)
{
    return worker->client.stopping;
}

bool rbt_worker_is_interrupted(const rbt_worker *worker)
{
    return worker->client.stopping || (worker->run->interrupted != NULL && atomic_load(worker->run->interrupted));
}

void rbt_worker_handle(rbt_worker *worker, rbt_message *message, rbt_env *env)
{
    if (worker->peer != NULL) {
        rbt_peer_handle(worker->peer, message, env);
    } else if (worker->onlooker != NULL) {
        rbt_onlooker_handle(worker->onlooker, message);
    } else {
        rbt_client_handle(&worker->client, message, env);
    }
}

uint64_t rbt_worker_elapsed_ns(rbt_worker *worker)
{
    return worker->ops->now_ns(worker) - worker->run->started_ns;
}

/* ------------------------------------------------------------------------------------------- time and env */

/* The program hands control over: what passed since it got it was computing. */
void rbt_call_enter(rbt_worker *worker)
{
    uint64_t now = worker->ops->now_ns(worker);

    worker->clock_compute_ns += now - worker->since_ns;
    worker->compute_ns += now - worker->since_ns;
    worker->since_ns = now;
}

/* The program gets control back after a call that waited for others for `held_ns` of the time it took. */
void rbt_call_leave(rbt_worker *worker, uint64_t held_ns)
{
    uint64_t now = worker->ops->now_ns(worker), took = now - worker->since_ns;

    if (held_ns > took)
        held_ns = took;
    worker->wait_ns += held_ns;
    worker->communication_ns += took - held_ns;
    worker->since_ns = now;
}

rbt_env rbt_call_env(rbt_worker *worker)
{
    return (rbt_env){.now_ns = worker->ops->now_ns(worker), .log = &worker->run->log, .process = worker->process};
}

void rbt_call_deliver(rbt_worker *worker, rbt_env *env)
{
    if (env->out.first != NULL)
        worker->ops->deliver(worker, &env->out);
}

rbt_err rbt_call_gone(rbt_error *error, const rbt_worker *worker)
{
    return rbt_fail(error, RBT_E_INTERRUPTED, "worker %u is no longer part of the job", worker->client.worker);
}

/* Managed communication: sends what there is room for. */
static void send_early(rbt_worker *worker)
{
    rbt_env env;

    if (worker->run->topology->budget_bytes == 0)
        return;
    env = rbt_call_env(worker);
    rbt_client_send_early(&worker->client, &env);
    rbt_call_deliver(worker, &env);
}

/* Waits until the spans collected in worker->spans may be read at `clock`. */
static rbt_err wait_for_spans(rbt_worker *worker, uint64_t clock, uint64_t staleness, rbt_error *error)
{
    worker->client.held_ns = 0;
    for (bool waited = false;; waited = true) {
        rbt_env env;
        bool fresh;

        if (!worker->ops->receive(worker, waited))
            return rbt_call_gone(error, worker);
        env = rbt_call_env(worker);
        fresh = rbt_client_want(&worker->client, worker->spans.at, worker->spans.count, clock, staleness, &env);
        rbt_client_send_early(&worker->client, &env);
        rbt_call_deliver(worker, &env);
        if (fresh)
            return RBT_OK;
    }
}

/* ---------------------------------------------------------------------------------------------- addressing */

static uint64_t settle(const rbt_worker *worker, uint64_t staleness)
{
    return staleness == RBT_STALENESS_OF_JOB ? worker->run->topology->staleness : staleness;
}

static const rbt_layout *layout_of(const rbt_worker *worker, rbt_table table)
{
    return &worker->run->topology->layout[table];
}

static rbt_err check_range(const rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n,
                           rbt_error *error)
{
    if (table >= worker->run->topology->tables)
        return rbt_fail(error, RBT_E_USAGE, "table %u does not exist; the job has %u", table,
                        worker->run->topology->tables);
    return rbt_layout_check(layout_of(worker, table), table, row, col, n, error);
}

static void add_span(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col)
{
    rbt_span span = {.table = table, .block = rbt_layout_block(layout_of(worker, table), row, col)};
    size_t n = worker->spans.count;

    if (n == 0 || worker->spans.at[n - 1].block != span.block || worker->spans.at[n - 1].table != table)
        rbt_array_push(&worker->spans, span);
}

/* Cuts a range of one row into the blocks it lies in. */
typedef struct piece {
    rbt_span span;
    uint32_t offset;
    uint32_t n;
    uint64_t done; /* elements before this piece */
} piece;

static bool next_piece(const rbt_layout *layout, rbt_table table, uint64_t row, uint64_t col, uint64_t n, piece *p)
{
    uint64_t at = col + (p->done += p->n), run;

    if (p->done >= n)
        return false;
    run = rbt_layout_run(layout, at);
    p->span = (rbt_span){.table = table, .block = rbt_layout_block(layout, row, at)};
    p->offset = rbt_layout_offset(layout, row, at);
    p->n = (uint32_t)(run < n - p->done ? run : n - p->done);
    return true;
}

static void collect_range(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n)
{
    piece p = {0};

    worker->spans.count = 0;
    while (next_piece(layout_of(worker, table), table, row, col, n, &p))
        rbt_array_push(&worker->spans, p.span);
}

/* --------------------------------------------------------------------------------------------------- reads */

static void note_read(rbt_worker *worker)
{
    rbt_client_note_read(&worker->client, worker->spans.at, worker->spans.count);
    worker->reads++;
}

rbt_err rbt_get_range(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n, uint64_t staleness,
                      void *out, rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, col, n, error);
    const rbt_layout *layout;
    piece p = {0};

    if (err != RBT_OK)
        return err;
    rbt_call_enter(worker);
    layout = layout_of(worker, table);
    staleness = settle(worker, staleness);
    collect_range(worker, table, row, col, n);
    err = wait_for_spans(worker, worker->client.clock, staleness, error);
    if (err == RBT_OK) {
        note_read(worker);
        while (next_piece(layout, table, row, col, n, &p))
            rbt_client_read(&worker->client, p.span, p.offset, p.n, staleness,
                            (char *)out + p.done * rbt_type_size(layout->type));
    }
    rbt_call_leave(worker, worker->client.held_ns);
    return err;
}

rbt_err rbt_get_row(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t staleness, void *out, rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, 0, 0, error);

    return err != RBT_OK ? err
                         : rbt_get_range(worker, table, row, 0, layout_of(worker, table)->cols, staleness, out, error);
}

static rbt_err check_keys(const rbt_worker *worker, rbt_table table, uint64_t row, const uint64_t *cols, size_t n,
                          rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, 0, 0, error);
    uint64_t last = 0;

    for (size_t i = 0; i < n; i++) /* one comparison each: increments come by the million */
        last = cols[i] > last ? cols[i] : last;
    return err == RBT_OK && n > 0 ? check_range(worker, table, row, last, 1, error) : err;
}

rbt_err rbt_get_keys(rbt_worker *worker, rbt_table table, uint64_t row, const uint64_t *cols, size_t n,
                     uint64_t staleness, void *out, rbt_error *error)
{
    rbt_err err = check_keys(worker, table, row, cols, n, error);
    const rbt_layout *layout;

    if (err != RBT_OK)
        return err;
    rbt_call_enter(worker);
    layout = layout_of(worker, table);
    staleness = settle(worker, staleness);
    worker->spans.count = 0;
    for (size_t i = 0; i < n; i++)
        add_span(worker, table, row, cols[i]);
    err = wait_for_spans(worker, worker->client.clock, staleness, error);
    if (err == RBT_OK) {
        note_read(worker);
        for (size_t i = 0; i < n; i++)
            rbt_client_read(
                &worker->client, (rbt_span){.table = table, .block = rbt_layout_block(layout, row, cols[i])},
                rbt_layout_offset(layout, row, cols[i]), 1, staleness, (char *)out + i * rbt_type_size(layout->type));
    }
    rbt_call_leave(worker, worker->client.held_ns);
    return err;
}

rbt_err rbt_prefetch(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n, uint64_t staleness,
                     rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, col, n, error);
    rbt_env env;

    /* A partition-synchronised read names a version that is only known when it happens. */
    if (err != RBT_OK || worker->run->topology->partition_sync)
        return err;
    rbt_call_enter(worker);
    collect_range(worker, table, row, col, n);
    env = rbt_call_env(worker);
    rbt_client_want(&worker->client, worker->spans.at, worker->spans.count, worker->client.clock + 1,
                    settle(worker, staleness), &env);
    rbt_call_deliver(worker, &env);
    rbt_call_leave(worker, 0);
    return RBT_OK;
}

/* ---------------------------------------------------------------------------------------------- increments */

rbt_err rbt_inc_range(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n, const void *deltas,
                      rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, col, n, error);
    const rbt_layout *layout;
    piece p = {0};

    if (err != RBT_OK)
        return err;
    layout = layout_of(worker, table);
    while (next_piece(layout, table, row, col, n, &p))
        rbt_client_increment(&worker->client, p.span, p.offset, p.n,
                             (const char *)deltas + p.done * rbt_type_size(layout->type));
    if (++worker->increments % INCREMENTS_PER_LOOK == 0)
        send_early(worker);
    return RBT_OK;
}

rbt_err rbt_inc_row(rbt_worker *worker, rbt_table table, uint64_t row, const void *deltas, rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, 0, 0, error);

    return err != RBT_OK ? err : rbt_inc_range(worker, table, row, 0, layout_of(worker, table)->cols, deltas, error);
}

rbt_err rbt_inc_keys(rbt_worker *worker, rbt_table table, uint64_t row, const uint64_t *cols, size_t n,
                     const void *deltas, rbt_error *error)
{
    rbt_err err = check_keys(worker, table, row, cols, n, error);

    if (err == RBT_OK)
        rbt_client_increment_keys(&worker->client, table, row, cols, n, deltas);
    return err;
}

rbt_err rbt_inc(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, double delta, rbt_error *error)
{
    rbt_err err = check_range(worker, table, row, col, 1, error);
    rbt_type type = err == RBT_OK ? layout_of(worker, table)->type : RBT_F32;
    double limit = type == RBT_I32 ? 0x1p31 : 0x1p63;
    float f32 = (float)delta;
    int32_t i32;
    int64_t i64;

    if (err != RBT_OK)
        return err;
    if (type == RBT_F32) {
        rbt_client_increment_keys(&worker->client, table, row, &col, 1, &f32);
        return RBT_OK;
    }
    if (!(delta >= -limit && delta < limit) || delta != (double)(int64_t)delta)
        return rbt_fail(error, RBT_E_USAGE, "an increment of %g does not fit table %u of whole numbers", delta, table);
    i32 = (int32_t)(type == RBT_I32 ? delta : 0);
    i64 = (int64_t)delta;
    rbt_client_increment_keys(&worker->client, table, row, &col, 1, type == RBT_I32 ? (void *)&i32 : (void *)&i64);
    return RBT_OK;
}

/* -------------------------------------------------------------------------------------------------- clocks */

void rbt_worker_did(rbt_worker *worker, uint64_t samples, uint64_t nonzeros)
{
    worker->samples += samples;
    if (worker->ops->work != NULL)
        worker->ops->work(worker, samples, nonzeros);
    if (worker->run->topology->budget_bytes > 0 && worker->ops->receive(worker, false))
        send_early(worker);
}

/* A straggler made by hand takes longer for its clock, in proportion to what the clock really took. */
void rbt_call_slow_down(rbt_worker *worker)
{
    double factor = rbt_stragglers_factor(worker->run->stragglers, worker->client.worker, worker->client.clock);
    uint64_t extra = (uint64_t)((factor - 1) * (double)worker->clock_compute_ns);

    if (worker->ops->sleep_ns == NULL || extra == 0)
        return;
    worker->ops->sleep_ns(worker, extra);
    worker->slowed_ns += extra;
    rbt_call_enter(worker);
}

/* A worker that has not read in this clock has not shown that it may be in it: the bound is on clocks, not on reads. So
 * it hears from every server of which it does not know enough before the clock ends; who reads has heard already. */
static rbt_err hear_from_servers(rbt_worker *worker, rbt_error *error)
{
    const rbt_topology *topology = worker->run->topology;

    worker->spans.count = 0;
    for (uint32_t s = 0; s < topology->servers; s++) {
        rbt_span span;

        if (rbt_client_must_hear(&worker->client, s, &span))
            rbt_array_push(&worker->spans, span);
    }
    return worker->spans.count > 0 ? wait_for_spans(worker, worker->client.clock, topology->staleness, error) : RBT_OK;
}

void rbt_call_publish(rbt_worker *worker)
{
    rbt_published *p = &worker->run->published[worker->client.worker];

    atomic_store_explicit(&p->clock, worker->client.clock - worker->added_clocks, relaxed);
    atomic_store_explicit(&p->samples, worker->samples, relaxed);
    atomic_store_explicit(&p->compute_ns, worker->compute_ns, relaxed);
    atomic_store_explicit(&p->wait_ns, worker->wait_ns, relaxed);
    atomic_store_explicit(&p->communication_ns, worker->communication_ns, relaxed);
    atomic_store_explicit(&p->slowed_ns, worker->slowed_ns, relaxed);
    atomic_store_explicit(&p->staleness_sum, worker->client.staleness_sum, relaxed);
    atomic_store_explicit(&p->reads, worker->reads, relaxed);
}

rbt_err rbt_clock(rbt_worker *worker, rbt_error *error)
{
    const rbt_run *run = worker->run;
    rbt_env env;
    rbt_err err = run->on_clock != NULL && worker->added_clocks == 0
                      ? run->on_clock(worker, run->program.argument, error)
                      : RBT_OK;

    if (err != RBT_OK)
        return err;
    rbt_call_enter(worker);
    rbt_call_slow_down(worker);
    worker->client.held_ns = 0;
    err = hear_from_servers(worker, error);
    while (err == RBT_OK && !rbt_client_may_clock(&worker->client))
        if (!worker->ops->receive(worker, true))
            err = rbt_call_gone(error, worker);
    if (err == RBT_OK && !worker->ops->receive(worker, false))
        err = rbt_call_gone(error, worker);
    if (err != RBT_OK)
        return err;
    env = rbt_call_env(worker);
    rbt_client_clock(&worker->client, &env);
    rbt_call_deliver(worker, &env);
    worker->clock_compute_ns = 0;
    rbt_call_leave(worker, worker->client.held_ns);
    rbt_call_publish(worker);
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------- from start to end */

/* Waits until everything is acknowledged, then leaves: nobody waits for this worker any more. */
static rbt_err retire(rbt_worker *worker, bool is_done, rbt_error *error)
{
    rbt_env env;

    if (worker->peer != NULL)
        return rbt_hop_retire(worker);
    if (is_done && rbt_client_holds(&worker->client)) { /* one more clock: nothing is lost */
        rbt_err err;

        rbt_client_release(&worker->client);
        worker->added_clocks = 1;
        err = rbt_clock(worker, error);
        if (err != RBT_OK)
            return err;
    }
    while (!rbt_client_is_flushed(&worker->client))
        if (!worker->ops->receive(worker, true))
            return rbt_call_gone(error, worker);
    env = rbt_call_env(worker);
    rbt_client_retire(&worker->client, &env);
    rbt_call_deliver(worker, &env);
    return RBT_OK;
}

rbt_err rbt_worker_run(rbt_worker *worker, const rbt_program *program, rbt_error *error)
{
    rbt_env env = rbt_call_env(worker);
    rbt_err err, retired;

    worker->since_ns = env.now_ns;
    rbt_client_begin(&worker->client, &env);
    rbt_call_deliver(worker, &env);
    while (!worker->client.ready)
        if (!worker->ops->receive(worker, true))
            return rbt_call_gone(error, worker);
    rbt_call_leave(worker, 0);
    err = program->work(worker, program->argument, error);
    rbt_call_enter(worker);
    if (worker->client.is_observer)
        return err;
    retired = retire(worker, err == RBT_OK, err == RBT_OK ? error : NULL);
    rbt_call_leave(worker, 0);
    rbt_call_publish(worker);
    return err != RBT_OK ? err : retired;
}

/* ----------------------------------------------------------------------------------------------------- run */

void rbt_run_init(rbt_run *run, const rbt_topology *topology)
{
    memset(run, 0, sizeof *run);
    run->topology = topology;
    atomic_store(&run->loss, NAN);
    run->published = rbt_try_alloc(topology->workers, sizeof *run->published);
    RBT_ASSERT(run->published != NULL);
}

void rbt_run_deinit(rbt_run *run)
{
    rbt_free(run->published);
}

void rbt_run_add_server(rbt_run *run, const rbt_server *server)
{
    const rbt_server_stats *stats = &server->stats;

    if (stats->max_gap > run->max_gap)
        run->max_gap = stats->max_gap;
    if (stats->peak_versions > run->peak_versions)
        run->peak_versions = stats->peak_versions;
    if (stats->peak_version_bytes > run->version_bytes)
        run->version_bytes = stats->peak_version_bytes;
    run->repeated += stats->repeated;
}
