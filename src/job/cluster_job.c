/* A model's job on the cluster runtime; the contract is in cluster_job.h. */
#include "job/cluster_job.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/paths.h"
#include "job/inherit.h"
#include "job/trainee.h"
#include "job/method_job.h"
#include "job/run.h"
#include "job/sharing.h"
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
                    options->workers, options->per_process, options->servers, colocate ? "among them" : "of their own",
                    needed, there,
                    (there - (colocate || there <= options->servers ? 0 : options->servers)) * options->per_process);
}

/* What the job is, for those who watch it: "lr on train.svm, ssp with staleness 3, rule dyn". */
static void name_job(const rbt_options *options, char *title, size_t room)
{
    char sync[16] = "", staleness[48] = "", rule[32] = "", value[RBT_OPTION_ROOM], data[64];
    const char *name = NULL;

    rbt_paths_title(options->data, data, sizeof data);
    for (size_t i = 0; rbt_options_at(options, i, &name, value, sizeof value); i++) {
        if (strcmp(name, "sync") == 0)
            snprintf(sync, sizeof sync, "%.15s", value);
        else if (strcmp(name, "staleness") == 0)
            snprintf(staleness, sizeof staleness, " with staleness %.30s", value);
        else if (strcmp(name, "rule") == 0)
            snprintf(rule, sizeof rule, ", rule %.20s", value);
    }
    snprintf(title, room, "%s on %s, %s%s%s", options->model, data, sync, staleness, rule);
}

rbt_rings rbt_job_rings(const rbt_options *options)
{
    return options->shm == RBT_OFF ? RBT_RINGS_OFF : options->shm == RBT_ON ? RBT_RINGS_ON : RBT_RINGS_AUTO;
}

rbt_err rbt_cluster_job_open(rbt_job *job, rbt_session **session, rbt_error *error)
{
    const rbt_options *options = &job->options;
    const rbt_method *method = rbt_trainee_method(options->model);
    const rbt_gathering *g = job->gathering;
    bool colocate;
    rbt_session_config config = {.insecure = options->insecure,
                                 .shm = rbt_job_rings(options),
                                 .on_loss = options->on_worker_loss,
                                 .needs_all = options->sync == RBT_SYNC_ALLREDUCE,
                                 .cannot_return = rbt_options_peers(options) || (method != NULL && method->keeps_state),
                                 .rows_stay = method != NULL && !rbt_options_peers(options),
                                 .listen = options->listen,
                                 .advertise = options->advertise,
                                 .join_timeout_ms = (uint64_t)options->join_timeout * 1000,
                                 .interrupted = job->stop,
                                 .log = rbt_job_log(job)};
    rbt_pack description = {0};
    rbt_seat *seats;
    rbt_err err;

    if (g == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--runtime cluster needs processes: use `rubato launch --local N -- train ...`, `rubato launch "
                        "--hosts a,b -- train ...`, start this under srun or mpirun, or give --listen :7470 --key FILE "
                        "and start the others by hand with `rubato node --join HOST:7470 --key FILE`");
    colocate = are_together(options, g);
    err = rbt_cluster_job_fits(options, g, error);
    if (err != RBT_OK)
        return err;
    config.key = g->key;
    config.has_key = g->has_key;
    config.job = g->job;
    config.local = g->local;
    name_job(options, config.title, sizeof config.title);
    seats = rbt_alloc(g->processes, sizeof *seats);
    rbt_roster_assign(seats, g->processes, g->lead_works, options->per_process, options->workers, options->servers,
                      !colocate);
    for (uint32_t r = 1; g->host != NULL && r < g->processes; r++) { /* who does not join is named by it */
        const char *host = g->host(g->context, r);

        snprintf(seats[r].host, sizeof seats[r].host, "%s", host != NULL ? host : "");
    }
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

/* ------------------------------------------------------------------------------------------------------ loading */

/* Of all rows, which one process has read, only those of its own workers are kept: as if they had been shared. */
static rbt_err keep_own(rbt_loaded *loaded, const rbt_seat *seat, rbt_error *error)
{
    rbt_shards *shards = &loaded->shards;
    rbt_data own = {0};
    uint32_t *rows;
    size_t n = 0;
    rbt_err err;

    for (uint32_t i = 0; i < seat->workers; i++)
        n += shards->shard[seat->first_worker + i].n;
    rows = rbt_alloc(n, sizeof *rows);
    n = 0;
    for (uint32_t i = 0; i < seat->workers; i++) {
        rbt_shard *shard = &shards->shard[seat->first_worker + i];

        memcpy(rows + n, shard->rows, shard->n * sizeof *rows);
        for (size_t k = 0; k < shard->n; k++)
            shard->rows[k] = (uint32_t)(n + k);
        n += shard->n;
    }
    err = rbt_data_select(&loaded->data, rows, n, &own, error);
    rbt_free(rows);
    if (err != RBT_OK)
        return err;
    rbt_data_deinit(&loaded->data);
    loaded->data = own;
    for (uint32_t m = 0; m < shards->workers; m++)
        if (m < seat->first_worker || m >= seat->first_worker + seat->workers)
            shards->shard[m].rows = NULL;
    return RBT_OK;
}

/* A process that takes a lost one's seat: the others are at work, so it reads everything by itself. */
static rbt_err load_alone(rbt_model_run *r, rbt_error *error)
{
    uint32_t first = 0, count = r->job->options.workers;
    rbt_crew alone = rbt_crew_alone();
    rbt_log log = rbt_job_log(r->job);
    rbt_err err = rbt_loaded_share(&r->loaded, &r->job->options, &alone, &first, &count, &log, error);

    return err == RBT_OK ? keep_own(&r->loaded, rbt_session_seat(r->session, rbt_session_rank(r->session)), error)
                         : err;
}

rbt_err rbt_cluster_job_load(rbt_model_run *r, rbt_error *error)
{
    uint32_t size = rbt_session_size(r->session);
    uint32_t *first = rbt_alloc(size, sizeof *first), *count = rbt_alloc(size, sizeof *count);
    rbt_crew crew = rbt_session_crew(r->session);
    rbt_log log = rbt_job_log(r->job);
    rbt_err err;

    for (uint32_t rank = 0; rank < size; rank++) {
        first[rank] = rbt_session_seat(r->session, rank)->first_worker;
        count[rank] = rbt_session_seat(r->session, rank)->workers;
    }
    err = rbt_session_seat(r->session, crew.rank)->incarnation > 0
              ? load_alone(r, error)
              : rbt_loaded_share(&r->loaded, &r->job->options, &crew, first, count, &log, error);
    rbt_free(first);
    rbt_free(count);
    return err;
}

/* ----------------------------------------------------------------------------------------------------- training */

static double losses_here(void *context, const float *w, uint64_t *rows)
{
    const rbt_training *training = rbt_training_latest(&((const rbt_model_run *)context)->training);

    *rows = training->data->rows;
    return *rows > 0 ? rbt_training_losses(training, w) : 0;
}

static void *open_estate(void *context)
{
    return rbt_estate_open(&((const rbt_model_run *)context)->job->options);
}

static rbt_err read_estate(void *estate, rbt_error *error)
{
    return rbt_estate_read(estate, error);
}

static rbt_err take_estate(void *context, void *estate, const rbt_rows_of *shares, size_t count, size_t *taken,
                           rbt_error *error)
{
    rbt_model_run *r = context;
    const rbt_seat *seat = rbt_session_seat(r->session, rbt_session_rank(r->session));

    return rbt_estate_take(estate, &r->training, seat, shares, count, taken, error);
}

static void close_estate(void *estate)
{
    rbt_estate_close(estate);
}

typedef struct weighing {
    rbt_cluster *cluster;
    const rbt_training *training;
} weighing;

/* The sum over all rows; when processes were lost, what is left stands for all. */
static rbt_err losses_of_all(void *context, const float *w, double *sum, rbt_error *error)
{
    const weighing *all = context;
    uint64_t rows = 0;
    rbt_err err = rbt_cluster_losses(all->cluster, w, sum, &rows, error);

    if (err == RBT_OK && rows > 0 && rows != all->training->total_rows)
        *sum *= (double)all->training->total_rows / (double)rows;
    return err;
}

/* Without a lead every process saves what its own peers have learned. */
static rbt_err save_alone(rbt_model_run *r, rbt_error *error)
{
    const char *out = r->job->options.out;
    char path[4096], sentence[sizeof path + 64];
    rbt_err err;

    if (out == NULL || strcmp(out, "-") == 0)
        return rbt_fail(error, RBT_E_LOST,
                        "the lead is gone, and this process has no file to save its model to; give --out FILE");
    rbt_model_run_keep(r);
    snprintf(path, sizeof path, "%s.rank%u", out, rbt_session_rank(r->session));
    err = rbt_job_save(r->job, path, error);
    if (err == RBT_OK) {
        snprintf(sentence, sizeof sentence, "its own model is written to %s", path);
        rbt_session_log(r->session, RBT_LOG_INFO, "cluster", sentence);
    }
    return err;
}

rbt_err rbt_cluster_job_train(rbt_model_run *r, rbt_error *error)
{
    static const rbt_heir_work heirs = {open_estate, read_estate, take_estate, close_estate};
    rbt_cluster_work work = {.losses = losses_here,
                             .inherit = &heirs,
                             .context = r,
                             .n = r->training.n,
                             .on_loss = r->job->options.on_worker_loss};
    weighing all = {.training = &r->training};
    rbt_err err;

    all.cluster = rbt_cluster_create(&r->setup.run, r->session, &work);
    r->evaluation.losses = losses_of_all;
    r->evaluation.losses_context = &all;
    err = rbt_cluster_run(all.cluster, error);
    if (err == RBT_OK && rbt_cluster_was_alone(all.cluster, r->evaluation.w))
        err = save_alone(r, error);
    rbt_cluster_destroy(all.cluster);
    rbt_inherit_deinit(&r->training);
    return err;
}

/* -------------------------------------------------------------------------------------------------- the others */

/* Are the roles that the lead has dealt those of this job? */
static rbt_err check_roles(const rbt_session *session, const rbt_options *options, rbt_error *error)
{
    for (uint32_t r = 0; r < rbt_session_size(session); r++) {
        const rbt_seat *seat = rbt_session_seat(session, r);

        if (seat->first_worker > options->workers || seat->workers > options->workers - seat->first_worker ||
            seat->first_server > options->servers || seat->servers > options->servers - seat->first_server)
            return rbt_fail(error, RBT_E_PROTOCOL, "the lead's roster does not fit its job: rank %u", r);
    }
    return RBT_OK;
}

static rbt_err take_part(rbt_model_run *r, const rbt_bytes *description, rbt_error *error)
{
    rbt_job *job = r->job;
    rbt_err err = read_description(description, &job->options, error);

    if (err == RBT_OK)
        err = rbt_setup_init(&r->setup, &job->options, error);
    if (err == RBT_OK)
        err = check_roles(r->session, &job->options, error);
    if (err == RBT_OK)
        err = rbt_session_meet(r->session, error);
    if (err == RBT_OK && rbt_trainee_method(job->options.model) != NULL)
        return rbt_method_job_take_part(job, r->session, error);
    if (err == RBT_OK)
        err = rbt_cluster_job_load(r, error);
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
