/* Proves src/data/idx: images and their labels as data; damaged files are refused; the labels' file is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/idx.h"

static const unsigned char images[] = {0, 0, 8, 3, 0,  0, 0,   2, 0,   0, 0, 2,  0, 0, 0, 3, /* two of 2 x 3 */
                                       0, 1, 0, 0, 51, 0, 255, 0, 102, 0, 0, 204};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 3};
static const char *const names[] = {"t-images-idx3-ubyte", "t-labels-idx1-ubyte", "x"};

static int leave_folder(void **state)
{
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void check(const rbt_data *d, float first, float second)
{
    assert_int_equal(d->rows, 2);
    assert_int_equal(d->cols, 6);
    assert_int_equal(d->nnz, 5);
    assert_int_equal(d->start[1], 2);
    static const uint32_t index[] = {1, 4, 0, 2, 5};
    static const float value[] = {1.0F / 255, 0.2F, 1, 0.4F, 0.8F};
    assert_memory_equal(d->index, index, sizeof index);
    assert_memory_equal(d->value, value, sizeof value);
    assert_true(d->label[0] == first && d->label[1] == second);
}

static void images_and_the_labels_beside_them_are_data(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    put_bytes(names[0], images, sizeof images);
    assert_int_equal(rbt_data_read(names[0], &d, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "t-labels-idx1-ubyte: cannot be opened"));
    put_bytes(names[1], labels, sizeof labels);
    assert_int_equal(rbt_data_read(names[0], &d, &error), RBT_OK);
    check(&d, 7, 3);
    rbt_data_deinit(&d);
}

static void labels_may_be_named_or_left_out(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report;
    put_bytes("x", images, sizeof images);
    put_bytes(names[1], labels, sizeof labels);
    assert_int_equal(rbt_data_read("x", &d, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "give --label FILE"));
    assert_int_equal(rbt_data_read_as("x", &(rbt_reading){.label = names[1]}, &d, &error), RBT_OK);
    check(&d, 7, 3);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_data_read_as("x", &(rbt_reading){.label = "none"}, &d, &error), RBT_E_USAGE);
    assert_int_equal(rbt_data_read_as("x", &(rbt_reading){.unlabelled = true, .report = &report}, &d, &error), RBT_OK);
    check(&d, 0, 0);
    assert_int_equal(report.unlabelled, 2);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_data_read(names[1], &d, &error), RBT_E_USAGE); /* the labels themselves */
}

static rbt_err parse(const void *bytes, size_t n, const void *label_bytes, size_t label_n, rbt_error *error)
{
    rbt_data d;
    rbt_input a = {.name = "a", .bytes = bytes, .n = n}, b = {.name = "b", .bytes = label_bytes, .n = label_n};
    rbt_err err = rbt_idx_parse(&a, label_bytes != NULL ? &b : NULL, &d, error);
    if (err == RBT_OK)
        rbt_data_deinit(&d);
    return err;
}

static void files_that_do_not_fit_their_header_are_refused(void **state)
{
    (void)state;
    rbt_error error;
    unsigned char bytes[sizeof images + 1];
    for (size_t n = 0; n < sizeof images; n++) {
        unsigned char *copy = malloc(n > 0 ? n : 1);
        assert_non_null(copy);
        memcpy(copy, images, n);
        assert_int_equal(parse(copy, n, labels, sizeof labels, &error), RBT_E_DATA);
        free(copy);
    }
    memcpy(bytes, images, sizeof images);
    bytes[sizeof images] = 0;
    assert_int_equal(parse(bytes, sizeof bytes, NULL, 0, &error), RBT_E_DATA);
    bytes[2] = 0x0d; /* floats */
    assert_int_equal(parse(bytes, sizeof images, NULL, 0, &error), RBT_E_UNSUPPORTED);
    memcpy(bytes, images, sizeof images);
    memset(bytes + 4, 0xff, 12); /* sizes whose product overflows */
    assert_int_equal(parse(bytes, sizeof images, NULL, 0, &error), RBT_E_DATA);
    static const unsigned char none[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3};
    assert_int_equal(parse(none, sizeof none, NULL, 0, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a: has no rows"));
    static const unsigned char empty[] = {0, 0, 8, 3, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}; /* many of no pixels */
    assert_int_equal(parse(empty, sizeof empty, NULL, 0, &error), RBT_E_DATA);
    static const unsigned char three[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 3, 1};
    assert_int_equal(parse(images, sizeof images, three, sizeof three, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: has 3 labels for the 2 images of a"));
    assert_int_equal(parse(labels, sizeof labels, NULL, 0, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a: holds labels"));
    assert_int_equal(parse(images, sizeof images, images, sizeof images, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: holds no labels"));
}

static void the_partner_of_a_name(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"d/train-images-idx3-ubyte.gz", "d/train-labels-idx1-ubyte.gz"},
                                           {"images/t10k-images.idx3-ubyte", "images/t10k-labels.idx1-ubyte"},
                                           {"emnist-images-idx4", "emnist-labels-idx1"},
                                           {"my-images", "my-labels"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *partner = rbt_idx_partner(pairs[i][0]);
        assert_string_equal(partner, pairs[i][1]);
        rbt_free(partner);
    }
    assert_null(rbt_idx_partner("images/pixels.idx"));
    assert_null(rbt_idx_partner("standard input"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(images_and_the_labels_beside_them_are_data),
        IN_FOLDER(labels_may_be_named_or_left_out),
        cmocka_unit_test(files_that_do_not_fit_their_header_are_refused),
        cmocka_unit_test(the_partner_of_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
