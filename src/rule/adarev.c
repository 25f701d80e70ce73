/* adarev: AdaptiveRevision (McMahan & Streeter 2014; in Bösen, Wei et al. 2015, section 3.4): AdaGrad that takes the
 * delay of gradients into account and revises steps that were too long.
 *
 * Per coordinate: G, the sum of all gradients; z; zmax, the largest z so far. A gradient g that was computed when the
 * sum was G_old has missed b = G - G_old:
 *     e_old = rate / sqrt(zmax);  z += g*g + 2*g*b;  zmax = max(zmax, z);  e = rate / sqrt(zmax)
 *     x -= e*g - (e_old - e)*b;  G += g
 * with 1e-8 beside the roots. Without delay b = 0 and this is adagrad bit for bit. A version keeps a copy of G. Proved by
 * tests/unit/test_procedure.c, tests/sim/test_identity.c and the swarm. */
#include <math.h>
#include <string.h>

#include "rule/adaptive.h"
#include "rule/procedure.h"

static void on_read(const rbt_procedure *procedure, const rbt_procedure_job *job, const rbt_procedure_block *block,
                    float *kept)
{
    (void)procedure;
    (void)job;
    memcpy(kept, block->memory, block->n * sizeof *kept);
}

/* One coordinate. `missed` is b. */
static inline void revise(float rate, float g, float missed, float *x, float *sum, float *z, float *z_most)
{
    float root_old = sqrtf(*z_most) + RBT_ADAPTIVE_FLOOR, root;

    *z += g * g + 2 * g * missed;
    *z_most = *z > *z_most ? *z : *z_most;
    root = sqrtf(*z_most) + RBT_ADAPTIVE_FLOOR;
    *x -= rate * g / root - (rate / root_old - rate / root) * missed;
    *sum += g;
}

static void apply(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                  const rbt_procedure_update *update)
{
    float *sum = block->memory, *z = sum + block->n, *z_most = z + block->n, *x = block->value;
    const float *g = update->value, *kept = update->kept;
    float rate = job->rate;

    (void)procedure;
    if (update->index == NULL && kept != NULL) { /* the usual case, in a form that compilers vectorise */
        for (uint32_t i = 0; i < update->count; i++)
            revise(rate, g[i], sum[i] - kept[i], &x[i], &sum[i], &z[i], &z_most[i]);
        return;
    }
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->index == NULL ? k : update->index[k];

        revise(rate, g[k], kept != NULL ? sum[i] - kept[i] : 0, &x[i], &sum[i], &z[i], &z_most[i]);
    }
}

static const rbt_procedure adarev = {
    .name = "adarev", .memory = 3, .kept = 1, .takes_gradients = true, .on_read = on_read, .apply = apply};

const rbt_rule rbt_rule_adarev = RBT_RULE_OF(adarev, "adarev", RBT_VERSIONS_READ, true, false);
