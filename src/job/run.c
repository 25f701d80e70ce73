/* Running a job that trains a model: loads, lays out, runs on the chosen runtime or in shared memory, reports. The rest of
 * a job is job.c. Proved by tests/sim, tests/unit/test_shared_local.c and tests/cli. */
#include "job/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/time.h"
#include "data/read.h"
#include "job/cluster_job.h"
#include "job/text.h"
#include "job/trainee.h"
#include "job/method_job.h"
#include "job/peer_job.h"
#include "model/metrics.h"
#include "model/model.h"
#include "solve/problem.h"

/* --------------------------------------------------------------------------------------------------- events */

void rbt_job_on_progress(void *context, const rbt_progress *progress)
{
    rbt_job *job = context;

    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_CLOCK, .job = job, .progress = progress});
}

static void on_valid(void *context, uint64_t clock, double seconds, const rbt_metrics *metrics)
{
    rbt_job *job = context;

    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_EVAL,
                                   .job = job,
                                   .eval_clock = clock,
                                   .eval_seconds = seconds,
                                   .eval_loss = metrics->value[RBT_METRIC_LOSS],
                                   .eval_accuracy = metrics->value[RBT_METRIC_ACCURACY],
                                   .eval_rmse = metrics->value[RBT_METRIC_RMSE]});
}

/* -------------------------------------------------------------------------------------------------- setting up */

static rbt_err settle_options(rbt_job *job, rbt_error *error)
{
    rbt_options *options = &job->options;
    rbt_err err = rbt_options_check(options, error);

    if (err == RBT_OK && (options->model == NULL || options->data == NULL))
        err = rbt_fail(error, RBT_E_USAGE,
                       options->model == NULL ? "no model: a job without one runs a table program"
                                              : "no data: give --data PATH");
    rbt_job_forget_texts(job);
    return err;
}

/* The training that all workers share, from what was loaded. */
static void make_training(rbt_model_run *r)
{
    const rbt_options *options = &r->job->options;
    rbt_training *training = &r->training;

    training->options = options;
    training->model = r->loaded.model;
    training->shape = r->loaded.shape;
    training->data = &r->loaded.data;
    training->shards = &r->loaded.shards;
    training->total_rows = r->loaded.total_rows;
    training->problem = rbt_problem_of(training->model, &training->shape, training->data, options->l1, options->l2);
    if (r->loaded.facts.rows > 0)
        training->problem.facts = &r->loaded.facts;
    training->n = training->problem.n;
}

static rbt_err lay_out(const rbt_options *options, rbt_model_run *r, rbt_error *error)
{
    rbt_table_spec specs[] = {
        [RBT_TABLE_PARAMETERS] = {.name = "parameters", .rows = 1, .cols = r->training.n, .type = RBT_F32},
        [RBT_TABLE_PROBE] = {.name = "probe", .rows = 1, .cols = options->workers, .type = RBT_I64},
    };
    rbt_err err = RBT_OK;

    if (rbt_options_peers(options)) {
        err = rbt_hop_init(&r->setup.hop, options, r->training.n, error);
        return err == RBT_OK ? rbt_setup_lay_out_peers(&r->setup, options, error) : err;
    }
    err = rbt_setup_lay_out(&r->setup, options, specs, options->verify ? 2 : 1, error);

    if (err == RBT_OK)
        r->training.takes_gradients = r->setup.topology.rule[RBT_TABLE_PARAMETERS].rule->takes_gradients;
    return err;
}

static void set_programs(rbt_model_run *r)
{
    const rbt_options *options = &r->job->options;
    rbt_run *run = &r->setup.run;

    run->program = (rbt_program){.name = options->model,
                                 .work = rbt_options_peers(options) ? rbt_peer_work : rbt_training_work,
                                 .argument = &r->training};
    run->observe = (rbt_program){.name = "evaluator", .work = rbt_evaluation_work, .argument = &r->evaluation};
    run->has_target = rbt_watch_may_stop(options);
    run->target = options->has_target ? options->target_loss : -INFINITY;
    run->log = rbt_job_log(r->job);
    run->interrupted = r->job->stop;
}

rbt_err rbt_model_run_set_up(rbt_model_run *r, rbt_error *error)
{
    rbt_options *options = &r->job->options;
    rbt_err err = r->session == NULL ? rbt_loaded_prepare(&r->loaded, options, error) : RBT_OK; /* done together */

    if (err == RBT_OK)
        make_training(r);
    if (err == RBT_OK && !rbt_options_shared(options))
        err = lay_out(options, r, error);
    if (err == RBT_OK)
        err = rbt_evaluation_init(&r->evaluation, &r->training, error);
    if (err != RBT_OK)
        return err;
    r->evaluation.valid = r->loaded.has_valid ? &r->loaded.valid : NULL;
    r->evaluation.on_progress = rbt_job_on_progress;
    r->evaluation.on_valid = on_valid;
    r->evaluation.context = r->job;
    if (!rbt_options_shared(options))
        set_programs(r);
    rbt_job_forget_texts(r->job); /* the step size and l2 are known now */
    return RBT_OK;
}

void rbt_model_run_tear_down(rbt_model_run *r)
{
    rbt_setup_deinit(&r->setup);
    rbt_hop_deinit(&r->setup.hop);
    rbt_evaluation_deinit(&r->evaluation);
    rbt_loaded_deinit(&r->loaded);
}

/* ------------------------------------------------------------------------------------------------- the result */

static void count_workers(rbt_job *job, const rbt_run *run)
{
    rbt_result *result = &job->result;
    double wait = 0, total = 0;

    result->workers = job->options.workers;
    rbt_free(job->reports);
    result->worker = job->reports = rbt_alloc(result->workers, sizeof *job->reports);
    for (size_t m = 0; m < result->workers; m++) {
        rbt_worker_report *report = &job->reports[m];
        const rbt_published *p = &run->published[m];

        report->compute_seconds = (double)atomic_load(&p->compute_ns) / 1e9;
        report->wait_seconds = (double)atomic_load(&p->wait_ns) / 1e9;
        report->communication_seconds = (double)atomic_load(&p->communication_ns) / 1e9;
        report->slowed_seconds = (double)atomic_load(&p->slowed_ns) / 1e9;
        report->clocks = atomic_load(&p->clock);
        report->samples = atomic_load(&p->samples);
        wait += report->wait_seconds;
        total += report->compute_seconds + report->wait_seconds + report->communication_seconds;
        result->updates += report->clocks;
        result->clocks = report->clocks > result->clocks ? report->clocks : result->clocks;
    }
    result->updates -= result->skipped < result->updates ? result->skipped : result->updates;
    result->wait_fraction = total > 0 ? wait / total : 0;
}

void rbt_job_count(rbt_job *job, const rbt_setup *setup)
{
    const rbt_run *run = &setup->run;
    rbt_result *result = &job->result;

    *result = (rbt_result){
        .seconds = (double)run->elapsed_ns / 1e9, .seed = job->options.seed, .servers = job->options.servers};
    result->threads = job->options.runtime == RBT_RUNTIME_LOCAL ? job->options.workers : 1;
    result->interrupted = atomic_load(job->stop);
    result->bytes_sent = atomic_load(&run->bytes);
    result->bytes_plain = atomic_load(&run->plain);
    result->messages = atomic_load(&run->messages);
    result->events = run->events;
    result->has_peers = rbt_options_peers(&job->options);
    result->spread = run->spread;
    result->skipped = atomic_load(&run->skipped);
    result->max_gap = run->max_gap;
    result->peak_versions = run->peak_versions;
    result->version_bytes = run->version_bytes;
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        result->staleness_histogram[i] = run->staleness_histogram[i];
    count_workers(job, run);
    result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
}

static void count_labels(const rbt_loaded *loaded, size_t worker, rbt_worker_report *report)
{
    if (loaded->labels == NULL)
        return;
    report->classes = loaded->shape.classes;
    memcpy(report->labels, loaded->labels[worker].of, sizeof report->labels);
}

static void note_limit(rbt_model_run *r)
{
    const rbt_options *options = &r->job->options;
    const rbt_watch *watch = &r->evaluation.watch;
    bool far = watch->stuck && options->optimizer == RBT_OPTIMIZER_SDCA; /* its bound says so */
    char text[400], ends[64] = "";

    if (!(options->tolerance > 0) || (watch->why != NULL && !far) || r->job->result.interrupted)
        return;
    if (options->epochs_auto) /* whoever gives epochs alone gets all of them */
        snprintf(ends, sizeof ends, " with --tolerance %g", options->tolerance);
    snprintf(
        text, sizeof text,
        "training ended after %llu clocks without coming within %g of the optimum, as far as can be told; give more "
        "--epochs%s%s%s%s",
        (unsigned long long)r->job->result.clocks, options->tolerance, ends,
        options->sync == RBT_SYNC_PSGD && options->workers > 1 ? ", or fewer --workers, whose mean is not the optimum"
                                                               : "",
        options->l2 == 0 ? ", or an --l2 above 0" : "",
        options->normalize == RBT_NORMALIZE_NONE ? ", or --normalize standard if features differ much in size" : "");
    rbt_job_emit(r->job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = r->job, .note = text});
}

void rbt_job_fill(rbt_job *job, const rbt_evaluation *evaluation, double load_seconds)
{
    const rbt_progress *last = &evaluation->last;
    rbt_result *result = &job->result;
    uint64_t samples = 0;

    result->loss = evaluation->loss;
    result->load_seconds = load_seconds;
    result->has_target = job->options.has_target;
    result->reached = evaluation->watch.reached;
    result->ended = evaluation->watch.why;
    if (evaluation->watch.why != NULL) { /* it has come to its end, whoever asked for that meanwhile */
        result->interrupted = false;
        result->seconds = last->seconds;
        result->updates = last->updates;
        result->clocks = last->clock_min;
        result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
    }
    for (size_t m = 0; m < result->workers && evaluation->watch.why == NULL; m++)
        samples += result->worker[m].samples; /* also what came after the last evaluation */
    samples = samples > last->samples ? samples : last->samples;
    result->samples_per_second = result->seconds > 0 ? (double)samples / result->seconds : 0;
    rbt_evaluation_spread(evaluation, &result->minobj, &result->varobj);
}

static void fill_result(rbt_model_run *r, double load_seconds)
{
    rbt_job *job = r->job;
    rbt_result *result = &job->result;

    rbt_job_fill(job, &r->evaluation, load_seconds);
    result->penalty = rbt_problem_penalty(&r->training.problem, r->evaluation.w);
    result->parameter_bytes = r->training.n * sizeof(float);
    result->has_table_sum = job->options.verify;
    result->table_sum = r->evaluation.table_sum;
    for (size_t m = 0; m < result->workers; m++) {
        job->reports[m].rows = r->loaded.shards.shard[m].n;
        job->reports[m].nonzeros = r->loaded.shards.shard[m].nnz;
        count_labels(&r->loaded, m, &job->reports[m]);
    }
}

void rbt_model_run_keep(rbt_model_run *r)
{
    rbt_job *job = r->job;

    if (r->loaded.scaling.cols > 0)
        rbt_scaling_fold(&r->loaded.scaling, r->training.problem.outputs, r->evaluation.w);
    job->result.param_hash = rbt_hash(r->evaluation.w, r->training.n * sizeof(float), 0);
    rbt_trained_deinit(&job->trained);
    job->trained = (rbt_trained){.model = r->training.model,
                                 .shape = r->loaded.shape,
                                 .n = r->training.n,
                                 .w = r->evaluation.w,
                                 .origin = r->loaded.origin};
    r->evaluation.w = NULL; /* all moved */
    r->loaded.shape = (rbt_shape){0};
    r->loaded.origin = NULL;
    job->has_result = true;
}

static rbt_err judge(const rbt_job *job, rbt_error *error)
{
    const rbt_result *result = &job->result;
    const rbt_method *method = rbt_trainee_method(job->options.model);
    char loss[RBT_REAL_ROOM];
    bool has_rate = method != NULL ? !rbt_method_unheeds(method, "lr") : job->options.optimizer < RBT_OPTIMIZER_SDCA;

    if (result->interrupted)
        return rbt_fail(error, RBT_E_INTERRUPTED, "interrupted after %llu updates; the result is the model so far",
                        (unsigned long long)result->updates);
    if (result->has_target && !result->reached)
        return rbt_fail(error, RBT_E_TARGET,
                        "the target %g was not reached: the objective is %s after %llu updates; give more --clocks or "
                        "--epochs%s",
                        job->options.target_loss, rbt_text_from_loss(result->loss, loss),
                        (unsigned long long)result->updates, has_rate ? ", or another --lr" : ", or a higher target");
    return RBT_OK;
}

/* Trains what was loaded. */
static rbt_err train(rbt_model_run *r, rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    rbt_err err;

    if (rbt_options_shared(options))
        err = rbt_shared_job_run(r, error);
    else if (r->session != NULL)
        err = rbt_cluster_job_train(r, error);
    else
        err = rbt_setup_run(&r->setup, options, error);
    if (err != RBT_OK)
        return err;
    if (!rbt_options_shared(options))
        rbt_job_count(r->job, &r->setup);
    return rbt_evaluation_finish(&r->evaluation, error);
}

void rbt_job_announce(rbt_job *job)
{
    char note[160];

    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_START, .job = job});
    if (job->options.sync_for == NULL)
        return;
    snprintf(note, sizeof note, "--%s is for jobs with servers: --sync is ssp, and not hogwild as it would be without",
             job->options.sync_for);
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = note});
}

/* A note on rows that were left out. */
void rbt_job_tell_of_reading(rbt_job *job, const rbt_read_report *report)
{
    char note[RBT_READ_NOTE_ROOM];

    if (rbt_read_note(report, note))
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = note});
}

/* Features that only the validation data has are of no account. */
static void tell_of_columns(rbt_job *job, const rbt_loaded *loaded)
{
    char note[160];

    if (loaded->valid.cols <= loaded->shape.cols)
        return;
    snprintf(note, sizeof note, "--valid has %zu features, --data %zu; the others are not looked at",
             loaded->valid.cols, loaded->shape.cols);
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = note});
}

/* Features that vary so little that --normalize standard cannot make them like the others. */
static void tell_of_scaling(rbt_job *job, const rbt_scaling *scaling)
{
    char note[200];

    if (scaling->faint == 0)
        return;
    snprintf(note, sizeof note,
             "%zu feature%s by less than %g, too little for --normalize standard; they count for next to nothing: "
             "give them in another unit",
             scaling->faint, scaling->faint == 1 ? " varies" : "s vary", 1 / RBT_SCALE_MOST);
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = note});
}

/* From data that was read to a result. */
static rbt_err run_read(rbt_model_run *r, double started, rbt_error *error)
{
    rbt_job *job = r->job;
    double load_seconds;
    rbt_err err = rbt_model_run_set_up(r, error);

    load_seconds =
        job->options.runtime == RBT_RUNTIME_SIM ? 0 : rbt_now_seconds() - started; /* sim: the same bytes each run */
    if (err == RBT_OK) {
        rbt_job_announce(job);
        rbt_job_tell_of_reading(job, &r->loaded.report);
        rbt_job_tell_of_reading(job, &r->loaded.valid_report);
        tell_of_columns(job, &r->loaded);
        tell_of_scaling(job, &r->loaded.scaling);
        err = train(r, error);
    }
    if (err == RBT_OK) {
        fill_result(r, load_seconds);
        note_limit(r);
        rbt_model_run_keep(r);
    }
    return err;
}

/* ---------------------------------------------------------------------------------------------------- folds */

/* How a fold's model did on the rows it has not seen: the last evaluation. */
typedef struct fold_outcome {
    double loss;
    double score;
    bool one_label; /* the rows it was trained on had no other */
} fold_outcome;

static void on_fold_event(void *context, const rbt_event *event)
{
    fold_outcome *outcome = context;

    if (event->kind != RBT_EVENT_EVAL)
        return;
    outcome->loss = event->eval_loss;
    outcome->score = isnan(event->eval_rmse) ? event->eval_accuracy : event->eval_rmse;
}

static bool has_one_label(const rbt_data *data)
{
    for (size_t r = 1; r < data->rows; r++)
        if (data->label[r] != data->label[0])
            return false;
    return true;
}

static rbt_err run_fold(rbt_job *job, const rbt_loaded *whole, uint32_t fold, fold_outcome *outcome, rbt_error *error)
{
    rbt_job *child = rbt_job_create(NULL);
    rbt_model_run r = {.job = child};
    rbt_err err;

    rbt_options_copy(&child->options, &job->options);
    child->options.folds = 0;
    child->handler = on_fold_event;
    child->context = outcome;
    child->stop = job->stop;
    err = rbt_setup_init(&r.setup, &child->options, error);
    if (err == RBT_OK)
        err = rbt_loaded_fold(&r.loaded, whole, &job->options, fold, error);
    if (err == RBT_OK) {
        outcome->one_label = has_one_label(&r.loaded.data);
        err = run_read(&r, rbt_now_seconds(), error);
    }
    rbt_model_run_tear_down(&r);
    rbt_job_destroy(child);
    if (err == RBT_OK && atomic_load(job->stop))
        err = rbt_fail(error, RBT_E_INTERRUPTED, "interrupted in fold %u of %u; there is no result", fold + 1,
                       job->options.folds);
    return err;
}

static void note_fold(rbt_job *job, const rbt_model *model, uint32_t fold, const fold_outcome *outcome)
{
    char text[256], score[48], loss[RBT_REAL_ROOM], rmse[RBT_REAL_ROOM];
    bool classes = rbt_model_is_classifier(model);

    if (classes)
        snprintf(score, sizeof score, "accuracy %.1f %%", 100 * outcome->score);
    else
        snprintf(score, sizeof score, "rmse %s", rbt_text_from_loss(outcome->score, rmse));
    snprintf(
        text, sizeof text, "fold %u of %u: loss %s, %s on the rows left out%s", fold + 1, job->options.folds,
        rbt_text_from_loss(outcome->loss, loss), score,
        classes && outcome->one_label
            ? "; all others have the same label, so this says nothing: use fewer --folds, or more rows of each label"
            : "");
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = text});
}

/* Mean and standard deviation of n numbers that lie `stride` apart. */
static void spread(const double *values, size_t n, size_t stride, double *mean, double *deviation)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += values[i * stride];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i * stride] - *mean) * (values[i * stride] - *mean);
    *deviation = sqrt(squares / (double)n);
}

/* Trains once per fold; the outcome goes to the result. */
static rbt_err cross_validate(rbt_job *job, const rbt_loaded *whole, rbt_result *folded, rbt_error *error)
{
    uint32_t folds = job->options.folds;
    fold_outcome *outcomes = rbt_alloc(folds, sizeof *outcomes);
    rbt_err err = RBT_OK;

    for (uint32_t k = 0; err == RBT_OK && k < folds; k++) {
        err = run_fold(job, whole, k, &outcomes[k], error);
        if (err == RBT_OK)
            note_fold(job, whole->model, k, &outcomes[k]);
    }
    folded->folds = folds;
    folded->folds_of_numbers = !rbt_model_is_classifier(whole->model);
    spread(&outcomes->loss, folds, sizeof *outcomes / sizeof(double), &folded->fold_loss, &folded->fold_loss_deviation);
    spread(&outcomes->score, folds, sizeof *outcomes / sizeof(double), &folded->fold_score,
           &folded->fold_score_deviation);
    rbt_free(outcomes);
    return err;
}

rbt_err rbt_job_run(rbt_job *job, rbt_event_handler *handler, void *context, rbt_error *error)
{
    double started = rbt_now_seconds();
    rbt_error discarded;
    rbt_model_run r = {.job = job};
    rbt_result folded = {0};
    rbt_log log = rbt_job_log(job);
    rbt_err err;

    if (error == NULL)
        error = &discarded;
    if (job->started)
        return rbt_fail(error, RBT_E_USAGE, "the job has been run, and a job is run once; create another");
    job->started = true;
    job->handler = handler;
    job->context = context;
    err = settle_options(job, error);
    if (err == RBT_OK && rbt_trainee_method(job->options.model) != NULL) {
        err = rbt_method_job_run(job, error);
        return err == RBT_OK ? judge(job, error) : err;
    }
    if (err == RBT_OK)
        err = rbt_setup_init(&r.setup, &job->options, error);
    if (err == RBT_OK && job->options.runtime == RBT_RUNTIME_CLUSTER) {
        err = rbt_cluster_job_open(job, &r.session, error);
        started = rbt_now_seconds(); /* waiting is not loading */
    }
    if (err == RBT_OK)
        err = r.session != NULL ? rbt_cluster_job_load(&r, error)
                                : rbt_loaded_read(&r.loaded, &job->options, &log, error);
    if (err == RBT_OK && job->options.folds > 0) {
        double before = rbt_now_seconds();

        err = cross_validate(job, &r.loaded, &folded, error);
        started += rbt_now_seconds() - before; /* folds are not loading */
    }
    if (err == RBT_OK)
        err = run_read(&r, started, error);
    if (err == RBT_OK) {
        job->result.folds = folded.folds;
        job->result.folds_of_numbers = folded.folds_of_numbers;
        job->result.fold_loss = folded.fold_loss;
        job->result.fold_loss_deviation = folded.fold_loss_deviation;
        job->result.fold_score = folded.fold_score;
        job->result.fold_score_deviation = folded.fold_score_deviation;
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_DONE, .job = job, .result = &job->result});
    }
    if (r.session != NULL) {
        rbt_session_end(r.session, err == RBT_OK ? &(rbt_error){.code = RBT_OK} : error);
        rbt_session_destroy(r.session);
    }
    if (err == RBT_OK)
        err = judge(job, error);
    rbt_model_run_tear_down(&r);
    return err;
}
