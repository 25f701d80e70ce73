/* From options to data that can be trained on, where the workers are in several processes: what loading.h does in one.
 *
 * Called by the cluster's job on all processes at once. Every process reads a part of --data (with {rank}: the files of
 * its workers), settles with the others what depends on all rows, and ends with the rows of its own workers. Always
 * holds: worker m has the same rows in the same order, and shape, scaling and options are the same, bit for bit, as after
 * rbt_loaded_read and rbt_loaded_prepare in one process with as many workers; or all processes return the same refusal.
 * Proved by tests/unit/test_sharing_parallel.c. */
#ifndef RBT_JOB_SHARING_H
#define RBT_JOB_SHARING_H

#include "job/loading.h"

/* Process r hosts workers_of[r] workers from first_worker[r] on, options->workers in all; it may be none. `loaded` is zero.
 * Afterwards: data and shards are of the workers here (sizes of the other shards are known, their rows NULL), --valid is at
 * rank 0 alone, reports, labels per worker, total_rows and facts are everywhere. `log` may be NULL. */
rbt_err rbt_loaded_share(rbt_loaded *loaded, rbt_options *options, rbt_crew *crew, const uint32_t *first_worker,
                         const uint32_t *workers_of, const rbt_log *log, rbt_error *error);

#endif
