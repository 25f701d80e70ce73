/* Matrix factorisation by threads in one memory. Contract in mf.h.
 *
 * Each thread has a range of users with about the same number of ratings. Items are cut into blocks; all threads go through all
 * of them, each beginning at another one, so that they seldom change the same items at the same time. Nothing keeps
 * them from it: no thread ever waits for another before the pass ends. A user's ratings in a block are one run of steps over
 * the data as it lies, so a pass streams the ratings and works on items that fit into a cache.
 */
#include "method/mf.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

#define BLOCK_BYTES  (512.0 * 1024) /* of items that are worked on together: they stay in a core's own cache */
#define RUN_LEAST    8.0 /* ratings of a user in a block, on average, below which smaller blocks do not pay */
#define BLOCKS_LIMIT 4096.0

/* Two per thread keep threads apart even when one is a little faster; more when they would not fit into a cache. */
static uint32_t count_blocks(const rbt_mf_state *s, const rbt_plan *plan)
{
    double bytes = (double)s->items * (double)(s->shared.stride * sizeof(float) + sizeof(rbt_mf_side));
    double most = (double)plan->data->nnz / (double)s->users / RUN_LEAST, wanted = bytes / BLOCK_BYTES + 1;
    double blocks = wanted < most ? wanted : most, apart = plan->workers > 1 ? 2.0 * plan->workers : 1;

    blocks = blocks > apart ? blocks : apart;
    blocks = blocks < (double)s->items ? blocks : (double)s->items;
    return (uint32_t)(blocks < BLOCKS_LIMIT ? blocks : BLOCKS_LIMIT);
}

/* Users to threads, and each user's ratings to blocks of items. */
static void cut_ratings(rbt_mf_state *s, const rbt_plan *plan)
{
    const rbt_data *data = plan->data;
    rbt_mf_shared *h = &s->shared;
    uint32_t *block = rbt_alloc(s->items, sizeof *block);
    double seen = 0;

    for (size_t i = 0; i < s->items; i++) {
        block[i] = (uint32_t)(seen * h->blocks / (double)data->nnz);
        block[i] = block[i] < h->blocks ? block[i] : h->blocks - 1;
        seen += s->rated[i];
    }
    for (size_t u = 0, w = 0; u < s->users; u++) {
        uint32_t *cut = h->cut + u * (h->blocks + 1), n = (uint32_t)(data->start[u + 1] - data->start[u]), b = 0;

        for (uint32_t i = 0; i < n; i++)
            while (b <= block[data->index[data->start[u] + i]])
                cut[b++] = i;
        while (b <= h->blocks)
            cut[b++] = n;
        while (w < plan->workers && (double)data->start[u] >= (double)data->nnz * (double)w / plan->workers)
            h->first[w++] = u;
    }
    h->first[plan->workers] = s->users;
    rbt_free(block);
}

rbt_err rbt_mf_shared_init(rbt_mf_state *state, const rbt_plan *plan, rbt_error *error)
{
    rbt_mf_shared *h = &state->shared;
    size_t count[] = {state->users, state->items};

    if (state->share_users || rbt_plan_option(plan, "pieces") > 1)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--%s is for servers and makes no sense in one memory, where all threads have all factors; leave "
            "it out, or use --sync ssp",
            state->share_users ? "share both" : "pieces");
    h->stride = (state->rank + RBT_MF_LANES - 1) / RBT_MF_LANES * RBT_MF_LANES;
    h->blocks = count_blocks(state, plan);
    h->first = rbt_alloc(plan->workers + 1, sizeof *h->first);
    h->cut = rbt_try_alloc_raw(state->users, (h->blocks + 1) * sizeof *h->cut);
    for (int of = RBT_MF_USERS; of <= RBT_MF_ITEMS; of++) {
        h->vectors[of] = rbt_try_alloc(count[of], h->stride * sizeof(float));
        h->side[of] = rbt_try_alloc_raw(count[of], sizeof(rbt_mf_side));
    }
    if (h->cut == NULL || h->vectors[0] == NULL || h->vectors[1] == NULL || h->side[0] == NULL || h->side[1] == NULL)
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory for %zu users and %zu items of rank %zu; use a smaller --rank", state->users,
                        state->items, state->rank);
    for (int of = RBT_MF_USERS; of <= RBT_MF_ITEMS; of++) {
        for (size_t i = 0; i < count[of]; i++) {
            rbt_mf_start(state, of, i, h->vectors[of] + i * h->stride);
            h->side[of][i] = RBT_MF_SIDE;
        }
    }
    for (uint32_t w = 0; w < plan->workers; w++) /* more workers than users with ratings: the last have none */
        h->first[w] = state->users;
    cut_ratings(state, plan);
    return RBT_OK;
}

void rbt_mf_shared_deinit(rbt_mf_state *state)
{
    rbt_mf_shared *h = &state->shared;

    for (int of = RBT_MF_USERS; of <= RBT_MF_ITEMS; of++) {
        rbt_free(h->vectors[of]);
        rbt_free(h->side[of]);
    }
    rbt_free(h->first);
    rbt_free(h->cut);
}

rbt_err rbt_mf_pass(rbt_plan *plan, uint32_t worker, uint64_t pass, rbt_told *told, rbt_error *error)
{
    const rbt_mf_state *s = plan->state;
    const rbt_mf_shared *h = &s->shared;
    const rbt_data *data = plan->data;
    rbt_mf_run *run = rbt_mf_run_best();
    rbt_mf_rates rates = s->rates;
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_BATCH, pass);
    uint32_t first = (uint32_t)((rbt_rng_below(&rng, h->blocks) + (uint64_t)worker * h->blocks / plan->workers));
    double sum = 0, scale = (double)rates.scale;

    (void)error;
    rates.rate = (float)rbt_plan_rate_at(plan, pass, plan->lr);
    for (uint32_t b = 0; b < h->blocks; b++) {
        uint32_t block = (first + b) % h->blocks;

        for (size_t u = h->first[worker]; u < h->first[worker + 1]; u++) {
            const uint32_t *cut = h->cut + u * (h->blocks + 1) + block;
            size_t at = data->start[u] + cut[0];

            if (cut[1] > cut[0])
                sum += run(&rates, data->index + at, data->value + at, cut[1] - cut[0],
                           h->vectors[RBT_MF_USERS] + u * h->stride, &h->side[RBT_MF_USERS][u],
                           h->vectors[RBT_MF_ITEMS], h->side[RBT_MF_ITEMS], h->stride);
        }
    }
    told->sum = sum * scale * scale;
    told->rows = h->first[worker + 1] - h->first[worker];
    told->weight = data->start[h->first[worker + 1]] - data->start[h->first[worker]];
    return RBT_OK;
}
