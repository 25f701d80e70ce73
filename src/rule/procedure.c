/* Cells under a procedure; the contract is in procedure.h. */
#include "rule/procedure.h"

#include <string.h>

#include "base/error.h"

#define PLANES_MAX 64 /* numbers per element that a procedure may ask for */

static rbt_procedure_job job_of(const rbt_rule_config *config)
{
    return (rbt_procedure_job){
        .workers = config->workers, .rate = config->rate, .momentum = config->momentum, .factor = config->factor};
}

static rbt_procedure_block block_of(const rbt_cell *cell)
{
    return (rbt_procedure_block){.n = cell->value->length,
                                 .version = cell->updates,
                                 .clock = cell->fastest,
                                 .value = cell->value->f32,
                                 .memory = cell->memory};
}

void rbt_procedure_init(const rbt_rule_config *config, rbt_cell *cell)
{
    const rbt_procedure *procedure = config->rule->procedure;
    rbt_procedure_job job = job_of(config);
    rbt_procedure_block block;

    RBT_ASSERT(cell->value->type == RBT_F32 && cell->value->form == RBT_DENSE);
    cell->memory = rbt_alloc((size_t)procedure->memory * cell->value->length, sizeof *cell->memory);
    cell->kept_bytes = (size_t)procedure->kept * cell->value->length * sizeof(float);
    block = block_of(cell);
    if (procedure->init != NULL)
        procedure->init(procedure, &job, &block);
}

/* --------------------------------------------------------------------------------------------- versions */

static size_t words_of(const rbt_rule_config *config)
{
    return config->workers / 64 + 1;
}

static void let_go(rbt_kept *kept)
{
    rbt_free(kept->values);
    rbt_free(kept->holders);
}

static void forget(const rbt_rule_config *config, rbt_cell *cell, rbt_kept *kept)
{
    const rbt_procedure *procedure = config->rule->procedure;
    rbt_procedure_job job = job_of(config);
    rbt_procedure_block block;

    if (procedure->expire != NULL) { /* which may write */
        rbt_snap_writable(&cell->value);
        block = block_of(cell);
        procedure->expire(procedure, &job, &block, kept->values);
    }
    let_go(kept);
}

/* The oldest goes; who holds it counts as holding the next. */
static void merge_oldest(const rbt_rule_config *config, rbt_cell *cell)
{
    rbt_kept oldest = cell->kept.at[0];

    for (size_t w = 0; w < words_of(config); w++)
        cell->kept.at[1].holders[w] |= oldest.holders[w];
    cell->kept.count--;
    for (size_t i = 0; i < cell->kept.count; i++)
        cell->kept.at[i] = cell->kept.at[i + 1];
    forget(config, cell, &oldest);
}

void rbt_procedure_on_read(const rbt_rule_config *config, rbt_cell *cell, uint32_t worker)
{
    const rbt_procedure *procedure = config->rule->procedure;
    size_t count = cell->kept.count;

    if (count == 0 || cell->kept.at[count - 1].version != cell->updates) {
        rbt_procedure_job job = job_of(config);
        rbt_procedure_block block = block_of(cell);
        rbt_kept kept = {.version = cell->updates,
                         .values = rbt_alloc(cell->kept_bytes / sizeof(float), sizeof(float)),
                         .holders = rbt_alloc(words_of(config), sizeof *kept.holders)};

        if (procedure->on_read != NULL)
            procedure->on_read(procedure, &job, &block, kept.values);
        rbt_array_push(&cell->kept, kept);
        if (++count > rbt_most_kept(config)) {
            merge_oldest(config, cell);
            count--;
        }
    }
    cell->kept.at[count - 1].holders[worker / 64] |= 1ULL << worker % 64;
}

void rbt_cell_release(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker, uint64_t version)
{
    size_t left = 0;

#ifdef RBT_MUTANT_RELEASE /* too early, this one can be named again: the swarm must notice */
    version += version != RBT_UNBOUNDED;
#endif
    for (size_t i = 0; i < cell->kept.count; i++) {
        rbt_kept *kept = &cell->kept.at[i];
        uint64_t any = 0;

        if (kept->version < version)
            kept->holders[worker / 64] &= ~(1ULL << worker % 64);
        for (size_t w = 0; w < words_of(config); w++)
            any |= kept->holders[w];
        if (any != 0)
            cell->kept.at[left++] = *kept;
        else
            forget(config, cell, kept);
    }
    cell->kept.count = left;
}

void rbt_cell_deinit_procedure(rbt_cell *cell)
{
    for (size_t i = 0; i < cell->kept.count; i++)
        let_go(&cell->kept.at[i]);
    rbt_array_free(&cell->kept);
    rbt_free(cell->memory);
}

/* What is known of a version: of the oldest that is not older, should it have been merged; NULL: nothing. */
static const float *kept_of(const rbt_cell *cell, uint64_t version)
{
    for (size_t i = 0; version != RBT_UNBOUNDED && i < cell->kept.count; i++)
        if (cell->kept.at[i].version >= version)
            return cell->kept.at[i].values;
    return NULL;
}

/* ---------------------------------------------------------------------------------------------- updates */

void rbt_procedure_apply(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push)
{
    const rbt_procedure *procedure = config->rule->procedure;
    rbt_procedure_job job = job_of(config);
    rbt_procedure_update update = {.worker = push->worker, .clock = push->clock};
    rbt_procedure_block block;

    if (push->update != NULL) {
        update.count = push->update->count;
        update.index = push->update->index;
        update.value = push->update->f32;
        update.kept = kept_of(cell, push->version);
    }
    if (update.count == 0 && !procedure->counts_empty)
        return;
    rbt_snap_writable(&cell->value);
    block = block_of(cell);
    procedure->apply(procedure, &job, &block, &update);
}

rbt_err rbt_rule_of_procedure(const rbt_procedure *procedure, rbt_rule *rule, rbt_error *error)
{
    rbt_versions versions = procedure->kept > 0 ? RBT_VERSIONS_READ : RBT_VERSIONS_NONE;

    if (procedure->name == NULL || procedure->apply == NULL || (procedure->kept > 0 && procedure->on_read == NULL))
        return rbt_fail(error, RBT_E_USAGE,
                        "procedure '%s' needs a name, a function apply and, if it keeps something of versions, a "
                        "function on_read",
                        procedure->name != NULL ? procedure->name : "(no name)");
    if (procedure->memory > PLANES_MAX || procedure->kept > PLANES_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "procedure '%s' asks for more than %d numbers per element; ask for fewer",
                        procedure->name, PLANES_MAX);
    *rule = (rbt_rule)RBT_RULE_OF(*procedure, procedure->name, versions, procedure->takes_gradients,
                                  procedure->counts_empty);
    return RBT_OK;
}

const rbt_procedure *rbt_procedure_find(const char *name)
{
    static const rbt_rule *const rules[] = {&rbt_rule_adagrad, &rbt_rule_adarev, &rbt_rule_momentum};

    for (size_t i = 0; name != NULL && i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i]->name, name) == 0)
            return rules[i]->procedure;
    return NULL;
}
