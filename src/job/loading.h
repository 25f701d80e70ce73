/* From options to data that can be trained on: read, labels numbered, rows weighted, features normalised, rows dealt out;
 * and what depends on the data is settled in the options (l2, the step size).
 *
 * Called by job.c, once per job and once per fold. Proved by tests/unit/test_loading.c and tests/cli/test_learning.sh.
 */
#ifndef RBT_JOB_LOADING_H
#define RBT_JOB_LOADING_H

#include "data/deal.h"
#include "data/scale.h"
#include "data/shard.h"
#include "job/options.h"
#include "solve/problem.h"

/* Rows of each class. */
typedef struct rbt_label_counts {
    uint64_t of[RBT_LABELS_REPORTED];
} rbt_label_counts;

typedef struct rbt_loaded {
    const rbt_model *model;
    rbt_shape shape;
    rbt_data data;
    rbt_data valid; /* rows 0: none */
    bool has_valid;
    rbt_read_report report; /* what reading left out of data, and of valid */
    rbt_read_report valid_report;
    char *origin; /* how --data was read, and --valid is (rubato.h); or NULL */
    rbt_shards shards;
    rbt_scaling scaling; /* cols 0: none */

    size_t *worker_rows;      /* with {rank} in --data: rows of each worker, one after the other; else NULL */
    rbt_label_counts *labels; /* per worker; NULL: too many classes to be reported, or numbers are predicted */
    size_t total_rows;        /* of all processes */
    rbt_facts facts;          /* of all processes, when there are several */
} rbt_loaded;

/* Reads --data and --valid; what becomes of caches goes to the log. */
rbt_err rbt_loaded_read(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error);

/* How the options say that data is read. */
rbt_reading rbt_loaded_reading(const rbt_options *options, rbt_read_report *report);

/* One path; where its lines do not tell what they are, they are what is expected. `origin`: of the data that it is read like, or NULL. */
rbt_err rbt_loaded_read_data(const rbt_options *options, const char *path, rbt_content expect, const char *origin,
                             const rbt_log *log, rbt_data *data, rbt_read_report *report, rbt_error *error);

/* The steps of that, for sharing.c: the model by its name; a process's part of --data; --valid. */
rbt_err rbt_loaded_find_model(rbt_loaded *loaded, const char *name, rbt_error *error);
rbt_err rbt_loaded_read_part(const rbt_options *options, rbt_content expect, rbt_read_report *report,
                             const rbt_hosting *hosting, rbt_crew *crew, rbt_data_part *part, rbt_error *error);
rbt_err rbt_loaded_read_valid(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error);

/* Fills in `labels` for the workers whose rows are here. */
void rbt_loaded_count_labels(rbt_loaded *loaded);

/* Makes what was read ready. */
rbt_err rbt_loaded_prepare(rbt_loaded *loaded, rbt_options *options, rbt_error *error);

/* Makes fold k of `whole`, which was read but not prepared: the rows outside the fold as data, those in it as
 * validation data. A class has as many rows in each fold as in any other, or one more. */
rbt_err rbt_loaded_fold(rbt_loaded *loaded, const rbt_loaded *whole, const rbt_options *options, uint32_t fold,
                        rbt_error *error);

void rbt_loaded_deinit(rbt_loaded *loaded);

#endif
