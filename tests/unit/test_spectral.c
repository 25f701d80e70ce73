/* Proves src/math/spectral: closed forms, two routines against each other, and both against repeated squaring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "math/spectral.h"

#define N_MOST 24

static void close_to(double x, double y, double slack)
{
    if (!(fabs(x - y) <= slack))
        fail_msg("%.17g is not %.17g", x, y);
}

/* The gap of a matrix whose columns sum to 1, in a third way: without the part that belongs to the eigenvalue 1, its
 * 2^k-th power shrinks like |l2| to the 2^k. */
static double gap_by_squaring(const double *w, size_t n)
{
    double a[N_MOST * N_MOST], b[N_MOST * N_MOST], log_norm = 0, power = 1;

    for (size_t i = 0; i < n * n; i++)
        a[i] = w[i] - 1.0 / (double)n;
    for (int k = 0; k < 48; k++) {
        double norm = 0;

        for (size_t i = 0; i < n * n; i++)
            norm = fmax(norm, fabs(a[i]));
        if (norm < 1e-300)
            return 1;
        log_norm += log(norm) / power;
        for (size_t i = 0; i < n * n; i++)
            a[i] /= norm;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                b[i * n + j] = 0;
                for (size_t m = 0; m < n; m++)
                    b[i * n + j] += a[i * n + m] * a[m * n + j];
            }
        memcpy(a, b, n * n * sizeof *a);
        power *= 2;
    }
    return 1 - exp(log_norm);
}

static void fill_circulant(double *w, uint32_t n, const uint32_t *offset, uint32_t count)
{
    memset(w, 0, (size_t)n * n * sizeof *w);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < count; k++)
            w[(size_t)i * n + (i + offset[k]) % n] += 1.0 / count;
}

static void closed_forms_of_rings(void **state)
{
    const uint32_t ring[] = {0, 1, 7}, based[] = {0, 1, 4, 7}, all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    double w[64];

    (void)state;
    close_to(rbt_spectrum_circulant(8, ring, 3).gap, 2.0 / 3 - sqrt(2) / 3, 1e-15);
    close_to(rbt_spectrum_circulant(8, ring, 3).gap, 0.1953, 5e-5);
    close_to(rbt_spectrum_circulant(8, based, 4).gap, 0.5, 1e-15);
    close_to(rbt_spectrum_circulant(8, all, 8).gap, 1, 1e-15);
    close_to(rbt_spectrum_circulant(1, ring, 1).gap, 1, 0);
    fill_circulant(w, 8, ring, 3);
    close_to(rbt_spectrum_symmetric(w, 8).gap, 2.0 / 3 - sqrt(2) / 3, 1e-14);
    fill_circulant(w, 8, ring, 3);
    close_to(rbt_spectrum_general(w, 8).gap, 2.0 / 3 - sqrt(2) / 3, 1e-14);
    fill_circulant(w, 8, based, 4);
    close_to(rbt_spectrum_symmetric(w, 8).gap, 0.5, 1e-14);
    fill_circulant(w, 8, all, 8);
    close_to(rbt_spectrum_symmetric(w, 8).gap, 1, 1e-14);
    fill_circulant(w, 8, all, 8);
    close_to(rbt_spectrum_general(w, 8).gap, 1, 1e-14);
}

/* One-way circulants have complex eigenvalues, and several of the same modulus. */
static void general_routine_agrees_with_the_closed_form_of_one_way_circulants(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t n = (uint32_t)(1 + rbt_rng_below(&rng, 40)), count = 0, offset[40];
        double *w = rbt_alloc((size_t)n * n, sizeof *w), expected;

        for (uint32_t o = 0; o < n; o++)
            if (o == 0 || rbt_rng_below(&rng, 4) == 0)
                offset[count++] = o;
        fill_circulant(w, n, offset, count);
        expected = rbt_spectrum_circulant(n, offset, count).gap;
        close_to(rbt_spectrum_general(w, n).gap, expected, 1e-12);
        rbt_free(w);
    }
}

/* A mean of permutations is doubly stochastic; with their inverses, symmetric too. */
static void fill_permutations(double *w, size_t n, uint32_t count, bool symmetric, rbt_rng *rng)
{
    memset(w, 0, n * n * sizeof *w);
    for (uint32_t p = 0; p < count; p++) {
        uint32_t to[N_MOST];

        for (uint32_t i = 0; i < n; i++)
            to[i] = i;
        rbt_rng_shuffle_u32(rng, to, n);
        for (size_t i = 0; i < n; i++) {
            w[i * n + to[i]] += (symmetric ? 0.5 : 1.0) / count;
            if (symmetric)
                w[to[i] * n + i] += 0.5 / count;
        }
    }
}

static void three_routines_agree_on_random_doubly_stochastic_matrices(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 400; round++) {
        size_t n = 2 + rbt_rng_below(&rng, N_MOST - 1);
        bool symmetric = round % 2 == 0;
        double w[N_MOST * N_MOST], copy[N_MOST * N_MOST], gap, third;

        fill_permutations(w, n, (uint32_t)(1 + rbt_rng_below(&rng, 5)), symmetric, &rng);
        memcpy(copy, w, n * n * sizeof *w);
        third = gap_by_squaring(w, n);
        gap = rbt_spectrum_general(copy, n).gap;
        close_to(gap, third, 1e-6); /* near-defective ones are known no better, by either */
        if (symmetric) {
            memcpy(copy, w, n * n * sizeof *w);
            close_to(rbt_spectrum_symmetric(copy, n).gap, third, 1e-11);
            close_to(gap, third, 1e-11);
        }
    }
}

static void largest_orders_settle(void **state)
{
    const uint32_t n = 200, ring[] = {0, 1, 199};
    double *w = rbt_alloc((size_t)n * n, sizeof *w), expected = rbt_spectrum_circulant(n, ring, 3).gap;

    (void)state;
    fill_circulant(w, n, ring, 3);
    close_to(rbt_spectrum_symmetric(w, n).gap, expected, 1e-12);
    fill_circulant(w, n, ring, 3);
    close_to(rbt_spectrum_general(w, n).gap, expected, 1e-12);
    rbt_free(w);
}

static void what_is_not_finite_gives_no_number_and_ends(void **state)
{
    double a[9] = {1, 2, 3, 2, NAN, 1, 3, 1, 0}, b[9] = {1, 2, 3, 2, NAN, 1, 3, 1, 0}, zero[4] = {0};

    (void)state;
    assert_true(isnan(rbt_spectrum_symmetric(a, 3).gap));
    assert_true(isnan(rbt_spectrum_general(b, 3).gap));
    assert_true(rbt_spectrum_symmetric(zero, 2).gap == 0);
    assert_true(rbt_spectrum_general(zero, 2).gap == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms_of_rings),
        cmocka_unit_test(general_routine_agrees_with_the_closed_form_of_one_way_circulants),
        cmocka_unit_test(three_routines_agree_on_random_doubly_stochastic_matrices),
        cmocka_unit_test(largest_orders_settle),
        cmocka_unit_test(what_is_not_finite_gives_no_number_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
