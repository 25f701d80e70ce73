/* Rules made of procedures (rubato.h, section 4): plain functions over f32 arrays, with memory per element and, if they
 * ask for it, per version that a worker can still name.
 *
 * Versions are numbered per block, because blocks are what is placed, read, sent and answered as a whole: a worker that
 * reads a row gets its block, and all of it as of one moment. A version is written down when it first goes to a worker,
 * once, whoever reads it later; a worker holds it until it names a later one in a push, or leaves. Called by rule.c and
 * node/topology.c. Proved by tests/unit/test_procedure.c. */
#ifndef RBT_RULE_PROCEDURE_H
#define RBT_RULE_PROCEDURE_H

#include "rule/rule.h"

/* Makes a rule of a procedure; refuses one that lacks something. */
rbt_err rbt_rule_of_procedure(const rbt_procedure *procedure, rbt_rule *rule, rbt_error *error);

/* The functions of such a rule. */
void rbt_procedure_init(const rbt_rule_config *config, rbt_cell *cell);
void rbt_procedure_on_read(const rbt_rule_config *config, rbt_cell *cell, uint32_t worker);
void rbt_procedure_apply(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push);

#define RBT_RULE_OF(made_of, of_name, of_versions, of_gradients, of_empty)                                             \
    {                                                                                                                  \
        .name = (of_name), .procedure = &(made_of), .versions = (of_versions), .takes_gradients = (of_gradients),      \
        .counts_empty = (of_empty), .init = rbt_procedure_init,                                                        \
        .on_read = (of_versions) == RBT_VERSIONS_READ ? rbt_procedure_on_read : NULL, .apply = rbt_procedure_apply     \
    }

/* For rule.c: the worker will name no version of this cell below `version` any more; and the cell goes. */
void rbt_cell_release(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker, uint64_t version);
void rbt_cell_deinit_procedure(rbt_cell *cell);

static inline uint32_t rbt_most_kept(const rbt_rule_config *config)
{
    return config->most_kept > 0 ? config->most_kept : RBT_KEPT_MAX;
}

#endif
