/* Proximal steps on servers; the contract is in prox.h. */
#include "method/prox.h"

#include <math.h>

#include "method/weights.h"

/* What a row's memory has, besides the sums: the number of steps made, and for each worker the step that it sent
 * something for, from 1; 0: none yet. */
static float *steps_of(const rbt_prox *prox, float *memory)
{
    return memory + 2 * prox->width + 2;
}

/* How many steps ago, at the most, a worker has sent something last; none at all is beyond all bounds. */
static float oldest(const float *steps, const float *sent, uint32_t workers)
{
    float age = 0;

    for (uint32_t m = 0; m < workers; m++)
        age = fmaxf(age, sent[m] > 0 ? *steps + 1 - sent[m] : INFINITY);
    return age;
}

/* One step of a row from the sums in its memory, some of which are so many steps old. */
static void step(const rbt_prox *prox, uint32_t workers, float age, float *value, const float *sum)
{
    double rate = (double)sum[rbt_prox_rate(prox)] / workers / (1 + (double)age);

    for (size_t j = 0; rate > 0 && j < prox->width; j++) {
        double g = (double)sum[j], bend = (double)sum[prox->width + j] / rate;

        if (bend > 0)
            value[j] = (float)rbt_soft((double)value[j] - g / bend, prox->penalty / bend);
        value[prox->width + j] = prox->kkt > 0 && value[j] == 0 && fabs(g) > prox->kkt * prox->penalty ? 1 : 0;
    }
}

static void apply(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                  const rbt_procedure_update *update)
{
    const rbt_prox *prox = procedure->argument;
    float *sum = block->memory, *steps = steps_of(prox, sum), *sent = steps + 1, age;
    float *fresh = &sum[rbt_prox_count(prox)]; /* workers that have sent something for the next step */
    bool again;

    if (block->n != rbt_prox_cols(prox, job->workers) || update->worker >= job->workers) /* no row: nothing is sure */
        return;
    again = sent[update->worker] == *steps + 1;
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->index == NULL ? k : update->index[k];

        if (i < rbt_prox_count(prox) || i == rbt_prox_rate(prox))
            sum[i] += update->value[k];
    }
    sent[update->worker] = *steps + 1;
    *fresh += again ? 0 : 1;
    age = *fresh >= (float)job->workers ? 0 : oldest(steps, sent, job->workers);
    if (age > 0 && !(again && age <= RBT_PROX_DELAY))
        return;
    step(prox, job->workers, age, block->value, sum);
    *fresh = 0;
    *steps += 1;
}

void rbt_prox_init(rbt_prox *prox)
{
    prox->procedure =
        (rbt_procedure){.name = "prox", .argument = prox, .memory = 1, .takes_gradients = true, .apply = apply};
}
