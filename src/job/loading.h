/* From options to data that can be trained on: read, labels numbered, rows weighted, features normalised, rows dealt out;
 * and what depends on the data is settled in the options (l2, the step size).
 *
 * Called by job.c, once per job and once per fold. Proved by tests/unit/test_loading.c and tests/cli/test_learning.sh.
 */
#ifndef RBT_JOB_LOADING_H
#define RBT_JOB_LOADING_H

#include "data/scale.h"
#include "data/shard.h"
#include "job/options.h"

typedef struct rbt_loaded {
    const rbt_model *model;
    rbt_shape shape;
    rbt_data data;
    rbt_data valid; /* rows 0: none */
    bool has_valid;
    rbt_read_report report; /* what reading left out of data, and of valid */
    rbt_read_report valid_report;
    rbt_shards shards;
    rbt_scaling scaling; /* cols 0: none */
} rbt_loaded;

/* Reads --data and --valid; what becomes of caches goes to the log. */
rbt_err rbt_loaded_read(rbt_loaded *loaded, const rbt_options *options, const rbt_log *log, rbt_error *error);

/* Makes what was read ready. */
rbt_err rbt_loaded_prepare(rbt_loaded *loaded, rbt_options *options, rbt_error *error);

/* Makes fold k of `whole`, which was read but not prepared: the rows outside the fold as data, those in it as
 * validation data. */
rbt_err rbt_loaded_fold(rbt_loaded *loaded, const rbt_loaded *whole, const rbt_options *options, uint32_t fold,
                        rbt_error *error);

void rbt_loaded_deinit(rbt_loaded *loaded);

#endif
