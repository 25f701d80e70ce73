/* Proves the process cache (src/table/process_cache.h): a copy is handed to a worker only when it meets its bound and
 * holds all of its own updates, and a newer copy is never replaced by an older one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table/process_cache.h"

typedef struct fixture {
    rbt_layout layout;
    rbt_process_cache cache;
} fixture;

#define FIRST 4 /* the process has workers 4, 5 and 6 */

static int set_up(void **state)
{
    static fixture f;
    rbt_table_spec spec = {.name = "t", .rows = 1, .cols = 3, .type = RBT_F32};

    assert_int_equal(rbt_layout_init(&f.layout, &spec, 1, 0, NULL), RBT_OK);
    rbt_process_cache_init(&f.cache, &f.layout, 1, FIRST, 3);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    rbt_process_cache_deinit(&f->cache);
    rbt_layout_deinit(&f->layout);
    return 0;
}

static void offer(fixture *f, float value, uint64_t slowest, const uint64_t clocks[3])
{
    rbt_applied applied[3] = {{.clocks = clocks[0]}, {.clocks = clocks[1]}, {.clocks = clocks[2]}};
    rbt_snap *snap = rbt_snap_create(RBT_F32, 3);

    snap->f32[0] = value;
    rbt_process_cache_offer(&f->cache, 0, 0, snap, slowest, slowest + 1, applied);
    rbt_snap_unref(snap);
}

/* The first value of what the worker finds, -1 when it finds nothing. */
static float find(fixture *f, uint32_t worker, uint64_t clock, uint64_t need)
{
    rbt_shared_copy found;
    rbt_applied included = {0};
    float value;

    if (!rbt_process_cache_find(&f->cache, 0, 0, worker, clock, need, &found, &included))
        return -1;
    assert_true(included.clocks >= clock);
    assert_true(found.slowest >= need);
    assert_int_equal(found.version, found.slowest + 1);
    value = found.base->f32[0];
    rbt_snap_unref(found.base);
    return value;
}

static void nothing_is_found_before_somebody_has_read(void **state)
{
    assert_true(find(*state, FIRST, 0, 0) == -1);
}

static void a_copy_too_old_for_the_bound_is_not_found(void **state)
{
    offer(*state, 7, 5, (uint64_t[]){9, 9, 9});
    assert_true(find(*state, FIRST, 9, 5) == 7);
    assert_true(find(*state, FIRST, 9, 6) == -1);
}

static void a_copy_that_lacks_an_update_of_the_reader_is_not_found(void **state)
{
    offer(*state, 7, 5, (uint64_t[]){5, 8, 6});
    assert_true(find(*state, FIRST + 1, 8, 5) == 7);
    assert_true(find(*state, FIRST + 1, 9, 5) == -1);
    assert_true(find(*state, FIRST + 2, 6, 0) == 7);
    assert_true(find(*state, FIRST + 2, 7, 0) == -1);
}

static void an_older_copy_does_not_replace_a_newer_one(void **state)
{
    offer(*state, 7, 5, (uint64_t[]){5, 8, 6});
    offer(*state, 1, 4, (uint64_t[]){9, 9, 9}); /* slowest is older */
    offer(*state, 2, 5, (uint64_t[]){6, 7, 6}); /* lacks an update of the second worker */
    assert_true(find(*state, FIRST, 5, 5) == 7);
    offer(*state, 3, 5, (uint64_t[]){6, 8, 6});
    assert_true(find(*state, FIRST, 6, 5) == 3);
}

static void a_copy_found_stays_as_it_is_when_a_newer_one_comes(void **state)
{
    fixture *f = *state;
    rbt_shared_copy found;
    rbt_applied included;

    offer(f, 7, 5, (uint64_t[]){5, 5, 5});
    assert_true(rbt_process_cache_find(&f->cache, 0, 0, FIRST, 5, 5, &found, &included));
    offer(f, 8, 6, (uint64_t[]){6, 6, 6});
    assert_true(found.base->f32[0] == 7);
    rbt_snap_unref(found.base);
}

static void a_push_that_is_still_arriving_counts_where_it_has_come_to(void **state)
{
    fixture *f = *state;
    rbt_applied applied[3] = {{4, rbt_place_of(0, 0) + 1, 0, 0}, {4, 0, 0, 0}, {4, rbt_place_of(0, 0), 0, 0}};
    rbt_snap *snap = rbt_snap_create(RBT_F32, 3);

    snap->f32[0] = 7;
    rbt_process_cache_offer(&f->cache, 0, 0, snap, 4, 5, applied);
    rbt_snap_unref(snap);
    assert_true(find(f, FIRST, 5, 4) == 7);
    assert_true(find(f, FIRST + 1, 5, 4) == -1);
    assert_true(find(f, FIRST + 2, 5, 4) == -1); /* it has come to the blocks before this one */
    assert_true(find(f, FIRST + 2, 4, 4) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_found_before_somebody_has_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_too_old_for_the_bound_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_that_lacks_an_update_of_the_reader_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_older_copy_does_not_replace_a_newer_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_push_that_is_still_arriving_counts_where_it_has_come_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_found_stays_as_it_is_when_a_newer_one_comes, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
