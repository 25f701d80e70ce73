/* Proves the writing side of src/data/file.c: whatever the pieces in which bytes are put, the file has all of them in order,
 * a patch goes where it should, and what is put fills buffers before it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/file.h"
#include "unit/files.h"

#define PATH  "out"
#define BYTES ((size_t)9 << 20)
#define WHOLE ((size_t)2 << 20) /* what goes to the file at a time */

static int leave(void **state)
{
    return remove_folder(state, (const char *const[]){PATH}, 1);
}

static unsigned char *random_bytes(void)
{
    unsigned char *bytes = rbt_alloc(BYTES, 1);
    rbt_rng rng = rbt_rng_stream(7, RBT_STREAM_SHUFFLE, 0);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)rbt_rng_below(&rng, 256);
    return bytes;
}

static void same_file(const unsigned char *bytes, size_t n)
{
    rbt_input input;
    assert_int_equal(rbt_input_open(PATH, &input, NULL), RBT_OK);
    assert_int_equal(input.n, n);
    assert_memory_equal(input.bytes, bytes, n);
    rbt_input_close(&input);
}

static void bytes_arrive_in_order_whatever_the_pieces(void **state)
{
    (void)state;
    unsigned char *bytes = random_bytes();
    rbt_rng rng = rbt_rng_stream(8, RBT_STREAM_SHUFFLE, 0);
    const size_t most[] = {100000, WHOLE, 3 * WHOLE};
    for (size_t round = 0; round < 3; round++) {
        rbt_output output;
        assert_int_equal(rbt_output_open(PATH, &output, NULL), RBT_OK);
        for (size_t at = 0, n; at < BYTES; at += n) {
            n = rbt_rng_below(&rng, most[round]) + (at % 3 == 0); /* none at all, too */
            n = n < BYTES - at ? n : BYTES - at;
            assert_int_equal(rbt_output_put(&output, bytes + at, n, NULL), RBT_OK);
        }
        assert_int_equal(rbt_output_finish(&output, false, NULL), RBT_OK);
        same_file(bytes, BYTES);
    }
    rbt_free(bytes);
}

/* So that the system can keep the file in huge pages. */
static void files_grow_by_whole_buffers(void **state)
{
    (void)state;
    unsigned char *bytes = random_bytes();
    rbt_output output;
    struct stat status;
    assert_int_equal(rbt_output_open(PATH, &output, NULL), RBT_OK);
    for (size_t at = 0, n; at < BYTES; at += n) {
        n = BYTES - at < 700001 ? BYTES - at : 700001;
        assert_int_equal(rbt_output_put(&output, bytes + at, n, NULL), RBT_OK);
        assert_int_equal(fstat(output.fd, &status), 0);
        assert_int_equal((size_t)status.st_size, (at + n) / WHOLE * WHOLE);
    }
    assert_int_equal(rbt_output_finish(&output, false, NULL), RBT_OK);
    rbt_free(bytes);
}

static void patches_go_where_they_should(void **state)
{
    (void)state;
    unsigned char *bytes = random_bytes();
    rbt_output output;
    assert_int_equal(rbt_output_open(PATH, &output, NULL), RBT_OK);
    assert_int_equal(rbt_output_put(&output, bytes, BYTES, NULL), RBT_OK);
    memcpy(bytes, "header", 6);
    assert_int_equal(rbt_output_patch(&output, 0, bytes, 6, NULL), RBT_OK);
    assert_int_equal(rbt_output_put(&output, bytes, 10, NULL), RBT_OK);
    assert_int_equal(rbt_output_finish(&output, true, NULL), RBT_OK);
    bytes = rbt_realloc(bytes, BYTES + 10, 1);
    memcpy(bytes + BYTES, bytes, 10);
    same_file(bytes, BYTES + 10);
    rbt_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order_whatever_the_pieces),
        cmocka_unit_test(files_grow_by_whole_buffers),
        cmocka_unit_test(patches_go_where_they_should),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave);
}
