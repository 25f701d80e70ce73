/* How two processes get to know each other on a new connection; see link.h. Called by link.c. */
#ifndef RBT_RUNTIME_CLUSTER_GREETING_H
#define RBT_RUNTIME_CLUSTER_GREETING_H

#include "runtime/cluster/link.h"

void rbt_greeting_begin(rbt_link *link);

/* Goes as far as the socket allows; in the end the link is open or closed. */
void rbt_greeting_step(rbt_link *link);

#endif
