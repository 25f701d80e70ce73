/* Waiting for what another thread will be through with in a moment: awake, but now and then the processor is given away, since
 * there may be more threads than processors, and the other one may be asleep.
 *
 * Called by walk.c (rows, turns) and replica.c (batches of features). Proved by their tests. */
#ifndef RBT_SOLVE_SPIN_H
#define RBT_SOLVE_SPIN_H

#include <sched.h>
#include <stdatomic.h>

#define RBT_SPINS 64 /* looks before the processor is given away */

/* Between two looks; *spins counts them. */
static inline void rbt_spin(unsigned *spins)
{
    if (++*spins % RBT_SPINS == 0)
        (void)sched_yield();
}

static inline void rbt_spin_lock(atomic_uchar *lock)
{
    unsigned spins = 0;
    while (atomic_exchange_explicit(lock, 1, memory_order_acquire) != 0)
        rbt_spin(&spins);
}

static inline void rbt_spin_unlock(atomic_uchar *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
