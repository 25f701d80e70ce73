/* Averages; the contract is in mix.h. */
#include "node/mix.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/kernels.h"

#define CHUNK 4096 /* floats that are averaged at a time: the sums stay in the nearest cache */

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

rbt_snap *rbt_mix_average(rbt_mix *mix, const float *add, float factor)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    rbt_snap *mean = mix->out;
    size_t n = mean->length;

    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;

        memset(mean->f32 + at, 0, part * sizeof(float));
        for (size_t i = 0; i < mix->count; i++)
            kernels->axpy(mix->weight[i], mix->x[i]->f32 + at, mean->f32 + at, part);
        if (add != NULL)
            kernels->axpy(factor, add + at, mean->f32 + at, part);
    }
    let_go(mix);
    mix->out = NULL;
    return mean;
}
