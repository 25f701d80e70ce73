/* How a method does on --valid: told as an event with all its figures. Contract in method_job.h.
 *
 * Called by method_job.c and, through the evaluation, wherever an objective is known while training goes on. What was learned so far
 * can be had between passes in shared memory and from the mean of peers; tables on servers are whole only at the end.
 * Proved by tests/cli/test_mf.sh, test_lda.sh and test_methods.sh. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/loading.h"
#include "job/method_job.h"
#include "model/classes.h"

static double figure(const rbt_figure *figures, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(figures[i].name, name) == 0)
            return figures[i].value;
    return NAN;
}

static rbt_err tell(rbt_method_run *r, const rbt_fitted *fitted, uint64_t clock, double seconds, double *loss,
                    rbt_error *error)
{
    rbt_figure figures[RBT_FIGURES_MOST];
    size_t n = 0;
    rbt_err err = fitted->method->evaluate(fitted, &r->valid, figures, &n, error);

    if (err != RBT_OK)
        return err;
    *loss = figure(figures, n, "loss");
    rbt_job_emit(r->job, &(rbt_event){.kind = RBT_EVENT_EVAL,
                                      .job = r->job,
                                      .eval_clock = clock,
                                      .eval_seconds = seconds,
                                      .eval_loss = *loss,
                                      .eval_accuracy = figure(figures, n, "accuracy"),
                                      .eval_rmse = figure(figures, n, "rmse"),
                                      .eval_figure = figures,
                                      .eval_figures = n});
    return RBT_OK;
}

/* While training: what has been learned by now, and whether it is the best so far. */
static rbt_err validate(void *context, const rbt_progress *progress, double *loss, rbt_error *error)
{
    rbt_method_run *r = context;
    rbt_fitted fitted = {.method = r->plan.method};
    rbt_err err;

    r->plan.result = r->evaluation.w;
    err = r->plan.method->keep(&r->plan, &fitted, error);
    if (err == RBT_OK)
        err = tell(r, &fitted, progress->clock_min, progress->seconds, loss, error);
    if (err == RBT_OK && r->job->options.patience > 0 && isnan(*loss))
        err = rbt_fail(error, RBT_E_USAGE, "--patience watches the loss on --valid, and %s finds none; leave it out",
                       r->plan.method->name);
    if (err == RBT_OK && r->job->options.patience > 0 && *loss < r->evaluation.watch.best_score) {
        rbt_fitted_deinit(&r->best);
        r->best = fitted;
    } else {
        rbt_fitted_deinit(&fitted);
    }
    return err;
}

rbt_err rbt_method_valid_read(rbt_method_run *r, rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    const rbt_method *method = r->plan.method;
    rbt_log log = rbt_job_log(r->job);
    rbt_error reason = {RBT_OK, ""};

    if (options->valid == NULL)
        return RBT_OK;
    if (method->evaluate == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s cannot be evaluated; leave out --valid", method->name);
    if (r->plan.shared || r->plan.peers) {
        r->evaluation.validate = validate;
        r->evaluation.validate_context = r;
    }
    rbt_err err = rbt_loaded_read_data(options, options->valid, method->content, r->data.origin, &log, &r->valid,
                                       &r->valid_report, error);
    if (method->content != RBT_CONTENT_ROWS)
        r->valid_report.unlabelled = 0; /* nobody asks for labels */
    /* Told now, and not when training has ended. */
    if (err == RBT_OK && method->content == RBT_CONTENT_RATINGS && r->data.col_names != NULL &&
        r->valid.col_names == NULL)
        err = rbt_fail(error, RBT_E_DATA,
                       "--valid %s: has no names of users and items, as --data has them; give ratings, as lines "
                       "user::item::rating or a cache of such",
                       options->valid);
    if (err == RBT_OK && method->as_trained != NULL && rbt_labels_check_content(&r->valid, &reason) != RBT_OK)
        err = rbt_fail(error, RBT_E_DATA, "--valid %s: %s", options->valid, reason.text);
    return err;
}

rbt_err rbt_method_valid_finish(rbt_method_run *r, rbt_error *error)
{
    const rbt_job *job = r->job;
    bool told = r->evaluation.validate != NULL && r->evaluation.evaluations > 0 &&
                (job->options.patience == 0 || r->evaluation.watch.worse == 0);
    bool is_best = job->options.patience > 0 && r->evaluation.evaluations > 0; /* and not what came last */
    double loss;

    if (job->options.valid == NULL || told)
        return RBT_OK;
    return tell(r, &job->fitted, is_best ? r->evaluation.best.clock_min : job->result.clocks,
                is_best ? r->evaluation.best.seconds : job->result.seconds, &loss, error);
}
