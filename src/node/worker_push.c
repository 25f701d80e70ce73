/* What a worker says, and what it pushes: increments, the end of a clock, acknowledgements. Part of the client; the contract is in
 * worker.h. A reader who follows a push reads rbt_client_increment, rbt_client_clock and rbt_client_take_ack. */
#include "base/error.h"
#include "node/early.h"
#include "node/slices.h"
#include "sync/staleness.h"

rbt_message *rbt_client_make(const rbt_client *client, rbt_message_type type, rbt_node to)
{
    rbt_message *message = rbt_message_create(type, client->node, to);

    message->view = client->view;
    message->worker = client->worker;
    message->incarnation = client->incarnation;
    message->clock = client->clock;
    return message;
}

void rbt_client_send(rbt_client *client, rbt_message *message, rbt_env *env)
{
    rbt_early_count(client->topology, &client->budget, message, env->now_ns);
    rbt_outbox_put(&env->out, message);
}

void rbt_client_increment(rbt_client *client, rbt_span span, uint32_t offset, uint32_t n, const void *deltas)
{
    rbt_cache_increment(&client->cache[span.table], span.block, offset, n, deltas);
}

void rbt_client_increment_keys(rbt_client *client, uint32_t table, uint64_t row, const uint64_t *cols, size_t n,
                               const void *deltas)
{
    rbt_cache_increment_keys(&client->cache[table], row, cols, n, deltas);
}

bool rbt_client_may_clock(const rbt_client *client)
{
    for (uint32_t s = 0; s < client->topology->servers; s++)
        if (client->unacked_count[s] >= RBT_UNACKED_MAX)
            return false;
    return true;
}

/* The version an update of this block belongs to. */
static uint64_t version_of(const rbt_client *client, rbt_span span, uint64_t slowest)
{
    const rbt_copy *copy = rbt_client_copy(client, span);
    bool synchronised = rbt_client_is_synchronised(client, span.table);
    uint64_t base = synchronised ? client->read_version : copy->version;
    uint64_t base_clock = synchronised ? client->read_clock : copy->included;
    uint64_t since = client->clock > base_clock ? client->clock - base_clock : 0;

    return rbt_dyn_version(base, since, slowest, client->clock, client->topology->staleness);
}

/* Names the versions of a block that its update was computed from, those of earlier copies first. A version that was not
 * named yet is, even if nothing was computed from it: its server can forget the older ones. True if this part is to go. */
static bool tag_parts(rbt_copy *copy, rbt_part *part, rbt_message *push)
{
    bool is_new = copy->base != NULL && copy->next != copy->version + 1;

    for (size_t i = 0; i < copy->aside.count; i++) {
        rbt_part earlier = *part;

        earlier.version = copy->aside.at[i].version;
        earlier.snap = copy->aside.at[i].update;
        rbt_array_push(&push->parts, earlier);
    }
    copy->aside.count = 0;
    part->version = rbt_copy_tag(copy);
    if (copy->base != NULL)
        copy->next = copy->version + 1;
    return is_new;
}

/* Adds one block's update, if it must be named, to its server's push. */
static void flush_block(rbt_client *client, rbt_span span, uint64_t slowest, rbt_message *push)
{
    const rbt_rule_config *rule = &client->topology->rule[span.table];
    rbt_copy *copy = rbt_client_copy(client, span);
    bool is_named = rule->rule->counts_empty;
    bool is_mine = !rule->rule->takes_gradients && copy->included <= client->clock;
    rbt_part part = {.table = span.table, .block = span.block};

    part.snap =
        rbt_cache_flush(&client->cache[span.table], span.block,
                        client->topology->layout[span.table].type == RBT_F32 ? client->topology->filter : 0, is_mine);
    if (rbt_has_tags(client->topology, span.table)) {
        if (part.snap != NULL && part.snap->count == 0) { /* it has all gone out early */
            rbt_snap_unref(part.snap);
            part.snap = NULL;
        }
        is_named = tag_parts(copy, &part, push) || is_named;
    }
    if (rbt_has_versions(client->topology, span.table)) {
        part.version = version_of(client, span, slowest);
        copy->next = rbt_dyn_next(part.version, slowest, client->clock, client->topology->staleness);
        if (copy->next > client->next_version)
            client->next_version = copy->next;
    }
    if (is_named || part.snap != NULL)
        rbt_array_push(&push->parts, part);
}

/* What the slowest worker is known to have finished on every server that cares. */
static uint64_t known_slowest(const rbt_client *client)
{
    uint64_t least = RBT_UNBOUNDED;

    for (uint32_t s = 0; s < client->topology->servers; s++)
        if (client->has_versions[s] && client->known[s] < least)
            least = client->known[s];
    return least;
}

void rbt_client_clock(rbt_client *client, rbt_env *env)
{
    const rbt_topology *topology = client->topology;
    rbt_message **push = rbt_alloc(topology->servers, sizeof(rbt_message *));
    uint64_t slowest = known_slowest(client);

    RBT_ASSERT(!client->is_observer && client->ready);
    for (uint32_t s = 0; s < topology->servers; s++) {
        push[s] = rbt_client_make(client, RBT_MSG_PUSH, rbt_node_of_server(s));
        push[s]->slowest = slowest;
    }
    for (uint32_t t = 0; t < topology->tables; t++)
        for (uint32_t b = 0; b < topology->layout[t].blocks; b++)
            flush_block(client, (rbt_span){.table = t, .block = b}, slowest, push[topology->layout[t].server[b]]);
    for (uint32_t s = 0; s < topology->servers; s++) {
        rbt_outbox slices = {0};
        rbt_message *slice;

        rbt_slices_cut(push[s], topology->slice_bytes, topology->message_blocks, &slices);
        while ((slice = rbt_outbox_take(&slices)) != NULL) {
            rbt_outbox_put(&client->unacked[s], rbt_message_copy(slice));
            rbt_client_send(client, slice, env);
        }
        client->unacked_count[s]++;
        client->early[s] = 0;
    }
    rbt_free(push);
    client->clock++;
}

bool rbt_client_holds(const rbt_client *client)
{
#ifdef RBT_MUTANT_HELD /* what was held back is forgotten in the end: the swarm must notice */
    return false;
#endif
    for (uint32_t t = 0; t < client->topology->tables; t++)
        for (uint32_t b = 0; client->topology->significant > 0 && b < client->topology->layout[t].blocks; b++)
            if (client->cache[t].copies[b].holds)
                return true;
    return false;
}

void rbt_client_release(rbt_client *client)
{
    for (uint32_t t = 0; t < client->topology->tables; t++)
        client->cache[t].significant = 0;
}

bool rbt_client_is_flushed(const rbt_client *client)
{
    for (uint32_t s = 0; s < client->topology->servers; s++)
        if (client->unacked_count[s] > 0)
            return false;
    return true;
}

void rbt_client_take_ack(rbt_client *client, const rbt_message *ack)
{
    uint32_t server = ack->from - 1;

    if (ack->from == RBT_MASTER || server >= client->topology->servers || ack->incarnation != client->incarnation)
        return;
    while (client->unacked[server].first != NULL && client->unacked[server].first->clock <= ack->clock) {
        rbt_message *slice = rbt_outbox_take(&client->unacked[server]);

        if (slice->type == RBT_MSG_EARLY)
            client->early_unacked -= rbt_wire_size(slice);
        else
            client->unacked_count[server] -= slice->more == 0;
        rbt_message_destroy(slice);
    }
}
