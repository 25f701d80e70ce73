/* A job as src/job knows it; outside it is opaque. */
#ifndef RBT_JOB_JOB_STATE_H
#define RBT_JOB_JOB_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "job/options.h"
#include "job/setup.h"

typedef struct rbt_option_text {
    const char *name;
    char *value;
} rbt_option_text;

struct rbt_job {
    rbt_options options;
    RBT_ARRAY(rbt_option_text) texts; /* of the options, made on demand */
    atomic_bool interrupted;
    const atomic_bool *stop;         /* what is looked at: the above; in the job of a fold, that of the whole job */
    struct rbt_gathering *gathering; /* cluster: how it comes by its processes, or NULL */
    rbt_event_handler *handler;
    void *context;
    pthread_mutex_t handler_lock; /* workers log from their own threads */
    bool started;                 /* a job is run once */
    bool has_result;
    rbt_result result;
    rbt_worker_report *reports;
    uint64_t observed;                /* a method's job: elements that its evaluator has looked at */
    rbt_trained trained;              /* a model's job: what came out; */
    rbt_fitted fitted;                /* a method's; */
    RBT_ARRAY(rbt_table_spec) tables; /* a table program's: what was asked for ... */
    RBT_ARRAY(rbt_layout) layouts;    /* ... and what came out: per table how it was cut, */
    RBT_ARRAY(rbt_snap **) contents;  /* and its blocks */
};

/* Hands an event to the job's listener, one at a time. */
void rbt_job_emit(rbt_job *job, const rbt_event *event);

/* The log of a run of this job: everything becomes a NOTE. */
rbt_log rbt_job_log(rbt_job *job);

/* Fills in what every kind of job reports: times, messages, versions, per worker. */
void rbt_job_count(rbt_job *job, const rbt_setup *setup);

/* The options have changed: their texts are made anew. */
void rbt_job_forget_texts(rbt_job *job);

/* Frees what a table program left. */
void rbt_job_forget_tables(rbt_job *job);

/* An observer's program, with the job as its argument: when all workers have left, keeps every block of every table. Then
 * the layouts, which say where a row lies, are moved from the setup to the job. */
rbt_err rbt_job_collect(rbt_worker *observer, void *argument, rbt_error *error);
void rbt_job_keep_layouts(rbt_job *job, rbt_setup *setup);

/* What is in the first so many tables that were kept: a hash of the values, and the sum of the integers, for the result. */
void rbt_job_count_tables(rbt_job *job, rbt_table tables);

/* A range of a row out of a table's blocks. */
rbt_err rbt_table_copy(const rbt_layout *layout, rbt_snap *const *blocks, rbt_table table, uint64_t row, uint64_t col,
                       uint64_t n, void *out, rbt_error *error);

#endif
