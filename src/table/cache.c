/* Cached copies and the update buffer; the contract is in cache.h. */
#include "table/cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "math/half.h"
#include "math/kernels.h"

void rbt_cache_init(rbt_cache *cache, const rbt_layout *layout)
{
    *cache = (rbt_cache){.layout = layout};
    cache->copies = rbt_alloc(layout->blocks, sizeof *cache->copies);
}

/* Drops own updates: pushes of clocks, and early sends up to this one. What stays is not in the copy that comes. */
static void drop_own(rbt_copy *copy, uint64_t early)
{
    size_t kept = 0;

    for (size_t i = 0; i < copy->own.count; i++) {
        rbt_own own = copy->own.at[i];

        if (own.early <= early) {
            rbt_snap_unref(own.update);
            continue;
        }
        own.merged = false;
        copy->own.at[kept++] = own;
    }
    copy->own.count = kept;
}

/* Adds own updates to the copy. Pushes of clocks are then done with: every copy that comes includes them. */
static void merge_own(rbt_copy *copy)
{
    size_t kept = 0;

    for (size_t i = 0; i < copy->own.count; i++) {
        rbt_own own = copy->own.at[i];

        if (!own.merged)
            rbt_snap_add(&copy->base, own.update, 1);
        own.merged = true;
        if (own.early == 0)
            rbt_snap_unref(own.update);
        else
            copy->own.at[kept++] = own;
    }
    copy->own.count = kept;
}

void rbt_cache_deinit(rbt_cache *cache)
{
    for (uint32_t block = 0; cache->copies != NULL && block < cache->layout->blocks; block++) {
        rbt_copy *copy = &cache->copies[block];

        drop_own(copy, UINT64_MAX);
        rbt_array_free(&copy->own);
        rbt_strips_deinit(&copy->strips);
        for (size_t i = 0; i < copy->aside.count; i++)
            rbt_snap_unref(copy->aside.at[i].update);
        rbt_array_free(&copy->aside);
        rbt_snap_unref(copy->base);
        rbt_snap_unref(copy->parked.base);
        rbt_snap_unref(copy->buffer);
        rbt_map_deinit(&copy->scattered);
        rbt_snap_unref(copy->rest);
        rbt_map_deinit(&copy->rests);
    }
    rbt_bits_deinit(&cache->unsent);
    rbt_free(cache->copies);
    cache->copies = NULL;
}

void rbt_cache_adopt(rbt_cache *cache, uint32_t block, rbt_snap *base, uint64_t slowest, uint64_t included,
                     uint64_t early, uint64_t version)
{
    rbt_copy *copy = &cache->copies[block];

    if (cache->has_tags && copy->touched && rbt_copy_tag(copy) != version) {
        rbt_part_aside aside = {.version = rbt_copy_tag(copy), .update = rbt_cache_flush(cache, block, 0, false)};

        RBT_ASSERT(aside.update != NULL); /* it was touched */
        if (aside.update->count > 0)
            rbt_array_push(&copy->aside, aside);
        else
            rbt_snap_unref(aside.update);
    }
    if (copy->parked.base != NULL && copy->parked.version <= version) {
        rbt_snap_unref(copy->parked.base);
        copy->parked.base = NULL;
    }
    rbt_snap_ref(base);
    rbt_snap_unref(copy->base);
    drop_own(copy, early);
    copy->base = base;
    copy->slowest = slowest;
    copy->included = included;
    copy->early = early;
    copy->version = version;
}

void rbt_cache_park(rbt_cache *cache, uint32_t block, const rbt_parked *newer)
{
    rbt_parked *parked = &cache->copies[block].parked;

    if (parked->base != NULL && parked->version >= newer->version)
        return;
    rbt_snap_unref(parked->base);
    *parked = *newer;
    rbt_snap_ref(parked->base);
}

void rbt_cache_unpark(rbt_cache *cache, uint32_t block)
{
    rbt_parked newer = cache->copies[block].parked;

    if (newer.base == NULL)
        return;
    cache->copies[block].parked.base = NULL;
    rbt_cache_adopt(cache, block, newer.base, newer.slowest, newer.included, 0, newer.version);
    rbt_snap_unref(newer.base);
}

/* Adds one value's bits to another's, in the table's type. */
static uint64_t add_bits(rbt_type type, uint64_t a, const void *delta)
{
    float x, y;
    int32_t i;
    int64_t j;

    switch (type) {
    case RBT_F32:
        memcpy(&x, &a, sizeof x);
        memcpy(&y, delta, sizeof y);
        x += y;
        a = 0;
        memcpy(&a, &x, sizeof x);
        return a;
    case RBT_I32:
        memcpy(&i, delta, sizeof i);
        return (uint32_t)a + (uint32_t)i;
    case RBT_I64:
        memcpy(&j, delta, sizeof j);
        return a + (uint64_t)j;
    }
    return a;
}

static void add_scattered(const rbt_map *scattered, rbt_type type, uint32_t offset, uint32_t n, void *out)
{
    size_t cursor = 0, size = rbt_type_size(type);
    uint64_t place, bits, sum = 0;

    while (rbt_map_next(scattered, &cursor, &place, &bits))
        if (place >= offset && place - offset < n) {
            char *at = (char *)out + (place - offset) * size;

            sum = add_bits(type, bits, at);
            memcpy(at, &sum, size);
        }
}

void rbt_cache_read(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, bool has_clock, void *out)
{
    rbt_copy *copy = &cache->copies[block];

    if (copy->base != NULL) {
        merge_own(copy);
        rbt_snap_read(copy->base, offset, n, out);
    } else {
        memset(out, 0, n * rbt_type_size(cache->layout->type));
    }
    if (cache->is_read_only)
        return;
    if (!has_clock && copy->touched && copy->buffer != NULL)
        rbt_snap_read_add(copy->buffer, offset, n, out);
    if (!has_clock && copy->scattered.count > 0)
        add_scattered(&copy->scattered, cache->layout->type, offset, n, out);
    if (copy->rest != NULL)
        rbt_snap_read_add(copy->rest, offset, n, out);
    if (copy->rests.count > 0)
        add_scattered(&copy->rests, cache->layout->type, offset, n, out);
}

static void touch_strips(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n)
{
    rbt_strips *strips = &cache->copies[block].strips;

    if (strips->width == 0)
        rbt_strips_init(strips, rbt_layout_length(cache->layout, block), cache->layout);
    if (cache->unsent.size == 0)
        rbt_bits_init(&cache->unsent, cache->layout->blocks);
    rbt_bits_add(&cache->unsent, block);
    rbt_strips_touch(strips, offset, n);
}

void rbt_cache_increment(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, const void *deltas)
{
    rbt_copy *copy = &cache->copies[block];
    rbt_type type = cache->layout->type;
    size_t size = rbt_type_size(type);

    copy->touched = true;
    if (cache->layout->sparse) {
        if (cache->is_managed)
            touch_strips(cache, block, offset, n);
        for (uint32_t i = 0; i < n; i++) {
            bool is_new;
            uint64_t *bits = rbt_map_put(&copy->scattered, offset + i, &is_new);

            *bits = add_bits(type, *bits, (const char *)deltas + i * size);
        }
        return;
    }
    if (cache->is_managed)
        touch_strips(cache, block, offset, n);
    if (copy->buffer == NULL)
        copy->buffer = rbt_snap_create(type, rbt_layout_length(cache->layout, block));
    if (type == RBT_F32)
        rbt_kernels_best()->add(deltas, copy->buffer->f32 + offset, n);
    else if (type == RBT_I32)
        rbt_kernels_best()->add_i32(deltas, copy->buffer->i32 + offset, n);
    else
        rbt_kernels_best()->add_i64(deltas, copy->buffer->i64 + offset, n);
}

/* The part of a row that lies in one block: where its increments go. */
typedef struct stretch {
    uint64_t first, width; /* columns */
    void *at;
} stretch;

static stretch stretch_of(rbt_cache *cache, uint64_t row, uint64_t col)
{
    const rbt_layout *layout = cache->layout;
    uint32_t block = rbt_layout_block(layout, row, col);
    uint64_t first = col - col % layout->block_cols;
    rbt_copy *copy = &cache->copies[block];

    copy->touched = true;
    if (copy->buffer == NULL)
        copy->buffer = rbt_snap_create(layout->type, rbt_layout_length(layout, block));
    return (stretch){first, rbt_layout_run(layout, first),
                     (char *)copy->buffer->value + rbt_layout_offset(layout, row, first) * rbt_type_size(layout->type)};
}

void rbt_cache_increment_keys(rbt_cache *cache, uint64_t row, const uint64_t *cols, size_t n, const void *deltas)
{
    const rbt_layout *layout = cache->layout;
    size_t size = rbt_type_size(layout->type);
    bool singly = layout->sparse || cache->is_managed; /* each by its key, or what changed is to be known */
    stretch s = {0};

    for (size_t i = 0; singly && i < n; i++)
        rbt_cache_increment(cache, rbt_layout_block(layout, row, cols[i]), rbt_layout_offset(layout, row, cols[i]), 1,
                            (const char *)deltas + i * size);
    for (size_t i = 0; !singly && i < n; i++) {
        if (cols[i] - s.first >= s.width)
            s = stretch_of(cache, row, cols[i]);
        if (layout->type == RBT_F32)
            ((float *)s.at)[cols[i] - s.first] += ((const float *)deltas)[i];
        else if (layout->type == RBT_I32) /* wraps */
            ((uint32_t *)s.at)[cols[i] - s.first] += ((const uint32_t *)deltas)[i];
        else
            ((uint64_t *)s.at)[cols[i] - s.first] += ((const uint64_t *)deltas)[i];
    }
}

static int compare_places(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* A NaN is not small: it must be seen, not hidden. */
static bool is_small(rbt_type type, uint64_t bits, float threshold)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return type == RBT_F32 ? x == 0 || fabsf(x) < threshold : bits == 0;
}

/* Is this increment of an element too small to be sent now? A NaN, of either, is not; nor is any change of a zero. */
static bool is_held(const rbt_cache *cache, float value, float increment)
{
    return fabsf(increment) < cache->significant * fabsf(value) && increment != 0;
}

/* Can any of a block's increments be held back? Not while nothing is known of its values. */
static bool may_hold(const rbt_cache *cache, const rbt_copy *copy)
{
    return cache->significant > 0 && cache->layout->type == RBT_F32 && copy->base != NULL;
}

/* Takes out of a dense buffer what is not significant. NULL: nothing. */
static rbt_snap *part_buffer(const rbt_cache *cache, rbt_copy *copy)
{
    rbt_snap *held = NULL, *value;
    float *x = copy->buffer->f32;

    merge_own(copy);
    value = rbt_snap_ref(copy->base);
    if (value->form == RBT_SPARSE)
        rbt_snap_writable(&value); /* dense */
    for (uint32_t i = 0; i < copy->buffer->length; i++) {
        if (!is_held(cache, value->f32[i], x[i]))
            continue;
        if (held == NULL)
            held = rbt_snap_create(RBT_F32, copy->buffer->length);
        held->f32[i] = x[i];
        x[i] = 0;
    }
    rbt_snap_unref(value);
    return held;
}

/* Puts aside what of the scattered increments is not significant. */
static rbt_map part_scattered(const rbt_cache *cache, rbt_copy *copy)
{
    rbt_map held = {0};
    uint64_t place, bits;
    size_t cursor = 0;

    merge_own(copy);
    while (rbt_map_next(&copy->scattered, &cursor, &place, &bits)) {
        float value, increment;
        bool is_new;

        memcpy(&increment, &bits, sizeof increment);
        rbt_snap_read(copy->base, (uint32_t)place, 1, &value);
        if (is_held(cache, value, increment))
            *rbt_map_put(&held, place, &is_new) = bits;
    }
    for (cursor = 0; rbt_map_next(&held, &cursor, &place, &bits);)
        rbt_map_remove(&copy->scattered, place);
    return held;
}

/* What is sent of an increment in half precision: nothing if it is small. What that leaves is the new rest; of what is not
 * finite, nothing. */
static float take_half(float x, float threshold, float *rest)
{
    float half;

    x += *rest;
    half = fabsf(x) < threshold ? 0 : rbt_half_to(rbt_half_of(x));
    x -= half;
    *rest = x - x == 0 ? x : 0;
#ifdef RBT_MUTANT_REST /* it is forgotten: the swarm must notice */
    *rest = 0;
#endif
    return half;
}

/* The same for an element of a sparse block. */
static float take_half_scattered(rbt_copy *copy, uint32_t place, float x, float threshold)
{
    bool is_new;
    uint64_t *bits = rbt_map_put(&copy->rests, place, &is_new);
    float rest;

    memcpy(&rest, bits, sizeof rest);
    x = take_half(x, threshold, &rest);
    memcpy(bits, &rest, sizeof rest);
    return x;
}

/* Rounds scattered increments that are to be sent. */
static void halve_scattered(rbt_copy *copy, rbt_snap *snap, float threshold)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < snap->count; k++) {
        float half = take_half_scattered(copy, snap->index[k], snap->f32[k], threshold);

        if (half == 0)
            continue;
        snap->index[count] = snap->index[k];
        snap->f32[count++] = half;
    }
    snap->count = count;
}

/* Where the rests of a block are kept. */
static float *rests_of(rbt_copy *copy)
{
    if (copy->rest == NULL)
        copy->rest = rbt_snap_create(RBT_F32, copy->buffer->length);
    return copy->rest->f32;
}

/* Rounds a buffer of increments: what is to be sent of them takes their place. */
static void halve_buffer(rbt_copy *copy, float threshold)
{
    float *rest = rests_of(copy), *x = copy->buffer->f32;

    for (uint32_t i = 0; i < copy->buffer->length; i++)
        if (x[i] != 0)
            x[i] = take_half(x[i], threshold, &rest[i]);
}

/* The scattered increments as a sparse snapshot, sorted by place, without those that are zero or below the threshold.
 */
static rbt_snap *gather_scattered(rbt_copy *copy, const rbt_layout *layout, uint32_t block, float threshold)
{
    uint64_t *places = rbt_alloc(copy->scattered.count, sizeof *places), place, bits;
    size_t cursor = 0, size = rbt_type_size(layout->type);
    uint32_t count = 0;
    rbt_snap *snap;

    while (rbt_map_next(&copy->scattered, &cursor, &place, &bits))
        if (!is_small(layout->type, bits, threshold))
            places[count++] = place;
    qsort(places, count, sizeof *places, compare_places);
    snap = rbt_snap_create_sparse(layout->type, rbt_layout_length(layout, block), count);
    for (uint32_t k = 0; k < count; k++) {
        snap->index[k] = (uint32_t)places[k];
        memcpy((char *)snap->value + k * size, rbt_map_get(&copy->scattered, places[k]), size);
    }
    rbt_free(places);
    rbt_map_deinit(&copy->scattered);
    return snap;
}

rbt_snap *rbt_cache_flush(rbt_cache *cache, uint32_t block, float threshold, bool keep)
{
    rbt_copy *copy = &cache->copies[block];
    rbt_snap *update;

    copy->early = 0;
    for (size_t i = 0; i < copy->own.count; i++)
        copy->own.at[i].early = 0; /* of a clock that has ended */
    if (copy->base == NULL)
        drop_own(copy, 0); /* the first copy that comes will have them */
    if (!copy->touched)
        return NULL;
    rbt_strips_clean_all(&copy->strips);
    copy->holds = false;
    if (cache->layout->sparse) {
        rbt_map held = may_hold(cache, copy) ? part_scattered(cache, copy) : (rbt_map){0};

        update = gather_scattered(copy, cache->layout, block, cache->is_half ? 0 : threshold);
        if (cache->is_half)
            halve_scattered(copy, update, threshold);
        copy->scattered = held;
        copy->holds = held.count > 0;
    } else {
        rbt_snap *held = may_hold(cache, copy) ? part_buffer(cache, copy) : NULL;

        if (cache->is_half)
            halve_buffer(copy, threshold);
        update = rbt_snap_pack(cache->layout->type, copy->buffer->length, copy->buffer->value,
                               cache->is_half ? 0 : threshold);
        memset(copy->buffer->value, 0, copy->buffer->length * rbt_type_size(cache->layout->type));
        copy->holds = held != NULL;
        if (held != NULL) {
            rbt_snap_unref(copy->buffer);
            copy->buffer = held;
        }
    }
    copy->touched = copy->holds;
    if (copy->holds && update->count == 0) { /* all of it stays */
        rbt_snap_unref(update);
        return NULL;
    }
    if (keep && copy->base != NULL)
        rbt_cache_keep(cache, block, update, 0);
    return update;
}

/* ----------------------------------------------------------------------------------------- managed communication */

void rbt_cache_keep(rbt_cache *cache, uint32_t block, rbt_snap *update, uint64_t early)
{
    rbt_own own = {.update = rbt_snap_ref(update), .early = early};

    rbt_array_push(&cache->copies[block].own, own);
}

void rbt_cache_patch(rbt_cache *cache, uint32_t block, const rbt_snap *values, uint64_t early)
{
    rbt_copy *copy = &cache->copies[block];
    size_t size = rbt_type_size(values->type);

    merge_own(copy);
    if (cache->layout->sparse && copy->base->form == RBT_SPARSE) {
        rbt_snap *both = rbt_snap_replace(copy->base, values);

        rbt_snap_unref(copy->base);
        copy->base = both;
    } else {
        rbt_snap_writable(&copy->base); /* dense, also if it came as a sparse one: the next patch will cost little */
        for (uint32_t k = 0; k < values->count; k++)
            memcpy((char *)copy->base->value + values->index[k] * size, (const char *)values->value + k * size, size);
    }
    for (size_t i = 0; i < copy->own.count; i++) {
        rbt_snap *missing;

        if (copy->own.at[i].early <= early)
            continue;
        missing = rbt_snap_where(copy->own.at[i].update, values);
        rbt_snap_add(&copy->base, missing, 1);
        rbt_snap_unref(missing);
    }
}

/* Is an element's increment one that is held back? */
static bool stays(const rbt_cache *cache, const rbt_copy *copy, uint32_t i, uint64_t bits)
{
    float increment, value;

    if (!may_hold(cache, copy))
        return false;
    memcpy(&increment, &bits, sizeof increment);
    rbt_snap_read(copy->base, i, 1, &value);
    return is_held(cache, value, increment);
}

/* The increment of one element of a sparse block. */
static uint32_t take_scattered(rbt_cache *cache, rbt_copy *copy, uint32_t place, float threshold, uint32_t *index,
                               void *values)
{
    const uint64_t *bits = rbt_map_get(&copy->scattered, place);
    float *value = values;

    if (bits == NULL || is_small(cache->layout->type, *bits, threshold) || stays(cache, copy, place, *bits))
        return 0;
    *index = place;
    memcpy(values, bits, rbt_type_size(cache->layout->type));
    (void)rbt_map_remove(&copy->scattered, place);
    if (!cache->is_half)
        return 1;
    *value = take_half_scattered(copy, place, *value, threshold);
    return *value != 0;
}

uint32_t rbt_cache_take_strip(rbt_cache *cache, uint32_t block, uint32_t strip, float threshold, uint32_t *index,
                              void *values)
{
    rbt_copy *copy = &cache->copies[block];
    size_t size = rbt_type_size(cache->layout->type);
    uint32_t first = rbt_strip_first(&copy->strips, strip), n = rbt_strip_length(&copy->strips, strip), count = 0;

    rbt_strips_clean(&copy->strips, strip);
    if (cache->layout->sparse)
        return take_scattered(cache, copy, first, threshold, index, values);
    for (uint32_t i = first; i < first + n; i++) {
        char *at = (char *)copy->buffer->value + i * size;
        uint64_t bits = 0;

        memcpy(&bits, at, size);
        if (is_small(cache->layout->type, bits, threshold) || stays(cache, copy, i, bits))
            continue;
        index[count] = i;
        memcpy((char *)values + count * size, at, size);
        memset(at, 0, size);
        if (cache->is_half) {
            float *value = (float *)values + count;

            *value = take_half(*value, threshold, &rests_of(copy)[i]);
            count += *value != 0;
        } else {
            count++;
        }
    }
    return count;
}
