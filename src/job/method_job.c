/* A job that trains a method. Contract in method_job.h. */
#include "job/method_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/time.h"
#include "data/read.h"
#include "data/where.h"
#include "job/cluster_job.h"
#include "job/text.h"
#include "job/trainee.h"
#include "job/peer_job.h"
#include "job/run.h"
#include "method/method.h"
#include "runtime/cluster/cluster.h"
#include "runtime/handle.h"

/* ------------------------------------------------------------------------------------------------------ programs */

/* --verify: how many clocks each makes, as far as that is known; counting one; and after the last. */
static uint64_t clocks_of(const void *context, uint32_t worker)
{
    const rbt_method_run *r = context;

    (void)worker;
    return r->plan.method->reads_itself ? RBT_UNBOUNDED : r->planned.clocks;
}

static rbt_err probe_clock(rbt_worker *worker, void *argument, rbt_error *error)
{
    rbt_method_run *r = argument;

    return rbt_probe_clock(worker, &r->probes[rbt_worker_id(worker)], &r->job->options, clocks_of, r, error);
}

static rbt_err leave(rbt_worker *worker, const rbt_method_run *r, rbt_error *error)
{
    const rbt_probe *probe = &r->probes[rbt_worker_id(worker)];
    rbt_err err = RBT_OK;

    if (rbt_worker_clock(worker) < clocks_of(r, rbt_worker_id(worker))) { /* one more clock tells the others */
        err = rbt_inc(worker, probe->table, 0, rbt_worker_id(worker), (double)RBT_PROBE_LEFT, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err == RBT_OK ? rbt_probe_end(worker, probe, error) : err;
}

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    rbt_method_run *r = argument;
    rbt_err err = r->plan.method->work(worker, &r->plan, error);

    return err == RBT_OK && r->probes != NULL ? leave(worker, r, error) : err;
}

/* So many clocks are complete now; what was read begins with clock `first`. */
static void complete(rbt_method_run *r, uint64_t first, uint64_t clocks)
{
    for (; r->told_clocks < clocks; r->told_clocks++) {
        double objective = rbt_planned_objective(r->told + (r->told_clocks - first) * RBT_TOLD_COLS);

        r->objective = isnan(objective) ? r->objective : objective;
    }
}

/* Reads what workers have told of the clocks that were not complete the last time, up to the round that is looked at, a block's
 * worth at a time: whatever the number of clocks, a round reads one or two blocks. */
static rbt_err read_told(rbt_worker *observer, rbt_method_run *r, uint64_t need, uint64_t *slowest, uint64_t *updates,
                         rbt_error *error)
{
    uint64_t all = r->planned.clocks, first, end;
    rbt_err err;

    do {
        first = r->told_clocks < all ? r->told_clocks : all - 1;
        end = all - first > RBT_TOLD_BLOCK ? first + RBT_TOLD_BLOCK : all;
        end = end > need && need > first ? need : end;
        err = rbt_observe_rows(observer, r->planned.told, first, end - first, need, r->told, slowest, updates, error);
        if (err == RBT_OK)
            complete(r, first, *slowest < end ? *slowest : end);
    } while (err == RBT_OK && r->told_clocks == end && end < all && end < *slowest);
    return err;
}

/* The objective by the tables as servers have them now, or after `need` rounds. */
static rbt_err judge(rbt_method_run *r, rbt_worker *observer, uint64_t need, double *objective, rbt_error *error)
{
    rbt_table tables = r->planned.told;
    rbt_planned view = r->planned;
    rbt_plan plan = r->plan;
    rbt_err err = RBT_OK;

    view.layouts = observer->run->topology->layout;
    view.contents = rbt_alloc(tables, sizeof *view.contents);
    plan.job = &view;
    for (rbt_table t = 0; err == RBT_OK && t < tables; t++) {
        uint32_t blocks = view.layouts[t].blocks;
        uint64_t slowest;

        err = rbt_observe_wait(observer, t, need, &slowest, error);
        view.contents[t] = rbt_alloc(blocks, sizeof *view.contents[t]);
        for (uint32_t b = 0; err == RBT_OK && b < blocks; b++)
            view.contents[t][b] = observer->client.cache[t].copies[b].base;
    }
    if (err == RBT_OK)
        err = plan.method->judge(&plan, *objective, objective, error);
    for (rbt_table t = 0; t < tables; t++)
        rbt_free(view.contents[t]);
    rbt_free(view.contents);
    return err;
}

/* Workers say when they diverge; this is a judge that does. */
static rbt_err judged_badly(const rbt_method *method, double objective, uint64_t clock, rbt_error *error)
{
    char text[RBT_REAL_ROOM];

    return rbt_fail(error, RBT_E_DIVERGED, "training diverged: the objective (%s) became %s after clock %llu; %s",
                    method->objective, rbt_text_from_loss(objective, text), (unsigned long long)clock,
                    rbt_method_unheeds(method, "lr") ? "make the values of the data smaller"
                                                     : "use a smaller --lr, or other options");
}

/* Tells how the job stands. */
static rbt_err take(rbt_worker *observer, rbt_method_run *r, rbt_progress *progress, uint64_t slowest, rbt_error *error)
{
    rbt_evaluation *e = &r->evaluation;
    double objective = r->objective;
    rbt_err err = RBT_OK;

    if (e->last.updates > 0 && progress->updates <= e->last.updates)
        return RBT_OK;
    if (r->plan.method->objective == NULL) {
        progress->loss = NAN;
        e->last = *progress;
        e->on_progress(e->context, progress);
        return RBT_OK;
    }
    if (isnan(objective))
        return RBT_OK;
    if (r->plan.method->judge != NULL)
        err = judge(r, observer, slowest, &objective, error);
    if (err == RBT_OK && !isfinite(objective))
        err = judged_badly(r->plan.method, objective, progress->clock_min, error);
    if (err == RBT_OK)
        err = rbt_evaluation_take(e, objective, NAN, progress, error);
    rbt_observer_report(observer, slowest, e->watch.why != NULL ? -INFINITY : objective);
    return err;
}

/* --verify, when all have left: the servers have all clocks that workers made. */
static rbt_err check_conservation(rbt_worker *observer, rbt_method_run *r, rbt_error *error)
{
    int64_t *probe = rbt_alloc(observer->run->topology->workers, sizeof *probe), sum;
    rbt_err err = rbt_probe_observe(observer, r->probes[0].table, probe, error);

    if (err == RBT_OK && r->cluster != NULL) { /* with the answers come the clocks of workers elsewhere */
        const float nothing = 0;
        double discarded;
        uint64_t rows;

        err = rbt_cluster_losses(r->cluster, &nothing, &discarded, &rows, error);
    }
    if (err == RBT_OK)
        err = rbt_probe_compare(observer, probe, &sum, error);
    rbt_free(probe);
    return err;
}

/* The observer's program: reads round by round what workers tell, and keeps all tables at the end. */
static rbt_err observe(rbt_worker *observer, void *argument, rbt_error *error)
{
    rbt_method_run *r = argument;
    const rbt_options *options = &r->job->options;
    uint64_t every = options->eval_every > 0 && r->plan.judge_every > options->eval_every ? r->plan.judge_every
                                                                                          : options->eval_every;
    uint64_t slowest = 0, updates = 0, need = every > 0 ? every : RBT_UNBOUNDED;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && slowest != RBT_UNBOUNDED && r->evaluation.watch.why == NULL) {
        rbt_progress progress;

        err = read_told(observer, r, need, &slowest, &updates, error);
        if (err != RBT_OK)
            break;
        progress = rbt_progress_of(observer, updates);
        err = take(observer, r, &progress, slowest, error);
        if (every > 0 && slowest != RBT_UNBOUNDED)
            need = rbt_evaluation_next(observer, &progress, slowest, need, every);
    }
    if (err == RBT_OK && r->probes != NULL)
        err = check_conservation(observer, r, error);
    return err == RBT_OK ? rbt_job_collect(observer, r->job, error) : err;
}

/* ------------------------------------------------------------------------------------------------------- setting up */

/* The tables, and what runs on them. */
static rbt_err lay_out(rbt_method_run *r, rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    rbt_err err = rbt_planned_close(&r->planned, &r->plan, error);

    if (err == RBT_OK && options->verify) {
        const rbt_table_spec spec = {.name = "probe", .rows = 1, .cols = options->workers, .type = RBT_I64};
        rbt_table table = 0;

        err = rbt_plan_table(&r->plan, &spec, &table, error);
        r->probes = rbt_alloc(options->workers, sizeof *r->probes);
        for (uint32_t m = 0; m < options->workers; m++)
            r->probes[m].table = table;
    }
    if (err == RBT_OK)
        err = rbt_setup_lay_out(&r->setup, options, r->planned.tables.at, (uint32_t)r->planned.tables.count, error);
    if (err != RBT_OK)
        return err;
    r->told = rbt_alloc((size_t)RBT_TOLD_BLOCK * RBT_TOLD_COLS, sizeof *r->told);
    r->objective = NAN;
    rbt_method_set_programs(r, work, r, observe, r);
    r->setup.run.on_clock = r->probes != NULL ? probe_clock : NULL;
    return RBT_OK;
}

void rbt_method_set_programs(rbt_method_run *r, rbt_work *work_with, void *argument, rbt_work *observe_with,
                             void *observer)
{
    const rbt_options *options = &r->job->options;
    rbt_run *run = &r->setup.run;

    run->program = (rbt_program){.name = r->plan.method->name, .work = work_with, .argument = argument};
    run->observe = (rbt_program){.name = "evaluator", .work = observe_with, .argument = observer};
    run->has_target = rbt_watch_may_stop(options);
    run->target = options->has_target ? options->target_loss : -INFINITY;
    run->log = rbt_job_log(r->job);
    run->interrupted = r->job->stop;
}

static rbt_err set_up(rbt_method_run *r, rbt_error *error)
{
    rbt_options *options = &r->job->options;
    rbt_err err;

    r->plan.data = &r->data;
    err = rbt_planned_init(&r->planned, &r->plan, options, error);
    if (err == RBT_OK)
        err = rbt_method_read(r, error);
    if (err == RBT_OK && options->workers_auto && r->data.rows > 0 && options->workers > r->data.rows)
        options->workers = (uint32_t)r->data.rows;
    if (err != RBT_OK)
        return err;
    r->is_planned = true;
    err = rbt_planned_deal(&r->planned, &r->plan, error);
    if (err == RBT_OK && r->plan.method->options != NULL) { /* from now on the options say what is in effect */
        rbt_free(options->settings);
        options->settings = rbt_planned_settings(&r->planned, &r->plan);
    }
    if (err == RBT_OK)
        err = r->plan.method->plan(&r->plan, error);
    if (err == RBT_E_DATA && r->session == NULL && !r->plan.method->reads_itself) {
        rbt_reading reading = rbt_loaded_reading(options, NULL);
        rbt_where_rows(options->data, &reading, error);
    }
    if (err != RBT_OK)
        return err;
    options->lr = options->lr > 0 ? options->lr : r->plan.lr; /* what the method has settled */
    options->l2 = isnan(options->l2) ? r->plan.l2 : options->l2;
    err = r->plan.shared ? RBT_OK : r->plan.peers ? rbt_method_peers_lay_out(r, error) : lay_out(r, error);
    if (err != RBT_OK)
        return err;
    if (!r->plan.peers) {
        rbt_watch_init(&r->evaluation.watch, options, 0);
        r->evaluation.loss = NAN;
        r->evaluation.first = INFINITY; /* an objective may grow: workers say when they diverge */
        r->evaluation.has_no_loss = r->plan.method->objective == NULL;
    }
    r->evaluation.on_progress = rbt_job_on_progress;
    r->evaluation.context = r->job;
    rbt_job_forget_texts(r->job);
    return RBT_OK;
}

static void tear_down(rbt_method_run *r)
{
    if (r->is_planned && r->plan.method->end != NULL)
        r->plan.method->end(&r->plan);
    rbt_planned_deinit(&r->planned);
    rbt_setup_deinit(&r->setup);
    rbt_hop_deinit(&r->setup.hop);
    rbt_evaluation_deinit(&r->evaluation);
    rbt_data_deinit(&r->data);
    rbt_data_deinit(&r->valid);
    for (uint32_t m = 0; r->probes != NULL && m < r->job->options.workers; m++)
        rbt_probe_deinit(&r->probes[m]);
    rbt_free(r->probes);
    rbt_fitted_deinit(&r->best);
    rbt_free(r->facts);
    rbt_free(r->nonzeros);
    rbt_free(r->told);
}

/* -------------------------------------------------------------------------------------------------------- the outcome */

static size_t bytes_of(const rbt_values *v)
{
    return (size_t)(v->rows * v->cols) * rbt_type_size(v->type);
}

/* In shared memory and with peers there are no tables: the hash is of the arrays that are kept. */
static void hash_fitted(rbt_job *job)
{
    rbt_hasher *hasher = rbt_hasher_create(0);

    for (size_t i = 0; i < job->fitted.arrays; i++)
        rbt_hasher_add(hasher, job->fitted.array[i].at, bytes_of(&job->fitted.array[i]));
    job->result.param_hash = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
}

/* How the data was read, line by line, stays with the model. */
static void keep_origin(rbt_fitted *fitted, const char *origin)
{
    char *copy = rbt_strdup(origin), *rest = copy;
    RBT_ARRAY(const char *) lines = {0};

    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n"))
        rbt_array_push(&lines, line);
    rbt_fitted_add_names(fitted, RBT_FITTED_ORIGIN, lines.count, lines.at);
    rbt_array_free(&lines);
    rbt_free(copy);
}

static rbt_err keep(rbt_method_run *r, double load_seconds, rbt_error *error)
{
    rbt_job *job = r->job;
    rbt_err err = RBT_OK;

    if (!r->plan.shared)
        rbt_job_count(job, &r->setup);
    job->observed = r->setup.run.observed;
    r->planned.layouts = job->layouts.at; /* none in shared memory, nor with peers */
    r->planned.contents = job->contents.at;
    r->plan.result = r->evaluation.w;
    if (r->best.method != NULL)
        r->evaluation.loss = r->evaluation.watch.best_objective;
    rbt_job_fill(job, &r->evaluation, load_seconds);
    for (size_t m = 0; !r->plan.shared && m < job->result.workers && r->planned.shards.workers > 0; m++) {
        job->reports[m].rows = r->planned.shards.shard[m].n;
        job->reports[m].nonzeros = r->nonzeros != NULL ? r->nonzeros[m] : r->planned.shards.shard[m].nnz;
    }
    for (size_t m = 0; r->plan.method->reads_itself && m < job->result.workers; m++)
        job->reports[m].rows = job->reports[m].samples; /* nobody has dealt them out */
    if (r->planned.contents != NULL)
        rbt_job_count_tables(job, r->planned.told); /* all but that of the objective */
    job->fitted = r->best.method != NULL ? r->best : (rbt_fitted){.method = r->plan.method};
    if (r->best.method == NULL)
        err = r->plan.method->keep(&r->plan, &job->fitted, error);
    r->best = (rbt_fitted){0};
    if (err == RBT_OK && r->data.origin != NULL)
        keep_origin(&job->fitted, r->data.origin);
    if (err == RBT_OK) {
        job->has_result = true;
        for (size_t i = 0; i < job->fitted.arrays; i++)
            job->result.parameter_bytes += bytes_of(&job->fitted.array[i]);
        if (r->planned.contents == NULL)
            hash_fitted(job);
        err = rbt_method_valid_finish(r, error);
    }
    return err;
}

/* -------------------------------------------------------------------------------------------------------- running */

/* A method's workers tell the objective through a table: nobody is asked. */
static double no_losses(void *context, const float *w, uint64_t *rows)
{
    (void)context;
    (void)w;
    *rows = 0;
    return 0;
}

static rbt_err run_on_cluster(rbt_method_run *r, rbt_error *error)
{
    rbt_cluster_work work = {.losses = no_losses, .context = r, .n = 1, .on_loss = r->job->options.on_worker_loss};
    rbt_cluster *cluster;
    rbt_err err;

    if (r->plan.peers)
        return rbt_method_peers_run_on_cluster(r, error);
    cluster = rbt_cluster_create(&r->setup.run, r->session, &work);
    r->cluster = cluster;
    err = rbt_cluster_run(cluster, error);
    r->cluster = NULL;
    rbt_cluster_destroy(cluster);
    return err;
}

rbt_err rbt_method_job_take_part(rbt_job *job, rbt_session *session, rbt_error *error)
{
    rbt_method_run r = {.job = job, .session = session, .plan = {.method = rbt_trainee_method(job->options.model)}};
    rbt_err err = rbt_setup_init(&r.setup, &job->options, error);

    if (err == RBT_OK)
        err = set_up(&r, error);
    if (err == RBT_OK)
        err = run_on_cluster(&r, error);
    tear_down(&r);
    return err;
}

rbt_err rbt_method_job_run(rbt_job *job, rbt_error *error)
{
    rbt_method_run r = {.job = job, .plan = {.method = rbt_trainee_method(job->options.model)}};
    bool simulated = job->options.runtime == RBT_RUNTIME_SIM;
    double started = rbt_now_seconds(), load_seconds = 0;
    rbt_err err = rbt_setup_init(&r.setup, &job->options, error);

    if (err == RBT_OK && job->options.runtime == RBT_RUNTIME_CLUSTER) {
        err = rbt_cluster_job_open(job, &r.session, error);
        started = rbt_now_seconds(); /* waiting is not loading */
    }
    if (err == RBT_OK)
        err = set_up(&r, error);
    if (err == RBT_OK)
        err = rbt_method_valid_read(&r, error);
    if (err == RBT_OK) {
        load_seconds = simulated ? 0 : rbt_now_seconds() - started;
        rbt_job_announce(job);
        rbt_job_tell_of_reading(job, &r.report);
        rbt_job_tell_of_reading(job, &r.valid_report);
        err = r.plan.shared       ? rbt_method_shared_run(&r, error)
              : r.session != NULL ? run_on_cluster(&r, error)
                                  : rbt_setup_run(&r.setup, &job->options, error);
        rbt_job_keep_layouts(job, &r.setup); /* also of a run that failed: they say how much was kept */
    }
    if (err == RBT_OK)
        err = keep(&r, load_seconds, error);
    if (err == RBT_OK)
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_DONE, .job = job, .result = &job->result});
    if (r.session != NULL) {
        rbt_session_end(r.session, err == RBT_OK ? &(rbt_error){.code = RBT_OK} : error);
        rbt_session_destroy(r.session);
    }
    tear_down(&r);
    return err;
}
