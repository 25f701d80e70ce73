/* The simulator: a whole cluster in one thread and in virtual time.
 *
 * Workers are coroutines that run the very code the other runtimes run; they compute real gradients, and time is
 * charged for them by a cost model. Messages travel over links with latency, jitter and bandwidth in both directions.
 * Events (a message reaches a host, is handled; a worker wakes, crashes, comes back) are ordered by time, then by a
 * counter: a run is a function of its seed. Faults hit the links and the workers, never the promises of the transport:
 * messages of one pair of nodes arrive in order and at least once, some of them more than once. Of what a worker that
 * crashes has said last, some servers hear and others do not.
 *
 * Proved by tests/sim (same seed = same bytes; BSP = local) and by the swarm.
 */
#ifndef RBT_RUNTIME_SIM_H
#define RBT_RUNTIME_SIM_H

#include "runtime/runtime.h"
#include "runtime/sim_hosts.h"

typedef struct rbt_cost {
    double sample_ns; /* computing: per sample and per non-zero */
    double nonzero_ns;
    double byte_ns; /* handling a message at the receiver: per byte and per message */
    double message_ns;
} rbt_cost;

typedef struct rbt_faults {
    double drop;         /* chance that a transmission is lost and must be repeated */
    double duplicate;    /* chance that a message arrives a second time, later and out of order */
    double delay;        /* chance of an extra delay of up to 50 latencies */
    uint32_t crashes;    /* workers that die at a random moment and come back */
    uint32_t partitions; /* times that some hosts are cut off from the rest for a while */
    uint64_t within_ns;  /* crashes and partitions happen in this time from the start */
} rbt_faults;

typedef struct rbt_sim_options {
    uint64_t seed;
    rbt_net net;
    rbt_sim_hosts hosts; /* none: every node is a host of its own, with the link above */
    rbt_cost cost;
    rbt_faults faults;
    struct rbt_checker *checker; /* NULL: none */
    struct rbt_hop_checker
        *hop_checker;     /* of a job without servers; NULL: none. Needs `checker`, which it reports to */
    uint64_t most_events; /* more is no progress; 0: no limit */
} rbt_sim_options;

/* Fills the options from text like "bw=1Gbit,lat=200us,jitter=50us" (spec.c); NULL texts mean the defaults:
 * net bw=1Gbit,lat=100us,jitter=0us; cost sample=100ns,nnz=2ns,byte=0.1ns,message=1us; no faults, within=1s. */
rbt_err rbt_sim_options_parse(rbt_sim_options *options, const char *net, const char *cost, const char *faults,
                              rbt_error *error);

rbt_err rbt_sim_run(rbt_run *run, const rbt_sim_options *options, rbt_error *error);

#endif
