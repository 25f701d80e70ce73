/* What the runtimes have in common; the contract is in transport.h. */
#include "runtime/transport.h"

#include "base/error.h"
#include "wire/codec.h"

void rbt_nodes_init(rbt_nodes *nodes, const rbt_run *run, const bool *here)
{
    rbt_master_init(&nodes->master, run->topology);
    nodes->master.has_target = run->has_target;
    nodes->master.target = run->target;
    nodes->servers = rbt_alloc(run->topology->servers, sizeof *nodes->servers);
    nodes->has_server = rbt_alloc(run->topology->servers, sizeof *nodes->has_server);
    for (uint32_t s = 0; s < run->topology->servers; s++) {
        nodes->has_server[s] = here == NULL || here[rbt_node_of_server(s)];
        if (nodes->has_server[s])
            rbt_server_init(&nodes->servers[s], run->topology, s);
    }
}

void rbt_nodes_deinit(rbt_nodes *nodes, rbt_run *run)
{
    for (uint32_t s = 0; s < run->topology->servers; s++) {
        if (!nodes->has_server[s])
            continue;
        rbt_run_add_server(run, &nodes->servers[s]);
        rbt_server_deinit(&nodes->servers[s]);
    }
    rbt_free(nodes->servers);
    rbt_free(nodes->has_server);
    rbt_master_deinit(&nodes->master);
}

static uint32_t process_count(const rbt_topology *topology)
{
    return (topology->workers + topology->process_workers - 1) / topology->process_workers;
}

rbt_process *rbt_processes_create(const rbt_topology *topology)
{
    rbt_process *processes;

    if (topology->process_workers <= 1)
        return NULL;
    processes = rbt_alloc(process_count(topology), sizeof *processes);
    for (uint32_t i = 0; i < process_count(topology); i++) {
        uint32_t first = i * topology->process_workers;

        rbt_process_cache_init(&processes[i].cache, topology->layout, topology->tables, first,
                               rbt_process_count(topology, first));
    }
    return processes;
}

void rbt_processes_destroy(rbt_process *processes, const rbt_topology *topology)
{
    for (uint32_t i = 0; processes != NULL && i < process_count(topology); i++)
        rbt_process_cache_deinit(&processes[i].cache);
    rbt_free(processes);
}

void rbt_nodes_handle(rbt_nodes *nodes, rbt_node to, rbt_message *message, rbt_env *env)
{
    const rbt_topology *topology = nodes->master.topology;

    /* Answers go to the sender: it must be somebody, and speak for itself. */
    if (message->from >= rbt_topology_nodes(topology) ||
        (message->from > topology->servers && message->from != rbt_node_of_worker(topology, message->worker))) {
        rbt_message_destroy(message);
        return;
    }
    if (to == RBT_MASTER)
        rbt_master_handle(&nodes->master, message, env);
    else
        rbt_server_handle(&nodes->servers[to - 1], message, env);
}

bool rbt_is_observed(const rbt_run *run, const rbt_message *message)
{
    rbt_node first_observer = rbt_node_of_worker(run->topology, run->topology->workers);

    return message->from >= first_observer || message->to >= first_observer;
}

rbt_message *rbt_transport_pass(rbt_run *run, rbt_message *message, size_t *bytes)
{
    *bytes = rbt_wire_size(message);
    if (!rbt_is_observed(run, message)) {
        atomic_fetch_add_explicit(&run->bytes, *bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&run->messages, 1, memory_order_relaxed);
    }
    if (run->encode) {
        uint8_t *encoded = rbt_alloc(*bytes, 1);
        rbt_message *decoded = NULL;
        rbt_error error;

        rbt_wire_encode(message, encoded);
        RBT_ASSERT(rbt_wire_decode(encoded, *bytes, &decoded, &error) == RBT_OK);
        rbt_free(encoded);
        rbt_message_destroy(message);
        message = decoded;
    }
    return message;
}
