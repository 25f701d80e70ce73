/* adagrad: workers push gradients; per coordinate G += g*g, w -= rate * g / (sqrt(G) + 1e-8). The worker's copy is
 * read-only under this rule: it sees its own effect through the server. */
#include "rule/rule.h"

#include <math.h>

#define ADAGRAD_FLOOR 1e-8f

static void adagrad_init(const rbt_rule_config *config, rbt_cell *cell)
{
    (void)config;
    cell->squares = rbt_snap_create(RBT_F32, cell->value->length);
}

static void adagrad_update(const rbt_rule_config *config, rbt_cell *cell, uint64_t version, rbt_snap *update)
{
    (void)version;
    if (update == NULL || update->count == 0)
        return;
    rbt_snap_writable(&cell->value);
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->form == RBT_DENSE ? k : update->index[k];
        float g = update->f32[k];

        cell->squares->f32[i] += g * g;
        cell->value->f32[i] -= config->rate * g / (sqrtf(cell->squares->f32[i]) + ADAGRAD_FLOOR);
    }
}

const rbt_rule rbt_rule_adagrad = {
    .name = "adagrad", .takes_gradients = true, .init = adagrad_init, .update = adagrad_update};
