/* Lasso: linear regression with an L1 penalty by parallel coordinate descent, for few rows and many features.
 *
 *     minimise  sum_i omega_i (y_i - x_i w - b)^2 / 2 + l1 |w|_1,    omega_i: the row's share of all weights (1 / rows)
 *
 * Every worker owns features, drawn at random, and keeps the residual of all rows. In a clock it reads w, folds what others
 * have changed into its residual, and goes through its own features: once all, then a few times those that are not zero.
 * The intercept follows from w (residuals have the mean 0), so nobody has to share it.
 *
 * Workers that change correlated features at the same time overshoot together. Three things are done about it:
 *   - Features that are not zero, which are few and coupled, are the affair of worker 0 alone (--nonzeros); the others only bring in their
 *     zeros. So what many would undo for each other is solved by one, while the long pass over all features stays parallel.
 *   - A worker counts its own change of the residual `spread` times (Smith et al., ProxCoCoA+): with `spread` = workers no clock
 *     under BSP makes the objective worse, since |sum of M changes|^2 <= M * sum of |change|^2; for worker 0 against the
 *     others 2 is enough. Most data need less: spread shrinks while the objective falls, and doubles when it has risen; it is then not
 *     judged again until the effect has been seen, and comes down only slowly to where it was. With one worker it is 1,
 *     and this is plain coordinate descent.
 *   - A worker whose copy of w, allowed by the bound, has no news of others asks the servers for theirs, which waits for nobody. With a
 *     residual without news it does nothing for 1 + s clocks (s: the staleness). And should
 *     the objective ever be above that of no weights at all, workers take their features back to zero and go on with a spread
 *     that bears all that can be under way, workers * (1 + 2 s). So nothing diverges, however stale residuals are.
 *
 * A path goes from the least l1 for which all weights are zero down to --l1 in even ratios, each solution starting from the
 * one before; clocks are dealt out evenly, and in the last of each every worker sees to its own features, which it keeps. What was
 * learned is applied in lasso_fitted.c.
 * Proved by tests/unit/test_lasso.c and tests/cli/test_lasso.sh.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "method/columns.h"
#include "method/lasso.h"
#include "method/method.h"
#include "method/weights.h"

#define SPREAD_FALLS    0.9
#define SPREAD_RISES    2.0
#define SPREAD_MOST     64.0 /* times workers */
#define FLOOR           1.2  /* times the spread at which the objective rose: not below that for a while */
#define FLOOR_FALLS     0.98
#define RETREAT         1.001 /* times the objective without weights */
#define STALENESS_MOST  64u   /* nobody is believed to be further behind, and that without a bound */
#define STALENESS_NONE  4u
#define TINY_RISE       1e-9 /* rounding is no rise */
#define STREAM_FEATURES 1

static const rbt_method_option lasso_options[] = {
    {.name = "path",
     .fallback = 1,
     .least = 1,
     .most = 10000,
     .whole = true,
     .about = "lasso: solutions for so many strengths of the penalty, down to --l1."},
    {.name = "inner",
     .fallback = 5,
     .least = 0,
     .most = 1000,
     .whole = true,
     .about = "lasso: passes over a worker's features that are not zero, per clock, after one over all."},
    {.name = "nonzeros",
     .fallback = 0,
     .words = "one|all",
     .about = "lasso: features that are not zero are worker 0's, or stay with those that own them."},
    {0}};

typedef struct lasso_state {
    rbt_table weights, path;
    rbt_columns columns;
    double *omega;           /* per row */
    double *y;               /* per row, less its mean if there is an intercept */
    double mean;             /* of the labels, or 0 */
    double *center, *square; /* per column: its mean (0 without intercept) and mean square about it */
    uint32_t *order;         /* features at random: owner of order[k] is worker k % workers */
    bool is_spread;          /* features stay with their owners even if they are not zero */
    size_t steps;            /* of the path */
    double most;             /* the least l1 for which all weights are zero */
    double zero;             /* the objective then */
} lasso_state;

/* x_j . r, weighted, for a residual of mean 0. */
static double column_dot(const lasso_state *s, size_t j, const double *r, double shift)
{
    const rbt_columns *c = &s->columns;
    double dot = 0;

    for (size_t i = c->start[j]; i < c->start[j + 1]; i++)
        dot += s->omega[c->row[i]] * (double)c->value[i] * r[c->row[i]];
    return dot - shift * s->center[j];
}

/* r -= by * x_j. The residual proper is r - shift. */
static void column_take(const lasso_state *s, size_t j, double by, double *r, double *shift)
{
    const rbt_columns *c = &s->columns;

    for (size_t i = c->start[j]; i < c->start[j + 1]; i++)
        r[c->row[i]] -= by * (double)c->value[i];
    *shift -= by * s->center[j];
}

/* What the labels and columns come to. */
static void measure_columns(const rbt_plan *plan, lasso_state *s)
{
    const rbt_data *data = plan->data;
    const rbt_columns *c = &s->columns;
    double total = 0;

    for (size_t r = 0; r < data->rows; r++)
        total += rbt_data_weight(data, r);
    for (size_t r = 0; r < data->rows; r++) {
        s->omega[r] = rbt_data_weight(data, r) / total;
        s->mean += plan->bias ? s->omega[r] * (double)data->label[r] : 0;
    }
    for (size_t r = 0; r < data->rows; r++) {
        s->y[r] = (double)data->label[r] - s->mean;
        s->zero += s->omega[r] * s->y[r] * s->y[r] / 2;
    }
    for (size_t j = 0; j < c->cols; j++) {
        for (size_t i = c->start[j]; i < c->start[j + 1]; i++) {
            double x = (double)c->value[i], part = s->omega[c->row[i]] * x;

            s->center[j] += plan->bias ? part : 0;
            s->square[j] += part * x;
        }
        s->square[j] = fmax(0, s->square[j] - s->center[j] * s->center[j]);
        s->most = fmax(s->most, fabs(column_dot(s, j, s->y, 0)));
    }
}

static rbt_err lasso_plan(rbt_plan *plan, rbt_error *error)
{
    lasso_state *s = plan->state = rbt_alloc(1, sizeof *s);
    const rbt_data *data = plan->data;
    rbt_shape shape = {0};
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_METHOD, STREAM_FEATURES);
    rbt_err err = rbt_shape_set_numbers(data, &shape, error);

    rbt_shape_deinit(&shape);
    if (err == RBT_OK && !(plan->l1 > 0))
        err = rbt_fail(error, RBT_E_USAGE, "lasso needs the strength of its penalty; give --l1 above 0");
    if (err == RBT_OK && plan->l2 > 0)
        err = rbt_fail(error, RBT_E_USAGE, "--l2 makes no sense for lasso; leave it out, or train linear");
    if (err == RBT_OK)
        err = rbt_columns_create(data, NULL, data->rows, &s->columns, error);
    if (err != RBT_OK)
        return err;
    s->omega = rbt_try_alloc(data->rows, sizeof *s->omega);
    s->y = rbt_try_alloc(data->rows, sizeof *s->y);
    s->center = rbt_try_alloc(data->cols, sizeof *s->center);
    s->square = rbt_try_alloc(data->cols, sizeof *s->square);
    s->order = rbt_try_alloc(data->cols, sizeof *s->order);
    if (s->omega == NULL || s->y == NULL || s->center == NULL || s->square == NULL || s->order == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu rows and %zu features", data->rows, data->cols);
    measure_columns(plan, s);
    for (size_t j = 0; j < data->cols; j++)
        s->order[j] = (uint32_t)j;
    rbt_rng_shuffle_u32(&rng, s->order, data->cols);
    s->is_spread = rbt_plan_option(plan, "nonzeros") > 0;
    s->steps = (size_t)rbt_plan_option(plan, "path");
    if (s->steps > rbt_plan_clocks(plan) - plan->method->closing)
        return rbt_fail(error, RBT_E_USAGE, "--path %zu needs at least as many clocks; give more --epochs", s->steps);
    err = rbt_plan_table(plan, &(rbt_table_spec){.name = "weights", .rows = 1, .cols = data->cols, .type = RBT_F32},
                         &s->weights, error);
    if (err == RBT_OK)
        err = rbt_plan_table(
            plan,
            &(rbt_table_spec){.name = "path", .rows = s->steps, .cols = data->cols, .type = RBT_F32, .sparse = true},
            &s->path, error);
    return err;
}

static void lasso_end(rbt_plan *plan)
{
    lasso_state *s = plan->state;

    if (s == NULL)
        return;
    rbt_columns_destroy(&s->columns);
    rbt_free(s->omega);
    rbt_free(s->y);
    rbt_free(s->center);
    rbt_free(s->square);
    rbt_free(s->order);
    rbt_free(s);
}

/* The penalty of a step of the path: the last is --l1. */
static double penalty_at(const rbt_plan *plan, size_t step)
{
    const lasso_state *s = plan->state;

    if (step + 1 >= s->steps || s->most <= plan->l1)
        return plan->l1;
    return s->most * pow(plan->l1 / s->most, (double)(step + 1) / (double)s->steps);
}

/* Which step of the path a clock is for. */
static size_t step_of(const rbt_plan *plan, uint64_t clock)
{
    const lasso_state *s = plan->state;
    uint64_t clocks = rbt_plan_clocks(plan) - plan->method->closing;
    size_t step = (size_t)((double)clock * (double)s->steps / (double)clocks);

    return step < s->steps ? step : s->steps - 1;
}

/* ---------------------------------------------------------------------------------------------------------- work */

typedef struct lasso_worker {
    double *r, *mine; /* the residual, and that of the worker's own problem */
    double shift;
    float *seen, *read; /* w that r is for; as it was read */
    float *expected;    /* w if nobody else had changed it */
    uint64_t acted;     /* one past the clock in which it last did something */
    double *v;          /* w with the worker's own changes */
    uint32_t *list;     /* the features that are this clock's */
    size_t count;
    uint64_t *keys; /* of what has changed */
    float *deltas;
    double spread, floor;
    double before;     /* objective when it was last judged, at the same penalty */
    uint64_t judge_at; /* not before this clock */
    bool has_risen, has_news;
    size_t step;
} lasso_worker;

/* Takes w as it was read: whether others have changed it, and what changes the residual. */
static void fold(const lasso_state *s, lasso_worker *w)
{
    RBT_ASSERT(w->read != NULL && w->seen != NULL && w->expected != NULL); /* lasso_work has seen to it */
    for (size_t j = 0; j < s->columns.cols; j++) {
        w->has_news = w->has_news || w->read[j] != w->expected[j];
        w->expected[j] = w->read[j];
        if (w->read[j] != w->seen[j]) {
            column_take(s, j, (double)w->read[j] - (double)w->seen[j], w->r, &w->shift);
            w->seen[j] = w->read[j];
        }
    }
}

/* Reads w and folds the changes in. When the copy at hand, which the bound allows, has nothing new, the servers are asked: that
 * waits for an answer, not for the slowest, and without news the clock would be lost. */
static rbt_err catch_up(rbt_worker *worker, const rbt_plan *plan, lasso_worker *w, rbt_error *error)
{
    const lasso_state *s = plan->state;
    bool bounded = plan->staleness > 0 && plan->staleness != RBT_UNBOUNDED;
    rbt_err err = rbt_get_row(worker, s->weights, 0, RBT_STALENESS_OF_JOB, w->read, error);

    w->has_news = false;
    if (err == RBT_OK)
        fold(s, w);
    if (err != RBT_OK || w->has_news || !bounded || s->is_spread || plan->workers == 1)
        return err;
    err = rbt_get_row(worker, s->weights, 0, RBT_UNBOUNDED, w->read, error);
    if (err == RBT_OK)
        fold(s, w);
    return err;
}

static double objective(const lasso_state *s, const double *r, double shift, const float *w, double l1)
{
    double loss = 0, norm = 0;

    for (size_t i = 0; i < s->columns.rows; i++)
        loss += s->omega[i] * (r[i] - shift) * (r[i] - shift);
    for (size_t j = 0; j < s->columns.cols; j++)
        norm += fabs((double)w[j]);
    return loss / 2 + l1 * norm;
}

/* Clocks until the effect of a change has been seen by everybody. */
static uint64_t delay_of(const rbt_plan *plan)
{
    uint64_t s = plan->staleness == RBT_UNBOUNDED ? STALENESS_NONE : plan->staleness;

    return 1 + (s < STALENESS_MOST ? s : STALENESS_MOST);
}

/* Is this the last clock of a step of the path? */
static bool is_last(const rbt_plan *plan, const lasso_worker *w, uint64_t clock)
{
    return clock + 2 == rbt_plan_clocks(plan) || step_of(plan, clock + 1) != w->step;
}

/* Lists the features of a clock: the worker's own; but those that are not zero, of all workers, are the affair of one of them at
 * a time, for as long as it takes until the others have seen what it did. True: it is this one. With `own` only its own ones. */
static bool list_features(const rbt_plan *plan, const rbt_worker *worker, lasso_worker *w, bool own)
{
    const lasso_state *s = plan->state;
    uint32_t me = rbt_worker_id(worker);
    uint64_t clock = rbt_worker_clock(worker);
    bool alone = own || s->is_spread || plan->workers == 1 || is_last(plan, w, clock), holds = !alone && me == 0;

    w->count = 0;
    if (!alone && !holds && !w->has_news && clock + 1 < w->acted + delay_of(plan))
        return false; /* the same residual again: it has done what there is to do */
    w->acted = clock + 1;
    for (size_t k = 0; k < s->columns.cols; k++) {
        size_t j = s->order[k];
        bool mine = k % plan->workers == me, zero = w->seen[j] == 0;

        if (alone || zero ? mine : holds)
            w->list[w->count++] = (uint32_t)j;
    }
    return holds;
}

/* One pass over the features listed; its work in non-zeros. */
static size_t descend(const rbt_plan *plan, lasso_worker *w, double spread, double *shift, double l1, bool all)
{
    const lasso_state *s = plan->state;
    size_t work = 0;

    for (size_t k = 0; k < w->count; k++) {
        size_t j = w->list[k];
        double bend = spread * s->square[j], value;

        if (bend <= 0 || (!all && w->v[j] == 0))
            continue;
        value = rbt_soft(w->v[j] + column_dot(s, j, w->mine, *shift) / bend, l1 / bend);
        work += s->columns.start[j + 1] - s->columns.start[j];
        if (value != w->v[j])
            column_take(s, j, spread * (value - w->v[j]), w->mine, shift);
        w->v[j] = value;
    }
    return work;
}

/* Sends the worker's changes; at the end of a step of the path, its part of the solution. */
static rbt_err send(rbt_worker *worker, const rbt_plan *plan, lasso_worker *w, rbt_error *error)
{
    const lasso_state *s = plan->state;
    uint64_t clock = rbt_worker_clock(worker);
    bool ends = is_last(plan, w, clock);
    size_t n = 0, kept = 0;
    rbt_err err;

    for (size_t k = 0; k < w->count; k++) {
        float delta = (float)(w->v[w->list[k]] - (double)w->seen[w->list[k]]);

        if (delta != 0) {
            w->keys[n] = w->list[k];
            w->deltas[n++] = delta;
            w->expected[w->list[k]] += delta;
        }
    }
    err = rbt_inc_keys(worker, s->weights, 0, w->keys, n, w->deltas, error);
    for (size_t k = rbt_worker_id(worker); ends && k < s->columns.cols; k += plan->workers)
        if (w->v[s->order[k]] != 0) {
            w->keys[kept] = s->order[k];
            w->deltas[kept++] = (float)w->v[s->order[k]];
        }
    if (err == RBT_OK && kept > 0)
        err = rbt_inc_keys(worker, s->path, w->step, w->keys, kept, w->deltas, error);
    return err;
}

/* Chooses the spread by what the objective did. True: it is so bad that the worker begins again. */
static bool judge(const rbt_plan *plan, lasso_worker *w, uint64_t clock, double now)
{
    const lasso_state *s = plan->state;
    uint64_t delay = delay_of(plan);
    double most = SPREAD_MOST * plan->workers, safe = plan->workers * (2 * (double)delay - 1);
    bool risen = now > w->before * (1 + TINY_RISE), far = now > RETREAT * s->zero;

    if (plan->workers == 1 || clock < w->judge_at)
        return false;
    w->before = now;
    if (risen || far) {
        w->floor = fmin(fmax(w->floor, w->spread * FLOOR), safe);
        w->spread = fmin(fmax(w->spread * SPREAD_RISES, far ? safe : 0), most);
        w->has_risen = true;
    } else {
        w->floor = fmax(w->floor * FLOOR_FALLS, 1);
        w->spread = fmax(w->spread * SPREAD_FALLS, w->floor);
    }
    w->judge_at = w->has_risen ? clock + delay : clock;
    return far;
}

static rbt_err lasso_clock(rbt_worker *worker, const rbt_plan *plan, lasso_worker *w, rbt_error *error)
{
    const lasso_state *s = plan->state;
    size_t step = step_of(plan, rbt_worker_clock(worker)), work = 0;
    double l1 = penalty_at(plan, step), now, shift;
    unsigned inner = (unsigned)rbt_plan_option(plan, "inner");
    rbt_err err = catch_up(worker, plan, w, error);
    bool again, holds;

    if (err != RBT_OK)
        return err;
    now = objective(s, w->r, w->shift, w->seen, l1);
    if (step != w->step)
        w->before = INFINITY;
    w->step = step;
    again = judge(plan, w, rbt_worker_clock(worker), now);
    holds = list_features(plan, worker, w, again);
    for (size_t k = 0; k < w->count; k++)
        w->v[w->list[k]] = again ? 0 : (double)w->seen[w->list[k]];
    if (!again) {
        double spread = holds ? fmax(1, 2 * w->spread / plan->workers) : w->spread;

        memcpy(w->mine, w->r, s->columns.rows * sizeof *w->mine);
        shift = w->shift;
        for (unsigned pass = 0; pass <= inner; pass++)
            work += descend(plan, w, spread, &shift, l1, pass == 0);
    }
    rbt_worker_did(worker, s->columns.cols / plan->workers, work);
    err = send(worker, plan, w, error);
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, now, 1, error);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err lasso_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const lasso_state *s = plan->state;
    size_t rows = s->columns.rows, cols = s->columns.cols, first, n;
    lasso_worker w = {.r = rbt_try_alloc(rows, sizeof *w.r),
                      .mine = rbt_try_alloc(rows, sizeof *w.mine),
                      .seen = rbt_try_alloc(cols, sizeof *w.seen),
                      .read = rbt_try_alloc(cols, sizeof *w.read),
                      .v = rbt_try_alloc(cols, sizeof *w.v),
                      .expected = rbt_try_alloc(cols, sizeof *w.expected),
                      .list = rbt_try_alloc(cols, sizeof *w.list),
                      .keys = rbt_try_alloc(cols, sizeof *w.keys),
                      .deltas = rbt_try_alloc(cols, sizeof *w.deltas),
                      .spread = plan->workers,
                      .floor = 1,
                      .before = INFINITY};
    rbt_err err = RBT_OK;

    if (w.r == NULL || w.mine == NULL || w.seen == NULL || w.read == NULL || w.v == NULL || w.keys == NULL ||
        w.list == NULL || w.expected == NULL || w.deltas == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's %zu rows and %zu features", rows, cols);
    if (err == RBT_OK && w.r != NULL)
        memcpy(w.r, s->y, rows * sizeof *w.r);
    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = lasso_clock(worker, plan, &w, error);
    if (err == RBT_OK) /* what has come of it */
        err = catch_up(worker, plan, &w, error);
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, objective(s, w.r, w.shift, w.seen, penalty_at(plan, w.step)), 1, error);
    if (err == RBT_OK)
        err = rbt_clock(worker, error);
    rbt_free(w.r);
    rbt_free(w.mine);
    rbt_free(w.seen);
    rbt_free(w.read);
    rbt_free(w.v);
    rbt_free(w.keys);
    rbt_free(w.list);
    rbt_free(w.expected);
    rbt_free(w.deltas);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- fitted */

/* A solution's objective, and how far it can be from the least at most: the duality gap with the residual, scaled to be
 * feasible, as dual point. */
static void assess(const rbt_plan *plan, const float *w, double l1, double *loss, double *gap)
{
    const lasso_state *s = plan->state;
    double *r = rbt_alloc(s->columns.rows, sizeof *r), shift = 0, steepest = 0, scale, dual = 0;

    memcpy(r, s->y, s->columns.rows * sizeof *r);
    for (size_t j = 0; j < s->columns.cols; j++)
        if (w[j] != 0)
            column_take(s, j, (double)w[j], r, &shift);
    *loss = objective(s, r, shift, w, l1);
    for (size_t j = 0; j < s->columns.cols; j++)
        steepest = fmax(steepest, fabs(column_dot(s, j, r, shift)));
    scale = steepest > l1 ? l1 / steepest : 1;
    for (size_t i = 0; i < s->columns.rows; i++) {
        double left = s->y[i] - scale * (r[i] - shift);

        dual += s->omega[i] * (s->y[i] * s->y[i] - left * left) / 2;
    }
    *gap = fmax(0, *loss - dual);
    rbt_free(r);
}

static rbt_err keep_path(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const lasso_state *s = plan->state;
    size_t cols = s->columns.cols;
    float *all = rbt_fitted_add(fitted, "path", RBT_F32, s->steps, cols);
    float *l1 = rbt_fitted_add(fitted, "path_l1", RBT_F32, 1, s->steps);
    float *losses = rbt_fitted_add(fitted, "path_loss", RBT_F32, 1, s->steps);
    int64_t *nonzeros = rbt_fitted_add(fitted, "path_nonzeros", RBT_I64, 1, s->steps);
    rbt_err err = RBT_OK;

    if (all == NULL || l1 == NULL || losses == NULL || nonzeros == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu solutions of %zu features", s->steps, cols);
    for (size_t k = 0; err == RBT_OK && k < s->steps; k++) {
        double loss = 0, gap;

        err = rbt_plan_read(plan, s->path, k, 0, cols, all + k * cols, error);
        if (err == RBT_OK)
            assess(plan, all + k * cols, penalty_at(plan, k), &loss, &gap);
        l1[k] = (float)penalty_at(plan, k);
        losses[k] = (float)loss;
        nonzeros[k] = (int64_t)rbt_weights_nonzeros(all + k * cols, cols);
    }
    return err;
}

static rbt_err lasso_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const lasso_state *s = plan->state;
    size_t cols = s->columns.cols;
    float *w = rbt_fitted_add(fitted, "weights", RBT_F32, 1, cols);
    double intercept = s->mean, loss, gap;
    rbt_err err = w != NULL ? rbt_plan_read(plan, s->weights, 0, 0, cols, w, error)
                            : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu weights", cols);

    if (err != RBT_OK || w == NULL)
        return err;
    for (size_t j = 0; j < cols; j++)
        intercept -= s->center[j] * (double)w[j];
    assess(plan, w, plan->l1, &loss, &gap);
    rbt_fitted_set(fitted, "intercept", intercept);
    rbt_fitted_set(fitted, "l1", plan->l1);
    rbt_fitted_set(fitted, "loss", loss);
    rbt_fitted_set(fitted, "gap", gap);
    return s->steps > 1 ? keep_path(plan, fitted, error) : RBT_OK;
}

const rbt_method rbt_method_lasso = {.name = "lasso",
                                     .about = "linear regression with an L1 penalty, by coordinate descent",
                                     .objective = "half the mean squared error + l1 |w|",
                                     .options = lasso_options,
                                     .unheeded = "lr decay batch",
                                     .closing = 1,
                                     .keeps_state = true,
                                     .needs_sums = true,
                                     .has_bias = true,
                                     .plan = lasso_plan,
                                     .work = lasso_work,
                                     .keep = lasso_keep,
                                     .end = lasso_end,
                                     .open = rbt_lasso_open,
                                     .predict = rbt_weights_predict,
                                     .as_trained = rbt_weights_trained,
                                     .evaluate = rbt_weights_evaluate,
                                     .describe = rbt_lasso_describe};
