/* adagrad: workers push gradients; per coordinate G += g*g, w -= rate * g / (sqrt(G) + 1e-8). The worker's copy is
 * read-only under this rule: it sees its own effect through the server. Proved by tests/unit/test_rule.c. */
#include <math.h>

#include "rule/adaptive.h"
#include "rule/procedure.h"

static void apply(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                  const rbt_procedure_update *update)
{
    float *squares = block->memory;

    (void)procedure;
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->index == NULL ? k : update->index[k];
        float g = update->value[k];

        squares[i] += g * g;
        block->value[i] -= job->rate * g / (sqrtf(squares[i]) + RBT_ADAPTIVE_FLOOR);
    }
}

static const rbt_procedure adagrad = {.name = "adagrad", .memory = 1, .takes_gradients = true, .apply = apply};

const rbt_rule rbt_rule_adagrad = RBT_RULE_OF(adagrad, "adagrad", RBT_VERSIONS_NONE, true, false);
