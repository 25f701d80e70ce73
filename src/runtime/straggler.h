/* Who is slow, when, and how much: the heterogeneity of --straggler (docs/protocols.md, section 5).
 *
 *   frac=0.2,slow=2      that share of the workers (the last ones), for good
 *   p=0.0625,slow=6      each worker, each clock, with that probability
 *   worker=3,slow=4      one worker, for good
 *   lognormal=0.5        each worker, each clock: a factor exp(sigma * normal), at least 1
 *   trace=FILE           lines "worker clock factor": from that clock on
 * Several are separated by ';' and multiply. A function of the seed. Proved by tests/unit/test_straggler.c.
 */
#ifndef RBT_RUNTIME_STRAGGLER_H
#define RBT_RUNTIME_STRAGGLER_H

#include "base/mem.h"
#include "rubato.h"

typedef struct rbt_straggler {
    enum { RBT_SLOW_SHARE, RBT_SLOW_CHANCE, RBT_SLOW_ONE, RBT_SLOW_LOGNORMAL, RBT_SLOW_TRACE } kind;
    double amount; /* the share, the chance, or sigma */
    uint32_t worker;
    uint64_t clock; /* trace: from here on */
    double factor;
} rbt_straggler;

typedef struct rbt_stragglers {
    uint64_t seed;
    uint32_t workers;
    RBT_ARRAY(rbt_straggler) list;
} rbt_stragglers;

#define RBT_SLOW_MAX 1e6 /* no worker is slower than this many times */

/* `spec` may be NULL: nobody is slow. */
rbt_err rbt_stragglers_init(rbt_stragglers *stragglers, const char *spec, uint32_t workers, uint64_t seed,
                            rbt_error *error);
void rbt_stragglers_deinit(rbt_stragglers *stragglers);

/* How many times longer the worker takes for this clock; 1 when it is not slow. NULL: 1. */
double rbt_stragglers_factor(const rbt_stragglers *stragglers, uint32_t worker, uint64_t clock);

#endif
