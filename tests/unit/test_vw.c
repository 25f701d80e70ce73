/* Proves src/data/vw: Vowpal Wabbit text, its hashes, and that neither cuts nor threads change anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/vw.h"

static rbt_err parse_cut(const char *text, rbt_reading reading, rbt_cut cut, rbt_data *data, rbt_error *error)
{
    size_t n = strlen(text);
    char *copy = malloc(n > 0 ? n : 1); /* of exactly that size: a sanitizer sees every read beyond it */
    assert_non_null(copy);
    memcpy(copy, text, n);
    const rbt_text mem = {.name = "mem", .bytes = copy, .n = n};
    rbt_err err = rbt_vw_parse(&(rbt_source){&mem, 1, "mem", cut, NULL}, &reading, data, error);
    free(copy);
    return err;
}

static rbt_data parsed(const char *text, uint32_t bits)
{
    rbt_data data;
    rbt_error error;
    if (parse_cut(text, (rbt_reading){.bits = bits}, rbt_cut_default(), &data, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return data;
}

static void refused(const char *text, const char *part)
{
    rbt_data data;
    rbt_error error;
    assert_int_equal(parse_cut(text, (rbt_reading){0}, rbt_cut_default(), &data, &error), RBT_E_DATA);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, error.text);
}

/* Values of MurmurHash3_x86_32 as its author's test vectors and Vowpal Wabbit give them. */
static void names_hash_as_in_vowpal_wabbit(void **state)
{
    (void)state;
    assert_int_equal(rbt_vw_hash("a", 1, 0), 0x3c2569b2);
    assert_int_equal(rbt_vw_hash("hello", 5, 0), 0x248bfa47);
    assert_int_equal(rbt_vw_hash("hello, world", 12, 0), 0x149bbb7f);
    assert_int_equal(rbt_vw_hash("The quick brown fox jumps over the lazy dog", 43, 0), 0x2e4ff723);
    assert_int_equal(rbt_vw_hash("aaaa", 4, 0x9747b28c), 0x5a97808a);
    assert_int_equal(rbt_vw_hash("aaa", 3, 0x9747b28c), 0x283e0130);
    assert_int_equal(rbt_vw_hash("Constant", 8, 0) == 11650396, false); /* that one is no hash */
    assert_int_equal(rbt_vw_hash("123", 3, 7), 130);                    /* digits are a number */
    assert_int_equal(rbt_vw_hash("12a", 3, 0), rbt_vw_hash("12a", 3, UINT64_C(1) << 32));
    assert_int_equal(rbt_vw_hash("", 0, 5), 5);
}

static void rows_have_labels_importances_and_hashed_features(void **state)
{
    (void)state;
    rbt_data d = parsed("1 2.5 0.5 'tag|a x:3 y\n-1 | 7:2 5\n", 10);
    assert_int_equal(d.rows, 2);
    assert_int_equal(d.cols, 1024);
    assert_int_equal(d.nnz, 4);
    assert_true(d.label[0] == 1 && d.label[1] == -1);
    assert_true(d.weight != NULL && d.weight[0] == 2.5F && d.weight[1] == 1);
    uint64_t a = rbt_vw_hash("a", 1, 0);
    uint32_t x = rbt_vw_hash("x", 1, a) & 1023, y = rbt_vw_hash("y", 1, a) & 1023;
    assert_int_equal(d.index[0], x < y ? x : y);
    assert_int_equal(d.index[1], x < y ? y : x);
    assert_true(d.value[x < y ? 0 : 1] == 3 && d.value[x < y ? 1 : 0] == 1);
    assert_int_equal(d.index[2], 5); /* numbers of the namespace without a name are the columns */
    assert_int_equal(d.index[3], 7);
    assert_true(d.value[2] == 1 && d.value[3] == 2);
    rbt_data_deinit(&d);
    d = parsed("1 | a\n", 0);
    assert_int_equal(d.cols, 1 << 18);
    assert_null(d.weight);
    rbt_data_deinit(&d);
}

static void form_does_not_matter(void **state)
{
    (void)state;
    rbt_data plain = parsed("1 |a x:2 y |b z\n-1 |a x\n", 12);
    static const char *const same[] = {
        "1 |a x:2 y |b z\n-1 |a x",                    /* no newline at the end */
        "1 |a x:2 y |b z\r\n-1 |a x\r\n",              /* line ends of other systems */
        "\n 1\t|a\tx:2   y \t|b z  \n\n\n  -1 |a x\n", /* blanks and empty lines */
        "1 |b z|a y x:2\n-1 |a x\n",                   /* in another order */
        "1 tag|a x:2 y |b z\n-1 'other |a x\n",        /* tags */
        "+1.0 |a x:2.0 y:1 |b z:1e0\n-1 |a x:1 w:0\n", /* other ways to write numbers; zeros */
        "1 |a:0.5 x:4 y:2 |b:1 z\n-1 |a:1 x\n",        /* weights of namespaces */
        "1 |a x y x |b z\n-1 |a x\n",                  /* what is there twice adds up */
        "1 |a x y |b z |a x\n-1 |a x\n",               /* also in a namespace that comes back */
        "\357\273\2771 |a x:2 y |b z\n-1 |a x\n",      /* byte order mark */
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        rbt_data d = parsed(same[i], 12);
        same_data(&plain, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&plain);
}

static void features_that_collide_add_up_and_may_vanish(void **state)
{
    (void)state;
    rbt_data d = parsed("1 | 3:1 11:2 19:0.5 1:1 2:4\n2 | 1:5 9:-5 3:2\n", 3);
    assert_int_equal(d.cols, 8);
    assert_int_equal(d.nnz, 4);
    assert_true(d.index[0] == 1 && d.index[1] == 2 && d.index[2] == 3);
    assert_true(d.value[0] == 1 && d.value[1] == 4 && d.value[2] == 3.5F);
    assert_int_equal(d.start[2] - d.start[1], 1); /* 5 - 5 is nothing */
    rbt_data_deinit(&d);
}

static void names_and_values_may_be_left_out_or_be_words(void **state)
{
    (void)state;
    rbt_data d = parsed("1 |5 :2 :3\n1 |u name:john\n1 |\n", 10);
    assert_int_equal(d.nnz, 3);
    assert_true(d.index[0] == 5 && d.value[0] == 2 && d.index[1] == 6 && d.value[1] == 3);
    uint64_t name = rbt_vw_hash("name", 4, rbt_vw_hash("u", 1, 0));
    assert_int_equal(d.index[2], rbt_vw_hash("john", 4, name) & 1023);
    assert_true(d.value[2] == 1);
    rbt_data_deinit(&d);
}

static void long_rows_are_put_in_order(void **state)
{
    (void)state;
    size_t n = 5000, room = n * 8, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "1 |");
    for (size_t i = 0; i < n; i++) /* every column twice, far apart */
        used += (size_t)snprintf(text + used, room - used, " %zu", i * 7919 % (n / 2));
    rbt_data d = parsed(text, 18);
    assert_int_equal(d.nnz, n / 2);
    for (size_t i = 0; i < n / 2; i++)
        assert_true(d.index[i] == i && d.value[i] == 2);
    rbt_data_deinit(&d);
    free(text);
}

static void bad_text_is_refused_with_its_line_and_what_was_expected(void **state)
{
    (void)state;
    refused("", "no rows");
    refused("1 | a\n1 a b\n", "mem:2: '1 a b': expected a |");
    refused("x | a\n", "mem:1: 'x': expected a label");
    refused("nan | a\n", "'nan'");
    refused("1 0 | a\n", "'0': expected an importance");
    refused("1 -2 | a\n", "'-2': expected an importance");
    refused("1 1 x | a\n", "'x': expected a base");
    refused("1 2 3 4 | a\n", "expected a tag");
    refused("1 2 3 4 5 | a\n", "at most");
    refused("| a\n", "mem:1: the row has no label; training needs one, for example");
    refused("1 | a\n1|a b\n", "mem:2: the row has no label; training needs one: a word that touches the | is a tag");
    refused("1 | a:\n", "'a:'");
    refused("1 | a:1x\n", "'a:1x'");
    refused("1 | a:nan\n", "'a:nan'");
    refused("1 | a:-inf\n", "'a:-inf'");
    refused("1 | a:1e39\n", "mem:1: 'a:1e39': expected a number that a 32-bit float holds");
    refused("1 | :-1e39\n", "mem:1: ':-1e39': expected a number that a 32-bit float holds");
    refused("1 |a:1e39 b\n", "mem:1: 'a:1e39': expected a number that a 32-bit float holds");
    refused("-1e39 | a\n", "mem:1: '-1e39': expected a number that a 32-bit float holds");
    refused("1 1e39 | a\n", "mem:1: '1e39': expected a number that a 32-bit float holds");
    refused("1 1 1e39 | a\n", "mem:1: '1e39': expected a number that a 32-bit float holds");
    refused("1 |a:x b\n", "'a:x': expected a finite number after the namespace's colon");
    refused("1 |:2 b\n", "':2': expected a namespace's name");
    refused("1 |a:1e30 b:1e30\n", "'b:1e30'");
    refused("1 | 1:3e38 1:3e38\n", "column 1 add up");
}

static void rows_without_labels_are_fine_for_prediction(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report;
    rbt_reading reading = {.unlabelled = true, .report = &report};
    assert_int_equal(parse_cut("| a\n2 | b\n'tag|x c\n", reading, rbt_cut_default(), &d, &error), RBT_OK);
    assert_int_equal(d.rows, 3);
    assert_true(d.label[0] == 0 && d.label[1] == 2 && d.label[2] == 0);
    assert_int_equal(report.unlabelled, 2);
    rbt_data_deinit(&d);
}

/* Every size of chunk, by one and by several threads: the same data or the same refusal. */
static void same_for_every_cut(const char *text, rbt_reading reading)
{
    rbt_data expected, d;
    rbt_error refusal = {RBT_OK, ""}, error;
    rbt_err code = parse_cut(text, reading, (rbt_cut){SIZE_MAX, 1}, &expected, &refusal);
    for (size_t bytes = 1; bytes <= strlen(text) + 1; bytes++) {
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            assert_int_equal(parse_cut(text, reading, (rbt_cut){bytes, threads}, &d, &error), code);
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

static void no_cut_changes_anything(void **state)
{
    (void)state;
    static const char good[] = "1 'a|x y:2 z |w v\n\n-1 3 | b a b\r\n  2 |q:2 r:1 s\n|\n0 | 1 2 3 2 1";
    same_for_every_cut(good, (rbt_reading){.bits = 5, .unlabelled = true});
    same_for_every_cut(good, (rbt_reading){.bits = 5});
    same_for_every_cut(good, (rbt_reading){.bits = 5, .skip_bad = 1});
    same_for_every_cut("1 | a\nx | b\n2 | c:\n\n3 | d\nbad\n", (rbt_reading){.skip_bad = 3});
    same_for_every_cut("1 | a\nx | b\n2 | c:\n\n3 | d\nbad\n", (rbt_reading){.skip_bad = 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_hash_as_in_vowpal_wabbit),
        cmocka_unit_test(rows_have_labels_importances_and_hashed_features),
        cmocka_unit_test(form_does_not_matter),
        cmocka_unit_test(features_that_collide_add_up_and_may_vanish),
        cmocka_unit_test(names_and_values_may_be_left_out_or_be_words),
        cmocka_unit_test(long_rows_are_put_in_order),
        cmocka_unit_test(bad_text_is_refused_with_its_line_and_what_was_expected),
        cmocka_unit_test(rows_without_labels_are_fine_for_prediction),
        cmocka_unit_test(no_cut_changes_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
