/* momentum: con with a velocity on the server. What the workers' updates of a clock changed goes on in the clocks after
 * it, a share less each time (FedAvgM, Hsu et al. 2019, with the clock as the round):
 *     with the first update of a clock that nobody has finished before:  v *= momentum;  w += v
 *     with every update:                                                 v += factor * u;  w += factor * u
 * so under BSP w(c+1) = w(c) + v(c+1), v(c+1) = momentum * v(c) + factor * the sum of the clock's updates; a late update
 * under SSP joins the velocity as it is. Workers send steps (eta(c) is theirs, --decay), not gradients. Every push names
 * every block: the velocity moves all of them in every clock. Proved by tests/unit/test_procedure.c,
 * tests/sim/test_identity.c and the checker. */
#include "rule/procedure.h"

static void apply(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                  const rbt_procedure_update *update)
{
    float *velocity = block->memory, *w = block->value;

    (void)procedure;
    for (uint32_t i = 0; update->clock + 1 > block->clock && i < block->n; i++) {
        velocity[i] *= job->momentum;
        w[i] += velocity[i];
    }
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->index == NULL ? k : update->index[k];
        float change = job->factor * update->value[k];

        velocity[i] += change;
        w[i] += change;
    }
}

static const rbt_procedure momentum = {.name = "momentum", .memory = 1, .counts_empty = true, .apply = apply};

const rbt_rule rbt_rule_momentum = RBT_RULE_OF(momentum, "momentum", RBT_VERSIONS_NONE, false, true);
