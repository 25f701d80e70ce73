/* Proves src/data/gather: compressed files and pipes are read as files are, whatever the pieces, or refused like them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef RBT_HAVE_ZLIB
#include <zlib.h>
#endif

#include "data/gather.h"
#include "data/read.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b", "part-1", "part-2.gz"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static const char *const texts[] = {
    "+1 1:0.5 3:-2\n\n-1\n3.5 2:1e-30 4:7 9:1\r\n# more\n7 5:5",
    "1 1:1 5:1\n2 2:2\n3 0:3 4:1\n4 1:4\n",  /* an index 0 that comes late: all count from 0 */
    "1 |a x y:2\n-1 2.5 |b x x\n\n1 |a z\n", /* a weight that comes late */
    "label,f,g\nyes,1,2\nno,\"3\n\",4\nyes,5,x\n",
    "y,f,g\n1,1,2\n0,2,3\n1,3,4\n0,\"4\n\",\"\n5\"\n1,5,six\n", /* a word among numbers */
    "1 1:1\nx\n2 2:2\ny\n3 3:3\n",                              /* bad rows */
    "x\ny\n",
    "\n",
};

static void whatever_the_pieces_the_data_or_the_refusal_is_that_of_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put_file("a", texts[i]);
        for (uint64_t skip_bad = 0; skip_bad < 4; skip_bad++) {
            rbt_read_report of_whole = {0}, of_pieces = {0};
            rbt_error why = {0}, error = {0};
            rbt_data whole = {0}, gathered = {0};
            rbt_err err =
                rbt_data_read_whole("a", &(rbt_reading){.skip_bad = skip_bad, .report = &of_whole}, &whole, &why);
            for (size_t piece = 1; piece < 45; piece++) {
                const rbt_reading reading = {.skip_bad = skip_bad, .report = &of_pieces};
                assert_int_equal(rbt_gather_read("a", &reading, piece, &gathered, &error), err);
                assert_string_equal(error.text, why.text);
                if (err != RBT_OK)
                    continue;
                same_data(&gathered, &whole);
                assert_int_equal(of_pieces.skipped, of_whole.skipped);
                assert_string_equal(gathered.origin != NULL ? gathered.origin : "",
                                    whole.origin != NULL ? whole.origin : "");
                assert_int_equal(of_pieces.layout, of_whole.layout);
                assert_string_equal(of_pieces.mixed, of_whole.mixed);
                rbt_data_deinit(&gathered);
            }
            rbt_data_deinit(&whole);
        }
    }
}

static void a_pipe_is_gathered_with_the_names_of_its_ratings(void **state)
{
    (void)state;
    static const char ratings[] = "ann::milk::5\nbob::tea::3\nann::tea::4\n";
    rbt_data whole, piped;
    int ends[2];
    char path[64];
    put_file("a", ratings);
    assert_int_equal(rbt_data_read_whole("a", &(rbt_reading){0}, &whole, NULL), RBT_OK);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], ratings, sizeof ratings - 1), sizeof ratings - 1);
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(rbt_data_read(path, &piped, NULL), RBT_OK);
    close(ends[0]);
    assert_non_null(piped.row_names);
    assert_non_null(piped.col_names);
    same_data(&piped, &whole);
    rbt_data_deinit(&piped);
    rbt_data_deinit(&whole);
}

#ifdef RBT_HAVE_ZLIB
static void put_packed(const char *path, const char *text)
{
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static void compressed_files_among_others_are_gathered(void **state)
{
    (void)state;
    rbt_data whole, d;
    put_file("part-1", "1 1:1\n2 2:2");
    put_packed("part-2.gz", "3 0:3\n");
    put_file("a", "1 1:1\n2 2:2\n3 0:3\n");
    char *files[] = {"part-1", "part-2.gz"};
    assert_true(rbt_gather_suits(&(rbt_paths){files, 2}, &(rbt_reading){0}));
    assert_true(rbt_gather_suits(&(rbt_paths){files + 1, 1}, &(rbt_reading){0}));
    assert_false(rbt_gather_suits(&(rbt_paths){files, 1}, &(rbt_reading){0}));
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    assert_int_equal(rbt_data_read("part-*", &d, NULL), RBT_OK);
    same_data(&d, &whole);
    rbt_data_deinit(&d);
    rbt_data_deinit(&whole);
}
#endif

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(whatever_the_pieces_the_data_or_the_refusal_is_that_of_the_whole),
        IN_FOLDER(a_pipe_is_gathered_with_the_names_of_its_ratings),
#ifdef RBT_HAVE_ZLIB
        IN_FOLDER(compressed_files_among_others_are_gathered),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
