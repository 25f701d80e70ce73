/* What the blocking calls of a program have in common (program.c); used by hop.c, which has those of a job without servers. */
#ifndef RBT_RUNTIME_CALLS_H
#define RBT_RUNTIME_CALLS_H

#include "runtime/handle.h"

/* The program hands control over: what passed since it got it was computing. It gets it back after a call that waited for others for
 * `held_ns` of the time it took. */
void rbt_call_enter(rbt_worker *worker);
void rbt_call_leave(rbt_worker *worker, uint64_t held_ns);

/* What a node is given during a call; what it said is delivered. */
rbt_env rbt_call_env(rbt_worker *worker);
void rbt_call_deliver(rbt_worker *worker, rbt_env *env);

/* The worker is no more: its program must end. */
rbt_err rbt_call_gone(rbt_error *error, const rbt_worker *worker);

/* At the end of a clock: a straggler takes longer; others may see how far the worker is. */
void rbt_call_slow_down(rbt_worker *worker);
void rbt_call_publish(rbt_worker *worker);

#endif
