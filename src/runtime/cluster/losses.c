/* What becomes of a job that loses processes; the contract is in losses.h. */
#include "runtime/cluster/losses.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_MS 1000000u
#define FINEST    65536 /* rows apart: what has been split so far is not split again */

void rbt_losses_init(rbt_losses *losses, rbt_on_loss on_loss, uint32_t size)
{
    *losses = (rbt_losses){.on_loss = on_loss, .size = size, .ranks = rbt_alloc(size, sizeof *losses->ranks)};
}

void rbt_losses_deinit(rbt_losses *losses)
{
    for (uint32_t r = 0; r < losses->size; r++)
        rbt_array_free(&losses->ranks[r].inherited);
    rbt_free(losses->ranks);
    rbt_array_free(&losses->complaints);
    *losses = (rbt_losses){0};
}

void rbt_losses_seat(rbt_losses *losses, uint32_t rank, uint32_t first_worker, uint32_t workers, uint32_t servers)
{
    losses->ranks[rank].first_worker = first_worker;
    losses->ranks[rank].workers = workers;
    losses->ranks[rank].servers = servers;
}

/* ------------------------------------------------------------------------------------------------------- states */

bool rbt_losses_is_lost(const rbt_losses *losses, uint32_t rank)
{
    return losses->ranks[rank].state >= RBT_RANK_AWAY;
}

bool rbt_rank_is_done(rbt_rank_state state)
{
    return state == RBT_RANK_DONE || state == RBT_RANK_TOLD || state == RBT_RANK_GONE;
}

bool rbt_rank_is_told(rbt_rank_state state)
{
    return state == RBT_RANK_TOLD || state == RBT_RANK_GONE;
}

void rbt_losses_start(rbt_losses *losses)
{
    for (uint32_t r = 0; r < losses->size; r++)
        if (losses->ranks[r].state == RBT_RANK_COMING)
            losses->ranks[r].state = RBT_RANK_WORKING;
}

bool rbt_losses_return(rbt_losses *losses, uint32_t rank)
{
    if (losses->ranks[rank].state != RBT_RANK_AWAY)
        return false;
    losses->ranks[rank].state = RBT_RANK_RETURNING;
    return true;
}

void rbt_losses_back(rbt_losses *losses, uint32_t rank)
{
    if (losses->ranks[rank].state == RBT_RANK_RETURNING)
        losses->ranks[rank].state = RBT_RANK_WORKING;
}

void rbt_losses_done(rbt_losses *losses, uint32_t rank)
{
    if (losses->ranks[rank].state == RBT_RANK_WORKING)
        losses->ranks[rank].state = RBT_RANK_DONE;
}

void rbt_losses_told(rbt_losses *losses, uint32_t rank)
{
    if (losses->ranks[rank].state == RBT_RANK_WORKING || losses->ranks[rank].state == RBT_RANK_DONE)
        losses->ranks[rank].state = RBT_RANK_TOLD;
}

/* Is there another one with workers that has not gone for good? */
static bool has_workers(const rbt_losses *losses)
{
    for (uint32_t r = 0; r < losses->size; r++)
        if (losses->ranks[r].workers > 0 && losses->ranks[r].state != RBT_RANK_GONE)
            return true;
    return false;
}

/* What was said by or about a rank that is no more. */
static void forget_complaints(rbt_losses *losses, uint32_t rank)
{
    size_t kept = 0;

    for (size_t i = 0; i < losses->complaints.count; i++)
        if (losses->complaints.at[i].by != rank && losses->complaints.at[i].about != rank)
            losses->complaints.at[kept++] = losses->complaints.at[i];
    losses->complaints.count = kept;
}

rbt_verdict rbt_losses_lost(rbt_losses *losses, uint32_t rank, const char **reason)
{
    rbt_rank *r = &losses->ranks[rank];
    rbt_rank_state before = r->state;
    bool was_done = before == RBT_RANK_DONE || before == RBT_RANK_TOLD;

    forget_complaints(losses, rank);
    *reason = NULL;
    r->state = RBT_RANK_GONE;
    if (before == RBT_RANK_RETURNING) {
        r->state = RBT_RANK_AWAY;
        return RBT_VERDICT_WAIT;
    }
    if (before == RBT_RANK_COMING)
        *reason = "the job had not started";
    else if (r->servers > 0)
        *reason = "it held parameters, so the job ends";
    else if (was_done)
        return RBT_VERDICT_NOTHING;
    else if (losses->on_loss == RBT_LOSS_STOP)
        *reason = "the job ends, as --on-worker-loss stop says";
    else if (losses->needs_all)
        *reason = "all-reduce needs every worker, so the job ends; --sync hop goes on without one";
    else if (losses->on_loss == RBT_LOSS_WAIT && losses->cannot_return)
        *reason =
            "its parameters are lost with it, so nobody can come back in its place; --on-worker-loss continue goes "
            "on without it";
    else if (losses->on_loss == RBT_LOSS_AUTO && losses->rows_stay)
        *reason = losses->cannot_return
                      ? "nobody can take over its part of the data, so the job ends; --on-worker-loss continue goes on "
                        "with the rest"
                      : "nobody can take over its part of the data, so the job ends; --on-worker-loss wait has it come "
                        "back, continue goes on with the rest";
    else if (losses->on_loss != RBT_LOSS_WAIT && !has_workers(losses))
        *reason = "no worker is left";
    if (*reason != NULL)
        return RBT_VERDICT_END;
    if (losses->on_loss != RBT_LOSS_WAIT)
        return RBT_VERDICT_GO_ON;
    r->state = RBT_RANK_AWAY;
    return RBT_VERDICT_WAIT;
}

/* --------------------------------------------------------------------------------------------------------- rows */

/* Ranks that can take rows over. */
typedef RBT_ARRAY(uint32_t) heir_list;

static heir_list list_heirs(const rbt_losses *losses)
{
    heir_list heirs = {0};

    for (uint32_t r = 0; r < losses->size; r++)
        if (losses->ranks[r].workers > 0 && losses->ranks[r].state == RBT_RANK_WORKING)
            rbt_array_push(&heirs, r);
    return heirs;
}

static void give(rbt_losses *losses, uint32_t rank, rbt_rows_of rows, rbt_bequests *out)
{
    rbt_array_push(&losses->ranks[rank].inherited, rows);
    rbt_array_push(out, ((rbt_bequest){rank, rows}));
}

/* Every n-th row to each. */
static void split(rbt_losses *losses, rbt_rows_of rows, const heir_list *heirs, rbt_bequests *out)
{
    for (uint32_t i = 0; i < heirs->count; i++)
        give(losses, heirs->at[i],
             (rbt_rows_of){rows.worker, rows.first + rows.step * i, rows.step * (uint32_t)heirs->count}, out);
}

/* What was inherited is handed on whole where everybody gets some of it: split each time, the shares would double with each
 * loss. */
rbt_bequests rbt_losses_bequeath(rbt_losses *losses, uint32_t rank)
{
    rbt_rank *gone = &losses->ranks[rank];
    heir_list heirs = list_heirs(losses);
    rbt_bequests out = {0};

    for (uint32_t i = 0; i < gone->workers; i++)
        split(losses, (rbt_rows_of){gone->first_worker + i, 0, 1}, &heirs, &out);
    for (size_t i = 0; heirs.count > 0 && i < gone->inherited.count; i++) {
        rbt_rows_of rows = gone->inherited.at[i];

        if (gone->inherited.count < heirs.count && rows.step <= FINEST / heirs.count)
            split(losses, rows, &heirs, &out);
        else
            give(losses, heirs.at[i % heirs.count], rows, &out);
    }
    rbt_array_free(&gone->inherited);
    rbt_array_free(&heirs);
    return out;
}

/* --------------------------------------------------------------------------------------------------- complaints */

void rbt_losses_complain(rbt_losses *losses, uint32_t by, uint32_t about, bool is_accused, const char *why,
                         uint64_t now_ns)
{
    rbt_complaint new = {.by = by, .about = about, .is_accused = is_accused};

    if (by == about || rbt_losses_is_lost(losses, by) || rbt_losses_is_lost(losses, about))
        return;
    snprintf(new.why, sizeof new.why, "%s", why);
    if (losses->complaints.count == 0)
        losses->since_ns = now_ns;
    for (size_t i = 0; i < losses->complaints.count; i++) {
        rbt_complaint *old = &losses->complaints.at[i];

        if (old->by == by && old->about == about) { /* one who shouts all the time fills no memory */
            if (is_accused)
                *old = new;
            return;
        }
    }
    rbt_array_push(&losses->complaints, new);
}

/* With how many it has quarrelled. */
static uint32_t quarrels(const rbt_losses *losses, uint32_t rank)
{
    uint32_t n = 0;

    for (size_t i = 0; i < losses->complaints.count; i++)
        n += losses->complaints.at[i].by == rank || losses->complaints.at[i].about == rank;
    return n;
}

/* Of the two, the one that the job can better do without. */
static uint32_t choose(const rbt_losses *losses, const rbt_complaint *c)
{
    bool by_serves = losses->ranks[c->by].servers > 0 || c->by == 0;
    bool about_serves = losses->ranks[c->about].servers > 0 || c->about == 0;
    uint32_t by = quarrels(losses, c->by), about = quarrels(losses, c->about);

    if (by_serves != about_serves)
        return by_serves ? c->about : c->by;
    if (c->is_accused)
        return c->about;
    if (by != about)
        return by > about ? c->by : c->about;
    return c->by > c->about ? c->by : c->about;
}

bool rbt_losses_judge(rbt_losses *losses, uint64_t now_ns, rbt_complaint *complaint)
{
    const rbt_complaint *worst = NULL;
    uint32_t cut;

    for (size_t i = 0; i < losses->complaints.count; i++) {
        const rbt_complaint *c = &losses->complaints.at[i];

        if (worst == NULL || c->is_accused > worst->is_accused ||
            (c->is_accused == worst->is_accused &&
             quarrels(losses, choose(losses, c)) > quarrels(losses, choose(losses, worst))))
            worst = c;
    }
    /* Who has died is lost by the lead itself before long; who broke the protocol lives. */
    if (worst == NULL || (!worst->is_accused && now_ns < losses->since_ns + (uint64_t)RBT_APART_MS * NS_PER_MS))
        return false;
    cut = choose(losses, worst);
    *complaint = *worst;
    if (cut != worst->about) {
        complaint->by = worst->about;
        complaint->about = worst->by;
    }
    forget_complaints(losses, cut);
    return true;
}
