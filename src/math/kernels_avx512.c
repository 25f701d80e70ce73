/* The kernels for AVX-512 (the foundation, F, alone): 16 lanes are one register of floats or two of doubles.
 *
 * Called through the table of kernels.h on processors that have AVX-512F. Always: the rules of kernels_variants.h.
 * AVX-512F includes fused multiply-add, so the file relies on -ffp-contract=off (which -std=c17 implies for gcc and the
 * pragma says again for clang). Proved by tests/unit/test_kernels.c: the same bits as the reference.
 */
#include "math/kernels_variants.h"

#if RBT_HAVE_X86

#include <immintrin.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define AVX512 __attribute__((target("avx512f")))

/* A mask whose first n bits are set; n < 16. */
AVX512 static inline __mmask16 first_elements(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

AVX512 static inline __m256 upper_f32(__m512 x)
{
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
}

/* 16 -> 8 -> 4 -> 2 -> 1. */
AVX512 static inline float fold_f32(__m512 lane)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lane), upper_f32(lane));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* Lanes 0 .. 7 and 8 .. 15. */
AVX512 static inline double fold_f64(__m512d low, __m512d high)
{
    __m512d eight = _mm512_add_pd(low, high);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

AVX512 static float dot(const float *a, const float *b, size_t n)
{
    __m512 lane = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        lane = _mm512_add_ps(lane, _mm512_mul_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        lane =
            _mm512_add_ps(lane, _mm512_mul_ps(_mm512_maskz_loadu_ps(tail, a + i), _mm512_maskz_loadu_ps(tail, b + i)));
    }
    return fold_f32(lane);
}

/* Elements of w by index, where the mask is set; +0.0 elsewhere. The instruction takes signed indices: both ends are
 * moved by 2^31. */
AVX512 static inline __m512 gather_masked(const float *w, const uint32_t *index, __mmask16 mask)
{
    const float *middle = (const float *)((uintptr_t)w + ((uintptr_t)1 << 33));
    __m512i at = _mm512_xor_si512(_mm512_maskz_loadu_epi32(mask, index), _mm512_set1_epi32(INT32_MIN));
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, at, middle, 4);
}

AVX512 static float dot_sparse(const uint32_t *index, const float *value, size_t n, const float *w)
{
    __m512 lane = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        lane = _mm512_add_ps(lane, _mm512_mul_ps(_mm512_loadu_ps(value + i), gather_masked(w, index + i, 0xffff)));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        lane = _mm512_add_ps(lane,
                             _mm512_mul_ps(_mm512_maskz_loadu_ps(tail, value + i), gather_masked(w, index + i, tail)));
    }
    return fold_f32(lane);
}

AVX512 static void axpy(float a, const float *restrict x, float *restrict y, size_t n)
{
    __m512 factor = _mm512_set1_ps(a);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_add_ps(_mm512_loadu_ps(y + i), _mm512_mul_ps(factor, _mm512_loadu_ps(x + i))));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        __m512 product = _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(tail, x + i));
        _mm512_mask_storeu_ps(y + i, tail, _mm512_add_ps(_mm512_maskz_loadu_ps(tail, y + i), product));
    }
}

AVX512 static void blend(float a, const float *restrict x, float b, const float *restrict y, float *restrict out,
                         size_t n)
{
    __m512 one = _mm512_set1_ps(a), other = _mm512_set1_ps(b);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_add_ps(_mm512_mul_ps(one, _mm512_loadu_ps(x + i)),
                                                _mm512_mul_ps(other, _mm512_loadu_ps(y + i))));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        _mm512_mask_storeu_ps(out + i, tail,
                              _mm512_add_ps(_mm512_mul_ps(one, _mm512_maskz_loadu_ps(tail, x + i)),
                                            _mm512_mul_ps(other, _mm512_maskz_loadu_ps(tail, y + i))));
    }
}

AVX512 static void scale(float a, float *x, size_t n)
{
    __m512 factor = _mm512_set1_ps(a);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), factor));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        _mm512_mask_storeu_ps(x + i, tail, _mm512_mul_ps(_mm512_maskz_loadu_ps(tail, x + i), factor));
    }
}

AVX512 static void add(const float *restrict x, float *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_add_ps(_mm512_loadu_ps(y + i), _mm512_loadu_ps(x + i)));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(tail, y + i), _mm512_maskz_loadu_ps(tail, x + i));
        _mm512_mask_storeu_ps(y + i, tail, sum);
    }
}

AVX512 static void add_i32(const int32_t *restrict x, int32_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_si512(y + i, _mm512_add_epi32(_mm512_loadu_si512(y + i), _mm512_loadu_si512(x + i)));
    for (; i < n; i++)
        y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)x[i]);
}

AVX512 static void add_i64(const int64_t *restrict x, int64_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_si512(y + i, _mm512_add_epi64(_mm512_loadu_si512(y + i), _mm512_loadu_si512(x + i)));
    for (; i < n; i++)
        y[i] = (int64_t)((uint64_t)y[i] + (uint64_t)x[i]);
}

AVX512 static void gather(const float *x, const uint32_t *index, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, gather_masked(x, index + i, 0xffff));
    if (i < n) {
        __mmask16 tail = first_elements(n - i);
        _mm512_mask_storeu_ps(out + i, tail, gather_masked(x, index + i, tail));
    }
}

AVX512 static inline __m512i size_bits(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

AVX512 static inline void add_wide(__m512d *low, __m512d *high, __m512 x, bool square)
{
    __m512d first = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    __m512d second = _mm512_cvtps_pd(upper_f32(x));
    *low = _mm512_add_pd(*low, square ? _mm512_mul_pd(first, first) : first);
    *high = _mm512_add_pd(*high, square ? _mm512_mul_pd(second, second) : second);
}

AVX512 static double norm1(const float *x, size_t n)
{
    __m512d low = _mm512_setzero_pd();
    __m512d high = _mm512_setzero_pd();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        add_wide(&low, &high, _mm512_castsi512_ps(size_bits(_mm512_loadu_ps(x + i))), false);
    if (i < n) {
        __m512 tail = _mm512_maskz_loadu_ps(first_elements(n - i), x + i);
        add_wide(&low, &high, _mm512_castsi512_ps(size_bits(tail)), false);
    }
    return fold_f64(low, high);
}

AVX512 static double norm2_squared(const float *x, size_t n)
{
    __m512d low = _mm512_setzero_pd();
    __m512d high = _mm512_setzero_pd();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        add_wide(&low, &high, _mm512_loadu_ps(x + i), true);
    if (i < n)
        add_wide(&low, &high, _mm512_maskz_loadu_ps(first_elements(n - i), x + i), true);
    return fold_f64(low, high);
}

/* An integer maximum of the sizes' bits; the reference says why. */
AVX512 static float norm_max(const float *x, size_t n)
{
    __m512i largest = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        largest = _mm512_max_epi32(largest, size_bits(_mm512_loadu_ps(x + i)));
    if (i < n)
        largest = _mm512_max_epi32(largest, size_bits(_mm512_maskz_loadu_ps(first_elements(n - i), x + i)));
    __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(largest), _mm512_extracti64x4_epi64(largest, 1));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    __m128i one = _mm_max_epi32(two, _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_cvtss_f32(_mm_castsi128_ps(one));
}

AVX512 static inline void sgd_step_16(__m512 rate, __m512 l2, float *g, float *w, float *u, __mmask16 mask)
{
    __m512 weight = _mm512_maskz_loadu_ps(mask, w);
    __m512 d = _mm512_mul_ps(rate, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, g), _mm512_mul_ps(l2, weight)));
    _mm512_mask_storeu_ps(w, mask, _mm512_add_ps(weight, d));
    _mm512_mask_storeu_ps(u, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, u), d));
    _mm512_mask_storeu_ps(g, mask, _mm512_setzero_ps());
}

AVX512 static void sgd_step(float rate, float l2, float *restrict g, float *restrict w, float *restrict u, size_t n)
{
    __m512 rates = _mm512_set1_ps(rate);
    __m512 decay = _mm512_set1_ps(l2);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        sgd_step_16(rates, decay, g + i, w + i, u + i, 0xffff);
    if (i < n)
        sgd_step_16(rates, decay, g + i, w + i, u + i, first_elements(n - i));
}

AVX512 static void logistic(const double *z, const double *y, size_t n, double *loss, double *slope, double *bend)
{
    if (slope != NULL)
        rbt_logistic(z, y, n, loss, slope, bend);
    else
        rbt_logistic(z, y, n, loss, NULL, NULL);
}

const rbt_kernels rbt_kernels_avx512 = {
    .name = "avx512",
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

typedef int rbt_kernels_avx512_absent; /* ISO C wants at least one declaration */

#endif
