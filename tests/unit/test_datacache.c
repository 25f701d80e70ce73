/* Proves src/data/cache: what is written is read back mapped, any damage and any cut is detected, and what a correct
 * checksum does not vouch for is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/csv.h"
#include "data/data.h"
#include "data/generate.h"

static const char small[] = "+1 1:0.5 3:-2\n-1\n3.5 2:1e-30 4:7 9:1\n";

static rbt_data parsed(const char *text)
{
    rbt_data data;
    rbt_error error;
    if (rbt_data_parse_libsvm(text, strlen(text), "mem", &data, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return data;
}

static void write_cache(const rbt_data *data, const char *path)
{
    rbt_error error;
    if (rbt_cache_write(data, path, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

/* A file's bytes in memory of exactly that size. */
static unsigned char *bytes_of(const char *path, size_t *n)
{
    rbt_input input;
    assert_int_equal(rbt_input_open(path, &input, NULL), RBT_OK);
    unsigned char *bytes = rbt_try_alloc_raw(input.n, 1);
    assert_non_null(bytes);
    memcpy(bytes, input.bytes, input.n);
    *n = input.n;
    rbt_input_close(&input);
    return bytes;
}

static rbt_cache_names names; /* of the last cache decoded */

static rbt_err decode(const void *bytes, size_t n, rbt_data *view, rbt_error *error)
{
    return rbt_cache_decode(bytes, n, "mem", view, &names, error);
}

/* Data with weights, and with words as labels. */
static rbt_data rich(void)
{
    static const char text[] = "kind,w,x,y\nblue,2,1,\nred,0.5,,-3\ngreen,1,0.25,7\nred,3,,\n";
    const rbt_text mem = {.name = "mem", .bytes = text, .n = strlen(text)};
    rbt_data data;
    rbt_error error;
    if (rbt_csv_parse(&(rbt_source){&mem, 1, "mem", rbt_cut_default(), NULL}, &(rbt_reading){.weight = "w"}, &data,
                      &error) != RBT_OK)
        fail_msg("%s", error.text);
    return data;
}

static int leave_folder(void **state)
{
    static const char *const files[] = {"a", "a2"};

    return remove_folder(state, files, sizeof files / sizeof files[0]);
}

/* ------------------------------------------------------------------------------------------------------ whole */

static void a_cache_reads_back_mapped_as_the_same_data(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
    write_cache(&d, "a");
    assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
    assert_non_null(back.mapping);
    same_data(&d, &back);
    write_cache(&back, "a"); /* over the file that is mapped */
    same_data(&d, &back);
    rbt_data_deinit(&back);
    assert_null(back.mapping);
    rbt_data_deinit(&d);
}

static uint64_t checksum_in(const unsigned char *bytes)
{
    uint64_t sum;
    memcpy(&sum, bytes + 56, sizeof sum);
    return sum;
}

/* As the format tells it, of data with neither weights nor names of labels. */
static uint64_t checksum_by_blocks(const unsigned char *bytes, const rbt_data *d)
{
    const size_t origin = d->origin != NULL ? strlen(d->origin) + 1 : 0, block = 262144;
    const size_t sizes[] = {8 * (d->rows + 1), 4 * d->nnz, 4 * d->nnz, 4 * d->rows, 0, origin};
    uint64_t hashes[256];
    size_t count = 0;
    const unsigned char *at = bytes + 64;
    for (size_t array = 0; array < sizeof sizes / sizeof sizes[0]; array++) {
        for (size_t from = 0; from < sizes[array]; from += block) {
            size_t left = sizes[array] - from;
            assert_true(count < 256);
            hashes[count++] = rbt_hash(at + from, left < block ? left : block, 0);
        }
        at += (sizes[array] + 63) / 64 * 64;
    }
    return rbt_hash(hashes, count * sizeof hashes[0], rbt_hash(bytes, 56, 0));
}

static void a_large_cache_of_many_blocks_reads_back(void **state)
{
    (void)state;
    rbt_generate_options options = rbt_generate_defaults();
    options.rows = 20000;
    options.cols = 5000;
    options.nnz = 40;
    rbt_data d, back;
    assert_int_equal(rbt_generate_lr(&options, &d, NULL), RBT_OK);
    assert_true(d.nnz * sizeof *d.index > 2 * RBT_CACHE_BLOCK_BYTES);
    write_cache(&d, "a");
    assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);

    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    assert_int_equal(checksum_in(bytes), checksum_by_blocks(bytes, &d));

    /* Damage in the middle and at the end of the large arrays. */
    rbt_data view;
    for (size_t at = 64; at < n; at += n / 37) {
        bytes[at] ^= 1;
        assert_int_equal(decode(bytes, n, &view, NULL), RBT_E_DATA);
        bytes[at] ^= 1;
    }
    assert_int_equal(decode(bytes, n, &view, NULL), RBT_OK);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void rows_without_features_and_a_pipe_work(void **state)
{
    (void)state;
    rbt_data d = parsed("1\n-1\n"), back;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    int ends[2];
    char path[64];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, n), n);
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(rbt_data_read(path, &back, NULL), RBT_OK);
    assert_null(back.mapping); /* a copy: a pipe cannot be mapped */
    same_data(&d, &back);
    close(ends[0]);
    rbt_free(bytes);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void several_caches_are_one_data_set_and_do_not_mix_with_text(void **state)
{
    (void)state;
    rbt_data one = parsed("1 1:1\n2 7:2\n"), two = parsed("3 1:4 3:3\n"), both = parsed("1 1:1\n2 7:2\n3 1:4 3:3\n"),
             back;
    rbt_error error;
    write_cache(&one, "a");
    write_cache(&two, "a2");
    assert_int_equal(rbt_data_read("a*", &back, NULL), RBT_OK);
    same_data(&both, &back);
    rbt_data_deinit(&back);
    put_bytes("a2", "1 1:1\n", 6);
    assert_int_equal(rbt_data_read("a*", &back, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "a*: a is a cache, and a2 is none; give"));
    rbt_data_deinit(&one);
    rbt_data_deinit(&two);
    rbt_data_deinit(&both);
}

static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    rbt_data d = parsed("-1 2:0.5\n");
    rbt_free(d.origin);
    d.origin = NULL;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    static const unsigned char header[56] = {0x89, 'R', 'B', 'D', '\r', '\n', 0x1a, '\n', 3, 0, 0, 0, 0, 0,
                                             0,    0,   1,   0,   0,    0,    0,    0,    0, 0, 2, 0, 0, 0,
                                             0,    0,   0,   0,   1,    0,    0,    0,    0, 0, 0, 0};
    static const unsigned char sum[8] = {0x92, 0xa2, 0x60, 0x94, 0xcd, 0xdb, 0x90, 0x87};
    assert_int_equal(n, 5 * 64);
    assert_memory_equal(bytes, header, sizeof header);
    assert_memory_equal(bytes + 56, sum, sizeof sum);
    assert_int_equal(bytes[64 + 8], 1);                  /* start: 0, 1 */
    assert_int_equal(bytes[128], 1);                     /* index: 1 */
    assert_memory_equal(bytes + 192, "\0\0\0\x3f", 4);   /* value: 0.5 */
    assert_memory_equal(bytes + 256, "\0\0\x80\xbf", 4); /* label: -1 */
    rbt_free(bytes);
    d.origin = rbt_strdup("base 1\n");
    write_cache(&d, "a");
    bytes = bytes_of("a", &n);
    static const unsigned char sum_then[8] = {0xbf, 0x4c, 0x00, 0xd2, 0xba, 0xea, 0x6b, 0xad};
    assert_int_equal(n, 6 * 64);
    assert_int_equal(bytes[40], 16); /* the flag of the origin, which is behind the names */
    assert_int_equal(bytes[48], 8);
    assert_memory_equal(bytes + 56, sum_then, sizeof sum_then);
    assert_memory_equal(bytes + 320, "base 1\n", 8);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

/* ----------------------------------------------------------------------------------------------------- damaged */

static void every_bit_of(rbt_data d)
{
    rbt_data back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            assert_int_not_equal(decode(bytes, n, &back, &error), RBT_OK);
            assert_int_equal(strncmp(error.text, "mem: ", 5), 0);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    /* A first byte that is another one makes it a bad text file, never an accepted one. */
    for (size_t i = 0; i < 8; i++) {
        for (int other = 1; other < 256; other++) {
            bytes[i] ^= (unsigned char)other;
            put_bytes("a", bytes, n);
            if (rbt_data_read("a", &back, &error) == RBT_OK)
                fail_msg("byte %zu as %d was accepted", i, bytes[i]);
            bytes[i] ^= (unsigned char)other;
        }
    }
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void every_bit_turned_over_is_detected(void **state)
{
    (void)state;
    every_bit_of(parsed(small));
    every_bit_of(rich());
}

static void the_number_of_a_source_is_kept_and_guarded(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
    size_t n;
    assert_int_equal(rbt_cache_write_of(&d, 0x1122334455667788, "a", NULL), RBT_OK);
    assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    unsigned char *bytes = bytes_of("a", &n);
    assert_true(rbt_cache_source(bytes, bytes + n - 64) == 0x1122334455667788);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 2; /* the flag among them */
        assert_int_not_equal(decode(bytes, n, &back, NULL), RBT_OK);
        bytes[i] ^= 2;
    }
    assert_int_equal(decode(bytes, n, &back, NULL), RBT_OK);
    rbt_free(bytes);
    write_cache(&d, "a");
    bytes = bytes_of("a", &n);
    assert_true(rbt_cache_source(bytes, bytes + n - 64) == 0);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void every_cut_of(rbt_data d)
{
    rbt_data back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    for (size_t cut = 0; cut < n; cut++) {
        put_bytes("a", bytes, cut);
        assert_int_equal(rbt_data_read("a", &back, &error), RBT_E_DATA);
    }
    unsigned char *longer = rbt_alloc(n + 64, 1);
    memcpy(longer, bytes, n);
    assert_int_equal(decode(longer, n + 1, &back, &error), RBT_E_DATA);
    assert_int_equal(decode(longer, n + 64, &back, &error), RBT_E_DATA);
    rbt_free(longer);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void every_cut_and_every_addition_is_detected(void **state)
{
    (void)state;
    every_cut_of(parsed(small));
    every_cut_of(rich());
}

static void another_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    for (unsigned char version = 2; version <= 4; version += 2) {
        bytes[8] = version;
        assert_int_equal(decode(bytes, n, &back, &error), RBT_E_UNSUPPORTED);
        assert_non_null(strstr(error.text, version == 2 ? "version 2," : "version 4,"));
        assert_non_null(strstr(error.text, "rubato convert"));
    }
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

/* Breaks one rule in a copy, behind a right checksum; `where` is one of the offsets below. */
static void broken_in(rbt_data d, size_t where, const void *with, size_t with_bytes)
{
    rbt_data back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    assert_int_equal(decode(bytes, n, &back, NULL), RBT_OK);
    memcpy(bytes + where, with, with_bytes);
    uint64_t sum = rbt_cache_checksum(bytes, &back, names, NULL); /* the view sees what was changed */
    memcpy(bytes + 56, &sum, sizeof sum);
    if (decode(bytes, n, &back, &error) != RBT_E_DATA)
        fail_msg("a change at byte %zu was accepted", where);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void broken(size_t where, const void *with, size_t with_bytes)
{
    broken_in(parsed(small), where, with, with_bytes);
}

static void rules_of_weights_and_names_broken_behind_a_right_checksum_are_refused(void **state)
{
    (void)state;
    enum { FLAGS = 40, NAMES_COUNT = 44, LABEL = 256, WEIGHT = 320, NAMES = 384 };
    const float nan = NAN, infinite = INFINITY, zero = 0, minus = -1, three = 3, half = 0.5F;
    broken_in(rich(), FLAGS, &(uint32_t){3}, 4);
    broken_in(rich(), NAMES_COUNT, &(uint32_t){2}, 4);
    broken_in(rich(), NAMES_COUNT, &(uint32_t){4}, 4);
    broken_in(rich(), LABEL, &minus, 4);
    broken_in(rich(), LABEL, &three, 4); /* there are three names: 0, 1, 2 */
    broken_in(rich(), LABEL, &half, 4);
    broken_in(rich(), LABEL, &nan, 4);
    broken_in(rich(), WEIGHT, &nan, 4);
    broken_in(rich(), WEIGHT, &infinite, 4);
    broken_in(rich(), WEIGHT + 4, &zero, 4);
    broken_in(rich(), WEIGHT + 8, &minus, 4);
    broken_in(rich(), NAMES, "z", 1);      /* does not ascend */
    broken_in(rich(), NAMES, "bl\0e", 4);  /* one more */
    broken_in(rich(), NAMES + 14, "x", 1); /* the last one does not end */
}

/* What is in the place of the origin behind a right checksum need not be one. */
static void an_origin_that_is_none_is_refused(void **state)
{
    (void)state;
    broken_in(parsed("-1 2:0.5\n"), 320, "best", 4);
    broken_in(parsed("-1 2:0.5\n"), 327, "x", 1);
    broken_in(parsed("-1 2:0.5\n"), 40, &(uint32_t){0}, 4);
    broken_in(parsed("-1 2:0.5\n"), 40, &(uint32_t){16 + 4}, 4);
    broken_in(rich(), 40, &(uint32_t){1}, 4);
}

static void weights_and_names_of_labels_are_kept(void **state)
{
    (void)state;
    rbt_data d = rich(), back;
    static const char *const expected[] = {"blue", "green", "red"};
    write_cache(&d, "a");
    write_cache(&d, "a2");
    assert_int_equal(rbt_data_read("a", &back, NULL), RBT_OK);
    assert_non_null(back.mapping);
    same_data(&d, &back);
    assert_memory_equal(back.weight, d.weight, d.rows * sizeof *d.weight);
    assert_int_equal(back.label_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(back.label_names[i], expected[i]);
    rbt_data_deinit(&back);
    assert_int_equal(rbt_data_read("a*", &back, NULL), RBT_OK);
    assert_int_equal(back.rows, 2 * d.rows);
    assert_int_equal(back.label_count, 3);
    assert_true(back.weight[4] == 2 && back.label[7] == 2);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void caches_with_different_names_are_joined_by_name(void **state)
{
    (void)state;
    rbt_data one = rich(), two = rich(), numbers = parsed(small), back;
    rbt_error error;
    rbt_free(two.label_names[0]);
    two.label_names[0] = rbt_strdup("azure");
    write_cache(&one, "a");
    write_cache(&two, "a2");
    assert_int_equal(rbt_data_read("a*", &back, NULL), RBT_OK);
    assert_int_equal(back.label_count, 4); /* azure, blue, green, red */
    assert_true(back.label[0] == 1 && back.label[1] == 3 && back.label[4] == 0 && back.label[6] == 2);
    rbt_data_deinit(&back);
    write_cache(&numbers, "a2");
    assert_int_equal(rbt_data_read("a*", &back, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "words as labels"));
    rbt_data_deinit(&one);
    rbt_data_deinit(&two);
    rbt_data_deinit(&numbers);
}

static void rules_broken_behind_a_right_checksum_are_refused(void **state)
{
    (void)state;
    enum { COLS = 24, RESERVED = 40, START = 64, INDEX = 128, VALUE = 192, LABEL = 256 };
    const float nan = NAN, infinite = -INFINITY, zero = -0.0F;
    broken(COLS, &(uint64_t){8}, 8); /* index 8 is used */
    broken(COLS, &(uint64_t){UINT32_MAX}, 8);
    broken(RESERVED, &(uint64_t){1}, 8);
    broken(START, &(uint64_t){1}, 8);
    broken(START + 8, &(uint64_t){6}, 8);
    broken(START + 8, &(uint64_t){3}, 8); /* above the next */
    broken(START + 8, &(uint64_t){UINT64_MAX}, 8);
    broken(START + 24, &(uint64_t){4}, 8); /* the last feature belongs to no row */
    broken(INDEX + 4, &(uint32_t){0}, 4);  /* twice */
    broken(INDEX, &(uint32_t){3}, 4);      /* descends */
    broken(INDEX + 16, &(uint32_t){9}, 4); /* not below cols */
    broken(VALUE, &nan, 4);
    broken(VALUE + 16, &infinite, 4);
    broken(VALUE + 8, &zero, 4);
    broken(LABEL, &nan, 4);
    broken(LABEL + 8, &infinite, 4);
}

/* Rows that end where blocks do: what is looked at with one block and what with the next. */
static void rules_broken_at_the_ends_of_blocks_are_refused(void **state)
{
    (void)state;
    enum { EACH = 64, ROWS = 4096, BLOCK = 65536 /* indices */ };
    static const size_t places[] = {0, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, (size_t)EACH * ROWS - 1};
    rbt_data d, view;
    size_t n;
    assert_int_equal(rbt_data_alloc(ROWS, (size_t)EACH * ROWS, &d, NULL), RBT_OK);
    d.rows = ROWS;
    d.cols = EACH;
    d.nnz = (size_t)EACH * ROWS;
    for (size_t i = 0; i < d.nnz; i++) {
        d.index[i] = i % EACH;
        d.value[i] = 1;
        d.start[i / EACH + 1] = i + 1;
        d.label[i / EACH] = 1;
    }
    d.start[0] = 0;
    write_cache(&d, "a");
    unsigned char *bytes = bytes_of("a", &n);
    assert_int_equal(rbt_cache_decode(bytes, n, "a", &view, &names, NULL), RBT_OK);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint32_t *index = view.index + places[i], before = *index;
        const uint32_t wrong[] = {EACH, UINT32_MAX, places[i] % EACH == 0 ? 1 : EACH - 2};
        for (size_t k = 0; k < 3; k++) {
            *index = wrong[k];
            uint64_t sum = rbt_cache_checksum(bytes, &view, names, NULL);
            memcpy(bytes + 56, &sum, sizeof sum);
            rbt_data back;
            if (decode(bytes, n, &back, NULL) != RBT_E_DATA)
                fail_msg("index %zu may be %u", places[i], wrong[k]);
        }
        *index = before;
    }
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void ratings_and_documents_stay_what_they_are(void **state)
{
    (void)state;
    rbt_data d, back;
    rbt_error error;
    put_file("a2", "ann::film::4\nbob::book::0\nann::book::2.5\n");
    assert_int_equal(rbt_data_read("a2", &d, &error), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_OK);
    assert_int_equal(rbt_data_read("a", &back, &error), RBT_OK);
    assert_non_null(back.mapping);
    same_data(&d, &back); /* the rating 0 too */
    assert_int_equal(rbt_data_own(&back, &error), RBT_OK);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    rbt_ids *users = d.row_names;
    d.row_names = NULL;
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_E_USAGE);
    d.row_names = d.col_names; /* as many as there are rows */
    d.col_names = users;
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_OK);
    rbt_data_deinit(&d);

    /* behind a right checksum: a user twice, and one too few */
    unsigned char bytes[512];
    FILE *f = fopen("a", "r");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    _Alignas(64) unsigned char copy[512];
    for (int i = 0; i < 2; i++) {
        rbt_data view;
        memcpy(copy, bytes, n);
        assert_int_equal(rbt_cache_decode(copy, n, "a", &view, &names, &error), RBT_OK);
        assert_int_equal(names.bytes, 18);
        memcpy((char *)(uintptr_t)names.at, i == 0 ? "book\0book\0" : "film\0boo\0\0", 10);
        uint64_t sum = rbt_cache_checksum(copy, &view, names, NULL);
        memcpy(copy + 56, &sum, sizeof sum);
        put_bytes("a", copy, n);
        assert_int_equal(rbt_data_read("a", &back, &error), RBT_E_DATA);
        assert_non_null(strstr(error.text, i == 0 ? "a user or an item is in it twice" : "breaks the rules"));
    }

    put_file("a2", "2\n3\n2\n1 2 3\n2 3 4\n");
    assert_int_equal(rbt_data_read("a2", &d, &error), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_OK);
    assert_int_equal(rbt_data_read("a", &back, &error), RBT_OK);
    assert_int_equal(back.content, RBT_CONTENT_DOCS);
    same_data(&d, &back);
    rbt_data_deinit(&back);
    rbt_data_deinit(&d);
}

static void data_that_breaks_the_rules_is_not_written(void **state)
{
    (void)state;
    rbt_data d = parsed(small), none = {0};
    rbt_error error;
    assert_int_equal(rbt_cache_write(&none, "a", &error), RBT_E_USAGE);
    d.value[1] = NAN;
    assert_int_equal(rbt_cache_write(&d, "a", &error), RBT_E_DATA);
    assert_int_not_equal(access("a", F_OK), 0);
    d.value[1] = 1;
    assert_int_equal(rbt_cache_write(&d, "no/such/folder", &error), RBT_E_IO);
    assert_int_equal(rbt_cache_write(&d, "/dev/full", &error), RBT_E_IO);
    rbt_data_deinit(&d);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_cache_reads_back_mapped_as_the_same_data),
        IN_FOLDER(a_large_cache_of_many_blocks_reads_back),
        IN_FOLDER(rows_without_features_and_a_pipe_work),
        IN_FOLDER(several_caches_are_one_data_set_and_do_not_mix_with_text),
        IN_FOLDER(the_bytes_are_those_of_the_format),
        IN_FOLDER(an_origin_that_is_none_is_refused),
        IN_FOLDER(every_bit_turned_over_is_detected),
        IN_FOLDER(the_number_of_a_source_is_kept_and_guarded),
        IN_FOLDER(every_cut_and_every_addition_is_detected),
        IN_FOLDER(another_version_is_told_apart_from_damage),
        IN_FOLDER(weights_and_names_of_labels_are_kept),
        IN_FOLDER(caches_with_different_names_are_joined_by_name),
        IN_FOLDER(rules_of_weights_and_names_broken_behind_a_right_checksum_are_refused),
        IN_FOLDER(rules_broken_at_the_ends_of_blocks_are_refused),
        IN_FOLDER(rules_broken_behind_a_right_checksum_are_refused),
        IN_FOLDER(ratings_and_documents_stay_what_they_are),
        IN_FOLDER(data_that_breaks_the_rules_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
