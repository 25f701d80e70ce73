/* sum (SSPSGD, Petuum): w += u.  con (ConSGD): w += factor * u. One version, nothing to remember. */
#include "rule/rule.h"

static void sum_update(const rbt_rule_config *config, rbt_cell *cell, uint64_t version, rbt_snap *update)
{
    (void)config;
    (void)version;
    if (update != NULL)
        rbt_snap_add(&cell->value, update, 1);
}

static void con_update(const rbt_rule_config *config, rbt_cell *cell, uint64_t version, rbt_snap *update)
{
    (void)version;
    if (update != NULL)
        rbt_snap_add(&cell->value, update, config->factor);
}

const rbt_rule rbt_rule_sum = {.name = "sum", .update = sum_update};
const rbt_rule rbt_rule_con = {.name = "con", .update = con_update};
