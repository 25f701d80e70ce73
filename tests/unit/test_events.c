/* Proves src/data/events: keys of lines and of columns, in order whatever the batches; bad lines; long ones; many bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/events.h"
#include "unit/files.h"

static const char *const names[] = {"e1", "e2", "long"};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_are_lines_or_columns, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(lines_without_the_key_are_refused_or_left_out, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(memory_is_bounded_and_so_are_lines, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
