/* Slices: a push of many blocks travels as several messages, so that a server adds one while the next is arriving.
 *
 * The worker cuts (rbt_slices_cut): blocks ascend by place over all slices, slices are numbered from 0, all but the last
 * are marked `more`. The server puts them together (rbt_slices_take) and remembers per worker how far the push of its
 * next clock has come. What holds always, whatever is repeated, forged or sent again by another life of the worker:
 *   - slices are taken in order and each once; one that is missing or unsound ends what can be taken of that clock;
 *   - a block is taken at most once per (worker, clock): of a worker that died in the middle and pushes the clock again,
 *     what its former life had brought stays and is left out of the new slices;
 *   - all parts of a block are in one slice; with the last slice every block that must be has been named;
 *   - a push has at most as many slices as the server has blocks, and one.
 * Proved by tests/unit/test_slices.c and by the swarm (mutants slice and reach).
 */
#ifndef RBT_NODE_SLICES_H
#define RBT_NODE_SLICES_H

#include "node/server.h"

/* Takes a push and puts its slices, of about `bytes` (0: any number) and at most `most` parts (likewise), into `out`. */
void rbt_slices_cut(rbt_message *push, size_t bytes, size_t most, rbt_outbox *out);

typedef enum rbt_slice_verdict { RBT_SLICE_TAKEN, RBT_SLICE_REPEATED, RBT_SLICE_REFUSED } rbt_slice_verdict;

/* What is this slice of the worker's next clock? When it is taken, `slice` has only blocks that are new. */
rbt_slice_verdict rbt_slices_take(rbt_server *server, rbt_message *slice);

/* An update as the rules see it. */
rbt_push rbt_slices_push(const rbt_message *slice, const rbt_part *part);

/* How many of a worker's clocks are in the server's blocks. */
rbt_applied rbt_slices_applied(const rbt_server *server, uint32_t worker);

#endif
