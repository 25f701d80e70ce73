/* A job that trains a method: the same steps as a model's (run.c), with the method's plan in the place of gradients.
 *
 * Called by run.c and, in the other processes of a cluster, by cluster_job.c. Proved by tests/unit/test_plan.c,
 * tests/cli/test_methods.sh and tests/cluster/test_methods.sh. */
#ifndef RBT_JOB_METHOD_JOB_H
#define RBT_JOB_METHOD_JOB_H

#include "job/evaluate.h"
#include "job/job_state.h"

struct rbt_session;

/* From checked options to a result. */
rbt_err rbt_method_job_run(rbt_job *job, rbt_error *error);

/* A process that has joined: the part between meeting the others and the end. */
rbt_err rbt_method_job_take_part(rbt_job *job, struct rbt_session *session, rbt_error *error);

/* Trains in shared memory, at most so many passes; fills in the evaluation and the job's result. */
rbt_err rbt_method_shared_run(rbt_job *job, rbt_plan *plan, uint64_t most, const rbt_stragglers *stragglers,
                              rbt_evaluation *evaluation, rbt_error *error);

#endif
