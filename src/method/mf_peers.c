/* Matrix factorisation by peers without servers. Contract in mf.h.
 *
 * A peer has a row of all users and all items, and averages them with its neighbours'. In a clock it makes a step for every rating
 * of its users of that clock, one after the other, and what has changed is its update. Most rows are changed by few peers, a
 * user's by one, and an average over N peers leaves 1 / N of that. So a row goes N times as far, but not past where steps without
 * end would lead the mean (N / crowd, as with servers), nor further than averages can bear (plan->reach; a user, whom nobody
 * else reads, may be far off until it is averaged away: plan->own_reach). Between, it goes where N times as many steps in
 * sequence would have taken it. Step sizes fall with what a peer has seen itself; parameters alone are averaged.
 */
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
    }
    rbt_free(state->peer);
}

/* What a peer must know of the ratings of all its users. */
static rbt_err begin(const rbt_plan *plan, uint32_t worker, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    const rbt_data *data = plan->data;
    rbt_mf_peer *peer = &s->peer[worker];
    size_t n;
    const uint32_t *rows = rbt_plan_rows_of(plan, worker, &n);

    peer->side = rbt_try_alloc_raw(s->users + s->items, sizeof *peer->side);
    peer->crowd = rbt_try_alloc(s->items, sizeof *peer->crowd);
    if (peer->side == NULL || peer->crowd == NULL)
        return refuse_memory(s, error);
    for (size_t i = 0; i < s->users + s->items; i++)
        peer->side[i] = RBT_MF_SIDE;
    for (size_t i = 0; i < n; i++)
        for (size_t k = data->start[rows[i]]; k < data->start[rows[i] + 1]; k++)
            peer->crowd[data->index[k]]++;
    for (size_t i = 0; i < s->items; i++)
        peer->crowd[i] = peer->crowd[i] > 0 ? (float)s->rated[i] / peer->crowd[i] : 1;
    return RBT_OK;
}

/* What becomes of a row that has been changed: u has it as it was. It goes up to `reach` times its distance from the optimum. */
static void finish(const rbt_plan *plan, const rbt_mf_side *side, double reach, float *now, float *u)
{
    const rbt_mf_state *s = plan->state;
    double workers = plan->workers, stretch = workers;

    if (side->pull > 1e-6f)
        stretch = reach * rbt_mf_stretch((double)side->pull, workers / reach);
    if (s->rates.biases)
        now[s->rank] = side->bias;
    for (size_t k = 0; k < s->cols; k++)
        u[k] = (float)stretch * (now[k] - u[k]);
}

static void finish_all(const rbt_plan *plan, const rbt_mf_peer *peer, float *w, float *u)
{
    const rbt_mf_state *s = plan->state;

    for (size_t i = 0; i < s->users + s->items; i++) {
        double reach = plan->own_reach;

        if (i >= s->users) {
            reach = plan->workers / (double)peer->crowd[i - s->users];
            reach = reach < plan->reach ? reach : plan->reach;
        }
        if (peer->side[i].pull > 0)
            finish(plan, &peer->side[i], reach, w + i * s->cols, u + i * s->cols);
        else
            memset(u + i * s->cols, 0, s->cols * sizeof *u);
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
    rbt_err err = peer->side != NULL ? RBT_OK : begin(plan, worker, error);

    if (err != RBT_OK || peer->side == NULL) /* always both or none */
        return err;
    rates.rate = (float)rbt_plan_rate_at(plan, clock, plan->lr);
    rbt_kernels_best()->add(s->start, w, rbt_mf_size(plan));
    memcpy(u, w, rbt_mf_size(plan) * sizeof *u);
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
