/* A job from its options to its result (rubato.h, section 5): loads, lays out, runs on the chosen runtime, reports. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/error.h"
#include "base/hash.h"
#include "job/evaluate.h"
#include "model/metrics.h"
#include "runtime/sim.h"

typedef struct option_text {
    const char *name;
    char *value;
} option_text;

struct rbt_job {
    rbt_options options;
    bool checked;
    RBT_ARRAY(option_text) texts; /* of the options, made on demand */
    atomic_bool interrupted;
    rbt_event_handler *handler;
    void *context;
    pthread_mutex_t handler_lock; /* workers log from their own threads */
    bool has_result;
    rbt_result result;
    rbt_worker_report *reports;
    rbt_trained trained;
};

/* What a run needs besides the job itself; lives only while it runs. */
typedef struct job_run {
    rbt_data data;
    rbt_data valid;
    rbt_shards shards;
    rbt_training training;
    rbt_evaluation evaluation;
    rbt_topology topology;
    rbt_stragglers stragglers;
    rbt_sim_options sim;
    rbt_run run;
} job_run;

/* ------------------------------------------------------------------------------------- creating, describing */

rbt_job *rbt_job_create(const char *model)
{
    rbt_job *job = rbt_alloc(1, sizeof *job);

    rbt_options_init(&job->options);
    pthread_mutex_init(&job->handler_lock, NULL);
    rbt_free(job->options.model);
    job->options.model = rbt_strdup(model);
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
    rbt_options_deinit(&job->options);
    rbt_free(job->reports);
    rbt_free(job->trained.w);
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
    option_text one;

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
    if (!job->has_result)
        return rbt_fail(error, RBT_E_USAGE, "there is nothing to save to %s: the job has not been run", path);
    return rbt_trained_save(&job->trained, path, error);
}

/* --------------------------------------------------------------------------------------------------- events */

static void emit(rbt_job *job, const rbt_event *event)
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
    emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = sentence});
}

static void on_progress(void *context, const rbt_progress *progress)
{
    rbt_job *job = context;

    emit(job, &(rbt_event){.kind = RBT_EVENT_CLOCK, .job = job, .progress = progress});
}

static void on_valid(void *context, uint64_t clock, double seconds, double loss, double accuracy)
{
    rbt_job *job = context;

    emit(job, &(rbt_event){.kind = RBT_EVENT_EVAL,
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

    if (err == RBT_OK && options->data == NULL)
        err = rbt_fail(error, RBT_E_USAGE, "no data: give --data PATH");
    forget_texts(job);
    return err;
}

static rbt_err load(const rbt_job *job, job_run *r, rbt_error *error)
{
    const rbt_options *options = &job->options;
    rbt_training *training = &r->training;
    rbt_err err;

    training->model = rbt_model_find(options->model);
    if (training->model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "unknown model '%s'; this version has: lr", options->model);
    err = rbt_data_read(options->data, &r->data, error);
    if (err == RBT_OK)
        err = training->model->prepare(&r->data, &training->shape, error);
    if (err == RBT_OK && options->valid != NULL)
        err = rbt_data_read(options->valid, &r->valid, error);
    if (err == RBT_OK && options->valid != NULL)
        err = rbt_metrics_check(&training->shape, &r->valid, error);
    if (err == RBT_OK)
        err = rbt_shards_create(&r->data, options->workers, options->seed, &r->shards, error);
    training->shape.bias = !options->no_bias;
    training->options = options;
    training->data = &r->data;
    training->shards = &r->shards;
    training->n = training->model->size(&training->shape);
    return err;
}

static const rbt_rule *rule_of(rbt_rule_kind kind)
{
    switch (kind) {
    case RBT_RULE_SUM:
        return &rbt_rule_sum;
    case RBT_RULE_CON:
        return &rbt_rule_con;
    case RBT_RULE_ADAGRAD:
        return &rbt_rule_adagrad;
    case RBT_RULE_DYN:
    case RBT_RULE_AUTO:
        break;
    }
    return &rbt_rule_dyn;
}

static rbt_err lay_out(const rbt_options *options, job_run *r, rbt_error *error)
{
    rbt_topology *topology = &r->topology;
    rbt_table_spec specs[] = {
        [RBT_TABLE_PARAMETERS] = {.name = "parameters", .rows = 1, .cols = r->training.n, .type = RBT_F32},
        [RBT_TABLE_PROBE] = {.name = "probe", .rows = 1, .cols = options->workers, .type = RBT_I64},
    };
    rbt_rule_config rule = {.rule = rule_of(options->rule),
                            .workers = options->workers,
                            .staleness = options->staleness,
                            .factor = (float)(options->global_rate > 0 ? options->global_rate : 1.0 / options->workers),
                            .rate = (float)options->lr,
                            .partition_sync = options->partition_sync == RBT_ON};

    r->training.takes_gradients = rule.rule->takes_gradients;
    topology->workers = options->workers;
    topology->servers = options->servers;
    topology->observers = 1;
    topology->process_workers = options->runtime == RBT_RUNTIME_LOCAL ? options->workers : options->per_process;
    topology->staleness = options->staleness;
    topology->eager = options->eager == RBT_ON;
    topology->partition_sync = rule.partition_sync;
    topology->filter = (float)options->filter;
    return rbt_topology_init(topology, specs, options->verify ? 2 : 1, &rule, error);
}

static rbt_err set_up(rbt_job *job, job_run *r, rbt_error *error)
{
    const rbt_options *options = &job->options;
    rbt_err err = rbt_stragglers_init(&r->stragglers, options->straggler, options->workers, options->seed, error);

    if (err == RBT_OK)
        err = rbt_sim_options_parse(&r->sim, options->net, options->cost, options->faults, error);
    if (err == RBT_OK)
        err = load(job, r, error);
    if (err == RBT_OK)
        err = lay_out(options, r, error);
    if (err == RBT_OK)
        err = rbt_evaluation_init(&r->evaluation, &r->training, error);
    if (err != RBT_OK)
        return err;
    r->sim.seed = options->seed;
    r->evaluation.valid = options->valid != NULL ? &r->valid : NULL;
    r->evaluation.on_progress = on_progress;
    r->evaluation.on_valid = on_valid;
    r->evaluation.context = job;
    rbt_run_init(&r->run, &r->topology);
    r->run.program = (rbt_program){.name = options->model, .work = rbt_training_work, .argument = &r->training};
    r->run.observe = (rbt_program){.name = "evaluator", .work = rbt_evaluation_work, .argument = &r->evaluation};
    r->run.stragglers = &r->stragglers;
    r->run.encode = options->encode;
    r->run.has_target = options->has_target;
    r->run.target = options->target_loss;
    r->run.log = (rbt_log){.write = on_log, .context = job, .least = RBT_LOG_INFO};
    r->run.interrupted = &job->interrupted;
    return RBT_OK;
}

static void tear_down(job_run *r)
{
    rbt_run_deinit(&r->run);
    rbt_evaluation_deinit(&r->evaluation);
    rbt_topology_deinit(&r->topology);
    rbt_shards_destroy(&r->shards);
    rbt_data_deinit(&r->valid);
    rbt_data_deinit(&r->data);
    rbt_stragglers_deinit(&r->stragglers);
}

/* ------------------------------------------------------------------------------------------------- the result */

static void report_workers(rbt_job *job, const job_run *r)
{
    rbt_result *result = &job->result;
    double wait = 0, total = 0;

    result->workers = job->options.workers;
    rbt_free(job->reports);
    result->worker = job->reports = rbt_alloc(result->workers, sizeof *job->reports);
    for (size_t m = 0; m < result->workers; m++) {
        rbt_worker_report *report = &job->reports[m];
        const rbt_published *p = &r->run.published[m];

        report->compute_seconds = (double)atomic_load(&p->compute_ns) / 1e9;
        report->wait_seconds = (double)atomic_load(&p->wait_ns) / 1e9;
        report->communication_seconds = (double)atomic_load(&p->communication_ns) / 1e9;
        report->slowed_seconds = (double)atomic_load(&p->slowed_ns) / 1e9;
        report->clocks = atomic_load(&p->clock);
        report->samples = atomic_load(&p->samples);
        report->rows = r->shards.shard[m].n;
        report->nonzeros = r->shards.shard[m].nnz;
        wait += report->wait_seconds;
        total += report->compute_seconds + report->wait_seconds + report->communication_seconds;
    }
    result->wait_fraction = total > 0 ? wait / total : 0;
}

static void fill_result(rbt_job *job, job_run *r, double load_seconds)
{
    const rbt_options *options = &job->options;
    const rbt_progress *last = &r->evaluation.last;
    rbt_result *result = &job->result;
    bool reached = r->evaluation.reached;

    *result = (rbt_result){.loss = r->evaluation.loss, .load_seconds = load_seconds, .seed = options->seed};
    result->seconds = reached ? last->seconds : (double)r->run.elapsed_ns / 1e9;
    result->updates = last->updates;
    result->clocks = reached ? last->clock_min : last->clock_max;
    result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
    result->bytes_sent = atomic_load(&r->run.bytes);
    result->messages = atomic_load(&r->run.messages);
    result->max_gap = r->run.max_gap;
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        result->staleness_histogram[i] = r->run.staleness_histogram[i];
    result->peak_versions = r->run.peak_versions;
    result->version_bytes = r->run.version_bytes;
    result->parameter_bytes = r->training.n * sizeof(float);
    result->samples_per_second = result->seconds > 0 ? (double)last->samples / result->seconds : 0;
    rbt_evaluation_spread(&r->evaluation, &result->minobj, &result->varobj);
    result->has_target = options->has_target;
    result->reached = reached;
    result->interrupted = atomic_load(&job->interrupted);
    result->param_hash = rbt_hash(r->evaluation.w, r->training.n * sizeof(float), 0);
    result->has_table_sum = options->verify;
    result->table_sum = r->evaluation.table_sum;
    result->events = r->run.events;
    result->threads = options->runtime == RBT_RUNTIME_LOCAL ? options->workers : 1;
    result->servers = options->servers;
    report_workers(job, r);
    rbt_free(job->trained.w);
    job->trained =
        (rbt_trained){.model = r->training.model, .shape = r->training.shape, .n = r->training.n, .w = r->evaluation.w};
    r->evaluation.w = NULL; /* moved */
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
        emit(job, &(rbt_event){.kind = RBT_EVENT_START, .job = job});
        err =
            job->options.runtime == RBT_RUNTIME_SIM ? rbt_sim_run(&r.run, &r.sim, error) : rbt_local_run(&r.run, error);
    }
    if (err == RBT_OK) {
        fill_result(job, &r, load_seconds);
        emit(job, &(rbt_event){.kind = RBT_EVENT_DONE, .job = job, .result = &job->result});
        err = judge(job, error);
    }
    tear_down(&r);
    return err;
}
