/* What the files of Newton's method share: its state, its passes over the rows (newton_pass.c) and the losses of rows
 * (newton_loss.c). Included by these and newton.c alone, which has the contract (newton.h). */
#ifndef RBT_SOLVE_NEWTON_STATE_H
#define RBT_SOLVE_NEWTON_STATE_H

#include "model/link.h"
#include "model/model.h"
#include "solve/columns.h"
#include "solve/newton.h"
#include "solve/rows.h"

struct rbt_newton {
    const rbt_problem *problem;
    rbt_problem narrow; /* the problem of the columns that occur, where most do not ... */
    rbt_columns columns;
    uint32_t *column; /* ... these, in ascending order ... */
    uint32_t *places; /* ... and a row's indices among them: threads * longest */
    size_t longest;   /* row */
    rbt_team *team;
    double *w, *gradient, *diagonal, *step; /* n each */
    double *residual, *direction, *product; /* of conjugate gradients, n each */
    const uint32_t *sample;                 /* the rows that passes go through, or NULL: all of them */
    size_t rows;                            /* so many */
    double *z, *bend, *zd;                  /* rows * outputs: decision values, second derivatives, along a direction */
    double *partial;                        /* threads * 2 n: sums of each thread */
    double *square;                         /* threads * n^2: likewise of all second derivatives, or NULL ... */
    double *factor;                         /* ... and room to solve for the step */
    double *losses;                         /* threads: likewise of the rows' losses */
    double round;                           /* how round the loss's corner is; 0: it has none */
    bool begun;
    bool scored;          /* z is that of w */
    uint64_t visits;      /* of rows, by passes */
    double falls[2];      /* that the model promised in the last iteration and in the one before */
    const double *vector; /* what a pass multiplies with (one for a gradient: NULL, where z is known), ... */
    double *scores;       /* ... and where its decision values go: z or zd */
    enum { PASS_SCORES, PASS_GRADIENT, PASS_PRODUCT } what;
};

/* The row at a place in the arrays that rows have here. */
static inline size_t rbt_newton_row(const rbt_newton *t, size_t place)
{
    return t->sample != NULL ? t->sample[place] : place;
}

/* ------------------------------------------------------------------------------------------------------ passes */

/* A pass; `sum` (and `diagonal`) become means over the rows. For a gradient with a vector, decision values are computed
 * anew. */
void rbt_newton_pass(rbt_newton *newton, int what, const double *vector, double *sum, double *diagonal);

/* The decision values of the rows under a vector; where nothing has been learned yet it takes no pass. */
void rbt_newton_score(rbt_newton *newton, const double *vector, double *z);

bool rbt_newton_is_zero(const double *values, size_t n);

/* ------------------------------------------------------------------------------------------------------ losses */

/* Losses of n rows, weighted; and unless s is NULL slopes and second derivatives. For rows of one output. */
double rbt_newton_derive(const rbt_newton *newton, size_t first, size_t n, const double *z, double *s, double *bend);

/* The same of softmax; `d` receives the diagonal of the second derivative, t->bend the probabilities, from which all of
 * it follows. */
double rbt_newton_derive_softmax(const rbt_newton *newton, size_t first, size_t n, double *s, double *d);

/* The objective at t->w: with the losses of all rows there; ... */
double rbt_newton_objective(const rbt_newton *newton, double losses);

/* ... after `step` times t->step, which changes decision values by t->zd; ... */
double rbt_newton_objective_along(rbt_newton *newton, double step);

/* ... and before anything is learned. */
double rbt_newton_objective_at_zero(rbt_newton *newton);

/* Where the loss has a corner: the true objective at t->w, and what rounding costs of it. */
double rbt_newton_true_objective(rbt_newton *newton, double *cost);

#endif
