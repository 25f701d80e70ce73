/* A cluster driven by hand; the contract is in world.h. */
#include "unit/world.h"

#include "base/error.h"

void world_init(world *w, rbt_topology like, const rbt_rule *rule, uint32_t cols)
{
    rbt_table_spec spec = {.name = "values", .rows = 1, .cols = cols, .type = RBT_F32};
    rbt_rule_config config = {.rule = rule,
                              .workers = like.workers,
                              .staleness = like.staleness,
                              .factor = 0.5f,
                              .rate = 0.25f,
                              .partition_sync = like.partition_sync};
    uint32_t clients = like.workers + like.observers;
    rbt_error error;

    *w = (world){.topology = like, .now_ns = 1000};
    assert_int_equal(rbt_topology_init(&w->topology, &spec, 1, &config, &error), RBT_OK);
    rbt_master_init(&w->master, &w->topology);
    w->servers = rbt_alloc(like.servers, sizeof *w->servers);
    for (uint32_t s = 0; s < like.servers; s++)
        rbt_server_init(&w->servers[s], &w->topology, s);
    w->clients = rbt_alloc(clients, sizeof *w->clients);
    for (uint32_t m = 0; m < clients; m++)
        rbt_client_init(&w->clients[m], &w->topology, m, 0);
    w->spans = rbt_alloc(w->topology.layout[0].blocks, sizeof *w->spans);
    for (uint32_t b = 0; b < w->topology.layout[0].blocks; b++)
        w->spans[b] = (rbt_span){.table = 0, .block = b};
}

void world_deinit(world *w)
{
    world_lose(w, ANY, ANY);
    for (uint32_t m = 0; m < w->topology.workers + w->topology.observers; m++)
        rbt_client_deinit(&w->clients[m]);
    for (uint32_t s = 0; s < w->topology.servers; s++)
        rbt_server_deinit(&w->servers[s]);
    rbt_master_deinit(&w->master);
    rbt_free(w->clients);
    rbt_free(w->servers);
    rbt_free(w->spans);
    rbt_topology_deinit(&w->topology);
}

rbt_node node_of_worker(const world *w, uint32_t worker)
{
    return rbt_node_of_worker(&w->topology, worker);
}

rbt_node node_of_block(const world *w, uint32_t block)
{
    return rbt_node_of_server(w->topology.layout[0].server[block]);
}

/* ------------------------------------------------------------------------------------------------ the wire */

static bool is_match(const rbt_message *message, rbt_node from, rbt_node to, rbt_message_type type)
{
    return (from == ANY || message->from == from) && (to == ANY || message->to == to) &&
           (type == 0 || message->type == type);
}

static void put_all(world *w, rbt_outbox *said)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(said)) != NULL)
        rbt_outbox_put(&w->wire, message);
}

size_t world_count(const world *w, rbt_node from, rbt_node to, rbt_message_type type)
{
    size_t count = 0;

    for (const rbt_message *message = w->wire.first; message != NULL; message = message->next)
        count += is_match(message, from, to, type);
    return count;
}

rbt_message *world_take(world *w, rbt_node from, rbt_node to, rbt_message_type type)
{
    rbt_message *found = NULL, *message;
    rbt_outbox rest = {0};

    while ((message = rbt_outbox_take(&w->wire)) != NULL) {
        if (found == NULL && is_match(message, from, to, type))
            found = message;
        else
            rbt_outbox_put(&rest, message);
    }
    w->wire = (rbt_outbox){0};
    put_all(w, &rest);
    return found;
}

void world_put(world *w, rbt_message *message)
{
    rbt_outbox_put(&w->wire, message);
}

void world_lose(world *w, rbt_node from, rbt_node to)
{
    rbt_message *message;

    while ((message = world_take(w, from, to, 0)) != NULL)
        rbt_message_destroy(message);
}

void world_handle(world *w, rbt_message *message)
{
    rbt_env env = {.now_ns = w->now_ns};
    rbt_node to = message->to;

    if (to == RBT_MASTER)
        rbt_master_handle(&w->master, message, &env);
    else if (to <= w->topology.servers)
        rbt_server_handle(&w->servers[to - 1], message, &env);
    else
        rbt_client_handle(&w->clients[to - 1 - w->topology.servers], message, &env);
    put_all(w, &env.out);
}

void world_deliver(world *w, rbt_node from, rbt_node to)
{
    rbt_message *message;

    while ((message = world_take(w, from, to, 0)) != NULL)
        world_handle(w, message);
}

/* ----------------------------------------------------------------------------------------- a worker's calls */

void world_restart(world *w, uint32_t worker)
{
    rbt_env env = {.now_ns = w->now_ns};
    uint32_t incarnation = w->clients[worker].incarnation + 1;

    rbt_client_deinit(&w->clients[worker]);
    rbt_client_init(&w->clients[worker], &w->topology, worker, incarnation);
    rbt_client_begin(&w->clients[worker], &env);
    put_all(w, &env.out);
}

bool world_want(world *w, uint32_t worker, uint64_t staleness)
{
    rbt_env env = {.now_ns = w->now_ns};
    rbt_client *client = &w->clients[worker];
    bool fresh = rbt_client_want(client, w->spans, w->topology.layout[0].blocks, client->clock, staleness, &env);

    put_all(w, &env.out);
    return fresh;
}

float world_read(world *w, uint32_t worker, uint32_t block, uint64_t staleness)
{
    float value;

    rbt_client_read(&w->clients[worker], w->spans[block], 0, 1, staleness, &value);
    return value;
}

void world_increment(world *w, uint32_t worker, float delta)
{
    for (uint32_t b = 0; b < w->topology.layout[0].blocks; b++)
        for (uint32_t i = 0; i < rbt_layout_length(&w->topology.layout[0], b); i++)
            rbt_client_increment(&w->clients[worker], w->spans[b], i, 1, &delta);
}

void world_clock(world *w, uint32_t worker)
{
    rbt_env env = {.now_ns = w->now_ns};

    assert_true(rbt_client_may_clock(&w->clients[worker]));
    rbt_client_clock(&w->clients[worker], &env);
    put_all(w, &env.out);
}

void world_work(world *w, uint32_t worker, uint64_t staleness, float delta)
{
    for (int tries = 0; !world_want(w, worker, staleness); tries++) {
        assert_true(tries < 4);
        world_deliver(w, ANY, ANY);
    }
    world_increment(w, worker, delta);
    world_clock(w, worker);
}

/* --------------------------------------------------------------------------------------- messages by hand */

rbt_message *push_by_hand(const world *w, uint32_t worker, uint64_t clock, uint32_t server, float value)
{
    rbt_message *push = rbt_message_create(RBT_MSG_PUSH, node_of_worker(w, worker), rbt_node_of_server(server));

    push->view = 1;
    push->worker = worker;
    push->clock = clock;
    for (uint32_t b = 0; b < w->topology.layout[0].blocks; b++) {
        rbt_part part = {.block = b, .version = clock};

        if (w->topology.layout[0].server[b] != server)
            continue;
        part.snap = rbt_snap_create(RBT_F32, rbt_layout_length(&w->topology.layout[0], b));
        for (uint32_t i = 0; i < part.snap->length; i++)
            part.snap->f32[i] = value;
        rbt_array_push(&push->parts, part);
    }
    return push;
}

rbt_message *pull_by_hand(const world *w, uint32_t worker, uint64_t clock, uint64_t need, uint32_t server,
                          uint64_t request)
{
    rbt_message *pull = rbt_message_create(RBT_MSG_PULL, node_of_worker(w, worker), rbt_node_of_server(server));

    pull->view = 1;
    pull->worker = worker;
    pull->clock = clock;
    pull->need = need;
    pull->request = request;
    for (uint32_t b = 0; b < w->topology.layout[0].blocks; b++)
        if (w->topology.layout[0].server[b] == server)
            rbt_array_push(&pull->parts, ((rbt_part){.block = b}));
    return pull;
}

float first_value(const rbt_message *blocks)
{
    float value;

    assert_non_null(blocks);
    assert_int_equal(blocks->type, RBT_MSG_BLOCKS);
    assert_true(blocks->parts.count > 0);
    rbt_snap_read(blocks->parts.at[0].snap, 0, 1, &value);
    return value;
}
