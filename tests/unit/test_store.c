/* Proves src/data/store and cache_build: a cache is kept, used, and made again when it no longer fits; made in blocks it is
 * the same, byte for byte; streamed data is the data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/cache.h"
#include "data/cache_build.h"
#include "data/data.h"
#include "data/generate.h"
#include "data/read.h"
#include "data/store.h"

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b", "part-1", "part-2"};
    assert_int_equal(system("rm -f ./*.rbt-cache"), 0); /* their names have numbers of the reading */

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

static rbt_data made(size_t rows, size_t nnz)
{
    rbt_generate_options options = rbt_generate_defaults();
    rbt_data d;
    options.rows = rows;
    options.nnz = nnz;
    assert_int_equal(rbt_generate_lr(&options, &d, NULL), RBT_OK);
    return d;
}

/* The notes of a read, as one text. */
static void take_note(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    char *notes = context;
    (void)level;
    (void)source;
    (void)snprintf(notes + strlen(notes), 2000 - strlen(notes), "%s\n", sentence);
}

static char notes[2000];

static rbt_data stored(const char *path, rbt_store_level level, bool keep, const rbt_reading *reading)
{
    rbt_log log = {.write = take_note, .context = notes, .least = RBT_LOG_INFO};
    const rbt_reading usual = {0};
    rbt_storing storing = {.level = level, .keep = keep, .reading = reading != NULL ? reading : &usual, .log = &log};
    rbt_data d;
    rbt_error error;
    notes[0] = '\0';
    if (rbt_store_read(path, &storing, &d, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return d;
}

static void same_files(const char *a, const char *b)
{
    rbt_input x, y;
    assert_int_equal(rbt_input_open(a, &x, NULL), RBT_OK);
    assert_int_equal(rbt_input_open(b, &y, NULL), RBT_OK);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.bytes, y.bytes, x.n);
    rbt_input_close(&x);
    rbt_input_close(&y);
}

/* ----------------------------------------------------------------------------------------------------- building */

static void a_cache_made_of_blocks_is_the_one_made_at_once(void **state)
{
    (void)state;
    rbt_data d = made(30000, 20), first = d;
    rbt_cache_builder *builder = NULL;
    first.rows = 10000;
    first.nnz = d.start[10000];
    rbt_data rest = {.rows = 20000, .cols = d.cols, .nnz = d.nnz - first.nnz};
    rest.start = rbt_alloc(rest.rows + 1, sizeof *rest.start);
    for (size_t r = 0; r <= rest.rows; r++)
        rest.start[r] = d.start[10000 + r] - first.nnz;
    rest.index = d.index + first.nnz;
    rest.value = d.value + first.nnz;
    rest.label = d.label + first.rows;
    assert_int_equal(rbt_cache_write(&d, "a", NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_create("b", &builder, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_add(builder, &first, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_add(builder, &rest, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_finish(builder, 0, d.origin, 0, NULL), RBT_OK);
    rbt_cache_builder_destroy(builder);
    same_files("a", "b");
    rbt_free(rest.start);
    rbt_data_deinit(&d);
}

/* Words of any length: they are compared in pieces, of which the last may be what differs. */
static void blocks_have_the_same_words_as_labels_however_long(void **state)
{
    (void)state;
    enum { LONG = 600000 };
    char *word = rbt_alloc(LONG + 1, 1), *other, *names[2] = {word, "b"}, *others[2];
    memset(word, 'a', LONG);
    other = rbt_strdup(word);
    other[LONG - 1] = 'c';
    others[0] = other;
    others[1] = "b";
    rbt_data d = made(100, 5);
    rbt_error error;
    rbt_cache_builder *builder = NULL;
    for (size_t r = 0; r < d.rows; r++)
        d.label[r] = (float)(r % 2);
    d.label_names = names;
    d.label_count = 2;
    assert_int_equal(rbt_cache_builder_create("a", &builder, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_add(builder, &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_add(builder, &d, NULL), RBT_OK);
    d.label_names = others;
    assert_int_equal(rbt_cache_builder_add(builder, &d, &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "different words as labels"));
    rbt_cache_builder_destroy(builder);
    d.label_names = NULL;
    d.label_count = 0;
    rbt_data_deinit(&d);
    rbt_free(word);
    rbt_free(other);
}

/* Opens /dev/null in the place of every file that stands next to the target without a name. */
static size_t lose_nameless(int flags)
{
    size_t lost = 0;
    for (int fd = 0; fd < 64; fd++) {
        char link[32], to[1024];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, to, sizeof to - 1);
        to[n > 0 ? n : 0] = '\0';
        if (strstr(to, "a.part-") == NULL)
            continue;
        int null = open("/dev/null", flags | O_CLOEXEC);
        assert_true(null >= 0 && dup2(null, fd) == fd);
        (void)close(null);
        lost++;
    }
    return lost;
}

/* Words that cannot be read are no other words. */
static void words_that_cannot_be_read_back_are_told_as_that(void **state)
{
    (void)state;
    static const struct {
        int flags;
        const char *refusal;
    } known[] = {
        {O_WRONLY, "a: its parts cannot be read back: Bad file descriptor"},
        {O_RDWR, "a: its parts, which have no names while it is made, end too soon: something has cut them; make it "
                 "again"},
    };
    char one[] = "one", two[] = "two", *names[] = {one, two};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_data d = made(100, 5);
        rbt_error error;
        rbt_cache_builder *builder = NULL;
        for (size_t r = 0; r < d.rows; r++)
            d.label[r] = (float)(r % 2);
        d.label_names = names;
        d.label_count = 2;
        assert_int_equal(rbt_cache_builder_create("a", &builder, NULL), RBT_OK);
        assert_int_equal(rbt_cache_builder_add(builder, &d, NULL), RBT_OK);
        assert_true(lose_nameless(known[i].flags) > 0);
        assert_int_equal(rbt_cache_builder_add(builder, &d, &error), RBT_E_IO);
        assert_string_equal(error.text, known[i].refusal);
        rbt_cache_builder_destroy(builder);
        d.label_names = NULL;
        d.label_count = 0;
        rbt_data_deinit(&d);
    }
}

static void a_build_that_is_given_up_or_empty_leaves_nothing(void **state)
{
    (void)state;
    rbt_data d = made(100, 5);
    rbt_error error;
    rbt_cache_builder *builder = NULL;
    assert_int_equal(rbt_cache_builder_create("a", &builder, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_finish(builder, 0, d.origin, 0, &error), RBT_E_USAGE);
    assert_int_equal(rbt_cache_builder_add(builder, &d, NULL), RBT_OK);
    rbt_cache_builder_destroy(builder);
    assert_int_not_equal(access("a", F_OK), 0);
    assert_int_equal(rbt_cache_builder_create("no/such/folder", &builder, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "no/such/folder: cannot be created"));
    rbt_data_deinit(&d);
}

/* What could not be read back is not made. */
static void more_columns_than_a_cache_may_have_are_refused(void **state)
{
    (void)state;
    rbt_data d = made(100, 5);
    rbt_error error;
    rbt_cache_builder *builder = NULL;
    d.cols = RBT_DATA_INDEX_LIMIT;
    assert_int_equal(rbt_cache_builder_create("a", &builder, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_add(builder, &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_builder_finish(builder, 0, d.origin, 0, &error), RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "a: not written: the data has 4294967295 columns"));
    rbt_cache_builder_destroy(builder);
    assert_int_not_equal(access("a", F_OK), 0);
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_E_LIMIT);
    assert_int_not_equal(access("a", F_OK), 0);
    rbt_data_deinit(&d);
}

/* Features before the first index 0 are counted up when the cache is put together. */
static void an_index_0_at_the_end_counts_for_the_beginning(void **state)
{
    (void)state;
    FILE *f = fopen("a", "w");
    assert_non_null(f);
    for (int i = 0; i < 700000; i++) /* more than one piece of a stream */
        (void)fprintf(f, "%d 1:1 %d:2\n", i % 2, 2 + i % 50);
    (void)fprintf(f, "1 0:3 7:1\n");
    assert_int_equal(fclose(f), 0);
    rbt_data whole, d = stored("a", RBT_STORE_DISK, false, NULL);
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    same_data(&d, &whole);
    rbt_data_deinit(&whole);
    rbt_data_deinit(&d);
}

/* ------------------------------------------------------------------------------------------------------ keeping */

static void a_kept_cache_is_used_until_the_source_changes(void **state)
{
    (void)state;
    put_file("a", "1 1:1\n-1 2:2\n");
    rbt_data d = stored("a", RBT_STORE_MEMORY, true, NULL);
    assert_null(d.mapping);
    assert_string_equal(notes, "cache a.rbt-cache: made for the next start\n");
    rbt_data_deinit(&d);
    d = stored("./a", RBT_STORE_MEMORY, true, NULL);
    assert_non_null(d.mapping);
    assert_string_equal(notes, "");
    assert_int_equal(d.nnz, 2);
    rbt_data_deinit(&d);

    put_file("a", "1 1:1\n-1 2:2 3:3\n"); /* another size */
    d = stored("a", RBT_STORE_MEMORY, true, NULL);
    assert_int_equal(d.nnz, 3);
    assert_non_null(strstr(notes, "its source has changed, it is made again"));
    rbt_data_deinit(&d);

    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000, .tv_nsec = 7}};
    assert_int_equal(utimensat(AT_FDCWD, "a", times, 0), 0);
    d = stored("a", RBT_STORE_MEMORY, true, NULL);
    assert_non_null(strstr(notes, "its source has changed"));
    rbt_data_deinit(&d);
    times[1].tv_nsec = 8; /* a nanosecond later */
    assert_int_equal(utimensat(AT_FDCWD, "a", times, 0), 0);
    d = stored("a", RBT_STORE_MEMORY, true, NULL);
    assert_non_null(strstr(notes, "its source has changed"));
    rbt_data_deinit(&d);
}

static void every_way_to_read_keeps_a_cache_of_its_own(void **state)
{
    (void)state;
    static const rbt_reading ways[] = {{0},
                                       {.base = RBT_BASE_0},
                                       {.origin = "base 0\n"},
                                       {.skip_bad = 2},
                                       {.format = "libsvm"},
                                       {.skip_bad = 2, .classes = true}};
    static const rbt_store_level levels[] = {RBT_STORE_MEMORY, RBT_STORE_DISK};
    put_file("a", "1 1:1\n-1 2:2\n");
    for (int again = 0; again < 3; again++)
        for (size_t i = 0; i < 6; i++) {
            rbt_data d = stored("a", levels[i % 2], true, &ways[i]);
            assert_int_equal(d.rows, 2);
            assert_int_equal(d.cols, 2 + (i == 1 || i == 2)); /* from 0 */
            assert_true(again == 0 ? strstr(notes, "made for the next start") != NULL : notes[0] == '\0');
            assert_null(strstr(notes, "again"));
            rbt_data_deinit(&d);
        }
}

static void what_is_read_as_itself_has_one_cache(void **state)
{
    (void)state;
    const rbt_reading same = {.origin = "base 1\n"}, other = {.origin = "base 0\n"};
    put_file("a", "1 1:1\n-1 2:2\n");
    rbt_data d = stored("a", RBT_STORE_MEMORY, true, NULL);
    rbt_data_deinit(&d);
    d = stored("a", RBT_STORE_DISK, true, &same);
    assert_string_equal(notes, "");
    assert_int_equal(d.cols, 2);
    rbt_data_deinit(&d);
    d = stored("a", RBT_STORE_DISK, true, &other);
    assert_non_null(strstr(notes, "made for the next start"));
    assert_int_equal(d.cols, 3);
    rbt_data_deinit(&d);
}

static void labels_of_classes_are_kept_for_all(void **state)
{
    (void)state;
    const rbt_reading classes = {.classes = true}, numbers = {0};
    rbt_storing storing = {.keep = true, .reading = &classes};
    rbt_error error;
    rbt_data d;
    put_file("a", "1 1:1\n-1 2:2\n");
    d = stored("a", RBT_STORE_MEMORY, true, &numbers);
    rbt_data_deinit(&d);
    d = stored("a", RBT_STORE_MEMORY, true, &classes);
    assert_non_null(strstr(notes, "cache a.rbt-cache: was made with other options, it is made again\n"));
    rbt_data_deinit(&d);
    for (int i = 0; i < 4; i++) {
        d = stored("a", RBT_STORE_MEMORY, true, i % 2 == 0 ? &numbers : &classes);
        assert_string_equal(notes, "");
        rbt_data_deinit(&d);
    }
    put_file("a", "16777217 1:1\n-1 2:2\n"); /* a number, and no class */
    d = stored("a", RBT_STORE_MEMORY, true, &numbers);
    rbt_data_deinit(&d);
    assert_int_equal(rbt_store_read("a", &storing, &d, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a:1: the label '16777217'"));
}

static void a_kept_cache_knows_how_many_rows_were_left_out(void **state)
{
    (void)state;
    static const rbt_store_level levels[] = {RBT_STORE_MEMORY, RBT_STORE_DISK, RBT_STORE_BOTH};
    rbt_read_report report;
    char note[RBT_READ_NOTE_ROOM];
    put_file("a", "1 1:1\nbad\n-1 2:2\nbad\n");
    for (size_t i = 0; i < 3; i++) {
        const rbt_reading reading = {.skip_bad = 3 + i, .report = &report};
        for (int again = 0; again < 3; again++) {
            report = (rbt_read_report){0};
            rbt_data d = stored("a", levels[i], true, &reading);
            assert_int_equal(d.rows, 2);
            assert_int_equal(report.skipped, 2);
            assert_true(rbt_read_note(&report, note));
            if (again > 0) {
                assert_string_equal(notes, "");
                assert_string_equal(note, "2 bad rows were left out when the kept cache was made");
            }
            rbt_data_deinit(&d);
        }
    }
    const rbt_reading any = {.skip_bad =
                                 UINT64_MAX}; /* a number of another source is not taken for one of many bad rows */
    for (int size = 1; size < 9; size++) {
        char text[32];
        (void)snprintf(text, sizeof text, "1 1:1\n1 %d:1\n%.*s\n", size + 1, size, "bad bad bad");
        put_file("a", text);
        rbt_data d = stored("a", RBT_STORE_MEMORY, true, &any);
        assert_true(size == 1 || strstr(notes, "its source has changed, it is made again") != NULL);
        assert_int_equal(d.cols, size + 1);
        rbt_data_deinit(&d);
    }
}

static void a_damaged_cache_is_made_again(void **state)
{
    (void)state;
    static const rbt_store_level levels[] = {RBT_STORE_MEMORY, RBT_STORE_DISK, RBT_STORE_BOTH};
    put_file("a", "1 1:1\n-1 2:2\n");
    for (size_t i = 0; i < 3; i++) {
        rbt_data d = stored("a", levels[i], true, NULL);
        rbt_data_deinit(&d);
        int fd = open("a.rbt-cache", O_WRONLY);
        assert_int_equal(pwrite(fd, "x", 1, 130), 1);
        close(fd);
        d = stored("a", levels[i], true, NULL);
        assert_non_null(strstr(notes, "cannot be used, it is made again: a.rbt-cache: the cache is damaged"));
        assert_int_equal(d.nnz, 2);
        rbt_data_deinit(&d);
        d = stored("a", levels[i], true, NULL);
        assert_string_equal(notes, "");
        rbt_data_deinit(&d);
        assert_int_equal(truncate("a.rbt-cache", 130), 0);
        d = stored("a", levels[i], true, NULL);
        assert_non_null(
            strstr(notes, "cannot be used, it is made again: a.rbt-cache: the cache is damaged: it has 130 bytes"));
        assert_null(strstr(notes, "rubato convert"));
        rbt_data_deinit(&d);
        put_file("a.rbt-cache", "short");
        d = stored("a", levels[i], true, NULL);
        assert_non_null(strstr(notes, "it is made again: a.rbt-cache: the cache is damaged: its first bytes"));
        rbt_data_deinit(&d);
    }
}

static void what_cannot_be_kept_costs_a_note(void **state)
{
    (void)state;
    put_file("a", "1 1:1\n-1 2:2\n");
    assert_int_equal(mkdir("a.rbt-cache", 0700), 0);
    rbt_data d = stored("a", RBT_STORE_MEMORY, true, NULL);
    assert_int_equal(d.rows, 2);
    assert_non_null(strstr(notes, "cache a.rbt-cache: not kept: "));
    rbt_data_deinit(&d);
    assert_int_equal(rmdir("a.rbt-cache"), 0);
}

static void all_levels_have_the_same_rows(void **state)
{
    (void)state;
    rbt_data d = made(20000, 30), whole;
    assert_int_equal(rbt_data_write_libsvm(&d, "a", NULL), RBT_OK);
    assert_int_equal(rbt_data_read("a", &whole, NULL), RBT_OK);
    for (int keep = 0; keep < 2; keep++) {
        for (int again = 0; again < 2; again++) {
            rbt_data disk = stored("a", RBT_STORE_DISK, keep, NULL);
            assert_true(disk.streamed);
            for (size_t row = 0; row < disk.rows; row += 1000)
                rbt_data_release_rows(&disk, row, 1000);
            same_data(&disk, &whole);
            rbt_data_deinit(&disk);
            rbt_data both = stored("a", RBT_STORE_BOTH, keep, NULL);
            assert_null(both.mapping);
            same_data(&both, &whole);
            rbt_data_deinit(&both);
        }
    }
    /* a cache as the source is used as it is */
    assert_int_equal(rbt_cache_write(&d, "b", NULL), RBT_OK);
    rbt_data disk = stored("b", RBT_STORE_DISK, true, NULL);
    assert_true(disk.streamed);
    same_data(&disk, &whole);
    assert_int_equal(rbt_data_own(&disk, NULL), RBT_E_UNSUPPORTED);
    rbt_data_deinit(&disk);
    rbt_data_deinit(&whole);
    rbt_data_deinit(&d);
}

static void weights_and_words_are_kept(void **state)
{
    (void)state;
    const rbt_reading reading = {.format = "csv", .weight = "w"};
    rbt_data whole;
    put_file("a", "label,w,f\nyes,1,2\nno,3,4\nmaybe,2,6\n");
    assert_int_equal(rbt_data_read_as("a", &reading, &whole, NULL), RBT_OK);
    for (int i = 0; i < 4; i++) {
        rbt_data d = stored("a", i < 2 ? RBT_STORE_DISK : RBT_STORE_MEMORY, i % 2 == 1, &reading);
        same_data(&d, &whole);
        assert_int_equal(d.label_count, 3);
        assert_string_equal(d.label_names[0], "maybe");
        assert_memory_equal(d.weight, whole.weight, 3 * sizeof *d.weight);
        rbt_data_deinit(&d);
    }
    rbt_data_deinit(&whole);
    put_file("a", "1 |a x\n-1 2.5 |a y\n"); /* weights that begin with a later row */
    rbt_data d = stored("a", RBT_STORE_DISK, false, NULL);
    assert_true(d.weight[0] == 1 && d.weight[1] == 2.5F);
    rbt_data_deinit(&d);
}

static void the_cache_of_a_pattern_is_not_part_of_it(void **state)
{
    (void)state;
    char now[100] = "";
    put_file("part-1", "1 1:1\n");
    put_file("part-2", "-1 2:2\n");
    for (int i = 0; i < 3; i++) {
        rbt_data d = stored("part-*", i == 2 ? RBT_STORE_DISK : RBT_STORE_MEMORY, true, NULL);
        assert_int_equal(d.rows, 2);
        if (i == 0) { /* its name is in the note */
            assert_int_equal(sscanf(notes, "cache %99[^:]", now), 1);
            assert_int_equal(access(now, F_OK), 0);
        }
        assert_true(i == 0 || d.mapping != NULL);
        rbt_data_deinit(&d);
    }
    rbt_data d = stored("*", RBT_STORE_MEMORY, false, NULL);
    assert_int_equal(d.rows, 2);
    rbt_data_deinit(&d);
    assert_int_equal(unlink(now), 0);
}

static void a_folder_that_cannot_be_written_to_has_its_caches_elsewhere(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* may write everywhere */
    put_file("a", "1 1:1\n-1 2:2\n");
    char *here = realpath(".", NULL);
    assert_int_equal(setenv("XDG_CACHE_HOME", here, 1), 0);
    assert_int_equal(mkdir("rubato", 0700), 0);
    assert_int_equal(chmod(".", 0500), 0);
    for (int i = 0; i < 2; i++) {
        rbt_data d = stored("a", RBT_STORE_MEMORY, true, NULL);
        assert_true((d.mapping != NULL) == (i == 1));
        rbt_data_deinit(&d);
    }
    assert_int_equal(chmod(".", 0700), 0);
    assert_int_equal(system("rm -r rubato"), 0);
    free(here);
}

static void a_pipe_can_be_streamed_but_not_kept(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    rbt_error error;
    rbt_data d;
    char *here = realpath(".", NULL);
    assert_int_equal(setenv("XDG_CACHE_HOME", here, 1), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "1 1:1\n-1 2:2\n", 13), 13);
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(rbt_store_read(path, &(rbt_storing){.keep = true, .reading = &(rbt_reading){0}}, &d, &error),
                     RBT_E_USAGE);
    assert_non_null(strstr(error.text, "is no plain file"));
    d = stored(path, RBT_STORE_DISK, false, NULL);
    assert_true(d.streamed);
    assert_int_equal(d.rows, 2);
    rbt_data_deinit(&d);
    close(ends[0]);
    assert_int_equal(rmdir("rubato"), 0); /* empty: what was there had no name */
    free(here);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_cache_made_of_blocks_is_the_one_made_at_once),
        IN_FOLDER(blocks_have_the_same_words_as_labels_however_long),
        IN_FOLDER(words_that_cannot_be_read_back_are_told_as_that),
        IN_FOLDER(a_build_that_is_given_up_or_empty_leaves_nothing),
        IN_FOLDER(more_columns_than_a_cache_may_have_are_refused),
        IN_FOLDER(an_index_0_at_the_end_counts_for_the_beginning),
        IN_FOLDER(a_kept_cache_is_used_until_the_source_changes),
        IN_FOLDER(every_way_to_read_keeps_a_cache_of_its_own),
        IN_FOLDER(what_is_read_as_itself_has_one_cache),
        IN_FOLDER(labels_of_classes_are_kept_for_all),
        IN_FOLDER(a_kept_cache_knows_how_many_rows_were_left_out),
        IN_FOLDER(a_damaged_cache_is_made_again),
        IN_FOLDER(what_cannot_be_kept_costs_a_note),
        IN_FOLDER(all_levels_have_the_same_rows),
        IN_FOLDER(weights_and_words_are_kept),
        IN_FOLDER(the_cache_of_a_pattern_is_not_part_of_it),
        IN_FOLDER(a_folder_that_cannot_be_written_to_has_its_caches_elsewhere),
        IN_FOLDER(a_pipe_can_be_streamed_but_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
