/* Matrix factorisation by peers without servers. Contract in mf.h.
 *
 * A peer has a row of all users and all items, and averages them with its neighbours'. In a clock it makes a step for every rating
 * of its users of that clock, one after the other, and what has changed is its update. An average over N peers leaves 1 / N of
 * that, and the model is the mean of all peers' rows.
 *
 * A user's row, and that of an item whose users are all here, is changed by one peer alone. It keeps these rows as its steps make
 * them, whatever averages make of its parameters, and adds N times each change: the mean is then what the peer has, since
 * averages keep sums. Where they do not, it also makes up for a part of what is missing in its parameters (plan->own_reach).
 *
 * A row that several change goes N times as far, too, but not past where steps without end would lead the mean (N / crowd, as
 * with servers), nor further than averages can bear (plan->reach). Between, it goes where N times as many steps in sequence would have
 * taken it. Step sizes fall with what a peer has seen itself; parameters alone are averaged.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/kernels.h"
#include "method/mf.h"

static rbt_err refuse_memory(const rbt_mf_state *s, rbt_error *error)
{
    return rbt_fail(
        error, RBT_E_MEMORY,
        "not enough memory for the factors of %zu users and %zu items of rank %zu in every worker; use fewer "
        "--workers, a smaller --rank, or --sync ssp",
        s->users, s->items, s->rank);
}

size_t rbt_mf_size(const rbt_plan *plan)
{
    const rbt_mf_state *s = plan->state;

    return (s->users + s->items) * s->cols;
}

rbt_err rbt_mf_peers_init(rbt_mf_state *state, const rbt_plan *plan, rbt_error *error)
{
    if (state->share_users || rbt_plan_option(plan, "pieces") > 1)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--%s is for servers and makes no sense for peers, of whom each has all factors; leave it out, or "
            "use --sync ssp",
            state->share_users ? "share both" : "pieces");
    state->peer = rbt_alloc(plan->workers, sizeof *state->peer);
    state->start = rbt_try_alloc(state->users + state->items, state->cols * sizeof *state->start);
    if (state->start == NULL)
        return refuse_memory(state, error);
    for (size_t i = 0; i < state->users + state->items; i++) {
        bool is_item = i >= state->users;

        rbt_mf_start(state, is_item ? RBT_MF_ITEMS : RBT_MF_USERS, is_item ? i - state->users : i,
                     state->start + i * state->cols);
    }
    return RBT_OK;
}

void rbt_mf_peers_deinit(rbt_mf_state *state, const rbt_plan *plan)
{
    for (uint32_t m = 0; state->peer != NULL && m < plan->workers; m++) {
        rbt_free(state->peer[m].side);
        rbt_free(state->peer[m].crowd);
        rbt_free(state->peer[m].own_row);
        rbt_free(state->peer[m].own);
    }
    rbt_free(state->peer);
}

/* Is a row that has been changed one that nobody else changes? */
static bool is_own(const rbt_mf_state *s, const rbt_mf_peer *peer, size_t row)
{
    return row < s->users || peer->crowd[row - s->users] == 1;
}

/* What a peer must know of the ratings of all its users. */
static rbt_err begin(const rbt_plan *plan, uint32_t worker, const float *w, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    const rbt_data *data = plan->data;
    rbt_mf_peer *peer = &s->peer[worker];
    size_t n;
    const uint32_t *rows = rbt_plan_rows_of(plan, worker, &n);

    peer->side = rbt_try_alloc_raw(s->users + s->items, sizeof *peer->side);
    peer->crowd = rbt_try_alloc(s->items, sizeof *peer->crowd);
    peer->own_row = rbt_try_alloc(n + s->items, sizeof *peer->own_row);
    if (peer->side == NULL || peer->crowd == NULL || peer->own_row == NULL)
        return refuse_memory(s, error);
    for (size_t i = 0; i < s->users + s->items; i++)
        peer->side[i] = RBT_MF_SIDE;
    for (size_t i = 0; i < n; i++) {
        peer->own_row[peer->owns++] = rows[i];
        for (size_t k = data->start[rows[i]]; k < data->start[rows[i] + 1]; k++)
            peer->crowd[data->index[k]]++;
    }
    for (size_t i = 0; i < s->items; i++) {
        if (peer->crowd[i] > 0 && peer->crowd[i] == (float)s->rated[i])
            peer->own_row[peer->owns++] = s->users + i;
        peer->crowd[i] = peer->crowd[i] > 0 ? (float)s->rated[i] / peer->crowd[i] : 1;
    }
    peer->own = rbt_try_alloc_raw(peer->owns, s->cols * sizeof *peer->own);
    if (peer->own == NULL)
        return refuse_memory(s, error);
    for (size_t k = 0; k < peer->owns; k++)
        memcpy(peer->own + k * s->cols, w + peer->own_row[k] * s->cols, s->cols * sizeof *w);
    return RBT_OK;
}

/* What becomes of a row that has been changed: u has it as it was. It goes up to `reach` times its distance from the optimum. */
static void finish(const rbt_plan *plan, const rbt_mf_side *side, double reach, const float *now, float *u)
{
    const rbt_mf_state *s = plan->state;
    double workers = plan->workers, stretch = workers;

    if (side->pull > 1e-6f)
        stretch = reach * rbt_mf_stretch((double)side->pull, workers / reach);
    for (size_t k = 0; k < s->cols; k++)
        u[k] = (float)stretch * (now[k] - u[k]);
}

/* The same of a row that is the peer's own: `own` is what it was, u what averages have made of it. */
static void finish_own(const rbt_plan *plan, const float *now, float *own, float *u)
{
    const rbt_mf_state *s = plan->state;

    for (size_t k = 0; k < s->cols; k++) {
        u[k] = (float)plan->workers * (now[k] - own[k]) + (float)plan->own_reach * (own[k] - u[k]);
        own[k] = now[k];
    }
}

static void finish_all(const rbt_plan *plan, const rbt_mf_peer *peer, float *w, float *u)
{
    const rbt_mf_state *s = plan->state;
    size_t cols = s->cols;

    for (size_t i = 0; i < s->users + s->items; i++) {
        if (peer->side[i].pull > 0 && s->rates.biases)
            w[i * cols + s->rank] = peer->side[i].bias;
        if (!(peer->side[i].pull > 0))
            memset(u + i * cols, 0, cols * sizeof *u);
        else if (!is_own(s, peer, i))
            finish(plan, &peer->side[i], fmin(plan->workers / (double)peer->crowd[i - s->users], plan->reach),
                   w + i * cols, u + i * cols);
    }
    for (size_t k = 0; k < peer->owns; k++) {
        size_t i = peer->own_row[k];

        if (peer->side[i].pull > 0)
            finish_own(plan, w + i * cols, peer->own + k * cols, u + i * cols);
    }
}

rbt_err rbt_mf_update(rbt_plan *plan, uint32_t worker, uint64_t clock, const uint32_t *rows, size_t n, float *w,
                      float *u, rbt_told *told, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    const rbt_data *data = plan->data;
    rbt_mf_peer *peer = &s->peer[worker];
    rbt_mf_rates rates = s->rates;
    double sum = 0, scale = (double)rates.scale;
    rbt_err err = RBT_OK;

    rates.rate = (float)rbt_plan_rate_at(plan, clock, plan->lr);
    rbt_kernels_best()->add(s->start, w, rbt_mf_size(plan));
    memcpy(u, w, rbt_mf_size(plan) * sizeof *u);
    if (peer->side == NULL)
        err = begin(plan, worker, w, error);
    if (err != RBT_OK || peer->side == NULL) /* always both or none */
        return err;
    for (size_t k = 0; k < peer->owns; k++)
        memcpy(w + peer->own_row[k] * s->cols, peer->own + k * s->cols, s->cols * sizeof *w);
    for (size_t i = 0; i < s->users + s->items; i++) {
        peer->side[i].pull = 0;
        peer->side[i].bias = rates.biases ? w[i * s->cols + s->rank] : 0;
    }
    for (size_t i = 0; i < n; i++) {
        size_t user = rows[i];

        for (size_t k = data->start[user]; k < data->start[user + 1]; k++) {
            size_t item = data->index[k], row = s->users + item;
            float z = rbt_mf_step(&rates, data->value[k], peer->crowd[item], w + user * s->cols, &peer->side[user],
                                  w + row * s->cols, &peer->side[row]);

            sum += (double)z * (double)z;
        }
        told->weight += data->start[user + 1] - data->start[user];
    }
    finish_all(plan, peer, w, u);
    told->sum = sum * scale * scale;
    told->rows = n;
    told->nonzeros = told->weight * s->rank;
    return RBT_OK;
}

double rbt_mf_losses(const rbt_plan *plan, const uint32_t *rows, size_t n, const float *w, uint64_t *weight)
{
    const rbt_mf_state *s = plan->state;
    const rbt_data *data = plan->data;
    float p[RBT_MF_RANK_MOST + 1], q[RBT_MF_RANK_MOST + 1];
    double sum = 0, scale = (double)s->rates.scale;

    *weight = 0;
    p[s->rank] = q[s->rank] = 0; /* the biases, if there are any */
    for (size_t i = 0; i < n; i++) {
        size_t from = (size_t)rows[i] * s->cols;

        for (size_t c = 0; c < s->cols; c++)
            p[c] = w[from + c] + s->start[from + c];
        for (size_t k = data->start[rows[i]]; k < data->start[rows[i] + 1]; k++) {
            size_t at = (s->users + data->index[k]) * s->cols;
            float z;

            for (size_t c = 0; c < s->cols; c++)
                q[c] = w[at + c] + s->start[at + c];
            z = rbt_mf_error(&s->rates, data->value[k], p, p[s->rank], q, q[s->rank]);
            sum += (double)z * (double)z;
        }
        *weight += data->start[rows[i] + 1] - data->start[rows[i]];
    }
    return sum * scale * scale;
}
