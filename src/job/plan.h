/* A method's plan (rubato.h, section 6) as the job knows it: the rows of each worker, how passes are cut into clocks, the
 * tables, and the table that workers tell the objective through.
 *
 * Called by method_job.c; the functions of the public header that begin with rbt_plan_ are here. Always holds: every worker
 * has the same number of clocks, and a pass visits each of its rows once. What workers tell is added up in whole numbers
 * (a whole part and a fraction in units of 2^-40), so it is exact, the same on every runtime, and travels as any other
 * table does. Proved by tests/unit/test_plan.c.
 */
#ifndef RBT_JOB_PLAN_H
#define RBT_JOB_PLAN_H

#include "data/shard.h"
#include "job/gradient.h"

#define RBT_TOLD_BLOCK 512 /* clocks of which what was told is sent together */

enum { RBT_TOLD_WHOLE, RBT_TOLD_FRACTION, RBT_TOLD_WEIGHT, RBT_TOLD_COLS };

typedef struct rbt_planned {
    const rbt_options *options;
    rbt_shards shards;
    size_t pass_rows; /* of the worker that has most */
    uint64_t pass_clocks;
    uint64_t clocks; /* in all: opening, batches, closing */
    double *values;  /* of the method's options, in their order */
    RBT_ARRAY(rbt_table_spec) tables;
    rbt_table told; /* the table of the objective: the last one but for the probe; a row per clock */

    /* after the run: what is in the tables */
    const rbt_layout *layouts;
    rbt_snap ***contents;
} rbt_planned;

/* Settles the method's options; `plan` is zero but for method and data. */
rbt_err rbt_planned_init(rbt_planned *planned, rbt_plan *plan, const rbt_options *options, rbt_error *error);

/* When the data has been read, and the number of workers is final: deals the rows out. */
rbt_err rbt_planned_deal(rbt_planned *planned, rbt_plan *plan, rbt_error *error);

/* All options of the method's own with their values, as "name=value,...", in new memory. */
char *rbt_planned_settings(const rbt_planned *planned, const rbt_plan *plan);

/* After the method's own plan: adds the table of the objective. */
rbt_err rbt_planned_close(rbt_planned *planned, rbt_plan *plan, rbt_error *error);
void rbt_planned_deinit(rbt_planned *planned);

/* What was told of a clock, from a row of the table; NAN when nothing was. */
double rbt_planned_objective(const int64_t told[RBT_TOLD_COLS]);

/* A peer's clock: from the parameters in scratch->w to what is to be added in scratch->u. */
rbt_err rbt_plan_update(rbt_plan *plan, const rbt_worker *worker, rbt_scratch *scratch, rbt_clock_work *work,
                        rbt_error *error);

/* Checks a list of settings "name=value,..." against a method, and finds the value of each of its options in it. */
rbt_err rbt_method_settings(const rbt_method *method, const char *settings, double *values, rbt_error *error);

#endif
