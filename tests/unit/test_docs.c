/* Proves src/data/docs: bags of words and lda-c as rows of counts, whatever the cut; limits and refusals; how lda-c is told
 * from LIBSVM text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "data/data.h"
#include "data/docs.h"
#include "data/read.h"
#include "unit/files.h"

typedef rbt_err parser(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

static rbt_err parse_cut(parser *p, const char *text, rbt_cut cut, const rbt_reading *reading, rbt_data *data,
                         rbt_error *error)
{
    const rbt_text whole = {.name = "t", .bytes = text, .n = strlen(text)};
    return p(&(rbt_source){&whole, 1, "t", cut, NULL}, reading, data, error);
}

static rbt_err parse(parser *p, const char *text, rbt_data *data, rbt_error *error)
{
    return parse_cut(p, text, (rbt_cut){1 << 20, 1}, &(rbt_reading){0}, data, error);
}

static void refused(parser *p, const char *text, rbt_err code, const char *because)
{
    rbt_data d;
    rbt_error error;
    assert_int_equal(parse(p, text, &d, &error), code);
    if (strstr(error.text, because) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, because);
}

/* Four documents over words 0 to 4; the third is empty. */
static void check(const rbt_data *d, size_t cols)
{
    static const size_t start[] = {0, 2, 3, 3, 5};
    static const uint32_t index[] = {0, 3, 2, 0, 4};
    static const float value[] = {2, 1, 16777215, 1, 7};
    assert_int_equal(d->rows, 4);
    assert_int_equal(d->cols, cols);
    assert_int_equal(d->nnz, 5);
    assert_memory_equal(d->start, start, sizeof start);
    assert_memory_equal(d->index, index, sizeof index);
    assert_memory_equal(d->value, value, sizeof value);
    assert_int_equal(d->content, RBT_CONTENT_DOCS);
    for (size_t r = 0; r < d->rows; r++)
        assert_true(d->label[r] == 0);
}

static void bags_of_words_are_rows_of_counts_in_any_order(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "4\n6\n5\n1 1 2\n1 4 1\n2 3 16777215\n4 1 1\n4 5 7\n",
        " 4 \r\n6\r\n5\r\n4 5 7\r\n2\t3 16777215\r\n1 4 1\r\n4 1 1\r\n1 1 2",
        ("\xef\xbb\xbf"
         "4\n6\n7\n1 1 1\n1 4 1\n2 3 16777215\n\n4 1 1\n1 1 1\n4 5 7\n4 6 0\n"), /* added up; dropped */
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        for (size_t chunk = 1; chunk < 60; chunk += 3) {
            rbt_data d;
            rbt_error error = {RBT_OK, ""};
            if (parse_cut(rbt_docword_parse, forms[i], (rbt_cut){chunk, 2}, &(rbt_reading){0}, &d, &error) != RBT_OK)
                fail_msg("%zu: %s", i, error.text);
            check(&d, 6);
            rbt_data_deinit(&d);
        }
    }
}

static void lda_c_lines_are_rows_of_counts_in_any_order(void **state)
{
    (void)state;
    static const char *const forms[] = {"2 0:2 3:1\n1 2:16777215\n0\n2 0:1 4:7\n",
                                        "2 3:1 0:2\r\n1 2:16777215\r\n 0 \r\n\n3 4:4 0:1 4:3"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        for (size_t chunk = 1; chunk < 50; chunk++) {
            rbt_data d;
            rbt_error error = {RBT_OK, ""};
            if (parse_cut(rbt_ldac_parse, forms[i], (rbt_cut){chunk, 2}, &(rbt_reading){0}, &d, &error) != RBT_OK)
                fail_msg("%zu: %s", i, error.text);
            check(&d, 5);
            rbt_data_deinit(&d);
        }
    }
}

static void bad_bags_of_words_are_refused_with_their_place(void **state)
{
    (void)state;
    parser *p = rbt_docword_parse;
    refused(p, "", RBT_E_DATA, "t: has no rows; expected one or more lines of the form: document word count");
    refused(p, "x\n", RBT_E_DATA, "t:1: 'x': expected the number of documents");
    refused(p, "1 2\n", RBT_E_DATA, "t:1: '1 2': expected the number of documents");
    refused(p, "1\n-1\n", RBT_E_DATA, "t:2: '-1': expected the number of words");
    refused(p, "1\n1\n", RBT_E_DATA, "t:3: '': expected the number of lines that follow");
    refused(p, "4294967295\n1\n1\n1 1 1\n", RBT_E_LIMIT, "t:1: there must be fewer than 4294967295 documents");
    refused(p, "99999999999999999999\n1\n1\n1 1 1\n", RBT_E_LIMIT, "t:1: there must be fewer");
    refused(p, "4294967294\n1\n1\n1 1 1\n", RBT_E_LIMIT, "promises 4294967294 documents and has only 1 lines");
    refused(p, "1\n1\n1\n1 1\n", RBT_E_DATA, "t:4: '1 1': expected three whole numbers: document, word, count");
    refused(p, "1\n1\n1\n1 1 1 1\n", RBT_E_DATA, "t:4: '1 1 1 1': expected three");
    refused(p, "1\n1\n1\n1 1 1.5\n", RBT_E_DATA, "t:4: '1 1 1.5': expected three");
    refused(p, "1\n1\n1\n2 1 1\n", RBT_E_DATA, "t:4: document 2 and word 1: expected 1 to 1 and 1 to 1");
    refused(p, "1\n1\n1\n1 0 1\n", RBT_E_DATA, "t:4: document 1 and word 0: expected 1 to 1");
    refused(p, "1\n1\n1\n1 1 16777216\n", RBT_E_LIMIT, "t:4: a word that occurs 16777216 times");
    refused(p, "1\n1\n2\n1 1 16777215\n1 1 16777215\n", RBT_E_LIMIT, "t: word 1 occurs more than 16777215 times in");
    refused(p, "1\n1\n2\n1 1 1\n", RBT_E_DATA, "t:3: promises 2 lines of document, word and count, and 1 follow");
    refused(p, "1\n2\n1\n1 1 1\n1 2 1\n", RBT_E_DATA, "t:3: promises 1 lines");
}

static void bad_lda_c_lines_are_refused_with_their_place(void **state)
{
    (void)state;
    parser *p = rbt_ldac_parse;
    refused(p, "\n", RBT_E_DATA, "t: has no rows; expected one or more lines of the form: N word:count");
    refused(p, "1 1:1\n-1\n", RBT_E_DATA, "t:2: '-1': expected the number of words that follow");
    refused(p, "1:1\n", RBT_E_DATA, "t:1: '1:1': expected the number of words");
    refused(p, "2 1:1\n", RBT_E_DATA, "t:1: the line promises 2 words and has fewer");
    refused(p, "1 1:1 2:1\n", RBT_E_DATA, "t:1: the line promises 1 words and has more");
    refused(p, "1 1:1.5\n", RBT_E_DATA, "t:1: '1:1.5': expected a word's number and how often it occurs");
    refused(p, "1 1\n", RBT_E_DATA, "t:1: '1': expected a word's number");
    refused(p, "1 4294967294:1\n", RBT_E_LIMIT, "t:1: '4294967294:1': words are numbered below 4294967294");
    refused(p, "1 1:16777216\n", RBT_E_LIMIT, "occur at most 16777215 times");
    refused(p, "2 1:16777215 1:1\n", RBT_E_LIMIT, "");
    rbt_data d;
    rbt_error error;
    assert_int_equal(parse(p, "1 4294967293:1\n", &d, &error), RBT_OK);
    assert_int_equal(d.cols, RBT_DATA_INDEX_LIMIT - 1);
    rbt_data_deinit(&d);
}

static void bad_lines_are_left_out_when_they_may_be(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report = {0};
    const rbt_reading reading = {.skip_bad = 1, .report = &report};
    const char *bag = "4\n6\n6\n1 1 2\n1 4 1\n9 9 9\n2 3 16777215\n4 1 1\n4 5 7\n";
    assert_int_equal(parse_cut(rbt_docword_parse, bag, (rbt_cut){5, 1}, &reading, &d, &error), RBT_OK);
    check(&d, 6);
    assert_int_equal(report.skipped, 1);
    rbt_data_deinit(&d);
    const char *ldac = "2 0:2 3:1\n1 2:16777215\n0\n1 9:9 8:8\n2 0:1 4:7\n";
    assert_int_equal(parse_cut(rbt_ldac_parse, ldac, (rbt_cut){5, 1}, &reading, &d, &error), RBT_OK);
    check(&d, 5);
    assert_string_equal(report.first.text, "t:4: the line promises 1 words and has more; mend its first number, or "
                                           "give --format libsvm if that is a label");
    rbt_data_deinit(&d);
}

static void files_of_a_pattern_follow_each_other(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    put_file("d1", "3\n4\n3\n1 1 2\n1 4 1\n2 3 16777215\n");
    put_file("d2", "1\n6\n2\n1 1 1\n1 5 7\n");
    assert_int_equal(rbt_data_read("d?", &d, &error), RBT_OK);
    check(&d, 6);
    rbt_data_deinit(&d);
}

static void lda_c_is_recognised_when_every_line_counts_its_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        rbt_kind kind;
    } known[] = {
        {"1\n2\n1\n1 1 1\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n1 1:1\n", RBT_KIND_LIBSVM},
        {"1\n2\n1\n", RBT_KIND_LIBSVM},
        {"8 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1\n1 1:1\n2 1:1 5:2\n", RBT_KIND_LDAC},
        {"8 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1\n1 1:1\n1 1:1 5:2\n", RBT_KIND_LIBSVM},
        {"8 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:0.5\n1 1:1\n2 1:1 5:2\n", RBT_KIND_LIBSVM},
        {"8 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1\n1 1:1\n", RBT_KIND_LIBSVM},  /* too few lines */
        {"1 1:1\n2 1:1 2:1\n3 1:1 2:1 3:1\n0\n1 1:1\n", RBT_KIND_LIBSVM}, /* too small numbers */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const rbt_input input = {.name = "t", .bytes = known[i].text, .n = strlen(known[i].text)};
        if (rbt_kind_of(&input, RBT_CONTENT_ROWS) != known[i].kind)
            fail_msg("'%s' is taken for %d", known[i].text, (int)rbt_kind_of(&input, RBT_CONTENT_ROWS));
    }
}

/* Or words would be shifted by one, as LIBSVM text counts from 1, and a bad line refused as one of LIBSVM text. */
static void where_documents_are_expected_lines_that_lie_are_still_documents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        rbt_kind kind;
    } known[] = {
        {"2 1:1 3:2\n3 2:1 4:1\n1 1:5\n", RBT_KIND_LDAC},
        {"2 1:1 3:2\n3 2:1 4:1\n5 1:5\n", RBT_KIND_LIBSVM},
        {"1 1:1 2:1\n-1 1:2\n", RBT_KIND_LIBSVM},
        {"2 1:1 3:2\n3 2:1 4:0.5\n", RBT_KIND_LIBSVM},
        {"1\n2\n1\n1 1 -2\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n1 1 1.5\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n1 1\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n1\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n", RBT_KIND_DOCWORD},
        {"1\n2\n1\n1 1:1\n", RBT_KIND_LIBSVM},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const rbt_input input = {.name = "t", .bytes = known[i].text, .n = strlen(known[i].text)};
        if (rbt_kind_of(&input, RBT_CONTENT_DOCS) != known[i].kind)
            fail_msg("'%s' is taken for %d", known[i].text, (int)rbt_kind_of(&input, RBT_CONTENT_DOCS));
    }
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"d1", "d2"};
    return remove_folder(state, names, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bags_of_words_are_rows_of_counts_in_any_order),
        cmocka_unit_test(lda_c_lines_are_rows_of_counts_in_any_order),
        cmocka_unit_test(bad_bags_of_words_are_refused_with_their_place),
        cmocka_unit_test(bad_lda_c_lines_are_refused_with_their_place),
        cmocka_unit_test(bad_lines_are_left_out_when_they_may_be),
        cmocka_unit_test_setup_teardown(files_of_a_pattern_follow_each_other, enter_folder, leave_folder),
        cmocka_unit_test(lda_c_is_recognised_when_every_line_counts_its_pairs),
        cmocka_unit_test(where_documents_are_expected_lines_that_lie_are_still_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
