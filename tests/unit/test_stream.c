/* Proves src/data/stream and feed: blocks of rows are the rows of the whole, from wherever they come, whatever the
 * pieces; refusals have their line; a pipe is answered before it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#ifdef RBT_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef RBT_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/mem.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/generate.h"
#include "data/stream.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b", "part-1", "part-2", "part-3", "part-x.rbt-cache"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* All blocks of a path joined; the path is refused when `error` has a code afterwards. */
static rbt_data streamed_as(const char *path, const rbt_reading *reading, size_t piece_bytes, size_t *blocks,
                            rbt_error *error)
{
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    rbt_data sum = {0}, copy;
    size_t count = 0;
    *error = (rbt_error){0};
    if (rbt_rowstream_open(path, reading, false, piece_bytes, &stream, error) != RBT_OK)
        return sum;
    while (rbt_rowstream_next(stream, &block, error) == RBT_OK && block != NULL) {
        assert_true(block->rows > 0);
        assert_int_equal(block->start[0], 0);
        assert_int_equal(block->start[block->rows], block->nnz);
        rbt_data both[] = {sum, *block};
        assert_int_equal(rbt_data_join(both + (count == 0), count == 0 ? 1 : 2, &copy, NULL), RBT_OK);
        rbt_data_deinit(&sum);
        sum = copy;
        count++;
    }
    if (blocks != NULL)
        *blocks = count;
    rbt_rowstream_close(stream);
    return sum;
}

static rbt_data streamed(const char *path, size_t piece_bytes, size_t *blocks, rbt_error *error)
{
    return streamed_as(path, &(rbt_reading){0}, piece_bytes, blocks, error);
}

static void check_same(const char *path, size_t piece_bytes, const rbt_data *whole)
{
    rbt_error error;
    size_t blocks = 0;
    rbt_data d = streamed(path, piece_bytes, &blocks, &error);
    if (error.code != RBT_OK)
        fail_msg("%s", error.text);
    same_data(&d, whole);
    rbt_data_deinit(&d);
}

static const char text[] =
    "\xef\xbb\xbf# a comment\n+1 1:0.5 3:-2\n\n-1\n3.5 2:1e-30 4:7 9:1\r\n# more\n#\n-2 1:1 # x\n7 5:5";

static void every_cut_of_the_text_gives_the_same_rows(void **state)
{
    (void)state;
    rbt_data whole;
    put_bytes("a", text, sizeof text - 1);
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    for (size_t piece = 1; piece < sizeof text + 2; piece++)
        check_same("a", piece, &whole);
    rbt_data_deinit(&whole);
}

static void a_refusal_has_the_line_whatever_the_cut(void **state)
{
    (void)state;
    rbt_error error, of_whole;
    rbt_data none;
    put_file("a", "1 1:1\n\n# comment\n2 2:2\n3 3:x\n4 4:4\n5 y\n");
    assert_int_equal(rbt_data_read("a", &none, &of_whole), RBT_E_DATA);
    assert_non_null(strstr(of_whole.text, "a:5:"));
    for (size_t piece = 1; piece < 60; piece++) {
        rbt_data d = streamed("a", piece, NULL, &error);
        assert_int_equal(error.code, RBT_E_DATA);
        assert_string_equal(error.text, of_whole.text);
        rbt_data_deinit(&d);
    }
}

static void what_has_no_rows_is_refused_like_the_whole(void **state)
{
    (void)state;
    rbt_error error, of_whole;
    rbt_data none;
    put_file("a", "# nothing\n\n");
    assert_int_equal(rbt_data_read("a", &none, &of_whole), RBT_E_DATA);
    (void)streamed("a", 4, NULL, &error);
    assert_string_equal(error.text, of_whole.text);
    put_file("a", "");
    (void)streamed("a", 4, NULL, &error);
    assert_int_equal(error.code, RBT_E_DATA);
    (void)streamed("no-such-file", 4, NULL, &error);
    assert_int_equal(error.code, RBT_E_IO);
    (void)streamed("no-such-*", 4, NULL, &error);
    assert_non_null(strstr(error.text, "no file matches"));
}

static void files_of_a_pattern_follow_each_other_without_kept_caches(void **state)
{
    (void)state;
    rbt_data whole;
    rbt_error error;
    put_file("part-1", "1 1:1\n2 2:2");
    put_file("part-2", "# no rows\n");
    put_file("part-3", "3 3:3\n");
    put_file("part-x.rbt-cache", "not data");
    assert_int_equal(rbt_data_read("part-*", &whole, NULL), RBT_OK);
    assert_int_equal(whole.rows, 3);
    check_same("part-*", 5, &whole);
    put_file("part-3", "3 3:3\nx\n");
    rbt_data d = streamed("part-*", 5, NULL, &error);
    assert_non_null(strstr(error.text, "part-3:2: 'x'"));
    rbt_data_deinit(&d);
    rbt_data_deinit(&whole);
}

static void other_formats_give_the_same_rows(void **state)
{
    (void)state;
    rbt_data whole;
    put_file("a", "1 2.5 |a x y:2\n-1 |b x x\n\n1 |a z\n"); /* Vowpal Wabbit: a weight here and there */
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    assert_non_null(whole.weight);
    for (size_t piece = 1; piece < 40; piece++)
        check_same("a", piece, &whole);
    rbt_data_deinit(&whole);
    put_file("a", "label,f,g\nyes,1,2\nno,\"3\n\",4\nyes,5,6\n"); /* CSV: known as a whole only */
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    for (size_t piece = 1; piece < 40; piece++)
        check_same("a", piece, &whole);
    rbt_data_deinit(&whole);
}

static const char *const csv_texts[] = {
    "label,f,g\nyes,1,2\nno,\"3\n\",4\nyes,5,6\n",
    "\xef\xbb\xbf\"y\ny\";f;g\n\n1;2;\"a;\"\"\n\"\n0;3;b\r\n1;NA;\"c\"",
    "3,red,2\n4,blue,5\n5,7,6\n", /* a row of words and numbers is no header when words stand below */
    "a,2,c\n1,2,3\n4,5,6",
    "1,2,3\n4,5\" x,6\n7,word,9\n",
};

static void every_cut_of_csv_gives_the_same_rows(void **state)
{
    (void)state;
    rbt_data whole;
    for (size_t i = 0; i < sizeof csv_texts / sizeof csv_texts[0]; i++) {
        put_file("part-1", "\n \n"); /* no rows */
        put_file("part-2", csv_texts[i]);
        put_file("part-3", csv_texts[i]);
        assert_int_equal(rbt_data_read_as("part-*", &(rbt_reading){.format = "csv"}, &whole, NULL), RBT_OK);
        for (size_t piece = 1; piece < 40; piece++) {
            rbt_error error;
            rbt_data d = streamed_as("part-*", &(rbt_reading){.format = "csv"}, piece, NULL, &error);
            if (error.code != RBT_OK)
                fail_msg("%s", error.text);
            same_data(&d, &whole);
            rbt_data_deinit(&d);
        }
        rbt_data_deinit(&whole);
    }
    put_file("a", "\n \n\"y,a\n1,2\n");
    for (size_t piece = 1; piece < 20; piece++) {
        rbt_error error;
        (void)streamed_as("a", &(rbt_reading){.format = "csv"}, piece, NULL, &error);
        assert_string_equal(error.text, "a:3: the first row has a quote that is not closed; check the quotes");
    }
    put_file("part-1", "y,a,b\n1,2,3\n");
    put_file("part-2", "y,a,c\n1,2,3\n");
    put_file("part-3", "");
    for (size_t piece = 1; piece < 40; piece++) {
        rbt_error error;
        rbt_data d = streamed("part-*", piece, NULL, &error);
        assert_non_null(strstr(error.text, "part-2: its columns are named otherwise than those of part-1"));
        rbt_data_deinit(&d);
    }
}

/* Whether words of which two are alike are a header, and then refused, or a row is told by the row below. */
static void twin_names_are_refused_like_the_whole_whatever_the_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refusal; /* NULL: they are a row */
    } known[] = {{"y,a,a\n1,2,3\n0,3,4\n", "a:1: two columns are named 'a'; give each a name of its own"},
                 {"\n;q;q\n\n \n1;2;3\n", "a:2: two columns are named 'q'; give each a name of its own"},
                 {"red,a,a\nblue,b,a\n", NULL},
                 {"red,a,a", NULL}};
    const rbt_reading readings[] = {
        {.format = "csv", .bits = 4},
        {.format = "csv", .bits = 4, .features = 1 << 4, .label = "none", .unlabelled = true}, /* answered at once */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        put_file("a", known[i].text);
        for (size_t k = 0; k < 2; k++) {
            rbt_data whole = {0};
            rbt_error error = {0};
            rbt_err err = rbt_data_read_as("a", &readings[k], &whole, &error);
            assert_int_equal(err, known[i].refusal != NULL ? RBT_E_DATA : RBT_OK);
            assert_string_equal(error.text, known[i].refusal != NULL ? known[i].refusal : "");
            for (size_t piece = 1; piece < 40; piece++) {
                rbt_data d = streamed_as("a", &readings[k], piece, NULL, &error);
                assert_int_equal(error.code, err);
                assert_string_equal(error.text, known[i].refusal != NULL ? known[i].refusal : "");
                if (err == RBT_OK)
                    same_data(&d, &whole);
                rbt_data_deinit(&d);
            }
            rbt_data_deinit(&whole);
        }
    }
}

/* What the options ask for cannot be had of the files together; columns that are not the same come before that. */
static void a_refusal_about_all_files_is_that_of_the_whole(void **state)
{
    (void)state;
    static const struct {
        const char *path, *texts[3]; /* of part-1, part-2 and part-3; NULL: there is no such file */
        rbt_reading reading;
        const char *refusal;
    } known[] = {
        {"part-*", {"5\n6\n"}, {.format = "csv", .weight = "2"}, "--weight 2: part-1 has columns 1 to 1"},
        {"part-*", {"5\n6\n", "7\n"}, {.format = "csv", .weight = "2"}, "--weight 2: part-* has columns 1 to 1"},
        {"part-*",
         {"\n", "y,a\n1,2\n", "y,b\n1,2\n"},
         {.format = "csv", .weight = "w"},
         "part-3: its columns are named otherwise than those of part-2; give files with the same columns"},
        {"part-3\npart-1",
         {"y,a\n1,2\n", NULL, "y,a\n1,2\n0,3\n"},
         {.label = "a", .weight = "2"},
         "part-3 and 1 more: column 2 cannot be the label and the weight; give another --label or --weight"},
        {"part-*",
         {"1 1:2\n"},
         {.bits = 3},
         "--bits makes no sense for part-1, which is LIBSVM text, where nothing is hashed; leave it out (Vowpal Wabbit "
         "text, and words in CSV, have use for it)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char name[] = "part-1";
        rbt_error error = {0};
        rbt_data d;
        for (size_t f = 0; f < 3; f++) {
            name[5] = (char)('1' + f);
            (void)unlink(name);
            if (known[i].texts[f] != NULL)
                put_file(name, known[i].texts[f]);
        }
        rbt_err err = rbt_data_read_as(known[i].path, &known[i].reading, &d, &error);
        assert_string_equal(error.text, known[i].refusal);
        for (size_t piece = 1; piece < 40; piece++) {
            d = streamed_as(known[i].path, &known[i].reading, piece, NULL, &error);
            assert_int_equal(error.code, err);
            assert_string_equal(error.text, known[i].refusal);
            assert_int_equal(d.rows, 0);
        }
    }
}

/* What a model's features are is known: columns need be looked at only until they make as many. */
static void csv_that_fits_a_model_is_answered_in_one_go(void **state)
{
    (void)state;
    rbt_error error;
    rbt_data whole;
    rbt_reading reading = {.features = 1 + (1 << 4), .bits = 4, .unlabelled = true};
    put_file("a", "y,f,g\n1,2,\n0,3,\n1,4,x\n0,5,7\n"); /* the words of g come late */
    assert_int_equal(rbt_data_read_as("a", &reading, &whole, NULL), RBT_OK);
    for (size_t piece = 1; piece < 40; piece++) {
        rbt_data d = streamed_as("a", &reading, piece, NULL, &error);
        assert_int_equal(error.code, RBT_OK);
        same_data(&d, &whole);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&whole);
    put_file("a", "y,f,g\nyes,2,x\nno,3,y\n?,oops,z\n"); /* whatever the labels are */
    rbt_data d = streamed_as("a", &reading, 24, NULL, &error);
    assert_int_equal(d.rows, 2);
    assert_string_equal(error.text,
                        "a:4: 'oops' in column 2, f: expected a finite number, as the column has, or nothing "
                        "where it is missing");
    rbt_data_deinit(&d);
}

static void who_types_csv_gets_it_back_at_once(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    rbt_reading reading = {.features = 1 + (1 << 4), .bits = 4, .unlabelled = true};
    assert_int_equal(pipe(ends), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(write(ends[1], "y,f,g\n1,2,\"a\nb\"\n", 16), 16);
    assert_int_equal(rbt_rowstream_open(path, &reading, false, RBT_ROWSTREAM_PIECE_BYTES, &stream, NULL), RBT_OK);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK); /* would wait forever otherwise */
    assert_int_equal(block->rows, 1);
    assert_true(rbt_rowstream_is_live(stream));
    assert_int_equal(write(ends[1], "0,3,\"a\n", 7), 7); /* not whole yet */
    assert_int_equal(write(ends[1], "b\"\n", 3), 3);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
    assert_int_equal(block->rows, 1);
    close(ends[1]);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
    assert_null(block);
    rbt_rowstream_close(stream);
    close(ends[0]);
}

/* What the columns are is decided over all files; what can be read only once must not be the first of several. */
static void csv_of_a_pipe_beside_files_is_refused_or_read_with_them(void **state)
{
    (void)state;
    int ends[2];
    char paths[64];
    rbt_error error;
    rbt_data whole, d;
    put_file("a", "y,a,b\n1,red,5\n0,2,6\n");
    put_file("b", "y,a,b\n1,1,5\n0,2,6\ny,a,b\n1,red,5\n0,2,6\n");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "y,a,b\n1,1,5\n0,2,6\n", 18), 18);
    close(ends[1]);
    (void)snprintf(paths, sizeof paths, "/proc/self/fd/%d\na", ends[0]);
    d = streamed(paths, 1000, NULL, &error);
    assert_int_equal(error.code, RBT_E_USAGE);
    assert_non_null(strstr(error.text, ": can be read only once"));
    assert_int_equal(d.rows, 0);
    close(ends[0]);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "y,a,b\n1,red,5\n0,2,6\n", 20), 20);
    close(ends[1]);
    put_file("a", "y,a,b\n1,1,5\n0,2,6\n");
    (void)snprintf(paths, sizeof paths, "a\n/proc/self/fd/%d", ends[0]);
    assert_int_equal(rbt_data_read("b", &whole, NULL), RBT_OK);
    d = streamed(paths, 1000, NULL, &error); /* behind a file it is not begun when the file has been looked at */
    assert_int_equal(error.code, RBT_OK);
    same_data(&d, &whole);
    close(ends[0]);
    rbt_data_deinit(&d);
    rbt_data_deinit(&whole);
}

static void bad_rows_are_left_out_over_all_pieces(void **state)
{
    (void)state;
    put_file("a", "1 1:1\nx\n2 2:2\ny\n3 3:3\nz\n4 4:4\n");
    for (size_t piece = 1; piece < 40; piece++) {
        for (uint64_t allowed = 2; allowed < 4; allowed++) {
            rbt_read_report report = {0};
            rbt_rowstream *stream = NULL;
            const rbt_data *block = NULL;
            size_t rows = 0;
            rbt_reading reading = {.skip_bad = allowed, .report = &report};
            rbt_err err = rbt_rowstream_open("a", &reading, false, piece, &stream, NULL);
            do {
                err = rbt_rowstream_next(stream, &block, NULL);
                rows += err == RBT_OK && block != NULL ? block->rows : 0;
            } while (err == RBT_OK && block != NULL);
            assert_int_equal(err, allowed == 2 ? RBT_E_DATA : RBT_OK);
            if (err == RBT_OK) {
                assert_int_equal(rows, 4);
                assert_int_equal(report.skipped, 3);
                assert_non_null(strstr(report.first.text, "a:2: 'x'"));
            }
            rbt_rowstream_close(stream);
        }
    }
}

/* Whatever is wrong with the row that is one too many, and with the first. */
static void too_many_bad_rows_are_refused_by_the_first_whatever_the_cut(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1 1:1\n1 x:1\n# comment\n2 2:2\n1 4294967295:1\n4 4:4\n", /* wrong, then beyond a limit */
        "1 1:1\n1 4294967295:1\n# comment\n2 2:2\n1 x:1\n4 4:4\n",
        "1 4294967295:1\n2 2:2\n1 4294967295:1\n4 4:4\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rbt_reading reading = {.skip_bad = 1};
        rbt_error error, of_whole;
        rbt_data none;
        put_file("a", texts[i]);
        assert_int_equal(rbt_data_read_as("a", &reading, &none, &of_whole), i == 0 ? RBT_E_DATA : RBT_E_LIMIT);
        assert_non_null(strstr(of_whole.text, "This is the first of more than 1 bad rows"));
        for (size_t piece = 1; piece < 60; piece++) {
            rbt_data d = streamed_as("a", &reading, piece, NULL, &error);
            assert_int_equal(error.code, of_whole.code);
            assert_string_equal(error.text, of_whole.text);
            rbt_data_deinit(&d);
        }
    }
}

/* Bad rows before it have nothing to do with that. */
static void too_many_columns_behind_a_bad_row_are_refused_as_such(void **state)
{
    (void)state;
    rbt_reading reading = {.skip_bad = 5};
    rbt_error error;
    put_file("a", "1 x:1\n1 4294967294:1\n3 0:1\n");
    for (size_t piece = 1; piece < 40; piece++) {
        rbt_data d = streamed_as("a", &reading, piece, NULL, &error);
        assert_int_equal(error.code, RBT_E_LIMIT);
        assert_non_null(strstr(error.text, "a: counts features from 0 and has index 4294967294"));
        rbt_data_deinit(&d);
    }
}

static void an_index_0_after_rows_without_is_told_or_refused(void **state)
{
    (void)state;
    rbt_error error;
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    put_file("a", "1 1:1 5:1\n2 2:2\n3 0:3 5:1\n4 1:4\n");
    rbt_data d = streamed("a", 10, NULL, &error);
    assert_int_equal(error.code, RBT_E_DATA);
    assert_non_null(strstr(error.text, "a:3: an index 0"));
    rbt_data_deinit(&d);
    d = streamed("a", 1000, NULL, &error); /* one piece: known in time */
    assert_int_equal(error.code, RBT_OK);
    assert_int_equal(d.cols, 6);
    assert_int_equal(d.index[0], 1);
    rbt_data_deinit(&d);

    size_t features = 0;
    assert_int_equal(rbt_rowstream_open("a", &(rbt_reading){0}, true, 10, &stream, NULL), RBT_OK);
    while (rbt_rowstream_next(stream, &block, &error) == RBT_OK && block != NULL) {
        assert_int_equal(rbt_rowstream_low(stream), features < 3 ? 0 : 3);
        features += block->nnz;
    }
    assert_int_equal(features, 6);
    rbt_rowstream_close(stream);
}

/* The largest index may stand in a piece before the one that shows that counting begins with 0. */
static void too_many_columns_are_refused_like_the_whole_whatever_the_cut(void **state)
{
    (void)state;
    rbt_error error, of_whole;
    rbt_data none;
    put_file("part-1", "1 4294967294:1\n# comment\n2 1:1\n");
    put_file("part-2", "3 3:1\n1 0:1\n2 1:1\n");
    assert_int_equal(rbt_data_read("part-*", &none, &of_whole), RBT_E_LIMIT);
    assert_non_null(strstr(of_whole.text, "part-*: counts features from 0 and has index 4294967294"));
    for (size_t piece = 1; piece < 60; piece++) {
        rbt_data d = streamed("part-*", piece, NULL, &error);
        assert_int_equal(error.code, RBT_E_LIMIT);
        assert_string_equal(error.text, of_whole.text);
        rbt_data_deinit(&d);
    }
    put_file("part-2", "3 3:1\n"); /* counted from 1 they are not too many */
    rbt_data d = streamed("part-*", 10, NULL, &error);
    assert_int_equal(error.code, RBT_OK);
    assert_int_equal(d.cols, 4294967294);
    rbt_data_deinit(&d);
}

#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
/* A packed file, whole, twice in a row, cut, damaged and with something behind it. */
static void check_packed(const char *bytes, size_t n, const rbt_data *whole)
{
    rbt_error error;
    char *more = rbt_alloc(2 * n + 5, 1);
    put_bytes("b", bytes, n);
    check_same("b", 1000, whole);
    check_same("b", RBT_ROWSTREAM_PIECE_BYTES, whole);

    rbt_data both[] = {*whole, *whole}, two, d;
    memcpy(more, bytes, n);
    memcpy(more + n, bytes, n);
    put_bytes("b", more, 2 * n);
    assert_int_equal(rbt_data_join(both, 2, &two, NULL), RBT_OK);
    check_same("b", 1000, &two);
    rbt_data_deinit(&two);

    put_bytes("b", bytes, n - 9);
    d = streamed("b", 1000, NULL, &error);
    assert_non_null(strstr(error.text, "cut short"));
    rbt_data_deinit(&d);
    memcpy(more + n, "hello", 5);
    put_bytes("b", more, n + 5);
    d = streamed("b", 1000, NULL, &error);
    assert_non_null(strstr(error.text, "is damaged near byte"));
    rbt_data_deinit(&d);
    more[n / 2] ^= 64;
    put_bytes("b", more, n);
    d = streamed("b", 1000, NULL, &error);
    assert_int_equal(error.code, RBT_E_DATA);
    rbt_data_deinit(&d);
    rbt_free(more);
}

/* A few hundred rows as text. */
static size_t made_text(rbt_data *whole, char *out, size_t room)
{
    rbt_generate_options options = rbt_generate_defaults();
    options.rows = 300;
    rbt_data made;
    rbt_input input;
    assert_int_equal(rbt_generate_lr(&options, &made, NULL), RBT_OK);
    assert_int_equal(rbt_data_write_libsvm(&made, "a", NULL), RBT_OK);
    rbt_data_deinit(&made);
    assert_int_equal(rbt_data_read("a", whole, NULL), RBT_OK);
    assert_int_equal(rbt_input_open("a", &input, NULL), RBT_OK);
    size_t n = input.n;
    assert_true(n <= room);
    memcpy(out, input.bytes, n);
    rbt_input_close(&input);
    return n;
}

static void packed_files_are_unpacked_on_the_way(void **state)
{
    (void)state;
    enum { ROOM = 400000 };
    static char plain[ROOM], packed[ROOM];
    rbt_data whole;
    size_t n = made_text(&whole, plain, sizeof plain);
#ifdef RBT_HAVE_ZLIB
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)plain;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    check_packed(packed, z.total_out, &whole);
    (void)deflateEnd(&z);
#endif
#ifdef RBT_HAVE_ZSTD
    ZSTD_CCtx *context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    check_packed(packed, ZSTD_compress2(context, packed, sizeof packed, plain, n), &whole);
    (void)ZSTD_freeCCtx(context);
#endif
    rbt_data_deinit(&whole);
}
#endif

static void a_cache_comes_in_blocks(void **state)
{
    (void)state;
    rbt_generate_options options = rbt_generate_defaults();
    options.rows = 20000;
    options.nnz = 60;
    rbt_data d, two;
    rbt_error error;
    size_t blocks = 0;
    assert_int_equal(rbt_generate_lr(&options, &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "part-1", NULL), RBT_OK);
    rbt_data back = streamed("part-1", 100, &blocks, &error);
    assert_int_equal(error.code, RBT_OK);
    assert_true(blocks > 2);
    same_data(&d, &back);
    rbt_data_deinit(&back);

    assert_int_equal(rbt_cache_write(&d, "part-2", NULL), RBT_OK);
    rbt_data both[] = {d, d};
    assert_int_equal(rbt_data_join(both, 2, &two, NULL), RBT_OK);
    check_same("part-*", 100, &two);
    rbt_data_deinit(&two);
    put_file("part-2", "1 1:1\n");
    back = streamed("part-*", 100, NULL, &error);
    assert_non_null(strstr(error.text, "part-*: part-1 is a cache, and part-2 is none; give"));
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void who_types_a_row_gets_it_back_at_once(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    rbt_rowstream *stream = NULL;
    const rbt_data *block = NULL;
    assert_int_equal(pipe(ends), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(write(ends[1], "1 1:1\n2 2", 9), 9);
    assert_int_equal(rbt_rowstream_open(path, &(rbt_reading){0}, false, RBT_ROWSTREAM_PIECE_BYTES, &stream, NULL),
                     RBT_OK);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK); /* would wait forever otherwise */
    assert_int_equal(block->rows, 1);
    assert_true(rbt_rowstream_is_live(stream));
    assert_int_equal(write(ends[1], ":2\n3 3:3\n4 ", 11), 11);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
    assert_int_equal(block->rows, 2);
    assert_int_equal(block->index[1], 2);
    close(ends[1]);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
    assert_int_equal(block->rows, 1);
    assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
    assert_null(block);
    rbt_rowstream_close(stream);
    close(ends[0]);
}

/* Writes a text's first bytes, and the others when nothing is left of these. */
typedef struct slow_writer {
    int to, from;
    const char *text;
    size_t first;
} slow_writer;

static void *write_slowly(void *argument)
{
    const slow_writer *w = argument;
    size_t rest = strlen(w->text) - w->first;
    bool written = write(w->to, w->text, w->first) == (ssize_t)w->first;
    for (int left = 1; left > 0 && ioctl(w->from, FIONREAD, &left) == 0;)
        (void)sched_yield();
    written = write(w->to, w->text + w->first, rest) == (ssize_t)rest && written;
    close(w->to);
    return written ? argument : NULL;
}

static void what_a_pipe_holds_does_not_depend_on_when_it_comes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool late; /* all rows are wanted: nobody waits for an answer */
    } known[] = {
        {"2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n", true},                                       /* a bag of words */
        {"2 0:1 3:2\n8 0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1\n1 2:2\n3 0:1 1:1 2:1\n", true}, /* lda-c */
        {"\n \n1 |a x y:2\n-1 |b z\n", true},
        {"\n \n1 |a x y:2\n-1 |b z\n", false},
        {"\n\ny,a\n1,2\n0,3\n", false},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *all = known[i].text;
        rbt_data whole;
        put_file("a", all);
        assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
        for (size_t first = 1; first < strlen(all); first++) {
            int ends[2];
            char path[64];
            pthread_t thread;
            void *written = NULL;
            rbt_rowstream *stream = NULL;
            const rbt_data *block = NULL;
            size_t rows = 0;
            assert_int_equal(pipe(ends), 0);
            (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
            assert_int_equal(
                rbt_rowstream_open(path, &(rbt_reading){0}, known[i].late, RBT_ROWSTREAM_PIECE_BYTES, &stream, NULL),
                RBT_OK);
            slow_writer writer = {.to = ends[1], .from = ends[0], .text = all, .first = first};
            assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
            do {
                assert_int_equal(rbt_rowstream_next(stream, &block, NULL), RBT_OK);
                assert_true(block == NULL || (block->content == whole.content && block->cols == whole.cols));
                rows += block != NULL ? block->rows : 0;
            } while (block != NULL);
            assert_int_equal(rows, whole.rows);
            assert_int_equal(pthread_join(thread, &written), 0);
            assert_ptr_equal(written, &writer);
            rbt_rowstream_close(stream);
            close(ends[0]);
        }
        rbt_data_deinit(&whole);
    }
}

static void a_cache_through_a_pipe_is_read_whole(void **state)
{
    (void)state;
    rbt_data d;
    rbt_input input;
    int ends[2];
    char path[64];
    assert_int_equal(rbt_data_parse_libsvm("1 1:1\n2 2:2\n", 12, "mem", &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "a", NULL), RBT_OK);
    assert_int_equal(rbt_input_open("a", &input, NULL), RBT_OK);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], input.bytes, input.n), input.n);
    rbt_input_close(&input);
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    check_same(path, 16, &d);
    close(ends[0]);
    rbt_data_deinit(&d);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_cut_of_the_text_gives_the_same_rows),
        IN_FOLDER(a_refusal_has_the_line_whatever_the_cut),
        IN_FOLDER(what_has_no_rows_is_refused_like_the_whole),
        IN_FOLDER(files_of_a_pattern_follow_each_other_without_kept_caches),
        IN_FOLDER(other_formats_give_the_same_rows),
        IN_FOLDER(every_cut_of_csv_gives_the_same_rows),
        IN_FOLDER(twin_names_are_refused_like_the_whole_whatever_the_cut),
        IN_FOLDER(a_refusal_about_all_files_is_that_of_the_whole),
        IN_FOLDER(csv_that_fits_a_model_is_answered_in_one_go),
        IN_FOLDER(who_types_csv_gets_it_back_at_once),
        IN_FOLDER(csv_of_a_pipe_beside_files_is_refused_or_read_with_them),
        IN_FOLDER(bad_rows_are_left_out_over_all_pieces),
        IN_FOLDER(too_many_bad_rows_are_refused_by_the_first_whatever_the_cut),
        IN_FOLDER(too_many_columns_behind_a_bad_row_are_refused_as_such),
        IN_FOLDER(an_index_0_after_rows_without_is_told_or_refused),
        IN_FOLDER(too_many_columns_are_refused_like_the_whole_whatever_the_cut),
#if defined RBT_HAVE_ZLIB || defined RBT_HAVE_ZSTD
        IN_FOLDER(packed_files_are_unpacked_on_the_way),
#endif
        IN_FOLDER(a_cache_comes_in_blocks),
        IN_FOLDER(who_types_a_row_gets_it_back_at_once),
        IN_FOLDER(what_a_pipe_holds_does_not_depend_on_when_it_comes),
        IN_FOLDER(a_cache_through_a_pipe_is_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
