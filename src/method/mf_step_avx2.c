/* Steps of matrix factorisation with AVX2 and FMA. Contract in mf_step.h.
 *
 * Not the reference's bits: products are fused with additions, roots are taken to 12 bits, a step size needs no more. The sums
 * |p|^2, |q|^2 and p . q give the gradients' squares too, so the vectors are gone through twice: once for the sums, once for
 * the step. For usual ranks the length is a constant, and p stays in registers over the user's ratings.
 */
#include "method/mf_step.h"

#if defined(__SANITIZE_THREAD__)
#define RBT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RBT_TSAN 1
#endif
#endif

#if defined(__x86_64__) && !defined(RBT_TSAN) /* the sanitizer knows no atomic lanes: there the portable form runs */

#include <immintrin.h>

#define AVX2  __attribute__((target("avx2,fma")))
#define AHEAD 6 /* ratings whose items are fetched before they are needed */

AVX2 static inline float fold(__m256 x)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

AVX2 static inline float inverse_root(float x)
{
    return _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(x)));
}

AVX2 static inline __attribute__((always_inline)) void fetch(const float *q, const rbt_mf_side *item, size_t stride)
{
    for (size_t k = 0; k < stride && k < 64; k += 16)
        __builtin_prefetch(q + k, 1);
    __builtin_prefetch(item, 1);
}

AVX2 static inline __attribute__((always_inline)) double run(const rbt_mf_rates *rates, const uint32_t *index,
                                                             const float *value, size_t n, float *p, rbt_mf_side *user,
                                                             float *q, rbt_mf_side *items, const size_t stride)
{
    const float l2 = rates->l2, rate = rates->rate, inverse = 1 / rates->scale, share = 1 / (float)rates->rank;
    const bool adaptive = rates->adaptive, biases = rates->biases;
    rbt_mf_side me = *user;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        float *qi = q + (size_t)index[i] * stride;
        rbt_mf_side *item = &items[index[i]];
        __m256 pq = _mm256_setzero_ps(), pp = pq, qq = pq;

        if (i + AHEAD < n)
            fetch(q + (size_t)index[i + AHEAD] * stride, &items[index[i + AHEAD]], stride);
        for (size_t k = 0; k < stride; k += RBT_MF_LANES) {
            __m256 a = _mm256_load_ps(p + k), b = _mm256_load_ps(qi + k);

            pq = _mm256_fmadd_ps(a, b, pq);
            pp = _mm256_fmadd_ps(a, a, pp);
            qq = _mm256_fmadd_ps(b, b, qq);
        }
        float item_bias = item->bias, item_squares = item->squares;
        float product = fold(pq), error = (value[i] - rates->mean) * inverse - (me.bias + item_bias) - product;
        float p_step = adaptive ? rate * inverse_root(me.squares) : rate;
        float q_step = adaptive ? rate * inverse_root(item_squares) : rate;
        __m256 p_keep = _mm256_set1_ps(1 - p_step * l2), p_move = _mm256_set1_ps(p_step * error);
        __m256 q_keep = _mm256_set1_ps(1 - q_step * l2), q_move = _mm256_set1_ps(q_step * error);

        for (size_t k = 0; k < stride; k += RBT_MF_LANES) {
            __m256 a = _mm256_load_ps(p + k), b = _mm256_load_ps(qi + k);

            _mm256_store_ps(p + k, _mm256_fmadd_ps(p_move, b, _mm256_mul_ps(p_keep, a)));
            _mm256_store_ps(qi + k, _mm256_fmadd_ps(q_move, a, _mm256_mul_ps(q_keep, b)));
        }
        float pps = fold(pp), qqs = fold(qq), cross = 2 * error * l2 * product, square = error * error;

        me.squares += (square * qqs - cross + l2 * l2 * pps) * share;
        item->squares = item_squares + (square * pps - cross + l2 * l2 * qqs) * share;
        if (biases) {
            float mine = error - rates->l2_bias * me.bias, its = error - rates->l2_bias * item_bias;
            float its_squares = item->bias_squares;

            me.bias += (adaptive ? rate * inverse_root(me.bias_squares) : rate) * mine;
            item->bias = item_bias + (adaptive ? rate * inverse_root(its_squares) : rate) * its;
            me.bias_squares += mine * mine;
            item->bias_squares = its_squares + its * its;
        }
        sum += (double)square;
    }
    *user = me;
    return sum;
}

AVX2 static double run_best(const rbt_mf_rates *rates, const uint32_t *index, const float *value, size_t n, float *p,
                            rbt_mf_side *user, float *q, rbt_mf_side *items, size_t stride)
{
    switch (stride) {
    case 8:
        return run(rates, index, value, n, p, user, q, items, 8);
    case 16:
        return run(rates, index, value, n, p, user, q, items, 16);
    case 32:
        return run(rates, index, value, n, p, user, q, items, 32);
    case 64:
        return run(rates, index, value, n, p, user, q, items, 64);
    default:
        return run(rates, index, value, n, p, user, q, items, stride);
    }
}

rbt_mf_run *rbt_mf_run_best(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? run_best : rbt_mf_run_portable;
}

#else

rbt_mf_run *rbt_mf_run_best(void)
{
    return rbt_mf_run_portable;
}

#endif
