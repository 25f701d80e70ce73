/* A run of a job that trains a model: what run.c, which leads it, and shared_job.c, which trains in shared memory,
 * pass to each other. It lives only while the job runs. */
#ifndef RBT_JOB_RUN_H
#define RBT_JOB_RUN_H

#include "job/evaluate.h"
#include "job/job_state.h"
#include "job/loading.h"

typedef struct rbt_model_run {
    rbt_job *job;
    rbt_loaded loaded;
    rbt_training training;
    rbt_evaluation evaluation;
    rbt_setup setup;
    rbt_session *session; /* on a cluster */
} rbt_model_run;

/* Everything between reading and running; and what undoes it, whatever succeeded. */
rbt_err rbt_model_run_set_up(rbt_model_run *run, rbt_error *error);
void rbt_model_run_tear_down(rbt_model_run *run);

/* What every job tells and reports that has an evaluation: that it starts, its progress as events, rows that were left out as a note, and
 * the result's fields about the objective, up to where training was ended, if it was. */
void rbt_job_announce(rbt_job *job);
void rbt_job_on_progress(void *job, const rbt_progress *progress);
void rbt_job_tell_of_reading(rbt_job *job, const rbt_read_report *report);
void rbt_job_fill(rbt_job *job, const rbt_evaluation *evaluation, double load_seconds);

/* The parameters in the evaluation become the job's model, for data as it is in the file. */
void rbt_model_run_keep(rbt_model_run *run);

/* Trains in shared memory; fills in the evaluation and the job's result. */
rbt_err rbt_shared_job_run(rbt_model_run *run, rbt_error *error);

#endif
