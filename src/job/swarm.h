/* The swarm: random jobs in the simulator, with faults, one per seed, every guarantee checked after every event.
 *
 * A seed stands for one configuration and one course of events, so a seed that fails is a bug report: workers, servers,
 * staleness, rule, stragglers, faults; every second one peers without servers, a graph, a variant of Hop. Called by
 * cli/swarm.c; proved by the mutation tests, in which deliberately broken builds must be caught.
 */
#ifndef RBT_JOB_SWARM_H
#define RBT_JOB_SWARM_H

#include "rubato.h"

typedef struct rbt_swarm_options {
    uint64_t first_seed;
    uint64_t seeds; /* how many, from first_seed on */
    bool verbose;   /* one line per seed: what was drawn, how it ended */
} rbt_swarm_options;

/* Runs the seeds; every line of output goes through `write`, without a newline. Stops at the first seed that fails:
 * RBT_E_BROKEN for a broken guarantee, RBT_E_NO_PROGRESS when everybody waits, another code otherwise; the message
 * names the seed and how to replay it. */
rbt_err rbt_swarm_run(const rbt_swarm_options *options, void (*write)(void *context, const char *line), void *context,
                      rbt_error *error);

#endif
