/* Proves src/runtime/spec.c: numbers exactly as strtod reads them, units, limits, refusals, and the simulator's options
 * with their defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/sim.h"
#include "runtime/spec.h"

static void numbers_are_what_strtod_reads(void **state)
{
    static const char *const texts[] = {"0",    "1",     "0.1",    "1.",   ".5",    "1e3",      "1E-3",
                                        "0e99", "2.5e1", "007.50", "1e22", "1e-22", "0.000001", "999999999999999"};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *end = texts[i] + strlen(texts[i]);

        assert_ptr_equal(rbt_spec_number(texts[i], end, &value), end);
        assert_true(value == strtod(texts[i], NULL));
    }
    for (int i = 0; i < 20000; i++) {
        char text[40];
        int n = snprintf(text, sizeof text, "%.*e", (int)rbt_rng_below(&rng, 15),
                         rbt_rng_f64(&rng) * (double)(1ull << rbt_rng_below(&rng, 20)));

        assert_ptr_equal(rbt_spec_number(text, text + n, &value), text + n);
        assert_true(value == strtod(text, NULL));
    }
}

static void what_is_no_number_or_too_long_is_told_apart(void **state)
{
    static const char *const none[] = {"",     ".",    "-1", "+1", "e5", "nan", "inf", " 1", "1234567890123456",
                                       "1e23", "1e-99"};
    const char *text = "12e+x";
    double value = 0;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(rbt_spec_number(none[i], none[i] + strlen(none[i]), &value));
    assert_ptr_equal(rbt_spec_number(text, text + 5, &value), text + 2); /* an e without digits is not an exponent */
    assert_true(value == 12);
    assert_ptr_equal(rbt_spec_number(text, text + 1, &value), text + 1); /* never reads past the end */
    assert_true(value == 1);
}

static void missing_texts_give_the_defaults(void **state)
{
    rbt_sim_options o = {.seed = 7};

    (void)state;
    assert_int_equal(rbt_sim_options_parse(&o, NULL, NULL, NULL, NULL), RBT_OK);
    assert_int_equal(o.seed, 7);
    assert_null(o.checker);
    assert_true(o.net.bits_per_second == 1e9);
    assert_int_equal(o.net.latency_ns, 100000);
    assert_int_equal(o.net.jitter_ns, 0);
    assert_true(o.cost.sample_ns == 100 && o.cost.nonzero_ns == 2 && o.cost.byte_ns == 0.1 &&
                o.cost.message_ns == 1000);
    assert_true(o.faults.drop == 0 && o.faults.duplicate == 0 && o.faults.delay == 0);
    assert_int_equal(o.faults.crashes, 0);
    assert_int_equal(o.faults.partitions, 0);
    assert_int_equal(o.faults.within_ns, 1000000000);
}

static void units_are_understood(void **state)
{
    rbt_sim_options o = {0};

    (void)state;
    assert_int_equal(rbt_sim_options_parse(&o, "bw=2.5Mbit,lat=1.5ms,jitter=50us",
                                           "sample=1us,nnz=0.25ns,byte=0,message=0s",
                                           "drop=0.5,dup=1,delay=0.05,crash=2,partition=3,within=2s", NULL),
                     RBT_OK);
    assert_true(o.net.bits_per_second == 2.5e6);
    assert_int_equal(o.net.latency_ns, 1500000);
    assert_int_equal(o.net.jitter_ns, 50000);
    assert_true(o.cost.sample_ns == 1000 && o.cost.nonzero_ns == 0.25 && o.cost.byte_ns == 0 && o.cost.message_ns == 0);
    assert_true(o.faults.drop == 0.5 && o.faults.duplicate == 1 && o.faults.delay == 0.05);
    assert_int_equal(o.faults.crashes, 2);
    assert_int_equal(o.faults.partitions, 3);
    assert_int_equal(o.faults.within_ns, 2000000000);
    assert_int_equal(rbt_sim_options_parse(&o, "bw=800bit,lat=7ns", NULL, NULL, NULL), RBT_OK);
    assert_true(o.net.bits_per_second == 800);
    assert_int_equal(o.net.latency_ns, 7);
    assert_int_equal(o.net.jitter_ns, 0); /* what is not given is the default, not what stood there */
    assert_int_equal(rbt_sim_options_parse(&o, "bw=64Kbit", NULL, NULL, NULL), RBT_OK);
    assert_true(o.net.bits_per_second == 64000);
}

static void bad_options_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *net, *cost, *faults, *says;
    } bad[] = {
        {"", NULL, NULL, "--net: '' is not of the form key=value; give for example bw=1Gbit"},
        {"bandwidth=1Gbit", NULL, NULL, "--net: 'bandwidth' is not a key; the keys are bw, lat, jitter"},
        {"bw=1", NULL, NULL, "--net: bw is '1', but it takes a rate with its unit (bit, Kbit, Mbit, Gbit"},
        {"bw=1gbit", NULL, NULL, "--net: bw is '1gbit'"},
        {"bw=1us", NULL, NULL, "--net: bw is '1us'"},
        {"bw=0", NULL, NULL, "--net: bw is '0', but it must lie between 1 bit"},
        {"bw=9999999Gbit", NULL, NULL, "--net: bw is '9999999Gbit', but it must lie between 1 bit"},
        {"lat=200", NULL, NULL, "--net: lat is '200', but it takes a time with its unit (ns, us, ms, s)"},
        {"lat=200 us", NULL, NULL, "--net: lat is '200 us'"},
        {"lat=-1us", NULL, NULL, "--net: lat is '-1us'"},
        {"lat=", NULL, NULL, "--net: lat is ''"},
        {"lat=us", NULL, NULL, "--net: lat is 'us'"},
        {"lat=1us,lat=2us", NULL, NULL, "--net: lat is given twice"},
        {"lat=1us,", NULL, NULL, "--net: '' is not of the form"},
        {"lat=2000000s", NULL, NULL, "--net: lat is '2000000s', but it must lie between 0 ns and 1e+15 ns"},
        {NULL, "sample=1", NULL, "--cost: sample is '1'"},
        {NULL, "row=1ns", NULL, "--cost: 'row' is not a key; the keys are sample, nnz, byte, message"},
        {NULL, NULL, "drop=1.01", "--faults: drop is '1.01', but it must lie between 0 and 1"},
        {NULL, NULL, "dup=2", "--faults: dup is '2', but it must lie between 0 and 1"},
        {NULL, NULL, "crash=1.5", "--faults: crash is '1.5', but it takes a whole number"},
        {NULL, NULL, "crash=1000001", "--faults: crash is '1000001', but it must lie between 0 and 1000000"},
        {NULL, NULL, "crush=1",
         "--faults: 'crush' is not a key; the keys are drop, dup, delay, crash, partition, within"},
    };
    rbt_sim_options untouched = {.seed = 3, .net = {.latency_ns = 42}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_sim_options o = untouched;
        rbt_error error = {0};

        assert_int_equal(rbt_sim_options_parse(&o, bad[i].net, bad[i].cost, bad[i].faults, &error), RBT_E_USAGE);
        if (strncmp(error.text, bad[i].says, strlen(bad[i].says)) != 0)
            fail_msg("expected '%s', got '%s'", bad[i].says, error.text);
        assert_int_equal(o.seed, 3);
        assert_int_equal(o.net.latency_ns, 42); /* results are set on success only */
    }
}

static void overlong_texts_are_refused_and_long_findings_are_cut(void **state)
{
    char text[RBT_SPEC_TEXT_MAX + 2] = {0};
    rbt_sim_options o = {0};
    rbt_error error = {0};

    (void)state;
    memset(text, 'x', RBT_SPEC_TEXT_MAX + 1);
    assert_int_equal(rbt_sim_options_parse(&o, text, NULL, NULL, &error), RBT_E_LIMIT);
    text[RBT_SPEC_TEXT_MAX] = '\0';
    assert_int_equal(rbt_sim_options_parse(&o, text, NULL, NULL, &error), RBT_E_USAGE);
    assert_true(strlen(error.text) < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_what_strtod_reads),
        cmocka_unit_test(what_is_no_number_or_too_long_is_told_apart),
        cmocka_unit_test(missing_texts_give_the_defaults),
        cmocka_unit_test(units_are_understood),
        cmocka_unit_test(bad_options_are_refused_with_the_reason),
        cmocka_unit_test(overlong_texts_are_refused_and_long_findings_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
