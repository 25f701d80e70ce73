/* The evaluator; the contract is in evaluate.h. */
#include "job/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/probe.h"
#include "job/text.h"
#include "runtime/handle.h"
#include "sync/staleness.h"

#define BLOW_UP 1e4 /* an objective this many times that of parameters all zero has blown up */

rbt_err rbt_evaluation_init(rbt_evaluation *evaluation, const rbt_training *training, rbt_error *error)
{
    *evaluation = (rbt_evaluation){.training = training};
    evaluation->w = rbt_try_alloc(training->n, sizeof *evaluation->w);
    rbt_watch_init(&evaluation->watch, training->options, training->n);
    if (evaluation->w == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu parameters (%.0f MB)", training->n,
                        (double)training->n * sizeof(float) / 1e6);
    return RBT_OK;
}

void rbt_evaluation_deinit(rbt_evaluation *evaluation)
{
    rbt_free(evaluation->w);
    rbt_watch_deinit(&evaluation->watch);
}

rbt_progress rbt_progress_of(rbt_worker *observer, uint64_t updates)
{
    const rbt_run *run = observer->run;
    rbt_progress progress = {.clock_min = RBT_UNBOUNDED, .updates = updates - rbt_observed_skipped(observer)};
    uint64_t wait = 0, total = 0, staleness = 0, reads = 0;

    for (uint32_t m = 0; m < run->topology->workers; m++) {
        rbt_published *p = &run->published[m];
        uint64_t clock = rbt_observed_clock(observer, m);
        uint64_t waited = atomic_load_explicit(&p->wait_ns, memory_order_relaxed);

        if (!atomic_load_explicit(&p->is_lost, memory_order_relaxed) && clock < progress.clock_min)
            progress.clock_min = clock;
        progress.clock_max = clock > progress.clock_max ? clock : progress.clock_max;
        progress.samples += atomic_load_explicit(&p->samples, memory_order_relaxed);
        wait += waited;
        total += waited + atomic_load_explicit(&p->compute_ns, memory_order_relaxed) +
                 atomic_load_explicit(&p->communication_ns, memory_order_relaxed);
        staleness += atomic_load_explicit(&p->staleness_sum, memory_order_relaxed);
        reads += atomic_load_explicit(&p->reads, memory_order_relaxed);
    }
    if (progress.clock_min == RBT_UNBOUNDED) /* all have been lost since */
        progress.clock_min = progress.clock_max;
    progress.seconds = (double)rbt_worker_elapsed_ns(observer) / 1e9;
    progress.samples_per_second = progress.seconds > 0 ? (double)progress.samples / progress.seconds : 0;
    progress.wait_fraction = total > 0 ? (double)wait / (double)total : 0;
    progress.staleness_mean = reads > 0 ? (double)staleness / (double)reads : 0;
    progress.bytes_sent = atomic_load_explicit(&run->bytes, memory_order_relaxed);
    return progress;
}

static rbt_err evaluate_valid(rbt_evaluation *evaluation, const rbt_progress *progress, double *loss, rbt_error *error)
{
    const rbt_training *training = evaluation->training;
    rbt_trained trained = {.model = training->model, .shape = training->shape, .n = training->n, .w = evaluation->w};
    rbt_metrics metrics;
    unsigned want =
        RBT_METRIC_BIT(RBT_METRIC_LOSS) | RBT_METRIC_BIT(RBT_METRIC_ACCURACY) | RBT_METRIC_BIT(RBT_METRIC_RMSE);
    rbt_err err = rbt_metrics_compute(&trained, evaluation->valid, want, &metrics, error);

    *loss = NAN;
    if (err != RBT_OK)
        return err;
    *loss = metrics.value[RBT_METRIC_LOSS];
    if (evaluation->on_valid != NULL)
        evaluation->on_valid(evaluation->context, progress->clock_min, progress->seconds, &metrics);
    rbt_metrics_deinit(&metrics);
    return RBT_OK;
}

static rbt_err diverged(const rbt_evaluation *evaluation, const rbt_progress *progress, rbt_error *error)
{
    const rbt_options *options = evaluation->training->options;
    const char *remedy = rbt_training_remedy(options);
    char loss[RBT_REAL_ROOM];

    rbt_text_from_loss(progress->loss, loss);
    if (options->optimizer >= RBT_OPTIMIZER_SDCA)
        return rbt_fail(error, RBT_E_DIVERGED,
                        "training diverged: the objective became %s after clock %llu; use %s%sa larger --l2%s", loss,
                        (unsigned long long)progress->clock_min, remedy != NULL ? remedy : "",
                        remedy != NULL ? " or " : "", options->workers > 1 ? ", or --workers 1" : "");
    return rbt_fail(error, RBT_E_DIVERGED,
                    "training diverged: the objective became %s after clock %llu; use a smaller --lr (it is %g)%s%s",
                    loss, (unsigned long long)progress->clock_min, options->lr, remedy != NULL ? ", or " : "",
                    remedy != NULL ? remedy : "");
}

/* Not of dual ascent, whose objective may be anywhere on its way. */
static bool has_blown_up(const rbt_evaluation *evaluation, double loss)
{
    return evaluation->watch.options->optimizer != RBT_OPTIMIZER_SDCA && loss > BLOW_UP * evaluation->first;
}

rbt_err rbt_evaluation_take(rbt_evaluation *evaluation, double loss, double gap, rbt_progress *progress,
                            rbt_error *error)
{
    double valid = NAN;
    rbt_err err = RBT_OK;

    progress->loss = evaluation->loss = loss;
    evaluation->objectives[evaluation->evaluations++ % RBT_LAST_OBJECTIVES] = loss;
    evaluation->last = *progress;
    if (!evaluation->has_no_loss && (!isfinite(loss) || has_blown_up(evaluation, loss)))
        return diverged(evaluation, progress, error);
    if (evaluation->valid != NULL)
        err = evaluate_valid(evaluation, progress, &valid, error);
    else if (evaluation->validate != NULL)
        err = evaluation->validate(evaluation->validate_context, progress, &valid, error);
    if (err == RBT_OK && evaluation->on_progress != NULL)
        evaluation->on_progress(evaluation->context, progress);
    evaluation->watch.first = evaluation->first;
    if (err == RBT_OK)
        (void)rbt_watch_look(&evaluation->watch, loss, gap, valid, evaluation->w);
    if (evaluation->watch.worse == 0)
        evaluation->best = *progress;
    return err;
}

rbt_err rbt_evaluation_finish(rbt_evaluation *evaluation, rbt_error *error)
{
    double valid;

    if (evaluation->watch.best == NULL || evaluation->evaluations == 0 || evaluation->watch.worse == 0)
        return RBT_OK;
    memcpy(evaluation->w, evaluation->watch.best, evaluation->training->n * sizeof *evaluation->w);
    evaluation->loss = evaluation->watch.best_objective;
    return evaluation->valid != NULL ? evaluate_valid(evaluation, &evaluation->best, &valid, error) : RBT_OK;
}

/* The objective of the parameters just read. */
static rbt_err find_objective(const rbt_evaluation *evaluation, double *objective, rbt_error *error)
{
    const rbt_training *training = evaluation->training;
    double sum = 0;
    rbt_err err = RBT_OK;

    if (evaluation->losses != NULL)
        err = evaluation->losses(evaluation->losses_context, evaluation->w, &sum, error);
    else
        sum = rbt_training_losses(training, evaluation->w);
    *objective = rbt_training_mean(training, evaluation->w, sum);
    return err;
}

/* With --verify: the sum over the probe is the number of clocks all workers have finished, not one more or less. */
static rbt_err check_conservation(rbt_worker *observer, rbt_evaluation *evaluation, rbt_error *error)
{
    int64_t *probe = rbt_alloc(observer->run->topology->workers, sizeof *probe);
    double discarded;
    rbt_err err = rbt_probe_observe(observer, RBT_TABLE_PROBE, probe, error);

    if (err == RBT_OK &&
        evaluation->losses != NULL) /* with the answers come the clocks that workers elsewhere finished */
        err = find_objective(evaluation, &discarded, error);
    if (err == RBT_OK)
        err = rbt_probe_compare(observer, probe, &evaluation->table_sum, error);
    rbt_free(probe);
    return err;
}

uint64_t rbt_evaluation_next(const rbt_worker *observer, const rbt_progress *progress, uint64_t slowest, uint64_t need,
                             uint64_t every)
{
    uint64_t rounds = rbt_rounds(progress->updates, observer->run->topology->workers, slowest);

    return (rounds > need ? rounds : need) + every;
}

rbt_err rbt_evaluation_work(rbt_worker *observer, void *argument, rbt_error *error)
{
    rbt_evaluation *evaluation = argument;
    const rbt_options *options = evaluation->training->options;
    uint64_t slowest = 0, seen = 0, need = options->eval_every > 0 ? options->eval_every : RBT_UNBOUNDED;
    rbt_err err = find_objective(evaluation, &evaluation->first, error);

    if (err == RBT_E_INTERRUPTED) /* nothing will be compared with it */
        err = RBT_OK;
    while (err == RBT_OK && slowest != RBT_UNBOUNDED && evaluation->watch.why == NULL) {
        rbt_progress progress;
        uint64_t updates;
        double objective;

        err = rbt_observe(observer, RBT_TABLE_PARAMETERS, need, evaluation->w, &slowest, error);
        if (err != RBT_OK)
            break;
        updates = rbt_observed_updates(observer, RBT_TABLE_PARAMETERS);
        progress = rbt_progress_of(observer, updates);
        if (evaluation->evaluations == 0 || updates > seen) { /* else nothing has changed */
            seen = updates;
            err = find_objective(evaluation, &objective, error);
            if (err == RBT_E_INTERRUPTED) { /* the parameters are kept all the same */
                evaluation->loss = NAN;
                err = RBT_OK;
            } else if (err == RBT_OK) {
                err = rbt_evaluation_take(evaluation, objective, NAN, &progress, error);
            }
            /* The wish to stop is an objective below every target. */
            rbt_observer_report(observer, slowest, evaluation->watch.why != NULL ? -INFINITY : evaluation->loss);
        }
        if (options->eval_every > 0 && slowest != RBT_UNBOUNDED)
            need = rbt_evaluation_next(observer, &progress, slowest, need, options->eval_every);
    }
    if (err == RBT_OK && options->verify)
        err = check_conservation(observer, evaluation, error);
    return err;
}

void rbt_evaluation_spread(const rbt_evaluation *evaluation, double *minobj, double *varobj)
{
    size_t n = evaluation->evaluations < RBT_LAST_OBJECTIVES ? evaluation->evaluations : RBT_LAST_OBJECTIVES;
    double mean = 0, variance = 0;

    for (size_t i = 0; i < n; i++)
        mean += evaluation->objectives[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (evaluation->objectives[i] - mean) * (evaluation->objectives[i] - mean) / (double)n;
    *minobj = n > 0 ? mean : NAN;
    *varobj = n > 0 ? variance : NAN;
}
