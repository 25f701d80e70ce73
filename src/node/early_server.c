/* The server's side of managed communication; the contract is in early.h. */
#include "node/early.h"

#include "node/pulls.h"
#include "node/slices.h"
#include "rule/procedure.h"

void rbt_server_init_early(rbt_server *server)
{
    server->ahead = rbt_alloc(server->topology->workers, sizeof *server->ahead);
    server->told = rbt_alloc(server->topology->workers, sizeof *server->told);
    server->early_rng = rbt_rng_stream(0, RBT_STREAM_COMM, server->node);
    rbt_budget_init(&server->budget, server->topology->budget_bytes, server->topology->burst_bytes);
    rbt_bits_init(&server->untold, (uint32_t)server->cells.count);
}

void rbt_server_deinit_early(rbt_server *server)
{
    for (size_t i = 0; i < server->cells.count; i++)
        rbt_strips_deinit(&server->cells.at[i].strips);
    for (uint32_t m = 0; m < server->topology->workers; m++)
        rbt_server_forget_early(server, m);
    rbt_bits_deinit(&server->untold);
    rbt_free(server->ahead);
    rbt_free(server->told);
}

rbt_applied rbt_early_applied(const rbt_server *server, uint32_t worker)
{
    rbt_applied applied = rbt_slices_applied(server, worker);

    applied.early = server->ahead[worker].count;
    applied.life = server->ahead[worker].incarnation;
    return applied;
}

/* ------------------------------------------------------------------------------------------------ taking */

static bool is_sound(const rbt_server *server, const rbt_message *message)
{
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_part *part = &message->parts.at[i];
        rbt_push push = rbt_slices_push(message, part);
        uint32_t ordinal = rbt_server_ordinal(server, part);

        if (ordinal == UINT32_MAX || part->snap == NULL || !rbt_is_managed(server->topology, part->table) ||
            !rbt_cell_accepts(&server->cells.at[ordinal].cell, &server->topology->rule[part->table], &push))
            return false;
    }
    return message->parts.count > 0;
}

static bool is_relative(const rbt_server *server)
{
    return server->topology->priority == RBT_PRIORITY_RELATIVE;
}

void rbt_early_note(rbt_server *server, rbt_server_cell *cell, const rbt_snap *update, bool is_after)
{
    if (update == NULL)
        return;
    rbt_strips_weigh(&cell->strips, update, cell->cell.value, is_relative(server), is_after);
    if (cell->strips.list.count > 0)
        rbt_bits_add(&server->untold, (uint32_t)(cell - server->cells.at));
}

static void apply(rbt_server *server, uint32_t ordinal, const rbt_push *push)
{
    rbt_server_cell *cell = &server->cells.at[ordinal];
    size_t bytes = rbt_cell_version_bytes(&cell->cell);

    rbt_early_note(server, cell, push->update, false);
    rbt_cell_push_part(&cell->cell, &server->topology->rule[cell->table], push);
    rbt_early_note(server, cell, push->update, true);
    rbt_server_count_versions(server, cell, bytes);
}

static void say_got(const rbt_server *server, const rbt_message *message, uint64_t count, rbt_env *env)
{
    rbt_message *got = rbt_message_create(RBT_MSG_GOT, server->node, message->from);

    got->view = server->view;
    got->worker = message->worker;
    got->incarnation = server->incarnation[message->worker];
    got->clock = message->clock;
    got->slice = count;
    rbt_outbox_put(&env->out, got);
}

/* Applies it, but for blocks whose update a former life has brought whole. */
static void apply_all(rbt_server *server, rbt_message *message)
{
    rbt_early *ahead = &server->ahead[message->worker];

    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_part *part = &message->parts.at[i];
        uint32_t ordinal = server->ordinal[part->table][part->block];
        rbt_push push = rbt_slices_push(message, part);

        if (ordinal >= server->sliced[message->worker].taken)
            apply(server, ordinal, &push);
    }
    ahead->count++;
    rbt_outbox_put(&ahead->kept, message);
}

void rbt_server_take_early(rbt_server *server, rbt_message *message, rbt_env *env)
{
    uint32_t worker = message->worker;
    rbt_early *ahead = &server->ahead[worker];
    const rbt_sliced *sliced = &server->sliced[worker];
    uint64_t expected = server->clocks.value[worker];
    bool push_has_begun = sliced->slice > 0 && sliced->incarnation == message->incarnation;

    if (message->clock < expected ||
        (message->clock == expected && (message->slice < ahead->count || push_has_begun))) {
#ifndef RBT_MUTANT_EARLY
        server->stats.repeated++;
        say_got(server, message, message->slice + 1, env);
#else /* applied again: the swarm must notice */
        if (is_sound(server, message))
            for (size_t i = 0; i < message->parts.count; i++) {
                rbt_push push = rbt_slices_push(message, &message->parts.at[i]);

                apply(server, rbt_server_ordinal(server, &message->parts.at[i]), &push);
            }
#endif
        goto drop;
    }
    if (message->clock > expected || message->slice > ahead->count || ahead->count >= RBT_EARLY_MAX ||
        server->clocks.gone[worker] || server->topology->staleness == 0 || !is_sound(server, message)) {
        server->stats.refused++;
        goto drop;
    }
    apply_all(server, message);
    say_got(server, message, ahead->count, env);
    return;
drop:
    rbt_message_destroy(message);
}

void rbt_server_forget_early(rbt_server *server, uint32_t worker)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&server->ahead[worker].kept)) != NULL)
        rbt_message_destroy(message);
    server->ahead[worker].count = 0;
}

static rbt_snap *negative(const rbt_snap *update)
{
    rbt_snap *snap = rbt_snap_create_sparse(update->type, update->length, update->count);

    for (uint32_t k = 0; k < update->count; k++) {
        snap->index[k] = update->form == RBT_DENSE ? k : update->index[k];
        if (update->type == RBT_F32)
            snap->f32[k] = -update->f32[k];
        else if (update->type == RBT_I32)
            snap->i32[k] = (int32_t)(0 - (uint32_t)update->i32[k]);
        else
            snap->i64[k] = (int64_t)(0 - (uint64_t)update->i64[k]);
    }
    return snap;
}

/* What they have added is added once more with the other sign: under adarev as a gradient that was computed just now. */
void rbt_server_undo_early(rbt_server *server, uint32_t worker)
{
    for (const rbt_message *message = server->ahead[worker].kept.first; message != NULL; message = message->next)
        for (size_t i = 0; i < message->parts.count; i++) {
            const rbt_part *part = &message->parts.at[i];
            uint32_t ordinal = server->ordinal[part->table][part->block];
            rbt_push push = rbt_slices_push(message, part);

            if (ordinal < server->sliced[worker].taken)
                continue;
#ifdef RBT_MUTANT_UNDO /* what a worker sent before it died stays: the swarm must notice */
            continue;
#endif
            push.version = RBT_UNBOUNDED;
            push.update = negative(part->snap);
            apply(server, ordinal, &push);
            rbt_snap_unref(push.update);
        }
    rbt_server_forget_early(server, worker);
}

/* ------------------------------------------------------------------------------------------- telling readers */

void rbt_server_take_got(rbt_server *server, const rbt_message *got)
{
    rbt_rows_told *told;

    if (got->worker >= server->topology->workers || got->incarnation < server->incarnation[got->worker])
        return;
    told = &server->told[got->worker];
    if (got->slice > told->got && got->slice <= told->sent)
        told->got = got->slice;
}

/* May this worker be told of what changes? One that waits for an answer gets it anyway; one that has not received what it
 * was sent has a network that is busy enough. */
static bool listens(const rbt_server *server, uint32_t worker)
{
    const rbt_rows_told *told = &server->told[worker];

    return !server->clocks.gone[worker] && !server->retiring[worker] &&
           told->sent - told->got <= RBT_EARLY_UNANSWERED * server->topology->burst_bytes &&
           !rbt_pulls_are_held(server, worker);
}

static bool reads(const rbt_server *server, uint32_t worker, uint32_t ordinal)
{
    return server->registered[worker][ordinal / 64] >> ordinal % 64 & 1;
}

static uint32_t count_readers(const rbt_server *server, const uint32_t *readers, uint32_t n, uint32_t ordinal)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += reads(server, readers[i], ordinal);
    return count;
}

static bool has_tags(const rbt_server *server, const rbt_server_cell *cell)
{
    return rbt_has_tags(server->topology, cell->table);
}

/* May readers be told of this cell? One whose versions are kept goes out only while there is room for many: half of it is
 * for answers, which cannot wait. */
static bool may_tell(const rbt_server *server, const rbt_server_cell *cell)
{
    const rbt_rule_config *config = &server->topology->rule[cell->table];

    return !has_tags(server, cell) || 2 * cell->cell.kept.count < rbt_most_kept(config);
}

/* The strips of one cell that readers have not been told of, at most RBT_EARLY_LOOK in all. A candidate's `block` is its cell's
 * ordinal. */
static void look_at(rbt_server *server, uint32_t ordinal, const uint32_t *readers, uint32_t reader_count,
                    rbt_candidates *found)
{
    const rbt_server_cell *cell = &server->cells.at[ordinal];
    const rbt_strips *strips = &cell->strips;
    size_t size = sizeof(uint32_t) + rbt_type_size(cell->cell.value->type), count = strips->list.count;
    uint32_t copies;

    if (!may_tell(server, cell))
        return;
    copies = count_readers(server, readers, reader_count, ordinal);
    for (size_t k = 0; k < count && found->count < RBT_EARLY_LOOK; k++) {
        const rbt_strip *dirty = &strips->list.at[k];
        rbt_candidate c = {.table = cell->table, .block = ordinal, .strip = dirty->strip, .copies = copies};

        if (dirty->changed == 0) /* it is again what it was */
            continue;
        c.bytes = (uint32_t)(dirty->changed * size);
        c.score = rbt_pick_score(server->topology->priority, dirty->since, dirty->change, &server->early_rng);
        rbt_array_push(found, c);
    }
}

/* The first cell from this one on that has something to be told; RBT_BITS_END: none has. */
static uint32_t next_untold(rbt_server *server, uint32_t ordinal)
{
    while ((ordinal = rbt_bits_next(&server->untold, ordinal)) != RBT_BITS_END) {
        if (server->cells.at[ordinal].strips.list.count > 0)
            break;
        rbt_bits_remove(&server->untold, ordinal);
    }
    return ordinal;
}

/* All there is, beginning with another cell each time. */
static void look(rbt_server *server, const uint32_t *readers, uint32_t reader_count, rbt_candidates *found)
{
    uint32_t cells = (uint32_t)server->cells.count, from = cells > 0 ? server->early_from++ % cells : 0, i;

    for (i = next_untold(server, from); i < cells; i = next_untold(server, i + 1))
        look_at(server, i, readers, reader_count, found);
    for (i = next_untold(server, 0); i < from; i = next_untold(server, i + 1))
        look_at(server, i, readers, reader_count, found);
}

#define WIDER 4u /* times the room: so many of the best are looked at, of which only parts are told */

/* How many of the candidates fit; they are moved to the end. Where not all do and relative change decides, only what differs most
 * in each is told (in_part). */
static size_t pick(const rbt_server *server, rbt_candidates *found, uint64_t room, bool *in_part)
{
    size_t n = rbt_pick_best(found, room, RBT_EARLY_PART);
    rbt_candidates best;

    *in_part = is_relative(server) && n < found->count;
    if (!*in_part)
        return n;
    n = rbt_pick_best(found, WIDER * room, RBT_EARLY_PART);
    best = (rbt_candidates){.at = found->at + (found->count - n), .count = n};
    for (size_t i = 0; i < n; i++) {
        rbt_candidate *c = &best.at[i];
        const rbt_server_cell *cell = &server->cells.at[c->block];
        const rbt_snap *value = cell->cell.value;

        if (!has_tags(server, cell))
            c->bytes = (uint32_t)(rbt_strips_count_news(&cell->strips, c->strip, value, true) *
                                  (sizeof(uint32_t) + rbt_type_size(value->type)));
    }
    return rbt_pick_best(&best, room, RBT_EARLY_PART);
}

/* What readers are told of chosen strips of one cell. NULL: nothing, they are again what they were. */
static rbt_snap *news_of(rbt_server_cell *cell, const rbt_candidate *chosen, size_t n, bool in_part)
{
    const rbt_snap *value = cell->cell.value;
    rbt_snap *snap = rbt_snap_create_sparse(value->type, value->length, (uint32_t)n * cell->strips.width);
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++) {
        count += rbt_strips_tell(&cell->strips, chosen[i].strip, value, in_part, snap->index + count,
                                 (char *)snap->value + count * rbt_type_size(value->type));
    }
    rbt_strips_sweep(&cell->strips);
    snap->count = count;
    if (count > 0)
        return snap;
    rbt_snap_unref(snap);
    return NULL;
}

/* A whole cell whose updates name versions, as it is now; those who are told may name this one. */
static void lend(rbt_server *server, rbt_server_cell *cell, const uint32_t *readers, uint32_t reader_count,
                 rbt_part *part)
{
    const rbt_rule_config *config = &server->topology->rule[cell->table];
    uint32_t ordinal = server->ordinal[cell->table][cell->block];
    size_t bytes = rbt_cell_version_bytes(&cell->cell);
    rbt_snap *value = rbt_cell_read(&cell->cell, config, 0, &part->version);

    for (uint32_t r = 0; r < reader_count; r++)
        if (reads(server, readers[r], ordinal))
            rbt_cell_lend(&cell->cell, config, readers[r]);
    rbt_server_count_versions(server, cell, bytes);
    part->snap = rbt_snap_thin(value);
    rbt_snap_unref(value);
    rbt_strips_clean_all(&cell->strips);
}

static rbt_message *begin_rows(const rbt_server *server, uint32_t worker)
{
    rbt_message *rows = rbt_message_create(RBT_MSG_ROWS, server->node, rbt_node_of_worker(server->topology, worker));
    rbt_applied own = rbt_early_applied(server, worker);

    rows->view = server->view;
    rows->worker = worker;
    rows->slowest = server->clocks.least;
    rows->included = own.clocks;
    rows->reach = own.reach;
    rows->early = own.early;
    rows->incarnation = (uint32_t)own.life;
    return rows;
}

/* Sends the chosen strips, in the order of their places, to whoever reads there. */
static void send_strips(rbt_server *server, const rbt_candidate *chosen, size_t n, bool in_part,
                        const uint32_t *readers, uint32_t reader_count, rbt_env *env)
{
    rbt_message **rows = rbt_alloc(reader_count, sizeof(rbt_message *));

    for (size_t i = 0, end; i < n; i = end) {
        uint32_t ordinal = chosen[i].block;
        rbt_server_cell *cell = &server->cells.at[ordinal];
        rbt_part part = {.table = cell->table, .block = cell->block};

        for (end = i + 1; end < n && chosen[end].block == ordinal;)
            end++;
        if (has_tags(server, cell))
            lend(server, cell, readers, reader_count, &part);
        else
            part.snap = news_of(cell, &chosen[i], end - i, in_part);
        for (uint32_t r = 0; r < reader_count; r++) {
            if (part.snap == NULL || !reads(server, readers[r], ordinal))
                continue;
            if (rows[r] == NULL)
                rows[r] = begin_rows(server, readers[r]);
            rbt_snap_ref(part.snap);
            rbt_array_push(&rows[r]->parts, part);
        }
        rbt_snap_unref(part.snap);
    }
    for (uint32_t r = 0; r < reader_count; r++) {
        if (rows[r] == NULL)
            continue;
        server->told[readers[r]].sent += rbt_wire_size(rows[r]);
        rows[r]->slice = server->told[readers[r]].sent;
        rbt_early_count(server->topology, &server->budget, rows[r], env->now_ns);
        rbt_outbox_put(&env->out, rows[r]);
    }
    rbt_free(rows);
}

void rbt_server_send_rows(rbt_server *server, rbt_env *env)
{
    const rbt_topology *topology = server->topology;
    rbt_candidates found = {0};
    uint64_t room, heads;
    uint32_t *readers, reader_count = 0;
    bool in_part = false;
    size_t n;

    if (topology->budget_bytes == 0 || next_untold(server, 0) == RBT_BITS_END)
        return;
    room = rbt_budget_offer(&server->budget, env->now_ns);
    if (room == 0)
        return;
    readers = rbt_alloc(topology->workers, sizeof *readers);
    for (uint32_t m = 0; m < topology->workers; m++)
        if (listens(server, m))
            readers[reader_count++] = m;
    heads = (uint64_t)RBT_EARLY_MESSAGE * reader_count;
    if (reader_count > 0)
        look(server, readers, reader_count, &found);
    n = found.count > 0 ? pick(server, &found, room > heads ? room - heads : 0, &in_part) : 0;
    if (n > 0) {
        send_strips(server, found.at + (found.count - n), n, in_part, readers, reader_count, env);
        rbt_budget_accept(&server->budget, env->now_ns);
    }
    rbt_array_free(&found);
    rbt_free(readers);
}
