/* Proves src/data/csv_ends: however a text grows, its rows end where they do in the whole; no byte is met twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "data/csv_cells.h"
#include "data/csv_ends.h"

/* None ends with a newline, so that a quote which is not closed is seen to have none. */
static const char *const texts[] = {
    "a,b\n1,2\n3,4\nx",
    "\xef\xbb\xbf\"y\ny\";f;g\n\n1;2;\"a;\"\"\n\"\n0;3;b\r\n1;NA;\"c\"\nx",
    "\n \n\t\n  \"a\tb\"\t\"c,\n\"\n1\t2\nx",
    "\"a\"\"\n\"\"\",b\n\"\"\"\",\"\"\nx",
    "a,b\"\nc\",\"d\"\ne,\"f\nx",
    "\"never closed,\n,\n\nx",
    "\xef\n\xef\xbb\n\xef,\nx",
    "a\n\n\nb,\"\n\n\"\nx",
};

/* The last end in the first n bytes, by going over the rows of the whole from its beginning. */
static size_t end_of(const char *text, size_t n, char delimiter)
{
    const char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0), *end = text + strlen(text), *last = text;
    while (at < end) {
        at = rbt_cells_row_end(delimiter, at, at + 1, end);
        if ((size_t)(at - text) > n || at[-1] != '\n')
            break;
        last = at;
    }
    return (size_t)(last - text);
}

static void rows_end_where_they_do_in_the_whole_however_it_grows(void **state)
{
    (void)state;
    static const char delimiters[] = {',', ';', '\t'};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t n = strlen(texts[i]);
        for (size_t k = 0; k < sizeof delimiters; k++) {
            for (size_t piece = 1; piece <= n; piece++) {
                rbt_csv_ends ends = {0};
                for (size_t have = piece; have <= n; have += piece) {
                    char *copy = malloc(have); /* a sanitizer sees every read beyond what has come */
                    assert_non_null(copy);
                    memcpy(copy, texts[i], have);
                    assert_int_equal(rbt_csv_ends_find(&ends, delimiters[k], copy, have),
                                     end_of(texts[i], have, delimiters[k]));
                    free(copy);
                }
            }
        }
    }
}

static void the_first_row_tells_the_delimiter_when_it_has_ended(void **state)
{
    (void)state;
    static const char text[] = "\n\n\"a,,,\n,\";b;c\n1;2,\"\n\n";
    const size_t first = sizeof "\n\n\"a,,,\n,\";b;c\n" - 1;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        rbt_csv_ends ends = {0};
        for (size_t n = piece; n < sizeof text; n += piece) {
            assert_int_equal(rbt_csv_ends_find(&ends, '\0', text, n) > 0, n >= first);
            assert_int_equal(ends.delimiter, n >= first ? ';' : '\0');
        }
    }
}

static void rows_are_taken_out_and_the_rest_goes_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t n = strlen(texts[i]);
        for (size_t piece = 1; piece <= n; piece++) {
            rbt_csv_ends ends = {0}, all = {0};
            size_t out = 0;
            for (size_t have = piece; have <= n; have += piece) {
                size_t end = rbt_csv_ends_find(&ends, '\0', texts[i] + out, have - out);
                size_t expected = rbt_csv_ends_find(&all, '\0', texts[i], have);
                assert_int_equal(end > 0 ? out + end : out, expected);
                rbt_csv_ends_drop(&ends, end);
                out += end;
            }
        }
    }
}

/* A cell that never ends: what has been looked at lies before `at`, or is counted in what was seen of the first row. */
static void what_has_been_looked_at_is_not_looked_at_again(void **state)
{
    (void)state;
    char text[4096] = "a,b\n1,\"";
    rbt_csv_ends ends = {0};
    memset(text + 7, 'x', sizeof text - 7);
    for (size_t n = 8; n <= sizeof text; n++) {
        assert_int_equal(rbt_csv_ends_find(&ends, '\0', text, n), 4);
        assert_int_equal(ends.at, n);
    }
    ends = (rbt_csv_ends){0};
    text[0] = '"';
    text[2] = text[6] = 'x';
    for (size_t n = 1; n <= sizeof text; n++) {
        assert_int_equal(rbt_csv_ends_find(&ends, '\0', text, n), 0);
        assert_int_equal(ends.guess.seen, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_end_where_they_do_in_the_whole_however_it_grows),
        cmocka_unit_test(the_first_row_tells_the_delimiter_when_it_has_ended),
        cmocka_unit_test(rows_are_taken_out_and_the_rest_goes_on),
        cmocka_unit_test(what_has_been_looked_at_is_not_looked_at_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
