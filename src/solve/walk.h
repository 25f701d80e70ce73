/* Walking over rows in shared memory: one row at a time is read against the parameters, and its update applied, by as
 * many threads as there are, under one of four manners of access:
 *
 *   hogwild      no locks, one element at a time; or on copies that are exchanged now and then (replica.h)
 *   aig          the same with locks on exactly the elements a row touches
 *   round-robin  whole updates in the order of the workers, one at a time
 *   alone        each thread has parameters of its own (psgd, and the workers of a parameter server)
 *
 * What an update is, is the stepper's (sgd.c, sdca.c): it turns a row's decision values into coefficients, and applies
 * coefficients times features to the parameters. Always holds: a step costs the row's non-zeros, not the parameters.
 * Proved by tests/unit/test_solve.c.
 */
#ifndef RBT_SOLVE_WALK_H
#define RBT_SOLVE_WALK_H

#include <stdatomic.h>

#include "solve/problem.h"
#include "solve/replica.h"
#include "solve/rows.h"

typedef enum rbt_access { RBT_ACCESS_HOGWILD, RBT_ACCESS_AIG, RBT_ACCESS_ROUND_ROBIN, RBT_ACCESS_ALONE } rbt_access;

struct rbt_walker;

/* What the walkers of one training share. */
typedef struct rbt_walk {
    const rbt_problem *problem;
    rbt_access access;
    uint32_t threads;
    atomic_uchar *locks;    /* aig: one per feature, and one for the biases */
    rbt_replicas *replicas; /* hogwild: a copy of the parameters for each walker; NULL: they share them */
    atomic_size_t turn;     /* round-robin: how many updates have been applied */
    bool numbered;          /* steps of all threads have numbers of their own, from 0 on in every pass, ... */
    atomic_size_t number;   /* ... and this is the next that no thread has taken */
    bool is_far;            /* the parameters do not fit into a core's own cache */
    bool want_loss;         /* add up the rows' losses as they are met */
    double caution;         /* dual steps: how many times its own effect on a row's value a step reckons with */
    float threshold;        /* decision values are of parameters shrunk towards zero by this much */

    /* The stepper. `coefficients` adds the row's loss, and replaces its decision values in z by what `apply` multiplies
     * its features with; false means that there is nothing to apply. */
    bool (*coefficients)(struct rbt_walker *walker, size_t row, double *z);
    void (*apply)(struct rbt_walker *walker, rbt_row row, const double *coefficient);
    void *stepper;
    const float *by_feature; /* a number per feature that it looks up beside the parameters; NULL: none */
} rbt_walk;

/* One thread's part. */
typedef struct rbt_walker {
    rbt_walk *walk;
    float *w;      /* what rows read and change; its own copy where there are any */
    float *biases; /* shared, even where w is not */
    uint32_t thread;
    double rate;   /* of this pass */
    uint64_t step; /* steps of all threads before this one: about as many, or its number where they are numbered */
    double loss;   /* summed over the rows of this pass, as they were met */
    void *memory;  /* of what follows: away from the other threads', which write theirs with every row */
    double *z;     /* outputs */
    double *bias;  /* outputs: what this thread believes the biases to be; written back now and then */
    double *seen;  /* outputs: what they were when last looked at */
    double *room;  /* 2 * outputs, for the stepper */
} rbt_walker;

rbt_err rbt_walk_init(rbt_walk *walk, const rbt_problem *problem, rbt_access access, uint32_t threads,
                      rbt_error *error);
void rbt_walk_deinit(rbt_walk *walk);

/* `w` has the shared parameters, or those of this thread alone. */
void rbt_walker_init(rbt_walker *walker, rbt_walk *walk, float *w, uint32_t thread);
void rbt_walker_deinit(rbt_walker *walker);

/* Visits the first n rows of a list of `known` ones, in their order; the next ones are fetched towards the end. */
void rbt_walker_rows(rbt_walker *walker, const uint32_t *rows, size_t n, size_t known);

/* Round-robin: lets the others go on where this thread has fewer rows than they have. In the end every thread must have
 * had as many turns. */
void rbt_walker_pass_turns(const rbt_walker *walker, size_t turns);

#endif
