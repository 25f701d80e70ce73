/* A block as it must be; the contract is in check_block.h. */
#include "runtime/check_block.h"

#include <math.h>
#include <string.h>

static bool has_versions(const rbt_rule_config *rule)
{
    return rule->rule->versions == RBT_VERSIONS_SHARED;
}

static bool is_momentum(const rbt_rule_config *rule)
{
    return rule->rule == &rbt_rule_momentum;
}

static bool is_adarev(const rbt_rule_config *rule)
{
    return rule->rule == &rbt_rule_adarev;
}

void rbt_shadow_init(rbt_shadow *block, const rbt_rule_config *rule, uint32_t length)
{
    *block = (rbt_shadow){.length = length, .scale = 1};
    if (is_adarev(rule))
        block->adarev = rbt_shadow_adarev_create(length);
}

void rbt_shadow_deinit(rbt_shadow *block)
{
    for (size_t v = 0; v < block->versions.count; v++)
        rbt_free(block->versions.at[v].sum);
    rbt_array_free(&block->versions);
    rbt_shadow_adarev_destroy(block->adarev);
}

bool rbt_shadow_is_checkable(const rbt_rule_config *rule)
{
    return rule->rule->procedure == NULL || is_momentum(rule) || (is_adarev(rule) && rule->most_kept == 0);
}

double rbt_shadow_value(const rbt_snap *snap, uint32_t k)
{
    return snap->type == RBT_F32 ? (double)snap->f32[k] : snap->type == RBT_I32 ? snap->i32[k] : (double)snap->i64[k];
}

void rbt_shadow_spread(const rbt_snap *snap, double *out)
{
    memset(out, 0, snap->length * sizeof *out);
    for (uint32_t k = 0; k < snap->count; k++)
        out[snap->form == RBT_DENSE ? k : snap->index[k]] = rbt_shadow_value(snap, k);
}

rbt_shadow_version *rbt_shadow_version_of(rbt_shadow *block, uint64_t number)
{
    rbt_shadow_version fresh = {.number = number};

    for (size_t i = 0; i < block->versions.count; i++)
        if (block->versions.at[i].number == number)
            return &block->versions.at[i];
    fresh.sum = rbt_alloc(block->length, sizeof *fresh.sum);
    rbt_array_push(&block->versions, fresh);
    return &block->versions.at[block->versions.count - 1];
}

/* Which sum an update belongs to. */
static uint64_t number_of(const rbt_rule_config *rule, rbt_shadow *block, uint64_t clock, const rbt_part *part)
{
    if (has_versions(rule))
        return part->version;
    if (!is_momentum(rule))
        return 0;
    if (clock + 1 > block->fastest)
        block->fastest = clock + 1;
    return block->fastest;
}

void rbt_shadow_push(rbt_shadow *block, const rbt_rule_config *rule, uint64_t clock, const rbt_part *part, double *room)
{
    rbt_shadow_version *version = rbt_shadow_version_of(block, number_of(rule, block, clock, part));

    version->updates++;
    if (part->snap == NULL)
        return;
    rbt_shadow_spread(part->snap, room);
    if (block->adarev != NULL)
        rbt_shadow_adarev_push(block->adarev, (double)rule->rate, part->version, room);
    for (uint32_t k = 0; k < block->length; k++) {
        version->sum[k] += room[k];
        if (fabs(room[k]) > block->scale)
            block->scale = fabs(room[k]);
    }
}

void rbt_shadow_expect(const rbt_shadow *block, const rbt_rule_config *rule, uint64_t below, double *out)
{
    double factor = rule->rule == &rbt_rule_con || is_momentum(rule) ? (double)rule->factor : 1;

    if (block->adarev != NULL) {
        memcpy(out, rbt_shadow_adarev_value(block->adarev), block->length * sizeof *out);
        return;
    }
    memset(out, 0, block->length * sizeof *out);
    for (size_t i = 0; i < block->versions.count; i++) {
        const rbt_shadow_version *version = &block->versions.at[i];
        double weight = has_versions(rule) ? 1 / (double)version->updates : factor;

        if (has_versions(rule) && version->number >= below)
            continue;
        if (is_momentum(rule)) /* 1 + momentum + ... once for every clock since */
            weight *= (1 - pow((double)rule->momentum, (double)(block->fastest - version->number + 1))) /
                      (1 - (double)rule->momentum);
        for (uint32_t k = 0; k < block->length; k++)
            out[k] += weight * version->sum[k];
    }
}
