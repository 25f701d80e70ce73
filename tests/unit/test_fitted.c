/* Proves src/method/fitted.c: what a method has learned comes back from its file as it was, and any damage is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "method/method.h"
#include "method/weights.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"m"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static rbt_fitted small(void)
{
    static const char *const words[] = {"one", "", "three, and more"};
    rbt_fitted f = {.method = rbt_method_find("kmeans")};
    float *means = rbt_fitted_add(&f, "means", RBT_F32, 2, 3);
    int64_t *sizes = rbt_fitted_add(&f, "sizes", RBT_I64, 1, 2);

    for (int i = 0; i < 6; i++)
        means[i] = (float)i / 4;
    sizes[0] = 5;
    sizes[1] = -1;
    rbt_fitted_set(&f, "alpha", 0.1);
    rbt_fitted_set(&f, "alpha", 0.2); /* once more: in its place */
    rbt_fitted_add_names(&f, "words", 3, words);
    rbt_fitted_add_names(&f, "none", 3, NULL);
    return f;
}

static void *read_all(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 16);

    assert_non_null(file);
    *n = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

/* Decodes a copy of exactly that size: a sanitizer sees every read beyond it. */
static rbt_err decode(const unsigned char *bytes, size_t n, rbt_fitted *fitted, rbt_error *error)
{
    unsigned char *copy = malloc(n > 0 ? n : 1);
    rbt_err err;

    memcpy(copy, bytes, n);
    err = rbt_fitted_decode(copy, n, "mem", NULL, fitted, error);
    free(copy);
    return err;
}

static void comes_back_as_it_was(void **state)
{
    rbt_fitted f = small(), g = {0};
    rbt_error error;

    (void)state;
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_OK);
    assert_int_equal(rbt_fitted_load("m", &g, &error), RBT_OK);
    assert_ptr_equal(g.method, f.method);
    assert_int_equal(g.arrays, 2);
    assert_memory_equal(rbt_fitted_values(&g, "means")->at, rbt_fitted_values(&f, "means")->at, 24);
    assert_memory_equal(rbt_fitted_values(&g, "sizes")->at, rbt_fitted_values(&f, "sizes")->at, 16);
    assert_true(rbt_fitted_number(&g, "alpha") == 0.2 && isnan(rbt_fitted_number(&g, "beta")));
    assert_int_equal(rbt_fitted_names(&g, "words")->n, 3);
    assert_string_equal(rbt_fitted_names(&g, "words")->at[2], "three, and more");
    assert_null(rbt_fitted_names(&g, "none"));
    assert_null(rbt_fitted_values(&g, "none"));
    rbt_fitted_deinit(&g);
    rbt_fitted_deinit(&f);
}

static void every_damaged_byte_and_every_cut_is_detected(void **state)
{
    rbt_fitted f = small(), g = {0};
    rbt_error error;
    size_t n;
    unsigned char *bytes;

    (void)state;
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_OK);
    bytes = read_all("m", &n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 0x20;
        assert_int_not_equal(decode(bytes, n, &g, &error), RBT_OK);
        bytes[i] ^= 0x20;
        assert_int_not_equal(decode(bytes, i, &g, &error), RBT_OK);
    }
    assert_int_equal(decode(bytes, n, &g, &error), RBT_OK);
    rbt_fitted_deinit(&g);
    free(bytes);
    rbt_fitted_deinit(&f);
}

/* Whatever a byte is changed to, with the checksum set right: a model or a refusal, no crash. */
static void nothing_behind_the_checksum_is_believed(void **state)
{
    rbt_fitted f = small();
    rbt_error error;
    size_t n;
    unsigned char *bytes;

    (void)state;
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_OK);
    bytes = read_all("m", &n);
    for (size_t i = 12; i < n - 8; i++) {
        for (unsigned change = 1; change < 256; change = change * 2 + 1) {
            rbt_fitted g = {0};
            uint64_t sum;

            bytes[i] ^= (unsigned char)change;
            sum = rbt_hash(bytes, n - 8, 0);
            memcpy(bytes + n - 8, &sum, sizeof sum);
            if (decode(bytes, n, &g, &error) == RBT_OK) {
                (void)rbt_method_find("kmeans")->open(&g, &error);
                rbt_fitted_deinit(&g);
            }
            bytes[i] ^= (unsigned char)change;
        }
    }
    free(bytes);
    rbt_fitted_deinit(&f);
}

static void a_file_without_what_the_method_needs_is_refused(void **state)
{
    rbt_fitted f = {.method = rbt_method_find("kmeans")}, g = {0};
    rbt_error error;

    (void)state;
    (void)rbt_fitted_add(&f, "means", RBT_F32, 2, 3);
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_OK);
    assert_int_equal(rbt_fitted_load("m", &g, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "train it again"));
    rbt_fitted_deinit(&f);
}

/* Whatever was in the caller's memory: it is not freed. */
static void a_file_that_is_refused_leaves_an_empty_model(void **state)
{
    static const char *const paths[] = {"m", "m/none"}; /* damaged; not there */
    rbt_fitted g;
    rbt_error error;

    (void)state;
    put_file("m", "no model");
    for (size_t i = 0; i < 2; i++) {
        memset(&g, 0x5a, sizeof g);
        assert_int_not_equal(rbt_fitted_load(paths[i], &g, &error), RBT_OK);
        assert_true(g.arrays == 0 && g.lists == 0 && g.numbers == 0);
        rbt_fitted_deinit(&g);
    }
}

/* A linear model, with the first n of these labels. */
static rbt_fitted linear(const char *method, size_t n, const char *const *labels)
{
    rbt_fitted f = {.method = rbt_method_find(method)};
    float *w = rbt_fitted_add(&f, "weights", RBT_F32, 1, 2);

    w[1] = 0.5f;
    rbt_fitted_set(&f, "intercept", 0.25);
    rbt_fitted_add_names(&f, "labels", n, labels);
    return f;
}

static void labels_are_two_or_none(void **state)
{
    static const char *const labels[] = {"a", "b", "c"}, *const methods[] = {"lasso", "l1lr"};

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        for (size_t n = 0; n <= 3; n++) {
            rbt_fitted f = linear(methods[m], n, labels), g;
            rbt_error error;

            assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_OK);
            assert_int_equal(rbt_fitted_load("m", &g, &error), n == 2 ? RBT_OK : RBT_E_DATA);
            assert_true(n == 2 || strstr(error.text, "labels") != NULL);
            rbt_fitted_deinit(&g);
            rbt_fitted_deinit(&f);
        }
    }
}

static void labels_are_words_where_readers_take_them_for_words(void **state)
{
    static const struct {
        const char *labels[2];
        bool numbers;
    } cases[] = {{{"-1", "1"}, true},       {{"0.5", "1e2"}, true},
                 {{"0x10", "0x20"}, false}, {{"-inf", "inf"}, false},
                 {{"1", "nan"}, false},     {{" 1", " 2"}, false},
                 {{"", "1"}, false},        {{"16777216", "16777217"}, false}}; /* one float for both */

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_fitted f = linear("l1lr", 2, cases[i].labels);
        rbt_trained t;
        rbt_error error;

        assert_int_equal(rbt_weights_trained(&f, &t, &error), RBT_OK);
        assert_true((t.shape.labels != NULL) == cases[i].numbers && (t.shape.names == NULL) == cases[i].numbers);
        if (!cases[i].numbers)
            assert_string_equal(t.shape.names[1], cases[i].labels[1]);
        rbt_trained_deinit(&t);
        rbt_fitted_deinit(&f);
    }
}

static void no_two_things_have_one_name(void **state)
{
    const char *names[] = {"a", "b"};
    rbt_fitted f = {.method = rbt_method_find("mf")};
    rbt_error error;

    (void)state;
    (void)rbt_fitted_add(&f, "users", RBT_F32, 2, 3);
    rbt_fitted_add_names(&f, "users", 2, names);
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "'users'"));
    rbt_fitted_deinit(&f);
    f.method = rbt_method_find("mf");
    rbt_fitted_set(&f, "model", 1);
    assert_int_equal(rbt_fitted_save(&f, "m", &error), RBT_E_USAGE);
    rbt_fitted_deinit(&f);
}

static void an_array_that_cannot_exist_is_refused(void **state)
{
    rbt_fitted f = {0};

    (void)state;
    assert_null(rbt_fitted_add(&f, "huge", RBT_I64, UINT64_MAX / 4, 8));
    assert_int_equal(f.arrays, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_as_it_was),
        cmocka_unit_test(every_damaged_byte_and_every_cut_is_detected),
        cmocka_unit_test(nothing_behind_the_checksum_is_believed),
        cmocka_unit_test(a_file_without_what_the_method_needs_is_refused),
        cmocka_unit_test(a_file_that_is_refused_leaves_an_empty_model),
        cmocka_unit_test(labels_are_two_or_none),
        cmocka_unit_test(labels_are_words_where_readers_take_them_for_words),
        cmocka_unit_test(no_two_things_have_one_name),
        cmocka_unit_test(an_array_that_cannot_exist_is_refused),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
