/* Stochastic dual coordinate ascent. Contract in sdca.h; proved by tests/unit/test_sdca.c. */
#include "solve/sdca.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"
#include "math/kernels.h"
#include "model/link.h"
#include "model/model.h"

#define BIAS_PULL     0.1  /* of a row's mean square: the square of the feature that the biases are weights of, ... */
#define BIAS_FREE     16   /* ... but so many times l2 at least, which would hold them back */
#define BIAS_FAR      0.1  /* of itself is how far a bias may still be, at least */
#define SLACK         1e-3 /* of the dual objective, by which it may fall without having been led astray */
#define SOFTMAX_STEPS 4    /* inner steps towards a row's optimal dual variables */
#define SOFTMAX_STEEP 0.5  /* no eigenvalue of softmax's second derivative is larger */

/* ---------------------------------------------------------------------------------------------------- starting */

static double row_squares(void *context, size_t first, size_t n)
{
    rbt_sdca *sdca = context;
    const rbt_problem *p = sdca->problem;
    double total = 0;
    for (size_t r = first; r < first + n; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        double squares = 0;
        for (size_t i = 0; i < row.n; i++)
            squares += (double)row.value[i] * (double)row.value[i];
        sdca->q[r] = (float)squares;
        total += squares;
    }
    rbt_data_release_passed(p->data, first, n);
    return total;
}

rbt_err rbt_sdca_init(rbt_sdca *sdca, const rbt_problem *problem, rbt_team *team, rbt_error *error)
{
    size_t rows = problem->data->rows;
    _Static_assert(RBT_SDCA_ROW_BYTES == sizeof *sdca->dual + sizeof *sdca->z, "the header says how much");
    *sdca = (rbt_sdca){.problem = problem,
                       .dual = rbt_try_alloc(rows, problem->outputs * sizeof *sdca->dual),
                       .q = rbt_try_alloc_raw(rows, sizeof *sdca->q),
                       .z = rbt_try_alloc_raw(rows, problem->outputs * sizeof *sdca->z),
                       .biases = rbt_alloc(problem->outputs, sizeof *sdca->biases)};
    if (sdca->dual == NULL || sdca->q == NULL || sdca->z == NULL) {
        rbt_sdca_deinit(sdca);
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for the dual variables of %zu rows; use --optimizer sgd", rows);
    }
    double squares = rbt_team_sum(team, rows, row_squares, sdca);
    if (problem->shape->bias)
        sdca->pull = fmax(BIAS_PULL * squares / (double)rows, BIAS_FREE * problem->l2);
    for (size_t r = 0; r < rows; r++)
        sdca->q[r] = (float)(((double)sdca->q[r] + sdca->pull) / (problem->l2 * (double)rows));
    return RBT_OK;
}

void rbt_sdca_deinit(rbt_sdca *sdca)
{
    rbt_free(sdca->dual);
    rbt_free(sdca->q);
    rbt_free(sdca->z);
    rbt_free(sdca->biases);
    sdca->dual = sdca->q = sdca->z = NULL;
    sdca->biases = NULL;
}

/* ---------------------------------------------------------------------------------------------------- stepping */

/* One decision value: the row's new dual variable; the coefficient is what it changed by, scaled. */
static bool dual_step(rbt_walker *walker, size_t row, double *z)
{
    rbt_sdca *sdca = walker->walk->stepper;
    const rbt_problem *p = sdca->problem;
    double weight = rbt_data_weight(p->data, row), y = rbt_link_target(p->shape, p->data, row),
           a = (double)sdca->dual[row];
    double q = walker->walk->caution * (double)sdca->q[row] * weight;
    double next = p->model->link->dual(a, *z, y, q, p->shape->delta);
    float kept = (float)next;
    if (walker->walk->want_loss)
        walker->loss += weight * p->model->link->loss(*z, y, p->shape->delta);
    *z = ((double)kept - a) * weight / (p->l2 * (double)p->data->rows);
    sdca->dual[row] = kept;
    return *z != 0;
}

/* Softmax: a few steps of the fixed point a' = -slope(z + q (a' - a)), each safe by the bound on the second
 * derivative. */
static bool softmax_step(rbt_walker *walker, size_t row, double *z)
{
    rbt_sdca *sdca = walker->walk->stepper;
    const rbt_problem *p = sdca->problem;
    size_t k = p->outputs, label = (size_t)p->data->label[row];
    double weight = rbt_data_weight(p->data, row), q = walker->walk->caution * (double)sdca->q[row] * weight;
    float *a = sdca->dual + row * k;
    double *score = walker->room, *next = walker->room + k;
    for (size_t c = 0; c < k; c++)
        next[c] = (double)a[c];
    for (int step = 0; step < SOFTMAX_STEPS; step++) {
        for (size_t c = 0; c < k; c++)
            score[c] = z[c] + q * (next[c] - (double)a[c]);
        double loss = rbt_softmax(score, k, label);
        walker->loss += step == 0 ? weight * loss : 0;
        for (size_t c = 0; c < k; c++)
            next[c] -= (next[c] + score[c] - (c == label ? 1 : 0)) / (1 + SOFTMAX_STEEP * q);
    }
    for (size_t c = 0; c < k; c++) {
        float kept = (float)next[c];
        z[c] = ((double)kept - (double)a[c]) * weight / (p->l2 * (double)p->data->rows);
        a[c] = kept;
    }
    return true;
}

static void move_biases(rbt_walker *walker, const double *coefficient)
{
    const rbt_sdca *sdca = walker->walk->stepper;
    for (size_t c = 0; sdca->pull > 0 && c < sdca->problem->outputs; c++)
        walker->bias[c] += sdca->pull * coefficient[c];
}

static void add_one(rbt_walker *walker, rbt_row row, const double *coefficient)
{
    rbt_row_add(row, (float)*coefficient, walker->w);
    move_biases(walker, coefficient);
}

static void add_many(rbt_walker *walker, rbt_row row, const double *coefficient)
{
    size_t k = walker->walk->problem->outputs;
    float *scale = (float *)walker->room;
    for (size_t c = 0; c < k; c++)
        scale[c] = (float)coefficient[c];
    rbt_row_add_many(row, scale, k, walker->w);
    move_biases(walker, coefficient);
}

void rbt_sdca_attach(rbt_sdca *sdca, rbt_walk *walk)
{
    bool one = sdca->problem->model->link != NULL;
    walk->coefficients = one ? dual_step : softmax_step;
    walk->apply = one ? add_one : add_many;
    walk->stepper = sdca;
    walk->threshold = (float)(sdca->problem->l1 / sdca->problem->l2);
}

/* Each thread adds up its rows; the first one does so in place. */
typedef struct restoring {
    const rbt_sdca *sdca;
    uint32_t threads;
    float *w;
    float *others; /* threads - 1 vectors */
} restoring;

static void restore_part(void *context, uint32_t thread)
{
    const restoring *job = context;
    const rbt_problem *p = job->sdca->problem;
    size_t k = p->outputs, rows = p->data->rows;
    float *sum = thread == 0 ? job->w : job->others + (thread - 1) * p->weights;
    double unit = 1 / (p->l2 * (double)rows);
    memset(sum, 0, p->weights * sizeof *sum);
    for (size_t r = rows * thread / job->threads; r < rows * (thread + 1) / job->threads; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        const float *a = job->sdca->dual + r * k;
        double scale = rbt_data_weight(p->data, r) * unit;
        for (size_t c = 0; c < k; c++) {
            float by = (float)(scale * (double)a[c]);
            for (size_t i = 0; by != 0 && i < row.n; i++)
                sum[(size_t)row.index[i] * k + c] += by * row.value[i];
        }
        rbt_data_release_passed(p->data, r, 1);
    }
}

void rbt_sdca_restore(const rbt_sdca *sdca, float *w, rbt_team *team)
{
    const rbt_problem *p = sdca->problem;
    restoring job = {.sdca = sdca, .threads = rbt_team_threads(team), .w = w};
    job.others = job.threads > 1 ? rbt_try_alloc_raw((job.threads - 1) * p->weights, sizeof *job.others) : NULL;
    if (job.others == NULL) { /* alone, then */
        job.threads = 1;
        restore_part(&job, 0);
        return;
    }
    rbt_team_run(team, restore_part, &job);
    for (uint32_t t = 1; t < job.threads; t++)
        rbt_kernels_best()->add(job.others + (t - 1) * p->weights, w, p->weights);
    rbt_free(job.others);
}

void rbt_sdca_parameters(const rbt_sdca *sdca, const float *w, float *parameters)
{
    const rbt_problem *p = sdca->problem;
    float by = (float)(p->l1 / p->l2);
    memcpy(parameters, w, p->n * sizeof *w);
    for (size_t i = 0; by > 0 && i < p->weights; i++)
        parameters[i] = w[i] > by ? w[i] - by : w[i] < -by ? w[i] + by : 0;
}

/* Where the biases are by the dual variables, and these variables' means. */
static void find_biases(rbt_sdca *sdca)
{
    const rbt_problem *p = sdca->problem;
    size_t rows = p->data->rows, k = p->outputs;
    for (size_t c = 0; c < k; c++)
        sdca->biases[c].mean = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < k; c++)
            sdca->biases[c].mean += rbt_data_weight(p->data, r) * (double)sdca->dual[r * k + c];
    for (size_t c = 0; c < k; c++) {
        rbt_sdca_bias *b = &sdca->biases[c];
        b->mean /= (double)rows;
        b->now = b->center + sdca->pull * b->mean / p->l2;
    }
}

void rbt_sdca_begin(rbt_sdca *sdca, float *w)
{
    const rbt_problem *p = sdca->problem;
    for (size_t c = 0; p->shape->bias && c < p->outputs; c++) {
        rbt_sdca_bias *b = &sdca->biases[c];
        b->center = b->now;
        w[p->weights + c] = (float)(b->center + sdca->pull * b->mean / p->l2);
    }
    sdca->from = sdca->next;
}

/* ---------------------------------------------------------------------------------------------------- settling */

typedef struct settling {
    rbt_sdca *sdca;
    const float *parameters;
    double *gaps; /* by block of rows */
} settling;

static double fill_scores(void *context, size_t first, size_t n)
{
    settling *s = context;
    const rbt_problem *p = s->sdca->problem;
    size_t k = p->outputs;
    double *z = rbt_alloc(k, sizeof *z);
    for (size_t r = first; r < first + n; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        memset(z, 0, k * sizeof *z);
        if (k == 1)
            *z = (double)rbt_row_dot(row, s->parameters);
        else
            rbt_row_dot_many(row, s->parameters, k, z);
        for (size_t c = 0; c < k; c++)
            s->sdca->z[r * k + c] = (float)z[c];
    }
    rbt_data_release_passed(p->data, first, n);
    rbt_free(z);
    return 0;
}

static inline double score(const settling *s, size_t r, size_t c)
{
    return (double)s->sdca->z[r * s->sdca->problem->outputs + c] + s->sdca->biases[c].now;
}

/* How much the row's loss and its dual variables miss each other: loss(z) + conjugate(-a) + a z, never below 0, and 0
 * when a is minus the slope at z. */
static double row_gap(const settling *s, size_t r, const double *z, double loss)
{
    const rbt_problem *p = s->sdca->problem;
    const rbt_link *link = p->model->link;
    size_t k = p->outputs, label = (size_t)p->data->label[r];
    const float *a = s->sdca->dual + r * k;
    double sum = loss;
    if (link != NULL)
        return loss + link->conjugate((double)*a, rbt_link_target(p->shape, p->data, r), p->shape->delta) +
               (double)*a * *z;
    for (size_t c = 0; c < k; c++) {
        double share = (c == label ? 1 : 0) - (double)a[c];
        sum += (share > 0 ? share * rbt_ln(share) : 0) + (double)a[c] * score(s, r, c);
    }
    return sum;
}

/* The decision values and losses of n rows; softmax leaves probabilities in z. */
static void row_losses(const settling *s, size_t first, size_t n, double *z, double *loss)
{
    const rbt_problem *p = s->sdca->problem;
    size_t k = p->outputs;
    double y[RBT_LINK_ROWS];
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++)
            z[i * k + c] = score(s, first + i, c);
    for (size_t i = 0; i < n; i++)
        if (p->model->link != NULL)
            y[i] = rbt_link_target(p->shape, p->data, first + i);
        else
            loss[i] = rbt_softmax(z + i * k, k, (size_t)p->data->label[first + i]);
    if (p->model->link != NULL)
        rbt_link_all(p->model->link, n, z, y, p->shape->delta, loss, NULL, NULL);
}

static double block_loss(void *context, size_t first, size_t n)
{
    settling *s = context;
    const rbt_problem *p = s->sdca->problem;
    size_t k = p->outputs, block = first / RBT_BLOCK_ROWS;
    double total = 0, gap = 0, loss[RBT_LINK_ROWS], *z = rbt_alloc(RBT_LINK_ROWS * k, sizeof *z);
    for (size_t end = first + n; first < end; first += n) {
        n = end - first < RBT_LINK_ROWS ? end - first : RBT_LINK_ROWS;
        row_losses(s, first, n, z, loss);
        for (size_t i = 0; i < n; i++) {
            double weight = rbt_data_weight(p->data, first + i);
            total += weight * loss[i];
            gap += weight * row_gap(s, first + i, z + i * k, loss[i]);
        }
    }
    s->gaps[block] = gap;
    rbt_free(z);
    return total;
}

/* How much the objective may still fall by moving the biases, about: with the best weights for each, its slope along one is minus
 * the mean of the dual variables. */
static double bias_gap(const rbt_sdca *sdca)
{
    double gap = 0;
    for (size_t c = 0; c < sdca->problem->outputs; c++) {
        const rbt_sdca_bias *b = &sdca->biases[c];
        gap += fabs(b->mean) * fmax(BIAS_FAR * fabs(b->now), fabs(b->now - b->center));
    }
    return gap;
}

/* In a pass the dual objective rises, that with biases pulled to where they were before it: from `from` to what it is now. `gap`
 * is that of the rows. The next pass begins below that, as it pulls elsewhere. */
static void look_back(rbt_sdca *sdca, double objective, double gap)
{
    double pulled = 0;
    for (size_t c = 0; c < sdca->problem->outputs; c++)
        pulled += (sdca->biases[c].now - sdca->biases[c].center) * sdca->biases[c].mean / 2;
    double dual = objective - gap + pulled;
    sdca->fell = dual < sdca->from - SLACK * fabs(sdca->from);
    sdca->next = objective - gap - pulled;
}

double rbt_sdca_settle(rbt_sdca *sdca, float *w, rbt_team *team, double *gap)
{
    const rbt_problem *p = sdca->problem;
    size_t blocks = p->data->rows / RBT_BLOCK_ROWS + 1;
    float *parameters = p->l1 > 0 ? rbt_alloc(p->n, sizeof *parameters) : w;
    settling s = {.sdca = sdca, .parameters = parameters, .gaps = rbt_alloc(blocks, sizeof *s.gaps)};
    double rows = (double)p->data->rows, loss;
    if (p->shape->bias)
        find_biases(sdca);
    for (size_t c = 0; p->shape->bias && c < p->outputs; c++) {
        float *at = &w[p->weights + c];
        sdca->biases[c].now = (double)(*at = (float)sdca->biases[c].now);
    }
    if (p->l1 > 0)
        rbt_sdca_parameters(sdca, w, parameters);
    (void)rbt_team_sum(team, p->data->rows, fill_scores, &s);
    loss = rbt_team_sum(team, p->data->rows, block_loss, &s) / rows;
    *gap = 0;
    for (size_t block = 0; block * RBT_BLOCK_ROWS < p->data->rows; block++)
        *gap += s.gaps[block] / rows;
    double objective = loss + rbt_problem_penalty(p, parameters);
    look_back(sdca, objective, *gap);
    *gap += bias_gap(sdca);
    if (p->l1 > 0)
        rbt_free(parameters);
    rbt_free(s.gaps);
    return objective;
}
