/* A server's answers; the contract is in pulls.h. A reader who follows one pull reads rbt_pulls_take, pull_is_ready and
 * answer. */
#include "node/pulls.h"

#include "node/early.h"
#include "sync/staleness.h"

static bool is_worker(const rbt_server *server, uint32_t worker)
{
    return worker < server->topology->workers;
}

static const rbt_rule_config *rule_of(const rbt_server *server, const rbt_server_cell *cell)
{
    return &server->topology->rule[cell->table];
}

/* --------------------------------------------------------------------------------------------- answering */

/* May this pull be answered now? (protocols.md, section 1; the asker's own pushes are counted too: read-my-writes.) */
static bool pull_is_ready(const rbt_server *server, const rbt_message *pull)
{
    uint64_t least = server->clocks.least;

    if (!is_worker(server, pull->worker))
        return rbt_rounds(server->stats.updates, server->topology->workers, least) >= pull->need;
    return rbt_ssp_may_read(pull->need, least) && server->clocks.value[pull->worker] >= pull->clock;
}

/* A pull of a worker that has left, or (partition sync) one that names a version its worker has left behind, was
 * repeated on the way: nobody waits for the answer, and versions it must not see may have been folded in. */
static bool pull_is_outdated(const rbt_server *server, const rbt_message *pull)
{
    if (is_worker(server, pull->worker) && server->clocks.gone[pull->worker])
        return true;
    for (size_t i = 0; i < pull->parts.count; i++) {
        const rbt_part *part = &pull->parts.at[i];
        const rbt_server_cell *cell = &server->cells.at[server->ordinal[part->table][part->block]];

        if (rule_of(server, cell)->partition_sync && is_worker(server, pull->worker) &&
            cell->cell.next.value[pull->worker] > pull->version)
            return true;
    }
    return false;
}

static void add_block(rbt_server *server, rbt_message *answer, uint32_t ordinal, uint64_t version)
{
    rbt_server_cell *cell = &server->cells.at[ordinal];
    rbt_part part = {.table = cell->table, .block = cell->block};
    rbt_snap *value;

    if (is_worker(server, answer->worker)) { /* whose updates can name this version from now on */
        size_t bytes = rbt_cell_version_bytes(&cell->cell);

        rbt_cell_lend(&cell->cell, rule_of(server, cell), answer->worker);
        rbt_server_count_versions(server, cell, bytes);
    }
    value = rbt_cell_read(&cell->cell, rule_of(server, cell), version, &part.version);
    part.snap = server->topology->slice_bytes > 0 ? rbt_snap_thin(value) : rbt_snap_ref(value); /* where it travels */
    rbt_snap_unref(value);
    rbt_array_push(&answer->parts, part);
}

static rbt_message *begin_blocks(rbt_server *server, rbt_env *env, uint32_t worker)
{
    rbt_message *answer =
        rbt_message_create(RBT_MSG_BLOCKS, server->node, rbt_node_of_worker(server->topology, worker));
    rbt_applied own = {.clocks =
                           server->stats.updates}; /* an observer's: all that are whole; the values may have more */
    uint32_t first = 0, count = server->topology->workers; /* an observer is told of everybody's clocks */

    if (is_worker(server, worker)) { /* of its own and, for them, of those of the others of its process */
        own = rbt_early_applied(server, worker);
        first = rbt_process_first(server->topology, worker);
        count = server->topology->process_workers > 1 ? rbt_process_count(server->topology, worker) : 0;
    }
    rbt_outbox_put(&env->out, answer);
    answer->view = server->view;
    answer->worker = worker;
    answer->slowest = server->clocks.least;
    answer->included = own.clocks;
    answer->reach = own.reach;
    answer->early = own.early;
    answer->incarnation = (uint32_t)own.life;
    for (uint32_t m = first; m < first + count; m++)
        rbt_array_push(&answer->applied, rbt_early_applied(server, m));
    return answer;
}

static void answer(rbt_server *server, const rbt_message *pull, uint64_t held_ns, rbt_env *env)
{
    rbt_message *blocks = begin_blocks(server, env, pull->worker);

    blocks->request = pull->request;
    blocks->held_ns = held_ns;
    for (size_t i = 0; i < pull->parts.count; i++) {
        const rbt_part *part = &pull->parts.at[i];
        uint32_t ordinal = server->ordinal[part->table][part->block];

        if (is_worker(server, pull->worker))
            server->registered[pull->worker][ordinal / 64] |= 1ULL << ordinal % 64;
        add_block(server, blocks, ordinal, pull->version);
    }
}

void rbt_pulls_answer_held(rbt_server *server, rbt_env *env)
{
    size_t kept = 0;

    for (size_t i = 0; i < server->held.count; i++) {
        rbt_held_pull held = server->held.at[i];

        if (!pull_is_ready(server, held.pull)) {
            server->held.at[kept++] = held;
            continue;
        }
        if (!pull_is_outdated(server, held.pull))
            answer(server, held.pull, env->now_ns - held.since_ns, env);
        rbt_message_destroy(held.pull);
    }
    server->held.count = kept;
}

bool rbt_pulls_are_held(const rbt_server *server, uint32_t worker)
{
    for (size_t i = 0; i < server->held.count; i++)
        if (server->held.at[i].pull->worker == worker)
            return true;
    return false;
}

void rbt_pulls_spread(rbt_server *server, rbt_env *env)
{
    for (size_t i = 0; i < server->cells.count; i++)
        rbt_strips_clean_all(&server->cells.at[i].strips);
    for (uint32_t m = 0; m < server->topology->workers; m++) {
        rbt_message *blocks = NULL;

        if (server->clocks.gone[m] || server->retiring[m] || rbt_pulls_are_held(server, m))
            continue;
        for (uint32_t ordinal = 0; ordinal < server->cells.count; ordinal++) {
            const rbt_server_cell *cell = &server->cells.at[ordinal];

            if (!(server->registered[m][ordinal / 64] >> ordinal % 64 & 1) ||
                server->topology->layout[cell->table].row_blocks || /* readers choose */
                !rbt_cell_may_spread(&cell->cell, rule_of(server, cell)))
                continue;
            if (blocks == NULL || rbt_is_full(server->topology, blocks))
                blocks = begin_blocks(server, env, m);
            add_block(server, blocks, ordinal, 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------- taking, holding */

static bool pull_is_sound(const rbt_server *server, const rbt_message *pull)
{
    if (pull->worker >= server->topology->workers + server->topology->observers ||
        pull->parts.count > server->cells.count)
        return false;
    for (size_t i = 0; i < pull->parts.count; i++)
        if (rbt_server_ordinal(server, &pull->parts.at[i]) == UINT32_MAX)
            return false;
    return server->held.count < RBT_HELD_MAX;
}

static bool is_held_already(const rbt_server *server, const rbt_message *pull)
{
    for (size_t i = 0; i < server->held.count; i++)
        if (server->held.at[i].pull->worker == pull->worker && server->held.at[i].pull->request == pull->request)
            return true;
    return false;
}

/* Holds a pull back. A worker that has more under way than one that waits for its answers can have loses its oldest. */
static void hold(rbt_server *server, rbt_message *pull, uint64_t now_ns)
{
    rbt_held_pull held = {.pull = pull, .since_ns = now_ns};
    size_t of_this = 0, oldest = 0;

    for (size_t i = server->held.count; i > 0; i--)
        if (server->held.at[i - 1].pull->worker == pull->worker) {
            of_this++;
            oldest = i - 1;
        }
    if (of_this >= 4 * server->cells.count + RBT_HELD_EACH) {
        server->stats.refused++;
        rbt_message_destroy(server->held.at[oldest].pull);
        for (size_t i = oldest; i + 1 < server->held.count; i++)
            server->held.at[i] = server->held.at[i + 1];
        server->held.count--;
    }
    rbt_array_push(&server->held, held);
}

void rbt_pulls_take(rbt_server *server, rbt_message *pull, rbt_env *env)
{
    if (!pull_is_sound(server, pull)) {
        server->stats.refused++;
        goto drop;
    }
    if (is_held_already(server, pull))
        goto drop;
    if (!pull_is_ready(server, pull)) {
        hold(server, pull, env->now_ns);
        return;
    }
    if (!pull_is_outdated(server, pull))
        answer(server, pull, 0, env);
drop:
    rbt_message_destroy(pull);
}

void rbt_pulls_forget(rbt_server *server, uint32_t worker, uint32_t incarnation)
{
    size_t kept = 0;

    for (size_t i = 0; i < server->held.count; i++) {
        if (server->held.at[i].pull->worker == worker && server->held.at[i].pull->incarnation < incarnation)
            rbt_message_destroy(server->held.at[i].pull);
        else
            server->held.at[kept++] = server->held.at[i];
    }
    server->held.count = kept;
}

void rbt_pulls_deinit(rbt_server *server)
{
    for (size_t i = 0; i < server->held.count; i++)
        rbt_message_destroy(server->held.at[i].pull);
    rbt_array_free(&server->held);
}
