/* Proves src/data/origin.c and csv_origin.c: how data was read stays with it, and other data is read in the same way or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "data/origin.h"
#include "data/store.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b", "c", "a.rbt-cache"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static rbt_data read_text(const char *text, rbt_reading reading)
{
    rbt_data d = {0};
    rbt_error error;
    put_file("a", text);
    if (rbt_data_read_as("a", &reading, &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return d;
}

static void refused(const char *text, rbt_reading reading, rbt_err code, const char *piece)
{
    rbt_data d = {0};
    rbt_error error;
    put_file("a", text);
    assert_int_equal(rbt_data_read_as("a", &reading, &d, &error), code);
    if (strstr(error.text, piece) == NULL)
        fail_msg("'%s' is not in: %s", piece, error.text);
}

static void has_origin(const char *text, rbt_reading reading, const char *origin)
{
    rbt_data d = read_text(text, reading);
    assert_string_equal(d.origin, origin);
    rbt_data_deinit(&d);
}

static void texts_of_origins_are_taken_or_refused(void **state)
{
    (void)state;
    static const char *const good[] = {
        "", "base 0\n", "base 1\n", "bits 31\n", "bits 4\nlabel y\nwords \nnumber a b\n", "number\nlabel\nweight\n"};
    static const char *const bad[] = {"base 2\n", "base 0", "base\n",   "bits 0\n",         "bits 32\n",  "bits x\n",
                                      "\n",       "label",  "labels\n", "label y\nwords\n", "bits 123\n", "color y\n"};
    rbt_origin origin;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(rbt_origin_parse(good[i], &origin));
        char *again = rbt_origin_text(&origin);
        assert_string_equal(again, good[i]);
        rbt_free(again);
        rbt_origin_deinit(&origin);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (rbt_origin_parse(bad[i], &origin))
            fail_msg("%s is taken", bad[i]);
}

static void names_are_kept_in_one_line_and_cut(void **state)
{
    (void)state;
    char name[RBT_ORIGIN_NAME_BYTES + 100];
    rbt_origin origin = {0};
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[3] = '\n';
    rbt_origin_column c = {RBT_COLUMN_NUMBER, name, strlen(name)};
    rbt_array_push(&origin.column, c);
    char *text = rbt_origin_text(&origin);
    rbt_origin_deinit(&origin);
    assert_int_equal(strlen(text), RBT_ORIGIN_NAME_BYTES + strlen("number \n"));
    assert_true(rbt_origin_parse(text, &origin));
    assert_true(rbt_origin_is_named(&origin.column.at[0], name));
    name[0] = 'y';
    assert_false(rbt_origin_is_named(&origin.column.at[0], name));
    rbt_origin_deinit(&origin);
    rbt_free(text);
}

static void readers_say_how_they_read(void **state)
{
    (void)state;
    has_origin("1 0:1 2:1\n", (rbt_reading){0}, "base 0\n");
    has_origin("1 2:1\n", (rbt_reading){0}, "base 1\n");
    has_origin("1 2:1\n", (rbt_reading){.base = RBT_BASE_0}, "base 0\n");
    has_origin("1 |a b\n", (rbt_reading){0}, "bits 18\n");
    has_origin("1 |a b\n", (rbt_reading){.bits = 5}, "bits 5\n");
    has_origin("y,a,w\n1,2,3\n", (rbt_reading){.weight = "w"}, "label y\nnumber a\nweight w\n");
    has_origin("a,b,y\nx,2,3\n", (rbt_reading){.label = "y", .bits = 7}, "bits 7\nwords a\nnumber b\nlabel y\n");
    has_origin("1,2\n3,4\n", (rbt_reading){.label = "2"}, "number\nlabel\n");
}

static void libsvm_text_counts_as_the_reading_or_its_origin_says(void **state)
{
    (void)state;
    static const rbt_reading from_0[] = {
        {.base = RBT_BASE_0}, {.origin = "base 0\n"}, {.base = RBT_BASE_0, .origin = "base 1\n"}};
    static const rbt_reading from_1[] = {{.base = RBT_BASE_1}, {.origin = "base 1\n"}};
    for (size_t i = 0; i < sizeof from_0 / sizeof from_0[0]; i++) {
        rbt_data d = read_text("1 1:1 3:1\n", from_0[i]);
        assert_int_equal(d.index[0], 1);
        assert_int_equal(d.cols, 4);
        rbt_data_deinit(&d);
    }
    for (size_t i = 0; i < sizeof from_1 / sizeof from_1[0]; i++) {
        refused("1 1:1\n2 0:1 1:1\n", from_1[i], RBT_E_DATA, "a:2: the row has an index 0");
        rbt_reading skipping = from_1[i];
        skipping.skip_bad = 1;
        rbt_data d = read_text("1 1:1\n2 0:1 5:1\n3 2:1\n", skipping); /* the bad row leaves no trace */
        assert_int_equal(d.rows, 2);
        assert_int_equal(d.index[0], 0);
        assert_string_equal(d.origin, "base 1\n");
        rbt_data_deinit(&d);
    }
    refused("y,a\n1,2\n", (rbt_reading){.base = RBT_BASE_0, .format = "csv"}, RBT_E_USAGE,
            "--base makes no sense for a");
    refused("1 | a\n", (rbt_reading){.base = RBT_BASE_1}, RBT_E_USAGE, "--base makes no sense for a");
}

static void hashes_have_the_bits_of_the_origin(void **state)
{
    (void)state;
    rbt_data d = read_text("1 | a b\n", (rbt_reading){.origin = "bits 6\n"});
    assert_int_equal(d.cols, 64);
    rbt_data_deinit(&d);
    d = read_text("1 | a b\n", (rbt_reading){.origin = "bits 6\n", .bits = 6});
    rbt_data_deinit(&d);
    refused("1 | a b\n", (rbt_reading){.origin = "bits 6\n", .bits = 7}, RBT_E_USAGE,
            "--bits 7: the training data was hashed to 2^6");
    d = read_text("y,a\n1,x\n", (rbt_reading){.origin = "bits 6\nlabel y\nwords a\n"});
    assert_int_equal(d.cols, 64);
    rbt_data_deinit(&d);
}

/* The same features of the same rows, in whatever form the text is. */
static void columns_are_found_again(void **state)
{
    (void)state;
    const char *train = "a,c,y,b\n1,red,0,2\n3,tan,1,4\n";
    static const char *const texts[] = {
        "b,y,a,c\n2,0,1,red\n4,1,3,tan\n", "y,c,b,a\n0,red,2,1\n1,tan,4,3\n", "\"c\";b;a;y\nred;2;1;0\ntan;4;3;1\n",
        "1,red,0,2\n3,tan,1,4\n", /* no header: by their places */
    };
    static const char *const bare[] = {"b,c,a\n2,red,1\n4,tan,3\n", "1,red,2\n3,tan,4\n"};
    rbt_data whole = read_text(train, (rbt_reading){.label = "y", .bits = 4});
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rbt_data d = read_text(texts[i], (rbt_reading){.origin = whole.origin, .format = "csv"});
        same_data(&d, &whole);
        assert_string_equal(d.origin, whole.origin);
        rbt_data_deinit(&d);
    }
    rbt_data made = read_text("label,f1,f2\n0,1,2\n1,3,4\n", (rbt_reading){.origin = whole.origin, .format = "csv"});
    assert_int_equal(made.cols, 2); /* as convert writes it */
    assert_null(made.origin);
    rbt_data_deinit(&made);
    memset(whole.label, 0, whole.rows * sizeof *whole.label);
    for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++) {
        rbt_data d = read_text(bare[i], (rbt_reading){.origin = whole.origin, .format = "csv", .unlabelled = true});
        same_data(&d, &whole);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&whole);
}

static void words_stay_words_and_the_weight_is_no_feature(void **state)
{
    (void)state;
    rbt_data whole = read_text("y,k,w\n1,x,1\n0,5,2\n1,6,1\n", (rbt_reading){.weight = "w", .bits = 9});
    rbt_data d = read_text("y,k,w\n0,5,2\n1,6,1\n",
                           (rbt_reading){.origin = whole.origin, .format = "csv"}); /* all numbers here */
    assert_int_equal(d.index[0], whole.index[1]);
    assert_int_equal(d.index[1], whole.index[2]);
    assert_true(d.weight != NULL && d.weight[0] == 2);
    rbt_data_deinit(&d);
    rbt_data_deinit(&whole);
    /* Without names words are hashed by the number of their column: that of the training data. */
    whole = read_text("1,red,2\n0,blue,3\n", (rbt_reading){.bits = 9, .format = "csv"});
    d = read_text("red,2\nblue,3\n", (rbt_reading){.origin = whole.origin, .format = "csv", .unlabelled = true});
    assert_memory_equal(d.index, whole.index, whole.nnz * sizeof *d.index);
    rbt_data_deinit(&d);
    rbt_data_deinit(&whole);
}

static void other_columns_are_refused_by_name(void **state)
{
    (void)state;
    const rbt_reading reading = {.origin = "label y\nnumber a\nnumber b\n", .format = "csv"};
    rbt_reading predict = reading, named = reading;
    predict.unlabelled = true;
    named.label = "a";
    refused("y,a\n1,2\n", reading, RBT_E_DATA, "a: has no column 'b', which the training data had");
    refused("y,a,b,id\n1,2,3,4\n", reading, RBT_E_DATA, "column 4, 'id', is no feature of the training data");
    refused("a,b\n1,2\n", reading, RBT_E_USAGE, "has no column 'y', which is the label in the training data");
    refused("y,a,b\n1,2,x\n", reading, RBT_E_DATA, "a:2: 'x' in column 3, b: expected a number, as everywhere");
    refused("y,a,b\n1,2,3\n", named, RBT_E_DATA, "column 1, 'y', is no feature");
    refused("1,2\n3,4\n", reading, RBT_E_DATA, "has 2 columns, the training data had 3");
    refused("1\n3\n", predict, RBT_E_DATA, "has 1 columns of features, the training data had 2");
    refused("1,2,3,4\n", predict, RBT_E_DATA, "has 4 columns of features, the training data had 2");
}

static void caches_keep_the_origin(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 0:1\n2 3:4\n", "y,a\nno,2\nyes,3\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rbt_data d = read_text(texts[i], (rbt_reading){0}), back, disk;
        assert_int_equal(rbt_cache_write(&d, "b", NULL), RBT_OK);
        assert_int_equal(rbt_data_read("b", &back, NULL), RBT_OK);
        same_data(&back, &d);
        assert_string_equal(back.origin, d.origin);
        rbt_data_deinit(&back);
        const rbt_storing storing = {.level = RBT_STORE_DISK, .reading = &(rbt_reading){0}}; /* block by block */
        assert_int_equal(rbt_store_read("a", &storing, &disk, NULL), RBT_OK);
        same_data(&disk, &d);
        assert_string_equal(disk.origin, d.origin);
        rbt_data_deinit(&disk);
        rbt_data_deinit(&d);
    }
}

static void a_cache_of_other_features_is_refused(void **state)
{
    (void)state;
    rbt_data d = read_text("y,b,a\n1,2,3\n", (rbt_reading){.format = "csv"}), back;
    rbt_error error;
    assert_int_equal(rbt_cache_write(&d, "b", NULL), RBT_OK);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_data_read_as("b", &(rbt_reading){.origin = "label y\nnumber a\nnumber b\n"}, &back, &error),
                     RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: its columns are not those of the training data"));
    assert_int_equal(rbt_data_read_as("b", &(rbt_reading){.origin = "label y\nnumber b\n"}, &back, &error), RBT_E_DATA);
    assert_int_equal(rbt_data_read_as("b", &(rbt_reading){.origin = "number b\nnumber a\nlabel z\n"}, &back, &error),
                     RBT_OK);
    rbt_data_deinit(&back);
    assert_int_equal(rbt_data_read_as("b", &(rbt_reading){.origin = "base 0\n"}, &back, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: is CSV, and the training data was LIBSVM text"));
}

static void put_cache(const char *path, const char *text, rbt_reading reading)
{
    rbt_data d = read_text(text, reading);
    assert_int_equal(rbt_cache_write(&d, path, NULL), RBT_OK);
    rbt_data_deinit(&d);
}

/* From memory and from the disk alike. */
static void caches_give(const char *path, rbt_reading reading, const char *message)
{
    for (rbt_store_level level = RBT_STORE_MEMORY; level <= RBT_STORE_DISK; level++) {
        rbt_error error = {RBT_OK, ""};
        rbt_data d = {0};
        rbt_err err = rbt_store_read(path, &(rbt_storing){.level = level, .reading = &reading}, &d, &error);
        assert_int_equal(err, message != NULL ? RBT_E_DATA : RBT_OK);
        assert_string_equal(error.text, message != NULL ? message : "");
        rbt_data_deinit(&d);
    }
}

static void a_cache_that_counts_from_another_base_is_refused(void **state)
{
    (void)state;
    put_cache("b", "1 1:1\n2 3:4\n", (rbt_reading){0});
    caches_give("b", (rbt_reading){.origin = "base 1\n"}, NULL);
    caches_give("b", (rbt_reading){.origin = "bits 4\n"},
                "b: is LIBSVM text, and the training data was Vowpal Wabbit text, whose features are numbered in "
                "another way; give data in that format, or, if the indices are those features, say with --base whether "
                "the first is 0 or 1");
    caches_give("b", (rbt_reading){.origin = "bits 4\n", .base = RBT_BASE_1}, NULL);
    caches_give("b", (rbt_reading){.origin = "base 0\n"},
                "b: its features count from 1, those of the training data from 0; make it again with --base 0, or give "
                "--base 1 if its first feature is that of the training data");
    caches_give("b", (rbt_reading){.origin = "base 0\n", .base = RBT_BASE_1}, NULL);
    put_cache("b", "1 1:1\n2 3:4\n", (rbt_reading){.base = RBT_BASE_0});
    caches_give("b", (rbt_reading){.origin = "base 0\n"}, NULL);
}

/* In texts, and in caches made of them. */
static void text_of_another_format_is_refused(void **state)
{
    static const char *const texts[] = {"1 1:2\n", "1 | 1:2\n", "y,a\n1,2\n", "label,f1\n1,2\n"};
    static const char *const origins[] = {"base 1\n", "bits 4\n", "label y\nnumber a\n", "label label\nnumber f1\n"};
    static const char *const refusals[4][4] = {
        {NULL, "a: is Vowpal Wabbit text, and the training data was LIBSVM text",
         "a: is CSV, and the training data was", NULL},
        {"a: is LIBSVM text, and the training data was Vowpal Wabbit text", NULL,
         "a: is CSV, and the training data was Vowpal Wabbit text", NULL},
        {"a: is LIBSVM text, and the training data was CSV", "a: is Vowpal Wabbit text, and the training data was CSV",
         NULL, NULL},
        {NULL, "a: is Vowpal Wabbit text, and the training data was LIBSVM text",
         "a: has no column 'label', which is the label in the training data", NULL},
    };
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        for (size_t t = 0; t < 4; t++) {
            const rbt_reading reading = {.origin = origins[m], .bits = t == 1 && m == 1 ? 4 : 0};
            if (refusals[m][t] != NULL)
                refused(texts[t], reading, t == 2 && m == 3 ? RBT_E_USAGE : RBT_E_DATA, refusals[m][t]);
            rbt_data d = read_text(texts[t], refusals[m][t] != NULL ? (rbt_reading){0} : reading);
            assert_int_equal(d.rows, 1);
            assert_int_equal(rbt_cache_write(&d, "b", NULL), RBT_OK);
            rbt_data_deinit(&d);
            rbt_error error;
            bool columns = m >= 2 && t >= 2; /* which are compared one by one */
            if (!columns)
                assert_int_equal(rbt_data_read_as("b", &(rbt_reading){.origin = origins[m]}, &d, &error),
                                 refusals[m][t] != NULL ? RBT_E_DATA : RBT_OK);
            if (!columns && refusals[m][t] != NULL)
                assert_memory_equal(error.text + 1, refusals[m][t] + 1, strlen(refusals[m][t]) - 1);
            rbt_data_deinit(&d);
        }
    }
    rbt_data d = {0};
    put_file("a", texts[0]);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.origin = "bits 4\n", .base = RBT_BASE_0}, &d, NULL), RBT_OK);
    assert_int_equal(d.index[0], 1); /* the hash of that number */
    rbt_data_deinit(&d);
}

static void caches_of_other_features_are_not_joined(void **state)
{
    static const struct {
        const char *text[2];
        rbt_reading reading[2];
        const char *message; /* NULL: they are */
    } cases[] = {
        {{"1 0:1\n", "1 1:1\n"},
         {{0}, {0}},
         "c: its features count from 1, those of b from 0; make c again with --base 0"},
        {{"1 1:1\n", "1 0:1\n"},
         {{0}, {0}},
         "c: its features count from 0, those of b from 1; make b again with --base 0"},
        {{"1 0:1\n", "1 1:1\n"}, {{0}, {.base = RBT_BASE_0}}, NULL},
        {{"1 | a\n", "1 | a\n"},
         {{.bits = 6}, {.bits = 10}},
         "c: was hashed to 2^10 columns, b to 2^6; make it again with --bits 6"},
        {{"1 | a\n", "1 1:1\n"}, {{0}, {0}}, NULL}, /* neither tells what the other does */
        {{"y,a,b\n1,2,3\n", "y,b,a\n1,2,3\n"},
         {{0}, {0}},
         "c: its columns are not those of b from column 2 on ('b'); make it again from text with the same columns in "
         "the same order, or leave it out"},
        {{"y,a,b\n1,2,3\n", "a,b,y\n1,2,3\n"}, {{0}, {.label = "y"}}, NULL},
        {{"1,2,3\n", "1,2,3\n"},
         {{0}, {.label = "3"}},
         "c: its columns are not those of b from column 1 on (''); make it again from text with the same columns in "
         "the same order, or leave it out"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_cache("b", cases[i].text[0], cases[i].reading[0]);
        put_cache("c", cases[i].text[1], cases[i].reading[1]);
        caches_give("[bc]", (rbt_reading){0}, cases[i].message);
    }
}

static void joined_caches_keep_an_origin_that_all_have(void **state)
{
    (void)state;
    put_cache("b", "1 1:1\n", (rbt_reading){0});
    for (int other = 0; other < 2; other++) {
        rbt_data d = read_text("1 1:1\n", (rbt_reading){0});
        d.origin[0] = other ? '\0' : d.origin[0]; /* an origin that tells nothing */
        assert_int_equal(rbt_cache_write(&d, "c", NULL), RBT_OK);
        rbt_data_deinit(&d);
        for (rbt_store_level level = RBT_STORE_MEMORY; level <= RBT_STORE_DISK; level++) {
            const rbt_storing storing = {.level = level, .reading = &(rbt_reading){0}};
            assert_int_equal(rbt_store_read("[bc]", &storing, &d, NULL), RBT_OK);
            assert_true(other ? d.origin == NULL : strcmp(d.origin, "base 1\n") == 0);
            rbt_data_deinit(&d);
        }
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_origins_are_taken_or_refused),
        cmocka_unit_test(names_are_kept_in_one_line_and_cut),
        IN_FOLDER(readers_say_how_they_read),
        IN_FOLDER(libsvm_text_counts_as_the_reading_or_its_origin_says),
        IN_FOLDER(hashes_have_the_bits_of_the_origin),
        IN_FOLDER(columns_are_found_again),
        IN_FOLDER(words_stay_words_and_the_weight_is_no_feature),
        IN_FOLDER(other_columns_are_refused_by_name),
        IN_FOLDER(caches_keep_the_origin),
        IN_FOLDER(a_cache_of_other_features_is_refused),
        IN_FOLDER(a_cache_that_counts_from_another_base_is_refused),
        IN_FOLDER(text_of_another_format_is_refused),
        IN_FOLDER(caches_of_other_features_are_not_joined),
        IN_FOLDER(joined_caches_keep_an_origin_that_all_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
