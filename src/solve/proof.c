/* How far dual coordinate ascent is above the optimum. Contract in proof.h; proved by tests/unit/test_sdca.c. */
#include "solve/proof.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "math/functions.h"
#include "model/link.h"
#include "model/model.h"

typedef struct proof {
    const rbt_problem *problem;
    float *dual; /* rows * outputs */
} proof;

/* Those of one sign are made smaller: towards 0 they stay within what the loss allows. */
static void balance(const rbt_problem *p, float *dual)
{
    double above = 0, below = 0;
    for (size_t r = 0; r < p->data->rows; r++) {
        double a = rbt_data_weight(p->data, r) * (double)dual[r];
        above += a > 0 ? a : 0;
        below -= a < 0 ? a : 0;
    }
    float up = above > below ? (float)(below / above) : 1, down = below > above ? (float)(above / below) : 1;
    for (size_t r = 0; r < p->data->rows; r++)
        dual[r] *= dual[r] > 0 ? up : down;
}

/* Softmax: a row's dual variables are what its label has above its shares of the classes. All shares are mixed with as little as
 * possible of one and the same distribution, so that their mean is that of the labels. */
static void balance_shares(const rbt_problem *p, float *dual)
{
    size_t k = p->outputs;
    double *want = rbt_alloc(2 * k, sizeof *want), *have = want + k, part = 0, total = 0;
    for (size_t r = 0; r < p->data->rows; r++) {
        want[(size_t)p->data->label[r]] += rbt_data_weight(p->data, r);
        total += rbt_data_weight(p->data, r);
    }
    for (size_t r = 0; r < p->data->rows; r++) {
        double weight = rbt_data_weight(p->data, r), sum = 0;
        float *a = dual + r * k;
        size_t label = (size_t)p->data->label[r];
        for (size_t c = 0; c < k;
             c++) { /* rounding left them a little beside 1; of a class that no row has there is none */
            a[c] = want[c] > 0 ? fmaxf((c == label ? 1 : 0) - a[c], 0) : 0;
            sum += (double)a[c];
        }
        for (size_t c = 0; c < k; c++) {
            a[c] = sum > 0 ? (float)((double)a[c] / sum) : (float)(c == label);
            have[c] += weight * (double)a[c];
        }
    }
    for (size_t c = 0; c < k; c++)
        part = fmax(part, have[c] > want[c] ? 1 - want[c] / have[c] : 0);
    for (size_t c = 0; c < k; c++) /* of what is mixed in */
        have[c] = part > 0 ? (want[c] - (1 - part) * have[c]) / (part * total) : 0;
    for (size_t r = 0; r < p->data->rows; r++)
        for (size_t c = 0; c < k; c++) {
            double share = (1 - part) * (double)dual[r * k + c] + part * fmax(have[c], 0);
            dual[r * k + c] = (float)((c == (size_t)p->data->label[r] ? 1 : 0) - share);
        }
    rbt_free(want);
}

/* The conjugates of the losses at minus the dual variables. */
static double conjugates(void *context, size_t first, size_t n)
{
    const proof *s = context;
    const rbt_problem *p = s->problem;
    size_t k = p->outputs;
    double total = 0;
    for (size_t r = first; r < first + n; r++) {
        const float *a = s->dual + r * k;
        double sum = 0;
        if (p->model->link != NULL)
            sum = p->model->link->conjugate((double)*a, rbt_link_target(p->shape, p->data, r), p->shape->delta);
        for (size_t c = 0; p->model->link == NULL && c < k; c++) {
            double share = (c == (size_t)p->data->label[r] ? 1 : 0) - (double)a[c];
            sum += share > 0 ? share * rbt_ln(share) : 0;
        }
        total += rbt_data_weight(p->data, r) * sum;
    }
    return total;
}

double rbt_sdca_prove(const rbt_sdca *sdca, double objective, rbt_team *team)
{
    const rbt_problem *p = sdca->problem;
    size_t rows = p->data->rows, k = p->outputs;
    rbt_sdca balanced = *sdca;
    size_t vectors = p->l1 > 0 ? 2 : 1; /* before and after thresholding */
    float *dual = rbt_try_alloc_raw(rows, k * sizeof *dual), *w = rbt_try_alloc(vectors * p->n, sizeof *w);
    const float *parameters = w;
    double gap = INFINITY;
    if (dual == NULL || w == NULL)
        goto free_room;
    memcpy(dual, sdca->dual, rows * k * sizeof *dual);
    if (p->shape->bias && p->model->link != NULL)
        balance(p, dual);
    else if (p->shape->bias)
        balance_shares(p, dual);
    balanced.dual = dual;
    rbt_sdca_restore(&balanced, w, team);
    if (p->l1 > 0) {
        rbt_sdca_parameters(&balanced, w, w + p->n);
        parameters = w + p->n;
    }
    double squares = 0, sum = rbt_team_sum(team, rows, conjugates, &(proof){p, dual});
    for (size_t i = 0; i < p->weights; i++)
        squares += (double)parameters[i] * (double)parameters[i];
    gap = objective + sum / (double)rows + p->l2 / 2 * squares;
    gap = gap > 0 ? gap : gap <= 0 ? 0 : INFINITY; /* what is no number proves nothing */
free_room:
    rbt_free(dual);
    rbt_free(w);
    return gap;
}
