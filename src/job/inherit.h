/* The rows of a worker that was lost, taken over by those that are left.
 *
 * Every process that has workers reads the data once more, takes its part of the lost worker's rows (the i-th of n takes
 * every n-th row from i on) and hands them to its own workers: they go on with them from the next clock on. What one had
 * taken over before it was lost itself is not handed on. Called by cluster_job.c while the workers train. Proved by
 * tests/cluster. */
#ifndef RBT_JOB_INHERIT_H
#define RBT_JOB_INHERIT_H

#include "job/run.h"

rbt_err rbt_inherit(rbt_model_run *run, const rbt_seat *seat, uint32_t lost, uint32_t part, uint32_t parts,
                    rbt_error *error);

/* Frees what was taken over; after training. */
void rbt_inherit_deinit(rbt_training *training);

#endif
