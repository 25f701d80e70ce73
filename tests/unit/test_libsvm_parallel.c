/* Proves src/data/libsvm.h: whatever the cut and the number of threads, the same data or the same refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "data/libsvm.h"

static const rbt_cut whole = {SIZE_MAX, 1};

static rbt_err parse(const char *text, rbt_cut cut, rbt_data *data, rbt_error *error)
{
    size_t n = strlen(text);
    char *copy = malloc(n > 0 ? n : 1); /* of exactly that size: a sanitizer sees every read beyond it */
    assert_non_null(copy);
    memcpy(copy, text, n);
    const rbt_text mem = {.name = "mem", .bytes = copy, .n = n};
    rbt_err err = rbt_libsvm_parse(&(rbt_source){&mem, 1, "all", cut, NULL}, &(rbt_reading){0}, data, error);
    free(copy);
    return err;
}

/* Every size of chunk from one byte to more than the text, by one and by several threads. */
static void same_for_every_cut(const char *text)
{
    rbt_data expected = {0}, d = {0};
    rbt_error refusal = {RBT_OK, ""}, error;
    rbt_err code = parse(text, whole, &expected, &refusal);
    for (size_t bytes = 1; bytes <= strlen(text) + 1; bytes++) {
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            assert_int_equal(parse(text, (rbt_cut){bytes, threads}, &d, &error), code);
            if (code == RBT_OK) {
                same_data(&expected, &d);
                rbt_data_deinit(&d);
            } else {
                assert_string_equal(error.text, refusal.text);
            }
        }
    }
    if (code == RBT_OK)
        rbt_data_deinit(&expected);
}

static const char nasty[] = "\xef\xbb\xbf# a comment: with 1:2 colons\r\n"
                            "\n\n  \t\r\n"
                            "+1 1:0.5 3:-2 # 9:9\n"
                            "-1 qid:7 2:1e-1 5:0\r\n"
                            "3\n"
                            "#\n"
                            "1 1:0 2:0 3:0\n"
                            "0.25 4:1 17:2 18:3.25 900:1e-30\n"
                            "\t-7 1:1 \t 2:2\n"
                            "\n"
                            "2 12:1";

static void every_cut_of_a_nasty_text_gives_the_same_data(void **state)
{
    (void)state;
    rbt_data d;
    assert_int_equal(parse(nasty, whole, &d, NULL), RBT_OK);
    assert_int_equal(d.rows, 7);
    assert_int_equal(d.nnz, 10);
    assert_int_equal(d.cols, 900);
    rbt_data_deinit(&d);
    same_for_every_cut(nasty);
}

static void an_index_zero_in_any_chunk_counts_for_all(void **state)
{
    (void)state;
    same_for_every_cut("1 1:1 2:2\n1 3:3\n# c\n1 0:5 3:1\n1 2:2\n");
    same_for_every_cut("1 0:1\n1 1:1 4:2\n\n1 3:3\n");
}

static void texts_without_rows_are_refused_under_every_cut(void **state)
{
    (void)state;
    same_for_every_cut("");
    same_for_every_cut("\n\n# nothing\n  \n");
}

static void the_first_refusal_in_the_file_wins_under_every_cut(void **state)
{
    (void)state;
    static const char text[] = "1 1:1\n\n# c\n1 1:1 2:2\n1 4:1 3:1\n1 1:x\nnan\n1 1:1\n1 4294967295:1\n";
    rbt_data d;
    rbt_error error;
    assert_int_equal(parse(text, (rbt_cut){4, 3}, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "mem:5: index 3 stands after index 4"));
    same_for_every_cut(text);
    same_for_every_cut("1 1:1\n1 1:1\n1 1:1\nx");
    same_for_every_cut("1 0:1\n1 4294967294:1\n");
}

static void many_rows_by_many_threads_give_the_same_data(void **state)
{
    (void)state;
    size_t rows = 4000, n = 0;
    char *text = malloc(rows * 64);
    assert_non_null(text);
    for (size_t r = 0; r < rows; r++)
        n += (size_t)snprintf(text + n, 64, r % 7 == 0 ? "# %zu:1\n" : "%zu 1:0.5 %zu:%zu\n", r, 2 + r % 50, r % 3);
    rbt_text part = {.name = "mem", .bytes = text, .n = n};
    rbt_data expected, d;
    assert_int_equal(rbt_libsvm_parse(&(rbt_source){&part, 1, "all", whole, NULL}, &(rbt_reading){0}, &expected, NULL),
                     RBT_OK);
    for (unsigned threads = 1; threads <= 8; threads++) {
        assert_int_equal(
            rbt_libsvm_parse(&(rbt_source){&part, 1, "all", (rbt_cut){97, threads}, NULL}, &(rbt_reading){0}, &d, NULL),
            RBT_OK);
        same_data(&expected, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&expected);
    free(text);
}

static void several_texts_are_one_data_set(void **state)
{
    (void)state;
    const rbt_text texts[] = {
        {"a", "1 1:1\n2 2:2", 11, false}, {"b", "# no row\n", 9, false}, {"c", "\n3 3:3 5:0\n", 11, false}};
    rbt_data expected, d;
    rbt_error error;
    assert_int_equal(parse("1 1:1\n2 2:2\n3 3:3 5:0\n", whole, &expected, NULL), RBT_OK);
    for (size_t bytes = 1; bytes < 12; bytes++) {
        assert_int_equal(
            rbt_libsvm_parse(&(rbt_source){texts, 3, "all", (rbt_cut){bytes, 2}, NULL}, &(rbt_reading){0}, &d, &error),
            RBT_OK);
        same_data(&expected, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&expected);

    const rbt_text bad[] = {{"a", "1 1:1\n2 2:2", 11, false}, {"c", "\n3 x\n", 5, false}, {"d", "y", 1, false}};
    assert_int_equal(
        rbt_libsvm_parse(&(rbt_source){bad, 3, "all", (rbt_cut){1, 2}, NULL}, &(rbt_reading){0}, &d, &error),
        RBT_E_DATA);
    assert_non_null(strstr(error.text, "c:2: 'x'"));
    assert_int_equal(rbt_libsvm_parse(&(rbt_source){&texts[1], 1, "all", whole, NULL}, &(rbt_reading){0}, &d, &error),
                     RBT_E_DATA);
    assert_non_null(strstr(error.text, "all: has no rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_of_a_nasty_text_gives_the_same_data),
        cmocka_unit_test(an_index_zero_in_any_chunk_counts_for_all),
        cmocka_unit_test(texts_without_rows_are_refused_under_every_cut),
        cmocka_unit_test(the_first_refusal_in_the_file_wins_under_every_cut),
        cmocka_unit_test(many_rows_by_many_threads_give_the_same_data),
        cmocka_unit_test(several_texts_are_one_data_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
