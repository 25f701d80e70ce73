/* The kernels in plain C: the reference the fast variants are compared with, and what runs where there is no AVX2.
 *
 * Called through the table of kernels.h. Always: the rules of kernels_variants.h. The inner loops over 16 lanes have a
 * fixed length so that a compiler turns them into whatever vectors the machine has without changing the order of a sum.
 * Proved by tests/unit/test_kernels.c.
 */
#include "math/kernels_variants.h"

#include <math.h>
#include <string.h>

/* Adds the upper half of the lanes to the lower, 16 -> 8 -> 4 -> 2 -> 1. */
static float fold_f32(float lane[RBT_LANES])
{
    for (int half = RBT_LANES / 2; half >= 1; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] += lane[k + half];
    return lane[0];
}

static double fold_f64(double lane[RBT_LANES])
{
    for (int half = RBT_LANES / 2; half >= 1; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] += lane[k + half];
    return lane[0];
}

static float dot(const float *a, const float *b, size_t n)
{
    float lane[RBT_LANES] = {0};
    size_t whole = n - n % RBT_LANES;
    for (size_t i = 0; i < whole; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += a[i] * b[i];
    return fold_f32(lane);
}

static float dot_sparse(const uint32_t *index, const float *value, size_t n, const float *w)
{
    float lane[RBT_LANES] = {0};
    size_t whole = n - n % RBT_LANES;
    for (size_t i = 0; i < whole; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            lane[k] += value[i + k] * w[index[i + k]];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += value[i] * w[index[i]];
    return fold_f32(lane);
}

static void axpy(float a, const float *restrict x, float *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            y[i + k] += a * x[i + k];
    for (; i < n; i++)
        y[i] += a * x[i];
}

static void blend(float a, const float *restrict x, float b, const float *restrict y, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a * x[i] + b * y[i];
}

void rbt_axpy_sparse_portable(float a, const uint32_t *index, const float *value, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[index[i]] += a * value[i];
}

static void scale(float a, float *x, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            x[i + k] *= a;
    for (; i < n; i++)
        x[i] *= a;
}

static void add(const float *restrict x, float *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            y[i + k] += x[i + k];
    for (; i < n; i++)
        y[i] += x[i];
}

/* Unsigned arithmetic wraps; the conversion back keeps the bits. */
static void add_i32(const int32_t *restrict x, int32_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            y[i + k] = (int32_t)((uint32_t)y[i + k] + (uint32_t)x[i + k]);
    for (; i < n; i++)
        y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)x[i]);
}

static void add_i64(const int64_t *restrict x, int64_t *restrict y, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            y[i + k] = (int64_t)((uint64_t)y[i + k] + (uint64_t)x[i + k]);
    for (; i < n; i++)
        y[i] = (int64_t)((uint64_t)y[i] + (uint64_t)x[i]);
}

static void gather(const float *x, const uint32_t *index, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[index[i]];
}

void rbt_scatter_portable(const float *value, const uint32_t *index, size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[index[i]] = value[i];
}

static double norm1(const float *x, size_t n)
{
    double lane[RBT_LANES] = {0};
    size_t whole = n - n % RBT_LANES;
    for (size_t i = 0; i < whole; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            lane[k] += (double)fabsf(x[i + k]);
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += (double)fabsf(x[i]);
    return fold_f64(lane);
}

static double norm2_squared(const float *x, size_t n)
{
    double lane[RBT_LANES] = {0};
    size_t whole = n - n % RBT_LANES;
    for (size_t i = 0; i < whole; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            lane[k] += (double)x[i + k] * (double)x[i + k];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += (double)x[i] * (double)x[i];
    return fold_f64(lane);
}

/* Without its sign bit a float orders like its bits, and every NaN lies above infinity: an integer maximum finds the
 * largest size and cannot lose a NaN, in any order. */
static int32_t size_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static float norm_max(const float *x, size_t n)
{
    int32_t lane[RBT_LANES] = {0};
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES)
        for (size_t k = 0; k < RBT_LANES; k++)
            lane[k] = larger(lane[k], size_bits(x[i + k]));
    for (; i < n; i++)
        lane[0] = larger(lane[0], size_bits(x[i]));
    for (size_t k = 1; k < RBT_LANES; k++)
        lane[0] = larger(lane[0], lane[k]);
    float result;
    memcpy(&result, &lane[0], sizeof result);
    return result;
}

static void sgd_step(float rate, float l2, float *restrict g, float *restrict w, float *restrict u, size_t n)
{
    size_t i = 0;
    for (; i + RBT_LANES <= n; i += RBT_LANES) {
        for (size_t k = 0; k < RBT_LANES; k++) {
            float d = rate * (g[i + k] + l2 * w[i + k]);
            w[i + k] += d;
            u[i + k] += d;
            g[i + k] = 0;
        }
    }
    for (; i < n; i++) {
        float d = rate * (g[i] + l2 * w[i]);
        w[i] += d;
        u[i] += d;
        g[i] = 0;
    }
}

static void logistic(const double *z, const double *y, size_t n, double *loss, double *slope, double *bend)
{
    if (slope != NULL)
        rbt_logistic(z, y, n, loss, slope, bend);
    else
        rbt_logistic(z, y, n, loss, NULL, NULL);
}

const rbt_kernels rbt_kernels_portable = {
    .name = "portable",
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
