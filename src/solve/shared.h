/* Training in shared memory: passes over the data by a team of threads, until told to stop.
 *
 * Called by src/job for --sync sequential, hogwild, aig, round-robin and psgd. A clock is a pass: each worker visits its
 * own rows in a fresh random order. One worker gives the same bits on every machine; several do not, except under psgd
 * (round-robin applies updates in order, but a worker reads while others still write) and with newton. Proved by
 * tests/unit/test_shared_local.c (every manner and optimizer reaches the same optimum) and tests/cli/test_shared.sh.
 */
#ifndef RBT_SOLVE_SHARED_H
#define RBT_SOLVE_SHARED_H

#include "data/shard.h"
#include "solve/sgd.h"

typedef struct rbt_shared_options {
    rbt_access access;
    rbt_optimizer optimizer; /* not auto */
    bool average;            /* psgd: every worker alone, the mean of their parameters at the end */
    double momentum;
    double (*rate)(const void *context, uint64_t clock); /* of a pass; not asked by sdca */
    const void *rate_context;
    uint64_t seed;
    uint64_t clocks;     /* at most so many passes */
    double close;        /* a gap (newton: a promised fall) below this share of the objective is made sure of */
    uint64_t eval_every; /* passes between two looks at the objective; 0 = only after the last */

    /* How many times longer than it needs a worker shall take for a pass (stragglers); NULL: 1. */
    double (*slow)(const void *context, uint32_t worker, uint64_t clock);
    const void *slow_context;
} rbt_shared_options;

/* How it stands after a pass that was looked at. */
typedef struct rbt_shared_pass {
    uint64_t clock;   /* passes finished */
    double objective; /* of `w` */
    double gap;       /* how far above the optimum it can at most be; NAN: not known */
    float *w;         /* the parameters as they would be if this were the last pass; to be read only */
} rbt_shared_pass;

/* Called after every pass: by the thread that called rbt_shared_train, while no other works. `pass->w` is NULL when the
 * objective was not looked at. false ends the training; if that was not looked at, it is called once more with it. */
typedef bool rbt_shared_listener(void *context, const rbt_shared_pass *pass);

/* What a worker did, for the report; one per worker, filled in as it goes. */
typedef struct rbt_shared_worker {
    uint64_t compute_ns;
    uint64_t wait_ns;   /* for the others, at the ends of passes */
    uint64_t slowed_ns; /* of compute: added on purpose */
    uint64_t samples;
} rbt_shared_worker;

/* Trains from `w` (usually zeros) on; the outcome is in `w`. */
rbt_err rbt_shared_train(const rbt_problem *problem, const rbt_shared_options *options, const rbt_shards *shards,
                         rbt_team *team, float *w, rbt_shared_worker *workers, rbt_shared_listener *listener,
                         void *context, rbt_error *error);

#endif
