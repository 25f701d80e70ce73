/* A job from its options to its result (rubato.h, section 5): loads, lays out, runs on the chosen runtime, reports. */
#include <time.h>

#include "base/error.h"
#include "base/hash.h"
#include "job/evaluate.h"
#include "job/job_state.h"
#include "model/metrics.h"

/* What a run needs besides the job itself; lives only while it runs. */
typedef struct job_run {
    rbt_data data;
    rbt_data valid;
    rbt_shards shards;
    rbt_training training;
    rbt_evaluation evaluation;
    rbt_setup setup;
} job_run;

/* ------------------------------------------------------------------------------------- creating, describing */

rbt_job *rbt_job_create(const char *model)
{
    rbt_job *job = rbt_alloc(1, sizeof *job);

    rbt_options_init(&job->options);
    pthread_mutex_init(&job->handler_lock, NULL);
    rbt_free(job->options.model);
    job->options.model = model != NULL ? rbt_strdup(model) : NULL;
    return job;
}

static void forget_texts(rbt_job *job)
{
    for (size_t i = 0; i < job->texts.count; i++)
        rbt_free(job->texts.at[i].value);
    rbt_array_free(&job->texts);
}

void rbt_job_destroy(rbt_job *job)
{
    if (job == NULL)
        return;
    forget_texts(job);
    rbt_job_forget_tables(job);
    rbt_options_deinit(&job->options);
    rbt_free(job->reports);
    rbt_trained_deinit(&job->trained);
    pthread_mutex_destroy(&job->handler_lock);
    rbt_free(job);
}

rbt_err rbt_job_set(rbt_job *job, const char *option, const char *value, rbt_error *error)
{
    forget_texts(job);
    return rbt_options_set(&job->options, option, value, error);
}

bool rbt_job_option(const rbt_job *job, size_t i, const char **name, const char **value)
{
    rbt_job *mine = (rbt_job *)job; /* the texts are a cache */
    char text[RBT_OPTION_ROOM];
    rbt_option_text one;

    while (mine->texts.count <= i) {
        if (!rbt_options_at(&job->options, mine->texts.count, &one.name, text, sizeof text))
            return false;
        one.value = rbt_strdup(text);
        rbt_array_push(&mine->texts, one);
    }
    *name = job->texts.at[i].name;
    *value = job->texts.at[i].value;
    return true;
}

void rbt_job_interrupt(rbt_job *job)
{
    atomic_store(&job->interrupted, true);
}

const rbt_result *rbt_job_result(const rbt_job *job)
{
    return job->has_result ? &job->result : NULL;
}

const float *rbt_job_parameters(const rbt_job *job, size_t *n)
{
    *n = job->has_result ? job->trained.n : 0;
    return job->has_result ? job->trained.w : NULL;
}

rbt_err rbt_job_save(const rbt_job *job, const char *path, rbt_error *error)
{
    if (!job->has_result || job->trained.model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "there is nothing to save to %s: the job has not trained a model", path);
    return rbt_trained_save(&job->trained, path, error);
}

/* --------------------------------------------------------------------------------------------------- events */

void rbt_job_emit(rbt_job *job, const rbt_event *event)
{
    if (job->handler == NULL)
        return;
    pthread_mutex_lock(&job->handler_lock);
    job->handler(job->context, event);
    pthread_mutex_unlock(&job->handler_lock);
}

static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    rbt_job *job = context;

    (void)level;
    (void)source;
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = sentence});
}

rbt_log rbt_job_log(rbt_job *job)
{
    return (rbt_log){.write = on_log, .context = job, .least = RBT_LOG_INFO};
}

static void on_progress(void *context, const rbt_progress *progress)
{
    rbt_job *job = context;

    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_CLOCK, .job = job, .progress = progress});
}

static void on_valid(void *context, uint64_t clock, double seconds, double loss, double accuracy)
{
    rbt_job *job = context;

    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_EVAL,
                                   .job = job,
                                   .eval_clock = clock,
                                   .eval_seconds = seconds,
                                   .eval_loss = loss,
                                   .eval_accuracy = accuracy});
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
    forget_texts(job);
    return err;
}

static rbt_err load(rbt_job *job, job_run *r, rbt_error *error)
{
    const rbt_options *options = &job->options;
    rbt_log log = rbt_job_log(job);
    rbt_storing storing = {.level = options->store, .keep = options->cache == RBT_CACHE_AUTO, .log = &log};
    rbt_training *training = &r->training;
    rbt_err err;

    training->model = rbt_model_find(options->model);
    if (training->model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "unknown model '%s'; this version has: lr", options->model);
    err = rbt_store_read(options->data, &storing, &r->data, error);
    if (err == RBT_OK)
        err = training->model->prepare(&r->data, &training->shape, error);
    if (err == RBT_OK)
        err = rbt_shape_apply(&training->shape, true, &r->data, error);
    if (err == RBT_OK && options->valid != NULL)
        err = rbt_store_read(options->valid, &storing, &r->valid, error);
    if (err == RBT_OK && options->valid != NULL)
        err = rbt_shape_apply(&training->shape, true, &r->valid, error);
    if (err == RBT_OK)
        err = rbt_shards_create(&r->data, options->workers, options->seed, &r->shards, error);
    training->shape.bias = !options->no_bias;
    training->options = options;
    training->data = &r->data;
    training->shards = &r->shards;
    training->n = training->model->size(&training->shape);
    return err;
}

static rbt_err lay_out(const rbt_options *options, job_run *r, rbt_error *error)
{
    rbt_table_spec specs[] = {
        [RBT_TABLE_PARAMETERS] = {.name = "parameters", .rows = 1, .cols = r->training.n, .type = RBT_F32},
        [RBT_TABLE_PROBE] = {.name = "probe", .rows = 1, .cols = options->workers, .type = RBT_I64},
    };
    rbt_err err = rbt_setup_lay_out(&r->setup, options, specs, options->verify ? 2 : 1, error);

    if (err == RBT_OK)
        r->training.takes_gradients = r->setup.topology.rule[RBT_TABLE_PARAMETERS].rule->takes_gradients;
    return err;
}

static rbt_err set_up(rbt_job *job, job_run *r, rbt_error *error)
{
    const rbt_options *options = &job->options;
    rbt_run *run = &r->setup.run;
    rbt_err err = rbt_setup_init(&r->setup, options, error);

    if (err == RBT_OK)
        err = load(job, r, error);
    if (err == RBT_OK)
        err = lay_out(options, r, error);
    if (err == RBT_OK)
        err = rbt_evaluation_init(&r->evaluation, &r->training, error);
    if (err != RBT_OK)
        return err;
    r->evaluation.valid = options->valid != NULL ? &r->valid : NULL;
    r->evaluation.on_progress = on_progress;
    r->evaluation.on_valid = on_valid;
    r->evaluation.context = job;
    run->program = (rbt_program){.name = options->model, .work = rbt_training_work, .argument = &r->training};
    run->observe = (rbt_program){.name = "evaluator", .work = rbt_evaluation_work, .argument = &r->evaluation};
    run->has_target = options->has_target;
    run->target = options->target_loss;
    run->log = rbt_job_log(job);
    run->interrupted = &job->interrupted;
    return RBT_OK;
}

static void tear_down(job_run *r)
{
    rbt_setup_deinit(&r->setup);
    rbt_evaluation_deinit(&r->evaluation);
    rbt_shards_destroy(&r->shards);
    rbt_shape_deinit(&r->training.shape);
    rbt_data_deinit(&r->valid);
    rbt_data_deinit(&r->data);
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
    result->wait_fraction = total > 0 ? wait / total : 0;
}

void rbt_job_count(rbt_job *job, const rbt_setup *setup)
{
    const rbt_run *run = &setup->run;
    rbt_result *result = &job->result;

    *result = (rbt_result){
        .seconds = (double)run->elapsed_ns / 1e9, .seed = job->options.seed, .servers = job->options.servers};
    result->threads = job->options.runtime == RBT_RUNTIME_LOCAL ? job->options.workers : 1;
    result->interrupted = atomic_load(&job->interrupted);
    result->bytes_sent = atomic_load(&run->bytes);
    result->messages = atomic_load(&run->messages);
    result->events = run->events;
    result->max_gap = run->max_gap;
    result->peak_versions = run->peak_versions;
    result->version_bytes = run->version_bytes;
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        result->staleness_histogram[i] = run->staleness_histogram[i];
    count_workers(job, run);
    result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
}

static void count_labels(const job_run *r, const rbt_shard *shard, rbt_worker_report *report)
{
    if (r->training.shape.classes > RBT_LABELS_REPORTED)
        return;
    report->classes = r->training.shape.classes;
    for (size_t i = 0; report->classes > 0 && i < shard->n; i++)
        report->labels[(size_t)r->data.label[shard->rows[i]]]++; /* labels have been numbered */
}

/* What a model's job reports beyond that; up to the target, if it was reached. */
static void fill_result(rbt_job *job, job_run *r, double load_seconds)
{
    const rbt_progress *last = &r->evaluation.last;
    rbt_result *result = &job->result;

    rbt_job_count(job, &r->setup);
    result->loss = r->evaluation.loss;
    result->load_seconds = load_seconds;
    result->has_target = job->options.has_target;
    result->reached = r->evaluation.reached;
    if (result->reached) {
        result->seconds = last->seconds;
        result->updates = last->updates;
        result->clocks = last->clock_min;
        result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
    }
    result->samples_per_second = result->seconds > 0 ? (double)last->samples / result->seconds : 0;
    result->parameter_bytes = r->training.n * sizeof(float);
    rbt_evaluation_spread(&r->evaluation, &result->minobj, &result->varobj);
    result->param_hash = rbt_hash(r->evaluation.w, r->training.n * sizeof(float), 0);
    result->has_table_sum = job->options.verify;
    result->table_sum = r->evaluation.table_sum;
    for (size_t m = 0; m < result->workers; m++) {
        job->reports[m].rows = r->shards.shard[m].n;
        job->reports[m].nonzeros = r->shards.shard[m].nnz;
        count_labels(r, &r->shards.shard[m], &job->reports[m]);
    }
    rbt_trained_deinit(&job->trained);
    job->trained =
        (rbt_trained){.model = r->training.model, .shape = r->training.shape, .n = r->training.n, .w = r->evaluation.w};
    r->evaluation.w = NULL; /* moved */
    r->training.shape = (rbt_shape){0};
    job->has_result = true;
}

static double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static rbt_err judge(const rbt_job *job, rbt_error *error)
{
    const rbt_result *result = &job->result;

    if (result->interrupted && !result->reached)
        return rbt_fail(error, RBT_E_INTERRUPTED, "interrupted after %llu updates; the result is the model so far",
                        (unsigned long long)result->updates);
    if (result->has_target && !result->reached)
        return rbt_fail(error, RBT_E_TARGET,
                        "the target %g was not reached: the objective is %g after %llu updates; give more --clocks or "
                        "--epochs, or another --lr",
                        job->options.target_loss, result->loss, (unsigned long long)result->updates);
    return RBT_OK;
}

rbt_err rbt_job_run(rbt_job *job, rbt_event_handler *handler, void *context, rbt_error *error)
{
    double started = now_seconds(), load_seconds;
    rbt_error discarded;
    job_run r = {0};
    rbt_err err;

    if (error == NULL)
        error = &discarded;
    job->handler = handler;
    job->context = context;
    err = settle_options(job, error);
    if (err == RBT_OK)
        err = set_up(job, &r, error);
    load_seconds =
        job->options.runtime == RBT_RUNTIME_SIM ? 0 : now_seconds() - started; /* sim: the same bytes each run */
    if (err == RBT_OK) {
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_START, .job = job});
        err = rbt_setup_run(&r.setup, &job->options, error);
    }
    if (err == RBT_OK) {
        fill_result(job, &r, load_seconds);
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_DONE, .job = job, .result = &job->result});
        err = judge(job, error);
    }
    tear_down(&r);
    return err;
}
