/* Training a method without servers: its `update` in the programs of peers (peer_job.h), its `losses` in the evaluator (evaluate.h).
 *
 * Called by method_job.c. The parameters are one vector, as a model's are; the loss that is reported is that of the mean of all
 * peers' parameters, over all rows, which are asked of the processes that have them. Proved by tests/cli/test_mf.sh. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "job/method_job.h"
#include "job/peer_job.h"
#include "runtime/cluster/cluster.h"

/* The losses of the rows of some workers. */
static double losses_of(const rbt_method_run *r, uint32_t first, uint32_t workers, const float *w, uint64_t *weight)
{
    double sum = 0;

    *weight = 0;
    for (uint32_t m = first; m < first + workers; m++) {
        const rbt_shard *shard = &r->planned.shards.shard[m];
        uint64_t more = 0;

        if (shard->n > 0)
            sum += r->plan.method->losses(&r->plan, shard->rows, shard->n, w, &more);
        *weight += more;
    }
    return sum;
}

/* The sum over all rows, of a weight that the evaluator is told as their number. */
static rbt_err losses_of_all(void *context, const float *w, double *sum, rbt_error *error)
{
    rbt_method_run *r = context;
    uint64_t weight;

    (void)error;
    *sum = losses_of(r, 0, r->plan.workers, w, &weight);
    r->training.total_rows = (size_t)weight;
    return RBT_OK;
}

#define NODES_TRIED 16u
#define MIXES_TRIED 64u
#define OWN_MOST    4.0

/* How much of what a peer has added to its own parameters is still there, and not with the others, after so many averages: the
 * largest among some peers. */
static double left_over(const rbt_graph *graph, uint64_t mixes)
{
    uint32_t n = graph->nodes, tried = n < NODES_TRIED ? n : NODES_TRIED;
    double *now = rbt_alloc(n, sizeof *now), *next = rbt_alloc(n, sizeof *next), most = 0;

    for (uint32_t t = 0; t < tried; t++) {
        uint32_t who = (uint32_t)((uint64_t)n * t / tried);

        memset(now, 0, n * sizeof *now);
        now[who] = 1;
        for (uint64_t k = 0; k < mixes && k < MIXES_TRIED; k++) {
            double *spare = now;

            for (uint32_t i = 0; i < n; i++) {
                rbt_neighbours in = rbt_graph_in(graph, i);

                next[i] = 0;
                for (uint32_t j = 0; j < in.count; j++)
                    next[i] += now[in.at[j]] / in.count;
            }
            now = next;
            next = spare;
        }
        most = now[who] > most ? now[who] : most;
    }
    rbt_free(now);
    rbt_free(next);
    return most;
}

/* Do averages leave the sum over all peers as it was? Not where some are waited for no longer, or are late. */
static bool keeps_sums(const rbt_hop *hop)
{
    return hop->allreduce || hop->side != NULL || (hop->backup == 0 && hop->staleness == 0 && hop->skip < 2);
}

/* A sum around the ring leaves nobody apart from the mean; otherwise what is added must be stable with averages. */
static void set_reach(rbt_method_run *r)
{
    const rbt_hop *hop = &r->setup.hop;
    double own;
    uint64_t mixes = r->planned.pass_clocks - (hop->serial ? 0 : 1);

    r->plan.reach = hop->allreduce ? r->plan.workers : rbt_hop_reach(hop);
    r->plan.own_reach = keeps_sums(hop) ? 0 : r->plan.reach;
    if (keeps_sums(hop) || mixes == 0)
        return;
    own = 0.5 / left_over(&hop->graph, mixes); /* half of what averages that all take place could bear */
    r->plan.own_reach = own > OWN_MOST ? OWN_MOST : own > r->plan.reach ? own : r->plan.reach;
}

rbt_err rbt_method_peers_lay_out(rbt_method_run *r, rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    size_t n = r->plan.method->size(&r->plan);
    rbt_err err = rbt_hop_init(&r->setup.hop, options, n, error);

    if (err == RBT_OK)
        err = rbt_setup_lay_out_peers(&r->setup, options, error);
    if (err != RBT_OK)
        return err;
    set_reach(r);
    r->training.options = options;
    r->training.shards = &r->planned.shards;
    r->training.data = &r->data;
    r->training.n = n;
    r->training.plan = &r->plan;
    err = rbt_evaluation_init(&r->evaluation, &r->training, error);
    r->evaluation.losses = losses_of_all;
    r->evaluation.losses_context = r;
    rbt_method_set_programs(r, rbt_peer_work, &r->training, rbt_evaluation_work, &r->evaluation);
    return err;
}

/* ------------------------------------------------------------------------------------------------- the cluster */

typedef struct asking {
    rbt_method_run *run;
    rbt_cluster *cluster;
} asking;

static double losses_here(void *context, const float *w, uint64_t *rows)
{
    const rbt_method_run *r = context;
    const rbt_seat *seat = rbt_session_seat(r->session, rbt_session_rank(r->session));

    return losses_of(r, seat->first_worker, seat->workers, w, rows);
}

static rbt_err losses_of_processes(void *context, const float *w, double *sum, rbt_error *error)
{
    const asking *all = context;
    uint64_t rows = 0;
    rbt_err err = rbt_cluster_losses(all->cluster, w, sum, &rows, error);

    all->run->training.total_rows = rows > 0 ? (size_t)rows : 1; /* who was lost is not asked any more */
    return err;
}

/* Without a lead every process saves what its own peers have learned. */
static rbt_err save_alone(rbt_method_run *r, rbt_error *error)
{
    rbt_job *job = r->job;
    const char *out = job->options.out;
    char path[4096], sentence[sizeof path + 64];
    rbt_err err;

    if (out == NULL || strcmp(out, "-") == 0)
        return rbt_fail(error, RBT_E_LOST,
                        "the lead is gone, and this process has no file to save its model to; give --out FILE");
    r->plan.result = r->evaluation.w;
    job->fitted.method = r->plan.method;
    err = r->plan.method->keep(&r->plan, &job->fitted, error);
    snprintf(path, sizeof path, "%s.rank%u", out, rbt_session_rank(r->session));
    if (err == RBT_OK)
        err = rbt_fitted_save(&job->fitted, path, error);
    if (err == RBT_OK) {
        snprintf(sentence, sizeof sentence, "its own model is written to %s", path);
        rbt_session_log(r->session, RBT_LOG_INFO, "cluster", sentence);
    }
    return err;
}

rbt_err rbt_method_peers_run_on_cluster(rbt_method_run *r, rbt_error *error)
{
    rbt_cluster_work work = {
        .losses = losses_here, .context = r, .n = r->training.n, .on_loss = r->job->options.on_worker_loss};
    asking all = {.run = r};
    rbt_err err;

    all.cluster = rbt_cluster_create(&r->setup.run, r->session, &work);
    r->evaluation.losses = losses_of_processes;
    r->evaluation.losses_context = &all;
    err = rbt_cluster_run(all.cluster, error);
    if (err == RBT_OK && rbt_cluster_was_alone(all.cluster, r->evaluation.w))
        err = save_alone(r, error);
    rbt_cluster_destroy(all.cluster);
    return err;
}
