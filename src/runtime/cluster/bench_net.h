/* `rubato bench net`: what the cluster's transport costs.
 *
 * Two processes exchange messages through hubs (pushes that the receiver counts and acknowledges in the end; pulls, several
 * under way at once) and, in the same run and interleaved, bytes in a bare loop over the same kind of socket: the
 * cost of our layer is a ratio. For shared memory the other side is a memcpy of the same bytes. */
#ifndef RBT_RUNTIME_CLUSTER_BENCH_NET_H
#define RBT_RUNTIME_CLUSTER_BENCH_NET_H

#include "rubato.h"

typedef struct rbt_bench_net_options {
    const char *only;    /* one kind of connection: unix, ring, tcp, tls; NULL = all */
    const char *netns;   /* a file such as /run/netns/NAME: where the other process lives (TCP only); NULL = here */
    const char *address; /* where it listens; NULL = 127.0.0.1 */
} rbt_bench_net_options;

rbt_err rbt_bench_net(const rbt_bench_net_options *options, void (*write)(void *context, const char *line),
                      void *context, rbt_error *error);

#endif
