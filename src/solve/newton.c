/* Newton's method. Contract in newton.h; proved by tests/unit/test_newton.c.
 *
 * Everything is in double: z are the decision values of all rows (or of those of a sample), and per row the second
 * derivative (softmax: the probabilities, from which it follows) is kept for the products with a direction. */
#include "solve/newton.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/link.h"
#include "model/model.h"
#include "solve/columns.h"
#include "solve/quadratic.h"
#include "solve/rows.h"

#define MANY     4096 /* columns: of more it is seen which ones occur */
#define SHORT    32   /* values of a row, with which adding up second derivatives costs less than the passes it saves */
#define CG_STEPS 200
#define CG_WORTH 0.1   /* of the mean step's gain is what a step of conjugate gradients must bring, ... */
#define CG_CALM  2     /* ... or after so many that do not it ends, ... */
#define CG_SURE  6     /* ... or so many where the end may be near: much can hide behind some small steps */
#define CG_SMALL 32    /* parameters: with so few it takes as many steps, after which only rounding is left */
#define CG_EXACT 1e-20 /* of the residual's square is what rounding leaves */
#define ROUNDING 1e-9  /* of the objective */
#define LEAST    1e-12 /* second derivative, as of a bias that no row bends */
#define STEADY   0.1   /* pace: in a quadratic model's own ground falls shrink faster */
#define HALVINGS 30
#define SLACK    1e-4 /* of the fall the slope promises, that a step must bring */

/* A way is begun on some of the rows, for each parameter of an output so many, if that is no more than a part of all. */
#define SAMPLE_EACH  16
#define SAMPLE_PART  4
#define SAMPLE_STEPS 2
#define SAMPLE_CALM  0.02 /* of the objective is a fall beyond which other rows would say something else */

struct rbt_newton {
    const rbt_problem *problem;
    rbt_problem narrow; /* the problem of the columns that occur, where most do not ... */
    rbt_columns columns;
    uint32_t *column; /* ... these, in ascending order ... */
    uint32_t *places; /* ... and a row's indices among them: threads * longest */
    size_t longest;   /* row */
    rbt_team *team;
    double *w, *gradient, *diagonal, *step; /* n each */
    double *residual, *direction, *product; /* of conjugate gradients, n each */
    const uint32_t *sample;                 /* the rows that passes go through, or NULL: all of them */
    size_t rows;                            /* so many */
    double *z, *bend, *zd;                  /* rows * outputs: decision values, second derivatives, along a direction */
    double *partial;                        /* threads * 2 n: sums of each thread */
    double *square;                         /* threads * n^2: likewise of all second derivatives, or NULL ... */
    double *factor;                         /* ... and room for as many as a thread has */
    double *losses;                         /* threads: likewise of the rows' losses */
    bool begun;
    bool scored;          /* z is that of w */
    uint64_t visits;      /* of rows, by passes */
    double falls[2];      /* that the model promised in the last iteration and in the one before */
    const double *vector; /* what a pass multiplies with, ... */
    double *scores;       /* ... and where its decision values go: z or zd */
    enum { PASS_SCORES, PASS_GRADIENT, PASS_PRODUCT } what;
};

static bool is_small(const rbt_problem *p)
{
    return p->outputs == 1 && p->n <= RBT_NEWTON_SQUARE;
}

/* Counting only columns that occur. */
static bool may_be_small(const rbt_problem *p)
{
    rbt_columns columns = {0};
    size_t most = RBT_NEWTON_SQUARE - (p->n - p->weights);
    bool small = is_small(p) ||
                 (p->outputs == 1 && rbt_columns_init(&columns, p, most, NULL) == RBT_OK && columns.count <= most);
    rbt_columns_deinit(&columns);
    return small;
}

bool rbt_newton_fits(const rbt_problem *problem)
{
    bool smooth = problem->model->link == NULL || isfinite(problem->model->link->steepest);
    return rbt_problem_is_walkable(problem) && smooth && (problem->l1 == 0 || may_be_small(problem));
}

/* Leaves out the columns that do not occur, if these are the most; with l1, where few do, in any case. */
static rbt_err narrow_down(rbt_newton *t, const rbt_problem *problem, rbt_error *error)
{
    const rbt_data *data = problem->data;
    size_t cols = problem->shape->cols, biases = problem->n - problem->weights;
    t->problem = problem;
    size_t most = problem->l1 > 0 ? cols : cols / 2;
    if (problem->l1 > 0 ? is_small(problem) : cols <= MANY)
        return RBT_OK;
    rbt_err err = rbt_columns_init(&t->columns, problem, most, error);
    if (err != RBT_OK || t->columns.count > most) {
        rbt_columns_deinit(&t->columns);
        return err;
    }
    t->narrow = *problem;
    t->narrow.weights = t->columns.count * problem->outputs;
    t->narrow.n = t->narrow.weights + biases;
    t->problem = &t->narrow;
    for (size_t r = 0; r < data->rows; r++)
        t->longest =
            data->start[r + 1] - data->start[r] > t->longest ? data->start[r + 1] - data->start[r] : t->longest;
    t->places = rbt_alloc(rbt_team_threads(t->team) * t->longest + 1, sizeof *t->places);
    t->column = rbt_alloc(t->columns.count + 1, sizeof *t->column);
    for (uint32_t j = 0, at = 0; j < cols; j++)
        if (rbt_columns_occurs(&t->columns, j))
            t->column[at++] = j;
    return RBT_OK;
}

/* Of few parameters and short rows the second derivatives are added up once, instead of going through the rows for each product; of
 * few parameters with l1 in any case. */
static bool may_square(const rbt_problem *p)
{
    double pairs = 0;
    if (!is_small(p) || p->l1 > 0)
        return is_small(p);
    for (size_t r = 0; r < p->data->rows; r++) {
        double n = (double)(p->data->start[r + 1] - p->data->start[r]);
        pairs += n * n;
    }
    return pairs <= SHORT * (double)p->data->nnz;
}

static rbt_err allocate(rbt_newton *t, rbt_error *error)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n, cells = p->data->rows * p->outputs, threads = rbt_team_threads(t->team);
    double *vectors = t->w = rbt_try_alloc(7 * n, sizeof *vectors);
    double *rows = t->z = rbt_try_alloc(cells, RBT_NEWTON_ROW_BYTES);
    t->partial = rbt_try_alloc(threads * 2 * n, sizeof *t->partial);
    if (vectors == NULL || rows == NULL || t->partial == NULL)
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for Newton's method on %zu rows and %zu parameters; use --optimizer sgd",
                        p->data->rows, n);
    t->gradient = vectors + n;
    t->diagonal = vectors + 2 * n;
    t->step = vectors + 3 * n;
    t->residual = vectors + 4 * n;
    t->direction = vectors + 5 * n;
    t->product = vectors + 6 * n;
    t->bend = rows + cells;
    t->zd = rows + 2 * cells;
    t->rows = p->data->rows;
    t->losses = rbt_alloc(threads, sizeof *t->losses);
    if (may_square(p)) {
        t->square = rbt_alloc(threads * n * n, sizeof *t->square);
        t->factor = rbt_alloc(n * n, sizeof *t->factor);
    }
    return RBT_OK;
}

rbt_err rbt_newton_create(const rbt_problem *problem, rbt_team *team, rbt_newton **newton, rbt_error *error)
{
    rbt_newton *t = rbt_alloc(1, sizeof *t);
    t->team = team;
    rbt_err err = narrow_down(t, problem, error);
    if (err == RBT_OK)
        err = allocate(t, error);
    if (err == RBT_OK)
        *newton = t;
    else
        rbt_newton_destroy(t);
    return err;
}

void rbt_newton_destroy(rbt_newton *newton)
{
    if (newton == NULL)
        return;
    rbt_free(newton->w);
    rbt_free(newton->z);
    rbt_free(newton->partial);
    rbt_free(newton->square);
    rbt_free(newton->factor);
    rbt_free(newton->losses);
    rbt_free(newton->places);
    rbt_free(newton->column);
    rbt_columns_deinit(&newton->columns);
    rbt_free(newton);
}

/* ------------------------------------------------------------------------------------------------------ passes */

/* The row's decision values under `vector`. */
static void scores(const rbt_problem *p, rbt_row row, const double *vector, double *z)
{
    size_t k = p->outputs;
    for (size_t c = 0; c < k; c++)
        z[c] = p->shape->bias ? vector[p->weights + c] : 0;
    if (k == 1) {
        double sum = *z;
        for (size_t i = 0; i < row.n; i++)
            sum += (double)row.value[i] * vector[row.index[i]];
        *z = sum;
        return;
    }
    for (size_t i = 0; i < row.n; i++)
        for (size_t c = 0; c < k; c++)
            z[c] += (double)row.value[i] * vector[(size_t)row.index[i] * k + c];
}

/* sum += x s^T, and diagonal += x^2 d^T. */
static void add_row(const rbt_problem *p, rbt_row row, const double *s, const double *d, double *sum, double *diagonal)
{
    size_t k = p->outputs;
    for (size_t i = 0; i < row.n; i++) {
        double x = (double)row.value[i];
        size_t at = (size_t)row.index[i] * k;
        for (size_t c = 0; c < k; c++)
            sum[at + c] += x * s[c];
        for (size_t c = 0; d != NULL && c < k; c++)
            diagonal[at + c] += x * x * d[c];
    }
    for (size_t c = 0; p->shape->bias && c < k; c++) {
        sum[p->weights + c] += s[c];
        if (d != NULL)
            diagonal[p->weights + c] += d[c];
    }
}

/* Of one output: sum += s x, and square += d x x^T above the diagonal and on it. A row's indices ascend, and the bias is the
 * last. */
static void add_square(const rbt_problem *p, rbt_row row, double s, double d, double *sum, double *square)
{
    for (size_t i = 0; i < row.n; i++) {
        double x = (double)row.value[i], *line = square + row.index[i] * p->n;
        sum[row.index[i]] += s * x;
        x *= d;
        for (size_t j = i; j < row.n; j++)
            line[row.index[j]] += x * (double)row.value[j];
        if (p->shape->bias)
            line[p->weights] += x;
    }
    if (p->shape->bias) {
        sum[p->weights] += s;
        square[p->weights * p->n + p->weights] += d;
    }
}

/* The row at a place in the arrays that rows have here. */
static size_t row_of(const rbt_newton *t, size_t place)
{
    return t->sample != NULL ? t->sample[place] : place;
}

/* Losses of n rows, weighted, for rows of one output; and unless s is NULL slopes and second derivatives. */
static double derive_one(const rbt_newton *t, size_t first, size_t n, const double *z, double *s, double *bend)
{
    const rbt_problem *p = t->problem;
    double y[RBT_LINK_ROWS], loss[RBT_LINK_ROWS], total = 0;
    for (size_t i = 0; i < n; i++)
        y[i] = rbt_link_target(p->shape, p->data, row_of(t, first + i));
    rbt_link_all(p->model->link, n, z, y, p->shape->delta, loss, s, bend);
    for (size_t i = 0; i < n; i++) {
        double weight = rbt_data_weight(p->data, row_of(t, first + i));
        total += weight * loss[i];
        if (s != NULL) {
            s[i] *= weight;
            bend[i] *= weight;
        }
    }
    return total;
}

/* The same of softmax; `d` receives the diagonal of the second derivative, `bend` the probabilities, from which all of it follows. */
static double derive_softmax(const rbt_newton *t, size_t first, size_t n, double *s, double *d)
{
    const rbt_problem *p = t->problem;
    size_t k = p->outputs;
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t r = row_of(t, first + i), label = (size_t)p->data->label[r];
        double weight = rbt_data_weight(p->data, r), *bend = t->bend + (first + i) * k;
        memcpy(bend, t->z + (first + i) * k, k * sizeof *bend);
        total += weight * rbt_softmax(bend, k, label);
        for (size_t c = 0; c < k; c++) {
            s[i * k + c] = weight * (bend[c] - (c == label ? 1 : 0));
            d[i * k + c] = weight * bend[c] * (1 - bend[c]);
        }
    }
    return total;
}

/* The second derivative times u, in place. */
static void multiply(const rbt_problem *p, size_t r, const double *bend, double *u)
{
    size_t k = p->outputs;
    double weight = rbt_data_weight(p->data, r), mean = 0;
    if (p->model->link != NULL) {
        *u *= *bend;
        return;
    }
    for (size_t c = 0; c < k; c++)
        mean += bend[c] * u[c];
    for (size_t c = 0; c < k; c++)
        u[c] = weight * bend[c] * (u[c] - mean);
}

/* A row with its indices as the vectors here have them. */
static rbt_row row_at(const rbt_newton *t, size_t r, uint32_t thread)
{
    rbt_row row = rbt_row_of(t->problem->data, r, t->problem->shape->cols);
    if (t->places == NULL)
        return row;
    uint32_t *places = t->places + thread * t->longest;
    for (size_t i = 0; i < row.n; i++)
        places[i] = rbt_columns_place(&t->columns, row.index[i]);
    row.index = places;
    return row;
}

/* A thread's own memory during a pass. */
typedef struct own {
    double *sum, *diagonal;
    double *square; /* or NULL */
    double *s, *d;  /* RBT_LINK_ROWS * outputs each: these lines are written with every row */
} own;

static double pass_rows(rbt_newton *t, uint32_t thread, const own *o, size_t first, size_t n)
{
    const rbt_problem *p = t->problem;
    size_t k = p->outputs;
    double loss = 0, *d = p->model->link != NULL ? t->bend + first : o->d;
    if (t->what == PASS_GRADIENT)
        loss = p->model->link != NULL ? derive_one(t, first, n, t->z + first, o->s, d)
                                      : derive_softmax(t, first, n, o->s, d);
    for (size_t i = 0; i < n; i++) {
        size_t r = row_of(t, first + i);
        rbt_row row = row_at(t, r, thread);
        if (t->what == PASS_SCORES) {
            scores(p, row, t->vector, t->scores + (first + i) * k);
        } else if (t->what == PASS_PRODUCT) {
            scores(p, row, t->vector, o->s);
            multiply(p, r, t->bend + (first + i) * k, o->s);
            add_row(p, row, o->s, NULL, o->sum, NULL);
        } else if (o->square != NULL) {
            add_square(p, row, o->s[i], d[i], o->sum, o->square);
        } else {
            add_row(p, row, o->s + i * k, d + i * k, o->sum, o->diagonal);
        }
    }
    rbt_data_release_passed(p->data, first, n); /* streamed data, which is never sampled */
    return loss;
}

static void pass_thread(void *context, uint32_t thread)
{
    rbt_newton *t = context;
    const rbt_problem *p = t->problem;
    size_t threads = rbt_team_threads(t->team), end = t->rows * (thread + 1) / threads;
    own o = {.sum = t->partial + thread * 2 * p->n};
    double loss = 0;
    o.diagonal = o.sum + p->n;
    o.s = rbt_alloc(2 * RBT_LINK_ROWS * p->outputs, sizeof *o.s);
    o.d = o.s + RBT_LINK_ROWS * p->outputs;
    memset(o.sum, 0, 2 * p->n * sizeof *o.sum);
    if (t->square != NULL && t->what == PASS_GRADIENT) {
        o.square = t->square + thread * p->n * p->n;
        memset(o.square, 0, p->n * p->n * sizeof *o.square);
    }
    for (size_t i = t->rows * thread / threads; i < end; i += RBT_LINK_ROWS)
        loss += pass_rows(t, thread, &o, i, end - i < RBT_LINK_ROWS ? end - i : RBT_LINK_ROWS);
    t->losses[thread] = loss;
    rbt_free(o.s);
}

/* A pass; `sum` (and `diagonal`) become means over the rows. */
static void pass(rbt_newton *t, int what, const double *vector, double *sum, double *diagonal)
{
    const rbt_problem *p = t->problem;
    size_t threads = rbt_team_threads(t->team);
    t->what = what;
    t->vector = vector;
    t->visits += t->rows;
    rbt_team_run(t->team, pass_thread, t);
    for (size_t i = 0; sum != NULL && i < p->n; i++) {
        sum[i] = 0;
        for (size_t m = 0; m < threads; m++)
            sum[i] += t->partial[m * 2 * p->n + i];
        sum[i] /= (double)t->rows;
    }
    for (size_t i = 0; diagonal != NULL && i < p->n; i++) {
        diagonal[i] = 0;
        for (size_t m = 0; m < threads; m++)
            diagonal[i] += t->partial[m * 2 * p->n + p->n + i];
        diagonal[i] /= (double)t->rows;
    }
}

static bool is_zero(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] != 0)
            return false;
    return true;
}

/* The decision values of the rows under a vector; where nothing has been learned yet it takes no pass. */
static void score(rbt_newton *t, const double *vector, double *z)
{
    const rbt_problem *p = t->problem;
    t->scores = z;
    if (is_zero(vector, p->n))
        memset(z, 0, t->rows * p->outputs * sizeof *z);
    else
        pass(t, PASS_SCORES, vector, NULL, NULL);
}

/* --------------------------------------------------------------------------------------------------- iteration */

typedef struct along {
    const rbt_newton *newton;
    double step;
} along;

/* The losses at z + step * zd; without a step zd is left alone, which may never have been written to. */
static double losses_along(void *context, size_t first, size_t n)
{
    const along *a = context;
    const rbt_newton *t = a->newton;
    const rbt_problem *p = t->problem;
    size_t k = p->outputs, together = p->model->link != NULL ? RBT_LINK_ROWS : 1;
    double total = 0, *z = rbt_alloc(together * k, sizeof *z);
    for (size_t end = first + n; first < end; first += n) {
        n = end - first < together ? end - first : together;
        for (size_t i = 0; i < n * k; i++)
            z[i] = t->z[first * k + i] + (a->step > 0 ? a->step * t->zd[first * k + i] : 0);
        if (p->model->link != NULL)
            total += derive_one(t, first, n, z, NULL, NULL);
        else
            total += rbt_data_weight(p->data, row_of(t, first)) *
                     rbt_softmax(z, k, (size_t)p->data->label[row_of(t, first)]);
    }
    rbt_free(z);
    return total;
}

/* With the losses of all rows there. */
static double objective(const rbt_newton *t, double step, double losses)
{
    const rbt_problem *p = t->problem;
    double squares = 0, sizes = 0;
    for (size_t i = 0; i < p->weights; i++) {
        double w = t->w[i] + (step > 0 ? step * t->step[i] : 0);
        squares += w * w;
        sizes += fabs(w);
    }
    return losses / (double)t->rows + p->l2 / 2 * squares + p->l1 * sizes;
}

static double objective_along(rbt_newton *t, double step)
{
    along a = {t, step};
    return objective(t, step, rbt_team_sum(t->team, t->rows, losses_along, &a));
}

/* Where the last pass for a gradient was. */
static double objective_here(rbt_newton *t)
{
    double losses = 0;
    for (uint32_t m = 0; m < rbt_team_threads(t->team); m++)
        losses += t->losses[m];
    return objective(t, 0, losses);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Puts the threads' sums together: all of it then is in the first one's, as a mean over the rows, with l2's part. */
static void complete_square(rbt_newton *t)
{
    size_t n = t->problem->n, threads = rbt_team_threads(t->team);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; j < n; j++) {
            double sum = 0;
            for (size_t m = 0; m < threads; m++)
                sum += t->square[m * n * n + i * n + j];
            t->square[i * n + j] = t->square[j * n + i] = sum / (double)t->rows;
        }
        t->square[i * n + i] += i < t->problem->weights ? t->problem->l2 : 0;
        t->square[i * n + i] = fmax(t->square[i * n + i], LEAST);
    }
}

/* Solves (second derivative) step = -gradient, roughly, from a step of 0. `fall` is how far the quadratic model falls
 * with it: when that is no more than `near`, it is made sure of. */
static void solve(rbt_newton *t, double near, double *fall)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n;
    double *r = t->residual, *d = t->direction, *q = t->product, rho = 0, total = 0, exact;
    uint64_t steps = 0;
    int calm = 0, enough = CG_SURE;
    for (size_t i = 0; i < n; i++) {
        r[i] = -t->gradient[i];
        d[i] = r[i] / t->diagonal[i];
        rho += r[i] * d[i];
    }
    exact = CG_EXACT * rho;
    while (steps < CG_STEPS && rho > exact && (calm < enough || (n <= CG_SMALL && steps < n))) {
        pass(t, PASS_PRODUCT, d, q, NULL);
        for (size_t i = 0; i < p->weights; i++)
            q[i] += p->l2 * d[i];
        steps++;
        double curve = dot(d, q, n);
        if (!(curve > 0)) { /* nothing bends that numbers could tell: how far it falls is not known */
            total = steps > 1 ? total : INFINITY;
            break;
        }
        double far = rho / curve, before = rho, gain = far * rho / 2; /* of the model's fall, by this step */
        total += gain;
        calm = (double)steps * gain < CG_WORTH * total ? calm + 1 : 0;
        enough = total > near ? CG_CALM : CG_SURE;
        rho = 0;
        for (size_t i = 0; i < n; i++) {
            t->step[i] += far * d[i];
            r[i] -= far * q[i];
            rho += r[i] * r[i] / t->diagonal[i];
        }
        for (size_t i = 0; i < n; i++)
            d[i] = r[i] / t->diagonal[i] + rho / before * d[i];
    }
    *fall = total;
}

/* The same exactly, where the second derivatives have been added up; answers with the fall. */
static double solve_square(rbt_newton *t)
{
    const rbt_problem *p = t->problem;
    complete_square(t);
    if (p->l1 == 0)
        return rbt_quadratic_solve(p->n, t->square, t->gradient, t->step, t->factor);
    return rbt_quadratic_solve_l1(p->n, t->square, t->gradient, p->shape->bias, t->w, p->l1, t->step, t->residual,
                                  t->factor);
}

/* Where a parameter is in the vector of all of them. */
static size_t whole(const rbt_newton *t, size_t i)
{
    const rbt_problem *p = t->problem;
    if (t->places == NULL)
        return i;
    return i < p->weights ? (size_t)t->column[i / p->outputs] * p->outputs + i % p->outputs
                          : p->shape->cols * p->outputs + (i - p->weights);
}

/* How far it still is to the optimum after a whole step, when the falls go on to shrink as they did in the last two
 * iterations, at the slower pace: at once where the quadratic model holds, by a constant factor where huber's far rows bend
 * less than it says. What is left to rounding does not shrink any more. */
static double estimate(rbt_newton *t, double fall, double objective, bool whole_step)
{
    double pace = fmax(fall / t->falls[0], t->falls[0] / t->falls[1]);
    bool known = whole_step && t->falls[1] > 0 && pace < 1;
    t->falls[1] = t->falls[0];
    t->falls[0] = fall;
    bool changes = t->problem->model->link == &rbt_link_huber; /* and with it which rows are far */
    double doubt = pace <= STEADY ? 1 : changes ? 8 : 2;       /* steady falls shrink more slowly in the end */
    return fall <= ROUNDING * objective ? fall : known ? doubt * fall * pace / (1 - pace) : INFINITY;
}

static bool is_finite(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(values[i]);
    return sum < (double)FLT_MAX / 2;
}

/* One iteration from t->w, which it moves; how far that falls by the model. *whole: by a whole step; *after: the objective then. False:
 * it is as good as it gets, or nothing holds a bias any more, as every row is far on its label's side; t->w is as it was. */
static bool advance(rbt_newton *t, double close, double *after, double *fall, bool *whole_step)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n;
    double step = 1, before;
    memset(t->step, 0, n * sizeof *t->step);
    if (!t->scored)
        score(t, t->w, t->z);
    t->scored = true;
    pass(t, PASS_GRADIENT, NULL, t->gradient, t->diagonal);
    for (size_t i = 0; i < n; i++) {
        t->gradient[i] += i < p->weights ? p->l2 * t->w[i] : 0;
        t->diagonal[i] = fmax(t->diagonal[i] + (i < p->weights ? p->l2 : 0), LEAST);
    }
    before = objective_here(t);
    if (t->square == NULL)
        solve(t, close * before, fall);
    else
        *fall = solve_square(t);
    score(t, t->step, t->zd);
    double slope = dot(t->gradient, t->step, n);
    for (size_t i = 0; p->l1 > 0 && i < p->weights; i++)
        slope += p->l1 * (fabs(t->w[i] + t->step[i]) - fabs(t->w[i]));
    *after = objective_along(t, step);
    for (int i = 0; i < HALVINGS && !(*after <= before + SLACK * step * slope); i++) {
        step /= 2;
        *after = objective_along(t, step);
    }
    *whole_step = step == 1;
    if (!(*after <= before) || !is_finite(t->w, n) || !is_finite(t->step, n)) {
        *after = before;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        t->w[i] += step * t->step[i];
    for (size_t i = 0; i < t->rows * p->outputs; i++)
        t->z[i] += step * t->zd[i];
    return true;
}

/* Some of the rows, in order, with gaps at random. */
static uint32_t *choose_rows(size_t rows, size_t part, size_t *n)
{
    size_t most = 2 * (rows / part);
    uint32_t *chosen = rbt_alloc(most, sizeof *chosen);
    rbt_rng rng = rbt_rng_stream(0, RBT_STREAM_BATCH, rows);
    *n = 0;
    for (size_t r = rbt_rng_below(&rng, part); r < rows && *n < most; r += 1 + rbt_rng_below(&rng, 2 * part - 1))
        chosen[(*n)++] = (uint32_t)r;
    return chosen;
}

/* The objective at t->w, whose decision values are then there. */
static double objective_at(rbt_newton *t)
{
    score(t, t->w, t->z);
    t->scored = true;
    return objective_along(t, 0);
}

/* Begins the way from nothing on some of the rows, where these say nearly as much as all and each iteration is exact. */
static void approach(rbt_newton *t)
{
    const rbt_problem *p = t->problem;
    size_t rows = p->data->rows, part = rows / (SAMPLE_EACH * (p->n + 1));
    double from, after, fall;
    bool whole_step;
    if (part < SAMPLE_PART || rows > UINT32_MAX || p->data->streamed || t->square == NULL ||
        p->model->link == &rbt_link_squares) /* of which one iteration is all */
        return;
    from = objective_at(t);
    uint32_t *sample = choose_rows(rows, part, &t->rows);
    t->sample = sample;
    t->scored = false;
    for (int i = 0; i < SAMPLE_STEPS && advance(t, 0, &after, &fall, &whole_step) && fall > SAMPLE_CALM * after; i++)
        continue;
    t->sample = NULL;
    t->rows = rows;
    rbt_free(sample);
    if (objective_at(t) < from)
        return;
    memset(t->w, 0, p->n * sizeof *t->w);
    t->scored = false;
}

/* Takes over parameters; false: they are those of before. */
static bool take(rbt_newton *t, const float *w)
{
    bool others = false;
    for (size_t i = 0; i < t->problem->n; i++)
        if (!((float)t->w[i] == w[whole(t, i)])) {
            t->w[i] = (double)w[whole(t, i)];
            others = true;
        }
    return others;
}

double rbt_newton_iterate(rbt_newton *t, float *w, double close, double *gap, uint64_t *visits)
{
    size_t n = t->problem->n;
    double after, fall;
    bool whole_step;
    if (take(t, w))
        t->scored = false;
    t->visits = 0;
    if (!t->begun && is_zero(t->w, n))
        approach(t);
    t->begun = true;
    (void)advance(t, close, &after, &fall, &whole_step);
    *gap = estimate(t, fall, after, whole_step);
    *visits = t->visits;
    for (size_t i = 0; i < n; i++)
        w[whole(t, i)] = (float)t->w[i];
    return after;
}
