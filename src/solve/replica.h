/* Copies of the parameters, one per thread of a Hogwild walk, that are brought together now and then.
 *
 * Threads that write the same vector wait for each other's cache lines: each time a thread comes to a line, the chance
 * that the other one wrote it last is one half, whatever the feature's frequency. So every thread works on a copy of its
 * own and carries over what it changed now and then (after HogWild++, Zhang, Hsieh and Akella, 2016): each feature at a
 * pace that follows its frequency. Common ones are exchanged every few rows through a vector of their own, in which those
 * of one pace lie together; rare ones when a pass has ended. So all are exchanged after about as many visits.
 *
 * Always holds: a change is carried exactly once, so no addition is lost; after rbt_replicas_settle the shared parameters
 * have all changes. Biases are not copied (walk.c looks after them). Called by shared.c (at
 * the end of a pass) and walk.c (in between). Proved by tests/unit/test_replica_parallel.c.
 */
#ifndef RBT_SOLVE_REPLICA_H
#define RBT_SOLVE_REPLICA_H

#include "solve/problem.h"

#define RBT_REPLICA_ROWS 8 /* a thread meets so many rows between two looks at what is due */

typedef struct rbt_replicas rbt_replicas;

/* Are copies worth their memory? They are when they are small beside the data. */
bool rbt_replicas_pay(const rbt_problem *problem, uint32_t threads);

/* After how many visits, by all threads, a feature is best exchanged, when a row's step takes the share `heat` of its error away; 0:
 * threads had better share the parameters. */
double rbt_replicas_visits(uint32_t threads, double heat);

/* Of the parameters at `w`; those that are not biases must be left to the functions below from now on. A feature that all
 * threads together visited about `visits` times is exchanged. NULL when there is not enough memory. */
rbt_replicas *rbt_replicas_create(const rbt_problem *problem, float *w, uint32_t threads, double visits);
void rbt_replicas_destroy(rbt_replicas *replicas);

/* A thread's copy, ordered like the parameters, without the biases. */
float *rbt_replicas_of(const rbt_replicas *replicas, uint32_t thread);

/* Starts the thread's pass from the parameters. */
void rbt_replicas_begin(rbt_replicas *replicas, uint32_t thread);

/* After every RBT_REPLICA_ROWS rows of the thread: exchanges the common features that are due. */
void rbt_replicas_look(rbt_replicas *replicas, uint32_t thread);

/* Ends the thread's pass: exchanges all common features. */
void rbt_replicas_end(rbt_replicas *replicas, uint32_t thread);

/* When all threads have ended their passes, by each of them: brings a part of the parameters up to date. */
void rbt_replicas_settle(rbt_replicas *replicas, uint32_t thread);

#endif
