/* The evaluator: the observer's program. It reads the parameters round by round (a round is as many updates as there are
 * workers), works out the objective, tells the master (who alone decides to stop) and whoever listens to the job. In the
 * simulator it costs no virtual time.
 *
 * Proved by tests/sim and tests/cli. */
#ifndef RBT_JOB_EVALUATE_H
#define RBT_JOB_EVALUATE_H

#include "job/gradient.h"
#include "job/watch.h"
#include "model/metrics.h"

#define RBT_LAST_OBJECTIVES 5 /* minobj and varobj are over these (protocols.md, section 5) */

typedef struct rbt_evaluation {
    const rbt_training *training;
    const rbt_data *valid; /* or NULL */
    void (*on_progress)(void *context, const rbt_progress *progress);
    void (*on_valid)(void *context, uint64_t clock, double seconds, const rbt_metrics *metrics);
    void *context;

    /* A method's own validation, in the place of `valid`: what it finds as loss. NULL: none, or not before the end. */
    rbt_err (*validate)(void *context, const rbt_progress *progress, double *loss, rbt_error *error);
    void *validate_context;

    bool has_no_loss; /* of a method without an objective: NAN stands in its place, and says nothing */

    /* The sum of the losses of all rows at `w`, asked of the processes that have them; NULL: all rows are here. */
    rbt_err (*losses)(void *context, const float *w, double *sum, rbt_error *error);
    void *losses_context;

    /* the outcome */
    float *w;          /* the final parameters, or those with which training was ended */
    double loss;       /* their objective */
    double first;      /* the objective of parameters that are all zero, about */
    rbt_watch watch;   /* whether it was ended, and why */
    rbt_progress last; /* how the job stood then */
    rbt_progress best; /* --patience: how it stood when the loss on the validation data was the least so far */
    double objectives[RBT_LAST_OBJECTIVES];
    size_t evaluations;
    int64_t table_sum;
} rbt_evaluation;

rbt_err rbt_evaluation_init(rbt_evaluation *evaluation, const rbt_training *training, rbt_error *error);
void rbt_evaluation_deinit(rbt_evaluation *evaluation);

/* How the job stands: clocks and updates as they are in what was just read, the rest as the workers publish it. Of the updates
 * counted in what was read, those that peers have jumped over were none. */
rbt_progress rbt_progress_of(rbt_worker *observer, uint64_t updates);

/* The round to wait for after `need`: always a later one, also where workers end at different clocks and servers are further than
 * the least of updates and clocks. */
uint64_t rbt_evaluation_next(const rbt_worker *observer, const rbt_progress *progress, uint64_t slowest, uint64_t need,
                             uint64_t every);

/* Takes note of an evaluation: `evaluation->w` has the objective `loss`, which is at most `gap` above the
 * optimum (NAN: not known), as the job stands. Tells whoever listens, and the
 * watch. RBT_E_DIVERGED when it has blown up. */
rbt_err rbt_evaluation_take(rbt_evaluation *evaluation, double loss, double gap, rbt_progress *progress,
                            rbt_error *error);

/* After the last one: with patience, goes back to the best parameters, and evaluates these once more for whoever listens. */
rbt_err rbt_evaluation_finish(rbt_evaluation *evaluation, rbt_error *error);

/* The program; `argument` is an rbt_evaluation. */
rbt_err rbt_evaluation_work(rbt_worker *observer, void *argument, rbt_error *error);

/* Mean and variance of the last five objectives. */
void rbt_evaluation_spread(const rbt_evaluation *evaluation, double *minobj, double *varobj);

#endif
