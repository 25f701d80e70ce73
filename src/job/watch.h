/* When to stop: the target, the tolerance, the patience. One watch per training looks at every evaluation.
 *
 * Called by the evaluator (servers) and by shared_job.c. Always holds: with patience the watch keeps a copy of the
 * parameters that were best on the validation data, and of dual ascent's and Newton's those of the least objective (many: since it rose). Proved by
 * tests/unit/test_watch.c.
 */
#ifndef RBT_JOB_WATCH_H
#define RBT_JOB_WATCH_H

#include "job/options.h"

typedef struct rbt_watch {
    const rbt_options *options;
    size_t n;         /* parameters */
    double first;     /* the objective of parameters that are all zero, about; 0: not known */
    double last;      /* objective */
    uint64_t looks;   /* so far, ... */
    unsigned calm;    /* ... and the last of them after which little was left to gain ... */
    unsigned unmoved; /* ... or that changed nothing */
    double least_gap;
    double best_score; /* on the validation data; dual ascent, Newton: the objective */
    uint64_t worse;    /* evaluations since the best one */
    float *best;       /* the parameters then; NULL: not kept */
    double best_objective;
    bool stuck;      /* it ended because nothing moves any more, wherever the optimum is */
    bool reached;    /* the target */
    const char *why; /* NULL while it goes on: why it ended, as a sentence's end */
} rbt_watch;

void rbt_watch_init(rbt_watch *watch, const rbt_options *options, size_t n);
void rbt_watch_deinit(rbt_watch *watch);

/* Tells it an objective, how far above the optimum it is, at most or about (NAN: not known), and the loss on validation data (NAN:
 * none) of the same parameters; true when it is time to stop. */
bool rbt_watch_look(rbt_watch *watch, double objective, double gap, double valid, const float *w);

/* Could this watch stop a training before its end? */
bool rbt_watch_may_stop(const rbt_options *options);

#endif
