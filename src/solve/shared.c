/* Training in shared memory. Contract in shared.h; proved by tests/unit/test_shared_local.c. */
#include "solve/shared.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/time.h"
#include "model/link.h"
#include "model/model.h"
#include "solve/newton.h"
#include "solve/proof.h"
#include "solve/sdca.h"

#define WRONG 1.5  /* times the objective of the pass before: additions were lost that mattered */
#define PACE  4    /* passes, after which ... */
#define SLOW  0.6  /* ... more than this of the gap is left ... */
#define NEAR  0.02 /* ... of at most this share of the objective: lost additions keep it from falling */
#define FEW   256  /* rows: threads that help each other take at least so many at once */

#define DUAL_VISITS 16 /* of a feature, by all threads, between two meetings of the copies of dual steps */

#define OTHERS 0.5 /* of another thread's steps on copies a dual step reckons with */

/* One worker: its rows in the order of this pass, and its place in the walk. */
typedef struct worker {
    uint32_t *order;
    size_t n;
    atomic_size_t next; /* of these rows, to be taken; n between passes */
    float *own;         /* psgd: parameters of its own */
    rbt_walker walker;
    uint64_t pass_ns; /* this pass */
    char apart[128];  /* from the next one: each is written with every row */
} worker;

typedef struct training {
    const rbt_problem *problem;
    const rbt_shared_options *options;
    const rbt_shards *shards;
    rbt_team *team;
    float *w;
    uint32_t workers;
    worker *worker;
    rbt_shared_worker *reports;
    size_t turns; /* rows of the largest worker */
    rbt_walk walk;
    rbt_sgd sgd;
    rbt_sdca sdca;
    rbt_newton *newton;
    double objective; /* newton, sdca: after the last iteration, ... */
    double gap;       /* ... and about how far that is above the optimum; sdca: the gap some passes ago */
    float *mean;      /* asgd, psgd: the parameters looked at; sdca with l1: after thresholding */
    uint64_t clock;
    double rate; /* of this pass */
    double bend;
    double visits; /* after which what threads have copies of is exchanged; 0: they have none */
    bool may_copy;
    bool help;       /* a thread that has done its rows takes over some of the others' */
    bool alone;      /* the workers go one after the other from now on, ... */
    uint32_t *mixed; /* ... and through these rows: of all of them, as if there were one worker */
} training;

/* -------------------------------------------------------------------------------------------------- setting up */

static bool is_dual(const training *t)
{
    return t->options->optimizer == RBT_OPTIMIZER_SDCA;
}

static bool is_newton(const training *t)
{
    return t->options->optimizer == RBT_OPTIMIZER_NEWTON;
}

static rbt_err make_workers(training *t, const rbt_shards *shards, rbt_error *error)
{
    t->workers = shards->workers;
    t->worker = rbt_alloc(t->workers, sizeof *t->worker);
    for (uint32_t m = 0; m < t->workers; m++) {
        worker *me = &t->worker[m];
        me->n = shards->shard[m].n;
        atomic_init(&me->next, me->n);
        if (is_newton(t)) /* whose passes go through the rows as they are */
            continue;
        me->order = rbt_try_alloc_raw(me->n, sizeof *me->order);
        if (t->options->average)
            me->own = rbt_try_alloc(t->problem->n, sizeof *me->own);
        if (me->order == NULL || (t->options->average && me->own == NULL))
            return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %u workers; use fewer --workers", t->workers);
        memcpy(me->order, shards->shard[m].rows, me->n * sizeof *me->order);
        if (me->own != NULL)
            memcpy(me->own, t->w, t->problem->n * sizeof *me->own);
        t->turns = me->n > t->turns ? me->n : t->turns;
        rbt_walker_init(&me->walker, &t->walk, me->own != NULL ? me->own : t->w, m);
    }
    return RBT_OK;
}

static rbt_err make_solver(training *t, rbt_error *error)
{
    if (is_dual(t))
        return rbt_sdca_init(&t->sdca, t->problem, t->team, error);
    if (is_newton(t))
        return rbt_newton_create(t->problem, t->team, &t->newton, error);
    return rbt_sgd_init(&t->sgd, t->problem, t->options->optimizer, t->options->momentum, t->team, error);
}

/* Copies that are added together suit plain steps, whose l1 makes zeros that would not survive it, and dual steps, which
 * do not bear the delay of a thread that waits for a processor. Other optimizers share more than the parameters. */
static bool may_copy(const training *t, uint32_t workers)
{
    bool plain = t->options->optimizer == RBT_OPTIMIZER_SGD && t->problem->l1 == 0;
    return t->options->access == RBT_ACCESS_HOGWILD && workers > 1 &&
           (plain || (is_dual(t) && rbt_team_fits(t->team))) && rbt_replicas_pay(t->problem, workers);
}

/* How much of its own error a typical row's step takes away, per unit of the rate. */
static double find_bend(const rbt_problem *p)
{
    double bend = p->model->link != NULL ? p->model->link->steepest : 1;
    return (isfinite(bend) ? bend : 1) * rbt_squares_of_row(p->data);
}

/* After how many visits the threads' copies meet; 0: threads share the parameters. Dual steps take all of a row's error away; they
 * also reckon with what the others may do meanwhile (as CoCoA+ does, Ma et al. 2015, which reckons with all of it, as its
 * workers meet after whole passes). */
static double visits_between(const training *t)
{
    if (!t->may_copy || t->alone)
        return 0;
    return is_dual(t) ? DUAL_VISITS : rbt_replicas_visits(t->workers, t->rate * t->bend);
}

static void choose_copies(training *t)
{
    rbt_replicas **copies = &t->walk.replicas;
    double visits = visits_between(t);
    if (visits == t->visits)
        return;
    t->visits = visits;
    rbt_replicas_destroy(*copies);
    *copies = visits > 0 ? rbt_replicas_create(t->problem, t->w, t->workers, visits) : NULL;
    if (visits > 0 && *copies == NULL) /* without the memory it goes on as before */
        t->may_copy = false;
    t->walk.caution = *copies != NULL ? 1 + (t->workers - 1) * OTHERS : 1;
    for (uint32_t m = 0; m < t->workers; m++)
        t->worker[m].walker.w = *copies != NULL ? rbt_replicas_of(*copies, m) : t->w;
}

static rbt_err set_up(training *t, const rbt_shards *shards, rbt_error *error)
{
    const rbt_problem *p = t->problem;
    bool needs_mean = t->options->average || t->options->optimizer == RBT_OPTIMIZER_ASGD || (is_dual(t) && p->l1 > 0);
    rbt_err err = rbt_walk_init(&t->walk, p, t->options->access, shards->workers, error);
    if (err == RBT_OK && needs_mean) {
        t->mean = rbt_try_alloc(p->n, sizeof *t->mean);
        if (t->mean == NULL)
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the mean of %zu parameters", p->n);
    }
    if (err == RBT_OK)
        err = make_solver(t, error);
    if (err != RBT_OK)
        return err;
    if (is_dual(t))
        rbt_sdca_attach(&t->sdca, &t->walk);
    else
        rbt_sgd_attach(&t->sgd, &t->walk);
    if (t->options->access == RBT_ACCESS_ROUND_ROBIN) /* all look before any moves: they may move the same way */
        t->walk.caution = shards->workers;
    t->may_copy = may_copy(t, shards->workers);
    t->bend = t->may_copy && !is_dual(t) ? find_bend(p) : 0;
    t->help = (t->options->access == RBT_ACCESS_HOGWILD || t->options->access == RBT_ACCESS_AIG) &&
              shards->workers > 1 && shards->block_rows == 0 && t->options->slow == NULL;
    return make_workers(t, shards, error);
}

static void tear_down(training *t)
{
    for (uint32_t m = 0; t->worker != NULL && m < t->workers; m++) {
        rbt_walker_deinit(&t->worker[m].walker);
        rbt_free(t->worker[m].order);
        rbt_free(t->worker[m].own);
    }
    rbt_free(t->worker);
    rbt_free(t->mixed);
    rbt_free(t->mean);
    rbt_sgd_deinit(&t->sgd);
    rbt_sdca_deinit(&t->sdca);
    rbt_newton_destroy(t->newton);
    rbt_replicas_destroy(t->walk.replicas);
    rbt_walk_deinit(&t->walk);
}

/* ------------------------------------------------------------------------------------------------------ passes */

/* A straggler takes longer than it needs. */
static uint64_t slow_down(const training *t, uint32_t m, uint64_t took_ns)
{
    double factor = t->options->slow != NULL ? t->options->slow(t->options->slow_context, m, t->clock) : 1;
    uint64_t more = factor > 1 ? (uint64_t)((factor - 1) * (double)took_ns) : 0;
    struct timespec rest = {(time_t)(more / 1000000000), (long)(more % 1000000000)};
    if (more > 0)
        nanosleep(&rest, NULL);
    return more;
}

/* Takes rows of a worker, from `*at` on; returns how many. Of streamed data those of a block; where threads help each
 * other fewer and fewer, so that all end together; else all. */
static size_t take(const training *t, worker *of, size_t *at)
{
    size_t first = atomic_load_explicit(&of->next, memory_order_acquire), left = 0, n = 0;
    do {
        left = of->n - first;
        n = t->help ? (left / (2 * t->workers) / FEW + 1) * FEW
                    : rbt_shards_together(t->shards, of->order, first, left);
        n = n < left ? n : left;
    } while (n > 0 && !atomic_compare_exchange_weak_explicit(&of->next, &first, first + n, memory_order_acquire,
                                                             memory_order_acquire));
    *at = first;
    return n;
}

/* Visits the rows of a worker that nobody has taken yet. */
static size_t visit(training *t, worker *me, worker *of)
{
    size_t visited = 0;
    for (size_t at = 0, n; (n = take(t, of, &at)) > 0; visited += n) {
        rbt_walker_rows(&me->walker, of->order + at, n, t->help ? of->n - at : n);
        rbt_shards_release(t->shards, t->problem->data, of->order, of->n, at, n);
    }
    return visited;
}

static void work(void *context, uint32_t thread)
{
    training *t = context;
    worker *me = &t->worker[thread];
    uint64_t began = rbt_now_ns();
    rbt_rng rng = rbt_rng_stream(t->options->seed, RBT_STREAM_BATCH, t->clock * t->workers + thread);
    if (t->mixed == NULL)
        rbt_shards_shuffle(t->shards, thread, &rng, me->order);
    atomic_store_explicit(&me->next, 0, memory_order_release);
    me->walker.rate = t->rate;
    me->walker.step = thread;
    if (t->options->optimizer == RBT_OPTIMIZER_ADAM)
        me->walker.step += t->clock * t->problem->data->rows;
    me->walker.loss = 0;
    if (t->walk.replicas != NULL)
        rbt_replicas_begin(t->walk.replicas, thread);
    t->reports[thread].samples += visit(t, me, me);
    rbt_walker_pass_turns(&me->walker, t->turns - me->n);
    for (uint32_t m = 1; t->help && m < t->workers; m++)
        t->reports[thread].samples += visit(t, me, &t->worker[(thread + m) % t->workers]);
    if (t->walk.replicas != NULL)
        rbt_replicas_end(t->walk.replicas, thread);
    me->pass_ns = rbt_now_ns() - began;
    uint64_t slowed = slow_down(t, thread, me->pass_ns);
    me->pass_ns += slowed;
    t->reports[thread].slowed_ns += slowed;
}

static void settle(void *context, uint32_t thread)
{
    const training *t = context;
    rbt_replicas_settle(t->walk.replicas, thread);
}

/* An iteration of Newton's method: the threads share its passes evenly. */
static void iterate(training *t)
{
    uint64_t began = rbt_now_ns(), visits = 0, rows = t->problem->data->rows;
    t->objective = rbt_newton_iterate(t->newton, t->w, t->options->close, &t->gap, &visits);
    for (uint32_t m = 0; m < t->workers; m++) {
        t->reports[m].compute_ns += rbt_now_ns() - began;
        t->reports[m].samples += visits / rows * t->worker[m].n + visits % rows * t->worker[m].n / rows;
    }
    t->clock++;
}

/* Rows that are always in different parts of a pass come to terms with each other slowly: workers that go one after the other
 * go through a random order of all rows. */
static void mix(training *t)
{
    size_t rows = t->problem->data->rows, at = 0;
    rbt_rng rng = rbt_rng_stream(t->options->seed, RBT_STREAM_BATCH, t->clock * t->workers);
    if (t->shards->block_rows > 0) /* streamed: blocks are read one after the other */
        return;
    if (t->mixed == NULL && (t->mixed = rbt_try_alloc_raw(rows, sizeof *t->mixed)) == NULL)
        return;
    for (size_t r = 0; r < rows; r++)
        t->mixed[r] = (uint32_t)r;
    rbt_rng_shuffle_u32(&rng, t->mixed, rows);
    for (uint32_t m = 0; m < t->workers; at += t->worker[m++].n)
        memcpy(t->worker[m].order, t->mixed + at, t->worker[m].n * sizeof *t->mixed);
}

static void pass(training *t)
{
    uint64_t began = rbt_now_ns();
    if (is_newton(t)) {
        iterate(t);
        return;
    }
    if (t->options->optimizer == RBT_OPTIMIZER_ASGD) /* the mean is of one pass, whether it is looked at or not */
        rbt_sgd_reset(&t->sgd);
    atomic_store_explicit(&t->walk.number, 0, memory_order_relaxed);
    if (!is_dual(t)) {
        t->rate = t->options->rate(t->options->rate_context, t->clock);
        rbt_sgd_begin(&t->sgd, t->rate);
    } else {
        rbt_sdca_begin(&t->sdca, t->w);
    }
    choose_copies(t);
    if (t->alone)
        mix(t);
    if (t->alone)
        for (uint32_t m = 0; m < t->workers; m++)
            work(t, m);
    else
        rbt_team_run(t->team, work, t);
    if (t->walk.replicas != NULL)
        rbt_team_run(t->team, settle, t);
    uint64_t took = rbt_now_ns() - began;
    for (uint32_t m = 0; m < t->workers; m++) {
        t->reports[m].compute_ns += t->worker[m].pass_ns;
        t->reports[m].wait_ns += took > t->worker[m].pass_ns ? took - t->worker[m].pass_ns : 0;
    }
    t->clock++;
}

/* The parameters as they would be if this were the last pass. */
static float *parameters(training *t)
{
    const rbt_problem *p = t->problem;
    if (is_dual(t) && p->l1 > 0) {
        rbt_sdca_parameters(&t->sdca, t->w, t->mean);
    } else if (t->options->optimizer == RBT_OPTIMIZER_ASGD && t->options->access != RBT_ACCESS_ALONE) {
        rbt_sgd_average(&t->sgd, t->w, p->data->rows, t->mean);
    } else if (t->options->average) {
        memset(t->mean, 0, p->n * sizeof *t->mean);
        for (uint32_t m = 0; m < t->workers; m++)
            for (size_t i = 0; i < p->n; i++)
                t->mean[i] += t->worker[m].own[i] / (float)t->workers;
    } else {
        return t->w;
    }
    return t->mean;
}

/* Threads without locks or copies lose additions: the parameters are then not quite what the dual variables say, and good
 * as they may be, the gap does not tell. When it looks small enough to end, or when things go wrong, the parameters are
 * put together anew; if that makes a difference, the rest of the way is gone without company. */
static void check_drift(training *t, double *objective, double *gap)
{
    const rbt_problem *p = t->problem;
    bool wrong = t->clock > 1 && !(*objective < WRONG * t->objective);
    if (t->options->access != RBT_ACCESS_HOGWILD || t->workers == 1 || t->alone ||
        (!wrong && (t->walk.replicas != NULL || *gap > t->options->close * fabs(*objective))))
        return;
    float *drifted = rbt_alloc(p->n, sizeof *drifted);
    double drift = 0;
    memcpy(drifted, t->w, p->n * sizeof *drifted);
    rbt_sdca_restore(&t->sdca, t->w, t->team);
    for (size_t i = 0; i < p->weights; i++)
        drift += p->l2 / 2 * ((double)t->w[i] - (double)drifted[i]) * ((double)t->w[i] - (double)drifted[i]);
    t->alone = wrong || *gap + drift > t->options->close * fabs(*objective);
    if (t->alone) {
        *objective = rbt_sdca_settle(&t->sdca, t->w, t->team, gap);
    } else {
        memcpy(t->w, drifted, p->n * sizeof *drifted);
        *gap += drift;
    }
    rbt_free(drifted);
}

/* Threads that lose additions come only so near: where the gap is small already and hardly falls any more, the rest of the way
 * is gone without company, too. */
static void check_pace(training *t, double *objective, double *gap)
{
    if (t->options->access != RBT_ACCESS_HOGWILD || t->workers == 1 || t->alone || t->clock % PACE != 0)
        return;
    t->alone = t->clock > PACE && *gap > SLOW * t->gap && *gap <= NEAR * fabs(*objective);
    t->gap = *gap;
    if (t->alone) {
        rbt_sdca_restore(&t->sdca, t->w, t->team);
        *objective = rbt_sdca_settle(&t->sdca, t->w, t->team, gap);
    }
}

static double settle_dual(training *t, double *gap)
{
    double objective = rbt_sdca_settle(&t->sdca, t->w, t->team, gap);
    if (t->walk.replicas != NULL && t->clock > 1 &&
        t->sdca.fell) /* those told too late had better share the parameters */
        t->may_copy = false;
    check_drift(t, &objective, gap);
    check_pace(t, &objective, gap);
    if (t->problem->shape->bias && *gap <= t->options->close * fabs(objective)) /* so far an estimate */
        *gap = rbt_sdca_prove(&t->sdca, objective, t->team);
    return t->objective = objective;
}

static bool is_looked_at(const training *t)
{
    const rbt_shared_options *o = t->options;
    return t->clock == o->clocks || (o->eval_every > 0 && t->clock % o->eval_every == 0);
}

static bool look(training *t, bool looked_at, rbt_shared_listener *listener, void *context)
{
    rbt_shared_pass state = {.clock = t->clock, .gap = NAN};
    if (is_dual(t) && (looked_at || t->problem->shape->bias)) /* the next pass needs the biases */
        state.objective = settle_dual(t, &state.gap);
    if (looked_at) {
        state.w = parameters(t);
        if (is_newton(t)) {
            state.objective = t->objective;
            state.gap = t->gap;
        } else if (!is_dual(t)) {
            state.objective = rbt_problem_objective(t->problem, state.w, t->team);
        }
    }
    return listener(context, &state);
}

rbt_err rbt_shared_train(const rbt_problem *problem, const rbt_shared_options *options, const rbt_shards *shards,
                         rbt_team *team, float *w, rbt_shared_worker *workers, rbt_shared_listener *listener,
                         void *context, rbt_error *error)
{
    training t = {.problem = problem,
                  .options = options,
                  .shards = shards,
                  .team = team,
                  .w = w,
                  .reports = workers,
                  .objective = INFINITY,
                  .gap = INFINITY};
    rbt_err err = set_up(&t, shards, error);
    if (err == RBT_OK) {
        bool more = true;
        while (more && t.clock < options->clocks) {
            pass(&t);
            more = look(&t, is_looked_at(&t), listener, context);
        }
        if (t.clock > 0 && !is_looked_at(&t)) /* ended from outside: what there is shall be known */
            (void)look(&t, true, listener, context);
        if (t.mean != NULL) /* what was looked at last */
            memcpy(w, t.mean, problem->n * sizeof *w);
    }
    tear_down(&t);
    return err;
}
