/* The second opinion on adarev; the contract is in check_adarev.h. */
#include "runtime/check_adarev.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "rubato.h"

#define FLOOR 1e-8 /* beside the roots */

struct rbt_shadow_adarev {
    uint32_t length;
    double scale;
    double *x, *z, *z_most;
    RBT_ARRAY(double *) sums; /* the sum of gradients in version 0, 1, ... */
};

rbt_shadow_adarev *rbt_shadow_adarev_create(uint32_t length)
{
    rbt_shadow_adarev *shadow = rbt_alloc(1, sizeof *shadow);
    double *nothing = rbt_alloc(length, sizeof *nothing);

    shadow->length = length;
    shadow->scale = 1;
    shadow->x = rbt_alloc(length, sizeof *shadow->x);
    shadow->z = rbt_alloc(length, sizeof *shadow->z);
    shadow->z_most = rbt_alloc(length, sizeof *shadow->z_most);
    rbt_array_push(&shadow->sums, nothing);
    return shadow;
}

void rbt_shadow_adarev_destroy(rbt_shadow_adarev *shadow)
{
    if (shadow == NULL)
        return;
    for (size_t i = 0; i < shadow->sums.count; i++)
        rbt_free(shadow->sums.at[i]);
    rbt_array_free(&shadow->sums);
    rbt_free(shadow->x);
    rbt_free(shadow->z);
    rbt_free(shadow->z_most);
    rbt_free(shadow);
}

void rbt_shadow_adarev_push(rbt_shadow_adarev *shadow, double rate, uint64_t version, const double *gradient)
{
    uint64_t newest = shadow->sums.count - 1, from = version == RBT_UNBOUNDED ? newest : version;
    double *sum = rbt_alloc(shadow->length, sizeof *sum);

    RBT_ASSERT(from <= newest);
    for (uint32_t i = 0; i < shadow->length; i++) {
        double g = gradient[i], missed = shadow->sums.at[newest][i] - shadow->sums.at[from][i], before, after, step;

        before = rate / (sqrt(shadow->z_most[i]) + FLOOR);
        shadow->z[i] += g * g + 2 * g * missed;
        shadow->z_most[i] = fmax(shadow->z_most[i], shadow->z[i]);
        after = rate / (sqrt(shadow->z_most[i]) + FLOOR);
        step = -after * g + (before - after) * missed;
        shadow->x[i] += step;
        shadow->scale = fmax(shadow->scale, fmax(fabs(before * missed), fabs(shadow->x[i])));
        sum[i] = shadow->sums.at[newest][i] + g;
    }
    rbt_array_push(&shadow->sums, sum);
}

const double *rbt_shadow_adarev_value(const rbt_shadow_adarev *shadow)
{
    return shadow->x;
}

const double *rbt_shadow_adarev_sum(const rbt_shadow_adarev *shadow)
{
    return shadow->sums.at[shadow->sums.count - 1];
}

double rbt_shadow_adarev_scale(const rbt_shadow_adarev *shadow)
{
    return shadow->scale;
}
