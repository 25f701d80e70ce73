/* The checker of peers: states Hop's guarantees a second time, in other words, and compares after every event.
 *
 * It looks at all peers at once, which none of them can, and checks:
 *   - iter(i) - iter(j) for every pair, by the paper's Table 1 (sync/gap.h), along paths of peers that are still there;
 *   - tokens: TokenQ(j->i).size + tokens under way = iter(j) - iter(i) + max_gap, where those under way are counted on the wire;
 *   - update queues: at most (1 + max_gap) * |N_in| in all, nothing that is too old or that was never sent;
 *   - with NOTIFY-ACK no more than one update of each sender waits;
 *   - a jump ends at the slowest out-neighbour or before it.
 * While a peer that jumps waits for updates to renew its parameters, it still counts as where it was when it is compared with
 * those behind it, and as where it will be (which it has told) with those ahead.
 *
 * Used by the swarm and tests/sim through rbt_sim_options. Proved by the mutants (cmake/mutants.cmake) and by
 * tests/unit/test_check_hop.c.
 */
#ifndef RBT_RUNTIME_CHECK_HOP_H
#define RBT_RUNTIME_CHECK_HOP_H

#include "node/peer.h"
#include "runtime/check.h"

typedef struct rbt_hop_checker rbt_hop_checker;

/* What it finds goes to `report`. */
rbt_hop_checker *rbt_hop_checker_create(const rbt_topology *topology, rbt_checker *report);
void rbt_hop_checker_destroy(rbt_hop_checker *checker);

/* After an event: every worker's peer (NULL: it is no more), then the judgement. */
void rbt_hop_checker_see(rbt_hop_checker *checker, uint32_t worker, const rbt_peer *peer);
void rbt_hop_checker_judge(rbt_hop_checker *checker);

/* A TOKEN goes onto the wire, or comes from it. */
void rbt_hop_checker_sent(rbt_hop_checker *checker, const rbt_message *token);
void rbt_hop_checker_delivered(rbt_hop_checker *checker, const rbt_message *token);

/* How far apart two peers were at most, and jumps that were seen. */
uint64_t rbt_hop_checker_gap(const rbt_hop_checker *checker);
uint64_t rbt_hop_checker_jumps(const rbt_hop_checker *checker);

#endif
