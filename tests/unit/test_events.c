/* Proves src/data/events: keys of lines and of columns, in order whatever the batches; bad lines; long ones; many bytes; parts, which have
 * every line once, read their own bytes alone (by the system's count), and refuse bad lines as one reader does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#ifdef RBT_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/hash.h"
#include "base/mem.h"
#include "data/events.h"
#include "unit/files.h"

static const char *const names[] = {"e1", "e2", "e3.gz", "long"};

static int leave_folder(void **state)
{
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* All keys with a bar behind each, or what is refused in brackets. */
static void keys_are(const char *path, rbt_events_options options, const char *expected)
{
    for (size_t room = 1; room < 9; room++) {
        rbt_events *e;
        rbt_error error;
        rbt_event_key keys[9];
        char all[512] = "";
        size_t n = 1;
        assert_int_equal(rbt_events_open(path, &options, &e, &error), RBT_OK);
        while (n > 0) {
            if (rbt_events_next(e, keys, room, &n, &error) != RBT_OK) {
                (void)snprintf(all + strlen(all), sizeof all - strlen(all), "[%.200s]", error.text);
                break;
            }
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(keys[i].hash, rbt_hash(keys[i].text, keys[i].n, 0));
                (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s|", (int)keys[i].n, keys[i].text);
            }
        }
        assert_string_equal(all, expected);
        rbt_events_close(e);
    }
}

static void keys_are_lines_or_columns(void **state)
{
    (void)state;
    put_file("e1", "1\ta b\tx\r\n2\tc\n\n\n3\td\ty\tz");
    put_file("e2", "4\te\n");
    keys_are("e1", (rbt_events_options){0}, "1\ta b\tx|2\tc|3\td\ty\tz|");
    keys_are("e1", (rbt_events_options){.column = 2}, "a b|c|d|");
    keys_are("e?", (rbt_events_options){.column = 1}, "1|2|3|4|");
    keys_are("e1", (rbt_events_options){.column = 2, .separator = ' ', .skip_bad = 2}, "b\tx|");
    put_file("e1", "");
    keys_are("e1", (rbt_events_options){0}, "");
    keys_are("e?", (rbt_events_options){.column = 2}, "e|");
}

static void lines_without_the_key_are_refused_or_left_out(void **state)
{
    (void)state;
    put_file("e1", "1\ta\n\n2\n3\t\n4\tb\n");
    keys_are("e1", (rbt_events_options){.column = 2}, "a|[e1:3: '2': expected a key in column 2]");
    keys_are("e1", (rbt_events_options){.column = 2, .skip_bad = 1}, "a|[e1:4: '3?': expected a key in column 2]");
    keys_are("e1", (rbt_events_options){.column = 2, .skip_bad = 2}, "a|b|");
    rbt_events *e;
    rbt_event_key keys[8];
    size_t n;
    rbt_read_report report;
    assert_int_equal(rbt_events_open("e1", &(rbt_events_options){.column = 2, .skip_bad = 9}, &e, NULL), RBT_OK);
    assert_int_equal(rbt_events_next(e, keys, 8, &n, NULL), RBT_OK);
    rbt_events_report(e, &report);
    assert_int_equal(report.skipped, 2);
    assert_string_equal(report.first.text, "e1:3: '2': expected a key in column 2");
    rbt_events_close(e);
    rbt_error error;
    assert_int_equal(rbt_events_open("none*", &(rbt_events_options){0}, &e, &error), RBT_E_IO);
}

static void memory_is_bounded_and_so_are_lines(void **state)
{
    (void)state;
    FILE *f = fopen("long", "w");
    uint64_t sum = 0, got = 0;
    assert_non_null(f);
    for (uint64_t i = 0; i < 300000; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "%llu key", (unsigned long long)(i * i));
        sum += rbt_hash(line, (size_t)n, i);
        assert_true(fprintf(f, "%s\n", line) > 0);
    }
    assert_int_equal(fclose(f), 0);
    rbt_events *e;
    rbt_error error;
    rbt_event_key keys[1000];
    size_t n = 1;
    uint64_t count = 0;
    assert_int_equal(rbt_events_open("long", &(rbt_events_options){0}, &e, &error), RBT_OK);
    while (n > 0) {
        assert_int_equal(rbt_events_next(e, keys, 1000, &n, &error), RBT_OK);
        for (size_t i = 0; i < n; i++)
            got += rbt_hash(keys[i].text, keys[i].n, count++);
    }
    assert_int_equal(count, 300000);
    assert_int_equal(got, sum);
    rbt_events_close(e);

    char *line = rbt_alloc(RBT_EVENTS_BYTES + 1, 1);
    memset(line, 'x', RBT_EVENTS_BYTES);
    for (size_t over = 0; over < 2; over++) {
        line[RBT_EVENTS_BYTES - 2 + over] = '\n';
        line[RBT_EVENTS_BYTES - 1 + over] = over == 0 ? 'y' : '\0';
        put_bytes("long", line, RBT_EVENTS_BYTES);
        assert_int_equal(rbt_events_open("long", &(rbt_events_options){0}, &e, &error), RBT_OK);
        assert_int_equal(rbt_events_next(e, keys, 1, &n, &error), RBT_OK);
        assert_int_equal(keys[0].n, RBT_EVENTS_BYTES - 2 + over);
        rbt_events_close(e);
        line[RBT_EVENTS_BYTES - 2 + over] = 'x';
    }
    memset(line, 'x', RBT_EVENTS_BYTES);
    line[RBT_EVENTS_BYTES] = '\n';
    put_bytes("long", line, RBT_EVENTS_BYTES + 1);
    assert_int_equal(rbt_events_open("long", &(rbt_events_options){0}, &e, &error), RBT_OK);
    assert_int_equal(rbt_events_next(e, keys, 1, &n, &error), RBT_E_LIMIT);
    assert_string_equal(error.text, "long:1: the line has 1048576 bytes or more, which is the limit");
    rbt_events_close(e);
    rbt_free(line);
}

/* --------------------------------------------------------------------------------------------------------- parts */

#define PARTS 9u

/* What all parts have, one after the other, as keys_are has it. */
static void parts_are(const char *path, rbt_events_options options, uint32_t parts, const char *expected)
{
    char all[512] = "";
    options.parts = parts;
    for (options.part = 0; options.part < parts; options.part++) {
        rbt_events *e;
        rbt_error error;
        rbt_event_key keys[3];
        size_t n = 1;
        assert_int_equal(rbt_events_open(path, &options, &e, &error), RBT_OK);
        while (n > 0) {
            if (rbt_events_next(e, keys, 3, &n, &error) != RBT_OK) {
                (void)snprintf(all + strlen(all), sizeof all - strlen(all), "[%.200s]", error.text);
                break;
            }
            for (size_t i = 0; i < n; i++)
                (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s|", (int)keys[i].n, keys[i].text);
        }
        rbt_events_close(e);
    }
    assert_string_equal(all, expected);
}

static void every_line_is_in_one_part_wherever_files_are_cut(void **state)
{
    char line[80], text[300], expected[300];
    (void)state;
    for (uint32_t parts = 2; parts <= PARTS; parts++) {
        for (int n = 0; n < 60; n++) { /* all kinds of cuts: every length of a line */
            (void)snprintf(line, sizeof line, "%0*d", n, 7);
            (void)snprintf(text, sizeof text, "a\n\n%s\r\nb\n", line);
            put_file("e1", text);
            (void)snprintf(text, sizeof text, "c\n%s%s", line, n % 2 == 0 ? "" : "\n");
            put_file("e2", text);
            (void)snprintf(expected, sizeof expected, "a|%s|b|c|%s|", line, line);
            parts_are("e?", (rbt_events_options){0}, parts, expected);
        }
        put_file("e1", "1 x\n2\n3 x\n\n5 y\n6\n");
        put_file("e2", "");
        parts_are("e?", (rbt_events_options){.column = 2, .separator = ' ', .skip_bad = 1}, parts, "x|x|y|");
    }
    put_file("e1", "1 x\n22222222222222222 x\n3 x\n4 x\n5555555\n");
    parts_are("e1", (rbt_events_options){.column = 2, .separator = ' '}, 2,
              "x|x|x|x|[e1:5: '5555555': expected a key in column 2]");
    parts_are("e1", (rbt_events_options){.column = 2, .separator = ' '}, 3,
              "x|x|x|x|[e1:5: '5555555': expected a key in column 2]");
    put_file("e1", "1\n2\n3\n4\n"); /* whichever part fails first */
    parts_are("e1", (rbt_events_options){.column = 2, .skip_bad = 1}, 2,
              "[e1:2: '2': expected a key in column 2][e1:2: '2': expected a key in column 2]");
}

/* The bytes that this thread has read so far, as the system counts them; false: it does not. */
static bool bytes_read(uint64_t *bytes)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/thread-self/io", "r");
    bool is_there = f != NULL && fscanf(f, "rchar: %llu", &n) == 1;
    if (f != NULL)
        assert_int_equal(fclose(f), 0);
    *bytes = n;
    return is_there;
}

static void a_part_reads_its_own_bytes_alone(void **state)
{
    enum { LINES = 200000, FEW = 2048 }; /* bytes for the first look at a file, and at the system's count */
    uint64_t size, lines = 0, before, after;
    rbt_events_options options = {.parts = 4};
    (void)state;
    FILE *f = fopen("long", "w");
    assert_non_null(f);
    for (unsigned i = 0; i < LINES; i++)
        assert_true(fprintf(f, "the key of line %u\n", i) > 0);
    size = (uint64_t)ftell(f);
    assert_int_equal(fclose(f), 0);
    if (!bytes_read(&before))
        skip();
    for (options.part = 0; options.part < options.parts; options.part++) {
        rbt_events *e;
        rbt_event_key keys[100];
        size_t n = 1;
        uint64_t mine = 0;
        assert_true(bytes_read(&before));
        assert_int_equal(rbt_events_open("long", &options, &e, NULL), RBT_OK);
        assert_int_equal(rbt_events_total(e), size);
        for (; n > 0; mine += n)
            assert_int_equal(rbt_events_next(e, keys, 100, &n, NULL), RBT_OK);
        rbt_events_close(e);
        assert_true(bytes_read(&after));
        assert_in_range(after - before, size / 4 - FEW, size / 4 + RBT_EVENTS_REST + FEW);
        assert_in_range(mine, LINES / 4 - LINES / 100, LINES / 4 + LINES / 100);
        lines += mine;
    }
    assert_int_equal(lines, LINES);
}

#ifdef RBT_HAVE_ZLIB
static void what_is_compressed_is_shared_line_by_line(void **state)
{
    enum { LINES = 3 * RBT_EVENTS_PIECE + 17 };
    uint64_t of[3] = {0}, plain = 0;
    (void)state;
    gzFile f = gzopen("e3.gz", "wb");
    assert_non_null(f);
    for (unsigned i = 0; i < LINES; i++)
        assert_true(gzprintf(f, i % 100 == 0 ? "\n%u z\n" : "%u z\n", i) > 0);
    assert_int_equal(gzclose(f), Z_OK);
    put_file("e1", "1 a\n2 a\n3 a\n");
    for (uint32_t part = 0; part < 3; part++) {
        rbt_events *e;
        rbt_event_key keys[100];
        size_t n = 1;
        assert_int_equal(rbt_events_open("e*",
                                         &(rbt_events_options){.column = 2, .separator = ' ', .part = part, .parts = 3},
                                         &e, NULL),
                         RBT_OK);
        while (n > 0) {
            assert_int_equal(rbt_events_next(e, keys, 100, &n, NULL), RBT_OK);
            for (size_t i = 0; i < n; i++) {
                of[part] += keys[i].text[0] == 'z';
                plain += keys[i].text[0] == 'a';
            }
        }
        rbt_events_close(e);
    }
    assert_int_equal(plain, 3);
    assert_int_equal(of[0], RBT_EVENTS_PIECE + 17);
    assert_int_equal(of[1], RBT_EVENTS_PIECE);
    assert_int_equal(of[2], RBT_EVENTS_PIECE);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_are_lines_or_columns, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(lines_without_the_key_are_refused_or_left_out, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(memory_is_bounded_and_so_are_lines, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(every_line_is_in_one_part_wherever_files_are_cut, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(a_part_reads_its_own_bytes_alone, enter_folder, leave_folder),
#ifdef RBT_HAVE_ZLIB
        cmocka_unit_test_setup_teardown(what_is_compressed_is_shared_line_by_line, enter_folder, leave_folder),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
