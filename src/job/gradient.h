/* Training a gradient model: the program every worker runs, and the same solver as a plain loop.
 *
 * A clock is one pass over the worker's shard, or a given number of mini-batches; a mini-batch is a consecutive piece
 * of the shard. The update of a clock is what its steps w -= eta * (mean gradient + l2 * w) add up to (with momentum,
 * AdaGrad or Adam: what these make of the gradients; batches of one row take the sparse steps of src/solve); with a rule
 * that takes gradients it is the mean gradient of the clock's batches. What a worker does in a clock depends on its number,
 * the clock and the parameters it reads alone: a restarted worker needs nothing else.
 *
 * Called by job/job.c. Proved by tests/sim/test_identity.c: one worker equals a loop without any of this, bit for bit.
 */
#ifndef RBT_JOB_GRADIENT_H
#define RBT_JOB_GRADIENT_H

#include <stdatomic.h>

#include "data/shard.h"
#include "job/options.h"
#include "runtime/runtime.h"
#include "solve/sgd.h"

#define RBT_TABLE_PARAMETERS 0
#define RBT_TABLE_PROBE      1 /* with --verify: per worker, how many clocks it has finished */

/* What all workers share, read-only. */
typedef struct rbt_training {
    const rbt_options *options;
    const rbt_model *model;
    rbt_shape shape;
    const rbt_data *data;
    const rbt_shards *shards;
    size_t total_rows; /* over which means are taken: more than data->rows where other processes have the others */
    size_t n;          /* parameters */
    bool takes_gradients;
    rbt_problem problem; /* the same, as solvers see it */
    rbt_plan *plan;      /* not NULL: a method without servers in the place of a model (method_peers.c) */

    _Atomic(struct rbt_training *) next; /* the same with more rows, once some were taken over; workers go on with it */
} rbt_training;

/* The one to go on with. */
static inline const rbt_training *rbt_training_latest(const rbt_training *training)
{
    for (const rbt_training *t = training; t != NULL; t = atomic_load(&((rbt_training *)t)->next))
        training = t;
    return training;
}

/* A worker's scratch memory. */
typedef struct rbt_scratch {
    float *w;    /* parameters, changed as the clock goes on */
    float *u;    /* the clock's update */
    float *g;    /* a batch's gradient, zero between batches */
    rbt_sgd sgd; /* steps of one row, and the optimizer's state; lost when the worker is restarted */
    rbt_walk walk;
    rbt_walker walker;
    uint64_t steps; /* adam: so far */
} rbt_scratch;

rbt_err rbt_scratch_init(rbt_scratch *scratch, const rbt_training *training, rbt_error *error);
void rbt_scratch_deinit(rbt_scratch *scratch);

/* How many clocks a worker has to do in all. */
uint64_t rbt_training_clocks(const rbt_training *training, uint32_t worker);

/* What one clock did. */
typedef struct rbt_clock_work {
    double loss; /* summed over the samples, at the parameters each batch started from */
    uint64_t samples;
    uint64_t nonzeros;
} rbt_clock_work;

/* Computes one clock: scratch->w holds the parameters read, scratch->u receives the update. */
rbt_clock_work rbt_training_clock(const rbt_training *training, uint32_t worker, uint64_t clock, rbt_scratch *scratch);

/* An option for data whose values are too large to train on, NULL when there is none left. And RBT_E_DIVERGED with the place
 * and the remedy. */
const char *rbt_training_remedy(const rbt_options *options);
rbt_err rbt_training_diverged(const rbt_training *training, uint32_t worker, uint64_t clock, double loss,
                              rbt_error *error);

/* The program of a worker; `argument` is an rbt_training. */
rbt_err rbt_training_work(rbt_worker *worker, void *argument, rbt_error *error);

/* The same solver without tables, servers or messages: one worker's clocks, one after the other, on `w`. */
rbt_err rbt_training_sequential(const rbt_training *training, float *w, rbt_error *error);

/* The step size at a clock; `context` is the options. */
double rbt_training_rate(const void *context, uint64_t clock);

/* The sum of the losses of the rows here. */
double rbt_training_losses(const rbt_training *training, const float *w);

/* mean loss + l2/2 |w|^2 + l1 |w|_1, the bias not counted; `losses` is the sum over all rows. */
double rbt_training_mean(const rbt_training *training, const float *w, double losses);

/* The same when all rows are here. */
double rbt_training_objective(const rbt_training *training, const float *w);

#endif
