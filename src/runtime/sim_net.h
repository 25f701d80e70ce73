/* The simulator's links: when does a message arrive?
 *
 * Every host has one link in each direction; a message occupies the sender's link for bytes / bandwidth,
 * travels for the latency (and jitter), then occupies the receiver's link and its attention. Between hosts that differ,
 * latency and jitter are the mean of both, and the slower link decides. Within a host there is only the attention.
 * Unless rbt_sim_net_place says otherwise, every node is a host. Messages of one pair arrive in order. Faults: a lost transmission is repeated after a time-out (and holds up those behind it), a partition
 * holds messages back until it ends, a duplicate arrives later and out of order. Proved by tests/unit/test_sim_net.c.
 */
#ifndef RBT_RUNTIME_SIM_NET_H
#define RBT_RUNTIME_SIM_NET_H

#include "base/map.h"
#include "base/rng.h"
#include "runtime/sim.h"

typedef struct rbt_partition {
    uint64_t from_ns;
    uint64_t to_ns;
    bool *cut_off; /* per host */
} rbt_partition;

typedef struct rbt_sim_host {
    double speed;
    rbt_net link;
} rbt_sim_host;

typedef struct rbt_sim_net {
    const rbt_sim_options *options;
    uint32_t nodes;
    rbt_rng jitter;
    rbt_rng faults;
    rbt_node *host_of; /* per node: the first node that lives on the same host; what follows is by that */
    rbt_sim_host *hosts;
    uint64_t *out_free_ns; /* when the host's link is free again */
    uint64_t *in_free_ns;
    uint64_t *own_free_ns; /* per node: when it has handled what came from its own host */
    rbt_map last_arrival;  /* (from, to) -> time: keeps pairs in order */
    RBT_ARRAY(rbt_partition) partitions;
} rbt_sim_net;

void rbt_sim_net_init(rbt_sim_net *net, const rbt_sim_options *options, uint32_t nodes);
void rbt_sim_net_deinit(rbt_sim_net *net);

/* Puts nodes on the hosts of the options, if there are any. */
void rbt_sim_net_place(rbt_sim_net *net, const rbt_topology *topology);

/* How many times as fast as --cost says is the node's host? */
double rbt_sim_net_speed(const rbt_sim_net *net, rbt_node node);

/* A message leaves now: when does it reach the receiver's host? */
uint64_t rbt_sim_net_send(rbt_sim_net *net, rbt_node from, rbt_node to, size_t bytes, uint64_t now_ns);

/* Does this message arrive a second time? Then when. */
bool rbt_sim_net_repeats(rbt_sim_net *net, uint64_t arrival_ns, uint64_t *again_ns);

/* It has reached the host: when has the receiver read it? */
uint64_t rbt_sim_net_receive(rbt_sim_net *net, rbt_node from, rbt_node to, size_t bytes, uint64_t now_ns);

#endif
