/* sum (SSPSGD, Petuum): w += u.  con (ConSGD): w += factor * u. One version, nothing to remember. */
#include "rule/rule.h"

static void sum_apply(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push)
{
    (void)config;
    if (push->update != NULL)
        rbt_snap_add(&cell->value, push->update, 1);
}

static void con_apply(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push)
{
    if (push->update != NULL)
        rbt_snap_add(&cell->value, push->update, config->factor);
}

const rbt_rule rbt_rule_sum = {.name = "sum", .apply = sum_apply};
const rbt_rule rbt_rule_con = {.name = "con", .apply = con_apply};
