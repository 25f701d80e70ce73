/* Training a gradient model; the contract is in gradient.h. */
#include "job/gradient.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "job/probe.h"
#include "job/text.h"
#include "job/trainee.h"
#include "math/kernels.h"
#include "runtime/handle.h"

/* Batches of one row, and a server that adds updates: steps that cost a row's non-zeros. */
static bool steps_by_row(const rbt_training *training)
{
    return !training->takes_gradients && !training->options->batch_percent && training->options->batch == 1 &&
           rbt_problem_is_walkable(&training->problem);
}

rbt_err rbt_scratch_init(rbt_scratch *scratch, const rbt_training *training, rbt_error *error)
{
    const rbt_options *options = training->options;
    size_t n = training->n;
    rbt_err err;

    *scratch = (rbt_scratch){.w = rbt_try_alloc(n, sizeof *scratch->w),
                             .u = rbt_try_alloc(n, sizeof *scratch->u),
                             .g = rbt_try_alloc(n, sizeof *scratch->g)};
    if (scratch->w == NULL || scratch->u == NULL || scratch->g == NULL) {
        rbt_scratch_deinit(scratch);
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for a worker's %zu parameters (%.0f MB); use fewer --workers", n,
                        3.0 * (double)n * sizeof(float) / 1e6);
    }
    if (training->plan != NULL)
        return RBT_OK;
    err = rbt_walk_init(&scratch->walk, &training->problem, RBT_ACCESS_ALONE, 1, error);
    if (err == RBT_OK && (options->optimizer != RBT_OPTIMIZER_SGD || steps_by_row(training)))
        err = rbt_sgd_init(&scratch->sgd, &training->problem, options->optimizer, options->momentum, NULL, error);
    if (err != RBT_OK) {
        rbt_scratch_deinit(scratch);
        return err;
    }
    rbt_sgd_attach(&scratch->sgd, &scratch->walk);
    scratch->walk.want_loss = true;
    rbt_walker_init(&scratch->walker, &scratch->walk, scratch->w, 0);
    return RBT_OK;
}

void rbt_scratch_deinit(rbt_scratch *scratch)
{
    rbt_walker_deinit(&scratch->walker);
    rbt_walk_deinit(&scratch->walk);
    rbt_sgd_deinit(&scratch->sgd);
    rbt_free(scratch->w);
    rbt_free(scratch->u);
    rbt_free(scratch->g);
}

/* How a worker's shard is cut into batches, and batches into clocks. */
typedef struct batch_plan {
    size_t batch;     /* rows in a batch */
    uint64_t batches; /* in one pass */
    uint64_t per_clock;
} batch_plan;

static batch_plan plan_of(const rbt_training *training, uint32_t worker)
{
    const rbt_options *options = training->options;
    size_t rows = training->shards->shard[worker].n;
    double batch = options->batch_percent ? (double)rows * options->batch / 100 : options->batch;
    batch_plan plan = {.batch = batch >= (double)rows ? rows : (size_t)(batch + 0.5)};

    RBT_ASSERT(rows > 0); /* no shard is empty */
    if (plan.batch == 0)
        plan.batch = 1;
    plan.batches = (rows + plan.batch - 1) / plan.batch;
    plan.per_clock = options->batches_per_clock > 0 ? options->batches_per_clock : plan.batches;
    return plan;
}

uint64_t rbt_training_clocks(const rbt_training *training, uint32_t worker)
{
    batch_plan plan;

    if (training->plan != NULL)
        return rbt_plan_clocks(training->plan);
    plan = plan_of(training, worker);
    if (training->options->clocks > 0)
        return training->options->clocks;
    return (uint64_t)ceil(training->options->epochs * (double)plan.batches / (double)plan.per_clock - 1e-9);
}

double rbt_training_rate(const void *context, uint64_t clock)
{
    const rbt_options *options = context;

    switch (options->decay) {
    case RBT_DECAY_SQRT:
        return options->lr / sqrt(options->decay_factor * (double)clock + 1);
    case RBT_DECAY_MULT: {
        double rate = options->lr, power = options->decay_factor;

        for (uint64_t left = clock; left > 0; left /= 2, power *= power) /* no pow(): the same bits on every machine */
            if (left % 2 != 0)
                rate *= power;
        return rate;
    }
    case RBT_DECAY_NONE:
    case RBT_DECAY_AUTO:
        break;
    }
    return options->lr;
}

/* l1 after a step of this size at one parameter: truncated towards zero; the update takes note. */
static inline void truncate(double l1, double rate, size_t i, rbt_scratch *s)
{
    float by = (float)(rate * l1), w = s->w[i], next = w > by ? w - by : w < -by ? w + by : 0;

    s->w[i] = next;
    s->u[i] += next - w;
}

/* A step with the optimizer's state; g is the batch's summed gradient. */
static void apply_stateful(const rbt_training *training, size_t n, double rate, rbt_scratch *s)
{
    const rbt_problem *p = &training->problem;
    float mean = (float)(1 / (double)n), l2 = (float)p->l2, warm;

    s->steps++;
    warm = rbt_adam_warmth(s->steps);
    for (size_t i = 0; i < training->n; i++) {
        float g = s->g[i] * mean + (i < p->weights ? l2 * s->w[i] : 0), *first = &s->sgd.first[i], step = (float)rate;
        float reach = 1; /* how many times the rate a gradient moves the parameter by in the end */

        if (training->options->optimizer == RBT_OPTIMIZER_MOMENTUM) {
            step *= *first = s->sgd.momentum * *first + g;
            reach = 1 / (1 - s->sgd.momentum);
        } else if (training->options->optimizer == RBT_OPTIMIZER_ADAGRAD) {
            *first += g * g;
            reach = 1 / sqrtf(*first + RBT_ADAGRAD_FLOOR);
            step *= g * reach;
        } else {
            float *second = &s->sgd.second[i];

            *first = RBT_ADAM_FIRST * *first + (1 - RBT_ADAM_FIRST) * g;
            *second = RBT_ADAM_SECOND * *second + (1 - RBT_ADAM_SECOND) * g * g;
            reach = 1 / (sqrtf(*second / warm) + RBT_ADAM_FLOOR);
            step *= *first * reach;
        }
        s->w[i] -= step;
        s->u[i] -= step;
        s->g[i] = 0;
        if (p->l1 > 0 && i < p->weights)
            truncate(p->l1, rate * (double)reach, i, s);
    }
}

/* After a batch of n samples, whose summed gradient is in g: either a step, or its mean added to the clock's mean. */
static void apply_batch(const rbt_training *training, size_t n, double rate, uint64_t per_clock, rbt_scratch *s)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    size_t weights = training->problem.weights, rest = training->n - weights;
    double l2 = training->problem.l2;

    if (training->takes_gradients) {
        kernels->axpy((float)(1 / ((double)n * (double)per_clock)), s->g, s->u, training->n);
        kernels->axpy((float)(l2 / (double)per_clock), s->w, s->u, weights);
        memset(s->g, 0, training->n * sizeof *s->g);
        return;
    }
    if (training->options->optimizer != RBT_OPTIMIZER_SGD) {
        apply_stateful(training, n, rate, s);
        return;
    }
    /* rate * (g/n + l2*w) = rate/n * (g + l2*n*w): one pass over the parameters */
    kernels->sgd_step((float)(-rate / (double)n), (float)(l2 * (double)n), s->g, s->w, s->u, weights);
    kernels->sgd_step((float)(-rate / (double)n), 0, s->g + weights, s->w + weights, s->u + weights, rest);
    for (size_t i = 0; training->problem.l1 > 0 && i < weights; i++)
        truncate(training->problem.l1, rate, i, s);
}

/* A clock of steps of one row: the update is what has changed. */
static double walk_clock(const rbt_training *training, const rbt_shard *shard, uint64_t first, uint64_t steps,
                         double rate, rbt_scratch *s)
{
    rbt_walker *walker = &s->walker;

    memcpy(s->u, s->w, training->n * sizeof *s->u);
    walker->rate = rate;
    walker->loss = 0;
    rbt_sgd_begin(&s->sgd, rate);
    for (uint64_t done = 0; done < steps;) {
        size_t at = (size_t)((first + done) % shard->n);
        size_t n = steps - done < shard->n - at ? (size_t)(steps - done) : shard->n - at;

        n = rbt_shards_together(training->shards, shard->rows, at, n);
        rbt_walker_rows(walker, shard->rows + at, n, n);
        rbt_shards_release(training->shards, training->data, shard->rows, shard->n, at, n);
        done += n;
    }
    for (size_t i = 0; i < training->n; i++)
        s->u[i] = s->w[i] - s->u[i];
    return walker->loss;
}

/* The gradient of a batch, summed; of streamed data piece by piece, so that a large batch needs not be in memory. */
static double batch_gradient(const rbt_training *training, uint32_t worker, size_t first, size_t n,
                             rbt_scratch *scratch, uint64_t *nonzeros)
{
    const rbt_shards *shards = training->shards;
    const rbt_data *data = training->data;
    size_t piece = shards->block_rows > 0 ? shards->block_rows : n;
    double loss = 0;

    for (size_t at = first; at < first + n; at += piece) {
        size_t count = first + n - at < piece ? first + n - at : piece;
        const uint32_t *rows = shards->shard[worker].rows + at;

        loss += training->model->gradient(&training->shape, data, rows, count, scratch->w, scratch->g);
        for (size_t i = 0; i < count; i++)
            *nonzeros += data->start[rows[i] + 1] - data->start[rows[i]];
        rbt_shards_release(shards, data, shards->shard[worker].rows, shards->shard[worker].n, at, count);
    }
    return loss;
}

rbt_clock_work rbt_training_clock(const rbt_training *training, uint32_t worker, uint64_t clock, rbt_scratch *scratch)
{
    const rbt_shard *shard = &training->shards->shard[worker];
    batch_plan plan = plan_of(training, worker);
    double rate = rbt_training_rate(training->options, clock);
    rbt_clock_work work = {0};

    if (steps_by_row(training)) {
        work.samples = plan.per_clock;
        work.loss = walk_clock(training, shard, clock * plan.per_clock, plan.per_clock, rate, scratch);
        for (uint64_t k = 0; k < plan.per_clock; k++) {
            uint32_t row = shard->rows[(clock * plan.per_clock + k) % shard->n];
            work.nonzeros += training->data->start[row + 1] - training->data->start[row];
        }
        return work;
    }
    memset(scratch->u, 0, training->n * sizeof *scratch->u);
    for (uint64_t k = 0; k < plan.per_clock; k++) {
        size_t first = (size_t)((clock * plan.per_clock + k) % plan.batches) * plan.batch;
        size_t n = shard->n - first < plan.batch ? shard->n - first : plan.batch;

        work.loss += batch_gradient(training, worker, first, n, scratch, &work.nonzeros);
        apply_batch(training, n, rate, plan.per_clock, scratch);
        work.samples += n;
    }
    return work;
}

const char *rbt_training_remedy(const rbt_options *options)
{
    if (options->store == RBT_STORE_DISK || options->normalize == RBT_NORMALIZE_UNIT ||
        rbt_trainee_method(options->model) != NULL)
        return NULL;
    return options->normalize == RBT_NORMALIZE_NONE ? "--normalize standard" : "--normalize unit";
}

rbt_err rbt_training_diverged(const rbt_training *training, uint32_t worker, uint64_t clock, double loss,
                              rbt_error *error)
{
    const char *remedy = rbt_training_remedy(training->options);
    char text[RBT_REAL_ROOM];

    return rbt_fail(
        error, RBT_E_DIVERGED,
        "training diverged: the loss of worker %u became %s in clock %llu; use a smaller --lr (it is %g)%s%s", worker,
        rbt_text_from_loss(loss, text), (unsigned long long)clock, training->options->lr, remedy != NULL ? ", or " : "",
        remedy != NULL ? remedy : "");
}

/* For the probe (--verify). */
static uint64_t clocks_of(const void *context, uint32_t worker)
{
    return rbt_training_clocks(context, worker);
}

/* One clock of a worker: read, compute, hand over. */
static rbt_err work_clock(rbt_worker *worker, const rbt_training *training, rbt_scratch *scratch, rbt_probe *probe,
                          rbt_error *error)
{
    uint32_t id = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    rbt_clock_work work;
    rbt_err err =
        rbt_get_range(worker, RBT_TABLE_PARAMETERS, 0, 0, training->n, RBT_STALENESS_OF_JOB, scratch->w, error);

    if (err == RBT_OK && training->options->verify)
        err = rbt_probe_clock(worker, probe, training->options, clocks_of, training, error);
    if (err != RBT_OK)
        return err;
    work = rbt_training_clock(training, id, clock, scratch);
    rbt_worker_did(worker, work.samples, work.nonzeros);
    if (!isfinite(work.loss))
        return rbt_training_diverged(training, id, clock, work.loss, error);
    err = rbt_inc_range(worker, RBT_TABLE_PARAMETERS, 0, 0, training->n, scratch->u, error);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

rbt_err rbt_training_work(rbt_worker *worker, void *argument, rbt_error *error)
{
    const rbt_training *training = argument;
    uint64_t clocks = rbt_training_clocks(training, rbt_worker_id(worker));
    rbt_probe probe = {.table = RBT_TABLE_PROBE};
    rbt_scratch scratch;
    rbt_err err = rbt_scratch_init(&scratch, training, error);

    if (err == RBT_OK) {
        while (err == RBT_OK && rbt_worker_clock(worker) < clocks && !rbt_worker_should_stop(worker)) {
            err = work_clock(worker, training, &scratch, &probe, error);
            if (err == RBT_OK && rbt_training_latest(training) != training) {
                training = rbt_training_latest(training);
                clocks = rbt_training_clocks(training, rbt_worker_id(worker));
                rbt_scratch_deinit(&scratch);
                err = rbt_scratch_init(&scratch, training, error);
            }
        }
        rbt_scratch_deinit(&scratch);
    }
    if (err == RBT_OK)
        err = rbt_probe_end(worker, &probe, error);
    rbt_probe_deinit(&probe);
    return err;
}

rbt_err rbt_training_sequential(const rbt_training *training, float *w, rbt_error *error)
{
    uint64_t clocks = rbt_training_clocks(training, 0);
    rbt_scratch scratch;
    rbt_err err = rbt_scratch_init(&scratch, training, error);

    if (err != RBT_OK)
        return err;
    for (uint64_t clock = 0; err == RBT_OK && clock < clocks; clock++) {
        rbt_clock_work work;

        memcpy(scratch.w, w, training->n * sizeof *w);
        work = rbt_training_clock(training, 0, clock, &scratch);
        if (!isfinite(work.loss))
            err = rbt_training_diverged(training, 0, clock, work.loss, error);
        rbt_kernels_best()->add(scratch.u, w, training->n);
    }
    rbt_scratch_deinit(&scratch);
    return err;
}

double rbt_training_losses(const rbt_training *training, const float *w)
{
    const rbt_data *data = training->data;
    size_t block = data->streamed ? rbt_data_block_rows(data) : data->rows;
    double loss = 0;

    for (size_t row = 0; row < data->rows; row += block) {
        size_t n = data->rows - row < block ? data->rows - row : block;

        loss += training->model->loss(&training->shape, data, row, n, w);
        rbt_data_release_rows(data, row, n); /* streamed data is given back as it has been visited */
    }
    return loss;
}

double rbt_training_mean(const rbt_training *training, const float *w, double losses)
{
    return losses / (double)training->total_rows + rbt_problem_penalty(&training->problem, w);
}

double rbt_training_objective(const rbt_training *training, const float *w)
{
    return rbt_training_mean(training, w, rbt_training_losses(training, w));
}
