/* Helpers of the tests that train: small problems made to order, their optima found by plain methods that share nothing with
 * src/solve, and one call that trains. */
#ifndef TESTS_UNIT_PROBLEMS_H
#define TESTS_UNIT_PROBLEMS_H

#include <pthread.h>

#include "solve/shared.h"

typedef struct test_kind {
    const char *model;
    size_t rows;
    size_t cols;
    double density; /* share of the cells that are not zero */
    double noise;   /* of the decision value before it becomes a label; huber: one row in ten is far off, too */
    double spread;  /* feature j is multiplied by spread^(j / cols); 0 = 1 */
    double mean;    /* of the features that are not zero */
    size_t classes; /* of softmax; 0 = 4 */
    bool no_bias;
    bool weights; /* rows count differently */
    double l1;
    double l2;
} test_kind;

typedef struct test_problem {
    rbt_data data;
    rbt_shape shape;
    rbt_problem problem;
} test_problem;

#define TEST_CLASSES 4 /* of softmax, at most */

/* The same kind is the same problem. */
void test_problem_init(test_problem *p, const test_kind *kind);
void test_problem_deinit(test_problem *p);

rbt_team *make_team(uint32_t threads);

/* |a - b| <= share * |b|; says so otherwise. */
bool within(double a, double b, double share);

/* The optimum's objective by accelerated proximal gradient steps: smooth losses, any penalties. `w` receives the
 * parameters unless it is NULL. */
double reference_optimum(const rbt_problem *problem, float *w);

/* The same for the hinge, without l1: pairs of dual variables, each set to its optimum (or single ones without a bias). */
double reference_svm(const rbt_problem *problem);

typedef struct test_training {
    rbt_access access;
    rbt_optimizer optimizer;
    bool average;
    uint32_t workers;
    double rate;  /* 0: found by rbt_rate_find */
    double decay; /* the rate's factor after each pass; 0 = 1 */
    uint64_t passes;
    uint64_t eval_every; /* as in rbt_shared_options, but 0 is every pass ... */
    bool eval_last;      /* ... and this is only the last */
    uint64_t stop_after; /* the listener ends it after this pass; 0: never */
    double close;        /* ... or at a gap of this share of the objective, above 0 */
    bool prove;          /* sdca: gaps are bounds, also with biases */

    /* What came of it: the objective and the gap of each pass that was looked at, the objective of `w`. */
    double objective[512];
    double gap[512];
    size_t looks;
    double outcome;
    uint64_t together; /* passes in which the second worker had a thread of its own */
    pthread_t caller;
} test_training;

/* Trains from zeros; `w` receives the parameters unless it is NULL. Answers with the objective of the outcome. */
double train(const rbt_problem *problem, test_training *training, float *w);

/* Newton's method to the end. */
double newton_optimum(const rbt_problem *problem, float *w);

#endif
