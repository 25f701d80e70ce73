/* Proves src/runtime/straggler.c: who is slow and how much for every form of the spec; a function of (seed, worker,
 * clock); refusals that name the key, the finding and an example; traces with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/straggler.h"

static rbt_stragglers parsed(const char *spec, uint32_t workers, uint64_t seed)
{
    rbt_stragglers s;
    rbt_error error = {0};

    if (rbt_stragglers_init(&s, spec, workers, seed, &error) != RBT_OK)
        fail_msg("'%s' was refused: %s", spec, error.text);
    return s;
}

static uint32_t count_slow(const char *spec, uint32_t workers)
{
    rbt_stragglers s = parsed(spec, workers, 1);
    uint32_t slow = 0;

    for (uint32_t w = 0; w < workers; w++)
        slow += rbt_stragglers_factor(&s, w, 0) > 1;
    rbt_stragglers_deinit(&s);
    return slow;
}

static void nobody_is_slow_without_a_spec(void **state)
{
    rbt_stragglers s = parsed(NULL, 4, 1);

    (void)state;
    assert_true(rbt_stragglers_factor(&s, 3, 9) == 1);
    assert_true(rbt_stragglers_factor(NULL, 3, 9) == 1);
    rbt_stragglers_deinit(&s);
}

static void share_slows_the_last_workers_for_good(void **state)
{
    rbt_stragglers s = parsed("frac=0.2,slow=2", 10, 1);

    (void)state;
    for (uint32_t w = 0; w < 10; w++)
        for (uint64_t c = 0; c < 5; c++)
            assert_true(rbt_stragglers_factor(&s, w, c) == (w >= 8 ? 2 : 1));
    rbt_stragglers_deinit(&s);
}

static void share_is_rounded_and_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(count_slow("frac=0,slow=2", 10), 0);
    assert_int_equal(count_slow("frac=0.01,slow=2", 10), 1);
    assert_int_equal(count_slow("frac=0.24,slow=2", 10), 2);
    assert_int_equal(count_slow("frac=0.25,slow=2", 10), 3);
    assert_int_equal(count_slow("slow=2,frac=1", 10), 10);
    assert_int_equal(count_slow("frac=0.001,slow=2", 1), 1);
}

static void one_worker_is_slow_and_the_others_are_not(void **state)
{
    rbt_stragglers s = parsed("worker=3,slow=4.5", 5, 1);

    (void)state;
    for (uint32_t w = 0; w < 5; w++)
        assert_true(rbt_stragglers_factor(&s, w, 7) == (w == 3 ? 4.5 : 1));
    rbt_stragglers_deinit(&s);
}

static void chance_strikes_as_often_as_told_and_by_the_seed_alone(void **state)
{
    rbt_stragglers a = parsed("p=0.0625,slow=6", 20, 1), again = parsed("p=0.0625,slow=6", 20, 1);
    rbt_stragglers b = parsed("p=0.0625,slow=6", 20, 2);
    uint32_t hits = 0, differ = 0;

    (void)state;
    for (uint64_t c = 2000; c-- > 0;) /* another order of asking gives the same answers */
        for (uint32_t w = 0; w < 20; w++)
            assert_true(rbt_stragglers_factor(&a, w, c) == rbt_stragglers_factor(&again, w, c));
    for (uint64_t c = 0; c < 2000; c++)
        for (uint32_t w = 0; w < 20; w++) {
            double factor = rbt_stragglers_factor(&a, w, c);

            assert_true(factor == 1 || factor == 6);
            hits += factor == 6;
            differ += factor != rbt_stragglers_factor(&b, w, c);
        }
    assert_in_range(hits, 2300, 2700); /* 2500 expected, standard deviation 48 */
    assert_true(differ > 1000);
    rbt_stragglers_deinit(&a);
    rbt_stragglers_deinit(&again);
    rbt_stragglers_deinit(&b);
}

static void certain_and_impossible_chances_are_exact(void **state)
{
    rbt_stragglers always = parsed("p=1,slow=3", 2, 5), never = parsed("p=0,slow=3", 2, 5);

    (void)state;
    for (uint64_t c = 0; c < 1000; c++) {
        assert_true(rbt_stragglers_factor(&always, 1, c) == 3);
        assert_true(rbt_stragglers_factor(&never, 1, c) == 1);
    }
    rbt_stragglers_deinit(&always);
    rbt_stragglers_deinit(&never);
}

static void lognormal_is_at_least_one_and_has_the_right_spread(void **state)
{
    rbt_stragglers s = parsed("lognormal=0.5", 10, 3);
    uint32_t ones = 0, above = 0;

    (void)state;
    for (uint64_t c = 0; c < 2000; c++)
        for (uint32_t w = 0; w < 10; w++) {
            double factor = rbt_stragglers_factor(&s, w, c);

            assert_true(factor >= 1 && isfinite(factor));
            ones += factor == 1;
            above += factor > 1.6487212707001282; /* exp(sigma): one standard deviation, 15.87 % lie beyond */
        }
    assert_in_range(ones, 9700, 10300);
    assert_in_range(above, 2960, 3390);
    rbt_stragglers_deinit(&s);
}

static void parts_multiply_and_draw_independently(void **state)
{
    rbt_stragglers s = parsed("frac=0.5,slow=2;worker=3,slow=3", 4, 1), p = parsed("p=0.5,slow=2;p=0.5,slow=3", 1, 1);
    uint32_t seen[7] = {0};

    (void)state;
    assert_true(rbt_stragglers_factor(&s, 0, 0) == 1);
    assert_true(rbt_stragglers_factor(&s, 2, 0) == 2);
    assert_true(rbt_stragglers_factor(&s, 3, 0) == 6);
    for (uint64_t c = 0; c < 1000; c++)
        seen[(int)rbt_stragglers_factor(&p, 0, c)]++;
    assert_true(seen[1] > 200 && seen[2] > 200 && seen[3] > 200 && seen[6] > 200);
    rbt_stragglers_deinit(&s);
    rbt_stragglers_deinit(&p);
}

static void no_factor_exceeds_the_limit(void **state)
{
    rbt_stragglers s = parsed("worker=0,slow=1000000;frac=1,slow=1e6", 1, 1);

    (void)state;
    assert_true(rbt_stragglers_factor(&s, 0, 0) == RBT_SLOW_MAX);
    rbt_stragglers_deinit(&s);
}

static void bad_specs_are_refused_with_the_key_and_an_example(void **state)
{
    static const struct {
        const char *spec, *names, *shows;
    } bad[] = {
        {"", "key=value", "frac=0.2"},
        {"frac", "'frac'", "frac=0.2"},
        {"frac=0.2", "frac needs slow", "frac=0.2,slow=2"},
        {"p=0.1", "p needs slow", "p=0.0625,slow=6"},
        {"slow=2", "who is slow", "frac=0.2,slow=2"},
        {"frac=1.5,slow=2", "frac is '1.5'", "between 0 and 1"},
        {"frac=-1,slow=2", "frac is '-1'", "frac=0.2"},
        {"frac=0.2,slow=0.5", "slow is '0.5'", "between 1 and 1000000"},
        {"frac=0.2,slow=2000000", "slow is '2000000'", "between 1 and 1000000"},
        {"frac=0.2,slow=nan", "slow is 'nan'", "a number"},
        {"frac=0.2,slow=2,slow=3", "slow is given twice", "once"},
        {"frac=0.2,p=0.1,slow=2", "frac and p", "';'"},
        {"worker=4,slow=2", "worker is '4'", "between 0 and 3"},
        {"worker=1.5,slow=2", "worker is '1.5'", "whole number"},
        {"lognormal=0.5,slow=2", "leave slow out", "lognormal=0.5"},
        {"lognormal=11", "lognormal is '11'", "between 0 and 10"},
        {"fraction=0.2,slow=2", "'fraction' is not a key", "frac, p, worker, lognormal, trace, slow"},
        {"frac=0.2,slow=2;", "''", "key=value"},
        {"frac=0.2,,slow=2", "''", "key=value"},
        {" frac=0.2,slow=2", "' frac' is not a key", "frac"},
        {"trace=", "trace is ''", "trace=slow.txt"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_stragglers s;
        rbt_error error = {0};

        assert_int_equal(rbt_stragglers_init(&s, bad[i].spec, 4, 1, &error), RBT_E_USAGE);
        if (strncmp(error.text, "--straggler: ", 13) != 0 || strstr(error.text, bad[i].names) == NULL ||
            strstr(error.text, bad[i].shows) == NULL)
            fail_msg("'%s' was refused with: %s", bad[i].spec, error.text);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void trace_holds_from_its_clock_on(void **state)
{
    rbt_stragglers s;

    (void)state;
    write_file("trace.txt", "# worker clock factor\n\n2 5 3\r\n0 0 1.5\n2 1 2 # early\n2\t9  1");
    s = parsed("trace=trace.txt;worker=0,slow=2", 3, 1);
    for (uint64_t c = 0; c < 12; c++) {
        assert_true(rbt_stragglers_factor(&s, 0, c) == 3);
        assert_true(rbt_stragglers_factor(&s, 1, c) == 1);
        assert_true(rbt_stragglers_factor(&s, 2, c) == (c < 1 ? 1 : c < 5 ? 2 : c < 9 ? 3 : 1));
    }
    rbt_stragglers_deinit(&s);
    unlink("trace.txt");
}

static void bad_traces_are_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "trace.txt: no lines"},
        {"# nothing\n", "trace.txt: no lines"},
        {"0 0 2\n1 0\n", "trace.txt:2: 2 words"},
        {"0 0 2 9\n", "trace.txt:1: 4 words"},
        {"0 0 2\n\n3 0 2\n", "trace.txt:3: worker '3'"},
        {"-1 0 2\n", "trace.txt:1: worker '-1'"},
        {"0.5 0 2\n", "trace.txt:1: worker '0.5'"},
        {"0 x 2\n", "trace.txt:1: clock 'x'"},
        {"0 0 0.9\n", "trace.txt:1: factor '0.9'"},
        {"0 0 2x\n", "trace.txt:1: factor '2x'"},
        {"0 0 nan\n", "trace.txt:1: factor 'nan'"},
        {"0 7 2\n1 7 2\n0 7 3\n", "trace.txt:3: worker 0 at clock 7 was given in line 1"},
    };
    rbt_stragglers s;
    rbt_error error = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file("trace.txt", bad[i].text);
        assert_int_equal(rbt_stragglers_init(&s, "trace=trace.txt", 3, 1, &error), RBT_E_DATA);
        if (strncmp(error.text, bad[i].says, strlen(bad[i].says)) != 0)
            fail_msg("'%s' was refused with: %s", bad[i].text, error.text);
    }
    unlink("trace.txt");
    assert_int_equal(rbt_stragglers_init(&s, "trace=missing.txt", 3, 1, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "missing.txt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_slow_without_a_spec),
        cmocka_unit_test(share_slows_the_last_workers_for_good),
        cmocka_unit_test(share_is_rounded_and_at_least_one),
        cmocka_unit_test(one_worker_is_slow_and_the_others_are_not),
        cmocka_unit_test(chance_strikes_as_often_as_told_and_by_the_seed_alone),
        cmocka_unit_test(certain_and_impossible_chances_are_exact),
        cmocka_unit_test(lognormal_is_at_least_one_and_has_the_right_spread),
        cmocka_unit_test(parts_multiply_and_draw_independently),
        cmocka_unit_test(no_factor_exceeds_the_limit),
        cmocka_unit_test(bad_specs_are_refused_with_the_key_and_an_example),
        cmocka_unit_test(trace_holds_from_its_clock_on),
        cmocka_unit_test(bad_traces_are_refused_with_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
