/* Steps of matrix factorisation, the reference. Contract in mf_step.h. */
#include "method/mf_step.h"

#include <math.h>
#include <string.h>

#include "math/kernels.h"

float rbt_mf_error(const rbt_mf_rates *rates, float rating, const float *p, float user_bias, const float *q,
                   float item_bias)
{
    float told = rbt_kernels_best()->dot(p, q, rates->rank);

    if (rates->biases)
        told += user_bias + item_bias;
    return (rating - rates->mean) / rates->scale - told;
}

/* The step size of something whose squared gradients add up to `squares`. */
static float step_of(const rbt_mf_rates *rates, float squares)
{
    return rates->adaptive ? rates->rate / sqrtf(squares) : rates->rate;
}

float rbt_mf_step(const rbt_mf_rates *rates, float rating, float crowd, float *p, rbt_mf_side *user, float *q,
                  rbt_mf_side *item)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    size_t rank = rates->rank;
    float l2 = rates->l2, pq = kernels->dot(p, q, rank), pp = kernels->dot(p, p, rank), qq = kernels->dot(q, q, rank);
    float p_step = step_of(rates, user->squares), q_step = step_of(rates, item->squares);
    float bias_step = step_of(rates, item->bias_squares), user_step = step_of(rates, user->bias_squares);
    float error = (rating - rates->mean) / rates->scale - pq - (rates->biases ? user->bias + item->bias : 0);
    float both = l2 * l2, cross = 2 * error * l2 * pq, square = error * error;

    user->squares += (square * qq - cross + both * pp) / (float)rank;
    item->squares += crowd * (square * pp - cross + both * qq) / (float)rank;
    user->pull += rates->biases && user_step > p_step * (qq + l2) ? user_step : p_step * (qq + l2);
    item->pull += rates->biases && bias_step > q_step * (pp + l2) ? bias_step : q_step * (pp + l2);
    for (size_t k = 0; k < rank; k++) {
        float pk = p[k], qk = q[k];

        p[k] = pk + p_step * (error * qk - l2 * pk);
        q[k] = qk + q_step * (error * pk - l2 * qk);
    }
    if (rates->biases) {
        float user_down = error - rates->l2_bias * user->bias, item_down = error - rates->l2_bias * item->bias;

        user->bias += user_step * user_down;
        item->bias += bias_step * item_down;
        user->bias_squares += user_down * user_down;
        item->bias_squares += crowd * item_down * item_down;
    }
    return error;
}

static float load(const float *at)
{
    float x;

    __atomic_load(at, &x, __ATOMIC_RELAXED);
    return x;
}

static void store(float *at, float x)
{
    __atomic_store(at, &x, __ATOMIC_RELAXED);
}

double rbt_mf_run_portable(const rbt_mf_rates *rates, const uint32_t *index, const float *value, size_t n, float *p,
                           rbt_mf_side *user, float *q, rbt_mf_side *items, size_t stride)
{
    double sum = 0;
    float mine[RBT_MF_RANK_MOST];

    for (size_t i = 0; i < n; i++) {
        float *theirs = q + (size_t)index[i] * stride, error;
        rbt_mf_side *at = &items[index[i]];
        rbt_mf_side item = {load(&at->bias), load(&at->squares), load(&at->bias_squares), 0};

        for (size_t k = 0; k < rates->rank; k++)
            mine[k] = load(&theirs[k]);
        error = rbt_mf_step(rates, value[i], 1, p, user, mine, &item);
        for (size_t k = 0; k < rates->rank; k++)
            store(&theirs[k], mine[k]);
        store(&at->bias, item.bias);
        store(&at->squares, item.squares);
        store(&at->bias_squares, item.bias_squares);
        sum += (double)error * (double)error;
    }
    return sum;
}
