/* Losses of rows for Newton's method, and what they come to. Contract in newton_state.h; proved by
 * tests/unit/test_newton.c.
 *
 * The second derivative of a loss with a corner (the hinge) says nothing. So the corner is rounded: max(0, u) becomes
 * r log(1 + exp(u / r)), a logistic loss on another scale, and newton.c makes r smaller on the way. What that costs is
 * known: with the slopes a of the rounded losses as dual variables the duality gap of the true ones is the mean of
 * max(0, u) - a u. */
#include "solve/newton_state.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static void targets(const rbt_newton *t, size_t first, size_t n, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = rbt_link_target(t->problem->shape, t->problem->data, rbt_newton_row(t, first + i));
}

/* The hinge with its corner rounded, of n rows: 1 - y z is y (y - z), as y is -1 or 1. */
static void derive_rounded(double round, size_t n, const double *z, const double *y, double *loss, double *s,
                           double *bend)
{
    double far[RBT_LINK_ROWS] = {0}; /* compilers do not see that n of them are set */
    for (size_t i = 0; i < n; i++)
        far[i] = (z[i] - y[i]) / round;
    rbt_link_all(&rbt_link_logistic, n, far, y, 0, loss, s, bend);
    for (size_t i = 0; i < n; i++) {
        loss[i] *= round;
        if (s != NULL)
            bend[i] /= round;
    }
}

double rbt_newton_derive(const rbt_newton *t, size_t first, size_t n, const double *z, double *s, double *bend)
{
    const rbt_problem *p = t->problem;
    double y[RBT_LINK_ROWS] = {0}, loss[RBT_LINK_ROWS], total = 0;
    targets(t, first, n, y);
    if (t->round > 0)
        derive_rounded(t->round, n, z, y, loss, s, bend);
    else
        rbt_link_all(p->model->link, n, z, y, p->shape->delta, loss, s, bend);
    for (size_t i = 0; i < n; i++) {
        double weight = rbt_data_weight(p->data, rbt_newton_row(t, first + i));
        total += weight * loss[i];
        if (s != NULL) {
            s[i] *= weight;
            bend[i] *= weight;
        }
    }
    return total;
}

double rbt_newton_derive_softmax(const rbt_newton *t, size_t first, size_t n, double *s, double *d)
{
    const rbt_problem *p = t->problem;
    size_t k = p->outputs;
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t r = rbt_newton_row(t, first + i), label = (size_t)p->data->label[r];
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

typedef struct along {
    const rbt_newton *newton;
    const double *z; /* or NULL: all are 0 */
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
            z[i] = (a->z != NULL ? a->z[first * k + i] : 0) + (a->step > 0 ? a->step * t->zd[first * k + i] : 0);
        if (p->model->link != NULL)
            total += rbt_newton_derive(t, first, n, z, NULL, NULL);
        else
            total += rbt_data_weight(p->data, rbt_newton_row(t, first)) *
                     rbt_softmax(z, k, (size_t)p->data->label[rbt_newton_row(t, first)]);
    }
    rbt_free(z);
    return total;
}

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

double rbt_newton_objective(const rbt_newton *t, double losses)
{
    return objective(t, 0, losses);
}

double rbt_newton_objective_along(rbt_newton *t, double step)
{
    along a = {t, t->z, step};
    return objective(t, step, rbt_team_sum(t->team, t->rows, losses_along, &a));
}

double rbt_newton_objective_at_zero(rbt_newton *t)
{
    along a = {t, NULL, 0};
    return rbt_team_sum(t->team, t->rows, losses_along, &a) / (double)t->rows; /* nothing is penalised */
}

/* ----------------------------------------------------------------------------------------------------- corners */

/* The rows' true losses. */
static double corner_losses(void *context, size_t first, size_t n)
{
    const rbt_newton *t = context;
    double total = 0;
    for (size_t i = first; i < first + n; i++) {
        double y = rbt_link_target(t->problem->shape, t->problem->data, rbt_newton_row(t, i));
        total += rbt_data_weight(t->problem->data, rbt_newton_row(t, i)) * t->problem->model->link->loss(t->z[i], y, 0);
    }
    return total;
}

/* What rounding costs: for the slopes of the rounded losses as dual variables, max(0, u) - a u, with u = 1 - y z and a
 * = -y slope. */
static double corner_costs(void *context, size_t first, size_t n)
{
    const rbt_newton *t = context;
    double y[RBT_LINK_ROWS] = {0}, loss[RBT_LINK_ROWS], slope[RBT_LINK_ROWS], bend[RBT_LINK_ROWS], total = 0;
    for (size_t end = first + n; first < end; first += n) {
        n = end - first < RBT_LINK_ROWS ? end - first : RBT_LINK_ROWS;
        targets(t, first, n, y);
        derive_rounded(t->round, n, t->z + first, y, loss, slope, bend);
        for (size_t i = 0; i < n; i++) {
            double far = y[i] - t->z[first + i]; /* y u */
            total += rbt_data_weight(t->problem->data, rbt_newton_row(t, first + i)) *
                     (fmax(y[i] * far, 0) + slope[i] * far);
        }
    }
    return total;
}

double rbt_newton_true_objective(rbt_newton *t, double *cost)
{
    *cost = rbt_team_sum(t->team, t->rows, corner_costs, t) / (double)t->rows;
    return objective(t, 0, rbt_team_sum(t->team, t->rows, corner_losses, t));
}
