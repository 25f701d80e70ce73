/* Training without servers; the contract is in peer_job.h. */
#include "job/peer_job.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "job/plan.h"
#include "math/kernels.h"
#include "runtime/handle.h"

/* --------------------------------------------------------------------------------------------------- the graph */

static rbt_err read_graph(rbt_graph *graph, const char *path, uint32_t nodes, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);

    if (err != RBT_OK)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--graph %.200s is neither a kind of graph (ring, ring-based, double-ring, complete, exponential, "
            "clique) nor a file that can be read",
            path);
    err = rbt_graph_parse(graph, path, input.bytes, input.n, nodes, error);
    rbt_input_close(&input);
    return err;
}

/* AD-PSGD: those who ask and those who answer. */
static rbt_err take_sides(rbt_hop *hop, const char *name, rbt_error *error)
{
    rbt_edge within;

    hop->side = rbt_alloc(hop->graph.nodes, sizeof *hop->side);
    if (rbt_graph_is_bipartite(&hop->graph, hop->side, &within))
        return RBT_OK;
    return rbt_fail(
        error, RBT_E_USAGE,
        "--graph %.200s: --sync adpsgd needs a bipartite graph, in which one half of the peers asks and the other "
        "answers, or peers could wait for each other in a circle; the edge between %u and %u lies within one half; "
        "use --graph ring with an even number of --workers",
        name, within.from, within.to);
}

/* Somebody must be waited for, or nobody would ever hear of the others. */
static rbt_err check_backup(const rbt_hop *hop, rbt_error *error)
{
    for (uint32_t m = 0; hop->backup > 0 && m < hop->graph.nodes; m++) {
        uint32_t others = rbt_graph_in(&hop->graph, m).count - 1;

        if (hop->backup >= others)
            return rbt_fail(
                error, RBT_E_USAGE,
                "--backup %u: worker %u has %u in-neighbours besides itself, and would wait for none of them; give at "
                "most %u, or a --graph with more edges",
                hop->backup, m, others, others > 0 ? others - 1 : 0);
    }
    return RBT_OK;
}

rbt_err rbt_hop_init(rbt_hop *hop, const rbt_options *options, size_t parameters, rbt_error *error)
{
    const char *usual = options->sync == RBT_SYNC_ADPSGD ? "ring" : "ring-based"; /* which is seldom bipartite */
    const char *name = options->graph != NULL ? options->graph : usual;
    rbt_machines machines = {0};
    rbt_graph_kind kind;
    rbt_err err = RBT_OK;

    *hop = (rbt_hop){.parameters = (uint32_t)parameters,
                     .seed = options->seed,
                     .damping = 1,
                     .serial = options->order == RBT_ORDER_SERIAL,
                     .notify_ack = options->notify_ack,
                     .max_gap = options->max_gap,
                     .backup = options->backup,
                     .staleness = options->staleness,
                     .skip = options->skip,
                     .skip_trigger = options->skip_trigger};
    if (parameters >= UINT32_MAX) /* one more is for the sums of all-reduce */
        return rbt_fail(error, RBT_E_LIMIT,
                        "without servers every worker holds all parameters of %s, which are %zu, and %u is the most; "
                        "use --sync ssp",
                        options->model, parameters, UINT32_MAX - 1);
    hop->allreduce = options->sync == RBT_SYNC_ALLREDUCE;
    if (hop->allreduce)
        return RBT_OK;
    if (options->machines != NULL)
        err = rbt_machines_parse(options->machines, options->workers, &machines, error);
    if (err == RBT_OK)
        err = rbt_graph_kind_find(name, &kind) ? rbt_graph_init(&hop->graph, kind, options->workers, &machines, error)
                                               : read_graph(&hop->graph, name, options->workers, error);
    if (err == RBT_OK)
        err = rbt_graph_check(&hop->graph, name, error);
    if (err == RBT_OK)
        err = options->sync == RBT_SYNC_ADPSGD ? take_sides(hop, name, error) : check_backup(hop, error);
    if (err == RBT_OK && options->lr_found) /* a step size that was tried alone, without averages */
        hop->damping = (float)rbt_hop_reach(hop);
    rbt_machines_deinit(&machines);
    return err;
}

double rbt_hop_reach(const rbt_hop *hop)
{
    return hop->serial || hop->allreduce || hop->side != NULL ? 1 : rbt_graph_step_room(&hop->graph) / 2;
}

void rbt_hop_deinit(rbt_hop *hop)
{
    rbt_graph_deinit(&hop->graph);
    rbt_free(hop->side);
    hop->side = NULL;
}

/* -------------------------------------------------------------------------------------------------- the program */

/* The update of this iteration, from the peer's parameters: in scratch->u. */
static rbt_err compute(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    uint32_t id = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    rbt_clock_work work = {0};
    rbt_err err = RBT_OK;

    rbt_hop_read(worker, scratch->w);
    if (training->plan != NULL)
        err = rbt_plan_update(training->plan, worker, scratch, &work, error);
    else
        work = rbt_training_clock(training, id, clock, scratch);
    if (err != RBT_OK)
        return err;
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
        err = rbt_hop_receive(worker, scratch->u, worker->run->topology->hop->damping, &mixed, error);
    return err == RBT_OK ? rbt_hop_next(worker, mixed, error) : err;
}

static rbt_err work_serial(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    rbt_snap *mixed = NULL;
    rbt_err err = compute(worker, training, scratch, error);

    if (err != RBT_OK)
        return err;
    rbt_hop_add(worker, scratch->u, 1);
    err = rbt_hop_send(worker, error);
    if (err == RBT_OK)
        err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
    return err == RBT_OK ? rbt_hop_next(worker, mixed, error) : err;
}

/* AD-PSGD: the update is added to what the parameters have become meanwhile, and the sum averaged with one neighbour's. */
static rbt_err work_adpsgd(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    rbt_err err = compute(worker, training, scratch, error);

    if (err != RBT_OK)
        return err;
    rbt_hop_add(worker, scratch->u, 1);
    err = rbt_hop_gossip(worker, error);
    return err == RBT_OK ? rbt_hop_next(worker, NULL, error) : err;
}

/* All-reduce: the mean of all updates. Who has been asked to stop says so in one more number, so that all stop together. */
static rbt_err work_allreduce(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, float *sum,
                              bool *stop, rbt_error *error)
{
    rbt_err err = compute(worker, training, scratch, error);

    if (err != RBT_OK)
        return err;
    memcpy(sum, scratch->u, training->n * sizeof *sum);
    sum[training->n] = rbt_worker_should_stop(worker) ? 1 : 0;
    err = rbt_hop_sum(worker, sum, training->n + 1, error);
    if (err != RBT_OK)
        return err;
    *stop = sum[training->n] > 0;
    rbt_hop_add(worker, sum, (float)(1 / (double)rbt_worker_count(worker)));
    return rbt_hop_next(worker, NULL, error);
}

/* All do as many iterations as the one with the fewest. */
static uint64_t least_clocks(const rbt_training *training)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t m = 0; m < training->shards->workers; m++) {
        uint64_t clocks = rbt_training_clocks(training, m);

        least = clocks < least ? clocks : least;
    }
    return least;
}

static rbt_err run_allreduce(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_error *error)
{
    float *sum = rbt_try_alloc(training->n + 1, sizeof *sum);
    uint64_t clocks = least_clocks(training);
    bool stop = false;
    rbt_err err = RBT_OK;

    if (sum == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's sums; use fewer --workers");
    while (err == RBT_OK && rbt_worker_clock(worker) < clocks && !stop)
        err = work_allreduce(worker, training, scratch, sum, &stop, error);
    rbt_free(sum);
    return err;
}

rbt_err rbt_peer_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const rbt_training *training = argument;
    const rbt_hop *hop = worker->run->topology->hop;
    uint64_t clocks = rbt_training_clocks(training, rbt_worker_id(worker));
    rbt_err (*work)(rbt_worker *, const rbt_training *, rbt_scratch *, rbt_error *) = hop->side != NULL ? work_adpsgd
                                                                                      : hop->serial     ? work_serial
                                                                                                        : work_parallel;
    rbt_scratch scratch;
    rbt_err err = rbt_scratch_init(&scratch, training, error);

    if (err != RBT_OK)
        return err;
    if (hop->allreduce)
        err = run_allreduce(worker, training, &scratch, error);
    else
        while (err == RBT_OK && rbt_worker_clock(worker) < clocks && !rbt_worker_should_stop(worker))
            err = work(worker, training, &scratch, error);
    if (err == RBT_OK && hop->side != NULL)
        err = rbt_hop_linger(worker, error);
    rbt_scratch_deinit(&scratch);
    return err;
}
