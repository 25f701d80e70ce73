/* Proves src/runtime/cluster/hosts.c: lists as typed, as Slurm writes them and as Open MPI does; limits; refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "runtime/cluster/hosts.h"

/* The list as text again: every name, with :N where there is more than one process. */
static void expand(const char *text, char *out, size_t room)
{
    rbt_hosts hosts;
    rbt_error error = {0};
    size_t n = 0;

    if (rbt_hosts_parse("--hosts", text, &hosts, &error))
        fail_msg("%s: %s", text, error.text);
    out[0] = 0;
    for (size_t i = 0; i < hosts.count; i++) {
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? " " : "", hosts.at[i].name);
        if (hosts.at[i].processes != 1)
            n += (size_t)snprintf(out + n, room - n, ":%u", hosts.at[i].processes);
    }
    rbt_hosts_deinit(&hosts);
}

static void lists_become_names(void **state)
{
    static const char *const cases[][2] = {
        {"a", "a"},
        {"a,b:4,c", "a b:4 c"},
        {"10.0.0.1,ann@b.example.org:2", "10.0.0.1 ann@b.example.org:2"},
        {"[fd00::1]:3,[::1]", "fd00::1:3 ::1"},
        {"a[1-3,7],b02", "a1 a2 a3 a7 b02"},
        {"n[008-011]", "n008 n009 n010 n011"},
        {"n[9-11]x", "n9x n10x n11x"},
        {"r[1-2]n[1,3]:2", "r1n1:2 r1n3:2 r2n1:2 r2n3:2"},
        {"login,node[2:2,1,3],x[1:7]y", "login node02 node01 node03 x7y"}, /* as Open MPI 4.1 gives it */
        {"[1-2]", "1 2"},
        {"a,a", "a a"},
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expand(cases[i][0], out, sizeof out);
        assert_string_equal(out, cases[i][1]);
    }
}

static void what_is_no_list_is_refused_with_the_reason(void **state)
{
    static const char *const cases[][2] = {
        {"", "an empty name"},
        {"a,", "an empty name"},
        {",a", "an empty name"},
        {":4", "an empty name"},
        {"a b", "no host name has a ' '"},
        {"-oProxyCommand=x", "no host name has a '-'"}, /* ssh would take it for an option */
        {"a;b", "no host name has a ';'"},
        {"a$(b)", "no host name has a '$'"},
        {"a:0", "no number of processes"},
        {"a:x", "no number of processes"},
        {"a:1000001", "no number of processes"},
        {"a:-1", "no number of processes"},
        {"a[1", "has no ']'"},
        {"a]", "no host name has a ']'"},
        {"a[]", "is not a number or a range"},
        {"a[3-1]", "is not a number or a range"},
        {"a[1-]", "is not a number or a range"},
        {"a[-1]", "is not a number or a range"},
        {"a[1,]", "is not a number or a range"},
        {"a[x]", "is not a number or a range"},
        {"a[4294967296]", "is not a number or a range"},
        {"a[x:1]", "no number of digits"},
        {"a[99:1]", "no number of digits"},
        {"a[0:1]", "no number of digits"},
        {"a[0-65536]", "more than 65536 hosts"},
        {"a[0-999][0-999]", "more than 65536 hosts"},
        {"a:1000000,b", "more than 1000000 processes"},
    };
    rbt_hosts hosts;
    rbt_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_not_equal(rbt_hosts_parse("--hosts", cases[i][0], &hosts, &error), RBT_OK);
        if (!strstr(error.text, cases[i][1]) || strncmp(error.text, "--hosts", 7) != 0)
            fail_msg("\"%s\" gives: %s", cases[i][0], error.text);
    }
}

static void names_may_be_as_long_as_the_limit_and_no_longer(void **state)
{
    char text[4 * RBT_HOST_BYTES_MAX] = {0};
    rbt_hosts hosts;
    rbt_error error;

    (void)state;
    memset(text, 'a', RBT_HOST_BYTES_MAX);
    assert_int_equal(rbt_hosts_parse("--hosts", text, &hosts, &error), RBT_OK);
    assert_string_equal(hosts.at[0].name, text);
    rbt_hosts_deinit(&hosts);
    text[RBT_HOST_BYTES_MAX] = 'a';
    assert_int_equal(rbt_hosts_parse("--hosts", text, &hosts, &error), RBT_E_LIMIT);
    strcpy(text + RBT_HOST_BYTES_MAX - 1, "[10-11]");
    assert_int_equal(rbt_hosts_parse("--hosts", text, &hosts, &error), RBT_E_LIMIT);
    for (size_t i = 0; i + 4 < sizeof text; i += 3) /* brackets do not nest deeper than names are long */
        memcpy(text + i, "[1]", 4);
    assert_int_equal(rbt_hosts_parse("--hosts", text, &hosts, &error), RBT_E_LIMIT);
    assert_int_equal(rbt_hosts_parse("--hosts", "n[1-65536]", &hosts, &error), RBT_OK);
    assert_int_equal(hosts.count, RBT_HOSTS_MAX);
    rbt_hosts_deinit(&hosts);
}

static void slurm_counts_are_spread_over_the_hosts(void **state)
{
    static const char *const wrong[] = {"",         "2",      "2(x3)",     "2(x5)", "2(x3),1,1", "2(x3),1,",
                                        "2,(x3),1", "2(x3,1", "2(x99999)", "x",     "2(x3) 1",   "1000000(x4)"};
    rbt_hosts hosts;
    rbt_error error;

    (void)state;
    assert_int_equal(rbt_hosts_parse("list", "n[1-4]", &hosts, &error), RBT_OK);
    assert_int_equal(hosts.processes, 4);
    assert_int_equal(rbt_hosts_count("SLURM_TASKS", "2(x3),1", &hosts, &error), RBT_OK);
    assert_int_equal(hosts.at[0].processes, 2);
    assert_int_equal(hosts.at[2].processes, 2);
    assert_int_equal(hosts.at[3].processes, 1);
    assert_int_equal(hosts.processes, 7);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(rbt_hosts_count("SLURM_TASKS", wrong[i], &hosts, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, "SLURM_TASKS"));
    }
    rbt_hosts_deinit(&hosts);
}

/* Under the sanitizers: whatever stands there, nothing is read or written outside, nothing is lost. */
static void any_text_is_a_list_or_an_error(void **state)
{
    static const char letters[] = "ab1029[],-:(x)@.";
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    rbt_hosts hosts;
    rbt_error error;
    char text[40];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t n = rbt_rng_below(&rng, sizeof text);

        for (size_t k = 0; k < n; k++)
            text[k] = letters[rbt_rng_below(&rng, sizeof letters - 1)];
        text[n] = 0;
        if (rbt_hosts_parse("list", text, &hosts, &error))
            continue;
        (void)rbt_hosts_count("counts", text, &hosts, &error);
        rbt_hosts_deinit(&hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_become_names),
        cmocka_unit_test(what_is_no_list_is_refused_with_the_reason),
        cmocka_unit_test(names_may_be_as_long_as_the_limit_and_no_longer),
        cmocka_unit_test(slurm_counts_are_spread_over_the_hosts),
        cmocka_unit_test(any_text_is_a_list_or_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
