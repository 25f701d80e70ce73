/* Proves rbt_data_read's choice of files: one, several by a pattern, in which order, and what is said when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/read.h"

static const char *const names[] = {"a-1", "a-10", "a-2", "A-3", "b[1]", "b1", "c-empty"};

static int leave_folder(void **state)
{
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* The labels of what the path stands for, in a row. */
static void reads(const char *path, size_t rows, const float *labels)
{
    rbt_data d;
    rbt_error error;
    if (rbt_data_read(path, &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(d.rows, rows);
    assert_memory_equal(d.label, labels, rows * sizeof *labels);
    rbt_data_deinit(&d);
}

static void a_pattern_reads_all_matches_in_the_order_of_their_names(void **state)
{
    (void)state;
    put_file("a-2", "3 1:1"); /* no newline at the end */
    put_file("a-1", "1 1:1\n");
    put_file("a-10", "2 1:1\n");
    put_file("A-3", "0 1:1\n");
    reads("a-*", 3, (const float[]){1, 2, 3});
    reads("[aA]-*", 4, (const float[]){0, 1, 2, 3});
    reads("a-?", 2, (const float[]){1, 3});
    reads("a-2*", 1, (const float[]){3});
}

static void a_file_whose_name_looks_like_a_pattern_is_a_file(void **state)
{
    (void)state;
    put_file("b1", "1 1:1\n");
    reads("b[1]", 1, (const float[]){1});
    put_file("b[1]", "2 1:1\n");
    assert_false(rbt_data_is_pattern("b[1]"));
    reads("b[1]", 1, (const float[]){2});
}

static void files_of_a_pattern_are_one_data_set(void **state)
{
    (void)state;
    rbt_data d;
    put_file("a-1", "1 1:5\n");
    put_file("a-2", "1 0:6 7:1\n");
    put_file("c-empty", "");
    assert_int_equal(rbt_data_read("[ac]-*", &d, NULL), RBT_OK);
    assert_int_equal(d.rows, 2);
    assert_int_equal(d.cols, 8);
    assert_int_equal(d.index[0], 1); /* the second file shows that all count from 0 */
    assert_int_equal(d.index[1], 0);
    rbt_data_deinit(&d);
}

static void refusals_name_the_file_or_the_pattern(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    assert_int_equal(rbt_data_read("a-*", &d, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "a-*: no file matches"));
    put_file("a-1", "1 1:1\n\n");
    put_file("a-2", "1 1:1\n1 x\n");
    assert_int_equal(rbt_data_read("a-*", &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a-2:2: 'x'"));
    put_file("a-1", "\n");
    put_file("a-2", "");
    assert_int_equal(rbt_data_read("a-*", &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a-*: has no rows"));
    put_file("a-2", "\x28\xb5\x2f\xfd....");
    rbt_err err = rbt_data_read("a-*", &d, &error);
    assert_true(err == RBT_E_DATA || err == RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "a-2: "));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_pattern_reads_all_matches_in_the_order_of_their_names),
        IN_FOLDER(a_file_whose_name_looks_like_a_pattern_is_a_file),
        IN_FOLDER(files_of_a_pattern_are_one_data_set),
        IN_FOLDER(refusals_name_the_file_or_the_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
