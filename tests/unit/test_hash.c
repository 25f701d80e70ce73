/* Proves src/base/hash.c: known values of XXH3, pieces equal the whole, a mixer that spreads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"

static void hash_gives_the_published_values(void **state)
{
    (void)state;
    /* XXH3_64bits of the empty input, from the xxHash specification. */
    assert_true(rbt_hash(NULL, 0, 0) == 0x2d06800538d394c2u);
    assert_true(rbt_hash("rubato", 6, 0) == 0x87820b2d4808c8e1u);
    assert_true(rbt_hash("rubato", 6, 42) == 0x18383cb5c7a6aa3fu);
}

static void hash_of_pieces_equals_hash_of_the_whole(void **state)
{
    (void)state;
    unsigned char bytes[5000];
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)rbt_rng_u64(&rng);
    for (size_t n = 0; n <= sizeof bytes; n = n * 2 + 1) {
        rbt_hasher *hasher = rbt_hasher_create(7);
        rbt_hasher_add(hasher, NULL, 0);
        for (size_t at = 0; at < n;) {
            size_t piece = 1 + (size_t)rbt_rng_below(&rng, n - at);
            rbt_hasher_add(hasher, bytes + at, piece);
            at += piece;
            rbt_hasher_value(hasher); /* asking does not disturb */
        }
        assert_true(rbt_hasher_value(hasher) == rbt_hash(bytes, n, 7));
        rbt_hasher_destroy(hasher);
    }
    rbt_hasher_destroy(NULL);
}

static void hash_depends_on_seed_and_every_byte(void **state)
{
    (void)state;
    unsigned char bytes[64] = {0};
    uint64_t before = rbt_hash(bytes, sizeof bytes, 0);
    assert_true(rbt_hash(bytes, sizeof bytes, 1) != before);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        assert_true(rbt_hash(bytes, sizeof bytes, 0) != before);
        bytes[i] ^= 1;
    }
}

static void mix_spreads_small_numbers_over_all_bits(void **state)
{
    (void)state;
    assert_true(rbt_hash_mix(0, 0) != 0);
    assert_true(rbt_hash_mix(1, 2) != rbt_hash_mix(2, 1));
    /* Neighbours differ in about half of their bits. */
    unsigned changed = 0;
    for (uint64_t i = 0; i < 1000; i++)
        changed += (unsigned)__builtin_popcountll(rbt_hash_mix(3, i) ^ rbt_hash_mix(3, i + 1));
    assert_in_range(changed, 31000, 33000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_gives_the_published_values),
        cmocka_unit_test(hash_of_pieces_equals_hash_of_the_whole),
        cmocka_unit_test(hash_depends_on_seed_and_every_byte),
        cmocka_unit_test(mix_spreads_small_numbers_over_all_bits),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
