/* Plain loops, compiled without the rules of kernels_variants.h: reassociation and fused multiply-add allowed.
 *
 * Called by bench_kernels.c alone, as the yardstick for what the fixed order of summation costs. Always: never used for
 * results. The loops stand once, in a macro, and are compiled for each instruction set; the choice is made at run time.
 * Proved by tests/unit/test_kernels.c: equal to the kernels up to rounding.
 */
#include "math/bench_free.h"

#include <string.h>

#ifdef __clang__
#define FREE(target_attribute) target_attribute static
#define FREE_BODY              _Pragma("clang fp reassociate(on) contract(fast)")
#else
#define FREE(target_attribute) target_attribute __attribute__((optimize("O3", "fast-math"))) static
#define FREE_BODY
#endif

/* The reductions and the gather. */
#define FREE_READERS(set, target_attribute)                                                                            \
    FREE(target_attribute) float dot_##set(const float *a, const float *b, size_t n)                                   \
    {                                                                                                                  \
        FREE_BODY float sum = 0;                                                                                       \
        for (size_t i = 0; i < n; i++)                                                                                 \
            sum += a[i] * b[i];                                                                                        \
        return sum;                                                                                                    \
    }                                                                                                                  \
    FREE(target_attribute)                                                                                             \
    float dot_sparse_##set(const uint32_t *index, const float *value, size_t n, const float *w)                        \
    {                                                                                                                  \
        FREE_BODY float sum = 0;                                                                                       \
        for (size_t i = 0; i < n; i++)                                                                                 \
            sum += value[i] * w[index[i]];                                                                             \
        return sum;                                                                                                    \
    }                                                                                                                  \
    FREE(target_attribute) void gather_##set(const float *x, const uint32_t *index, size_t n, float *out)              \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = x[index[i]];                                                                                      \
    }                                                                                                                  \
    FREE(target_attribute) double norm1_##set(const float *x, size_t n)                                                \
    {                                                                                                                  \
        FREE_BODY double sum = 0;                                                                                      \
        for (size_t i = 0; i < n; i++)                                                                                 \
            sum += (double)__builtin_fabsf(x[i]);                                                                      \
        return sum;                                                                                                    \
    }                                                                                                                  \
    FREE(target_attribute) double norm2_squared_##set(const float *x, size_t n)                                        \
    {                                                                                                                  \
        FREE_BODY double sum = 0;                                                                                      \
        for (size_t i = 0; i < n; i++)                                                                                 \
            sum += (double)x[i] * (double)x[i];                                                                        \
        return sum;                                                                                                    \
    }                                                                                                                  \
    FREE(target_attribute) float norm_max_##set(const float *x, size_t n)                                              \
    {                                                                                                                  \
        int32_t largest = 0;                                                                                           \
        for (size_t i = 0; i < n; i++) {                                                                               \
            int32_t bits;                                                                                              \
            memcpy(&bits, &x[i], sizeof bits);                                                                         \
            bits &= 0x7fffffff;                                                                                        \
            largest = bits > largest ? bits : largest;                                                                 \
        }                                                                                                              \
        float result;                                                                                                  \
        memcpy(&result, &largest, sizeof result);                                                                      \
        return result;                                                                                                 \
    }

/* Those that write into a vector. */
#define FREE_WRITERS(set, target_attribute)                                                                            \
    FREE(target_attribute) void axpy_##set(float a, const float *restrict x, float *restrict y, size_t n)              \
    {                                                                                                                  \
        FREE_BODY for (size_t i = 0; i < n; i++) y[i] += a * x[i];                                                     \
    }                                                                                                                  \
    FREE(target_attribute)                                                                                             \
    void axpy_sparse_##set(float a, const uint32_t *index, const float *value, size_t n, float *y)                     \
    {                                                                                                                  \
        FREE_BODY for (size_t i = 0; i < n; i++) y[index[i]] += a * value[i];                                          \
    }                                                                                                                  \
    FREE(target_attribute)                                                                                             \
    void blend_##set(float a, const float *restrict x, float b, const float *restrict y, float *restrict out,          \
                     size_t n)                                                                                         \
    {                                                                                                                  \
        FREE_BODY for (size_t i = 0; i < n; i++) out[i] = a * x[i] + b * y[i];                                         \
    }                                                                                                                  \
    FREE(target_attribute) void scale_##set(float a, float *x, size_t n)                                               \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            x[i] *= a;                                                                                                 \
    }                                                                                                                  \
    FREE(target_attribute) void add_##set(const float *restrict x, float *restrict y, size_t n)                        \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            y[i] += x[i];                                                                                              \
    }                                                                                                                  \
    FREE(target_attribute) void add_i32_##set(const int32_t *restrict x, int32_t *restrict y, size_t n)                \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)x[i]);                                                         \
    }                                                                                                                  \
    FREE(target_attribute) void add_i64_##set(const int64_t *restrict x, int64_t *restrict y, size_t n)                \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            y[i] = (int64_t)((uint64_t)y[i] + (uint64_t)x[i]);                                                         \
    }                                                                                                                  \
    FREE(target_attribute) void scatter_##set(const float *value, const uint32_t *index, size_t n, float *x)           \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            x[index[i]] = value[i];                                                                                    \
    }                                                                                                                  \
    FREE(target_attribute)                                                                                             \
    void sgd_step_##set(float rate, float l2, float *restrict g, float *restrict w, float *restrict u, size_t n)       \
    {                                                                                                                  \
        FREE_BODY for (size_t i = 0; i < n; i++)                                                                       \
        {                                                                                                              \
            float d = rate * (g[i] + l2 * w[i]);                                                                       \
            w[i] += d;                                                                                                 \
            u[i] += d;                                                                                                 \
            g[i] = 0;                                                                                                  \
        }                                                                                                              \
    }

#define FREE_TABLE(set, title)                                                                                         \
    static const rbt_kernels free_##set = {                                                                            \
        .name = title,                                                                                                 \
        .dot = dot_##set,                                                                                              \
        .dot_sparse = dot_sparse_##set,                                                                                \
        .axpy = axpy_##set,                                                                                            \
        .blend = blend_##set,                                                                                          \
        .axpy_sparse = axpy_sparse_##set,                                                                              \
        .scale = scale_##set,                                                                                          \
        .add = add_##set,                                                                                              \
        .add_i32 = add_i32_##set,                                                                                      \
        .add_i64 = add_i64_##set,                                                                                      \
        .gather = gather_##set,                                                                                        \
        .scatter = scatter_##set,                                                                                      \
        .norm1 = norm1_##set,                                                                                          \
        .norm2_squared = norm2_squared_##set,                                                                          \
        .norm_max = norm_max_##set,                                                                                    \
        .sgd_step = sgd_step_##set,                                                                                    \
    }

FREE_READERS(plain, )
FREE_WRITERS(plain, )
FREE_TABLE(plain, "plain loop");

#if defined(__x86_64__)
FREE_READERS(fma, __attribute__((target("avx2,fma"))))
FREE_WRITERS(fma, __attribute__((target("avx2,fma"))))
FREE_TABLE(fma, "plain loop, avx2 and fma");

FREE_READERS(wide, __attribute__((target("avx512f,fma"))))
FREE_WRITERS(wide, __attribute__((target("avx512f,fma"))))
FREE_TABLE(wide, "plain loop, avx512f");
#endif

const rbt_kernels *rbt_bench_free(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return &free_wide;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &free_fma;
#endif
    return &free_plain;
}
