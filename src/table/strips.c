/* Strips of blocks; the contract is in strips.h. */
#include "table/strips.h"

#include <math.h>

uint32_t rbt_strip_width(const rbt_layout *layout)
{
    uint64_t cols = layout->block_cols;

    if (layout->sparse)
        return 1;
    return (uint32_t)(cols < RBT_STRIP_ELEMENTS ? cols : RBT_STRIP_ELEMENTS);
}

void rbt_strips_init(rbt_strips *strips, uint32_t length, const rbt_layout *layout)
{
    *strips = (rbt_strips){.width = rbt_strip_width(layout), .length = length, .is_sparse = layout->sparse};
    if (!strips->is_sparse)
        strips->place = rbt_alloc((length + strips->width - 1) / strips->width, sizeof *strips->place);
}

void rbt_strips_deinit(rbt_strips *strips)
{
    rbt_free(strips->place);
    rbt_map_deinit(&strips->scattered);
    rbt_array_free(&strips->list);
    *strips = (rbt_strips){0};
}

/* One past the place of a dirty strip in the list; 0: it is clean. */
static uint64_t place_of(const rbt_strips *strips, uint32_t strip)
{
    const uint64_t *place;

    if (!strips->is_sparse)
        return strips->place[strip];
    place = rbt_map_get(&strips->scattered, strip);
    return place != NULL ? *place : 0;
}

static void set_place(rbt_strips *strips, uint32_t strip, uint64_t place)
{
    bool is_new;

    if (!strips->is_sparse)
        strips->place[strip] = (uint32_t)place;
    else if (place == 0)
        (void)rbt_map_remove(&strips->scattered, strip);
    else
        *rbt_map_put(&strips->scattered, strip, &is_new) = place;
}

static rbt_strip *mark(rbt_strips *strips, uint32_t strip)
{
    uint64_t place = place_of(strips, strip);

    if (place == 0) {
        rbt_strip dirty = {.strip = strip, .since = ++strips->count};

        rbt_array_push(&strips->list, dirty);
        place = strips->list.count;
        set_place(strips, strip, place);
    }
    return &strips->list.at[place - 1];
}

void rbt_strips_touch(rbt_strips *strips, uint32_t offset, uint32_t n)
{
    if (strips->width == 0 || n == 0)
        return;
    for (uint32_t strip = offset / strips->width; strip <= (offset + n - 1) / strips->width; strip++)
        (void)mark(strips, strip);
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

double rbt_changes_magnitude(rbt_type type, const void *changes, const void *values, uint32_t n, uint32_t *changed)
{
    double sum = 0;

    *changed = 0;
    for (uint32_t i = 0; i < n; i++) {
        double change = magnitude(type, changes, i), value;

        if (change == 0)
            continue;
        value = values != NULL ? magnitude(type, values, i) : 0;
        sum += value > 0 ? change / value : change;
        ++*changed;
    }
    return sum;
}

void rbt_strips_add(rbt_strips *strips, const rbt_snap *update, const rbt_snap *of)
{
    if (strips->width == 0)
        return;
    for (uint32_t k = 0; k < update->count; k++) {
        double change = magnitude(update->type, update->value, k), value = 0;
        uint32_t element = update->form == RBT_DENSE ? k : update->index[k];
        uint64_t room;

        if (change == 0)
            continue;
        if (of != NULL && of->form == RBT_DENSE) {
            value = magnitude(of->type, of->value, element);
        } else if (of != NULL) {
            rbt_snap_read(of, element, 1, &room);
            value = magnitude(of->type, &room, 0);
        }
        mark(strips, element / strips->width)->change += value > 0 ? change / value : change;
    }
}

void rbt_strips_clean(rbt_strips *strips, uint32_t strip)
{
    uint64_t place = place_of(strips, strip);

    if (place == 0)
        return;
    strips->list.at[place - 1].since = 0;
    set_place(strips, strip, 0);
}

void rbt_strips_sweep(rbt_strips *strips)
{
    size_t kept = 0;

    for (size_t i = 0; i < strips->list.count; i++) {
        rbt_strip dirty = strips->list.at[i];

        if (dirty.since == 0)
            continue;
        if (kept != i)
            set_place(strips, dirty.strip, kept + 1);
        strips->list.at[kept++] = dirty;
    }
    strips->list.count = kept;
}

void rbt_strips_clean_all(rbt_strips *strips)
{
    for (size_t i = 0; !strips->is_sparse && i < strips->list.count; i++)
        strips->place[strips->list.at[i].strip] = 0;
    if (strips->is_sparse)
        rbt_map_deinit(&strips->scattered);
    strips->list.count = 0;
}
