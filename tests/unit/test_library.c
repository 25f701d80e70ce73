/* Proves src/base/library.c: a library that is there is loaded once, one that is not, or is another one, is refused with
 * what to install, and goes on being refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/library.h"

#include <math.h>
#include <string.h>

/* Of the C library's own part for mathematics, which is everywhere. */
#define FUNCTIONS(F)                                                                                                   \
    F(ldexp)                                                                                                           \
    F(trunc)

double no_such_function(double x);
#define STRANGE_FUNCTIONS(F)                                                                                           \
    F(ldexp)                                                                                                           \
    F(no_such_function)

RBT_LIBRARY_DECLARE(there, FUNCTIONS);
RBT_LIBRARY_DEFINE(there, FUNCTIONS, "libm.so.6", "roots need libm", "libc6");
RBT_LIBRARY_DECLARE(elsewhere, FUNCTIONS);
RBT_LIBRARY_DEFINE(elsewhere, FUNCTIONS, "libno-such-library.so.1", "roots need nothing", "no-such-package");
RBT_LIBRARY_DECLARE(strange, STRANGE_FUNCTIONS);
RBT_LIBRARY_DEFINE(strange, STRANGE_FUNCTIONS, "libm.so.6", "roots need libm", "libc6");

static void says(const rbt_error *error, const char *part)
{
    if (strstr(error->text, part) == NULL)
        fail_msg("'%s' does not say '%s'", error->text, part);
}

static void its_functions_are_found(void **state)
{
    (void)state;
    rbt_error error;
    for (int i = 0; i < 2; i++)
        assert_int_equal(rbt_library_load(&there_library, &error), RBT_OK);
    assert_true(there.ldexp(1.5, 3) == 12);
    assert_true(there.trunc(2.5) == 2);
}

static void one_that_is_absent_is_named_with_its_package(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        rbt_error error = {0};
        assert_int_equal(rbt_library_load(&elsewhere_library, &error), RBT_E_UNSUPPORTED);
        says(&error, "roots need nothing, which cannot be loaded");
        says(&error, "libno-such-library.so.1");
        says(&error, "install it (Debian: no-such-package)");
    }
    assert_int_equal(rbt_library_load(&elsewhere_library, NULL), RBT_E_UNSUPPORTED);
    assert_null(elsewhere.ldexp);
}

static void one_that_lacks_a_function_is_refused(void **state)
{
    (void)state;
    rbt_error error = {0};
    assert_int_equal(rbt_library_load(&strange_library, &error), RBT_E_UNSUPPORTED);
    says(&error, "libm.so.6 has no function no_such_function");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_functions_are_found),
        cmocka_unit_test(one_that_is_absent_is_named_with_its_package),
        cmocka_unit_test(one_that_lacks_a_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
