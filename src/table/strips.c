/* Strips of blocks; the contract is in strips.h. */
#include "table/strips.h"

#include <math.h>

uint32_t rbt_strip_width(const rbt_layout *layout)
{
    uint64_t cols = layout->block_cols;

    if (layout->sparse)
        return 0;
    return (uint32_t)(cols < RBT_STRIP_ELEMENTS ? cols : RBT_STRIP_ELEMENTS);
}

void rbt_strips_init(rbt_strips *strips, uint32_t length, uint32_t width)
{
    size_t n = width > 0 ? (length + width - 1) / width : 0;

    *strips = (rbt_strips){.width = width, .length = length};
    if (n == 0)
        return;
    strips->since = rbt_alloc(n, sizeof *strips->since);
    strips->change = rbt_alloc(n, sizeof *strips->change);
}

void rbt_strips_deinit(rbt_strips *strips)
{
    rbt_free(strips->since);
    rbt_free(strips->change);
    rbt_array_free(&strips->list);
    *strips = (rbt_strips){0};
}

static void mark(rbt_strips *strips, uint32_t strip)
{
    if (strips->since[strip] != 0)
        return;
    strips->since[strip] = ++strips->count;
    rbt_array_push(&strips->list, strip);
}

void rbt_strips_touch(rbt_strips *strips, uint32_t offset, uint32_t n)
{
    if (strips->width == 0 || n == 0)
        return;
    for (uint32_t strip = offset / strips->width; strip <= (offset + n - 1) / strips->width; strip++)
        mark(strips, strip);
}

static double magnitude(rbt_type type, const void *values, uint32_t i)
{
    switch (type) {
    case RBT_F32:
        return fabs((double)((const float *)values)[i]);
    case RBT_I32:
        return fabs((double)((const int32_t *)values)[i]);
    case RBT_I64:
        return fabs((double)((const int64_t *)values)[i]);
    }
    return 0;
}

double rbt_values_magnitude(rbt_type type, const void *values, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += magnitude(type, values, i);
    return sum;
}

void rbt_strips_add(rbt_strips *strips, const rbt_snap *update)
{
    if (strips->width == 0)
        return;
    for (uint32_t k = 0; k < update->count; k++) {
        double change = magnitude(update->type, update->value, k);
        uint32_t strip = (update->form == RBT_DENSE ? k : update->index[k]) / strips->width;

        if (change == 0)
            continue;
        mark(strips, strip);
        strips->change[strip] += change;
    }
}

void rbt_strips_clean(rbt_strips *strips, uint32_t strip)
{
    strips->since[strip] = 0;
    strips->change[strip] = 0;
}

void rbt_strips_sweep(rbt_strips *strips)
{
    size_t kept = 0;

    for (size_t i = 0; i < strips->list.count; i++)
        if (strips->since[strips->list.at[i]] != 0)
            strips->list.at[kept++] = strips->list.at[i];
    strips->list.count = kept;
}

void rbt_strips_clean_all(rbt_strips *strips)
{
    for (size_t i = 0; i < strips->list.count; i++)
        rbt_strips_clean(strips, strips->list.at[i]);
    strips->list.count = 0;
}
