/* The hosts of a simulated cluster: how fast each is, what its link is like, who lives on it (--speed, --cluster).
 *
 * Without either, every node is a host of its own, of speed 1, with the link of --net. A cluster file has a line per
 * kind of host, "count=8,workers=2,speed=0.5,bw=1Gbit,lat=200us" (docs/formats.md, section 19); --speed is the same
 * with one worker per host. Workers and servers take their places in order; who is not placed stays alone.
 *
 * Filled by src/job/setup.c, asked by sim_net.c. Speed is that of all that --cost counts: computing and handling
 * messages. Proved by tests/unit/test_sim_hosts.c.
 */
#ifndef RBT_RUNTIME_SIM_HOSTS_H
#define RBT_RUNTIME_SIM_HOSTS_H

#include "base/mem.h"
#include "rubato.h"

typedef struct rbt_net {
    double bits_per_second; /* of every host, in each direction */
    uint64_t latency_ns;
    uint64_t jitter_ns; /* uniformly 0 .. jitter on top */
} rbt_net;

/* Hosts that are alike. */
typedef struct rbt_sim_group {
    uint32_t count;
    uint32_t workers; /* on each */
    uint32_t servers;
    double speed;
    rbt_net link;
} rbt_sim_group;

typedef struct rbt_sim_hosts {
    RBT_ARRAY(rbt_sim_group) groups;
    uint32_t workers; /* on all of them */
    uint32_t servers;
} rbt_sim_hosts;

#define RBT_SPEED_MAX           1e6    /* times as fast as what --cost says; and as slow */
#define RBT_SIM_RESIDENTS_LIMIT 100000 /* workers, and servers, that a cluster file has */

/* Both NULL: no groups. `workers` is how many speeds are for; `link` is what a line that says nothing of it has. Not both. */
rbt_err rbt_sim_hosts_init(rbt_sim_hosts *hosts, const char *speed, const char *cluster, uint32_t workers,
                           const rbt_net *link, rbt_error *error);
void rbt_sim_hosts_deinit(rbt_sim_hosts *hosts);

#endif
