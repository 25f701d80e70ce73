/* Newton's method with conjugate gradients. Contract in newton.h; proved by tests/unit/test_solve.c.
 *
 * Everything is in double: z are the decision values of all rows, and per row the second derivative (softmax: the
 * probabilities, from which it follows) is kept for the products with a direction. */
#include "solve/newton.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "model/link.h"
#include "model/model.h"
#include "solve/rows.h"

#define CG_STEPS 200
#define CG_WORTH 0.1 /* of the mean step's gain: a step of conjugate gradients that brings less is the last */
#define HALVINGS 30
#define SLACK    1e-4 /* of the fall the slope promises, that a step must bring */

struct rbt_newton {
    const rbt_problem *problem;
    rbt_team *team;
    double *w, *gradient, *diagonal, *step; /* n each */
    double *residual, *direction, *product; /* of conjugate gradients, n each */
    double *z, *bend, *zd;                  /* rows * outputs: decision values, second derivatives, along a direction */
    double *partial;                        /* threads * 2 n: sums of each thread */
    double *scratch;                        /* threads * outputs */
    const double *vector;                   /* what a pass multiplies with */
    enum { PASS_SCORES, PASS_GRADIENT, PASS_PRODUCT } what;
};

bool rbt_newton_fits(const rbt_problem *problem)
{
    return problem->l1 == 0 && problem->l2 > 0 && rbt_problem_is_walkable(problem) &&
           (problem->model->link == NULL || isfinite(problem->model->link->steepest));
}

rbt_err rbt_newton_create(const rbt_problem *problem, rbt_team *team, rbt_newton **newton, rbt_error *error)
{
    size_t n = problem->n, cells = problem->data->rows * problem->outputs, threads = rbt_team_threads(team);
    double *vectors = rbt_try_alloc(7 * n, sizeof *vectors), *rows = rbt_try_alloc(cells, 3 * sizeof *rows);
    double *partial = rbt_try_alloc(threads * 2 * n, sizeof *partial);
    if (vectors == NULL || rows == NULL || partial == NULL) {
        rbt_free(vectors);
        rbt_free(rows);
        rbt_free(partial);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for Newton's method on %zu rows; use --optimizer sdca",
                        problem->data->rows);
    }
    *newton = rbt_alloc(1, sizeof **newton);
    **newton = (rbt_newton){.problem = problem,
                            .team = team,
                            .w = vectors,
                            .gradient = vectors + n,
                            .diagonal = vectors + 2 * n,
                            .step = vectors + 3 * n,
                            .residual = vectors + 4 * n,
                            .direction = vectors + 5 * n,
                            .product = vectors + 6 * n,
                            .z = rows,
                            .bend = rows + cells,
                            .zd = rows + 2 * cells,
                            .partial = partial,
                            .scratch = rbt_alloc(threads * problem->outputs, sizeof(double))};
    return RBT_OK;
}

void rbt_newton_destroy(rbt_newton *newton)
{
    if (newton == NULL)
        return;
    rbt_free(newton->w);
    rbt_free(newton->z);
    rbt_free(newton->partial);
    rbt_free(newton->scratch);
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

/* A row's slopes, from its decision values; what the products need is left in `bend`: second derivatives, or softmax's
 * probabilities. `d` receives the diagonal of the second derivative. */
static void derive(const rbt_problem *p, size_t r, const double *z, double *bend, double *s, double *d)
{
    double weight = rbt_data_weight(p->data, r);
    if (p->model->link != NULL) {
        double y = rbt_link_target(p->shape, p->data, r);
        *s = weight * p->model->link->slope(*z, y, p->shape->delta);
        *d = *bend = weight * p->model->link->bend(*z, y, p->shape->delta);
        return;
    }
    size_t k = p->outputs, label = (size_t)p->data->label[r];
    memcpy(bend, z, k * sizeof *z);
    (void)rbt_softmax(bend, k, label);
    for (size_t c = 0; c < k; c++) {
        s[c] = weight * (bend[c] - (c == label ? 1 : 0));
        d[c] = weight * bend[c] * (1 - bend[c]);
    }
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

static void pass_thread(void *context, uint32_t thread)
{
    rbt_newton *t = context;
    const rbt_problem *p = t->problem;
    size_t k = p->outputs, rows = p->data->rows, threads = rbt_team_threads(t->team);
    double *sum = t->partial + thread * 2 * p->n, *diagonal = sum + p->n, *u = t->scratch + thread * k;
    double *s = rbt_alloc(k, sizeof *s);
    memset(sum, 0, 2 * p->n * sizeof *sum);
    for (size_t r = rows * thread / threads; r < rows * (thread + 1) / threads; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        if (t->what == PASS_SCORES) {
            scores(p, row, t->vector, t->zd + r * k);
        } else if (t->what == PASS_GRADIENT) {
            derive(p, r, t->z + r * k, t->bend + r * k, s, u);
            add_row(p, row, s, u, sum, diagonal);
        } else {
            scores(p, row, t->vector, u);
            multiply(p, r, t->bend + r * k, u);
            add_row(p, row, u, NULL, sum, NULL);
        }
        rbt_data_release_passed(p->data, r, 1);
    }
    rbt_free(s);
}

/* A pass; `sum` (and `diagonal`) become means over the rows. */
static void pass(rbt_newton *t, int what, const double *vector, double *sum, double *diagonal)
{
    const rbt_problem *p = t->problem;
    size_t threads = rbt_team_threads(t->team);
    t->what = what;
    t->vector = vector;
    rbt_team_run(t->team, pass_thread, t);
    for (size_t i = 0; sum != NULL && i < p->n; i++) {
        sum[i] = 0;
        for (size_t m = 0; m < threads; m++)
            sum[i] += t->partial[m * 2 * p->n + i];
        sum[i] /= (double)p->data->rows;
    }
    for (size_t i = 0; diagonal != NULL && i < p->n; i++) {
        diagonal[i] = 0;
        for (size_t m = 0; m < threads; m++)
            diagonal[i] += t->partial[m * 2 * p->n + p->n + i];
        diagonal[i] /= (double)p->data->rows;
    }
}

/* --------------------------------------------------------------------------------------------------- iteration */

typedef struct along {
    const rbt_newton *newton;
    double step;
} along;

/* The losses at z + step * zd. */
static double losses_along(void *context, size_t first, size_t n)
{
    const along *a = context;
    const rbt_newton *t = a->newton;
    const rbt_problem *p = t->problem;
    size_t k = p->outputs;
    double total = 0, *z = rbt_alloc(k, sizeof *z);
    for (size_t r = first; r < first + n; r++) {
        for (size_t c = 0; c < k; c++)
            z[c] = t->z[r * k + c] + a->step * t->zd[r * k + c];
        total +=
            rbt_data_weight(p->data, r) *
            (p->model->link != NULL ? p->model->link->loss(*z, rbt_link_target(p->shape, p->data, r), p->shape->delta)
                                    : rbt_softmax(z, k, (size_t)p->data->label[r]));
    }
    rbt_free(z);
    return total;
}

static double objective_along(rbt_newton *t, double step)
{
    const rbt_problem *p = t->problem;
    along a = {t, step};
    double squares = 0;
    for (size_t i = 0; i < p->weights; i++)
        squares += (t->w[i] + step * t->step[i]) * (t->w[i] + step * t->step[i]);
    return rbt_team_sum(t->team, p->data->rows, losses_along, &a) / (double)p->data->rows + p->l2 / 2 * squares;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Solves (second derivative) step = -gradient, roughly. */
static uint64_t solve(rbt_newton *t)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n;
    double *r = t->residual, *d = t->direction, *q = t->product, rho = 0, gain = 0, total = 0;
    uint64_t steps = 0;
    for (size_t i = 0; i < n; i++) {
        t->step[i] = 0;
        r[i] = -t->gradient[i];
        d[i] = r[i] / t->diagonal[i];
        rho += r[i] * d[i];
    }
    while (steps < CG_STEPS && rho > 0 && (double)steps * gain >= CG_WORTH * total) {
        pass(t, PASS_PRODUCT, d, q, NULL);
        for (size_t i = 0; i < p->weights; i++)
            q[i] += p->l2 * d[i];
        steps++;
        double curve = dot(d, q, n);
        if (!(curve > 0))
            break;
        double far = rho / curve, before = rho;
        gain = far * rho / 2; /* of the model's fall, by this step */
        total += gain;
        rho = 0;
        for (size_t i = 0; i < n; i++) {
            t->step[i] += far * d[i];
            r[i] -= far * q[i];
            rho += r[i] * r[i] / t->diagonal[i];
        }
        for (size_t i = 0; i < n; i++)
            d[i] = r[i] / t->diagonal[i] + rho / before * d[i];
    }
    return steps;
}

double rbt_newton_iterate(rbt_newton *t, float *w, uint64_t *passes)
{
    const rbt_problem *p = t->problem;
    size_t n = p->n, cells = p->data->rows * p->outputs;
    double step = 1, before, after;
    for (size_t i = 0; i < n; i++)
        t->w[i] = (double)w[i];
    pass(t, PASS_SCORES, t->w, NULL, NULL);
    memcpy(t->z, t->zd, cells * sizeof *t->z);
    pass(t, PASS_GRADIENT, NULL, t->gradient, t->diagonal);
    for (size_t i = 0; i < n; i++) {
        t->gradient[i] += i < p->weights ? p->l2 * t->w[i] : 0;
        t->diagonal[i] += i < p->weights ? p->l2 : 0;
        t->diagonal[i] = t->diagonal[i] > 1e-12 ? t->diagonal[i] : 1e-12; /* a bias no row bends */
    }
    *passes = 3 + solve(t);
    pass(t, PASS_SCORES, t->step, NULL, NULL);
    double slope = dot(t->gradient, t->step, n);
    before = objective_along(t, 0);
    after = objective_along(t, step);
    for (int i = 0; i < HALVINGS && !(after <= before + SLACK * step * slope); i++) {
        step /= 2;
        after = objective_along(t, step);
    }
    if (!(after <= before)) /* as good as it gets */
        return before;
    for (size_t i = 0; i < n; i++)
        w[i] = (float)(t->w[i] + step * t->step[i]);
    return after;
}
