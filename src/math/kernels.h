/* Dense and sparse kernels: dot, axpy, blend, scale, add, gather, scatter, norms, the SGD step, the logistic loss.
 *
 * Every kernel exists in a portable form (kernels_portable.c: the reference), for AVX2 and for AVX-512; the best one
 * the processor has is chosen at run time (rbt_kernels_select). All variants give the same bits: sums run in 16 lanes,
 * element i into lane i % 16, lanes folded 16 -> 8 -> 4 -> 2 -> 1 (lane k with lane k + half), never a fused
 * multiply-add. So machines of several generations can share a job. Indices of the sparse kernels are the caller's
 * promise: within the vector. Proved by tests/unit/test_kernels.c; cost measured by `rubato bench kernels`.
 */
#ifndef RBT_MATH_KERNELS_H
#define RBT_MATH_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rbt_simd { RBT_SIMD_PORTABLE, RBT_SIMD_AVX2, RBT_SIMD_AVX512 } rbt_simd;

typedef struct rbt_kernels {
    const char *name;
    float (*dot)(const float *a, const float *b, size_t n);
    float (*dot_sparse)(const uint32_t *index, const float *value, size_t n,
                        const float *w);                                         /* sum value[i]*w[index[i]] */
    void (*axpy)(float a, const float *restrict x, float *restrict y, size_t n); /* y += a*x */
    void (*blend)(float a, const float *restrict x, float b, const float *restrict y, float *restrict out,
                  size_t n); /* out = a*x + b*y */
    void (*axpy_sparse)(float a, const uint32_t *index, const float *value, size_t n,
                        float *y);                                             /* y[index[i]] += a*value[i], in order */
    void (*scale)(float a, float *x, size_t n);                                /* x *= a */
    void (*add)(const float *restrict x, float *restrict y, size_t n);         /* y += x */
    void (*add_i32)(const int32_t *restrict x, int32_t *restrict y, size_t n); /* wraps */
    void (*add_i64)(const int64_t *restrict x, int64_t *restrict y, size_t n); /* wraps */
    void (*gather)(const float *x, const uint32_t *index, size_t n, float *out);    /* out[i] = x[index[i]] */
    void (*scatter)(const float *value, const uint32_t *index, size_t n, float *x); /* x[index[i]] = value[i] */
    double (*norm1)(const float *x, size_t n);                                      /* sum |x|, f64 lanes */
    double (*norm2_squared)(const float *x, size_t n);                              /* sum x*x, f64 lanes */
    float (*norm_max)(const float *x, size_t n);                                    /* max |x| */
    /* One SGD step with weight decay: d = rate*(g + l2*w); w += d; u += d; g = 0. `rate` is negative for descent. */
    void (*sgd_step)(float rate, float l2, float *restrict g, float *restrict w, float *restrict u, size_t n);
    /* softplus(-y z), y being -1 or 1, and unless slope is NULL its first and second derivatives by z: the bits of functions.h. */
    void (*logistic)(const double *z, const double *y, size_t n, double *loss, double *slope, double *bend);
} rbt_kernels;

/* The variant in use: the best one the processor has, chosen on first use; thread-safe. */
const rbt_kernels *rbt_kernels_best(void);

/* A given variant, or NULL when this processor or this build does not have it. */
const rbt_kernels *rbt_kernels_of(rbt_simd simd);

#endif
