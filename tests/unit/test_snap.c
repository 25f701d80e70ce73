/* Proves src/table/snap.c: random arithmetic on dense and sparse snapshots of every type against plain arrays;
 * copy-on-write (a held reference never changes); packing; what is kept and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "table/snap.h"

#define MOST 150

/* Plain values of any type. */
typedef union values {
    float f32[MOST];
    int32_t i32[MOST];
    int64_t i64[MOST];
} values;

static void random_values(rbt_rng *rng, rbt_type type, uint32_t n, values *v)
{
    uint64_t density = rbt_rng_below(rng, 11);

    memset(v, 0, sizeof *v);
    for (uint32_t i = 0; i < n; i++) {
        if (rbt_rng_below(rng, 10) >= density)
            continue;
        if (type == RBT_F32)
            v->f32[i] = (float)rbt_rng_normal(rng);
        else if (type == RBT_I32)
            v->i32[i] = (int32_t)(uint32_t)rbt_rng_u64(rng); /* sums wrap */
        else
            v->i64[i] = (int64_t)rbt_rng_u64(rng);
    }
}

static void model_add(rbt_type type, uint32_t n, values *to, const values *from, float factor)
{
    for (uint32_t i = 0; i < n; i++)
        if (type == RBT_F32)
            to->f32[i] += factor * from->f32[i];
        else if (type == RBT_I32)
            to->i32[i] = (int32_t)((uint32_t)to->i32[i] + (uint32_t)from->i32[i]);
        else
            to->i64[i] = (int64_t)((uint64_t)to->i64[i] + (uint64_t)from->i64[i]);
}

static void assert_sound(const rbt_snap *snap)
{
    assert_int_equal(snap->form == RBT_SPARSE, snap->index != NULL);
    assert_true(snap->form == RBT_SPARSE || snap->count == snap->length);
    for (uint32_t k = 0; snap->form == RBT_SPARSE && k < snap->count; k++)
        assert_true(snap->index[k] < snap->length && (k == 0 || snap->index[k - 1] < snap->index[k]));
    assert_int_equal(rbt_snap_bytes(snap),
                     snap->count * (rbt_type_size(snap->type) + (snap->form == RBT_SPARSE ? 4 : 0)));
}

static bool equal_at(rbt_type type, const values *a, uint32_t i, const values *b, uint32_t j)
{
    if (type == RBT_F32)
        return a->f32[i] == b->f32[j] || (isnan(a->f32[i]) && isnan(b->f32[j]));
    return type == RBT_I32 ? a->i32[i] == b->i32[j] : a->i64[i] == b->i64[j];
}

static void assert_holds(const rbt_snap *snap, const values *expected)
{
    values got;

    assert_sound(snap);
    rbt_snap_read(snap, 0, snap->length, &got);
    for (uint32_t i = 0; i < snap->length; i++)
        assert_true(equal_at(snap->type, &got, i, expected, i));
}

static rbt_snap *random_snap(rbt_rng *rng, rbt_type type, uint32_t n, values *v)
{
    rbt_snap *snap;

    random_values(rng, type, n, v);
    snap = rbt_snap_pack(type, n, v, 0);
    if (rbt_rng_below(rng, 4) == 0)
        rbt_snap_writable(&snap); /* dense although it is thin */
    return snap;
}

static void arithmetic_equals_plain_arrays_and_held_references_never_change(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        rbt_type type = (rbt_type)rbt_rng_below(&rng, 3);
        uint32_t n = (uint32_t)rbt_rng_below(&rng, MOST + 1);
        values model, held_model[10];
        rbt_snap *snap = random_snap(&rng, type, n, &model), *held[10];

        for (int step = 0; step < 10; step++) {
            values v;
            rbt_snap *from = random_snap(&rng, type, n, &v);
            float factor = type != RBT_F32 || rbt_rng_below(&rng, 2) == 0 ? 1 : (float)rbt_rng_normal(&rng);
            bool was_sparse = snap->form == RBT_SPARSE && from->form == RBT_SPARSE;

            held[step] = rbt_rng_below(&rng, 2) == 0 ? rbt_snap_ref(snap) : NULL;
            held_model[step] = model;
            rbt_snap_add(&snap, from, factor);
            model_add(type, n, &model, &v, factor);
            assert_holds(snap, &model);
            assert_holds(from, &v);
            if (was_sparse && snap->form == RBT_SPARSE)
                assert_true(snap->count == 0 || snap->count < n - n / 2);
            rbt_snap_unref(from);
        }
        for (int step = 0; step < 10; step++)
            if (held[step] != NULL) {
                assert_holds(held[step], &held_model[step]);
                rbt_snap_unref(held[step]);
            }
        rbt_snap_unref(snap);
    }
}

static void difference_equals_plain_arrays(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint32_t n = (uint32_t)rbt_rng_below(&rng, MOST + 1);
        float divisor = (float)(1 + rbt_rng_below(&rng, 9));
        values a, b, expected = {{0}};
        rbt_snap *x = random_snap(&rng, RBT_F32, n, &a), *y = random_snap(&rng, RBT_F32, n, &b);
        rbt_snap *d = rbt_snap_difference(x, y, divisor), *whole = rbt_snap_difference(x, NULL, divisor);

        for (uint32_t i = 0; i < n; i++)
            expected.f32[i] = (a.f32[i] - b.f32[i]) / divisor;
        assert_holds(d, &expected);
        for (uint32_t i = 0; i < n; i++)
            expected.f32[i] = a.f32[i] / divisor;
        assert_holds(whole, &expected);
        assert_holds(x, &a);
        assert_holds(y, &b);
        rbt_snap_unref(x);
        rbt_snap_unref(y);
        rbt_snap_unref(d);
        rbt_snap_unref(whole);
    }
}

static void any_range_can_be_read_and_added(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 3000; round++) {
        rbt_type type = (rbt_type)rbt_rng_below(&rng, 3);
        uint32_t n = (uint32_t)rbt_rng_below(&rng, MOST + 1);
        uint32_t first = (uint32_t)rbt_rng_below(&rng, n + 1), run = (uint32_t)rbt_rng_below(&rng, n - first + 1);
        values v, got, sum, slice = {{0}}, guard;
        rbt_snap *snap = random_snap(&rng, type, n, &v);

        random_values(&rng, type, MOST, &guard);
        got = sum = guard;
        rbt_snap_read(snap, first, run, &got);
        rbt_snap_read_add(snap, first, run, &sum);
        memcpy(&slice, (const char *)&v + first * rbt_type_size(type), run * rbt_type_size(type));
        for (uint32_t i = 0; i < run; i++)
            assert_true(equal_at(type, &got, i, &v, first + i));
        for (uint32_t i = run; i < MOST; i++)
            assert_true(equal_at(type, &got, i, &guard, i)); /* nothing behind the range is touched */
        model_add(type, MOST, &guard, &slice, 1);
        for (uint32_t i = 0; i < MOST; i++)
            assert_true(equal_at(type, &sum, i, &guard, i));
        rbt_snap_unref(snap);
    }
}

static void writable_copies_only_when_others_hold_it(void **state)
{
    rbt_snap *snap = rbt_snap_create(RBT_F32, 8), *zeros = rbt_snap_create(RBT_F32, 8), *same = snap, *other;

    (void)state;
    rbt_snap_writable(&snap);
    assert_ptr_equal(snap, same);
    other = rbt_snap_ref(snap);
    rbt_snap_writable(&snap);
    assert_ptr_not_equal(snap, other);
    snap->f32[3] = 5;
    assert_true(other->f32[3] == 0);
    same = snap;
    rbt_snap_unref(other);
    rbt_snap_add(&snap, zeros, 1); /* alone again: in place */
    assert_ptr_equal(snap, same);
    rbt_snap_unref(zeros);
    rbt_snap_unref(snap);
    rbt_snap_unref(NULL);
}

static void pack_drops_what_is_below_the_threshold(void **state)
{
    const float v[10] = {0, 1e-7f, -1e-7f, 1e-6f, -2, 0.5f, -0.0f, 9e-7f, 0, 0};
    const int32_t whole[4] = {0, 1, 0, 0};
    rbt_snap *snap = rbt_snap_pack(RBT_F32, 10, v, 1e-6f), *all = rbt_snap_pack(RBT_F32, 10, v, 0);
    rbt_snap *counts = rbt_snap_pack(RBT_I32, 4, whole, 100);

    (void)state;
    assert_int_equal(snap->form, RBT_SPARSE);
    assert_int_equal(snap->count, 3);
    assert_int_equal(snap->index[0], 3); /* as large as the threshold is large enough */
    assert_int_equal(snap->index[1], 4);
    assert_int_equal(snap->index[2], 5);
    assert_true(snap->f32[1] == -2);
    assert_int_equal(all->form, RBT_DENSE); /* 6 of 10: half or more is dense */
    assert_int_equal(counts->count, 1);     /* integers are never too small */
    rbt_snap_unref(snap);
    rbt_snap_unref(all);
    rbt_snap_unref(counts);
}

static void pack_is_dense_from_half_on_and_drops_there_too(void **state)
{
    float v[8] = {1, 2, 3, 0, 0, 0, 0, 1e-9f};
    rbt_snap *below = rbt_snap_pack(RBT_F32, 8, v, 1e-6f), *half, *empty;

    (void)state;
    assert_int_equal(below->form, RBT_SPARSE);
    v[4] = 4;
    half = rbt_snap_pack(RBT_F32, 8, v, 1e-6f);
    assert_int_equal(half->form, RBT_DENSE);
    assert_true(half->f32[4] == 4 && half->f32[7] == 0);
    empty = rbt_snap_pack(RBT_F32, 8, (float[8]){0}, 0);
    assert_int_equal(empty->form, RBT_SPARSE);
    assert_int_equal(empty->count, 0);
    rbt_snap_unref(below);
    rbt_snap_unref(half);
    rbt_snap_unref(empty);
}

static void thin_is_the_same_values_in_fewer_bytes(void **state)
{
    rbt_snap *snap = rbt_snap_create(RBT_F32, 10), *thin;
    float read[10];

    (void)state;
    snap->f32[3] = 1;
    snap->f32[7] = NAN;
    thin = rbt_snap_thin(snap);
    assert_true(thin != snap && thin->form == RBT_SPARSE && thin->count == 2);
    rbt_snap_read(thin, 0, 10, read);
    assert_memory_equal(read, snap->f32, sizeof read);
    rbt_snap_unref(thin);
    for (int i = 0; i < 5; i++)
        snap->f32[i] = 2;
    thin = rbt_snap_thin(snap);
    assert_ptr_equal(thin, snap); /* half of it: no smaller */
    rbt_snap_unref(thin);
    rbt_snap_unref(snap);
}

static void nan_is_kept_through_packing_and_adding(void **state)
{
    float v[8] = {0, 0, NAN, 0, 0, INFINITY, 0, 0}, got[8];
    rbt_snap *sparse = rbt_snap_pack(RBT_F32, 8, v, 1e-6f), *sum = rbt_snap_create(RBT_F32, 8);

    (void)state;
    assert_int_equal(sparse->count, 2);
    assert_true(isnan(sparse->f32[0]) && isinf(sparse->f32[1]));
    rbt_snap_add(&sum, sparse, 1);
    rbt_snap_read(sum, 0, 8, got);
    assert_true(isnan(got[2]) && isinf(got[5]) && got[0] == 0);
    rbt_snap_unref(sparse);
    rbt_snap_unref(sum);
}

/* Elements whose place has that bit of `which` set, as a sparse snapshot: `scale` times one more than the place. */
static rbt_snap *some_of(uint32_t which, float scale)
{
    rbt_snap *snap = rbt_snap_create_sparse(RBT_F32, 6, (uint32_t)__builtin_popcount(which));
    uint32_t count = 0;

    for (uint32_t i = 0; i < 6; i++)
        if (which >> i & 1) {
            snap->index[count] = i;
            snap->f32[count++] = scale * (float)(i + 1);
        }
    return snap;
}

static void elements_are_picked_and_replaced_by_place(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < 64; a++)
        for (uint32_t b = 0; b < 64; b++) {
            rbt_snap *base = some_of(a, 1), *newer = some_of(b, 10);
            rbt_snap *picked = rbt_snap_where(base, newer), *both = rbt_snap_replace(base, newer);
            rbt_snap *dense = rbt_snap_ref(base), *of_dense;
            float p[6], d[6], r[6];

            rbt_snap_writable(&dense);
            of_dense = rbt_snap_where(dense, newer);
            rbt_snap_read(picked, 0, 6, p);
            rbt_snap_read(of_dense, 0, 6, d);
            rbt_snap_read(both, 0, 6, r);
            for (uint32_t i = 0; i < 6; i++) {
                bool in_a = a >> i & 1, in_b = b >> i & 1;

                assert_true(p[i] == (in_a && in_b ? (float)(i + 1) : 0) && d[i] == p[i]);
                assert_true(r[i] == (in_b ? 10 * (float)(i + 1) : in_a ? (float)(i + 1) : 0));
            }
            assert_int_equal(picked->count, __builtin_popcount(a & b));
            assert_int_equal(both->count, __builtin_popcount(a | b));
            rbt_snap_unref(base);
            rbt_snap_unref(newer);
            rbt_snap_unref(picked);
            rbt_snap_unref(both);
            rbt_snap_unref(dense);
            rbt_snap_unref(of_dense);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_equals_plain_arrays_and_held_references_never_change),
        cmocka_unit_test(difference_equals_plain_arrays),
        cmocka_unit_test(any_range_can_be_read_and_added),
        cmocka_unit_test(writable_copies_only_when_others_hold_it),
        cmocka_unit_test(pack_drops_what_is_below_the_threshold),
        cmocka_unit_test(pack_is_dense_from_half_on_and_drops_there_too),
        cmocka_unit_test(thin_is_the_same_values_in_fewer_bytes),
        cmocka_unit_test(elements_are_picked_and_replaced_by_place),
        cmocka_unit_test(nan_is_kept_through_packing_and_adding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
