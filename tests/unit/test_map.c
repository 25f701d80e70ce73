/* Proves src/base/map.c: against a plain table of all keys under random puts and removals; order; places that stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/rng.h"

#include <string.h>

static void empty_map_has_nothing(void **state)
{
    (void)state;
    rbt_map map = {0};
    size_t cursor = 0;
    uint64_t key, value;
    assert_null(rbt_map_get(&map, 0));
    assert_false(rbt_map_remove(&map, 0));
    assert_false(rbt_map_next(&map, &cursor, &key, &value));
    rbt_map_deinit(&map);
}

static void put_says_whether_the_key_is_new_and_gives_zero(void **state)
{
    (void)state;
    rbt_map map = {0};
    bool is_new = false;
    uint64_t *value = rbt_map_put(&map, 0, &is_new);
    assert_true(is_new);
    assert_int_equal(*value, 0);
    *value = 9;
    value = rbt_map_put(&map, 0, &is_new);
    assert_false(is_new);
    assert_int_equal(*value, 9);
    *rbt_map_put(&map, UINT64_MAX, NULL) = 1;
    assert_int_equal(map.count, 2);
    assert_true(rbt_map_remove(&map, 0));
    assert_int_equal(*rbt_map_put(&map, 0, &is_new), 0); /* not the old 9 */
    assert_true(is_new);
    rbt_map_deinit(&map);
    assert_int_equal(map.count, 0);
}

static void map_keeps_values_when_it_grows(void **state)
{
    (void)state;
    rbt_map map = {0};
    for (uint64_t i = 0; i < 100000; i++)
        *rbt_map_put(&map, i << 20, NULL) = i;
    assert_int_equal(map.count, 100000);
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t *value = rbt_map_get(&map, i << 20);
        assert_non_null(value);
        assert_int_equal(*value, i);
        assert_null(rbt_map_get(&map, (i << 20) + 1));
    }
    rbt_map_deinit(&map);
}

static void map_agrees_with_a_plain_table_under_random_use(void **state)
{
    (void)state;
    enum { KEYS = 500, STEPS = 200000 };
    static bool present[KEYS];
    static uint64_t stored[KEYS];
    memset(present, 0, sizeof present);
    size_t count = 0;
    rbt_map map = {0};
    rbt_rng rng = rbt_rng_stream(11, RBT_STREAM_TEST, 0);
    for (int step = 0; step < STEPS; step++) {
        size_t key = (size_t)rbt_rng_below(&rng, KEYS);
        if (rbt_rng_below(&rng, 2) == 0) {
            bool is_new;
            uint64_t *value = rbt_map_put(&map, key, &is_new);
            assert_int_equal(is_new, !present[key]);
            assert_int_equal(*value, present[key] ? stored[key] : 0);
            *value = stored[key] = rbt_rng_u64(&rng);
            count += !present[key];
            present[key] = true;
        } else {
            assert_int_equal(rbt_map_remove(&map, key), present[key]);
            count -= present[key];
            present[key] = false;
        }
        assert_int_equal(map.count, count);
    }
    assert_true(map.room <= 2048); /* removed entries do not make it grow without end */
    size_t cursor = 0, walked = 0;
    uint64_t key, value;
    while (rbt_map_next(&map, &cursor, &key, &value)) {
        assert_true(key < KEYS && present[key]);
        assert_int_equal(value, stored[key]);
        walked++;
    }
    assert_int_equal(walked, count);
    rbt_map_deinit(&map);
}

static void walking_order_is_the_same_for_the_same_insertions(void **state)
{
    (void)state;
    rbt_map a = {0}, b = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        *rbt_map_put(&a, i * 7919, NULL) = i;
        *rbt_map_put(&b, i * 7919, NULL) = i;
    }
    size_t cursor_a = 0, cursor_b = 0;
    uint64_t key_a, key_b, value_a, value_b;
    while (rbt_map_next(&a, &cursor_a, &key_a, &value_a)) {
        assert_true(rbt_map_next(&b, &cursor_b, &key_b, &value_b));
        assert_int_equal(key_a, key_b);
        assert_int_equal(value_a, value_b);
    }
    assert_false(rbt_map_next(&b, &cursor_b, &key_b, &value_b));
    rbt_map_deinit(&a);
    rbt_map_deinit(&b);
}

static void removing_keeps_other_places_and_a_walk_valid(void **state)
{
    (void)state;
    rbt_map map = {0};
    for (uint64_t i = 0; i < 1000; i++)
        *rbt_map_put(&map, i, NULL) = i;
    uint64_t *place = rbt_map_get(&map, 501);
    size_t cursor = 0, walked = 0;
    uint64_t key, value;
    while (rbt_map_next(&map, &cursor, &key, &value)) {
        walked++;
        if (key % 2 == 0)
            assert_true(rbt_map_remove(&map, key));
    }
    assert_int_equal(walked, 1000);
    assert_int_equal(map.count, 500);
    assert_ptr_equal(rbt_map_get(&map, 501), place);
    assert_int_equal(*place, 501);
    rbt_map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map_has_nothing),
        cmocka_unit_test(put_says_whether_the_key_is_new_and_gives_zero),
        cmocka_unit_test(map_keeps_values_when_it_grows),
        cmocka_unit_test(map_agrees_with_a_plain_table_under_random_use),
        cmocka_unit_test(walking_order_is_the_same_for_the_same_insertions),
        cmocka_unit_test(removing_keeps_other_places_and_a_walk_valid),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
