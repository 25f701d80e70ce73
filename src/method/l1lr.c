/* L1-regularised logistic regression by delayed block proximal gradient steps (Li et al. 2014, section 4).
 *
 *     minimise  sum_i omega_i log(1 + exp(-y_i (x_i w + b))) / rows + l1 |w|_1,   omega: weights of rows, mean 1
 *
 * Features lie in ranges; clock t is for one of them, in an order drawn at random, the same for everybody. In it every worker
 * sends, over its own rows, the gradient g and a bound h of the second derivative for the features of the range; servers
 * step when all have come (prox.h), and workers read the range again 1 + s clocks later (s: the staleness), when that
 * is sure to be over. Without a bound (asp) they do so after a quarter of a pass, with whatever has come.
 *
 * h bounds: features of a range, and of the ranges under way at the same time, are changed together, so a diagonal needs
 * (sum_j x_ij d_j)^2 <= (sum_j |x_ij|) (sum_j |x_ij| d_j^2), the first sum over all of these ranges: those of the s clocks
 * before and after, and all of them without a bound. This is the paper's step size, which falls with the delay. And
 * log(1 + e^-z) has the quadratic bound with bend (1/2 - 1/(1 + e^z)) / z (Jaakkola and Jordan). So a rate of 1 is safe under BSP and SSP. Most
 * data allow more: unless --lr says what it is, under bsp each range has its own, which grows with every step, and is halved
 * when the objective, of which workers share their parts, has risen in the clock in which they saw that step. Where staleness
 * blurs which step did what, all ranges have one, which grows with every pass and is halved when the objective has risen in it.
 *
 * Filters. kkt: of features whose weight is 0 and whose gradient, over all workers, was within kkt * l1 * rows when it was last looked
 * at, nothing is sent; all are looked at in passes 1, 2, 4, 8, ... Neither is anything read of them: rows travel
 * without their zeros. significant: of a gradient's change nothing is sent while it is below significant * l1 * rows of the
 * worker; it adds up. h goes when it has changed by a fiftieth. Proved by tests/unit/test_lasso.c and tests/cli/test_lasso.sh.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "method/columns.h"
#include "method/method.h"
#include "method/prox.h"
#include "method/weights.h"

#define BIAS_EVERY       8u /* ranges: the intercept, a range of its own, comes after so many */
#define RANGES           32u
#define WIDTH_MOST       32000u /* features of a range: two numbers of each fit a row that is a block */
#define BEND_CHANGE      0.02
#define STREAM_RANGES    2
#define RATE_GROWS       1.1
#define RATE_EASY        3.0 /* up to this it grows faster */
#define RATE_GROWS_FIRST 1.5
#define CEILING_FALLS    0.9 /* of the rate under which it rose */
#define CEILING_GROWS    1.02
#define RATE_LEAST       0.0625
#define RATE_MOST        64.0
#define TINY_RISE        1e-8 /* rounding is no rise */
#define COARSE           4096.0 /* parts of the objective go as a multiple of 1 / COARSE and the rest: sums of f32 stay exact */

static const rbt_method_option l1lr_options[] = {
    {.name = "ranges",
     .fallback = 0,
     .least = 0,
     .most = 1e6,
     .whole = true,
     .about = "l1lr: ranges that features are cut into, of which each clock is for one; 0 = 32, or fewer."},
    {.name = "kkt",
     .fallback = 0.7,
     .least = 0,
     .most = 1,
     .about = "l1lr: of weights that are zero nothing is sent while the gradient is within this share of the penalty; "
              "0 = always; also as --filter kkt=X."},
    {.name = "significant",
     .fallback = 1e-5,
     .least = 0,
     .most = 1,
     .about = "l1lr: changes of gradients below this share of the penalty wait until they add up to more; also as "
              "--filter significant=X."},
    {0}};

typedef struct l1lr_state {
    rbt_table weights, intercept;
    rbt_table objective;   /* coarse and fine part of what workers last found it to be, and how many have */
    rbt_prox range, alone; /* what servers do with a range, and with the intercept */
    size_t cols, ranges;
    uint32_t *schedule; /* which range each clock of a pass is for; `ranges`: the intercept */
    size_t clocks;      /* of a pass */
    uint64_t lag;       /* clocks, after the next one, until a step is read */
    uint64_t away;      /* the ranges of so many clocks before and after are under way together */
    double total;       /* of the rows' weights */
    float *y;           /* per row of the data: -1, 1 */
    rbt_shape shape;    /* the classes */
} l1lr_state;

/* The columns of a range; that of the intercept is behind all others. */
static size_t range_first(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? s->cols : range * s->range.width;
}

static size_t range_end(const l1lr_state *s, size_t range)
{
    size_t end = (range + 1) * s->range.width;

    return range == s->ranges ? s->cols + 1 : end < s->cols ? end : s->cols;
}

/* Where it is: a table and a row. */
static rbt_table table_of(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? s->intercept : s->weights;
}

static uint64_t row_of(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? 0 : range;
}

static const rbt_prox *prox_of(const l1lr_state *s, size_t range)
{
    return range == s->ranges ? &s->alone : &s->range;
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

/* The tables. */
static rbt_err create_tables(rbt_plan *plan, l1lr_state *s, rbt_error *error)
{
    rbt_table_spec weights = {.name = "weights",
                              .rows = s->ranges,
                              .cols = rbt_prox_cols(&s->range, plan->workers),
                              .type = RBT_F32,
                              .block_rows = 1,
                              .rule = &s->range.procedure};
    rbt_table_spec intercept = {.name = "intercept",
                                .rows = 1,
                                .cols = rbt_prox_cols(&s->alone, plan->workers),
                                .type = RBT_F32,
                                .block_rows = 1,
                                .rule = &s->alone.procedure};
    rbt_err err = rbt_plan_table(plan, &weights, &s->weights, error);

    if (err == RBT_OK)
        err = rbt_plan_table(plan, &intercept, &s->intercept, error);
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &(rbt_table_spec){.name = "objective", .rows = 1, .cols = 3, .type = RBT_F32},
                             &s->objective, error);
    return err;
}

/* Cuts features into ranges and says when each is visited. */
static void lay_out(rbt_plan *plan, l1lr_state *s)
{
    size_t ranges = (size_t)rbt_plan_option(plan, "ranges"), cols = s->cols > 0 ? s->cols : 1;

    ranges = ranges > 0 ? ranges : RANGES;
    s->range.width = (cols + ranges - 1) / ranges;
    s->range.width = s->range.width < WIDTH_MOST ? s->range.width : WIDTH_MOST;
    s->ranges = (cols + s->range.width - 1) / s->range.width;
    draw_schedule(plan, s);
    rbt_plan_set_pass_clocks(plan, s->clocks);
    s->lag = plan->staleness == RBT_UNBOUNDED ? s->clocks / 4 : plan->staleness;
    s->away = plan->staleness == RBT_UNBOUNDED ? s->clocks : plan->staleness;
    s->range.penalty = plan->l1 * s->total;
    s->range.kkt = rbt_plan_option(plan, "kkt");
    s->alone = (rbt_prox){.width = 1};
    rbt_prox_init(&s->range);
    rbt_prox_init(&s->alone);
}

static rbt_err l1lr_plan(rbt_plan *plan, rbt_error *error)
{
    l1lr_state *s = plan->state = rbt_alloc(1, sizeof *s);
    const rbt_data *data = plan->data;
    rbt_err err = rbt_shape_set_classes(data, 2, &s->shape, error);

    if (err == RBT_OK && !(plan->l1 > 0))
        err = rbt_fail(error, RBT_E_USAGE, "l1lr needs the strength of its penalty; give --l1 above 0");
    if (err == RBT_OK && plan->l2 > 0)
        err = rbt_fail(error, RBT_E_USAGE, "--l2 makes no sense for l1lr; leave it out, or train lr");
    if (err == RBT_OK && !(plan->lr > 0) && rbt_plan_rate_at(plan, 1, 1) != 1)
        err =
            rbt_fail(error, RBT_E_USAGE,
                     "--decay makes no sense for l1lr without --lr: it finds its step sizes by itself then; give --lr, "
                     "too, or leave it out");
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
    lay_out(plan, s);
    return create_tables(plan, s, error);
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
    bool has_reach;  /* it is over all of them, for good */
    uint64_t *stamp; /* per row: when it was last touched */
    uint64_t touch;
    uint32_t *touched;
    size_t touched_count;
    double total;  /* of the losses */
    double norm;   /* of the weights seen */
    double weight; /* of the rows */
    double rate;
    float *sent_rate; /* per range */
    double before;    /* the objective of the pass before */
    double least;     /* of any pass */
    double ceiling;   /* of the rate */
    float told_parts[3];
    float *seen;    /* w that z is for */
    float *watched; /* its gradient may soon be above the penalty */
    float *sent_gradient, *sent_bend;
    float *read; /* a row */
    uint64_t *keys;
    float *deltas;
    size_t count; /* of them */
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
        w->norm += j < s->cols ? fabs((double)now[j - first]) - fabs((double)w->seen[j]) : 0;
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
    size_t first = range_first(s, range), end = range_end(s, range), width = prox_of(s, range)->width;
    rbt_err err =
        rbt_get_range(worker, table_of(s, range), row_of(s, range), 0, 2 * width, RBT_STALENESS_OF_JOB, w->read, error);

    if (err != RBT_OK)
        return err;
    fold(plan, w, first, end, w->read);
    memcpy(w->watched + first, w->read + width, (end - first) * sizeof *w->watched);
    return RBT_OK;
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

/* Of the ranges under way together with that of a clock. */
static void find_reach(const l1lr_state *s, l1lr_worker *w, uint64_t clock)
{
    if (w->has_reach)
        return;
    memset(w->reach, 0, w->n * sizeof *w->reach);
    w->has_reach = 2 * s->away + 1 >= s->clocks; /* all of a pass, some more than once */
    for (size_t k = 0; w->has_reach && k < s->clocks; k++)
        add_reach(s, w, s->schedule[k], 1);
    for (uint64_t k = 0; !w->has_reach && k <= 2 * s->away; k++)
        add_reach(s, w, range_of(s, clock + s->clocks + k - s->away), 1);
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

static void put(l1lr_worker *w, uint64_t cell, float change)
{
    w->keys[w->count] = cell;
    w->deltas[w->count++] = change;
}

/* Sends what has changed of a range's derivatives, and passes the filters. */
static rbt_err send(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, uint64_t clock, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t range = range_of(s, clock), first = range_first(s, range);
    const rbt_prox *prox = prox_of(s, range);
    uint64_t pass = clock / s->clocks;
    bool all = (pass & (pass + 1)) == 0 || range == s->ranges || s->range.kkt == 0;
    double quiet = rbt_plan_option(plan, "significant") * plan->l1 * w->weight;
    float rate = (float)(plan->lr > 0 ? rbt_plan_rate(plan, worker, 1) : w->rate);

    w->count = 0;
    for (size_t j = first; j < range_end(s, range); j++) {
        bool is_active = w->seen[j] != 0 || w->watched[j] != 0 || s->range.kkt == 0 || pass == 0 || j == s->cols;
        double g, h;
        float change, bent;

        if (!is_active && !all)
            continue;
        derive(s, w, j, &g, &h);
        change = (float)(g - (double)w->sent_gradient[j]);
        bent = (float)(h - (double)w->sent_bend[j]);
        if (fabs((double)change) > quiet) {
            put(w, j - first, change);
            w->sent_gradient[j] += change;
        }
        if (is_active && fabs((double)bent) > BEND_CHANGE * (double)w->sent_bend[j]) {
            put(w, prox->width + j - first, bent);
            w->sent_bend[j] += bent;
        }
    }
    put(w, rbt_prox_count(prox), 1);
    if (rate != w->sent_rate[range])
        put(w, rbt_prox_rate(prox), rate - w->sent_rate[range]);
    w->sent_rate[range] += rate - w->sent_rate[range];
    return rbt_inc_keys(worker, table_of(s, range), row_of(s, range), w->keys, w->count, w->deltas, error);
}

/* The worker's part of the objective, times all rows. */
static double objective(const rbt_plan *plan, const l1lr_worker *w)
{
    const l1lr_state *s = plan->state;
    double scale = (double)plan->data->rows / s->total; /* weights have the mean 1 */

    return w->total * scale + plan->l1 * w->norm * (double)w->n;
}

/* The rate, after a pass with this objective. One above the least that comes down is let be. */
static void judge(l1lr_worker *w, double now)
{
    if (now > w->least * (1 + TINY_RISE) && now > w->before) {
        w->ceiling = fmax(w->rate * CEILING_FALLS, RATE_LEAST);
        w->rate = fmax(w->rate / 2, RATE_LEAST);
    } else if (now <= w->least * (1 + TINY_RISE)) {
        w->ceiling = fmin(w->ceiling * CEILING_GROWS, RATE_MOST);
        w->rate = fmin(w->rate * (w->rate < RATE_EASY ? RATE_GROWS_FIRST : RATE_GROWS), w->ceiling);
    }
    w->before = now;
    w->least = fmin(w->least, now);
}

/* Shares the worker's part of the objective at the end of a pass, and judges the pass when all have. */
static rbt_err adapt(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    uint64_t clock = rbt_worker_clock(worker);
    rbt_err err = RBT_OK;

    if (clock >= s->clocks + s->lag && clock % s->clocks == s->lag % s->clocks) {
        float read[3];

        err = rbt_get_row(worker, s->objective, 0, RBT_STALENESS_OF_JOB, read, error);
        if (err == RBT_OK && read[2] == (float)plan->workers)
            judge(w, (double)read[0] + (double)read[1]);
    }
    if (err == RBT_OK && (clock + 1) % s->clocks == 0) {
        double mine = objective(plan, w) / (double)plan->data->rows, coarse = rint(mine * COARSE) / COARSE;
        float parts[3] = {(float)coarse, (float)(mine - coarse), 1}, changes[3];

        for (size_t k = 0; k < 3; k++) {
            changes[k] = parts[k] - w->told_parts[k];
            w->told_parts[k] += changes[k];
        }
        err = rbt_inc_row(worker, s->objective, 0, changes, error);
        if (err == RBT_OK)
            err = rbt_plan_tell(plan, worker, objective(plan, w), w->n, error);
    }
    return err;
}

/* Of a worker's rows, how many a clock counts for: each once in a pass over all ranges, and none for the intercept. */
static size_t rows_of(const l1lr_state *s, const l1lr_worker *w, size_t range)
{
    return range < s->ranges ? w->n * (range + 1) / s->ranges - w->n * range / s->ranges : 0;
}

static rbt_err l1lr_clock(rbt_worker *worker, const rbt_plan *plan, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    uint64_t clock = rbt_worker_clock(worker);
    size_t range = range_of(s, clock);
    rbt_err err = RBT_OK;

    if (clock > s->lag)
        err = catch_up(worker, plan, w, range_of(s, clock - 1 - s->lag), error);
    if (err == RBT_OK)
        err = adapt(worker, plan, w, error);
    if (err != RBT_OK)
        return err;
    find_reach(s, w, clock);
    err = send(worker, plan, w, clock, error);
    rbt_worker_did(worker, rows_of(s, w, range),
                   range < s->ranges ? w->columns.start[range_end(s, range)] - w->columns.start[range_first(s, range)]
                                     : w->n);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

/* ---------------------------------------------------------------------------------------------------------- work */

static rbt_err worker_init(const rbt_plan *plan, const rbt_worker *worker, l1lr_worker *w, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    size_t cols = s->cols + 1;
    double **per_row[] = {&w->z, &w->slope, &w->bend, &w->loss, &w->reach};
    float **per_col[] = {&w->seen, &w->watched, &w->sent_gradient, &w->sent_bend};
    size_t row = (size_t)rbt_prox_cols(&s->range, plan->workers);
    bool is_there;

    w->rows = rbt_plan_rows(plan, worker, &w->n);
    w->stamp = rbt_try_alloc(w->n, sizeof *w->stamp);
    w->touched = rbt_try_alloc(w->n, sizeof *w->touched);
    w->keys = rbt_try_alloc(row, sizeof *w->keys);
    w->deltas = rbt_try_alloc(row, sizeof *w->deltas);
    w->read = rbt_try_alloc(row, sizeof *w->read);
    w->sent_rate = rbt_alloc(s->ranges + 1, sizeof *w->sent_rate);
    is_there = w->stamp != NULL && w->touched != NULL && w->keys != NULL && w->deltas != NULL && w->read != NULL;
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
    void *all[] = {w->z,    w->slope,   w->bend,          w->loss,      w->reach, w->stamp,  w->touched,  w->keys,
                   w->seen, w->watched, w->sent_gradient, w->sent_bend, w->read,  w->deltas, w->sent_rate};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        rbt_free(all[i]);
    rbt_columns_destroy(&w->columns);
}

static rbt_err l1lr_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const l1lr_state *s = plan->state;
    l1lr_worker w = {.rate = 1, .before = INFINITY, .least = INFINITY, .ceiling = RATE_MOST};
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
    rbt_err err = w != NULL ? rbt_plan_read(plan, s->intercept, 0, 0, 1, &intercept, error)
                            : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu weights", s->cols);

    for (size_t r = 0; err == RBT_OK && w != NULL && r < s->ranges; r++)
        err = rbt_plan_read(plan, s->weights, r, 0, range_end(s, r) - range_first(s, r), w + range_first(s, r), error);
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

const rbt_method rbt_method_l1lr = {.name = "l1lr",
                                    .about = "logistic regression with an L1 penalty, by delayed block proximal steps",
                                    .objective = "mean logistic loss + l1 |w|",
                                    .options = l1lr_options,
                                    .unheeded = "batch budget",
                                    .closing = 1,
                                    .keeps_state = true,
                                    .needs_sums = true,
                                    .has_bias = true,
                                    .has_classes = true,
                                    .own_rows = true,
                                    .unfiltered = "what it sends are differences, of which none may be lost",
                                    .plan = l1lr_plan,
                                    .work = l1lr_work,
                                    .keep = l1lr_keep,
                                    .end = l1lr_end,
                                    .open = l1lr_open,
                                    .predict = rbt_weights_predict,
                                    .as_trained = rbt_weights_trained,
                                    .evaluate = rbt_weights_evaluate,
                                    .describe = rbt_weights_describe};
