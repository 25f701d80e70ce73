/* A model's job on the cluster runtime: how the lead comes by its processes, and what a process that joins does.
 *
 * Every process goes through the same steps as a job on one machine (run.c): options, loading, laying out, running. The
 * lead has the options, tells the others, evaluates, and has the result; the others are told everything.
 * Called by run.c and the commands. Proved by tests/cluster.
 */
#ifndef RBT_JOB_CLUSTER_JOB_H
#define RBT_JOB_CLUSTER_JOB_H

#include "job/options.h"

struct rbt_model_run; /* run.h */

/* How the lead comes by the other processes. */
typedef struct rbt_gathering {
    uint32_t processes; /* all of them, with the lead */
    bool lead_works;    /* the lead has workers, too */
    bool colocate;      /* servers live with workers, unless the options say otherwise */
    rbt_key key;
    bool has_key;
    uint64_t job;      /* tells jobs with the same key apart; 0: no need */
    const char *local; /* as in rbt_session_config */
    /* Starts them, once the lead listens: on this host at `local`, on others at `tcp` ("" when it does not listen there).
     * NULL: somebody else starts them. */
    rbt_err (*start)(void *context, const char *local, const char *tcp, rbt_error *error);
    const char *(*host)(void *context, uint32_t rank); /* where it starts that rank; NULL: here, or not known */
    rbt_err (*check)(void *context, rbt_error *error); /* is it still worth waiting for them? NULL: always */
    void *context;
} rbt_gathering;

/* --shm, as a session has it. */
rbt_rings rbt_job_rings(const rbt_options *options);

/* To be called before the job runs with --runtime cluster; copied. */
void rbt_job_set_gathering(rbt_job *job, const rbt_gathering *gathering);

/* How many processes the job needs besides the lead, if it works with servers of their own (after rbt_options_check). */
uint32_t rbt_cluster_processes(const rbt_options *options, bool colocate);

/* Are there as many processes as the workers and servers need? Says how many would fit (after rbt_options_check). */
rbt_err rbt_cluster_job_fits(const rbt_options *options, const rbt_gathering *gathering, rbt_error *error);

/* The lead: listens, starts the others, waits for them, tells them the job. */
rbt_err rbt_cluster_job_open(rbt_job *job, rbt_session **session, rbt_error *error);

/* All processes together: each ends with the rows of its own workers, and with the same options. */
rbt_err rbt_cluster_job_load(struct rbt_model_run *run, rbt_error *error);

/* Runs what has been set up. */
rbt_err rbt_cluster_job_train(struct rbt_model_run *run, rbt_error *error);

/* Takes part in a job as one of its processes, from joining to the end. `rank`: the one wanted, or RBT_RANK_NONE.
 * *joined: the lead has taken it, and knows what became of the job. */
rbt_err rbt_cluster_job_join(const rbt_session_config *config, const char *address, uint32_t rank, bool *joined,
                             rbt_error *error);

#endif
