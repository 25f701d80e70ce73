/* The kernels for AVX2: 16 lanes are two registers of floats or four of doubles.
 *
 * Called through the table of kernels.h on processors that have AVX2. Always: the rules of kernels_variants.h. The
 * functions carry their target as an attribute, so the file needs no compiler flags; FMA is not among the targets, so
 * no compiler can fuse. Proved by tests/unit/test_kernels.c: the same bits as the reference.
 */
#include "math/kernels_variants.h"

#if RBT_HAVE_X86

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* A mask whose first n of 8 elements are set; none when n <= 0, all when n >= 8. */
AVX2 static inline __m256i first_elements(long n)
{
    int count = n < 0 ? 0 : n > 8 ? 8 : (int)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Lanes 0 .. 7 and 8 .. 15: 16 -> 8 -> 4 -> 2 -> 1. */
AVX2 static inline float fold_f32(__m256 low, __m256 high)
{
    __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* Sixteen lanes of doubles: 0 .. 3, 4 .. 7, 8 .. 11, 12 .. 15. */
typedef struct lanes_f64 {
    __m256d a, b, c, d;
} lanes_f64;

AVX2 static inline double fold_f64(lanes_f64 lane)
{
    __m256d four = _mm256_add_pd(_mm256_add_pd(lane.a, lane.c), _mm256_add_pd(lane.b, lane.d));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

AVX2 static float dot(const float *a, const float *b, size_t n)
{
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        low = _mm256_add_ps(low, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
        high = _mm256_add_ps(high, _mm256_mul_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8)));
    }
    if (i < n) {
        __m256i first = first_elements((long)(n - i));
        low = _mm256_add_ps(low, _mm256_mul_ps(_mm256_maskload_ps(a + i, first), _mm256_maskload_ps(b + i, first)));
        if (n - i > 8) {
            __m256i second = first_elements((long)(n - i) - 8);
            high = _mm256_add_ps(
                high, _mm256_mul_ps(_mm256_maskload_ps(a + i + 8, second), _mm256_maskload_ps(b + i + 8, second)));
        }
    }
    return fold_f32(low, high);
}

/* Eight elements of w by index. The instruction takes signed indices: both ends are moved by 2^31. */
AVX2 static inline __m256 gather_8(const float *w, const uint32_t *index)
{
    const float *middle = (const float *)((uintptr_t)w + ((uintptr_t)1 << 33));
    __m256i at = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)index), _mm256_set1_epi32(INT32_MIN));
    return _mm256_i32gather_ps(middle, at, 4);
}

AVX2 static inline __m256 gather_masked(const float *w, const uint32_t *index, __m256i mask)
{
    const float *middle = (const float *)((uintptr_t)w + ((uintptr_t)1 << 33));
    __m256i at = _mm256_xor_si256(_mm256_maskload_epi32((const int *)index, mask), _mm256_set1_epi32(INT32_MIN));
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), middle, at, _mm256_castsi256_ps(mask), 4);
}

AVX2 static float dot_sparse(const uint32_t *index, const float *value, size_t n, const float *w)
{
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        low = _mm256_add_ps(low, _mm256_mul_ps(_mm256_loadu_ps(value + i), gather_8(w, index + i)));
        high = _mm256_add_ps(high, _mm256_mul_ps(_mm256_loadu_ps(value + i + 8), gather_8(w, index + i + 8)));
    }
    if (i < n) {
        __m256i first = first_elements((long)(n - i));
        low =
            _mm256_add_ps(low, _mm256_mul_ps(_mm256_maskload_ps(value + i, first), gather_masked(w, index + i, first)));
        if (n - i > 8) {
            __m256i second = first_elements((long)(n - i) - 8);
            high = _mm256_add_ps(high, _mm256_mul_ps(_mm256_maskload_ps(value + i + 8, second),
                                                     gather_masked(w, index + i + 8, second)));
        }
    }
    return fold_f32(low, high);
}

AVX2 static void axpy(float a, const float *restrict x, float *restrict y, size_t n)
{
    __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 low = _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_mul_ps(factor, _mm256_loadu_ps(x + i)));
        __m256 high = _mm256_add_ps(_mm256_loadu_ps(y + i + 8), _mm256_mul_ps(factor, _mm256_loadu_ps(x + i + 8)));
        _mm256_storeu_ps(y + i, low);
        _mm256_storeu_ps(y + i + 8, high);
    }
    for (; i < n; i++)
        y[i] += a * x[i];
}

AVX2 static void blend(float a, const float *restrict x, float b, const float *restrict y, float *restrict out,
                       size_t n)
{
    __m256 one = _mm256_set1_ps(a), other = _mm256_set1_ps(b);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_mul_ps(one, _mm256_loadu_ps(x + i)),
                                                _mm256_mul_ps(other, _mm256_loadu_ps(y + i))));
    for (; i < n; i++)
        out[i] = a * x[i] + b * y[i];
}

AVX2 static void scale(float a, float *x, size_t n)
{
    __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
        _mm256_storeu_ps(x + i + 8, _mm256_mul_ps(_mm256_loadu_ps(x + i + 8), factor));
    }
    for (; i < n; i++)
        x[i] *= a;
}

AVX2 static void add(const float *restrict x, float *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
        _mm256_storeu_ps(y + i + 8, _mm256_add_ps(_mm256_loadu_ps(y + i + 8), _mm256_loadu_ps(x + i + 8)));
    }
    for (; i < n; i++)
        y[i] += x[i];
}

AVX2 static void add_i32(const int32_t *restrict x, int32_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i sum = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(y + i)),
                                       _mm256_loadu_si256((const __m256i *)(x + i)));
        _mm256_storeu_si256((__m256i *)(y + i), sum);
    }
    for (; i < n; i++)
        y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)x[i]);
}

AVX2 static void add_i64(const int64_t *restrict x, int64_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m256i sum = _mm256_add_epi64(_mm256_loadu_si256((const __m256i *)(y + i)),
                                       _mm256_loadu_si256((const __m256i *)(x + i)));
        _mm256_storeu_si256((__m256i *)(y + i), sum);
    }
    for (; i < n; i++)
        y[i] = (int64_t)((uint64_t)y[i] + (uint64_t)x[i]);
}

AVX2 static void gather(const float *x, const uint32_t *index, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, gather_8(x, index + i));
    for (; i < n; i++)
        out[i] = x[index[i]];
}

AVX2 static inline __m256 absolute(__m256 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* Sixteen elements from x + i, the missing ones as +0.0. */
AVX2 static inline void load_tail(const float *x, size_t n, __m256 *low, __m256 *high)
{
    *low = _mm256_maskload_ps(x, first_elements((long)n));
    *high = n > 8 ? _mm256_maskload_ps(x + 8, first_elements((long)n - 8)) : _mm256_setzero_ps();
}

AVX2 static inline __m256d widen_low(__m256 x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

AVX2 static inline __m256d widen_high(__m256 x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

AVX2 static inline void add_absolute(lanes_f64 *lane, __m256 low, __m256 high)
{
    low = absolute(low);
    high = absolute(high);
    lane->a = _mm256_add_pd(lane->a, widen_low(low));
    lane->b = _mm256_add_pd(lane->b, widen_high(low));
    lane->c = _mm256_add_pd(lane->c, widen_low(high));
    lane->d = _mm256_add_pd(lane->d, widen_high(high));
}

AVX2 static double norm1(const float *x, size_t n)
{
    __m256d zero = _mm256_setzero_pd();
    lanes_f64 lane = {zero, zero, zero, zero};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        add_absolute(&lane, _mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + 8));
    if (i < n) {
        __m256 low, high;
        load_tail(x + i, n - i, &low, &high);
        add_absolute(&lane, low, high);
    }
    return fold_f64(lane);
}

AVX2 static inline __m256d square(__m256d x)
{
    return _mm256_mul_pd(x, x);
}

AVX2 static inline void add_squares(lanes_f64 *lane, __m256 low, __m256 high)
{
    lane->a = _mm256_add_pd(lane->a, square(widen_low(low)));
    lane->b = _mm256_add_pd(lane->b, square(widen_high(low)));
    lane->c = _mm256_add_pd(lane->c, square(widen_low(high)));
    lane->d = _mm256_add_pd(lane->d, square(widen_high(high)));
}

AVX2 static double norm2_squared(const float *x, size_t n)
{
    __m256d zero = _mm256_setzero_pd();
    lanes_f64 lane = {zero, zero, zero, zero};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        add_squares(&lane, _mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + 8));
    if (i < n) {
        __m256 low, high;
        load_tail(x + i, n - i, &low, &high);
        add_squares(&lane, low, high);
    }
    return fold_f64(lane);
}

/* An integer maximum of the sizes' bits; the reference says why. */
AVX2 static float norm_max(const float *x, size_t n)
{
    __m256i sizes = _mm256_set1_epi32(0x7fffffff);
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        low = _mm256_max_epi32(low, _mm256_and_si256(sizes, _mm256_loadu_si256((const __m256i *)(x + i))));
        high = _mm256_max_epi32(high, _mm256_and_si256(sizes, _mm256_loadu_si256((const __m256i *)(x + i + 8))));
    }
    if (i < n) {
        __m256 first, second;
        load_tail(x + i, n - i, &first, &second);
        low = _mm256_max_epi32(low, _mm256_and_si256(sizes, _mm256_castps_si256(first)));
        high = _mm256_max_epi32(high, _mm256_and_si256(sizes, _mm256_castps_si256(second)));
    }
    __m256i eight = _mm256_max_epi32(low, high);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    __m128i one = _mm_max_epi32(two, _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_cvtss_f32(_mm_castsi128_ps(one));
}

AVX2 static void sgd_step(float rate, float l2, float *restrict g, float *restrict w, float *restrict u, size_t n)
{
    __m256 rates = _mm256_set1_ps(rate);
    __m256 decay = _mm256_set1_ps(l2);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 weight = _mm256_loadu_ps(w + i);
        __m256 d = _mm256_mul_ps(rates, _mm256_add_ps(_mm256_loadu_ps(g + i), _mm256_mul_ps(decay, weight)));
        _mm256_storeu_ps(w + i, _mm256_add_ps(weight, d));
        _mm256_storeu_ps(u + i, _mm256_add_ps(_mm256_loadu_ps(u + i), d));
        _mm256_storeu_ps(g + i, _mm256_setzero_ps());
    }
    for (; i < n; i++) {
        float d = rate * (g[i] + l2 * w[i]);
        w[i] += d;
        u[i] += d;
        g[i] = 0;
    }
}

AVX2 static void logistic(const double *z, const double *y, size_t n, double *loss, double *slope, double *bend)
{
    if (slope != NULL)
        rbt_logistic(z, y, n, loss, slope, bend);
    else
        rbt_logistic(z, y, n, loss, NULL, NULL);
}

const rbt_kernels rbt_kernels_avx2 = {
    .name = "avx2",
    .dot = dot,
    .dot_sparse = dot_sparse,
    .axpy = axpy,
    .blend = blend,
    .axpy_sparse = rbt_axpy_sparse_portable,
    .scale = scale,
    .add = add,
    .add_i32 = add_i32,
    .add_i64 = add_i64,
    .gather = gather,
    .scatter = rbt_scatter_portable,
    .norm1 = norm1,
    .norm2_squared = norm2_squared,
    .norm_max = norm_max,
    .sgd_step = sgd_step,
    .logistic = logistic,
};

#else

typedef int rbt_kernels_avx2_absent; /* ISO C wants at least one declaration */

#endif
