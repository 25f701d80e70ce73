/* Passes of Newton's method over the rows, each thread through its share. Contract in newton_state.h; proved by
 * tests/unit/test_newton.c. */
#include "solve/newton_state.h"

#include <string.h>

#include "base/mem.h"

/* The row's decision values under `vector`. */
static void scores(const rbt_problem *p, rbt_row row, const double *vector, double *z)
{
    size_t k = p->outputs;
    for (size_t c = 0; c < k; c++)
        z[c] = p->shape->bias ? vector[p->weights + c] : 0;
    if (k == 1) {
        *z += rbt_row_dot_double(row, vector);
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

/* Of one output: sum += s x, and square += d x x^T above the diagonal and on it. A row's indices ascend, and the bias
 * is the last. */
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
    for (size_t i = 0; t->what == PASS_GRADIENT && t->vector != NULL && i < n; i++)
        scores(p, row_at(t, rbt_newton_row(t, first + i), thread), t->vector, t->z + (first + i) * k);
    if (t->what == PASS_GRADIENT)
        loss = p->model->link != NULL ? rbt_newton_derive(t, first, n, t->z + first, o->s, d)
                                      : rbt_newton_derive_softmax(t, first, n, o->s, d);
    for (size_t i = 0; i < n; i++) {
        size_t r = rbt_newton_row(t, first + i);
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

void rbt_newton_pass(rbt_newton *t, int what, const double *vector, double *sum, double *diagonal)
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

bool rbt_newton_is_zero(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] != 0)
            return false;
    return true;
}

void rbt_newton_score(rbt_newton *t, const double *vector, double *z)
{
    const rbt_problem *p = t->problem;
    t->scores = z;
    if (rbt_newton_is_zero(vector, p->n))
        memset(z, 0, t->rows * p->outputs * sizeof *z);
    else
        rbt_newton_pass(t, PASS_SCORES, vector, NULL, NULL);
}
