/* Newton's method: the way. Contract in newton.h; proved by tests/unit/test_newton.c. */
#include "solve/newton_state.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "solve/quadratic.h"

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

/* A way is begun on some of the rows, for each parameter of an output so many, if that is no more than a part of
 * all. */
#define SAMPLE_EACH  16
#define SAMPLE_PART  4
#define SAMPLE_STEPS 2
#define SAMPLE_CALM  0.02 /* of the objective is a fall beyond which other rows would say something else */

/* How round a corner is: newton_loss.c. */
#define ROUND_FIRST 1.0
#define ROUND_LESS  0.4 /* times as round it is at least the next time, or an iteration would not find its way */
#define ROUND_CALM  4   /* times what rounding costs is a way to the rounded optimum after which it is less round */
#define ROUND_SHARE 9   /* of what is near enough, rounding may cost one such part */
#define ROUND_DOUBT 2   /* times what the model promised is how far it was to the rounded optimum */

static bool is_small(const rbt_problem *p)
{
    return p->outputs == 1 && p->n <= RBT_NEWTON_SQUARE;
}

bool rbt_newton_rounds(const rbt_problem *problem)
{
    return problem->model->link != NULL && isinf(problem->model->link->steepest);
}

/* With l1 the model is solved for one parameter after the other, and a rounded corner needs many iterations: both are
 * for few parameters, and second derivatives at hand. */
static bool must_be_small(const rbt_problem *p)
{
    return p->l1 > 0 || rbt_newton_rounds(p);
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
    return rbt_problem_is_walkable(problem) && (!must_be_small(problem) || may_be_small(problem));
}

/* Leaves out the columns that do not occur, if these are the most; where there must be few, in any case. */
static rbt_err narrow_down(rbt_newton *t, const rbt_problem *problem, rbt_error *error)
{
    const rbt_data *data = problem->data;
    size_t cols = problem->shape->cols, biases = problem->n - problem->weights;
    t->problem = problem;
    size_t most = must_be_small(problem) ? cols : cols / 2;
    if (must_be_small(problem) ? is_small(problem) : cols <= MANY)
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

/* Of few parameters and short rows the second derivatives are added up once, instead of going through the rows for each
 * product. */
static bool may_square(const rbt_problem *p)
{
    double pairs = 0;
    if (!is_small(p) || must_be_small(p))
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
    t->round = rbt_newton_rounds(p) ? ROUND_FIRST : 0;
    t->losses = rbt_alloc(threads, sizeof *t->losses);
    if (may_square(p)) {
        t->square = rbt_alloc(threads * n * n, sizeof *t->square);
        t->factor = rbt_alloc(p->l1 > 0 ? RBT_QUADRATIC_ROOM(n) : n * n, sizeof *t->factor);
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

/* --------------------------------------------------------------------------------------------------- iteration */

/* Where the last pass for a gradient was. */
static double objective_here(rbt_newton *t)
{
    double losses = 0;
    for (uint32_t m = 0; m < rbt_team_threads(t->team); m++)
        losses += t->losses[m];
    return rbt_newton_objective(t, losses);
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
        rbt_newton_pass(t, PASS_PRODUCT, d, q, NULL);
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
    return rbt_quadratic_solve_l1(p->n, t->square, t->gradient, p->shape->bias, t->w, p->l1, t->step, t->factor);
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
 * iterations, at the slower pace: at once where the quadratic model holds, by a constant factor where huber's far rows
 * bend less than it says. What is left to rounding does not shrink any more. */
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

/* Derivatives and objective at t->w, whose decision values are then known. */
static double derive(rbt_newton *t)
{
    const rbt_problem *p = t->problem;
    if (!t->scored && rbt_newton_is_zero(t->w, p->n)) {
        rbt_newton_score(t, t->w, t->z);
        t->scored = true;
    }
    rbt_newton_pass(t, PASS_GRADIENT, t->scored ? NULL : t->w, t->gradient, t->diagonal);
    t->scored = true;
    for (size_t i = 0; i < p->n; i++) {
        t->gradient[i] += i < p->weights ? p->l2 * t->w[i] : 0;
        t->diagonal[i] = fmax(t->diagonal[i] + (i < p->weights ? p->l2 : 0), LEAST);
    }
    return objective_here(t);
}

/* The share of t->step that is gone: all of it, or half as often as it takes for the objective to fall by `most` times
 * the share. Along a rounded corner the model holds for a small part of the way only: there it is halved as long as it
 * falls further, and what lies beside that is tried, too. */
static double shorten(rbt_newton *t, double before, double most, double *after)
{
    double step = 1, there;
    bool enough = false;
    *after = rbt_newton_objective_along(t, step);
    for (int i = 0; i < HALVINGS; i++) {
        enough = *after <= before + most * step;
        if (enough && t->round == 0)
            break;
        there = rbt_newton_objective_along(t, step / 2);
        if (enough && !(there < *after))
            break;
        *after = there;
        step /= 2;
    }
    for (int i = 0; t->round > 0 && i < 2; i++) {
        static const double BESIDE[] = {0.7, 1.4};
        there = rbt_newton_objective_along(t, BESIDE[i] * step);
        if (there < *after) {
            *after = there;
            step *= BESIDE[i];
        }
    }
    return step;
}

typedef struct iteration {
    double before, after; /* the objective, that of the rounded losses where there is a corner */
    double fall;          /* by the model */
    bool whole;           /* the step */
} iteration;

/* One iteration from t->w, whose derivatives are there; it moves t->w. False: it is as good as it gets, or nothing
 * holds a bias any more, as every row is far on its label's side; t->w stays. */
static bool advance(rbt_newton *t, double before, double close, iteration *it)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n;
    *it = (iteration){.before = before};
    memset(t->step, 0, n * sizeof *t->step);
    if (t->square == NULL)
        solve(t, close * before, &it->fall);
    else
        it->fall = solve_square(t);
    rbt_newton_score(t, t->step, t->zd);
    double slope = dot(t->gradient, t->step, n);
    for (size_t i = 0; p->l1 > 0 && i < p->weights; i++)
        slope += p->l1 * (fabs(t->w[i] + t->step[i]) - fabs(t->w[i]));
    double step = shorten(t, before, SLACK * slope, &it->after);
    it->whole = step == 1;
    if (!(it->after <= before) || !is_finite(t->w, n) || !is_finite(t->step, n)) {
        it->after = before;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        t->w[i] += step * t->step[i];
    for (size_t i = 0; i < t->rows * p->outputs; i++)
        t->z[i] += step * t->zd[i];
    return true;
}

/* Where the loss has a corner: the true objective, and how far that is above the optimum: by what is left of the way to
 * the rounded one's, and by what rounding costs. When that is most of it, and too much for a gap of `close`, the corner
 * is rounded less. */
static double settle_corner(rbt_newton *t, const iteration *it, double close, double *gap)
{
    double cost, objective = rbt_newton_true_objective(t, &cost);
    double left = fmax(ROUND_DOUBT * it->fall - (it->before - it->after), 0);
    double enough = fmax(close / ROUND_SHARE, ROUNDING) * objective;
    *gap = left + cost;
    if (left < ROUND_CALM * cost && cost > enough)
        t->round *=
            fmax(sqrt(enough / cost), ROUND_LESS); /* it costs its square: how far rows are off, times how many */
    return objective;
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

/* Begins the way from nothing on some of the rows, where these say nearly as much as all and each iteration is exact.
 * False: they do not. */
static bool approach(rbt_newton *t)
{
    const rbt_problem *p = t->problem;
    size_t rows = p->data->rows, part = rows / (SAMPLE_EACH * (p->n + 1));
    iteration it;
    if (part < SAMPLE_PART || rows > UINT32_MAX || p->data->streamed || t->square == NULL ||
        p->model->link == &rbt_link_squares || /* of which one iteration is all */
        t->round > 0)                          /* the way around other rows' corners is another one */
        return false;
    uint32_t *sample = choose_rows(rows, part, &t->rows);
    t->sample = sample;
    for (int i = 0; i < SAMPLE_STEPS; i++)
        if (!advance(t, derive(t), 0, &it) || it.fall <= SAMPLE_CALM * it.after)
            break;
    t->sample = NULL;
    t->rows = rows;
    t->scored = false;
    rbt_free(sample);
    return true;
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
    iteration it;
    if (take(t, w))
        t->scored = false;
    t->visits = 0;
    bool approached = !t->begun && rbt_newton_is_zero(t->w, n) && approach(t);
    double before = derive(t);
    if (approached && !(before < rbt_newton_objective_at_zero(t))) { /* the rows it began with have misled */
        memset(t->w, 0, n * sizeof *t->w);
        t->scored = false;
        before = derive(t);
    }
    t->begun = true;
    (void)advance(t, before, close, &it);
    double after = it.after;
    *gap = estimate(t, it.fall, after, it.whole);
    if (t->round > 0)
        after = settle_corner(t, &it, close, gap);
    *visits = t->visits;
    for (size_t i = 0; i < n; i++)
        w[whole(t, i)] = (float)t->w[i];
    return after;
}
