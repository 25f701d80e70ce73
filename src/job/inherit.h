/* The rows of workers that were lost, taken over by those that are left.
 *
 * Every process that has workers reads the data once more, takes those of the lost workers' rows that fall to it (losses.h)
 * and hands them to its own workers: they go on with them from the next clock on. Called by cluster_job.c while the
 * workers train, once at a time. Proved by tests/cluster/test_processes_rows.sh. */
#ifndef RBT_JOB_INHERIT_H
#define RBT_JOB_INHERIT_H

#include "job/run.h"

/* Takes these shares over; `taken` says how many rows each has brought. */
rbt_err rbt_inherit(rbt_model_run *run, const rbt_seat *seat, const rbt_rows_of *shares, size_t count, size_t *taken,
                    rbt_error *error);

/* Frees what was taken over; after training. */
void rbt_inherit_deinit(rbt_training *training);

#endif
