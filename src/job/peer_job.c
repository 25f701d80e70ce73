/* Training without servers; the contract is in peer_job.h. */
#include "job/peer_job.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/file.h"
#include "math/kernels.h"
#include "runtime/handle.h"

/* --------------------------------------------------------------------------------------------------- the graph */

static rbt_err read_graph(rbt_graph *graph, const char *path, uint32_t nodes, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);

    if (err != RBT_OK)
        return rbt_fail(error, RBT_E_USAGE,
                        "--graph %.200s is neither a kind of graph (ring, ring-based, double-ring, complete, exponential, "
                        "clique) nor a file that can be read",
                        path);
    err = rbt_graph_parse(graph, path, input.bytes, input.n, nodes, error);
    rbt_input_close(&input);
    return err;
}

rbt_err rbt_hop_init(rbt_hop *hop, const rbt_options *options, uint32_t parameters, rbt_error *error)
{
    const char *name = options->graph != NULL ? options->graph : "ring-based";
    rbt_machines machines = {0};
    rbt_graph_kind kind;
    rbt_err err = RBT_OK;

    *hop = (rbt_hop){.parameters = parameters,
                     .serial = options->order == RBT_ORDER_SERIAL,
                     .notify_ack = options->notify_ack,
                     .max_gap = options->max_gap,
                     .backup = options->backup,
                     .staleness = options->staleness,
                     .skip = options->skip,
                     .skip_trigger = options->skip_trigger};
    if (options->machines != NULL)
        err = rbt_machines_parse(options->machines, options->workers, &machines, error);
    if (err == RBT_OK)
        err = rbt_graph_kind_find(name, &kind)
                  ? rbt_graph_init(&hop->graph, kind, options->workers, &machines, error)
                  : read_graph(&hop->graph, name, options->workers, error);
    if (err == RBT_OK)
        err = rbt_graph_check(&hop->graph, name, error);
    rbt_machines_deinit(&machines);
    return err;
}

void rbt_hop_deinit(rbt_hop *hop)
{
    rbt_graph_deinit(&hop->graph);
}

/* -------------------------------------------------------------------------------------------------- the program */

/* The update of this iteration, from the peer's parameters: in scratch->u. */
static rbt_err compute(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    uint32_t id = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    rbt_clock_work work;

    memcpy(scratch->w, worker->peer->x->f32, training->n * sizeof *scratch->w);
    work = rbt_training_clock(training, id, clock, scratch);
    rbt_worker_did(worker, work.samples, work.nonzeros);
    return isfinite(work.loss) ? RBT_OK : rbt_training_diverged(training, id, clock, work.loss, error);
}

static rbt_err work_parallel(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    rbt_snap *mixed = NULL;
    rbt_err err = rbt_hop_send(worker, error);

    if (err == RBT_OK)
        err = compute(worker, training, scratch, error);
    if (err == RBT_OK)
        err = rbt_hop_receive(worker, &mixed, error);
    if (err != RBT_OK)
        return err;
    rbt_kernels_best()->add(scratch->u, mixed->f32, training->n);
    return rbt_hop_next(worker, mixed, error);
}

static rbt_err work_serial(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    rbt_snap *mixed = NULL;
    rbt_err err = compute(worker, training, scratch, error);

    if (err != RBT_OK)
        return err;
    rbt_snap_writable(&worker->peer->x);
    rbt_kernels_best()->add(scratch->u, worker->peer->x->f32, training->n);
    err = rbt_hop_send(worker, error);
    if (err == RBT_OK)
        err = rbt_hop_receive(worker, &mixed, error);
    return err == RBT_OK ? rbt_hop_next(worker, mixed, error) : err;
}

rbt_err rbt_peer_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const rbt_training *training = argument;
    uint64_t clocks = rbt_training_clocks(training, rbt_worker_id(worker));
    bool serial = worker->peer->topology->hop->serial;
    rbt_scratch scratch;
    rbt_err err = rbt_scratch_init(&scratch, training, error);

    if (err != RBT_OK)
        return err;
    while (err == RBT_OK && rbt_worker_clock(worker) < clocks && !rbt_worker_should_stop(worker))
        err = serial ? work_serial(worker, training, &scratch, error) : work_parallel(worker, training, &scratch, error);
    rbt_scratch_deinit(&scratch);
    return err;
}
