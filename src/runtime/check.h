/* The checker: states the servers' guarantees a second time, in other words, and compares after every event.
 *
 * For every server it keeps what each (worker, clock) brought to each block, and once the server claims to have applied
 * it works out in double precision what the block's value must be: sum, con: the (weighted) sum of all updates; dyn:
 * the sum over all versions of the mean of the updates in it, with the whole history kept, nothing ever expired;
 * momentum: the sum of all updates, each with what has gone on of it; adarev: check_adarev.h. It checks after every event
 * at a server:
 *   - each (worker, clock) is taken exactly once per block and in order, whatever is repeated or comes from the past, and
 *     counts with the last slice of its push;
 *   - every block's value, and every block in every answer, is what it must be;
 *   - the versions of dyn that are alive are at most staleness + 1, those kept for adarev within their limit;
 *   - an answer's slowest clock is what it must be, and meets what was asked; it says rightly, block by block, how many
 *     clocks of the reader, and of the others of its process, are in it.
 * Readers' guarantees are checked by the swarm's program (job/swarm.c), with a table of counters. adagrad's values
 * depend on the order of arrival and are compared in tests/unit/test_rule.c instead.
 *
 * Used by the swarm through rbt_sim_options. Proved by the mutants: builds broken on purpose must be caught.
 */
#ifndef RBT_RUNTIME_CHECK_H
#define RBT_RUNTIME_CHECK_H

#include "node/server.h"

typedef struct rbt_checker rbt_checker;

rbt_checker *rbt_checker_create(const rbt_topology *topology);
void rbt_checker_destroy(rbt_checker *checker);

/* Around a server's handling of a message. */
void rbt_checker_before(rbt_checker *checker, const rbt_server *server, const rbt_message *message);
void rbt_checker_after(rbt_checker *checker, const rbt_server *server, const rbt_outbox *said);

/* The first guarantee that was broken, or NULL. */
const char *rbt_checker_broken(const rbt_checker *checker);

/* For the program under test: something else was found broken. */
void rbt_checker_report(rbt_checker *checker, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
