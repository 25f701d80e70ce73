/* A job that trains a method. Contract in method_job.h. */
#include "job/method_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/time.h"
#include "data/read.h"
#include "job/cluster_job.h"
#include "job/trainee.h"
#include "job/peer_job.h"
#include "job/run.h"
#include "runtime/cluster/cluster.h"
#include "runtime/handle.h"

/* ------------------------------------------------------------------------------------------------------ programs */

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    rbt_method_run *r = argument;

    return r->plan.method->work(worker, &r->plan, error);
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
    if (err == RBT_OK)
        err = rbt_evaluation_take(e, objective, NAN, progress, error);
    rbt_observer_report(observer, slowest, e->watch.why != NULL ? -INFINITY : objective);
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
        progress = rbt_progress_of(observer, updates, slowest);
        err = take(observer, r, &progress, slowest, error);
        if (every > 0 && slowest != RBT_UNBOUNDED)
            need = rbt_evaluation_next(observer, &progress, slowest, need, every);
    }
    return err == RBT_OK ? rbt_job_collect(observer, r->job, error) : err;
}

/* ------------------------------------------------------------------------------------------------------- setting up */

/* The tables, and what runs on them. */
static rbt_err lay_out(rbt_method_run *r, rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    rbt_err err = rbt_planned_close(&r->planned, &r->plan, error);

    if (err == RBT_OK)
        err = rbt_setup_lay_out(&r->setup, options, r->planned.tables.at, (uint32_t)r->planned.tables.count, error);
    if (err != RBT_OK)
        return err;
    r->told = rbt_alloc((size_t)RBT_TOLD_BLOCK * RBT_TOLD_COLS, sizeof *r->told);
    r->objective = NAN;
    rbt_method_set_programs(r, work, r, observe, r);
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
    run->interrupted = &r->job->interrupted;
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
    rbt_free(r->facts);
    rbt_free(r->nonzeros);
    rbt_free(r->told);
}

/* -------------------------------------------------------------------------------------------------------- the outcome */

/* Over all tables but that of the objective: a hash of the values, and the sum of the integers. */
static rbt_err count_tables(rbt_method_run *r, rbt_error *error)
{
    rbt_result *result = &r->job->result;
    rbt_hasher *hasher = rbt_hasher_create(0);
    rbt_err err = RBT_OK;

    for (rbt_table t = 0; err == RBT_OK && t < r->planned.told; t++) {
        const rbt_layout *layout = &r->job->layouts.at[t];
        size_t n = (size_t)layout->cols;
        int64_t *row = rbt_try_alloc(n, sizeof *row);

        if (row == NULL)
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for a row of %zu values", n);
        for (uint64_t i = 0; row != NULL && err == RBT_OK && i < layout->rows; i++) {
            err = rbt_plan_read(&r->plan, t, i, 0, n, row, error);
            if (err == RBT_OK)
                rbt_hasher_add(hasher, row, n * rbt_type_size(layout->type));
            for (size_t k = 0; err == RBT_OK && layout->type != RBT_F32 && k < n; k++)
                result->table_sum += layout->type == RBT_I64 ? row[k] : ((const int32_t *)row)[k];
        }
        result->has_table_sum = result->has_table_sum || layout->type != RBT_F32;
        rbt_free(row);
    }
    result->param_hash = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
    return err;
}

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

/* How the fitted model does on --valid: told as an event, and what it has no word for as a note. */
static rbt_err evaluate_valid(rbt_method_run *r, rbt_error *error)
{
    rbt_job *job = r->job;
    const rbt_method *method = r->plan.method;
    rbt_figure figures[RBT_FIGURES_MOST];
    rbt_event event = {.kind = RBT_EVENT_EVAL,
                       .job = job,
                       .eval_clock = job->result.clocks,
                       .eval_seconds = job->result.seconds,
                       .eval_loss = NAN,
                       .eval_accuracy = NAN,
                       .eval_rmse = NAN};
    rbt_log log = rbt_job_log(job);
    rbt_data valid = {0};
    size_t n = 0;
    rbt_err err;

    if (job->options.valid == NULL)
        return RBT_OK;
    if (method->evaluate == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s cannot be evaluated; leave out --valid", method->name);
    err = rbt_loaded_read_data(&job->options, job->options.valid, method->content, &log, &valid, NULL, error);
    if (err == RBT_OK)
        err = method->evaluate(&job->fitted, &valid, figures, &n, error);
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        char note[128];

        if (i == 0)
            event.eval_loss = figures[i].value;
        if (strcmp(figures[i].name, "rmse") == 0)
            event.eval_rmse = figures[i].value;
        snprintf(note, sizeof note, "on the validation data: %s %.6g", figures[i].name, figures[i].value);
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = note});
    }
    if (err == RBT_OK)
        rbt_job_emit(job, &event);
    rbt_data_deinit(&valid);
    return err;
}

static rbt_err keep(rbt_method_run *r, double load_seconds, rbt_error *error)
{
    rbt_job *job = r->job;
    rbt_err err;

    if (!r->plan.shared)
        rbt_job_count(job, &r->setup);
    job->observed = r->setup.run.observed;
    r->planned.layouts = job->layouts.at; /* none in shared memory, nor with peers */
    r->planned.contents = job->contents.at;
    r->plan.result = r->evaluation.w;
    rbt_job_fill(job, &r->evaluation, load_seconds);
    for (size_t m = 0; !r->plan.shared && m < job->result.workers && r->planned.shards.workers > 0; m++) {
        job->reports[m].rows = r->planned.shards.shard[m].n;
        job->reports[m].nonzeros = r->nonzeros != NULL ? r->nonzeros[m] : r->planned.shards.shard[m].nnz;
    }
    err = r->planned.contents == NULL ? RBT_OK : count_tables(r, error);
    job->fitted.method = r->plan.method;
    if (err == RBT_OK)
        err = r->plan.method->keep(&r->plan, &job->fitted, error);
    if (err == RBT_OK) {
        job->has_result = true;
        for (size_t i = 0; i < job->fitted.arrays; i++)
            job->result.parameter_bytes += bytes_of(&job->fitted.array[i]);
        if (r->planned.contents == NULL)
            hash_fitted(job);
        err = evaluate_valid(r, error);
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
    rbt_cluster_work work = {.losses = no_losses, .context = r, .on_loss = r->job->options.on_worker_loss};
    rbt_cluster *cluster;
    rbt_err err;

    if (r->plan.peers)
        return rbt_method_peers_run_on_cluster(r, error);
    cluster = rbt_cluster_create(&r->setup.run, r->session, &work);
    err = rbt_cluster_run(cluster, error);
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
    if (err == RBT_OK) {
        load_seconds = simulated ? 0 : rbt_now_seconds() - started;
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_START, .job = job});
        rbt_job_tell_of_reading(job, &r.report);
        err = r.plan.shared
                  ? rbt_method_shared_run(job, &r.plan, r.planned.clocks, &r.setup.stragglers, &r.evaluation, error)
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
