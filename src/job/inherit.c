/* The rows of a worker that was lost; the contract is in inherit.h. */
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

/* All rows, prepared as they were for the job: as a crew of one that hosts all workers. */
static rbt_err load_all(const rbt_options *given, rbt_loaded *all, rbt_error *error)
{
    uint32_t first = 0, count = given->workers;
    rbt_crew alone = rbt_crew_alone();
    rbt_options options;
    rbt_err err;

    rbt_options_init(&options);
    rbt_options_copy(&options, given);
    rbt_free(options.valid);
    options.valid = NULL;
    err = rbt_loaded_share(all, &options, &alone, &first, &count, NULL, error);
    rbt_options_deinit(&options);
    return err;
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

static rbt_err take_rows(const rbt_loaded *all, const rbt_rows_of *taken, rbt_data *extra, rbt_error *error)
{
    const rbt_shard *shard = &all->shards.shard[taken->worker];
    uint32_t *rows = rbt_alloc(shard->n, sizeof *rows);
    size_t n = 0;
    rbt_err err;

    for (size_t i = taken->first; i < shard->n; i += taken->step)
        rows[n++] = shard->rows[i];
    err = rbt_data_select(&all->data, rows, n, extra, error);
    rbt_free(rows);
    return err;
}

rbt_err rbt_inherit(rbt_model_run *r, const rbt_seat *seat, const rbt_rows_of *rows, size_t *taken, rbt_error *error)
{
    rbt_training *last = &r->training;
    rbt_loaded all = {0};
    rbt_data both[2] = {{0}};
    heir *h = rbt_alloc(1, sizeof *h);
    rbt_err err = load_all(&r->job->options, &all, error);

    *taken = 0;
    while (atomic_load(&last->next) != NULL)
        last = atomic_load(&last->next);
    if (err == RBT_OK && rows->first >= all.shards.shard[rows->worker].n) { /* more heirs than rows */
        rbt_loaded_deinit(&all);
        rbt_free(h);
        return RBT_OK;
    }
    if (err == RBT_OK)
        err = take_rows(&all, rows, &both[1], error);
    both[0] = *last->data;
    if (err == RBT_OK)
        err = rbt_data_join(both, 2, &h->data, error);
    rbt_loaded_deinit(&all);
    if (err == RBT_OK) {
        make_shards(last->shards, seat, &h->data, both[1].rows, &h->shards);
        *taken = both[1].rows;
        h->training = *last;
        h->training.data = &h->data;
        h->training.shards = &h->shards;
        h->training.problem.data = &h->data;
        h->training.problem.shape = &h->training.shape;
        atomic_store(&last->next, &h->training);
    } else {
        rbt_free(h);
    }
    rbt_data_deinit(&both[1]);
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
