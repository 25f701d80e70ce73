/* Averages; the contract is in mix.h. */
#include "node/mix.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/kernels.h"

#define CHUNK 16384 /* floats that are averaged at a time: the sums stay in a near cache */

void rbt_mix_make_room(rbt_mix *mix, size_t room)
{
    if (mix->room >= room)
        return;
    rbt_free(mix->x);
    rbt_free(mix->weight);
    mix->x = rbt_alloc(room, sizeof *mix->x);
    mix->weight = rbt_alloc(room, sizeof *mix->weight);
    mix->room = room;
}

static void let_go(rbt_mix *mix)
{
    for (size_t i = 0; i < mix->count; i++)
        rbt_snap_unref(mix->x[i]);
    mix->count = 0;
}

void rbt_mix_deinit(rbt_mix *mix)
{
    let_go(mix);
    rbt_snap_unref(mix->out);
    rbt_free(mix->x);
    rbt_free(mix->weight);
    *mix = (rbt_mix){0};
}

/* n of the sums, from `at` on. */
static void sum_chunk(const rbt_mix *mix, const float *add, float factor, size_t at, size_t n, float *to)
{
    const rbt_kernels *kernels = rbt_kernels_best();

    size_t i = mix->count < 2 ? 0 : 2;

    if (i == 2) /* in one go: with memory as it is, that is what counts */
        kernels->blend(mix->weight[0], mix->x[0]->f32 + at, mix->weight[1], mix->x[1]->f32 + at, to, n);
    else
        memset(to, 0, n * sizeof *to);
    for (; i < mix->count; i++)
        kernels->axpy(mix->weight[i], mix->x[i]->f32 + at, to, n);
    if (add != NULL)
        kernels->axpy(factor, add + at, to, n);
}

rbt_snap *rbt_mix_average(rbt_mix *mix, const float *add, float factor)
{
    rbt_snap *mean = mix->out;
    size_t length = mean->length;

    for (size_t at = 0; at < length; at += CHUNK)
        sum_chunk(mix, add, factor, at, length - at < CHUNK ? length - at : CHUNK, mean->f32 + at);
    let_go(mix);
    mix->out = NULL;
    return mean;
}
