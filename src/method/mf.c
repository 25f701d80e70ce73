/* Matrix factorisation: a rating is foretold by mean + user's bias + item's bias + user's vector . item's vector, learned by
 * steps of stochastic gradient descent (mf_step.h).
 *
 * Rows of the data are users, columns items, values ratings. Users belong to workers: their vectors stay there (--share
 * items) and go into a table after the last pass only; items are rows of a shared table. On one machine the vectors of
 * both lie in shared memory instead (--sync hogwild); peers without servers have all vectors each. Vectors begin at random values that everybody works out alike, so
 * tables begin at zero and hold what has been added. Proved by tests/unit/test_mf.c and tests/cli/test_mf.sh.
 */
#include "method/mf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

#define RATE_DEFAULT  0.1
#define RATE_GRADIENT 0.3 /* under a rule that takes gradients: a step per clock, not per rating */
#define L2_DEFAULT    0.05
#define START         0.5 /* times 1 / sqrt(rank): the size of a vector's first elements */

static const rbt_method_option mf_options[] = {
    {.name = "rank",
     .fallback = 32,
     .least = 1,
     .most = RBT_MF_RANK_MOST,
     .whole = true,
     .about = "mf: how many numbers describe a user, and an item."},
    {.name = "biases", .words = "on|off", .about = "mf: whether users and items have a constant of their own."},
    {.name = "share",
     .words = "items|both",
     .about = "mf, with servers: which factors are in shared tables; items = users' stay with their workers."},
    {.name = "step",
     .words = "adaptive|plain",
     .about = "mf: step sizes that fall with the gradients seen, or --lr and --decay as they are."},
    {.name = "pieces",
     .fallback = 1,
     .least = 1,
     .most = 1e6,
     .whole = true,
     .about = "mf, with --budget: a clock's users in so many pieces, between which changes may come and go."},
    {0}};

void rbt_mf_start(const rbt_mf_state *state, int of, size_t row, float *out)
{
    rbt_rng rng = rbt_rng_stream(state->seed, RBT_STREAM_METHOD, 2 * (uint64_t)row + (uint64_t)of);
    double size = 2 * START / sqrt((double)state->rank);

    for (size_t k = 0; k < state->rank; k++)
        out[k] = (float)(size * (rbt_rng_f64(&rng) - 0.5));
}

/* ----------------------------------------------------------------------------------------------------------- planning */

/* What is known of all ratings. */
typedef struct mf_facts {
    uint64_t ratings, odd;      /* so many of them are no finite numbers */
    double pivot, sum, squares; /* the first one; of the differences from it */
    uint32_t rated[];           /* per item: by how many users */
} mf_facts;

static size_t mf_facts_bytes(const rbt_data *data)
{
    return sizeof(mf_facts) + data->cols * sizeof(uint32_t);
}

static void mf_survey(const rbt_data *rows, size_t first, void *facts)
{
    mf_facts *f = facts;

    (void)first;
    for (size_t i = 0; i < rows->nnz; i++) {
        double off;

        if (f->ratings++ == 0)
            f->pivot = (double)rows->value[i];
        off = (double)rows->value[i] - f->pivot;
        f->odd += !isfinite(rows->value[i]);
        f->sum += off;
        f->squares += off * off;
        f->rated[rows->index[i]]++;
    }
}

/* Mean and standard deviation of the ratings, and how often each item is rated. */
static rbt_err use_facts(rbt_mf_state *s, const mf_facts *f, rbt_error *error)
{
    double n = (double)f->ratings, mean = f->sum / n, variance = f->squares / n - mean * mean;

    if (f->ratings == 0)
        return rbt_fail(error, RBT_E_DATA, "there are no ratings in the data; a row is a user, with item:rating pairs");
    if (f->odd > 0)
        return rbt_fail(error, RBT_E_DATA, "a rating is no finite number; mend the data");
    memcpy(s->rated, f->rated, s->items * sizeof *s->rated);
    s->rates.mean = (float)(f->pivot + mean);
    s->rates.scale = variance > 0 ? (float)sqrt(variance) : 1;
    return RBT_OK;
}

/* Users that are their workers' own come into their table once, whole: they are put there as they are under every rule. */
static void put(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                const rbt_procedure_update *update)
{
    (void)procedure;
    (void)job;
    for (uint32_t k = 0; k < update->count; k++)
        block->value[update->index != NULL ? update->index[k] : k] += update->value[k];
}

static const rbt_procedure put_rule = {.name = "put", .apply = put};

static rbt_err create_tables(rbt_mf_state *s, rbt_plan *plan, rbt_error *error)
{
    rbt_table_spec users = {.name = "users", .rows = s->users, .cols = s->cols, .type = RBT_F32};
    rbt_table_spec items = {.name = "items", .rows = s->items, .cols = s->cols, .type = RBT_F32};
    rbt_err err;

    users.rule = s->share_users ? NULL : &put_rule;
    err = rbt_plan_table(plan, &users, &s->table[RBT_MF_USERS], error);
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &items, &s->table[RBT_MF_ITEMS], error);
    if (err != RBT_OK)
        return err;
    s->start = rbt_try_alloc_raw(s->items, s->rank * sizeof *s->start);
    if (s->start == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu items of rank %zu; use a smaller --rank",
                        s->items, s->rank);
    for (size_t i = 0; i < s->items; i++)
        rbt_mf_start(s, RBT_MF_ITEMS, i, s->start + i * s->rank);
    return RBT_OK;
}

static rbt_err mf_plan(rbt_plan *plan, rbt_error *error)
{
    const rbt_data *data = plan->data;
    rbt_mf_state *s = plan->state = rbt_alloc(1, sizeof *s);
    rbt_err err;

    if (isnan(plan->l2))
        plan->l2 = L2_DEFAULT;
    if (plan->lr == 0)
        plan->lr = plan->takes_gradients ? RATE_GRADIENT : RATE_DEFAULT;
    s->users = data->rows;
    s->items = data->cols;
    s->rank = (size_t)rbt_plan_option(plan, "rank");
    s->share_users = rbt_plan_option(plan, "share") == 1;
    s->seed = plan->seed;
    s->rates = (rbt_mf_rates){.rank = s->rank,
                              .adaptive = rbt_plan_option(plan, "step") == 0,
                              .biases = rbt_plan_option(plan, "biases") == 0,
                              .l2_bias = (float)plan->l2};
    s->cols = s->rank + (s->rates.biases ? 1 : 0);
    s->rated = rbt_try_alloc(s->items, sizeof *s->rated);
    if (s->rated == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu items", s->items);
    err = use_facts(s, plan->facts, error);
    if (err != RBT_OK)
        return err;
    s->rates.l2 = (float)(plan->l2 / (double)s->rates.scale); /* vectors are in units of the deviation's root */
    return plan->shared  ? rbt_mf_shared_init(s, plan, error)
           : plan->peers ? rbt_mf_peers_init(s, plan, error)
                         : create_tables(s, plan, error);
}

static void mf_end(rbt_plan *plan)
{
    rbt_mf_state *s = plan->state;

    if (s == NULL)
        return;
    rbt_mf_shared_deinit(s);
    rbt_mf_peers_deinit(s, plan);
    rbt_free(s->rated);
    rbt_free(s->start);
    rbt_free(s);
    plan->state = NULL;
}

/* ------------------------------------------------------------------------------------------------------------ keeping */

/* A vector and a bias as they are at the end, in units of ratings. `row` has room for a table's row, and the rank. */
static rbt_err final_row(const rbt_plan *plan, int of, size_t i, float *row, float *out, float *bias, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    const rbt_mf_shared *shared = &s->shared;
    const float *vector = row;
    float root = sqrtf(s->rates.scale);
    rbt_err err = RBT_OK;

    *bias = 0;
    if (plan->shared) {
        vector = shared->vectors[of] + i * shared->stride;
        *bias = shared->side[of][i].bias;
    } else if (plan->peers) {
        size_t at = (i + (of == RBT_MF_ITEMS ? s->users : 0)) * s->cols;

        for (size_t k = 0; k < s->cols; k++)
            row[k] = plan->result[at + k] + s->start[at + k];
        *bias = s->rates.biases ? row[s->rank] : 0;
    } else {
        err = rbt_plan_read(plan, s->table[of], i, 0, s->cols, row, error);
        if (err == RBT_OK && s->rates.biases)
            *bias = row[s->rank];
        if (of == RBT_MF_ITEMS || s->share_users) {
            rbt_mf_start(s, of, i, out);
            for (size_t k = 0; k < s->rank; k++)
                row[k] += out[k];
        }
    }
    *bias *= s->rates.scale;
    for (size_t k = 0; err == RBT_OK && k < s->rank; k++)
        out[k] = vector[k] * root;
    return err;
}

typedef struct named {
    const char *name;
    size_t at;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* The order in which n users or items are kept: that of their names, which go into the model; as they are without. */
static size_t *order_of(const rbt_ids *names, size_t n, const char *list, rbt_fitted *fitted)
{
    size_t *order = rbt_try_alloc_raw(n, sizeof *order);
    named *all = names != NULL ? rbt_try_alloc_raw(n, sizeof *all) : NULL;
    const char **sorted = names != NULL ? rbt_try_alloc_raw(n, sizeof *sorted) : NULL;

    for (size_t i = 0; order != NULL && i < n; i++)
        order[i] = i;
    if (names != NULL && (all == NULL || sorted == NULL)) {
        rbt_free(order);
        order = NULL;
    } else if (names != NULL && order != NULL) {
        for (size_t i = 0; i < n; i++)
            all[i] = (named){rbt_ids_name(names, i), i};
        qsort(all, n, sizeof *all, by_name);
        for (size_t i = 0; i < n; i++) {
            order[i] = all[i].at;
            sorted[i] = all[i].name;
        }
        rbt_fitted_add_names(fitted, list, n, sorted);
    }
    rbt_free(all);
    rbt_free(sorted);
    return order;
}

static rbt_err mf_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    static const char *const VECTORS[] = {"users", "items"}, *const BIASES[] = {"user_biases", "item_biases"},
                             *const NAMES[] = {"user_names", "item_names"};
    const rbt_mf_state *s = plan->state;
    float *row = rbt_alloc(s->cols, sizeof *row);
    rbt_err err = RBT_OK;

    for (int of = RBT_MF_USERS; err == RBT_OK && of <= RBT_MF_ITEMS; of++) {
        size_t n = of == RBT_MF_USERS ? s->users : s->items;
        float *vectors = rbt_fitted_add(fitted, VECTORS[of], RBT_F32, n, s->rank);
        float *biases = rbt_fitted_add(fitted, BIASES[of], RBT_F32, 1, n);
        size_t *order =
            order_of(of == RBT_MF_USERS ? plan->data->row_names : plan->data->col_names, n, NAMES[of], fitted);

        if (vectors == NULL || biases == NULL || order == NULL)
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu %s of rank %zu", n, VECTORS[of], s->rank);
        for (size_t i = 0; order != NULL && err == RBT_OK && i < n; i++)
            err = final_row(plan, of, order[i], row, vectors + i * s->rank, &biases[i], error);
        rbt_free(order);
    }
    rbt_fitted_set(fitted, "mean", (double)s->rates.mean);
    rbt_free(row);
    return err;
}

const rbt_method rbt_method_mf = {.name = "mf",
                                  .about = "ratings as products of users' and items' factors",
                                  .objective = "mean squared error of ratings, each before its step",
                                  .content = RBT_CONTENT_RATINGS,
                                  .options = mf_options,
                                  .unheeded = "l1",
                                  .closing = 1,
                                  .keeps_state = true,
                                  .own_rows = true,
                                  .facts = mf_facts_bytes,
                                  .survey = mf_survey,
                                  .plan = mf_plan,
                                  .work = rbt_mf_work,
                                  .pass = rbt_mf_pass,
                                  .size = rbt_mf_size,
                                  .update = rbt_mf_update,
                                  .losses = rbt_mf_losses,
                                  .keep = mf_keep,
                                  .end = mf_end,
                                  .open = rbt_mf_open,
                                  .predict = rbt_mf_predict,
                                  .predict_one = rbt_mf_predict_one,
                                  .evaluate = rbt_mf_evaluate,
                                  .recommend = rbt_mf_recommend,
                                  .describe = rbt_mf_describe};
