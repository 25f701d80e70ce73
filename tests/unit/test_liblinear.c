/* Proves src/model/liblinear.c: the text of written models, models read from text, refusals by line. That its programs
 * predict the same is shown by tests/cli/test_export.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "model/liblinear.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"m"};
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* Parses a copy of exactly that size, so that a sanitizer sees every read beyond it. */
static rbt_err parse(const char *text, rbt_trained *t, rbt_error *error)
{
    size_t n = strlen(text);
    char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    rbt_err err = rbt_liblinear_parse(copy, n, "mem", t, error);
    free(copy);
    return err;
}

static rbt_trained parsed(const char *text)
{
    rbt_trained t;
    rbt_error error;
    if (parse(text, &t, &error) != RBT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t.n, t.model->size(&t.shape));
    return t;
}

static void writes(const rbt_trained *t, const char *expected)
{
    char text[1024] = "";
    rbt_error error = {RBT_OK, ""};
    if (rbt_liblinear_write(t, "m", &error) != RBT_OK)
        fail_msg("%s", error.text);
    FILE *f = fopen("m", "rb");
    assert_non_null(f);
    (void)fread(text, 1, sizeof text - 1, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
}

/* A row with the given features, and the label the model gives it. */
static double label_of(const rbt_trained *t, const char *row)
{
    rbt_data d;
    double score[8];
    assert_int_equal(rbt_data_parse_libsvm(row, strlen(row), "mem", &d, NULL), RBT_OK);
    t->model->score(&t->shape, &d, 0, t->w, score);
    double class = t->model->label(&t->shape, score);
    rbt_data_deinit(&d);
    return t->shape.classes > 0 ? t->shape.labels[(size_t) class] : class;
}

static void models_are_written_with_the_larger_label_first(void **state)
{
    (void)state;
    double labels[] = {-1, 1, 7};
    float w[] = {0.5F, -2, 0.1F, 3, 4, 5};
    rbt_trained t = {.model = rbt_model_find("lr"),
                     .shape = {.cols = 2, .bias = true, .classes = 2, .labels = labels},
                     .n = 3,
                     .w = w};
    writes(&t, "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n"
               "0.5 \n-2 \n0.10000000149011612 \n");
    t.model = rbt_model_find("svm");
    t.shape.bias = false;
    t.n = 2;
    writes(&t, "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-2 \n");
    t.model = rbt_model_find("softmax"); /* of two classes: the difference */
    t.shape.cols = 3;
    t.n = 6;
    writes(&t, "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\nw\n"
               "-2.5 \n2.8999999985098839 \n1 \n");
    t.shape.classes = 3;
    t.shape.cols = 1;
    t.shape.bias = true;
    writes(&t, "solver_type MCSVM_CS\nnr_class 3\nlabel -1 1 7\nnr_feature 1\nbias 1\nw\n"
               "0.5 -2 0.10000000149011612 \n3 4 5 \n");
    t = (rbt_trained){.model = rbt_model_find("huber"), .shape = {.cols = 2}, .n = 2, .w = w};
    writes(&t, "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.5 \n-2 \n");
}

static void what_liblinear_cannot_express_is_refused(void **state)
{
    (void)state;
    double labels[] = {0.5, 1};
    char *names[] = {"cat", "dog"};
    float w[] = {1};
    rbt_error error;
    rbt_trained t = {
        .model = rbt_model_find("lr"), .shape = {.cols = 1, .classes = 2, .labels = labels}, .n = 1, .w = w};
    assert_int_equal(rbt_liblinear_write(&t, "m", &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "the model has 0.5"));
    labels[0] = -1e10;
    assert_int_equal(rbt_liblinear_write(&t, "m", &error), RBT_E_UNSUPPORTED);
    t.shape.labels = NULL;
    t.shape.names = names;
    assert_int_equal(rbt_liblinear_write(&t, "m", &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "the model has cat"));
    t.shape.unit_rows = true;
    assert_int_equal(rbt_liblinear_write(&t, "m", &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "length 1"));
    assert_int_not_equal(access("m", F_OK), 0);
}

static void a_first_label_that_is_the_smaller_turns_the_signs(void **state)
{
    (void)state;
    rbt_trained t = parsed("solver_type L2R_LR\nnr_class 2\nlabel 3 1\nnr_feature 2\nbias -1\nw\n0.5 \n-0.25\n");
    assert_ptr_equal(t.model, rbt_model_find("lr"));
    assert_true(t.w[0] == 0.5F && t.w[1] == -0.25F && !t.shape.bias && t.shape.cols == 2);
    assert_true(t.shape.labels[0] == 1 && t.shape.labels[1] == 3);
    assert_true(label_of(&t, "0 1:1") == 3 && label_of(&t, "0 2:1") == 1 && label_of(&t, "0 9:1") == 1);
    rbt_trained_deinit(&t);
    t = parsed("solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 3\nnr_feature 2\nbias 2\nw\n0.5 \n-0.25\n1\n");
    assert_ptr_equal(t.model, rbt_model_find("svm2"));
    assert_true(t.w[0] == -0.5F && t.w[1] == 0.25F && t.w[2] == -2 && t.shape.bias); /* the bias counts twice */
    rbt_trained_deinit(&t);
}

/* LIBLINEAR gives a row of which nothing counts the second of two labels, the first of many. */
static void rows_without_known_features_get_liblinears_label(void **state)
{
    (void)state;
    rbt_trained t = parsed("solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\nbias -1\nw\n0.5\n");
    assert_true(label_of(&t, "0 2:1") == 1 && label_of(&t, "0 1:1") == 0 && label_of(&t, "0 1:-1") == 1);
    rbt_trained_deinit(&t);
    t = parsed("solver_type L2R_LR\nnr_class 3\nlabel 5 3 4\nnr_feature 1\nbias -1\nw\n1 2 3\n");
    assert_true(label_of(&t, "0 2:1") == 5 && label_of(&t, "0 1:1") == 4 && label_of(&t, "0 1:-1") == 5);
    rbt_trained_deinit(&t);
    t = parsed("solver_type L2R_LR\nnr_class 3\nlabel 3 5 4\nnr_feature 1\nbias -1\nw\n-1 0 0\n");
    assert_true(label_of(&t, "0 2:1") == 3 && label_of(&t, "0 1:1") == 5);
    rbt_trained_deinit(&t);
    t = parsed("solver_type L2R_LR\nnr_class 3\nlabel 3 4 5\nnr_feature 1\nbias -1\nw\n1 2 3\n");
    assert_true(label_of(&t, "0 2:1") == 3 && !t.shape.bias);
    rbt_trained_deinit(&t);
    static const char *const zero[] = {"bias 1\nw\n0.5\n0\n", "bias 0\nw\n0.5\n7\n"};
    for (size_t i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, "solver_type L1R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\n%s", zero[i]);
        t = parsed(text);
        assert_true(label_of(&t, "0 2:1") == 1 && label_of(&t, "0 1:1") == 0 && t.n == 2);
        rbt_trained_deinit(&t);
    }
    t = parsed("solver_type L1R_LR\nnr_class 3\nlabel 5 3 4\nnr_feature 1\nbias 1\nw\n1 2 3\n0 0 -1\n");
    assert_true(label_of(&t, "0 2:1") == 5 && label_of(&t, "0 1:1") == 3 && t.n == 6);
    rbt_trained_deinit(&t);
}

static void many_classes_and_numbers_are_read(void **state)
{
    (void)state;
    rbt_trained t = parsed("solver_type MCSVM_CS\r\nnr_class 3\r\nlabel 30 10 20\r\nnr_feature 2\r\nbias 1\r\nw\r\n"
                           "1 2 3 \r\n4 5 6 \r\n7 8 9 \r\n\r\n");
    static const float expected[] = {2, 3, 1, 5, 6, 4, 8, 9, 7}; /* columns in the order of the labels */
    assert_ptr_equal(t.model, rbt_model_find("softmax"));
    assert_int_equal(t.n, 9);
    assert_memory_equal(t.w, expected, sizeof expected);
    rbt_trained_deinit(&t);
    t = parsed(
        "solver_type MCSVM_CS\nnr_class 2\nlabel 2 1\nnr_feature 1\nbias -1\nw\n1 2\n"); /* two columns: the first counts */
    assert_ptr_equal(t.model, rbt_model_find("svm"));
    assert_true(label_of(&t, "0 1:1") == 2 && label_of(&t, "0 2:1") == 1 && t.w[0] == 1);
    rbt_trained_deinit(&t);
    t = parsed("solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_feature 1\nbias 1\nw\n-1.5\n0.25\n");
    assert_ptr_equal(t.model, rbt_model_find("linear"));
    assert_true(label_of(&t, "0 1:2") == -2.75);
    rbt_trained_deinit(&t);
}

static void written_models_read_back_as_the_same(void **state)
{
    (void)state;
    double labels[] = {-1, 1, 7};
    float w[] = {0.5F, -2, 0.1F, 3e-30F, 4e30F, 5};
    static const char *const models[] = {"lr", "svm", "svm2", "softmax", "linear"};
    for (size_t i = 0; i < 5; i++) {
        rbt_trained t = {
            .model = rbt_model_find(models[i]), .shape = {.cols = 1, .bias = true, .labels = labels}, .w = w};
        t.shape.classes = i < 3 ? 2 : i == 3 ? 3 : 0;
        t.n = t.model->size(&t.shape);
        assert_int_equal(rbt_liblinear_write(&t, "m", NULL), RBT_OK);
        rbt_trained back;
        assert_int_equal(rbt_liblinear_read("m", &back, NULL), RBT_OK);
        assert_ptr_equal(back.model, t.model);
        assert_int_equal(back.n, t.n);
        assert_memory_equal(back.w, w, t.n * sizeof *w);
        assert_true(back.shape.bias && back.shape.classes == t.shape.classes);
        rbt_trained_deinit(&back);
    }
}

static void every_wrong_line_is_refused_with_its_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *piece;
    } bad[] = {
        {"", "mem:1: the file ends before"},
        {"+1 1:1 2:1\n", "mem:1: '+1' is unknown here"},
        {"solver_type ONECLASS_SVM\n", "mem:1: solver type 'ONECLASS_SVM'"},
        {"solver_type L2R_LR\nsolver_type L2R_LR\n", "mem:2: 'solver_type' is unknown here or stands twice"},
        {"solver_type L2R_LR extra\n", "mem:1: there is more on the line"},
        {"solver_type L2R_LR\nnr_class 1\n", "mem:2: after nr_class a whole number from 2"},
        {"nr_class 99999999999999999999999999\n", "mem:1: after nr_class"},
        {"nr_class\n", "mem:1: after nr_class"},
        {"nr_class 2x\n", "mem:1: after nr_class"},
        {"label 1 -1\n", "mem:1: label stands before nr_class"},
        {"nr_class 2\nlabel 1\n", "mem:2: after label a whole number"},
        {"nr_class 2\nlabel 1 0.5\n", "mem:2: after label a whole number"},
        {"nr_class 2\nlabel 1 2 3\n", "mem:2: there is more on the line"},
        {"nr_class 2\nlabel 1 16777217\n", "mem:2: label 16777217 has too many digits"},
        {"nr_feature -3\n", "mem:1: after nr_feature"},
        {"bias nan\n", "mem:1: bias has 'nan'"},
        {"bias\n", "mem:1: bias has ''"},
        {"w\n", "mem:1: there is no line 'solver_type'"},
        {"solver_type L2R_LR\nw\n", "no line 'nr_class'"},
        {"solver_type L2R_LR\nnr_class 2\nw\n", "no line 'nr_feature'"},
        {"solver_type L2R_LR\nnr_class 2\nnr_feature 1\nw\n", "no line 'bias'"},
        {"solver_type L2R_LR\nnr_class 2\nnr_feature 1\nbias -1\nw\n1\n", "mem:5: there is no line 'label'"},
        {"solver_type L2R_L2LOSS_SVR\nnr_class 3\nnr_feature 1\nbias -1\nw\n1\n", "predicts numbers"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 4\nnr_feature 1\nbias -1\nw\n1\n", "mem: the label 4 stands twice"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 2000000000\nbias -1\nw\n1\n", "more than the file"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 2\nbias -1\nw\n1\n",
         "mem:8: the file ends after 1 of 2"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias -1\nw\nx\n", "mem:7: w has 'x'"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias -1\nw\n1e99\n", "mem:7: w has '1e99'"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias -1\nw\n1 2\n", "mem:7: more than 1 weights"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias -1\nw\n1\n\n2\n", "mem:9: there is more after"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias 1e30\nw\n1\n1e30\n", "mem:8: the weight times"},
    };
    static const char *const remedies[] = {
        "; give a model as liblinear-train or `rubato export --format liblinear` writes it, or have it written again",
        "; train with one of them", "; put nr_class first", "and train the model again", "; train the model again"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_trained t;
        rbt_error error = {RBT_OK, ""};
        if (parse(bad[i].text, &t, &error) == RBT_OK)
            fail_msg("taken: %s", bad[i].text);
        if (strstr(error.text, bad[i].piece) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].piece, error.text);
        bool remedy = false;
        for (size_t k = 0; k < sizeof remedies / sizeof remedies[0]; k++)
            remedy |= strstr(error.text, remedies[k]) != NULL;
        if (!remedy)
            fail_msg("no remedy in: %s", error.text);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(models_are_written_with_the_larger_label_first),
        IN_FOLDER(what_liblinear_cannot_express_is_refused),
        cmocka_unit_test(a_first_label_that_is_the_smaller_turns_the_signs),
        cmocka_unit_test(rows_without_known_features_get_liblinears_label),
        cmocka_unit_test(many_classes_and_numbers_are_read),
        IN_FOLDER(written_models_read_back_as_the_same),
        cmocka_unit_test(every_wrong_line_is_refused_with_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
