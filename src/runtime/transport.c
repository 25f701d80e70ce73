/* What the runtimes have in common; the contract is in transport.h. */
#include "runtime/transport.h"

#include <string.h>

#include "base/error.h"
#include "comm/squeeze.h"
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

/* ------------------------------------------------------------------------------------------------- the codec */

/* From one node to another. */
typedef struct line {
    rbt_keys sent;
    rbt_keys received; /* in encode mode */
} line;

struct rbt_lines {
    uint32_t nodes;
    rbt_map to[]; /* per sender: node -> line */
};

void rbt_transport_open(rbt_run *run)
{
    uint32_t nodes = rbt_topology_nodes(run->topology);

    if (!(run->codec & RBT_CODEC_KEYS))
        return;
    run->lines = rbt_alloc(1, sizeof *run->lines + nodes * sizeof run->lines->to[0]);
    run->lines->nodes = nodes;
}

static void forget_line(line *l)
{
    rbt_keys_deinit(&l->sent);
    rbt_keys_deinit(&l->received);
}

static line *line_at(uint64_t *value)
{
    line *l;

    memcpy(&l, value, sizeof l);
    return l;
}

void rbt_transport_close(rbt_run *run)
{
    for (uint32_t from = 0; run->lines != NULL && from < run->lines->nodes; from++) {
        size_t cursor = 0;
        uint64_t to, value;

        while (rbt_map_next(&run->lines->to[from], &cursor, &to, &value)) {
            forget_line(line_at(&value));
            rbt_free(line_at(&value));
        }
        rbt_map_deinit(&run->lines->to[from]);
    }
    rbt_free(run->lines);
    run->lines = NULL;
}

void rbt_transport_forget(rbt_run *run, rbt_node node)
{
    size_t cursor = 0;
    uint64_t to, value;

    if (run->lines == NULL)
        return;
    while (rbt_map_next(&run->lines->to[node], &cursor, &to, &value))
        forget_line(line_at(&value));
    for (uint32_t from = 0; from < run->lines->nodes; from++) {
        uint64_t *found = rbt_map_get(&run->lines->to[from], node);

        if (found != NULL)
            forget_line(line_at(found));
    }
}

static line *line_of(rbt_run *run, const rbt_message *message)
{
    bool is_new;
    uint64_t *value;

    if (run->lines == NULL)
        return NULL;
    value = rbt_map_put(&run->lines->to[message->from], message->to, &is_new);
    if (is_new) {
        line *l = rbt_alloc(1, sizeof *l);

        memcpy(value, &l, sizeof l);
    }
    return line_at(value);
}

/* Squeezes the message; how many bytes it takes then. In encode mode it is replaced by what comes out at the other end. */
static size_t squeeze(rbt_run *run, rbt_message **message, size_t plain)
{
    size_t head = rbt_wire_head_size(*message), bytes = plain;
    line *l = line_of(run, *message);
    rbt_pack body = {0};

    if (rbt_squeeze(*message, run->codec, l != NULL ? &l->sent : NULL, &body))
        bytes = head + body.count;
    if (run->encode && bytes != plain) {
        uint8_t *encoded = rbt_alloc(head, 1);
        rbt_message *decoded = NULL;
        rbt_error error;

        rbt_wire_encode_head(*message, encoded);
        RBT_ASSERT(rbt_unsqueeze(encoded, head, body.at, body.count, plain - head, l != NULL ? &l->received : NULL,
                                 &decoded, &error) == RBT_OK);
        rbt_free(encoded);
        rbt_message_destroy(*message);
        *message = decoded;
    }
    rbt_array_free(&body);
    return bytes;
}

void rbt_transport_count(rbt_run *run, size_t plain, size_t bytes)
{
    atomic_fetch_add_explicit(&run->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->plain, plain, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->messages, 1, memory_order_relaxed);
}

rbt_message *rbt_transport_pass(rbt_run *run, rbt_message *message, bool travels, size_t *bytes)
{
    size_t plain = rbt_wire_size(message);
    bool is_observed = rbt_is_observed(run, message);

    *bytes = plain;
    if (travels && run->codec != 0 && rbt_wire_body_size(message) > 0 && (!is_observed || run->encode))
        *bytes = squeeze(run, &message, plain);
    if (!is_observed)
        rbt_transport_count(run, plain, *bytes);
    if (run->encode && *bytes == plain) {
        uint8_t *encoded = rbt_alloc(plain, 1);
        rbt_message *decoded = NULL;
        rbt_error error;

        rbt_wire_encode(message, encoded);
        RBT_ASSERT(rbt_wire_decode(encoded, plain, &decoded, &error) == RBT_OK);
        rbt_free(encoded);
        rbt_message_destroy(message);
        message = decoded;
    }
    return message;
}
