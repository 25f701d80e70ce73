/* The cluster runtime: the nodes of this process (places.h), and a session that takes messages to those of the others.
 *
 * The master and the observer live in the lead. Workers' threads run in the processes that have seats with workers; what
 * they publish is told to the lead ten times a second, so that progress, waits and totals are seen there as in `local`. A
 * worker that has posted waits while a queue to another process is full. What becomes of the job when a process is lost,
 * losses.h decides.
 * Called by job/cluster_job.c. Proved by tests/cluster.
 */
#ifndef RBT_RUNTIME_CLUSTER_CLUSTER_H
#define RBT_RUNTIME_CLUSTER_CLUSTER_H

#include "runtime/cluster/session.h"
#include "runtime/places.h"

typedef struct rbt_cluster rbt_cluster;

/* The sum of the losses of the rows that live here at the parameters w, and how many rows these are. */
typedef double rbt_losses_here(void *context, const float *w, uint64_t *rows);

/* How rows of lost workers are taken over: in steps, so that a reading which takes for ever holds nobody up. All but `open` on a
 * thread of their own, one after the other. */
typedef struct rbt_heir_work {
    void *(*open)(void *context); /* what the reading must know, once and for all */
    rbt_err (*read)(void *estate,
                    rbt_error *error); /* perhaps still when the job has ended: it knows nothing but the estate */
    rbt_err (*take)(void *context, void *estate, const rbt_rows_of *shares, size_t count, size_t *taken,
                    rbt_error *error); /* what was read; `taken` rows of each share */
    void (*close)(void *estate);
} rbt_heir_work;

/* What the job does for the runtime. */
typedef struct rbt_cluster_work {
    rbt_losses_here *losses;      /* asked by the lead; on the process's main thread */
    const rbt_heir_work *inherit; /* NULL: nobody takes over rows of another */
    void *context;
    size_t n; /* parameters */
    rbt_on_loss on_loss;
} rbt_cluster_work;

/* The processes of the session run `run` from now on; to be called in all of them before they are ready. */
rbt_cluster *rbt_cluster_create(rbt_run *run, rbt_session *session, const rbt_cluster_work *work);
void rbt_cluster_destroy(rbt_cluster *cluster);

/* Starts with all the others and runs to the end: at the lead until all is told, elsewhere until the lead says so. */
rbt_err rbt_cluster_run(rbt_cluster *cluster, rbt_error *error);

/* Not the lead, after the run: has the lead been lost, and this process gone on to its end without? Then `mean` is the mean of
 * the last parameters of its workers. */
bool rbt_cluster_was_alone(rbt_cluster *cluster, float *mean);

/* The lead: the sum of all processes' losses at these parameters, and over how many rows; waits for the answers. RBT_E_INTERRUPTED: not
 * after an interrupt, if they take long. */
rbt_err rbt_cluster_losses(rbt_cluster *cluster, const float *w, double *sum, uint64_t *rows, rbt_error *error);

#endif
