/* Strips of blocks; the contract is in strips.h. */
#include "table/strips.h"

#include <math.h>
#include <string.h>

#define LITTLE_LESS 0.999 /* than the mean: or equal changes could all be below theirs by rounding */

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
    rbt_array_free(&strips->told);
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

/* How far an element of each is apart. */
static double distance(rbt_type type, const void *a, const void *b)
{
    switch (type) {
    case RBT_F32:
        return fabs((double)*(const float *)a - (double)*(const float *)b);
    case RBT_I32:
        return fabs((double)*(const int32_t *)a - (double)*(const int32_t *)b);
    case RBT_I64:
        return fabs((double)*(const int64_t *)a - (double)*(const int64_t *)b);
    }
    return 0;
}

/* How much a change of an element matters that was `value`; both without their signs. */
static double in_proportion(rbt_type type, double change, double value)
{
    if (type != RBT_F32)
        return change * change / (value + 1);
    return value > 0 ? change / value : change;
}

double rbt_changes_magnitude(rbt_type type, const void *changes, const void *values, uint32_t n, uint32_t *changed)
{
    double sum = 0;

    *changed = 0;
    for (uint32_t i = 0; i < n; i++) {
        double change = magnitude(type, changes, i);

        if (change == 0)
            continue;
        sum += values != NULL ? in_proportion(type, change, magnitude(type, values, i)) : change;
        ++*changed;
    }
    return sum;
}

/* ------------------------------------------------------------------------------------------------- servers */

static char *told_of(const rbt_strips *strips, size_t place)
{
    return strips->told.at + place * strips->width * strips->size;
}

/* The place of a strip in the list, where what it is now has been noted if it was clean. */
static size_t note(rbt_strips *strips, uint32_t strip, const rbt_snap *value)
{
    size_t count = strips->list.count, place = (size_t)(mark(strips, strip) - strips->list.at), bytes;

    if (strips->list.count == count)
        return place;
    strips->size = rbt_type_size(value->type);
    bytes = strips->width * strips->size;
    rbt_array_reserve(&strips->told, strips->list.count * bytes);
    strips->told.count = strips->list.count * bytes;
    rbt_snap_read(value, rbt_strip_first(strips, strip), rbt_strip_length(strips, strip), told_of(strips, place));
    return place;
}

/* How much it matters that an element is not what was told. */
static double share_of(rbt_type type, const void *now, const void *told, bool relative)
{
    double change = distance(type, now, told);

    return relative ? in_proportion(type, change, magnitude(type, told, 0)) : change;
}

void rbt_strips_weigh(rbt_strips *strips, const rbt_snap *update, const rbt_snap *value, bool relative, bool is_after)
{
    uint64_t room;

    for (uint32_t k = 0; strips->width > 0 && k < update->count; k++) {
        uint32_t element = update->form == RBT_DENSE ? k : update->index[k], strip = element / strips->width;
        const void *now = &room;
        const char *told;
        rbt_strip *dirty;
        double change;
        size_t place;

        if (magnitude(update->type, update->value, k) == 0)
            continue;
        place = note(strips, strip, value);
        told = told_of(strips, place) + (element - rbt_strip_first(strips, strip)) * strips->size;
        if (value->form == RBT_DENSE)
            now = (const char *)value->value + element * strips->size;
        else
            rbt_snap_read(value, element, 1, &room);
        if (memcmp(now, told, strips->size) == 0)
            continue;
        change = share_of(value->type, now, told, relative);
        dirty = &strips->list.at[place];
        if (is_after) {
            dirty->change += change;
            dirty->changed++;
        } else {
            dirty->change -= change;
            dirty->changed--;
        }
    }
}

#define SAME (-1.0) /* the share of an element that is what was told */

/* The share of each element of a dirty strip; how large one must be to be told now. */
static double weigh_all(const rbt_strips *strips, uint32_t strip, const rbt_snap *value, bool relative, double *share)
{
    const char *told = told_of(strips, place_of(strips, strip) - 1);
    uint32_t first = rbt_strip_first(strips, strip), changed = 0;
    uint64_t now;
    double sum = 0;

    for (uint32_t i = 0; i < rbt_strip_length(strips, strip); i++, told += strips->size) {
        share[i] = SAME;
        rbt_snap_read(value, first + i, 1, &now);
        if (memcmp(&now, told, strips->size) == 0)
            continue;
        share[i] = share_of(value->type, &now, told, relative);
        sum += share[i];
        changed++;
    }
    return relative && changed > 0 ? LITTLE_LESS * sum / changed : 0;
}

/* What is not a number is told. */
static bool is_news(double share, double least)
{
    return share != SAME && !(share < least);
}

uint32_t rbt_strips_count_news(const rbt_strips *strips, uint32_t strip, const rbt_snap *value, bool relative)
{
    double share[RBT_STRIP_ELEMENTS], least;
    uint32_t count = 0;

    if (place_of(strips, strip) == 0)
        return 0;
    least = weigh_all(strips, strip, value, relative, share);
    for (uint32_t i = 0; i < rbt_strip_length(strips, strip); i++)
        count += is_news(share[i], least);
    return count;
}

uint32_t rbt_strips_tell(rbt_strips *strips, uint32_t strip, const rbt_snap *value, bool relative, uint32_t *index,
                         void *values)
{
    uint64_t place = place_of(strips, strip);
    uint32_t first = rbt_strip_first(strips, strip), count = 0, left = 0;
    double share[RBT_STRIP_ELEMENTS], least, rest = 0;

    if (place == 0)
        return 0;
    least = weigh_all(strips, strip, value, relative, share);
    for (uint32_t i = 0; i < rbt_strip_length(strips, strip); i++) {
        char *now = (char *)values + count * strips->size;

        if (share[i] == SAME)
            continue;
        if (is_news(share[i], least)) {
            rbt_snap_read(value, first + i, 1, now);
            memcpy(told_of(strips, place - 1) + i * strips->size, now, strips->size);
            index[count++] = first + i;
        } else {
            rest += share[i];
            left++;
        }
    }
    strips->list.at[place - 1].change = rest;
    strips->list.at[place - 1].changed = left;
    if (left == 0)
        rbt_strips_clean(strips, strip);
    return count;
}

/* ------------------------------------------------------------------------------------------------- cleaning */

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
        if (kept != i) {
            set_place(strips, dirty.strip, kept + 1);
            if (strips->told.count > 0)
                memcpy(told_of(strips, kept), told_of(strips, i), strips->width * strips->size);
        }
        strips->list.at[kept++] = dirty;
    }
    strips->list.count = kept;
    strips->told.count = kept * strips->width * strips->size;
}

void rbt_strips_clean_all(rbt_strips *strips)
{
    for (size_t i = 0; !strips->is_sparse && i < strips->list.count; i++)
        strips->place[strips->list.at[i].strip] = 0;
    if (strips->is_sparse)
        rbt_map_deinit(&strips->scattered);
    strips->list.count = 0;
    strips->told.count = 0;
}
