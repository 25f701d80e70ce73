/* Proves src/data/csv: what columns are, quotes and newlines in them, labels, and that no cut changes anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/csv.h"
#include "data/csv_cells.h"

static rbt_err parse_cut(const char *text, rbt_reading reading, rbt_cut cut, rbt_data *data, rbt_error *error)
{
    size_t n = strlen(text);
    char *copy = malloc(n > 0 ? n : 1); /* of exactly that size: a sanitizer sees every read beyond it */
    assert_non_null(copy);
    memcpy(copy, text, n);
    const rbt_text mem = {.name = "mem", .bytes = copy, .n = n};
    rbt_err err = rbt_csv_parse(&(rbt_source){&mem, 1, "mem", cut, NULL}, &reading, data, error);
    free(copy);
    return err;
}

static rbt_data parsed_as(const char *text, rbt_reading reading)
{
    rbt_data data;
    rbt_error error;
    if (parse_cut(text, reading, rbt_cut_default(), &data, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return data;
}

static rbt_data parsed(const char *text)
{
    return parsed_as(text, (rbt_reading){.bits = 4});
}

static void refused_as(const char *text, rbt_reading reading, rbt_err code, const char *part)
{
    rbt_data data;
    rbt_error error;
    assert_int_equal(parse_cut(text, reading, rbt_cut_default(), &data, &error), code);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, error.text);
}

static void refused(const char *text, const char *part)
{
    refused_as(text, (rbt_reading){0}, RBT_E_DATA, part);
}

/* -------------------------------------------------------------------------------------------------------- columns */

static void numbers_are_a_column_each_and_zeros_and_gaps_are_absent(void **state)
{
    (void)state;
    rbt_data d = parsed("y,a,b,c\n1,0.5,0,3\n-1,,NA,7\n2,?,nan,null\n");
    assert_int_equal(d.rows, 3);
    assert_int_equal(d.cols, 3);
    assert_int_equal(d.nnz, 3);
    assert_true(d.index[0] == 0 && d.index[1] == 2 && d.index[2] == 2);
    assert_true(d.value[0] == 0.5F && d.value[1] == 3 && d.value[2] == 7);
    assert_true(d.label[0] == 1 && d.label[1] == -1 && d.label[2] == 2);
    assert_int_equal(d.start[3] - d.start[2], 0);
    assert_null(d.weight);
    assert_null(d.label_names);
    rbt_data_deinit(&d);
}

static void words_are_hashed_behind_the_numbers(void **state)
{
    (void)state;
    rbt_data d = parsed("y,town,a\n1,Bonn,2\n0,,3\n1,\"Bonn\",4\n");
    assert_int_equal(d.cols, 1 + 16);
    assert_int_equal(d.nnz, 5);
    uint32_t bonn = 1 + (uint32_t)(rbt_hash("Bonn", 4, rbt_hash("town", 4, 0)) & 15);
    assert_true(d.index[0] == 0 && d.value[0] == 2);
    assert_true(d.index[1] == bonn && d.value[1] == 1);
    assert_true(d.index[3] == 0 && d.index[4] == bonn);
    rbt_data_deinit(&d);
    d = parsed("1,Bonn,2\n0,Kiel,3\n"); /* without a header a column's number is its name */
    assert_int_equal(d.rows, 2);
    assert_int_equal(d.index[1], 1 + (rbt_hash("Bonn", 4, rbt_hash("2", 1, 0)) & 15));
    rbt_data_deinit(&d);
}

static void one_word_anywhere_makes_a_column_of_words(void **state)
{
    (void)state;
    rbt_data d = parsed("y,a,b\n1,5,1\n0,6,1\n1,x,1\n");
    assert_int_equal(d.cols, 1 + 16); /* b, and the words of a */
    assert_int_equal(d.nnz, 6);
    rbt_data_deinit(&d);
    d = parsed_as("y,a,b\n1,5,1\n0,6\n1,x\n1,7,2\n", (rbt_reading){.skip_bad = 2});
    assert_int_equal(d.cols, 2); /* rows that are not whole have no say */
    rbt_data_deinit(&d);
}

static void rows_left_out_leave_no_trace(void **state)
{
    (void)state;
    static const char good[] = "y,w,a,b\n1,1,1,2\n0,1,2,1\n1,2,1,3\n";
    static const char *const bad[] = {
        ",1,exported,by\n", /* no label */
        "NA,1,x,y\n",       /* */
        "zzz,0,x,y\n",      /* no weight */
        "zzz,-1,x,y\n",     /* */
        "zzz,many,x,y\n",   /* */
        "\"z\nz\",1,x,y\n", /* no label that could be predicted */
        "zzz,1,x,y,z\n",    /* not whole */
        "zzz,1,x\n",        /* */
        "zzz,1,\"x\"y,z\n", /* */
    };
    const rbt_reading reading = {.bits = 4, .weight = "w", .skip_bad = 2};
    rbt_data whole = parsed_as(good, reading);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s%s", good, bad[i]);
        rbt_data d = parsed_as(text, reading);
        same_data(&whole, &d);
        assert_string_equal(d.origin, whole.origin);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&whole);
    const rbt_reading plain = {.skip_bad = 1};
    whole = parsed_as("y,a\nyes,1\nno,2\nyes,3\n", plain);
    static const char *const odd[] = {"y,a\nyes,1\nperhaps,inf\nno,2\nyes,3\n",
                                      "y,a\nyes,1\nno,2\nyes,3\nperhaps,1e99\n"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        rbt_data d = parsed_as(odd[i], plain);
        same_data(&whole, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&whole);
}

static void headers_are_told_from_data(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t rows;
    } known[] = {
        {"1,2,3\n4,5,6\n", 2},                 /* numbers */
        {"1,,3\n4,5,6\n", 2},                  /* and a gap */
        {"y,a,b\n4,5,6\n", 1},                 /* names */
        {"y,a,b\nyes,no,maybe\n", 1},          /* names above words */
        {"5.1,3.5,setosa\n4.9,3,setosa\n", 2}, /* words and numbers, alike in both rows */
        {"label,0,1\n3,5,6\n", 1},             /* a word above a number */
        {"p,x,s,x\ne,x,s,y\n", 2},             /* no two columns have the same name */
        {"\"y\",\"a\"\n1,2\n", 1},
        {"y,a", 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_data d;
        rbt_error error;
        rbt_err err = parse_cut(known[i].text, (rbt_reading){0}, rbt_cut_default(), &d, &error);
        if ((err == RBT_OK ? d.rows : 0) != known[i].rows)
            fail_msg("'%s' has %zu rows", known[i].text, err == RBT_OK ? d.rows : 0);
        if (err == RBT_OK)
            rbt_data_deinit(&d);
    }
}

static void a_first_line_that_may_be_a_row_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t headers;
        bool again;
    } known[] = {
        {"yes,a\nno,b\nyes,c\n", 1, false},          /* a name among the cells */
        {"yes,a\nno,b\nyes,a\n\"no\",b\n", 1, true}, /* the whole line */
        {"y,a\n1,2\ny,a\n3,4\n", 0, false},          /* above numbers it can only be the names */
        {"y,a\ny,a\n3,x\n", 0, false},               /* */
        {"y,a\nyes,x\n", 0, false},
        {"1,2,3x\n0,1,1\n", 1, false}, /* names that are numbers */
        {"y,2019,2020\n1,2,3\n", 1, false},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_read_report report = {0};
        rbt_data d = parsed_as(known[i].text, (rbt_reading){.report = &report});
        assert_int_equal(report.headers, known[i].headers);
        assert_int_equal(report.again, known[i].again);
        rbt_data_deinit(&d);
    }
}

static void form_does_not_matter(void **state)
{
    (void)state;
    rbt_data plain = parsed("y,a,b\n1,2,x z\n-1,,w\n");
    static const char *const same[] = {
        "y,a,b\r\n1,2,x z\r\n-1,,w",                     /* line ends of other systems, none at the end */
        "y;a;b\n1;2;x z\n-1;;w\n",                       /* semicolons */
        "y\ta\tb\n1\t2\tx z\n-1\t\tw\n",                 /* tabs */
        "\n\ny, a ,b\n\n1, 2 , x z\n  \n-1 ,,\tw\r\n\n", /* blanks, empty lines */
        "\"y\",\"a\",\"b\"\n\"1\",\"2\",\"x z\"\n\"-1\",\"\",\"w\"\n",
        "\357\273\277y,a,b\n1,2,x z\n-1,,w\n",     /* byte order mark */
        "y,a,b\n1,2,x z\ny,a,b\n-1,,w\ny,a,b",     /* files one after the other, each with its header */
        "y,a,b\n1,2,x z\n\"y\", a ,b \r\n-1,,w\n", /* which may be written otherwise */
        "y,a,b\n1,2.0,\"x z\" \n-1, \"NA\" ,w\n",  /* */
        "y,a,b\n+1e0,2,x z\n-1.00,  ,  \"w\"\r\n", /* */
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        rbt_data d = parsed(same[i]);
        same_data(&plain, &d);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&plain);
}

/* -------------------------------------------------------------------------------------------------- labels, weights */

static void label_and_weight_are_found_by_name_and_by_number(void **state)
{
    (void)state;
    static const char text[] = "a,w,price,b\n1,2,30,4\n5,0.5,70,8\n";
    rbt_data by_name = parsed_as(text, (rbt_reading){.label = "price", .weight = "w"});
    rbt_data by_number = parsed_as(text, (rbt_reading){.label = "3", .weight = "2"});
    same_data(&by_name, &by_number);
    assert_true(by_name.label[1] == 70 && by_name.weight[1] == 0.5F && by_name.cols == 2);
    assert_true(by_name.index[1] == 1 && by_name.value[1] == 4);
    rbt_data_deinit(&by_name);
    rbt_data_deinit(&by_number);
    rbt_data numbers = parsed_as("1,2,3\n4,5,6\n", (rbt_reading){.label = "3"});
    assert_true(numbers.label[0] == 3 && numbers.value[0] == 1);
    rbt_data_deinit(&numbers);

    refused_as(text, (rbt_reading){.label = "prize"}, RBT_E_USAGE, "no such column; it has: a, w, price, b");
    refused_as(text, (rbt_reading){.label = "5"}, RBT_E_USAGE, "columns 1 to 4");
    refused_as(text, (rbt_reading){.label = "0"}, RBT_E_USAGE, "columns 1 to 4");
    refused_as("1,2\n3,4\n", (rbt_reading){.label = "y"}, RBT_E_USAGE, "has no line of names");
    refused_as(text, (rbt_reading){.label = "w", .weight = "2"}, RBT_E_USAGE, "cannot be the label and the weight");
    refused_as(text, (rbt_reading){.label = "none"}, RBT_E_USAGE, "--label none");
    refused_as("y,w\n1,1\n2,0\n", (rbt_reading){.weight = "w"}, RBT_E_DATA,
               "mem:3: '0' in column 2, w: expected a weight");
    refused_as("y,w\n1,\n", (rbt_reading){.weight = "w"}, RBT_E_DATA, "expected a weight");
    refused_as("y,w\n1,1e39\n", (rbt_reading){.weight = "w"}, RBT_E_DATA,
               "expected a weight that a 32-bit float holds");
}

static void labels_may_be_words(void **state)
{
    (void)state;
    rbt_data d = parsed("kind,a\nred,1\n\"a \"\"b\"\"\",2\nblue,3\nred,4\n7,5\n");
    static const char *const names[] = {"7", "a \"b\"", "blue", "red"};
    assert_int_equal(d.label_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(d.label_names[i], names[i]);
    assert_true(d.label[0] == 3 && d.label[1] == 1 && d.label[2] == 2 && d.label[3] == 3 && d.label[4] == 0);
    rbt_data_deinit(&d);
}

static void a_label_column_of_too_many_words_is_the_wrong_one(void **state)
{
    (void)state;
    size_t n = 0, rows = RBT_CSV_LABELS_LIMIT + 1;
    char *text = malloc(rows * 16);
    assert_non_null(text);
    for (size_t i = 0; i < rows; i++)
        n += (size_t)snprintf(text + n, 16, "id%zu,1\n", i);
    refused_as(text, (rbt_reading){0}, RBT_E_LIMIT, "is it the right one?");
    free(text);
}

static void rows_without_labels_are_fine_for_prediction(void **state)
{
    (void)state;
    rbt_read_report report;
    rbt_data d = parsed_as("y,a\n1,2\n,3\n", (rbt_reading){.unlabelled = true, .report = &report});
    assert_true(d.rows == 2 && d.label[1] == 0 && report.unlabelled == 1);
    rbt_data_deinit(&d);
    d = parsed_as("a,b\n1,2\n4,3\n", (rbt_reading){.unlabelled = true, .report = &report, .label = "none"});
    assert_true(d.rows == 2 && d.cols == 2 && d.label[1] == 0 && report.unlabelled == 2);
    rbt_data_deinit(&d);
    refused("y,a\n1,2\n,3\n", "mem:3: '' in column 1, y: expected a label");
}

/* ----------------------------------------------------------------------------------------------------------- quotes */

static void quoted_cells_hold_anything(void **state)
{
    (void)state;
    rbt_data d = parsed("y,t\n1,\"a,b\nc\"\n2,\"say \"\"hi\"\"\"\n3,\"\n\n\"\n4,5\" disk\n");
    assert_int_equal(d.rows, 4);
    uint64_t seed = rbt_hash("t", 1, 0);
    assert_int_equal(d.index[0], rbt_hash("a,b\nc", 5, seed) & 15);
    assert_int_equal(d.index[1], rbt_hash("say \"hi\"", 8, seed) & 15);
    assert_int_equal(d.index[3], rbt_hash("5\" disk", 7, seed) & 15);
    rbt_data_deinit(&d);
}

/* Also where the delimiter is looked for: in the first line a quote opens where a cell may begin, and nowhere else. */
static void a_quote_within_a_name_hides_no_delimiter(void **state)
{
    (void)state;
    rbt_data d = parsed("y;5\" x;b\n1;0.5;3\n0;2;4\n");
    assert_true(d.rows == 2 && d.cols == 2 && d.value[1] == 3);
    rbt_data_deinit(&d);
    d = parsed("y; \"a,b,\"\"c,d\" ;b\n1;0.5;3\n0;2;4\n");
    assert_true(d.rows == 2 && d.cols == 2 && d.value[1] == 3);
    rbt_data_deinit(&d);
}

static void bad_text_is_refused_with_its_line_and_what_was_expected(void **state)
{
    (void)state;
    refused("", "no rows");
    refused("y,a\n", "no rows");
    refused("y,a\n1,2\n1,2,3\n", "mem:3: the row has more than 2 cells");
    refused("y,a\n1,2\n1\n", "mem:3: the row has fewer than 2 cells");
    refused("y,a\n1,2\n0,3\nabc\n", "mem:4: the row has fewer than 2 cells"); /* not: what label is that? */
    refused("y,a\n1,2\n0,3\n1,2,abc\n", "mem:4: the row has more than 2 cells");
    refused("y,a\n1,\"x\ny\"\n1,2,3\n", "mem:4: the row has more");
    refused("y,a\n1,\"x\n", "mem:2: a quote that is not closed");
    refused("y,a\nyes,\"2\nno,1\n", "mem:2: a quote that is not closed"); /* for which the row's label was not seen */
    refused("y,a\n1,\"x\"z\n", "mem:2: text after a closing quote");
    refused("\"y,a\n1,2\n", "mem:1: the first row has a quote that is not closed");
    refused("\n \ny,\"a\n1,2\n", "mem:3: the first row has a quote that is not closed");
    refused("y,a\n1,1e99\n", "mem:2: '1e99' in column 2, a: expected a number that");
    refused("y,a\n1e99,1\n", "mem:2: '1e99' in column 1, y: expected a label");
    refused("y,a\nx,1\n\"u\nv\",2\n", "in column 1, y: expected a label without line ends");
    refused("y,a\nu\x7f,1\nx,2\n", "in column 1, y: expected a label without line ends");
}

static void an_infinity_among_numbers_is_refused_with_its_line(void **state)
{
    (void)state;
    refused("y,x\n1,2\n0,inf\n1,3\n", "mem:3: 'inf' in column 2, x: expected a finite number");
    refused("y,x\n1,2\n0,-Infinity\n", "mem:3: '-Infinity' in column 2, x: expected a finite number");
    rbt_data d = parsed("y,x\n1,inf\n0,sup\n"); /* among words it is one */
    assert_int_equal(d.cols, 16);
    assert_int_equal(d.nnz, 2);
    rbt_data_deinit(&d);
}

static void a_word_among_numbers_is_reported_with_its_line(void **state)
{
    (void)state;
    rbt_read_report report = {0};
    rbt_data d = parsed_as("y,x,z\n1,2,\"\n3\"\n0,2.O,w\n1,3,v\n", (rbt_reading){.bits = 4, .report = &report});
    assert_string_equal(report.mixed,
                        "mem:4: '2.O' in column 2, x makes it one of words, each a feature of its own, though "
                        "2 of its cells are numbers; mend the cell, or leave it empty");
    rbt_data_deinit(&d);
    d = parsed_as("y,x\n1,a\nno,b\n1,3\n", (rbt_reading){.report = &report});
    assert_non_null(strstr(report.mixed, "mem:3: 'no' in column 1, y makes it one of words, each a label of its own"));
    rbt_data_deinit(&d);
    d = parsed_as("y,x\n1,a\n2,b\n1,3\n", (rbt_reading){.report = &report}); /* mostly words */
    assert_string_equal(report.mixed, "");
    rbt_data_deinit(&d);
}

static void two_columns_of_one_name_are_refused(void **state)
{
    (void)state;
    refused("\na,a,y\n1,2,3\n", "mem:2: two columns are named 'a'; give each a name of its own");
    rbt_data d = parsed("red,red\nblue,green\n"); /* no names: the rows are alike */
    assert_int_equal(d.rows, 2);
    rbt_data_deinit(&d);
}

static void a_cell_is_a_number_missing_or_a_word(void **state)
{
    (void)state;
    static const char *const cells[] = {"5.",   ".5",    ".",   "+",     "-.",   "1e",  "1e+", "1e5",   "-.5e-3",
                                        "0x1",  "1e5x",  "--1", "1.2.3", "",     "NA",  "n/a", "?",     "??",
                                        "Null", "nulls", "NaN", "inf",   "1 2",  "e5",  "+1",  "1E+07", "-0",
                                        "1e9",  "1,000", "-e",  ".e1",   "5.e1", "12ab"};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        rbt_cell cell = {.at = cells[i], .n = strlen(cells[i])};
        float ignored;
        bool number = rbt_cell_is_number(&cell, &ignored), missing = rbt_cell_is_missing(&cell);
        if (number + missing + (rbt_cell_kind_of(&cell) >= RBT_CELL_INFINITE) != 1)
            fail_msg("'%s' is none or several of them", cells[i]);
    }
}

static void row_ends_are_found_from_any_row_start(void **state)
{
    (void)state;
    static const char text[] = "a,b\n\"x\ny\",1\n  \"\"\"\n\" ,2\nq\"r\n\",z\n";
    const char *end = text + sizeof text - 1, *at = text;
    size_t rows[8], count = 0;
    while (at < end && count < 8) {
        at = rbt_cells_row_end(',', at, at + 1, end);
        rows[count++] = (size_t)(at - text);
    }
    assert_int_equal(count, 5);
    assert_int_equal(rows[1], 12); /* behind "x\ny",1 */
    for (size_t from = 0; from < count; from++)
        for (const char *least = text + (from > 0 ? rows[from - 1] : 0) + 1; least <= end; least++) {
            size_t expected = 0;
            while (rows[expected] < (size_t)(least - text))
                expected++;
            const char *start = text + (from > 0 ? rows[from - 1] : 0);
            assert_ptr_equal(rbt_cells_row_end(',', start, least, end), text + rows[expected]);
        }
}

/* ------------------------------------------------------------------------------------------------------------- cuts */

static void same_for_every_cut(const char *text, rbt_reading reading)
{
    rbt_data expected, d;
    rbt_error refusal = {RBT_OK, ""}, error;
    rbt_err code = parse_cut(text, reading, (rbt_cut){SIZE_MAX, 1}, &expected, &refusal);
    for (size_t bytes = 1; bytes <= strlen(text) + 1; bytes++) {
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            assert_int_equal(parse_cut(text, reading, (rbt_cut){bytes, threads}, &d, &error), code);
            if (code == RBT_OK) {
                same_data(&expected, &d);
                rbt_data_deinit(&d);
            } else {
                assert_string_equal(error.text, refusal.text);
            }
        }
    }
    if (code == RBT_OK)
        rbt_data_deinit(&expected);
}

static void no_cut_changes_anything(void **state)
{
    (void)state;
    static const char nasty[] = "kind,a,\"b\nc\",w\r\n"
                                "x,1,\"q,\n\"\"\n\",2\n"
                                "\n \n"
                                "kind,a,\"b\nc\",w\n"
                                "\"y\n\",2,5\" disk,1\n"
                                "x,,NA,0.5\n"
                                "z,  7 , \"r\" ,3";
    same_for_every_cut(nasty, (rbt_reading){.bits = 3, .weight = "w"});
    same_for_every_cut(nasty, (rbt_reading){.bits = 3, .label = "w"});
    same_for_every_cut("y,a\n1,2\n3\n4,\"5\n\"\n6,\"7\"8\n9,\"\n10\n", (rbt_reading){.skip_bad = 4});
    same_for_every_cut("y,a\n1,2\n3\n4,\"5\n\"\n6,\"7\"8\n9,\"\n10\n", (rbt_reading){.skip_bad = 3});
    same_for_every_cut("y,a\n1,2\n3\n4,\"5\n\"\n6,\"7\"8\n9,\"\n10\n", (rbt_reading){.skip_bad = 2});
    same_for_every_cut("y,a\n1,2\n3\n4,\"5\n\"\n6,\"7\"8\n9,\"\n10\n", (rbt_reading){0});
}

static void lines_that_a_quote_swallows_count_as_bad_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bad;
        size_t rows;
    } known[] = {
        {"y,a,t\n1,3,x\n1,3,\"abc\n0,1,y\n0,1,z\n\n0,2,z\n", 4, 1}, /* never closed: all that follows */
        {"y,a,t\n1,3,x\n1,3,\"abc\n0,1,\"y\"\n0,1,z\n", 2, 2},      /* closed where the next line has a quote */
        {"y,a,t\n1,3,x\n1,\"abc,3\n0,\"\n0,1,z\n", 2, 2},           /* and the cells are fewer */
        {"y,a,t\n1,3,x\n0,1,\"abc\n\n", 1, 1},                      /* one line */
        {"y,a,t\n1,3,x\n,1,\"a\nb\nc\"\n0,1,z\n", 1, 2},            /* one row of three lines, without a label */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_read_report report = {0};
        rbt_data d = parsed_as(known[i].text, (rbt_reading){.skip_bad = known[i].bad, .report = &report});
        assert_int_equal(d.rows, known[i].rows);
        assert_int_equal(report.skipped, known[i].bad);
        rbt_data_deinit(&d);
        const rbt_reading fewer = {.skip_bad = known[i].bad - 1};
        refused_as(known[i].text, fewer, RBT_E_DATA, "mem:3: ");
        same_for_every_cut(known[i].text, fewer);
    }
}

static void several_files_have_one_layout(void **state)
{
    (void)state;
    const rbt_text texts[] = {
        {"a", "y,t\n1,5\n", 8, false}, {"b", "\n", 1, false}, {"c", "y,t\n2,x", 7, false}, {"d", "3,7\n", 4, false}};
    rbt_data together = parsed("y,t\n1,5\n2,x\n3,7\n"), d;
    rbt_error error;
    for (size_t bytes = 1; bytes < 12; bytes++) {
        assert_int_equal(
            rbt_csv_parse(&(rbt_source){texts, 4, "all", {bytes, 2}, NULL}, &(rbt_reading){.bits = 4}, &d, &error),
            RBT_OK);
        same_data(&together, &d);
        rbt_data_deinit(&d);
    }
    const rbt_text other[] = {{"a", "y,t\n1,5\n", 8, false}, {"b", "t,y\n5,1\n", 8, false}};
    assert_int_equal(
        rbt_csv_parse(&(rbt_source){other, 2, "all", rbt_cut_default(), NULL}, &(rbt_reading){0}, &d, &error),
        RBT_E_DATA);
    assert_non_null(strstr(error.text, "b: its columns are named otherwise"));
    rbt_data_deinit(&together);
}

static void the_same_names_may_be_written_otherwise(void **state)
{
    (void)state;
    static const char *const names[] = {"y,a \"q\"\n", "\"y\",\"a \"\"q\"\"\"\n", "y, a \"q\"\n",
                                        " \"y\" ,a \"q\" \r\n"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            char first[32], second[32];
            (void)snprintf(first, sizeof first, "%s1,5\n", names[i]);
            (void)snprintf(second, sizeof second, "%s2,6\n", names[j]);
            const rbt_text texts[] = {{"a", first, strlen(first), false}, {"b", second, strlen(second), false}};
            const rbt_source source = {texts, 2, "all", rbt_cut_default(), NULL};
            rbt_data d;
            rbt_error error;
            if (rbt_csv_parse(&source, &(rbt_reading){0}, &d, &error) != RBT_OK)
                fail_msg("%s", error.text);
            assert_int_equal(d.rows, 2);
            assert_int_equal(d.cols, 1);
            rbt_data_deinit(&d);
        }
    }
    const rbt_text other[] = {{"a", "y,a\n1,5\n", 8, false}, {"b", "y,a b\n5,1\n", 10, false}};
    rbt_data d;
    assert_int_equal(
        rbt_csv_parse(&(rbt_source){other, 2, "all", rbt_cut_default(), NULL}, &(rbt_reading){0}, &d, NULL),
        RBT_E_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_a_column_each_and_zeros_and_gaps_are_absent),
        cmocka_unit_test(words_are_hashed_behind_the_numbers),
        cmocka_unit_test(one_word_anywhere_makes_a_column_of_words),
        cmocka_unit_test(rows_left_out_leave_no_trace),
        cmocka_unit_test(headers_are_told_from_data),
        cmocka_unit_test(a_first_line_that_may_be_a_row_is_told),
        cmocka_unit_test(form_does_not_matter),
        cmocka_unit_test(label_and_weight_are_found_by_name_and_by_number),
        cmocka_unit_test(labels_may_be_words),
        cmocka_unit_test(a_label_column_of_too_many_words_is_the_wrong_one),
        cmocka_unit_test(rows_without_labels_are_fine_for_prediction),
        cmocka_unit_test(quoted_cells_hold_anything),
        cmocka_unit_test(a_quote_within_a_name_hides_no_delimiter),
        cmocka_unit_test(bad_text_is_refused_with_its_line_and_what_was_expected),
        cmocka_unit_test(an_infinity_among_numbers_is_refused_with_its_line),
        cmocka_unit_test(a_word_among_numbers_is_reported_with_its_line),
        cmocka_unit_test(two_columns_of_one_name_are_refused),
        cmocka_unit_test(a_cell_is_a_number_missing_or_a_word),
        cmocka_unit_test(row_ends_are_found_from_any_row_start),
        cmocka_unit_test(no_cut_changes_anything),
        cmocka_unit_test(lines_that_a_quote_swallows_count_as_bad_rows),
        cmocka_unit_test(several_files_have_one_layout),
        cmocka_unit_test(the_same_names_may_be_written_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
