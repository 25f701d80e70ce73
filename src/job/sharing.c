/* Data of a job in several processes. Contract in sharing.h; proved by tests/unit/test_sharing_parallel.c. */
#include "job/sharing.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/prepare.h"

/* What only one process can do. */
static rbt_err check(const rbt_options *options, rbt_error *error)
{
    if (rbt_options_shared(options))
        return rbt_fail(error, RBT_E_USAGE,
                        "the workers of this --sync share memory, which processes do not; use --sync bsp, ssp or asp");
    if (options->folds > 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--folds needs all rows in one process; use --runtime local, or leave it out");
    if (options->store != RBT_STORE_MEMORY)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--store %s is for one process: here each holds the rows of its workers in memory; leave it out",
            options->store == RBT_STORE_DISK ? "disk" : "both");
    if (options->cache == RBT_CACHE_AUTO)
        return rbt_fail(error, RBT_E_USAGE,
                        "--cache auto is for one process; make a cache with rubato convert and give it as --data");
    return RBT_OK;
}

/* Nobody trains on labels that another process might have made up. */
static rbt_err check_labels(const rbt_loaded *loaded, rbt_error *error)
{
    double classes = (double)loaded->shape.classes;
    for (size_t r = 0; classes > 0 && r < loaded->data.rows; r++) {
        double label = (double)loaded->data.label[r];
        if (!(label >= 0 && label < classes && label == floor(label)))
            return rbt_fail(error, RBT_E_BROKEN, "a row that arrived has the label %g, there are %g classes", label,
                            classes);
    }
    return RBT_OK;
}

/* The rows of each class that every worker has. */
static rbt_err share_labels(rbt_loaded *loaded, const rbt_hosting *hosting, rbt_crew *crew, rbt_error *error)
{
    rbt_bytes mine = {0}, *all = rbt_alloc(crew->size, sizeof *all);
    rbt_err err = check_labels(loaded, error);
    if (err == RBT_OK)
        rbt_loaded_count_labels(loaded);
    if (loaded->labels != NULL)
        mine = (rbt_bytes){(uint8_t *)&loaded->labels[hosting->first_worker[crew->rank]],
                           hosting->workers_of[crew->rank] * sizeof *loaded->labels};
    err = rbt_crew_collect(crew, err, mine, all, error);
    for (uint32_t r = 0; err == RBT_OK && loaded->labels != NULL && r < crew->size; r++) {
        if (all[r].n != hosting->workers_of[r] * sizeof *loaded->labels)
            err = rbt_fail(error, RBT_E_PROTOCOL, "process %u counts the labels of other workers than its own", r);
        else if (all[r].n > 0)
            memcpy(&loaded->labels[hosting->first_worker[r]], all[r].at, all[r].n);
    }
    rbt_crew_free(crew, all);
    rbt_free(all);
    return err;
}

/* Reading; validation data is read where it is looked at. */
static rbt_err read_all(rbt_loaded *loaded, const rbt_options *options, const rbt_hosting *hosting, rbt_crew *crew,
                        rbt_data_part *part, const rbt_log *log, rbt_error *error)
{
    rbt_err err = check(options, error);
    if (err == RBT_OK)
        err = rbt_loaded_find_model(loaded, options->model, error);
    if (err == RBT_OK)
        err = rbt_loaded_read_part(options, RBT_CONTENT_ROWS, &loaded->report, hosting, crew, part, error);
    if (err != RBT_OK)
        return err;
    loaded->origin = part->data.origin; /* moved */
    part->data.origin = NULL;
    if (crew->rank == 0)
        err = rbt_loaded_read_valid(loaded, options, log, error);
    return rbt_crew_agree(crew, err, error);
}

rbt_err rbt_loaded_share(rbt_loaded *loaded, rbt_options *options, rbt_crew *crew, const uint32_t *first_worker,
                         const uint32_t *workers_of, const rbt_log *log, rbt_error *error)
{
    const rbt_hosting hosting = {first_worker, workers_of};
    rbt_data_part part = {.rows = 0};
    rbt_error discarded;
    error = error != NULL ? error : &discarded; /* what goes wrong here is told to the others */
    RBT_ASSERT(first_worker[crew->size - 1] + workers_of[crew->size - 1] == options->workers);
    rbt_err err = read_all(loaded, options, &hosting, crew, &part, log, error);
    if (err != RBT_OK)
        return err;
    rbt_extent extent = {
        .rows = part.rows, .nnz = part.nnz, .first = part.first, .first_nnz = part.first_nnz, .leaves = true};
    loaded->total_rows = part.rows;
    loaded->data = part.data; /* is made ready there ... */
    part.data = (rbt_data){0};
    err = rbt_prepare_data(loaded, options, &extent, crew, error);
    if (err == RBT_OK)
        err = rbt_prepare_options(loaded, options, &extent, crew, error);
    if (err == RBT_OK) {
        part.data = loaded->data; /* ... and then dealt out */
        loaded->data = (rbt_data){0};
        err = part.worker_rows != NULL ? rbt_deal_ranked(&part, &hosting, options->workers, options->seed, false, crew,
                                                         &loaded->data, &loaded->shards, error)
                                       : rbt_deal(&part, &hosting, options->workers, options->seed,
                                                  RBT_DEAL_ROUND_BYTES, crew, &loaded->data, &loaded->shards, error);
    }
    if (err == RBT_OK)
        err = share_labels(loaded, &hosting, crew, error);
    rbt_data_part_deinit(&part);
    return err;
}
