/* Proves src/base/pack.h: what was packed comes out as it went in; whatever is missing, too long or impossible makes the
 * reader bad for good, and it gives zeros and empty texts from then on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pack.h"

static rbt_pack packed(void)
{
    rbt_pack pack = {0};

    rbt_pack_u32(&pack, 7);
    rbt_pack_u64(&pack, UINT64_MAX - 1);
    rbt_pack_f64(&pack, -0.25);
    rbt_pack_text(&pack, "a word");
    rbt_pack_text(&pack, NULL);
    rbt_pack_bytes(&pack, "xyz", 3);
    rbt_pack_bytes(&pack, NULL, 0);
    return pack;
}

static void what_was_packed_comes_out(void **state)
{
    rbt_pack pack = packed();
    rbt_unpack in = rbt_unpack_of(pack.at, pack.count);
    char text[7], empty[1];

    (void)state;
    assert_int_equal(rbt_unpack_u32(&in), 7);
    assert_int_equal(rbt_unpack_u64(&in), UINT64_MAX - 1);
    assert_true(rbt_unpack_f64(&in) == -0.25);
    rbt_unpack_text(&in, text, sizeof text);
    assert_string_equal(text, "a word");
    rbt_unpack_text(&in, empty, sizeof empty);
    assert_string_equal(empty, "");
    assert_false(rbt_unpack_done(&in));
    assert_memory_equal(rbt_unpack_bytes(&in, 3), "xyz", 3);
    assert_true(rbt_unpack_done(&in));
    rbt_array_free(&pack);
}

static void golden_bytes(void **state)
{
    static const uint8_t golden[] = {7,   0,   0,   0,   0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,
                                     0,   0,   0,   0,   0,    0xd0, 0xbf, 6,    0,    0,    0,    'a',  ' ',
                                     'w', 'o', 'r', 'd', 0,    0,    0,    0,    'x',  'y',  'z'};
    rbt_pack pack = packed();

    (void)state;
    assert_int_equal(pack.count, sizeof golden);
    assert_memory_equal(pack.at, golden, sizeof golden);
    rbt_array_free(&pack);
}

static void bytes_that_end_early_are_bad_everywhere(void **state)
{
    rbt_pack pack = packed();

    (void)state;
    for (size_t n = 0; n < pack.count; n++) {
        uint8_t *copy = rbt_alloc(n, 1); /* so that the sanitizer sees a step too far */
        rbt_unpack in;
        char text[20];

        memcpy(copy, pack.at, n);
        in = rbt_unpack_of(copy, n);
        (void)rbt_unpack_u32(&in);
        (void)rbt_unpack_u64(&in);
        (void)rbt_unpack_f64(&in);
        rbt_unpack_text(&in, text, sizeof text);
        rbt_unpack_text(&in, text, sizeof text);
        assert_null(rbt_unpack_bytes(&in, 3));
        assert_true(in.bad);
        assert_false(rbt_unpack_done(&in));
        assert_int_equal(rbt_unpack_u64(&in), 0);
        assert_true(rbt_unpack_f64(&in) == 0);
        rbt_unpack_text(&in, text, sizeof text);
        assert_string_equal(text, "");
        rbt_free(copy);
    }
    rbt_array_free(&pack);
}

static void texts_that_do_not_fit_are_bad(void **state)
{
    static const uint8_t zero_inside[] = {3, 0, 0, 0, 'a', 0, 'b'}, lie[] = {0xff, 0xff, 0xff, 0xff, 'a'},
                         three[] = {3, 0, 0, 0, 'a', 'b', 'c'};
    char text[4], narrow[3];
    rbt_unpack in = rbt_unpack_of(zero_inside, sizeof zero_inside);

    (void)state;
    rbt_unpack_text(&in, text, sizeof text);
    assert_true(in.bad);
    assert_string_equal(text, "");
    in = rbt_unpack_of(lie, sizeof lie);
    rbt_unpack_text(&in, text, sizeof text);
    assert_true(in.bad);
    in = rbt_unpack_of(three, sizeof three);
    rbt_unpack_text(&in, narrow, sizeof narrow);
    assert_true(in.bad);
    assert_string_equal(narrow, "");
    in = rbt_unpack_of(three, sizeof three);
    rbt_unpack_text(&in, text, sizeof text);
    assert_true(rbt_unpack_done(&in));
    assert_string_equal(text, "abc");
}

static void texts_to_be_printed_move_no_cursor(void **state)
{
    static const char *const TEXTS[][2] = {{"rank 3 on host b", "rank 3 on host b"},
                                           {"a\033[2Jb\n\r\tc\x7f", "a?[2Jb???c?"},
                                           {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
                                           {"", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        rbt_pack out = {0};
        rbt_unpack in;
        char text[32];

        rbt_pack_text(&out, TEXTS[i][0]);
        in = rbt_unpack_of(out.at, out.count);
        rbt_unpack_printable(&in, text, sizeof text);
        assert_true(rbt_unpack_done(&in));
        assert_string_equal(text, TEXTS[i][1]);
        rbt_array_free(&out);
    }
}

static void nothing_is_done_at_once(void **state)
{
    rbt_unpack in = rbt_unpack_of(NULL, 0);

    (void)state;
    assert_true(rbt_unpack_done(&in));
    assert_int_equal(rbt_unpack_u32(&in), 0);
    assert_false(rbt_unpack_done(&in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_out),
        cmocka_unit_test(golden_bytes),
        cmocka_unit_test(bytes_that_end_early_are_bad_everywhere),
        cmocka_unit_test(texts_that_do_not_fit_are_bad),
        cmocka_unit_test(texts_to_be_printed_move_no_cursor),
        cmocka_unit_test(nothing_is_done_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
