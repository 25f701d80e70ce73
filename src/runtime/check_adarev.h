/* A second opinion on adarev: AdaptiveRevision in double precision with the sum of gradients of every version kept for
 * ever, written after the formula (docs/protocols.md, section 2.7) and sharing nothing with src/rule. Used by check_block.c and check.c.
 * Proved by tests/unit/test_check.c and the mutant RBT_MUTANT_RELEASE. */
#ifndef RBT_RUNTIME_CHECK_ADAREV_H
#define RBT_RUNTIME_CHECK_ADAREV_H

#include <stdint.h>

typedef struct rbt_shadow_adarev rbt_shadow_adarev;

rbt_shadow_adarev *rbt_shadow_adarev_create(uint32_t length);
void rbt_shadow_adarev_destroy(rbt_shadow_adarev *shadow);

/* A gradient that was computed from a version; RBT_UNBOUNDED: from none. */
void rbt_shadow_adarev_push(rbt_shadow_adarev *shadow, double rate, uint64_t version, const double *gradient);

const double *rbt_shadow_adarev_value(const rbt_shadow_adarev *shadow);
const double *rbt_shadow_adarev_sum(const rbt_shadow_adarev *shadow);

/* The largest number that went into the values: rounding is relative to it. */
double rbt_shadow_adarev_scale(const rbt_shadow_adarev *shadow);

#endif
