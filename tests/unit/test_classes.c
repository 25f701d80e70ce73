/* Proves src/model/classes.c: classes are found in data, applied to data, and labels outside them refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "model/classes.h"

static rbt_data parsed(const char *text)
{
    rbt_data d;
    assert_int_equal(rbt_data_parse_libsvm(text, strlen(text), "mem", &d, NULL), RBT_OK);
    return d;
}

/* Data whose labels are words: `names` ascending, `labels` which of them. */
static rbt_data worded(const char *const *names, size_t count, const float *labels, size_t rows)
{
    rbt_data d;
    assert_int_equal(rbt_data_alloc(rows, 0, &d, NULL), RBT_OK);
    d.rows = rows;
    d.cols = 1;
    d.label_names = rbt_alloc(count, sizeof *d.label_names);
    d.label_count = count;
    for (size_t i = 0; i < count; i++)
        d.label_names[i] = rbt_strdup(names[i]);
    for (size_t r = 0; r < rows; r++) {
        d.start[r + 1] = 0;
        d.label[r] = labels[r];
    }
    return d;
}

static void classes_are_found_in_ascending_order_and_labels_become_their_numbers(void **state)
{
    (void)state;
    rbt_data d = parsed("7 1:1\n-2.5 1:1\n7 1:1\n100 1:1\n0 1:1\n");
    rbt_shape shape = {0};
    assert_int_equal(rbt_shape_set_classes(&d, 0, &shape, NULL), RBT_OK);
    assert_int_equal(shape.classes, 4);
    static const double expected[] = {-2.5, 0, 7, 100};
    assert_memory_equal(shape.labels, expected, sizeof expected);
    assert_null(shape.names);
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    static const float numbers[] = {2, 0, 2, 3, 1};
    assert_memory_equal(d.label, numbers, sizeof numbers);
    char text[RBT_LABEL_ROOM];
    rbt_shape_label_text(&shape, 0, text);
    assert_string_equal(text, "-2.5");
    rbt_data_deinit(&d);
    rbt_shape_deinit(&shape);
    assert_null(shape.labels);
}

static void words_are_classes_and_found_again_in_data_that_numbers_them_otherwise(void **state)
{
    (void)state;
    static const char *const first[] = {"cat", "dog", "eel"}, *const second[] = {"ant", "eel"};
    static const float a[] = {2, 0, 2, 0}, b[] = {1, 1};
    rbt_data d = worded(first, 3, a, 4), other = worded(second, 2, b, 2);
    rbt_shape shape = {0};
    assert_int_equal(rbt_shape_set_classes(&d, 2, &shape, NULL), RBT_OK); /* dog has no rows */
    assert_int_equal(shape.classes, 2);
    assert_string_equal(shape.names[0], "cat");
    assert_string_equal(shape.names[1], "eel");
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    assert_true(d.label[0] == 1 && d.label[1] == 0);
    assert_int_equal(rbt_shape_apply(&shape, true, &other, NULL), RBT_OK);
    assert_true(other.label[0] == 1 && other.label[1] == 1);
    char text[RBT_LABEL_ROOM];
    rbt_shape_label_text(&shape, 1, text);
    assert_string_equal(text, "eel");
    rbt_data_deinit(&other);
    other = worded(second, 2, (const float[]){1, 0}, 2);
    rbt_error error;
    assert_int_equal(rbt_shape_apply(&shape, true, &other, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "row 2 has the label ant"));
    assert_int_equal(rbt_shape_apply(&shape, false, &other, &error), RBT_OK); /* enough for predicting */
    rbt_data_deinit(&other);
    rbt_data_deinit(&d);
    rbt_shape_deinit(&shape);
}

static void long_words_are_told_apart(void **state)
{
    (void)state;
    char a[400], b[400];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    a[398] = 'a', b[398] = 'b', a[399] = b[399] = '\0';
    const char *const names[] = {a, b};
    rbt_data d = worded(names, 2, (const float[]){0, 1, 0}, 3);
    rbt_shape shape = {0};
    assert_int_equal(rbt_shape_set_classes(&d, 2, &shape, NULL), RBT_OK);
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    assert_true(d.label[0] == 0 && d.label[1] == 1 && d.label[2] == 0);
    rbt_data_deinit(&d);
    rbt_shape_deinit(&shape);
}

static void labels_the_shape_does_not_have_are_refused_with_their_row(void **state)
{
    (void)state;
    double labels[] = {0, 1};
    rbt_shape shape = {.cols = 2, .classes = 2, .labels = labels};
    rbt_data d = parsed("1 1:1\n-1 2:1\n");
    rbt_error error;
    assert_int_equal(rbt_shape_apply(&shape, true, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "row 2 has the label -1"));
    assert_non_null(strstr(error.text, "from 0 to 1"));
    rbt_data_deinit(&d);
    static const char *const words[] = {"no", "yes"};
    d = worded(words, 2, (const float[]){0, 1}, 2); /* words where the model has numbers */
    assert_int_equal(rbt_shape_apply(&shape, true, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "row 1 has the label no"));
    rbt_data_deinit(&d);
    static const char *const mixed[] = {"1", "x"};
    d = worded(mixed, 2, (const float[]){0, 0, 1}, 3); /* numbers that are words because of another */
    assert_int_equal(rbt_shape_apply(&shape, true, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "row 3 has the label x, but the model was trained on 2 labels from 0 to 1"));
    rbt_data_deinit(&d);
    d = worded(words, 2, (const float[]){0, 1}, 2);
    rbt_shape numbers = {.cols = 1};
    assert_int_equal(rbt_shape_apply(&numbers, true, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "words such as 'no'"));
    assert_int_equal(rbt_shape_set_numbers(&d, &numbers, &error), RBT_E_DATA);
    rbt_data_deinit(&d);
}

static void ratings_and_documents_are_refused_wherever_a_shape_is_applied(void **state)
{
    (void)state;
    rbt_shape shape = {.cols = 2};
    rbt_data d = parsed("1 1:1\n-1 2:1\n");
    rbt_error error;
    d.content = RBT_CONTENT_RATINGS;
    assert_int_equal(rbt_shape_apply(&shape, false, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "the data was taken for ratings, which have no labels"));
    d.content = RBT_CONTENT_DOCS;
    assert_int_equal(rbt_shape_apply(&shape, true, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "the data was taken for documents, which have no labels"));
    d.content = RBT_CONTENT_ROWS;
    assert_int_equal(rbt_shape_apply(&shape, true, &d, &error), RBT_OK);
    rbt_data_deinit(&d);
}

static void too_many_classes_or_too_few_are_refused(void **state)
{
    (void)state;
    size_t rows = RBT_CLASSES_LIMIT + 1;
    rbt_data d;
    rbt_error error;
    rbt_shape shape = {0};
    assert_int_equal(rbt_data_alloc(rows, 0, &d, NULL), RBT_OK);
    d.rows = rows;
    for (size_t r = 0; r < rows; r++) {
        d.start[r + 1] = 0;
        d.label[r] = (float)r;
    }
    assert_int_equal(rbt_shape_set_classes(&d, 0, &shape, &error), RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "more than 65536 different labels"));
    d.rows = RBT_CLASSES_LIMIT;
    assert_int_equal(rbt_shape_set_classes(&d, 0, &shape, &error), RBT_OK);
    assert_int_equal(shape.classes, RBT_CLASSES_LIMIT);
    rbt_shape_deinit(&shape);
    d.rows = 1;
    assert_int_equal(rbt_shape_set_classes(&d, 0, &shape, &error), RBT_E_DATA);
    d.rows = 3;
    assert_int_equal(rbt_shape_set_classes(&d, 2, &shape, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "0 (row 1), 1 (row 2) and 2 (row 3)"));
    assert_null(shape.labels);
    rbt_data_deinit(&d);
}

static void rows_are_scaled_to_length_one_when_the_shape_says_so(void **state)
{
    (void)state;
    rbt_data d = parsed("2 1:3 2:4\n5\n");
    rbt_shape shape = {.cols = 2, .unit_rows = true};
    assert_int_equal(rbt_shape_apply(&shape, true, &d, NULL), RBT_OK);
    assert_true(fabsf(d.value[0] - 0.6F) < 1e-7F && fabsf(d.value[1] - 0.8F) < 1e-7F);
    assert_true(d.label[0] == 2 && d.label[1] == 5); /* numbers stay */
    rbt_data_deinit(&d);
}

static void a_copy_has_labels_and_names_of_its_own(void **state)
{
    (void)state;
    double labels[] = {1, 2};
    char *names[] = {"a", "b"};
    rbt_shape numbers = {.cols = 3, .bias = true, .classes = 2, .labels = labels}, copy;
    rbt_shape_copy(&copy, &numbers);
    labels[1] = 9;
    assert_true(copy.labels[0] == 1 && copy.labels[1] == 2 && copy.cols == 3 && copy.bias);
    rbt_shape_deinit(&copy);
    rbt_shape words = {.classes = 2, .names = names};
    rbt_shape_copy(&copy, &words);
    assert_ptr_not_equal(copy.names[0], names[0]);
    assert_string_equal(copy.names[1], "b");
    rbt_shape_deinit(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_found_in_ascending_order_and_labels_become_their_numbers),
        cmocka_unit_test(words_are_classes_and_found_again_in_data_that_numbers_them_otherwise),
        cmocka_unit_test(long_words_are_told_apart),
        cmocka_unit_test(labels_the_shape_does_not_have_are_refused_with_their_row),
        cmocka_unit_test(ratings_and_documents_are_refused_wherever_a_shape_is_applied),
        cmocka_unit_test(too_many_classes_or_too_few_are_refused),
        cmocka_unit_test(rows_are_scaled_to_length_one_when_the_shape_says_so),
        cmocka_unit_test(a_copy_has_labels_and_names_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
