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
    put_file("e1", "\xef\xbb\xbf"
                   "5\tf\n6\tg\n"); /* a byte-order mark is no part of a key */
    keys_are("e1", (rbt_events_options){0}, "5\tf|6\tg|");
    keys_are("e?", (rbt_events_options){.column = 1}, "5|6|4|");
    put_file("e1", "\xef\xbb\xbf");
    keys_are("e1", (rbt_events_options){0}, "");
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

/* The keys of a part, each as "LINE|"; what is refused in brackets. `total`: bytes of all texts. */
static void part_of(const char *path, rbt_events_options options, size_t total, char *all, size_t room)
{
    rbt_events *e;
    rbt_error error;
    rbt_event_key keys[3];
    size_t n = 1;
    all[0] = '\0';
    assert_int_equal(rbt_events_open(path, &options, &e, &error), RBT_OK);
    while (n > 0) {
        if (rbt_events_next(e, keys, 3, &n, &error) != RBT_OK) {
            (void)snprintf(all + strlen(all), room - strlen(all), "[%.200s]", error.text);
            rbt_events_close(e);
            return;
        }
        for (size_t i = 0; i < n; i++)
            (void)snprintf(all + strlen(all), room - strlen(all), "%.*s|", (int)keys[i].n, keys[i].text);
    }
    assert_int_equal(rbt_events_total(e), total);
    rbt_events_close(e);
}

/* Every part has the lines that begin in its pieces, which are counted here from the text itself. */
static void parts_share(const char *path, const char *const *texts, size_t files, rbt_events_options options)
{
    for (options.part = 0; options.part < options.parts; options.part++) {
        char expected[512] = "", found[512];
        size_t total = 0;
        for (size_t f = 0; f < files; total += strlen(texts[f++]))
            for (size_t at = 0, next = 0; texts[f][at] != '\0'; at = next) {
                size_t n = strcspn(texts[f] + at, "\r\n");
                next = at + strcspn(texts[f] + at, "\n");
                next += texts[f][next] == '\n';
                if (n > 0 && (at / options.piece + f) % options.parts == options.part)
                    (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%.*s|", (int)n,
                                   texts[f] + at);
            }
        part_of(path, options, total, found, sizeof found);
        assert_string_equal(found, expected);
    }
}

#ifdef RBT_HAVE_ZLIB
static void put_packed(const char *path, const char *text)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
}
#endif

static void every_line_is_in_one_part_wherever_files_are_cut(void **state)
{
    char line[80], first[200], second[200];
    (void)state;
    for (int n = 0; n < 60; n += 1 + n / 4) { /* all kinds of cuts: many lengths of a line */
        (void)snprintf(line, sizeof line, "%0*d", n, 7);
        (void)snprintf(first, sizeof first, "a\n\n%s\r\nb\n", line);
        (void)snprintf(second, sizeof second, "c\n%s%s", line, n % 2 == 0 ? "" : "\n");
        const char *const texts[] = {first, second, first};
        put_file("e1", first);
        put_file("e2", second);
        for (uint32_t parts = 2; parts <= PARTS; parts++)
            for (uint32_t piece = 1; piece < 80; piece += 1 + piece / 4)
                parts_share("e[12]", texts, 2, (rbt_events_options){.parts = parts, .piece = piece});
#ifdef RBT_HAVE_ZLIB
        put_packed("e3.gz", first); /* compressed or not, the parts are the same, also one behind the other */
        for (uint32_t parts = 2; parts <= PARTS; parts++)
            for (uint32_t piece = 1; piece < 80; piece += 1 + piece / 4) {
                parts_share("e[123]*", texts, 3, (rbt_events_options){.parts = parts, .piece = piece});
                parts_share("e3.gz", texts, 1, (rbt_events_options){.parts = parts, .piece = piece});
            }
#endif
    }
}

static void parts_refuse_bad_lines_as_one_reader_does(void **state)
{
    static const char text[] = "1 x\n22222222222222222 x\n3 x\n4 x\n5555555\n";
    rbt_events_options options = {.column = 2, .separator = ' ', .parts = 2, .piece = 5};
    char found[512];
    (void)state;
    put_file("e1", text); /* the bad one begins at byte 32: the first part's */
    part_of("e1", options, strlen(text), found, sizeof found);
    assert_string_equal(found, "x|x|x|[e1:5: '5555555': expected a key in column 2]");
    options.part = 1;
    part_of("e1", options, strlen(text), found, sizeof found);
    assert_string_equal(found, "x|");
    put_file("e1", "1\n2\n3\n4\n"); /* whichever part fails first */
    options = (rbt_events_options){.column = 2, .skip_bad = 1, .parts = 2, .piece = 4};
    for (options.part = 0; options.part < 2; options.part++) {
        part_of("e1", options, strlen(text), found, sizeof found);
        assert_string_equal(found, "[e1:2: '2': expected a key in column 2]");
    }
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
        assert_int_equal(rbt_events_total(e), 0);
        for (; n > 0; mine += n)
            assert_int_equal(rbt_events_next(e, keys, 100, &n, NULL), RBT_OK);
        assert_int_equal(rbt_events_total(e), size);
        rbt_events_close(e);
        assert_true(bytes_read(&after));
        uint64_t least = size / 4 - RBT_EVENTS_PIECE, pieces = size / 4 / RBT_EVENTS_PIECE + 1;
        assert_in_range(after - before, least, size / 4 + pieces * RBT_EVENTS_REST + RBT_EVENTS_PIECE + FEW);
        assert_in_range(mine, LINES / 4 - LINES / 100, LINES / 4 + LINES / 100);
        lines += mine;
    }
    assert_int_equal(lines, LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_are_lines_or_columns, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(lines_without_the_key_are_refused_or_left_out, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(memory_is_bounded_and_so_are_lines, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(every_line_is_in_one_part_wherever_files_are_cut, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(parts_refuse_bad_lines_as_one_reader_does, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(a_part_reads_its_own_bytes_alone, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
