/* `rubato bench hop`: what peers on threads pay to exchange and average their parameters, beside memcpy.
 *
 * Two peers with 10 million parameters each run the real protocol without computing anything: an iteration hands a snapshot over, reads
 * both and writes the average. The traffic that this needs is three vectors (two read, one written); memcpy, timed by the same
 * threads in turn with the iterations, moves two. The ratio is time over time per byte. Called by cli/bench.c. */
#ifndef RBT_JOB_BENCH_HOP_H
#define RBT_JOB_BENCH_HOP_H

#include "rubato.h"

rbt_err rbt_bench_hop(void (*write)(void *context, const char *line), void *context, rbt_error *error);

#endif
