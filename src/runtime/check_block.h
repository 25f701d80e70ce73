/* A block as it must be: every update that was applied, summed in double precision by versions, and what rules make of that.
 *
 * A second opinion that shares nothing with src/rule but the names of the rules. Used by check.c, which compares. Proved by
 * tests/unit/test_check.c and the mutants that the swarm catches. */
#ifndef RBT_RUNTIME_CHECK_BLOCK_H
#define RBT_RUNTIME_CHECK_BLOCK_H

#include "base/mem.h"
#include "rule/rule.h"
#include "runtime/check_adarev.h"
#include "wire/message.h"

/* All updates of one version of a block: their sum and number. */
typedef struct rbt_shadow_version {
    uint64_t number;
    uint64_t updates;
    double *sum;
} rbt_shadow_version;

typedef struct rbt_shadow {
    uint32_t length;
    double scale;              /* the largest magnitude that went in, at least 1 */
    uint64_t fastest;          /* momentum: clocks that the fastest has finished */
    rbt_shadow_adarev *adarev; /* NULL: another rule */
    RBT_ARRAY(rbt_shadow_version)
    versions; /* of dyn; of momentum: by the clock whose velocity they joined; else number 0 */
} rbt_shadow;

void rbt_shadow_init(rbt_shadow *block, const rbt_rule_config *rule, uint32_t length);
void rbt_shadow_deinit(rbt_shadow *block);

/* Values of adagrad depend on the order of arrival, those of adarev on what was merged beyond the limit; a user's
 * procedure is anybody's guess. */
bool rbt_shadow_is_checkable(const rbt_rule_config *rule);

/* A part of a worker's push of that clock was applied; `room` is for one block. */
void rbt_shadow_push(rbt_shadow *block, const rbt_rule_config *rule, uint64_t clock, const rbt_part *part,
                     double *room);

/* What the block must be for a reader that sees versions below `below`. */
void rbt_shadow_expect(const rbt_shadow *block, const rbt_rule_config *rule, uint64_t below, double *out);

/* The version of that number, new if there is none. */
rbt_shadow_version *rbt_shadow_version_of(rbt_shadow *block, uint64_t number);

/* The k-th value stored in a snapshot; all of it, zeros included, as doubles. */
double rbt_shadow_value(const rbt_snap *snap, uint32_t k);
void rbt_shadow_spread(const rbt_snap *snap, double *out);

#endif
