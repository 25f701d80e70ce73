/* A weighted average that is due: what it is of, in the order of the workers' numbers, and where it goes. Its parts are held, so
 * that it can be worked out by the worker's thread while the peer handles messages.
 *
 * One pass: every part is read once and the average written once, whatever their number; the memory is used again (peer.c). Same
 * order, same bits on every runtime. Called by peer.c, gossip.c and runtime/hop.c. Proved by tests/unit/test_peer.c; its cost beside
 * memcpy is measured by `rubato bench hop`. */
#ifndef RBT_NODE_MIX_H
#define RBT_NODE_MIX_H

#include "table/snap.h"

typedef struct rbt_mix {
    size_t count;
    rbt_snap **x;
    float *weight;
    size_t room;
    rbt_snap *out; /* NULL: there was no memory for it */
} rbt_mix;

void rbt_mix_make_room(rbt_mix *mix, size_t room); /* of one that is empty */
void rbt_mix_deinit(rbt_mix *mix);                 /* all zero is an empty one */

/* Averages into mix->out, adds factor * add (NULL: nothing), and lets go of the parts; the average is the caller's. */
rbt_snap *rbt_mix_average(rbt_mix *mix, const float *add, float factor);

#endif
