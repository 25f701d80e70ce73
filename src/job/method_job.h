/* A job that trains a method: the same steps as a model's (run.c), with the method's plan in the place of gradients.
 *
 * Called by run.c and, in the other processes of a cluster, by cluster_job.c. Proved by tests/unit/test_plan.c,
 * tests/cli/test_methods.sh and tests/cluster/test_methods.sh. */
#ifndef RBT_JOB_METHOD_JOB_H
#define RBT_JOB_METHOD_JOB_H

#include "job/evaluate.h"
#include "job/job_state.h"
#include "job/plan.h"
#include "job/probe.h"

struct rbt_cluster;
struct rbt_session;

/* A run of such a job; it lives only while the job runs. */
typedef struct rbt_method_run {
    rbt_job *job;
    rbt_data data;
    rbt_data valid; /* --valid, where the job was started */
    rbt_read_report report, valid_report;
    rbt_plan plan;
    rbt_planned planned;
    void *facts;      /* the method's, of all rows */
    size_t *nonzeros; /* of each worker's rows, when some of them are elsewhere; else NULL */
    bool is_planned;
    rbt_setup setup;
    rbt_evaluation evaluation;   /* of what workers tell; with peers, of the mean of their parameters */
    int64_t *told;               /* a block of the table of it, as last read; */
    uint64_t told_clocks;        /* so many clocks are complete, */
    double objective;            /* and this is what was told of the last of them, NAN: nothing yet */
    rbt_fitted best;             /* --patience: the best so far on the validation data; no method: none */
    rbt_training training;       /* with peers: what their programs are given */
    rbt_probe *probes;           /* --verify: one per worker; else NULL */
    struct rbt_session *session; /* on a cluster */
    struct rbt_cluster *cluster; /* there, while it runs */
} rbt_method_run;

/* From checked options to a result. */
rbt_err rbt_method_job_run(rbt_job *job, rbt_error *error);

/* A process that has joined: the part between meeting the others and the end. */
rbt_err rbt_method_job_take_part(rbt_job *job, struct rbt_session *session, rbt_error *error);

/* Reads the data, or with others of a cluster this process's part of it (method_data.c). */
rbt_err rbt_method_read(rbt_method_run *run, rbt_error *error);

/* Trains in shared memory; fills in the evaluation and the job's result (method_shared.c). */
rbt_err rbt_method_shared_run(rbt_method_run *run, rbt_error *error);

/* --valid (method_valid.c): reads it before training begins, and has it looked at whenever the objective is, where what was learned so
 * far can be had: without servers. And at the end. Nothing without --valid. */
rbt_err rbt_method_valid_read(rbt_method_run *run, rbt_error *error);
rbt_err rbt_method_valid_finish(rbt_method_run *run, rbt_error *error);

/* What runs: the workers' program and the observer's. */
typedef rbt_err rbt_work(rbt_worker *worker, void *argument, rbt_error *error);
void rbt_method_set_programs(rbt_method_run *run, rbt_work *work, void *argument, rbt_work *observe, void *observer);

/* Peers without servers (method_peers.c): the graph, the programs and the evaluation; and the run on a cluster. */
rbt_err rbt_method_peers_lay_out(rbt_method_run *run, rbt_error *error);
rbt_err rbt_method_peers_run_on_cluster(rbt_method_run *run, rbt_error *error);

#endif
