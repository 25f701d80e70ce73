/* The simulator's links; the contract is in sim_net.h. */
#include "runtime/sim_net.h"

#define RETRANSMIT_NS     2000000u /* the least time-out after a lost transmission */
#define RETRANSMIT_TRIES  16       /* then it gets through: links are bad, not dead */
#define DELAY_LATENCIES   50       /* an extra delay takes up to this many latencies */
#define FAULT_UNIT_MIN_NS 10000u   /* ... but a latency of 0 counts as this */

static const rbt_sim_host *host_of(const rbt_sim_net *net, rbt_node node)
{
    return &net->hosts[net->host_of[node]];
}

/* How long the bytes take on the link of the node's host. */
static uint64_t transmit_ns(const rbt_sim_net *net, rbt_node node, size_t bytes)
{
    double rate = host_of(net, node)->link.bits_per_second;

    return rate > 0 ? (uint64_t)((double)bytes * 8e9 / rate) : 0;
}

static uint64_t fault_unit_ns(const rbt_sim_net *net)
{
    uint64_t latency = net->options->net.latency_ns;

    return latency > FAULT_UNIT_MIN_NS ? latency : FAULT_UNIT_MIN_NS;
}

static void plan_partitions(rbt_sim_net *net, uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_FAULT, 1);
    uint64_t within = net->options->faults.within_ns;

    for (uint32_t i = 0; i < net->options->faults.partitions; i++) {
        rbt_partition partition = {.cut_off = rbt_alloc(net->nodes, sizeof(bool))};

        partition.from_ns = rbt_rng_below(&rng, within + 1);
        partition.to_ns = partition.from_ns + rbt_rng_below(&rng, within / 4 + 1);
        for (uint32_t node = 0; node < net->nodes; node++)
            partition.cut_off[node] = rbt_rng_below(&rng, 3) == 0;
        rbt_array_push(&net->partitions, partition);
    }
}

void rbt_sim_net_init(rbt_sim_net *net, const rbt_sim_options *options, uint32_t nodes)
{
    *net = (rbt_sim_net){.options = options, .nodes = nodes};
    net->jitter = rbt_rng_stream(options->seed, RBT_STREAM_NETWORK, 0);
    net->faults = rbt_rng_stream(options->seed, RBT_STREAM_FAULT, 0);
    net->out_free_ns = rbt_alloc(nodes, sizeof *net->out_free_ns);
    net->in_free_ns = rbt_alloc(nodes, sizeof *net->in_free_ns);
    net->own_free_ns = rbt_alloc(nodes, sizeof *net->own_free_ns);
    net->host_of = rbt_alloc(nodes, sizeof *net->host_of);
    net->hosts = rbt_alloc(nodes, sizeof *net->hosts);
    for (rbt_node node = 0; node < nodes; node++) {
        net->host_of[node] = node;
        net->hosts[node] = (rbt_sim_host){.speed = 1, .link = options->net};
    }
    plan_partitions(net, options->seed);
}

/* Puts up to `n` nodes from `*next` on, but none from `end` on, on the host of `first`; the first one of all makes it. */
static void house(rbt_sim_net *net, const rbt_sim_group *group, uint32_t n, rbt_node *next, rbt_node end,
                  rbt_node *first)
{
    for (uint32_t i = 0; i < n && *next < end; i++, ++*next) {
        if (*first == RBT_MASTER) { /* which lives alone, so this says nobody */
            *first = *next;
            net->hosts[*next] = (rbt_sim_host){.speed = group->speed, .link = group->link};
        }
        net->host_of[*next] = *first;
    }
}

void rbt_sim_net_place(rbt_sim_net *net, const rbt_topology *topology)
{
    const rbt_sim_hosts *hosts = &net->options->hosts;
    rbt_node server = RBT_MASTER + 1, worker = rbt_node_of_worker(topology, 0);
    rbt_node servers_end = server + topology->servers, workers_end = worker + topology->workers;

    for (size_t i = 0; i < hosts->groups.count; i++)
        for (uint32_t k = 0; k < hosts->groups.at[i].count; k++) {
            const rbt_sim_group *group = &hosts->groups.at[i];
            rbt_node first = RBT_MASTER;

            house(net, group, group->servers, &server, servers_end, &first);
            house(net, group, group->workers, &worker, workers_end, &first);
        }
}

double rbt_sim_net_speed(const rbt_sim_net *net, rbt_node node)
{
    return host_of(net, node)->speed;
}

void rbt_sim_net_deinit(rbt_sim_net *net)
{
    for (size_t i = 0; i < net->partitions.count; i++)
        rbt_free(net->partitions.at[i].cut_off);
    rbt_array_free(&net->partitions);
    rbt_free(net->out_free_ns);
    rbt_free(net->in_free_ns);
    rbt_free(net->own_free_ns);
    rbt_free(net->host_of);
    rbt_free(net->hosts);
    rbt_map_deinit(&net->last_arrival);
}

/* What faults add to the way of one message. */
static uint64_t fault_delay_ns(rbt_sim_net *net, uint64_t latency_ns)
{
    const rbt_faults *faults = &net->options->faults;
    uint64_t delay = 0, timeout = RETRANSMIT_NS + 4 * latency_ns;

    for (int tries = 0; faults->drop > 0 && tries < RETRANSMIT_TRIES && rbt_rng_f64(&net->faults) < faults->drop;
         tries++)
        delay += timeout;
    if (faults->delay > 0 && rbt_rng_f64(&net->faults) < faults->delay)
        delay += rbt_rng_below(&net->faults, DELAY_LATENCIES * fault_unit_ns(net) + 1);
    return delay;
}

uint64_t rbt_sim_net_send(rbt_sim_net *net, rbt_node from, rbt_node to, size_t bytes, uint64_t now_ns)
{
    const rbt_net *out = &host_of(net, from)->link, *in = &host_of(net, to)->link;
    rbt_node here = net->host_of[from], there = net->host_of[to];
    uint64_t latency_ns = (out->latency_ns + in->latency_ns) / 2, jitter_ns = (out->jitter_ns + in->jitter_ns) / 2;
    uint64_t left = now_ns > net->out_free_ns[here] ? now_ns : net->out_free_ns[here];
    uint64_t arrival, *last;
    bool is_new;

    if (here == there)
        return now_ns;
    net->out_free_ns[here] = left += transmit_ns(net, from, bytes);
    for (size_t i = 0; i < net->partitions.count; i++) {
        const rbt_partition *partition = &net->partitions.at[i];

        if (partition->cut_off[here] != partition->cut_off[there] && left >= partition->from_ns &&
            left < partition->to_ns)
            left = partition->to_ns;
    }
    arrival = left + latency_ns + fault_delay_ns(net, latency_ns);
    if (jitter_ns > 0)
        arrival += rbt_rng_below(&net->jitter, jitter_ns + 1);
    last = rbt_map_put(&net->last_arrival, (uint64_t)from << 32 | to, &is_new);
    if (arrival < *last)
        arrival = *last;
    return *last = arrival;
}

bool rbt_sim_net_repeats(rbt_sim_net *net, uint64_t arrival_ns, uint64_t *again_ns)
{
    double chance = net->options->faults.duplicate;

    if (chance <= 0 || rbt_rng_f64(&net->faults) >= chance)
        return false;
    *again_ns = arrival_ns + rbt_rng_below(&net->faults, DELAY_LATENCIES * fault_unit_ns(net) + 1);
    return true;
}

uint64_t rbt_sim_net_receive(rbt_sim_net *net, rbt_node from, rbt_node to, size_t bytes, uint64_t now_ns)
{
    const rbt_cost *cost = &net->options->cost;
    rbt_node there = net->host_of[to];
    uint64_t on_link = transmit_ns(net, to, bytes), sent = transmit_ns(net, from, bytes);
    uint64_t overlap = on_link < sent ? on_link : sent;
    uint64_t busy = (uint64_t)((cost->message_ns + cost->byte_ns * (double)bytes) / net->hosts[there].speed);
    /* The bits came in while they were sent; only if the link was taken, or is the slower one, do they queue. */
    uint64_t begin = now_ns > overlap ? now_ns - overlap : 0;

    if (net->host_of[from] == there) {
        begin = now_ns > net->own_free_ns[to] ? now_ns : net->own_free_ns[to];
        return net->own_free_ns[to] = begin + busy;
    }
    if (begin < net->in_free_ns[there])
        begin = net->in_free_ns[there];
    return net->in_free_ns[there] = begin + on_link + busy;
}
