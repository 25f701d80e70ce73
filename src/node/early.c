/* The worker's side of managed communication; the contract is in early.h. */
#include "node/early.h"

#include "base/error.h"

void rbt_early_count(const rbt_topology *topology, rbt_budget *budget, const rbt_message *message, uint64_t now_ns)
{
    if (topology->budget_bytes > 0)
        rbt_budget_spend(budget, now_ns, rbt_wire_size(message));
}

void rbt_client_init_early(rbt_client *client)
{
    const rbt_topology *topology = client->topology;

    client->early = rbt_alloc(topology->servers, sizeof *client->early);
    client->early_rng = rbt_rng_stream(client->incarnation, RBT_STREAM_COMM, client->node);
    rbt_budget_init(&client->budget, topology->budget_bytes, topology->burst_bytes);
    for (uint32_t t = 0; t < topology->tables; t++)
        client->cache[t].is_managed = !client->is_observer && rbt_is_managed(topology, t);
}

uint64_t rbt_early_included(const rbt_client *client, rbt_applied included)
{
#ifdef RBT_MUTANT_OWN /* early sends are forgotten before they are in a copy: the swarm must notice */
    return UINT64_MAX;
#endif
    return included.clocks > client->clock ? UINT64_MAX : included.clocks < client->clock ? 0 : included.early;
}

bool rbt_early_lacks(const rbt_client *client, const rbt_copy *copy, rbt_applied included)
{
    bool of_former_life = included.early > 0 && included.life != client->incarnation;

    return of_former_life || rbt_early_included(client, included) < copy->early;
}

/* ------------------------------------------------------------------------------------------------- choosing */

/* The elements of a strip: of the update buffer. */
static const void *changes_of(const rbt_copy *copy, const rbt_strips *strips, uint32_t strip, size_t size)
{
    if (strips->is_sparse)
        return rbt_map_get(&copy->scattered, strip);
    return (const char *)copy->buffer->value + rbt_strip_first(strips, strip) * size;
}

/* A block whose updates name versions goes as a whole, with what was computed from earlier copies. */
static void look_at_tagged(rbt_client *client, rbt_span span, rbt_candidates *found)
{
    const rbt_copy *copy = &client->cache[span.table].copies[span.block];
    rbt_priority priority = client->topology->priority;
    rbt_candidate c = {.table = span.table, .block = span.block, .copies = 1};
    bool is_dirty = copy->strips.list.count > 0, is_relative = priority == RBT_PRIORITY_RELATIVE && copy->base != NULL;
    uint32_t n = copy->strips.length, changed;
    float values[RBT_STRIP_ELEMENTS], gradient[RBT_STRIP_ELEMENTS];
    double change = 0;

    if (found->count >= RBT_EARLY_LOOK)
        return;
    if (is_relative)
        rbt_snap_read(copy->base, 0, n, values);
    for (size_t i = 0; i < copy->aside.count + is_dirty; i++) {
        rbt_snap_read(i < copy->aside.count ? copy->aside.at[i].update : copy->buffer, 0, n, gradient);
        change += rbt_changes_magnitude(RBT_F32, gradient, is_relative ? values : NULL, n, &changed);
        c.bytes += (uint32_t)(RBT_EARLY_PART + changed * (sizeof(uint32_t) + sizeof(float)));
    }
    c.score = rbt_pick_score(priority, is_dirty ? copy->strips.list.at[0].since : 0, change, &client->early_rng);
    rbt_array_push(found, c);
}

/* All strips of a block that have increments to be sent, at most RBT_EARLY_LOOK in all. */
static void look_at(rbt_client *client, rbt_span span, rbt_candidates *found, void *room)
{
    const rbt_copy *copy = &client->cache[span.table].copies[span.block];
    const rbt_layout *layout = &client->topology->layout[span.table];
    rbt_priority priority = client->topology->priority;
    size_t size = rbt_type_size(layout->type);

    if (copy->strips.list.count == 0 && copy->aside.count == 0) {
        rbt_bits_remove(&client->cache[span.table].unsent, span.block);
        return;
    }
    if (client->early[layout->server[span.block]] >= RBT_EARLY_MAX)
        return;
    if (client->cache[span.table].has_tags) {
        look_at_tagged(client, span, found);
        return;
    }
    for (size_t i = 0; i < copy->strips.list.count && found->count < RBT_EARLY_LOOK; i++) {
        const rbt_strip *dirty = &copy->strips.list.at[i];
        rbt_candidate c = {.table = span.table, .block = span.block, .strip = dirty->strip, .copies = 1};
        uint32_t first = rbt_strip_first(&copy->strips, c.strip), n = rbt_strip_length(&copy->strips, c.strip), changed;
        const void *values = NULL;
        double change;

        if (priority == RBT_PRIORITY_RELATIVE && copy->base != NULL) {
            rbt_snap_read(copy->base, first, n, room);
            values = room;
        }
        change =
            rbt_changes_magnitude(layout->type, changes_of(copy, &copy->strips, c.strip, size), values, n, &changed);
        c.bytes = (uint32_t)(changed * (sizeof(uint32_t) + size));
        c.score = rbt_pick_score(priority, dirty->since, change, &client->early_rng);
        rbt_array_push(found, c);
    }
}

/* All there is, beginning with another block each time, or the last ones could wait for ever. */
static void look(rbt_client *client, rbt_candidates *found)
{
    const rbt_topology *topology = client->topology;
    uint64_t values[RBT_STRIP_ELEMENTS]; /* of one strip, of any type */
    uint32_t blocks = 0, from;

    for (uint32_t t = 0; t < topology->tables; t++)
        blocks += topology->layout[t].blocks;
    from = client->early_from++ % (blocks > 0 ? blocks : 1);
    for (uint32_t pass = 0, before = 0; pass < 2; pass++, before = 0)
        for (uint32_t t = 0; t < topology->tables; before += topology->layout[t++].blocks) {
            const rbt_bits *unsent = &client->cache[t].unsent;
            uint32_t n = topology->layout[t].blocks, middle = from < before ? 0 : from - before < n ? from - before : n;
            uint32_t b = rbt_bits_next(unsent, pass == 0 ? middle : 0), end = pass == 0 ? n : middle;

            for (; b < end; b = rbt_bits_next(unsent, b + 1))
                look_at(client, (rbt_span){.table = t, .block = b}, found, values);
        }
}

/* -------------------------------------------------------------------------------------------------- sending */

/* Takes chosen strips of one block out of the buffer, as an update. NULL: nothing in them was worth it. */
static rbt_snap *take_strips(rbt_client *client, const rbt_candidate *chosen, size_t n)
{
    rbt_cache *cache = &client->cache[chosen->table];
    rbt_copy *copy = &cache->copies[chosen->block];
    float threshold = cache->layout->type == RBT_F32 ? client->topology->filter : 0;
    rbt_snap *update = rbt_snap_create_sparse(cache->layout->type, rbt_layout_length(cache->layout, chosen->block),
                                              (uint32_t)n * copy->strips.width);
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += rbt_cache_take_strip(cache, chosen->block, chosen[i].strip, threshold, update->index + count,
                                      (char *)update->value + count * rbt_type_size(update->type));
    rbt_strips_sweep(&copy->strips);
    update->count = count;
    if (count > 0)
        return update;
    rbt_snap_unref(update);
    return NULL;
}

static rbt_message *message_to(rbt_client *client, rbt_message **early, uint32_t server)
{
    rbt_message *message = early[server];

    if (message != NULL)
        return message;
    message = rbt_client_make(client, RBT_MSG_EARLY, rbt_node_of_server(server));
    message->slice = client->early[server]++;
    early[server] = message;
    return message;
}

/* All that a block has: what was computed from earlier copies first, as versions are named in order. */
static void put_tagged(rbt_client *client, const rbt_candidate *chosen, rbt_message **early)
{
    rbt_copy *copy = &client->cache[chosen->table].copies[chosen->block];
    uint32_t server = client->topology->layout[chosen->table].server[chosen->block];
    rbt_part part = {.table = chosen->table, .block = chosen->block};

    for (size_t i = 0; i < copy->aside.count; i++) {
        part.version = copy->aside.at[i].version;
        part.snap = copy->aside.at[i].update;
        rbt_array_push(&message_to(client, early, server)->parts, part);
    }
    copy->aside.count = 0;
    part.snap = copy->strips.list.count > 0 ? take_strips(client, chosen, 1) : NULL;
    if (part.snap == NULL)
        return;
    if (part.snap->count > part.snap->length / 2)
        rbt_snap_writable(&part.snap); /* dense is smaller */
    part.version = rbt_copy_tag(copy);
    if (copy->base != NULL)
        copy->next = copy->version + 1;
    rbt_array_push(&message_to(client, early, server)->parts, part);
}

/* Sends the chosen strips, in the order of their places. */
static void send_strips(rbt_client *client, const rbt_candidate *chosen, size_t n, rbt_env *env)
{
    rbt_message **early = rbt_alloc(client->topology->servers, sizeof(rbt_message *));

    for (size_t i = 0, end; i < n; i = end) {
        rbt_part part = {.table = chosen[i].table, .block = chosen[i].block};
        uint32_t server = client->topology->layout[part.table].server[part.block];

        for (end = i + 1; end < n && chosen[end].table == part.table && chosen[end].block == part.block;)
            end++;
        if (client->cache[part.table].has_tags) {
            put_tagged(client, &chosen[i], early);
            continue;
        }
        part.snap = take_strips(client, &chosen[i], end - i);
        if (part.snap == NULL)
            continue;
        rbt_array_push(&message_to(client, early, server)->parts, part);
        if (client->cache[part.table].copies[part.block].included <= client->clock)
            rbt_cache_keep(&client->cache[part.table], part.block, part.snap, client->early[server]);
    }
    for (uint32_t s = 0; s < client->topology->servers; s++) {
        if (early[s] == NULL)
            continue;
        client->early_unacked += rbt_wire_size(early[s]);
        rbt_outbox_put(&client->unacked[s], rbt_message_copy(early[s]));
        rbt_client_send(client, early[s], env);
    }
    rbt_free(early);
}

void rbt_client_send_early(rbt_client *client, rbt_env *env)
{
    const rbt_topology *topology = client->topology;
    uint64_t room, heads = (uint64_t)RBT_EARLY_MESSAGE * topology->servers;
    rbt_candidates found = {0};
    size_t n;

    if (topology->budget_bytes == 0 || client->is_observer || !client->ready)
        return;
    room = rbt_budget_offer(&client->budget, env->now_ns);
    if (room == 0 || client->early_unacked > RBT_EARLY_UNANSWERED * topology->burst_bytes)
        return;
    look(client, &found);
    n = rbt_pick_best(&found, room > heads ? room - heads : 0, RBT_EARLY_PART);
    if (n > 0) {
        send_strips(client, found.at + (found.count - n), n, env);
        rbt_budget_accept(&client->budget, env->now_ns);
    }
    rbt_array_free(&found);
}

/* ------------------------------------------------------------------------------------------------- receiving */

void rbt_client_take_got(rbt_client *client, const rbt_message *got)
{
    uint32_t server = got->from - 1;
    rbt_outbox *unacked;

    if (got->from == RBT_MASTER || server >= client->topology->servers || got->incarnation != client->incarnation)
        return;
    unacked = &client->unacked[server];
    while (unacked->first != NULL && unacked->first->type == RBT_MSG_EARLY && unacked->first->clock == got->clock &&
           unacked->first->slice < got->slice) {
        rbt_message *early = rbt_outbox_take(unacked);

        client->early_unacked -= rbt_wire_size(early);
        rbt_message_destroy(early);
    }
}

void rbt_early_renew(rbt_client *client, const rbt_part *part, uint64_t slowest, rbt_applied included)
{
    const rbt_copy *copy = &client->cache[part->table].copies[part->block];
    rbt_span span = {.table = part->table, .block = part->block};
    rbt_parked newer = {.base = part->snap, .slowest = slowest, .included = included.clocks, .version = part->version};

    if (part->version <= copy->version)
        return;
    if (copy->read_in != client->clock + 1)
        rbt_client_adopt(client, span, part->snap, slowest, included, part->version);
    else
        rbt_cache_park(&client->cache[part->table], part->block, &newer);
}

/* Is a part of a peer's message what it says, and of a copy that may be patched? Patched elements must have as many of our own
 * clocks as the others, which with our own updates are all that have ended; a copy and rows that have later ones, of a
 * former life, agree only if both have the same. */
static bool may_patch(const rbt_client *client, const rbt_message *rows, const rbt_part *part, rbt_applied included)
{
    const rbt_layout *layout;
    const rbt_copy *copy;
    uint64_t clocks;

    if (part->table >= client->topology->tables || part->snap == NULL || !client->cache[part->table].is_managed)
        return false;
    layout = &client->topology->layout[part->table];
    if (part->block >= layout->blocks || part->snap->type != layout->type ||
        (part->snap->form != RBT_SPARSE && !client->cache[part->table].has_tags) ||
        part->snap->length != rbt_layout_length(layout, part->block))
        return false;
    copy = &client->cache[part->table].copies[part->block];
    clocks = copy->included > client->clock ? copy->included : client->clock;
    if (client->cache[part->table].has_tags ? included.clocks < client->clock : included.clocks != clocks)
        return false;
    return copy->base != NULL && rows->slowest >= copy->slowest && !rbt_early_lacks(client, copy, included);
}

/* Tells the server that they have come, used or not: it sends no more while too much is on its way. */
static void say_got(rbt_client *client, const rbt_message *rows, rbt_env *env)
{
    rbt_message *got = rbt_client_make(client, RBT_MSG_GOT, rows->from);

    got->slice = rows->slice;
    rbt_client_send(client, got, env);
}

void rbt_client_take_rows(rbt_client *client, const rbt_message *rows, rbt_env *env)
{
    rbt_applied own = rbt_message_applied(rows);

    if (rows->from == RBT_MASTER || rows->from > client->topology->servers || client->is_observer || !client->ready)
        return;
    say_got(client, rows, env);
    for (size_t i = 0; i < rows->parts.count; i++) {
        const rbt_part *part = &rows->parts.at[i];
        rbt_applied included = rbt_applied_of(own, part->table, part->block);

        if (!may_patch(client, rows, part, included))
            continue;
        if (client->cache[part->table].has_tags)
            rbt_early_renew(client, part, rows->slowest, included);
        else
            rbt_cache_patch(&client->cache[part->table], part->block, part->snap, rbt_early_included(client, included));
    }
}
