/* Proves src/model/metrics.c: accuracy and mean loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "data/data.h"
#include "model/metrics.h"

static rbt_data parsed(const char *text)
{
    rbt_data d;
    assert_int_equal(rbt_data_parse_libsvm(text, strlen(text), "mem", &d, NULL), RBT_OK);
    return d;
}

static double labels[] = {0, 1};
static float weights[] = {2, -1};

static rbt_trained trained(void)
{
    return (rbt_trained){
        .model = rbt_model_find("lr"), .shape = {.cols = 2, .classes = 2, .labels = labels}, .n = 2, .w = weights};
}

static void accuracy_and_loss_are_means_over_the_rows(void **state)
{
    (void)state;
    rbt_trained t = trained();
    rbt_data d = parsed("1 1:1\n0 2:1\n1 2:1\n0 9:1\n"); /* scores 2, -1, -1, 0: the third is wrong */
    rbt_metrics m;
    assert_int_equal(rbt_metrics_compute(&t, &d, &m, NULL), RBT_OK);
    assert_int_equal(m.rows, 4);
    assert_true(m.accuracy == 0.75);
    double loss = log1p(exp(-2)) + log1p(exp(-1)) + log1p(exp(1)) + log(2);
    assert_true(fabs(m.loss - loss / 4) < 1e-12);
    rbt_data_deinit(&d);
}

static void data_without_rows_is_refused(void **state)
{
    (void)state;
    rbt_trained t = trained();
    rbt_data d = {0};
    rbt_metrics m;
    rbt_error error;
    assert_int_equal(rbt_metrics_compute(&t, &d, &m, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "no rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy_and_loss_are_means_over_the_rows),
        cmocka_unit_test(data_without_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
