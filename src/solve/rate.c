/* A step size found by trying. Contract in rate.h; proved by tests/unit/test_solve.c. */
#include "solve/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "model/link.h"

#define FACTOR       2.0
#define RATE_FIRST   0.5
#define RATE_OF_ADAM 0.01
#define TRIES        40 /* in either direction: a factor of 10^12 */

/* A trial: parameters of its own, and the sample. */
typedef struct trial {
    const rbt_problem *problem;
    const uint32_t *rows;
    size_t n;
    float *w;
    rbt_walk walk;
    rbt_walker walker;
    rbt_sgd sgd;
} trial;

/* The sample's objective after one pass over it with this rate; infinite when it blows up. */
static double objective_after(trial *t, double rate)
{
    const rbt_problem *p = t->problem;
    double loss = 0;
    memset(t->w, 0, p->n * sizeof *t->w);
    rbt_sgd_reset(&t->sgd);
    t->walker.rate = rate;
    rbt_sgd_begin(&t->sgd, rate);
    t->walker.step = 0;
    rbt_walker_rows(&t->walker, t->rows, t->n, t->n);
    for (size_t i = 0; i < t->n; i++)
        loss += p->model->loss(p->shape, p->data, t->rows[i], 1, t->w);
    loss = loss / (double)t->n + rbt_problem_penalty(p, t->w);
    return isfinite(loss) ? loss : INFINITY;
}

/* Goes on in one direction as long as it gets better. */
static void climb(trial *t, double factor, double *rate, double *best)
{
    for (int i = 0; i < TRIES; i++) {
        double next = objective_after(t, *rate * factor);
        if (!(next < *best))
            break;
        *best = next;
        *rate *= factor;
    }
}

/* A loss whose slope grows without end blows up where a row's step overshoots its own optimum, be it after many passes:
 * no larger rate than one that no row overshoots with. Others have no such number. */
double rbt_rate_steepness(const rbt_problem *p)
{
    double largest = 0;
    if (p->model->link != &rbt_link_squares && p->model->link != &rbt_link_squared_hinge)
        return 0;
    for (size_t r = 0; r < p->data->rows; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        double squares = p->shape->bias ? 1 : 0;
        for (size_t i = 0; i < row.n; i++)
            squares += (double)row.value[i] * (double)row.value[i];
        if (p->data->weight != NULL)
            squares *= (double)p->data->weight[r];
        largest = fmax(largest, squares);
        rbt_data_release_passed(p->data, r, 1);
    }
    return p->model->link->steepest * largest;
}

/* Below rates that lead nowhere the objective says nothing: first down to one that is better than not to move at all. */
static double find(trial *t, double rate)
{
    double start = objective_after(t, 0), best = objective_after(t, rate), first = rate;
    for (int i = 0; !(best < start) && i < TRIES; i++)
        best = objective_after(t, rate /= FACTOR);
    if (rate == first)
        climb(t, FACTOR, &rate, &best);
    if (rate <= first)
        climb(t, 1 / FACTOR, &rate, &best);
    return rate;
}

size_t rbt_rate_sample(size_t rows, uint64_t seed, uint32_t *sample)
{
    size_t n = rows < RBT_RATE_SAMPLE ? rows : RBT_RATE_SAMPLE;
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_BATCH, UINT64_MAX);
    for (size_t i = 0; i < n; i++)
        sample[i] = (uint32_t)(rows == n ? i : rbt_rng_below(&rng, rows));
    rbt_rng_shuffle_u32(&rng, sample, n);
    return n;
}

rbt_err rbt_rate_try(const rbt_problem *problem, const uint32_t *sample, size_t n, double steepness,
                     rbt_optimizer optimizer, double momentum, double *rate, rbt_error *error)
{
    bool plain = optimizer <= RBT_OPTIMIZER_MOMENTUM || optimizer == RBT_OPTIMIZER_ASGD;
    trial t = {.problem = problem, .rows = sample, .n = n, .w = rbt_try_alloc(problem->n, sizeof *t.w)};
    if (t.w == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to try step sizes on %zu parameters; give --lr",
                        problem->n);
    rbt_err err = rbt_sgd_init(&t.sgd, problem, plain ? RBT_OPTIMIZER_SGD : optimizer, momentum, NULL, error);
    if (err == RBT_OK)
        err = rbt_walk_init(&t.walk, problem, RBT_ACCESS_ALONE, 1, error);
    if (err == RBT_OK) {
        rbt_sgd_attach(&t.sgd, &t.walk);
        rbt_walker_init(&t.walker, &t.walk, t.w, 0);
        *rate = find(&t, optimizer == RBT_OPTIMIZER_ADAM ? RATE_OF_ADAM : RATE_FIRST);
        if (plain && steepness > 0)
            *rate = fmin(*rate, 1 / steepness);
        if (optimizer == RBT_OPTIMIZER_MOMENTUM) /* a step goes on until it is 1 / (1 - momentum) times as long */
            *rate *= 1 - momentum;
        rbt_walker_deinit(&t.walker);
    }
    rbt_walk_deinit(&t.walk);
    rbt_sgd_deinit(&t.sgd);
    rbt_free(t.w);
    return err;
}

/* What steps must know of all rows. */
static rbt_err find_facts(const rbt_problem *problem, rbt_facts *facts, rbt_error *error)
{
    rbt_squares squares = {0};
    rbt_squares_add(&squares, problem->data, 0, problem->data->nnz);
    *facts = (rbt_facts){.rows = problem->data->rows, .square = rbt_squares_mean(&squares)};
    return problem->l1 > 0 || problem->l2 > 0 ? rbt_problem_count_columns(problem, NULL, &facts->counts, error)
                                              : RBT_OK;
}

/* A row of the sample, and its turn among those that are tried. */
typedef struct turn {
    uint32_t row;
    uint32_t at;
} turn;

static int by_row(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

/* Copies of the rows, in the order of the file, which is read once and not to and fro; `rows` then says where they
 * are. */
static rbt_err copy_sample(const rbt_data *data, uint32_t *rows, size_t n, rbt_data *sample, rbt_error *error)
{
    turn *turns = rbt_alloc(n, sizeof *turns);
    for (size_t i = 0; i < n; i++)
        turns[i] = (turn){rows[i], (uint32_t)i};
    qsort(turns, n, sizeof *turns, by_row);
    for (size_t i = 0; i < n; i++)
        rows[i] = turns[i].row;
    rbt_err err = rbt_data_select(data, rows, n, sample, error);
    for (size_t i = 0; i < n; i++)
        rows[turns[i].at] = (uint32_t)i;
    rbt_free(turns);
    return err;
}

/* Rows that lie all over a large file are better visited once: what is tried are copies. */
static rbt_err find_streamed(const rbt_problem *problem, uint32_t *rows, size_t n, double steepness,
                             rbt_optimizer optimizer, double momentum, double *rate, rbt_error *error)
{
    rbt_data sample = {0};
    rbt_facts facts = {0};
    rbt_problem seen = *problem;
    rbt_err err = copy_sample(problem->data, rows, n, &sample, error);
    if (err == RBT_OK)
        err = find_facts(problem, &facts, error);
    seen.data = &sample;
    seen.facts = &facts;
    if (err == RBT_OK)
        err = rbt_rate_try(&seen, rows, n, steepness, optimizer, momentum, rate, error);
    rbt_free(facts.counts);
    rbt_data_deinit(&sample);
    return err;
}

/* Steps of rows that are read together add up; up to twice as far as the optimum is, that still leads there. */
rbt_err rbt_rate_find(const rbt_problem *problem, rbt_optimizer optimizer, double momentum, uint32_t together,
                      uint64_t seed, double *rate, rbt_error *error)
{
    uint32_t *rows = rbt_alloc(RBT_RATE_SAMPLE, sizeof *rows);
    size_t n = rbt_rate_sample(problem->data->rows, seed, rows);
    double steepness = rbt_rate_steepness(problem) * fmax(1, together / 2.0);
    rbt_err err = problem->data->streamed ? find_streamed(problem, rows, n, steepness, optimizer, momentum, rate, error)
                                          : rbt_rate_try(problem, rows, n, steepness, optimizer, momentum, rate, error);
    rbt_free(rows);
    return err;
}
