/* A second opinion on budgets: do a node's bytes keep to its budget?
 *
 * The simulator tells it of every message that goes out. When one goes out that could have waited (EARLY, ROWS), all that
 * its node has sent in the 100 ms up to then must be within budget * 100 ms + burst, or + half a burst and the largest strip where
 * that is more. Written without the bucket: it adds
 * up what was sent. Called by sim.c in all jobs with a budget: one whose bytes do not keep to it fails. Proved to fail by the
 * mutant `budget`.
 */
#ifndef RBT_RUNTIME_CHECK_BUDGET_H
#define RBT_RUNTIME_CHECK_BUDGET_H

#include "node/topology.h"

#define RBT_BUDGET_WINDOW_NS 100000000u

typedef struct rbt_budget_checker rbt_budget_checker;

rbt_budget_checker *rbt_budget_checker_create(const rbt_topology *topology);
void rbt_budget_checker_destroy(rbt_budget_checker *checker);

/* A message of so many bytes goes out: may it? RBT_E_BROKEN says what is wrong. */
rbt_err rbt_budget_checker_sent(rbt_budget_checker *checker, const rbt_message *message, size_t bytes, uint64_t now_ns,
                                rbt_error *error);

#endif
