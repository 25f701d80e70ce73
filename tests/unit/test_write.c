/* Proves src/data/write.c and write_rows.c: pieces in order whatever the threads, and every format to the letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/write_rows.h"
#include "unit/files.h"

/* The bytes of a file, ended by a zero; the caller frees them. */
static char *bytes_of(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    bytes[*n] = '\0';
    assert_int_equal(fclose(f), 0);
    return bytes;
}

/* ------------------------------------------------------------------------------------------------------ pieces */

typedef struct making {
    size_t refuse, refuse_too; /* these pieces cannot be made */
    atomic_bool *stop_at_10;
} making;

static rbt_err make_number(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    making *m = context;
    if (piece == m->refuse || piece == m->refuse_too)
        return rbt_fail(error, RBT_E_DATA, "piece %zu is bad", piece);
    if (m->stop_at_10 != NULL && piece == 10)
        atomic_store(m->stop_at_10, true);
    assert_int_equal(out->n, 0);
    assert_int_equal(rbt_buffer_reserve(out, 32, error), RBT_OK);
    out->n = (size_t)snprintf(out->at, 32, "%zu\n", piece);
    return RBT_OK;
}

static rbt_err make_end(void *context, rbt_buffer *last, rbt_error *error)
{
    (void)context;
    assert_int_equal(rbt_buffer_reserve(last, 32, error), RBT_OK);
    memcpy(last->at + last->n, "end\n", 4);
    last->n += 4;
    return RBT_OK;
}

static void pieces_come_in_order_whatever_the_threads(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 15, 16, 17, 33, 2000};
    making m = {SIZE_MAX, SIZE_MAX, NULL};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        rbt_making pieces = {.count = counts[c], .make = make_number, .end = make_end, .context = &m};
        for (unsigned threads = 0; threads < 9; threads += 2) {
            rbt_buffer head = {.at = (char[]){'h', '\n'}, .n = 2};
            rbt_writing how = {.path = "a", .threads = threads};
            assert_int_equal(rbt_making_write_file(&pieces, &how, &head, NULL), RBT_OK);
            size_t n;
            char *bytes = bytes_of("a", &n), *at = bytes + 2;
            assert_memory_equal(bytes, "h\n", 2);
            for (size_t piece = 0; piece < counts[c]; piece++, at++)
                assert_int_equal(strtoul(at, &at, 10), piece);
            assert_string_equal(at, counts[c] > 0 ? "end\n" : "");
            free(bytes);
        }
    }
}

static void the_first_piece_that_fails_is_reported_and_no_file_is_left(void **state)
{
    (void)state;
    making m = {777, 790, NULL};
    rbt_making pieces = {.count = 1000, .make = make_number, .context = &m};
    rbt_error error;
    for (unsigned threads = 1; threads < 5; threads++) {
        rbt_writing how = {.path = "b", .threads = threads};
        assert_int_equal(rbt_making_write_file(&pieces, &how, NULL, &error), RBT_E_DATA);
        assert_string_equal(error.text, "piece 777 is bad");
        assert_int_not_equal(access("b", F_OK), 0);
    }
    m.refuse = m.refuse_too = SIZE_MAX;
    assert_int_equal(rbt_making_write_file(&pieces, &(rbt_writing){.path = "/dev/full"}, NULL, &error), RBT_E_IO);
}

static void an_interrupted_writing_ends_soon_and_leaves_no_file(void **state)
{
    (void)state;
    atomic_bool stop = false;
    making m = {2000, SIZE_MAX, &stop}; /* piece 2000 is never asked for */
    rbt_making pieces = {.count = SIZE_MAX, .make = make_number, .context = &m};
    rbt_error error;
    rbt_writing how = {.path = "b", .threads = 2, .stop = &stop};
    assert_int_equal(rbt_making_write_file(&pieces, &how, NULL, &error), RBT_E_INTERRUPTED);
    assert_non_null(strstr(error.text, "b: interrupted; nothing was written"));
    assert_int_not_equal(access("b", F_OK), 0);
}

/* ----------------------------------------------------------------------------------------------------- formats */

static size_t starts[] = {0, 2, 2, 3};
static uint32_t indices[] = {0, 3, 1};
static float values[] = {2, -0.25F, 1e-10F}, labels[] = {1, -1, 0.5F}, weights[] = {1, 2.5F, 1e9F};
static float which[] = {0, 2, 1};
static char *words[] = {"ham", "spam, \"eggs\"", "tea"};

static rbt_data example(void)
{
    return (rbt_data){
        .rows = 3, .cols = 5, .nnz = 3, .start = starts, .index = indices, .value = values, .label = labels};
}

static void written(const rbt_data *d, rbt_format format, const char *expected)
{
    rbt_error error;
    if (rbt_data_write(d, format, &(rbt_writing){.path = "a"}, &error) != RBT_OK)
        fail_msg("%s", error.text);
    size_t n;
    char *bytes = bytes_of("a", &n);
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void every_text_is_as_documented(void **state)
{
    (void)state;
    rbt_data d = example();
    written(&d, RBT_FORMAT_LIBSVM, "1 1:2 4:-0.25\n-1\n0.5 2:1e-10 5:0\n");
    written(&d, RBT_FORMAT_VW, "1 | 0:2 3:-0.25\n-1 |\n0.5 | 1:1e-10\n");
    written(&d, RBT_FORMAT_CSV, "label,f1,f2,f3,f4,f5\n1,2,0,0,-0.25,0\n-1,0,0,0,0,0\n0.5,0,1e-10,0,0,0\n");
    d.cols = 4; /* the last column is used */
    written(&d, RBT_FORMAT_LIBSVM, "1 1:2 4:-0.25\n-1\n0.5 2:1e-10\n");
    d.weight = weights;
    written(&d, RBT_FORMAT_VW, "1 1 | 0:2 3:-0.25\n-1 2.5 |\n0.5 1e+09 | 1:1e-10\n");
    written(&d, RBT_FORMAT_CSV,
            "label,weight,f1,f2,f3,f4\n1,1,2,0,0,-0.25\n-1,2.5,0,0,0,0\n"
            "0.5,1e+09,0,1e-10,0,0\n");
    d.weight = NULL;
    d.label = which;
    d.label_names = words;
    d.label_count = 3;
    written(&d, RBT_FORMAT_CSV,
            "label,f1,f2,f3,f4\nham,2,0,0,-0.25\ntea,0,0,0,0\n"
            "\"spam, \"\"eggs\"\"\",0,1e-10,0,0\n");
}

static void refused(const rbt_data *d, rbt_format format, rbt_err code, const char *piece)
{
    rbt_error error;
    assert_int_equal(rbt_data_write(d, format, &(rbt_writing){.path = "b"}, &error), code);
    if (strstr(error.text, piece) == NULL)
        fail_msg("'%s' is not in: %s", piece, error.text);
    assert_int_not_equal(access("b", F_OK), 0);
}

static void what_a_format_cannot_hold_is_refused_with_the_reason(void **state)
{
    (void)state;
    rbt_data d = example(), none = {0};
    refused(&none, RBT_FORMAT_CSV, RBT_E_USAGE, "b: not written: the data has no rows");
    d.weight = weights;
    refused(&d, RBT_FORMAT_LIBSVM, RBT_E_USAGE, "the rows have weights, which LIBSVM text cannot hold");
    d.weight = NULL;
    d.label_names = words;
    refused(&d, RBT_FORMAT_LIBSVM, RBT_E_USAGE, "the labels are words, and LIBSVM text has numbers only");
    refused(&d, RBT_FORMAT_VW, RBT_E_USAGE, "the labels are words, and VW text has numbers only");
    d.label_names = NULL;
    d.cols = RBT_CSV_COLS_MOST + 1;
    refused(&d, RBT_FORMAT_CSV, RBT_E_LIMIT, "100001 columns are more than 100000");
    float bad[] = {1, NAN, 0};
    d.label = bad;
    refused(&d, RBT_FORMAT_VW, RBT_E_DATA, "b: row 2 has a label or a value that is not finite");
    rbt_format format;
    rbt_error error;
    assert_int_equal(rbt_format_find("svm", false, &format, &error), RBT_E_USAGE);
    assert_string_equal(error.text, "--to 'svm' is unknown; choose libsvm, csv, vw or cache");
    assert_int_equal(rbt_format_find("vw", false, &format, &error), RBT_OK);
    assert_int_equal(format, RBT_FORMAT_VW);
}

/* Many rows of all lengths, long stretches of empty ones among them. */
static rbt_data uneven(size_t rows, bool end_empty)
{
    rbt_data d;
    assert_int_equal(rbt_data_alloc(rows, rows * 20, &d, NULL), RBT_OK);
    d.cols = 1001;
    for (; d.rows < rows; d.rows++) {
        size_t n = d.rows % 7000 > 3000 || (end_empty && d.rows > rows / 2) ? 0 : d.rows % 20;
        for (size_t i = 0; i < n; i++, d.nnz++) {
            d.index[d.nnz] = (uint32_t)(i * 50 + d.rows % 50);
            d.value[d.nnz] = (float)(d.rows + 1) / (float)(i + 3);
        }
        d.label[d.rows] = (float)(d.rows % 3);
        d.start[d.rows + 1] = d.nnz;
    }
    return d;
}

static void text_and_cache_read_back_as_the_same_data(void **state)
{
    (void)state;
    for (int end_empty = 0; end_empty < 2; end_empty++) {
        rbt_data d = uneven(30000, end_empty != 0), back;
        for (unsigned threads = 1; threads < 5; threads++) {
            assert_int_equal(
                rbt_data_write(&d, RBT_FORMAT_LIBSVM, &(rbt_writing){.path = "a", .threads = threads}, NULL), RBT_OK);
            assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
            same_data(&d, &back);
            rbt_data_deinit(&back);
        }
        assert_int_equal(rbt_data_write(&d, RBT_FORMAT_CACHE, &(rbt_writing){.path = "a"}, NULL), RBT_OK);
        assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
        same_data(&d, &back);
        rbt_data_deinit(&back);
        rbt_data_deinit(&d);
    }
}

static void a_row_longer_than_many_pieces_is_written_whole(void **state)
{
    (void)state;
    rbt_data d, back;
    assert_int_equal(rbt_data_alloc(3, 100002, &d, NULL), RBT_OK);
    d.rows = 3;
    d.cols = 100000;
    d.nnz = 100002;
    for (uint32_t i = 0; i < 100002; i++) {
        d.index[i] = i == 0 ? 0 : i == 100001 ? 7 : i - 1;
        d.value[i] = 1;
    }
    memcpy(d.start, (const size_t[]){0, 1, 100001, 100002}, 4 * sizeof *d.start);
    memcpy(d.label, (const float[]){1, -1, 1}, 3 * sizeof *d.label);
    assert_int_equal(rbt_data_write_libsvm(&d, "a", NULL), RBT_OK);
    assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static int leave(void **state)
{
    return remove_folder(state, (const char *const[]){"a"}, 1);
}

static void written_and_read(const char *text, rbt_format format, const char *as)
{
    rbt_data d, back;
    rbt_error error = {RBT_OK, ""};
    put_file("in", text);
    assert_int_equal(rbt_data_read_as("in", &(rbt_reading){.format = as}, &d, &error), RBT_OK);
    if (rbt_data_write(&d, format, &(rbt_writing){.path = "out"}, &error) != RBT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(rbt_data_read("out", &back, &error), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&d);
    rbt_data_deinit(&back);
    assert_int_equal(remove("in"), 0);
    assert_int_equal(remove("out"), 0);
}

static void ratings_and_documents_read_back(void **state)
{
    (void)state;
    written_and_read("ann film 4\nann book 2.5\nbob book 0\nbob disc -1e-3\n", RBT_FORMAT_RATINGS, "ratings");
    written_and_read("3 0:2 3:1 7:16777215\n0\n0\n1 2:3\n", RBT_FORMAT_DOCWORD, "ldac");
    rbt_data d;
    rbt_error error;
    put_file("in", "a::b,c,3\n");
    assert_int_equal(rbt_data_read_as("in", &(rbt_reading){.format = "ratings"}, &d, &error), RBT_E_DATA);
    put_file("in", "x,y,3\na::b,c,3\n");
    assert_int_equal(rbt_data_read_as("in", &(rbt_reading){.format = "ratings"}, &d, &error), RBT_OK);
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_RATINGS, &(rbt_writing){.path = "out"}, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "user 'a::b' or item 'c' is no name that stands between two colons"));
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_DOCWORD, &(rbt_writing){.path = "out"}, &error), RBT_E_USAGE);
    rbt_data_deinit(&d);
    assert_int_equal(remove("in"), 0);
}

static void ratings_keep_their_names_as_csv(void **state)
{
    (void)state;
    static const char text[] =
        "user,item,rating\n\" ann \",\"Heat, 1995\",4\n\" ann \",a::b,2.5\n\"b\"\"b\",\"Heat, 1995\",0\n"
        "7,007,-0.001\n";
    rbt_data d, back;
    rbt_error error = {RBT_OK, ""};
    put_file("in", text);
    assert_int_equal(rbt_data_read_as("in", &(rbt_reading){.format = "ratings"}, &d, &error), RBT_OK);
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_CSV, &(rbt_writing){.path = "out"}, &error), RBT_OK);
    size_t n;
    char *written = bytes_of("out", &n);
    assert_int_equal(n, sizeof text - 1);
    assert_memory_equal(written, text, n);
    free(written);
    assert_int_equal(rbt_data_read_as("out", &(rbt_reading){.format = "ratings"}, &back, &error), RBT_OK);
    same_data(&d, &back);
    for (size_t i = 0; i < d.rows; i++)
        assert_string_equal(rbt_ids_name(back.row_names, i), rbt_ids_name(d.row_names, i));
    for (size_t i = 0; i < d.cols; i++)
        assert_string_equal(rbt_ids_name(back.col_names, i), rbt_ids_name(d.col_names, i));
    rbt_data_deinit(&back);
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_LIBSVM, &(rbt_writing){.path = "no"}, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "LIBSVM text has no place for the names of their users and items; choose "));
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_VW, &(rbt_writing){.path = "no"}, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "VW text has no place"));
    d.cols = RBT_CSV_COLS_MOST + 1; /* not a column of cells each */
    assert_int_equal(rbt_data_write(&d, RBT_FORMAT_CSV, &(rbt_writing){.path = "out"}, &error), RBT_OK);
    rbt_data_deinit(&d);
    assert_int_equal(remove("in"), 0);
    assert_int_equal(remove("out"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_come_in_order_whatever_the_threads),
        cmocka_unit_test(the_first_piece_that_fails_is_reported_and_no_file_is_left),
        cmocka_unit_test(an_interrupted_writing_ends_soon_and_leaves_no_file),
        cmocka_unit_test(every_text_is_as_documented),
        cmocka_unit_test(what_a_format_cannot_hold_is_refused_with_the_reason),
        cmocka_unit_test(text_and_cache_read_back_as_the_same_data),
        cmocka_unit_test(a_row_longer_than_many_pieces_is_written_whole),
        cmocka_unit_test(ratings_and_documents_read_back),
        cmocka_unit_test(ratings_keep_their_names_as_csv),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave);
}
