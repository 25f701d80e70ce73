/* Proves src/base/text.c: pieces follow each other, and what does not fit is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

#include <string.h>

static void pieces_follow_each_other(void **state)
{
    (void)state;
    char text[32];
    size_t n = rbt_text_add(text, sizeof text, 0, "rank %d", 1);
    n = rbt_text_add(text, sizeof text, n, ", rank %d", 2);
    assert_string_equal(text, "rank 1, rank 2");
    assert_int_equal(n, strlen(text));
}

static void pieces_that_do_not_fit_are_cut(void **state)
{
    (void)state;
    for (size_t room = 1; room < 20; room++) {
        char text[32];
        size_t n = 0;
        memset(text, '#', sizeof text);
        for (int i = 0; i < 5; i++) {
            n = rbt_text_add(text, room, n, "%s", "seven..");
            assert_true(n < room);
            assert_int_equal(n, strlen(text));
        }
        assert_int_equal(n, room - 1);
        assert_int_equal(text[room], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(pieces_that_do_not_fit_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
