/* dyn (DynSGD, Jiang et al. 2017, Algorithm 2): an update weighs 1 / (number of updates that share its version), and
 * the earlier ones are revised when a later one arrives: du = (u - U[v]) / d; w += du; U[v] += du.
 *
 * With partition_sync w is left alone until a version expires, so that a reader can be given "all versions below v" on
 * every block alike. Means are stored as the updates came, sparse below half full. Proved value by value on the paper's
 * example in tests/unit/test_rule.c. */
#include "rule/rule.h"

static void dyn_init(const rbt_rule_config *config, rbt_cell *cell)
{
    rbt_floor_init(&cell->next, config->workers);
}

/* The version with this number, made when it does not exist yet; they are few and the newest is wanted most. */
static rbt_cell_version *find_version(rbt_cell *cell, uint64_t number)
{
    size_t i = cell->versions.count;

    while (i > 0 && cell->versions.at[i - 1].number > number)
        i--;
    if (i > 0 && cell->versions.at[i - 1].number == number)
        return &cell->versions.at[i - 1];
    rbt_array_push(&cell->versions, (rbt_cell_version){0});
    for (size_t k = cell->versions.count - 1; k > i; k--)
        cell->versions.at[k] = cell->versions.at[k - 1];
    cell->versions.at[i] = (rbt_cell_version){.number = number};
    return &cell->versions.at[i];
}

static void dyn_apply(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push)
{
    rbt_cell_version *version = find_version(cell, push->version);
    rbt_snap *update = push->update, *nothing = NULL;

    version->updates++;
    if (update == NULL)
        update = nothing = rbt_snap_create_sparse(cell->value->type, cell->value->length, 0);
    if (version->mean == NULL) { /* the first: d = 1, the version is the update itself */
        version->mean = rbt_snap_ref(update);
        if (!config->partition_sync)
            rbt_snap_add(&cell->value, update, 1);
    } else {
        rbt_snap *change = rbt_snap_difference(update, version->mean, (float)version->updates);

        rbt_snap_add(&version->mean, change, 1);
        if (!config->partition_sync)
            rbt_snap_add(&cell->value, change, 1);
        rbt_snap_unref(change);
    }
    rbt_snap_unref(nothing);
}

static void dyn_expire(const rbt_rule_config *config, rbt_cell *cell, uint64_t oldest)
{
    size_t gone = 0;

#ifdef RBT_MUTANT_EXPIRE /* too early: the swarm must notice */
    if (oldest != RBT_UNBOUNDED)
        oldest++;
#endif
    while (gone < cell->versions.count && cell->versions.at[gone].number < oldest) {
        if (config->partition_sync)
            rbt_snap_add(&cell->value, cell->versions.at[gone].mean, 1);
        rbt_snap_unref(cell->versions.at[gone].mean);
        gone++;
    }
    cell->versions.count -= gone;
    for (size_t i = 0; i < cell->versions.count; i++)
        cell->versions.at[i] = cell->versions.at[i + gone];
}

const rbt_rule rbt_rule_dyn = {.name = "dyn",
                               .versions = RBT_VERSIONS_SHARED,
                               .counts_empty = true,
                               .init = dyn_init,
                               .apply = dyn_apply,
                               .expire = dyn_expire};
