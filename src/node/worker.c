/* The client's state machine, but for pushes, which are in worker_push.c; the contract is in worker.h. A reader who follows a
 * pull reads rbt_client_want, ask_for and handle_blocks. */
#include "node/worker.h"

#include "base/error.h"
#include "node/early.h"
#include "sync/staleness.h"

static bool has_tags(const rbt_client *client, uint32_t table)
{
    return rbt_has_tags(client->topology, table);
}

void rbt_client_init(rbt_client *client, const rbt_topology *topology, uint32_t worker, uint32_t incarnation)
{
    *client = (rbt_client){.topology = topology, .worker = worker, .incarnation = incarnation, .view = 1};
    client->node = rbt_node_of_worker(topology, worker);
    client->is_observer = worker >= topology->workers;
    client->ready = incarnation == 0;
    client->stable_clock = RBT_UNBOUNDED;
    client->last_request = (uint64_t)incarnation << 40; /* answers to a former life are not taken for ours */
    client->known = rbt_alloc(topology->servers, sizeof *client->known);
    client->seen =
        rbt_alloc(client->is_observer ? (size_t)topology->servers * topology->workers : 0, sizeof *client->seen);
    client->has_versions = rbt_alloc(topology->servers, sizeof *client->has_versions);
    client->cache = rbt_alloc(topology->tables, sizeof *client->cache);
    for (uint32_t t = 0; t < topology->tables; t++)
        rbt_cache_init(&client->cache[t], &topology->layout[t]);
    rbt_client_init_early(client);
    for (uint32_t t = 0; t < topology->tables; t++) {
        client->cache[t].is_read_only = topology->rule[t].rule->takes_gradients;
        client->cache[t].has_tags = has_tags(client, t);
        client->cache[t].significant = rbt_may_hold(topology, t) ? topology->significant : 0;
        client->cache[t].is_half = rbt_is_half(topology, t);
    }
    for (uint32_t t = 0; t < topology->tables; t++)
        for (uint32_t b = 0; rbt_has_versions(client->topology, t) && b < topology->layout[t].blocks; b++)
            client->has_versions[topology->layout[t].server[b]] = true;
    client->unacked = rbt_alloc(topology->servers, sizeof *client->unacked);
    client->unacked_count = rbt_alloc(topology->servers, sizeof *client->unacked_count);
    client->resume_told = rbt_alloc(topology->servers, sizeof *client->resume_told);
}

void rbt_client_deinit(rbt_client *client)
{
    for (uint32_t t = 0; t < client->topology->tables; t++)
        rbt_cache_deinit(&client->cache[t]);
    rbt_free(client->early);
    rbt_free(client->cache);
    for (uint32_t s = 0; s < client->topology->servers; s++) {
        rbt_message *message;

        while ((message = rbt_outbox_take(&client->unacked[s])) != NULL)
            rbt_message_destroy(message);
    }
    rbt_free(client->unacked);
    rbt_free(client->unacked_count);
    rbt_free(client->resume_told);
    rbt_free(client->known);
    rbt_free(client->seen);
    rbt_free(client->has_versions);
    for (size_t i = 0; i < client->requests.count; i++)
        rbt_message_destroy(client->requests.at[i].pull);
    rbt_array_free(&client->requests);
}

void rbt_client_begin(rbt_client *client, rbt_env *env)
{
    if (!client->ready)
        rbt_client_send(client, rbt_client_make(client, RBT_MSG_HELLO, RBT_MASTER), env);
}

/* --------------------------------------------------------------------------------------------- asking */

bool rbt_client_is_synchronised(const rbt_client *client, uint32_t table)
{
    return client->topology->partition_sync && rbt_has_versions(client->topology, table) && !client->is_observer;
}

/* Is the copy good enough for a reader at `clock`? Without a bound (ASP) a copy is good for the clock it was read in; a
 * rule that takes gradients shows a worker its own updates only through the server; with partition sync all copies are
 * of one version. */
static bool is_fresh(const rbt_client *client, rbt_span span, uint64_t clock, uint64_t need, bool bounded)
{
    const rbt_copy *copy = rbt_client_copy(client, span);
    bool whole = !bounded || client->topology->rule[span.table].rule->takes_gradients;

    if (client->is_observer)
        return copy->base != NULL && rbt_rounds(copy->included, client->topology->workers, copy->slowest) >= need;
    if (copy->base == NULL || copy->slowest < need)
        return false;
    if (rbt_client_is_synchronised(client, span.table) && copy->version != client->read_version)
        return false;
    return !whole || copy->included >= clock;
}

/* Has it been asked for already? Only an answer for this very clock will do: one for an earlier clock may lack our own
 * last update, one for a later clock (a prefetch) waits for a push of ours. */
static bool is_under_way(const rbt_copy *copy, uint64_t clock, uint64_t need)
{
    return copy->request != 0 && copy->request_need >= need && copy->request_clock == clock;
}

/* Does any of these blocks that are not fresh have to be read at the stable version? */
static bool needs_version(const rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t need,
                          bool bounded)
{
    for (size_t i = 0; i < n; i++)
        if (rbt_client_is_synchronised(client, spans[i].table) && !is_fresh(client, spans[i], clock, need, bounded))
            return true;
    return false;
}

/* Partition sync: the master must first say which version may be read. True when it has, for this clock and need. */
static bool version_is_known(rbt_client *client, uint64_t clock, uint64_t need, rbt_env *env)
{
    rbt_message *ask;

    if (client->stable_clock == clock && client->stable_need >= need && client->stable_request == 0)
        return true;
    if (client->stable_request != 0 && client->stable_clock == clock && client->stable_need >= need)
        return false; /* asked, not answered */
    client->stable_request = ++client->last_request;
    client->stable_clock = clock;
    client->stable_need = need;
    ask = rbt_client_make(client, RBT_MSG_ASK, RBT_MASTER);
    ask->clock = clock;
    ask->need = need;
    ask->request = client->stable_request;
    rbt_client_send(client, ask, env);
    return false;
}

void rbt_client_adopt(rbt_client *client, rbt_span span, rbt_snap *base, uint64_t slowest, rbt_applied included,
                      uint64_t version)
{
    rbt_copy *copy = rbt_client_copy(client, span);
    uint32_t server = client->topology->layout[span.table].server[span.block];

    if (slowest > client->known[server])
        client->known[server] = slowest;
    if (!client->is_observer && !rbt_client_is_synchronised(client, span.table) && !has_tags(client, span.table) &&
        copy->next > version)
        version = copy->next; /* this worker has named a later one already, and may not go back */
    rbt_cache_adopt(&client->cache[span.table], span.block, base, slowest, included.clocks,
                    has_tags(client, span.table) ? 0 : rbt_early_included(client, included), version);
}

/* Are copies of this table not shared in the process? A server must know who may name a version. */
static bool is_own_affair(const rbt_client *client, uint32_t table)
{
    return rbt_client_is_synchronised(client, table) || has_tags(client, table);
}

/* Looks into the process cache for what is not fresh in our own. */
static void look_around(rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t need,
                        bool bounded, rbt_process *process)
{
    if (process == NULL || client->is_observer || clock != client->clock)
        return;
    for (size_t i = 0; i < n; i++) {
        rbt_shared_copy found;
        rbt_applied included = {0};
        bool is_found;

        if (is_fresh(client, spans[i], clock, need, bounded) || is_own_affair(client, spans[i].table))
            continue;
        if (process->lock != NULL)
            process->lock(process);
        is_found = rbt_process_cache_find(&process->cache, spans[i].table, spans[i].block, client->worker, clock, need,
                                          &found, &included);
        if (process->unlock != NULL)
            process->unlock(process);
        if (!is_found)
            continue;
        if (!rbt_early_lacks(client, rbt_client_copy(client, spans[i]), included))
            rbt_client_adopt(client, spans[i], found.base, found.slowest, included, found.version);
        rbt_snap_unref(found.base);
    }
}

/* Tells the process what a server has sent. */
static void tell_process(const rbt_client *client, const rbt_message *answer, const rbt_part *part,
                         rbt_process *process)
{
    if (process == NULL || client->is_observer || is_own_affair(client, part->table) ||
        answer->applied.count != process->cache.workers)
        return;
    if (process->lock != NULL)
        process->lock(process);
    rbt_process_cache_offer(&process->cache, part->table, part->block, part->snap, answer->slowest, part->version,
                            answer->applied.at);
    if (process->unlock != NULL)
        process->unlock(process);
}

static void send_pull(rbt_client *client, rbt_message *pull, rbt_env *env)
{
    rbt_request request = {.id = pull->request, .pull = pull};

    rbt_array_push(&client->requests, request);
    rbt_client_send(client, rbt_message_copy(pull), env);
}

/* Sends one pull per server for the blocks that are neither fresh nor asked for; several where they are too many for a message. */
static void ask_for(rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t need, bool bounded,
                    rbt_env *env)
{
    for (uint32_t server = 0; server < client->topology->servers; server++) {
        rbt_message *pull = NULL;

        for (size_t i = 0; i < n; i++) {
            rbt_copy *copy = rbt_client_copy(client, spans[i]);
            rbt_part part = {.table = spans[i].table, .block = spans[i].block};

            if (client->topology->layout[part.table].server[part.block] != server || is_under_way(copy, clock, need) ||
                is_fresh(client, spans[i], clock, need, bounded))
                continue;
            if (pull != NULL && rbt_is_full(client->topology, pull)) {
                send_pull(client, pull, env);
                pull = NULL;
            }
            if (pull == NULL) {
                pull = rbt_client_make(client, RBT_MSG_PULL, rbt_node_of_server(server));
                pull->clock = client->is_observer ? 0 : clock;
                pull->need = need;
                pull->version = client->is_observer ? RBT_UNBOUNDED : client->read_version;
                pull->request = ++client->last_request;
            }
            rbt_array_push(&pull->parts, part);
            copy->request = pull->request;
            copy->request_need = need;
            copy->request_clock = clock;
        }
        if (pull != NULL)
            send_pull(client, pull, env);
    }
}

static bool all_fresh(const rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t need,
                      bool bounded)
{
    for (size_t i = 0; i < n; i++)
        if (!is_fresh(client, spans[i], clock, need, bounded))
            return false;
    return true;
}

static bool want(rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t need, bool bounded,
                 rbt_env *env)
{
    bool fresh = all_fresh(client, spans, n, clock, need, bounded);

    if (!fresh) {
        look_around(client, spans, n, clock, need, bounded, env->process);
        fresh = all_fresh(client, spans, n, clock, need, bounded);
    }
    if (!fresh &&
        (!needs_version(client, spans, n, clock, need, bounded) || version_is_known(client, clock, need, env)))
        ask_for(client, spans, n, clock, need, bounded, env);
    return fresh;
}

bool rbt_client_want(rbt_client *client, const rbt_span *spans, size_t n, uint64_t clock, uint64_t staleness,
                     rbt_env *env)
{
    return want(client, spans, n, clock, rbt_ssp_need(clock, staleness), staleness != RBT_UNBOUNDED, env);
}

bool rbt_client_observe(rbt_client *client, const rbt_span *spans, size_t n, uint64_t need, rbt_env *env)
{
    RBT_ASSERT(client->is_observer);
    return want(client, spans, n, 0, need, true, env);
}

bool rbt_client_must_hear(const rbt_client *client, uint32_t server, rbt_span *span)
{
    const rbt_topology *topology = client->topology;

    if (client->known[server] >= rbt_ssp_need(client->clock, topology->staleness))
        return false;
    for (uint32_t t = 0; t < topology->tables; t++)
        for (uint32_t b = 0; b < topology->layout[t].blocks; b++)
            if (topology->layout[t].server[b] == server) {
                *span = (rbt_span){.table = t, .block = b};
                return true;
            }
    return false; /* it has no blocks */
}

void rbt_client_note_read(rbt_client *client, const rbt_span *spans, size_t n)
{
    uint64_t gap = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t slowest = rbt_client_copy(client, spans[i])->slowest;

        if (client->clock > slowest && client->clock - slowest > gap)
            gap = client->clock - slowest;
    }
    client->staleness_seen[gap < RBT_STALENESS_BINS - 1 ? gap : RBT_STALENESS_BINS - 1]++;
    client->staleness_sum += gap;
}

void rbt_client_read(rbt_client *client, rbt_span span, uint32_t offset, uint32_t n, uint64_t staleness, void *out)
{
    rbt_copy *copy = rbt_client_copy(client, span);
    bool has_clock;
    uint64_t gap;

    rbt_cache_unpark(&client->cache[span.table], span.block);
    has_clock = copy->included > client->clock; /* of a former life: this one computes it again */
#ifdef RBT_MUTANT_AGAIN                         /* what is computed again is read twice: the swarm must notice */
    has_clock = false;
#endif
    gap = client->clock > copy->slowest ? client->clock - copy->slowest : 0;
    if (!client->is_observer) {
        RBT_ASSERT(staleness == RBT_UNBOUNDED || (copy->base != NULL && gap <= staleness));
        RBT_ASSERT(!rbt_client_is_synchronised(client, span.table) || copy->version == client->read_version);
    }
    copy->read_in = client->clock + 1;
    rbt_cache_read(&client->cache[span.table], span.block, offset, n, has_clock, out);
}

/* --------------------------------------------------------------------------------------------- answers */

/* Forgets the request an answer belongs to; false when it is none of ours (repeated, or from a former life). */
static bool finish_request(rbt_client *client, const rbt_message *answer)
{
    for (size_t i = 0; i < client->requests.count; i++) {
        if (client->requests.at[i].id != answer->request)
            continue;
        rbt_message_destroy(client->requests.at[i].pull);
        client->requests.at[i] = client->requests.at[--client->requests.count];
        return true;
    }
    return false;
}

/* Can a part of a peer's answer be what it says? */
static bool part_is_sound(const rbt_client *client, const rbt_part *part)
{
    const rbt_layout *layout;

    if (part->table >= client->topology->tables || part->snap == NULL)
        return false;
    layout = &client->topology->layout[part->table];
    return part->block < layout->blocks && part->snap->type == layout->type &&
           part->snap->length == rbt_layout_length(layout, part->block);
}

/* May this part replace a copy whose version updates name? Not by an older one; nor, unless the program waits for it, in
 * a clock that has read the copy: what it computes from it must get its version. */
static bool may_replace(const rbt_client *client, const rbt_copy *copy, const rbt_part *part, bool is_awaited)
{
    if (client->is_observer || copy->base == NULL || !has_tags(client, part->table))
        return true;
    return part->version >= copy->version && (is_awaited || copy->read_in != client->clock + 1);
}

/* An observer: whose clocks are in what this server has sent. */
static void note_clocks(rbt_client *client, const rbt_message *answer)
{
    uint32_t workers = client->topology->workers;
    uint64_t *seen = client->seen + (size_t)(answer->from - 1) * workers;

    for (uint32_t m = 0; m < workers && answer->applied.count == workers; m++)
        if (answer->applied.at[m].clocks > seen[m])
            seen[m] = answer->applied.at[m].clocks;
}

/* Takes blocks over. An eager push that crossed one of our own pushes on the way lacks that one: it is passed over, and
 * the next read asks if it must. */
static void handle_blocks(rbt_client *client, const rbt_message *answer, rbt_process *process)
{
    rbt_applied own = rbt_message_applied(answer);
    bool asked = answer->request != 0;
    uint32_t server = answer->from - 1;

    if (answer->from == RBT_MASTER || server >= client->topology->servers)
        return;
    if (!client->ready) /* meant for a former life */
        return;
    if (answer->slowest > client->known[server])
        client->known[server] = answer->slowest;
    if (asked && !finish_request(client, answer))
        return;
    if (asked && answer->held_ns > client->held_ns)
        client->held_ns = answer->held_ns;
    if (client->is_observer)
        note_clocks(client, answer);
    for (size_t i = 0; i < answer->parts.count; i++) {
        const rbt_part *part = &answer->parts.at[i];
        rbt_span span = {.table = part->table, .block = part->block};
        rbt_applied included = rbt_applied_of(own, part->table, part->block);
        rbt_copy *copy;
        bool is_awaited;

        if (!part_is_sound(client, part))
            continue;
        tell_process(client, answer, part, process);
        copy = rbt_client_copy(client, span);
        is_awaited = asked && copy->request == answer->request;
        if (is_awaited)
            copy->request = 0;
        if (included.clocks < client->clock && !client->is_observer)
            continue;
        if (copy->base != NULL && (copy->slowest > answer->slowest || copy->included > included.clocks))
            continue; /* what we have is newer */
        if (rbt_early_lacks(client, copy, included))
            continue;
        if (may_replace(client, copy, part, is_awaited))
            rbt_client_adopt(client, span, part->snap, answer->slowest, included, part->version);
        else if (client->cache[part->table].is_managed)
            rbt_early_renew(client, part, answer->slowest, included);
    }
}

static void handle_stable(rbt_client *client, const rbt_message *answer)
{
    if (answer->request != client->stable_request)
        return;
    client->stable_request = 0;
    client->read_version = answer->version > client->next_version ? answer->version : client->next_version;
    client->read_clock = client->stable_clock;
    if (answer->held_ns > client->held_ns)
        client->held_ns = answer->held_ns;
}

/* --------------------------------------------------------------------------------------- views, coming back */

static void send_again(rbt_client *client, const rbt_message *original, rbt_env *env)
{
    rbt_message *copy = rbt_message_copy(original);

    copy->view = client->view;
    rbt_client_send(client, copy, env);
}

/* Under a new view servers refuse what was sent under the old one: all that is not answered goes out again. */
static void handle_view(rbt_client *client, const rbt_message *message, rbt_env *env)
{
    if (message->view <= client->view)
        return;
    client->view = message->view;
    if (!client->ready) {
        if (client->is_observer || message->members.count != client->topology->workers ||
            message->members.at[client->worker].incarnation != client->incarnation)
            return;
        client->resume_request = ++client->last_request;
        client->resume_missing = client->topology->servers;
        client->clock = RBT_UNBOUNDED;
        for (uint32_t s = 0; s < client->topology->servers; s++) {
            rbt_message *resume = rbt_client_make(client, RBT_MSG_RESUME, rbt_node_of_server(s));

            client->resume_told[s] = false;
            resume->request = client->resume_request;
            rbt_client_send(client, resume, env);
        }
        return;
    }
    for (uint32_t s = 0; s < client->topology->servers; s++)
        for (const rbt_message *push = client->unacked[s].first; push != NULL; push = push->next)
            send_again(client, push, env);
    for (size_t i = 0; i < client->requests.count; i++)
        send_again(client, client->requests.at[i].pull, env);
}

/* All servers have told: nothing is read yet, but the versions named in the former life count from this clock on. */
static void begin_again(rbt_client *client)
{
    for (uint32_t t = 0; t < client->topology->tables; t++)
        for (uint32_t b = 0; b < client->topology->layout[t].blocks; b++)
            client->cache[t].copies[b].included = client->clock;
    client->read_version = client->next_version;
    client->read_clock = client->clock;
    client->ready = true;
}

static void handle_resumed(rbt_client *client, const rbt_message *message)
{
    uint32_t server = message->from - 1;

    if (client->ready || message->request != client->resume_request || message->from == RBT_MASTER ||
        server >= client->topology->servers || client->resume_told[server])
        return;
    client->resume_told[server] = true;
    client->known[server] = message->slowest; /* at least what the former life knew */
    if (message->clock < client->clock)
        client->clock = message->clock;
    if (message->version > client->next_version)
        client->next_version = message->version;
    for (uint32_t t = 0; t < client->topology->tables; t++)
        for (uint32_t b = 0; b < client->topology->layout[t].blocks; b++)
            if (client->topology->layout[t].server[b] == server)
                client->cache[t].copies[b].version = client->cache[t].copies[b].next = message->version;
    if (--client->resume_missing == 0)
        begin_again(client);
}

void rbt_client_handle(rbt_client *client, rbt_message *message, rbt_env *env)
{
    switch (message->type) {
    case RBT_MSG_BLOCKS:
        handle_blocks(client, message, env->process);
        break;
    case RBT_MSG_ACK:
        rbt_client_take_ack(client, message);
        break;
    case RBT_MSG_GOT:
        rbt_client_take_got(client, message);
        break;
    case RBT_MSG_ROWS:
        rbt_client_take_rows(client, message, env);
        break;
    case RBT_MSG_STABLE:
        handle_stable(client, message);
        break;
    case RBT_MSG_VIEW:
        handle_view(client, message, env);
        break;
    case RBT_MSG_RESUMED:
        handle_resumed(client, message);
        break;
    case RBT_MSG_STOP:
        client->stopping = true;
        break;
    default:
        break;
    }
    rbt_message_destroy(message);
}

void rbt_client_retire(rbt_client *client, rbt_env *env)
{
    rbt_client_send(client, rbt_client_make(client, RBT_MSG_RETIRE, RBT_MASTER), env);
    for (uint32_t s = 0; s < client->topology->servers; s++)
        rbt_client_send(client, rbt_client_make(client, RBT_MSG_RETIRE, rbt_node_of_server(s)), env);
}
