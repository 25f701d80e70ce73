/* Stochastic gradient steps. Contract in sgd.h; proved by tests/unit/test_solve.c. */
#include "solve/sgd.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "math/functions.h"
#include "model/link.h"
#include "model/model.h"

#define LOG_ADAM_SECOND  -0.0010005003335835335 /* the logarithm of RBT_ADAM_SECOND */
#define VALUES_LOOKED_AT 65536
#define VALUES_TOGETHER  (RBT_DATA_BLOCK_BYTES / sizeof(float))
#define PATH_POINTS      65536 /* of a parameter's path over a pass, at most: more would drown in a float's rounding */

void rbt_squares_add(rbt_squares *squares, const rbt_data *data, size_t first, size_t nnz)
{
    size_t step = nnz / VALUES_LOOKED_AT + 1, piece = 0;
    for (size_t i = (step - first % step) % step; i < data->nnz; i += step, squares->n++) {
        squares->sum += (double)data->value[i] * (double)data->value[i];
        if (i - piece >= VALUES_TOGETHER) { /* values of streamed data, all over it, leave memory again */
            rbt_data_release_values(data, piece, i - piece);
            piece = i;
        }
    }
    rbt_data_release_values(data, piece, data->nnz - piece);
}

double rbt_squares_mean(const rbt_squares *squares)
{
    double n = (double)squares->n;
    return n == 0 || squares->sum > n ? 1 : squares->sum / n;
}

double rbt_squares_of_row(const rbt_data *data)
{
    rbt_squares squares = {0};
    rbt_squares_add(&squares, data, 0, data->nnz);
    return squares.n == 0 ? 0 : squares.sum / (double)squares.n * (double)data->nnz / (double)data->rows;
}

static double typical_square(const rbt_problem *problem)
{
    rbt_squares squares = {0};
    if (problem->facts != NULL)
        return problem->facts->square;
    rbt_squares_add(&squares, problem->data, 0, problem->data->nnz);
    return rbt_squares_mean(&squares);
}

/* For every feature, rows / rows with it. */
static rbt_err find_shares(const rbt_problem *problem, rbt_team *team, float **shares, rbt_error *error)
{
    const rbt_facts *facts = problem->facts;
    size_t cols = problem->shape->cols, rows = facts != NULL ? facts->rows : problem->data->rows;
    uint32_t *counts = NULL;
    if (facts == NULL) {
        rbt_err err = rbt_problem_count_columns(problem, team, &counts, error);
        if (err != RBT_OK)
            return err;
    } else {
        RBT_ASSERT(facts->counts != NULL);
        counts = rbt_try_alloc_raw(cols > 0 ? cols : 1, sizeof *counts);
        if (counts == NULL)
            return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the penalties of %zu features", cols);
        memcpy(counts, facts->counts, cols * sizeof *counts);
    }
    *shares = (float *)counts; /* in place: both have four bytes */
    for (size_t j = 0; j < cols; j++) {
        float share = counts[j] > 0 ? (float)rows / (float)counts[j] : 0;
        memcpy(&counts[j], &share, sizeof share);
    }
    return RBT_OK;
}

rbt_err rbt_sgd_init(rbt_sgd *sgd, const rbt_problem *problem, rbt_optimizer optimizer, double momentum, rbt_team *team,
                     rbt_error *error)
{
    size_t cols = problem->shape->cols;
    *sgd = (rbt_sgd){.problem = problem,
                     .optimizer = optimizer,
                     .momentum = (float)momentum,
                     .rate = NAN,
                     .bias = typical_square(problem)};
    sgd->apart = problem->data->rows / PATH_POINTS;
    if (problem->l1 > 0 || problem->l2 > 0) {
        rbt_err err = find_shares(problem, team, &sgd->share, error);
        if (err != RBT_OK)
            return err;
    }
    if (optimizer == RBT_OPTIMIZER_SGD && problem->l2 > 0)
        sgd->shrink = rbt_try_alloc(cols > 0 ? cols : 1, sizeof *sgd->shrink);
    if (optimizer == RBT_OPTIMIZER_ASGD)
        sgd->path = rbt_try_alloc(problem->n, sizeof *sgd->path);
    else if (optimizer != RBT_OPTIMIZER_SGD)
        sgd->first = rbt_try_alloc(problem->n, sizeof *sgd->first);
    if (optimizer == RBT_OPTIMIZER_ADAM)
        sgd->second = rbt_try_alloc(problem->n, sizeof *sgd->second);
    if ((optimizer != RBT_OPTIMIZER_SGD && sgd->first == NULL && sgd->path == NULL) ||
        (optimizer == RBT_OPTIMIZER_SGD && problem->l2 > 0 && sgd->shrink == NULL) ||
        (optimizer == RBT_OPTIMIZER_ADAM && sgd->second == NULL)) {
        rbt_sgd_deinit(sgd);
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for the optimizer's state of %zu parameters; use "
                        "--optimizer sgd",
                        problem->n);
    }
    return RBT_OK;
}

void rbt_sgd_deinit(rbt_sgd *sgd)
{
    rbt_free(sgd->share);
    rbt_free(sgd->shrink);
    rbt_free(sgd->first);
    rbt_free(sgd->second);
    rbt_free(sgd->path);
    sgd->share = sgd->shrink = sgd->first = sgd->second = NULL;
    sgd->path = NULL;
}

void rbt_sgd_reset(rbt_sgd *sgd)
{
    if (sgd->first != NULL)
        memset(sgd->first, 0, sgd->problem->n * sizeof *sgd->first);
    if (sgd->second != NULL)
        memset(sgd->second, 0, sgd->problem->n * sizeof *sgd->second);
    if (sgd->path != NULL)
        memset(sgd->path, 0, sgd->problem->n * sizeof *sgd->path);
}

/* The slopes of the row's loss, by decision value. */
static bool slopes(rbt_walker *walker, size_t row, double *z)
{
    const rbt_problem *p = walker->walk->problem;
    double weight = rbt_data_weight(p->data, row);
    if (p->model->link != NULL) {
        double y = rbt_link_target(p->shape, p->data, row), at = *z;
        if (walker->walk->want_loss)
            walker->loss += weight * p->model->link->loss(at, y, p->shape->delta);
        *z = weight * p->model->link->slope(at, y, p->shape->delta);
    } else {
        size_t label = (size_t)p->data->label[row];
        walker->loss += weight * rbt_softmax(z, p->outputs, label);
        z[label] -= 1;
        for (size_t k = 0; k < p->outputs; k++)
            z[k] *= weight;
    }
    return true;
}

static inline float truncated(float w, float by)
{
    return w > by ? w - by : w < -by ? w + by : 0;
}

/* The proximal step of the penalties at a parameter, for a step size. */
static inline float penalised(float w, float l1, float l2)
{
    return truncated(w, l1) / (1 + l2);
}

/* One decision value and no l1: nearly all of the time of most trainings is spent here. */
static void apply_one(rbt_walker *walker, rbt_row row, const double *slope)
{
    const rbt_sgd *sgd = walker->walk->stepper;
    float step = (float)walker->rate * (float)*slope;
    if (sgd->shrink == NULL) {
        rbt_row_add(row, -step, walker->w);
    } else {
        const float *shrink = sgd->shrink; /* the compiler cannot know that no store changes these two */
        float *w = walker->w;
        for (size_t i = 0; i < row.n; i++) {
            float *at = w + row.index[i];
            rbt_store(at, (rbt_load(at) - step * row.value[i]) * shrink[row.index[i]]);
        }
    }
    if (walker->walk->problem->shape->bias)
        *walker->bias -= walker->rate * sgd->bias * *slope;
}

static void apply_plain(rbt_walker *walker, rbt_row row, const double *slope)
{
    const rbt_problem *p = walker->walk->problem;
    const rbt_sgd *sgd = walker->walk->stepper;
    float rate = (float)walker->rate, l1 = rate * (float)p->l1;
    size_t k = p->outputs;
    for (size_t i = 0; i < row.n; i++) {
        float *at = walker->w + (size_t)row.index[i] * k, x = row.value[i];
        float by = l1 > 0 ? l1 * sgd->share[row.index[i]] : 0;
        float shrink = sgd->shrink != NULL ? sgd->shrink[row.index[i]] : 1;
        for (size_t c = 0; c < k; c++)
            rbt_store(at + c, truncated(rbt_load(at + c) - rate * (float)slope[c] * x, by) * shrink);
    }
    for (size_t c = 0; p->shape->bias && c < k; c++)
        walker->bias[c] -= walker->rate * sgd->bias * slope[c];
}

/* The path of a parameter up to a step: the sum of what it was after each step, and how many steps that were. Both are
 * stored at once: when a thread that was interrupted stores what was right long ago, the path is shorter than it was, but its
 * mean stays one of values that there were. */
typedef union path {
    struct {
        float sum;
        uint32_t steps;
    };
    uint64_t both;
} path;

static path path_of(const rbt_sgd *sgd, size_t at)
{
    return (path){.both = __atomic_load_n(sgd->path + at, __ATOMIC_RELAXED)};
}

/* The parameter was w until this step. */
static inline void lengthen(const rbt_sgd *sgd, size_t at, float w, uint64_t step)
{
    path p = path_of(sgd, at);
    if (step <= p.steps || step - p.steps < sgd->apart)
        return;
    p.sum += (float)(step - p.steps) * w;
    p.steps = (uint32_t)step;
    __atomic_store_n(sgd->path + at, p.both, __ATOMIC_RELAXED);
}

/* One parameter's step with state; `share` is 0 for a bias, `warm` is what rbt_adam_warmth says. */
static inline float stepped(const rbt_walker *walker, const rbt_sgd *sgd, size_t at, float w, float slope, float share,
                            float warm)
{
    const rbt_problem *p = sgd->problem;
    float rate = (float)walker->rate, l1 = (float)p->l1 * share, l2 = (float)p->l2 * share;
    float first = sgd->first != NULL ? rbt_load(sgd->first + at) : 0;
    switch (sgd->optimizer) {
    case RBT_OPTIMIZER_MOMENTUM:
        first = sgd->momentum * first + slope;
        rbt_store(sgd->first + at, first);
        l1 /= 1 - sgd->momentum; /* as much as a slope adds up to in the end */
        l2 /= 1 - sgd->momentum;
        return penalised(w - rate * first, rate * l1, rate * l2);
    case RBT_OPTIMIZER_ADAGRAD:
        first += slope * slope;
        rbt_store(sgd->first + at, first);
        rate /= sqrtf(first + RBT_ADAGRAD_FLOOR);
        return penalised(w - rate * slope, rate * l1, rate * l2);
    case RBT_OPTIMIZER_ADAM: {
        float second = rbt_load(sgd->second + at), g = slope + l2 * w;
        first = RBT_ADAM_FIRST * first + (1 - RBT_ADAM_FIRST) * g;
        second = RBT_ADAM_SECOND * second + (1 - RBT_ADAM_SECOND) * g * g;
        rbt_store(sgd->first + at, first);
        rbt_store(sgd->second + at, second);
        rate /= sqrtf(second / warm) + RBT_ADAM_FLOOR;
        return penalised(w - rate * first, rate * l1, 0);
    }
    case RBT_OPTIMIZER_ASGD:
        lengthen(sgd, at, w, walker->step);
        return penalised(w - rate * slope, rate * l1, rate * l2);
    default:
        return w;
    }
}

static void apply_stepped(rbt_walker *walker, rbt_row row, const double *slope)
{
    const rbt_problem *p = walker->walk->problem;
    const rbt_sgd *sgd = walker->walk->stepper;
    size_t k = p->outputs;
    float warm = rbt_adam_warmth(walker->step / walker->walk->threads + 1);
    for (size_t i = 0; i < row.n; i++) {
        size_t first = (size_t)row.index[i] * k;
        float x = row.value[i], share = sgd->share != NULL ? sgd->share[row.index[i]] : 0;
        for (size_t c = 0; c < k; c++) {
            float *at = walker->w + first + c;
            rbt_store(at, stepped(walker, sgd, first + c, rbt_load(at), (float)slope[c] * x, share, warm));
        }
    }
    for (size_t c = 0; p->shape->bias && c < k; c++)
        walker->bias[c] = (double)stepped(walker, sgd, p->weights + c, (float)walker->bias[c],
                                          (float)(sgd->bias * slope[c]), 0, warm);
}

void rbt_sgd_attach(rbt_sgd *sgd, rbt_walk *walk)
{
    walk->coefficients = slopes;
    walk->apply = sgd->optimizer != RBT_OPTIMIZER_SGD                   ? apply_stepped
                  : sgd->problem->outputs == 1 && sgd->problem->l1 == 0 ? apply_one
                                                                        : apply_plain;
    walk->stepper = sgd;
    walk->by_feature = sgd->optimizer == RBT_OPTIMIZER_SGD && sgd->shrink != NULL ? sgd->shrink : sgd->share;
    walk->numbered = sgd->optimizer == RBT_OPTIMIZER_ASGD && walk->access != RBT_ACCESS_ALONE;
}

float rbt_adam_warmth(uint64_t steps)
{
    return steps < 100000 ? (float)(1 - rbt_exp((double)steps * LOG_ADAM_SECOND)) : 1;
}

void rbt_sgd_begin(rbt_sgd *sgd, double rate)
{
    bool same = rate == sgd->rate; /* writing it again would have the other threads fetch it again */
    size_t cols = sgd->shrink != NULL && !same ? sgd->problem->shape->cols : 0;
    float *restrict shrink = sgd->shrink, by = (float)rate * (float)sgd->problem->l2;
    const float *restrict share = sgd->share;
    sgd->rate = rate;
    for (size_t j = 0; j < cols; j++)
        shrink[j] = 1 / (1 + by * share[j]);
}

void rbt_sgd_average(rbt_sgd *sgd, const float *w, uint64_t steps, float *mean)
{
    for (size_t i = 0; i < sgd->problem->n; i++) {
        path p = path_of(sgd, i);
        mean[i] = (p.sum + (float)(steps - p.steps) * w[i]) / (float)steps;
    }
    rbt_sgd_reset(sgd);
}
