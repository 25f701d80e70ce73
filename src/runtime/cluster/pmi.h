/* PMI, version 1: how processes that MPICH's mpiexec (hydra) and its kin have started tell each other a few words.
 *
 * Lines of key=value over the file that PMI_FD names. Used once, at the start: rank 0 publishes where it can be reached,
 * all wait for each other, the others read it, and everybody says goodbye, so that the starter does not take a later
 * end for an accident. The answers are checked like anybody's bytes. Nothing is kept.
 *
 * Called by the cluster runtime when a standing has a pmi_fd. Proved by tests/unit/test_pmi.c against a starter in the
 * test, and by tests/cluster/test_mpiexec.sh under the real one.
 */
#ifndef RBT_RUNTIME_CLUSTER_PMI_H
#define RBT_RUNTIME_CLUSTER_PMI_H

#include "runtime/cluster/standing.h"

#define RBT_PMI_LINE_MAX  2048 /* bytes of one line */
#define RBT_PMI_VALUE_MAX 512  /* bytes of what rank 0 publishes */

/* Completes the standing: the job's name, the port and the hosts where the lead may be. `mine` is where this process can be
 * reached, hosts with spaces between; rank 0's counts. Waits until all processes of the job have called it. Closes
 * pmi_fd. */
rbt_err rbt_pmi_meet(rbt_standing *standing, const char *mine, rbt_error *error);

/* This host's name and its addresses that are not loopback, with spaces between. */
void rbt_pmi_here(char hosts[RBT_PMI_VALUE_MAX]);

#endif
