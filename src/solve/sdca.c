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

#define BIAS_STEPS    2    /* of Newton's method, after each pass; the next pass goes on from there */
#define BISECTIONS    24   /* the hinge has no second derivative to follow */
#define BIAS_REACH    8    /* times the step that is always safe */
#define BIAS_NEAR     0.02 /* of the objective: a larger gap means that weights are not good enough to look ahead */
#define BIAS_WORSE    2    /* times the gap before */
#define BIAS_FAR      4    /* times as far as in the last pass is what a bias moves at once, at most */
#define HINGE_LONGER  1.1
#define HINGE_SHORTER 0.6
#define HINGE_FIRST                                                                                                    \
    2 /* the pass from which on the bias follows the dual variables; before, it is the best for the weights */
#define SOFTMAX_STEPS 4   /* inner steps towards a row's optimal dual variables */
#define SOFTMAX_STEEP 0.5 /* no eigenvalue of softmax's second derivative is larger */

/* ---------------------------------------------------------------------------------------------------- starting */

static double row_norms(void *context, size_t first, size_t n)
{
    rbt_sdca *sdca = context;
    const rbt_problem *p = sdca->problem;
    for (size_t r = first; r < first + n; r++) {
        rbt_row row = rbt_row_of(p->data, r, p->shape->cols);
        double squares = 0;
        for (size_t i = 0; i < row.n; i++)
            squares += (double)row.value[i] * (double)row.value[i];
        sdca->q[r] = (float)(squares / (p->l2 * (double)p->data->rows));
    }
    rbt_data_release_passed(p->data, first, n);
    return 0;
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
    (void)rbt_team_sum(team, rows, row_norms, sdca);
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

static void add_one(rbt_walker *walker, rbt_row row, const double *coefficient)
{
    rbt_row_add(row, (float)*coefficient, walker->w);
}

static void add_many(rbt_walker *walker, rbt_row row, const double *coefficient)
{
    size_t k = walker->walk->problem->outputs;
    float *scale = (float *)walker->room;
    for (size_t c = 0; c < k; c++)
        scale[c] = (float)coefficient[c];
    rbt_row_add_many(row, scale, k, walker->w);
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

static bool is_smooth(const rbt_problem *p)
{
    return p->model->link == NULL || isfinite(p->model->link->steepest);
}

void rbt_sdca_begin(rbt_sdca *sdca, float *w)
{
    const rbt_problem *p = sdca->problem;
    for (size_t c = 0; p->shape->bias && is_smooth(p) && c < p->outputs; c++) {
        rbt_sdca_bias *b = &sdca->biases[c];
        if (sdca->ahead)
            w[p->weights + c] = (float)b->next;
        b->past = b->now;
        b->past_slope = b->slope;
        b->now = (double)w[p->weights + c];
    }
}

/* ---------------------------------------------------------------------------------------------------- settling */

typedef struct settling {
    rbt_sdca *sdca;
    const float *parameters;
    double *bias;    /* per output */
    double *slope;   /* per output: the sum over the rows at these biases ... */
    double *bend;    /* ... and of the second derivatives */
    double bias_gap; /* how far the biases may still be from the optimum, in the objective */
    double *blocks;  /* the same by block of rows: slopes, then bends */
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

/* One row at the present biases: adds its slopes and bends. */
static void look_at_row(const settling *s, size_t r, double *z, double *slope, double *bend)
{
    const rbt_problem *p = s->sdca->problem;
    const rbt_link *link = p->model->link;
    size_t k = p->outputs, label = (size_t)p->data->label[r];
    double weight = rbt_data_weight(p->data, r);
    if (link != NULL) {
        double y = rbt_link_target(p->shape, p->data, r), at = (double)s->sdca->z[r] + *s->bias;
        double down, bent;
        (void)link->derive(at, y, p->shape->delta, &down, &bent);
        *slope += weight * down;
        *bend += weight * bent;
        return;
    }
    for (size_t c = 0; c < k; c++)
        z[c] = (double)s->sdca->z[r * k + c] + s->bias[c];
    (void)rbt_softmax(z, k, label);
    for (size_t c = 0; c < k; c++) {
        slope[c] += weight * (z[c] - (c == label ? 1 : 0));
        bend[c] += weight * z[c] * (1 - z[c]);
    }
}

static double look_at_block(void *context, size_t first, size_t n)
{
    const settling *s = context;
    size_t k = s->sdca->problem->outputs;
    double *slope = s->blocks + first / RBT_BLOCK_ROWS * 2 * k, *bend = slope + k, *z = rbt_alloc(k, sizeof *z);
    memset(slope, 0, 2 * k * sizeof *slope);
    for (size_t r = first; r < first + n; r++)
        look_at_row(s, r, z, slope, bend);
    rbt_free(z);
    return 0;
}

/* Slopes and bends at the present biases. */
static void look(settling *s, rbt_team *team)
{
    size_t k = s->sdca->problem->outputs, rows = s->sdca->problem->data->rows;
    (void)rbt_team_sum(team, rows, look_at_block, s);
    memset(s->slope, 0, k * sizeof *s->slope);
    memset(s->bend, 0, k * sizeof *s->bend);
    for (size_t block = 0; block * RBT_BLOCK_ROWS < rows; block++)
        for (size_t c = 0; c < k; c++) {
            s->slope[c] += s->blocks[block * 2 * k + c];
            s->bend[c] += s->blocks[block * 2 * k + k + c];
        }
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
        sum += (share > 0 ? share * rbt_ln(share) : 0) + (double)a[c] * ((double)s->sdca->z[r * k + c] + s->bias[c]);
    }
    return sum;
}

static double block_loss(void *context, size_t first, size_t n)
{
    settling *s = context;
    const rbt_problem *p = s->sdca->problem;
    const rbt_link *link = p->model->link;
    size_t k = p->outputs;
    double total = 0, gap = 0, *z = rbt_alloc(k, sizeof *z);
    for (size_t r = first; r < first + n; r++) {
        double weight = rbt_data_weight(p->data, r);
        for (size_t c = 0; c < k; c++)
            z[c] = (double)s->sdca->z[r * k + c] + s->bias[c];
        double loss = link != NULL ? link->loss(*z, rbt_link_target(p->shape, p->data, r), p->shape->delta)
                                   : rbt_softmax(z, k, (size_t)p->data->label[r]);
        total += weight * loss;
        gap += weight * row_gap(s, r, z, loss);
    }
    s->blocks[first / RBT_BLOCK_ROWS * 2 * k] = gap;
    rbt_free(z);
    return total;
}

/* The slopes only grow with the bias: halves an interval around where their sum passes zero. */
static void bisect_bias(settling *s, rbt_team *team)
{
    double low = *s->bias - 1, high = *s->bias + 1;
    for (int i = 0; i < BISECTIONS; i++) {
        look(s, team);
        if (*s->slope > 0)
            high = *s->bias;
        else
            low = *s->bias;
        *s->bias = (low + high) / 2;
    }
}

/* The hinge has corners: a bias that is the best for the weights, and weights that are the best for the bias, need not be
 * the best together. The dual variables tell, as at the common optimum they add up to 0: steps along their sum, as a share
 * of what they could add up to, longer while it keeps its sign and shorter when it turns. */
static void step_bias(settling *s)
{
    rbt_sdca *sdca = s->sdca;
    const rbt_problem *p = sdca->problem;
    double sum = 0, size = 0;
    for (size_t r = 0; r < p->data->rows; r++) {
        sum += rbt_data_weight(p->data, r) * (double)sdca->dual[r];
        size += rbt_data_weight(p->data, r) * fabs((double)sdca->dual[r]);
    }
    if (sum == 0)
        return;
    if (sdca->settled > HINGE_FIRST)
        sdca->bias_step *= (sum > 0) == sdca->bias_rose ? HINGE_LONGER : HINGE_SHORTER;
    sdca->bias_rose = sum > 0;
    *s->bias += sdca->bias_step * sum / size;
}

static void settle_hinge(settling *s, rbt_team *team)
{
    rbt_sdca *sdca = s->sdca;
    if (++sdca->settled >= HINGE_FIRST) {
        step_bias(s);
        return;
    }
    bisect_bias(s, team);
    sdca->bias_step = 1;
}

/* Newton's method where rows bend; where hardly any does (all are far from their labels' side), steps are as long as the
 * steepest loss allows, and a little more. Softmax's biases move together: half a step each is a whole one for two. */
static void newton_biases(settling *s, rbt_team *team)
{
    const rbt_problem *p = s->sdca->problem;
    bool one = p->model->link != NULL;
    double least = (one ? p->model->link->steepest : SOFTMAX_STEEP) * (double)p->data->rows / BIAS_REACH;
    for (int i = 0; i < BIAS_STEPS; i++) {
        look(s, team);
        for (size_t c = 0; c < p->outputs; c++)
            s->bias[c] -= s->slope[c] / fmax(one ? s->bend[c] : 2 * s->bend[c], least);
    }
}

/* With the best weights for each bias, the objective's slope along the bias is minus the mean of the dual variables. The
 * biases that are best for the weights are in no hurry to where that is 0: weights and biases wait for each other. How the slope
 * changed from one pass to the next tells how far it is, and the next pass is made there. Where it did not become flatter, weights
 * are not that good yet: it is about as far as the last step went, or a tenth of the way so far. Answers with how much the
 * objective may fall by that. */
static double look_ahead(const settling *s, size_t c, double before)
{
    const rbt_problem *p = s->sdca->problem;
    rbt_sdca_bias *b = &s->sdca->biases[c];
    double sum = 0, far = fmax(fabs(s->bias[c]) / 10, fabs(s->bias[c] - before));
    for (size_t r = 0; r < p->data->rows; r++)
        sum += rbt_data_weight(p->data, r) * (double)s->sdca->dual[r * p->outputs + c];
    b->slope = -sum / (double)p->data->rows;
    b->next = s->bias[c];
    double bend = (b->slope - b->past_slope) / (b->now - b->past);
    if (is_smooth(p) && b->past_slope != 0 && bend > 0 && isfinite(bend)) {
        double way = fmin(fabs(b->slope) / bend, BIAS_FAR * fabs(b->now - b->past));
        b->next = b->now + (b->slope > 0 ? -way : way);
        far = fmax(far, way);
    }
    return fabs(b->slope) * far;
}

static void settle_biases(settling *s, float *w, rbt_team *team)
{
    const rbt_problem *p = s->sdca->problem;
    for (size_t c = 0; c < p->outputs; c++)
        s->bias[c] = (double)w[p->weights + c];
    if (is_smooth(p))
        newton_biases(s, team);
    else
        settle_hinge(s, team);
    s->bias_gap = 0;
    for (size_t c = 0; c < p->outputs; c++) {
        double before = (double)w[p->weights + c];
        s->bias[c] = (double)(w[p->weights + c] = (float)s->bias[c]);
        s->bias_gap += look_ahead(s, c, before);
    }
}

/* May the next pass be made with biases ahead of the weights? These must be good enough for it; and when it made things worse,
 * it is left alone for twice as many passes as the last time. */
static void look_back(rbt_sdca *sdca, double gap, double objective)
{
    if (sdca->ahead && gap > BIAS_WORSE * sdca->gap)
        sdca->rest = sdca->setback = 2 * sdca->setback + 1;
    else if (sdca->rest > 0)
        sdca->rest--;
    sdca->gap = gap;
    sdca->ahead = gap <= BIAS_NEAR * objective && sdca->rest == 0;
}

double rbt_sdca_settle(rbt_sdca *sdca, float *w, rbt_team *team, double *gap)
{
    const rbt_problem *p = sdca->problem;
    size_t k = p->outputs, blocks = p->data->rows / RBT_BLOCK_ROWS + 1;
    double *room = rbt_alloc((3 + 2 * blocks) * k, sizeof *room), rows = (double)p->data->rows, loss;
    float *parameters = p->l1 > 0 ? rbt_alloc(p->n, sizeof *parameters) : w;
    settling s = {.sdca = sdca,
                  .parameters = parameters,
                  .bias = room,
                  .slope = room + k,
                  .bend = room + 2 * k,
                  .blocks = room + 3 * k};
    if (p->l1 > 0)
        rbt_sdca_parameters(sdca, w, parameters);
    (void)rbt_team_sum(team, p->data->rows, fill_scores, &s);
    if (p->shape->bias)
        settle_biases(&s, w, team);
    loss = rbt_team_sum(team, p->data->rows, block_loss, &s) / rows;
    *gap = s.bias_gap;
    for (size_t block = 0; block * RBT_BLOCK_ROWS < p->data->rows; block++)
        *gap += s.blocks[block * 2 * k] / rows;
    double objective = loss + rbt_problem_penalty(p, parameters);
    look_back(sdca, *gap, objective);
    if (p->l1 > 0)
        rbt_free(parameters);
    rbt_free(room);
    return objective;
}
