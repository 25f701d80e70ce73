/* Training a method in shared memory: a thread per worker, pass after pass (`pass` of rbt_method). Called by method_job.c.
 *
 * What workers tell of a pass is added up in the order of workers, so with one worker a job has the same bits every time.
 * Proved by tests/cli/test_mf.sh and tests/unit/test_mf.c. */
#include <math.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"
#include "job/method_job.h"
#include "job/text.h"
#include "solve/problem.h"

typedef struct method_worker {
    rbt_told told; /* this pass */
    rbt_err err;
    rbt_error error;
    uint64_t pass_ns;
    uint64_t compute_ns, wait_ns, slowed_ns, samples;
} method_worker;

typedef struct passes {
    rbt_plan *plan;
    const rbt_stragglers *stragglers;
    method_worker *worker;
    uint64_t pass;
} passes;

static void work(void *context, uint32_t thread)
{
    passes *p = context;
    method_worker *me = &p->worker[thread];
    uint64_t began = rbt_now_ns();
    double factor = rbt_stragglers_factor(p->stragglers, thread, p->pass);

    me->told = (rbt_told){0};
    me->err = p->plan->method->pass(p->plan, thread, p->pass, &me->told, &me->error);
    me->pass_ns = rbt_now_ns() - began;
    if (factor > 1) { /* a straggler takes longer than it needs */
        uint64_t more = (uint64_t)((factor - 1) * (double)me->pass_ns);
        struct timespec rest = {(time_t)(more / 1000000000), (long)(more % 1000000000)};

        nanosleep(&rest, NULL);
        me->slowed_ns += more;
        me->pass_ns += more;
    }
}

/* A pass by all; its objective, NAN when the method has none. */
static rbt_err pass(passes *p, rbt_team *team, double *objective, rbt_error *error)
{
    uint64_t began = rbt_now_ns(), took;
    double sum = 0, weight = 0;
    char text[RBT_REAL_ROOM];

    rbt_team_run(team, work, p);
    took = rbt_now_ns() - began;
    for (uint32_t m = 0; m < p->plan->workers; m++) {
        method_worker *w = &p->worker[m];

        if (w->err != RBT_OK)
            return rbt_fail(error, w->err, "%s", w->error.text);
        sum += w->told.sum;
        weight += (double)w->told.weight;
        w->samples += w->told.weight;
        w->compute_ns += w->pass_ns;
        w->wait_ns += took > w->pass_ns ? took - w->pass_ns : 0;
    }
    *objective = p->plan->method->objective != NULL && weight > 0 ? sum / weight : NAN;
    if (p->plan->method->objective != NULL && !isfinite(*objective))
        return rbt_fail(error, RBT_E_DIVERGED,
                        "training diverged: the objective (%s) became %s in pass %llu; use a smaller --lr, or other "
                        "options",
                        p->plan->method->objective, rbt_text_from_loss(*objective, text),
                        (unsigned long long)p->pass + 1);
    p->pass++;
    return RBT_OK;
}

static rbt_progress progress_of(const passes *p, uint64_t began_ns)
{
    rbt_progress progress = {.clock_min = p->pass,
                             .clock_max = p->pass,
                             .seconds = (double)(rbt_now_ns() - began_ns) / 1e9,
                             .updates = p->pass * p->plan->workers};
    double wait = 0, total = 0;

    for (uint32_t m = 0; m < p->plan->workers; m++) {
        progress.samples += p->worker[m].samples;
        wait += (double)p->worker[m].wait_ns;
        total += (double)p->worker[m].wait_ns + (double)p->worker[m].compute_ns;
    }
    progress.samples_per_second = progress.seconds > 0 ? (double)progress.samples / progress.seconds : 0;
    progress.wait_fraction = total > 0 ? wait / total : 0;
    return progress;
}

static void count(rbt_job *job, const passes *p, uint64_t began_ns)
{
    rbt_progress progress = progress_of(p, began_ns);
    rbt_result *result = &job->result;

    *result = (rbt_result){.seconds = progress.seconds,
                           .seed = job->options.seed,
                           .threads = p->plan->workers,
                           .workers = p->plan->workers,
                           .clocks = p->pass,
                           .updates = progress.updates,
                           .wait_fraction = progress.wait_fraction,
                           .interrupted = atomic_load(job->stop)};
    result->seconds_per_update = result->updates > 0 ? result->seconds / (double)result->updates : 0;
    rbt_free(job->reports);
    result->worker = job->reports = rbt_alloc(result->workers, sizeof *job->reports);
    for (size_t m = 0; m < result->workers; m++)
        job->reports[m] = (rbt_worker_report){.compute_seconds = (double)p->worker[m].compute_ns / 1e9,
                                              .wait_seconds = (double)p->worker[m].wait_ns / 1e9,
                                              .slowed_seconds = (double)p->worker[m].slowed_ns / 1e9,
                                              .rows = p->worker[m].told.rows,
                                              .nonzeros = p->worker[m].told.weight, /* of a pass: ratings */
                                              .clocks = p->pass,
                                              .samples = p->worker[m].samples};
}

rbt_err rbt_method_shared_run(rbt_method_run *r, rbt_error *error)
{
    const rbt_plan *plan = &r->plan;
    const atomic_bool *interrupted = r->job->stop;
    uint64_t most = r->planned.clocks, every = r->job->options.eval_every, began_ns;
    passes p = {
        .plan = &r->plan, .stragglers = &r->setup.stragglers, .worker = rbt_alloc(plan->workers, sizeof *p.worker)};
    rbt_team *team = NULL;
    rbt_err err = rbt_team_create(plan->workers, &team, error);

    began_ns = rbt_now_ns();
    while (err == RBT_OK && p.pass < most && r->evaluation.watch.why == NULL && !atomic_load(interrupted)) {
        double objective = NAN;

        err = pass(&p, team, &objective, error);
        if (err == RBT_OK && (p.pass == most || atomic_load(interrupted) || (every > 0 && p.pass % every == 0))) {
            rbt_progress progress = progress_of(&p, began_ns);
            uint64_t paused_ns = rbt_now_ns();

            err = rbt_evaluation_take(&r->evaluation, objective, NAN, &progress, error);
            began_ns += rbt_now_ns() - paused_ns; /* validation is not training */
        }
    }
    if (err == RBT_OK)
        count(r->job, &p, began_ns);
    rbt_team_destroy(team);
    rbt_free(p.worker);
    return err;
}
