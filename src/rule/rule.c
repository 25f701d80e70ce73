/* Cells and the one way in for updates; the contract is in rule.h. */
#include "rule/rule.h"

#include "base/error.h"
#include "rule/procedure.h"
#include "sync/staleness.h"

void rbt_cell_init(rbt_cell *cell, const rbt_rule_config *config, rbt_type type, uint32_t length, bool sparse)
{
    *cell = (rbt_cell){0};
    cell->value = sparse ? rbt_snap_create_sparse(type, length, 0) : rbt_snap_create(type, length);
    if (config->rule->init != NULL)
        config->rule->init(config, cell);
}

void rbt_cell_deinit(rbt_cell *cell)
{
    rbt_snap_unref(cell->value);
    for (size_t i = 0; i < cell->versions.count; i++)
        rbt_snap_unref(cell->versions.at[i].mean);
    rbt_array_free(&cell->versions);
    rbt_floor_deinit(&cell->next);
    rbt_cell_deinit_procedure(cell);
}

bool rbt_cell_accepts(const rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push)
{
    const rbt_snap *update = push->update;

    if (update != NULL && (update->type != cell->value->type || update->length != cell->value->length))
        return false;
    if (config->rule->versions == RBT_VERSIONS_READ) /* none, or one that there has been */
        return push->version == RBT_UNBOUNDED || push->version <= cell->updates;
    if (config->rule->versions == RBT_VERSIONS_NONE)
        return true;
    if (push->version < cell->next.value[push->worker] || push->version < push->clock ||
        rbt_dyn_next(push->version, push->slowest, push->clock, config->staleness) < cell->next.value[push->worker])
        return false;
    /* A version further ahead than the bound allows would grow the memory without end. */
    return config->staleness == RBT_UNBOUNDED || cell->next.least == RBT_UNBOUNDED ||
           push->version - cell->next.least <= config->staleness;
}

/* dyn: what the worker can name next has risen; versions that nobody can name any more go. */
static void raise_version(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push)
{
    if (push->version + 1 > cell->top)
        cell->top = push->version + 1;
    rbt_floor_raise(&cell->next, push->worker,
                    rbt_dyn_next(push->version, push->slowest, push->clock, config->staleness));
    config->rule->expire(config, cell, cell->next.least);
    RBT_ASSERT(config->staleness == RBT_UNBOUNDED || cell->versions.count <= config->staleness + 1);
}

static void apply(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push, bool clock_ends)
{
    const rbt_rule *rule = config->rule;

    rule->apply(config, cell, push);
    cell->updates += push->update != NULL;
    if (clock_ends && push->clock + 1 > cell->fastest)
        cell->fastest = push->clock + 1;
    if (rule->versions == RBT_VERSIONS_SHARED)
        raise_version(cell, config, push);
    else if (rule->versions == RBT_VERSIONS_READ && push->version != RBT_UNBOUNDED)
        rbt_cell_release(cell, config, push->worker, push->version);
}

void rbt_cell_push(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push)
{
    apply(cell, config, push, true);
}

void rbt_cell_push_part(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push)
{
    RBT_ASSERT(config->rule->versions != RBT_VERSIONS_SHARED);
    apply(cell, config, push, false);
}

void rbt_cell_leave(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker)
{
    const rbt_rule *rule = config->rule;

    if (rule->versions == RBT_VERSIONS_READ)
        rbt_cell_release(cell, config, worker, RBT_UNBOUNDED);
    if (rule->versions != RBT_VERSIONS_SHARED)
        return;
    rbt_floor_leave(&cell->next, worker);
    rule->expire(config, cell, cell->next.least);
}

void rbt_cell_lend(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker)
{
    if (config->rule->on_read != NULL)
        config->rule->on_read(config, cell, worker);
}

bool rbt_cell_may_spread(const rbt_cell *cell, const rbt_rule_config *config)
{
    return cell->kept.count < rbt_most_kept(config) || cell->kept.at[cell->kept.count - 1].version == cell->updates;
}

rbt_snap *rbt_cell_read(const rbt_cell *cell, const rbt_rule_config *config, uint64_t version, uint64_t *is_version)
{
    rbt_snap *value = rbt_snap_ref(cell->value);

    if (!config->partition_sync) {
        *is_version = config->rule->versions == RBT_VERSIONS_READ ? cell->updates : cell->fastest;
        return value;
    }
    for (size_t i = 0; i < cell->versions.count && cell->versions.at[i].number < version; i++)
        rbt_snap_add(&value, cell->versions.at[i].mean, 1);
    *is_version = version;
    return value;
}

size_t rbt_cell_version_count(const rbt_cell *cell)
{
    return cell->versions.count + cell->kept.count;
}

size_t rbt_cell_version_bytes(const rbt_cell *cell)
{
    size_t bytes = cell->kept.count * cell->kept_bytes;

    for (size_t i = 0; i < cell->versions.count; i++)
        bytes += rbt_snap_bytes(cell->versions.at[i].mean);
    return bytes;
}
