/* `rubato bench local` and `rubato bench sim`: what the engine costs.
 *
 * local: one worker through client, messages and server, against the same solver as a plain loop over the same clocks
 * (rbt_training_sequential), interleaved, as a ratio. sim: events per second on one core with a small model. */
#ifndef RBT_JOB_BENCH_JOB_H
#define RBT_JOB_BENCH_JOB_H

#include "rubato.h"

rbt_err rbt_bench_local(void (*write)(void *context, const char *line), void *context, rbt_error *error);
rbt_err rbt_bench_sim(void (*write)(void *context, const char *line), void *context, rbt_error *error);

#endif
