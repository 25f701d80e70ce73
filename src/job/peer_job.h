/* Training without servers (Hop): the program every peer runs, and the graph it runs on.
 *
 * An iteration is a clock of gradient.h (by default one mini-batch): in parallel order the parameters go out, the update is
 * computed from them, what came is averaged and the update added; in serial order the update is added first. Called by
 * run.c. Proved by tests/sim/test_hop.c. */
#ifndef RBT_JOB_PEER_JOB_H
#define RBT_JOB_PEER_JOB_H

#include "job/gradient.h"

/* The graph and the bounds that the options describe. */
rbt_err rbt_hop_init(rbt_hop *hop, const rbt_options *options, size_t parameters, rbt_error *error);
void rbt_hop_deinit(rbt_hop *hop);

/* How much of an update that is right for a peer alone may be added: in parallel order averages and updates overshoot together
 * (docs/decentralised.md, "Step size"). */
double rbt_hop_reach(const rbt_hop *hop);

/* The program of a peer; `argument` is an rbt_training. */
rbt_err rbt_peer_work(rbt_worker *worker, void *argument, rbt_error *error);

#endif
