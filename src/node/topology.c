/* Laying out a job's tables; the contract is in topology.h. */
#include "node/topology.h"

#include "base/error.h"
#include "rule/procedure.h"
#include "table/strips.h"

/* What servers do with a table's updates. */
static rbt_err choose_rule(rbt_topology *topology, uint32_t t, const rbt_table_spec *spec, rbt_error *error)
{
    rbt_rule_config *config = &topology->rule[t];
    rbt_err err = RBT_OK;

    if (spec->type != RBT_F32) {
        config->rule = &rbt_rule_sum;
        config->partition_sync = false;
    } else if (spec->rule != NULL) {
        err = rbt_rule_of_procedure(spec->rule, &topology->own_rule[t], error);
        config->rule = &topology->own_rule[t];
        config->partition_sync = false;
    }
    if (err == RBT_OK && spec->sparse && config->rule->procedure != NULL)
        err = rbt_fail(
            error, RBT_E_USAGE,
            "table '%s' is sparse, and rule %s keeps a number for every element; make it dense or use another rule",
            spec->name, config->rule->name);
    return err;
}

rbt_err rbt_topology_init(rbt_topology *topology, const rbt_table_spec *specs, uint32_t tables,
                          const rbt_rule_config *rule, rbt_error *error)
{
    rbt_err err = RBT_OK;

    topology->layout = rbt_alloc(tables, sizeof *topology->layout);
    topology->rule = rbt_alloc(tables, sizeof *topology->rule);
    topology->own_rule = rbt_alloc(tables, sizeof *topology->own_rule);
    for (uint32_t t = 0; err == RBT_OK && t < tables; t++) {
        topology->rule[t] = *rule;
        err = choose_rule(topology, t, &specs[t], error);
        if (err == RBT_OK)
            err = rbt_layout_init(&topology->layout[t], &specs[t], topology->servers, t, error);
        if (err == RBT_OK)
            topology->tables = t + 1;
        if (err == RBT_OK && rbt_is_managed(topology, t) &&
            rbt_has_tags(topology, t)) /* versions of rows are blocks' */
            err = rbt_layout_split(&topology->layout[t], specs[t].name, RBT_STRIP_ELEMENTS, t, error);
    }
    if (err != RBT_OK)
        rbt_topology_deinit(topology);
    return err;
}

void rbt_topology_deinit(rbt_topology *topology)
{
    for (uint32_t t = 0; t < topology->tables; t++)
        rbt_layout_deinit(&topology->layout[t]);
    rbt_free(topology->layout);
    rbt_free(topology->rule);
    rbt_free(topology->own_rule);
    topology->layout = NULL;
    topology->rule = NULL;
    topology->own_rule = NULL;
    topology->tables = 0;
}
