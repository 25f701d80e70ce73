/* The rows of workers that were lost, taken over by those that are left.
 *
 * Every process that has workers reads the data once more, takes those of the lost workers' rows that fall to it (losses.h)
 * and hands them to its own workers: they go on with them from the next clock on. Called by cluster_job.c while the
 * workers train, once at a time. Proved by tests/cluster/test_processes_rows.sh. */
#ifndef RBT_JOB_INHERIT_H
#define RBT_JOB_INHERIT_H

#include "job/run.h"

typedef struct rbt_estate rbt_estate; /* all rows of a job, read once more */

/* The options are copied: reading needs nothing else, and may go on when the job has ended. */
rbt_estate *rbt_estate_open(const rbt_options *options);
void rbt_estate_close(rbt_estate *estate);

/* All rows, prepared as they were for the job. */
rbt_err rbt_estate_read(rbt_estate *estate, rbt_error *error);

/* Takes these shares over; `taken` says how many rows each has brought. */
rbt_err rbt_estate_take(const rbt_estate *estate, rbt_training *training, const rbt_seat *seat,
                        const rbt_rows_of *shares, size_t count, size_t *taken, rbt_error *error);

/* Frees what was taken over; after training. */
void rbt_inherit_deinit(rbt_training *training);

#endif
