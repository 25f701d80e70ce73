/* The evaluator: the observer's program. It reads the parameters round by round (a round is as many updates as there are
 * workers), works out the objective, tells the master (who alone decides to stop) and whoever listens to the job. In the
 * simulator it costs no virtual time.
 *
 * Proved by tests/sim and tests/cli. */
#ifndef RBT_JOB_EVALUATE_H
#define RBT_JOB_EVALUATE_H

#include "job/gradient.h"
#include "model/metrics.h"

#define RBT_LAST_OBJECTIVES 5 /* minobj and varobj are over these (protocols.md, section 7) */

typedef struct rbt_evaluation {
    const rbt_training *training;
    const rbt_data *valid; /* or NULL */
    void (*on_progress)(void *context, const rbt_progress *progress);
    void (*on_valid)(void *context, uint64_t clock, double seconds, const rbt_metrics *metrics);
    void *context;

    /* the outcome */
    float *w;          /* the final parameters, or those that reached the target */
    double loss;       /* their objective */
    bool reached;      /* the target */
    rbt_progress last; /* how the job stood then */
    double objectives[RBT_LAST_OBJECTIVES];
    size_t evaluations;
    int64_t table_sum;
} rbt_evaluation;

rbt_err rbt_evaluation_init(rbt_evaluation *evaluation, const rbt_training *training, rbt_error *error);
void rbt_evaluation_deinit(rbt_evaluation *evaluation);

/* The program; `argument` is an rbt_evaluation. */
rbt_err rbt_evaluation_work(rbt_worker *observer, void *argument, rbt_error *error);

/* Mean and variance of the last five objectives. */
void rbt_evaluation_spread(const rbt_evaluation *evaluation, double *minobj, double *varobj);

#endif
