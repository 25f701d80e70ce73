/* Laying out a job's tables; the contract is in topology.h. */
#include "node/topology.h"

#include "base/error.h"

rbt_err rbt_topology_init(rbt_topology *topology, const rbt_table_spec *specs, uint32_t tables,
                          const rbt_rule_config *rule, rbt_error *error)
{
    rbt_err err = RBT_OK;

    topology->layout = rbt_alloc(tables, sizeof *topology->layout);
    topology->rule = rbt_alloc(tables, sizeof *topology->rule);
    for (uint32_t t = 0; err == RBT_OK && t < tables; t++) {
        topology->rule[t] = *rule;
        if (specs[t].type != RBT_F32) {
            topology->rule[t].rule = &rbt_rule_sum;
            topology->rule[t].partition_sync = false;
        }
        if (specs[t].sparse && topology->rule[t].rule->takes_gradients)
            err = rbt_fail(
                error, RBT_E_USAGE,
                "table '%s' is sparse, and rule %s keeps a number for every element; make it dense or use another rule",
                specs[t].name, topology->rule[t].rule->name);
        else
            err = rbt_layout_init(&topology->layout[t], &specs[t], topology->servers, t, error);
        if (err == RBT_OK)
            topology->tables = t + 1;
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
    topology->layout = NULL;
    topology->rule = NULL;
    topology->tables = 0;
}
