/* Proves src/base/error.c and version.c: one table of codes, messages that always fit, a panic that ends the process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void every_code_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int a = RBT_OK; a <= RBT_E_PIPE; a++) {
        assert_non_null(rbt_err_name((rbt_err)a));
        assert_string_not_equal(rbt_err_name((rbt_err)a), "unknown");
        for (int b = RBT_OK; b < a; b++)
            assert_string_not_equal(rbt_err_name((rbt_err)a), rbt_err_name((rbt_err)b));
    }
    assert_string_equal(rbt_err_name(RBT_E_DATA), "data");
    assert_string_equal(rbt_err_name((rbt_err)(RBT_E_PIPE + 1)), "unknown");
}

static void exit_codes_are_those_promised_to_users(void **state)
{
    (void)state;
    for (int code = RBT_OK; code <= RBT_E_PIPE + 1; code++) {
        int expected = code == RBT_OK              ? 0
                       : code == RBT_E_USAGE       ? 2
                       : code == RBT_E_TARGET      ? 3
                       : code == RBT_E_MISSING     ? 4
                       : code == RBT_E_BROKEN      ? 5
                       : code == RBT_E_NO_PROGRESS ? 6
                       : code == RBT_E_LOST        ? 7
                       : code == RBT_E_INTERRUPTED ? 130
                       : code == RBT_E_PIPE        ? 141
                                                   : 1;
        assert_int_equal(rbt_err_exit_code((rbt_err)code), expected);
    }
}

static void fail_fills_the_error_and_returns_the_code(void **state)
{
    (void)state;
    rbt_error error = {0};
    assert_int_equal(rbt_fail(&error, RBT_E_DATA, "%s:%d: bad", "a.svm", 7), RBT_E_DATA);
    assert_int_equal(error.code, RBT_E_DATA);
    assert_string_equal(error.text, "a.svm:7: bad");
}

static void fail_works_without_an_error_to_fill(void **state)
{
    (void)state;
    assert_int_equal(rbt_fail(NULL, RBT_E_IO, "nobody reads %d", 1), RBT_E_IO);
}

static void fail_cuts_a_message_that_does_not_fit(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    rbt_error error;
    rbt_fail(&error, RBT_E_LIMIT, "%s", text);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_string_equal(error.text + sizeof error.text - 4, "...");
}

static void fail_can_wrap_its_own_text(void **state)
{
    (void)state;
    rbt_error error;
    rbt_fail(&error, RBT_E_IO, "no space");
    rbt_fail(&error, RBT_E_IO, "model.rbt: %s", error.text);
    assert_string_equal(error.text, "model.rbt: no space");
}

static void a_broken_assertion_names_its_place_and_aborts(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        rbt_panic("here.c", 12, "count < room");
    }
    close(ends[1]);
    char said[256] = {0};
    size_t length = 0;
    ssize_t got;
    while (length < sizeof said - 1 && (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_non_null(strstr(said, "here.c:12: count < room"));
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

static void a_true_assertion_does_nothing(void **state)
{
    (void)state;
    int calls = 0;
    RBT_ASSERT(++calls == 1);
    assert_int_equal(calls, 1);
}

static void version_text_is_made_of_the_headers_numbers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", RBT_VERSION_MAJOR, RBT_VERSION_MINOR, RBT_VERSION_PATCH);
    assert_string_equal(rbt_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(exit_codes_are_those_promised_to_users),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_code),
        cmocka_unit_test(fail_works_without_an_error_to_fill),
        cmocka_unit_test(fail_cuts_a_message_that_does_not_fit),
        cmocka_unit_test(fail_can_wrap_its_own_text),
        cmocka_unit_test(a_broken_assertion_names_its_place_and_aborts),
        cmocka_unit_test(a_true_assertion_does_nothing),
        cmocka_unit_test(version_text_is_made_of_the_headers_numbers),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
