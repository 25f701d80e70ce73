/* Proves src/runtime/coroutine.c: a body can be left and entered again, keeps what lies on its stack, and many of them
 * take turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/coroutine.h"

typedef struct counter {
    rbt_coroutine *coroutine;
    int steps;
    int last;
    unsigned sum;
} counter;

static void count(void *argument)
{
    counter *c = argument;
    unsigned char stack[4096]; /* must survive the switches */

    memset(stack, c->last, sizeof stack);
    for (c->steps = 0; c->steps < c->last; c->steps++)
        rbt_coroutine_yield(c->coroutine);
    for (size_t i = 0; i < sizeof stack; i++)
        c->sum += stack[i];
}

static void a_coroutine_goes_on_where_it_yielded(void **state)
{
    counter c = {.last = 3};

    (void)state;
    c.coroutine = rbt_coroutine_create(count, &c);
    assert_non_null(c.coroutine);
    assert_false(rbt_coroutine_has_ended(c.coroutine));
    for (int step = 0; step < 3; step++) {
        rbt_coroutine_resume(c.coroutine);
        assert_int_equal(c.steps, step);
        assert_false(rbt_coroutine_has_ended(c.coroutine));
    }
    rbt_coroutine_resume(c.coroutine);
    assert_true(rbt_coroutine_has_ended(c.coroutine));
    assert_int_equal(c.sum, 3 * 4096);
    rbt_coroutine_destroy(c.coroutine);
}

static void many_coroutines_take_turns(void **state)
{
    enum { MANY = 500 };
    static counter c[MANY];
    int alive = MANY;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        c[i].last = i % 7;
        c[i].coroutine = rbt_coroutine_create(count, &c[i]);
        assert_non_null(c[i].coroutine);
    }
    while (alive > 0) {
        alive = 0;
        for (int i = MANY - 1; i >= 0; i--) {
            if (rbt_coroutine_has_ended(c[i].coroutine))
                continue;
            rbt_coroutine_resume(c[i].coroutine);
            alive++;
        }
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(c[i].sum, 4096u * (unsigned)(i % 7));
        rbt_coroutine_destroy(c[i].coroutine);
    }
}

static void nest(void *argument)
{
    counter *outer = argument, inner = {.last = 2};

    inner.coroutine = rbt_coroutine_create(count, &inner);
    while (!rbt_coroutine_has_ended(inner.coroutine)) {
        rbt_coroutine_resume(inner.coroutine);
        rbt_coroutine_yield(outer->coroutine);
    }
    rbt_coroutine_destroy(inner.coroutine);
    outer->sum = inner.sum;
}

static void a_coroutine_may_resume_another(void **state)
{
    counter c = {0};
    int resumed = 0;

    (void)state;
    c.coroutine = rbt_coroutine_create(nest, &c);
    for (; !rbt_coroutine_has_ended(c.coroutine); resumed++)
        rbt_coroutine_resume(c.coroutine);
    assert_int_equal(resumed, 4);
    assert_int_equal(c.sum, 2 * 4096);
    rbt_coroutine_destroy(c.coroutine);
}

static void one_that_was_never_entered_can_be_destroyed(void **state)
{
    counter c = {0};

    (void)state;
    rbt_coroutine_destroy(rbt_coroutine_create(count, &c));
    rbt_coroutine_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coroutine_goes_on_where_it_yielded),
        cmocka_unit_test(many_coroutines_take_turns),
        cmocka_unit_test(a_coroutine_may_resume_another),
        cmocka_unit_test(one_that_was_never_entered_can_be_destroyed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
