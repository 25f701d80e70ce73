/* The server's state machine; the contract is in server.h. A reader who follows one push reads handle_push, apply_slice
 * and clock_advanced; pulls are in pulls.c. */
#include "node/server.h"

#include "base/error.h"
#include "node/early.h"
#include "node/pulls.h"
#include "node/slices.h"
#include "sync/staleness.h"

static bool is_bsp(const rbt_server *server)
{
    return server->topology->staleness == 0;
}

static bool is_worker(const rbt_server *server, uint32_t worker)
{
    return worker < server->topology->workers;
}

static const rbt_rule_config *rule_of(const rbt_server *server, const rbt_server_cell *cell)
{
    return &server->topology->rule[cell->table];
}

static rbt_message *say(rbt_server *server, rbt_env *env, rbt_message_type type, rbt_node to)
{
    rbt_message *message = rbt_message_create(type, server->node, to);

    message->view = server->view;
    rbt_outbox_put(&env->out, message);
    return message;
}

/* ------------------------------------------------------------------------------------------- making one */

static void init_cells(rbt_server *server)
{
    const rbt_topology *topology = server->topology;

    server->ordinal = rbt_alloc(topology->tables, sizeof *server->ordinal);
    for (uint32_t t = 0; t < topology->tables; t++) {
        const rbt_layout *layout = &topology->layout[t];

        server->ordinal[t] = rbt_alloc(layout->blocks, sizeof *server->ordinal[t]);
        for (uint32_t b = 0; b < layout->blocks; b++) {
            rbt_server_cell cell = {.table = t, .block = b};

            server->ordinal[t][b] = UINT32_MAX;
            if (layout->server[b] != server->id)
                continue;
            server->ordinal[t][b] = (uint32_t)server->cells.count;
            rbt_cell_init(&cell.cell, &topology->rule[t], layout->type, rbt_layout_length(layout, b), layout->sparse);
            if (rbt_is_managed(topology, t))
                rbt_strips_init(&cell.strips, rbt_layout_length(layout, b), layout);
            rbt_array_push(&server->cells, cell);
            server->counted += topology->rule[t].rule->counts_empty;
        }
    }
}

void rbt_server_init(rbt_server *server, const rbt_topology *topology, uint32_t id)
{
    uint32_t workers = topology->workers;

    *server = (rbt_server){.topology = topology, .node = rbt_node_of_server(id), .id = id, .view = 1};
    init_cells(server);
    rbt_server_init_early(server);
    rbt_floor_init(&server->clocks, workers);
    server->incarnation = rbt_alloc(workers, sizeof *server->incarnation);
    server->retiring = rbt_alloc(workers, sizeof *server->retiring);
    server->sliced = rbt_alloc(workers, sizeof *server->sliced);
    server->early = rbt_alloc(workers, sizeof *server->early);
    server->early_count = rbt_alloc(workers, sizeof *server->early_count);
    server->registered = rbt_alloc(workers, sizeof *server->registered);
    for (uint32_t m = 0; m < workers; m++)
        server->registered[m] = rbt_alloc(server->cells.count / 64 + 1, sizeof **server->registered);
}

static void drop_early(rbt_server *server, uint32_t worker)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&server->early[worker])) != NULL)
        rbt_message_destroy(message);
}

void rbt_server_deinit(rbt_server *server)
{
    for (size_t i = 0; i < server->cells.count; i++)
        rbt_cell_deinit(&server->cells.at[i].cell);
    rbt_server_deinit_early(server);
    rbt_array_free(&server->cells);
    for (uint32_t t = 0; t < server->topology->tables; t++)
        rbt_free(server->ordinal[t]);
    rbt_free(server->ordinal);
    for (uint32_t m = 0; m < server->topology->workers; m++) {
        drop_early(server, m);
        rbt_free(server->registered[m]);
    }
    rbt_free(server->registered);
    rbt_free(server->early);
    rbt_free(server->sliced);
    rbt_free(server->early_count);
    rbt_free(server->retiring);
    rbt_free(server->incarnation);
    rbt_floor_deinit(&server->clocks);
    rbt_pulls_deinit(server);
}

/* --------------------------------------------------------------------------------------------- clocks */

void rbt_server_count_versions(rbt_server *server, const rbt_server_cell *cell, size_t bytes_before)
{
    rbt_server_stats *stats = &server->stats;

    stats->version_bytes += rbt_cell_version_bytes(&cell->cell) - bytes_before;
    if (rbt_cell_version_count(&cell->cell) > stats->peak_versions)
        stats->peak_versions = rbt_cell_version_count(&cell->cell);
    if (stats->version_bytes > stats->peak_version_bytes)
        stats->peak_version_bytes = stats->version_bytes;
}

/* Tells the master where this server stands, for the stable version of partition-synchronised dyn. */
static void report(rbt_server *server, rbt_env *env)
{
    uint64_t version = RBT_UNBOUNDED;
    rbt_message *message;

    if (!server->topology->partition_sync)
        return;
    for (size_t i = 0; i < server->cells.count; i++)
        if (rbt_has_versions(server->topology, server->cells.at[i].table) && server->cells.at[i].cell.top < version)
            version = server->cells.at[i].cell.top;
    if (version == server->reported_version && server->clocks.least == server->reported_slowest)
        return;
    server->reported_version = version;
    server->reported_slowest = server->clocks.least;
    message = say(server, env, RBT_MSG_REPORT, RBT_MASTER);
    message->slowest = server->clocks.least;
    message->version = version;
}

static void clock_advanced(rbt_server *server, bool slowest_rose, rbt_env *env)
{
    if (slowest_rose && server->topology->eager)
        rbt_pulls_spread(server, env);
    rbt_pulls_answer_held(server, env);
    report(server, env);
}

/* ------------------------------------------------------------------------------------------------ pushes */

/* Tells the worker, in its present life: a push of a former one may have waited here for the others'. */
static void acknowledge(rbt_server *server, const rbt_message *push, rbt_env *env)
{
    rbt_message *ack = say(server, env, RBT_MSG_ACK, push->from);

    ack->worker = push->worker;
    ack->incarnation = server->incarnation[push->worker];
    ack->clock = push->clock;
}

/* Applies a slice whose time has come, which it takes; the last one ends the clock. True when the slowest clock rose. */
static bool apply_slice(rbt_server *server, rbt_message *slice, rbt_env *env)
{
    uint64_t slowest = server->clocks.least;
    bool rose = false;

    for (size_t i = 0; i < slice->parts.count; i++) {
        const rbt_part *part = &slice->parts.at[i];
        rbt_server_cell *cell = &server->cells.at[server->ordinal[part->table][part->block]];
        size_t bytes = rbt_cell_version_bytes(&cell->cell);
        rbt_push push = rbt_slices_push(slice, part);

        rbt_early_note(server, cell, part->snap, false);
        rbt_cell_push(&cell->cell, rule_of(server, cell), &push);
        rbt_early_note(server, cell, part->snap, true);
        rbt_server_count_versions(server, cell, bytes);
    }
    if (slice->more == 0) {
        rbt_server_forget_early(server, slice->worker);
        server->stats.updates++;
        if (server->cells.count > 0 && slowest != RBT_UNBOUNDED && slice->clock > slowest &&
            slice->clock - slowest > server->stats.max_gap)
            server->stats.max_gap = slice->clock - slowest;
        acknowledge(server, slice, env);
        rose = rbt_floor_raise(&server->clocks, slice->worker, slice->clock + 1);
    }
    rbt_message_destroy(slice);
    return rose;
}

/* A worker leaves: nobody waits for it any more. True when the slowest clock rose by that. */
static bool leave(rbt_server *server, uint32_t worker)
{
    if (server->clocks.gone[worker])
        return false;
    drop_early(server, worker); /* BSP: a push that will never be whole */
    rbt_server_undo_early(server, worker);
    for (size_t i = 0; i < server->cells.count; i++) {
        rbt_server_cell *cell = &server->cells.at[i];
        size_t bytes = rbt_cell_version_bytes(&cell->cell);

        rbt_cell_leave(&cell->cell, rule_of(server, cell), worker);
        rbt_server_count_versions(server, cell, bytes);
    }
    return rbt_floor_leave(&server->clocks, worker);
}

/* BSP: have all workers that are still there pushed this clock? */
static bool round_is_complete(const rbt_server *server)
{
    bool any = false;

    for (uint32_t m = 0; m < server->topology->workers; m++) {
        if (server->early_count[m] == 0 && !server->retiring[m])
            return false;
        any = any || server->early_count[m] > 0 || !server->clocks.gone[m];
    }
    return any;
}

/* BSP: applies the slices of a worker's oldest push, which is whole. */
static bool apply_early(rbt_server *server, uint32_t worker, rbt_env *env)
{
    bool is_last, rose;

    server->early_count[worker]--;
    do {
        rbt_message *slice = rbt_outbox_take(&server->early[worker]);

        is_last = slice->more == 0;
        rose = apply_slice(server, slice, env);
    } while (!is_last);
    return rose;
}

/* BSP: once a clock's pushes are all there they are applied, in worker order; until then nobody sees any of them. */
static void finish_rounds(rbt_server *server, rbt_env *env)
{
    while (round_is_complete(server)) {
        bool rose = false;

        for (uint32_t m = 0; m < server->topology->workers; m++) {
            if (server->early_count[m] > 0)
                rose = apply_early(server, m, env) || rose;
            else
                rose = leave(server, m) || rose;
        }
        clock_advanced(server, rose, env);
    }
}

/* Refuses what comes from the past: an older incarnation, or an older view (whose sender is told the view). */
static bool is_from_the_past(rbt_server *server, const rbt_message *message, rbt_env *env)
{
    uint32_t worker = message->worker;
    rbt_message *view;

    if (is_worker(server, worker) && message->incarnation < server->incarnation[worker]) {
        server->stats.refused++;
        return true;
    }
    if (message->view >= server->view)
        return false;
    server->stats.refused++;
    view = say(server, env, RBT_MSG_VIEW, message->from);
    for (uint32_t m = 0; m < server->topology->workers; m++) {
        rbt_member member = {.incarnation = server->incarnation[m], .state = RBT_MEMBER_LIVE};

        rbt_array_push(&view->members, member);
    }
    return true;
}

/* A slice of the worker's next clock has been taken: applies it, or under BSP holds it until all have pushed. */
static void use_slice(rbt_server *server, rbt_message *slice, rbt_env *env)
{
    bool is_last = slice->more == 0;

    if (!is_bsp(server)) {
        bool rose = apply_slice(server, slice, env);

        if (is_last)
            clock_advanced(server, rose, env);
        return;
    }
    rbt_outbox_put(&server->early[slice->worker], slice);
    if (is_last) {
        server->early_count[slice->worker]++;
        finish_rounds(server, env);
    }
}

static void handle_push(rbt_server *server, rbt_message *message, rbt_env *env)
{
    uint32_t worker = message->worker;
    rbt_slice_verdict verdict = RBT_SLICE_REFUSED;
    uint64_t expected;

    if (!is_worker(server, worker) || is_from_the_past(server, message, env))
        goto drop;
    expected = server->clocks.value[worker] + server->early_count[worker];
#ifdef RBT_MUTANT_DUPLICATE /* applied again: the swarm must notice */
    if (message->clock < expected)
        message->clock = expected;
#endif
    if (message->clock < expected)
        verdict = RBT_SLICE_REPEATED; /* applied, or waiting for its turn */
    else if (message->clock == expected && !server->clocks.gone[worker] &&
             server->early_count[worker] < RBT_UNACKED_MAX)
        verdict = rbt_slices_take(server, message);
    if (verdict == RBT_SLICE_TAKEN) {
        use_slice(server, message, env);
        return;
    }
    if (verdict == RBT_SLICE_REPEATED) {
        server->stats.repeated++;
        if (message->clock < server->clocks.value[worker] && message->more == 0)
            acknowledge(server, message, env); /* once more */
        goto drop;
    }
    server->stats.refused++;
    rbt_log_event(env->log, RBT_LOG_WARNING, "server",
                  "server %u refused slice %llu of a push of worker %u for clock %llu (expected %llu)", server->id,
                  (unsigned long long)message->slice, worker, (unsigned long long)message->clock,
                  (unsigned long long)expected);
drop:
    rbt_message_destroy(message);
}

/* -------------------------------------------------------------------------------------------- membership */

static void retire(rbt_server *server, uint32_t worker, rbt_env *env)
{
    server->retiring[worker] = true;
    if (is_bsp(server))
        finish_rounds(server, env); /* its early pushes come first */
    else
        clock_advanced(server, leave(server, worker), env);
}

/* A worker came back: what its predecessor still has under way is refused from now on; it goes on where that stopped.
 */
static void handle_resume(rbt_server *server, const rbt_message *message, rbt_env *env)
{
    uint32_t worker = message->worker;
    rbt_message *resumed;

    if (!is_worker(server, worker) || message->incarnation < server->incarnation[worker])
        return;
    if (message->incarnation > server->ahead[worker].incarnation) {
        rbt_server_undo_early(server, worker);
        server->told[worker].got = server->told[worker].sent; /* to the former life */
    }
    server->ahead[worker].incarnation = message->incarnation;
    server->incarnation[worker] = message->incarnation;
    rbt_pulls_forget(server, worker, message->incarnation);
    resumed = say(server, env, RBT_MSG_RESUMED, message->from);
    resumed->worker = worker;
    resumed->incarnation = message->incarnation;
    resumed->request = message->request;
    resumed->slowest = server->clocks.least;
    resumed->clock = server->clocks.value[worker] + server->early_count[worker];
    resumed->version = resumed->clock; /* the lowest version it may name now: its clock, or what it named itself */
    for (size_t i = 0; i < server->cells.count; i++)
        if (rbt_has_versions(server->topology, server->cells.at[i].table) &&
            server->cells.at[i].cell.next.value[worker] > resumed->version)
            resumed->version = server->cells.at[i].cell.next.value[worker];
}

static void handle_view(rbt_server *server, const rbt_message *message, rbt_env *env)
{
    if (message->view <= server->view || message->members.count != server->topology->workers)
        return;
    server->view = message->view;
    for (uint32_t m = 0; m < server->topology->workers; m++) {
        if (message->members.at[m].incarnation > server->incarnation[m])
            server->incarnation[m] = message->members.at[m].incarnation;
        if (message->members.at[m].state == RBT_MEMBER_RETIRED)
            retire(server, m, env);
    }
}

/* A part of the worker's next clock, ahead of the rest. */
static void handle_early(rbt_server *server, rbt_message *message, rbt_env *env)
{
    if (is_worker(server, message->worker) && !is_from_the_past(server, message, env)) {
        rbt_server_take_early(server, message, env);
        return;
    }
    rbt_message_destroy(message);
}

static void handle(rbt_server *server, rbt_message *message, rbt_env *env)
{
    switch (message->type) {
    case RBT_MSG_PUSH:
        handle_push(server, message, env);
        return;
    case RBT_MSG_EARLY:
        handle_early(server, message, env);
        return;
    case RBT_MSG_PULL:
        if (is_from_the_past(server, message, env))
            break;
        rbt_pulls_take(server, message, env);
        return;
    case RBT_MSG_GOT:
        rbt_server_take_got(server, message);
        break;
    case RBT_MSG_RETIRE:
        if (is_worker(server, message->worker) && message->incarnation >= server->incarnation[message->worker])
            retire(server, message->worker, env);
        break;
    case RBT_MSG_RESUME:
        handle_resume(server, message, env);
        break;
    case RBT_MSG_VIEW:
        handle_view(server, message, env);
        break;
    default:
        server->stats.refused++;
        break;
    }
    rbt_message_destroy(message);
}

void rbt_server_handle(rbt_server *server, rbt_message *message, rbt_env *env)
{
    rbt_env mine = *env;
    rbt_message *said;

    mine.out = (rbt_outbox){0};
    handle(server, message, &mine);
    for (said = mine.out.first; said != NULL; said = said->next)
        rbt_early_count(server->topology, &server->budget, said, env->now_ns);
    rbt_server_send_rows(server, &mine);
    while ((said = rbt_outbox_take(&mine.out)) != NULL)
        rbt_outbox_put(&env->out, said);
}

uint32_t rbt_server_slowest_worker(const rbt_server *server)
{
    for (uint32_t m = 0; m < server->topology->workers; m++)
        if (!server->clocks.gone[m] && server->clocks.value[m] == server->clocks.least)
            return m;
    return UINT32_MAX;
}
