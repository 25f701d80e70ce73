/* Proves src/data/where: rows in messages become the places where they stand, whatever lies between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <string.h>

#include "data/where.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void becomes(const char *message, rbt_reading reading, const char *expected)
{
    rbt_error error = {.code = RBT_E_DATA};
    (void)snprintf(error.text, sizeof error.text, "%s", message);
    rbt_where_rows("a\nb", &reading, &error);
    assert_string_equal(error.text, expected);
}

static void rows_become_their_files_and_lines(void **state)
{
    (void)state;
    put_file("a", "\xef\xbb\xbf# no row\n1 1:1\n\n2 2:2 # a comment\n");
    put_file("b", "3 3:3\n\t# none\n4 4:4");
    becomes("row 4 has the label 4", (rbt_reading){0}, "b:3: the row has the label 4");
    becomes("labels: 1 (row 1), 2 (row 2) and 3 (row 3); sorry", (rbt_reading){0},
            "labels: 1 (a:2), 2 (a:4) and 3 (b:1); sorry");
    becomes("row 5 is not there", (rbt_reading){0}, "row 5 is not there");
    becomes("row 4 after bad ones", (rbt_reading){.skip_bad = 1}, "row 4 after bad ones");
    becomes("arrow 3, rows and the row of 2", (rbt_reading){0}, "arrow 3, rows and the row of 2");
    put_file("a", "1 |a b\n\n1 |c\n");
    put_file("b", "2 |a\n");
    becomes("row 3 has", (rbt_reading){0}, "b:1: the row has");
    put_file("a", "y,x\n1,\"2\n3\"\n\n2,4\ny,x\n");
    put_file("b", "y,x\n3,5\n");
    becomes("row 2 has", (rbt_reading){0}, "a:5: the row has");
    becomes("row 3 has", (rbt_reading){0}, "b:2: the row has");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_become_their_files_and_lines, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
