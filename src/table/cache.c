/* Cached copies and the update buffer; the contract is in cache.h. */
#include "table/cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/kernels.h"

void rbt_cache_init(rbt_cache *cache, const rbt_layout *layout)
{
    *cache = (rbt_cache){.layout = layout};
    cache->copies = rbt_alloc(layout->blocks, sizeof *cache->copies);
}

static void drop_own(rbt_copy *copy)
{
    for (size_t i = 0; i < copy->own.count; i++)
        rbt_snap_unref(copy->own.at[i]);
    copy->own.count = 0;
}

void rbt_cache_deinit(rbt_cache *cache)
{
    for (uint32_t block = 0; cache->copies != NULL && block < cache->layout->blocks; block++) {
        rbt_copy *copy = &cache->copies[block];

        drop_own(copy);
        rbt_array_free(&copy->own);
        for (size_t i = 0; i < copy->aside.count; i++)
            rbt_snap_unref(copy->aside.at[i].update);
        rbt_array_free(&copy->aside);
        rbt_snap_unref(copy->base);
        rbt_snap_unref(copy->buffer);
        rbt_map_deinit(&copy->scattered);
    }
    rbt_free(cache->copies);
    cache->copies = NULL;
}

void rbt_cache_adopt(rbt_cache *cache, uint32_t block, rbt_snap *base, uint64_t slowest, uint64_t included,
                     uint64_t version)
{
    rbt_copy *copy = &cache->copies[block];

    if (cache->has_tags && copy->touched && rbt_copy_tag(copy) != version) {
        rbt_part_aside aside = {.version = rbt_copy_tag(copy), .update = rbt_cache_flush(cache, block, 0, false)};

        rbt_array_push(&copy->aside, aside);
    }
    rbt_snap_ref(base);
    rbt_snap_unref(copy->base);
    drop_own(copy);
    copy->base = base;
    copy->slowest = slowest;
    copy->included = included;
    copy->version = version;
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

static void add_scattered(const rbt_copy *copy, rbt_type type, uint32_t offset, uint32_t n, void *out)
{
    size_t cursor = 0, size = rbt_type_size(type);
    uint64_t place, bits, sum = 0;

    while (rbt_map_next(&copy->scattered, &cursor, &place, &bits))
        if (place >= offset && place - offset < n) {
            char *at = (char *)out + (place - offset) * size;

            sum = add_bits(type, bits, at);
            memcpy(at, &sum, size);
        }
}

void rbt_cache_read(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, void *out)
{
    rbt_copy *copy = &cache->copies[block];

    for (size_t i = 0; copy->base != NULL && i < copy->own.count; i++)
        rbt_snap_add(&copy->base, copy->own.at[i], 1);
    if (copy->base != NULL) {
        drop_own(copy);
        rbt_snap_read(copy->base, offset, n, out);
    } else {
        memset(out, 0, n * rbt_type_size(cache->layout->type));
    }
    if (cache->is_read_only)
        return;
    if (copy->touched && copy->buffer != NULL)
        rbt_snap_read_add(copy->buffer, offset, n, out);
    if (copy->scattered.count > 0)
        add_scattered(copy, cache->layout->type, offset, n, out);
}

void rbt_cache_increment(rbt_cache *cache, uint32_t block, uint32_t offset, uint32_t n, const void *deltas)
{
    rbt_copy *copy = &cache->copies[block];
    rbt_type type = cache->layout->type;
    size_t size = rbt_type_size(type);

    copy->touched = true;
    if (cache->layout->sparse) {
        for (uint32_t i = 0; i < n; i++) {
            bool is_new;
            uint64_t *bits = rbt_map_put(&copy->scattered, offset + i, &is_new);

            *bits = add_bits(type, *bits, (const char *)deltas + i * size);
        }
        return;
    }
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
typedef struct strip {
    uint64_t first, width; /* columns */
    void *at;
} strip;

static strip strip_of(rbt_cache *cache, uint64_t row, uint64_t col)
{
    const rbt_layout *layout = cache->layout;
    uint32_t block = rbt_layout_block(layout, row, col);
    uint64_t first = col - col % layout->block_cols;
    rbt_copy *copy = &cache->copies[block];

    copy->touched = true;
    if (copy->buffer == NULL)
        copy->buffer = rbt_snap_create(layout->type, rbt_layout_length(layout, block));
    return (strip){first, rbt_layout_run(layout, first),
                   (char *)copy->buffer->value + rbt_layout_offset(layout, row, first) * rbt_type_size(layout->type)};
}

void rbt_cache_increment_keys(rbt_cache *cache, uint64_t row, const uint64_t *cols, size_t n, const void *deltas)
{
    const rbt_layout *layout = cache->layout;
    size_t size = rbt_type_size(layout->type);
    strip s = {0};

    for (size_t i = 0; layout->sparse && i < n; i++)
        rbt_cache_increment(cache, rbt_layout_block(layout, row, cols[i]), rbt_layout_offset(layout, row, cols[i]), 1,
                            (const char *)deltas + i * size);
    for (size_t i = 0; !layout->sparse && i < n; i++) {
        if (cols[i] - s.first >= s.width)
            s = strip_of(cache, row, cols[i]);
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

    if (!copy->touched)
        return NULL;
    if (cache->layout->sparse) {
        update = gather_scattered(copy, cache->layout, block, threshold);
    } else {
        update = rbt_snap_pack(cache->layout->type, copy->buffer->length, copy->buffer->value, threshold);
        memset(copy->buffer->value, 0, copy->buffer->length * rbt_type_size(cache->layout->type));
    }
    copy->touched = false;
    if (keep && copy->base != NULL)
        rbt_array_push(&copy->own, rbt_snap_ref(update));
    return update;
}
