/* A model's job on the cluster runtime; the contract is in cluster_job.h. */
#include "job/cluster_job.h"

#include <string.h>

#include "base/error.h"
#include "job/run.h"
#include "runtime/cluster/roster.h"

void rbt_job_set_gathering(rbt_job *job, const rbt_gathering *gathering)
{
    rbt_free(job->gathering);
    job->gathering = rbt_alloc(1, sizeof *job->gathering);
    *job->gathering = *gathering;
}

uint32_t rbt_cluster_processes(const rbt_options *options, bool colocate)
{
    uint32_t working = (options->workers + options->per_process - 1) / options->per_process;

    return working + (colocate ? 0 : options->servers);
}

/* ------------------------------------------------------------------------------------------------- description */

/* The options as texts: what every process of the job sets. */
static void describe(const rbt_options *options, rbt_pack *pack)
{
    char value[RBT_OPTION_ROOM];
    const char *name = NULL;

    for (size_t i = 0; rbt_options_at(options, i, &name, value, sizeof value); i++) {
        rbt_pack_text(pack, name);
        rbt_pack_text(pack, value);
    }
}

static rbt_err read_description(const rbt_bytes *description, rbt_options *options, rbt_error *error)
{
    rbt_unpack unpack = rbt_unpack_of(description->at, description->n);
    rbt_err err = RBT_OK;

    while (err == RBT_OK && !unpack.bad && unpack.at < unpack.end) {
        char name[64], value[RBT_OPTION_ROOM];

        rbt_unpack_text(&unpack, name, sizeof name);
        rbt_unpack_text(&unpack, value, sizeof value);
        if (!unpack.bad)
            err = rbt_options_set(options, name, value, error);
    }
    if (err == RBT_OK && unpack.bad)
        err = rbt_fail(error, RBT_E_PROTOCOL, "the job description of the lead makes no sense");
    return err == RBT_OK ? rbt_options_check(options, error) : err;
}

/* ---------------------------------------------------------------------------------------------------- the lead */

static bool are_together(const rbt_options *options, const rbt_gathering *g)
{
    return options->colocate == RBT_AUTO ? g->colocate : options->colocate == RBT_ON;
}

rbt_err rbt_cluster_job_fits(const rbt_options *options, const rbt_gathering *g, rbt_error *error)
{
    bool colocate = are_together(options, g);
    uint32_t needed = rbt_cluster_processes(options, colocate), there = g->processes - (g->lead_works ? 0 : 1);

    if (needed == there)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "%u workers with %u in a process and %u servers %s need %u processes, and there are %u; give "
                    "--workers %u or start as many processes",
                    options->workers, options->per_process, options->servers,
                    colocate ? "among them" : "of their own", needed, there,
                    (there - (colocate || there <= options->servers ? 0 : options->servers)) * options->per_process);
}

rbt_err rbt_cluster_job_open(rbt_job *job, rbt_session **session, rbt_error *error)
{
    const rbt_options *options = &job->options;
    const rbt_gathering *g = job->gathering;
    bool colocate;
    rbt_session_config config = {.insecure = options->insecure,
                                 .shm = options->shm != RBT_OFF,
                                 .takes_back = options->on_worker_loss == RBT_LOSS_WAIT,
                                 .listen = options->listen,
                                 .advertise = options->advertise,
                                 .join_timeout_ms = (uint64_t)options->join_timeout * 1000,
                                 .interrupted = &job->interrupted,
                                 .log = rbt_job_log(job)};
    rbt_pack description = {0};
    rbt_seat *seats;
    rbt_err err;

    if (g == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--runtime cluster needs processes: use `rubato launch --local N -- train ...`, `rubato launch "
                        "--hosts a,b -- train ...`, or start this under srun or mpirun");
    colocate = are_together(options, g);
    err = rbt_cluster_job_fits(options, g, error);
    if (err != RBT_OK)
        return err;
    config.key = g->key;
    config.has_key = g->has_key;
    config.job = g->job;
    config.local = g->local;
    seats = rbt_alloc(g->processes, sizeof *seats);
    rbt_roster_assign(seats, g->processes, g->lead_works, options->per_process, options->workers, options->servers,
                      !colocate);
    err = rbt_session_lead(&config, seats, g->processes, session, error);
    rbt_free(seats);
    rbt_key_wipe(&config.key);
    if (err != RBT_OK)
        return err;
    if (g->start != NULL)
        err = g->start(g->context, rbt_session_local_address(*session), rbt_session_tcp_address(*session), error);
    if (err == RBT_OK)
        err = rbt_session_gather(*session, g->check, g->context, error);
    if (err == RBT_OK) {
        describe(options, &description);
        rbt_session_welcome(*session, &(rbt_bytes){description.at, description.count});
        rbt_array_free(&description);
    }
    return err;
}

static double losses_here(void *context, const float *w)
{
    return rbt_training_losses(context, w);
}

rbt_err rbt_cluster_job_train(rbt_model_run *r, rbt_error *error)
{
    rbt_cluster *cluster;
    rbt_err err;

    cluster = rbt_cluster_create(&r->setup.run, r->session, r->job->options.on_worker_loss, losses_here, &r->training,
                                 r->training.n);
    err = rbt_cluster_run(cluster, error);
    rbt_cluster_destroy(cluster);
    return err;
}

/* -------------------------------------------------------------------------------------------------- the others */

static rbt_err take_part(rbt_model_run *r, const rbt_bytes *description, rbt_error *error)
{
    rbt_job *job = r->job;
    rbt_log log = rbt_job_log(job);
    rbt_err err = read_description(description, &job->options, error);

    if (err == RBT_OK)
        err = rbt_setup_init(&r->setup, &job->options, error);
    if (err == RBT_OK)
        err = rbt_session_meet(r->session, error);
    if (err == RBT_OK)
        err = rbt_loaded_read(&r->loaded, &job->options, &log, error);
    if (err == RBT_OK)
        err = rbt_model_run_set_up(r, error);
    return err == RBT_OK ? rbt_cluster_job_train(r, error) : err;
}

rbt_err rbt_cluster_job_join(const rbt_session_config *config, const char *address, uint32_t rank, bool *joined,
                             rbt_error *error)
{
    rbt_model_run r = {0};
    rbt_bytes description = {0};
    rbt_err err = rbt_session_join(config, address, rank, &r.session, &description, error);

    *joined = err == RBT_OK;
    if (err != RBT_OK)
        return err;
    r.job = rbt_job_create(NULL);
    err = take_part(&r, &description, error);
    if (err != RBT_OK && !rbt_session_is_over(r.session))
        rbt_session_fail(r.session, error);
    rbt_session_destroy(r.session);
    rbt_model_run_tear_down(&r);
    rbt_job_destroy(r.job);
    rbt_free(description.at);
    return err;
}
