/* Proves src/data/parallel: each item once, in order of beginning, by however many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "data/parallel.h"

#define ITEMS 1000

typedef struct tally {
    atomic_uint times[ITEMS];
    size_t plain[ITEMS]; /* written by whoever has the item, read after the call */
} tally;

static void count_one(void *context, size_t item)
{
    tally *t = context;
    atomic_fetch_add(&t->times[item], 1);
    t->plain[item] = item * item;
}

static void every_item_is_worked_on_once(void **state)
{
    (void)state;
    static const unsigned threads[] = {0, 1, 2, 7, RBT_PARALLEL_THREADS_MAX, 100000};
    for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
        tally t;
        memset(&t, 0, sizeof t);
        rbt_parallel_for(ITEMS, threads[k], count_one, &t);
        for (size_t i = 0; i < ITEMS; i++) {
            assert_int_equal(atomic_load(&t.times[i]), 1);
            assert_int_equal(t.plain[i], i * i);
        }
    }
}

static void no_items_are_no_work(void **state)
{
    (void)state;
    rbt_parallel_for(0, 4, count_one, NULL);
}

typedef struct order {
    size_t last;
} order;

static void in_order(void *context, size_t item)
{
    order *o = context;
    assert_int_equal(item, o->last);
    o->last = item + 1;
}

static void one_thread_goes_in_order(void **state)
{
    (void)state;
    order o = {0};
    rbt_parallel_for(ITEMS, 1, in_order, &o);
    assert_int_equal(o.last, ITEMS);
}

static void *look_where(void *argument)
{
    cpu_set_t *set = argument;
    CPU_ZERO(set);
    return sched_getaffinity(0, sizeof *set, set) == 0 ? argument : NULL;
}

/* Also when the thread has ended before its creator goes on. */
static void a_thread_begins_elsewhere_and_then_all_may_run_where_they_might(void **state)
{
    (void)state;
    cpu_set_t before, after, seen;
    assert_non_null(look_where(&before));
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        void *looked = NULL;
        assert_int_equal(rbt_parallel_start(&thread, look_where, &seen), 0);
        assert_non_null(look_where(&after));
        assert_true(CPU_EQUAL(&after, &before));
        assert_int_equal(pthread_join(thread, &looked), 0);
        assert_ptr_equal(looked, &seen);
        assert_true(CPU_EQUAL(&seen, &before));
    }
    rbt_parallel_for(ITEMS, RBT_PARALLEL_THREADS_MAX, count_one, &(tally){0});
    assert_non_null(look_where(&after));
    assert_true(CPU_EQUAL(&after, &before));
}

static void there_is_at_least_one_thread(void **state)
{
    (void)state;
    assert_in_range(rbt_parallel_threads(), 1, RBT_PARALLEL_THREADS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_worked_on_once),
        cmocka_unit_test(no_items_are_no_work),
        cmocka_unit_test(one_thread_goes_in_order),
        cmocka_unit_test(a_thread_begins_elsewhere_and_then_all_may_run_where_they_might),
        cmocka_unit_test(there_is_at_least_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
