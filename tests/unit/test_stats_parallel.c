/* Proves src/data/stats.c: what it says of data agrees with plain loops over the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "data/generate.h"
#include "data/stats.h"

static bool share(const rbt_data *d, size_t a, size_t b)
{
    for (size_t i = d->start[a], j = d->start[b]; i < d->start[a + 1] && j < d->start[b + 1];) {
        if (d->index[i] == d->index[j])
            return true;
        if (d->index[i] < d->index[j])
            i++;
        else
            j++;
    }
    return false;
}

static rbt_data generated(size_t rows, size_t cols, size_t nnz)
{
    rbt_generate_options o = {.rows = rows, .cols = cols, .nnz = nnz, .skew = 1.1, .seed = 5};
    rbt_data d;
    assert_int_equal(rbt_generate_lr(&o, &d, NULL), RBT_OK);
    return d;
}

static void delta_and_rho_agree_with_plain_loops(void **state)
{
    (void)state;
    static const size_t SIZES[][3] = {{1, 5, 2},    {63, 40, 3},    {64, 2000, 3},
                                      {65, 500, 4}, {900, 3000, 3}, {1200, 50, 2}};
    for (size_t k = 0; k < sizeof SIZES / sizeof SIZES[0]; k++) {
        rbt_data d = generated(SIZES[k][0], SIZES[k][1], SIZES[k][2]);
        size_t *count = calloc(d.cols, sizeof *count), most = 0, used = 0, shared = 0;
        for (size_t i = 0; i < d.nnz; i++)
            count[d.index[i]]++;
        for (size_t j = 0; j < d.cols; j++) {
            used += count[j] > 0;
            most = count[j] > most ? count[j] : most;
        }
        for (size_t a = 0; a < d.rows; a++) {
            size_t n = 0;
            for (size_t b = 0; b < d.rows; b++)
                n += share(&d, a, b);
            shared = n > shared ? n : shared;
        }
        rbt_stats s;
        assert_int_equal(rbt_stats_compute(&d, RBT_STATS_RHO_BUDGET, &s, NULL), RBT_OK);
        assert_true(s.delta == (double)most / (double)d.rows);
        assert_int_equal(count[s.delta_feature], most);
        assert_int_equal(s.used, used);
        assert_int_equal(s.rho_rows, d.rows);
        assert_true(s.rho == (double)shared / (double)d.rows);
        free(count);
        rbt_data_deinit(&d);
    }
}

/* More rows than one thread takes at a time; a sample gives a lower bound, the same each time. */
static void a_sample_is_a_lower_bound_and_always_the_same(void **state)
{
    (void)state;
    rbt_data d = generated(20000, 30000, 3);
    rbt_stats all, some, again;
    assert_int_equal(rbt_stats_compute(&d, UINT64_MAX, &all, NULL), RBT_OK);
    assert_int_equal(rbt_stats_compute(&d, 0, &some, NULL), RBT_OK);
    assert_int_equal(rbt_stats_compute(&d, 0, &again, NULL), RBT_OK);
    assert_int_equal(all.rho_rows, d.rows);
    assert_int_equal(some.rho_rows, RBT_STATS_SAMPLE);
    assert_true(some.rho <= all.rho && some.rho > 0 && some.rho == again.rho);
    assert_true(some.delta == all.delta && all.delta <= all.rho);
    rbt_data_deinit(&d);
}

static void lengths_values_and_weights_are_told(void **state)
{
    (void)state;
    static const char TEXT[] = "1 1:-2 3:5\n0\n1 2:1 3:2 4:0.5\n0 9:1\n";
    rbt_data d;
    rbt_stats s;
    assert_int_equal(rbt_data_parse_libsvm(TEXT, strlen(TEXT), "mem", &d, NULL), RBT_OK);
    assert_int_equal(rbt_stats_compute(&d, RBT_STATS_RHO_BUDGET, &s, NULL), RBT_OK);
    assert_int_equal(s.shortest, 0);
    assert_int_equal(s.longest, 3);
    assert_true(s.least == -2 && s.most == 5 && s.weight == 4);
    assert_true(s.delta == 0.5 && s.delta_feature == 2 && s.rho == 0.5 && s.used == 5);
    d.weight = rbt_alloc(4, sizeof *d.weight);
    for (size_t r = 0; r < 4; r++)
        d.weight[r] = 0.5F * (float)(r + 1);
    assert_int_equal(rbt_stats_compute(&d, RBT_STATS_RHO_BUDGET, &s, NULL), RBT_OK);
    assert_true(s.weight == 5 && s.weight_least == 0.5 && s.weight_most == 2);
    rbt_data_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_and_rho_agree_with_plain_loops),
        cmocka_unit_test(a_sample_is_a_lower_bound_and_always_the_same),
        cmocka_unit_test(lengths_values_and_weights_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
