/* Cutting pushes and putting them together; the contract is in slices.h. */
#include "node/slices.h"

#include "base/error.h"

/* ------------------------------------------------------------------------------------------- the worker's side */

/* An empty message like this one. */
static rbt_message *begin_slice(const rbt_message *push, uint64_t number)
{
    rbt_message *slice = rbt_message_create(push->type, push->from, push->to);

    slice->view = push->view;
    slice->worker = push->worker;
    slice->incarnation = push->incarnation;
    slice->clock = push->clock;
    slice->slowest = push->slowest;
    slice->slice = number;
    return slice;
}

static bool is_same_block(const rbt_part *a, const rbt_part *b)
{
    return a->table == b->table && a->block == b->block;
}

/* How many parts from this one on are of the same block. */
static size_t parts_of_block(const rbt_message *push, size_t i)
{
    size_t n = 1;

    while (i + n < push->parts.count && is_same_block(&push->parts.at[i], &push->parts.at[i + n]))
        n++;
    return n;
}

void rbt_slices_cut(rbt_message *push, size_t bytes, size_t most, rbt_outbox *out)
{
    rbt_message *slice;
    size_t filled = 0;

    most = most > 0 ? most : SIZE_MAX;
    if (bytes == 0 && push->parts.count <= most) {
        rbt_outbox_put(out, push);
        return;
    }
    slice = begin_slice(push, 0);
    for (size_t i = 0; i < push->parts.count; i++) {
        rbt_part part = push->parts.at[i];

        if (slice->parts.count > 0 && !is_same_block(&part, &push->parts.at[i - 1]) &&
            ((bytes > 0 && filled >= bytes) || slice->parts.count + parts_of_block(push, i) > most)) {
            slice->more = 1;
            rbt_outbox_put(out, slice);
            slice = begin_slice(push, slice->slice + 1);
            filled = 0;
        }
        filled += part.snap != NULL ? rbt_snap_bytes(part.snap) : 0;
        rbt_array_push(&slice->parts, part); /* the reference moves */
    }
    rbt_outbox_put(out, slice);
    push->parts.count = 0;
    rbt_message_destroy(push);
}

/* ------------------------------------------------------------------------------------------- the server's side */

rbt_push rbt_slices_push(const rbt_message *slice, const rbt_part *part)
{
    return (rbt_push){.worker = slice->worker,
                      .clock = slice->clock,
                      .version = part->version,
                      .slowest = slice->slowest,
                      .update = part->snap};
}

/* Does it carry what it must? Blocks are ours and ascend (one has several parts if its rule wants to know which version
 * each was computed from); the rules accept those that are new; with the last slice every block has been named where an
 * update that changes nothing still counts. `after` is how far the push has come with it. */
static bool is_sound(const rbt_server *server, const rbt_message *slice, const rbt_sliced *before, rbt_sliced *after)
{
    *after = *before;
    if (slice->more != 0 && slice->parts.count == 0)
        return false; /* or there could be slices without end */
    for (size_t i = 0; i < slice->parts.count; i++) {
        const rbt_part *part = &slice->parts.at[i];
        rbt_push push = rbt_slices_push(slice, part);
        uint32_t ordinal = rbt_server_ordinal(server, part);
        bool is_again = i > 0 && is_same_block(part, part - 1);
        const rbt_rule_config *config;

        if (ordinal == UINT32_MAX || (ordinal < after->seen && !is_again))
            return false;
        config = &server->topology->rule[part->table];
        if (is_again && config->rule->versions != RBT_VERSIONS_READ)
            return false;
        after->seen = ordinal + 1;
        if (ordinal < before->taken)
            continue;
        if (!rbt_cell_accepts(&server->cells.at[ordinal].cell, config, &push))
            return false;
        after->named += !is_again && config->rule->counts_empty;
        after->taken = ordinal + 1;
    }
    after->slice++;
    return slice->more != 0 || after->named == server->counted;
}

/* Leaves out what a former life has brought. */
static void leave_out(const rbt_server *server, rbt_message *slice, uint32_t taken)
{
    size_t kept = 0;

    for (size_t i = 0; i < slice->parts.count; i++) {
        rbt_part part = slice->parts.at[i];

        if (rbt_server_ordinal(server, &part) < taken)
            rbt_snap_unref(part.snap);
        else
            slice->parts.at[kept++] = part;
    }
    slice->parts.count = kept;
}

rbt_slice_verdict rbt_slices_take(rbt_server *server, rbt_message *slice)
{
    rbt_sliced *sliced = &server->sliced[slice->worker], before = *sliced, after;

    if (slice->incarnation < before.incarnation)
        return RBT_SLICE_REFUSED;
    if (slice->incarnation > before.incarnation) { /* begins the push again */
        before.incarnation = slice->incarnation;
        before.slice = 0;
        before.seen = 0;
    }
#ifndef RBT_MUTANT_SLICE
    if (slice->slice < before.slice)
        return RBT_SLICE_REPEATED;
#else /* applied again: the swarm must notice */
    if (slice->slice < before.slice)
        before = (rbt_sliced){.incarnation = before.incarnation, .slice = slice->slice};
#endif
    if (slice->slice > before.slice || !is_sound(server, slice, &before, &after))
        return RBT_SLICE_REFUSED;
    leave_out(server, slice, before.taken);
    *sliced = slice->more != 0 ? after : (rbt_sliced){.incarnation = after.incarnation};
    return RBT_SLICE_TAKEN;
}

rbt_applied rbt_slices_applied(const rbt_server *server, uint32_t worker)
{
    rbt_applied applied = {.clocks = server->clocks.value[worker]};
    uint32_t taken = server->sliced[worker].taken;
    const rbt_server_cell *last;

    if (taken == 0 || server->topology->staleness == 0) /* under BSP nothing is applied before all is there */
        return applied;
    last = &server->cells.at[taken - 1];
    applied.reach = rbt_place_of(last->table, last->block) + 1;
#ifdef RBT_MUTANT_REACH /* what is still arriving is kept quiet: the swarm must notice */
    applied.reach = 0;
#endif
    return applied;
}
