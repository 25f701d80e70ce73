/* The roster: all seats of a job, as processes tell them to each other, and what a process knows of itself. Called by
 * session.c. */
#ifndef RBT_RUNTIME_CLUSTER_ROSTER_H
#define RBT_RUNTIME_CLUSTER_ROSTER_H

#include "base/pack.h"
#include "runtime/cluster/session.h"

/* This process: host, process number, which kernel and network it is in. */
void rbt_seat_of_this(rbt_seat *seat);

/* What a process says of itself when it joins; the roles are not part of it. */
void rbt_seat_pack_self(rbt_pack *pack, const rbt_seat *seat);
void rbt_seat_unpack_self(rbt_unpack *unpack, rbt_seat *seat);
void rbt_seat_copy_self(rbt_seat *to, const rbt_seat *from);

void rbt_roster_pack(rbt_pack *pack, const rbt_seat *seats, uint32_t size);
rbt_seat *rbt_roster_unpack(rbt_unpack *unpack, uint32_t *size); /* NULL when it is none; free with rbt_free */

/* Who does what: `size` processes, of which the lead works only if `lead_works`; each that works has `each` workers.
 * Servers are spread over those that work, or, `apart`, have the last `servers` processes to themselves. */
void rbt_roster_assign(rbt_seat *seats, uint32_t size, bool lead_works, uint32_t each, uint32_t workers,
                       uint32_t servers, bool apart);

#endif
