/* Training a model in shared memory: from a job's options to src/solve/shared.c, and from its passes to the job's events
 * and result. Called by run.c. Proved by tests/unit/test_shared_local.c and tests/cli/test_shared.sh. */
#include <math.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"
#include "job/run.h"
#include "solve/shared.h"

#define SAMPLE_ROWS 1000 /* for the objective of parameters that are all zero: its size matters, and that seldom */

typedef struct shared_job {
    rbt_model_run *run;
    rbt_shared_worker *workers;
    rbt_team *team;
    bool is_sampled; /* the objective of parameters that are all zero is that of the first rows */
    uint64_t began_ns;
    rbt_error *error;
    rbt_err err;
    uint64_t clock;
} shared_job;

static rbt_progress progress_of(const shared_job *s)
{
    const rbt_options *options = &s->run->job->options;
    rbt_progress progress = {.clock_min = s->clock,
                             .clock_max = s->clock,
                             .seconds = (double)(rbt_now_ns() - s->began_ns) / 1e9,
                             .updates = s->clock * options->workers};
    uint64_t wait = 0, total = 0;

    for (uint32_t m = 0; m < options->workers; m++) {
        progress.samples += s->workers[m].samples;
        wait += s->workers[m].wait_ns;
        total += s->workers[m].wait_ns + s->workers[m].compute_ns;
    }
    progress.samples_per_second = progress.seconds > 0 ? (double)progress.samples / progress.seconds : 0;
    progress.wait_fraction = total > 0 ? (double)wait / (double)total : 0;
    return progress;
}

/* An objective above that of parameters that are all zero may have blown up, or the first rows are not like the others: then
 * all are looked at, once. */
static rbt_err doubt_sample(shared_job *s, double objective)
{
    const rbt_training *training = &s->run->training;

    if (!s->is_sampled || objective <= s->run->evaluation.first)
        return RBT_OK;
    float *zeros = rbt_try_alloc(training->n, sizeof *zeros);
    if (zeros == NULL)
        return rbt_fail(s->error, RBT_E_MEMORY, "not enough memory for %zu parameters", training->n);
    s->run->evaluation.first = rbt_problem_objective(&training->problem, zeros, s->team);
    s->is_sampled = false;
    rbt_free(zeros);
    return RBT_OK;
}

/* After a pass; false ends the training. */
static bool after_pass(void *context, const rbt_shared_pass *pass)
{
    shared_job *s = context;
    rbt_evaluation *evaluation = &s->run->evaluation;
    bool interrupted = atomic_load(s->run->job->stop);

    s->clock = pass->clock;
    if (pass->w != NULL) {
        rbt_progress progress = progress_of(s);

        evaluation->w = pass->w;
        s->err = doubt_sample(s, pass->objective);
        if (s->err == RBT_OK)
            s->err = rbt_evaluation_take(evaluation, pass->objective, pass->gap, &progress, s->error);
    }
    return s->err == RBT_OK && !interrupted && evaluation->watch.why == NULL;
}

static rbt_access access_of(rbt_sync sync)
{
    return sync == RBT_SYNC_AIG           ? RBT_ACCESS_AIG
           : sync == RBT_SYNC_ROUND_ROBIN ? RBT_ACCESS_ROUND_ROBIN
           : sync == RBT_SYNC_PSGD        ? RBT_ACCESS_ALONE
                                          : RBT_ACCESS_HOGWILD;
}

static double slow(const void *context, uint32_t worker, uint64_t clock)
{
    return rbt_stragglers_factor(context, worker, clock);
}

/* What is reported of each worker. */
static void count(rbt_model_run *run, const shared_job *s, uint64_t took_ns)
{
    rbt_job *job = run->job;
    rbt_result *result = &job->result;
    double wait = 0, total = 0;

    *result = (rbt_result){.seconds = (double)took_ns / 1e9,
                           .seed = job->options.seed,
                           .threads = job->options.workers,
                           .workers = job->options.workers,
                           .clocks = s->clock,
                           .updates = s->clock * job->options.workers,
                           .interrupted = atomic_load(job->stop)};
    rbt_free(job->reports);
    result->worker = job->reports = rbt_alloc(result->workers, sizeof *job->reports);
    for (size_t m = 0; m < result->workers; m++) {
        rbt_worker_report *report = &job->reports[m];

        report->compute_seconds = (double)s->workers[m].compute_ns / 1e9;
        report->wait_seconds = (double)s->workers[m].wait_ns / 1e9;
        report->slowed_seconds = (double)s->workers[m].slowed_ns / 1e9;
        report->clocks = s->clock;
        report->samples = s->workers[m].samples;
        wait += report->wait_seconds;
        total += report->compute_seconds + report->wait_seconds;
    }
    result->wait_fraction = total > 0 ? wait / total : 0;
    result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
}

rbt_err rbt_shared_job_run(rbt_model_run *run, rbt_error *error)
{
    const rbt_options *options = &run->job->options;
    const rbt_training *training = &run->training;
    size_t rows = training->data->rows, sample = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS;
    rbt_shared_options shared = {
        .access = access_of(options->sync),
        .optimizer = options->optimizer,
        .average = options->sync == RBT_SYNC_PSGD,
        .momentum = options->momentum,
        .rate = rbt_training_rate,
        .rate_context = options,
        .seed = options->seed,
        .clocks = options->clocks > 0 ? options->clocks : (uint64_t)ceil(options->epochs - 1e-9),
        .close = 3 * options->tolerance, /* the end may be near */
        .eval_every = options->eval_every,
        .slow = run->setup.stragglers.list.count > 0 ? slow : NULL,
        .slow_context = &run->setup.stragglers,
    };
    rbt_team *team = NULL;
    shared_job s = {.run = run, .error = error, .workers = rbt_alloc(options->workers, sizeof *s.workers)};
    float *w = run->evaluation.w; /* trained in place; what is looked at on the way may lie elsewhere */
    rbt_err err = rbt_team_create(options->workers, &team, error);

    if (err == RBT_OK && !rbt_problem_is_walkable(&training->problem))
        err = rbt_fail(error, RBT_E_USAGE, "the model %s cannot be trained row by row in shared memory; use --sync ssp",
                       training->model->name);
    if (err == RBT_OK) {
        s.team = team;
        s.is_sampled = sample < rows;
        run->evaluation.first = training->model->loss(&training->shape, training->data, 0, sample, w) / (double)sample;
        s.began_ns = rbt_now_ns();
        err =
            rbt_shared_train(&training->problem, &shared, training->shards, team, w, s.workers, after_pass, &s, error);
        run->evaluation.w = w;
    }
    if (err == RBT_OK)
        err = s.err;
    if (err == RBT_OK)
        count(run, &s, rbt_now_ns() - s.began_ns);
    rbt_team_destroy(team);
    rbt_free(s.workers);
    return err;
}
