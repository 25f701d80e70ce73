/* Proves src/math/kernels*.c: every variant gives the bits of the 16-lane law, on any length, alignment and value.
 *
 * The law is written down once more here, as plainly as possible; the portable variant must keep it, and the variants
 * of this processor must equal the portable one bit for bit (NaN equals NaN). Vectors end at a page that may not be
 * touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "math/bench_free.h"
#include "math/functions.h"
#include "math/kernels.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONGEST = 3000, THREADS = 8 };

static const rbt_simd every_simd[] = {RBT_SIMD_PORTABLE, RBT_SIMD_AVX2, RBT_SIMD_AVX512};

/* So many bytes of memory that end where the process may not read or write. */
typedef struct walled {
    unsigned char *pages;
    size_t mapped;
    void *at;
} walled;

static walled walled_create(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (bytes + page - 1) / page * page;
    walled w = {.mapped = usable + page};
    w.pages = mmap(NULL, w.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(w.pages, MAP_FAILED);
    assert_int_equal(mprotect(w.pages + usable, page, PROT_NONE), 0);
    w.at = w.pages + usable - bytes;
    return w;
}

static void walled_destroy(walled *w)
{
    munmap(w->pages, w->mapped);
}

static void assert_same_f32(float a, float b, size_t n)
{
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
        fail_msg("%a differs from %a at length %zu", (double)a, (double)b, n);
}

static void assert_same_f64(double a, double b, size_t n)
{
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
        fail_msg("%a differs from %a at length %zu", a, b, n);
}

static void assert_same_vector(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_same_f32(a[i], b[i], n);
}

/* Ordinary numbers; or, when wild, also zeros of both signs, denormals, huge ones; or, when broken, inf and NaN too. */
typedef enum mood { ORDINARY, WILD, BROKEN } mood;

static float draw(rbt_rng *rng, mood m)
{
    static const float odd[] = {0.0f, -0.0f, 1e-45f, -1e-40f, 1.17549435e-38f, 3e38f, -3e38f, 1e-30f, 1e30f, 1.0f};
    uint64_t dice = rbt_rng_below(rng, 64);
    if (m == BROKEN && dice == 0)
        return rbt_rng_below(rng, 2) ? INFINITY : -INFINITY;
    if (m == BROKEN && dice == 1)
        return rbt_rng_below(rng, 2) ? NAN : -NAN;
    if (m != ORDINARY && dice < 24)
        return odd[rbt_rng_below(rng, sizeof odd / sizeof odd[0])];
    return (float)rbt_rng_normal(rng);
}

static void fill(rbt_rng *rng, mood m, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw(rng, m);
}

/* Every length to 100, then some: 0, 1, odd, whole and broken blocks of 16. */
static size_t length_of(rbt_rng *rng, size_t trial)
{
    return trial <= 100 ? trial : (size_t)rbt_rng_below(rng, LONGEST + 1);
}

/* ----------------------------------------------------------------------------- the law, and the portable variant */

static float law_fold_f32(float *lane)
{
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] = lane[k] + lane[k + half];
    return lane[0];
}

static double law_fold_f64(double *lane)
{
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] = lane[k] + lane[k + half];
    return lane[0];
}

static void portable_sums_follow_the_16_lane_law(void **state)
{
    (void)state;
    const rbt_kernels *k = rbt_kernels_of(RBT_SIMD_PORTABLE);
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    static float a[LONGEST], b[LONGEST];
    static uint32_t index[LONGEST];
    for (size_t trial = 0; trial < 200; trial++) {
        size_t n = length_of(&rng, trial);
        mood m = trial % 2 ? WILD : ORDINARY;
        fill(&rng, m, a, n);
        fill(&rng, m, b, n);
        float dot[16] = {0}, sparse[16] = {0};
        double one[16] = {0}, two[16] = {0};
        for (size_t i = 0; i < n; i++) {
            index[i] = (uint32_t)rbt_rng_below(&rng, n);
            volatile float product = a[i] * b[i]; /* rounded before it is added */
            dot[i % 16] += product;
            product = a[i] * b[index[i]];
            sparse[i % 16] += product;
            one[i % 16] += fabs((double)a[i]);
            two[i % 16] += (double)a[i] * (double)a[i];
        }
        assert_same_f32(k->dot(a, b, n), law_fold_f32(dot), n);
        assert_same_f32(k->dot_sparse(index, a, n, b), law_fold_f32(sparse), n);
        assert_same_f64(k->norm1(a, n), law_fold_f64(one), n);
        assert_same_f64(k->norm2_squared(a, n), law_fold_f64(two), n);
    }
}

static void portable_elementwise_kernels_do_what_the_header_says(void **state)
{
    (void)state;
    const rbt_kernels *k = rbt_kernels_of(RBT_SIMD_PORTABLE);
    const float x[3] = {1, 2, -3};
    float y[3] = {10, 20, 30};
    k->axpy(2, x, y, 3);
    assert_true(y[0] == 12 && y[1] == 24 && y[2] == 24);
    float blended[3];
    k->blend(2, x, -1, y, blended, 3);
    assert_true(blended[0] == -10 && blended[1] == -20 && blended[2] == -30);
    k->scale(0.5f, y, 3);
    assert_true(y[0] == 6 && y[1] == 12 && y[2] == 12);
    k->add(x, y, 3);
    assert_true(y[0] == 7 && y[1] == 14 && y[2] == 9);
    assert_true(k->norm_max(x, 3) == 3 && k->norm_max(x, 0) == 0);

    const uint32_t index[4] = {2, 0, 2, 2};
    const float value[4] = {1, 2, 3, 4};
    k->axpy_sparse(10, index, value, 4, y);
    assert_true(y[0] == 27 && y[1] == 14 && y[2] == 89);
    float out[4];
    k->gather(y, index, 4, out);
    assert_true(out[0] == 89 && out[1] == 27 && out[2] == 89 && out[3] == 89);
    k->scatter(value, index, 4, y);
    assert_true(y[0] == 2 && y[1] == 14 && y[2] == 4); /* the last one stays */

    const int32_t i[2] = {INT32_MAX, 5};
    int32_t j[2] = {1, 6};
    k->add_i32(i, j, 2);
    assert_true(j[0] == INT32_MIN && j[1] == 11);
    const int64_t l[2] = {INT64_MIN, 5};
    int64_t m[2] = {-1, 6};
    k->add_i64(l, m, 2);
    assert_true(m[0] == INT64_MAX && m[1] == 11);

    float g[2] = {4, 8}, w[2] = {2, 4}, u[2] = {1, 1};
    k->sgd_step(-0.5f, 2, g, w, u, 2);
    assert_true(g[0] == 0 && g[1] == 0 && w[0] == -2 && w[1] == -4 && u[0] == -3 && u[1] == -7);
}

/* ------------------------------------------------------------------------------- every variant against the portable */

static void compare_sums(const rbt_kernels *k, const rbt_kernels *reference, rbt_rng *rng, size_t n, mood m)
{
    walled wa = walled_create(n * sizeof(float)), wb = walled_create(n * sizeof(float));
    walled wi = walled_create(n * sizeof(uint32_t));
    float *a = wa.at, *b = wb.at;
    uint32_t *index = wi.at;
    fill(rng, m, a, n);
    fill(rng, m, b, n);
    for (size_t i = 0; i < n; i++)
        index[i] = (uint32_t)rbt_rng_below(rng, n);
    /* Starting within the vector gives the unaligned cases. */
    for (size_t from = 0; from <= 3 && from <= n; from++) {
        size_t left = n - from;
        assert_same_f32(k->dot(a + from, b + from, left), reference->dot(a + from, b + from, left), left);
        assert_same_f32(k->dot_sparse(index + from, a + from, left, b),
                        reference->dot_sparse(index + from, a + from, left, b), left);
        assert_same_f64(k->norm1(a + from, left), reference->norm1(a + from, left), left);
        assert_same_f64(k->norm2_squared(a + from, left), reference->norm2_squared(a + from, left), left);
        assert_same_f32(k->norm_max(a + from, left), reference->norm_max(a + from, left), left);
    }
    walled_destroy(&wa);
    walled_destroy(&wb);
    walled_destroy(&wi);
}

/* Runs a kernel that writes on two copies, one per variant; what lies before the vector must stay as it was. */
static void compare_writes(const rbt_kernels *k, const rbt_kernels *reference, rbt_rng *rng, size_t n, mood m)
{
    enum { BEFORE = 3 };
    walled wx = walled_create(n * sizeof(float)), wi = walled_create(n * sizeof(uint32_t));
    walled w[6];
    float *v[6]; /* three vectors for each variant */
    float *x = wx.at;
    uint32_t *index = wi.at;
    fill(rng, m, x, n);
    for (size_t i = 0; i < n; i++)
        index[i] = (uint32_t)rbt_rng_below(rng, n);
    for (size_t s = 0; s < 6; s++) {
        w[s] = walled_create((n + BEFORE) * sizeof(float));
        v[s] = (float *)w[s].at + BEFORE;
    }
    for (size_t s = 0; s < 3; s++) {
        fill(rng, m, v[s] - BEFORE, n + BEFORE);
        memcpy(v[s + 3] - BEFORE, v[s] - BEFORE, (n + BEFORE) * sizeof(float));
    }
    float a = draw(rng, m == BROKEN ? WILD : m);
    const rbt_kernels *both[2] = {k, reference};
    for (size_t side = 0; side < 2; side++) {
        float *const *mine = v + side * 3;
        both[side]->axpy(a, x, mine[0], n);
        both[side]->axpy_sparse(a, index, x, n, mine[0]);
        both[side]->blend(a, mine[0], 0.3f, x, mine[2], n);
        both[side]->add(mine[2], mine[1], n);
        both[side]->add(x, mine[1], n);
        both[side]->scatter(x, index, n, mine[2]);
        both[side]->sgd_step(a, 0.01f, mine[0], mine[1], mine[2], n);
        both[side]->scale(a, mine[1], n);
        both[side]->gather(x, index, n, mine[0]);
    }
    for (size_t s = 0; s < 3; s++)
        assert_same_vector(v[s] - BEFORE, v[s + 3] - BEFORE, n + BEFORE);
    for (size_t s = 0; s < 6; s++)
        walled_destroy(&w[s]);
    walled_destroy(&wx);
    walled_destroy(&wi);
}

/* Also the bits of the functions of one number. */
static void compare_logistic(const rbt_kernels *k, rbt_rng *rng, size_t n)
{
    walled w[5];
    double *v[5];
    for (size_t s = 0; s < 5; s++) {
        w[s] = walled_create(n * sizeof(double));
        v[s] = w[s].at;
    }
    for (size_t i = 0; i < n; i++) {
        v[0][i] = rbt_rng_below(rng, 20) == 0 ? INFINITY : 800 * (rbt_rng_f64(rng) - 0.5) * rbt_rng_f64(rng);
        v[1][i] = rbt_rng_below(rng, 2) == 0 ? -1 : 1;
    }
    for (size_t alone = 0; alone < 2; alone++) {
        memset(v[2], 0, n * sizeof(double));
        k->logistic(v[0], v[1], n, v[2], alone ? NULL : v[3], alone ? NULL : v[4]);
        for (size_t i = 0; i < n; i++) {
            double x = -v[1][i] * v[0][i], loss = rbt_softplus(x), slope = -v[1][i] * rbt_sigmoid(x);
            double e = rbt_exp(-fabs(x)), bend = 1 / (1 + e) * (e / (1 + e));
            assert_memory_equal(&v[2][i], &loss, sizeof loss);
            assert_memory_equal(&v[3][i], &slope, sizeof slope);
            assert_memory_equal(&v[4][i], &bend, sizeof bend);
        }
    }
    for (size_t s = 0; s < 5; s++)
        walled_destroy(&w[s]);
}

static void compare_integers(const rbt_kernels *k, const rbt_kernels *reference, rbt_rng *rng, size_t n)
{
    walled w[3];
    for (size_t s = 0; s < 3; s++)
        w[s] = walled_create(n * sizeof(int64_t));
    int64_t *x = w[0].at, *y = w[1].at, *z = w[2].at;
    for (size_t i = 0; i < n; i++) {
        x[i] = (int64_t)rbt_rng_u64(rng);
        y[i] = z[i] = (int64_t)rbt_rng_u64(rng);
    }
    k->add_i64(x, y, n);
    reference->add_i64(x, z, n);
    assert_memory_equal(y, z, n * sizeof(int64_t));
    size_t narrow = n * 2;
    k->add_i32((int32_t *)(void *)x, (int32_t *)(void *)y, narrow);
    reference->add_i32((int32_t *)(void *)x, (int32_t *)(void *)z, narrow);
    assert_memory_equal(y, z, n * sizeof(int64_t));
    for (size_t s = 0; s < 3; s++)
        walled_destroy(&w[s]);
}

static void every_variant_gives_the_bits_of_the_portable_one(void **state)
{
    (void)state;
    const rbt_kernels *reference = rbt_kernels_of(RBT_SIMD_PORTABLE);
    for (size_t s = 0; s < 3; s++) {
        const rbt_kernels *k = rbt_kernels_of(every_simd[s]);
        if (k == NULL) {
            print_message("variant %zu is not on this processor\n", s);
            continue;
        }
        rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, s);
        for (size_t trial = 0; trial < 300; trial++) {
            size_t n = length_of(&rng, trial % 150);
            mood m = (mood)(trial % 3);
            compare_sums(k, reference, &rng, n, m);
            compare_writes(k, reference, &rng, n, m);
            compare_integers(k, reference, &rng, n);
            compare_logistic(k, &rng, n);
        }
    }
}

static void no_variant_fuses_a_multiply_with_an_add(void **state)
{
    (void)state;
    /* x*x is 1 + 2^-11 + 2^-24, rounded 1 + 2^-11: a fused operation would leave 2^-24. */
    const float x = 1 + 0x1p-12f, minus = -(1 + 0x1p-11f);
    for (size_t s = 0; s < 3; s++) {
        const rbt_kernels *k = rbt_kernels_of(every_simd[s]);
        if (k == NULL)
            continue;
        float a[32] = {0}, b[32] = {0};
        uint32_t index[32];
        for (size_t i = 0; i < 16; i++) {
            a[i] = minus;
            b[i] = 1;
            a[i + 16] = b[i + 16] = x;
        }
        for (uint32_t i = 0; i < 32; i++)
            index[i] = i;
        for (size_t n = 17; n <= 32; n++) { /* in each lane */
            float expected = minus * (float)(32 - n);
            assert_true(fabsf(k->dot(a, b, n) - expected) < 1e-5f && (n < 32 || k->dot(a, b, n) == 0));
            assert_true(k->dot(a, b, n) == k->dot_sparse(index, a, n, b));
        }
        float y[32], g[32], u[32];
        for (size_t n = 1; n <= 32; n++) {
            for (size_t i = 0; i < n; i++) {
                a[i] = x;
                y[i] = g[i] = minus;
                u[i] = 0;
            }
            k->blend(x, a, 1, y, u, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(u[i] == 0);
                u[i] = 0;
            }
            k->axpy(x, a, y, n);
            k->sgd_step(1, x, g, a, u, n);
            for (size_t i = 0; i < n; i++)
                assert_true(y[i] == 0 && u[i] == 0 && a[i] == x);
            for (size_t i = 0; i < n; i++) {
                g[i] = x;
                a[i] = u[i] = minus;
            }
            k->sgd_step(x, 0, g, a, u, n);
            for (size_t i = 0; i < n; i++)
                assert_true(a[i] == 0 && u[i] == 0);
        }
    }
}

static void norm_max_never_loses_a_nan(void **state)
{
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        const rbt_kernels *k = rbt_kernels_of(every_simd[s]);
        if (k == NULL)
            continue;
        for (size_t n = 1; n <= 70; n++) {
            float x[70];
            for (size_t i = 0; i < n; i++)
                x[i] = i % 2 ? INFINITY : -3;
            for (size_t at = 0; at < n; at++) {
                float before = x[at];
                x[at] = at % 2 ? NAN : -NAN;
                assert_true(isnan(k->norm_max(x, n)));
                x[at] = before;
            }
            assert_true(k->norm_max(x, n) == (n > 1 ? INFINITY : 3));
        }
    }
}

static void kernels_take_empty_vectors(void **state)
{
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        const rbt_kernels *k = rbt_kernels_of(every_simd[s]);
        if (k == NULL)
            continue;
        assert_same_f32(k->dot(NULL, NULL, 0), 0, 0);
        assert_same_f32(k->dot_sparse(NULL, NULL, 0, NULL), 0, 0);
        assert_same_f64(k->norm1(NULL, 0), 0, 0);
        assert_same_f64(k->norm2_squared(NULL, 0), 0, 0);
        assert_same_f32(k->norm_max(NULL, 0), 0, 0);
        k->gather(NULL, NULL, 0, NULL);
        k->scale(2, NULL, 0);
    }
}

static void indices_beyond_two_thousand_million_reach_their_element(void **state)
{
    (void)state;
    const uint32_t index[19] = {0, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0, 0,          0,          0, 0,
                                0, 0,          0,          0,          0,          0, 0xfffffffe, 0x80000000, 1};
    size_t bytes = (size_t)16 << 30; /* address space only: a handful of pages is touched */
    float *w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w == MAP_FAILED)
        skip();
    w[0x7fffffff] = 1;
    w[0x80000000] = 2;
    w[0x80000001] = 4;
    w[0xffffffff] = 8;
    w[0xfffffffe] = 16;
    w[1] = 32;
    float value[19];
    for (size_t i = 0; i < 19; i++)
        value[i] = 1;
    for (size_t s = 0; s < 3; s++) {
        const rbt_kernels *k = rbt_kernels_of(every_simd[s]);
        if (k == NULL)
            continue;
        assert_true(k->dot_sparse(index, value, 19, w) == 65);
        float out[19];
        k->gather(w, index, 19, out);
        for (size_t i = 0; i < 19; i++)
            assert_true(out[i] == w[index[i]]);
    }
    munmap(w, bytes);
}

/* ------------------------------------------------------------------------------------------------------ the choice */

static void *choose(void *argument)
{
    *(const rbt_kernels **)argument = rbt_kernels_best();
    return NULL;
}

static void threads_agree_on_the_best_variant(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    const rbt_kernels *chosen[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, choose, &chosen[t]), 0);
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(thread[t], NULL), 0);
    for (size_t t = 0; t < THREADS; t++)
        assert_ptr_equal(chosen[t], rbt_kernels_best());
    const rbt_kernels *best = NULL;
    for (size_t s = 0; s < 3; s++)
        if (rbt_kernels_of(every_simd[s]) != NULL)
            best = rbt_kernels_of(every_simd[s]);
    assert_ptr_equal(rbt_kernels_best(), best);
}

static void the_benchmarks_loops_compute_the_same_up_to_rounding(void **state)
{
    (void)state;
    const rbt_kernels *k = rbt_kernels_best(), *loops = rbt_bench_free();
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    static float a[1001], b[1001], c[1001];
    fill(&rng, ORDINARY, a, 1001);
    fill(&rng, ORDINARY, b, 1001);
    memcpy(c, b, sizeof c);
    assert_true(fabsf(k->dot(a, b, 1001) - loops->dot(a, b, 1001)) < 1e-3f);
    assert_true(fabs(k->norm1(a, 1001) - loops->norm1(a, 1001)) < 1e-9);
    assert_true(fabs(k->norm2_squared(a, 1001) - loops->norm2_squared(a, 1001)) < 1e-9);
    assert_true(k->norm_max(a, 1001) == loops->norm_max(a, 1001));
    k->axpy(0.5f, a, b, 1001);
    loops->axpy(0.5f, a, c, 1001);
    for (size_t i = 0; i < 1001; i++)
        assert_true(fabsf(b[i] - c[i]) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_sums_follow_the_16_lane_law),
        cmocka_unit_test(portable_elementwise_kernels_do_what_the_header_says),
        cmocka_unit_test(every_variant_gives_the_bits_of_the_portable_one),
        cmocka_unit_test(no_variant_fuses_a_multiply_with_an_add),
        cmocka_unit_test(norm_max_never_loses_a_nan),
        cmocka_unit_test(kernels_take_empty_vectors),
        cmocka_unit_test(indices_beyond_two_thousand_million_reach_their_element),
        cmocka_unit_test(threads_agree_on_the_best_variant),
        cmocka_unit_test(the_benchmarks_loops_compute_the_same_up_to_rounding),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
