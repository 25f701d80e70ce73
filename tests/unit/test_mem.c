/* Proves src/base/mem.c: zeroed and aligned memory, overflow refused, arrays and arenas that keep what they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void alloc_gives_zeroed_memory_and_never_null(void **state)
{
    (void)state;
    unsigned char *some = rbt_alloc(100, 7);
    assert_true(is_zero(some, 700));
    memset(some, 1, 700);
    void *none = rbt_alloc(0, 8);
    assert_non_null(none);
    rbt_free(none);
    rbt_free(some);
    rbt_free(NULL);
}

static void try_alloc_is_zeroed_and_aligned_to_64(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *memory = rbt_try_alloc(sizes[i], 1);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        assert_true(is_zero(memory, sizes[i]));
        rbt_free(memory);
    }
}

/* Large memory is not written to but given back to the system: what was there before must not come through. */
static void try_alloc_is_zeroed_where_others_have_written(void **state)
{
    (void)state;
    const size_t sizes[] = {(1 << 20) - 1, 1 << 20, (1 << 20) + 100, 3 << 20, (5 << 20) + 4097, 40 << 20};
    for (size_t round = 0; round < 3; round++) /* freed memory of this size is kept for the next, after the first */
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            unsigned char *before = rbt_try_alloc_raw(1, 64), *memory = rbt_try_alloc(sizes[i], 1);
            assert_non_null(before);
            assert_non_null(memory);
            assert_int_equal((uintptr_t)memory % 64, 0);
            assert_true(is_zero(memory, sizes[i]));
            memset(memory, 0xa5, sizes[i]);
            memset(before, 0x5a, 64);
            rbt_free(memory);
            rbt_free(before);
        }
}

static void try_alloc_answers_null_when_the_size_overflows(void **state)
{
    (void)state;
    assert_null(rbt_try_alloc(SIZE_MAX, 2));
    assert_null(rbt_try_alloc(SIZE_MAX / 4 + 2, 4));
    assert_null(rbt_try_alloc(SIZE_MAX, 1));
    assert_null(rbt_try_alloc((size_t)PTRDIFF_MAX, 1));
}

static void realloc_keeps_the_content(void **state)
{
    (void)state;
    uint32_t *numbers = rbt_realloc(NULL, 10, sizeof *numbers);
    for (uint32_t i = 0; i < 10; i++)
        numbers[i] = i;
    numbers = rbt_realloc(numbers, 100000, sizeof *numbers);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(numbers[i], i);
    numbers = rbt_realloc(numbers, 0, sizeof *numbers);
    assert_non_null(numbers);
    rbt_free(numbers);
}

static void strdup_copies(void **state)
{
    (void)state;
    char text[] = "rubato";
    char *copy = rbt_strdup(text);
    text[0] = 'R';
    assert_string_equal(copy, "rubato");
    rbt_free(copy);
}

static void array_keeps_its_values_when_it_grows(void **state)
{
    (void)state;
    RBT_ARRAY(uint64_t) array = {0};
    for (uint64_t i = 0; i < 10000; i++)
        rbt_array_push(&array, i * i);
    assert_int_equal(array.count, 10000);
    assert_true(array.room >= array.count);
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(array.at[i], i * i);
    rbt_array_free(&array);
    assert_null(array.at);
    assert_int_equal(array.count + array.room, 0);
}

static void array_does_not_move_within_what_was_reserved(void **state)
{
    (void)state;
    RBT_ARRAY(int) array = {0};
    rbt_array_reserve(&array, 1000);
    const int *before = array.at;
    for (int i = 0; i < 1000; i++)
        rbt_array_push(&array, i);
    assert_ptr_equal(array.at, before);
    rbt_array_free(&array);
}

static void arena_gives_zeroed_aligned_pieces_that_do_not_overlap(void **state)
{
    (void)state;
    rbt_arena arena = {0};
    enum { PIECES = 400 };
    unsigned char *piece[PIECES];
    size_t bytes[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        bytes[i] = i % 50 == 49 ? 40000 : i * 3; /* now and then one larger than a chunk */
        piece[i] = rbt_arena_alloc(&arena, bytes[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        assert_true(is_zero(piece[i], bytes[i]));
        memset(piece[i], (int)(i % 255 + 1), bytes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < bytes[i]; k++)
            assert_int_equal(piece[i][k], i % 255 + 1);
    assert_string_equal(rbt_arena_strdup(&arena, "text"), "text");
    rbt_arena_deinit(&arena);
    assert_null(arena.chunk);
}

static void empty_arena_may_be_ended(void **state)
{
    (void)state;
    rbt_arena arena = {0};
    rbt_arena_deinit(&arena);
    assert_null(arena.chunk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_gives_zeroed_memory_and_never_null),
        cmocka_unit_test(try_alloc_is_zeroed_and_aligned_to_64),
        cmocka_unit_test(try_alloc_is_zeroed_where_others_have_written),
        cmocka_unit_test(try_alloc_answers_null_when_the_size_overflows),
        cmocka_unit_test(realloc_keeps_the_content),
        cmocka_unit_test(strdup_copies),
        cmocka_unit_test(array_keeps_its_values_when_it_grows),
        cmocka_unit_test(array_does_not_move_within_what_was_reserved),
        cmocka_unit_test(arena_gives_zeroed_aligned_pieces_that_do_not_overlap),
        cmocka_unit_test(empty_arena_may_be_ended),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
