/* Proves src/data: the LIBSVM reader and writer, whole-file input and output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "data/data.h"

/* Parses a copy without terminating zero, in memory of exactly that size: a sanitizer sees every read beyond it. */
static rbt_err parse(const char *text, rbt_data *data, rbt_error *error)
{
    size_t n = strlen(text);
    char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    rbt_err err = rbt_data_parse_libsvm(copy, n, "mem", data, error);
    free(copy);
    return err;
}

static rbt_data parsed(const char *text)
{
    rbt_data data;
    rbt_error error;
    if (parse(text, &data, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return data;
}

/* The text is refused with the code, and the message contains every given piece (a list that ends with NULL). */
static void refused(const char *text, rbt_err code, ...)
{
    rbt_data data;
    rbt_error error;
    assert_int_equal(parse(text, &data, &error), code);
    assert_int_equal(error.code, code);
    va_list pieces;
    va_start(pieces, code);
    for (const char *piece; (piece = va_arg(pieces, const char *)) != NULL;)
        if (strstr(error.text, piece) == NULL)
            fail_msg("'%s' is not in: %s", piece, error.text);
    va_end(pieces);
}

/* ----------------------------------------------------------------------------------------------------- reading */

static void reads_rows_with_indices_from_one(void **state)
{
    (void)state;
    rbt_data d = parsed("+1 1:0.5 3:-2\n-1 2:1e-1\n");
    assert_int_equal(d.rows, 2);
    assert_int_equal(d.cols, 3);
    assert_int_equal(d.nnz, 3);
    assert_int_equal(d.start[0], 0);
    assert_int_equal(d.start[1], 2);
    assert_int_equal(d.start[2], 3);
    assert_int_equal(d.index[0], 0);
    assert_int_equal(d.index[1], 2);
    assert_int_equal(d.index[2], 1);
    assert_true(d.value[0] == 0.5F && d.value[1] == -2.0F && d.value[2] == 0.1F);
    assert_true(d.label[0] == 1.0F && d.label[1] == -1.0F);
    rbt_data_deinit(&d);
}

static void an_index_zero_anywhere_makes_the_file_count_from_zero(void **state)
{
    (void)state;
    rbt_data d = parsed("1 1:1 2:1\n-1 0:1\n");
    assert_int_equal(d.cols, 3);
    assert_int_equal(d.index[0], 1);
    assert_int_equal(d.index[2], 0);
    rbt_data_deinit(&d);
    d = parsed("1 0:0 2:1\n"); /* even when its value is dropped */
    assert_int_equal(d.index[0], 2);
    rbt_data_deinit(&d);
}

static void form_does_not_matter(void **state)
{
    (void)state;
    rbt_data plain = parsed("1 1:2 4:3\n-1\n0.5 2:1\n");
    static const char *const same[] = {
        "1 1:2 4:3\n-1\n0.5 2:1",                                   /* no newline at the end */
        "1 1:2 4:3\r\n-1\r\n0.5 2:1\r\n",                           /* line ends of other systems */
        "\t1\t1:2 \t 4:3  \n-1   \n \t0.5 2:1\t\n",                 /* blanks anywhere */
        "\n\n1 1:2 4:3\n\r\n   \n-1\n\n0.5 2:1\n\n",                /* empty lines */
        "# head\n1 1:2 4:3 # 9:9\n-1# x:\n#\n0.5 2:1#",             /* comments */
        "1 qid:7 1:2 4:3\n-1 qid:7\n0.5 qid:8 2:1\n",               /* query numbers */
        "+1.0 1:2.000 4:+3e0\n-1. 3:0 4:-0.0\n.5 2:100E-2 3:0e9\n", /* other ways to write numbers; explicit zeros */
        "1 01:2 0004:3\n-1\n0.5 2:1\n",                             /* leading zeros of indices */
        "\357\273\2771 1:2 4:3\n-1\n0.5 2:1\n",                     /* byte order mark */
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        rbt_data d = parsed(same[i]);
        same_data(&plain, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&plain);
}

/* Values as they stand in files, most of them short; all finite. */
static void draw_value(rbt_rng *rng, char *text, size_t room)
{
    static const char *const odd[] = {".5", "5.", "0", "00", "0.0", "-1", "+2", "1e3", "0.1e-2", "9999999", "99999.9"};
    int digits = (int)rbt_rng_below(rng, 10);
    switch (rbt_rng_below(rng, 4)) {
    case 0:
        (void)snprintf(text, room, "%s", odd[rbt_rng_below(rng, sizeof odd / sizeof odd[0])]);
        break;
    case 1:
        (void)snprintf(text, room, "%u", (unsigned)(rbt_rng_below(rng, 1000000000) >> rbt_rng_below(rng, 30)));
        break;
    default:
        (void)snprintf(text, room, "%.*f", digits, exp(3 * rbt_rng_normal(rng)));
    }
}

/* Behind a blank, and far enough from the end, a feature is read a word at a time, also the last of a row; behind a tab
 * it is not. */
static void features_read_the_same_by_words_and_by_letters(void **state)
{
    (void)state;
    enum { FEATURES = 40, ROUNDS = 3000 };
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);
    for (int round = 0; round < ROUNDS; round++) {
        char words[4096] = "1", letters[4096] = "1", value[32];
        size_t n = 1, kept = 0;
        uint64_t index = rbt_rng_below(&rng, 2);
        float expected[FEATURES];
        for (int i = 0; i < FEATURES; i++) {
            draw_value(&rng, value, sizeof value);
            index += 1 + (rbt_rng_u64(&rng) >> (38 + rbt_rng_below(&rng, 26)));
            (void)snprintf(letters + n, sizeof letters - n, "\t%llu:%s", (unsigned long long)index, value);
            n += (size_t)snprintf(words + n, sizeof words - n, " %llu:%s", (unsigned long long)index, value);
            expected[kept] = strtof(value, NULL);
            kept += expected[kept] != 0;
        }
        words[n] = letters[n] = '\n'; /* and once more, so that there is text behind the row */
        memcpy(words + n + 1, words, n + 1);
        memcpy(letters + n + 1, letters, n + 1);
        rbt_data a = parsed(words), b = parsed(letters);
        same_data(&a, &b);
        assert_int_equal(a.rows, 2);
        assert_int_equal(a.nnz, 2 * kept);
        assert_memory_equal(a.value, expected, kept * sizeof *expected);
        assert_memory_equal(a.value + kept, expected, kept * sizeof *expected);
        rbt_data_deinit(&a);
        rbt_data_deinit(&b);
    }
}

static void an_explicit_zero_counts_as_a_column_and_is_dropped(void **state)
{
    (void)state;
    rbt_data d = parsed("1 2:1 9:0\n-1 1:1e-60\n"); /* too small for a float: a zero too */
    assert_int_equal(d.cols, 9);
    assert_int_equal(d.nnz, 1);
    rbt_data_deinit(&d);
}

static void very_long_lines_are_read(void **state)
{
    (void)state;
    size_t n = 200000, room = n * 16, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "1");
    for (size_t i = 1; i <= n; i++)
        used += (size_t)snprintf(text + used, room - used, " %zu:%zu", i, i % 9 + 1);
    rbt_data d = parsed(text);
    assert_int_equal(d.nnz, n);
    assert_int_equal(d.index[n - 1], n - 1);
    rbt_data_deinit(&d);
    free(text);
}

static void bad_text_is_refused_with_its_line_and_what_was_expected(void **state)
{
    (void)state;
    refused("", RBT_E_DATA, "mem", "no rows", NULL);
    refused("\n# only this\n\n", RBT_E_DATA, "no rows", NULL);
    refused("1 1:1\nx 1:1\n", RBT_E_DATA, "mem:2:", "'x'", "label", NULL);
    refused("1:1 2:1\n", RBT_E_DATA, "mem:1:", "'1:1'", "label", NULL);
    refused("1,2 1:1\n", RBT_E_DATA, "mem:1:", "'1,2'", NULL);
    refused("nan 1:1\n", RBT_E_DATA, "mem:1:", "'nan'", "finite", NULL);
    refused("-inf 1:1\n", RBT_E_DATA, "mem:1:", "'-inf'", NULL);
    refused("1e99 1:1\n", RBT_E_DATA, "mem:1: '1e99': expected a number that a 32-bit float holds", NULL);
    refused("1e99x 1:1\n", RBT_E_DATA, "mem:1:", "'1e99x': expected a label", NULL);
    refused("1 1:1\n\n#\n1 1:nan\n", RBT_E_DATA, "mem:4:", "'1:nan'", "finite number", NULL);
    refused("1 1:inf\n", RBT_E_DATA, "mem:1:", "'1:inf'", NULL);
    refused("1 1:1e39\n", RBT_E_DATA, "mem:1: '1:1e39': expected a number that a 32-bit float holds", NULL);
    refused("1 1:2 7:-1e39 8:1\n", RBT_E_DATA, "mem:1: '7:-1e39': expected a number that a 32-bit float holds", NULL);
    refused("1 1:1e39x\n", RBT_E_DATA, "mem:1:", "'1:1e39x': expected a finite number", NULL);
    refused("1 1:\n", RBT_E_DATA, "mem:1:", "'1:'", NULL);
    refused("1 1:0x10\n", RBT_E_DATA, "mem:1:", "'1:0x10'", NULL);
    refused("1 1:1e\n", RBT_E_DATA, "mem:1:", "'1:1e'", NULL);
    refused("1 1:1:1\n", RBT_E_DATA, "mem:1:", NULL);
    refused("1 1 :1\n", RBT_E_DATA, "mem:1:", "index:value", NULL);
    refused("1 7", RBT_E_DATA, "mem:1:", "'7'", "index:value", NULL);
    refused("1 -1:1\n", RBT_E_DATA, "mem:1:", "'-1:1'", NULL);
    refused("1 a:1\n", RBT_E_DATA, "mem:1:", "'a:1'", NULL);
    refused("1 1:1 qid:3\n", RBT_E_DATA, "mem:1:", "'qid:3'", NULL);
    refused("1 qid: 1:1\n", RBT_E_DATA, "mem:1:", "'qid:': expected digits after qid:", NULL);
    refused("2 qid:1\n1 qid:x 1:1\n", RBT_E_DATA, "mem:2:", "'qid:x': expected digits after qid:", NULL);
    refused("1 qid:3.5\n", RBT_E_DATA, "mem:1:", "'qid:3.5'", NULL);
    refused("1 qid:3 qid:4 1:1\n", RBT_E_DATA, "mem:1:", "'qid:4': expected a feature", NULL);
    refused("1 \x1b[2J\n", RBT_E_DATA, "mem:1:", "'?[2J'", NULL);
    refused("1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", RBT_E_DATA, "aaa...'", NULL);
}

/* Within a row, far from its end, where features are read a word at a time. */
static void bad_features_are_refused_amid_good_ones(void **state)
{
    (void)state;
    static const char *const bad[] = {"3:",    "3:.",   "3:1.2.3", "3:1x",  "3:x",   ":1",   "3",    "3:1:1",
                                      "3:1,5", "3x:1",  "3:1e40",  "3:nan", "3:--1", "3 :1", "3:1e", "x",
                                      "-3:1",  "3:1-1", "3:1.5.",  "3:0x1", "3.0:1", "3/:1", "3:1/", "3;1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[200], token[64];
        (void)snprintf(text, sizeof text, "1 1:1 2:0.5\n1 1:1 2:0.25 %s 7:0.125 8:1 9:0.0625 10:1\n", bad[i]);
        (void)snprintf(token, sizeof token, "'%.*s'", (int)strcspn(bad[i], " "), bad[i]);
        refused(text, RBT_E_DATA, "mem:2:", token, NULL);
    }
}

static void indices_that_do_not_ascend_are_refused_with_both(void **state)
{
    (void)state;
    refused("1 1:1\n1 7:1 3:1\n", RBT_E_DATA, "mem:2:", "index 3", "index 7", "ascend", NULL);
    refused("1 7:1 7:1\n", RBT_E_DATA, "mem:1:", "index 7 stands after index 7", NULL);
    refused("1 5:0 4:1\n", RBT_E_DATA, "mem:1:", "index 4", "index 5", NULL);
}

static void indices_reach_up_to_the_limit(void **state)
{
    (void)state;
    rbt_data d = parsed("1 4294967294:1\n");
    assert_int_equal(d.index[0], 4294967293U);
    assert_int_equal(d.cols, 4294967294U);
    rbt_data_deinit(&d);
    refused("1 4294967295:1\n", RBT_E_LIMIT, "mem:1:", "below 4294967295", NULL);
    refused("1 99999999999999999999999999999999:1\n", RBT_E_LIMIT, "mem:1:", NULL);
    refused("1 0:1 4294967294:1\n", RBT_E_LIMIT, "mem", "from 0", NULL);
}

static void zero_bytes_in_the_text_are_refused(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    assert_int_equal(rbt_data_parse_libsvm("1 1:1\0 2:1\n", 11, "mem", &d, &error), RBT_E_DATA);
    assert_int_equal(rbt_data_parse_libsvm("\0", 1, "mem", &d, &error), RBT_E_DATA);
}

static void every_cut_of_a_text_is_read_or_refused(void **state)
{
    (void)state;
    static const char text[] = "+1 qid:3 1:0.5 17:-2.5e-3 # end\r\n\n-1 2:1e-1 3:7\n";
    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = malloc(n > 0 ? n : 1);
        assert_non_null(copy);
        memcpy(copy, text, n);
        rbt_data d;
        rbt_error error;
        rbt_err err = rbt_data_parse_libsvm(copy, n, "mem", &d, &error);
        if (err == RBT_OK)
            rbt_data_deinit(&d);
        free(copy);
    }
}

static void row_fit_counts_the_features_a_model_knows(void **state)
{
    (void)state;
    rbt_data d = parsed("1 2:1 4:1 9:1\n-1\n1 1:1\n");
    for (size_t cols = 0; cols <= 12; cols++) {
        assert_int_equal(rbt_data_row_fit(&d, 0, cols), (cols >= 2) + (cols >= 4) + (cols >= 9));
        assert_int_equal(rbt_data_row_fit(&d, 1, cols), 0);
        assert_int_equal(rbt_data_row_fit(&d, 2, cols), cols >= 1);
    }
    rbt_data_deinit(&d);
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void a_file_reads_like_its_text(void **state)
{
    (void)state;
    static const char text[] = "1 1:2 4:3\n-1\n";
    put_file("a", text);
    rbt_data expected = parsed(text), d;
    rbt_error error;
    assert_int_equal(rbt_data_read("a", &d, &error), RBT_OK);
    same_data(&expected, &d);
    rbt_data_deinit(&d);
    rbt_data_deinit(&expected);
}

static void a_pipe_reads_like_a_file(void **state)
{
    (void)state;
    static const char text[] = "1 1:2 4:3\n-1\n";
    int ends[2];
    char path[64];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, sizeof text - 1), sizeof text - 1);
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    rbt_data expected = parsed(text), d;
    rbt_error error;
    assert_int_equal(rbt_data_read(path, &d, &error), RBT_OK);
    same_data(&expected, &d);
    close(ends[0]);
    rbt_data_deinit(&d);
    rbt_data_deinit(&expected);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    assert_int_equal(rbt_data_read("missing", &d, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "missing: cannot be opened: No such file"));
    assert_int_equal(rbt_data_read(".", &d, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "is a folder; give a file, or the files in it, as in './*'"));
    put_file("a", "");
    assert_int_equal(rbt_data_read("a", &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a: has no rows"));
    put_file("a", "1 1:1\n1 2:x\n");
    assert_int_equal(rbt_data_read("a", &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a:2: '2:x'"));
}

static void written_data_reads_back_as_the_same(void **state)
{
    (void)state;
    rbt_data d = parsed("1 1:2.5 4:-3e-20 9:0\n-1\n0.30000001 2:16777216 3:0.1\n"), back;
    rbt_error error;
    assert_int_equal(rbt_data_write_libsvm(&d, "a", &error), RBT_OK);
    assert_int_equal(rbt_data_read("a", &back, &error), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void writing_replaces_a_file_and_follows_a_link(void **state)
{
    (void)state;
    rbt_data d = parsed("1 1:2\n"), back;
    rbt_error error;
    put_file("a", "-1 1:1\n-1 1:1\n");
    assert_int_equal(symlink("a", "b"), 0);
    assert_int_equal(rbt_data_write_libsvm(&d, "b", &error), RBT_OK);
    struct stat status;
    assert_int_equal(lstat("b", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(rbt_data_read("a", &back, &error), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void a_full_device_is_an_error_and_stays_a_device(void **state)
{
    (void)state;
    struct stat status;
    if (stat("/dev/full", &status) != 0)
        skip();
    rbt_data d = parsed("1 1:2\n");
    rbt_error error;
    assert_int_equal(rbt_data_write_libsvm(&d, "/dev/full", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "/dev/full: cannot be written: No space left on device"));
    assert_int_equal(stat("/dev/full", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    rbt_data_deinit(&d);
}

/* A limit on file size stands for a disk that fills up in the middle. */
static void a_file_that_does_not_fit_leaves_nothing_behind(void **state)
{
    (void)state;
    size_t n = 100000;
    rbt_data d = {0};
    rbt_error error;
    assert_int_equal(rbt_data_alloc(n, n, &d, &error), RBT_OK);
    d.rows = d.nnz = n;
    d.cols = 1;
    for (size_t i = 0; i < n; i++) {
        d.value[i] = 1;
        d.start[i + 1] = i + 1;
    }
    put_file("a", "1 1:1\n");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 300000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    rbt_err err = rbt_data_write_libsvm(&d, "a", &error);
    rbt_err err_new = rbt_data_write_libsvm(&d, "b", NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(err, RBT_E_IO);
    assert_int_equal(err_new, RBT_E_IO);
    assert_non_null(strstr(error.text, "a: cannot be written: File too large"));
    assert_int_not_equal(access("b", F_OK), 0);
    rbt_data old;
    assert_int_equal(rbt_data_read("a", &old, &error), RBT_OK); /* what was there is still there */
    assert_int_equal(old.rows, 1);
    rbt_data_deinit(&old);
    rbt_data_deinit(&d);
}

static void data_that_cannot_be_written_is_refused(void **state)
{
    (void)state;
    rbt_data d = parsed("1 1:2\n"), none = {0};
    rbt_error error;
    assert_int_equal(rbt_data_write_libsvm(&none, "a", &error), RBT_E_USAGE);
    assert_int_equal(rbt_data_write_libsvm(&d, "no/such/folder", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "no/such/folder: cannot be created: No such file or directory"));
    d.value[0] = NAN;
    assert_int_equal(rbt_data_write_libsvm(&d, "a", &error), RBT_E_DATA);
    d.label[0] = INFINITY;
    assert_int_equal(rbt_data_write_libsvm(&d, "a", &error), RBT_E_DATA);
    assert_int_not_equal(access("a", F_OK), 0);
    rbt_data_deinit(&d);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rows_with_indices_from_one),
        cmocka_unit_test(an_index_zero_anywhere_makes_the_file_count_from_zero),
        cmocka_unit_test(form_does_not_matter),
        cmocka_unit_test(features_read_the_same_by_words_and_by_letters),
        cmocka_unit_test(an_explicit_zero_counts_as_a_column_and_is_dropped),
        cmocka_unit_test(very_long_lines_are_read),
        cmocka_unit_test(bad_text_is_refused_with_its_line_and_what_was_expected),
        cmocka_unit_test(bad_features_are_refused_amid_good_ones),
        cmocka_unit_test(indices_that_do_not_ascend_are_refused_with_both),
        cmocka_unit_test(indices_reach_up_to_the_limit),
        cmocka_unit_test(zero_bytes_in_the_text_are_refused),
        cmocka_unit_test(every_cut_of_a_text_is_read_or_refused),
        cmocka_unit_test(row_fit_counts_the_features_a_model_knows),
        IN_FOLDER(a_file_reads_like_its_text),
        IN_FOLDER(a_pipe_reads_like_a_file),
        IN_FOLDER(files_that_cannot_be_read_are_named),
        IN_FOLDER(written_data_reads_back_as_the_same),
        IN_FOLDER(writing_replaces_a_file_and_follows_a_link),
        IN_FOLDER(a_full_device_is_an_error_and_stays_a_device),
        IN_FOLDER(a_file_that_does_not_fit_leaves_nothing_behind),
        IN_FOLDER(data_that_cannot_be_written_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
