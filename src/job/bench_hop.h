/* `rubato bench hop`: what peers on threads pay to exchange and average their parameters, beside memcpy.
 *
 * Two peers with 10 million parameters each run the real protocol without computing anything: an iteration hands a
 * snapshot over, reads both and writes the average. What this needs is timed by the same threads in turn with the iterations: memcpy
 * of what the other peer has just written (one vector from the other core's cache or from memory, one written), and half a memcpy of an
 * own one (one vector read). Called by cli/bench.c. */
#ifndef RBT_JOB_BENCH_HOP_H
#define RBT_JOB_BENCH_HOP_H

#include "rubato.h"

rbt_err rbt_bench_hop(void (*write)(void *context, const char *line), void *context, rbt_error *error);

#endif
