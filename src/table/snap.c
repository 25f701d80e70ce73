/* Snapshots; the contract is in snap.h. */
#include "table/snap.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/kernels.h"

size_t rbt_type_size(rbt_type type)
{
    return type == RBT_I64 ? sizeof(int64_t) : sizeof(int32_t);
}

static rbt_snap *snap_empty(rbt_type type, rbt_form form, uint32_t length, uint32_t count)
{
    rbt_snap *snap = rbt_alloc(1, sizeof *snap);

    atomic_init(&snap->refs, 1);
    snap->type = type;
    snap->form = form;
    snap->length = length;
    snap->count = count;
    return snap;
}

static rbt_snap *snap_new(rbt_type type, rbt_form form, uint32_t length, uint32_t count)
{
    rbt_snap *snap = snap_empty(type, form, length, count);

    snap->value = rbt_alloc(count, rbt_type_size(type));
    snap->index = form == RBT_SPARSE ? rbt_alloc(count, sizeof *snap->index) : NULL;
    return snap;
}

rbt_snap *rbt_snap_create(rbt_type type, uint32_t length)
{
    return snap_new(type, RBT_DENSE, length, length);
}

rbt_snap *rbt_snap_create_sparse(rbt_type type, uint32_t length, uint32_t count)
{
    return snap_new(type, RBT_SPARSE, length, count);
}

/* Not cleared where there is much of it. What is small is there, and need not begin a line, which takes longer to find. */
static void *try_array(uint32_t count, size_t size)
{
    return count * size <= RBT_SMALL_BYTES ? rbt_alloc(count, size) : rbt_try_alloc_raw(count, size);
}

rbt_snap *rbt_snap_try_create(rbt_type type, rbt_form form, uint32_t length, uint32_t count)
{
    rbt_snap *snap = snap_empty(type, form, length, count);

    snap->value = try_array(count, rbt_type_size(type));
    if (snap->value != NULL && form == RBT_SPARSE)
        snap->index = try_array(count, sizeof *snap->index);
    if (snap->value == NULL || (form == RBT_SPARSE && snap->index == NULL)) {
        rbt_snap_unref(snap);
        return NULL;
    }
    return snap;
}

rbt_snap *rbt_snap_ref(rbt_snap *snap)
{
    atomic_fetch_add_explicit(&snap->refs, 1, memory_order_relaxed);
    return snap;
}

void rbt_snap_unref(rbt_snap *snap)
{
    if (snap == NULL || atomic_fetch_sub_explicit(&snap->refs, 1, memory_order_acq_rel) != 1)
        return;
    rbt_free(snap->value);
    rbt_free(snap->index);
    rbt_free(snap);
}

bool rbt_snap_is_mine(const rbt_snap *snap)
{
    /* Acquire: what others did before they let go is visible before we write. */
    return atomic_load_explicit(&snap->refs, memory_order_acquire) == 1;
}

static void snap_replace(rbt_snap **snap, rbt_snap *by)
{
    rbt_snap_unref(*snap);
    *snap = by;
}

static bool value_is_kept(rbt_type type, const void *values, uint32_t i, float threshold)
{
    switch (type) {
    case RBT_F32: {
        float x = ((const float *)values)[i];
        return !(fabsf(x) < threshold) && x != 0; /* a NaN is kept: it must be seen, not hidden */
    }
    case RBT_I32:
        return ((const int32_t *)values)[i] != 0;
    case RBT_I64:
        return ((const int64_t *)values)[i] != 0;
    }
    return true;
}

static void value_copy(rbt_type type, void *to, uint32_t i, const void *from, uint32_t j, uint32_t n)
{
    size_t size = rbt_type_size(type);

    memcpy((char *)to + i * size, (const char *)from + j * size, n * size);
}

/* How many values are kept. The f32 loop is written so that compilers vectorise it: every update passes here. */
static uint32_t count_kept(rbt_type type, uint32_t length, const void *values, float threshold)
{
    const float *f32 = values;
    uint32_t count = 0;

    if (type == RBT_F32)
        for (uint32_t i = 0; i < length; i++)
            count += (uint32_t)(!(fabsf(f32[i]) < threshold) & (f32[i] != 0));
    else
        for (uint32_t i = 0; i < length; i++)
            count += value_is_kept(type, values, i, threshold);
    return count;
}

static rbt_snap *pack_dense(rbt_type type, uint32_t length, const void *values, float threshold)
{
    rbt_snap *snap = rbt_snap_create(type, length);
    const float *f32 = values;

    if (type == RBT_F32)
        for (uint32_t i = 0; i < length; i++)
            snap->f32[i] = fabsf(f32[i]) < threshold ? 0 : f32[i];
    else
        value_copy(type, snap->value, 0, values, 0, length);
    return snap;
}

rbt_snap *rbt_snap_pack(rbt_type type, uint32_t length, const void *values, float threshold)
{
    uint32_t count = count_kept(type, length, values, threshold), k = 0;
    rbt_snap *snap;

    if (count >= length - length / 2)
        return pack_dense(type, length, values, threshold);
    snap = rbt_snap_create_sparse(type, length, count);
    for (uint32_t i = 0; i < length; i++)
        if (value_is_kept(type, values, i, threshold)) {
            snap->index[k] = i;
            value_copy(type, snap->value, k++, values, i, 1);
        }
    return snap;
}

rbt_snap *rbt_snap_thin(rbt_snap *snap)
{
    bool is_thin = snap->form == RBT_DENSE &&
                   count_kept(snap->type, snap->length, snap->value, 0) < snap->length - snap->length / 2;

    return is_thin ? rbt_snap_pack(snap->type, snap->length, snap->value, 0) : rbt_snap_ref(snap);
}

void rbt_snap_writable(rbt_snap **snap)
{
    rbt_snap *old = *snap, *copy;

    if (old->form == RBT_DENSE && rbt_snap_is_mine(old))
        return;
    copy = rbt_snap_create(old->type, old->length);
    rbt_snap_read(old, 0, old->length, copy->value);
    snap_replace(snap, copy);
}

/* Adds `from` into dense values that are ours. */
static void add_into_dense(rbt_type type, void *to, const rbt_snap *from, float factor)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    float *f32 = to;
    int32_t *i32 = to;
    int64_t *i64 = to;

    RBT_ASSERT(type == RBT_F32 || factor == 1);
    if (from->form == RBT_DENSE && type == RBT_F32 && factor == 1)
        kernels->add(from->f32, f32, from->length);
    else if (from->form == RBT_DENSE && type == RBT_F32)
        kernels->axpy(factor, from->f32, f32, from->length);
    else if (from->form == RBT_DENSE && type == RBT_I32)
        kernels->add_i32(from->i32, i32, from->length);
    else if (from->form == RBT_DENSE)
        kernels->add_i64(from->i64, i64, from->length);
    else if (type == RBT_F32)
        kernels->axpy_sparse(factor, from->index, from->f32, from->count, f32);
    else if (type == RBT_I32)
        for (uint32_t k = 0; k < from->count; k++)
            i32[from->index[k]] = (int32_t)((uint32_t)i32[from->index[k]] + (uint32_t)from->i32[k]);
    else
        for (uint32_t k = 0; k < from->count; k++)
            i64[from->index[k]] = (int64_t)((uint64_t)i64[from->index[k]] + (uint64_t)from->i64[k]);
}

/* How many elements two sparse snapshots store together. */
static uint32_t union_count(const rbt_snap *a, const rbt_snap *b)
{
    uint32_t i = 0, j = 0, count = 0;

    while (i < a->count && j < b->count) {
        uint32_t x = a->index[i], y = b->index[j];

        i += x <= y;
        j += y <= x;
        count++;
    }
    return count + (a->count - i) + (b->count - j);
}

/* The two snapshots' sum as a new sparse one. */
static rbt_snap *add_sparse(const rbt_snap *a, const rbt_snap *b, float factor)
{
    rbt_snap *sum = rbt_snap_create_sparse(a->type, a->length, union_count(a, b));
    uint32_t i = 0, j = 0;

    for (uint32_t k = 0; k < sum->count; k++) {
        bool take_a = j >= b->count || (i < a->count && a->index[i] <= b->index[j]);
        bool take_b = i >= a->count || (j < b->count && b->index[j] <= a->index[i]);

        sum->index[k] = take_a ? a->index[i] : b->index[j];
        if (a->type == RBT_F32)
            sum->f32[k] = (take_a ? a->f32[i] : 0) + (take_b ? factor * b->f32[j] : 0);
        else if (a->type == RBT_I32)
            sum->i32[k] = (int32_t)((take_a ? (uint32_t)a->i32[i] : 0) + (take_b ? (uint32_t)b->i32[j] : 0));
        else
            sum->i64[k] = (int64_t)((take_a ? (uint64_t)a->i64[i] : 0) + (take_b ? (uint64_t)b->i64[j] : 0));
        i += take_a;
        j += take_b;
    }
    return sum;
}

void rbt_snap_add(rbt_snap **to, const rbt_snap *from, float factor)
{
    RBT_ASSERT((*to)->type == from->type && (*to)->length == from->length);
    if (from->count == 0)
        return;
    if ((*to)->form == RBT_SPARSE && from->form == RBT_SPARSE) {
        rbt_snap *sum = add_sparse(*to, from, factor);

        snap_replace(to, sum);
        if (sum->count >= sum->length - sum->length / 2)
            rbt_snap_writable(to); /* more than half full: dense is smaller */
        return;
    }
    rbt_snap_writable(to);
    add_into_dense((*to)->type, (*to)->value, from, factor);
}

rbt_snap *rbt_snap_difference(const rbt_snap *a, const rbt_snap *b, float divisor)
{
    rbt_snap *difference;

    RBT_ASSERT(a->type == RBT_F32 && (b == NULL || (b->type == RBT_F32 && b->length == a->length)));
    if (b != NULL && a->form == RBT_SPARSE && b->form == RBT_SPARSE) {
        difference = add_sparse(a, b, -1);
    } else {
        difference = rbt_snap_create(RBT_F32, a->length);
        rbt_snap_read(a, 0, a->length, difference->value);
        if (b != NULL)
            add_into_dense(RBT_F32, difference->value, b, -1);
    }
    for (uint32_t k = 0; k < difference->count; k++)
        difference->f32[k] /= divisor;
    return difference;
}

/* The first stored element at or after `first`. */
static uint32_t sparse_find(const rbt_snap *snap, uint32_t first)
{
    uint32_t low = 0, high = snap->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (snap->index[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

rbt_snap *rbt_snap_where(const rbt_snap *from, const rbt_snap *values)
{
    rbt_snap *some = rbt_snap_create_sparse(from->type, from->length, values->count);
    size_t size = rbt_type_size(from->type);
    uint32_t i = 0, count = 0;

    for (uint32_t k = 0; k < from->count; k++) {
        uint32_t place = from->form == RBT_DENSE ? k : from->index[k];

        while (i < values->count && values->index[i] < place)
            i++;
        if (i == values->count)
            break;
        if (values->index[i] != place)
            continue;
        some->index[count] = place;
        memcpy((char *)some->value + count++ * size, (const char *)from->value + k * size, size);
    }
    some->count = count;
    return some;
}

rbt_snap *rbt_snap_replace(const rbt_snap *base, const rbt_snap *values)
{
    rbt_snap *both = rbt_snap_create_sparse(base->type, base->length, base->count + values->count);
    size_t size = rbt_type_size(base->type);
    uint32_t i = 0, k = 0, count = 0;

    while (i < base->count || k < values->count) {
        bool is_new = k < values->count && (i == base->count || values->index[k] <= base->index[i]);
        const rbt_snap *from = is_new ? values : base;
        uint32_t at = is_new ? k : i;

        if (is_new && i < base->count && base->index[i] == values->index[k])
            i++;
        both->index[count] = from->index[at];
        memcpy((char *)both->value + count++ * size, (const char *)from->value + at * size, size);
        k += is_new;
        i += !is_new;
    }
    both->count = count;
    return both;
}

void rbt_snap_read(const rbt_snap *snap, uint32_t first, uint32_t n, void *out)
{
    RBT_ASSERT(first <= snap->length && n <= snap->length - first);
    if (snap->form == RBT_DENSE) {
        value_copy(snap->type, out, 0, snap->value, first, n);
        return;
    }
    memset(out, 0, n * rbt_type_size(snap->type));
    for (uint32_t k = sparse_find(snap, first); k < snap->count && snap->index[k] - first < n; k++)
        value_copy(snap->type, out, snap->index[k] - first, snap->value, k, 1);
}

void rbt_snap_read_add(const rbt_snap *snap, uint32_t first, uint32_t n, void *out)
{
    uint32_t k = snap->form == RBT_DENSE ? first : sparse_find(snap, first);
    uint32_t end = snap->form == RBT_DENSE ? first + n : snap->count;

    RBT_ASSERT(first <= snap->length && n <= snap->length - first);
    for (; k < end; k++) {
        uint32_t i = snap->form == RBT_DENSE ? k - first : snap->index[k] - first;

        if (i >= n)
            break;
        if (snap->type == RBT_F32)
            ((float *)out)[i] += snap->f32[k];
        else if (snap->type == RBT_I32)
            ((int32_t *)out)[i] = (int32_t)(((uint32_t *)out)[i] + (uint32_t)snap->i32[k]);
        else
            ((int64_t *)out)[i] = (int64_t)(((uint64_t *)out)[i] + (uint64_t)snap->i64[k]);
    }
}

size_t rbt_snap_bytes(const rbt_snap *snap)
{
    return snap->count * (rbt_type_size(snap->type) + (snap->index != NULL ? sizeof *snap->index : 0));
}
