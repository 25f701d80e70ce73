/* Matrix factorisation by workers with tables. Contract in mf.h.
 *
 * A clock reads the items that its users have rated (and the users, if they are shared), makes a step for every rating on
 * copies, and adds to the tables by how much the copies have changed. Workers do this at the same time, each as if it were
 * alone, so what they add for one item can overshoot: several went the same way. With adaptive steps, the change is
 * therefore multiplied by what a sequence of all these steps would have moved it, over what they move it together. If a
 * worker's steps take away the share 1 - exp(-s) of the distance to the optimum, those of `crowd` times as many ratings in
 * sequence take 1 - exp(-crowd s). For short clocks the factor is near 1, for long ones near 1 / crowd, a mean.
 *
 * Under a rule that takes gradients, items (and shared users) stay as they were read, and the sums of the gradients go out.
 * Users that are not shared then make AdaGrad's step with the sum of theirs, which is what adagrad and adarev would do on a
 * server: a step per rating would overshoot with a large --lr, whatever the servers revise.
 * Everything is in the reference's arithmetic: BSP gives the same bits on every runtime.
 */
#include "method/mf.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"

#define NONE UINT32_MAX

/* Rows of a table that a clock works on. */
typedef struct copies {
    uint64_t count, room;
    float *now;        /* count x cols: as they are while the clock goes on, the bias in `side` */
    float *before;     /* as they were read; or the gradients */
    rbt_mf_side *side; /* count */
    RBT_ARRAY(size_t) row;
} copies;

typedef struct mf_worker {
    rbt_worker *worker;
    rbt_plan *plan;
    const rbt_mf_state *state;
    rbt_mf_rates rates;
    bool gradients; /* the rule takes them */
    const uint32_t *rows;
    size_t n;
    float *p;               /* n x rank: the users' vectors */
    rbt_mf_side *users;     /* n */
    float *squares;         /* n x cols: sums of the users' squared gradients; NULL unless adaptive_users */
    rbt_mf_side *item_side; /* per item: what of its side stays with the worker */
    uint32_t *mine;         /* per item: ratings here */
    uint32_t *slot;         /* per item: its copy, or NONE */
    copies items;
    float *scratch; /* of a table's row */
} mf_worker;

static void copies_free(copies *c)
{
    rbt_free(c->now);
    rbt_free(c->before);
    rbt_free(c->side);
    rbt_array_free(&c->row);
}

static rbt_err copies_reserve(copies *c, size_t count, size_t cols, rbt_error *error)
{
    if (count <= c->room)
        return RBT_OK;
    rbt_free(c->now);
    rbt_free(c->before);
    rbt_free(c->side);
    c->room = count + count / 4;
    c->now = rbt_try_alloc(c->room, cols * sizeof *c->now);
    c->before = rbt_try_alloc(c->room, cols * sizeof *c->before);
    c->side = rbt_try_alloc(c->room, sizeof *c->side);
    if (c->now != NULL && c->before != NULL && c->side != NULL)
        return RBT_OK;
    c->room = 0;
    return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's %zu items; use a smaller --batch or --rank",
                    count);
}

/* ------------------------------------------------------------------------------------------------------------- reading */

/* A row of a table, with the values it began with. */
static rbt_err read_row(mf_worker *m, int of, size_t row, float *out, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    const float *start = s->start + row * s->rank;
    rbt_err err = rbt_get_row(m->worker, s->table[of], row, RBT_STALENESS_OF_JOB, out, error);

    if (of == RBT_MF_USERS) {
        rbt_mf_start(s, of, row, m->scratch);
        start = m->scratch;
    }
    for (size_t k = 0; err == RBT_OK && k < s->rank; k++)
        out[k] += start[k];
    return err;
}

/* Copies of all items that the batch's users have rated. */
static rbt_err read_items(mf_worker *m, size_t first, size_t n, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    const rbt_data *data = m->plan->data;
    copies *c = &m->items;
    rbt_err err = RBT_OK;

    c->row.count = 0;
    for (size_t i = first; i < first + n; i++) {
        for (size_t k = data->start[m->rows[i]]; k < data->start[m->rows[i] + 1]; k++) {
            if (m->slot[data->index[k]] != NONE)
                continue;
            m->slot[data->index[k]] = (uint32_t)c->row.count;
            rbt_array_push(&c->row, data->index[k]);
        }
    }
    c->count = c->row.count;
    err = copies_reserve(c, c->count, s->cols, error);
    for (size_t j = 0; err == RBT_OK && j < c->count; j++) {
        float *now = c->now + j * s->cols, *before = c->before + j * s->cols;

        err = read_row(m, RBT_MF_ITEMS, c->row.at[j], now, error);
        c->side[j] = m->item_side[c->row.at[j]];
        c->side[j].pull = 0;
        c->side[j].bias = s->rates.biases ? now[s->rank] : 0;
        if (m->gradients)
            memset(before, 0, s->cols * sizeof *before);
        else
            memcpy(before, now, s->cols * sizeof *before);
    }
    return err;
}

static rbt_err read_users(mf_worker *m, size_t first, size_t n, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    float *row = rbt_alloc(s->cols, sizeof *row);
    rbt_err err = RBT_OK;

    for (size_t i = first; err == RBT_OK && s->share_users && i < first + n; i++) {
        err = read_row(m, RBT_MF_USERS, m->rows[i], row, error);
        memcpy(m->p + i * s->rank, row, s->rank * sizeof *row);
        m->users[i].bias = s->rates.biases ? row[s->rank] : 0;
    }
    rbt_free(row);
    return err;
}

/* ------------------------------------------------------------------------------------------------------------- stepping */

double rbt_mf_stretch(double pull, double crowd)
{
    return (1 - rbt_exp(-crowd * pull)) / (1 - rbt_exp(-pull));
}

/* How much of what a worker changed an item by is added, when `crowd` times as many ratings change it in all. */
static float share_of(float pull, float crowd)
{
    return crowd <= 1 || !(pull > 1e-6f) ? 1 : (float)(rbt_mf_stretch((double)pull, (double)crowd) / (double)crowd);
}

static float crowd_of(const mf_worker *m, size_t item)
{
    return m->mine[item] > 0 ? (float)m->state->rated[item] / (float)m->mine[item] : 1;
}

/* Adds to g the gradient of a rating's loss by x, of which the other vector is `other`. */
static void add_gradient(const rbt_mf_rates *r, float error, const float *x, float bias, const float *other, float *g)
{
    for (size_t k = 0; k < r->rank; k++)
        g[k] -= error * other[k] - r->l2 * x[k];
    if (r->biases)
        g[r->rank] -= error - r->l2_bias * bias;
}

/* Users that are the worker's own make AdaGrad's steps. */
static bool adaptive_users(const mf_worker *m)
{
    return m->gradients && !m->state->share_users && m->rates.adaptive;
}

static float adagrad_step(float rate, float g, float *squares)
{
    *squares += g * g;
    return rate * g / (sqrtf(*squares) + 1e-8f);
}

static void step_own_user(mf_worker *m, size_t i, const float *gradient)
{
    const rbt_mf_rates *r = &m->rates;
    float *p = m->p + i * r->rank, *squares = m->squares + i * m->state->cols;

    for (size_t k = 0; k < r->rank; k++)
        p[k] -= adagrad_step(r->rate, gradient[k], &squares[k]);
    if (r->biases)
        m->users[i].bias -= adagrad_step(r->rate, gradient[r->rank], &squares[r->rank]);
}

/* A rating under a rule that takes gradients: `user` receives the user's. */
static float gradient_step(mf_worker *m, float rating, size_t i, size_t slot, float *user)
{
    const rbt_mf_rates *r = &m->rates;
    copies *c = &m->items;
    float *p = m->p + i * r->rank, *q = c->now + slot * m->state->cols, item_bias = c->side[slot].bias;
    float error = rbt_mf_error(r, rating, p, m->users[i].bias, q, item_bias);

    add_gradient(r, error, q, item_bias, p, c->before + slot * m->state->cols);
    if (m->state->share_users || adaptive_users(m)) {
        add_gradient(r, error, p, m->users[i].bias, q, user);
    } else { /* the user's own steps, on an item that stays */
        rbt_mf_side item = c->side[slot];

        memcpy(m->scratch, q, r->rank * sizeof *q);
        (void)rbt_mf_step(r, rating, 1, p, &m->users[i], m->scratch, &item);
    }
    return error;
}

/* All ratings of one of the worker's users; the sum of the squared errors. */
static rbt_err step_user(mf_worker *m, size_t i, double *sum, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    const rbt_data *data = m->plan->data;
    size_t rank = s->rank, user = m->rows[i];
    float *p = m->p + i * rank, *change = rbt_alloc(s->cols, sizeof *change), bias = m->users[i].bias;
    rbt_err err = RBT_OK;

    if (s->share_users && !m->gradients)
        memcpy(change, p, rank * sizeof *p);
    for (size_t k = data->start[user]; k < data->start[user + 1]; k++) {
        size_t slot = m->slot[data->index[k]];
        float z = m->gradients ? gradient_step(m, data->value[k], i, slot, change)
                               : rbt_mf_step(&m->rates, data->value[k], crowd_of(m, data->index[k]), p, &m->users[i],
                                             m->items.now + slot * s->cols, &m->items.side[slot]);

        *sum += (double)z * (double)z;
    }
    if (adaptive_users(m))
        step_own_user(m, i, change);
    if (s->share_users) {
        for (size_t k = 0; !m->gradients && k < rank; k++)
            change[k] = p[k] - change[k];
        if (!m->gradients && s->rates.biases)
            change[rank] = m->users[i].bias - bias;
        err = rbt_inc_row(m->worker, s->table[RBT_MF_USERS], user, change, error);
    }
    rbt_free(change);
    return err;
}

/* -------------------------------------------------------------------------------------------------------------- writing */

static rbt_err write_items(mf_worker *m, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    copies *c = &m->items;
    rbt_err err = RBT_OK;

    for (size_t j = 0; err == RBT_OK && j < c->count; j++) {
        size_t item = c->row.at[j];
        float *now = c->now + j * s->cols, *change = c->before + j * s->cols;
        float share = s->rates.adaptive ? share_of(c->side[j].pull, crowd_of(m, item)) : 1;

        if (s->rates.biases)
            now[s->rank] = c->side[j].bias;
        for (size_t k = 0; !m->gradients && k < s->cols; k++)
            change[k] = share * (now[k] - change[k]);
        err = rbt_inc_row(m->worker, s->table[RBT_MF_ITEMS], item, change, error);
        m->item_side[item] = c->side[j];
        m->slot[item] = NONE;
    }
    return err;
}

/* A part of a clock's users: their items are read before and written after. */
static rbt_err mf_piece(mf_worker *m, size_t first, size_t n, rbt_error *error)
{
    const rbt_data *data = m->plan->data;
    double sum = 0, scale = (double)m->rates.scale;
    uint64_t ratings = 0;
    rbt_err err = read_items(m, first, n, error);

    if (err == RBT_OK)
        err = read_users(m, first, n, error);
    for (size_t i = first; err == RBT_OK && i < first + n; i++) {
        err = step_user(m, i, &sum, error);
        ratings += data->start[m->rows[i] + 1] - data->start[m->rows[i]];
    }
    if (err == RBT_OK)
        err = write_items(m, error);
    if (err == RBT_OK)
        err = rbt_plan_tell(m->plan, m->worker, sum * scale * scale, ratings, error);
    rbt_worker_did(m->worker, ratings, ratings * m->state->rank);
    return err;
}

static rbt_err mf_clock(mf_worker *m, size_t first, size_t n, rbt_error *error)
{
    size_t pieces = (size_t)rbt_plan_option(m->plan, "pieces");
    rbt_err err = RBT_OK;

    pieces = pieces < n ? pieces : n > 0 ? n : 1;
    m->rates.rate = (float)rbt_plan_rate(m->plan, m->worker, m->plan->lr);
    for (size_t i = 0; err == RBT_OK && i < pieces; i++)
        err = mf_piece(m, first + n * i / pieces, n * (i + 1) / pieces - n * i / pieces, error);
    return err == RBT_OK ? rbt_clock(m->worker, error) : err;
}

/* The closing clock: users that were the worker's own. */
static rbt_err write_users(mf_worker *m, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    rbt_err err = RBT_OK;

    for (size_t i = 0; err == RBT_OK && !s->share_users && i < m->n; i++) {
        memcpy(m->scratch, m->p + i * s->rank, s->rank * sizeof *m->p);
        if (s->rates.biases)
            m->scratch[s->rank] = m->users[i].bias;
        err = rbt_inc_row(m->worker, s->table[RBT_MF_USERS], m->rows[i], m->scratch, error);
    }
    return err == RBT_OK ? rbt_clock(m->worker, error) : err;
}

/* --------------------------------------------------------------------------------------------------------------- running */

static rbt_err begin(mf_worker *m, rbt_error *error)
{
    const rbt_mf_state *s = m->state;
    const rbt_data *data = m->plan->data;

    m->rows = rbt_plan_rows(m->plan, m->worker, &m->n);
    m->p = rbt_try_alloc_raw(m->n, s->rank * sizeof *m->p);
    m->users = rbt_try_alloc_raw(m->n, sizeof *m->users);
    m->squares = adaptive_users(m) ? rbt_try_alloc(m->n, s->cols * sizeof *m->squares) : NULL;
    m->item_side = rbt_try_alloc_raw(s->items, sizeof *m->item_side);
    m->mine = rbt_try_alloc(s->items, sizeof *m->mine);
    m->slot = rbt_try_alloc_raw(s->items, sizeof *m->slot);
    if (m->p == NULL || m->users == NULL || (adaptive_users(m) && m->squares == NULL) || m->item_side == NULL ||
        m->mine == NULL || m->slot == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's %zu users; use a smaller --rank", m->n);
    for (size_t i = 0; i < m->n; i++) {
        rbt_mf_start(s, RBT_MF_USERS, m->rows[i], m->p + i * s->rank);
        m->users[i] = RBT_MF_SIDE;
        for (size_t k = data->start[m->rows[i]]; k < data->start[m->rows[i] + 1]; k++)
            m->mine[data->index[k]]++;
    }
    for (size_t i = 0; i < s->items; i++) {
        m->item_side[i] = RBT_MF_SIDE;
        m->slot[i] = NONE;
    }
    return RBT_OK;
}

rbt_err rbt_mf_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    mf_worker m = {.worker = worker,
                   .plan = plan,
                   .state = s,
                   .rates = s->rates,
                   .gradients = plan->takes_gradients,
                   .scratch = rbt_alloc(s->cols, sizeof *m.scratch)};
    size_t first, n;
    rbt_err err = begin(&m, error);

    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = mf_clock(&m, first, n, error);
    if (err == RBT_OK)
        err = write_users(&m, error);
    copies_free(&m.items);
    rbt_free(m.p);
    rbt_free(m.users);
    rbt_free(m.squares);
    rbt_free(m.item_side);
    rbt_free(m.mine);
    rbt_free(m.slot);
    rbt_free(m.scratch);
    return err;
}
