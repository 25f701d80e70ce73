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

#include "base/mem.h"
#include "data/cache.h"
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

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "a2"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
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

    /* Damage in the middle and at the end of the large arrays. */
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    rbt_data view;
    for (size_t at = 64; at < n; at += n / 37) {
        bytes[at] ^= 1;
        assert_int_equal(rbt_cache_decode(bytes, n, "mem", &view, NULL), RBT_E_DATA);
        bytes[at] ^= 1;
    }
    assert_int_equal(rbt_cache_decode(bytes, n, "mem", &view, NULL), RBT_OK);
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
    assert_non_null(strstr(error.text, "a*: matches a, which is a cache, and a2, which is not"));
    rbt_data_deinit(&one);
    rbt_data_deinit(&two);
    rbt_data_deinit(&both);
}

static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    rbt_data d = parsed("-1 2:0.5\n");
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    static const unsigned char header[56] = {0x89, 'R', 'B', 'D', '\r', '\n', 0x1a, '\n', 1, 0, 0, 0, 0, 0,
                                             0,    0,   1,   0,   0,    0,    0,    0,    0, 0, 2, 0, 0, 0,
                                             0,    0,   0,   0,   1,    0,    0,    0,    0, 0, 0, 0};
    static const unsigned char sum[8] = {0xc1, 0x9c, 0x8a, 0x9b, 0x12, 0x14, 0x9d, 0x42};
    assert_int_equal(n, 5 * 64);
    assert_memory_equal(bytes, header, sizeof header);
    assert_memory_equal(bytes + 56, sum, sizeof sum);
    assert_int_equal(bytes[64 + 8], 1);                  /* start: 0, 1 */
    assert_int_equal(bytes[128], 1);                     /* index: 1 */
    assert_memory_equal(bytes + 192, "\0\0\0\x3f", 4);   /* value: 0.5 */
    assert_memory_equal(bytes + 256, "\0\0\x80\xbf", 4); /* label: -1 */
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

/* ----------------------------------------------------------------------------------------------------- damaged */

static void every_bit_turned_over_is_detected(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            assert_int_not_equal(rbt_cache_decode(bytes, n, "mem", &back, &error), RBT_OK);
            assert_int_equal(strncmp(error.text, "mem: ", 5), 0);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    /* A first byte that is another one makes it a bad text file, never an accepted one. */
    for (size_t i = 0; i < 8; i++) {
        for (int other = 1; other < 256; other++) {
            bytes[i] ^= (unsigned char)other;
            put_bytes("a", bytes, n);
            assert_int_not_equal(rbt_data_read("a", &back, &error), RBT_OK);
            bytes[i] ^= (unsigned char)other;
        }
    }
    rbt_free(bytes);
    rbt_data_deinit(&d);
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
        assert_int_not_equal(rbt_cache_decode(bytes, n, "mem", &back, NULL), RBT_OK);
        bytes[i] ^= 2;
    }
    assert_int_equal(rbt_cache_decode(bytes, n, "mem", &back, NULL), RBT_OK);
    rbt_free(bytes);
    write_cache(&d, "a");
    bytes = bytes_of("a", &n);
    assert_true(rbt_cache_source(bytes, bytes + n - 64) == 0);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void every_cut_and_every_addition_is_detected(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
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
    assert_int_equal(rbt_cache_decode(longer, n + 1, "mem", &back, &error), RBT_E_DATA);
    assert_int_equal(rbt_cache_decode(longer, n + 64, "mem", &back, &error), RBT_E_DATA);
    rbt_free(longer);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void another_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    rbt_data d = parsed(small), back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    bytes[8] = 2;
    assert_int_equal(rbt_cache_decode(bytes, n, "mem", &back, &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "version 2"));
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

/* Breaks one rule in a copy, behind a right checksum; `where` is one of the offsets below. */
static void broken(size_t where, const void *with, size_t with_bytes)
{
    rbt_data d = parsed(small), back;
    rbt_error error;
    write_cache(&d, "a");
    size_t n;
    unsigned char *bytes = bytes_of("a", &n);
    assert_int_equal(rbt_cache_decode(bytes, n, "mem", &back, NULL), RBT_OK);
    memcpy(bytes + where, with, with_bytes);
    uint64_t sum = rbt_cache_checksum(bytes, &back, NULL); /* the view sees what was changed */
    memcpy(bytes + 56, &sum, sizeof sum);
    if (rbt_cache_decode(bytes, n, "mem", &back, &error) != RBT_E_DATA)
        fail_msg("a change at byte %zu was accepted", where);
    rbt_free(bytes);
    rbt_data_deinit(&d);
}

static void rules_broken_behind_a_right_checksum_are_refused(void **state)
{
    (void)state;
    enum { COLS = 24, RESERVED = 40, START = 64, INDEX = 128, VALUE = 192, LABEL = 256 };
    const float nan = NAN, infinite = -INFINITY, zero = -0.0F;
    broken(COLS, &(uint64_t){8}, 8); /* index 8 is used */
    broken(COLS, &(uint64_t){UINT32_MAX}, 8);
    broken(RESERVED, &(uint64_t){1}, 8);
    broken(RESERVED, &(uint64_t){2}, 8); /* a source's number that is not there */
    broken(RESERVED + 8, &(uint64_t){1}, 8);
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
        IN_FOLDER(every_bit_turned_over_is_detected),
        IN_FOLDER(the_number_of_a_source_is_kept_and_guarded),
        IN_FOLDER(every_cut_and_every_addition_is_detected),
        IN_FOLDER(another_version_is_told_apart_from_damage),
        IN_FOLDER(rules_broken_behind_a_right_checksum_are_refused),
        IN_FOLDER(data_that_breaks_the_rules_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
