/* Proves src/data/read and kind: what a file is taken for, bad rows that may be left out, the memory that reading takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/data.h"
#include "data/libsvm.h"
#include "data/read.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "a.csv", "a.vw", "a.svm"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static void a_file_is_known_by_its_bytes_its_name_and_its_first_line(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        rbt_kind kind;
    } known[] = {
        {"a", "1 1:2 3:4\n", RBT_KIND_LIBSVM},
        {"a", "1\n", RBT_KIND_LIBSVM},
        {"a", "# c, d\n\n-1 qid:3 1:2\n", RBT_KIND_LIBSVM},
        {"a", "+1\t1:2\n", RBT_KIND_LIBSVM},
        {"a", "1,2 1:2 3:4\n", RBT_KIND_LIBSVM}, /* several labels, which are refused */
        {"a", "1,2\n", RBT_KIND_CSV},
        {"a", "1,2 x\n", RBT_KIND_CSV},
        {"a", "1,2 1:2,3\n", RBT_KIND_CSV},
        {"a", "1 # a|b,c\n", RBT_KIND_LIBSVM},
        {"a", "", RBT_KIND_LIBSVM},
        {"a", "nonsense\n", RBT_KIND_LIBSVM},
        {"a", "1 |a b c:2\n", RBT_KIND_VW},
        {"a", "| b\n", RBT_KIND_VW},
        {"a", "1 2.5 'tag|a b, c\n", RBT_KIND_VW},
        {"a", "'tag|a b\n", RBT_KIND_VW},
        {"a", "y,a,b|c\n", RBT_KIND_CSV},
        {"a", "a|b,c\n", RBT_KIND_CSV},
        {"a", "1,2,3\n", RBT_KIND_CSV},
        {"a", "1;2;3\n", RBT_KIND_CSV},
        {"a", "1\t2\t3\n", RBT_KIND_CSV},
        {"a", "\xef\xbb\xbfy,a\n", RBT_KIND_CSV},
        {"a.csv", "1 1:2\n", RBT_KIND_CSV},
        {"a.TSV.gz", "1 1:2\n", RBT_KIND_CSV},
        {"a.vw.zst", "y,a\n", RBT_KIND_VW},
        {"b/a.svm", "1,2\n", RBT_KIND_LIBSVM},
        {"a.libsvm", "1,2\n", RBT_KIND_LIBSVM},
        {"a", "1:1\t2:0.5 # x\n", RBT_KIND_LIBSVM},
        {"a", "12:30\tnoon\n", RBT_KIND_CSV},
        {"a", "1::2::3\n", RBT_KIND_RATINGS},
        {"a.csv", "\x89RBD\r\n\x1a\n", RBT_KIND_CACHE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_input input = {.name = known[i].name, .bytes = known[i].text, .n = strlen(known[i].text)};
        if (rbt_kind_of(&input, RBT_CONTENT_ROWS) != known[i].kind)
            fail_msg("'%s' named %s is taken for %d", known[i].text, known[i].name,
                     (int)rbt_kind_of(&input, RBT_CONTENT_ROWS));
    }
    rbt_input images = {.name = "a.csv", .bytes = "\0\0\x08\x03", .n = 4};
    assert_int_equal(rbt_kind_of(&images, RBT_CONTENT_ROWS), RBT_KIND_IDX);
}

static void the_format_can_be_said(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    put_file("a", "1 2:3\n");
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "libsvm"}, &d, &error), RBT_OK);
    assert_int_equal(d.cols, 2);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "csv"}, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "label,number,word")); /* one column's name, and no rows */
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "vw"}, &d, &error), RBT_E_DATA);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "idx"}, &d, &error), RBT_E_USAGE);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "cache"}, &d, &error), RBT_E_DATA);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.format = "xml"}, &d, &error), RBT_E_USAGE);
    assert_non_null(strstr(
        error.text, "--format 'xml' is unknown; choose auto, libsvm, vw, csv, idx, ratings, docword, ldac or cache"));
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.bits = 32}, &d, &error), RBT_E_USAGE);
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.label = "2"}, &d, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "--label makes no sense for a, which is LIBSVM text"));
}

static void rows_of_features_alone_have_no_label(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report;
    put_file("a", "1:1 3:2\n-1 2:1\n\nqid:4 2:1\n7\n");
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.unlabelled = true, .report = &report}, &d, &error), RBT_OK);
    assert_int_equal(d.rows, 4);
    assert_int_equal(d.nnz, 4);
    assert_int_equal(report.unlabelled, 2);
    assert_true(d.label[0] == 0 && d.label[1] == -1 && d.label[2] == 0 && d.label[3] == 7);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_data_read("a", &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a:1: '1:1': expected a label"));
    put_file("a", "1:x 3:2\n");
    assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.unlabelled = true}, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a:1: '1:x': expected a finite number after the colon"));
}

/* In all formats; of numbers to predict a label is rounded. */
static void classes_are_not_rounded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where;
    } bad[] = {{"1 1:1\n16777217 1:1\n", "a:2: the label '16777217' would become 16777216"},
               {"1 |a b\n123456789 |a b\n", "a:2: the label '123456789' would become 123456792"},
               {"y,x\n1,2\n123456789,3\n", "a:3: the label '123456789' would become"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_data d;
        rbt_error error;
        put_file("a", bad[i].text);
        assert_int_equal(rbt_data_read("a", &d, &error), RBT_OK);
        rbt_data_deinit(&d);
        assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.classes = true, .skip_bad = 1}, &d, &error), RBT_OK);
        assert_int_equal(d.rows, 1);
        rbt_data_deinit(&d);
        assert_int_equal(rbt_data_read_as("a", &(rbt_reading){.classes = true}, &d, &error), RBT_E_DATA);
        if (strstr(error.text, bad[i].where) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].where, error.text);
    }
}

/* ----------------------------------------------------------------------------------------------------------- bad rows */

static const char bad[] = "1 1:1\n"
                          "1 x\n"
                          "2 0:nan\n"
                          "# fine: 1\n"
                          "3 7:1 2:1\n"
                          "4 3:4\n"
                          "y\n";

static void bad_rows_may_be_left_out_and_leave_no_trace(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report;
    char note[RBT_READ_NOTE_ROOM];
    const rbt_text mem = {.name = "mem", .bytes = bad, .n = strlen(bad)};
    for (size_t bytes = 1; bytes <= strlen(bad) + 1; bytes++) {
        const rbt_source source = {&mem, 1, "mem", {bytes, 2}, NULL};
        rbt_reading reading = {.skip_bad = 4, .report = &report};
        assert_int_equal(rbt_libsvm_parse(&source, &reading, &d, &error), RBT_OK);
        assert_true(d.rows == 2 && d.nnz == 2 && d.label[1] == 4);
        assert_int_equal(d.cols, 3);     /* not 7 */
        assert_int_equal(d.index[1], 2); /* and the 0 of a bad row does not count */
        rbt_data_deinit(&d);
        assert_int_equal(report.skipped, 4);
        assert_non_null(strstr(report.first.text, "mem:2: 'x': expected a feature"));
        assert_true(rbt_read_note(&report, note));
        assert_non_null(strstr(note, "4 bad rows were left out; the first: mem:2:"));
        reading.skip_bad = 3;
        assert_int_equal(rbt_libsvm_parse(&source, &reading, &d, &error), RBT_E_DATA);
        assert_non_null(strstr(error.text, "mem:2: 'x': expected a feature"));
        assert_non_null(strstr(error.text, "the first of more than 3 bad rows"));
    }
    assert_int_equal(rbt_libsvm_parse(&(rbt_source){&mem, 1, "mem", {9, 2}, NULL}, &(rbt_reading){0}, &d, &error),
                     RBT_E_DATA);
    assert_null(strstr(error.text, "more than"));
    const rbt_text all = {.name = "mem", .bytes = "x\ny\n", .n = 4};
    assert_int_equal(
        rbt_libsvm_parse(&(rbt_source){&all, 1, "mem", {9, 2}, NULL}, &(rbt_reading){.skip_bad = 9}, &d, &error),
        RBT_E_DATA);
    assert_non_null(strstr(error.text, "mem: has no good rows"));
}

/* ------------------------------------------------------------------------------------------------------------- memory */

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The most memory this process has had so far, in bytes. */
static size_t peak_bytes(void)
{
    char line[128];
    size_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "VmHWM: %zu kB", &kilobytes);
    assert_int_equal(fclose(f), 0);
    return kilobytes * 1024;
}

/* Reads the file in a process of its own; at most 12 bytes per non-zero, and a little for the process. */
static void reads_within_bound(const char *path, size_t least_nnz)
{
    const size_t slack = 4 << 20;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rbt_data d;
        rbt_error error;
        size_t before = peak_bytes();
        if (rbt_data_read(path, &d, &error) != RBT_OK || d.nnz < least_nnz)
            _exit(2);
        size_t more = peak_bytes() - before, bound = 12 * d.nnz + slack;
        if (more > bound)
            (void)fprintf(stderr, "%s: %zu bytes for %zu non-zeros\n", path, more, d.nnz);
        rbt_data_deinit(&d);
        _exit(more > bound);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void reading_takes_12_bytes_per_non_zero_at_most(void **state)
{
    (void)state;
    size_t rows = 40000;
    if (SANITIZED)
        skip();
    FILE *svm = fopen("a.svm", "w"), *vw = fopen("a.vw", "w"), *csv = fopen("a.csv", "w");
    assert_true(svm != NULL && vw != NULL && csv != NULL);
    for (size_t r = 0; r < rows; r++) {
        (void)fputs("1", svm);
        (void)fputs("1 |words", vw);
        (void)fputs("1", csv);
        for (size_t i = 0; i < 50; i++) {
            (void)fprintf(svm, " %zu:0.12345678", i * 1000 + r % 1000 + 1);
            (void)fprintf(vw, " name%zu:0.123456", i * 1000 + r % 1000);
            (void)fputs(i % 2 == 0 ? ",0.12345678" : ",\"0\"", csv); /* half of the cells are zeros */
        }
        (void)fputc('\n', svm);
        (void)fputc('\n', vw);
        (void)fputc('\n', csv);
    }
    assert_true(fclose(svm) == 0 && fclose(vw) == 0 && fclose(csv) == 0);
    reads_within_bound("a.svm", rows * 50);
    reads_within_bound("a.vw", rows * 49);
    reads_within_bound("a.csv", rows * 25);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_known_by_its_bytes_its_name_and_its_first_line),
        IN_FOLDER(the_format_can_be_said),
        IN_FOLDER(classes_are_not_rounded),
        IN_FOLDER(rows_of_features_alone_have_no_label),
        cmocka_unit_test(bad_rows_may_be_left_out_and_leave_no_trace),
        IN_FOLDER(reading_takes_12_bytes_per_non_zero_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
