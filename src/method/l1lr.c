/* L1-regularised logistic regression by delayed block proximal gradient steps (Li et al. 2014, section 4).
 *
 *     minimise  sum_i omega_i log(1 + exp(-y_i (x_i w + b))) / rows + l1 |w|_1,   omega: weights of rows, mean 1
 *
 * Features lie in ranges; clock t is for one of them, in an order drawn at random, the same for everybody. In it every worker
 * sends, over its own rows, the gradient g and a bound h of the second derivative for the features of the range. The range's
 * owner, one of the workers, steps 1 + s clocks later (s: the staleness), when all of them are sure to be there:
 *
 *     w_j = soft(w_j - eta g_j / h_j, eta l1 rows / h_j)
 *
 * The paper lets servers step. Here that is a worker's work: a step needs the sums over all workers, and only clocks tell when
 * they are complete; tables that add up are all it takes. Workers read the range again after 2 + 2 s clocks. Without a bound
 * (asp) the same is done as for s = 0 with whatever has come. Since workers send differences from what they sent before, sums are
 * always made of one gradient of each worker, an old one at worst.
 *
 * h bounds: features of a range, and of the ranges under way at the same time, are changed together, so a diagonal needs
 * (sum_j x_ij d_j)^2 <= (sum_j |x_ij|) (sum_j |x_ij| d_j^2), the first sum over all of these ranges; and log(1 + e^-z) has the
 * quadratic bound with bend (1/2 - 1/(1 + e^z)) / z (Jaakkola and Jordan). So eta = 1 is safe. Most data allow more: unless
 * --lr says what it is, under bsp each range has its own, which grows with every step, and is halved when the objective, of which
 * workers share their parts, has risen in the clock in which they saw that step. Where staleness blurs which step did what, all
 * ranges have one, which grows with every pass and is halved, for good to the better part, when the objective is above its least.
 *
 * KKT filter: a worker sends nothing of a feature with w_j = 0 while |g_j| of its rows stays within kkt * l1 * rows of its own, where it
 * cannot become non-zero on this worker's account; every tenth pass all is sent, which corrects what this has let by. h goes when it
 * has changed by a fiftieth. Proved by tests/unit/test_lasso.c and tests/cli/test_lasso.sh.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "method/columns.h"
#include "method/method.h"
#include "method/weights.h"

#define BIAS_EVERY    8u /* ranges: the intercept, a range of its own, comes after so many */
#define REFRESH_EVERY 10u
#define BEND_CHANGE   0.02
#define STREAM_RANGES 2
#define RATE_GROWS    1.1
#define RISE          1e-3 /* above the least objective, under staleness */
#define CEILING_FALLS 0.7  /* of the rate under which it rose */
#define CEILING_GROWS 1.005
#define RATE_LEAST    0.0625
#define RATE_MOST     64.0
#define TINY_RISE     1e-8 /* rounding is no rise */
#define COARSE        4096.0 /* parts of the objective go as a multiple of 1 / COARSE and the rest: sums of f32 stay exact */

static const rbt_method_option l1lr_options[] = {
    {.name = "ranges",
     .fallback = 0,
     .least = 0,
     .most = 1e6,
     .whole = true,
     .about = "l1lr: ranges that features are cut into, of which each clock is for one; 0 = 32, or fewer."},
    {.name = "kkt",
     .fallback = 0.5,
     .least = 0,
     .most = 1,
     .about =
         "l1lr: gradients of weights that are zero are not sent within this share of the penalty; 0 = sent always."},
    {0}};

typedef struct l1lr_state {
    rbt_table weights, gradient, bend;
    rbt_table objective; /* coarse and fine part of what workers last found it to be */
    size_t cols, ranges;
    uint32_t *schedule; /* which range each clock of a pass is for; `ranges`: the intercept */
    size_t clocks;      /* of a pass */
    uint64_t delay;     /* s */
    double total;       /* of the rows' weights */
    float *y;           /* per row of the data: -1, 1 */
    rbt_shape shape;    /* the classes */
} l1lr_state;

/* The columns of a range; that of the intercept is behind all others. */
static size_t range_first(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? s->cols : (size_t)((double)s->cols * (double)range / (double)s->ranges);
}

static size_t range_end(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? s->cols + 1 : range_first(s, range + 1 == s->ranges ? s->ranges : range + 1);
}

static size_t range_of(const l1lr_state *s, uint64_t clock)
{
    return s->schedule[clock % s->clocks];
}

static void draw_schedule(const rbt_plan *plan, l1lr_state *s)
{
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_METHOD, STREAM_RANGES);
    uint32_t *order = rbt_alloc(s->ranges, sizeof *order);

    s->schedule = rbt_alloc(s->ranges + s->ranges / BIAS_EVERY + 1, sizeof *s->schedule);
    for (size_t k = 0; k < s->ranges; k++)
        order[k] = (uint32_t)k;
    rbt_rng_shuffle_u32(&rng, order, s->ranges);
    for (size_t k = 0; k < s->ranges; k++) {
        if (plan->bias && k % BIAS_EVERY == 0)
            s->schedule[s->clocks++] = (uint32_t)s->ranges;
        s->schedule[s->clocks++] = order[k];
    }
    rbt_free(order);
}

static rbt_err l1lr_plan(rbt_plan *plan, rbt_error *error)
{
    l1lr_state *s = plan->state = rbt_alloc(1, sizeof *s);
    const rbt_data *data = plan->data;
    rbt_table_spec spec = {.rows = 1, .type = RBT_F32};
    rbt_err err = rbt_shape_set_classes(data, 2, &s->shape, error);

    if (err == RBT_OK && !(plan->l1 > 0))
        err = rbt_fail(error, RBT_E_USAGE, "l1lr needs the strength of its penalty; give --l1 above 0");
    if (err == RBT_OK && plan->l2 > 0)
        err = rbt_fail(error, RBT_E_USAGE, "--l2 makes no sense for l1lr; leave it out, or train lr");
    if (err != RBT_OK)
        return err;
    s->y = rbt_try_alloc(data->rows, sizeof *s->y);
    if (s->y == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu rows", data->rows);
    for (size_t r = 0; r < data->rows; r++) {
        bool is_second = s->shape.labels != NULL
                             ? (double)data->label[r] == s->shape.labels[1]
                             : strcmp(data->label_names[(size_t)data->label[r]], s->shape.names[1]) == 0;

        s->y[r] = is_second ? 1 : -1;
        s->total += rbt_data_weight(data, r);
    }
    s->cols = data->cols;
    s->ranges = (size_t)rbt_plan_option(plan, "ranges");
    s->ranges = s->ranges > 0 ? s->ranges : 32;
    s->ranges = s->ranges < s->cols ? s->ranges : s->cols;
    s->delay = plan->staleness == RBT_UNBOUNDED ? 0 : plan->staleness;
    draw_schedule(plan, s);
    rbt_plan_set_pass_clocks(plan, s->clocks);
    spec.cols = s->cols + 1;
    spec.name = "weights";
    err = rbt_plan_table(plan, &spec, &s->weights, error);
    spec.name = "gradient";
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &spec, &s->gradient, error);
    spec.name = "bend";
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &spec, &s->bend, error);
    spec.cols = 2;
    spec.name = "objective";
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &spec, &s->objective, error);
    return err;
}

static void l1lr_end(rbt_plan *plan)
{
    l1lr_state *s = plan->state;

    if (s == NULL)
        return;
    rbt_shape_deinit(&s->shape);
    rbt_free(s->schedule);
    rbt_free(s->y);
    rbt_free(s);
}

/* -------------------------------------------------------------------------------------------------------- a worker */

typedef struct l1lr_worker {
    rbt_columns columns;
    size_t n;
    const uint32_t *rows;
    double *z, *slope, *bend,
        *loss;       /* per row: decision value; of its loss: first derivative, bound of the second, itself */
    double *reach;   /* per row: sum of |x| over the ranges under way */
    uint64_t *stamp; /* per row: when it was last touched */
    uint64_t touch;
    uint32_t *touched;
    size_t touched_count;
    double total;      /* of the losses */
    double weight;     /* of the rows */
    double *rate;      /* per range */
    double before;     /* the objective that was read in the clock before, or the least under staleness */
    double ceiling;    /* of the rate, under staleness */
    uint64_t judge_at; /* not before this clock, which has seen the last change of the rate */
    float told_parts[2];
    float *seen; /* w that z is for */
    float *sent_gradient, *sent_bend;
    float *read, *read_bend; /* of a range */
    uint64_t *keys, *bend_keys;
    float *deltas, *bend_deltas;
} l1lr_worker;

/* Loss and derivatives of one row at its decision value. */
static void settle_row(const rbt_plan *plan, l1lr_worker *w, size_t i)
{
    const l1lr_state *s = plan->state;
    double y = (double)s->y[w->rows[i]], m = y * w->z[i], e = exp(-fabs(m)),
           weight = rbt_data_weight(plan->data, w->rows[i]);
    double wrong = m > 0 ? e / (1 + e) : 1 / (1 + e), loss = (m > 0 ? 0 : -m) + log1p(e);

    w->total += weight * loss - w->loss[i];
    w->loss[i] = weight * loss;
    w->slope[i] = -weight * y * wrong;
    w->bend[i] = weight * (fabs(m) < 1e-4 ? 0.25 : (0.5 - wrong) / m);
}

static void touch_row(l1lr_worker *w, size_t i)
{
    if (w->stamp[i] != w->touch)
        w->touched[w->touched_count++] = (uint32_t)i;
    w->stamp[i] = w->touch;
}

/* Folds new values of a range's weights into the decision values. */
static void fold(const rbt_plan *plan, l1lr_worker *w, size_t first, size_t end, const float *now)
{
    const l1lr_state *s = plan->state;

    w->touch++;
    w->touched_count = 0;
    for (size_t j = first; j < end; j++) {
        double change = (double)now[j - first] - (double)w->seen[j];

        if (change == 0)
            continue;
        w->seen[j] = now[j - first];
        for (size_t i = 0; j == s->cols && i < w->n; i++) {
            w->z[i] += change;
            touch_row(w, i);
        }
        for (size_t k = j < s->cols ? w->columns.start[j] : 0; j < s->cols && k < w->columns.start[j + 1]; k++) {
            w->z[w->columns.row[k]] += change * (double)w->columns.value[k];
            touch_row(w, w->columns.row[k]);
        }
    }
    for (size_t k = 0; k < w->touched_count; k++)
        settle_row(plan, w, w->touched[k]);
}

static rbt_err catch_up(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, size_t range, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t first = range_first(s, range), end = range_end(s, range);
    rbt_err err = rbt_get_range(worker, s->weights, 0, first, end - first, RBT_STALENESS_OF_JOB, w->read, error);

    if (err == RBT_OK)
        fold(plan, w, first, end, w->read);
    return err;
}

/* The owner's step for the range of a clock that is over everywhere. */
static rbt_err step(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, size_t range, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t first = range_first(s, range), n = range_end(s, range) - first;
    double rate = plan->lr > 0 ? rbt_plan_rate(plan, worker, 1) : w->rate[range],
           push = range == s->ranges ? 0 : plan->l1 * s->total;
    float *g = w->deltas, *h = w->bend_deltas;
    rbt_err err = rbt_get_range(worker, s->weights, 0, first, n, RBT_STALENESS_OF_JOB, w->read, error);

    if (err == RBT_OK)
        err = rbt_get_range(worker, s->gradient, 0, first, n, RBT_STALENESS_OF_JOB, g, error);
    if (err == RBT_OK)
        err = rbt_get_range(worker, s->bend, 0, first, n, RBT_STALENESS_OF_JOB, h, error);
    for (size_t j = 0; err == RBT_OK && j < n; j++) {
        double old = (double)w->read[j], bend = (double)h[j] / rate;

        w->read_bend[j] = bend > 0 ? (float)(rbt_soft(old - (double)g[j] / bend, push / bend) - old) : 0;
    }
    return err == RBT_OK ? rbt_inc_range(worker, s->weights, 0, first, n, w->read_bend, error) : err;
}

/* ---------------------------------------------------------------------------------------------------------- a clock */

/* reach += by * |x| over a range. */
static void add_reach(const l1lr_state *s, l1lr_worker *w, size_t range, double by)
{
    for (size_t i = 0; range == s->ranges && i < w->n; i++)
        w->reach[i] += by;
    for (size_t j = range_first(s, range); range < s->ranges && j < range_end(s, range); j++)
        for (size_t k = w->columns.start[j]; k < w->columns.start[j + 1]; k++)
            w->reach[w->columns.row[k]] += by * fabs((double)w->columns.value[k]);
}

/* The ranges under way together with that of a clock are those of the 1 + 2 s clocks before and after. */
static void find_reach(const l1lr_state *s, l1lr_worker *w, uint64_t clock)
{
    uint64_t away = 1 + 2 * s->delay;

    memset(w->reach, 0, w->n * sizeof *w->reach);
    if (2 * away + 1 >= s->clocks) { /* all of a pass, some more than once */
        for (size_t k = 0; k < s->clocks; k++)
            add_reach(s, w, s->schedule[k], ceil((double)(2 * away + 1) / (double)s->clocks));
        return;
    }
    for (uint64_t k = 0; k <= 2 * away; k++)
        add_reach(s, w, range_of(s, clock + s->clocks + k - away), 1);
}

/* Gradient and bound of the second derivative of one feature over the worker's rows. */
static void derive(const l1lr_state *s, const l1lr_worker *w, size_t j, double *g, double *h)
{
    *g = *h = 0;
    for (size_t i = 0; j == s->cols && i < w->n; i++) {
        *g += w->slope[i];
        *h += w->bend[i] * w->reach[i];
    }
    for (size_t k = j < s->cols ? w->columns.start[j] : 0; j < s->cols && k < w->columns.start[j + 1]; k++) {
        uint32_t i = w->columns.row[k];
        double x = (double)w->columns.value[k];

        *g += w->slope[i] * x;
        *h += w->bend[i] * w->reach[i] * fabs(x);
    }
}

/* Sends what has changed of a range's derivatives, and passes the filter. */
static rbt_err send(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, uint64_t clock, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t range = range_of(s, clock), gradients = 0, bends = 0;
    bool all = clock / s->clocks % REFRESH_EVERY == 0 || range == s->ranges;
    double quiet = all ? -1 : rbt_plan_option(plan, "kkt") * plan->l1 * w->weight;
    rbt_err err;

    for (size_t j = range_first(s, range); j < range_end(s, range); j++) {
        double g, h;
        float change, bent;

        derive(s, w, j, &g, &h);
        if (w->seen[j] == 0 && fabs(g) <= quiet && fabs((double)w->sent_gradient[j]) <= quiet)
            continue;
        change = (float)(g - (double)w->sent_gradient[j]);
        bent = (float)(h - (double)w->sent_bend[j]);
        if (change != 0) {
            w->keys[gradients] = j;
            w->deltas[gradients++] = change;
            w->sent_gradient[j] += change;
        }
        if (fabs((double)bent) > BEND_CHANGE * (double)w->sent_bend[j]) {
            w->bend_keys[bends] = j;
            w->bend_deltas[bends++] = bent;
            w->sent_bend[j] += bent;
        }
    }
    err = rbt_inc_keys(worker, s->gradient, 0, w->keys, gradients, w->deltas, error);
    return err == RBT_OK ? rbt_inc_keys(worker, s->bend, 0, w->bend_keys, bends, w->bend_deltas, error) : err;
}

/* The worker's part of the objective, times all rows. */
static double objective(const rbt_plan *plan, const l1lr_worker *w)
{
    const l1lr_state *s = plan->state;
    double norm = 0, scale = (double)plan->data->rows / s->total; /* weights have the mean 1 */

    for (size_t j = 0; j < s->cols; j++)
        norm += fabs((double)w->seen[j]);
    return w->total * scale + plan->l1 * norm * (double)w->n;
}

/* The rate of the range of which all have seen the step; steps follow each other, and each can be told by what it did. */
static void judge_step(const l1lr_state *s, l1lr_worker *w, uint64_t clock, double now)
{
    double *rate = &w->rate[range_of(s, clock)];

    *rate = now > w->before * (1 + TINY_RISE) ? fmax(*rate / 2, RATE_LEAST) : fmin(*rate * RATE_GROWS, RATE_MOST);
    w->before = now;
}

/* The rate of all ranges. */
static void judge_all(const l1lr_state *s, l1lr_worker *w, uint64_t clock, double now)
{
    double rate = w->rate[0];

    if (now > w->before * (1 + RISE) && clock >= w->judge_at) {
        w->ceiling = rate * CEILING_FALLS;
        rate = fmax(rate / 2, RATE_LEAST);
        w->judge_at = clock + s->clocks;
        w->before = now;
    } else if (clock % s->clocks == 0) {
        w->ceiling *= CEILING_GROWS;
        rate = fmin(rate * RATE_GROWS, w->ceiling);
    }
    for (size_t k = 0; k <= s->ranges; k++)
        w->rate[k] = rate;
    w->before = fmin(w->before, now);
}

/* Shares the worker's part of the objective, and judges the step that workers saw when they shared what is read now. */
static rbt_err adapt(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    uint64_t clock = rbt_worker_clock(worker), judged = 3 + 3 * s->delay;
    double mine = objective(plan, w) / (double)plan->data->rows, coarse = rint(mine * COARSE) / COARSE, now;
    float parts[2] = {(float)coarse, (float)(mine - coarse)}, read[2], changes[2];
    rbt_err err = rbt_get_row(worker, s->objective, 0, RBT_STALENESS_OF_JOB, read, error);

    if (err != RBT_OK)
        return err;
    now = (double)read[0] + (double)read[1];
    if (clock >= judged && plan->staleness == 0)
        judge_step(s, w, clock - judged, now);
    else if (clock >= s->clocks)
        judge_all(s, w, clock, now);
    for (size_t k = 0; k < 2; k++) {
        changes[k] = parts[k] - w->told_parts[k];
        w->told_parts[k] += changes[k];
    }
    return rbt_inc_row(worker, s->objective, 0, changes, error);
}

static rbt_err l1lr_clock(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    uint64_t clock = rbt_worker_clock(worker), stepped = 1 + s->delay, seen = 2 + 2 * s->delay;
    size_t range = range_of(s, clock);
    rbt_err err = RBT_OK;

    if (clock >= seen)
        err = catch_up(worker, plan, w, range_of(s, clock - seen), error);
    if (err == RBT_OK)
        err = adapt(worker, plan, w, error);
    if (err == RBT_OK && clock >= stepped && range_of(s, clock - stepped) % plan->workers == rbt_worker_id(worker))
        err = step(worker, plan, w, range_of(s, clock - stepped), error);
    if (err != RBT_OK)
        return err;
    find_reach(s, w, clock);
    err = send(worker, plan, w, clock, error);
    rbt_worker_did(worker, w->n,
                   range < s->ranges ? w->columns.start[range_end(s, range)] - w->columns.start[range_first(s, range)]
                                     : w->n);
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, objective(plan, w), w->n, error);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

/* ---------------------------------------------------------------------------------------------------------- work */

static rbt_err worker_init(const rbt_plan *plan, const rbt_worker *worker, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t cols = s->cols + 1;
    double **per_row[] = {&w->z, &w->slope, &w->bend, &w->loss, &w->reach};
    float **per_col[] = {&w->seen,      &w->sent_gradient, &w->sent_bend,  &w->read,
                         &w->read_bend, &w->deltas,        &w->bend_deltas};
    bool is_there;

    w->rows = rbt_plan_rows(plan, worker, &w->n);
    w->stamp = rbt_try_alloc(w->n, sizeof *w->stamp);
    w->touched = rbt_try_alloc(w->n, sizeof *w->touched);
    w->keys = rbt_try_alloc(cols, sizeof *w->keys);
    w->bend_keys = rbt_try_alloc(cols, sizeof *w->bend_keys);
    w->rate = rbt_alloc(s->ranges + 1, sizeof *w->rate);
    for (size_t k = 0; k <= s->ranges; k++)
        w->rate[k] = 1;
    is_there = w->stamp != NULL && w->touched != NULL && w->keys != NULL && w->bend_keys != NULL;
    for (size_t i = 0; i < sizeof per_row / sizeof per_row[0]; i++)
        is_there = (*per_row[i] = rbt_try_alloc(w->n, sizeof(double))) != NULL && is_there;
    for (size_t i = 0; i < sizeof per_col / sizeof per_col[0]; i++)
        is_there = (*per_col[i] = rbt_try_alloc(cols, sizeof(float))) != NULL && is_there;
    if (!is_there)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's %zu rows and %zu features", w->n, cols);
    for (size_t i = 0; i < w->n; i++) {
        w->weight += rbt_data_weight(plan->data, w->rows[i]);
        settle_row(plan, w, i);
    }
    return rbt_columns_create(plan->data, w->rows, w->n, &w->columns, error);
}

static void worker_deinit(l1lr_worker *w)
{
    void *all[] = {w->z,         w->slope,  w->bend,        w->loss,          w->reach,     w->stamp,
                   w->touched,   w->keys,   w->seen,        w->sent_gradient, w->sent_bend, w->read,
                   w->read_bend, w->deltas, w->bend_deltas, w->bend_keys,     w->rate};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        rbt_free(all[i]);
    rbt_columns_destroy(&w->columns);
}

static rbt_err l1lr_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    l1lr_worker w = {.before = INFINITY, .ceiling = RATE_MOST};
    size_t first, n;
    rbt_err err = worker_init(plan, worker, &w, error);

    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = l1lr_clock(worker, plan, &w, error);
    for (size_t range = 0; err == RBT_OK && range < s->ranges + plan->bias; range++)
        err = catch_up(worker, plan, &w, range, error); /* what has come of it */
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, objective(plan, &w), w.n, error);
    if (err == RBT_OK)
        err = rbt_clock(worker, error);
    worker_deinit(&w);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- fitted */

static rbt_err l1lr_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    float *w = rbt_fitted_add(fitted, "weights", RBT_F32, 1, s->cols), intercept = 0;
    char texts[2][32];
    const char *labels[2];
    rbt_err err = w != NULL ? rbt_plan_read(plan, s->weights, 0, 0, s->cols, w, error)
                            : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu weights", s->cols);

    if (err == RBT_OK)
        err = rbt_plan_read(plan, s->weights, 0, s->cols, 1, &intercept, error);
    if (err != RBT_OK)
        return err;
    for (size_t c = 0; c < 2; c++) {
        if (s->shape.labels != NULL)
            snprintf(texts[c], sizeof texts[c], "%.9g", s->shape.labels[c]);
        labels[c] = s->shape.labels != NULL ? texts[c] : s->shape.names[c];
    }
    rbt_fitted_add_names(fitted, "labels", 2, labels);
    rbt_fitted_set(fitted, "intercept", (double)intercept);
    rbt_fitted_set(fitted, "l1", plan->l1);
    return RBT_OK;
}

static rbt_err l1lr_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");

    if (labels == NULL || labels->n != 2)
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold two labels; train it again");
    return rbt_weights_open(fitted, error);
}

static rbt_err l1lr_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    double score = rbt_weights_score(fitted, data, row);

    (void)error;
    fprintf(out, "%s\t%.6g\n", rbt_fitted_names(fitted, "labels")->at[score > 0], 1 / (1 + exp(-score)));
    return RBT_OK;
}

/* Which of the two labels a row has. */
static rbt_err class_of(const rbt_fitted *fitted, const rbt_data *data, size_t row, size_t *class, rbt_error *error)
{
    const rbt_name_list *labels = rbt_fitted_names(fitted, "labels");

    for (*class = 0; *class < 2; ++*class)
        if (data->label_names != NULL ? strcmp(data->label_names[(size_t)data->label[row]], labels->at[*class]) == 0
                                      : (float)strtod(labels->at[*class], NULL) == data->label[row])
            return RBT_OK;
    return rbt_fail(error, RBT_E_DATA, "row %zu has a label other than %s and %s, which the model was trained with",
                    row + 1, labels->at[0], labels->at[1]);
}

static rbt_err l1lr_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                             rbt_error *error)
{
    const rbt_values *w = rbt_fitted_values(fitted, "weights");
    double loss = 0, right = 0, total = 0;

    for (size_t r = 0; r < data->rows; r++) {
        double score = rbt_weights_score(fitted, data, r), weight = rbt_data_weight(data, r), m;
        size_t class;
        rbt_err err = class_of(fitted, data, r, &class, error);

        if (err != RBT_OK)
            return err;
        m = class == 1 ? score : -score;
        loss += weight * ((m > 0 ? 0 : -m) + log1p(exp(-fabs(m))));
        right += weight * ((score > 0) == (class == 1));
        total += weight;
    }
    figures[0] = (rbt_figure){"logloss", loss / total};
    figures[1] = (rbt_figure){"accuracy", right / total};
    figures[2] = (rbt_figure){"nonzeros", (double)rbt_weights_nonzeros(w->at, (size_t)w->cols)};
    *n = 3;
    return RBT_OK;
}

const rbt_method rbt_method_l1lr = {.name = "l1lr",
                                    .about = "logistic regression with an L1 penalty, by delayed block proximal steps",
                                    .objective = "mean logistic loss + l1 |w|",
                                    .options = l1lr_options,
                                    .closing = 1,
                                    .keeps_state = true,
                                    .needs_sums = true,
                                    .has_bias = true,
                                    .own_rows = true,
                                    .plan = l1lr_plan,
                                    .work = l1lr_work,
                                    .keep = l1lr_keep,
                                    .end = l1lr_end,
                                    .open = l1lr_open,
                                    .predict = l1lr_predict,
                                    .evaluate = l1lr_evaluate,
                                    .describe = rbt_weights_describe};
