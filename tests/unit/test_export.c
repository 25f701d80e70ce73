/* Proves src/model/export.c and vocab.c: the bytes of .npy and text, names of features. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <string.h>

#include "model/export.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"m", "v"};
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static size_t slurp(char *text, size_t room)
{
    FILE *f = fopen("m", "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, room - 1, f);
    assert_int_equal(fclose(f), 0);
    text[n] = '\0';
    return n;
}

static float weights[] = {0.5F, -2, 0, 0, 0.1F, 3};
static double labels[] = {0, 1};

static rbt_trained lr(void)
{
    return (rbt_trained){.model = rbt_model_find("lr"),
                         .shape = {.cols = 5, .bias = true, .classes = 2, .labels = labels},
                         .n = 6,
                         .w = weights};
}

static rbt_trained softmax(void)
{
    return (rbt_trained){.model = rbt_model_find("softmax"),
                         .shape = {.cols = 2, .bias = true, .classes = 2, .labels = labels},
                         .n = 6,
                         .w = weights};
}

static void npy_has_a_header_of_version_one_and_floats_at_a_multiple_of_64(void **state)
{
    (void)state;
    char bytes[512];
    rbt_trained t = lr();
    assert_int_equal(rbt_export_npy(&t, "m", NULL), RBT_OK);
    assert_int_equal(slurp(bytes, sizeof bytes), 128 + 6 * 4);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 57);
    assert_int_equal(bytes[127], '\n');
    static const unsigned char first[] = {0, 0, 0, 0x3f, 0, 0, 0, 0xc0}; /* 0.5 and -2, little-endian */
    assert_memory_equal(bytes + 128, first, sizeof first);
    t = softmax();
    assert_int_equal(rbt_export_npy(&t, "m", NULL), RBT_OK);
    assert_int_equal(slurp(bytes, sizeof bytes), 128 + 6 * 4);
    assert_non_null(strstr(bytes + 10, "'shape': (3, 2), }"));
}

static void text_has_a_line_per_feature_that_counts(void **state)
{
    (void)state;
    char text[512];
    rbt_trained t = lr();
    assert_int_equal(rbt_export_text(&t, NULL, "m", NULL), RBT_OK);
    (void)slurp(text, sizeof text);
    assert_string_equal(text, "bias\t3\n1\t0.5\n2\t-2\n5\t0.1\n");
    static char from_0[] = "base 0\n", hashed[] = "bits 4\n"; /* as the data counts */
    t.origin = from_0;
    assert_int_equal(rbt_export_text(&t, NULL, "m", NULL), RBT_OK);
    (void)slurp(text, sizeof text);
    assert_string_equal(text, "bias\t3\n0\t0.5\n1\t-2\n4\t0.1\n");
    t.origin = hashed;
    assert_int_equal(rbt_export_text(&t, NULL, "m", NULL), RBT_OK);
    (void)slurp(text, sizeof text);
    assert_string_equal(text, "bias\t3\n0\t0.5\n1\t-2\n4\t0.1\n");
    t.origin = NULL;
    t = softmax();
    assert_int_equal(rbt_export_text(&t, NULL, "m", NULL), RBT_OK);
    (void)slurp(text, sizeof text);
    assert_string_equal(text, "bias\t0.1\t3\n1\t0.5\t-2\n");
}

static void names_stand_for_numbers_where_there_are_any(void **state)
{
    (void)state;
    char text[512];
    rbt_trained t = lr();
    rbt_vocab vocab;
    put_file("v", "the\t12345\tmore\nof\r\nand\n\nfifth and last");
    assert_int_equal(rbt_vocab_read("v", &vocab, NULL), RBT_OK);
    assert_int_equal(vocab.count, 5);
    assert_string_equal(rbt_vocab_name(&vocab, 0), "the");
    assert_string_equal(rbt_vocab_name(&vocab, 1), "of");
    assert_null(rbt_vocab_name(&vocab, 3));
    assert_null(rbt_vocab_name(&vocab, 5));
    assert_null(rbt_vocab_name(NULL, 0));
    assert_int_equal(rbt_export_text(&t, &vocab, "m", NULL), RBT_OK);
    (void)slurp(text, sizeof text);
    assert_string_equal(text, "bias\t3\nthe\t0.5\nof\t-2\nfifth and last\t0.1\n");
    rbt_vocab_deinit(&vocab);
    put_file("v", "");
    assert_int_equal(rbt_vocab_read("v", &vocab, NULL), RBT_OK);
    assert_int_equal(vocab.count, 0);
    rbt_vocab_deinit(&vocab);
    put_bytes("v", "a\0b\n", 4);
    rbt_error error;
    assert_int_equal(rbt_vocab_read("v", &vocab, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "v: is no text"));
    assert_int_equal(rbt_vocab_read("missing", &vocab, &error), RBT_E_IO);
}

static void a_missing_folder_is_an_error(void **state)
{
    (void)state;
    rbt_trained t = lr();
    rbt_error error;
    assert_int_equal(rbt_export_npy(&t, "no/such/folder", &error), RBT_E_IO);
    assert_int_equal(rbt_export_text(&t, NULL, "no/such/folder", &error), RBT_E_IO);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(npy_has_a_header_of_version_one_and_floats_at_a_multiple_of_64),
        IN_FOLDER(text_has_a_line_per_feature_that_counts),
        IN_FOLDER(names_stand_for_numbers_where_there_are_any),
        IN_FOLDER(a_missing_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
