/* Coroutines: a worker of the simulator is a function that can be left in the middle and entered again.
 *
 * Built on ucontext; stacks are mapped with a guard page below, so that an overflow is a fault and not silent damage.
 * The sanitizers are told of every switch. Proved by tests/unit/test_coroutine.c.
 */
#ifndef RBT_RUNTIME_COROUTINE_H
#define RBT_RUNTIME_COROUTINE_H

#include "rubato.h"

typedef struct rbt_coroutine rbt_coroutine;

/* NULL when there is no memory for the stack. */
rbt_coroutine *rbt_coroutine_create(void (*body)(void *argument), void *argument);
void rbt_coroutine_destroy(rbt_coroutine *coroutine); /* only when it has ended or was never entered */

/* Enters the coroutine until it yields or ends. */
void rbt_coroutine_resume(rbt_coroutine *coroutine);
bool rbt_coroutine_has_ended(const rbt_coroutine *coroutine);

/* Called inside the coroutine: back to whoever resumed it. */
void rbt_coroutine_yield(rbt_coroutine *coroutine);

#endif
