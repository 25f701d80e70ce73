/* The rows of workers that were lost; the contract is in inherit.h. */
#include "job/inherit.h"

#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "job/sharing.h"

/* A training with more rows than the one before it. */
typedef struct heir {
    rbt_training training;
    rbt_data data;
    rbt_shards shards;
} heir;

struct rbt_estate {
    rbt_options options;
    rbt_loaded all;
};

rbt_estate *rbt_estate_open(const rbt_options *options)
{
    rbt_estate *estate = rbt_alloc(1, sizeof *estate);

    rbt_options_init(&estate->options);
    rbt_options_copy(&estate->options, options);
    rbt_free(estate->options.valid);
    estate->options.valid = NULL;
    return estate;
}

void rbt_estate_close(rbt_estate *estate)
{
    rbt_loaded_deinit(&estate->all);
    rbt_options_deinit(&estate->options);
    rbt_free(estate);
}

/* As a crew of one that hosts all workers. */
rbt_err rbt_estate_read(rbt_estate *estate, rbt_error *error)
{
    uint32_t first = 0, count = estate->options.workers;
    rbt_crew alone = rbt_crew_alone();

    return rbt_loaded_share(&estate->all, &estate->options, &alone, &first, &count, NULL, error);
}

/* What `of` has, and behind it the extra rows, dealt to the workers here in turn. */
static void make_shards(const rbt_shards *of, const rbt_seat *seat, const rbt_data *data, size_t extra, rbt_shards *out)
{
    size_t before = data->rows - extra;
    uint32_t *next;

    *out = (rbt_shards){.workers = of->workers, .shard = rbt_alloc(of->workers, sizeof *out->shard)};
    next = out->order = rbt_alloc(data->rows, sizeof *out->order);
    for (uint32_t m = 0; m < of->workers; m++) {
        bool is_here = m >= seat->first_worker && m < seat->first_worker + seat->workers;
        rbt_shard *shard = &out->shard[m];

        *shard = of->shard[m];
        if (!is_here)
            continue;
        shard->rows = next;
        memcpy(shard->rows, of->shard[m].rows, shard->n * sizeof *shard->rows);
        for (size_t k = m - seat->first_worker; k < extra; k += seat->workers) {
            shard->rows[shard->n++] = (uint32_t)(before + k);
            shard->nnz += data->start[before + k + 1] - data->start[before + k];
        }
        next += shard->n;
    }
}

/* Rows of the share, of those that its worker had. */
static size_t count_rows(const rbt_shard *shard, const rbt_rows_of *share)
{
    return share->first < shard->n ? (shard->n - share->first + share->step - 1) / share->step : 0;
}

static rbt_err take_rows(const rbt_loaded *all, const rbt_rows_of *shares, size_t count, size_t *taken, rbt_data *extra,
                         rbt_error *error)
{
    size_t n = 0;
    uint32_t *rows;
    rbt_err err;

    for (size_t i = 0; i < count; i++) {
        taken[i] = count_rows(&all->shards.shard[shares[i].worker], &shares[i]);
        n += taken[i];
    }
    rows = rbt_alloc(n, sizeof *rows);
    n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < taken[i]; k++)
            rows[n++] = all->shards.shard[shares[i].worker].rows[shares[i].first + k * shares[i].step];
    err = n > 0 ? rbt_data_select(&all->data, rows, n, extra, error) : RBT_OK;
    rbt_free(rows);
    return err;
}

/* Puts a training with these rows behind the last one. */
static rbt_err add_training(rbt_training *last, const rbt_seat *seat, const rbt_data *extra, rbt_error *error)
{
    rbt_data both[2] = {*last->data, *extra};
    heir *h = rbt_alloc(1, sizeof *h);
    rbt_err err = rbt_data_join(both, 2, &h->data, error);

    if (err != RBT_OK) {
        rbt_free(h);
        return err;
    }
    make_shards(last->shards, seat, &h->data, extra->rows, &h->shards);
    h->training = *last;
    h->training.data = &h->data;
    h->training.shards = &h->shards;
    h->training.problem.data = &h->data;
    h->training.problem.shape = &h->training.shape;
    atomic_store(&last->next, &h->training);
    return RBT_OK;
}

rbt_err rbt_estate_take(const rbt_estate *estate, rbt_training *training, const rbt_seat *seat,
                        const rbt_rows_of *shares, size_t count, size_t *taken, rbt_error *error)
{
    rbt_training *last = training;
    rbt_data extra = {0};
    rbt_err err = take_rows(&estate->all, shares, count, taken, &extra, error);

    while (atomic_load(&last->next) != NULL)
        last = atomic_load(&last->next);
    if (err == RBT_OK && extra.rows > 0) /* there may be more heirs than rows */
        err = add_training(last, seat, &extra, error);
    rbt_data_deinit(&extra);
    return err;
}

void rbt_inherit_deinit(rbt_training *training)
{
    for (rbt_training *t = atomic_exchange(&training->next, NULL); t != NULL;) {
        heir *h = (heir *)t; /* its first member */

        t = atomic_load(&t->next);
        rbt_data_deinit(&h->data);
        rbt_shards_destroy(&h->shards);
        rbt_free(h);
    }
}
