/* Proves src/data/ratings, triples and ids: ratings in every form give the same rows; users and items are numbered as they
 * first occur whatever the cut; repeated, unknown and bad ones are told; names are kept by copies, joins and selections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "data/ids.h"
#include "data/merge.h"
#include "data/ratings.h"
#include "data/read.h"
#include "data/triples.h"
#include "unit/files.h"

static rbt_err parse_cut(const char *text, size_t n, rbt_cut cut, const rbt_reading *reading, rbt_data *data,
                         rbt_error *error)
{
    const rbt_text whole = {.name = "t", .bytes = text, .n = n};
    return rbt_ratings_parse(&(rbt_source){&whole, 1, "t", cut, NULL}, reading, data, error);
}

static rbt_err parse(const char *text, rbt_data *data, rbt_error *error)
{
    return parse_cut(text, strlen(text), (rbt_cut){1 << 20, 1}, &(rbt_reading){0}, data, error);
}

static void refused(const char *text, const char *because)
{
    rbt_data d;
    rbt_error error;
    assert_int_not_equal(parse(text, &d, &error), RBT_OK);
    if (strstr(error.text, because) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, because);
}

/* For prediction a user and an item are enough; with ratings elsewhere, and after a header. */
static void pairs_need_no_rating(void **state)
{
    static const char *const texts[] = {"user,item\nbob,y\nann,x,3\nbob,x,\n", "bob::y\nann::x::3\nbob::x\n",
                                        "USER_ID\tfilm\nbob\ty\nann\tx\t3\nbob\tx\n", "bob y\nann x 3\nbob x\n"};
    const rbt_reading reading = {.unlabelled = true};
    rbt_error error;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rbt_data d;

        assert_int_equal(parse_cut(texts[i], strlen(texts[i]), (rbt_cut){1 << 20, 1}, &reading, &d, &error), RBT_OK);
        assert_int_equal(d.rows, 2);
        assert_int_equal(d.nnz, 3);
        assert_string_equal(rbt_ids_name(d.row_names, 0), "bob");
        assert_string_equal(rbt_ids_name(d.col_names, 0), "y");
        assert_true(d.value[0] == 0 && d.value[2] == 3);
        rbt_data_deinit(&d);
    }
    refused("bob,y\n", "expected a rating");
}

/* ann: film 4, book 2.5; bob: book 0, disc 1 */
static void check(const rbt_data *d)
{
    static const uint32_t index[] = {0, 1, 1, 2};
    static const float value[] = {4, 2.5F, 0, 1};
    assert_int_equal(d->rows, 2);
    assert_int_equal(d->cols, 3);
    assert_int_equal(d->nnz, 4);
    assert_int_equal(d->start[1], 2);
    assert_int_equal(d->start[2], 4);
    assert_memory_equal(d->index, index, sizeof index);
    assert_memory_equal(d->value, value, sizeof value);
    assert_true(d->label[0] == 0 && d->label[1] == 0);
    assert_int_equal(d->content, RBT_CONTENT_RATINGS);
    assert_int_equal(rbt_ids_count(d->row_names), 2);
    assert_string_equal(rbt_ids_name(d->row_names, 1), "bob");
    assert_string_equal(rbt_ids_name(d->col_names, 2), "disc");
    assert_int_equal(rbt_ids_find(d->col_names, "book"), 1);
    assert_int_equal(rbt_ids_find(d->col_names, "boo"), 3);
}

static void every_form_gives_the_same_rows(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "ann::film::4::17\nann::book::2.5::18\nbob::disc::1::1\nbob::book::0::2\n",
        "user::item::rating\nann :: film :: 4\nann::book::2.5\n\nbob::disc::1\r\nbob::book::0",
        "ann film 4\nann  book\t2.5 and more\n bob disc 1\nbob book 0\n",
        "userId,movieId,rating,timestamp\nann,film,4,1\nann,book,2.5,2\nbob,disc,1,3\nbob,book,0,4\n",
        "\xef\xbb\xbfuser,item,rating\nann,film,4\nann,book,2.5\nbob,disc,1\nbob,book,0\n",
        "\"ann\",\"film\",\"4\"\n\"ann\" , book,2.5\nbob,\"disc\",1\nbob,book,0\n",
        "ann\tfilm\t4\nann\tbook\t2.5\nbob\tdisc\t1\t\t\nbob\tbook\t0\n",
        "ann;film;4\nann;book;2.5\nbob;disc;1\nbob;book;0\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        rbt_data d;
        rbt_error error = {RBT_OK, ""};
        if (parse(forms[i], &d, &error) != RBT_OK)
            fail_msg("%zu: %s", i, error.text);
        check(&d);
        rbt_data_deinit(&d);
    }
}

static void names_may_hold_blanks_separators_and_quotes_in_quotes(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    assert_int_equal(parse("\"O\"\"Neil, Ann\",the film,1\n\"O\"\"Neil, Ann\",\"a,b\",2\n", &d, &error), RBT_OK);
    assert_int_equal(d.rows, 1);
    assert_string_equal(rbt_ids_name(d.row_names, 0), "O\"Neil, Ann");
    assert_string_equal(rbt_ids_name(d.col_names, 0), "the film");
    assert_string_equal(rbt_ids_name(d.col_names, 1), "a,b");
    rbt_data_deinit(&d);
    assert_int_equal(parse("007 18446744073709551617 1\n7 x 1\n", &d, &error), RBT_OK);
    assert_int_equal(d.rows, 2); /* compared as text */
    assert_string_equal(rbt_ids_name(d.col_names, 0), "18446744073709551617");
    rbt_data_deinit(&d);
}

static void the_last_of_repeated_ratings_counts(void **state)
{
    (void)state;
    rbt_data d;
    rbt_error error;
    rbt_read_report report = {0};
    char note[RBT_READ_NOTE_ROOM];
    const char *text = "a x 1\nb x 2\na y 3\na x 4\na x 5\n";
    assert_int_equal(parse_cut(text, strlen(text), (rbt_cut){1, 1}, &(rbt_reading){.report = &report}, &d, &error),
                     RBT_OK);
    assert_int_equal(d.nnz, 3);
    assert_true(d.value[0] == 5 && d.value[1] == 3 && d.value[2] == 2);
    assert_int_equal(d.start[1], 2);
    assert_int_equal(report.repeated, 2);
    assert_true(rbt_read_note(&report, note));
    assert_string_equal(note, "2 ratings have a later one of the same user and item, which counts");
    rbt_data_deinit(&d);
}

static void bad_lines_are_refused_with_their_place(void **state)
{
    (void)state;
    refused("", "t: has no rows; expected one or more lines of the form: user item rating");
    refused("user,item,rating\n", "t: has no rows");
    refused("1::2::3\n1::2\n", "t:2: '1::2': expected a rating as user::item::rating");
    refused("1 2 3\n\n1 2 x\n", "t:3: '1 2 x': expected a rating in the third place");
    refused("1 2 -\n", "t:1: '1 2 -': expected a rating in the third place");
    refused("1 2 3\n1 2 1e39\n", "t:2: '1 2 1e39': expected a rating that a 32-bit float holds");
    refused("1 2 nan\n1 2 3\n", "t:1: '1 2 nan': expected a rating");
    refused("ann film nan\nann film 3\n", "t:1: 'ann film nan': expected a rating");
    refused("1::5::B+\n1::2::3\n", "t:1: '1::5::B+': expected a rating"); /* no names of columns */
    refused("1 2 3\n1 2 inf\n", "t:2: '1 2 inf': expected a rating");
    refused("1 2 1e39\n", "t:1: '1 2 1e39': expected a rating");
    refused("1,,3\n", "t:1: '1,,3': expected a user and an item of 1 to 1000 bytes");
    refused("1,\"2,3\n", "t:1: '1,\"2,3': expected a rating as user,item,rating");
    refused("1,\"2\"x,3\n", "t:1: '1,\"2\"x,3': expected a rating");
    rbt_data d;
    rbt_error error;
    char line[2048];
    for (size_t n = RBT_RATINGS_NAME_MOST; n <= RBT_RATINGS_NAME_MOST + 1; n++) {
        memset(line, 'u', n);
        strcpy(line + n, " item 3\n");
        assert_int_equal(parse(line, &d, &error), n == RBT_RATINGS_NAME_MOST ? RBT_OK : RBT_E_DATA);
        if (n == RBT_RATINGS_NAME_MOST)
            rbt_data_deinit(&d);
    }
    assert_int_equal(parse_cut("a\0b,c,1\n", 8, (rbt_cut){64, 1}, &(rbt_reading){0}, &d, &error), RBT_E_DATA);
}

static void bad_lines_that_are_left_out_leave_no_trace(void **state)
{
    (void)state;
    const char *text = "new item x\nann film 4\nnobody nothing\nann book 2.5\nbob disc 1\nghost book\nbob book 0\n";
    for (size_t chunk = 1; chunk < 80; chunk++) {
        rbt_data d;
        rbt_error error;
        rbt_read_report report = {0};
        assert_int_equal(parse_cut(text, strlen(text), (rbt_cut){chunk, 2},
                                   &(rbt_reading){.skip_bad = 2, .report = &report}, &d, &error),
                         RBT_OK);
        check(&d); /* the first line is taken for a header, which is told */
        assert_int_equal(report.headers, 1);
        assert_int_equal(report.skipped, 2);
        assert_non_null(strstr(report.first.text, "t:3: 'nobody nothing'"));
        rbt_data_deinit(&d);
        assert_int_equal(parse_cut(text, strlen(text), (rbt_cut){chunk, 2}, &(rbt_reading){.skip_bad = 1}, &d, &error),
                         RBT_E_DATA);
        assert_non_null(strstr(error.text, "t:3: 'nobody nothing'"));
    }
}

static void cuts_and_threads_change_nothing(void **state)
{
    (void)state;
    char *text = rbt_alloc(400000, 1);
    size_t n = 0;
    uint32_t x = 1;
    for (int i = 0; i < 10000; i++) {
        x = x * 1664525 + 1013904223;
        n += (size_t)sprintf(text + n, "u%u %u %u\n", (x >> 8) % 700, (x >> 12) % 311, (x >> 28) + 1);
    }
    rbt_data one, other;
    rbt_error error;
    assert_int_equal(parse_cut(text, n, (rbt_cut){1 << 20, 1}, &(rbt_reading){0}, &one, &error), RBT_OK);
    assert_true(one.nnz < 10000 && one.rows == 700 && one.cols == 311);
    for (unsigned t = 1; t <= 4; t++) {
        assert_int_equal(parse_cut(text, n, (rbt_cut){1000 * t + 7, t}, &(rbt_reading){0}, &other, &error), RBT_OK);
        same_data(&one, &other);
        for (size_t i = 0; i < one.rows; i++)
            assert_string_equal(rbt_ids_name(one.row_names, i), rbt_ids_name(other.row_names, i));
        rbt_data_deinit(&other);
    }
    for (size_t r = 0; r < one.rows; r++)
        assert_true(rbt_features_ascend(one.index + one.start[r], one.start[r + 1] - one.start[r]));
    rbt_data_deinit(&one);
    rbt_free(text);
}

/* Also a rating that has a later one, whatever the cut; lines that are none are left out. */
static void a_list_keeps_the_order_of_the_lines(void **state)
{
    static const char text[] =
        "user,item,rating\nbob,book,1\nann,film,4\n\nbob,disc,1\nann,book,2.5\nbob,book,0\nann,bad\n";
    static const char *const wanted[] = {"bob book 1", "ann film 4", "bob disc 1", "ann book 2.5", "bob book 0"};
    const rbt_text whole = {.name = "t", .bytes = text, .n = sizeof text - 1};

    (void)state;
    for (size_t bytes = 1; bytes < sizeof text; bytes += 7) {
        rbt_read_report report = {0};
        rbt_rating_list list = {0};
        rbt_error error = {RBT_OK, ""};
        const rbt_source source = {&whole, 1, "t", {bytes, 1 + (unsigned)bytes % 3}, NULL};
        assert_int_equal(rbt_ratings_list(&source, &(rbt_reading){.skip_bad = 1, .report = &report}, &list, &error),
                         RBT_OK);
        assert_int_equal(report.skipped, 1);
        assert_int_equal(list.n, 5);
        for (size_t i = 0; i < list.n; i++) {
            char line[64];
            (void)snprintf(line, sizeof line, "%s %s %g", rbt_ids_name(list.users, list.at[i].row),
                           rbt_ids_name(list.items, list.at[i].col), (double)list.at[i].value);
            assert_string_equal(line, wanted[i]);
        }
        rbt_rating_list_deinit(&list);
        assert_int_equal(rbt_ratings_list(&source, &(rbt_reading){0}, &list, &error), RBT_E_DATA);
        assert_non_null(strstr(error.text, "t:8"));
    }
}

static void a_second_file_is_read_by_the_names_of_the_first(void **state)
{
    (void)state;
    rbt_data first, second;
    rbt_error error;
    rbt_read_report report = {0};
    put_file("a", "ann::film::4\nann::book::2.5\nbob::disc::1\n");
    put_file("b", "eve::film::1\nbob::film::3\nbob::tape::5\nbob::disc::2\nbob::book::1\n");
    assert_int_equal(rbt_data_read("a", &first, &error), RBT_OK);
    const rbt_reading reading = {.rows = first.row_names, .cols = first.col_names, .report = &report};
    assert_int_equal(rbt_data_read_as("b", &reading, &second, &error), RBT_OK);
    assert_int_equal(report.unknown, 2);
    assert_int_equal(second.rows, 2);
    assert_int_equal(second.cols, 3);
    assert_int_equal(second.start[1], 0);
    static const float value[] = {3, 1, 2};
    assert_int_equal(second.nnz, 3);
    assert_memory_equal(second.value, value, sizeof value);
    assert_ptr_equal(second.row_names, first.row_names);
    rbt_data_deinit(&second);
    const rbt_reading items = {.cols = first.col_names};
    assert_int_equal(rbt_data_read_as("b", &items, &second, &error), RBT_OK);
    assert_int_equal(second.rows, 2); /* eve and bob */
    assert_int_equal(second.cols, 3);
    assert_int_equal(second.nnz, 4);
    rbt_data_deinit(&second);
    put_file("b", "eve::film::1\n");
    assert_int_equal(rbt_data_read_as("b", &reading, &second, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: none of its 1 ratings is of a user and an item that are known"));
    rbt_data_deinit(&first);
}

static void names_go_with_rows_that_are_joined_and_selected(void **state)
{
    (void)state;
    rbt_data parts[2], all, some;
    rbt_error error;
    assert_int_equal(parse("ann film 4\nann book 2\nbob disc 7\n", &parts[0], &error), RBT_OK);
    assert_int_equal(parse("bob disc 1\nann book 2.5\nbob book 0\n", &parts[1], &error), RBT_OK);
    assert_int_equal(rbt_data_join(parts, 2, &all, &error), RBT_OK);
    check(&all);
    assert_int_equal(rbt_data_select(&all, (uint32_t[]){1, 0}, 2, &some, &error), RBT_OK);
    assert_string_equal(rbt_ids_name(some.row_names, 0), "bob");
    assert_ptr_equal(some.col_names, all.col_names);
    rbt_data_deinit(&some);
    assert_int_equal(rbt_data_slice(&all, 1, 1, &some, &error), RBT_OK);
    assert_string_equal(rbt_ids_name(some.row_names, 0), "bob");
    rbt_data_deinit(&all);
    assert_string_equal(rbt_ids_name(some.col_names, 0), "film");
    rbt_data_deinit(&some);
    rbt_data_deinit(&parts[0]);
    rbt_data_deinit(&parts[1]);
}

static void ratings_are_recognised_only_by_their_double_colons(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        rbt_content expect;
        rbt_kind kind;
    } known[] = {
        {"1::2::3\n", RBT_CONTENT_ROWS, RBT_KIND_RATINGS},  {"1::2::3::4\n", RBT_CONTENT_ROWS, RBT_KIND_RATINGS},
        {"1 | a::b::3\n", RBT_CONTENT_ROWS, RBT_KIND_VW},   {"1,2,3\n", RBT_CONTENT_ROWS, RBT_KIND_CSV},
        {"1,2,3\n", RBT_CONTENT_RATINGS, RBT_KIND_RATINGS}, {"1 2 3\n", RBT_CONTENT_RATINGS, RBT_KIND_RATINGS},
        {"2 1:1 2:1\n", RBT_CONTENT_ROWS, RBT_KIND_LIBSVM}, {"2 1:1 2:1\n", RBT_CONTENT_DOCS, RBT_KIND_LDAC},
        {"1 1:1 2:1\n", RBT_CONTENT_DOCS, RBT_KIND_LIBSVM},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const rbt_input input = {.name = "t", .bytes = known[i].text, .n = strlen(known[i].text)};
        if (rbt_kind_of(&input, known[i].expect) != known[i].kind)
            fail_msg("'%s' is taken for %d", known[i].text, (int)rbt_kind_of(&input, known[i].expect));
    }
}

static void lists_of_names_find_what_was_added(void **state)
{
    (void)state;
    rbt_ids *ids = rbt_ids_create(), *back;
    char name[32];
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(rbt_ids_add(ids, name, (size_t)sprintf(name, "name %u", i)), i);
    for (uint32_t i = 0; i < 5000; i += 7)
        assert_int_equal(rbt_ids_add(ids, name, (size_t)sprintf(name, "name %u", i)), i);
    assert_int_equal(rbt_ids_look_up(ids, "name", 4), RBT_IDS_ABSENT);
    size_t n;
    const char *bytes = rbt_ids_bytes(ids, &n);
    assert_ptr_equal(rbt_ids_read(bytes, bytes + n, 5000, &back), bytes + n);
    assert_string_equal(rbt_ids_name(back, 4999), "name 4999");
    rbt_ids_unref(back);
    assert_null(rbt_ids_read(bytes, bytes + n - 1, 5000, &back)); /* the last has no end */
    assert_null(rbt_ids_read(bytes, bytes + n, 5001, &back));
    assert_null(rbt_ids_read("a\0a", (const char *)"a\0a" + 4, 2, &back)); /* twice */
    assert_null(rbt_ids_select(ids, (uint32_t[]){3, 3}, 2));
    rbt_ids_unref(ids);
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b"};
    return remove_folder(state, names, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_need_no_rating),
        cmocka_unit_test(every_form_gives_the_same_rows),
        cmocka_unit_test(names_may_hold_blanks_separators_and_quotes_in_quotes),
        cmocka_unit_test(the_last_of_repeated_ratings_counts),
        cmocka_unit_test(bad_lines_are_refused_with_their_place),
        cmocka_unit_test(bad_lines_that_are_left_out_leave_no_trace),
        cmocka_unit_test(cuts_and_threads_change_nothing),
        cmocka_unit_test(a_list_keeps_the_order_of_the_lines),
        cmocka_unit_test_setup_teardown(a_second_file_is_read_by_the_names_of_the_first, enter_folder, leave_folder),
        cmocka_unit_test(names_go_with_rows_that_are_joined_and_selected),
        cmocka_unit_test(ratings_are_recognised_only_by_their_double_colons),
        cmocka_unit_test(lists_of_names_find_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
