/* Proves src/data/part.h: however many processes read, and wherever that cuts the files, the rows are those of reading
 * everything at once, or the refusal is, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef RBT_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/mem.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/part.h"
#include "data/slicing.h"
#include "unit/crew.h"
#include "unit/files.h"

#define MOST 8

static const uint32_t sizes[] = {1, 2, 3, 5, 8};
#define SIZES (sizeof sizes / sizeof sizes[0])

typedef struct trial {
    const char *path;
    rbt_reading reading;
    uint32_t first_worker[MOST];
    uint32_t workers_of[MOST];
    rbt_data_part part[MOST];
    rbt_read_report report[MOST];
    rbt_err err[MOST];
    rbt_error error[MOST];
} trial;

static void read_part(rbt_crew *crew, void *context)
{
    trial *t = context;
    uint32_t r = crew->rank;
    rbt_reading reading = t->reading;
    reading.report = &t->report[r];
    t->err[r] = rbt_data_part_read(&t->part[r], t->path, &reading, &(rbt_hosting){t->first_worker, t->workers_of}, crew,
                                   &t->error[r]);
}

/* `idle` ranks from the first on host no workers; the others `each`. */
static void host(trial *t, uint32_t size, uint32_t idle, uint32_t each)
{
    uint32_t next = 0;
    for (uint32_t r = 0; r < size; r++) {
        t->first_worker[r] = next;
        t->workers_of[r] = r < idle && size > idle ? 0 : each;
        next += t->workers_of[r];
    }
}

static void end(trial *t, uint32_t size)
{
    for (uint32_t r = 0; r < size; r++)
        rbt_data_part_deinit(&t->part[r]);
}

static void parts_make(const rbt_data *whole, const rbt_read_report *report, const trial *t, uint32_t size)
{
    rbt_data parts[MOST], joined;
    size_t rows = 0;
    for (uint32_t r = 0; r < size; r++) {
        const rbt_data_part *p = &t->part[r];
        if (t->err[r] != RBT_OK)
            fail_msg("%s: process %u of %u: %s", t->path, r, size, t->error[r].text);
        assert_int_equal(p->first, rows);
        assert_int_equal(p->rows, whole->rows);
        assert_int_equal(p->nnz, whole->nnz);
        assert_int_equal(p->rows_of[r], p->data.rows);
        assert_int_equal(p->data.cols, whole->cols);
        assert_int_equal(p->data.label_count, whole->label_count);
        assert_int_equal(p->data.weight != NULL, whole->weight != NULL);
        assert_int_equal(t->report[r].skipped, report->skipped);
        assert_string_equal(t->report[r].first.text, report->first.text);
        rows += p->data.rows;
        parts[r] = p->data;
    }
    assert_int_equal(rbt_data_join(parts, size, &joined, NULL), RBT_OK);
    same_data(&joined, whole);
    rbt_data_deinit(&joined);
}

static void same_in_parts(const char *path, rbt_reading reading)
{
    rbt_data whole = {0};
    rbt_read_report report = {0};
    rbt_error error = {RBT_OK, ""};
    reading.report = &report;
    rbt_err err = rbt_data_read_as(path, &reading, &whole, &error);
    for (size_t i = 0; i < SIZES; i++) {
        for (uint32_t idle = 0; idle < 3; idle += 2) {
            trial t = {.path = path, .reading = reading};
            host(&t, sizes[i], idle, 2);
            run_crew(sizes[i], read_part, &t);
            if (err == RBT_OK)
                parts_make(&whole, &report, &t, sizes[i]);
            for (uint32_t r = 0; err != RBT_OK && r < sizes[i]; r++) {
                assert_int_equal(t.err[r], err);
                assert_string_equal(t.error[r].text, error.text);
            }
            end(&t, sizes[i]);
        }
    }
    rbt_data_deinit(&whole);
}

/* --------------------------------------------------------------------------------------------------------- texts */

static const char libsvm[] = "\xef\xbb\xbf# a comment\r\n\n+1 1:0.5 3:-2 # 9:9\n-1 2:1e-1 5:0\r\n3\n#\n1 1:0 2:0 3:0\n"
                             "0.25 4:1 17:2 18:3.25 900:1e-30\n\t-7 1:1 \t 2:2\n\n2 7:1";

static void libsvm_text_is_cut_anywhere(void **state)
{
    char text[sizeof libsvm + 64];
    (void)state;
    put_file("a", libsvm);
    same_in_parts("a", (rbt_reading){0});
    (void)snprintf(text, sizeof text, "%s\n1 0:1 3:1\n-1 2:4\n", libsvm); /* only the end tells that it counts from 0 */
    put_file("a", text);
    same_in_parts("a", (rbt_reading){0});
    for (size_t n = 1; n < 60; n++) { /* all kinds of cuts: every length of a line */
        (void)snprintf(text, sizeof text, "1 1:1\n-1 %0*d:3\n1 3:7\n", (int)n, 2);
        put_file("a", text);
        same_in_parts("a", (rbt_reading){0});
    }
    put_file("a", "1 1:1");
    same_in_parts("a", (rbt_reading){0});
    put_file("a", "\n\n\n\n\n\n\n\n\n1 1:1\n\n\n\n\n\n\n\n\n");
    same_in_parts("a", (rbt_reading){0});
}

static void several_files_are_one(void **state)
{
    (void)state;
    put_file("a", "1 1:1 2:2\n2 3:3\n");
    put_file("b", "");
    put_file("c", "3 4:1\n4 0:5\n5 1:1\n6 9:1\n7 1:1\n");
    put_file("d", "8 2:1\n");
    same_in_parts("[a-d]", (rbt_reading){0});
    put_file("d", "");
    same_in_parts("[a-d]", (rbt_reading){0});
    same_in_parts("b", (rbt_reading){0});
    same_in_parts("[bd]", (rbt_reading){0});
}

static void vw_text_knows_its_weights_everywhere(void **state)
{
    (void)state;
    put_file("a.vw", "1 |a x y:2\n-1 |b z\n1 'tag|a x\n-1 |c 1 2 3\n1 |a x y:3\n-1 2.5 |b q\n");
    same_in_parts("a.vw", (rbt_reading){.bits = 6});
    put_file("a.vw", "1 |a x y:2\n-1 |b z\n1 |a x\n|c 1 2 3\n1 |a x y:3\n|b q\n");
    same_in_parts("a.vw", (rbt_reading){.bits = 6});
    same_in_parts("a.vw", (rbt_reading){.bits = 6, .skip_bad = 2});
}

static void csv_columns_are_the_same_everywhere(void **state)
{
    (void)state;
    put_file("a.csv", "y,t,u\n1,5,6\n0,7,8\n1,2,3\n0,,\n1,9,oak\n0,NA,4\n1,1,1\n");
    same_in_parts("a.csv", (rbt_reading){.bits = 4});
    put_file("a.csv", "yes;1;2\nno;3;4\nyes;5;6\nno;7;8\nmaybe;9;10\nno;11;12\nalways;1;1\n");
    same_in_parts("a.csv", (rbt_reading){.bits = 4});
    same_in_parts("a.csv", (rbt_reading){.weight = "3"});
    put_file("b.csv", "w,y,t,u\r\n2,red,5,6\r\n1,blue,7,8\r\n3,red,2,3\r\n\r\n1,green,4,4\r\n");
    put_file("c.csv", "w,y,t,u\n2,black,5,6\nw,y,t,u\n1,blue,7,8\n");
    same_in_parts("[bc].csv", (rbt_reading){.label = "y", .weight = "w"});
    put_file("c.csv", "y,w,t,u\n2,black,5,6\n1,blue,7,8\n");
    same_in_parts("[bc].csv", (rbt_reading){.label = "y", .weight = "w"});
    same_in_parts("[bc].csv", (rbt_reading){.label = "nobody"});
    same_in_parts("[b].csv", (rbt_reading){.label = "nobody"}); /* a pattern of one file names it */
    put_file("a.csv", "\n\n\n");
    same_in_parts("a.csv", (rbt_reading){0});
    put_file("a.csv", "y,name\n");
    same_in_parts("a.csv", (rbt_reading){0});
}

static void ratings_and_documents_are_the_same_everywhere(void **state)
{
    rbt_data d;
    (void)state;
    put_file("a",
             "ann::film::4\nbob::book::0\nann::book::2.5\neve::disc::1\nbob::film::5\nann::film::3\nzoe::tape::1\n");
    put_file("b", "");
    put_file("c", "eve::tape::2\nyan::cd::1\nann::cd::2\n");
    same_in_parts("a", (rbt_reading){0});
    same_in_parts("[a-c]", (rbt_reading){0});
    assert_int_equal(rbt_data_read("[a-c]", &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "x", NULL), RBT_OK);
    rbt_data_deinit(&d);
    same_in_parts("x", (rbt_reading){0});
    put_file("c", "eve::tape::2\nyan::cd\nann::cd::2\n");
    same_in_parts("[a-c]", (rbt_reading){0});
    same_in_parts("[a-c]", (rbt_reading){.skip_bad = 1});
    put_file("a", "5\n9\n4\n4 9 1\n1 2 3\n2 1 4\n4 4 4\n");
    put_file("c", "1\n12\n1\n1 12 3\n");
    same_in_parts("[a-c]", (rbt_reading){.format = "docword"});
    put_file("c", "1\n12\n2\n1 12 3\n");
    same_in_parts("[a-c]", (rbt_reading){.format = "docword"});
    put_file("c", "1\nx\n2\n1 12 3\n");
    same_in_parts("[a-c]", (rbt_reading){.format = "docword"});
    put_file("a", "1 9:1\n2 4:4 2:2\n0\n3 1:1 2:2 1:1\n1 17:1\n");
    same_in_parts("a", (rbt_reading){.format = "ldac"});
}

static void csv_text_with_quotes_is_not_cut(void **state)
{
    (void)state;
    put_file("a.csv", "y,t\n1,\"one\ntwo\n\nthree\"\n0,\"a,b\"\n1,\"say \"\"no\"\"\"\n0,7\n1,\"\n\n\n\n\n\"\n");
    same_in_parts("a.csv", (rbt_reading){.bits = 5});
    put_file("b.csv",
             "y,t\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,\"2\n3\"\n");
    put_file("c.csv", "y,t\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,23\n");
    same_in_parts("[abc].csv", (rbt_reading){.bits = 5});
    put_file("b.csv",
             "y,t\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,3\n0,4\n1,2\n1,\"2\n3\n");
    same_in_parts("[abc].csv", (rbt_reading){.bits = 5});
    same_in_parts("[abc].csv", (rbt_reading){.bits = 5, .skip_bad = 1});
}

/* Behind the first of all it is a row like others, whoever has it. */
static void a_first_row_is_judged_in_the_first_file_alone(void **state)
{
    static const char rows[] = "1,5,6\n0,7,8\n1,2,3\n0,1,4\n1,9,7\n0,6,4\n";
    static const char *const first[] = {"0,\"o\"pen,1\n1,2,3\n0,3,4\n", "1,\"open\n", "q,q,r\n1,2,3\n0,3,4\n",
                                        "q,r,q\n"};
    (void)state;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        for (size_t header = 0; header < 2; header++) {
            char text[sizeof rows + 8];
            (void)snprintf(text, sizeof text, "%s%s", header ? "y,a,b\n" : "", rows);
            put_file("a.csv", text);
            put_file("b.csv", first[i]);
            put_file("c.csv", first[i]);
            for (uint64_t allowed = 0; allowed < 10; allowed += 3) {
                same_in_parts("[abc].csv", (rbt_reading){.bits = 4, .skip_bad = allowed});
                same_in_parts("b.csv\na.csv", (rbt_reading){.bits = 4, .skip_bad = allowed});
            }
            put_file("a.csv", "\n\n\n\n\n\n\n\n\n\n\n\n");
            same_in_parts("[abc].csv", (rbt_reading){.skip_bad = 9});
        }
    }
    trial t = {.path = "[abc].csv", .reading = {.skip_bad = 2}};
    put_file("a.csv", rows);
    put_file("b.csv", first[0]);
    put_file("c.csv", first[0]);
    host(&t, 3, 0, 1);
    run_crew(3, read_part, &t);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(t.err[r], RBT_OK);
        assert_int_equal(t.part[r].rows, 10);
        assert_int_equal(t.report[r].skipped, 2);
    }
    end(&t, 3);
}

/* -------------------------------------------------------------------------------------------------------- damage */

static void bad_rows_are_told_by_file_and_line_and_counted_over_all(void **state)
{
    (void)state;
    for (size_t bad = 0; bad < 24; bad++) {
        char text[2048] = "";
        for (size_t line = 0; line < 24; line++) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                           line == bad || line == (bad * 7 + 3) % 24 ? "1 2:x\n"
                           : line % 5 == 0                           ? "\n"
                                                                     : "1 2:1 9:4\n");
            if (line == 11) {
                put_file("a", text);
                text[0] = '\0';
            }
        }
        put_file("b", text);
        same_in_parts("[ab]", (rbt_reading){0});
        same_in_parts("[ab]", (rbt_reading){.skip_bad = 1});
        same_in_parts("[ab]", (rbt_reading){.skip_bad = 2});
        same_in_parts("b", (rbt_reading){.skip_bad = 1});
    }
    put_file("a", "x\ny\nz\n");
    same_in_parts("a", (rbt_reading){.skip_bad = 9});
    put_file("a.csv", "1,2\n1,2\n1\n1,3\n0,4\n1,2,3\n");
    same_in_parts("a.csv", (rbt_reading){0});
    same_in_parts("a.csv", (rbt_reading){.skip_bad = 1});
    same_in_parts("a.csv", (rbt_reading){.skip_bad = 2});
}

static void options_without_sense_are_refused_everywhere(void **state)
{
    (void)state;
    put_file("a", libsvm);
    same_in_parts("a", (rbt_reading){.label = "1"});
    same_in_parts("a", (rbt_reading){.format = "cache"});
    same_in_parts("a", (rbt_reading){.format = "idx", .label = "a"});
}

static void a_host_that_does_not_see_a_file_is_named(void **state)
{
    char name[256] = "";
    (void)state;
    assert_int_equal(gethostname(name, sizeof name - 1), 0);
    for (size_t i = 1; i < SIZES; i++) {
        trial t = {.path = "nowhere.svm"};
        host(&t, sizes[i], 1, 1);
        run_crew(sizes[i], read_part, &t);
        for (uint32_t r = 0; r < sizes[i]; r++) {
            assert_int_equal(t.err[r], RBT_E_IO);
            assert_non_null(strstr(t.error[r].text, name));
            assert_non_null(strstr(t.error[r].text, "nowhere.svm: cannot be opened"));
        }
    }
}

/* -------------------------------------------------------------------------------------------- caches, images, gz */

static void cache_of(const char *text, const char *from, const char *to, rbt_reading reading)
{
    rbt_data d;
    put_file(from, text);
    assert_int_equal(rbt_data_read_as(from, &reading, &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, to, NULL), RBT_OK);
    rbt_data_deinit(&d);
}

static void caches_are_cut_by_rows(void **state)
{
    (void)state;
    cache_of(libsvm, "x", "a", (rbt_reading){0});
    same_in_parts("a", (rbt_reading){0});
    cache_of("k,x,y\nred,1,2\nblue,3,4\nred,5,6\ngreen,1,1\n", "a.csv", "b", (rbt_reading){0});
    cache_of("k,w,x,y\nblack,1,2,5\nblue,3,4,6\n", "a.csv", "c", (rbt_reading){.weight = "w"});
    same_in_parts("b", (rbt_reading){0});
    same_in_parts("[bc]", (rbt_reading){0});
    same_in_parts("[abc]", (rbt_reading){0}); /* words and numbers */
    cache_of("1 1:1\n", "x", "d", (rbt_reading){0});
    same_in_parts("d", (rbt_reading){0});
    same_in_parts("[ad]", (rbt_reading){0});
}

static void caches_of_other_features_are_refused(void **state)
{
    static const char *const texts[] = {"k,x,y\n1,1,2\n0,3,4\n1,5,6\n", "k,y,x\n1,1,2\n0,3,4\n"};
    (void)state;
    cache_of(texts[0], "a.csv", "a", (rbt_reading){0});
    cache_of(texts[1], "a.csv", "b", (rbt_reading){0});
    cache_of(texts[0], "a.csv", "c", (rbt_reading){0});
    same_in_parts("[abc]", (rbt_reading){0});
    cache_of("1 0:1\n2 3:1\n", "x", "b",
             (rbt_reading){0}); /* says nothing about columns, and the last about the base */
    cache_of("1 1:1\n2 3:1\n", "x", "d", (rbt_reading){0});
    same_in_parts("[abc]", (rbt_reading){0});
    same_in_parts("[abcd]", (rbt_reading){0});
    for (uint32_t m = 0; m < 2; m++) {
        trial t = {.path = m == 0 ? "[abcd]" : "{rank}"};
        cache_of("1 0:1\n2 3:1\n", "x", "0", (rbt_reading){0});
        cache_of("1 1:1\n2 3:1\n", "x", "1", (rbt_reading){0});
        host(&t, 2, 0, 1);
        run_crew(2, read_part, &t);
        for (uint32_t r = 0; r < 2; r++) {
            assert_int_equal(t.err[r], RBT_E_DATA);
            assert_string_equal(t.error[r].text,
                                m == 0 ? "d: its features count from 1, those of b from 0; make d again with --base 0"
                                       : "1: its features count from 1, those of 0 from 0; make 1 again with --base 0");
        }
    }
}

#define MANY          60000 /* rows of five features: more than one block of each array */
#define MANY_FEATURES 5

static void put_large_cache(const char *path)
{
    rbt_data d;
    assert_int_equal(rbt_data_alloc(MANY, (size_t)MANY * MANY_FEATURES, &d, NULL), RBT_OK);
    for (size_t r = 0; r < MANY; r++) {
        for (size_t i = 0; i < MANY_FEATURES; i++) {
            d.index[d.nnz] = (uint32_t)(i * 100 + (r * 31 + i) % 100);
            d.value[d.nnz++] = (float)(r % 1000 + 1);
        }
        d.label[r] = (float)(r % 3);
        d.start[r + 1] = d.nnz;
    }
    d.rows = MANY;
    d.cols = 500;
    assert_int_equal(rbt_cache_write(&d, path, NULL), RBT_OK);
    rbt_data_deinit(&d);
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 1, f), EOF);
    assert_int_equal(fclose(f), 0);
}

static void a_damaged_cache_is_refused_wherever_the_damage_is(void **state)
{
    (void)state;
    put_large_cache("a");
    same_in_parts("a", (rbt_reading){0});
    FILE *f = fopen("a", "r");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long bytes = ftell(f);
    assert_int_equal(fclose(f), 0);
    for (long at = 60; at < bytes; at += bytes / 23) {
        flip("a", at);
        same_in_parts("a", (rbt_reading){0});
        flip("a", at);
    }
    same_in_parts("a", (rbt_reading){0});
}

static void caches_and_texts_do_not_mix(void **state)
{
    (void)state;
    cache_of(libsvm, "x", "a", (rbt_reading){0});
    put_file("b", libsvm);
    for (size_t i = 0; i < SIZES; i++) {
        trial t = {.path = "[ab]"};
        host(&t, sizes[i], 0, 1);
        run_crew(sizes[i], read_part, &t);
        for (uint32_t r = 0; r < sizes[i]; r++) {
            assert_int_equal(t.err[r], RBT_E_DATA);
            assert_non_null(strstr(t.error[r].text, "[ab]: some of the files are caches, and some are none; give"));
        }
    }
}

/* Wherever it stands among the files, as in one process, whoever has it. */
static void a_model_is_told_apart_by_all(void **state)
{
    (void)state;
    put_file("a", "");
    put_file("b", "\x89RBT\r\n\x1a\n and what a model holds\n");
    same_in_parts("b", (rbt_reading){0});
    same_in_parts("[ab]", (rbt_reading){0});
    put_file("a", libsvm);
    same_in_parts("[ab]", (rbt_reading){0});
    static const char *const paths[] = {"b", "[ab]", "b\na", "a\nb"}; /* wherever it stands */
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        trial t = {.path = paths[i]};
        host(&t, 3, 0, 1);
        run_crew(3, read_part, &t);
        for (uint32_t r = 0; r < 3; r++)
            assert_non_null(strstr(t.error[r].text, "b: is a model of Rubato, not data"));
    }
}

static void images_are_read_by_one(void **state)
{
    const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 9, 0, 0, 0, 255, 1};
    const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 7};
    (void)state;
    put_bytes("images", images, sizeof images);
    put_bytes("labels", labels, sizeof labels);
    same_in_parts("images", (rbt_reading){0});
    put_bytes("labels", labels, sizeof labels - 1);
    same_in_parts("images", (rbt_reading){0});
}

static void compressed_files_are_read_whole_beside_others(void **state)
{
#ifdef RBT_HAVE_ZLIB
    gzFile f = gzopen("b", "wb");
    (void)state;
    assert_non_null(f);
    assert_true(gzputs(f, "5 1:1 2:3\n6 4:4\n7 x\n") > 0);
    assert_int_equal(gzclose(f), Z_OK);
    put_file("a", libsvm);
    put_file("c", libsvm);
    same_in_parts("b", (rbt_reading){.skip_bad = 1});
    same_in_parts("[abc]", (rbt_reading){.skip_bad = 1});
    same_in_parts("[abc]", (rbt_reading){0});
#else
    (void)state;
    skip();
#endif
}

/* -------------------------------------------------------------------------------------------------------- {rank} */

static void every_worker_has_its_own_files(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < 8; m++) {
        char path[16], text[128];
        (void)snprintf(path, sizeof path, "w%u", m);
        (void)snprintf(text, sizeof text, "1 %u:1\n%s-1 2:%u\n", m + 3, m % 3 == 0 ? "1 7:7\n" : "", m + 1);
        put_file(path, text);
    }
    rbt_data whole;
    assert_int_equal(rbt_data_read("w[0-7]", &whole, NULL), RBT_OK);
    for (size_t i = 0; i < SIZES; i++) {
        trial t = {.path = "w{rank}"};
        rbt_read_report none = {0};
        uint32_t size = sizes[i], next = 0;
        for (uint32_t r = 0; r < size; r++) {
            t.first_worker[r] = next;
            next = 8 * (r + 1) / size;
            t.workers_of[r] = next - t.first_worker[r];
        }
        run_crew(size, read_part, &t);
        parts_make(&whole, &none, &t, size);
        for (uint32_t r = 0; r < size; r++)
            for (uint32_t m = 0; m < t.workers_of[r]; m++)
                assert_int_equal(t.part[r].worker_rows[m], (t.first_worker[r] + m) % 3 == 0 ? 3 : 2);
        end(&t, size);
    }
    rbt_data_deinit(&whole);
    put_file("w5", "\n");
    trial t = {.path = "w{rank}"};
    host(&t, 4, 0, 2);
    run_crew(4, read_part, &t);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(t.err[r], RBT_E_DATA);
        assert_non_null(strstr(t.error[r].text, "worker 5"));
    }
}

/* ---------------------------------------------------------------------------------------------------------- plan */

static void every_byte_is_in_one_slice(void **state)
{
    rbt_slicing_file files[] = {{NULL, 10, 10, RBT_FORM_TEXT, 0}, {NULL, 0, 0, RBT_FORM_WHOLE, 0},
                                {NULL, 7, 7, RBT_FORM_WHOLE, 0},  {NULL, 100, 3, RBT_FORM_CACHE, 0},
                                {NULL, 31, 31, RBT_FORM_TEXT, 0}, {NULL, 0, 0, RBT_FORM_WHOLE, 0}};
    const rbt_slicing plan = {files, 6, 6};
    (void)state;
    for (uint32_t n = 1; n < 70; n++) {
        uint64_t at[6] = {0};
        size_t seen[6] = {0}, last = 0;
        for (uint32_t k = 0; k < n; k++) {
            size_t count;
            rbt_slice *s = rbt_slicing_cut(&plan, k, n, &count);
            for (size_t i = 0; i < count; i++) {
                assert_true(s[i].file == last || s[i].file == last + 1 || i == 0);
                assert_true(s[i].file >= last);
                assert_int_equal(s[i].from, at[s[i].file]);
                assert_true(i == 0 || s[i].file == s[i - 1].file + 1);
                last = s[i].file;
                at[last] = s[i].to;
                seen[last]++;
            }
            rbt_free(s);
        }
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(at[i], files[i].units);
            assert_true(seen[i] >= 1);
            assert_true(seen[i] == 1 || files[i].form != RBT_FORM_WHOLE);
        }
    }
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"a",     "b",     "c",      "d",      "x",  "a.vw", "a.csv",
                                        "b.csv", "c.csv", "images", "labels", "w0", "w1",   "w2",
                                        "w3",    "w4",    "w5",     "w6",     "w7", "0",    "1"};
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(libsvm_text_is_cut_anywhere),
        TEST(several_files_are_one),
        TEST(vw_text_knows_its_weights_everywhere),
        TEST(csv_columns_are_the_same_everywhere),
        TEST(ratings_and_documents_are_the_same_everywhere),
        TEST(csv_text_with_quotes_is_not_cut),
        TEST(a_first_row_is_judged_in_the_first_file_alone),
        TEST(bad_rows_are_told_by_file_and_line_and_counted_over_all),
        TEST(options_without_sense_are_refused_everywhere),
        TEST(a_host_that_does_not_see_a_file_is_named),
        TEST(caches_are_cut_by_rows),
        TEST(caches_of_other_features_are_refused),
        TEST(a_damaged_cache_is_refused_wherever_the_damage_is),
        TEST(caches_and_texts_do_not_mix),
        TEST(a_model_is_told_apart_by_all),
        TEST(images_are_read_by_one),
        TEST(compressed_files_are_read_whole_beside_others),
        TEST(every_worker_has_its_own_files),
        cmocka_unit_test(every_byte_is_in_one_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
